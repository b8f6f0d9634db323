//! `netloom study`: a grid of runs, held against claims.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use netloom_record::{Existing, Outcome, OutcomeWriter, Status, Summary};
use netloom_scenario::study::{
    Cell, CellEvent, CellReport, Results, RunCell, Study, Verdict, digest, judge, numbers, run_cells,
    significant,
};
use netloom_scenario::{Node, Problems, Source, apply_override, finish};

use crate::args::StudyArgs;
use crate::failure::{Failure, complain, unwritable, write_file};
use crate::{interrupt, show};

/// Runs what is not there yet, judges the claims, writes and shows the results.
pub(crate) fn study(args: &StudyArgs) -> Result<(), Failure> {
    let study = read_study(args)?;
    let cells = study.cells()?;
    study.check_labels(&cells)?;
    check_cells(&cells)?;
    let folder = args.out.clone().unwrap_or_else(|| default_folder(&args.study, args.small));
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
    write_results(&folder, &finished)?;
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

    let mut out = std::io::stdout().lock();
    if args.json {
        let points = results.table(&COLUMNS.map(|(_, metric)| metric));
        let value = serde_json::json!({ "title": study.title, "claims": verdicts, "results": points });
        writeln!(out, "{}", serde_json::to_string_pretty(&value).map_err(std::io::Error::from)?)?;
    } else {
        writeln!(out, "{}\n{}", study.title, result_table(&results))?;
        if !verdicts.is_empty() {
            writeln!(out, "{}", claim_table(&verdicts))?;
        }
        writeln!(out, "results in {}", folder.display())?;
    }
    if failures.is_empty() && !verdicts.iter().any(Verdict::fails) { Ok(()) } else { Err(Failure::Gate) }
}

fn read_study(args: &StudyArgs) -> Result<Study, Failure> {
    let document = Node::parse(&Source::read(&args.study)?)?;
    let mut study = Study::read(&document, args.small)?;
    for text in &args.set {
        apply_override(&mut study.scenario, text)?;
    }
    Ok(study)
}

fn default_folder(study: &Path, small: bool) -> PathBuf {
    let stem = study.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // studies/flowcut/fig8.toml and studies/fatpaths/fig8.toml must not share a folder.
    let parent = study.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = match parent {
        Some(parent) => format!("{parent}-{stem}"),
        None => stem,
    };
    PathBuf::from("runs").join(if small { format!("{name}-small") } else { name })
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

/// Columns of the table of results: heading, metric, and how it is shown.
const COLUMNS: [(&str, &str); 7] = [
    ("FCT mean [us]", "fct.mean"),
    ("p50", "fct.p50"),
    ("p99", "fct.p99"),
    ("max", "fct.max"),
    ("slowdown p99", "slowdown.p99"),
    ("OOO share", "packets.ooo_share"),
    ("unfinished", "flows.unfinished"),
];

fn result_table(results: &Results) -> String {
    let mut rows: Vec<Vec<String>> = vec![
        std::iter::once("").chain(COLUMNS.iter().map(|(heading, _)| *heading)).map(str::to_owned).collect(),
    ];
    for point in results.table(&COLUMNS.map(|(_, metric)| metric)) {
        let number = |value: &Option<f64>| value.map(significant).unwrap_or_else(|| "-".to_owned());
        rows.push(std::iter::once(point.name.clone()).chain(point.values.iter().map(number)).collect());
    }
    show::table(rows)
}

fn claim_table(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    let mut rows =
        vec![["", "claim", "holds", "measured", "published", "source"].map(str::to_owned).to_vec()];
    for verdict in verdicts {
        let holds = match (verdict.holds, verdict.gate) {
            (Some(true), _) => "yes",
            (Some(false), true) => "NO (gate)",
            (Some(false), false) => "no",
            (None, true) => "FAILED (gate)",
            (None, false) => "not measured",
        };
        rows.push(vec![
            verdict.id.clone(),
            wrap(&verdict.text, 44),
            holds.to_owned(),
            wrap(&verdict.measured, 32),
            wrap(&verdict.published, 24),
            wrap(&verdict.source, 20),
        ]);
        if !verdict.note.is_empty() {
            text += &format!("{}: {}\n", verdict.id, verdict.note);
        }
    }
    format!("{}\n{text}", show::text_table(rows))
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

/// `results.csv`: one row per cell, all labels and all metrics.
fn write_results(folder: &Path, finished: &[(&Cell, BTreeMap<String, f64>)]) -> Result<(), Failure> {
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

    let mut text = String::new();
    let mut line = |fields: Vec<String>| {
        let fields: Vec<String> = fields.iter().map(|field| quote(field)).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    };
    line(axes.iter().chain(&["seed"]).chain(&metrics).map(|name| (*name).to_owned()).collect());
    for (cell, numbers) in finished {
        let label = |axis: &&str| {
            cell.labels
                .iter()
                .find(|(name, _)| name == axis)
                .map(|(_, label)| label.clone())
                .unwrap_or_default()
        };
        let number = |metric: &&str| numbers.get(*metric).map(f64::to_string).unwrap_or_default();
        let seed = cell.scenario.seed.to_string();
        line(axes.iter().map(label).chain([seed]).chain(metrics.iter().map(number)).collect());
    }
    write_file(&folder.join("results.csv"), text.as_bytes())
}

/// A CSV field (RFC 4180).
fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn write_verdicts(folder: &Path, verdicts: &[Verdict]) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(verdicts).map_err(|error| Failure::Bug(error.to_string()))?;
    write_file(&folder.join("claims.json"), text.as_bytes())
}
