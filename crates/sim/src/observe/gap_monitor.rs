//! What a switch sees of the gaps between a flow's packets, where these are measured.

use netloom_fabric::Packet;
use netloom_record::FlowObservationRecord;
use netloom_routing::granularity::flowlet::Flowlet;
use netloom_routing::{FlowKey, IdleTimeoutTable, LastSeen, Row};
use netloom_units::Time;

use crate::observe::intervals::Intervals;
use crate::world::World;

/// Flows that a switch never minds remembering.
const FEW: usize = 256;

/// A flow that has been silent for longer is handed in: some round-trip times, as one that goes on makes another row.
const SILENCE: Time = Time::from_us(100);

/// The flows of which data packets have come to a switch.
#[derive(Debug)]
pub(crate) struct GapMonitor {
    flows: IdleTimeoutTable<FlowObservation>,
}

/// One of them since it was last handed in; a subflow counts for itself.
#[derive(Debug)]
pub(crate) struct FlowObservation {
    pub(crate) intervals: Intervals,
    first: Time,
    packets: u32,
    /// Whether the first packet came from its host.
    is_first_hop: bool,
}

impl LastSeen for FlowObservation {
    fn last(&self) -> Time {
        self.intervals.last().unwrap_or(self.first)
    }
}

/// A data packet that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arriving {
    pub(crate) key: FlowKey,
    pub(crate) now: Time,
    /// It comes from its host.
    pub(crate) is_first_hop: bool,
}

impl Default for GapMonitor {
    fn default() -> Self {
        GapMonitor::new(FEW, SILENCE)
    }
}

impl GapMonitor {
    /// Nothing has come. Hands in flows that have been silent for longer than `silence` when there are more than a `few`.
    pub(crate) fn new(few: usize, silence: Time) -> Self {
        GapMonitor { flows: IdleTimeoutTable::new(few, silence) }
    }

    /// A data packet comes to switch `id` with that row of the routes.
    pub(crate) fn see(&mut self, world: &World, (id, row): (u32, Row), now: Time, packet: &Packet) {
        let key = FlowKey { src: packet.src, flow: packet.flow };
        // Lengths are of interest before other flows have moved the packets about.
        let coming = Arriving { key, now, is_first_hop: packet.trail.hops() == 1 };
        // A packet may come to its first switch again.
        let is_of_source = || world.forwarding.table().is_attached(row, packet.src);
        let base_rtt = || if is_of_source() { base_rtt(world, packet) } else { Time::ZERO };
        let silent = self.pass(coming, world.gaps.flowlet.as_ref(), base_rtt);
        if !silent.is_empty() {
            hand_in(world, id, &silent);
        }
    }

    /// Notes a data packet; returns the flows that have been given up for it.
    pub(crate) fn pass(
        &mut self,
        Arriving { key, now, is_first_hop }: Arriving,
        flowlet: Option<&Flowlet>,
        base_rtt: impl FnOnce() -> Time,
    ) -> Vec<(FlowKey, FlowObservation)> {
        let silent = self.flows.make_room(key, now);
        let new = || FlowObservation {
            intervals: Intervals::new(base_rtt()),
            first: now,
            packets: 0,
            is_first_hop,
        };
        let observation = self.flows.get_or_insert_with(key, new);
        observation.packets += 1;
        observation.intervals.pass(now, flowlet, is_first_hop);
        silent
    }

    /// Gives up all flows.
    pub(crate) fn take_all(&mut self) -> Vec<(FlowKey, FlowObservation)> {
        self.flows.take_all().collect()
    }

    /// Hands in what is left when the run is over.
    pub(crate) fn hand_in_all(&mut self, world: &World, id: u32) {
        hand_in(world, id, &self.take_all());
    }

    #[cfg(test)]
    fn capacity(&self) -> usize {
        self.flows.capacity()
    }
}

impl FlowObservation {
    /// As a row, of the switch of that number and the flow by the number that it has in tables.
    pub(crate) fn record(
        &self,
        FlowKey { src, flow: number }: FlowKey,
        flow: u32,
        switch: u32,
    ) -> FlowObservationRecord {
        FlowObservationRecord {
            src,
            flow,
            number,
            switch,
            first: self.first,
            last: self.last(),
            packets: self.packets,
            flowlets: self.intervals.flowlets,
            is_first_hop: self.is_first_hop,
            base_rtt: self.intervals.base_rtt(),
        }
    }
}

/// What has been seen of flows becomes rows; gaps go by the number of the subflow.
fn hand_in(world: &World, switch: u32, flows: &[(FlowKey, FlowObservation)]) {
    let recorder = &world.recorder;
    recorder.observations.extend(
        flows
            .iter()
            .map(|(key, observation)| observation.record(*key, world.numbering.flow(key.flow), switch)),
    );
    recorder
        .switch_gaps
        .extend(flows.iter().flat_map(|(key, observation)| observation.intervals.records(*key)));
}

/// The round-trip time of a full packet and its ACK on the packet's idle path.
fn base_rtt(world: &World, packet: &Packet) -> Time {
    let transport = &world.transport;
    world.idle_path(packet.src, packet.dst).round_trip(transport.packet_size(), transport.options.ack_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million short flows, of which a hundred pass at a time, one of which is always there.
    #[test]
    fn it_remembers_as_many_flows_as_pass_at_a_time() {
        let mut gap_monitor = GapMonitor::default();
        let (mut packets, mut rows) = (0, 0);
        let mut most = 0;
        for flow in 0..1_000_000 {
            let now = Time(SILENCE.0 / 100 * u64::from(flow));
            for flow in [flow, u32::MAX] {
                let coming = Arriving { key: FlowKey { src: 0, flow }, now, is_first_hop: true };
                for (_, observation) in gap_monitor.pass(coming, None, || Time::from_us(10)) {
                    (packets, rows) = (packets + u64::from(observation.packets), rows + 1);
                }
            }
            most = most.max(gap_monitor.capacity());
        }
        assert!(most < 4 * FEW, "{most}");
        for (_, observation) in gap_monitor.take_all() {
            (packets, rows) = (packets + u64::from(observation.packets), rows + 1);
        }
        assert_eq!((packets, rows), (2_000_000, 1_000_001), "each flow is handed in once");
    }

    #[test]
    fn flows_that_all_go_on_are_all_remembered() {
        let mut gap_monitor = GapMonitor::default();
        for round in 0..10 {
            for flow in 0..10 * FEW as u32 {
                let now = Time(SILENCE.0 / 2 * round);
                let coming = Arriving { key: FlowKey { src: 0, flow }, now, is_first_hop: false };
                assert!(gap_monitor.pass(coming, None, || Time::ZERO).is_empty());
            }
        }
        assert_eq!(gap_monitor.take_all().len(), 10 * FEW);
    }
}
