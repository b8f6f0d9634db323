//! Programs: the work of all ranks as one graph of operations.
//!
//! A rank's operations are `send`, `recv` and `calc`. One operation may *require* another (it starts when the other
//! has finished) or *irequire* it (it starts when the other has started), as in GOAL (Hoefler, Schneider, Lumsdaine,
//! LogGOPSim, HPDC 2010):
//!
//! | operation | starts | finishes |
//! | --- | --- | --- |
//! | `calc` | when its CPU takes it up: one at a time, in order of becoming ready | after its duration |
//! | `send` | when it is ready: it is handed to the transport | when the transport is done with it |
//! | `recv` | when it is ready: it is posted | when a matching message has arrived whole |
//!
//! Sends and receives occupy no CPU unless the program has an overhead, which each of them then takes on the CPU of
//! the operation: a send before it is handed over, a receive after its message has arrived. The network's part of
//! LogGP (latency, gap per byte) is what is simulated, so it is no parameter.
//!
//! Matching is that of MPI (MPI 4.1 §3.5): messages of one (source, destination, tag) match in the order in which
//! they were sent, whatever order the network delivers them in; a message takes the first posted receive that accepts
//! it, a receive the message that arrived first. A rank's messages to itself never enter the network.
//!
//! The program itself is static and known to every rank ([`Program`], shared); what crosses the network is only a
//! message's *number*, from which the receiver reads the tag and the place in the order of sending: the numbers of a
//! sender are handed out in blocks, one block per (destination, tag), in order of sending within the block.

mod build;
mod collectives;
mod ending;
mod job;
mod mailbox;
mod observer;
mod operations;
mod rank;
mod runner;
mod stall;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use build::{Accept, CheckedRank, MAX_OPS, RankBuilder, build_all, check};
pub use collectives::{CollectiveInfo, CollectiveKind};
pub use job::RankEnds;
pub(crate) use job::{JobRank, PlacedJob};
pub use observer::{Activity, ActivityKind, CollectiveLog, Notes, RankLog, RoundLog, Wait};
pub use operations::{OperationKind, OperationLog};
pub(crate) use rank::RankWork;
pub use runner::Round;
pub(crate) use runner::{Runner, Slowness};
pub(crate) use stall::describe;

use std::sync::Arc;

use netloom_topology::HostId;
use netloom_units::{Bytes, Time, narrow};

use self::collectives::Part;

/// What a program wants of its simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message.
    Send {
        /// Receiving host, never the sender itself.
        dst: HostId,
        /// Payload, at least one byte (an empty message needs a packet too).
        bytes: Bytes,
        /// The message's number, unique among those of the sender; the receiver needs it.
        number: u32,
        /// Traffic class.
        class: u8,
        /// Group of the plan.
        group: u16,
        /// The NIC of the server by which it leaves and arrives; `None` where the server's rule chooses.
        nic: Option<u16>,
    },
    /// Call [`on_wake`](crate::HostWork::on_wake) with this operation.
    Wake {
        /// When, never before now.
        at: Time,
        /// What to say then.
        op: u32,
    },
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpKind {
    Send,
    Recv,
    Calc,
}

/// One operation, 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Op {
    /// Bytes of a message, picoseconds of a calculation.
    value: u64,
    /// The other rank, or [`ANY`] for a receive from whomever.
    peer: u32,
    /// The tag, or [`ANY`] for a receive of whatever tag.
    tag: u32,
    /// Of a send the outbound channel, of a receive without wildcard the inbound channel.
    channel: u32,
    /// The CPU among those of the rank.
    cpu: u16,
    kind: OpKind,
    /// Of a send, its message's group of the plan; of a calculation [`COMMUNICATES`] if it stands for communication.
    group: u8,
}

/// Marks a calculation that stands for communication: stragglers do not compute it, and it counts as sending.
const COMMUNICATES: u8 = 1;

impl Op {
    /// Whether it computes.
    fn computes(&self) -> bool {
        self.kind == OpKind::Calc && self.group != COMMUNICATES
    }
}

/// The wildcard of receives.
const ANY: u32 = u32::MAX;

/// Messages of one rank to another with one tag.
#[derive(Clone, Copy, Debug)]
struct Outbound {
    dst: u32,
    tag: u32,
    /// How many messages the rank sends in the channels before this one, per round.
    first: u32,
    /// The channel's index among those inbound at the destination.
    inbound: u32,
}

/// The operations of one rank.
#[derive(Clone, Debug)]
struct RankProgram {
    ops: Box<[Op]>,
    /// Per operation (and one past the last) where its dependents begin in `dependents`.
    first_dependent: Box<[u32]>,
    /// Operations that wait for one: its index, with [`ON_START`] set if they wait for its start only.
    dependents: Box<[u32]>,
    /// Sorted by destination and tag.
    outbound: Box<[Outbound]>,
    /// Source and tag, sorted.
    inbound: Box<[(u32, u32)]>,
    sends: u32,
    cpus: u16,
    /// The first operation of each lane, where the first lane begins with the first operation: those of one lane are done roughly in their order.
    lanes: Box<[u32]>,
    /// By operation, as far as any is not 0.
    nics: Box<[u8]>,
    /// By operation, as far as any has one.
    labels: Box<[Arc<str>]>,
    wildcards: bool,
    /// Its parts in collectives, in the order of their operations.
    collectives: Box<[Part]>,
}

/// Marks a dependent that waits for the start only.
const ON_START: u32 = 1 << 31;

impl RankProgram {
    /// The operations that wait for this one's start, or for its end.
    fn dependents(&self, op: u32, on_start: bool) -> impl Iterator<Item = u32> {
        let range = self.first_dependent[op as usize]..self.first_dependent[op as usize + 1];
        let all = self.dependents[range.start as usize..range.end as usize].iter();
        all.filter(move |&&d| (d & ON_START != 0) == on_start).map(|d| d & !ON_START)
    }

    /// The lane of an operation.
    fn lane(&self, op: u32) -> usize {
        match *self.lanes {
            [_] => 0,
            ref lanes => lanes.partition_point(|&first| first <= op) - 1,
        }
    }

    /// How many messages a channel carries per round.
    fn messages(&self, channel: u32) -> u32 {
        let next = self.outbound.get(channel as usize + 1).map_or(self.sends, |next| next.first);
        next - self.outbound[channel as usize].first
    }
}

/// By which NIC of a server a message leaves.
#[derive(Clone, Copy, Debug)]
enum Nics {
    /// That of the server's rule.
    Chosen,
    /// That of the CPU on which the send runs; each NIC has this many consecutive CPUs.
    OfCpus(u16),
    /// That of the send.
    Given,
}

/// The operations of all ranks: static, shared by all hosts.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    ranks: Box<[RankProgram]>,
    /// How often every rank runs its operations, one round after the other.
    rounds: u32,
    /// CPU time of a send and of a receive.
    overhead: Time,
    /// By which NIC of a server a message leaves.
    nics: Nics,
    /// The collective operations of a round.
    collectives: Box<[CollectiveInfo]>,
}

impl Program {
    /// Lets messages leave by the NICs to which the CPUs of their sends belong: as many to each.
    pub(crate) fn with_own_nics(self, cpus_per_nic: u16) -> Self {
        Program { nics: Nics::OfCpus(cpus_per_nic), ..self }
    }

    /// Lets messages leave by the NICs that are given for their sends.
    pub(crate) fn with_given_nics(self) -> Self {
        Program { nics: Nics::Given, ..self }
    }

    /// How often it runs.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Runs all of it this often.
    pub(crate) fn times(self, times: u32) -> Self {
        Program { rounds: self.rounds.saturating_mul(times), ..self }
    }

    /// How many ranks there are.
    pub(crate) fn ranks(&self) -> u32 {
        narrow::<u32>(self.ranks.len())
    }

    /// How many messages cross the network in all.
    pub(crate) fn messages(&self) -> u64 {
        let crossing = |(rank, program): (u32, &RankProgram)| {
            let ops = program.ops.iter();
            ops.filter(|op| op.kind == OpKind::Send && op.peer != rank).count() as u64
        };
        (0..).zip(&self.ranks).map(crossing).sum::<u64>() * u64::from(self.rounds)
    }

    /// The inbound channel of a message at its destination, and its place in the channel's order of sending.
    fn place(&self, src: u32, number: u32) -> (u32, u32) {
        let outbound = &self.ranks[src as usize].outbound;
        let channel = outbound.partition_point(|c| c.first * self.rounds <= number) - 1;
        let channel = outbound[channel];
        (channel.inbound, number - channel.first * self.rounds)
    }
}

/// A program with a host for every rank.
#[derive(Debug)]
pub(crate) struct Placed {
    program: Program,
    /// Host of every rank.
    hosts: Box<[HostId]>,
    /// Rank of every host, [`ANY`] where there is none.
    ranks: Box<[u32]>,
}

impl Placed {
    /// How often the program runs.
    pub(crate) fn rounds(&self) -> u32 {
        self.program.rounds()
    }

    /// How many messages cross the network in all.
    pub(crate) fn messages(&self) -> u64 {
        self.program.messages()
    }

    /// How many messages a rank sends in a round, at most.
    pub(crate) fn most_sends(&self) -> u32 {
        self.program.ranks.iter().map(|rank| rank.sends).max().unwrap_or(0)
    }

    /// Whether any rank calculates.
    pub(crate) fn calculates(&self) -> bool {
        let calculates = |op: &Op| op.computes() && op.value > 0;
        self.program.ranks.iter().any(|rank| rank.ops.iter().any(calculates))
    }

    /// The collective operations of a round.
    pub(crate) fn collectives(&self) -> &[CollectiveInfo] {
        &self.program.collectives
    }

    /// What an operation is called in its file; empty if it has no label, or labels are not kept.
    pub(crate) fn label(&self, rank: u32, op: u32) -> Arc<str> {
        self.program.ranks[rank as usize].labels.get(op as usize).cloned().unwrap_or_default()
    }

    /// Lays rank r on `placed[r]`; the network has `hosts` hosts.
    pub(crate) fn new(program: Program, placed: &[HostId], hosts: u32) -> Arc<Self> {
        let mut ranks = vec![ANY; hosts as usize];
        for (rank, &host) in (0..).zip(placed) {
            ranks[host as usize] = rank;
        }
        Arc::new(Placed { program, hosts: placed.into(), ranks: ranks.into() })
    }
}
