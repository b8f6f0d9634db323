//! The system file: how ranks split, order and delay collective operations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use netloom_units::memory;
use netloom_units::names::{shorten, suggest};
use serde_json::Value;

use crate::error::JobError;
use crate::series::Series;

/// A collective operation that sends messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Operation {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
}

impl Operation {
    pub(crate) const ALL: [Operation; 4] =
        [Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter, Operation::AllToAll];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::AllReduce => "all-reduce",
            Operation::AllGather => "all-gather",
            Operation::ReduceScatter => "reduce-scatter",
            Operation::AllToAll => "all-to-all",
        }
    }
}

/// How an operation is done in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// Around a ring; `one`: of all ranks, whatever the dimensions.
    Ring { one: bool },
    /// Every pair, with at most this many messages of a rank at a time.
    Direct { one: bool, window: Option<u32> },
    /// Halving and doubling distances.
    HalvingDoubling { one: bool },
    /// Up and down a binary tree; the next operation takes the other tree.
    DoubleBinaryTree,
}

impl Algorithm {
    const NAMES: [&str; 7] = [
        "ring",
        "oneRing",
        "direct",
        "oneDirect",
        "halvingDoubling",
        "oneHalvingDoubling",
        "doubleBinaryTree",
    ];

    fn read(text: &str) -> Option<Self> {
        let window = |digits: &str| match digits {
            "" | "-1" => Some(None),
            digits => digits.parse().ok().filter(|&window| window > 0).map(Some),
        };
        Some(match text {
            "ring" => Algorithm::Ring { one: false },
            "oneRing" => Algorithm::Ring { one: true },
            "halvingDoubling" => Algorithm::HalvingDoubling { one: false },
            "oneHalvingDoubling" => Algorithm::HalvingDoubling { one: true },
            "doubleBinaryTree" => Algorithm::DoubleBinaryTree,
            _ => match (text.strip_prefix("direct"), text.strip_prefix("oneDirect")) {
                (Some(digits), _) => Algorithm::Direct { one: false, window: window(digits)? },
                (_, Some(digits)) => Algorithm::Direct { one: true, window: window(digits)? },
                _ => return None,
            },
        })
    }

    /// Whether it takes all ranks as one dimension.
    pub(crate) fn is_one(self) -> bool {
        matches!(
            self,
            Algorithm::Ring { one: true }
                | Algorithm::Direct { one: true, .. }
                | Algorithm::HalvingDoubling { one: true }
        )
    }
}

/// Which of the operations that wait for a dimension goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Lifo,
    Fifo,
    Explicit,
}

/// The system file.
#[derive(Clone, Debug)]
pub(crate) struct System {
    pub(crate) file: PathBuf,
    pub(crate) policy: Policy,
    /// From an arrival to what it causes, in nanoseconds.
    pub(crate) endpoint_delay: u64,
    pub(crate) active_chunks: u32,
    /// Into how many chunks an operation is split; 0 where the file does not say.
    pub(crate) splits: u64,
    /// Whether an all-reduce over several dimensions is a reduce-scatter in all but the last, an all-reduce there and all-gathers in reverse order.
    pub(crate) is_bandwidth_aware: bool,
    /// Bytes per second; 0 where the file does not say.
    pub(crate) memory_bandwidth: f64,
    /// Operations per second.
    pub(crate) peak: f64,
    pub(crate) has_roofline: bool,
    /// Whether all nodes take their duration, and nothing is sent.
    pub(crate) replays: bool,
    algorithms: BTreeMap<Operation, Vec<Algorithm>>,
    /// Execution traces in the place of an algorithm: prefixes of files.
    custom: BTreeMap<Operation, PathBuf>,
    custom_nodes: BTreeMap<u64, PathBuf>,
    /// The file that says so.
    custom_nodes_file: Option<PathBuf>,
}

/// How a node's operation is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way<'a> {
    /// By the algorithms of the dimensions.
    Native,
    /// Execution traces with this prefix.
    Custom(&'a Path),
}

/// Fields that ASTRA-sim does not read, or that change what it prints only: they are accepted, as all its examples have some.
const WITHOUT_EFFECT: [&str; 7] = [
    "boost-mode",
    "trace-enabled",
    "track-local-mem",
    "local-mem-trace-filename",
    "local-reduction-delay",
    "intra-dimension-scheduling",
    "inter-dimension-scheduling",
];

/// Parameters of the shared memory bus, which is refused.
const OF_SHARED_BUS: [&str; 4] = ["L", "o", "g", "G"];

/// Memory that a JSON file takes, times its size.
pub(crate) const JSON_TIMES: u64 = 16;

/// Reads an object of JSON.
pub(crate) fn read_object(file: &Path, of: &str) -> Result<serde_json::Map<String, Value>, JobError> {
    let text = memory::read_text(file, JSON_TIMES).map_err(JobError::read(file))?;
    serde_json::from_str(&text)
        .map_err(|error| JobError::file(file, format!("expected a JSON object of {of}: {error}")))
}

/// The fields of the file while they are read.
struct Fields<'a> {
    file: &'a Path,
    table: serde_json::Map<String, Value>,
    known: Vec<String>,
}

impl Fields<'_> {
    fn fail(&self, name: &str, expected: &str, found: &Value) -> JobError {
        let found = found.to_string();
        JobError::file(self.file, format!("{name}: expected {expected}, found {}", shorten(&found)))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.known.push(name.to_owned());
        self.table.remove(name)
    }

    /// A number from 0 on.
    fn number(&mut self, name: &str) -> Result<Option<f64>, JobError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_f64().filter(|number| (0.0..1e18).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.fail(name, "a number from 0 on", &value)),
        }
    }

    fn whole(&mut self, name: &str, least: u64, most: u64) -> Result<Option<u64>, JobError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_u64().filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.fail(name, &format!("a whole number from {least} to {most}"), &value)),
        }
    }

    /// 0 or 1.
    fn flag(&mut self, name: &str) -> Result<bool, JobError> {
        let Some(value) = self.take(name) else { return Ok(false) };
        match value.as_f64().map(|number| number != 0.0).or(value.as_bool()) {
            Some(flag) => Ok(flag),
            None => Err(self.fail(name, "0 or 1", &value)),
        }
    }

    fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, JobError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_str().and_then(|found| words.iter().find(|(word, _)| *word == found)) {
            Some(&(_, meaning)) => Ok(Some(meaning)),
            None => {
                let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                Err(self.fail(name, &words.join(" or "), &value))
            }
        }
    }

    /// A list of words.
    fn words(&mut self, name: &str, expected: &str) -> Result<Option<Vec<String>>, JobError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let word = |value: &Value| value.as_str().map(str::to_owned);
        match value.as_array().and_then(|list| list.iter().map(word).collect()) {
            Some(words) => Ok(Some(words)),
            None => Err(self.fail(name, expected, &value)),
        }
    }
}

impl System {
    /// Reads the file.
    pub(crate) fn read(file: &Path) -> Result<Self, JobError> {
        let table = read_object(file, "the system")?;
        let mut fields = Fields { file, table, known: Vec::new() };
        let policies = [("LIFO", Policy::Lifo), ("FIFO", Policy::Fifo), ("EXPLICIT", Policy::Explicit)];
        let policy = fields.word("scheduling-policy", &policies)?.unwrap_or(Policy::Lifo);
        let optimisations = [("baseline", false), ("localBWAware", true)];
        let is_bandwidth_aware = fields.word("collective-optimization", &optimisations)?.unwrap_or(false);
        if fields.flag("model-shared-bus")? {
            let problem = "model-shared-bus: expected 0: a shared memory bus is not simulated";
            return Err(JobError::file(file, problem));
        }
        let system = System {
            file: file.to_owned(),
            policy,
            endpoint_delay: fields.number("endpoint-delay")?.map_or(10, floor),
            active_chunks: fields.whole("active-chunks-per-dimension", 1, 1 << 30)?.map_or(1, small),
            splits: fields.whole("preferred-dataset-splits", 1, 1 << 16)?.unwrap_or(0),
            is_bandwidth_aware,
            memory_bandwidth: fields.number("local-mem-bw")?.unwrap_or(0.0) * 1e9,
            peak: fields.number("peak-perf")?.unwrap_or(0.0) * 1e12,
            has_roofline: fields.flag("roofline-enabled")?,
            replays: fields.flag("replay-only")?,
            algorithms: read_algorithms(&mut fields)?,
            custom: read_custom(&mut fields)?,
            custom_nodes: BTreeMap::new(),
            custom_nodes_file: custom_nodes_file(&mut fields)?,
        };
        let without_effect: Vec<&str> = WITHOUT_EFFECT.into_iter().chain(OF_SHARED_BUS).collect();
        let known = || fields.known.iter().map(String::as_str);
        let unknown = fields.table.keys().find(|name| !without_effect.contains(&name.as_str()));
        if let Some(name) = unknown {
            let advice = suggest(name, known().chain(without_effect.iter().copied()));
            let problem = format!("unknown field `{}` ({advice})", shorten(name));
            return Err(JobError::file(file, problem));
        }
        let custom_nodes =
            system.custom_nodes_file.as_deref().map(|list| read_custom_nodes(file, list)).transpose()?;
        Ok(System { custom_nodes: custom_nodes.unwrap_or_default(), ..system })
    }

    /// How the operation of a node is done.
    pub(crate) fn way(&self, operation: Operation, node: u64) -> Option<Way<'_>> {
        if let Some(prefix) = self.custom_nodes.get(&node).or_else(|| self.custom.get(&operation)) {
            return Some(Way::Custom(prefix));
        }
        self.native(operation).map(|_| Way::Native)
    }

    /// The algorithms of an operation, by dimension.
    pub(crate) fn native(&self, operation: Operation) -> Option<&[Algorithm]> {
        self.algorithms.get(&operation).map(Vec::as_slice)
    }

    /// Files that it names.
    pub(crate) fn named_files(&self) -> Option<PathBuf> {
        self.custom_nodes_file.clone()
    }

    /// The prefixes of all execution traces that take the place of an algorithm.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = &Path> {
        self.custom.values().chain(self.custom_nodes.values()).map(PathBuf::as_path)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 on, below 10^18")]
fn floor(number: f64) -> u64 {
    number as u64
}

#[expect(clippy::cast_possible_truncation, reason = "at most 2^30")]
fn small(number: u64) -> u32 {
    number as u32
}

fn read_algorithms(fields: &mut Fields) -> Result<BTreeMap<Operation, Vec<Algorithm>>, JobError> {
    let mut all = BTreeMap::new();
    for operation in Operation::ALL {
        let name = format!("{}-implementation", operation.name());
        let expected = "a list of algorithms, one for each dimension, such as [\"ring\"]";
        let Some(words) = fields.words(&name, expected)? else { continue };
        let mut algorithms = Vec::with_capacity(words.len());
        for word in &words {
            let algorithm = Algorithm::read(word).ok_or_else(|| {
                let advice = suggest(word, Algorithm::NAMES);
                JobError::file(
                    fields.file,
                    format!("{name}: there is no algorithm `{}` ({advice})", shorten(word)),
                )
            })?;
            let is_one_way = matches!(algorithm, Algorithm::HalvingDoubling { .. });
            if is_one_way && operation == Operation::AllToAll {
                let problem = format!("{name}: expected ring, direct or a tree: `{word}` has no all-to-all");
                return Err(JobError::file(fields.file, problem));
            }
            algorithms.push(algorithm);
        }
        if algorithms.is_empty() {
            return Err(JobError::file(fields.file, format!("{name}: expected {expected}, found none")));
        }
        all.insert(operation, algorithms);
    }
    Ok(all)
}

fn read_custom(fields: &mut Fields) -> Result<BTreeMap<Operation, PathBuf>, JobError> {
    let mut all = BTreeMap::new();
    for operation in Operation::ALL {
        let name = format!("{}-implementation-custom", operation.name());
        let expected = "a list of one prefix of execution traces, which cover all dimensions";
        let Some(words) = fields.words(&name, expected)? else { continue };
        let [prefix] = &words[..] else {
            return Err(JobError::file(
                fields.file,
                format!("{name}: expected {expected}, found {}", words.len()),
            ));
        };
        all.insert(operation, found_from(fields.file, prefix));
    }
    Ok(all)
}

fn custom_nodes_file(fields: &mut Fields) -> Result<Option<PathBuf>, JobError> {
    let name = "per-node-custom-implementation";
    let Some(value) = fields.take(name) else { return Ok(None) };
    match value.as_str() {
        Some(list) => Ok(Some(found_from(fields.file, list))),
        None => Err(fields.fail(name, "the name of a YAML file of prefixes by node", &value)),
    }
}

fn read_custom_nodes(system: &Path, list: &Path) -> Result<BTreeMap<u64, PathBuf>, JobError> {
    let text = memory::read_text(list, JSON_TIMES).map_err(JobError::read(list))?;
    let prefixes: BTreeMap<u64, String> = serde_saphyr::from_str(&text).map_err(|error| {
        let problem = format!("expected lines `NODE: PREFIX`: {}", error.without_snippet());
        JobError::file(list, problem)
    })?;
    Ok(prefixes.into_iter().map(|(node, prefix)| (node, found_from(system, &prefix))).collect())
}

/// A file, or files with this prefix, that the system file names. ASTRA-sim looks from where it was started, so a relative name starts from the folder of the
/// system file or from one of those above it: the first in which there is one.
fn found_from(system: &Path, name: &str) -> PathBuf {
    let folders = || system.ancestors().skip(1);
    let is_there = |path: &PathBuf| path.exists() || Series::Prefix(path.clone()).file(0).exists();
    let found = folders().map(|folder| folder.join(name)).find(is_there);
    found.unwrap_or_else(|| folders().next().unwrap_or(Path::new("")).join(name))
}
