//! The PULLs that a host's receivers owe: one queue per host, its flows in turn, at the pace at which full packets can come in.

use netloom_engine::Scheduler;
use netloom_fabric::{ByKind, Flags, NO_INGRESS, Packet};
use netloom_routing::FlowKey;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::host::receivers::Place;
use crate::message::Message;
use crate::protocol::Timer;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::SwitchProtocol;
use crate::protocol::declaration::answer_to;
use crate::protocol::packets::{PULL, REQUEST};
use crate::protocol::pulls::Pulls;
use crate::protocol::pulls::queue::PullDue;
use crate::world::World;

impl HostProtocol for Pulls {
    fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        match packet.kind {
            PULL => host.on_pull(ctx, packet),
            _ => host.on_request(ctx, packet),
        }
    }

    fn on_timer(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, _: PullDue) {
        host.on_pull_timer(ctx);
    }

    #[inline(always)]
    fn on_arrival(
        host: &mut Host,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        receiver: u32,
    ) {
        if ctx.world.transport.pulls() {
            host.ask_for_more(&mut ctx.again(), receiver, packet);
        }
    }

    #[inline(always)]
    fn on_complete(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, receiver: u32) {
        host.stop_asking(ctx.world, receiver);
    }

    #[inline(always)]
    fn wake(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> bool {
        let requests = &host.protocols.pulls.requests;
        let is_due =
            requests.as_ref().is_some_and(|requests| requests.next().is_some_and(|at| at <= ctx.now));
        if is_due {
            host.request(ctx);
        }
        is_due
    }
}

impl SwitchProtocol for Pulls {}

impl Host {
    /// A packet, or its header, has come for a receiver: asks for another one, now or when it is its turn.
    #[inline(never)]
    pub(crate) fn ask_for_more(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        receiver: u32,
        packet: &Packet,
    ) {
        let most = self.receivers.active(receiver).receiver.missing();
        let Some(pulls) = ctx.world.transport.congestion.facts().pulls else { return };
        self.protocols.pulls.queue.get_or_insert_default().add(pulls, receiver, packet, most);
        self.pull(ctx);
    }

    /// Everything has come for a receiver.
    pub(crate) fn stop_asking(&mut self, world: &World, receiver: u32) {
        if let (Some(queue), Some(pulls)) =
            (&mut self.protocols.pulls.queue, world.transport.congestion.facts().pulls)
        {
            queue.clear(pulls, receiver);
        }
    }

    pub(crate) fn on_pull_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        if let Some(pulls) = self.protocols.pulls.queue.as_mut().filter(|pulls| pulls.timer == Some(ctx.now))
        {
            pulls.timer = None;
            self.pull(ctx);
        }
    }

    /// Sends the PULL whose time has come, and has itself called for the next one.
    pub(crate) fn pull(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let (Some(pulls), Some(config)) =
            (&mut self.protocols.pulls.queue, ctx.world.transport.congestion.facts().pulls)
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
            let answer = answer_to(&packet, PULL, size, ctx.id);
            self.send_control(ctx, &mut Packet { sent: ctx.now, by_kind: ByKind::new(count), ..answer });
        }
        let Some(pulls) = &mut self.protocols.pulls.queue else { return };
        if !pulls.pending.is_empty() && pulls.timer.is_none() {
            let at = pulls.opens.max(ctx.now);
            pulls.timer = Some(at);
            ctx.timer(at, Message::Protocol(Timer::Pulls(PullDue)));
        }
    }

    /// A receiver asks for more of a flow.
    pub(crate) fn on_pull(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        flow.sender.on_pull(packet.number_of(&[PULL]));
        self.go_on(ctx, packet.slot);
    }

    /// Sends the requests that wait, each on a path of its own where packets have one.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds ACKs by 65,535 bytes")]
    pub(crate) fn request(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Some(requests) = &mut self.protocols.pulls.requests else { return };
        for (slot, number, count) in std::mem::take(&mut requests.waiting) {
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
                    tag,
                    size: ctx.world.transport.options.ack_size.0 as u16,
                    kind: REQUEST,
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
        if let Place::Active(slot, _) = self.receivers.place(key, ctx.world.recorder.is_on) {
            self.ask_for_more(ctx, slot, packet);
        }
    }
}
