//! A rank, whichever simulator's schedule it has.

use netloom_units::recurrence::Walk;

use crate::plan::Load;
use crate::rank::{Call, End, Envelope, Network, Rank};
use crate::simai::{Repetition, SimAiRank, recur_message};

/// A rank of a training job.
#[derive(Clone, Debug)]
pub enum TrainingRank {
    /// As ASTRA-sim schedules it.
    AstraSim(Box<Rank>),
    /// As SimAI schedules it.
    SimAi(Box<SimAiRank>),
}

/// Calls the rank, whichever it is.
macro_rules! rank {
    ($self:expr, $rank:ident => $call:expr) => {
        match $self {
            TrainingRank::AstraSim($rank) => $call,
            TrainingRank::SimAi($rank) => $call,
        }
    };
}

impl TrainingRank {
    /// Begins.
    pub fn begin(&mut self, now: u64, network: &mut dyn Network) {
        rank!(self, rank => rank.begin(now, network));
    }

    /// A time has come that was asked for.
    pub fn wake(&mut self, now: u64, network: &mut dyn Network) {
        rank!(self, rank => rank.wake(now, network));
    }

    /// Does what was put off with [`Network::soon`].
    pub fn perform(&mut self, now: u64, call: Call, network: &mut dyn Network) {
        match self {
            TrainingRank::AstraSim(rank) => rank.perform(now, call, network),
            // It puts nothing off.
            TrainingRank::SimAi(_) => {}
        }
    }

    /// Whether something waits for the message of this number to have been sent.
    pub fn awaits_sent(&self, number: u32) -> bool {
        match self {
            TrainingRank::AstraSim(rank) => rank.awaits_sent(number),
            TrainingRank::SimAi(_) => true,
        }
    }

    /// The message of this number has been sent.
    pub fn sent(&mut self, now: u64, number: u32, network: &mut dyn Network) {
        match self {
            TrainingRank::AstraSim(rank) => rank.sent(now, number, network),
            TrainingRank::SimAi(rank) => rank.sent(now, network),
        }
    }

    /// A message has arrived.
    pub fn arrived(&mut self, now: u64, from: u32, envelope: Envelope, network: &mut dyn Network) {
        match self {
            TrainingRank::AstraSim(rank) => rank.arrived(now, from, envelope, network),
            TrainingRank::SimAi(rank) => rank.arrived(now, envelope, network),
        }
    }

    /// [Recurs](netloom_units::recurrence) in a walk with successors, as a rank of the `job` of this name, which may be used with its last bit set, too; `messages` is the name of the
    /// numbers of its messages. Of ASTRA-sim's ranks it is not known how.
    pub fn recur(&mut self, job: u64, messages: u64, walk: &mut Walk) {
        match self {
            TrainingRank::AstraSim(_) => walk.pass_over(),
            TrainingRank::SimAi(rank) => rank.recur((job, messages), walk),
        }
    }

    /// The same of a message of such a rank that is under way.
    pub fn recur_message(&self, envelope: &mut Envelope, job: u64, walk: &mut Walk) {
        match self {
            TrainingRank::AstraSim(_) => walk.pass_over(),
            TrainingRank::SimAi(_) => recur_message(envelope, job, walk),
        }
    }

    /// The repetition of layers that it is in, or was in last.
    pub fn repetition(&self) -> Option<Repetition> {
        match self {
            TrainingRank::AstraSim(_) => None,
            TrainingRank::SimAi(rank) => rank.repetition(),
        }
    }

    /// How many repetitions of layers have not begun.
    pub fn repetitions_left(&self) -> u32 {
        match self {
            TrainingRank::AstraSim(_) => 0,
            TrainingRank::SimAi(rank) => rank.repetitions_left(),
        }
    }

    /// How it ended, once it has.
    pub fn end(&self) -> Option<End> {
        rank!(self, rank => rank.end())
    }

    /// How long it has computed on the accelerator, in nanoseconds; what is under way counts whole.
    pub fn computed(&self) -> u64 {
        rank!(self, rank => rank.computed())
    }

    /// What a rank that has not ended waits for.
    pub fn unfinished(&self) -> Option<String> {
        rank!(self, rank => rank.unfinished())
    }

    /// Whether any rank of its job computes.
    pub fn computes(&self) -> bool {
        match self {
            TrainingRank::AstraSim(rank) => rank.job().computes(),
            TrainingRank::SimAi(rank) => rank.step().computes(),
        }
    }

    /// How many messages rank `number` of its job sends, at most, and how large they are.
    pub fn load(&self, number: u32) -> Load {
        match self {
            TrainingRank::AstraSim(rank) => rank.job().load(number),
            TrainingRank::SimAi(rank) => rank.step().load(number),
        }
    }

    /// The table of layers of SimAI, at rank 0 once it has ended.
    pub fn report(&self) -> Option<String> {
        match self {
            TrainingRank::AstraSim(_) => None,
            TrainingRank::SimAi(rank) => rank.report(),
        }
    }
}
