//! Steps of programs that are the same: skipped as [what recurs within one](super::skip).
//!
//! In each step of a ring every host sends the next message to the same host as before. So what the step before has done it does again, with messages of other numbers: their senders and
//! receivers have succeeded those of the step before, and programs are as many operations further on. Where packets have one path only, nothing depends on these numbers. States are
//! compared where the first packet of a message arrives, always between the same two hosts. What is kept of messages that have ended is kept again for each step that is skipped.

use std::sync::atomic::Ordering;

use netloom_engine::{Pending, Session};
use netloom_fabric::PacketKind;
use netloom_topology::HostId;
use netloom_units::Time;
use rustc_hash::FxHashSet;

use crate::message::Message;
use crate::run::skip_walk::{Jump, NotedRun, hand_in_all};
use crate::world::World;

/// Two hosts of which one sends messages to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// Where they arrive, and the host from which they come.
    pub(super) node: u32,
    pub(super) src: u32,
}

impl Pair {
    /// Whether the first packet of a message arrives.
    pub(super) fn begins_by(self, event: &Pending<Message>) -> bool {
        matches!(&event.payload, Message::Packet(packet) if packet.kind == PacketKind::Data && packet.seq == 0
            && event.node == self.node && packet.src == self.src)
    }

    /// A flow between the two of which data arrive, and how many packets it has left to send; the one that has most.
    pub(super) fn left(
        self,
        world: &World,
        session: &mut Session<World>,
        pending: &[Pending<Message>],
    ) -> Option<(u32, u32)> {
        let flows = pending.iter().filter_map(|event| match &event.payload {
            Message::Packet(packet) if packet.kind == PacketKind::Data && packet.src == self.src => {
                Some((packet.flow, packet.slot))
            }
            _ => None,
        });
        let flows: FxHashSet<(u32, u32)> = flows.collect();
        let sender = session.node(world.node(self.src));
        let left = flows
            .into_iter()
            .filter_map(|(flow, slot)| Some((sender.left_of((self.src, flow), slot)?, flow)));
        left.filter(|&(left, _)| left > 0).max().map(|(left, flow)| (flow, left))
    }
}

/// The search for a state that recurs with other messages.
#[derive(Default)]
pub(super) struct Steps {
    /// The messages at whose beginning states are compared.
    pair: Option<Pair>,
    /// How often none has begun in time, and how many jumps are let pass until the next one is awaited.
    misses: u32,
    pause: u32,
    /// The state that is compared with those at which later jumps land.
    noted: Option<NotedRun>,
    /// How often it has been compared, and how often that is done before another state is noted.
    compared: u32,
    limit: u32,
    is_over: bool,
}

/// States to compare with one that has been noted, at most: what steps alternate between.
const MOST_STEPS: u32 = 256;

/// The binary logarithm of the jumps that are let pass, at most.
const MOST_MISSES: u32 = 8;

/// Flows of all hosts that are kept longer, at most, and those of one host: as many may end between two states that are compared.
const MOST_KEPT: u32 = 1 << 17;
const MOST_OF_HOST: u32 = 1 << 10;

/// How many flows each of these hosts keeps longer.
pub(crate) fn kept_longer(hosts: u32) -> usize {
    (MOST_KEPT / hosts.max(1)).min(MOST_OF_HOST) as usize
}

impl Steps {
    /// The messages to be awaited after a jump; those of `pair` if there is no reason for others.
    pub(super) fn pair(
        &mut self,
        world: &World,
        session: &mut Session<World>,
        pair: Pair,
        spent: &mut u64,
    ) -> Option<Pair> {
        if self.pair.is_none() && !self.is_over {
            self.is_over = !(0..session.nodes()).any(|node| session.node(node).follows_program())
                || !takes_one_path(world, session, spent);
        }
        self.pause = self.pause.saturating_sub(1);
        if self.is_over || self.pause > 0 {
            return None;
        }
        Some(*self.pair.get_or_insert(pair))
    }

    /// None has begun.
    pub(super) fn miss(&mut self) {
        (self.pair, self.noted) = (None, None);
        self.misses += 1;
        self.pause = 1 << self.misses.min(MOST_MISSES);
    }

    /// A message begins: compares the state with the one that was noted, and goes on by as many periods as are known to be the same.
    pub(super) fn look(
        &mut self,
        world: &World,
        session: &mut Session<World>,
        end: Time,
        spent: &mut u64,
    ) -> Option<Jump> {
        if self.is_over || world.servers.as_ref().is_some_and(|servers| servers.has_notes()) {
            return None;
        }
        self.misses = 0;
        if let Some(noted) = &mut self.noted {
            self.compared += 1;
            let periods = noted.periods(world, session, end, spent);
            if periods > 0 {
                let pair = self.pair;
                let noted = std::mem::replace(self, Steps { pair, ..Steps::default() }).noted?;
                return Some(noted.jump(world, session, periods));
            }
            if self.compared < self.limit {
                return None;
            }
        }
        // During a repetition that is looked at as a whole there is room for all.
        if world.recorder.kept_in_repetition.load(Ordering::Relaxed) == 0 {
            hand_in_all(world, session);
        }
        self.limit = (2 * self.limit).clamp(1, MOST_STEPS);
        self.compared = 0;
        let noted = NotedRun::new(world, session, spent);
        self.is_over = noted.is_refused();
        self.noted = Some(noted);
        None
    }
}

/// Whether there is one path only for each flow that sends or has ended since the last ones were handed in, and for its answers. Else which one they take may depend on their numbers. What
/// that costs is added to `spent`, in messages handled.
pub(super) fn takes_one_path(world: &World, session: &mut Session<World>, spent: &mut u64) -> bool {
    let mut seen: FxHashSet<HostId> = FxHashSet::default();
    for node in 0..session.nodes() {
        for (src, host) in session.node(node).hosts_mut(node) {
            seen.clear();
            *spent += host.sent.len() as u64 / 16;
            let sending = host.flows.iter().flatten().map(|flow| flow.dst);
            for dst in sending.chain(host.sent.iter().map(|sent| sent.dst())) {
                if seen.insert(dst) {
                    *spent += 1;
                    if !world.has_one_path(src, dst) {
                        return false;
                    }
                }
            }
        }
    }
    true
}
