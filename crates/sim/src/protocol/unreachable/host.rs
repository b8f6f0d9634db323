//! What a host does when packets come back from a cut link: answers are sent again, and flows leave the path.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_routing::Tag;
use netloom_transport::Feedback;
use netloom_units::Bytes;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::message::Message;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::before_turning;
use crate::protocol::declaration::answer_to;
use crate::protocol::unreachable::Unreachable;
use crate::world::World;

impl HostProtocol for Unreachable {
    fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        host.on_turned_answer(ctx, packet);
    }
}

impl Host {
    /// What this host answered met a cut link, and has come back: it is sent again, by another path if one is drawn.
    ///
    /// Nothing is remembered of it: the next answer goes the path of the packet that it answers, as that sender may be on another path by then.
    #[cold]
    pub(crate) fn on_turned_answer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let (Some(kind), dst) = (before_turning(packet.kind), packet.src) else { return };
        let tag =
            ctx.world.routes(ctx.now).tags(ctx.id, dst).another(Tag::from_bits(packet.tag), &mut self.random);
        let size = Bytes(u64::from(packet.size));
        let mut answer = Packet { tag: tag.bits(), ..answer_to(packet, kind, size, ctx.id) };
        self.send_control(ctx, &mut answer);
    }

    /// A packet of a flow met a cut link: routing chooses another path for the flow.
    pub(crate) fn leave_path(&mut self, world: &World, id: u32, slot: u32, feedback: &Feedback) {
        let (Some(path_selector), Some(flow)) = (&mut self.path_selector, &mut self.flows[slot as usize])
        else {
            return;
        };
        let tags = || world.routes(feedback.now).tags(id, flow.dst);
        flow.settled = None;
        path_selector.on_unreachable(flow.at, feedback, tags, &mut self.random);
    }
}
