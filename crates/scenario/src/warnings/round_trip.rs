//! The round trip of an idle network, and what is too small for it: timeouts and buffers.

use netloom_fabric::FlowControl;
use netloom_sim::Fault;
use netloom_topology::{Network, NodeId};
use netloom_units::{Bytes, Rate, Time};

use crate::scenario::Scenario;

/// A timeout below the round trip of an idle network sends again what has not been lost.
pub(super) fn early_timeouts(scenario: &Scenario, network: &Network, farthest: &Farthest) -> Option<String> {
    let is_armed = scenario.fabric.is_lossy()
        || scenario.transport.refuses()
        || scenario.faults.iter().any(Fault::loses_packets)
        || !network.error_rates().is_empty();
    let options = &scenario.transport.options;
    let sack_bytes = scenario.transport.reliability.facts().sack_bytes;
    // A packet waits for those with which it shares its ACK.
    let wait = sack_bytes.map_or(Time::ZERO, |bytes| {
        let packet = scenario.transport.packet_size().0;
        farthest.rate.serialize(Bytes(bytes.0.div_ceil(packet).saturating_mul(packet)))
    });
    let is_armed = is_armed || sack_bytes.is_some();
    let (field, timeout) = [("rto_min", options.rto_min), ("rto_initial", options.rto_initial)]
        .into_iter()
        .find(|(_, timeout)| *timeout < farthest.round_trip.saturating_add(wait))?;
    let share = if wait > Time::ZERO {
        format!(" and {} until a packet's ACK is due (reliability.ack_bytes)", wait.rounded())
    } else {
        String::new()
    };
    is_armed.then(|| {
        format!(
            "transport.{field}: {} is below the idle round trip from h0 to h{}, {}{share}: packets that were not lost are sent again",
            timeout.rounded(), farthest.host, farthest.round_trip.rounded()
        )
    })
}

/// The part of a sender's bandwidth-delay product that a buffer does not hold is paused before any congestion control has heard of it.
pub(super) fn small_pause_buffers(scenario: &Scenario, farthest: &Farthest) -> Option<String> {
    let buffer = match &scenario.fabric.flow_control {
        FlowControl::Pfc(pfc) => pfc.buffer,
        _ => return None,
    };
    let product = farthest.rate.bytes_in(farthest.round_trip);
    (buffer < product).then(|| {
        format!(
            "fabric.flow_control.buffer: {buffer} is below the bandwidth-delay product from h0 to h{}, {product}: \
             switches pause before any congestion control can react",
            farthest.host
        )
    })
}

/// The host that is the most hops away from the first, and what lies between.
pub(super) struct Farthest {
    pub(super) host: NodeId,
    /// Links on the path there.
    pub(super) hops: u32,
    /// Of a full packet there and its ACK back, on the idle network.
    pub(super) round_trip: Time,
    /// Rate of the first host's link.
    pub(super) rate: Rate,
}

impl Farthest {
    pub(super) fn of(scenario: &Scenario, network: &Network) -> Self {
        let transport = scenario.transport.clone().on_the_wire();
        let (packet, ack) = (transport.packet_size(), transport.options.ack_size);
        let cut = scenario.fabric.options.cut_through;
        let mut reached: Vec<Option<(Time, u32)>> = vec![None; network.nodes() as usize];
        reached[0] = Some((Time::ZERO, 0));
        let mut queue = std::collections::VecDeque::from([0]);
        let mut host = 0;
        // Breadth first: the last host reached is one of the farthest.
        while let Some(node) = queue.pop_front() {
            let (so_far, hops) = reached[node as usize].unwrap_or_default();
            if network.is_host(node) {
                host = node;
            }
            for &port in network.ports(node) {
                let channel = network.channel(port);
                if reached[channel.to as usize].is_none() {
                    // A switch that cuts through waits for a part of the packet only.
                    let waits = |size: Bytes| match cut {
                        Some(part) if !network.is_host(channel.to) => Bytes(size.0.min(part.0)),
                        _ => size,
                    };
                    let there = channel.rate.serialize(waits(packet)).saturating_add(channel.latency);
                    let back = channel.rate.serialize(waits(ack)).saturating_add(channel.latency);
                    let switching = if network.is_host(channel.to) {
                        Time::ZERO
                    } else {
                        scenario.fabric.options.switch_latency
                    };
                    let hop = there.saturating_add(back).saturating_add(switching).saturating_add(switching);
                    reached[channel.to as usize] = Some((so_far.saturating_add(hop), hops + 1));
                    queue.push_back(channel.to);
                }
            }
        }
        let (round_trip, hops) = reached[host as usize].unwrap_or_default();
        Farthest { host, hops, round_trip, rate: network.host_rate(0) }
    }
}
