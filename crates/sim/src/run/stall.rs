//! Whether and why a run stands still: deadlocks of lossless fabrics, found in the nodes that a run leaves behind.
//!
//! A queue that flow control has stopped goes on when packets leave the input buffer at its channel's end. It is *dead* if every
//! packet in that buffer waits in a dead queue itself. That is the greatest set with this property: queues for which something can
//! still happen are taken out until none is left to take out.

use std::sync::atomic::Ordering;

use netloom_fabric::Ports;
use netloom_topology::ChannelId;
use netloom_units::{Time, narrow};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::channel::channel_name;
use crate::node::Node;
use crate::world::World;

/// Notices that nothing moves any more although timers still fire, as those of go-back-N senders do in a deadlock.
///
/// That no message has crossed a channel for long does not suffice: a program may be calculating, or the next message be meant to start
/// much later. So no calculation may be under way, and something must have happened many times without a message coming of it.
pub(crate) struct Stall {
    /// Only a user who allows deadlocks gets one, and perhaps packets under way while routes change.
    is_possible: bool,
    /// What waits may wait for a repair until then.
    from: Time,
    messages: u64,
    since: Time,
    /// How often something has happened since the last message.
    looks: u32,
}

impl Stall {
    /// Longer than any timeout.
    const PATIENCE: Time = Time::from_ms(10_000);
    const LOOKS: u32 = 100;

    pub(crate) fn new(world: &World) -> Self {
        let may_deadlock = world.fabric.flow_control.may_deadlock() || !world.epochs.is_empty();
        let is_possible = world.rules.is_lossless() && may_deadlock;
        let from = world.wiring.faults.last_change();
        Stall { is_possible, from, messages: 0, since: Time::ZERO, looks: 0 }
    }

    /// Whether the run, at `now` and after `messages` messages, stands still. Asked whenever something has happened.
    pub(crate) fn is_seen(&mut self, world: &World, now: Time, messages: u64) -> bool {
        if !self.is_possible {
            return false;
        }
        if messages != self.messages || world.calculations.load(Ordering::Relaxed) > 0 {
            *self = Stall { messages, since: now, looks: 0, ..*self };
        }
        self.looks += 1;
        self.looks > Self::LOOKS && now > self.since.max(self.from) + Self::PATIENCE
    }
}

/// A data queue (from 0) of a channel.
type DataQueue = (ChannelId, usize);

/// A cycle of channels whose packets wait for each other, in words; none if nothing is deadlocked. No resume and no credit may be
/// on its way.
pub(crate) fn find_deadlock(world: &World, nodes: &[Node]) -> Option<Vec<String>> {
    if !world.rules.is_lossless() {
        return None;
    }
    let mut stopped: FxHashSet<DataQueue> = FxHashSet::default();
    // Per queue: the queues in which the packets wait that hold its input buffer.
    let mut held_by: FxHashMap<DataQueue, Vec<DataQueue>> = FxHashMap::default();
    for ports in nodes.iter().filter_map(Node::ports) {
        for port in 0..narrow::<u16>(ports.len()) {
            for queue in (0..world.rules.data_queues()).filter(|&queue| !ports.may_send(port, queue)) {
                stopped.insert((ports.channel(port), queue));
            }
        }
        for (port, queue, packet) in ports.waiting_packets(&world.rules) {
            let (Some(queue), Some(ingress)) = (queue, input(ports, packet.ingress)) else { continue };
            let held = held_by.entry((ingress, world.rules.data_queue_in(packet))).or_default();
            held.push((ports.channel(port), queue));
        }
    }
    loop {
        let is_alive = |queue: &DataQueue| {
            held_by.get(queue).is_none_or(|waits| waits.iter().any(|next| !stopped.contains(next)))
        };
        let alive: Vec<DataQueue> = stopped.iter().copied().filter(is_alive).collect();
        if alive.is_empty() {
            break;
        }
        for queue in alive {
            stopped.remove(&queue);
        }
    }
    let mut queue = stopped.iter().copied().min()?;
    let mut chain: Vec<DataQueue> = Vec::new();
    loop {
        if let Some(start) = chain.iter().position(|&passed| passed == queue) {
            return Some(chain[start..].iter().map(|&queue| describe(world, queue)).collect());
        }
        chain.push(queue);
        queue = held_by.get(&queue)?.iter().copied().min()?;
    }
}

/// The channel that fills the input buffer of a port.
fn input(ports: &Ports, ingress: u16) -> Option<ChannelId> {
    (usize::from(ingress) < ports.len()).then(|| ports.channel(ingress) ^ 1)
}

fn describe(world: &World, (channel, queue): DataQueue) -> String {
    let name = channel_name(&world.network, channel);
    if world.rules.data_queues() == 1 {
        return name;
    }
    let (class, vc) = world.rules.describe_queue(queue);
    format!("{name} (class {class}, virtual channel {vc})")
}
