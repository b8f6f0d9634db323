//! The receiving side of a host: takes data, answers it, measures it.

use netloom_engine::Scheduler;
use netloom_fabric::{At, ByKind, Packet, PacketKind};
use netloom_routing::FlowKey;
use netloom_transport::{Answer, Arrival, Reply};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::host::event::FlowEvent;
use crate::host::flow::answer;
use crate::host::receivers::Place;
use crate::host::reorder_buffer::Reordering;
use crate::host::{Host, NIC};
use crate::message::Message;
use crate::numbering::FIRST_OWN;
use crate::protocol::at_hosts;
use crate::protocol::declaration::answer_to;
use crate::protocol::packets::{ACK, CNP, NACK};
use crate::protocol::uet::host::report;
use crate::world::{TakesData, World};

impl Host {
    /// Handles a message, apart from others.
    #[inline(never)]
    pub(crate) fn handle(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, message: &Message) {
        self.handle_in_batch(ctx, message);
    }

    /// Handles a message, one of many.
    #[inline(always)]
    pub(crate) fn handle_in_batch(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, message: &Message) {
        // While the NIC is busy nothing can have left since the last look.
        if self.is_still() {
            self.checked = self.checked.max(ctx.now);
        } else if self.nic.free_at(NIC) < ctx.now || self.is_watched() {
            match self.rests_until(ctx.now) {
                true => self.checked = self.checked.max(ctx.now),
                false => self.catch_up(&mut ctx.again(), message),
            }
        }
        match message {
            Message::Packet(packet) => {
                self.paces.forget_by_packet(packet);
                self.last_event = ctx.now;
                if ctx.world.rules.is_lossless() {
                    self.nic.absorb(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
                }
                match ctx.world.transport.options.interrupt_interval {
                    Some(interval) if !packet.is_of_the_link() => {
                        self.on_packet_to_coalesce(&mut ctx.again(), interval, packet)
                    }
                    _ => self.take_in(ctx, packet),
                }
            }
            timer => self.on_timer(&mut ctx.again(), timer),
        }
        self.hand_over(ctx);
    }

    /// Sends everything that leaves before a message comes.
    #[inline(always)]
    pub(crate) fn catch_up(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, message: &Message) {
        self.advance_by_instants(ctx);
        if ctx.out.next_timer() <= ctx.now {
            self.catch_up_by_timers(&mut ctx.again(), message);
        }
        if self.sampler.is_some() {
            self.show_sampler(ctx, message);
        }
    }

    /// What has left by now may have set timers that come before this message; seldom.
    #[cold]
    #[inline(never)]
    fn catch_up_by_timers(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, message: &Message) {
        while ctx.out.next_timer() <= ctx.now
            && let Some((due, timer)) = ctx.out.due_timer(message.due(ctx.now))
        {
            self.handle(&mut ctx.at(due.at), &timer);
            self.advance(ctx);
        }
    }

    /// The sampler sees what comes.
    #[cold]
    #[inline(never)]
    fn show_sampler(&mut self, ctx: &Ctx<'_, impl Scheduler<Message>>, message: &Message) {
        if let (Some(sampler), Message::Packet(packet)) = (&mut self.sampler, message) {
            match &self.port_selector {
                Some(ports) => sampler.see(ctx.now, &ctx.world.as_it_came(packet, ports.arrived_from)),
                None => sampler.see(ctx.now, packet),
            }
        }
    }

    /// A packet has come, and the host looks at it.
    #[inline(always)]
    pub(crate) fn take_in(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        match packet.kind {
            PacketKind::Data => self.on_data(ctx, packet),
            PacketKind::Header => self.on_header(&mut ctx.again(), packet),
            PacketKind::Returned | PacketKind::Unreachable => self.on_returned(&mut ctx.again(), packet),
            kind if kind.is_control() => {
                self.control_received += 1;
                match kind {
                    // By far the most of them: no call.
                    ACK => self.on_ack(ctx, packet),
                    _ => at_hosts::on_packet(self, &mut ctx.again(), packet),
                }
            }
            _ => self.on_link_signal(&mut ctx.again(), packet),
        }
    }

    /// A packet has come: the host looks at it at once, or when it may.
    #[inline(never)]
    pub(crate) fn on_packet_to_coalesce(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        interval: Time,
        packet: &Packet,
    ) {
        let interrupts = &mut self.rare.get_or_insert_default().interrupts;
        if interrupts.coalesced.is_empty() && interrupts.opens <= ctx.now {
            interrupts.opens = ctx.now + interval;
            return self.look_at(ctx, packet);
        }
        if interrupts.coalesced.is_empty() {
            ctx.timer(interrupts.opens, Message::Interrupt);
        }
        interrupts.coalesced.push(*packet);
    }

    /// The host looks at all that has come.
    pub(crate) fn on_interrupt(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Some(interval) = ctx.world.transport.options.interrupt_interval else { return };
        let interrupts = &mut self.rare.get_or_insert_default().interrupts;
        interrupts.opens = ctx.now + interval;
        self.last_event = ctx.now;
        for packet in std::mem::take(&mut interrupts.coalesced) {
            self.look_at(ctx, &packet);
        }
    }

    /// Out of line: where nothing is coalesced, packets are looked at as they come.
    #[inline(never)]
    pub(crate) fn look_at(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.take_in(ctx, packet);
    }

    #[inline(always)]
    pub(crate) fn on_data(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        match ctx.world.takes {
            TakesData::AsTheyCome => self.take(ctx, packet),
            TakesData::InOrder => self.put_in_order(&mut ctx.again(), packet),
            TakesData::ToSack(_) => self.take_to_sack(&mut ctx.again(), packet),
        }
    }

    /// The transport gets a data packet.
    #[inline(always)]
    pub(crate) fn take(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.take_as::<false>(ctx, packet);
    }

    /// The same where one ACK may answer several packets. Out of line: elsewhere each has its own.
    #[inline(never)]
    pub(crate) fn take_to_sack(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if let Some(header) = self.overflows(ctx, packet) {
            return self.on_header(ctx, &header);
        }
        self.take_as::<true>(ctx, packet);
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds packets by 65,535 bytes")]
    fn take_as<const TO_SACK: bool>(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let key = FlowKey { src: packet.src, flow: ctx.world.numbering.flow(packet.flow) };
        let transport = &ctx.world.transport;
        let is_marked = packet.flags.is_marked();
        let (slot, active) = match self.receivers.place(key, ctx.world.recorder.is_on) {
            Place::Active(slot, active) => (slot, active),
            Place::Done(late) => {
                self.reordering.get_or_insert_default().duplicates += 1;
                let reply = late.note(|seen, count| seen.on_duplicate(transport, count, is_marked));
                if let Reply::Ack(number) = reply {
                    match TO_SACK {
                        false => self.answer(&mut ctx.again(), packet, ACK, number),
                        true => self.send_last_sack(ctx, packet, number),
                    }
                }
                return;
            }
        };
        let receiver = &mut active.receiver;
        let before = (receiver.seen.delivered, receiver.resequencing());
        let arrival = Arrival {
            now: ctx.now,
            seq: packet.seq,
            payload: packet.size - transport.options.header.0 as u16,
            last: packet.flags.is_last(),
            marked: is_marked,
            // Of a NIC with several ports, the port by which it came is a part of the path.
            path: packet.path_fingerprint() ^ u32::from(packet.ingress) << 16,
        };
        let mut sack = None;
        let Answer { earlier, reply, notify } = match ctx.world.takes {
            TakesData::ToSack(due_after) if TO_SACK => {
                let asks = packet.flags.asks_for_ack();
                let answer = receiver.on_data_to_sack(transport, due_after, arrival, asks, packet.size);
                sack = answer.is_due.then(|| report(receiver, packet));
                Answer { earlier: None, reply: Reply::None, notify: answer.notify }
            }
            _ => receiver.on_data(transport, arrival),
        };
        let (finished, after) = (receiver.finished(), (receiver.seen.delivered, receiver.resequencing()));
        if ctx.now >= ctx.world.recorder.load_until || active.meter.is_some() {
            active.measure(&ctx.world.recorder, (key, ctx.id), ctx.now, before, packet);
        }
        if after.1 != before.1 {
            self.reordering.get_or_insert_default().note_waiting(before.1, after.1, ctx.now);
        }
        if after.0 == before.0 {
            self.note_useless(ctx.world, slot, packet, reply);
        }
        if let Some(count) = finished {
            self.complete(&mut ctx.again(), slot, key, count);
        } else if packet.flags.is_last() {
            self.await_rest(ctx.world, slot);
        }
        if notify {
            self.answer(&mut ctx.again(), packet, CNP, packet.seq);
        }
        if TO_SACK {
            if let Some(sack) = sack {
                self.send_report(&mut ctx.again(), packet, sack);
            }
        } else if transport.options.ack_every > 1 {
            self.settle_held(&mut ctx.again(), slot, earlier, packet, reply);
        }
        self.reply(ctx, packet, reply);
        if finished.is_none() {
            at_hosts::on_arrival(self, ctx, packet, slot);
        }
    }

    /// A packet brought nothing new.
    #[cold]
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds packets by 65,535 bytes")]
    pub(crate) fn note_useless(&mut self, world: &World, slot: u32, packet: &Packet, reply: Reply) {
        // A SYN brings no payload.
        if packet.size <= world.transport.options.header.0 as u16 {
            return;
        }
        let expected = self.receivers.active(slot).receiver.expected();
        // A receiver that takes packets in order discards what comes early, another one says so.
        let takes_in_order = world.transport.reliability.facts().takes.is_in_order();
        let discards = takes_in_order || matches!(reply, Reply::Nack(_));
        let Reordering { refused, duplicates, .. } = &mut **self.reordering.get_or_insert_default();
        *if packet.seq > expected && discards { refused } else { duplicates } += 1;
    }

    /// All of a flow has arrived, `count` packets.
    #[inline(never)]
    pub(crate) fn complete(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
        key: FlowKey,
        count: u32,
    ) {
        let clock = ctx.clock();
        if let Some(mut meter) = self.receivers.finish(slot, count, clock) {
            meter.finish(&ctx.world.recorder, ctx.now, 0, (key, ctx.id));
        }
        self.receivers.hand_in_many(&ctx.world.recorder);
        at_hosts::on_complete(self, ctx, slot);
        if key.flow < FIRST_OWN && self.work.is_program() {
            self.follow_program(ctx, |work, now, actions| {
                work.on_received(now, key.src, key.flow, actions);
            });
        }
        if ctx.world.is_driven || ctx.world.servers.is_some() {
            let reports = self.reports.get_or_insert_default();
            reports.events.push(FlowEvent::Received { flow: key, at: ctx.now });
            if !reports.ending.is_empty() {
                reports.ending.remove(&slot);
            }
            // Where there are servers, it is for them to report.
            if ctx.world.servers.is_none() {
                ctx.out.report(true);
            }
        }
    }

    /// The last packet of a flow has come before others.
    #[cold]
    #[inline(never)]
    fn await_rest(&mut self, world: &World, slot: u32) {
        if world.is_driven {
            self.reports.get_or_insert_default().ending.insert(slot);
        }
    }

    /// The first instant at which all of a flow may have arrived or, if that is reported, been acknowledged, given what the host is going to handle: too early perhaps, but not too late.
    pub(crate) fn first_completion(
        &self,
        world: &World,
        pending: impl FnOnce(&mut dyn FnMut(Time, &Message)),
    ) -> Time {
        let options = &world.transport.options;
        let holds_back = options.reorder.holds() || options.interrupt_interval.is_some();
        // What is held back may be the last packet, and follow any other.
        let any = holds_back || self.reports.as_ref().is_some_and(|reports| !reports.ending.is_empty());
        let mut first = Time::MAX;
        pending(&mut |at, message| {
            let may_complete = match message {
                Message::Packet(packet) if packet.kind == PacketKind::Data => any || packet.flags.is_last(),
                Message::Packet(packet) => world.reports_sent && self.may_end(world, packet),
                _ => holds_back,
            };
            if may_complete {
                first = first.min(at);
            }
        });
        first
    }

    /// Whether a flow of this host's may be over with this answer: the last packet's, or any once that one has come.
    fn may_end(&self, world: &World, packet: &Packet) -> bool {
        let transport = &world.transport;
        // Such ACKs answer any packets, and are not looked into.
        let has_sacks = transport.has_sacks();
        if has_sacks || world.numbering.has_subflows() || transport.options.interrupt_interval.is_some() {
            return true;
        }
        let flow = self.flows.get(packet.slot as usize).and_then(Option::as_ref);
        let flow = flow.filter(|flow| packet.kind == ACK && flow.at.key.flow == packet.flow);
        flow.is_some_and(|flow| flow.sender.may_end(&answer(Time::ZERO, packet)))
    }

    /// Says what a receiver has to say to a packet.
    #[inline(always)]
    pub(crate) fn reply(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        reply: Reply,
    ) {
        let (kind, number) = match reply {
            Reply::None => return,
            Reply::Ack(number) => (ACK, number),
            Reply::Nack(number) => {
                self.reordering.get_or_insert_default().nacks += 1;
                (NACK, number)
            }
        };
        self.answer_at_once(ctx, packet, kind, number);
    }

    /// Sends an ACK, NACK or notification in answer to a data packet; where that is not the common answer to one that has just come.
    #[inline(never)]
    pub(crate) fn answer(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        kind: PacketKind,
        number: u32,
    ) {
        self.answer_at_once(ctx, packet, kind, number);
    }

    #[inline(always)]
    pub(crate) fn answer_at_once(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        kind: PacketKind,
        number: u32,
    ) {
        let size = ctx.world.transport.options.ack_size;
        let mut answer = Packet { by_kind: ByKind::new(number), ..answer_to(packet, kind, size, ctx.id) };
        self.send_answer(ctx, &mut answer);
    }

    /// Sends a control packet: all that the host makes leaves by this, and is counted.
    #[inline(always)]
    pub(crate) fn send_control(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) {
        self.control_sent += 1;
        if self.port_selector.is_some() {
            return self.send_control_by_port(&mut ctx.again(), packet);
        }
        // A flow without ACKs ends when the NIC has sent its last packet: nothing may be handed on behind that before.
        let is_watched = self.sampler.is_some() || self.leaving.is_some();
        self.nic.enqueue_control(
            NIC,
            packet,
            is_watched,
            &mut self.random,
            At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()),
        );
    }

    /// A receiver that spares ACKs has got a packet: what waited for its ACK may have to have it first, and the packet may be the one that
    /// waits now, but not for ever.
    #[inline(never)]
    pub(crate) fn settle_held(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
        earlier: Option<u32>,
        packet: &Packet,
        reply: Reply,
    ) {
        let rare = self.rare.get_or_insert_default();
        let known = rare.delayed_acks.get_mut(&slot);
        let waiting = known.and_then(|delayed_acks| delayed_acks.packet.take());
        // While packets wait for their ACK, there is always the last of them.
        let is_waiting = reply == Reply::None && !self.receivers.active(slot).receiver.is_answered();
        if is_waiting {
            let is_refused = waiting.is_some_and(|(before, _)| packet.seq > before.seq.wrapping_add(1));
            let due = match waiting {
                Some((_, due)) if earlier.is_none() => due,
                _ => ctx.now + ctx.world.transport.options.ack_delay,
            };
            // A packet that a go-back-N receiver discards is not the one to be acknowledged.
            let last = waiting.filter(|_| is_refused).map_or(*packet, |(before, _)| before);
            let delayed_acks = rare.delayed_acks.entry(slot).or_default();
            delayed_acks.packet = Some((last, due));
            if delayed_acks.timer.is_none() {
                delayed_acks.timer = Some(due);
                ctx.timer(due, Message::AckDelay { receiver: slot });
            }
        }
        if let (Some(number), Some((before, _))) = (earlier, waiting) {
            self.answer(ctx, &before, ACK, number);
        }
    }
}
