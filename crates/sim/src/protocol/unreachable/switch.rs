//! What a switch does for the sources of packets that its cut links keep from going on: it sends their headers back.
//!
//! That concerns what comes while a link is cut, and what waits for it at the moment of the cut. Ports know nothing of that moment until they are next touched, so a
//! switch at which something waits is then scheduled. What is on the wire is lost.
//!
//! Under flow control the node is called at that moment in any case, and does the same for what waits.

use netloom_engine::Scheduler;
use netloom_fabric::{At, Packet, PacketKind};
use netloom_topology::PortId;
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::at_switches::{Handling, SwitchProtocol};
use crate::protocol::facts;
use crate::protocol::unreachable::Unreachable;
use crate::switch::Switch;
use crate::world::World;

impl SwitchProtocol for Unreachable {
    #[inline(always)]
    fn before_queue(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &mut Packet,
    ) -> Handling {
        if switch.protocols.unreachable.is_empty() {
            return Handling::GoesOn;
        }
        let Some(kind) = switch.must_notify(ctx.world, ctx.now, port, packet) else {
            return Handling::GoesOn;
        };
        if ctx.world.rules.is_lossless() {
            switch.ports.let_go(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
        switch.turn_back(ctx, port, packet, kind);
        Handling::Taken
    }
}

impl Switch {
    /// Links have been cut by `now`, before anything that happens from then on: what waited for them goes back.
    #[inline(never)]
    pub(crate) fn meet_cuts(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Ctx { world, .. } = *ctx;
        if world.rules.is_lossless() {
            return;
        }
        while let Some((port, cut)) = self.protocols.unreachable.take_next(ctx.now) {
            if self.sampler.is_some() {
                self.sample(&mut ctx.at(cut));
            }
            if !world.epochs.is_empty() {
                self.take_new_routes(world, ctx.id, cut);
            }
            let goes_back = |packet: &Packet| turned_back(world, packet).is_some();
            let wire = &mut ctx.wire();
            for mut packet in self.ports.take_from_cut(port, cut, goes_back, &world.rules, wire) {
                if let Some(kind) = turned_back(world, &packet) {
                    self.turn_back(&mut ctx.at(cut), port, &mut packet, kind);
                }
            }
        }
    }

    /// Under flow control: the link of a port is cut, or repaired.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_link(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, port: PortId, is_cut: bool) {
        if !is_cut {
            return self.ports.restore_link(port, ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
        if !ctx.world.epochs.is_empty() {
            self.take_new_routes(ctx.world, ctx.id, ctx.now);
        }
        let Switch { ports, protocols, .. } = self;
        let is_told = protocols.unreachable.begins(port, ctx.now);
        let goes_back = |packet: &Packet| is_told && turned_back(ctx.world, packet).is_some();
        // PFC does not count what is buffered beside the ports, and credits do not cover it.
        let back = ports.cut_link(
            port,
            protocols.buffered(),
            goes_back,
            At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()),
        );
        for mut packet in back {
            if let Some(kind) = turned_back(ctx.world, &packet) {
                self.turn_back(ctx, port, &mut packet, kind);
            }
        }
    }

    /// The form in which a packet goes back to its source, if that is to be notified that the link of its port is cut.
    pub(crate) fn must_notify(
        &self,
        world: &World,
        now: Time,
        port: PortId,
        packet: &Packet,
    ) -> Option<PacketKind> {
        turned_back(world, packet).filter(|_| self.protocols.unreachable.is_cut(port, now))
    }

    /// Sends what is left of a packet back from a port whose link is cut.
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds ACKs by 65,535 bytes")]
    pub(crate) fn turn_back(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &mut Packet,
        kind: PacketKind,
    ) {
        self.ports.turn_back(port, packet, kind, ctx.world.transport.options.ack_size.0 as u16);
        self.send_back(ctx, packet);
    }
}

/// What becomes of a packet that turns back at a cut link; none if no notification is sent.
fn turned_back(world: &World, packet: &Packet) -> Option<PacketKind> {
    let kind = facts(packet.kind).turned_back?;
    let answers_leave_paths = || world.routing.answers_leave_paths(world.transport.options.subflows > 1);
    (kind == PacketKind::Unreachable || answers_leave_paths()).then_some(kind)
}
