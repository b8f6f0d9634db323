//! `netloom recommend`: the best of several routing schemes for a scenario.

mod question;
mod words;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use netloom_study::recommend::{Criterion, Ranking, rank, scheme_of};
use netloom_study::{Cell, CellFolders, CellReport, PROGRAM, Plan, Results, Running, run_cells};
use serde::Serialize;

use self::question::{Question, folder_name};
use super::study::workers;
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
    let rounds = Rounds { args, started, workers: workers(args.workers) };
    let is_over = || started.elapsed() >= args.budget;
    let mut done: Vec<(Cell, CellReport)> = Vec::new();
    let (mut seeds, mut round) = (FIRST.min(args.seeds), 1);
    let (ranking, results, ended) = loop {
        let folders = CellFolders::open(&cell_folder).map_err(|error| unwritable(&cell_folder, &error))?;
        let reports = rounds.run(&plan, &folders, &stop)?;
        // A round's runs contain those of the same schemes in the round before.
        done.retain(|(cell, _)| !is_among(cell, &left));
        done.extend(plan.cells.iter().cloned().zip(reports));
        let results = Results::new(done.iter().map(|(cell, report)| (cell, report.numbers())));
        let ranking = rank(&results, &criterion, round, &worse);
        left = ranking.left().map(str::to_owned).collect();
        worse = ranking.schemes.iter().filter(|one| one.is_worse).map(|one| one.scheme.clone()).collect();
        let ended = if stop.load(Ordering::Relaxed) && !is_over() {
            Some(Ended::Interrupted)
        } else if left.len() <= 1 && ranking.not_run.is_empty() {
            Some(Ended::Decided)
        } else if is_over() || !rounds.last(&done, &left, seeds) {
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
        runs: done.iter().filter(|(_, report)| report.numbers().is_some()).count(),
        circumstances: question.circumstances,
        wall_s: started.elapsed().as_secs_f64(),
        refused: question.refused,
        failed: done.iter().filter_map(failure).collect(),
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

/// Whether a cell is of one of these schemes.
fn is_among(cell: &Cell, schemes: &[String]) -> bool {
    scheme_of(&cell.point.labels).is_some_and(|scheme| schemes.iter().any(|name| name == scheme))
}

/// A run that failed, and why.
fn failure((cell, report): &(Cell, CellReport)) -> Option<(String, String)> {
    let error = report.result.as_ref()?.as_ref().err()?;
    Some((format!("{} seed={}", cell.point.name(), cell.seed()), error.to_string()))
}

/// How rounds are run.
struct Rounds<'a> {
    args: &'a RecommendArgs,
    started: Instant,
    workers: usize,
}

impl Rounds<'_> {
    /// Runs what a round needs and is not there; gives up when the budget is spent.
    fn run(&self, plan: &Plan, folders: &CellFolders, stop: &AtomicBool) -> Result<Vec<CellReport>, Failure> {
        let progress = StudyProgress::new(plan, self.args.quiet || self.args.json);
        let running = Running { program: PROGRAM, workers: self.workers, shard: None, stop };
        let is_done = AtomicBool::new(false);
        let reports = std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    if self.started.elapsed() >= self.args.budget {
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

    /// Whether the budget lasts for as many seeds again of the schemes that are left, judged by how long theirs took.
    fn last(&self, done: &[(Cell, CellReport)], left: &[String], seeds: u32) -> bool {
        let of_left = done.iter().filter(|(cell, _)| is_among(cell, left));
        let seconds: f64 = of_left.filter_map(|(_, report)| report.wall_s).sum();
        let more = f64::from(seeds.min(self.args.seeds.saturating_sub(seeds))) / f64::from(seeds);
        let needed = more * seconds / self.workers as f64;
        self.started.elapsed().as_secs_f64() + needed <= self.args.budget.as_secs_f64()
    }
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
