//! What is run: points of the grid, each with several seeds.

use std::sync::Arc;

use crate::work::Work;

/// A combination of the axes' values.
#[derive(Clone, Debug)]
pub struct Point {
    /// Axis and label, in the order of the axes; axes that do not apply are left out.
    pub labels: Vec<(String, String)>,
    /// What is done, with the first seed.
    pub work: Work,
    /// Fields that the kinds chosen after them do not have, each in one sentence.
    pub left_out: Vec<String>,
}

impl Point {
    /// The point in words, e.g. `scheme=ecmp load=0.5`.
    pub fn name(&self) -> String {
        let labels: Vec<String> = self.labels.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
        match (&self.work, labels.is_empty()) {
            (_, false) => labels.join(" "),
            (Work::Run(..), true) => "the scenario".to_owned(),
            (Work::Measure(..), true) => "the analysis".to_owned(),
        }
    }
}

/// A point with a seed: one run or measurement.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The point; its repetitions share it.
    pub point: Arc<Point>,
    /// Which repetition, from 0.
    pub repetition: u32,
}

impl Cell {
    /// The seed: the point's, counted up by the repetitions.
    pub fn seed(&self) -> u64 {
        self.point.work.seed() + u64::from(self.repetition)
    }

    /// What is done.
    pub fn work(&self) -> Work {
        self.point.work.with_seed(self.seed())
    }

    /// What its folder is called, before the fingerprint.
    pub(crate) fn folder_name(&self) -> String {
        let labels = self.point.labels.iter().map(|(axis, label)| format!("{axis}={label}_"));
        labels.chain([format!("seed={}", self.seed())]).collect()
    }
}

/// Cells for tests of other modules.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::cells::CellReport;
    use crate::work::{Numbers, WorkError};
    use netloom_scenario::{Node, Scenario, Source};

    /// Points that differ in nothing but their seeds.
    pub(crate) fn cells_with_seeds(seeds: &[u64]) -> Vec<Cell> {
        seeds.iter().map(|&seed| cell(&[], seed)).collect()
    }

    /// A cell with these labels.
    pub(crate) fn cell(labels: &[(&str, &str)], seed: u64) -> Cell {
        let document = Node::parse(&Source::new("", "")).unwrap();
        let scenario = Scenario { seed, ..Scenario::default() };
        let labels = labels.iter().map(|(axis, label)| ((*axis).to_owned(), (*label).to_owned())).collect();
        let work = Work::Run(Box::new(scenario), document);
        Cell { point: Arc::new(Point { labels, work, left_out: Vec::new() }), repetition: 0 }
    }

    /// What became of the i-th cell of a study in `out`.
    pub(crate) fn report(i: usize, result: Option<Result<Numbers, WorkError>>) -> CellReport {
        CellReport {
            folder: format!("out/cells/{i}").into(),
            reused: false,
            result,
            warnings: vec!["transport: slow".to_owned()],
            wall_s: None,
        }
    }
}
