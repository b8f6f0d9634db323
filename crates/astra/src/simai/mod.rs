//! Training steps as SimAI schedules them: its workload text, its groups, its flows.
//!
//! A [`SimAi`] is what all ranks share, a [`SimAiRank`] is the state machine of one. Source: aliyun/SimAI, `astra-sim-alibabacloud` (`workload/Workload.cc`, `workload/Layer.cc`,
//! `system/Sys.cc` at cef83f9; the flow models `system/MockNcclGroup.cc` and `system/collective/NcclTreeFlowModel.cc` at a920cdc2, the last version in which they are public),
//! and aliyun/aicb, which writes these files.

mod file;
mod flows;
mod rank;
mod report;
mod sequence;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;

use netloom_units::narrow;

use crate::error::JobError;
use crate::members::Members;
use crate::plan::Load;

pub use file::Order;
pub(crate) use file::{Group, Layer, Pass, WorkloadFile};
use flows::Flows;
pub(crate) use rank::recur_message;
pub use rank::{Repetition, SimAiRank};
use sequence::Sequence;

/// Messages of a rank, at most.
const MOST_MESSAGES: u64 = 1 << 31;

/// What of a step is not in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimAiShape {
    /// The server of every rank: ranks of one server are joined by a scale-up network.
    pub servers: Vec<u32>,
    /// How long a flow takes to be handed to the network, in nanoseconds (`AS_SEND_LAT`).
    pub send_latency: u64,
    /// Which of the operations that wait for another one comes first.
    pub order: Order,
}

/// A training step: what all ranks share.
#[derive(Debug)]
pub struct SimAi {
    pub(crate) file: WorkloadFile,
    pub(crate) shape: SimAiShape,
    pub(crate) sequence: Sequence,
    /// By rank, an index of `kinds`.
    kind_of: Box<[u32]>,
    /// The different ranks there are, by how many rings their groups have.
    kinds: Vec<RankKind>,
}

/// Ranks whose groups have the same rings.
#[derive(Debug)]
struct RankKind {
    /// By [`Group`].
    rings: [u32; 4],
    load: Load,
}

impl SimAi {
    /// How many ranks a file is for, as its first line says.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn gpus(path: &Path) -> Result<Option<u32>, JobError> {
        Ok(WorkloadFile::read(path)?.all_gpus)
    }

    /// Reads the step of as many ranks as the shape has servers.
    ///
    /// # Errors
    /// What is wrong with the file, by line; degrees of parallelism that do not divide the ranks.
    pub fn read(path: &Path, shape: SimAiShape) -> Result<Self, JobError> {
        let file = WorkloadFile::read(path)?;
        let ranks = narrow::<u32>(shape.servers.len());
        let fail = |problem: String| JobError::line(path, 1, problem);
        let (tensor, expert) = (file.tensor, file.expert);
        if ranks == 0 || !ranks.is_multiple_of(tensor) {
            return Err(fail(format!(
                "model_parallel_NPU_group: expected a divisor of the {ranks} GPUs, found {tensor}"
            )));
        }
        if !(ranks / tensor).is_multiple_of(expert) {
            let data = ranks / tensor;
            return Err(fail(format!(
                "ep: expected a divisor of the {data} data-parallel ranks, found {expert}"
            )));
        }
        let sequence = Sequence::new(&file);
        let mut step = SimAi { file, shape, sequence, kind_of: Box::default(), kinds: Vec::new() };
        step.find_kinds();
        if let Some(most) =
            step.kinds.iter().map(|kind| kind.load.messages).max().filter(|&most| most >= MOST_MESSAGES)
        {
            return Err(fail(format!(
                "expected at most {MOST_MESSAGES} messages of a rank, as they have numbers, found {most}"
            )));
        }
        Ok(step)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        narrow::<u32>(self.shape.servers.len())
    }

    /// How many messages a rank sends, and how large they are.
    pub fn load(&self, rank: u32) -> Load {
        self.kind(rank).load
    }

    fn kind(&self, rank: u32) -> &RankKind {
        &self.kinds[self.kind_of[rank as usize] as usize]
    }

    /// Whether ranks compute.
    pub fn computes(&self) -> bool {
        let all = |layer: &Layer| layer.passes.iter().any(|pass| pass.compute > 0);
        self.file.layers.iter().any(all)
    }

    /// What is probably a mistake, each in one sentence.
    pub fn notes(&self) -> Vec<String> {
        self.file.notes(self.ranks())
    }

    /// Who is in a group with a rank.
    pub(crate) fn members(&self, group: Group, rank: u32) -> Members {
        let (tensor, expert) = (self.file.tensor, self.file.expert);
        let data = self.ranks() / tensor;
        let (place, within) = (rank / tensor, rank % tensor);
        let (first, stride, count) = match group {
            Group::Tensor => (rank - within, 1, tensor),
            Group::Data => (within, tensor, data),
            Group::Expert => (place / expert * expert * tensor + within, tensor, expert),
            Group::DataOfExperts => (place % expert * tensor + within, tensor * expert, data / expert),
        };
        Members::Strided { first, stride, count }
    }

    /// What a rank sends in an operation; `None` if nothing.
    pub(crate) fn flows(&self, pass: &Pass, rank: u32) -> Option<Flows> {
        let operation = pass.operation?;
        let rings = self.kind(rank).rings[pass.group as usize];
        Flows::new(operation, pass.bytes, self.members(pass.group, rank), rank, rings)
    }

    /// Which ranks have groups with the same rings, and what each sends.
    fn find_kinds(&mut self) {
        let mut known: HashMap<[u32; 4], u32> = HashMap::new();
        let rings = |step: &SimAi, rank| {
            Group::ALL.map(|group| flows::rings(&step.members(group, rank), &step.shape.servers))
        };
        let mut kind_of = Vec::with_capacity(self.shape.servers.len());
        let mut firsts = Vec::new();
        for rank in 0..self.ranks() {
            let rings = rings(self, rank);
            kind_of.push(*known.entry(rings).or_insert_with(|| {
                self.kinds.push(RankKind { rings, load: Load::default() });
                firsts.push(rank);
                narrow::<u32>(firsts.len()) - 1
            }));
        }
        self.kind_of = kind_of.into();
        let loads: Vec<Load> = firsts.into_iter().map(|rank| self.count(rank)).collect();
        for (kind, load) in self.kinds.iter_mut().zip(loads) {
            kind.load = load;
        }
    }

    /// What a rank sends, all told.
    fn count(&self, rank: u32) -> Load {
        let mut load = Load::default();
        for step in self.file.steps() {
            let pass = &self.file.layers[step.layer as usize].passes[step.kind as usize];
            if let Some(flows) = self.flows(pass, rank) {
                load.add(Load { messages: flows.messages(), largest: flows.bytes });
            }
        }
        load
    }
}
