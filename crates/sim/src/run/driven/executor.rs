//! What runs a driven run: one event after the other, or windows.

use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_engine::reference::Stepper;
use netloom_engine::{END_OF_TIME, NodeIndex, Session};
use netloom_units::Time;

use crate::host::event::FlowEvent;
use crate::message::Message;
use crate::node::Node;
use crate::run::final_state::FinalState;
use crate::run::layout::setup;
use crate::world::World;

/// Events between two looks at what drives the run.
const LOOK_EVERY: u32 = 4096;

/// Why a run has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Flows may have completed.
    Events,
    /// Nothing is left to happen before the instant up to which it was to run.
    Until,
    /// It was asked to.
    Asked,
}

/// An executor that can stop in the middle.
pub(super) struct Executor(State);

enum State {
    /// No time has passed.
    New { nodes: Vec<Node>, threads: usize },
    /// Completions may be answered at the instant at which they happen.
    Events(Stepper<World>),
    /// They are answered later.
    Windows(Box<Session<World>>),
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self.0 {
            State::New { .. } => "New",
            State::Events(_) => "Events",
            State::Windows(_) => "Windows",
        })
    }
}

impl Executor {
    /// One that has not begun.
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        Executor(State::New { nodes, threads: 1 })
    }

    /// Whether it has not begun.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.0, State::New { .. })
    }

    /// Sets the number of threads that run windows, if it has not begun.
    pub(super) fn set_threads(&mut self, count: usize) {
        if let State::New { threads, .. } = &mut self.0 {
            *threads = count;
        }
    }

    /// Begins if it has not.
    pub(super) fn begin(&mut self, world: &Arc<World>, reaction: Time) -> &mut Self {
        if let State::New { nodes, threads } = &mut self.0 {
            let nodes = std::mem::take(nodes);
            self.0 = match reaction {
                Time::ZERO => State::Events(Stepper::new(&**world, nodes)),
                _ => {
                    let setup = setup(world, *threads, Time::MAX);
                    let reaction = reaction.min(END_OF_TIME);
                    let session = Session::new(Arc::clone(world), nodes, setup, reaction);
                    State::Windows(Box::new(session.expect("packets take time: the lookahead is never zero")))
                }
            };
        }
        self
    }

    /// Everything before this instant has happened.
    pub(super) fn reached(&self) -> Time {
        match &self.0 {
            State::New { .. } => Time::ZERO,
            State::Events(steps) => steps.now(),
            State::Windows(session) => session.reached(),
        }
    }

    /// Sets a timer of a node.
    pub(super) fn timer(&mut self, node: NodeIndex, at: Time, message: Message) {
        match &mut self.0 {
            State::New { .. } => unreachable!("it has begun"),
            State::Events(steps) => steps.timer(node, at, message),
            State::Windows(session) => session.timer(node, at, message),
        }
    }

    /// Goes on until flows have completed, but not beyond `until`; `go_on`, which is asked now and then with the number of messages handled so far, may stop it. Adds the
    /// events of flows at nodes to `reports`.
    pub(super) fn run(
        &mut self,
        world: &World,
        until: Time,
        go_on: &mut dyn FnMut(Time, u64) -> bool,
        reports: &mut Vec<(NodeIndex, FlowEvent)>,
    ) -> Stop {
        let until = until.min(END_OF_TIME);
        match &mut self.0 {
            State::New { .. } => unreachable!("it has begun"),
            State::Events(steps) => loop {
                for _ in 0..LOOK_EVERY {
                    let Some(node) = steps.step(world, until) else { return Stop::Until };
                    if let Some(pauses) = steps.take_reports() {
                        report(node, steps.node_mut(node), reports);
                        if pauses {
                            return Stop::Events;
                        }
                    }
                }
                if !go_on(steps.now(), steps.messages()) {
                    return Stop::Asked;
                }
            },
            State::Windows(session) => {
                if session.is_done() || session.reached() >= until {
                    return Stop::Until;
                }
                let (mut looked, mut goes_on) = (session.messages(), true);
                session.run(until, |progress| {
                    if progress.messages.wrapping_sub(looked) >= u64::from(LOOK_EVERY) {
                        looked = progress.messages;
                        goes_on = go_on(progress.time, progress.messages);
                    }
                    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                });
                session.take_reports(|node, state| report(node, state, reports));
                if goes_on { Stop::Events } else { Stop::Asked }
            }
        }
    }

    /// Ends the run here, which has been asked about up to `now`.
    pub(super) fn finish(self, now: Time, groups: Vec<String>) -> FinalState {
        let (nodes, pending, next_at, is_out_of_time, until) = match self.0 {
            State::New { .. } => unreachable!("it has begun"),
            State::Events(steps) => {
                let next_at = steps.next_at();
                let (nodes, pending) = steps.finish();
                let is_out_of_time = next_at.is_some_and(|next| next >= END_OF_TIME);
                (nodes, pending, next_at.is_some(), is_out_of_time, now)
            }
            State::Windows(session) => {
                let (is_done, reached) = (session.is_done(), session.reached());
                let run = session.finish();
                (
                    run.nodes,
                    run.pending,
                    !is_done,
                    run.out_of_time && reached >= END_OF_TIME,
                    reached.max(now),
                )
            }
        };
        let until = if next_at { until } else { Time::MAX };
        FinalState { nodes, pending, groups, until, stopped_at: None, is_out_of_time, background: None }
    }
}

/// Adds the events of flows at a node since the last look.
fn report(node: NodeIndex, state: &mut Node, reports: &mut Vec<(NodeIndex, FlowEvent)>) {
    let events = match state {
        Node::Host(host) => host.events(),
        Node::Server(server) => Some(server.events()),
        Node::Switch(_) | Node::Untouched | Node::InServer => None,
    };
    reports.extend(events.into_iter().flat_map(|events| events.drain(..)).map(|event| (node, event)));
}
