//! The engine as its user sees it: a model and a setup go in, the nodes in their final state come out.

use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_units::Time;

use crate::model::Model;
use crate::setup::{EngineError, Setup};
use crate::team::{RunEnd, Team};
use crate::worker::Pause;

/// No event at or after this instant, 106 days of simulated time, is ever run.
///
/// Instants up to twice as late can be written, so that what a node adds to an instant that it sees (a transmission, a cable, a
/// timeout) does not wrap around.
pub const END_OF_TIME: Time = Time::END;

/// The progress of a run, as its observer sees it between two epochs.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Everything before this instant has been run.
    pub time: Time,
    /// Sum of all [`Scheduler::tally`](crate::Scheduler::tally) calls.
    pub tally: u64,
    /// Messages handled, timers not counted.
    pub messages: u64,
}

/// How the work of a run was divided among its threads. It depends on the model and on the number of threads alone, not on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Division {
    /// How often all threads met.
    pub epochs: u64,
    /// Events handled and batches begun, by all threads.
    pub work: u64,
    /// Those of the thread that had most of them between two meetings, summed over all of these: what even threads that meet in no time have to do one after
    /// the other.
    pub longest: u64,
}

impl std::ops::AddAssign for Division {
    fn add_assign(&mut self, other: Self) {
        self.epochs += other.epochs;
        self.work += other.work;
        self.longest += other.longest;
    }
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Run<N, P> {
    /// The nodes in their final state, in the order in which they were given.
    pub nodes: Vec<N>,
    /// Messages handled, timers not counted.
    pub messages: u64,
    /// Sum of all [`Scheduler::tally`](crate::Scheduler::tally) calls.
    pub tally: u64,
    /// The payloads of messages still under way: none, unless the run ended at `until` or was stopped.
    pub pending: Vec<P>,
    /// Whether the observer stopped the run.
    pub stopped: bool,
    /// Whether something was left to do at [`END_OF_TIME`].
    pub out_of_time: bool,
    /// How often nodes were partitioned anew, as [`Setup::rebalance`] allows.
    pub rebalance_count: u32,
    /// How the work was divided among threads.
    pub division: Division,
}

impl<N, P> Run<N, P> {
    /// Nodes with which nothing has happened.
    pub fn of(nodes: Vec<N>) -> Self {
        Run {
            nodes,
            messages: 0,
            tally: 0,
            pending: Vec::new(),
            stopped: false,
            out_of_time: false,
            rebalance_count: 0,
            division: Division::default(),
        }
    }

    /// Counts a run that came after this one, and takes its nodes in the place of those there were.
    pub fn add(&mut self, later: Run<N, P>) {
        let Run { nodes, messages, tally, pending, stopped, out_of_time, rebalance_count, division } = later;
        self.nodes = nodes;
        self.messages += messages;
        self.tally += tally;
        self.pending.extend(pending);
        self.stopped |= stopped;
        self.out_of_time |= out_of_time;
        self.rebalance_count += rebalance_count;
        self.division.epochs += division.epochs;
        self.division.work += division.work;
        self.division.longest += division.longest;
    }
}

/// A model ready to run.
pub struct Engine<M: Model> {
    model: Arc<M>,
    setup: Setup,
    nodes: Vec<M::Node>,
}

impl<M: Model> Engine<M> {
    /// Checks the setup.
    ///
    /// # Errors
    /// If the lookahead is zero or `partition`, `order` or `bipartition` do not fit the nodes.
    pub fn new(model: Arc<M>, nodes: Vec<M::Node>, setup: Setup) -> Result<Self, EngineError> {
        setup.check(nodes.len())?;
        Ok(Engine { model, setup, nodes })
    }

    /// Runs until nothing is left to happen, or `until`.
    pub fn run(self) -> Run<M::Node, M::Payload> {
        self.run_observed(|_| ControlFlow::Continue(()))
    }

    /// Runs; `observe` is called between epochs and may stop the run.
    pub fn run_observed(
        self,
        mut observe: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Run<M::Node, M::Payload> {
        let Engine { model, setup, nodes } = self;
        let mut team = Team::new(model, setup, nodes);
        while team.run(Pause::NEVER, &mut observe) == RunEnd::Imbalanced {
            team.rebalance();
        }
        team.finish()
    }
}
