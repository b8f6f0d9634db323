//! ConWeave at switches: stamps at a flow's first switch, packets buffered at its last one, and the signals between the two.

use netloom_engine::Scheduler;
use netloom_fabric::{FlowControl, NO_INGRESS, Packet, PacketKind};
use netloom_routing::FlowKey;
use netloom_routing::granularity::conweave::{Between, Flush, Stamp, Verdict, Word};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::path::{PathProfile, labels};
use crate::protocol::conweave::WORD;
use crate::protocol::declaration::signal_about;
use crate::switch::Switch;
use crate::world::World;

impl Switch {
    /// A data packet: stamped at its first switch, perhaps buffered at its last.
    pub(crate) fn on_conweave_data(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) {
        let flow = FlowKey { src: packet.src, flow: packet.flow };
        let is_last = ctx.world.is_edge_of(ctx.id, packet.dst);
        if packet.trail.hops() == 1 && !is_last {
            let between = || between(ctx.world, packet, ctx.now);
            if let Some(stamp) = self.path_selector.stamp(flow, ctx.now, between, &mut self.draws) {
                packet.tag = stamp.bits();
            }
        }
        // Between two hosts of one switch there is nothing to weave.
        if packet.trail.hops() == 1 || !is_last {
            return self.send_on(ctx, packet);
        }
        let stamp = Stamp::from_bits(packet.tag);
        if stamp.asks {
            self.send_word(ctx, packet, Word::Reply, stamp);
        }
        if packet.flags.is_marked() && self.path_selector.reports_busy(packet.src, stamp.label, ctx.now) {
            self.send_word(ctx, packet, Word::Busy, stamp);
        }
        // Before the packet goes on, since trimming may turn it into a header on its way back.
        if stamp.is_tail {
            self.send_word(ctx, packet, Word::Clear, stamp);
        }
        match self.path_selector.receive(flow, stamp, packet.sent, ctx.now) {
            Verdict::Pass => self.send_on(ctx, packet),
            Verdict::Release => {
                self.send_on(ctx, packet);
                self.release(ctx, flow);
            }
            Verdict::Hold => self.reorder_queues.push(flow, *packet, ctx.now),
            Verdict::HoldUntil(until) => {
                self.reorder_queues.push(flow, *packet, ctx.now);
                ctx.timer(until, Message::Flush { src: flow.src, flow: flow.flow });
            }
        }
    }

    /// ReorderQueues packets have perhaps waited long enough for the one before them.
    pub(crate) fn on_flush(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, flow: FlowKey) {
        match self.path_selector.flush(flow, ctx.now) {
            Flush::Over => {}
            Flush::Later(until) => ctx.timer(until, Message::Flush { src: flow.src, flow: flow.flow }),
            Flush::Now => self.release(ctx, flow),
        }
    }

    /// Forwards the packets of a flow that are buffered.
    pub(crate) fn release(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, flow: FlowKey) {
        // PFC has not counted them, and all at once they could overflow an input buffer that it keeps from overflowing.
        let is_beside =
            matches!(ctx.world.fabric.flow_control, FlowControl::Pfc(_) | FlowControl::PfcShared(_));
        for mut packet in self.reorder_queues.take(flow, ctx.now) {
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

    pub(crate) fn send_on(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) {
        // Switches read the label alone.
        let stamp = packet.tag;
        packet.tag = Stamp::label_of(stamp);
        let port = self.choose_specially(ctx, packet);
        packet.tag = stamp;
        if let Some(feedback) = self.sample_queue(ctx, port, packet) {
            self.notify(ctx, port, packet, feedback);
        }
        // Packets that are released, and signals, may need the same port at this instant.
        self.enqueue(ctx, port, packet);
    }

    /// Sends a signal to a packet's first switch.
    pub(crate) fn send_word(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        about: &Packet,
        word: Word,
        stamp: Stamp,
    ) {
        let signal = signal_about(about, PacketKind::Word, WORD, ctx.now);
        self.send_control(ctx, &mut Packet { tag: word.bits(stamp), ..signal }, None);
    }

    /// A signal from a flow's last switch has arrived at this one, its first.
    pub(crate) fn on_word(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, signal: &Packet) {
        let last = ctx.world.forwarding.table().edge_of(signal.src);
        let flow = FlowKey { src: signal.dst, flow: signal.flow };
        self.path_selector.on_conweave_signal(flow, last, signal.tag, ctx.now);
        self.absorb(ctx, signal);
    }
}

/// The paths between a packet's first switch and its last one.
fn between(world: &World, packet: &Packet, now: Time) -> Between {
    let table = world.epochs.at(now, &world.forwarding).table();
    let path = PathProfile::walk(world, table, packet.src, packet.dst);
    let paths = labels(&world.network, table, packet.src, packet.dst);
    let base_rtt = path.between_switches().round_trip(world.transport.packet_size(), WORD);
    Between { last: table.edge_of(packet.dst), paths: paths.min(1 << 16), base_rtt }
}
