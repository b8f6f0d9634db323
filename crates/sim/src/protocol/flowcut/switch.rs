//! Flowcut Switching at switches: data are counted as they pass, the last switch acknowledges them to those before it, and the first one
//! has their source stopped while a flow drains.

use netloom_engine::Scheduler;
use netloom_fabric::{ByKind, Flags, Packet};
use netloom_routing::granularity::flowcut::{self, Assigned, Stops};
use netloom_routing::{Arrival, FlowKey, PacketContext, Place, Placement, Receipt, Signal};
use netloom_topology::PortId;
use netloom_units::{Bytes, Time};

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::at_switches::{Route, SwitchProtocol, TagReading};
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
    ) -> Route {
        if packet.kind != FLOW_ACK {
            return Route::Open;
        }
        match switch.on_flow_ack(&mut ctx.again(), packet) {
            Some(port) => Route::To(switch.ports.port_queue(port, packet, &ctx.world.rules)),
            None => Route::Taken,
        }
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
        let port = switch.count_data(&mut ctx.again(), packet);
        Route::To(switch.ports.port_queue(port, packet, &ctx.world.rules))
    }
}

impl Switch {
    /// The port of a data packet, which is counted in flight and acknowledged at its last switch.
    #[inline(never)]
    fn count_data(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) -> PortId {
        match self.is_edge_of(ctx.world, packet.dst) {
            true => self.count_at_edge(ctx, packet),
            false => self.count_passing(ctx, packet),
        }
    }

    /// The same at a switch of the host to which the packet goes.
    #[inline(never)]
    fn count_at_edge(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) -> PortId {
        let Ctx { world, id, .. } = *ctx;
        let forwarding = world.epochs.forwarding(self.epoch, &world.forwarding);
        if !forwarding.arrives(Place { here: id, row: self.row }, &header_of(world, packet)) {
            return self.count_passing(ctx, packet);
        }
        // Where the first switch is the last one, there is only one path.
        if packet.trail.hops() > 1 {
            self.acknowledge_data(ctx, packet);
        }
        self.choose_quickly(ctx, packet)
    }

    /// The same at another switch than the last one.
    // Most packets keep the way of their flowcut. What others need is looked up again, so that it takes no registers here.
    #[inline(always)]
    fn count_passing(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) -> PortId {
        match self.path_selector.assign(&header_of(ctx.world, packet), arrival_of(packet), ctx.now) {
            Assigned::Kept(hop) => take(packet, hop),
            assigned => self.begin_flowcut(ctx, packet, assigned),
        }
    }

    /// The port of a data packet that keeps no way.
    #[inline(never)]
    fn begin_flowcut(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        assigned: Assigned,
    ) -> PortId {
        let Ctx { world, id, .. } = *ctx;
        let forwarding = world.epochs.forwarding(self.epoch, &world.forwarding);
        let Switch { ports, path_selector, draws, protocols, row, .. } = self;
        let candidates = forwarding.table().candidates_in_row(*row, packet.dst);
        let (place, header) = (Place { here: id, row: *row }, header_of(world, packet));
        let context = PacketContext { forwarding, place, header: &header };
        let view = PortsAt { ports, reports: protocols.reports.as_deref(), ctx: ctx.again() };
        let from = (assigned, arrival_of(packet));
        take(packet, path_selector.begin_flowcut(from, context, candidates, view, draws))
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

    /// An acknowledgement of a data packet that has passed here; returns the port by which it goes on, if it does.
    ///
    /// On the path of the data in reverse its tag says how many channels that packet had crossed when it came to the switch before. Where
    /// nobody knows how it came, the acknowledgement has lost that path: its tag is 0, and it goes to the first switch by any.
    #[inline(never)]
    pub(crate) fn on_flow_ack(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        ack: &mut Packet,
    ) -> Option<PortId> {
        let flowcut = ctx.world.routing.counted_flowcuts()?;
        let mut pass = 1;
        if ctx.world.routing.placement == Placement::Switch {
            ack.tag = ack.tag.saturating_sub(1);
            pass = ack.tag;
        }
        // A path over an intermediate switch may have come by the first one again.
        if pass > 1
            && let Some((back, signal)) =
                self.path_selector.on_receipt(&receipt_of(flowcut, ack, pass), ctx.now)
        {
            if let Some(signal) = signal {
                self.signal_source(ctx, ack, None, signal);
            }
            return Some(back);
        }
        self.end_flow_ack(ctx, ack)
    }

    /// An acknowledgement that nothing here was counted for but, at the flow's first switch, by the packet's first pass: there it ends.
    #[inline(never)]
    fn end_flow_ack(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        ack: &mut Packet,
    ) -> Option<PortId> {
        if self.is_edge_of(ctx.world, ack.dst) {
            let flowcut = ctx.world.routing.counted_flowcuts()?;
            let access = Some(access(ctx.world, ack.dst));
            let receipt = Receipt { access, ..receipt_of(flowcut, ack, 1) };
            let counted = self.path_selector.on_receipt(&receipt, ctx.now);
            self.absorb(ctx, ack);
            if let Some((back, Some(signal))) = counted {
                self.signal_source(ctx, ack, Some(back), signal);
            }
            return None;
        }
        if ctx.world.routing.placement == Placement::Switch {
            ack.tag = 0;
        }
        Some(self.choose_quickly(ctx, ack))
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

/// What a switch records of an arriving data packet.
#[inline(always)]
fn arrival_of(packet: &Packet) -> Arrival {
    Arrival {
        back: packet.ingress,
        sent: packet.sent,
        serialisation: Time(u64::from(packet.serialisation)),
        turned: packet.flags.drain_epoch(),
    }
}

/// What an acknowledgement says of a packet that had crossed this many channels.
#[inline(always)]
fn receipt_of(flowcut: &flowcut::Flowcut, ack: &Packet, pass: u32) -> Receipt {
    Receipt {
        flow: FlowKey { src: ack.dst, flow: ack.flow },
        pass,
        sent: ack.sent,
        bytes: ack.number_of(&[FLOW_ACK]),
        serialisation: Time(u64::from(ack.serialisation)),
        hops: u32::from(ack.trail.hops()),
        has_more: match flowcut.min_remaining {
            Bytes(0) => !ack.flags.is_last(),
            _ => ack.flags.has_more(),
        },
        access: None,
    }
}

/// The delay of a host's link to its switch.
fn access(world: &World, host: u32) -> Time {
    world.latency(world.network.ports(host)[0])
}
