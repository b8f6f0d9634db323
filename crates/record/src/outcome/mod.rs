//! The outcome folder: written as a whole or not at all, and read back.
//!
//! Everything is written to a temporary folder beside the target, synced to disk, and renamed into place. A crash, a
//! full disk or a killed process leaves either the old outcome or the new one under the target's name, never a
//! mixture or a part. (A killed process can leave the temporary folder `.NAME.partial-XXXXXX` behind.)

mod reader;
mod writer;

use std::io;
use std::path::{Path, PathBuf};

pub use reader::Outcome;
pub use writer::{Draft, Existing, OutcomeWriter};

const SCENARIO: &str = "scenario.toml";
const SUMMARY: &str = "summary.json";
const FLOWS: &str = "flows.parquet";
const PARTS: &str = "parts.parquet";
const LINKS: &str = "links.parquet";
const SERIES: &str = "series.parquet";
const FLOW_SERIES: &str = "flow_series.parquet";
const SENDER_SERIES: &str = "sender_series.parquet";
const GAPS: &str = "gaps.parquet";
const SWITCH_GAPS: &str = "switch_gaps.parquet";
const FLOWLETS: &str = "flowlets.parquet";
const WINDOWS: &str = "windows.parquet";
const PACKETS: &str = "packets.parquet";
const LATENCY: &str = "latency.parquet";
const TRACE: &str = "trace.parquet";
const JOBS: &str = "jobs.parquet";
const RANKS: &str = "ranks.parquet";
const COLLECTIVES: &str = "collectives.parquet";
const ACTIVITIES: &str = "activities.parquet";
const OPERATIONS: &str = "operations.parquet";
const PERFORMANCE: &str = "performance.json";
/// Made from an outcome by `netloom report`; it goes with the outcome that it shows.
const REPORT: &str = "report.html";
/// Made from an outcome by `netloom fct`.
const FCT: &str = "fct.txt";
const FILES: [&str; 23] = [
    SCENARIO,
    SUMMARY,
    FLOWS,
    PARTS,
    LINKS,
    SERIES,
    FLOW_SERIES,
    SENDER_SERIES,
    GAPS,
    SWITCH_GAPS,
    FLOWLETS,
    WINDOWS,
    PACKETS,
    LATENCY,
    TRACE,
    JOBS,
    RANKS,
    COLLECTIVES,
    ACTIVITIES,
    OPERATIONS,
    PERFORMANCE,
    REPORT,
    FCT,
];

/// The outcome that a path is inside, if it is inside one: what is written there would make it no outcome any more.
pub fn outcome_around(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let is_outcome = |folder: &&Path| [SUMMARY, SCENARIO].iter().all(|file| folder.join(file).is_file());
    path.ancestors().skip(1).find(is_outcome).map(Path::to_owned)
}

/// Why an outcome cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum OutcomeError {
    /// The folder holds an outcome, and the caller did not ask to replace it.
    #[error("{} already holds an outcome", .0.display())]
    Exists(PathBuf),
    /// The folder holds something that is no outcome, which is never replaced.
    #[error("{} contains `{found}`, which is not part of an outcome; choose another folder", dir.display())]
    Foreign {
        /// The folder.
        dir: PathBuf,
        /// The first thing in it, by name, that does not belong there.
        found: String,
    },
    /// The path names something that is no folder of its own, such as a file or the working directory.
    #[error("{} is {is}; an outcome needs a folder of its own", path.display())]
    NoFolder {
        /// The path.
        path: PathBuf,
        /// What it is.
        is: &'static str,
    },
    /// The path is inside an outcome, which holds nothing but what belongs to it.
    #[error("{} is inside the outcome {}; choose a folder next to it", path.display(), outcome.display())]
    Inside {
        /// The path.
        path: PathBuf,
        /// The outcome.
        outcome: PathBuf,
    },
    /// The system refused to write.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is missing or cannot be read.
    #[error("no complete outcome in {}: cannot read {file}: {source}", dir.display())]
    Read {
        /// The folder.
        dir: PathBuf,
        /// The file in it.
        file: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} is damaged or of another version of netloom: {problem}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}
