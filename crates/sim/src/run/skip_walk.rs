//! What all searches for what can be skipped do with the whole of a run: walks pass through all nodes and all that is pending, and jumps move them.

use netloom_engine::{Pending, Session};
use netloom_fabric::Ports;
use netloom_units::recurrence::Walk;
use netloom_units::{Time, narrow};

use crate::message::Message;
use crate::node::Node;
use crate::world::World;

/// What a pause costs by itself, in messages handled. The same on any number of threads, though it costs more on several: so is what is skipped.
const PAUSE: u64 = 200;

/// And per node, as what it has received is taken up again.
const PAUSE_OF_NODE: u64 = 8;

/// The cost of a pause itself in a run of that many nodes, in messages handled.
pub(super) fn pause_cost(nodes: usize) -> u64 {
    PAUSE + PAUSE_OF_NODE * nodes as u64
}

/// Nodes whose pending messages are gathered at once.
const AT_ONCE: usize = 256;

/// Whether it is due at an instant that stays while time comes nearer.
fn stays(message: &Message, walk: &Walk) -> bool {
    // What a program calculates while messages succeed others is a part of what recurs.
    let recurs = walk.has_successors() && matches!(message, Message::Wake);
    message.is_at_a_fixed_time() && !recurs
}

/// How many more periods are the same as the last one, in a run that ends at `end`.
pub(super) fn foreseen(walk: &Walk, session: &Session<World>, end: Time) -> u64 {
    // What is due at a fixed time comes after everything that is in flight then.
    let mut last = session.reached();
    session.look_at_pending(|_, due, message| {
        if !message.is_alarm(due.source) && !stays(message, walk) {
            last = last.max(due.at);
        }
    });
    let until = walk.until().min(end);
    let time = until.saturating_sub(last).saturating_sub(Time(1));
    walk.periods().min(time.0.checked_div(walk.period().0).unwrap_or(0))
}

/// How far a walk has passed.
pub(super) struct Passed {
    /// What it has cost, in messages handled.
    pub(super) cost: u64,
    /// The node that it has passed through last: if it has met with anything that differs, then there.
    pub(super) last: u32,
}

/// The walk passes through what is pending for these nodes, and through them, as far as it is worth while.
pub(super) fn pass(
    (world, session): (&World, &mut Session<World>),
    nodes: &[u32],
    walk: &mut Walk,
) -> Passed {
    let (mut passed, mut events) = (Passed { cost: 0, last: 0 }, 0);
    // A node that is brought to the instant may send something to another one.
    nodes.iter().for_each(|&node| _ = session.node(node));
    'walk: for some in nodes.chunks(AT_ONCE) {
        let mut pending = session.pending(some.iter().copied());
        events += pending.len() as u64;
        for (&node, pending) in some.iter().zip(by_node(some, &mut pending)) {
            passed.last = node;
            pass_one((world, session), (node, pending), walk);
            if !walk.goes_on() {
                break 'walk;
            }
        }
    }
    passed.cost = events + walk.passed_by() as u64 / 16;
    passed
}

/// Passes through all of a state that recurs and moves it by as many periods; returns what is pending then.
fn moved(
    (world, session): (&World, &mut Session<World>),
    walk: &mut Walk,
    periods: u64,
) -> Vec<Pending<Message>> {
    walk.begin_to_move(periods);
    let time = walk.time_moved();
    let nodes: Vec<u32> = (0..session.nodes()).collect();
    let mut all = session.pending(nodes.iter().copied());
    for (&node, pending) in nodes.iter().zip(by_node(&nodes, &mut all)) {
        pass_one((world, session), (node, pending), walk);
        if walk.has_successors() {
            // There may be many of them.
            hand_in(world, node, session.node(node));
        }
        for event in pending.iter_mut().filter(|event| event.payload.is_alarm(event.due.source)) {
            event.due.at += time;
            event.payload.follow(node, walk);
        }
    }
    all
}

/// What a jump has skipped.
#[derive(Clone, Copy)]
pub(super) struct Jump {
    pub(super) time: Time,
    /// Messages of the engine.
    pub(super) messages: u64,
    /// Those among them that are packets.
    pub(super) packet_hops: u64,
}

impl Jump {
    /// One that has skipped a time and a number of messages. `before`: the [packet-hops](packet_hops) until then.
    pub(super) fn new(
        (world, session): (&World, &mut Session<World>),
        time: Time,
        (messages, before): (u64, Option<u64>),
    ) -> Self {
        let skipped = packet_hops(world, session).zip(before).map(|(now, before)| now - before);
        Jump { time, messages, packet_hops: skipped.unwrap_or(messages) }
    }
}

/// Goes on by that many periods from a state that recurs. `messages` and `tally` are the counts of the session at the beginning of the period that it repeats.
pub(super) fn jump(
    (world, session): (&World, &mut Session<World>),
    walk: &mut Walk,
    (messages, tally): (u64, u64),
    periods: u64,
) -> Jump {
    let (now, time) = (session.reached(), walk.period() * periods);
    let messages = (session.messages() - messages) * periods;
    let tally = (session.tally() - tally) * periods;
    let before = packet_hops(world, session);
    let pending = moved((world, session), walk, periods);
    session.jump(now + time, (messages, tally), &pending);
    Jump::new((world, session), time, (messages, before))
}

/// How many packets have crossed a channel so far, where that is not the number of messages.
pub(super) fn packet_hops(world: &World, session: &mut Session<World>) -> Option<u64> {
    if world.is_lossy {
        return None;
    }
    let (now, nodes) = (session.reached(), 0..session.nodes());
    let of_ports = |ports: &mut Ports| {
        let of_port = |port| ports.stats_of(port, now).packets + ports.handed_on_early(port, now);
        (0..narrow::<u16>(ports.len())).map(of_port).sum::<u64>()
    };
    Some(nodes.map(|node| session.node(node).ports_mut().into_iter().map(of_ports).sum::<u64>()).sum())
}

/// What is pending for each of these nodes.
fn by_node<'p>(
    nodes: &[u32],
    mut pending: &'p mut [Pending<Message>],
) -> impl Iterator<Item = &'p mut [Pending<Message>]> {
    nodes.iter().map(move |&node| {
        let count = pending.iter().take_while(|event| event.node == node).count();
        let (of_node, others) = std::mem::take(&mut pending).split_at_mut(count);
        pending = others;
        of_node
    })
}

/// Passes through what is pending for a node, and through the node.
fn pass_one(
    (world, session): (&World, &mut Session<World>),
    (node, pending): (u32, &mut [Pending<Message>]),
    walk: &mut Walk,
) {
    walk.exact(node);
    let events = pending.iter_mut().filter(|event| !event.payload.is_alarm(event.due.source));
    for Pending { due, payload, .. } in events {
        // There is no message without a place in the order of its node.
        walk.exact(1 << u32::BITS | u64::from(due.source));
        match stays(payload, walk) {
            true => walk.deadline(&mut due.at),
            false => walk.time(&mut due.at),
        }
        payload.recur(walk);
        if !walk.goes_on() {
            return;
        }
    }
    let now = session.reached();
    session.node(node).recur(world, (node, now), walk);
}

/// A state of a run in which flows may be succeeded by others, to be compared with later ones.
pub(super) struct NotedRun {
    walk: Walk,
    messages: u64,
    tally: u64,
    handed_in: (u64, u64),
}

impl NotedRun {
    /// The present state. What that costs is added to `spent`, in messages handled.
    pub(super) fn new(world: &World, session: &mut Session<World>, spent: &mut u64) -> Self {
        let nodes: Vec<u32> = (0..session.nodes()).collect();
        let mut walk = Walk::note(session.reached()).with_successors();
        *spent += pass((world, session), &nodes, &mut walk).cost;
        let (messages, tally) = (session.messages(), session.tally());
        NotedRun { walk, messages, tally, handed_in: handed_in(world) }
    }

    /// Whether something in it is not known to recur.
    pub(super) fn is_refused(&self) -> bool {
        self.walk.refusal().is_some()
    }

    /// Whether flows have been handed in since, so that no more is known of them.
    pub(super) fn has_lost_flows(&self, world: &World) -> bool {
        self.handed_in != handed_in(world)
    }

    /// Compares the present state: how many more periods are the same as the one since this state, in a run that ends at `end`; none if it differs.
    pub(super) fn periods(
        &mut self,
        world: &World,
        session: &mut Session<World>,
        end: Time,
        spent: &mut u64,
    ) -> u64 {
        let nodes: Vec<u32> = (0..session.nodes()).collect();
        self.walk.begin_to_compare(session.reached());
        *spent += pass((world, session), &nodes, &mut self.walk).cost;
        match self.walk.recurs() && !self.has_lost_flows(world) {
            true => foreseen(&self.walk, session, end),
            false => 0,
        }
    }

    /// Goes on by that many periods from the state that was compared last.
    pub(super) fn jump(mut self, world: &World, session: &mut Session<World>, periods: u64) -> Jump {
        jump((world, session), &mut self.walk, (self.messages, self.tally), periods)
    }
}

/// How many flows have been handed in at their senders and receivers.
fn handed_in(world: &World) -> (u64, u64) {
    (world.recorder.sent.rows(), world.recorder.received.rows())
}

/// Hands in what a node knows of flows that have ended, if there are many of them.
fn hand_in(world: &World, node: u32, state: &mut Node) {
    for (id, host) in state.hosts_mut(node) {
        host.hand_in_many(world, id);
        host.receivers.hand_in_many(&world.recorder);
    }
}

/// Hands in what all nodes know of flows that have ended.
pub(super) fn hand_in_all(world: &World, session: &mut Session<World>) {
    for node in 0..session.nodes() {
        for (id, host) in session.node(node).hosts_mut(node) {
            if !host.sent.is_empty() {
                host.hand_in(world, id);
            }
            host.receivers.hand_in_now(&world.recorder.received);
        }
    }
}
