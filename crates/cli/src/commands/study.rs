//! `netloom study`: cells on all cores, checked against claims.

mod dry_run;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use netloom_scenario::{Node, Problem, Source};
use netloom_study::{
    Cell, CellEvent, CellFolders, CellReport, Findings, Form, PROGRAM, Plan, Running, Study, Verdict,
    WorkError, judge, run_cells, write_results,
};

use crate::args::StudyArgs;
use crate::failure::{Failure, complain, strictly};
use crate::files::unwritable;
use crate::progress::StudyProgress;
use crate::{findings, interrupt};

/// Reads the study, checks all of it, runs what is not done yet, judges the claims, writes and shows the results.
pub(crate) fn study(args: &StudyArgs) -> Result<(), Failure> {
    if let Some(address) = &args.dask {
        return Err(on_dask(args, address));
    }
    let document = Node::parse(&Source::read(&args.study)?)?;
    let mut study = Study::read(&document, args.form())?;
    study.set(&args.set)?;
    let plan = study.plan()?;
    if let Some(columns) = &args.columns {
        plan.check_columns(columns)
            .map_err(|problem| Problem { field: "--columns".to_owned(), ..problem })?;
    }
    if args.strict && !plan.warnings.is_empty() {
        return Err(strictly(&plan.warnings));
    }
    if !args.quiet {
        plan.warnings.iter().for_each(|warning| complain(&format!("warning: {warning}\n")));
    }
    let cells = &plan.cells;

    let folder = args.out.clone().unwrap_or_else(|| default_folder(&args.study, args.form()));
    if args.dry_run {
        return dry_run::show(args, &study, &plan, &folder);
    }
    let cell_folder = folder.join("cells");
    let folders = CellFolders::open(&cell_folder).map_err(|error| unwritable(&cell_folder, &error))?;
    let stop = interrupt::flag();
    let reports = run(args, &plan, &folders, &stop)?;
    let ending = Ending::of(cells, &reports, &stop);
    if let Some(message) = ending.unwritable {
        // There is no room for the results either.
        complain(&format!("error: {message}\n"));
        return Err(ending.incomplete());
    }

    if args.shard.is_some() && ending.done < ending.all && !ending.stopped && ending.failures.is_empty() {
        if !args.quiet {
            let (done, all) = (ending.done, ending.all);
            writeln!(crate::show::out(), "{done} of {all} cells are done, this part among them")?;
        }
        return Ok(());
    }
    let results = plan.results(&reports);
    let verdicts = judge(&study.claims, &results);
    let found =
        Findings::new(&study, (&plan, &reports), &results, verdicts, &folder, args.columns.as_deref())?;
    write_results(&folder, cells, &reports, &results, &found)
        .map_err(|error| Failure::Output(error.to_string()))?;
    for (cell, message) in &ending.failures {
        let (point, seed) = (cell.point.name(), cell.seed());
        complain(&format!("error: the cell {point} (seed {seed}) failed: {message}\n"));
    }
    if ending.stopped {
        return Err(ending.incomplete());
    }

    // What the plan warned of was printed before the runs.
    let of_runs = plan.warnings_of(&reports);
    print(args, &found, &of_runs, &folder)?;
    care_for_stale(args, &folders, &reports)?;
    if args.strict && !of_runs.is_empty() {
        return Err(Failure::Output(format!("--strict: {}", of_runs.join("; "))));
    }
    if ending.failures.is_empty() && !found.claims.iter().any(Verdict::fails) {
        Ok(())
    } else {
        Err(Failure::Gate)
    }
}

/// Becomes the Python package's command, which knows Dask; returns why that is not possible.
fn on_dask(args: &StudyArgs, address: &str) -> Failure {
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let name = python.display();
    let needs = "--dask runs a study by the Python package: pip install 'netloom[dask]'";
    let probe = Command::new(&python).args(["-c", "import netloom._dask, distributed"]).output();
    let missing = match &probe {
        Err(error) => Some(error.to_string()),
        Ok(probe) if probe.status.success() => None,
        Ok(probe) => {
            let said = String::from_utf8_lossy(&probe.stderr);
            Some(said.lines().last().unwrap_or("it failed").to_owned())
        }
    };
    if let Some(missing) = missing {
        return Failure::Output(format!("{needs} ({name}: {missing}; PYTHON names another interpreter)"));
    }
    let mut command = Command::new(&python);
    command.args(["-m", "netloom", "study"]).arg(&args.study).args(["--dask", address]);
    command.args(args.small.then_some("--small")).args(args.full.then_some("--full"));
    if let Some(out) = &args.out {
        command.arg("--out").arg(out);
    }
    Failure::Output(format!("cannot run {name}: {}", command.exec()))
}

fn run(
    args: &StudyArgs,
    plan: &Plan,
    folders: &CellFolders,
    stop: &AtomicBool,
) -> Result<Vec<CellReport>, Failure> {
    let workers = workers(args.workers);
    let progress = StudyProgress::new(plan, args.quiet);
    let news = |event: CellEvent<'_>| progress.update(event);
    let running = Running { program: PROGRAM, workers, shard: args.shard, stop };
    let reports = run_cells(&plan.cells, folders, &running, &news);
    progress.finish();
    Ok(reports?)
}

/// How many cells run at a time.
pub(super) fn workers(asked: Option<u16>) -> usize {
    match asked {
        Some(workers) => usize::from(workers),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// How the cells ended.
struct Ending<'a> {
    /// Why a result could not be written.
    unwritable: Option<&'a str>,
    /// Cells without result, and why.
    failures: Vec<(&'a Cell, String)>,
    /// Whether the user ended it.
    stopped: bool,
    done: usize,
    all: usize,
}

impl<'a> Ending<'a> {
    fn of(cells: &'a [Cell], reports: &'a [CellReport], stop: &AtomicBool) -> Self {
        let mut unwritable = None;
        let mut failures = Vec::new();
        for (cell, report) in cells.iter().zip(reports) {
            match &report.result {
                Some(Err(WorkError::Unwritable(message))) => {
                    unwritable = unwritable.or(Some(message.as_str()))
                }
                Some(Err(error)) => failures.push((cell, error.to_string())),
                Some(Ok(_)) | None => {}
            }
        }
        let done = reports.iter().filter(|report| report.numbers().is_some()).count();
        Ending { unwritable, failures, stopped: stop.load(Ordering::Relaxed), done, all: cells.len() }
    }

    /// Says what is left to do.
    fn incomplete(&self) -> Failure {
        let (done, all) = (self.done, self.all);
        complain(&format!("{done} of {all} cells are done; the same command goes on from here\n"));
        if self.unwritable.is_some() { Failure::Gate } else { Failure::Interrupted }
    }
}

/// Prints tables, or JSON.
fn print(args: &StudyArgs, found: &Findings, warnings: &[String], folder: &Path) -> Result<(), Failure> {
    let mut out = crate::show::out();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(found).map_err(std::io::Error::from)?)?;
    } else if !args.quiet {
        writeln!(out, "{}results in {}", findings::text(found, warnings), folder.display())?;
    }
    Ok(())
}

/// Lists cells of former builds or texts of the study, or removes them.
fn care_for_stale(args: &StudyArgs, folders: &CellFolders, reports: &[CellReport]) -> Result<(), Failure> {
    /// As many names as people read.
    const MOST: usize = 5;
    let stale = folders.stale(reports.iter().map(|report| report.folder.as_path()));
    if stale.is_empty() {
        return Ok(());
    }
    let mut out = crate::show::out();
    let is_silent = args.quiet || args.json;
    if args.clean {
        let failed = |error| Failure::Output(format!("cannot remove stale cells: {error}"));
        folders.remove(&stale).map_err(failed)?;
        if !is_silent {
            writeln!(out, "{} stale cells removed", stale.len())?;
        }
    } else if !is_silent {
        let heading = "are left from another build of netloom or an earlier version of the study; --clean removes them:";
        writeln!(out, "{} stale cells {heading}", stale.len())?;
        for cell in stale.iter().take(MOST) {
            writeln!(out, "  {}", cell.display())?;
        }
        if stale.len() > MOST {
            writeln!(out, "  … and {} more", stale.len() - MOST)?;
        }
    }
    Ok(())
}

fn default_folder(study: &Path, form: Form) -> PathBuf {
    let stem = study.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // studies/flowcut/fig8.toml and studies/fatpaths/fig8.toml must not share a folder.
    let parent = study.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = match parent {
        Some(parent) => format!("{parent}-{stem}"),
        None => stem,
    };
    PathBuf::from("runs").join(name + form.suffix())
}
