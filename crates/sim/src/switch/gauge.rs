//! What a switch sees of the gaps between a flow's packets, where somebody asks.

use std::collections::BTreeMap;
use std::sync::Arc;

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
    packets: u32,
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
        passing.intervals.pass(now, world.gaps.flowlet.as_ref(), is_first);
    }

    /// What it has seen as rows of tables: the flowlets of every flow at the switch of that name, and the gaps of those of which it is the
    /// first switch.
    pub(crate) fn records(&self, world: &World, switch: &Arc<str>) -> (Vec<FlowletRecord>, Vec<GapRecord>) {
        let seen = self.flows.iter().map(|(&key, at)| (key, Some(at.packets), at.intervals.flowlets));
        let gaps =
            self.flows.iter().flat_map(|(&key, at)| at.intervals.records(numbered(world, key))).collect();
        (flowlet_records(world, switch, seen), gaps)
    }
}

/// Flows, or subflows, with the packets and flowlets of them that came to the switch of that name, as rows of a table.
pub(crate) fn flowlet_records(
    world: &World,
    switch: &Arc<str>,
    seen: impl Iterator<Item = (FlowKey, Option<u32>, u32)>,
) -> Vec<FlowletRecord> {
    let mut records = BTreeMap::new();
    for (key, packets, flowlets) in seen {
        let FlowKey { src, flow } = numbered(world, key);
        let record = records.entry((src, flow)).or_insert_with(|| FlowletRecord {
            switch: switch.clone(),
            src,
            flow,
            ..FlowletRecord::default()
        });
        if let Some(packets) = packets {
            *record.packets.get_or_insert_default() += u64::from(packets);
        }
        record.flowlets += flowlets;
    }
    records.into_values().collect()
}

/// The flow by the number that it has in tables.
fn numbered(world: &World, FlowKey { src, flow }: FlowKey) -> FlowKey {
    FlowKey { src, flow: world.numbering.flow(flow) }
}

/// The round-trip time of a full packet and its ACK on the packet's idle path.
fn base_rtt(world: &World, packet: &Packet) -> Time {
    let transport = &world.transport;
    world.idle_path(packet.src, packet.dst).round_trip(transport.packet_size(), transport.options.ack_size)
}
