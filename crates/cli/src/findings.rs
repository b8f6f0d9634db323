//! What a study found, for people: its results, then its claims.
//!
//! Runs have hundreds of numbers: the table has a row per point and the numbers that every study has, and what occurred in this one.
//! Measurements have few, of many networks: the table has a row per number and a column per label of the first axis.

use netloom_record::Estimate;
use netloom_study::{CellKind, Findings, PointFindings, Verdict, significant};

use crate::show;

/// The tables.
pub(crate) fn text(found: &Findings) -> String {
    let rows = match found.cells {
        CellKind::Runs => points_down(found),
        CellKind::Measurements => metrics_down(found),
    };
    let mut text = format!("{}\n{}\n", found.title, show::table(rows));
    if found.results.iter().any(|point| !point.plus_minus.is_empty()) {
        text += "mean over the seeds ± 95% interval (Student's t)\n";
    }
    if !found.claims.is_empty() {
        text += &claims(&found.claims);
    }
    text
}

/// A mean with its interval, where there is one.
pub(crate) fn number(estimate: Option<Estimate>) -> String {
    match estimate {
        None => "-".to_owned(),
        // Seeds that all agree need no interval.
        Some(Estimate { mean, plus_minus: None | Some(0.0) }) => significant(mean),
        Some(Estimate { mean, plus_minus: Some(half) }) => {
            format!("{} ± {}", significant(mean), two_digits(half))
        }
    }
}

/// An interval needs no more digits.
#[expect(clippy::cast_possible_truncation, reason = "−324 to 308, as the number is finite and not zero")]
fn two_digits(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let scale = 10f64.powi(number.abs().log10().floor() as i32 - 1);
    significant((number / scale).round() * scale)
}

fn points_down(found: &Findings) -> Vec<Vec<String>> {
    let headings = found.columns.iter().map(|column| column.heading.clone());
    let heading = std::iter::once(String::new()).chain(headings).collect();
    let row = |point: &PointFindings| {
        let cells = found.columns.iter().map(|column| {
            number(point.estimate(&column.metric).map(|estimate| estimate.scaled(column.scale)))
        });
        std::iter::once(point.name.clone()).chain(cells).collect()
    };
    std::iter::once(heading).chain(found.results.iter().map(row)).collect()
}

fn metrics_down(found: &Findings) -> Vec<Vec<String>> {
    let first_axis = found.results.iter().flat_map(|point| point.labels.keys()).next();
    let first = |point: &PointFindings| {
        first_axis.and_then(|axis| point.labels.get(axis)).cloned().unwrap_or_default()
    };
    let others = |point: &PointFindings| {
        let others = point.labels.iter().filter(|(axis, _)| Some(*axis) != first_axis);
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

/// Every claim with what was measured and what is published, and the notes below.
fn claims(verdicts: &[Verdict]) -> String {
    let widths = widths(verdicts, show::width());
    let mut rows =
        vec![["", "claim", "holds", "measured", "published", "source"].map(str::to_owned).to_vec()];
    let mut notes = String::new();
    for verdict in verdicts {
        let texts = [&verdict.text, &verdict.measured, &verdict.published, &verdict.source];
        let [text, measured, published, source] =
            std::array::from_fn(|column| wrap(texts[column], widths[column]));
        rows.push(vec![verdict.id.clone(), text, holds(verdict).to_owned(), measured, published, source]);
        if !verdict.note.is_empty() {
            notes += &format!("{}: {}\n", verdict.id, verdict.note);
        }
    }
    format!("{}\n{notes}", show::text_table(rows))
}

/// How wide text, measured, published and source may be, so that the table fits into `width` characters.
fn widths(verdicts: &[Verdict], width: Option<usize>) -> [usize; 4] {
    const WIDEST: [usize; 4] = [44, 32, 24, 20];
    const LEAST: usize = 8;
    let Some(width) = width else { return WIDEST };
    let longest =
        |of: fn(&Verdict) -> &str| verdicts.iter().map(|v| of(v).chars().count()).max().unwrap_or(0);
    // Six columns, each with a border and two spaces, and a last border.
    let fixed = longest(|v| &v.id) + longest(holds).max("holds".len()) + 6 * 3 + 1;
    let room = width.saturating_sub(fixed);
    let all: usize = WIDEST.iter().sum();
    WIDEST.map(|widest| (widest * room / all).clamp(LEAST, widest))
}

/// Whether a claim holds, in a word.
pub(crate) fn holds(verdict: &Verdict) -> &'static str {
    match (verdict.holds, verdict.gate) {
        (Some(true), _) => "yes",
        (Some(false), true) => "NO (gate)",
        (Some(false), false) => "no",
        (None, true) => "FAILED (gate)",
        (None, false) => "not measured",
    }
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
        assert_eq!(words(&text(&found)), [vec!["hosts", "p99 [ms]"], vec!["n", "16", "2.5 ± 0.12"]]);
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
        assert_eq!(words(&text(&found("measurements", &points))), expected);
    }
}
