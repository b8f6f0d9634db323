//! `netloom critical-path`: what the time of a job consists of.

use std::collections::BTreeSet;
use std::io::Write;

use netloom_record::{
    CriticalError, CriticalKind, CriticalPaths, CriticalStep, CriticalSum, OperationRecord, Outcome,
    critical_sums,
};
use netloom_scenario::{Problem, Scenario};
use netloom_units::Time;
use serde_json::{Value, json};

use crate::args::CriticalPathArgs;
use crate::failure::Failure;
use crate::input::scenario_of;
use crate::show;

/// Prints the critical path of one repetition of a job.
pub(crate) fn critical_path_of(args: &CriticalPathArgs) -> Result<(), Failure> {
    let outcome = Outcome::read(&args.dir)?;
    let operations = outcome.operations()?;
    let (job, name) = job(args, &outcome, &operations)?;
    let (ranks, flows, collectives) = (outcome.ranks()?, outcome.flows()?, outcome.collectives()?);
    let paths = CriticalPaths::new(&operations, &ranks, &flows, &collectives);
    let steps = paths.of(job, args.repetition).map_err(|error| match error {
        CriticalError::Nothing { .. } if args.repetition > 0 => {
            let message =
                format!("expected a repetition of which operations were recorded, found {}", args.repetition);
            Problem::new("--repetition", message).into()
        }
        CriticalError::Nothing { .. } => Failure::Output(format!(
            "{}: no operations were recorded of the job {name}: expected a program that ran with `measure.operations = true`",
            args.dir.display()
        )),
        error => Failure::Output(format!("{}: {name}: {error}", args.dir.display())),
    })?;
    let sums = critical_sums(&steps);
    let mut out = show::out();
    if args.json {
        let text = json!({
            "job": name,
            "repetition": args.repetition,
            "parts": sums.iter().map(sum_as_json).collect::<Vec<_>>(),
            "steps": steps.iter().map(step_as_json).collect::<Vec<_>>(),
        });
        writeln!(out, "{text:#}")?;
        return Ok(());
    }
    let end = endpoints(&scenario_of(&args.dir, &outcome)?.scenario);
    let whole = whole(&steps);
    let head = format!(
        "{name}, repetition {}: {} on the critical path, in {} steps",
        args.repetition,
        show::time(whole.as_secs_f64()),
        steps.len()
    );
    writeln!(out, "{}", show::wrap(&head, 0))?;
    writeln!(out, "\n{}", show::table(sums_as_rows(&sums, whole)))?;
    writeln!(out, "\n{}", show::table(longest(&steps, end, args.longest)))?;
    Ok(())
}

/// The number and the name of the job that is asked for; the only one, or the only one with operations, if none is.
fn job(
    args: &CriticalPathArgs,
    outcome: &Outcome,
    operations: &[OperationRecord],
) -> Result<(u16, String), Failure> {
    let names: Vec<&String> = outcome.summary.jobs.keys().collect();
    let listed = || names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let at = match &args.job {
        Some(wanted) => names.iter().position(|name| *name == wanted),
        None if names.len() == 1 => Some(0),
        None => match operations.iter().map(|operation| operation.job).collect::<BTreeSet<u16>>() {
            jobs if jobs.len() == 1 => jobs.first().map(|&job| usize::from(job)),
            _ => None,
        },
    };
    match at {
        Some(at) => Ok((u16::try_from(at).unwrap_or(u16::MAX), names[at].clone())),
        None if names.is_empty() => {
            Err(Failure::Output(format!("{} holds no jobs: expected a run of a program", args.dir.display())))
        }
        None => Err(Problem::new("--job", format!("expected one of {}", listed())).into()),
    }
}

/// What messages are between.
fn endpoints(scenario: &Scenario) -> &'static str {
    match &scenario.servers {
        None => "h",
        Some(servers) if servers.gpus.is_some() => "GPU ",
        Some(_) => "server ",
    }
}

fn whole(steps: &[CriticalStep]) -> Time {
    steps.last().map_or(Time::ZERO, |last| last.end) - steps.first().map_or(Time::ZERO, |first| first.start)
}

fn sums_as_rows(sums: &[CriticalSum], whole: Time) -> Vec<Vec<String>> {
    let head = ["what", "of", "time", "share", "on idle paths", "steps"];
    let row = |sum: &CriticalSum| {
        vec![
            sum.kind.name().to_owned(),
            sum.collective.as_deref().unwrap_or("").to_owned(),
            show::time(sum.time.as_secs_f64()),
            show::percent(sum.time.0 as f64 / whole.0.max(1) as f64),
            sum.ideal.map_or(String::new(), |ideal| show::time(ideal.as_secs_f64())),
            sum.steps.to_string(),
        ]
    };
    std::iter::once(head.map(str::to_owned).to_vec()).chain(sums.iter().map(row)).collect()
}

/// The longest steps, in order of time.
fn longest(steps: &[CriticalStep], end: &str, most: usize) -> Vec<Vec<String>> {
    let mut longest: Vec<&CriticalStep> = steps.iter().collect();
    longest.sort_by_key(|step| (std::cmp::Reverse(step.end - step.start), step.start));
    longest.truncate(most);
    longest.sort_by_key(|step| step.start);
    let head = ["longest steps", "of", "rank", "from", "time", "flow"];
    let row = |step: &&CriticalStep| {
        let flow = step.message.map(|message| {
            let flow = format!("{} of {end}{} to {end}{}", message.flow, message.src, message.dst);
            let of_ideal = (step.end - step.start).0 as f64 / message.ideal.0.max(1) as f64;
            match step.kind {
                CriticalKind::Message => format!("{flow}, {of_ideal:.2} × idle"),
                _ => flow,
            }
        });
        vec![
            step.kind.name().to_owned(),
            step.collective.as_deref().unwrap_or(&step.label).to_owned(),
            step.rank.to_string(),
            show::time(step.start.as_secs_f64()),
            show::time((step.end - step.start).as_secs_f64()),
            flow.unwrap_or_default(),
        ]
    };
    std::iter::once(head.map(str::to_owned).to_vec()).chain(longest.iter().map(row)).collect()
}

fn sum_as_json(sum: &CriticalSum) -> Value {
    json!({
        "what": sum.kind.name(), "of": sum.collective.as_deref(), "time_ps": sum.time.0, "idle_ps": sum.ideal.map(|ideal| ideal.0),
        "steps": sum.steps,
    })
}

fn step_as_json(step: &CriticalStep) -> Value {
    let message = step.message.map(|message| {
        json!({ "src": message.src, "dst": message.dst, "flow": message.flow, "bytes": message.bytes, "idle_ps": message.ideal.0 })
    });
    json!({
        "what": step.kind.name(), "of": step.collective.as_deref(), "rank": step.rank,
        "operation": step.operation, "label": &*step.label, "start_ps": step.start.0, "end_ps": step.end.0, "message": message,
    })
}
