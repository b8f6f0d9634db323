//! Flowcut Switching at switches: data are counted as they pass, the last switch acknowledges them to those before it, and the first one
//! has their source stopped while a flow drains.

use netloom_engine::Scheduler;
use netloom_fabric::{ByKind, Flags, Packet};
use netloom_routing::granularity::flowcut::Stops;
use netloom_routing::{Arrival, FlowKey, PacketContext, Place, Placement, Receipt, Signal};
use netloom_topology::PortId;
use netloom_units::{Bytes, Time};

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::at_switches::{Handling, Route, SwitchProtocol, TagReading};
use crate::protocol::declaration::{answer_to, signal_about};
use crate::protocol::flowcut::Flowcut;
use crate::protocol::packets::{FLOW_ACK, XOFF, XON};
use crate::switch::Switch;
use crate::switch::next_hop_cache::NextHopHint;
use crate::switch::view::{PortsAt, header_of, take};
use crate::world::World;

impl SwitchProtocol for Flowcut {
    #[inline(always)]
    fn on_packet(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) -> Handling {
        if packet.kind != FLOW_ACK {
            return Handling::GoesOn;
        }
        switch.on_flow_ack(ctx, packet);
        Handling::Taken
    }

    fn reads(world: &World) -> Option<TagReading> {
        // Data are counted first.
        world.routing.counted_flowcuts().map(|_| TagReading { label: None, hashed: u32::MAX })
    }

    #[inline(always)]
    fn route(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        _: NextHopHint,
    ) -> Route {
        if !packet.is_data() || !switch.path_selector.counts_flight() {
            return Route::Open;
        }
        let port = switch.count_data(ctx, packet);
        Route::To(switch.ports.port_queue(port, packet, &ctx.world.rules))
    }
}

impl Switch {
    /// The port of a data packet, which is counted in flight and acknowledged at its last switch.
    pub(crate) fn count_data(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) -> PortId {
        let Ctx { world, id, .. } = *ctx;
        let forwarding = world.epochs.forwarding(self.epoch, &world.forwarding);
        let (header, place) = (header_of(world, packet), Place { here: id, row: self.row });
        if self.is_edge_of(world, packet.dst) && forwarding.arrives(place, &header) {
            // Where the first switch is the last one, there is only one path.
            if packet.trail.hops() > 1 {
                self.acknowledge_data(ctx, packet);
            }
            return self.choose_quickly(ctx, packet);
        }
        let Switch { ports, path_selector, draws, protocols, .. } = self;
        let candidates = forwarding.table().candidates_in_row(self.row, packet.dst);
        let view = PortsAt { ports, reports: protocols.reports.as_deref(), ctx: ctx.again() };
        let arrival = Arrival {
            back: packet.ingress,
            sent: packet.sent,
            serialisation: Time(u64::from(packet.serialisation)),
            turned: packet.flags.drain_epoch(),
        };
        let hop = path_selector.counted(
            PacketContext { forwarding, place, header: &header },
            candidates,
            arrival,
            view,
            draws,
        );
        take(packet, hop)
    }

    /// Acknowledges a packet to the switches before this one: to all of them along its path, or to the first one along any path.
    pub(crate) fn acknowledge_data(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flowcut) = ctx.world.routing.counted_flowcuts() else { return };
        let is_reverse = ctx.world.routing.placement == Placement::Switch;
        let answer = answer_to(packet, FLOW_ACK, flowcut.ack_size, packet.dst);
        let tag = if is_reverse { u32::from(packet.trail.hops()) } else { packet.tag };
        let mut ack = Packet { by_kind: ByKind::new(u32::from(packet.size)), tag, ..answer };
        self.send_control(ctx, &mut ack, is_reverse.then_some(packet.ingress));
    }

    /// An acknowledgement of a data packet that has passed here.
    ///
    /// On the path of the data in reverse its tag says how many channels that packet had crossed when it came to the switch before. Where
    /// nobody knows how it came, the acknowledgement has lost that path: its tag is 0, and it goes to the first switch by any.
    pub(crate) fn on_flow_ack(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, ack: &mut Packet) {
        let Some(flowcut) = ctx.world.routing.counted_flowcuts() else { return };
        let is_home = self.is_edge_of(ctx.world, ack.dst);
        let mut pass = 1;
        if ctx.world.routing.placement == Placement::Switch {
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
            bytes: ack.number_of(&[FLOW_ACK]),
            serialisation: Time(u64::from(ack.serialisation)),
            hops: u32::from(ack.trail.hops()),
            has_more,
            access: None,
        };
        // A path over an intermediate switch may have come by the first one again.
        if pass > 1
            && let Some((back, signal)) = self.path_selector.on_receipt(&receipt, ctx.now)
        {
            if let Some(signal) = signal {
                self.signal_source(ctx, ack, None, signal);
            }
            return self.enqueue(ctx, back, ack);
        }
        if is_home {
            let receipt = Receipt { pass: 1, access: Some(access(ctx.world, ack.dst)), ..receipt };
            let counted = self.path_selector.on_receipt(&receipt, ctx.now);
            self.absorb(ctx, ack);
            if let Some((back, Some(signal))) = counted {
                self.signal_source(ctx, ack, Some(back), signal);
            }
            return;
        }
        if ctx.world.routing.placement == Placement::Switch {
            ack.tag = 0;
        }
        let port = self.choose_quickly(ctx, ack);
        self.enqueue(ctx, port, ack);
    }

    /// Stops the source of a flow, or lets it go on: by a frame that says how far from the source the switch is, through the port to which
    /// the source is connected or, where it is not, along any path.
    pub(crate) fn signal_source(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        ack: &Packet,
        port: Option<PortId>,
        signal: Signal,
    ) {
        let Some(flowcut) = ctx.world.routing.counted_flowcuts() else { return };
        let flags = Flags::new(ack.flags.class(), false);
        let (kind, number) = match signal {
            Signal::Stop => (XOFF, flowcut.credit),
            Signal::GoOn => (XON, 0),
            Signal::RunAhead(most) => (XON, most),
        };
        let mut frame = Packet {
            // The acknowledgement goes to the source, too.
            src: ack.src,
            dst: ack.dst,
            by_kind: ByKind::new(number),
            tag: if port.is_some() { 1 } else { ack.tag },
            flags: if flowcut.pauses == Stops::Class { flags.of_class() } else { flags },
            ..signal_about(ack, kind, flowcut.frame_size, ctx.now)
        };
        self.send_control(ctx, &mut frame, port);
    }
}

/// The delay of a host's link to its switch.
fn access(world: &World, host: u32) -> Time {
    world.latency(world.network.ports(host)[0])
}
