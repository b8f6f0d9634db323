//! The phases of a collective operation: one per logical dimension, or two.

use netloom_units::narrow;

use crate::groups::EVERYONE;
use crate::job::Job;
use crate::members::Members;
use crate::steps::{Phase, Shape, sizes};
use crate::system::{Algorithm, Operation, Way};
use crate::trace::Node;

/// One logical dimension of a rank.
#[derive(Clone, Debug)]
pub(crate) struct Dimension {
    pub(crate) algorithm: Algorithm,
    pub(crate) members: Members,
    /// Place of the rank among the members.
    pub(crate) place: u32,
}

/// The dimensions in which an operation is done.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) dimensions: Vec<Dimension>,
    /// Whether it is that of a group of some ranks.
    pub(crate) is_group: bool,
}

/// What a phase does.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Steps(Phase),
    /// An all-reduce of this many bytes up and down a tree.
    Tree {
        bytes: u64,
    },
}

/// A phase with its place among the dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) work: Work,
    pub(crate) dimension: usize,
    pub(crate) part: Part,
}

/// From which of the queues of a dimension a phase is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// From all of them.
    Any,
    /// Of phases up to the all-reduce of the last dimension: from the first half.
    Forward,
    /// Of the all-gathers after it: from the second half.
    Reverse,
}

/// How an operation is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl Chunks {
    /// Every chunk has the full size, the last one too. A chunk has a byte for every rank at least, but for all-gathers, of which it has one.
    pub(crate) fn new(operation: Operation, bytes: u64, splits: u64, ranks: u32) -> Self {
        let splits = splits.max(1);
        let chunk = bytes / splits;
        let ranks = u64::from(ranks);
        if operation != Operation::AllGather && ranks > chunk {
            return Chunks { count: splits, bytes: ranks };
        }
        let chunk = chunk.max(1);
        Chunks { count: bytes.div_ceil(chunk), bytes: chunk }
    }
}

impl Layout {
    /// The dimensions for a rank of an operation of everyone.
    pub(crate) fn of_everyone(job: &Job, operation: Operation, rank: u32) -> Self {
        let algorithms = job.system.native(operation).unwrap_or_default();
        let mut dimensions = Vec::with_capacity(algorithms.len());
        let mut stride = 1;
        for (&algorithm, &count) in algorithms.iter().zip(&job.dimensions) {
            let members = match algorithm.is_one() {
                true => Members::Strided { first: 0, stride: 1, count: job.ranks() },
                false => {
                    let place = rank / stride % count;
                    Members::Strided { first: rank - place * stride, stride, count }
                }
            };
            let place = members.place(rank);
            dimensions.push(Dimension { algorithm, members, place });
            if algorithm.is_one() {
                break;
            }
            stride *= count;
        }
        Layout { dimensions, is_group: false }
    }

    /// The one dimension of a group of some of the ranks.
    pub(crate) fn of_group(job: &Job, operation: Operation, group: u32, rank: u32) -> Self {
        let algorithms = job.system.native(operation).unwrap_or_default();
        let algorithm = match algorithms {
            [algorithm] => *algorithm,
            _ => Algorithm::Ring { one: false },
        };
        let members = Members::Listed(job.groups[group as usize].ranks.clone());
        let place = members.place(rank);
        Layout { dimensions: vec![Dimension { algorithm, members, place }], is_group: true }
    }

    /// The phases of a chunk.
    pub(crate) fn phases(&self, job: &Job, operation: Operation, chunk: u64, involved: u32) -> Vec<Planned> {
        let is_active = |&dimension: &usize| {
            self.dimensions[dimension].members.count() > 1 && involved >> dimension.min(31) & 1 == 1
        };
        let mut active: Vec<usize> = (0..self.dimensions.len()).filter(is_active).collect();
        let mut bytes = chunk;
        let mut planned = Vec::new();
        let mut add = |dimension: usize, operation, part| {
            let (work, left) = self.phase(dimension, operation, bytes);
            bytes = left;
            planned.push(Planned { work, dimension, part });
        };
        if operation == Operation::AllReduce && job.system.is_bandwidth_aware {
            let Some((&last, before)) = active.split_last() else { return planned };
            for &dimension in before {
                add(dimension, Operation::ReduceScatter, Part::Forward);
            }
            add(last, Operation::AllReduce, Part::Forward);
            for &dimension in before.iter().rev() {
                add(dimension, Operation::AllGather, Part::Reverse);
            }
        } else {
            if operation == Operation::AllGather {
                active.reverse();
            }
            for dimension in active {
                add(dimension, operation, Part::Any);
            }
        }
        planned
    }

    /// A phase, and the bytes that a rank has after it.
    fn phase(&self, dimension: usize, operation: Operation, bytes: u64) -> (Work, u64) {
        let Dimension { algorithm, members, .. } = &self.dimensions[dimension];
        let count = members.count();
        let shape = match *algorithm {
            // Whatever is asked for, a tree reduces and broadcasts.
            Algorithm::DoubleBinaryTree => return (Work::Tree { bytes }, bytes),
            Algorithm::Ring { .. } => Shape::Ring,
            Algorithm::Direct { window, .. } => Shape::Direct(window.unwrap_or(count).min(count - 1)),
            Algorithm::HalvingDoubling { .. } => Shape::Halving,
        };
        let left = match operation {
            Operation::AllReduce | Operation::AllToAll => bytes,
            Operation::AllGather => bytes.saturating_mul(count.into()),
            Operation::ReduceScatter => bytes / u64::from(count),
        };
        let phase = Phase { operation, shape, bytes, is_clockwise: true, is_group: self.is_group };
        (Work::Steps(phase), left)
    }
}

/// Messages of a rank, and the largest of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many.
    pub messages: u64,
    /// Bytes of the largest one.
    pub largest: u64,
}

impl Load {
    pub(crate) fn add(&mut self, other: Load) {
        self.messages = self.messages.saturating_add(other.messages);
        self.largest = self.largest.max(other.largest);
    }
}

impl Job {
    /// The layout of an operation of a group; of everyone that of `everyone`.
    pub(crate) fn layout(&self, operation: Operation, group: u32, rank: u32) -> Layout {
        let is_everyone = group == EVERYONE || self.groups[group as usize].ranks.len() == self.traces.len();
        match is_everyone {
            true => Layout::of_everyone(self, operation, rank),
            false => Layout::of_group(self, operation, group, rank),
        }
    }

    /// What a collective operation of a node sends from a rank.
    pub(crate) fn collective_load(&self, node: &Node, operation: Operation, rank: u32) -> Load {
        if let Some(Way::Custom(prefix)) = self.system.way(operation, node.id) {
            let place = self.place_in_group(node.peer, rank);
            return self.custom_trace(prefix, place).map_or(Load::default(), |trace| trace.sends());
        }
        let chunks = Chunks::new(operation, node.value, self.system.splits, self.ranks());
        let layout = self.layout(operation, node.peer, rank);
        let mut load = Load::default();
        for planned in layout.phases(self, operation, chunks.bytes, node.dimensions) {
            let count = layout.dimensions[planned.dimension].members.count();
            load.add(match planned.work {
                Work::Tree { bytes } => Load { messages: 3, largest: bytes },
                Work::Steps(Phase { operation, shape, bytes, .. }) => {
                    let (messages, size) = sizes(operation, shape, count, bytes);
                    let growth = match (shape, operation) {
                        (Shape::Halving, Operation::AllGather) => u64::from(count / 2),
                        _ => 1,
                    };
                    Load { messages: messages.into(), largest: size.saturating_mul(growth) }
                }
            });
        }
        Load { messages: load.messages.saturating_mul(chunks.count), ..load }
    }

    /// The place of a rank in a group whose members are counted in ascending order.
    pub(crate) fn place_in_group(&self, group: u32, rank: u32) -> u32 {
        let ranks = &self.groups[group as usize].ranks;
        narrow::<u32>(ranks.iter().filter(|&&other| other < rank).count())
    }
}
