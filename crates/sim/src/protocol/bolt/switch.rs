//! Bolt at switches: ports see what enters their queues.

use netloom_engine::Scheduler;
use netloom_fabric::{ByKind, Packet};
use netloom_topology::PortId;
use netloom_transport::{Claim, Meeting};
use netloom_units::{Bytes, Time, narrow};

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::at_switches::{Handling, SwitchProtocol};
use crate::protocol::bolt::Bolt;
use crate::protocol::declaration::signal_about;
use crate::protocol::packets::SOURCE_NOTICE;
use crate::switch::Switch;

impl SwitchProtocol for Bolt {
    #[inline(always)]
    fn before_queue(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &mut Packet,
    ) -> Handling {
        if ctx.world.transport.bolt().is_some() {
            switch.meet(ctx, port, packet);
        }
        Handling::GoesOn
    }
}

impl Switch {
    /// A packet is about to enter the queue of a port. The notice to its source is here before it, so it goes first where both take the same port.
    #[inline(never)]
    fn meet(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, port: PortId, packet: &mut Packet) {
        let Some(config) = ctx.world.transport.bolt() else { return };
        let full = ctx.world.transport.packet_size();
        let meeting = self.meeting(ctx, port, packet);
        let point = &mut self.protocols.bolt.0[usize::from(port)];
        point.count(config, full, meeting);
        if !packet.is_data() {
            return;
        }
        let (claim, drain) = point.meet(config, full, meeting, Claim::from_bits(packet.serialisation));
        packet.serialisation = claim.bits();
        if let Some(drain) = drain {
            self.notify_source(ctx, packet, drain);
        }
    }

    /// What a port sees of itself and of a packet.
    fn meeting(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &Packet,
    ) -> Meeting {
        let queued = self.ports.waiting(port, ctx.now, &ctx.world.rules, &mut ctx.wire());
        Meeting {
            now: ctx.now,
            size: Bytes(u64::from(packet.size)),
            queued: Bytes(queued),
            rate: self.ports.rate(port),
        }
    }

    /// Tells the source of a packet how long the port that it meets takes to send what waits there.
    fn notify_source(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet, drain: Time) {
        let signal = signal_about(packet, SOURCE_NOTICE, ctx.world.transport.options.ack_size, ctx.now);
        let mut notice = Packet {
            sent: packet.sent,
            seq: packet.seq,
            by_kind: ByKind::new(narrow::<u32>(drain.0 / 1000)),
            tag: packet.tag,
            ..signal
        };
        if self.has_lost(ctx.world, notice.dst) {
            return self.send_control(ctx, &mut notice, None);
        }
        let port = self.choose_specially(ctx, &mut notice);
        let (full, meeting) = (ctx.world.transport.packet_size(), self.meeting(ctx, port, &notice));
        if let Some(config) = ctx.world.transport.bolt() {
            self.protocols.bolt.0[usize::from(port)].count(config, full, meeting);
        }
        self.send_control(ctx, &mut notice, Some(port));
    }
}
