//! What every channel did, as records.

use std::sync::Arc;

use netloom_fabric::Ports;
use netloom_record::{ChannelRecord, Sink, Totals};
use netloom_units::{Bytes, Rate, Time, narrow};

use crate::background::Carried;
use crate::node::Node;
use crate::world::World;

/// How many links before a link its ports are fetched, and how many before those the nodes that know where these are.
pub(crate) const AHEAD: usize = 8;

/// Hands on what every channel did, used or not, in their order; `beside`: what each carried besides packets, if any did. Returns how many packets were handed
/// to all of them.
pub(crate) fn hand_on_channels(
    world: &World,
    nodes: &[Node],
    totals: &Totals,
    beside: &[Carried],
    sink: &mut dyn Sink,
) -> u64 {
    let (network, end) = (&world.network, totals.simulated);
    let instant = world.instant(end);
    let tiers: Vec<Arc<str>> = network.tiers().iter().map(|tier| tier.as_str().into()).collect();
    // A host is named once, at its one link.
    let switches = network.hosts()..network.nodes();
    let switches: Vec<Arc<str>> = switches.map(|switch| network.node_name(switch).into()).collect();
    let name = |node: u32| match node.checked_sub(network.hosts()) {
        Some(switch) => switches[switch as usize].clone(),
        None => network.node_name(node).into(),
    };
    let links = network.links();
    // The ports and numbers of a link's two channels. What nothing has reached has no ports, and has done nothing.
    let channels = |link: usize| {
        let ends = links.get(link).map(|ends| [ends.a, ends.b]).into_iter().flatten();
        ends.map(|node| nodes[world.nic(node) as usize].ports()).zip(2 * narrow::<u32>(link)..)
    };
    // What ports have handed on, whether it has begun to leave or not.
    let mut sent = 0;
    for (number, link) in links.iter().enumerate() {
        // The ports of one link after the other lie far apart.
        channels(number + 2 * AHEAD).filter_map(|(ports, _)| ports).for_each(Ports::expect);
        for (ports, id) in channels(number + AHEAD) {
            if let Some(ports) = ports {
                ports.expect_stats_of(world.wiring.port_of(id));
            }
        }
        let (a, b) = (name(link.a), name(link.b));
        for ((ports, id), (from, to)) in channels(number).zip([(&a, &b), (&b, &a)]) {
            let port = world.wiring.port_of(id);
            let stats = ports.map(|ports| ports.stats_of(port, instant)).unwrap_or_default();
            sent += stats.packets + ports.map_or(0, |ports| ports.handed_on_early(port, instant));
            let (bytes_in_drain, busy_in_drain) =
                ports.map(|ports| ports.in_drain(port, instant)).unwrap_or_default();
            let packets = Carried { bytes: stats.bytes, busy: stats.busy, bytes_in_drain, busy_in_drain };
            let all = match beside.get(id as usize) {
                Some(beside) => both(packets, beside, link.rate),
                None => packets,
            };
            let share = |of: Time| share(all.busy - all.busy_in_drain, of);
            sink.channel(ChannelRecord {
                channel: id,
                from: from.clone(),
                to: to.clone(),
                tier: tiers[usize::from(link.tier)].clone(),
                rate: link.rate,
                bytes: all.bytes,
                packets: stats.packets,
                busy: all.busy,
                bytes_in_drain: all.bytes_in_drain,
                busy_in_drain: all.busy_in_drain,
                utilisation: share(totals.load_end()),
                active_utilisation: share(totals.active()),
                max_queue: stats.max_queue,
                mean_queue: stats.mean_queue(end),
                drops: stats.drops,
                lost: stats.lost,
                trims: stats.trims,
                returned_to_sender: stats.returned_to_sender,
                marks: stats.marks,
                paused: stats.paused,
                pauses: stats.pauses,
            });
        }
    }
    sent
}

/// What a channel carried in packets and besides. Where both are, packets leave at a part of its rate: they count as long as they would have taken at all of it.
fn both(packets: Carried, beside: &Carried, rate: Rate) -> Carried {
    if beside.bytes == 0 {
        return packets;
    }
    let busy_in_drain = rate.serialize(Bytes(packets.bytes_in_drain)) + beside.busy_in_drain;
    Carried {
        bytes: packets.bytes + beside.bytes,
        busy: (rate.serialize(Bytes(packets.bytes)) + beside.busy).max(busy_in_drain),
        bytes_in_drain: packets.bytes_in_drain + beside.bytes_in_drain,
        busy_in_drain,
    }
}

/// A part of a time that may be none.
pub(crate) fn share(part: Time, whole: Time) -> f64 {
    if whole == Time::ZERO { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}
