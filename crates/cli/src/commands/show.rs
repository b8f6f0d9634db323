//! `netloom show`: an outcome or a study, printed again.

use std::io::Write;
use std::path::Path;

use netloom_record::Outcome;
use netloom_scenario::Problem;
use netloom_study::{Findings, numbers};

use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::{findings, summary};

/// What lies in a folder.
pub(super) enum Shown {
    Study(Findings),
    Run(Box<Outcome>),
}

impl Shown {
    /// Reads what a run or a study wrote.
    pub(super) fn read(dir: &Path) -> Result<Self, Failure> {
        let nothing = || {
            let hint = netloom_report::hint(dir);
            let message = format!(
                "{} is neither an outcome nor a study: it contains neither summary.json nor study.json{hint}",
                dir.display(),
            );
            Failure::from(Problem::new("DIR", message))
        };
        if !dir.is_dir() {
            return Err(nothing());
        }
        let found = Findings::read(dir).map_err(|error| {
            Failure::Output(format!("cannot read {}: {error}", dir.join("study.json").display()))
        })?;
        if let Some(found) = found {
            return Ok(Shown::Study(found));
        }
        if !dir.join("summary.json").exists() {
            return Err(nothing());
        }
        Ok(Shown::Run(Box::new(Outcome::read(dir)?)))
    }
}

/// Prints what the run or the study printed when it ended.
pub(crate) fn show(args: &ShowArgs) -> Result<(), Failure> {
    let text = match (Shown::read(&args.dir)?, args.json, &args.columns) {
        (Shown::Study(found), true, None) => json(&found)?,
        (Shown::Study(found), true, Some(columns)) => json(&found.with_columns(&args.dir, columns)?)?,
        (Shown::Study(found), false, None) => findings::text(&found, &found.warnings),
        (Shown::Study(found), false, Some(columns)) => {
            let found = found.with_columns(&args.dir, columns)?;
            findings::text(&found, &found.warnings)
        }
        (Shown::Run(outcome), true, None) => json(&outcome.summary)?,
        (Shown::Run(outcome), false, None) => summary::show(&outcome.summary, &outcome.performance),
        (Shown::Run(outcome), is_json, Some(columns)) => {
            let found = Findings::of_run(numbers(&outcome.summary), Some(columns))?;
            if is_json { json(&found)? } else { findings::text(&found, &outcome.summary.warnings) }
        }
    };
    write!(crate::show::out(), "{text}")?;
    Ok(())
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Bug(error.to_string()))?;
    Ok(text + "\n")
}
