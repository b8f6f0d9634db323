//! `netloom study --dry-run`: what a study would cost.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use netloom_study::{CellFolders, CellReport, PROGRAM, Plan, Running, Study, run_cells};

use super::workers;
use crate::args::StudyArgs;
use crate::failure::Failure;
use crate::files::unwritable;
use crate::show;

/// Seconds of one core per byte that hosts send, where no finished cell shows it: packets of 2 KiB over five links, their ACKs back over as
/// many, 40 ns for each crossing (`docs/speed.md`).
const ASSUMED: f64 = 10.0 * 40e-9 / 2048.0;

/// What the program itself takes.
const PROGRAM_BYTES: u64 = 15 << 20;

/// What is known of a study before it runs.
#[derive(Debug, serde::Serialize)]
struct Estimate {
    points: usize,
    repetitions: u32,
    cells: usize,
    done: usize,
    workers: usize,
    /// Absent for measurements of which none is done.
    time_s: Option<f64>,
    /// Cells from whose time that is estimated; 0: from an assumed speed.
    measured_cells: usize,
    /// Networks, routes and hosts of the largest cells that may run at the same time, and the program.
    memory_bytes_at_least: u64,
    out: String,
}

/// Prints what is to be done and about what it needs; runs and writes nothing.
pub(super) fn show(args: &StudyArgs, study: &Study, plan: &Plan, folder: &Path) -> Result<(), Failure> {
    let estimate = estimate(plan, &reports(plan, folder)?, study.repetitions, workers(args.workers), folder);
    let mut out = show::out();
    if args.json {
        let text = serde_json::to_string_pretty(&estimate).map_err(std::io::Error::from)?;
        writeln!(out, "{text}")?;
    } else {
        write!(out, "{}\n{}", study.title, show::fit(&words(&estimate)))?;
    }
    Ok(())
}

/// The cells that are done; none if there is no folder yet.
fn reports(plan: &Plan, folder: &Path) -> Result<Vec<CellReport>, Failure> {
    let cells = folder.join("cells");
    if !cells.is_dir() {
        return Ok(Vec::new());
    }
    let folders = CellFolders::open(&cells).map_err(|error| unwritable(&cells, &error))?;
    // Nothing is started.
    let stop = AtomicBool::new(true);
    let running = Running { program: PROGRAM, workers: 1, shard: None, stop: &stop };
    Ok(run_cells(&plan.cells, &folders, &running, &|_| ())?)
}

fn estimate(
    plan: &Plan,
    reports: &[CellReport],
    repetitions: u32,
    workers: usize,
    folder: &Path,
) -> Estimate {
    let is_done = |i: usize| reports.get(i).is_some_and(|report| report.numbers().is_some());
    let open: Vec<usize> = (0..plan.cells.len()).filter(|&i| !is_done(i)).collect();
    let timed = reports.iter().zip(&plan.costs).filter_map(|(report, cost)| Some((report.wall_s?, cost)));
    let (measured_cells, wall_s, cost) = timed
        .fold((0, 0.0, 0.0), |(count, wall, sum), (wall_s, cost)| (count + 1, wall + wall_s, sum + cost));
    let is_run = plan.cells.iter().all(|cell| matches!(cell.point.work, netloom_study::Work::Run(..)));
    let per_cost = match measured_cells {
        0 => is_run.then_some(ASSUMED),
        _ => Some(wall_s / cost),
    };
    let costs = || open.iter().map(|&i| plan.costs[i]);
    // Cells are shared by the workers, and none takes less than the largest cell.
    let longest = (costs().sum::<f64>() / workers as f64).max(costs().fold(0.0, f64::max));
    let mut memory: Vec<u64> = open.iter().map(|&i| plan.memory[i]).collect();
    memory.sort_unstable_by(|a, b| b.cmp(a));
    Estimate {
        points: plan.cells.len() / repetitions as usize,
        repetitions,
        cells: plan.cells.len(),
        done: plan.cells.len() - open.len(),
        workers,
        time_s: if open.is_empty() { Some(0.0) } else { per_cost.map(|seconds| seconds * longest) },
        measured_cells,
        memory_bytes_at_least: PROGRAM_BYTES + memory.iter().take(workers).sum::<u64>(),
        out: folder.display().to_string(),
    }
}

fn words(estimate: &Estimate) -> String {
    let Estimate { points, repetitions, cells, done, workers, .. } = estimate;
    let time = match (estimate.time_s, estimate.measured_cells) {
        (Some(seconds), _) if cells == done => show::time(seconds),
        (Some(seconds), 0) => format!(
            "very roughly {}, as no cell is done: assumed are packets of 2 KiB, five links in each direction and 40 ns per link; \
             the real time may be ten times longer or shorter",
            show::time(seconds)
        ),
        (Some(seconds), measured) => format!(
            "about {}, from the time per byte sent in the {measured} cells that are done; congested cells take longer",
            show::time(seconds)
        ),
        (None, _) => "unknown: measurements of networks have no estimate".to_owned(),
    };
    format!(
        "cells      {cells}: {points} points × {repetitions} seeds; {done} are done\n\
         workers    {workers}\n\
         time       {time}\n\
         memory     at least {} with {workers} cells at a time: networks, routes and hosts, without packets and flows in flight\n\
         folder     {}\n\
         dry run    nothing was run or written\n",
        show::bytes(estimate.memory_bytes_at_least),
        estimate.out
    )
}
