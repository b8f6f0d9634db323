//! Simulation studies: a grid of runs.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use netloom_record::{Existing, Outcome, OutcomeWriter, Status, Summary};
use netloom_scenario::study::{
    Cell, CellEvent, CellReport, Results, RunCell, Study, digest, judge, numbers, run_cells,
};
use netloom_scenario::{Node, Problems, apply_override, finish};

use super::{Findings, columns, csv, folder, write_verdicts};
use crate::args::StudyArgs;
use crate::failure::{Failure, complain};
use crate::files::{unwritable, write_file};
use crate::interrupt;

/// Runs what is not there yet, judges the claims, writes and shows the results.
pub(super) fn study(args: &StudyArgs, document: &Node) -> Result<(), Failure> {
    let study = read_study(args, document)?;
    let cells = study.cells()?;
    study.check_labels(&cells)?;
    check_cells(&cells)?;
    let folder = folder(args);
    let cell_folder = folder.join("cells");
    fs::create_dir_all(&cell_folder).map_err(|error| unwritable(&cell_folder, &error))?;

    let stop = interrupt::flag();
    let workers = match args.workers {
        Some(workers) => usize::from(workers),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let bar = progress_bar(cells.len());
    let news = |event: CellEvent<'_>| tell(&bar, &cells, event);
    let runner = Runner { stop: &stop };
    let reports = run_cells(&cells, &cell_folder, &program(), workers, &runner, &stop, &news)?;
    bar.finish_and_clear();

    let summaries = |report: &CellReport| match &report.summary {
        Some(Ok(summary)) => Some(numbers(summary)),
        _ => None,
    };
    let finished: Vec<(&Cell, BTreeMap<String, f64>)> =
        cells.iter().zip(&reports).filter_map(|(cell, report)| Some((cell, summaries(report)?))).collect();
    let folders: Vec<&Path> = reports
        .iter()
        .filter(|report| summaries(report).is_some())
        .map(|report| report.folder.as_path())
        .collect();
    write_results(&folder, &finished, &folders)?;
    let results = Results::new(finished);
    let verdicts = judge(&study.claims, &results);
    write_verdicts(&folder, &verdicts)?;

    let failures: Vec<(&Cell, &str)> = cells
        .iter()
        .zip(&reports)
        .filter_map(|(cell, report)| match &report.summary {
            Some(Err(message)) if !stop.load(Ordering::Relaxed) => Some((cell, message.as_str())),
            _ => None,
        })
        .collect();
    for (cell, message) in &failures {
        let (point, seed) = (cell.point(), cell.scenario.seed);
        complain(&format!("error: the cell {point} (seed {seed}) failed: {message}\n"));
    }
    if stop.load(Ordering::Relaxed) {
        let done = reports.iter().filter(|report| matches!(report.summary, Some(Ok(_)))).count();
        complain(&format!("{done} of {} cells are done; the same command goes on from here\n", cells.len()));
        return Err(Failure::Interrupted);
    }

    let findings = Findings {
        title: &study.title,
        verdicts: &verdicts,
        results: columns::json(&results),
        table: columns::table(&results),
        folder: &folder,
    };
    findings.show(args.json)?;
    if failures.is_empty() { findings.judgement() } else { Err(Failure::Gate) }
}

fn read_study(args: &StudyArgs, document: &Node) -> Result<Study, Failure> {
    let mut study = Study::read(document, args.small)?;
    for text in &args.set {
        apply_override(&mut study.scenario, text)?;
    }
    Ok(study)
}

/// Finds out before the first run whether the parts of every scenario fit each other.
fn check_cells(cells: &[Cell]) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for cell in cells.iter().filter(|cell| cell.repetition == 0) {
        if let Err(found) = cell.prepare() {
            problems.extend(found.0);
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Problems::in_order(problems).into()) }
}

/// What identifies this build: its version and its executable's own bytes, so that cells of another build run anew.
fn program() -> Vec<u8> {
    let mut program = env!("CARGO_PKG_VERSION").as_bytes().to_vec();
    if let Ok(bytes) = std::env::current_exe().and_then(fs::read) {
        program.extend(digest(&bytes));
    }
    program
}

/// Runs cells by simulating them.
struct Runner<'a> {
    stop: &'a AtomicBool,
}

impl RunCell for Runner<'_> {
    fn finished(&self, folder: &Path) -> Option<Summary> {
        let summary = Outcome::read(folder).ok()?.summary;
        (summary.status == Status::Complete).then_some(summary)
    }

    fn run(&self, cell: &Cell, folder: &Path) -> Result<Summary, String> {
        let writer = OutcomeWriter::prepare(folder, Existing::Replace).map_err(|error| error.to_string())?;
        let ready = cell.prepare().map_err(|problems| problems.to_string())?;
        let mut stopped = false;
        let observe = |_| {
            stopped = self.stop.load(Ordering::Relaxed);
            if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let ran = finish(&cell.scenario, ready, 1, &writer, observe).map_err(|error| error.to_string())?;
        match ran.summary.status {
            Status::Complete => Ok(ran.summary),
            Status::Interrupted => Err("interrupted".to_owned()),
        }
    }
}

fn progress_bar(cells: usize) -> ProgressBar {
    let bar = ProgressBar::new(cells as u64);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {pos} of {len} cells, {elapsed}, {eta} left {msg}")
    {
        bar.set_style(style);
    }
    bar
}

fn tell(bar: &ProgressBar, cells: &[Cell], event: CellEvent<'_>) {
    match event {
        CellEvent::Started(i) => bar.set_message(cells[i].point()),
        CellEvent::Ended(..) => bar.inc(1),
    }
}

/// `results.csv`: one row per cell, all labels, the seed, the cell's folder from the study's folder on, and all metrics.
fn write_results(
    folder: &Path,
    finished: &[(&Cell, BTreeMap<String, f64>)],
    folders: &[&Path],
) -> Result<(), Failure> {
    let mut axes: Vec<&str> = Vec::new();
    let mut metrics: Vec<&str> = Vec::new();
    for (cell, numbers) in finished {
        axes.extend(cell.labels.iter().map(|(axis, _)| axis.as_str()));
        metrics.extend(numbers.keys().map(String::as_str));
    }
    let mut seen = Vec::new();
    axes.retain(|axis| {
        !seen.contains(axis) && {
            seen.push(axis);
            true
        }
    });
    metrics.sort_unstable();
    metrics.dedup();

    let heading =
        axes.iter().chain(&["seed", "folder"]).chain(&metrics).map(|name| (*name).to_owned()).collect();
    let mut rows: Vec<Vec<String>> = vec![heading];
    for ((cell, numbers), own) in finished.iter().zip(folders) {
        let label = |axis: &&str| {
            cell.labels
                .iter()
                .find(|(name, _)| name == axis)
                .map(|(_, label)| label.clone())
                .unwrap_or_default()
        };
        let number = |metric: &&str| numbers.get(*metric).map(f64::to_string).unwrap_or_default();
        let seed = cell.scenario.seed.to_string();
        let own = own.strip_prefix(folder).unwrap_or(own).display().to_string();
        rows.push(axes.iter().map(label).chain([seed, own]).chain(metrics.iter().map(number)).collect());
    }
    write_file(&folder.join("results.csv"), csv(&rows).as_bytes())
}
