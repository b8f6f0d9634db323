//! Analysis studies: networks and their routing, measured without a packet.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use netloom_analysis::{ClaimResult, Outcome, Scale, Study, StudyError, Use};
use netloom_scenario::study::{Verdict, significant};
use netloom_scenario::{Node, Place, Problem};

use super::{Findings, csv, folder, write_verdicts};
use crate::args::StudyArgs;
use crate::failure::Failure;
use crate::files::{unwritable, write_file};
use crate::show;

/// Takes every measurement, judges the claims, writes and shows the results.
pub(super) fn study(args: &StudyArgs, document: &Node) -> Result<(), Failure> {
    refuse_options(args)?;
    let problem = |error: StudyError| problem(&error, document);
    let study = Study::parse(document.place.source.text()).map_err(problem)?;
    // Hours of work must not end at a folder that cannot be written.
    let folder = folder(args);
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;

    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    // A measurement may take minutes; the clock shows that it goes on.
    bar.enable_steady_tick(Duration::from_millis(200));
    let scale = if args.small { Scale::Small } else { Scale::Full };
    let outcome = study.run(scale, document.place.source.folder(), |step| bar.set_message(step.to_owned()));
    bar.finish_and_clear();
    let outcome = outcome.map_err(problem)?;

    let verdicts: Vec<Verdict> = outcome.claims.iter().map(verdict).collect();
    write_results(&folder, &outcome)?;
    write_verdicts(&folder, &verdicts)?;
    let findings = Findings {
        title: &outcome.title,
        verdicts: &verdicts,
        results: serde_json::json!(outcome.metrics),
        table: result_table(&outcome),
        folder: &folder,
    };
    findings.show(args.json)?;
    findings.judgement()
}

/// Options that would have no effect.
fn refuse_options(args: &StudyArgs) -> Result<(), Problem> {
    if !args.set.is_empty() {
        let message = "this is an analysis study: it has no scenario whose fields could be set";
        return Err(Problem::new("--set", message).help("change the study file"));
    }
    if args.workers.is_some() {
        let message = "this is an analysis study: it has no cells; each measurement uses all cores";
        return Err(Problem::new("--workers", message));
    }
    Ok(())
}

/// The error at its place in the study file.
fn problem(error: &StudyError, document: &Node) -> Problem {
    if let StudyError::Syntax(error) = error {
        let problem = Problem::new("", error.message());
        return match error.span() {
            Some(span) => problem.at(&Place { source: document.place.source.clone(), span }),
            None => problem,
        };
    }
    match error.field() {
        Some(field) => Problem::new(field, error.to_string()).at(&document.nearest_place(field.split('.'))),
        None => Problem::new("", error.to_string()),
    }
}

fn verdict(claim: &ClaimResult) -> Verdict {
    Verdict {
        id: claim.id.clone(),
        text: claim.statement.clone(),
        holds: Some(claim.verdict == netloom_analysis::Verdict::Holds),
        measured: significant(claim.measured),
        published: claim.published.clone(),
        gate: claim.usage == Use::Gate,
        source: claim.source.clone(),
        note: claim.explanation.clone().unwrap_or_default(),
    }
}

/// Every metric as network, measurement, quantity and value.
fn metrics(outcome: &Outcome) -> impl Iterator<Item = ([&str; 3], f64)> {
    outcome.metrics.iter().map(|(name, &value)| {
        let (network, rest) = name.split_once('.').unwrap_or((name, ""));
        let (measurement, quantity) = rest.split_once('.').unwrap_or((rest, ""));
        ([network, measurement, quantity], value)
    })
}

/// `results.csv`: one row per metric.
fn write_results(folder: &Path, outcome: &Outcome) -> Result<(), Failure> {
    let mut rows = vec![["network", "measurement", "quantity", "value"].map(str::to_owned).to_vec()];
    for (name, value) in metrics(outcome) {
        rows.push(name.into_iter().map(str::to_owned).chain([value.to_string()]).collect());
    }
    write_file(&folder.join("results.csv"), csv(&rows).as_bytes())
}

/// Quantities by network.
fn result_table(outcome: &Outcome) -> String {
    let networks: BTreeSet<&str> = metrics(outcome).map(|([network, ..], _)| network).collect();
    let quantities: BTreeSet<[&str; 2]> =
        metrics(outcome).map(|([_, measurement, quantity], _)| [measurement, quantity]).collect();
    let mut rows: Vec<Vec<String>> =
        vec![std::iter::once("").chain(networks.iter().copied()).map(str::to_owned).collect()];
    for [measurement, quantity] in quantities {
        let quantity = format!("{measurement}.{quantity}");
        let value = |network: &&str| match outcome.metrics.get(&format!("{network}.{quantity}")) {
            Some(&value) => significant(value),
            None => "-".to_owned(),
        };
        let values: Vec<String> = networks.iter().map(value).collect();
        rows.push(std::iter::once(quantity).chain(values).collect());
    }
    show::table(rows)
}
