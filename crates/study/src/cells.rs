//! Running the cells on all cores, skipping those that are done.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use netloom_scenario::Problem;

use crate::cell::Cell;
use crate::fingerprint::fingerprint;
use crate::folder::CellFolders;
use crate::grid::Plan;
use crate::results::Results;
use crate::work::{Finished, Numbers, Work, WorkError};

/// How cells are run.
#[derive(Clone, Copy, Debug)]
pub struct Running<'a> {
    /// What identifies the program, e.g. [`PROGRAM`](crate::PROGRAM): cells of another one run anew.
    pub program: &'a str,
    /// How many cells at a time.
    pub workers: usize,
    /// Which part of the cells, if not all.
    pub shard: Option<Shard>,
    /// When it becomes true, no further cell is started, and runs under way are given up.
    pub stop: &'a AtomicBool,
}

/// One of several equal parts of a study's cells; which one a cell belongs to depends on nothing but the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which part, from 1.
    pub number: NonZeroU32,
    /// How many parts there are.
    pub of: NonZeroU32,
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// Reads `2/8`: the second of eight parts.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(number, of)| {
            Some(Shard { number: number.trim().parse().ok()?, of: of.trim().parse().ok()? })
        });
        parts
            .filter(|shard| shard.number <= shard.of)
            .ok_or_else(|| format!("expected I/N with 1 <= I <= N, such as 2/8, found {text}"))
    }
}

impl Shard {
    fn has(self, position: usize) -> bool {
        position as u64 % u64::from(self.of.get()) == u64::from(self.number.get() - 1)
    }
}

/// How a cell's work is done; tests have a smaller way.
pub(crate) trait Perform: Sync {
    /// The complete result in `folder`, if there is one.
    fn finished(&self, work: &Work, folder: &Path) -> Option<Finished>;

    /// Does the work and writes the result to `folder`, which comes into being only when it is complete; tells `news` which share is done.
    fn perform(
        &self,
        work: &Work,
        folder: &Path,
        stop: &AtomicBool,
        news: &dyn Fn(f64),
    ) -> Result<(), WorkError>;
}

/// The real way.
struct Real;

impl Perform for Real {
    fn finished(&self, work: &Work, folder: &Path) -> Option<Finished> {
        work.finished(folder)
    }

    fn perform(
        &self,
        work: &Work,
        folder: &Path,
        stop: &AtomicBool,
        news: &dyn Fn(f64),
    ) -> Result<(), WorkError> {
        work.perform(folder, stop, news)
    }
}

/// What became of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellReport {
    /// The folder of its result.
    pub folder: PathBuf,
    /// Whether the result was there already.
    pub reused: bool,
    /// Its numbers, or why there are none; `None` if it was not run.
    pub result: Option<Result<Numbers, WorkError>>,
    /// What is probably a mistake, as the run said; empty if it is not done.
    pub warnings: Vec<String>,
    /// Seconds that the run took, if it is done; unknown of measurements.
    pub wall_s: Option<f64>,
}

impl CellReport {
    fn done(folder: PathBuf, reused: bool, finished: Finished) -> Self {
        let Finished { numbers, warnings, wall_s } = finished;
        CellReport { folder, reused, result: Some(Ok(numbers)), warnings, wall_s }
    }

    fn open(folder: PathBuf, result: Option<Result<Numbers, WorkError>>) -> Self {
        CellReport { folder, reused: false, result, warnings: Vec::new(), wall_s: None }
    }

    /// Its numbers, if it is done.
    pub fn numbers(&self) -> Option<&Numbers> {
        self.result.as_ref()?.as_ref().ok()
    }

    /// Where its result lies, from the study's folder.
    pub fn place(&self, study: &Path) -> String {
        self.folder.strip_prefix(study).unwrap_or(&self.folder).display().to_string()
    }
}

/// News while cells run.
#[derive(Clone, Copy, Debug)]
pub enum CellEvent<'a> {
    /// A cell, by its position, starts.
    Started(usize),
    /// A share of a cell, from 0 to 1, is done.
    Progress(usize, f64),
    /// A cell is not run: another one does the same work, or it belongs to another part.
    Spared(usize),
    /// A cell has ended.
    Ended(usize, &'a CellReport),
}

impl Plan {
    /// What came out, for claims and tables.
    pub fn results(&self, reports: &[CellReport]) -> Results {
        Results::new(self.cells.iter().zip(reports.iter().map(CellReport::numbers)))
            .with_names_of(&self.outline)
    }
}

/// Runs all cells that have no result in `folders` yet, and reports them in order.
///
/// A cell is known by a fingerprint of its work, so a stopped study goes on where it stopped, and a changed scenario or program runs
/// only what changed. A result that cannot be written ends the study: there is no room for others either.
///
/// # Errors
/// A file named by a scenario that cannot be read.
pub fn run_cells(
    cells: &[Cell],
    folders: &CellFolders,
    running: &Running<'_>,
    news: &(dyn Fn(CellEvent<'_>) + Sync),
) -> Result<Vec<CellReport>, Problem> {
    perform_cells(cells, folders, running, &Real, news)
}

fn perform_cells(
    cells: &[Cell],
    folders: &CellFolders,
    running: &Running<'_>,
    way: &dyn Perform,
    news: &(dyn Fn(CellEvent<'_>) + Sync),
) -> Result<Vec<CellReport>, Problem> {
    let mut reports: Vec<CellReport> = Vec::with_capacity(cells.len());
    // Points whose work is the same share one result: that of the first of them.
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    let mut twins = Vec::new();
    let mut open = Vec::new();
    for (i, cell) in cells.iter().enumerate() {
        let work = cell.work();
        let fingerprint = fingerprint(&work.to_toml()?, &work.files(), running.program)?;
        if let Some(&twin) = first.get(&fingerprint) {
            twins.push((i, twin));
            news(CellEvent::Spared(i));
            reports.push(reports[twin].clone());
            continue;
        }
        let folder = folders.of(&cell.folder_name(), &fingerprint);
        let report = match way.finished(&work, &folder) {
            Some(finished) => CellReport::done(folder, true, finished),
            None => CellReport::open(folder, None),
        };
        if report.reused {
            news(CellEvent::Ended(i, &report));
        } else if running.shard.is_none_or(|shard| shard.has(first.len())) {
            open.push(i);
        } else {
            news(CellEvent::Spared(i));
        }
        first.insert(fingerprint, i);
        reports.push(report);
    }

    let next = AtomicUsize::new(0);
    let is_full = AtomicBool::new(false);
    let done = Mutex::new(Vec::new());
    let work = || {
        while !running.stop.load(Ordering::Relaxed) && !is_full.load(Ordering::Relaxed) {
            let Some(&i) = open.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            news(CellEvent::Started(i));
            let report = run_one(&cells[i], &reports[i].folder, running, way, &|share| {
                news(CellEvent::Progress(i, share))
            });
            if let Some(Err(WorkError::Unwritable(_))) = report.result {
                is_full.store(true, Ordering::Relaxed);
            }
            news(CellEvent::Ended(i, &report));
            if let Ok(mut done) = done.lock() {
                done.push((i, report));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..running.workers.clamp(1, open.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    for (i, report) in done.into_inner().unwrap_or_default() {
        reports[i] = report;
    }
    for (i, twin) in twins {
        reports[i] = CellReport { reused: true, ..reports[twin].clone() };
    }
    Ok(reports)
}

fn run_one(
    cell: &Cell,
    folder: &Path,
    running: &Running<'_>,
    way: &dyn Perform,
    news: &dyn Fn(f64),
) -> CellReport {
    let work = cell.work();
    // Another process may have done it since this one began.
    if let Some(finished) = way.finished(&work, folder) {
        return CellReport::done(folder.to_owned(), true, finished);
    }
    let performed = way.perform(&work, folder, running.stop, news).and_then(|()| {
        // What counts is what lies in the folder: a study that goes on reads the same. Another process that did the same cell may put its
        // result in the place of this one at this moment.
        let read = || way.finished(&work, folder);
        read().or_else(read).ok_or_else(|| WorkError::Failed("its result cannot be read back".to_owned()))
    });
    match performed {
        Ok(finished) => CellReport::done(folder.to_owned(), false, finished),
        Err(WorkError::Stopped) => CellReport::open(folder.to_owned(), None),
        Err(error) => CellReport::open(folder.to_owned(), Some(Err(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::testing::cells_with_seeds;
    use std::fs;

    /// Writes the seed as the result, and counts its runs. Some seeds do not end well.
    #[derive(Default)]
    struct Counter {
        runs: AtomicUsize,
    }

    impl Perform for Counter {
        fn finished(&self, _: &Work, folder: &Path) -> Option<Finished> {
            let text = fs::read_to_string(folder.join("seed")).ok()?;
            let numbers = [("seed".to_owned(), text.parse().ok()?)].into();
            Some(Finished { numbers, warnings: vec![format!("seed {text}")], wall_s: Some(1.0) })
        }

        fn perform(
            &self,
            work: &Work,
            folder: &Path,
            _: &AtomicBool,
            news: &dyn Fn(f64),
        ) -> Result<(), WorkError> {
            self.runs.fetch_add(1, Ordering::Relaxed);
            news(0.5);
            match work.seed() {
                13 => return Err(WorkError::Failed("unlucky".to_owned())),
                14 => return Err(WorkError::Unwritable("disk full".to_owned())),
                _ => {}
            }
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("seed"), work.seed().to_string()).unwrap();
            Ok(())
        }
    }

    struct Study {
        dir: tempfile::TempDir,
    }

    impl Study {
        fn new() -> Self {
            Study { dir: tempfile::tempdir().unwrap() }
        }

        fn run(&self, seeds: &[u64], change: impl FnOnce(&mut Running<'_>)) -> (Vec<CellReport>, usize) {
            let way = Counter::default();
            let stop = AtomicBool::new(false);
            let mut running = Running { program: "v1", workers: 3, shard: None, stop: &stop };
            change(&mut running);
            let folders = CellFolders::open(&self.dir.path().join("cells")).unwrap();
            let reports = perform_cells(&cells_with_seeds(seeds), &folders, &running, &way, &|_| {}).unwrap();
            (reports, way.runs.into_inner())
        }
    }

    #[test]
    fn finished_cells_are_not_run_again() {
        let study = Study::new();
        assert_eq!(study.run(&[1, 2, 3, 4], |_| ()).1, 4);
        let (reports, runs) = study.run(&[1, 2, 3, 4, 5], |_| ());
        assert_eq!(runs, 1);
        let seeds: Vec<f64> = reports.iter().map(|report| report.numbers().unwrap()["seed"]).collect();
        assert_eq!(seeds, [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(reports.iter().all(|report| report.warnings.len() == 1 && report.wall_s == Some(1.0)));
        assert_eq!(study.run(&[1, 2], |running| running.program = "v2").1, 2, "another program runs anew");
    }

    #[test]
    fn a_failed_cell_is_reported_and_tried_again_next_time() {
        let study = Study::new();
        for _ in 0..2 {
            let (reports, runs) = study.run(&[13], |_| ());
            assert_eq!(
                (runs, reports[0].result.clone()),
                (1, Some(Err(WorkError::Failed("unlucky".to_owned()))))
            );
        }
    }

    #[test]
    fn nothing_is_started_after_a_result_that_cannot_be_written() {
        let (reports, runs) = Study::new().run(&[1, 14, 2, 3], |running| running.workers = 1);
        assert_eq!(runs, 2);
        assert_eq!(reports[1].result, Some(Err(WorkError::Unwritable("disk full".to_owned()))));
        assert_eq!((reports[0].numbers().is_some(), &reports[2].result), (true, &None));
    }

    #[test]
    fn a_stopped_study_starts_nothing() {
        let stop = AtomicBool::new(true);
        let study = Study::new();
        let way = Counter::default();
        let running = Running { program: "", workers: 3, shard: None, stop: &stop };
        let folders = CellFolders::open(&study.dir.path().join("cells")).unwrap();
        let reports = perform_cells(&cells_with_seeds(&[1, 2]), &folders, &running, &way, &|_| {}).unwrap();
        assert_eq!(way.runs.into_inner(), 0);
        assert!(reports.iter().all(|report| report.result.is_none()));
    }

    #[test]
    fn what_another_process_has_done_meanwhile_is_not_done_again() {
        let (study, stop) = (Study::new(), AtomicBool::new(false));
        let (way, dir) = (Counter::default(), study.dir.path().join("cells"));
        let folders = CellFolders::open(&dir).unwrap();
        let running = Running { program: "", workers: 1, shard: None, stop: &stop };
        let other = Counter::default();
        let done = |event: CellEvent<'_>| {
            if let CellEvent::Started(_) = event {
                let others = CellFolders::open(&dir).unwrap();
                perform_cells(&cells_with_seeds(&[1]), &others, &running, &other, &|_| {}).unwrap();
            }
        };
        let reports = perform_cells(&cells_with_seeds(&[1]), &folders, &running, &way, &done).unwrap();
        assert_eq!((way.runs.into_inner(), other.runs.into_inner()), (0, 1));
        assert!(reports[0].reused && reports[0].numbers().is_some());
    }

    #[test]
    fn cells_with_the_same_work_share_one_run() {
        let (reports, runs) = Study::new().run(&[1, 1, 1], |_| ());
        assert_eq!(runs, 1);
        assert!(
            reports.iter().all(|report| report.numbers().is_some() && report.folder == reports[0].folder)
        );
    }

    #[test]
    fn a_part_is_written_as_one_of_several() {
        let shard: Shard = "2/8".parse().unwrap();
        assert_eq!((shard.number.get(), shard.of.get()), (2, 8));
        for wrong in ["0/2", "3/2", "2", "a/b", "1/0", ""] {
            assert!(wrong.parse::<Shard>().unwrap_err().contains("expected I/N"), "{wrong}");
        }
    }

    #[test]
    fn every_cell_belongs_to_one_shard_whatever_is_done_already() {
        let study = Study::new();
        let seeds: Vec<u64> = (100..111).collect();
        let shard = |number| {
            let shard = |n| NonZeroU32::new(n).unwrap();
            study.run(&seeds, |running| running.shard = Some(Shard { number: shard(number), of: shard(3) }))
        };
        assert_eq!(shard(2).1, 4);
        assert_eq!(shard(2).1, 0);
        assert_eq!((shard(1).1, shard(3).1), (4, 3));
        let (reports, runs) = study.run(&seeds, |_| ());
        assert_eq!((reports.len(), runs), (11, 0));
    }
}
