//! `netloom run`: one scenario, one outcome.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use netloom_astra::End;
use netloom_record::{Existing, OutcomeWriter, Status};
use netloom_scenario::{Problem, Run, Scenario, finish, prepare};
use netloom_units::kind::Kind;

use crate::args::RunArgs;
use crate::failure::{Failure, strictly};
use crate::input::load;
use crate::progress::{BusyLine, RunLine};
use crate::{interrupt, summary};

/// Checks everything that can be checked, runs, writes the outcome and shows the result.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario.scenario, &args.scenario.changes)?;
    let scenario = &loaded.scenario;
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(&scenario.name));
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let busy = (!args.quiet).then(|| BusyLine::new("building the network"));
    let ready = prepare(scenario, &loaded.document)?;
    drop(busy);
    if args.strict && !ready.warnings.is_empty() {
        return Err(strictly(&ready.warnings));
    }
    let ends = ready.ends.clone();
    check_lines_and_table(args, scenario, ends.is_some(), &folder)?;
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
    let threads = match args.threads {
        Some(threads) => usize::from(threads),
        None if matches!(ready.run, Run::Packets(_) | Run::Region(_)) => {
            idle_threads(ready.hosts + ready.switches)
        }
        // Rates are computed by one.
        None => 1,
    };
    let mut line = RunLine::new(ready.total_messages, scenario.measure.until, args.quiet);
    let result = finish(scenario, ready, threads, &writer, |progress| {
        line.update(progress);
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    line.finish();
    let ran = result?;

    if let Some(file) = &args.simai_csv {
        let table = ends.as_ref().and_then(|ends| ends.layers());
        let problem = "the run ended before rank 0 did, so there is no table of its layers";
        let table = table.ok_or_else(|| Failure::Output(format!("--simai-csv: {problem}")))?;
        std::fs::write(file, table)
            .map_err(|error| Failure::Output(format!("--simai-csv {}: {error}", file.display())))?;
    }
    let mut out = crate::show::out();
    if let Some(ends) = ends.filter(|_| args.astra_sim) {
        for (rank, end) in ends.get().into_iter().enumerate() {
            let Some(End { finished, exposed }) = end else { continue };
            writeln!(
                out,
                "sys[{rank}] finished, {finished} cycles, exposed communication {exposed} cycles."
            )?;
        }
    } else if args.json {
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

/// Refuses to print the lines of ASTRA-sim or to write the table of SimAI where the workload has none, or the table has no place: before a long run, not after it.
fn check_lines_and_table(
    args: &RunArgs,
    scenario: &Scenario,
    has_ends: bool,
    folder: &Path,
) -> Result<(), Problem> {
    let refuse = |option: &str, kinds: &str| {
        let message = match scenario.jobs.is_empty() {
            true => {
                let found = scenario.workload.pattern.name();
                format!("expected a workload of kind {kinds}, found \"{found}\"")
            }
            false => format!(
                "expected [workload] of kind {kinds} and no [[jobs]], whose times are in jobs.parquet and ranks.parquet of the outcome"
            ),
        };
        Err(Problem::new(option, message))
    };
    if args.astra_sim && !has_ends {
        return refuse("--astra-sim", "\"astra-sim\" or \"simai\"");
    }
    let Some(table) = &args.simai_csv else { return Ok(()) };
    let option = format!("--simai-csv {}", table.display());
    if scenario.workload.pattern.name() != "simai" {
        return refuse(&option, "\"simai\"");
    }
    let beside = table.parent().filter(|beside| !beside.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = beside.canonicalize().ok().filter(|beside| beside.is_dir() && !table.is_dir());
    let Some(beside) = beside else {
        return Err(Problem::new(option, "expected the name of a file in a folder that exists"));
    };
    // The outcome may not exist yet.
    let folder = folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or(folder.to_owned());
    let place = beside.join(table.file_name().unwrap_or_default());
    if beside.starts_with(&folder) || folder.starts_with(&place) {
        let message = format!(
            "expected a file outside the outcome's folder {}, which holds nothing else and is replaced as a whole",
            folder.display()
        );
        return Err(Problem::new(option, message));
    }
    Ok(())
}

/// The number of idle cores, but no more threads than the network has work for. The result does not depend on the number of threads.
fn idle_threads(nodes: u32) -> usize {
    /// With fewer hosts and switches for each thread, threads wait for each other more than they work.
    const NODES_PER_THREAD: u32 = 256;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Linux says how many processes have wanted a core in the last minute; where nothing says it, all cores count as idle.
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let busy: f64 = load.and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0.0);
    threads_for(nodes / NODES_PER_THREAD, cores, busy)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a load from 0 on; saturates")]
fn threads_for(most: u32, cores: usize, busy: f64) -> usize {
    let idle = cores.saturating_sub(busy.round() as usize);
    idle.min(most as usize).clamp(1, 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_as_many_as_cores_are_idle_and_the_network_keeps_busy() {
        assert_eq!([threads_for(5, 2, 0.2), threads_for(5, 2, 1.2), threads_for(5, 2, 7.0)], [2, 1, 1]);
        assert_eq!([threads_for(0, 64, 0.0), threads_for(5, 64, 0.0), threads_for(5, 64, 61.0)], [1, 5, 3]);
    }
}
