//! Collective operations of GPUs.

use std::rc::Rc;

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkloadError;
use crate::gpus::transfers::{Method, Operation};
use crate::gpus::{Comm, Gpus, KINDS};
use crate::plan::{Plan, Setting};

/// A collective operation of GPUs, alone or in several groups at once, as a program: all-reduce, all-gather, reduce-scatter, all-to-all or
/// broadcast by the algorithm that is named, or by the one that NCCL would choose.
///
/// Ranks are GPUs: with `servers` GPU g of server s is rank s·k + g (k GPUs each), and what stays inside a server goes over its `scale_up` network, if it has one;
/// without, each host is a GPU. A rank sends on as soon as it has received what it needs, in a ring two messages at a time, and is done when it has received
/// everything (a broadcast's first rank: when it has sent). An empty message is sent as one byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GpuCollective {
    /// What is done: `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all` or `broadcast`.
    pub operation: Operation,
    /// How: `auto` (as NCCL chooses by size), `ring`, `direct`, `halving-doubling`, `recursive-doubling`, `double-binary-tree`, `hierarchical`,
    /// `bruck`, `pairwise` or `binomial`; an algorithm that does not fit the operation is refused.
    pub algorithm: Method,
    /// The whole buffer of a rank, as nccl-tests count it: what an all-reduce or a broadcast works on, what a rank has at the end of an all-gather or
    /// at the beginning of a reduce-scatter, what it has for all ranks together, itself included, in an all-to-all.
    pub size: Bytes,
    /// Ranks of a group; all are one group if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_size: Option<u32>,
    /// From one rank of a group to the next: 1 for neighbours, 8 for those of one rail in servers of 8.
    pub group_stride: u32,
    /// Parts of the data that are sent in parallel, like NCCL's channels. Each ring begins at another GPU of the servers.
    pub channels: u32,
    /// Pieces of each part that follow each other, two at a time, so that a rank forwards one while the next one arrives.
    pub chunks: u32,
    /// How often it is done; a rank begins the next one when it has finished its part.
    pub repeat: u32,
    /// Calculation of every rank before each repetition.
    pub compute: Time,
}

impl Default for GpuCollective {
    fn default() -> Self {
        GpuCollective {
            operation: Operation::AllReduce,
            algorithm: Method::Auto,
            size: Bytes(1 << 20),
            group_size: None,
            group_stride: 1,
            channels: 1,
            chunks: 1,
            repeat: 1,
            compute: Time::ZERO,
        }
    }
}

/// Channels, and pieces of a channel, at most.
const MOST_PARTS: u32 = 64;

/// Refuses channels and chunks that are none, or more than make sense.
pub(super) fn check_parts(channels: u32, chunks: u32) -> Result<(), WorkloadError> {
    for (field, value) in [("channels", channels), ("chunks", chunks)] {
        if !(1..=MOST_PARTS).contains(&value) {
            return Err(WorkloadError::parameter(field, format!("1 to {MOST_PARTS}"), value));
        }
    }
    Ok(())
}

/// Refuses an algorithm that an operation does not have.
pub(super) fn check_method(operation: Operation, method: Method) -> Result<(), WorkloadError> {
    if operation.methods().contains(&method) {
        return Ok(());
    }
    let names: Vec<&str> = operation.methods().iter().map(|method| method.name()).collect();
    let expected = format!("one of {} for this operation", names.join(", "));
    Err(WorkloadError::parameter("algorithm", expected, format!("\"{}\"", method.name())))
}

impl GpuCollective {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        if self.repeat == 0 {
            return Err(WorkloadError::parameter("repeat", "at least 1", 0));
        }
        if self.size.0 == 0 {
            return Err(WorkloadError::parameter("size", "at least one byte", self.size));
        }
        check_parts(self.channels, self.chunks)?;
        check_method(self.operation, self.algorithm)?;
        let gpus = Gpus::new(setting)?;
        let (all, stride) = (gpus.count(), self.group_stride);
        let size = self.group_size.unwrap_or(all);
        if !(2..=all).contains(&size) || !all.is_multiple_of(size) {
            let expected = format!("a divisor of the {all} GPUs, at least 2");
            return Err(WorkloadError::parameter("group_size", expected, size));
        }
        if stride == 0 || !(all / size).is_multiple_of(stride) {
            let expected = format!("a divisor of {}, the number of groups", all / size);
            return Err(WorkloadError::parameter("group_stride", expected, stride));
        }
        let groups = Groups { size, stride };
        let comm = Comm {
            members: groups.of(0),
            tag: 0,
            kind: 0,
            name: "",
            method: self.algorithm,
            channels: self.channels,
            chunks: self.chunks,
        };
        for group in 0..all / size {
            let comm = comm.among(groups.of(groups.first(group)));
            if !gpus.in_one_server(&comm.members)
                && let Err(expected) = comm.schedule(&gpus, self.operation, self.size).check()
            {
                let found = format!("{size} GPUs in a group, {} in each server", gpus.inner(&comm.members));
                return Err(WorkloadError::parameter("algorithm", expected, found));
            }
        }
        let afford = gpus.afford(gpus.operations(&comm, self.operation, self.size));
        afford
            .map_err(|problem| WorkloadError::parameter("chunks", "fewer, or fewer `channels`", problem))?;
        let program = gpus.program(gpus.servers, self.repeat, [0; KINDS], |builder, gpu| {
            let start = (self.compute > Time::ZERO).then(|| builder.compute(gpu, self.compute, &[]));
            let comm = comm.among(groups.of(gpu));
            builder.collective(&comm, gpu, (self.operation, self.size, 0), start.as_slice());
        });
        let (program, _) = program.map_err(|problem| WorkloadError::parameter("repeat", "fewer", problem))?;
        Ok(setting.run(program))
    }
}

/// Equal groups of all ranks.
#[derive(Clone, Copy, Debug)]
struct Groups {
    size: u32,
    stride: u32,
}

impl Groups {
    /// The lowest rank of a group.
    fn first(self, group: u32) -> u32 {
        group / self.stride * self.size * self.stride + group % self.stride
    }

    /// The group of a rank.
    fn of(self, rank: u32) -> Rc<[u32]> {
        let Groups { size, stride } = self;
        let first = rank / (size * stride) * (size * stride) + rank % stride;
        (0..size).map(|member| first + member * stride).collect()
    }
}
