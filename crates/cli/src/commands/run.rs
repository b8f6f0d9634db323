//! `netloom run`: one scenario, one outcome.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use netloom_record::{Existing, OutcomeWriter, Status};
use netloom_scenario::{finish, prepare};

use crate::args::RunArgs;
use crate::failure::{Failure, strictly};
use crate::input::load;
use crate::progress::RunLine;
use crate::{interrupt, summary};

/// Checks everything that can be checked, runs, writes the outcome and shows the result.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario.scenario, &args.scenario.changes)?;
    let scenario = &loaded.scenario;
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(&scenario.name));
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let ready = prepare(scenario, &loaded.document)?;
    if args.strict && !ready.warnings.is_empty() {
        return Err(strictly(&ready.warnings));
    }
    OutcomeWriter::tidy(&folder);
    let writer = OutcomeWriter::prepare(&folder, existing).map_err(|error| {
        let hint = match error {
            netloom_record::OutcomeError::Exists(_) => {
                "; replace it with --force or choose another with --out"
            }
            _ => "",
        };
        Failure::Output(format!("{error}{hint}"))
    })?;

    let stop = interrupt::flag();
    let mut line = RunLine::new(ready.total_messages, scenario.measure.until, args.quiet);
    let result = finish(scenario, ready, usize::from(args.threads), &writer, |progress| {
        line.update(progress);
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    line.finish();
    let ran = result?;

    let mut out = crate::show::out();
    if args.json {
        let text = serde_json::to_string_pretty(&ran.summary).map_err(std::io::Error::from)?;
        writeln!(out, "{text}")?;
    } else if !args.quiet {
        write!(out, "{}", summary::show(&ran.summary, &ran.performance))?;
        writeln!(out, "outcome    {}", folder.display())?;
    }
    match ran.summary.status {
        Status::Complete if args.strict && !ran.summary.warnings.is_empty() => {
            Err(Failure::Output(format!("--strict: {}", ran.summary.warnings.join("; "))))
        }
        Status::Complete => Ok(()),
        Status::Interrupted => Err(Failure::Interrupted),
    }
}
