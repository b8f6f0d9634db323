//! QCN at switches: queues are sampled, and sources are notified of congestion.

use netloom_engine::Scheduler;
use netloom_fabric::{ByKind, Packet};
use netloom_routing::Notice;
use netloom_topology::PortId;
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::at_switches::{Handling, Route, SwitchProtocol};
use crate::protocol::declaration::signal_about;
use crate::protocol::packets::CNM;
use crate::protocol::qcn::Qcn;
use crate::switch::Switch;
use crate::world::World;

impl SwitchProtocol for Qcn {
    #[inline(always)]
    fn on_packet(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) -> Route {
        switch.learn(ctx.world, ctx.now, packet, packet.ingress, false);
        Route::Open
    }

    #[inline(always)]
    fn before_queue(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &mut Packet,
    ) -> Handling {
        if ctx.world.fabric.options.qcn.is_some()
            && packet.is_data()
            && let Some(feedback) = switch.sample_queue(ctx, port, packet)
        {
            switch.notify(ctx, port, packet, feedback);
        }
        Handling::GoesOn
    }
}

impl Switch {
    /// Lets the congestion point of the queue that a data packet is about to enter look at it.
    pub(crate) fn sample_queue(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &Packet,
    ) -> Option<u8> {
        let config = ctx.world.fabric.options.qcn.as_ref()?;
        let Switch { ports, protocols, random, .. } = self;
        let queued = ports.queue_bytes(port, packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        let size = u64::from(packet.size);
        protocols.qcn.at(ctx.world, ports, port, packet).on_arrival(config, size, queued + size, random)
    }

    /// Notifies the source of a packet of the congestion that it meets at a port. The notification is here before the packet, so it
    /// goes first where both take the same port.
    #[inline(never)]
    pub(crate) fn notify(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &Packet,
        feedback: u8,
    ) {
        let Some(config) = &ctx.world.fabric.options.qcn else { return };
        let signal = signal_about(packet, CNM, config.cnm_size, ctx.now);
        let mut notification =
            Packet { seq: packet.seq, by_kind: ByKind::new(u32::from(feedback)), tag: packet.tag, ..signal };
        self.learn(ctx.world, ctx.now, &notification, port, true);
        self.send_control(ctx, &mut notification, None);
    }

    /// Learns from a congestion notification about the path to its destination through a port.
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
        let notice = Notice { destination, port, feedback: notification.number_of(&[CNM]) as u8, is_local };
        self.path_selector.on_notice(&notice, candidates.ports, now);
    }
}
