//! The PULLs that a host's receivers owe: one queue per host, its flows in turn, at the pace at which full packets can come in.

use netloom_engine::Scheduler;
use netloom_fabric::{ByKind, Flags, NO_INGRESS, Packet};
use netloom_routing::FlowKey;
use netloom_topology::HostId;
use netloom_transport::congestion::Asking;
use netloom_units::{Rate, Time, narrow};

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
use crate::protocol::pulls::queue::{AtHost, PullDue, PullQueue};
use crate::protocol::uet::host::report;
use crate::world::{Says, World};

impl HostProtocol for Pulls {
    #[inline(always)]
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

/// The rate at which packets of one host can come to another one, by all ports that lead there.
pub(super) fn rate_towards(world: &World, (src, dst): (HostId, HostId), now: Time) -> Rate {
    let ports = world.ports_of_nic(&dst);
    let arrivals = world.arrivals((src, dst), narrow::<u16>(ports.len()), now);
    let alive = ports.iter().enumerate().filter(|(port, _)| arrivals >> port & 1 == 1);
    let rate = |(_, &port): (usize, &HostId)| world.network.channel(world.network.ports(port)[0] ^ 1).rate.0;
    Rate(alive.map(rate).fold(0, u64::saturating_add))
}

/// A PULL with its number to the source of a packet.
#[inline(always)]
fn pull_for(ctx: &Ctx<'_, impl Scheduler<Message>>, packet: &Packet, number: u32) -> Packet {
    let answer = answer_to(packet, PULL, ctx.world.transport.options.ack_size, ctx.id);
    Packet { sent: ctx.now, by_kind: ByKind::new(number), ..answer }
}

impl PullQueue {
    /// How long a PULL from a host waits for the one before it: as long as the packet that is asked for takes on the links to the host. Those of a NIC with one port never differ.
    #[inline(never)]
    fn find_interval(
        &mut self,
        world: &World,
        config: &netloom_transport::Pulls,
        (src, dst): (HostId, HostId),
        now: Time,
    ) -> Time {
        let rate = rate_towards(world, (src, dst), now);
        let interval = config.interval(rate.serialize(world.transport.packet_size()));
        if world.ports_of_nic(&dst).len() == 1 {
            self.interval = Some(interval);
        }
        interval
    }
}

impl Host {
    /// A packet, or its header, has come for a receiver: asks for another one, now or when it is its turn.
    #[inline(never)]
    pub(crate) fn ask_for_more(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        receiver: u32,
        packet: &Packet,
    ) {
        match ctx.world.transport.congestion.facts().pulls {
            Some(Asking::Packets(pulls)) => {
                let most = self.receivers.active(receiver).receiver.missing();
                self.protocols.pulls.queue.get_or_insert_default().add(pulls, receiver, packet, most);
                self.pull(ctx);
            }
            Some(Asking::Credit(credit)) => {
                self.note_target(ctx, credit, receiver, packet);
                self.grant(ctx, credit);
            }
            None => {}
        }
    }

    /// Everything has come for a receiver.
    pub(crate) fn stop_asking(&mut self, world: &World, receiver: u32) {
        let AtHost { queue, credit, .. } = &mut self.protocols.pulls;
        let pulls = world.transport.congestion.facts().pulls.and_then(Asking::packets);
        if let (Some(queue), Some(pulls)) = (queue, pulls) {
            queue.clear(pulls, receiver);
        }
        if let Some(credit) = credit {
            credit.queue.clear(receiver);
        }
    }

    pub(crate) fn on_pull_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let AtHost { queue, credit, .. } = &mut self.protocols.pulls;
        if let Some(queue) = queue {
            if queue.pacer.fires(ctx.now) {
                self.pull(ctx);
            }
        } else if credit.as_mut().is_some_and(|credit| credit.pacer.fires(ctx.now))
            && let Some(config) = ctx.world.transport.credit()
        {
            self.grant(ctx, config);
        }
    }

    /// Sends the PULL whose time has come, and has itself called for the next one.
    #[inline(always)]
    pub(crate) fn pull(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let config = ctx.world.transport.congestion.facts().pulls.and_then(Asking::packets);
        let (Some(pulls), Some(config)) = (&mut self.protocols.pulls.queue, config) else { return };
        if pulls.pacer.opens <= ctx.now
            && let Some((packet, count)) = pulls.pop()
        {
            let mut pull = pull_for(ctx, packet, count);
            let interval = match pulls.interval {
                Some(interval) => interval,
                None => pulls.find_interval(ctx.world, config, (pull.dst, ctx.id), ctx.now),
            };
            pulls.pacer.opens = ctx.now + interval;
            self.send_control(ctx, &mut pull);
        }
        let Some(pulls) = &mut self.protocols.pulls.queue else { return };
        if !pulls.pending.is_empty()
            && let Some(at) = pulls.pacer.arm(ctx.now)
        {
            ctx.timer(at, Message::Protocol(Timer::Pulls(PullDue)));
        }
    }

    /// Sends a PULL with its number to the source of a packet.
    pub(super) fn send_pull(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        number: u32,
    ) {
        let mut pull = pull_for(ctx, packet, number);
        self.send_control(ctx, &mut pull);
    }

    /// A flow is to send requests as soon as it can.
    pub(crate) fn add_requests(&mut self, slot: u32, flow: u32, count: u32, now: Time) {
        self.watch();
        self.protocols.pulls.requests.get_or_insert_default().add(slot, flow, count, now);
    }

    /// A receiver asks for more of a flow.
    pub(crate) fn on_pull(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        flow.sender.on_pull(packet.number_of(&[PULL]));
        // Where there is credit, a sender does not wait for it any longer; nothing else has changed.
        debug_assert!(
            ctx.now >= flow.timer || flow.sender.deadline_before(&ctx.world.transport, flow.timer).is_none(),
            "a deadline before the timer"
        );
        self.ask_for_credit(ctx.world, packet.slot, ctx.now);
        self.enqueue_if_ready(ctx.world, packet.slot);
    }

    /// A flow that lacks credit which it has not asked for yet sends a request at once.
    #[inline]
    pub(crate) fn ask_for_credit(&mut self, world: &World, slot: u32, now: Time) {
        if world.says != Says::AsksForCredit {
            return;
        }
        let sources = 1 + self.send_queue.len();
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        if flow.sender.asks_for_credit(&world.transport, sources) {
            let number = flow.at.key.flow;
            self.add_requests(slot, number, 1, now);
        }
    }

    /// Sends the requests that wait, each on a path of its own where packets have one.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds ACKs by 65,535 bytes")]
    pub(crate) fn request(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Some(requests) = &mut self.protocols.pulls.requests else { return };
        for (slot, number, count) in std::mem::take(&mut requests.waiting) {
            for _ in 0..count {
                let Host { flows, path_selector, random, send_queue, .. } = self;
                let Some(flow) = flow_in(flows, slot, number) else { break };
                let tag = match flow.settled {
                    Some(tag) => tag.bits(),
                    None => flow.choose_path(ctx.world, path_selector, random, 0, ctx.now),
                };
                let target = flow.sender.pull_target(&ctx.world.transport, 1 + send_queue.len());
                let has_sacks = ctx.world.transport.has_sacks();
                let mut flags = Flags::new(flow.class, false);
                flags.set_asks_for_ack(has_sacks);
                let mut request = Packet {
                    sent: ctx.now,
                    src: ctx.id,
                    dst: flow.dst,
                    flow: number,
                    slot,
                    seq: if has_sacks { flow.sender.oldest() } else { 0 },
                    serialisation: target.unwrap_or_default(),
                    tag,
                    size: ctx.world.transport.options.ack_size.0 as u16,
                    kind: REQUEST,
                    flags,
                    ingress: NO_INGRESS,
                    ..Packet::EMPTY
                };
                self.send_control(ctx, &mut request);
            }
        }
    }

    /// A flow asks for a PULL, for an ACK, or for both where PULLs grant credit. Out of line: PULLs come far more often.
    #[inline(never)]
    pub(crate) fn on_request(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let key = FlowKey { src: packet.src, flow: packet.flow };
        let has_sacks = ctx.world.transport.has_sacks();
        match self.receivers.place(key, ctx.world.recorder.is_on) {
            Place::Active(slot, active) => {
                if has_sacks {
                    let report = report(&active.receiver, packet);
                    self.send_report(ctx, packet, report);
                }
                self.ask_for_more(ctx, slot, packet);
            }
            Place::Done(late) if has_sacks => {
                let count = late.note(|_, count| count);
                self.send_last_sack(ctx, packet, count);
            }
            Place::Done(_) => {}
        }
    }
}
