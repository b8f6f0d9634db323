//! The textbook executor, for reference: one future event list for all nodes, a heap, and one event at a time.
//!
//! It exists to check the [engine](crate::Engine) and to measure it against: the same model must give identical nodes under
//! both. It runs a departure event for every port that has something to send, as classic simulators do. Because it can stop
//! between any two events, it also carries [runs that are driven from outside](Stepper).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use netloom_units::{Time, narrow};

use crate::model::{AnyScheduler, DRIVER, Due, Model, NodeIndex, Scheduler, TIMER, is_timer};

/// Runs `model` until nothing is left to happen and returns the nodes and the number of messages handled.
pub fn run<M: Model>(model: &M, nodes: Vec<M::Node>) -> (Vec<M::Node>, u64) {
    let mut steps = Stepper::new(model, nodes);
    while steps.step(model, Time::MAX).is_some() {}
    (steps.nodes, steps.messages)
}

/// A run that goes on event by event, and to which events can be added between any two of them.
#[derive(Debug)]
pub struct Stepper<M: Model> {
    nodes: Vec<M::Node>,
    events: EventList<M::Payload>,
    /// Per node: the earliest advance that is to come.
    advance_at: Vec<Time>,
    /// Nodes to advance at the instant of the last event, which come after all else of it. Most advances follow an event at once: these need no place in the heap.
    at_once: BinaryHeap<Reverse<NodeIndex>>,
    messages: u64,
}

impl<M: Model> Stepper<M> {
    /// Starts the nodes.
    ///
    /// # Panics
    /// If there are 2³¹ nodes or more.
    pub fn new(model: &M, mut nodes: Vec<M::Node>) -> Self {
        assert!(nodes.len() < 1 << 31, "nodes have numbers of 31 bits");
        let mut events = EventList {
            now: Time::ZERO,
            node: 0,
            first: None,
            heap: BinaryHeap::new(),
            sequence: 0,
            payloads: Vec::new(),
            free: Vec::new(),
            reports: None,
        };
        for (id, node) in nodes.iter_mut().enumerate() {
            events.node = narrow::<NodeIndex>(id);
            model.start(node, narrow::<NodeIndex>(id), &mut AnyScheduler(&mut events));
        }
        let advance_at = vec![Time::MAX; nodes.len()];
        Stepper { nodes, events, advance_at, at_once: BinaryHeap::new(), messages: 0 }
    }

    /// When the next event happens; `None` if nothing is left to happen.
    pub fn next_at(&self) -> Option<Time> {
        match self.at_once.is_empty() {
            true => self.events.peek().map(Event::at),
            false => Some(self.events.now),
        }
    }

    /// When the last event happened.
    pub fn now(&self) -> Time {
        self.events.now
    }

    /// Messages handled, timers not counted.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Runs the next event and returns its node; `None` if nothing is left to happen before `until`.
    #[inline]
    pub fn step(&mut self, model: &M, until: Time) -> Option<NodeIndex> {
        let Stepper { nodes, events, advance_at, at_once, messages } = self;
        let next = events.peek();
        let at_once = match at_once.peek() {
            Some(&Reverse(node)) if next.is_none_or(|next| next.when >= Event::advance(events.now, node)) => {
                if events.now >= until {
                    return None;
                }
                at_once.pop();
                Some(node)
            }
            _ => None,
        };
        let (at, id, taken) = match at_once {
            Some(node) => (events.now, node, None),
            None => {
                let event = next.filter(|next| next.at() < until)?;
                events.pop();
                (event.at(), event.node(), events.take(event).map(|payload| (event.source(), payload)))
            }
        };
        (events.now, events.node) = (at, id);
        let node = &mut nodes[id as usize];
        let next = match taken {
            Some((source, mut payload)) => {
                *messages += u64::from(!is_timer(source));
                model.handle(node, id, Due { at, source }, &mut payload, &mut AnyScheduler(events));
                at
            }
            None => {
                if advance_at[id as usize] == at {
                    advance_at[id as usize] = Time::MAX;
                }
                model.advance(node, id, at + Time(1), &mut AnyScheduler(events)).unwrap_or(Time::MAX)
            }
        };
        if next < advance_at[id as usize] {
            advance_at[id as usize] = next;
            match next == at {
                true => self.at_once.push(Reverse(id)),
                false => events.push_advance(next, id),
            }
        }
        Some(id)
    }

    /// Sets a timer of a node from outside: at the instant of the last event or later.
    ///
    /// # Panics
    /// If that instant has passed.
    pub fn timer(&mut self, node: NodeIndex, at: Time, payload: M::Payload) {
        assert!(at >= self.events.now, "a timer for {at} when {} had passed", self.events.now);
        self.events.push(at, node, DRIVER, payload);
    }

    /// Whether a node has [reported](Scheduler::report) something since the last call; and if so, whether any of that pauses a run.
    pub fn take_reports(&mut self) -> Option<bool> {
        self.events.reports.take()
    }

    /// A node between two events.
    pub fn node_mut(&mut self, node: NodeIndex) -> &mut M::Node {
        &mut self.nodes[node as usize]
    }

    /// Ends the run here: the nodes, and the payloads of messages still under way.
    pub fn finish(self) -> (Vec<M::Node>, Vec<M::Payload>) {
        let EventList { first, heap, mut payloads, .. } = self.events;
        let mut is_message = vec![false; payloads.len()];
        for event in heap.into_iter().map(|Reverse(event)| event).chain(first) {
            if !is_timer(event.source()) && event.slot != Event::ADVANCE {
                is_message[event.slot as usize] = true;
            }
        }
        let mut is_message = is_message.into_iter();
        payloads.retain(|_| is_message.next() == Some(true));
        (self.nodes, payloads)
    }
}

#[derive(Debug)]
struct EventList<P> {
    now: Time,
    node: NodeIndex,
    /// Comes before all of the heap: what is added to come next needs no way up and down there.
    first: Option<Event>,
    heap: BinaryHeap<Reverse<Event>>,
    sequence: u64,
    /// What the events carry, apart from the heap, in which they are moved often.
    payloads: Vec<P>,
    /// Places of `payloads` that no event has.
    free: Vec<u32>,
    /// Nodes have reported something since this was last taken, and whether any of that pauses.
    reports: Option<bool>,
}

/// An event, in the order in which they happen: by time, an instant's advances after all its messages and timers, node, source and order of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    /// From the highest bit on: the time (64), whether it is an advance (1), the node (31) and the source (32).
    when: u128,
    sequence: u64,
    /// The place of its payload, or [`Self::ADVANCE`].
    slot: u32,
}

#[expect(clippy::cast_possible_truncation, reason = "parts of a number")]
impl Event {
    /// The slot of an advance, which carries nothing.
    const ADVANCE: u32 = u32::MAX;

    /// The [place in the order](Self::when) of an advance.
    fn advance(at: Time, node: NodeIndex) -> u128 {
        u128::from(at.0) << 64 | u128::from(1u64 << 63 | u64::from(node) << 32 | u64::from(TIMER))
    }

    fn at(self) -> Time {
        Time((self.when >> 64) as u64)
    }

    fn node(self) -> NodeIndex {
        (self.when >> 32) as u32 & (u32::MAX >> 1)
    }

    fn source(self) -> u32 {
        self.when as u32
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.when, self.sequence).cmp(&(other.when, other.sequence))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    /// Without branches, which a processor would often guess wrong in a heap; no event has the last place in the order.
    #[inline(always)]
    fn lt(&self, other: &Self) -> bool {
        self.when < other.when + u128::from(self.sequence < other.sequence)
    }

    #[inline(always)]
    fn le(&self, other: &Self) -> bool {
        !other.lt(self)
    }

    #[inline(always)]
    fn gt(&self, other: &Self) -> bool {
        other.lt(self)
    }

    #[inline(always)]
    fn ge(&self, other: &Self) -> bool {
        !self.lt(other)
    }
}

impl<P: Copy> EventList<P> {
    /// Adds an event that carries something.
    fn push(&mut self, at: Time, node: NodeIndex, source: u32, payload: P) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.payloads[slot as usize] = payload;
                slot
            }
            None => {
                self.payloads.push(payload);
                narrow::<u32>(self.payloads.len()) - 1
            }
        };
        self.add(u128::from(at.0) << 64 | u128::from(u64::from(node) << 32 | u64::from(source)), slot);
    }

    /// Adds an advance.
    fn push_advance(&mut self, at: Time, node: NodeIndex) {
        self.add(Event::advance(at, node), Event::ADVANCE);
    }

    fn add(&mut self, when: u128, slot: u32) {
        self.sequence += 1;
        let event = Event { when, sequence: self.sequence, slot };
        let later = match self.peek() {
            Some(next) if event > next => Some(event),
            _ => self.first.replace(event),
        };
        if let Some(later) = later {
            self.heap.push(Reverse(later));
        }
    }

    /// The next event.
    #[inline(always)]
    fn peek(&self) -> Option<Event> {
        self.first.or_else(|| self.heap.peek().map(|&Reverse(event)| event))
    }

    /// Takes the next event out.
    #[inline(always)]
    fn pop(&mut self) {
        if self.first.take().is_none() {
            self.heap.pop();
        }
    }

    /// What an event carries that happens; `None` for an advance.
    fn take(&mut self, event: Event) -> Option<P> {
        if event.slot == Event::ADVANCE {
            return None;
        }
        self.free.push(event.slot);
        Some(self.payloads[event.slot as usize])
    }
}

impl<P: Copy> Scheduler<P> for EventList<P> {
    fn send_with(&mut self, to: NodeIndex, source: u32, at: Time, make: impl FnOnce() -> P) {
        self.push(at, to, source, make());
    }

    fn timer_from(&mut self, source: u32, at: Time, payload: P) {
        assert!(at >= self.now, "the model set a timer for {at} when {} had passed", self.now);
        self.push(at, self.node, source, payload);
    }

    /// Timers are events like all others here: nothing is ever done ahead of them.
    fn next_timer(&self) -> Time {
        Time::MAX
    }

    fn due_timer(&mut self, _: Due) -> Option<(Due, P)> {
        None
    }

    fn tally(&mut self, _: u64) {}

    fn report(&mut self, pauses: bool) {
        self.reports = Some(pauses | self.reports.unwrap_or(false));
    }
}
