//! Running the cells on all cores, skipping those that are done.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use netloom_record::Summary;

use crate::source::Problem;
use crate::study::fingerprint::fingerprint;
use crate::study::grid::Cell;

/// How a study runs a cell. Implemented by the program; tests have a smaller one.
pub trait RunCell: Sync {
    /// The summary of a complete outcome in `folder`, if there is one.
    fn finished(&self, folder: &Path) -> Option<Summary>;

    /// Runs a cell and writes its complete outcome to `folder`, which comes into being only when it is complete.
    ///
    /// # Errors
    /// Why there is no outcome.
    fn run(&self, cell: &Cell, folder: &Path) -> Result<Summary, String>;
}

/// What became of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellReport {
    /// The folder of its outcome.
    pub folder: PathBuf,
    /// Whether the outcome was there already.
    pub reused: bool,
    /// Its summary, or why there is none; `None` if it was not run because the study was stopped.
    pub summary: Option<Result<Summary, String>>,
}

/// News while cells run.
#[derive(Clone, Copy, Debug)]
pub enum CellEvent<'a> {
    /// A cell, by its position, starts.
    Started(usize),
    /// A cell has ended.
    Ended(usize, &'a CellReport),
}

/// Runs all cells that have no outcome below `folder` yet, `workers` at a time, and reports them in order.
///
/// A cell's outcome lies in a folder named by its [`fingerprint`], so a stopped study goes on where it stopped, and
/// a changed scenario or program runs only what changed. When `stop` becomes true no further cell is started.
///
/// # Errors
/// A file named by a scenario that cannot be read.
pub fn run_cells(
    cells: &[Cell],
    folder: &Path,
    program: &[u8],
    workers: usize,
    runner: &dyn RunCell,
    stop: &AtomicBool,
    news: &(dyn Fn(CellEvent<'_>) + Sync),
) -> Result<Vec<CellReport>, Problem> {
    let mut reports = Vec::with_capacity(cells.len());
    let mut open = Vec::new();
    for (i, cell) in cells.iter().enumerate() {
        let folder = folder.join(fingerprint(&cell.scenario, program)?);
        let summary = runner.finished(&folder).map(Ok);
        let report = CellReport { folder, reused: summary.is_some(), summary };
        if report.reused {
            news(CellEvent::Ended(i, &report));
        } else if reports.iter().all(|earlier: &CellReport| earlier.folder != report.folder) {
            open.push(i);
        }
        reports.push(report);
    }

    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let Some(&i) = open.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            news(CellEvent::Started(i));
            let folder = reports[i].folder.clone();
            let summary = Some(runner.run(&cells[i], &folder));
            let report = CellReport { folder, reused: false, summary };
            news(CellEvent::Ended(i, &report));
            if let Ok(mut done) = done.lock() {
                done.push((i, report));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers.clamp(1, open.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    for (i, report) in done.into_inner().unwrap_or_default() {
        reports[i] = report;
    }
    // Points whose scenarios are the same share one run.
    for i in 0..reports.len() {
        if reports[i].summary.is_none()
            && let Some(twin) = reports.iter().find(|other| other.folder == reports[i].folder)
        {
            reports[i] = CellReport { reused: true, ..twin.clone() };
        }
    }
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Node, Scenario, Source};
    use netloom_record::{FlowRecord, Records, Status, SummaryOptions};
    use std::fs;

    /// Writes an outcome of as many flows as the seed says, and counts its runs.
    #[derive(Default)]
    struct Counter {
        runs: AtomicUsize,
    }

    impl RunCell for Counter {
        fn finished(&self, folder: &Path) -> Option<Summary> {
            serde_json::from_str(&fs::read_to_string(folder.join("summary.json")).ok()?).ok()
        }

        fn run(&self, cell: &Cell, folder: &Path) -> Result<Summary, String> {
            let scenario = &cell.scenario;
            self.runs.fetch_add(1, Ordering::Relaxed);
            if scenario.seed == 13 {
                return Err("unlucky".to_owned());
            }
            let records =
                Records { flows: vec![FlowRecord::default(); scenario.seed as usize], ..Records::default() };
            let summary = Summary::new(&records, &SummaryOptions::default(), Status::Complete);
            let text = serde_json::to_string(&summary).map_err(|error| error.to_string())?;
            fs::create_dir_all(folder).map_err(|error| error.to_string())?;
            fs::write(folder.join("summary.json"), text).map_err(|error| error.to_string())?;
            Ok(summary)
        }
    }

    fn cells(seeds: &[u64]) -> Vec<Cell> {
        let cell = |&seed| Cell {
            labels: Vec::new(),
            repetition: 0,
            scenario: Scenario { seed, ..Scenario::default() },
            document: Node::parse(&Source::new("", "")).unwrap(),
        };
        seeds.iter().map(cell).collect()
    }

    fn run(seeds: &[u64], folder: &Path, program: &[u8], stop: bool) -> (Vec<CellReport>, usize) {
        let runner = Counter::default();
        let stop = AtomicBool::new(stop);
        let reports = run_cells(&cells(seeds), folder, program, 3, &runner, &stop, &|_| {}).unwrap();
        (reports, runner.runs.into_inner())
    }

    #[test]
    fn finished_cells_are_not_run_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(&[1, 2, 3, 4], folder.path(), b"v1", false).1, 4);
        let (reports, runs) = run(&[1, 2, 3, 4, 5], folder.path(), b"v1", false);
        assert_eq!(runs, 1);
        let summaries: Vec<u64> =
            reports.iter().map(|report| report.summary.clone().unwrap().unwrap().flows.unfinished).collect();
        assert_eq!(summaries, [1, 2, 3, 4, 5]);
        assert_eq!(run(&[1, 2], folder.path(), b"v2", false).1, 2, "another program runs anew");
    }

    #[test]
    fn a_failed_cell_is_reported_and_tried_again_next_time() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let (reports, runs) = run(&[13], folder.path(), b"v1", false);
            assert_eq!((runs, reports[0].summary.clone()), (1, Some(Err("unlucky".to_owned()))));
        }
    }

    #[test]
    fn a_stopped_study_starts_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (reports, runs) = run(&[1, 2], folder.path(), b"v1", true);
        assert_eq!(runs, 0);
        assert!(reports.iter().all(|report| report.summary.is_none()));
    }

    #[test]
    fn cells_with_the_same_scenario_share_one_run() {
        let folder = tempfile::tempdir().unwrap();
        let (reports, runs) = run(&[1, 1, 1], folder.path(), b"v1", false);
        assert_eq!(runs, 1);
        assert!(reports.iter().all(|report| report.summary.is_some()));
    }
}
