//! SimAI's workload text, as AICB writes it.
//!
//! Line 1 has the policy and the degrees of parallelism, line 2 the number of layers, and each further line a layer: its name, a dependency that has no effect, and for the forward pass,
//! the gradients of its input and those of its weights each a time to compute (nanoseconds), a collective operation and its bytes, and a time that passes after each of its operations.

use std::path::{Path, PathBuf};
use std::str::SplitWhitespace;

use netloom_units::memory::Meter;
use netloom_units::names::{shorten, suggest};
use netloom_units::narrow;

use crate::error::JobError;
use crate::series::MOST_RANKS;
use crate::system::Operation;
use crate::trace::LONGEST;

/// Which of the operations of a rank that wait for another one comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The newest, as in SimAI.
    #[default]
    NewestFirst,
    /// The oldest.
    OldestFirst,
}

/// A workload text.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadFile {
    pub(crate) path: PathBuf,
    pub(crate) tensor: u32,
    pub(crate) expert: u32,
    pub(crate) pipeline: u32,
    pub(crate) virtual_stages: u32,
    pub(crate) micro_batches: u32,
    pub(crate) all_gpus: Option<u32>,
    pub(crate) layers: Box<[Layer]>,
    /// Names of operations that SimAI passes over, with a line of the first.
    passed_over: Vec<(String, usize)>,
}

/// A layer.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) name: Box<str>,
    /// By [`PassKind`].
    pub(crate) passes: [Pass; 3],
    /// Nanoseconds that pass after each of its operations.
    pub(crate) update: u64,
    /// The layer from which on the forward pass is done again before its backward pass.
    pub(crate) again_from: Option<u32>,
}

/// Computation and then communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Nanoseconds.
    pub(crate) compute: u64,
    pub(crate) operation: Option<Operation>,
    pub(crate) group: Group,
    pub(crate) bytes: u64,
}

/// A pass of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassKind {
    Forward,
    Input,
    Weight,
}

/// Who takes part in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Tensor,
    Data,
    Expert,
    /// Those that have the same experts.
    DataOfExperts,
}

impl Group {
    pub(crate) const ALL: [Group; 4] = [Group::Tensor, Group::Data, Group::Expert, Group::DataOfExperts];
}

/// What a rank does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) layer: u32,
    pub(crate) kind: PassKind,
}

/// Fewest bytes of an operation of the forward pass that has any.
const LEAST_FORWARD: u64 = 4096;

/// Names that AICB's files have and SimAI sends nothing for.
const PASSED_OVER: [&str; 2] = ["BROADCAST", "BROADCAST_EP"];

impl WorkloadFile {
    pub(crate) fn read(path: &Path) -> Result<Self, JobError> {
        let text = std::fs::read_to_string(path).map_err(JobError::read(path))?;
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let fail = |line: usize, problem: String| JobError::line(path, line as u64, problem);
        let (first, header) =
            lines.next().ok_or_else(|| fail(1, "expected SimAI's policy, found nothing".into()))?;
        let header = Header::parse(header).map_err(|problem| fail(first, problem))?;
        let (second, count) =
            lines.next().ok_or_else(|| fail(2, "expected the number of layers, found the end".into()))?;
        let count: u32 = count.trim().parse().ok().filter(|&count| count > 0).ok_or_else(|| {
            fail(second, format!("expected the number of layers, from 1 on, found \"{}\"", count.trim()))
        })?;
        let mut memory = Meter::default();
        let mut layers = Vec::new();
        let mut passed_over: Vec<(String, usize)> = Vec::new();
        for index in 0..count {
            let (number, line) = lines.next().ok_or_else(|| {
                fail(
                    text.lines().count().max(1),
                    format!("expected {count} layers, as line {second} says, found {index}"),
                )
            })?;
            memory
                .take((size_of::<Layer>() + line.len()) as u64)
                .map_err(|error| fail(number, format!("too many layers: {error}")))?;
            let mut layer =
                Layer::parse(line, number, &mut passed_over).map_err(|problem| fail(number, problem))?;
            let forward = &mut layer.passes[PassKind::Forward as usize];
            if header.repeats_forward && forward.bytes > 0 {
                forward.bytes = forward.bytes.max(LEAST_FORWARD);
            }
            layers.push(layer);
        }
        if let Some((number, _)) = lines.next() {
            return Err(fail(
                number,
                format!("expected the end after {count} layers, as line {second} says"),
            ));
        }
        header.mark(&mut layers).map_err(|problem| fail(first, problem))?;
        Ok(WorkloadFile {
            path: path.to_owned(),
            tensor: header.tensor,
            expert: header.expert,
            pipeline: header.pipeline,
            virtual_stages: header.virtual_stages,
            micro_batches: header.micro_batches,
            all_gpus: header.all_gpus,
            layers: layers.into(),
            passed_over,
        })
    }

    /// What is probably a mistake.
    pub(crate) fn notes(&self, ranks: u32) -> Vec<String> {
        let file = self.path.display();
        let mut notes = Vec::new();
        if self.pipeline > 1 {
            notes.push(format!(
                "{file}: pp: {} stages: SimAI's packets know no pipeline, so all {ranks} GPUs do all layers, {} of them data-parallel",
                self.pipeline,
                ranks / self.tensor
            ));
        }
        for (name, line) in &self.passed_over {
            notes.push(format!("{file}:{line}: {name}: SimAI sends nothing for it"));
        }
        let inner = [PassKind::Forward, PassKind::Input];
        let communicates =
            |layer: &Layer| inner.iter().any(|&kind| layer.passes[kind as usize].operation.is_some());
        if self.tensor == 1 && self.layers.iter().any(communicates) {
            notes.push(format!("{file}: model_parallel_NPU_group: 1: SimAI would leave out all operations of forward passes and input gradients"));
        }
        notes
    }

    /// What a rank does, one after the other.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        let mut next = Some(Step { layer: 0, kind: PassKind::Forward });
        let mut again = None;
        std::iter::from_fn(move || {
            let step = next?;
            next = self.after(step, &mut again);
            Some(step)
        })
    }

    /// What comes after a step; `again` is the layer whose forward pass is done again up to there, meanwhile.
    pub(crate) fn after(&self, Step { layer, kind }: Step, again: &mut Option<u32>) -> Option<Step> {
        let last = narrow::<u32>(self.layers.len()) - 1;
        if kind == PassKind::Input {
            return Some(Step { layer, kind: PassKind::Weight });
        }
        if kind == PassKind::Forward {
            match *again {
                Some(until) if layer + 1 == until => {
                    *again = None;
                    return Some(Step { layer: until, kind: PassKind::Input });
                }
                None if layer == last => {}
                _ => return Some(Step { layer: layer + 1, kind }),
            }
        }
        let layer = if kind == PassKind::Weight { layer.checked_sub(1)? } else { layer };
        // Where the forward pass before it is done again, that comes first.
        Some(match self.layers[layer as usize].again_from {
            Some(from) => {
                *again = Some(layer);
                Step { layer: from, kind: PassKind::Forward }
            }
            None => Step { layer, kind: PassKind::Input },
        })
    }
}

/// The first line.
struct Header {
    repeats_forward: bool,
    tensor: u32,
    expert: u32,
    pipeline: u32,
    virtual_stages: u32,
    micro_batches: u32,
    all_gpus: Option<u32>,
    checkpoints: Vec<u32>,
    initiates: Vec<u32>,
}

impl Header {
    const POLICIES: [&str; 2] = ["HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORMER"];
    const KEYS: [&str; 10] = [
        "model_parallel_NPU_group:",
        "ep:",
        "pp:",
        "vpp:",
        "ga:",
        "all_gpus:",
        "checkpoints:",
        "checkpoint_initiates:",
        "pp_comm:",
        "pp_comm",
    ];

    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let policy = words.next().unwrap_or_default();
        if !Header::POLICIES.contains(&policy) {
            let [first, second] = Header::POLICIES;
            let found = shorten(policy);
            return Err(format!(
                "expected the policy {first} or {second}, for which SimAI makes groups, found \"{found}\""
            ));
        }
        let mut header = Header {
            repeats_forward: policy == Header::POLICIES[0],
            tensor: 1,
            expert: 1,
            pipeline: 1,
            virtual_stages: 1,
            micro_batches: 1,
            all_gpus: None,
            checkpoints: Vec::new(),
            initiates: Vec::new(),
        };
        let mut known = Vec::new();
        while let Some(key) = words.next() {
            // AICB writes `pp_comm` with and without a colon.
            let name = key.strip_suffix(':').unwrap_or(key);
            if known.contains(&name) {
                return Err(format!("{name}: expected it once, found it a second time"));
            }
            known.push(name);
            let number = |words: &mut SplitWhitespace<'_>, least: u32, what: &str| -> Result<u32, String> {
                let word = words.next().unwrap_or("the end of the line");
                let value: Option<u32> = word.parse().ok().filter(|&value| value >= least);
                value.ok_or_else(|| format!("{key} expected {what}, from {least} on, found {word}"))
            };
            match key {
                "model_parallel_NPU_group:" => {
                    header.tensor = number(&mut words, 1, "a number of tensor-parallel GPUs")?;
                }
                "ep:" => header.expert = number(&mut words, 1, "a number of expert-parallel GPUs")?,
                "pp:" => header.pipeline = number(&mut words, 1, "a number of pipeline stages")?,
                "vpp:" => header.virtual_stages = number(&mut words, 1, "a number of virtual stages")?,
                "ga:" => header.micro_batches = number(&mut words, 1, "a number of micro-batches")?,
                "all_gpus:" => {
                    header.all_gpus =
                        Some(number(&mut words, 1, "a number of GPUs")?).filter(|&gpus| gpus <= MOST_RANKS);
                    if header.all_gpus.is_none() {
                        return Err(format!("{key} expected at most {MOST_RANKS} GPUs"));
                    }
                }
                // Messages between stages are not simulated; AICB writes their bytes with a decimal point.
                "pp_comm:" | "pp_comm" => {
                    let word = words.next().unwrap_or("the end of the line");
                    if !word.parse::<f64>().is_ok_and(|bytes| bytes >= 0.0) {
                        return Err(format!("{key} expected bytes, found {}", shorten(word)));
                    }
                }
                "checkpoints:" | "checkpoint_initiates:" => {
                    let count = number(&mut words, 0, "a number of layers")?;
                    let mut layers = Vec::new();
                    for _ in 0..count {
                        layers.push(number(&mut words, 0, "the number of a layer")?);
                    }
                    *(if key == "checkpoints:" { &mut header.checkpoints } else { &mut header.initiates }) =
                        layers;
                }
                other => {
                    let (found, advice) = (shorten(other), suggest(other, Header::KEYS));
                    return Err(format!("expected a degree of parallelism, found \"{found}\"; {advice}"));
                }
            }
        }
        if !known.contains(&"model_parallel_NPU_group") {
            return Err("expected model_parallel_NPU_group: with the number of tensor-parallel GPUs".into());
        }
        Ok(header)
    }

    /// Says at which layers the forward pass is done again, and from where on.
    fn mark(&self, layers: &mut [Layer]) -> Result<(), String> {
        let has_checkpoints = !self.initiates.is_empty() || !self.checkpoints.is_empty();
        if has_checkpoints && !self.repeats_forward {
            return Err(format!("expected the policy {} with checkpoints", Header::POLICIES[0]));
        }
        let last = layers.len() - 1;
        for (key, named) in [("checkpoints:", &self.checkpoints), ("checkpoint_initiates:", &self.initiates)]
        {
            if let Some(layer) = named.iter().find(|&&layer| layer as usize > last) {
                return Err(format!("{key} expected layers 0 to {last}, found {layer}"));
            }
        }
        for &layer in &self.initiates {
            let from = self.checkpoints.iter().copied().filter(|&checkpoint| checkpoint <= layer).max();
            let from = from.filter(|&from| {
                from < layer && !self.initiates.iter().any(|&other| from < other && other < layer)
            });
            let from = from.ok_or_else(|| {
                format!("checkpoint_initiates: {layer}: expected a checkpoint before this layer and after the one before it that initiates")
            })?;
            layers[layer as usize].again_from = Some(from);
        }
        Ok(())
    }
}

impl Layer {
    /// Names of operations, longest first, so that none is the beginning of one after it.
    const OPERATIONS: [(&str, Operation); 4] = [
        ("REDUCESCATTER", Operation::ReduceScatter),
        ("ALLREDUCE", Operation::AllReduce),
        ("ALLGATHER", Operation::AllGather),
        ("ALLTOALL", Operation::AllToAll),
    ];

    fn parse(line: &str, number: usize, passed_over: &mut Vec<(String, usize)>) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let dependency = next(&mut words, "a dependency (-1)")?;
        if dependency.parse::<i64>().is_err() {
            return Err(format!("expected a dependency (-1), found \"{dependency}\""));
        }
        let mut pass = |what: &str, own: Group| -> Result<Pass, String> {
            let compute = time(&mut words, &format!("nanoseconds of computation of the {what}"))?;
            let word = next(&mut words, &format!("an operation of the {what}"))?;
            let (operation, group) = match word {
                "NONE" => (None, own),
                word if PASSED_OVER.contains(&word) => {
                    if !passed_over.iter().any(|(name, _)| name == word) {
                        passed_over.push((word.to_owned(), number));
                    }
                    (None, own)
                }
                word => operation(word, own)?,
            };
            let bytes = next(&mut words, &format!("bytes of the {what}"))?;
            let bytes =
                bytes.parse().map_err(|_| format!("expected bytes of the {what}, found \"{bytes}\""))?;
            Ok(Pass { compute, operation, group, bytes })
        };
        let forward = pass("forward pass", Group::Tensor)?;
        let input = pass("input gradients", Group::Tensor)?;
        let weight = pass("weight gradients", Group::Data)?;
        let update = time(&mut words, "nanoseconds after each operation")?;
        if let Some(word) = words.next() {
            return Err(format!("expected 12 columns, found \"{word}\" behind them"));
        }
        Ok(Layer { name: name.into(), passes: [forward, input, weight], update, again_from: None })
    }
}

fn next<'a>(words: &mut SplitWhitespace<'a>, what: &str) -> Result<&'a str, String> {
    words.next().ok_or_else(|| format!("expected 12 columns, among them {what}, found the end of the line"))
}

fn time(words: &mut SplitWhitespace<'_>, what: &str) -> Result<u64, String> {
    let word = next(words, what)?;
    let time: Option<u64> = word.parse().ok().filter(|&time| time <= LONGEST);
    time.ok_or_else(|| format!("expected {what}, at most {LONGEST}, found \"{word}\""))
}

/// An operation and its group, from a name such as `ALLGATHER_DP_EP`.
fn operation(word: &str, own: Group) -> Result<(Option<Operation>, Group), String> {
    let found =
        Layer::OPERATIONS.iter().find_map(|&(name, operation)| Some((operation, word.strip_prefix(name)?)));
    let group = found.and_then(|(operation, group)| {
        let group = match group {
            "" => own,
            "_EP" => Group::Expert,
            "_DP_EP" => Group::DataOfExperts,
            _ => return None,
        };
        Some((Some(operation), group))
    });
    group.ok_or_else(|| {
        let names = Layer::OPERATIONS
            .iter()
            .flat_map(|(name, _)| ["", "_EP", "_DP_EP"].map(|group| format!("{name}{group}")));
        let names: Vec<String> = names.chain(["NONE".to_owned()]).collect();
        let (found, advice) = (shorten(word), suggest(word, names.iter().map(String::as_str)));
        format!("expected a collective operation, found \"{found}\"; {advice}")
    })
}
