//! The work of one rank, whatever decides what comes next.

use std::collections::BTreeMap;

use netloom_topology::HostId;
use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Time};

use super::{Action, JobRank, RankLog, Round, Runner, Slowness};

/// The state of one rank: callbacks in, actions out.
#[derive(Clone, Debug)]
pub(crate) enum RankWork {
    /// A rank of a program, which is the same whenever things happen.
    Program(Box<Runner>),
    /// A rank of a training job, which decides what comes next when things happen.
    Job(Box<JobRank>),
}

/// Calls the rank, whichever it is.
macro_rules! rank {
    ($self:expr, $rank:ident => $call:expr) => {
        match $self {
            RankWork::Program($rank) => $call,
            RankWork::Job($rank) => $call,
        }
    };
}

impl RankWork {
    pub(crate) fn begin(&mut self, now: Time, actions: &mut Vec<Action>) {
        rank!(self, rank => rank.begin(now, actions));
    }

    pub(crate) fn on_wake(&mut self, now: Time, op: u32, actions: &mut Vec<Action>) {
        rank!(self, rank => rank.on_wake(now, op, actions));
    }

    pub(crate) fn on_sent(&mut self, now: Time, number: u32, actions: &mut Vec<Action>) {
        rank!(self, rank => rank.on_sent(now, number, actions));
    }

    pub(crate) fn on_received(&mut self, now: Time, src: HostId, number: u32, actions: &mut Vec<Action>) {
        rank!(self, rank => rank.on_received(now, src, number, actions));
    }

    /// [Recurs](netloom_units::recurrence) in a walk with successors. Its messages are those of `origin`; `hashes`: which NIC one takes that is given none depends on its number.
    pub(crate) fn recur(&mut self, origin: u32, hashes: bool, walk: &mut Walk) {
        rank!(self, rank => rank.recur(origin, hashes, walk));
    }

    /// The operation of an [`Action::Wake`] that has not come.
    pub(crate) fn recur_wake(&self, origin: u32, op: &mut u32, walk: &mut Walk) {
        match self {
            RankWork::Program(runner) => runner.recur_wake(origin, op, walk),
            // It says nothing but that something is due.
            RankWork::Job(_) => walk.exact(*op),
        }
    }

    /// By how much the number of a message moves in a period; 0 if that is not known.
    pub(crate) fn succession(&self, number: u32, walk: &Walk) -> u32 {
        rank!(self, rank => rank.succession(number, walk))
    }

    /// The repetition that it is in, if it has begun any: of the program, or of layers of a training step.
    pub(crate) fn round(&self) -> Option<Round> {
        rank!(self, rank => rank.round())
    }

    /// How many repetitions have not begun.
    pub(crate) fn rounds_left(&self) -> u32 {
        rank!(self, rank => rank.rounds_left())
    }

    pub(crate) fn is_finished(&self) -> bool {
        rank!(self, rank => rank.is_finished())
    }

    /// Whether it is a rank of a training job that computes.
    pub(crate) fn computes(&self) -> bool {
        match self {
            RankWork::Program(_) => false,
            RankWork::Job(rank) => rank.computes(),
        }
    }

    /// What it noted of itself in a run that ended at `end`; `None` if it is a rank of no job of the plan.
    pub(crate) fn take_log(&mut self, end: Time) -> Option<RankLog> {
        match self {
            RankWork::Program(runner) => Some(runner.take_log(end)),
            RankWork::Job(rank) => rank.log(end),
        }
    }

    /// Makes its calculations longer or shorter, if it is among these ranks.
    pub(crate) fn slow_down(&mut self, slow: &BTreeMap<u32, Slowness>) {
        rank!(self, rank => rank.slow_down(slow));
    }

    /// How many numbers its messages and wake-ups have.
    pub(crate) fn numbers(&self) -> u64 {
        rank!(self, rank => rank.numbers())
    }

    /// The job of the plan that it is of, if it is one of the jobs there.
    pub(crate) fn job(&self) -> Option<u16> {
        match self {
            RankWork::Program(runner) => Some(runner.job()),
            RankWork::Job(rank) => rank.noted(),
        }
    }

    /// Whether its calculations take times that are drawn.
    pub(crate) fn draws(&self) -> bool {
        rank!(self, rank => rank.draws())
    }

    /// Calls with every host to which the rank may send.
    pub(crate) fn each_receiver(&self, visit: &mut dyn FnMut(HostId)) {
        rank!(self, rank => rank.each_receiver(visit));
    }

    pub(crate) fn largest_message(&self) -> Bytes {
        rank!(self, rank => rank.largest_message())
    }

    pub(crate) fn share_numbers(&mut self, index: u32, count: u32) {
        rank!(self, rank => rank.share_numbers(index, count));
    }

    /// How many operations of a kind have finished in this round.
    #[cfg(test)]
    pub(crate) fn finished(&self, kind: super::OpKind) -> usize {
        match self {
            RankWork::Program(runner) => runner.finished(kind),
            RankWork::Job(_) => 0,
        }
    }
}
