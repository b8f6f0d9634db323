//! `netloom init`: a commented first scenario or study.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use netloom_scenario::Problem;

use crate::args::{InitArgs, InitKind};
use crate::failure::Failure;
use crate::files::write_file;

/// Writes the file, and says what to do with it. A file that is there is left alone.
pub(crate) fn init(args: &InitArgs) -> Result<(), Failure> {
    let Some(what) = args.what else {
        return Err(Problem::new("WHAT", "expected what to start from, found nothing").help(starts()).into());
    };
    let (name, text, command) = match what {
        InitKind::FatTree => ("fat-tree.toml", include_str!("init/fat-tree.toml"), "run"),
        InitKind::GpuCluster => ("gpu-cluster.toml", include_str!("init/gpu-cluster.toml"), "run"),
        InitKind::Uet => ("uet.toml", include_str!("init/uet.toml"), "run"),
        InitKind::SlimFly => ("slim-fly.toml", include_str!("init/slim-fly.toml"), "run"),
        InitKind::Study => ("study.toml", include_str!("init/study.toml"), "study"),
        InitKind::GpuStudy => ("gpu-study.toml", include_str!("init/gpu-study.toml"), "study"),
        InitKind::SlimFlyStudy => ("slim-fly-study.toml", include_str!("init/slim-fly-study.toml"), "study"),
    };
    let file = args.file.clone().unwrap_or_else(|| PathBuf::from(name));
    if std::fs::symlink_metadata(&file).is_ok() {
        let message = format!("{} exists and is not overwritten", file.display());
        return Err(Problem::new("FILE", message)
            .help("name another file, such as `netloom init KIND OTHER.toml`")
            .into());
    }
    write_file(&file, text.replace("FILE", &file.display().to_string()).as_bytes())?;
    let file = file.display();
    writeln!(crate::show::out(), "wrote {file}; next: netloom {command} {file}")?;
    Ok(())
}

/// What a first file may be about, each with what that is.
fn starts() -> String {
    let words = InitKind::value_variants().iter().filter_map(ValueEnum::to_possible_value).map(|start| {
        let help = start.get_help().map(ToString::to_string).unwrap_or_default();
        format!("netloom init {:<15} {help}", start.get_name())
    });
    std::iter::once("one of these:".to_owned()).chain(words).collect::<Vec<_>>().join("\n")
}
