//! The textbook executor, for reference: one future event list for all nodes, a heap, and one event at a time.
//!
//! It exists to check the [engine](crate::Engine) and to measure it against: the same model must give identical nodes under
//! both. It runs a departure event for every port that has something to send, as classic simulators do. Because it can stop
//! between any two events, it also carries [runs that are driven from outside](Stepper).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netloom_units::{Time, narrow};

use crate::model::{AnyScheduler, DRIVER, Due, Model, NodeIndex, Scheduler, TIMER, is_timer};

/// Runs `model` until nothing is left to happen and returns the nodes and the number of messages handled.
pub fn run<M: Model>(model: &M, nodes: Vec<M::Node>) -> (Vec<M::Node>, u64) {
    let mut steps = Stepper::new(model, nodes);
    while steps.step(model).is_some() {}
    (steps.nodes, steps.messages)
}

/// A run that goes on event by event, and to which events can be added between any two of them.
#[derive(Debug)]
pub struct Stepper<M: Model> {
    nodes: Vec<M::Node>,
    events: EventList<M::Payload>,
    /// Per node: the earliest advance in the event list.
    advance_at: Vec<Time>,
    messages: u64,
}

impl<M: Model> Stepper<M> {
    /// Starts the nodes.
    pub fn new(model: &M, mut nodes: Vec<M::Node>) -> Self {
        let mut events = EventList { now: Time::ZERO, node: 0, heap: BinaryHeap::new(), sequence: 0 };
        for (id, node) in nodes.iter_mut().enumerate() {
            events.node = narrow::<NodeIndex>(id);
            model.start(node, narrow::<NodeIndex>(id), &mut AnyScheduler(&mut events));
        }
        let advance_at = vec![Time::MAX; nodes.len()];
        Stepper { nodes, events, advance_at, messages: 0 }
    }

    /// When the next event happens; `None` if nothing is left to happen.
    pub fn next_at(&self) -> Option<Time> {
        self.events.heap.peek().map(|Reverse(event)| event.at)
    }

    /// Messages handled, timers not counted.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Runs the next event and returns its node; `None` if nothing is left to happen.
    pub fn step(&mut self, model: &M) -> Option<NodeIndex> {
        let Reverse(Event { at, node: id, source, payload, .. }) = self.events.heap.pop()?;
        let Stepper { nodes, events, advance_at, messages } = self;
        let node = &mut nodes[id as usize];
        (events.now, events.node) = (at, id);
        let next = match payload {
            Some(mut payload) => {
                *messages += u64::from(!is_timer(source));
                model.handle(node, id, Due { at, source }, &mut payload, &mut AnyScheduler(events));
                Some(at)
            }
            None => {
                if advance_at[id as usize] == at {
                    advance_at[id as usize] = Time::MAX;
                }
                model.advance(node, id, at + Time(1), &mut AnyScheduler(events))
            }
        };
        if let Some(next) = next.filter(|&next| next < advance_at[id as usize]) {
            advance_at[id as usize] = next;
            events.push(next, true, id, TIMER, None);
        }
        Some(id)
    }

    /// Sets a timer of a node from outside: at the instant of the last event or later.
    ///
    /// # Panics
    /// If that instant has passed.
    pub fn timer(&mut self, node: NodeIndex, at: Time, payload: M::Payload) {
        assert!(at >= self.events.now, "a timer for {at} when {} had passed", self.events.now);
        self.events.push(at, false, node, DRIVER, Some(payload));
    }

    /// A node between two events.
    pub fn node_mut(&mut self, node: NodeIndex) -> &mut M::Node {
        &mut self.nodes[node as usize]
    }

    /// Ends the run here: the nodes, and the payloads of messages still under way.
    pub fn finish(self) -> (Vec<M::Node>, Vec<M::Payload>) {
        let events = self.events.heap.into_vec().into_iter().map(|Reverse(event)| event);
        let pending = events.filter(|event| !is_timer(event.source)).filter_map(|event| event.payload);
        (self.nodes, pending.collect())
    }
}

#[derive(Debug)]
struct EventList<P> {
    now: Time,
    node: NodeIndex,
    heap: BinaryHeap<Reverse<Event<P>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Event<P> {
    at: Time,
    /// An instant's advances come after all its messages and timers.
    last: bool,
    node: NodeIndex,
    source: u32,
    sequence: u64,
    /// `None` for an advance.
    payload: Option<P>,
}

impl<P> Event<P> {
    fn key(&self) -> (Time, bool, NodeIndex, u32, u64) {
        (self.at, self.last, self.node, self.source, self.sequence)
    }
}
impl<P> Ord for Event<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
impl<P> PartialOrd for Event<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> PartialEq for Event<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<P> Eq for Event<P> {}

impl<P> EventList<P> {
    fn push(&mut self, at: Time, last: bool, node: NodeIndex, source: u32, payload: Option<P>) {
        self.sequence += 1;
        self.heap.push(Reverse(Event { at, last, node, source, sequence: self.sequence, payload }));
    }
}

impl<P> Scheduler<P> for EventList<P> {
    fn send_with(&mut self, to: NodeIndex, source: u32, at: Time, make: impl FnOnce() -> P) {
        self.push(at, false, to, source, Some(make()));
    }

    fn timer(&mut self, at: Time, payload: P) {
        assert!(at >= self.now, "the model set a timer for {at} when {} had passed", self.now);
        self.push(at, false, self.node, TIMER, Some(payload));
    }

    /// Timers are events like all others here: nothing is ever done ahead of them.
    fn next_timer(&self) -> Time {
        Time::MAX
    }

    fn due_timer(&mut self, _: Time) -> Option<(Time, P)> {
        None
    }

    fn tally(&mut self, _: u64) {}

    /// A node can be looked at after each of its events.
    fn report(&mut self, _: bool) {}
}
