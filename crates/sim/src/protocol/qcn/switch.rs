//! QCN at switches: queues are sampled, and sources are notified of congestion.

use netloom_engine::Scheduler;
use netloom_fabric::{Flags, Packet, PacketKind};
use netloom_routing::Notice;
use netloom_topology::PortId;
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::switch::Switch;
use crate::world::World;

impl Switch {
    /// Lets the congestion point of the queue that a data packet is about to enter look at it.
    pub(crate) fn sample_queue(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &Packet,
    ) -> Option<u8> {
        let config = ctx.world.fabric.options.qcn.as_ref()?;
        let Switch { ports, points, random, .. } = self;
        let queued = ports.lane_bytes(port, packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        let size = u64::from(packet.size);
        points.at(ctx.world, ports, port, packet).on_arrival(config, size, queued + size, random)
    }

    /// Tells the source of a packet about the congestion that it meets at a port. The notification is here before the packet, so it
    /// goes first where both take the same port.
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "Qcn::check bounds notifications by 65,535 bytes")]
    pub(crate) fn notify(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &Packet,
        feedback: u8,
    ) {
        let Some(config) = &ctx.world.fabric.options.qcn else { return };
        let mut notification = Packet {
            sent: ctx.now,
            src: packet.dst,
            dst: packet.src,
            flow: packet.flow,
            slot: packet.slot,
            seq: packet.seq,
            aux: u32::from(feedback),
            tag: packet.tag,
            size: config.cnm_size.0 as u16,
            kind: PacketKind::Cnm,
            flags: Flags::new(packet.flags.class(), false),
            ..Packet::EMPTY
        };
        self.control_sent += 1;
        self.learn(ctx.world, ctx.now, &notification, port, true);
        if self.has_lost(ctx.world, notification.dst) {
            return self.discard(ctx, &notification);
        }
        let way = self.choose_specially(ctx, &mut notification);
        self.enqueue(ctx, way, &mut notification);
    }

    /// Notes what a congestion notification says about the way to its destination through a port.
    #[expect(clippy::cast_possible_truncation, reason = "has been written from a byte")]
    pub(crate) fn learn(
        &mut self,
        world: &World,
        now: Time,
        notification: &Packet,
        port: PortId,
        is_local: bool,
    ) {
        let destination = notification.src;
        let table = world.epochs.forwarding(self.epoch, &world.forwarding).table();
        let candidates = table.candidates_in_row(self.row, destination);
        let notice = Notice { destination, port, feedback: notification.aux as u8, is_local };
        self.decider.on_notice(&notice, candidates.ports, now);
    }
}
