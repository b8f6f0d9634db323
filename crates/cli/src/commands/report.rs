//! `netloom report`: outcomes and studies as one page, or one chart of it as a file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use netloom_report::{Report, ReportError};
use netloom_scenario::Problem;

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::files::write_file;
use crate::picture_file::{PictureFormat, write_picture};

/// Reads the folders, writes the page or the figures, and says where they are.
pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    // What is wrong with the options is said before anything is read.
    let formats = args.figure.iter().map(|file| PictureFormat::of("--figure", file));
    let formats = formats.collect::<Result<Vec<_>, _>>()?;
    let only = chosen(&args.only)?;
    let report = Report::read(&args.dirs, args.title.as_deref()).map_err(|error| match error {
        ReportError::NothingThere { .. } => Problem::new("DIR", error.to_string()).into(),
        ReportError::Outcome(error) => error.into(),
        error @ ReportError::Study { .. } => Failure::Output(error.to_string()),
    })?;
    if formats.is_empty() {
        let file = args.out.clone().unwrap_or_else(|| default_file(&args.dirs));
        write_file(&file, report.html().as_bytes())?;
        writeln!(crate::show::out(), "report in {}", file.display())?;
        return if args.open { open(&file) } else { Ok(()) };
    }
    // All or none: a second figure that is refused leaves no first one behind.
    let name = |file: &PathBuf| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let figures = args.figure.iter().map(|file| report.figure(&name(file), &only));
    let figures = figures.collect::<Result<Vec<_>, _>>();
    let figures = figures.map_err(|error| Problem::new("--figure", error.to_string()))?;
    for ((file, format), svg) in args.figure.iter().zip(formats).zip(figures) {
        write_picture(file, format, &svg)?;
        writeln!(crate::show::out(), "figure in {}", file.display())?;
    }
    Ok(())
}

/// The page of one folder lies in it, that of several in the working directory.
fn default_file(dirs: &[PathBuf]) -> PathBuf {
    const NAME: &str = "report.html";
    match dirs {
        [dir] => dir.join(NAME),
        _ => Path::new(NAME).to_owned(),
    }
}

/// Axes with labels: `load=0.6,0.8`.
fn chosen(only: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let mut all = Vec::new();
    for text in only {
        let Some((axis, labels)) = text.split_once('=') else {
            let message = format!("expected AXIS=LABEL, such as load=0.8, found {text}");
            return Err(Problem::new("--only", message).into());
        };
        all.extend(labels.split(',').map(|label| (axis.to_owned(), label.to_owned())));
    }
    Ok(all)
}

/// Opens a page with the program that the system has for it.
fn open(file: &Path) -> Result<(), Failure> {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start", ""])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let problem = match command.status() {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => format!("{program} ended with {status}"),
        Err(error) => format!("{program}: {error}"),
    };
    Err(Failure::Output(format!("cannot open the page ({problem}); open {} yourself", file.display())))
}
