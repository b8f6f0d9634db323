//! What a study found, in one piece: shown on the screen, kept in `study.json`, and read again from there.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use indexmap::IndexMap;
use netloom_record::Estimate;
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::cells::CellReport;
use crate::claims::Verdict;
use crate::columns::{self, Column};
use crate::file::{Base, Study};
use crate::results::{PointResults, Results};
use crate::work::Numbers;

/// What a study found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Findings {
    /// What the study shows.
    pub title: String,
    /// What its cells are.
    pub cells: CellKind,
    /// What the results say about the claims.
    pub claims: Vec<Verdict>,
    /// The numbers that are shown.
    pub columns: Vec<Column>,
    /// Every point with those numbers.
    pub results: Vec<PointFindings>,
}

/// What the cells of a study are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellKind {
    /// Runs of a scenario.
    Runs,
    /// Measurements of networks.
    Measurements,
}

/// A point of the grid and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointFindings {
    /// The point in words.
    pub name: String,
    /// Its label by axis, in the order of the axes.
    pub labels: IndexMap<String, String>,
    /// How many seeds are done.
    pub runs: usize,
    /// The folders of its cells that are done, from the study's folder.
    pub folders: Vec<String>,
    /// Numbers by metric, mean over the seeds; `null` where the point has none.
    pub values: BTreeMap<String, Option<f64>>,
    /// Half the widths of their 95% intervals (Student's t over the seeds); absent for a single seed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plus_minus: BTreeMap<String, f64>,
}

/// The file in the study's folder.
pub(crate) const FILE: &str = "study.json";

impl Findings {
    /// Puts together what was found; `folder` is the study's.
    pub fn new(
        study: &Study,
        cells: &[Cell],
        reports: &[CellReport],
        results: &Results,
        claims: Vec<Verdict>,
        folder: &Path,
    ) -> Self {
        let (kind, columns) = match study.base {
            Base::Scenario(_) => (CellKind::Runs, columns::of_runs(results)),
            Base::Analysis(_) => (CellKind::Measurements, columns::of_measurements(results)),
        };
        // The cells stand in the order of the points.
        let mut rest = cells.iter().zip(reports);
        let point = |point: &PointResults| {
            let of_point = rest.by_ref().take(point.runs.len());
            let done = of_point.filter(|(_, report)| report.numbers().is_some());
            let folders = done.map(|(_, report)| report.place(folder)).collect();
            PointFindings::new(point, &columns, folders)
        };
        let results = results.points().iter().map(point).collect();
        Findings { title: study.title.clone(), cells: kind, claims, results, columns }
    }

    /// The numbers of a single run, in the form of a study of one point.
    pub fn of_run(numbers: Numbers) -> Self {
        let results = Results::of_one("the run", numbers);
        let columns = columns::of_runs(&results);
        let point = |point| PointFindings::new(point, &columns, Vec::new());
        let points = results.points().iter().map(point).collect();
        let title = "a run".to_owned();
        Findings { title, cells: CellKind::Runs, claims: Vec::new(), results: points, columns }
    }

    /// Reads what the study in a folder found; `None` if there is no such file.
    ///
    /// # Errors
    /// If there is one that cannot be read.
    pub fn read(folder: &Path) -> io::Result<Option<Self>> {
        match std::fs::read_to_string(folder.join(FILE)) {
            Ok(text) => Ok(Some(serde_json::from_str(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl PointFindings {
    fn new(point: &PointResults, columns: &[Column], folders: Vec<String>) -> Self {
        let (mut values, mut plus_minus) = (BTreeMap::new(), BTreeMap::new());
        for Column { metric, .. } in columns {
            let estimate = Estimate::of(&point.known(metric));
            values.insert(metric.clone(), estimate.map(|estimate| estimate.mean));
            if let Some(half) = estimate.and_then(|estimate| estimate.plus_minus) {
                plus_minus.insert(metric.clone(), half);
            }
        }
        PointFindings {
            name: point.name.clone(),
            labels: point.labels.iter().cloned().collect(),
            runs: point.runs.iter().flatten().count(),
            folders,
            values,
            plus_minus,
        }
    }

    /// A number with its interval; `None` if the point has no such number.
    pub fn estimate(&self, metric: &str) -> Option<Estimate> {
        let mean = (*self.values.get(metric)?)?;
        Some(Estimate { mean, plus_minus: self.plus_minus.get(metric).copied() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::testing::cell;
    use crate::file::Form;
    use netloom_scenario::{Node, Source};

    #[test]
    fn findings_read_back_with_means_intervals_and_places() {
        let text = "title = 't'\nscenario = {}\n";
        let study = Study::read(&Node::parse(&Source::new("s", text)).unwrap(), Form::Middle).unwrap();
        let ecmp = cell(&[("scheme", "ecmp")], 1);
        let cells = [ecmp.clone(), Cell { repetition: 1, ..ecmp }, cell(&[("scheme", "spray")], 1)];
        let numbers =
            |p99| Numbers::from([("fct.p99".to_owned(), p99), ("packets.ooo_share".to_owned(), 0.0)]);
        let report =
            |i: usize, result| CellReport { folder: format!("out/cells/{i}").into(), reused: false, result };
        let reports = [report(0, Some(Ok(numbers(1.0)))), report(1, Some(Ok(numbers(3.0)))), report(2, None)];
        let results = Results::new(cells.iter().zip(reports.iter().map(CellReport::numbers)));
        let found = Findings::new(&study, &cells, &reports, &results, Vec::new(), Path::new("out"));

        let [ecmp, spray] = &found.results[..] else { panic!("{found:?}") };
        assert_eq!((ecmp.runs, ecmp.folders.clone()), (2, vec!["cells/0".to_owned(), "cells/1".to_owned()]));
        let p99 = ecmp.estimate("fct.p99").unwrap();
        assert!(p99.mean == 2.0 && (p99.plus_minus.unwrap() - 12.7062).abs() < 1e-3, "{p99:?}");
        assert_eq!((spray.labels["scheme"].as_str(), spray.estimate("fct.p99")), ("spray", None));
        assert!(spray.runs == 0 && spray.folders.is_empty());

        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Findings::read(folder.path()).unwrap(), None);
        std::fs::write(folder.path().join(FILE), serde_json::to_string(&found).unwrap()).unwrap();
        assert_eq!(Findings::read(folder.path()).unwrap(), Some(found));
        std::fs::write(folder.path().join(FILE), "{}").unwrap();
        assert!(Findings::read(folder.path()).is_err());
    }
}
