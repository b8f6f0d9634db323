//! Edge switches that work together: words at a packet's first switch, packets buffered at its last one, and the signals between the two.

use netloom_engine::{Hint, Scheduler};
use netloom_fabric::{FlowControl, NO_INGRESS, Packet};
use netloom_routing::FlowKey;
use netloom_routing::edges::{Between, EdgeArrival, Flush, SIGNAL_SIZE, Verdict, label_of};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::path::{PathProfile, labels};
use crate::protocol::Timer;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::{self, Handling, Route, SwitchProtocol, TagReading};
use crate::protocol::declaration::signal_about;
use crate::protocol::edge_signals::EdgeSignals;
use crate::protocol::edge_signals::reorder_queues::FlushDue;
use crate::protocol::packets::SIGNAL;
use crate::switch::Switch;
use crate::switch::next_hop_cache::NextHopHint;
use crate::world::World;

impl HostProtocol for EdgeSignals {}

impl SwitchProtocol for EdgeSignals {
    #[inline(always)]
    fn on_packet(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) -> Route {
        if !switch.is_edge_of(ctx.world, packet.dst) {
            return Route::Open;
        }
        switch.on_edge_signal(&mut ctx.again(), packet);
        Route::Taken
    }

    fn on_timer(switch: &mut Switch, ctx: &mut Ctx<'_, impl Scheduler<Message>>, due: FlushDue) {
        switch.on_flush(ctx, FlowKey { src: due.src, flow: due.flow });
    }

    fn reads(world: &World) -> Option<TagReading> {
        world.routing.has_edges().then_some(TagReading { label: Some(label_of(u32::MAX)), hashed: u32::MAX })
    }

    #[inline(always)]
    fn route(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
    ) -> Route {
        if !packet.is_data() || !ctx.world.routing.has_edges() {
            return Route::Open;
        }
        match packet.trail.hops() == 1 || switch.is_edge_of(ctx.world, packet.dst) {
            true => switch.on_edge_data(&mut ctx.again(), packet, hint),
            false => Route::To(switch.leaving(ctx, packet, label_of(packet.tag), hint)),
        }
    }
}

/// The timer for packets of a flow that are held back.
fn flush_due(flow: FlowKey) -> Message {
    Message::Protocol(Timer::EdgeSignals(FlushDue { src: flow.src, flow: flow.flow }))
}

impl Switch {
    /// A data packet at its first switch, where it is stamped, or at its last one, where it is perhaps buffered.
    #[inline(never)]
    pub(crate) fn on_edge_data(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
    ) -> Route {
        let flow = FlowKey { src: packet.src, flow: packet.flow };
        let is_last = self.is_edge_of(ctx.world, packet.dst);
        if packet.trail.hops() == 1 && !is_last {
            let between = || between(ctx.world, packet, ctx.now);
            if let Some(word) = self.path_selector.at_first(flow, ctx.now, between, &mut self.draws) {
                packet.tag = word;
            }
        }
        // Between two hosts of one switch there is nothing to choose.
        if packet.trail.hops() == 1 {
            return Route::To(self.leaving(ctx, packet, label_of(packet.tag), hint));
        }
        let is_marked = packet.flags.is_marked();
        let arrival = EdgeArrival { flow, word: packet.tag, sent: packet.sent, is_marked, now: ctx.now };
        let verdict = self.path_selector.at_last(&arrival, &mut self.protocols.edge_signals.signals);
        if !self.protocols.edge_signals.signals.is_empty() {
            self.send_signals(ctx, packet);
        }
        match verdict {
            Verdict::Pass => return Route::To(self.leaving(ctx, packet, label_of(packet.tag), hint)),
            Verdict::Release => {
                self.send_on(ctx, packet);
                self.release(ctx, flow);
            }
            Verdict::Hold => self.protocols.edge_signals.push(flow, *packet, ctx.now),
            Verdict::HoldUntil(until) => {
                self.protocols.edge_signals.push(flow, *packet, ctx.now);
                ctx.timer(until, flush_due(flow));
            }
        }
        Route::Taken
    }

    /// Packets that are held have perhaps waited long enough for the one before them.
    pub(crate) fn on_flush(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, flow: FlowKey) {
        match self.path_selector.on_hold_timer(flow, ctx.now) {
            Flush::Over => {}
            Flush::Later(until) => ctx.timer(until, flush_due(flow)),
            Flush::Now => self.release(ctx, flow),
        }
    }

    /// Forwards the packets of a flow that are buffered.
    pub(crate) fn release(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, flow: FlowKey) {
        // PFC has not counted them, and all at once they could overflow an input buffer that it keeps from overflowing.
        let is_beside =
            matches!(ctx.world.fabric.flow_control, FlowControl::Pfc(_) | FlowControl::PfcShared(_));
        for mut packet in self.protocols.edge_signals.take(flow, ctx.now) {
            // The switch may have lost its own hosts meanwhile.
            if is_beside {
                packet.ingress = NO_INGRESS;
            }
            if self.has_lost(ctx.world, packet.dst) {
                self.discard(ctx, &packet);
                continue;
            }
            self.send_on(ctx, &mut packet);
        }
    }

    #[inline(never)]
    pub(crate) fn send_on(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) {
        let port = self.leaving(ctx, packet, label_of(packet.tag), NextHopHint::NONE).port();
        if at_switches::before_queue(self, ctx, port, packet) == Handling::GoesOn {
            // Packets that are released, and signals, may need the same port at this instant.
            self.enqueue(ctx, port, packet);
        }
    }

    /// Sends the signals to a packet's first switch that it has caused. That is before the packet goes on, since trimming may turn it into a header on its way back.
    #[inline(never)]
    fn send_signals(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, about: &Packet) {
        let mut signals = std::mem::take(&mut self.protocols.edge_signals.signals);
        for signal in signals.drain(..) {
            let packet = signal_about(about, SIGNAL, SIGNAL_SIZE, ctx.now);
            self.send_control(ctx, &mut Packet { tag: signal, ..packet }, None);
        }
        self.protocols.edge_signals.signals = signals;
    }

    /// A signal from a flow's last switch has arrived at this one, its first.
    #[inline(never)]
    pub(crate) fn on_edge_signal(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, signal: &Packet) {
        let last = ctx.world.forwarding.table().edge_of(signal.src);
        let flow = FlowKey { src: signal.dst, flow: signal.flow };
        self.path_selector.on_signal(flow, last, signal.tag, ctx.now);
        self.absorb(ctx, signal);
    }
}

/// The paths between a packet's first switch and its last one.
fn between(world: &World, packet: &Packet, now: Time) -> Between {
    let table = world.epochs.at(now, &world.forwarding).table();
    let path = PathProfile::walk(world, table, packet.src, packet.dst);
    let paths = labels(&world.network, table, packet.src, packet.dst);
    let base_rtt = path.between_switches().round_trip(world.transport.packet_size(), SIGNAL_SIZE);
    Between { last: table.edge_of(packet.dst), paths: paths.min(1 << 16), base_rtt }
}
