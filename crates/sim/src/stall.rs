//! Why a run stands still: deadlocks of lossless fabrics, found in the nodes that a run leaves behind.
//!
//! A lane that flow control has stopped goes on when packets leave the input buffer at its channel's end. It is *dead* if every
//! packet in that buffer waits in a dead lane itself. That is the greatest set with this property: lanes for which something can
//! still happen are taken out until none is left to take out.

use netloom_fabric::Ports;
use netloom_topology::{ChannelId, Network};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::{Node, World};

/// A data lane (from 0) of a channel.
type Lane = (ChannelId, usize);

/// A cycle of channels whose packets wait for each other, in words; none if nothing is deadlocked. No resume and no credit may be
/// on its way.
pub(crate) fn find_deadlock(world: &World, nodes: &[Node]) -> Option<Vec<String>> {
    if !world.rules.is_lossless() {
        return None;
    }
    let mut stopped: FxHashSet<Lane> = FxHashSet::default();
    // Per lane: the lanes in which the packets wait that hold its input buffer.
    let mut held_by: FxHashMap<Lane, Vec<Lane>> = FxHashMap::default();
    for node in nodes {
        let ports = node.ports();
        for port in 0..ports.len() as u16 {
            for lane in (0..world.rules.data_lanes()).filter(|&lane| !ports.is_open(port, lane)) {
                stopped.insert((ports.channel(port), lane));
            }
        }
        for (port, lane, packet) in ports.waiting_packets(&world.rules) {
            let (Some(lane), Some(ingress)) = (lane, input(ports, packet.ingress)) else { continue };
            let held = held_by.entry((ingress, world.rules.data_lane_in(packet))).or_default();
            held.push((ports.channel(port), lane));
        }
    }
    loop {
        let is_alive = |lane: &Lane| {
            held_by.get(lane).is_none_or(|waits| waits.iter().any(|next| !stopped.contains(next)))
        };
        let alive: Vec<Lane> = stopped.iter().copied().filter(is_alive).collect();
        if alive.is_empty() {
            break;
        }
        for lane in alive {
            stopped.remove(&lane);
        }
    }
    let mut lane = stopped.iter().copied().min()?;
    let mut way: Vec<Lane> = Vec::new();
    loop {
        if let Some(start) = way.iter().position(|&passed| passed == lane) {
            return Some(way[start..].iter().map(|&lane| describe(world, lane)).collect());
        }
        way.push(lane);
        lane = held_by.get(&lane)?.iter().copied().min()?;
    }
}

/// The channel that fills the input buffer of a port.
fn input(ports: &Ports, ingress: u16) -> Option<ChannelId> {
    (usize::from(ingress) < ports.len()).then(|| ports.channel(ingress) ^ 1)
}

fn describe(world: &World, (channel, lane): Lane) -> String {
    let name = channel_name(&world.network, channel);
    if world.rules.data_lanes() == 1 {
        return name;
    }
    let (class, vc) = world.rules.describe_lane(lane);
    format!("{name} (class {class}, virtual channel {vc})")
}

/// A channel by its ends.
pub(crate) fn channel_name(network: &Network, channel: ChannelId) -> String {
    let channel = network.channel(channel);
    format!("{} -> {}", network.node_name(channel.from), network.node_name(channel.to))
}
