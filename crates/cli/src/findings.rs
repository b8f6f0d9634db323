//! What a study found, for people: its results, then its claims.
//!
//! Runs have hundreds of numbers: the table has a row per point and the numbers that every study has, and what occurred in this one.
//! Measurements have few, of many networks: the table has a row per number and a column per label of the first axis.

use netloom_record::Estimate;
use netloom_study::{CellKind, Findings, Judgement, Needs, PointFindings, Verdict, significant, two_digits};

use crate::show;

/// The tables, and `warnings`.
pub(crate) fn text(found: &Findings, warnings: &[String]) -> String {
    let rows = match found.cells {
        CellKind::Runs => points_down(found),
        CellKind::Measurements => metrics_down(found),
    };
    let mut text = format!("{}\n", found.title);
    let common = common(found);
    if !common.is_empty() {
        let labels = common.iter().map(|(axis, label)| format!("{axis}={label}"));
        text += &show::fit(&format!("all points: {}\n", labels.collect::<Vec<_>>().join(" ")));
    }
    text += &format!("{}\n", show::table(rows));
    if found.results.iter().any(|point| !point.plus_minus.is_empty()) {
        text += "mean over the seeds ± 95% interval (Student's t)\n";
    }
    if !found.claims.is_empty() {
        text += &claims(&found.claims);
    }
    for warning in warnings {
        text += &show::fit(&format!("warning    {warning}\n"));
    }
    text
}

/// The labels that all points carry: the table does not repeat them in each row.
fn common(found: &Findings) -> Vec<(&String, &String)> {
    let Some((first, rest)) = found.results.split_first() else { return Vec::new() };
    if rest.is_empty() {
        return Vec::new();
    }
    first
        .labels
        .iter()
        .filter(|(axis, label)| rest.iter().all(|point| point.labels.get(*axis) == Some(*label)))
        .collect()
}

/// A point by the labels in which points differ.
fn name(point: &PointFindings, common: &[(&String, &String)]) -> String {
    let differs = |axis: &String| common.iter().all(|(known, _)| *known != axis);
    let labels: Vec<String> = point
        .labels
        .iter()
        .filter(|(axis, _)| differs(axis))
        .map(|(axis, label)| format!("{axis}={label}"))
        .collect();
    if labels.is_empty() { point.name.clone() } else { labels.join(" ") }
}

/// A mean with its interval, where there is one.
pub(crate) fn number(estimate: Option<Estimate>) -> String {
    match estimate {
        None => "-".to_owned(),
        // Seeds that all agree need no interval.
        Some(Estimate { mean, plus_minus: None }) => significant(mean),
        // Nor does what only rounding tells apart.
        Some(Estimate { mean, plus_minus: Some(half) }) if half <= 1e-12 * mean.abs() => significant(mean),
        Some(Estimate { mean, plus_minus: Some(half) }) => {
            format!("{} ± {}", significant(mean), two_digits(half))
        }
    }
}

fn points_down(found: &Findings) -> Vec<Vec<String>> {
    let common = common(found);
    let headings = found.columns.iter().map(|column| column.heading.clone());
    let heading = std::iter::once(String::new()).chain(headings).collect();
    let row = |point: &PointFindings| {
        let cells = found.columns.iter().map(|column| {
            number(point.estimate(&column.metric).map(|estimate| estimate.scaled(column.scale)))
        });
        std::iter::once(name(point, &common)).chain(cells).collect()
    };
    std::iter::once(heading).chain(found.results.iter().map(row)).collect()
}

fn metrics_down(found: &Findings) -> Vec<Vec<String>> {
    let first_axis = found.results.iter().flat_map(|point| point.labels.keys()).next();
    let first = |point: &PointFindings| {
        first_axis.and_then(|axis| point.labels.get(axis)).cloned().unwrap_or_default()
    };
    let common = common(found);
    let is_common = |axis: &String| common.iter().any(|(known, _)| *known == axis);
    let others = |point: &PointFindings| {
        let others = point.labels.iter().filter(|(axis, _)| Some(*axis) != first_axis && !is_common(axis));
        others.map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
    };
    let (mut headings, mut groups) = (Vec::new(), Vec::new());
    for point in &found.results {
        for (list, name) in [(&mut headings, first(point)), (&mut groups, others(point))] {
            if !list.contains(&name) {
                list.push(name);
            }
        }
    }
    let mut rows = vec![std::iter::once(String::new()).chain(headings.iter().cloned()).collect::<Vec<_>>()];
    for group in &groups {
        let points: Vec<&PointFindings> =
            found.results.iter().filter(|point| others(point) == *group).collect();
        for column in &found.columns {
            let of = |heading: &String| {
                points.iter().find(|point| first(point) == *heading)?.estimate(&column.metric)
            };
            let estimates: Vec<Option<Estimate>> = headings.iter().map(of).collect();
            if estimates.iter().any(Option::is_some) {
                let words = [group.as_str(), column.heading.as_str()];
                let name = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
                rows.push(std::iter::once(name).chain(estimates.into_iter().map(number)).collect());
            }
        }
    }
    rows
}

/// Every claim with what was measured and what is published, and the notes below; on a narrow terminal one below the other.
fn claims(verdicts: &[Verdict]) -> String {
    /// Below this width columns would hold two words each.
    const NARROW: usize = 120;
    let width = show::width();
    let text = match width {
        Some(width) if width < NARROW => claims_down(verdicts),
        _ => claims_across(verdicts, width),
    };
    let intervals = match verdicts.iter().find_map(|verdict| verdict.level) {
        Some(level) => show::fit(&format!(
            "verdicts over the seeds, at the {} level: `cannot be told` where the interval of the difference of both sides includes zero\n",
            show::percent(level).replace(' ', "")
        )),
        None => String::new(),
    };
    text + &intervals
}

fn claims_across(verdicts: &[Verdict], width: Option<usize>) -> String {
    let widths = widths(verdicts, width);
    let mut rows =
        vec![["", "claim", "verdict", "measured", "published", "source"].map(str::to_owned).to_vec()];
    let mut notes = String::new();
    for verdict in verdicts {
        let texts = [&verdict.text, &verdict.measured, &verdict.published, &verdict.source];
        let [text, measured, published, source] =
            std::array::from_fn(|column| wrap(texts[column], widths[column]));
        rows.push(vec![verdict.id.clone(), text, self::verdict(verdict), measured, published, source]);
        if !verdict.note.is_empty() {
            notes += &show::fit(&format!("{}: {}\n", verdict.id, verdict.note));
        }
    }
    format!("{}\n{notes}", show::text_table(rows))
}

fn claims_down(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        text += &show::fit(&format!("{}  {}\n", verdict.id, verdict.text));
        let lines = [
            ("verdict", &self::verdict(verdict)),
            ("measured", &verdict.measured),
            ("published", &verdict.published),
            ("source", &verdict.source),
            ("note", &verdict.note),
        ];
        for (name, content) in lines {
            if !content.is_empty() {
                text += &show::fit(&format!("  {name:<10} {content}\n"));
            }
        }
    }
    text
}

/// How wide text, measured, published and source may be, so that the table fits into `width` characters.
fn widths(verdicts: &[Verdict], width: Option<usize>) -> [usize; 4] {
    const WIDEST: [usize; 4] = [44, 32, 24, 20];
    const LEAST: usize = 8;
    let Some(width) = width else { return WIDEST };
    let longest =
        |of: fn(&Verdict) -> String| verdicts.iter().map(|v| of(v).chars().count()).max().unwrap_or(0);
    // Six columns, each with a border and two spaces, and a last border.
    let fixed = longest(|v| v.id.clone()) + longest(verdict).max("verdict".len()) + 6 * 3 + 1;
    let room = width.saturating_sub(fixed);
    let all: usize = WIDEST.iter().sum();
    WIDEST.map(|widest| (widest * room / all).clamp(LEAST, widest))
}

/// The verdict in words.
pub(crate) fn verdict(verdict: &Verdict) -> String {
    let words = match verdict.verdict {
        Judgement::Holds => "holds",
        Judgement::DoesNotHold => "does not hold",
        Judgement::CannotBeTold => "cannot be told",
        Judgement::NotComputed => "not computed",
    };
    // The means decide where the claim says so.
    let by_means = match (verdict.verdict, verdict.needs, verdict.mean_holds) {
        (Judgement::CannotBeTold, Needs::Mean, Some(true)) => "; the means satisfy it",
        (Judgement::CannotBeTold, Needs::Mean, Some(false)) => "; the means do not satisfy it",
        _ => "",
    };
    let gate = if verdict.fails() { " (GATE FAILS)" } else { "" };
    format!("{words}{by_means}{gate}")
}

/// Breaks text at spaces into lines of at most `width` characters.
fn wrap(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cells: &str, results: &[String]) -> Findings {
        let columns = r#"[
            { "heading": "hosts", "metric": "hosts", "scale": 1 },
            { "heading": "p99 [ms]", "metric": "p99", "scale": 0.001 }
        ]"#;
        let results = results.join(",");
        let text = format!(
            r#"{{ "title": "t", "cells": "{cells}", "claims": [], "columns": {columns}, "results": [{results}] }}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn point(labels: &str, values: &str) -> String {
        format!(
            r#"{{ "name": "n", "labels": {{ {labels} }}, "runs": 2, "folders": [], "values": {{ {values} }},
                "plus_minus": {{ "p99": 123.4, "hosts": 0 }} }}"#
        )
    }

    fn words(text: &str) -> Vec<Vec<&str>> {
        let rows = text.lines().filter(|line| line.starts_with('│'));
        rows.map(|line| line.split('│').map(str::trim).filter(|word| !word.is_empty()).collect()).collect()
    }

    #[test]
    fn runs_have_a_row_per_point_with_intervals() {
        let found = found("runs", &[point("", r#""hosts": 16, "p99": 2500"#)]);
        assert_eq!(words(&text(&found, &[])), [vec!["hosts", "p99 [ms]"], vec!["n", "16", "2.5 ± 0.12"]]);
    }

    #[test]
    fn what_all_points_share_is_said_once() {
        let at = |scheme: &str| point(&format!(r#""size": "1MiB", "scheme": "{scheme}""#), r#""hosts": 16"#);
        let text = text(&found("runs", &[at("a"), at("b")]), &["measure: short".to_owned()]);
        assert!(text.contains("all points: size=1MiB\n"), "{text}");
        assert_eq!(
            words(&text),
            [vec!["hosts", "p99 [ms]"], vec!["scheme=a", "16", "-"], vec!["scheme=b", "16", "-"]]
        );
        assert!(text.ends_with("warning    measure: short\n"));
        let networks = text_of_networks();
        assert_eq!(words(&networks), [vec!["sf"], vec!["a hosts", "1"], vec!["b hosts", "1"]]);
    }

    fn text_of_networks() -> String {
        let at = |kind: &str| {
            point(&format!(r#""network": "sf", "kind": "{kind}", "seed_of": "1""#), r#""hosts": 1"#)
        };
        text(&found("measurements", &[at("a"), at("b")]), &[])
    }

    #[test]
    fn networks_stand_side_by_side() {
        let points = [
            point(r#""network": "sf", "kind": "size""#, r#""hosts": 200"#),
            point(r#""network": "sf", "kind": "fct""#, r#""p99": 1500"#),
            point(r#""network": "df", "kind": "size""#, r#""hosts": 72"#),
        ];
        let expected =
            [vec!["sf", "df"], vec!["size hosts", "200", "72"], vec!["fct p99 [ms]", "1500 ± 120", "-"]];
        assert_eq!(words(&text(&found("measurements", &points), &[])), expected);
    }
}
