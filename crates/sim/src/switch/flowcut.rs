//! Flowcut Switching at switches: data are counted as they pass, the last switch acknowledges them to those before it, and the first one
//! has their source stopped while a flow drains.

use netloom_engine::Scheduler;
use netloom_fabric::{Flags, NO_INGRESS, Packet, PacketKind};
use netloom_routing::granularity::flowcut::Stops;
use netloom_routing::{Arrival, FlowKey, PacketContext, Placement, Receipt, Signal};
use netloom_topology::PortId;
use netloom_units::{Bytes, Time};

use super::{PortsAt, Switch, header, is_edge_of, take};
use crate::model::{Channels, Message, World};

impl Switch {
    /// The way of a data packet, which is counted on the way and acknowledged at its end.
    pub(super) fn pass(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) -> PortId {
        let forwarding = world.epochs.forwarding(self.epoch, &world.forwarding);
        let header = header(world, packet);
        if is_edge_of(world, id, packet.dst) && forwarding.arrives(id, &header) {
            // Where the first switch is the last one, there is one way only.
            if packet.trail.hops() > 1 {
                self.acknowledge(world, id, now, packet, out);
            }
            return self.choose_specially(world, id, now, packet, out);
        }
        let Switch { ports, decider, draws, reports, .. } = self;
        let candidates = forwarding.table().candidates_in_row(self.row, packet.dst);
        let view = PortsAt { ports, world, id, now, reports: reports.as_deref(), out };
        let arrival = Arrival {
            back: packet.ingress,
            sent: packet.sent,
            way: Time(u64::from(packet.way)),
            turned: packet.flags.is_turned(),
        };
        let hop = decider.counted(
            PacketContext { forwarding, here: id, header: &header },
            candidates,
            arrival,
            view,
            draws,
        );
        take(packet, hop)
    }

    /// Tells the switches before this one that a packet has come so far: all of them along its way, or the first one along any.
    #[expect(clippy::cast_possible_truncation, reason = "Flowcut::check bounds ACKs by 65,535 bytes")]
    fn acknowledge(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let Some(flowcut) = world.routing.counted_flowcuts() else { return };
        let is_reverse = world.routing.placement == Placement::Switch;
        let mut ack = Packet {
            src: packet.dst,
            dst: packet.src,
            aux: u32::from(packet.size),
            tag: if is_reverse { u32::from(packet.trail.hops()) } else { packet.tag },
            size: flowcut.ack_size.0 as u16,
            kind: PacketKind::FlowAck,
            ingress: NO_INGRESS,
            trail: packet.trail.fresh(),
            ..*packet
        };
        self.control_sent += 1;
        let port = match is_reverse {
            true => packet.ingress,
            false => self.choose_specially(world, id, now, &mut ack, out),
        };
        self.enqueue(world, id, now, port, &mut ack, out);
    }

    /// An acknowledgement of a data packet that has passed here.
    ///
    /// On the way of the data in reverse its tag says how many channels that packet had crossed when it came to the switch before. Where
    /// nobody knows how it came, the acknowledgement has lost its way: its tag is 0, and it goes to the first switch by any.
    pub(super) fn on_flow_ack(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        ack: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let Some(flowcut) = world.routing.counted_flowcuts() else { return };
        let is_home = is_edge_of(world, id, ack.dst);
        let mut pass = 1;
        if world.routing.placement == Placement::Switch {
            ack.tag = ack.tag.saturating_sub(1);
            pass = ack.tag;
        }
        let has_more = match flowcut.min_remaining {
            Bytes(0) => !ack.flags.is_last(),
            _ => ack.flags.has_more(),
        };
        let receipt = Receipt {
            flow: FlowKey { src: ack.dst, flow: ack.flow },
            pass,
            sent: ack.sent,
            bytes: ack.aux,
            way: Time(u64::from(ack.way)),
            hops: u32::from(ack.trail.hops()),
            has_more,
            access: None,
        };
        // A way over an intermediate switch may have come by the first one again.
        if pass > 1
            && let Some((back, signal)) = self.decider.on_receipt(&receipt, now)
        {
            if let Some(signal) = signal {
                self.tell(world, id, now, ack, None, signal, out);
            }
            return self.enqueue(world, id, now, back, ack, out);
        }
        if is_home {
            let receipt = Receipt { pass: 1, access: Some(access(world, ack.dst)), ..receipt };
            let counted = self.decider.on_receipt(&receipt, now);
            self.absorb(world, now, ack, out);
            if let Some((back, Some(signal))) = counted {
                self.tell(world, id, now, ack, Some(back), signal, out);
            }
            return;
        }
        if world.routing.placement == Placement::Switch {
            ack.tag = 0;
        }
        let port = self.choose_specially(world, id, now, ack, out);
        self.enqueue(world, id, now, port, ack, out);
    }

    /// A control packet ends here.
    pub(super) fn absorb(
        &mut self,
        world: &World,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        self.control_received += 1;
        if world.rules.is_lossless() {
            // It leaves its input buffer; what has left before goes first.
            self.ports.advance(now, &world.rules, &mut Channels(out));
            self.ports.absorb(packet, now, &world.rules, &mut Channels(out));
        }
    }

    /// Stops the source of a flow, or lets it go on: by a frame that says how far from the source the switch is, through the port to which
    /// the source is connected or, where it is not, along any way.
    #[expect(clippy::too_many_arguments, reason = "the parts of one frame")]
    #[expect(clippy::cast_possible_truncation, reason = "Flowcut::check bounds frames by 65,535 bytes")]
    fn tell(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        ack: &Packet,
        port: Option<PortId>,
        signal: Signal,
        out: &mut impl Scheduler<Message>,
    ) {
        let Some(flowcut) = world.routing.counted_flowcuts() else { return };
        let flags = Flags::new(ack.flags.class(), false);
        let (kind, aux) = match signal {
            Signal::Stop => (PacketKind::Xoff, flowcut.credit),
            Signal::GoOn => (PacketKind::Xon, 0),
            Signal::RunAhead(most) => (PacketKind::Xon, most),
        };
        let mut frame = Packet {
            sent: now,
            src: ack.src,
            dst: ack.dst,
            flow: ack.flow,
            slot: ack.slot,
            aux,
            tag: if port.is_some() { 1 } else { ack.tag },
            size: flowcut.frame_size.0 as u16,
            kind,
            flags: if flowcut.pauses == Stops::Class { flags.of_class() } else { flags },
            ..Packet::EMPTY
        };
        self.control_sent += 1;
        let port = port.unwrap_or_else(|| self.choose_specially(world, id, now, &mut frame, out));
        self.enqueue(world, id, now, port, &mut frame, out);
    }
}

/// The delay of a host's link to its switch.
fn access(world: &World, host: u32) -> Time {
    world.latency(world.network.ports(host)[0])
}
