//! A run that is driven from outside: it pauses where nodes report something, and timers can be added before it goes on.
//!
//! What reports cause must not come too late, when nodes have been run past it already. So the driver promises a *reaction time*: no timer that it sets because of a report
//! at `t` is due before `t + reaction`. Where that is shorter than a window, windows are cut: on one thread this long after the
//! [first instant at which a node may report](Model::first_report) something, so that only windows with reports cost more than others; on several threads, which
//! would have to agree on that, all windows are as short as the reaction time.
//!
//! A run that pauses only at instants that are known beforehand goes in the windows of a [bipartition](crate::Bipartition) from one pause to the next, if that is far away.

use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_units::Time;

use crate::engine::{END_OF_TIME, Progress, Run};
use crate::model::{Due, Model, NodeIndex};
use crate::setup::{EngineError, Setup};
use crate::team::{RunEnd, Team};
use crate::wheel::Event;
use crate::worker::Pause;

/// A message or timer that is pending while a run pauses.
#[derive(Clone, Copy, Debug)]
pub struct Pending<P> {
    /// Where it is due.
    pub node: NodeIndex,
    /// When it is due, and whence it comes.
    pub due: Due,
    /// What it carries.
    pub payload: P,
}

/// A run that pauses.
pub struct Session<M: Model> {
    team: Team<M>,
    reaction: Time,
    /// How far away a pause has to be for the windows of a bipartition.
    far: Time,
    /// Everything before has been run.
    reached: Time,
}

/// How far away a pause has to be for the windows of a bipartition, in lookaheads: all that is pending is sorted anew for them, and once more at the pause.
const FAR: u64 = 64;

impl<M: Model> Session<M> {
    /// Nodes, which have not [started](Model::start) yet. `reaction`: at least a picosecond; with [`Time::MAX`] the run pauses at instants only, whatever is reported.
    ///
    /// # Errors
    /// As [`Engine::new`](crate::Engine::new).
    pub fn new(
        model: Arc<M>,
        nodes: Vec<M::Node>,
        setup: Setup,
        reaction: Time,
    ) -> Result<Self, EngineError> {
        setup.check(nodes.len())?;
        let reaction = reaction.max(Time(1));
        let is_one = setup.partition.as_ref().is_none_or(|partition| partition.iter().all(|&part| part == 0));
        let windows = if is_one { 1 } else { setup.lookahead.0.div_ceil(reaction.0) };
        let bipartition = setup.bipartition.filter(|_| reaction == Time::MAX);
        let setup = Setup { bipartition, windows_per_lookahead: windows, ..setup };
        let far = Time(setup.lookahead.0.saturating_mul(FAR));
        let mut team = Team::new(model, setup, nodes);
        team.start_session();
        Ok(Session { team, reaction, far, reached: Time::ZERO })
    }

    /// Goes on until some node reports something that pauses, but not beyond `until`; `observe` is called between windows and may stop it. Afterwards everything before
    /// [`Self::reached`] has happened.
    pub fn run(&mut self, until: Time, mut observe: impl FnMut(Progress) -> ControlFlow<()>) {
        let pause = Pause {
            until: until.min(END_OF_TIME),
            at_reports: self.reaction < Time::MAX,
            reaction: self.reaction,
        };
        let is_far = pause.until.saturating_sub(self.reached) >= self.far;
        if is_far {
            self.team.change_windows(self.reached);
        }
        let is_reported = |team: &Team<M>| pause.at_reports && team.pauses();
        while self.team.run(pause, &mut observe) == RunEnd::Imbalanced {
            self.team.rebalance();
            if is_reported(&self.team) {
                break;
            }
        }
        let is_early = self.team.is_stopped() || is_reported(&self.team) || self.is_done();
        let reached = if is_early { self.team.ran_until() } else { pause.until };
        self.reached = reached.max(self.reached);
        if is_far && !is_early {
            // Both sides have come to one instant.
            self.team.change_windows(self.reached);
        }
    }

    /// Everything before this instant has happened.
    pub fn reached(&self) -> Time {
        self.reached
    }

    /// Whether the last run was stopped by its observer.
    pub fn is_stopped(&self) -> bool {
        self.team.is_stopped()
    }

    /// Whether nothing is left to happen before [`END_OF_TIME`].
    pub fn is_done(&self) -> bool {
        self.team.is_done()
    }

    /// Messages handled so far, timers not counted.
    pub fn messages(&self) -> u64 {
        self.team.messages()
    }

    /// Calls `each` with every node that has reported something since the last call; in no particular order, and perhaps several times.
    pub fn take_reports(&mut self, each: impl FnMut(NodeIndex, &mut M::Node)) {
        self.team.take_reports(each);
    }

    /// Sets a timer of a node.
    ///
    /// # Panics
    /// If the run has come beyond that instant.
    pub fn timer(&mut self, node: NodeIndex, at: Time, payload: M::Payload) {
        assert!(at >= self.reached, "a timer for {at} when all before {} has been run", self.reached);
        self.team.set_timer(node, at, payload);
    }

    /// All that is pending for some nodes, in the order of (node, time, source, order of sending), with the nodes in the order given.
    pub fn pending(&self, nodes: impl IntoIterator<Item = NodeIndex>) -> Vec<Pending<M::Payload>> {
        let nodes: Vec<NodeIndex> = nodes.into_iter().collect();
        let pending =
            |Event { payload, at, source, node }| Pending { node, due: Due { at, source }, payload };
        self.team.pending(&nodes).into_iter().map(pending).collect()
    }

    /// Shows all that is pending for all nodes, in no particular order.
    pub fn look_at_pending(&self, mut each: impl FnMut(NodeIndex, Due, &M::Payload)) {
        self.team.look_at_pending(|node, event| {
            each(node, Due { at: event.at, source: event.source }, &event.payload);
        });
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> NodeIndex {
        self.team.nodes()
    }

    /// A node, brought to [`Self::reached`]: its state there depends neither on windows nor on threads, as far as the [model's](Model::advance) does not depend on how often it is called.
    pub fn node(&mut self, node: NodeIndex) -> &mut M::Node {
        self.team.settled(node, self.reached)
    }

    /// Sum of all [`Scheduler::tally`](crate::Scheduler::tally) calls.
    pub fn tally(&self) -> u64 {
        self.team.tally()
    }

    /// Continues at a later instant `to`. The caller has set the nodes to their states of that instant; `pending` are the events that are pending then, in the order of [`Self::pending`], and `messages` more count as handled, and `tally` as tallied.
    ///
    /// # Panics
    /// If that is in the past, or an event is.
    pub fn jump(&mut self, to: Time, (messages, tally): (u64, u64), pending: &[Pending<M::Payload>]) {
        assert!(
            to >= self.reached && pending.iter().all(|pending| pending.due.at >= to),
            "a jump into the past"
        );
        let event = |&Pending { node, due: Due { at, source }, payload }: &Pending<_>| Event {
            payload,
            at,
            source,
            node,
        };
        let events: Vec<_> = pending.iter().map(event).collect();
        self.team.go_on_at(to, (messages, tally), &events);
        self.reached = to;
    }

    /// Ends the run here.
    pub fn finish(self) -> Run<M::Node, M::Payload> {
        self.team.finish()
    }
}
