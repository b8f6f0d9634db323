//! `netloom report`: outcomes and studies as one page.

use std::io::Write;
use std::path::{Path, PathBuf};

use netloom_report::{Report, ReportError};
use netloom_scenario::Problem;

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::files::write_file;

/// Reads the folders, writes the page and says where it is.
pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    let report = Report::read(&args.dirs, args.title.as_deref()).map_err(|error| match error {
        ReportError::NothingThere { .. } => Problem::new("DIR", error.to_string()).into(),
        ReportError::Outcome(error) => error.into(),
        error @ ReportError::Study { .. } => Failure::Output(error.to_string()),
    })?;
    let file = args.out.clone().unwrap_or_else(|| default_file(&args.dirs));
    write_file(&file, report.html().as_bytes())?;
    writeln!(crate::show::out(), "report in {}", file.display())?;
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
