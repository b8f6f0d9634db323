//! What a switch sees of the gaps between a flow's packets, where somebody asks.

use std::collections::BTreeMap;

use netloom_fabric::Packet;
use netloom_record::{FlowletRecord, GapRecord};
use netloom_routing::FlowKey;
use netloom_units::Time;
use rustc_hash::FxHashMap;

use crate::intervals::Intervals;
use crate::model::World;

/// The flows of which data packets have come to a switch.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    flows: FxHashMap<FlowKey, Passing>,
}

/// One of them; a subflow counts for itself.
#[derive(Debug)]
struct Passing {
    intervals: Intervals,
    packets: u64,
}

impl Gauge {
    /// A data packet comes to the switch.
    pub(super) fn see(&mut self, world: &World, now: Time, packet: &Packet) {
        let key = FlowKey { src: packet.src, flow: packet.flow };
        // Lengths are of interest before other flows have moved the packets about.
        let is_first = packet.hops == 1;
        let passing = self.flows.entry(key).or_insert_with(|| {
            let base_rtt = if is_first { base_rtt(world, packet) } else { Time::ZERO };
            Passing { intervals: Intervals::new(base_rtt), packets: 0 }
        });
        passing.packets += 1;
        passing.intervals.pass(now, world.gaps.flowlet, is_first);
    }

    /// What it has seen as rows of tables: the flowlets of every flow at the switch of that name, and the gaps of those of which it is the
    /// first switch.
    pub(crate) fn records(&self, world: &World, switch: &str) -> (Vec<FlowletRecord>, Vec<GapRecord>) {
        let (mut flowlets, mut gaps) = (BTreeMap::new(), Vec::new());
        for (&FlowKey { src, flow }, passing) in &self.flows {
            let key = FlowKey { src, flow: world.numbering.flow(flow) };
            let record = flowlets.entry((key.src, key.flow)).or_insert_with(|| FlowletRecord {
                switch: switch.to_owned(),
                src: key.src,
                flow: key.flow,
                ..FlowletRecord::default()
            });
            record.packets += passing.packets;
            record.flowlets += passing.intervals.flowlets;
            gaps.extend(passing.intervals.records(key));
        }
        (flowlets.into_values().collect(), gaps)
    }
}

/// The round-trip time of a full packet and its ACK on the packet's idle path.
fn base_rtt(world: &World, packet: &Packet) -> Time {
    let transport = &world.transport;
    world.idle_path(packet.src, packet.dst).round_trip(transport.packet_size(), transport.options.ack_size)
}
