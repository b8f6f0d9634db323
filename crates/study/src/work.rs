//! What a cell does: run a scenario, or measure a network.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use netloom_record::{Existing, Outcome, OutcomeWriter, Status};
use netloom_scenario::{Node, Problem, Problems, RunProgress, Scenario, Value, check, prepare, simulate};
use netloom_units::{Bytes, Time};

use crate::analysis::Analysis;
use crate::folder::write_folder;
use crate::numbers::numbers;

/// Numbers by name.
pub type Numbers = BTreeMap<String, f64>;

/// Why some work has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The result cannot be written, e.g. because the disk is full. Other cells will fare no better.
    #[error("{0}")]
    Unwritable(String),
    /// It was stopped before its end.
    #[error("stopped")]
    Stopped,
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// What a cell does. Its document says where every field is written.
#[derive(Clone, Debug)]
pub enum Work {
    /// It runs a scenario.
    Run(Box<Scenario>, Node),
    /// It measures a network.
    Measure(Box<Analysis>, Node),
}

/// What is known of work that can be done.
pub(crate) struct CheckedWork {
    /// The names of its numbers.
    pub(crate) names: Vec<String>,
    /// About how much work it is.
    pub(crate) cost: f64,
    /// Bytes of memory that it needs at least; 0 if that is not known.
    pub(crate) memory: u64,
    /// What is probably a mistake.
    pub(crate) warnings: Vec<String>,
}

/// A complete result.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Finished {
    pub(crate) numbers: Numbers,
    /// What is probably a mistake.
    pub(crate) warnings: Vec<String>,
    /// Seconds that the run took; unknown of measurements.
    pub(crate) wall_s: Option<f64>,
}

/// Files of a measurement's folder.
const ANALYSIS: &str = "analysis.toml";
const QUANTITIES: &str = "quantities.json";

impl Work {
    /// The seed of every random choice.
    pub fn seed(&self) -> u64 {
        match self {
            Work::Run(scenario, _) => scenario.seed,
            Work::Measure(analysis, _) => analysis.seed,
        }
    }

    /// The same work with another seed.
    pub(crate) fn with_seed(&self, seed: u64) -> Self {
        let mut work = self.clone();
        match &mut work {
            Work::Run(scenario, _) => scenario.seed = seed,
            Work::Measure(analysis, _) => analysis.seed = seed,
        }
        work
    }

    /// The work written out, every default filled in.
    pub(crate) fn to_toml(&self) -> Result<String, Problem> {
        match self {
            Work::Run(scenario, _) => scenario.to_toml(),
            Work::Measure(analysis, _) => analysis.to_toml(),
        }
    }

    /// The files that the work reads.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match self {
            Work::Run(scenario, _) => scenario.files(),
            Work::Measure(analysis, _) => analysis.files(),
        }
    }

    /// Finds out before anything runs whether the parts fit each other, which numbers there will be, and about how much work it is (in
    /// bytes that cross the network; the same for all measurements).
    ///
    /// # Errors
    /// What does not fit, placed where it is written.
    pub(crate) fn check(&self) -> Result<CheckedWork, Problems> {
        match self {
            Work::Run(scenario, document) => {
                let checked = check(scenario, document)?;
                let cost = bytes(scenario, checked.hosts, checked.total_messages);
                let names = numbers(&checked.outline).into_keys().collect();
                Ok(CheckedWork { names, cost, memory: checked.memory, warnings: checked.warnings })
            }
            Work::Measure(analysis, document) => {
                analysis.check(document)?;
                let names = analysis.measurement.quantities();
                Ok(CheckedWork { names, cost: 1.0, memory: 0, warnings: Vec::new() })
            }
        }
    }

    /// The complete result in `folder`, if there is one.
    pub(crate) fn finished(&self, folder: &Path) -> Option<Finished> {
        match self {
            Work::Run(..) => {
                let Outcome { summary, performance, .. } = Outcome::read(folder).ok()?;
                (summary.status == Status::Complete).then(|| Finished {
                    numbers: numbers(&summary),
                    wall_s: Some(performance.wall_s),
                    warnings: summary.warnings,
                })
            }
            Work::Measure(..) => {
                let text = std::fs::read_to_string(folder.join(QUANTITIES)).ok()?;
                Some(Finished { numbers: serde_json::from_str(&text).ok()?, ..Finished::default() })
            }
        }
    }

    /// Does the work and writes the result to `folder`, which comes into being only when it is complete. A run ends early when
    /// `stop` becomes true, and tells `news` which share of it is done; a measurement does neither.
    pub(crate) fn perform(
        &self,
        folder: &Path,
        stop: &AtomicBool,
        news: &dyn Fn(f64),
    ) -> Result<(), WorkError> {
        let text = self.to_toml().map_err(|problem| WorkError::Failed(problem.to_string()))?;
        self.perform_as(&text, folder, stop, news)
    }

    /// The same; the result says that `text` was done.
    pub(crate) fn perform_as(
        &self,
        text: &str,
        folder: &Path,
        stop: &AtomicBool,
        news: &dyn Fn(f64),
    ) -> Result<(), WorkError> {
        match self {
            Work::Run(scenario, document) => run(scenario, document, text, folder, stop, news),
            Work::Measure(analysis, _) => measure(analysis, text, folder),
        }
    }
}

/// About how many bytes a run sends: an estimate by which long runs can be told from short ones, no more.
fn bytes(scenario: &Scenario, hosts: u32, messages: Option<u64>) -> f64 {
    let written = Node::from_value("scenario", &scenario.workload.pattern).ok();
    let field = |name: &str| written.as_ref()?.at([name])?.as_str().map(str::to_owned);
    let number = |name: &str| match written.as_ref()?.at([name])?.value {
        Value::Float(number) => Some(number),
        Value::Integer(number) => Some(number as f64),
        _ => None,
    };
    let size = field("size").and_then(|size| size.parse::<Bytes>().ok()).unwrap_or(Bytes(1 << 20));
    let duration = field("duration").and_then(|duration| duration.parse::<Time>().ok());
    match (messages, duration) {
        (Some(messages), _) => messages as f64 * size.0 as f64,
        // Open loops last, at their share of a usual link's rate.
        (None, Some(duration)) => {
            f64::from(hosts) * number("load").unwrap_or(1.0) * duration.as_secs_f64() * 25e9
        }
        (None, None) => f64::from(hosts) * size.0 as f64,
    }
}

fn run(
    scenario: &Scenario,
    document: &Node,
    text: &str,
    folder: &Path,
    stop: &AtomicBool,
    news: &dyn Fn(f64),
) -> Result<(), WorkError> {
    /// A step that can be seen.
    const STEP: f64 = 0.005;
    let unwritable = |error: netloom_record::OutcomeError| WorkError::Unwritable(error.to_string());
    let writer = OutcomeWriter::prepare(folder, Existing::Replace).map_err(unwritable)?;
    let ready = prepare(scenario, document).map_err(|problems| WorkError::Failed(problems.to_string()))?;
    let (messages, until) = (ready.total_messages, scenario.measure.until);
    let mut told = 0.0;
    let observe = |progress: RunProgress| {
        let share = progress.share(messages, until).unwrap_or(0.0);
        if share >= told + STEP {
            told = share;
            news(share);
        }
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let (ran, records) =
        simulate(scenario, ready, 1, observe).map_err(|error| WorkError::Failed(error.to_string()))?;
    writer.write(text, &ran.summary, &records, &ran.performance).map_err(unwritable)?;
    match ran.summary.status {
        Status::Complete => Ok(()),
        Status::Interrupted => {
            // Half a run is no result. Should it stay, its status tells.
            let _ = std::fs::remove_dir_all(folder);
            Err(WorkError::Stopped)
        }
    }
}

fn measure(analysis: &Analysis, text: &str, folder: &Path) -> Result<(), WorkError> {
    let quantities = analysis.take().map_err(WorkError::Failed)?;
    // JSON has no word for what is no number; such a quantity has no value.
    let quantities: Numbers = quantities.into_iter().filter(|(_, value)| value.is_finite()).collect();
    let failed = |error: &dyn std::fmt::Display| WorkError::Failed(error.to_string());
    let json = serde_json::to_string_pretty(&quantities).map_err(|error| failed(&error))?;
    write_folder(folder, &[(ANALYSIS, text.as_bytes()), (QUANTITIES, json.as_bytes())])
        .map_err(|error| WorkError::Unwritable(format!("cannot write {}: {error}", folder.display())))
}
