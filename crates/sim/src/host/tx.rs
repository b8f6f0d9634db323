//! The sending side of a host: what leaves the NIC when, and what happens inside the host meanwhile.

use netloom_engine::Scheduler;
use netloom_fabric::{ByKind, Flags, Packet, PacketKind};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::host::connections::take_of_connection;
use crate::host::send_queue::Next;
use crate::host::{Host, NIC, TURNS_AHEAD};
use crate::message::Message;
use crate::protocol::at_hosts;
use crate::world::{Says, World};

impl Host {
    /// Whether nothing leaves and nothing happens inside the host until something comes.
    #[inline(always)]
    pub(crate) fn is_still(&self) -> bool {
        (self.send_queue.is_empty() || self.is_held_back())
            && !self.nic.poll(NIC).1
            && self.leaving.is_none()
            && !self.is_watched()
    }

    /// Whether nothing leaves before `now` and nothing happens inside the host until something comes, as its only flow waits for its pace.
    #[inline(always)]
    pub(crate) fn rests_until(&self, now: Time) -> bool {
        self.paces.rests(now) && !self.nic.poll(NIC).1 && self.leaving.is_none() && !self.is_watched()
    }

    /// From now on more may happen inside than what its flows send.
    pub(crate) fn watch(&mut self) {
        self.rare.get_or_insert_default();
    }

    /// Comes to `until`, or to a timer before it, if the host is still.
    #[inline(always)]
    pub(crate) fn rests(&mut self, until: Time, out: &impl Scheduler<Message>) -> bool {
        let is_still = self.is_still();
        if is_still {
            self.checked = until.min(out.next_timer());
        }
        is_still
    }

    /// Whether more may happen inside than what its flows send.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        debug_assert!(self.rare.is_some() || self.protocols.next_wake().is_none(), "see Host::watch");
        self.sampler.is_some() || self.rare.is_some() || self.queue.is_some()
    }

    /// Sends everything that leaves before `ctx.now`; returns when the next packet will.
    #[inline(always)]
    pub(crate) fn advance(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        if self.rests(ctx.now, ctx.out) {
            return None;
        }
        self.advance_by_instants(ctx)
    }

    #[inline(always)]
    pub(crate) fn advance_by_instants(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        if self.sampler.is_some() {
            return self.sample_until(ctx);
        }
        self.send_until(ctx)
    }

    /// Sends as [`Self::send_until`], and takes the samples that are due.
    #[inline(never)]
    pub(crate) fn sample_until(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        while let Some(instant) = self.sampler.as_ref().and_then(|sampler| sampler.due(ctx.now)) {
            let next = self.send_until(&mut ctx.at(instant));
            if ctx.out.next_timer() < instant {
                return next;
            }
            if let Some(sampler) = &mut self.sampler
                && sampler.look(&self.nic, instant)
            {
                sampler.skip(next.unwrap_or(ctx.now).min(ctx.out.next_timer()).min(ctx.now));
            }
        }
        self.send_until(ctx)
    }

    /// Sends everything that leaves before `ctx.now`, or before the next timer if that comes first; returns when the next packet will.
    #[inline(never)]
    pub(crate) fn send_until(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        match self.rare.is_some() || self.queue.is_some() {
            true => self.send_and_step(ctx),
            false => self.send_only(ctx),
        }
    }

    /// [`Self::send_until`] of a host inside which nothing happens besides: what most of them do, with as few questions as that takes.
    #[inline(always)]
    fn send_only(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        let mut until = ctx.now;
        loop {
            if self.leaving.is_some() {
                return self.send_and_step(&mut ctx.again());
            }
            // What comes before its next timer, which the packet that has just left may have set.
            until = until.min(ctx.out.next_timer());
            self.nic.advance_port(NIC, until, &ctx.world.rules, &mut ctx.wire());
            let (free_at, is_waiting) = self.nic.poll(NIC);
            let at = free_at.max(self.checked);
            if is_waiting {
                return Some(at);
            }
            if self.send_queue.is_empty() || self.is_held_back() {
                self.checked = until;
                return None;
            }
            if at >= until {
                return Some(at);
            }
            let next = match self.next_flow(ctx.world, at, until) {
                (at, Next::Now(slot)) => {
                    if let Some(next) = self.send_data(&mut ctx.at(at), slot, until) {
                        self.checked = self.checked.max(until.min(ctx.out.next_timer()));
                        self.paces.rest(next);
                        return Some(next);
                    }
                    if self.rests(until, ctx.out) {
                        return None;
                    }
                    continue;
                }
                (_, Next::At(later)) => Some(later),
                (_, Next::Never) => None,
            };
            match next.filter(|&next| next < until) {
                Some(next) => self.checked = next,
                None => {
                    self.checked = until;
                    return next;
                }
            }
        }
    }

    /// Whether flow control holds back the only queue of data.
    #[inline(always)]
    fn is_held_back(&self) -> bool {
        self.nic.is_paused(NIC) && self.send_queue.is_single() && !self.nic.may_send(NIC, 0)
    }

    /// [`Self::send_until`] of any host.
    #[inline(never)]
    fn send_and_step(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        if self.port_selector.is_some() {
            return self.send_by_ports(ctx);
        }
        let mut until = ctx.now;
        loop {
            // What comes before its next timer, which the packet that has just left may have set.
            until = until.min(ctx.out.next_timer());
            let wake = self.next_wake();
            // What the host does then may put something into the port.
            let before = wake.map_or(until, |wake| wake.min(until));
            self.nic.advance_port(NIC, before, &ctx.world.rules, &mut ctx.wire());
            let (free_at, is_waiting) = self.nic.poll(NIC);
            let inside = self.next_inside(free_at, wake);
            let has_data = self.queue.as_ref().map_or(!self.send_queue.is_empty(), |queue| !queue.is_empty());
            if !has_data && !is_waiting && inside.is_none() {
                self.checked = until;
                return None;
            }
            let at = free_at.max(self.checked);
            if let Some(instant) = inside.filter(|&instant| instant < until && instant <= at) {
                self.step_inside(&mut ctx.at(instant), free_at);
                continue;
            }
            let or_inside = |time: Time| inside.map_or(time, |inside| inside.min(time));
            if is_waiting || at >= until {
                return Some(or_inside(at));
            }
            let next = if self.queue.is_none() {
                self.next_flow(ctx.world, at, at).1
            } else if self.send_queued(&mut ctx.at(at)) {
                continue;
            } else {
                Next::Never
            };
            let next = match next {
                Next::Now(slot) => {
                    self.send_data(&mut ctx.at(at), slot, until);
                    if self.rests(until, ctx.out) {
                        return None;
                    }
                    continue;
                }
                Next::At(later) => Some(or_inside(later)),
                Next::Never => inside,
            };
            match next.filter(|&next| next < until) {
                Some(next) => self.checked = next,
                None => {
                    self.checked = until;
                    return next;
                }
            }
        }
    }

    /// When something happens next inside the host, besides sending: a flow without ACKs ends, the program wakes, requests leave, or a flow hands over
    /// packets to the NIC's queue.
    #[inline]
    pub(crate) fn next_inside(&self, free_at: Time, wake: Option<Time>) -> Option<Time> {
        if let Some(queue) = &self.queue {
            return wake.into_iter().chain(queue.opens()).min();
        }
        let leaves = self.leaving.map(|_| free_at);
        match (leaves, wake) {
            (Some(leaves), Some(wakes)) => Some(leaves.min(wakes)),
            (leaves, wakes) => leaves.or(wakes),
        }
    }

    /// When the program wakes, or a protocol.
    #[inline]
    pub(crate) fn next_wake(&self) -> Option<Time> {
        let calculations = self.rare.as_ref().and_then(|rare| rare.calculations.next());
        self.protocols.next_wake().into_iter().chain(calculations).min()
    }

    /// Does what happens next inside the host.
    pub(crate) fn step_inside(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, free_at: Time) {
        self.checked = self.checked.max(ctx.now);
        if free_at == ctx.now
            && let Some(slot) = self.leaving.take()
        {
            self.finish(ctx, slot);
        } else if !at_hosts::wake(self, ctx)
            && self.next_wake().is_some_and(|wakes| wakes <= ctx.now)
            && let Some(rare) = &mut self.rare
            && let Some(op) = rare.calculations.end(ctx.world)
        {
            (self.last_event, rare.calculated) = (ctx.now, Some(ctx.clock()));
            self.follow_program(ctx, |work, now, actions| work.on_wake(now, op, actions));
        }
        self.hand_over(ctx);
    }

    /// The flow whose turn it is sends a packet and goes to the end of the send queue. If no other flow waits, it sends all of its packets that are due before `until` and before the next timer; then the
    /// result is when its next packet is due, if it has one.
    #[inline(always)]
    pub(crate) fn send_data(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
        until: Time,
    ) -> Option<Time> {
        let is_alone = self.send_queue.is_single()
            && self.send_queue.is_empty()
            && !self.protocols.gates()
            && self.rare.is_none()
            && !self.stretches_gaps()
            && !ctx.world.numbering.has_subflows();
        self.prefetch_turn(TURNS_AHEAD);
        while let Some((mut packet, concerns_others)) = self.make_packet(ctx, slot) {
            self.nic.send_now(NIC, &mut packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
            let before = until.min(ctx.out.next_timer());
            let free_at = self.nic.free_at(NIC);
            let is_next = is_alone && self.nic.may_send(NIC, 0);
            let mut next = None;
            let goes_on = |from: Time| {
                let at = free_at.max(from);
                next = is_next.then_some(at);
                is_next && at < before
            };
            let is_over = self.requeue(ctx.world, slot, &packet, concerns_others, goes_on).is_some();
            match next {
                Some(at) if !is_over => ctx.now = at,
                _ => return next,
            }
        }
        None
    }

    /// Takes the next packet of the flow whose turn it is, which then goes to the end of the send queue; returns its data queue, too.
    #[inline(always)]
    pub(crate) fn take_packet(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
    ) -> Option<(u8, Packet)> {
        let (packet, concerns_others) = self.make_packet(ctx, slot)?;
        Some((self.requeue(ctx.world, slot, &packet, concerns_others, |_| false)?, packet))
    }

    /// The next packet of the flow whose turn it is, and whether that concerns the other subflows of its connection.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "TransportOptions::check bounds MTU and header together by 65,535 bytes"
    )]
    pub(crate) fn make_packet(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
    ) -> Option<(Packet, bool)> {
        let Host { flows, path_selector, random, connections, departed, send_queue, .. } = self;
        let flow = flows[slot as usize].as_mut()?;
        let Some(mut next) = flow.sender.take(&ctx.world.transport, ctx.now) else {
            flow.is_queued = false;
            return None;
        };
        let mut concerns_others = false;
        if ctx.world.numbering.has_subflows() {
            (next, concerns_others) = take_of_connection(connections, ctx.world, flow, next);
        }
        let size = u32::from(next.payload) + ctx.world.transport.options.header.0 as u32;
        let tag = match flow.settled {
            Some(tag) => tag.bits(),
            None => flow.choose_path(ctx.world, path_selector, random, u32::from(next.payload), ctx.now),
        };
        let mut packet = Packet {
            sent: ctx.now,
            src: ctx.id,
            dst: flow.dst,
            flow: flow.at.key.flow,
            slot,
            seq: next.seq,
            by_kind: ByKind::new(tag),
            tag,
            size: size as u16,
            kind: PacketKind::Data,
            flags: Flags::new(flow.class, next.last),
            ..Packet::EMPTY
        };
        if let Some(pause) = &mut flow.pause {
            pause.on_sent();
            packet.flags.set_drain_epoch(pause.is_turned);
        }
        if let Some(departures) = &mut flow.departures {
            let training = departed.as_mut().and_then(|departed| departed.training.as_mut());
            departures.on_sent(ctx.world, training, ctx.now);
        }
        match ctx.world.says {
            Says::Nothing => {}
            Says::HasMore(least) => {
                packet.flags.set_more(flow.sender.remaining(&ctx.world.transport) >= least);
            }
            Says::Claims => {
                packet.serialisation = flow.sender.claim(&ctx.world.transport, next.payload).bits();
            }
            Says::AsksForAck | Says::AsksForCredit => {
                if ctx.world.says == Says::AsksForCredit {
                    let target = flow.sender.pull_target(&ctx.world.transport, 1 + send_queue.len());
                    packet.serialisation = target.unwrap_or_default();
                }
                packet.flags.set_asks_for_ack(next.asks_for_ack);
                packet.flags.set_repeat(next.is_repeat);
            }
        }
        packet.flags.set_urgent(next.is_urgent);
        flow.arm(&mut ctx.at(ctx.now + Time(1)), slot);
        at_hosts::on_sent(self, ctx, &packet);
        Some((packet, concerns_others))
    }

    /// A flow that has sent a packet goes to the end of its send queue, if it can send more; returns the queue. Unless it goes on at once, as `goes_on` says of the instant from which on it may.
    #[inline(always)]
    pub(crate) fn requeue(
        &mut self,
        world: &World,
        slot: u32,
        packet: &Packet,
        concerns_others: bool,
        goes_on: impl FnOnce(Time) -> bool,
    ) -> Option<u8> {
        let Host { flows, path_selector, paused_classes, .. } = self;
        let flow = flows[slot as usize].as_mut()?;
        let from = flow.ready(world, path_selector.as_deref(), *paused_classes);
        if from.is_some_and(goes_on) {
            return None;
        }
        flow.is_queued = from.is_some();
        let queue = flow.queue;
        if flow.is_queued {
            self.send_queue.push(queue, slot);
        } else if flow.sender.is_done() {
            self.leaving = Some(slot);
        }
        if concerns_others {
            self.offer(world, world.numbering.flow(packet.flow));
        }
        Some(queue)
    }
}
