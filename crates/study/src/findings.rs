//! What a study found, in one piece: shown on the screen, kept in `study.json`, and read again from there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use indexmap::IndexMap;
use netloom_record::Estimate;
use netloom_scenario::Problem;
use serde::{Deserialize, Serialize};

use crate::cells::CellReport;
use crate::claims::Verdict;
use crate::columns::{self, Column};
use crate::file::{Base, Study};
use crate::grid::Plan;
use crate::results::{PointResults, Results};
use crate::warnings::Warnings;
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
    /// What is probably a mistake, in the plan or in a run; each once, with the points that it is about.
    #[serde(default)]
    pub warnings: Vec<String>,
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
    /// Puts together what was found by a plan and the reports of its cells; `folder` is the study's, and `columns` are those to show in place of the study's own.
    ///
    /// # Errors
    /// A column that does not exist.
    pub fn new(
        study: &Study,
        (plan, reports): (&Plan, &[CellReport]),
        results: &Results,
        claims: Vec<Verdict>,
        folder: &Path,
        columns: Option<&[String]>,
    ) -> Result<Self, Problem> {
        let kind = match study.base {
            Base::Scenario(_) => CellKind::Runs,
            Base::Analysis(_) => CellKind::Measurements,
        };
        let of_study = || Some(study.columns.as_ref()?.iter().map(|(name, _)| name.clone()).collect());
        let columns =
            columns_of(kind, results, columns.map(<[String]>::to_vec).or_else(of_study).as_deref())?;
        let warnings = plan.warnings.iter().cloned().chain(plan.warnings_of(reports)).collect();
        // The cells stand in the order of the points.
        let mut rest = plan.cells.iter().zip(reports);
        let point = |point: &PointResults| {
            let of_point = rest.by_ref().take(point.runs.len());
            let done = of_point.filter(|(_, report)| report.numbers().is_some());
            let folders = done.map(|(_, report)| report.place(folder)).collect();
            PointFindings::new(point, &columns, folders)
        };
        let results = results.points().iter().map(point).collect();
        Ok(Findings { title: study.title.clone(), cells: kind, claims, warnings, results, columns })
    }

    /// The same with other columns, whose numbers are read from `results.csv` in the study's folder.
    ///
    /// # Errors
    /// A column that does not exist, a file that cannot be read.
    pub fn with_columns(self, folder: &Path, names: &[String]) -> Result<Self, Problem> {
        let rows = crate::tables::read_cells(folder)?;
        let point = |point: &PointFindings| PointResults {
            name: point.name.clone(),
            labels: point.labels.clone().into_iter().collect(),
            runs: point.folders.iter().map(|folder| rows.get(folder).cloned()).collect(),
        };
        let results = Results::of_points(self.results.iter().map(point).collect());
        let columns = columns_of(self.cells, &results, Some(names))?;
        let points = self.results.into_iter().zip(results.points());
        let results = points.map(|(old, point)| PointFindings::new(point, &columns, old.folders)).collect();
        Ok(Findings { results, columns, ..self })
    }

    /// The numbers of a single run, in the form of a study of one point.
    ///
    /// # Errors
    /// A column that does not exist.
    pub fn of_run(numbers: Numbers, columns: Option<&[String]>) -> Result<Self, Problem> {
        let results = Results::of_one("the run", numbers);
        let columns = columns_of(CellKind::Runs, &results, columns)?;
        let point = |point| PointFindings::new(point, &columns, Vec::new());
        let points = results.points().iter().map(point).collect();
        let title = "a run".to_owned();
        let (cells, claims, warnings) = (CellKind::Runs, Vec::new(), Vec::new());
        Ok(Findings { title, cells, claims, warnings, results: points, columns })
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

/// Chosen columns, or the usual ones.
fn columns_of(kind: CellKind, results: &Results, chosen: Option<&[String]>) -> Result<Vec<Column>, Problem> {
    match (chosen, kind) {
        (Some(names), _) => columns::chosen(results, names),
        (None, CellKind::Runs) => Ok(columns::of_runs(results)),
        (None, CellKind::Measurements) => Ok(columns::of_measurements(results)),
    }
}

impl Plan {
    /// What the runs warned of and the plan did not; each once, with the points that it is about.
    pub fn warnings_of(&self, reports: &[CellReport]) -> Vec<String> {
        let (mut known, mut found) = (Warnings::default(), Warnings::default());
        self.by_point.iter().for_each(|warnings| known.add(warnings, ""));
        let mut points = BTreeSet::new();
        for (cell, report) in self.cells.iter().zip(reports) {
            let name = cell.point.name();
            found.add(&report.warnings, &name);
            points.insert(name);
        }
        found.without(&known).of_points(points.len())
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
    use crate::cell::Cell;
    use crate::cell::testing::{cell, report};
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
        let reports = [report(0, Some(Ok(numbers(1.0)))), report(1, Some(Ok(numbers(3.0)))), report(2, None)];
        let results = Results::new(cells.iter().zip(reports.iter().map(CellReport::numbers)));
        let plan = Plan { cells: cells.to_vec(), ..Plan::default() };
        let found =
            Findings::new(&study, (&plan, &reports), &results, Vec::new(), Path::new("out"), None).unwrap();
        assert_eq!(found.warnings, ["transport: slow"]);
        let known = Plan { by_point: vec![vec!["transport: slow".to_owned()]], ..plan.clone() };
        assert!(known.warnings_of(&reports).is_empty(), "the plan has told it");

        let [ecmp, spray] = &found.results[..] else { panic!("{found:?}") };
        assert_eq!((ecmp.runs, ecmp.folders.clone()), (2, vec!["cells/0".to_owned(), "cells/1".to_owned()]));
        let p99 = ecmp.estimate("fct.p99").unwrap();
        assert!(p99.mean == 2.0 && (p99.plus_minus.unwrap() - 12.7062).abs() < 1e-3, "{p99:?}");
        assert_eq!((spray.labels["scheme"].as_str(), spray.estimate("fct.p99")), ("spray", None));
        assert!(spray.runs == 0 && spray.folders.is_empty());

        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Findings::read(folder.path()).unwrap(), None);
        std::fs::write(folder.path().join(FILE), serde_json::to_string(&found).unwrap()).unwrap();
        assert_eq!(Findings::read(folder.path()).unwrap(), Some(found.clone()));
        let of = |found: &Findings, name: &str| found.clone().with_columns(folder.path(), &[name.to_owned()]);
        assert!(of(&found, "ooo_share").unwrap_err().message.contains("results.csv"));
        crate::write_results(Path::new(folder.path()), &cells, &reports, &results, &found).unwrap();
        // The reports' folders are those of `out`.
        let text = std::fs::read_to_string(folder.path().join("results.csv")).unwrap();
        std::fs::write(folder.path().join("results.csv"), text.replace("out/cells", "cells")).unwrap();
        let other = of(&found, "ooo_share").unwrap();
        assert_eq!(other.results[0].estimate("packets.ooo_share").unwrap().mean, 0.0);
        assert!(other.columns.len() == 1 && other.results[0].estimate("fct.p99").is_none());
        assert!(of(&found, "oo_shar").is_err());
        std::fs::write(folder.path().join(FILE), "{}").unwrap();
        assert!(Findings::read(folder.path()).is_err());
    }
}
