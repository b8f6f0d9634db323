//! Results in files: a row per cell, and what was found of the claims.

use std::io;
use std::path::{Path, PathBuf};

use crate::cell::Cell;
use crate::cells::CellReport;
use crate::claims::Verdict;
use crate::folder::write_file;
use crate::results::Results;

/// A file of results that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct Unwritable {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Writes `results.csv` (one row per cell that is done: all labels, the seed, the cell's folder, and all metrics) and `claims.json`.
///
/// # Errors
/// If a file cannot be written.
pub fn write_results(
    folder: &Path,
    cells: &[Cell],
    reports: &[CellReport],
    results: &Results,
    verdicts: &[Verdict],
) -> Result<(), Unwritable> {
    let write = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        write_file(&path, content).map_err(|source| Unwritable { path, source })
    };
    write("results.csv", csv(&rows(folder, cells, reports, results)).as_bytes())?;
    let claims = serde_json::to_string_pretty(verdicts).unwrap_or_default();
    write("claims.json", claims.as_bytes())
}

fn rows(folder: &Path, cells: &[Cell], reports: &[CellReport], results: &Results) -> Vec<Vec<String>> {
    let axes: Vec<&str> = results.axes().collect();
    let metrics = results.occurring();
    let heading = axes.iter().chain(&["seed", "folder"]).chain(&metrics);
    let heading = heading.map(|name| (*name).to_owned()).collect();
    let mut rows: Vec<Vec<String>> = vec![heading];
    for (cell, report) in cells.iter().zip(reports) {
        let Some(numbers) = report.numbers() else { continue };
        let label = |axis: &&str| {
            let labels = &cell.point.labels;
            labels.iter().find(|(name, _)| name == axis).map(|(_, label)| label.clone()).unwrap_or_default()
        };
        let number = |metric: &&str| numbers.get(*metric).map(f64::to_string).unwrap_or_default();
        let place = report.folder.strip_prefix(folder).unwrap_or(&report.folder).display().to_string();
        let named = axes.iter().map(label).chain([cell.seed().to_string(), place]);
        rows.push(named.chain(metrics.iter().map(number)).collect());
    }
    rows
}

/// Rows as CSV.
fn csv(rows: &[Vec<String>]) -> String {
    let line = |row: &Vec<String>| {
        let fields: Vec<String> = row.iter().map(|field| quote(field)).collect();
        fields.join(",") + "\n"
    };
    rows.iter().map(line).collect()
}

/// A CSV field (RFC 4180).
fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
