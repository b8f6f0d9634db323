//! The PULLs that a host's receivers owe: one queue per host, its flows in turn, at the pace at which full packets can come in.

use netloom_engine::Scheduler;
use netloom_fabric::{Flags, NO_INGRESS, Packet, PacketKind};
use netloom_routing::FlowKey;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::host::receivers::Place;
use crate::message::Message;
use crate::protocol::declaration::answer_to;
use crate::world::World;

impl Host {
    /// A packet, or its header, has come for a receiver that can make use of `most` more: asks for another one, now or when it is its turn.
    #[inline(never)]
    pub(crate) fn ask_for_more(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        receiver: u32,
        packet: &Packet,
        most: u32,
    ) {
        let Some(pulls) = ctx.world.transport.congestion.facts().pulls else { return };
        self.pulls.get_or_insert_default().add(pulls, receiver, packet, most);
        self.pull(ctx);
    }

    /// Everything has come for a receiver.
    pub(crate) fn stop_asking(&mut self, world: &World, receiver: u32) {
        if let (Some(queue), Some(pulls)) = (&mut self.pulls, world.transport.congestion.facts().pulls) {
            queue.clear(pulls, receiver);
        }
    }

    pub(crate) fn on_pull_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        if let Some(pulls) = self.pulls.as_mut().filter(|pulls| pulls.timer == Some(ctx.now)) {
            pulls.timer = None;
            self.pull(ctx);
        }
    }

    /// Sends the PULL whose time has come, and has itself called for the next one.
    pub(crate) fn pull(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let (Some(pulls), Some(config)) = (&mut self.pulls, ctx.world.transport.congestion.facts().pulls)
        else {
            return;
        };
        if pulls.opens <= ctx.now
            && let Some((packet, count)) = pulls.pop()
        {
            // The packet that is asked for takes so long on the link to this host.
            let towards = ctx.world.network.channel(ctx.world.network.ports(ctx.id)[0] ^ 1);
            pulls.opens =
                ctx.now + config.interval(towards.rate.serialize(ctx.world.transport.packet_size()));
            let size = ctx.world.transport.options.ack_size;
            let answer = answer_to(&packet, PacketKind::Pull, size, ctx.id);
            self.send_control(ctx, &mut Packet { sent: ctx.now, aux: count, ..answer });
        }
        let Some(pulls) = &mut self.pulls else { return };
        if !pulls.line.is_empty() && pulls.timer.is_none() {
            let at = pulls.opens.max(ctx.now);
            pulls.timer = Some(at);
            ctx.timer(at, Message::Pull);
        }
    }

    /// A receiver asks for more of a flow.
    pub(crate) fn on_pull(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        flow.sender.on_pull(packet.aux);
        self.go_on(ctx, packet.slot);
    }

    /// Sends the requests that wait, each on a path of its own where packets have one.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds ACKs by 65,535 bytes")]
    pub(crate) fn request(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Some(rare) = &mut self.rare else { return };
        for (slot, number, count) in std::mem::take(&mut rare.requests.waiting) {
            for _ in 0..count {
                let Host { flows, path_selector, random, .. } = self;
                let Some(flow) = flow_in(flows, slot, number) else { break };
                let tag = match flow.settled {
                    Some(tag) => tag.bits(),
                    None => flow.choose_path(ctx.world, path_selector, random, 0, ctx.now),
                };
                let mut request = Packet {
                    sent: ctx.now,
                    src: ctx.id,
                    dst: flow.dst,
                    flow: number,
                    slot,
                    aux: tag,
                    tag,
                    size: ctx.world.transport.options.ack_size.0 as u16,
                    kind: PacketKind::Request,
                    flags: Flags::new(flow.class, false),
                    ingress: NO_INGRESS,
                    ..Packet::EMPTY
                };
                self.send_control(ctx, &mut request);
            }
        }
    }

    /// A flow asks for a PULL.
    pub(crate) fn on_request(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let key = FlowKey { src: packet.src, flow: packet.flow };
        if let Place::Active(slot, active) = self.receivers.place(key, ctx.world.recorder.is_on) {
            let missing = active.receiver.missing();
            self.ask_for_more(ctx, slot, packet, missing);
        }
    }
}
