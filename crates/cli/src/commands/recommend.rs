//! `netloom recommend`: the best of several routing schemes for a scenario.

mod question;
mod words;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use netloom_study::recommend::{Criterion, Ranking, rank};
use netloom_study::{Cell, CellFolders, CellReport, Numbers, PROGRAM, Plan, Results, Running, run_cells};
use serde::Serialize;

use self::question::{Question, folder_name};
use crate::args::RecommendArgs;
use crate::failure::{Failure, complain};
use crate::files::{unwritable, write_file};
use crate::interrupt;
use crate::progress::StudyProgress;

/// Seeds of the first round: fewer tell nothing.
const FIRST: u32 = 3;

/// Why no further round was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Ended {
    /// One scheme is left.
    Decided,
    /// The budget would not last for the next round.
    Budget,
    /// The most seeds are used.
    Seeds,
    /// The user ended it.
    Interrupted,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    criterion: Criterion,
    #[serde(flatten)]
    ranking: Ranking,
    ended: Ended,
    rounds: u32,
    /// Runs that were needed, those included that were there already.
    runs: usize,
    /// How many different circumstances each seed stands for.
    circumstances: usize,
    wall_s: f64,
    /// Schemes that the scenario refuses, and why.
    refused: Vec<(String, String)>,
    /// Runs that failed, and why.
    failed: Vec<(String, String)>,
    /// A study that repeats it.
    study: PathBuf,
}

/// What of a scheme has run.
struct Done {
    scheme: String,
    cells: Vec<(Cell, Option<Numbers>)>,
}

/// Runs the schemes in rounds until one is left, and says what is known then.
pub(crate) fn recommend(args: &RecommendArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let question = Question::of(args)?;
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(folder_name(&args.scenario)));
    let mut left: Vec<String> = question.schemes.iter().map(|(name, _)| name.clone()).collect();
    let mut worse: Vec<String> = Vec::new();
    let mut plan = question.plan(left.iter().map(String::as_str), FIRST.min(args.seeds))?;
    let criterion = Criterion::find(&plan, args.metric.as_deref(), args.more_is_better)
        .map_err(|message| netloom_scenario::Problem::new("--metric", message))?;
    if !args.quiet {
        plan.warnings.iter().for_each(|warning| complain(&format!("warning: {warning}\n")));
    }

    let cell_folder = folder.join("cells");
    let stop = interrupt::flag();
    let is_over = || started.elapsed() >= args.budget;
    let (mut done, mut failed): (Vec<Done>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    let (mut seeds, mut round) = (FIRST.min(args.seeds), 1);
    let (ranking, results, ended) = loop {
        let folders = CellFolders::open(&cell_folder).map_err(|error| unwritable(&cell_folder, &error))?;
        let reports = run(args, &plan, &folders, &stop, started)?;
        note(&plan, &reports, &mut done, &mut failed);
        let results = Results::new(
            done.iter().flat_map(|done| &done.cells).map(|(cell, numbers)| (cell, numbers.as_ref())),
        );
        let ranking = rank(&results, &criterion, round, &worse);
        left = ranking.left().map(str::to_owned).collect();
        worse = ranking.schemes.iter().filter(|one| one.is_worse).map(|one| one.scheme.clone()).collect();
        let ended = if stop.load(Ordering::Relaxed) && !is_over() {
            Some(Ended::Interrupted)
        } else if left.len() <= 1 && ranking.not_run.is_empty() {
            Some(Ended::Decided)
        } else if is_over() || !lasts(&plan, &reports, &left, seeds, args, started) {
            Some(Ended::Budget)
        } else if seeds >= args.seeds {
            Some(Ended::Seeds)
        } else {
            None
        };
        if let Some(ended) = ended {
            break (ranking, results, ended);
        }
        round += 1;
        seeds = (2 * seeds).min(args.seeds);
        plan = question.plan(left.iter().map(String::as_str), seeds)?;
    };

    let study = folder.join("recommend.toml");
    write_file(&study, question.file(seeds).as_bytes())?;
    let answer = Answer {
        criterion,
        ranking,
        ended,
        rounds: round,
        runs: done.iter().flat_map(|done| &done.cells).filter(|(_, numbers)| numbers.is_some()).count(),
        circumstances: question.circumstances,
        wall_s: started.elapsed().as_secs_f64(),
        refused: question.refused,
        failed,
        study,
    };
    let json = serde_json::to_string_pretty(&answer).map_err(std::io::Error::from)? + "\n";
    write_file(&folder.join("recommendation.json"), json.as_bytes())?;
    words::print(args, &answer, &results, &json)?;
    match answer.ended {
        Ended::Interrupted => Err(Failure::Interrupted),
        // The answer has said why.
        _ if answer.ranking.schemes.is_empty() => Err(Failure::Gate),
        _ => Ok(()),
    }
}

/// Runs what a round needs and is not there; gives up when the budget is spent.
fn run(
    args: &RecommendArgs,
    plan: &Plan,
    folders: &CellFolders,
    stop: &AtomicBool,
    started: Instant,
) -> Result<Vec<CellReport>, Failure> {
    let workers =
        args.workers.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let progress = StudyProgress::new(plan, args.quiet || args.json);
    let running = Running { program: PROGRAM, workers, shard: None, stop };
    let is_done = AtomicBool::new(false);
    let reports = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                if started.elapsed() >= args.budget {
                    stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let reports = run_cells(&plan.cells, folders, &running, &|event| progress.update(event));
        is_done.store(true, Ordering::Relaxed);
        reports
    });
    progress.finish();
    Ok(reports?)
}

/// Takes a round's runs in place of those of the same schemes in the round before, whose cells they contain.
fn note(plan: &Plan, reports: &[CellReport], done: &mut Vec<Done>, failed: &mut Vec<(String, String)>) {
    let scheme_of = |cell: &Cell| {
        let label = cell.point.labels.iter().find(|(axis, _)| axis == netloom_study::recommend::SCHEME);
        label.map(|(_, label)| label.clone()).unwrap_or_default()
    };
    let mut round: Vec<Done> = Vec::new();
    for (cell, report) in plan.cells.iter().zip(reports) {
        let scheme = scheme_of(cell);
        if let Some(Err(error)) = &report.result {
            failed.push((format!("{} seed={}", cell.point.name(), cell.seed()), error.to_string()));
        }
        let entry = (cell.clone(), report.numbers().cloned());
        match round.last_mut().filter(|last| last.scheme == scheme) {
            Some(last) => last.cells.push(entry),
            None => round.push(Done { scheme, cells: vec![entry] }),
        }
    }
    for new in round {
        match done.iter_mut().find(|old| old.scheme == new.scheme) {
            Some(old) => *old = new,
            None => done.push(new),
        }
    }
}

/// Whether the budget lasts for as many seeds again of the schemes that are left, judged by how long theirs took.
fn lasts(
    plan: &Plan,
    reports: &[CellReport],
    left: &[String],
    seeds: u32,
    args: &RecommendArgs,
    started: Instant,
) -> bool {
    let is_left = |cell: &Cell| cell.point.labels.iter().any(|(_, label)| left.contains(label));
    let seconds: f64 = plan
        .cells
        .iter()
        .zip(reports)
        .filter(|(cell, _)| is_left(cell))
        .filter_map(|(_, report)| report.wall_s)
        .sum();
    let workers =
        args.workers.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let more = f64::from(seeds.min(args.seeds.saturating_sub(seeds))) / f64::from(seeds);
    started.elapsed().as_secs_f64() + more * seconds / workers as f64 <= args.budget.as_secs_f64()
}

/// A time such as `90s`, `10min` or `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = match text[end..].trim() {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time in s, min or h, such as 10min".to_owned()),
    };
    let seconds = text[..end].parse::<f64>().map_err(|_| "expected a time such as 10min".to_owned())?;
    match Duration::try_from_secs_f64(seconds * unit) {
        Ok(time) if !time.is_zero() => Ok(time),
        Ok(_) => Err("expected a time of more than 0s".to_owned()),
        Err(_) => Err("expected a time of less than billions of years".to_owned()),
    }
}
