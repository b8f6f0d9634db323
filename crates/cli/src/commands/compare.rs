//! `netloom compare`: two outcomes or two studies, side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use netloom_record::Estimate;
use netloom_scenario::{Node, Problem, Source, Value};
use netloom_study::{Findings, PointFindings, numbers, significant};

use super::show::Shown;
use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::{findings, show};

/// Prints what differs.
pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let (a, b) = (Side::read(&args.first)?, Side::read(&args.second)?);
    let mut text = match (&a.scenario, &b.scenario) {
        (Some(a), Some(b)) => fields(a, b),
        (None, None) => String::new(),
        _ => {
            let message = format!(
                "{} and {} cannot be compared: one is the outcome of a run, the other a study",
                args.first.display(),
                args.second.display()
            );
            return Err(Problem::new("DIR", message).into());
        }
    };
    text += &differences(&a.found, &b.found);
    text += &claims(&a.found, &b.found);
    let mut out = crate::show::out();
    write!(out, "A  {}\nB  {}\n{text}", args.first.display(), args.second.display())?;
    Ok(())
}

/// One of the two.
struct Side {
    found: Findings,
    /// Every field of the scenario by its path, if it is an outcome.
    scenario: Option<BTreeMap<String, String>>,
}

impl Side {
    fn read(dir: &Path) -> Result<Self, Failure> {
        match Shown::read(dir)? {
            Shown::Study(found) => Ok(Side { found, scenario: None }),
            Shown::Run(outcome) => {
                let mut fields = BTreeMap::new();
                flatten(&Node::parse(&Source::new("scenario.toml", outcome.scenario))?, "", &mut fields);
                Ok(Side { found: Findings::of_run(numbers(&outcome.summary), None)?, scenario: Some(fields) })
            }
        }
    }
}

/// Every value by its path.
fn flatten(node: &Node, path: &str, found: &mut BTreeMap<String, String>) {
    let below = |step: &str| if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") };
    match &node.value {
        Value::Table(table) => {
            table.0.iter().for_each(|entry| flatten(&entry.node, &below(&entry.key), found))
        }
        Value::Array(items) => {
            items.iter().zip(0..).for_each(|(item, i)| flatten(item, &below(&format!("{i}")), found))
        }
        _ => {
            let text = node.place.source.text().get(node.place.span.clone()).unwrap_or_default();
            found.insert(path.to_owned(), text.to_owned());
        }
    }
}

/// The fields of the scenarios that differ.
fn fields(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> String {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let mut rows = vec![["", "A", "B"].map(str::to_owned).to_vec()];
    for name in names {
        if a.get(name) != b.get(name) {
            let of = |side: &BTreeMap<String, String>| side.get(name).map_or("-", String::as_str).to_owned();
            rows.push(vec![name.clone(), of(a), of(b)]);
        }
    }
    match rows.len() {
        1 => "the scenarios are the same\n".to_owned(),
        _ => format!("{}\n", show::text_table(rows)),
    }
}

/// The numbers that differ, point by point.
fn differences(a: &Findings, b: &Findings) -> String {
    let mut rows = vec![["", "", "A", "B", "B / A", ""].map(str::to_owned).to_vec()];
    let mut equal = 0;
    let mut alone = String::new();
    let of = |side: &Findings, name: &str| side.results.iter().find(|point| point.name == name).cloned();
    for point in &a.results {
        let Some(other) = of(b, &point.name) else {
            alone += &format!("only in A: {}\n", point.name);
            continue;
        };
        for column in a.columns.iter().chain(b.columns.iter().filter(|column| !a.columns.contains(column))) {
            let estimate =
                |point: &PointFindings| point.estimate(&column.metric).map(|e| e.scaled(column.scale));
            let (first, second) = (estimate(point), estimate(&other));
            if first == second {
                equal += usize::from(first.is_some());
                continue;
            }
            rows.push(vec![
                point.name.clone(),
                column.heading.clone(),
                findings::number(first),
                findings::number(second),
                ratio(first, second),
                remark(first, second).to_owned(),
            ]);
        }
    }
    for point in b.results.iter().filter(|point| of(a, &point.name).is_none()) {
        alone += &format!("only in B: {}\n", point.name);
    }
    let differing = rows.len() - 1;
    let table = if differing == 0 { String::new() } else { format!("{}\n", show::text_table(rows)) };
    format!("{table}{alone}{differing} of {} numbers differ\n", differing + equal)
}

fn ratio(a: Option<Estimate>, b: Option<Estimate>) -> String {
    match (a, b) {
        (Some(a), Some(b)) if a.mean != 0.0 => significant(b.mean / a.mean),
        _ => "-".to_owned(),
    }
}

/// Whether a difference is more than the seeds explain: intervals that do not overlap.
fn remark(a: Option<Estimate>, b: Option<Estimate>) -> &'static str {
    match (a, b) {
        (
            Some(Estimate { mean: a, plus_minus: Some(of_a) }),
            Some(Estimate { mean: b, plus_minus: Some(of_b) }),
        ) => {
            if (a - b).abs() > of_a + of_b {
                "intervals apart"
            } else {
                "intervals overlap"
            }
        }
        _ => "",
    }
}

/// The claims on which the two do not agree.
fn claims(a: &Findings, b: &Findings) -> String {
    let mut text = String::new();
    for claim in &a.claims {
        if let Some(other) =
            b.claims.iter().find(|other| other.id == claim.id && other.verdict != claim.verdict)
        {
            let (first, second) = (findings::verdict(claim), findings::verdict(other));
            let (of_a, of_b) = (&claim.measured, &other.measured);
            text += &format!("claim {}: {first} ({of_a}) in A, {second} ({of_b}) in B\n", claim.id);
        }
    }
    text
}
