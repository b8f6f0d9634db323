//! Answers of a host that come back from a cut link.

use netloom_engine::Scheduler;
use netloom_fabric::{NO_INGRESS, Packet};
use netloom_routing::Tag;

use crate::ctx::Ctx;
use crate::host::{Host, NIC};
use crate::message::Message;

impl Host {
    /// What this host answered met a cut link, and has come back: it is sent again, by another way if one is drawn.
    ///
    /// Nothing is remembered of it: the next answer goes the way of the packet that it answers, as that sender may be on another path by then.
    #[cold]
    pub(crate) fn on_turned_answer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.control_received += 1;
        let (Some(kind), dst) = (packet.kind.turned_answer(), packet.src) else { return };
        let tag =
            ctx.world.routes(ctx.now).tags(ctx.id, dst).another(Tag::from_bits(packet.tag), &mut self.random);
        let mut answer = Packet {
            src: ctx.id,
            dst,
            tag: tag.bits(),
            kind,
            ingress: NO_INGRESS,
            trail: packet.trail.fresh(),
            ..*packet
        };
        self.control_sent += 1;
        self.nic.enqueue(NIC, &mut answer, ctx.now, &ctx.world.rules, &mut self.random, &mut ctx.wire());
    }
}
