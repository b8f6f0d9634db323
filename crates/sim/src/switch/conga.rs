//! CONGA at switches: labels at a packet's first switch, congestion gathered on its way, and what leaves tell each other.

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, PacketKind};
use netloom_routing::View;
use netloom_routing::selector::conga::{Conga, Counts, Feedback, Marking};
use netloom_topology::PortId;
use netloom_units::Time;

use super::{PortsAt, Switch, header, is_edge_of};
use crate::model::{Message, World};
use crate::path::labels;

impl Switch {
    /// The way of a packet, and what it carries from leaf to leaf.
    pub(super) fn lead(
        &mut self,
        config: &Conga,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) -> PortId {
        let layout = config.layout();
        let (is_first, is_last) = (is_edge_of(world, id, packet.src), is_edge_of(world, id, packet.dst));
        let is_data = packet.kind.is_data();
        let tells = tells(packet.kind) && (is_data || config.feedback == Feedback::All);
        // Between two hosts of one leaf there is nothing to choose and nothing to tell.
        if is_first && is_last {
            return self.choose_specially(world, id, now, packet, out);
        }
        let table = world.forwarding.table();
        let mut marking = match is_first {
            true if is_data => self.mark(world, id, now, packet, out),
            true if tells => {
                let Switch { decider, draws, .. } = self;
                let report = decider.report_to(table.edge_of(packet.dst), now, draws);
                Marking { report, ..Marking::default() }
            }
            // Hosts' own tags are no markings.
            true => Marking::default(),
            false => Marking::from_bits(packet.tag, layout),
        };
        if is_last && tells {
            let first = table.edge_of(packet.src);
            if is_data {
                self.decider.see_marking(first, marking, now);
            }
            if let Some(report) = marking.report {
                self.decider.hear_report(first, report, now);
            }
        }
        // Others than data go by the header's hash, in which there is no path.
        packet.tag = if is_data { u32::from(marking.label) } else { 0 };
        let port = self.choose_specially(world, id, now, packet, out);
        if is_data && !is_last {
            let Switch { ports, .. } = self;
            if config.counts == Counts::Routed {
                ports.count_routed(port, now, packet.size);
            }
            let utilisation = PortsAt { ports, world, id, now, reports: None, out }.utilisation(port);
            marking = self.decider.raise(marking, utilisation);
        }
        packet.tag = marking.bits(layout);
        port
    }

    /// What a data packet's first switch writes on it.
    fn mark(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) -> Marking {
        let table = world.epochs.forwarding(self.epoch, &world.forwarding).table();
        let candidates = table.candidates_in_row(self.row, packet.dst);
        let paths = || labels(&world.network, table, packet.src, packet.dst);
        let Switch { ports, decider, draws, .. } = self;
        let view = PortsAt { ports, world, id, now, reports: None, out };
        let last = table.edge_of(packet.dst);
        decider.mark(&header(world, packet), (last, paths), candidates, view, draws)
    }
}

/// Whether what leaves tell each other goes with a packet: with all that hosts send. What switches make has no first switch.
fn tells(kind: PacketKind) -> bool {
    use PacketKind::*;
    match kind {
        Data | Header | Ack | Nack | Pull | Request | Cnp => true,
        Returned | Unreachable | UnreachableAck | UnreachableNack | UnreachablePull | UnreachableCnp => false,
        Cnm | FlowAck | Word | Xoff | Xon | Pause | Credit | Missed | Report => false,
    }
}
