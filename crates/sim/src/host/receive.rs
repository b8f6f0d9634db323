//! The receiving side of a host: takes data, answers it, measures it.

use netloom_engine::Scheduler;
use netloom_fabric::{NO_INGRESS, Packet, PacketKind};
use netloom_routing::FlowKey;
use netloom_transport::{Answer, Arrival, Reliability, Reply};

use super::receivers::Place;
use super::reorder::Reordering;
use super::{FIRST_OWN, Host, NIC};
use crate::ctx::Ctx;
use crate::driven::Heard;
use crate::model::{Message, World};

impl Host {
    #[inline(always)]
    pub(super) fn on_data(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        match ctx.world.transport.options.reorder.holds() {
            false => self.take(ctx, packet),
            true => self.put_in_order(ctx, packet),
        }
    }

    /// The transport gets a data packet.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds packets by 65,535 bytes")]
    pub(super) fn take(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let key = FlowKey { src: packet.src, flow: ctx.world.numbering.flow(packet.flow) };
        let transport = &ctx.world.transport;
        let is_marked = packet.flags.is_marked();
        let (slot, active) = match self.receivers.place(key, ctx.world.watch.is_on) {
            Place::Active(slot, active) => (slot, active),
            Place::Done(late) => {
                self.reordering.get_or_insert_default().duplicates += 1;
                let reply = late.note(|seen, count| seen.on_duplicate(transport, count, is_marked));
                if let Reply::Ack(number) = reply {
                    self.answer(ctx, packet, PacketKind::Ack, number);
                }
                return;
            }
        };
        let receiver = &mut active.receiver;
        let before = (receiver.seen.delivered, receiver.resequencing());
        let Answer { earlier, reply, notify } = receiver.on_data(
            transport,
            Arrival {
                now: ctx.now,
                seq: packet.seq,
                payload: packet.size - transport.options.header.0 as u16,
                last: packet.flags.is_last(),
                marked: is_marked,
                path: packet.aux,
            },
        );
        let (finished, after) = (receiver.finished(), (receiver.seen.delivered, receiver.resequencing()));
        if ctx.now >= ctx.world.watch.load_until || active.meter.is_some() {
            active.measure(&ctx.world.watch, (key, ctx.id), ctx.now, before, packet);
        }
        if after.1 != before.1 {
            self.reordering.get_or_insert_default().note_waiting(before.1, after.1, ctx.now);
        }
        if after.0 == before.0 {
            self.note_useless(ctx.world, slot, packet, reply);
        }
        if let Some(count) = finished {
            self.complete(ctx, slot, key, count);
        }
        if notify {
            self.answer(ctx, packet, PacketKind::Cnp, packet.seq);
        }
        if transport.options.ack_every > 1 {
            self.settle_held(ctx, slot, earlier, packet, reply);
        }
        self.reply(ctx, packet, reply);
        if finished.is_none() && transport.pulls() {
            let missing = self.receivers.active(slot).receiver.missing();
            self.ask_for_more(ctx, slot, packet, missing);
        }
    }

    /// A packet brought nothing new.
    #[cold]
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds packets by 65,535 bytes")]
    fn note_useless(&mut self, world: &World, slot: u32, packet: &Packet, reply: Reply) {
        // A SYN brings no payload.
        if packet.size <= world.transport.options.header.0 as u16 {
            return;
        }
        let expected = self.receivers.active(slot).receiver.expected();
        // A go-back-N receiver discards what comes early, another one says so.
        let discards =
            matches!(world.transport.reliability, Reliability::GoBackN(_)) || matches!(reply, Reply::Nack(_));
        let Reordering { refused, duplicates, .. } = &mut **self.reordering.get_or_insert_default();
        *if packet.seq > expected && discards { refused } else { duplicates } += 1;
    }

    /// All of a flow has arrived, so many packets.
    #[inline(never)]
    fn complete(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32, key: FlowKey, count: u32) {
        if let Some(mut meter) = self.receivers.finish(slot, count) {
            meter.finish(&ctx.world.watch, ctx.now, 0, (key, ctx.id));
        }
        self.receivers.hand_in_many(&ctx.world.watch.received);
        self.stop_asking(ctx.world, slot);
        if key.flow < FIRST_OWN && self.work.is_program() {
            self.follow_program(ctx, |work, now, actions| {
                work.on_received(now, key.src, key.flow, actions);
            });
        }
        if ctx.world.is_driven || ctx.world.servers.is_some() {
            self.rare.get_or_insert_default().heard.push(Heard::Received(key));
        }
    }

    /// Says what a receiver has to say to a packet.
    #[inline(always)]
    pub(super) fn reply(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        reply: Reply,
    ) {
        let (kind, number) = match reply {
            Reply::None => return,
            Reply::Ack(number) => (PacketKind::Ack, number),
            Reply::Nack(number) => {
                self.reordering.get_or_insert_default().nacks += 1;
                (PacketKind::Nack, number)
            }
        };
        self.answer_at_once(ctx, packet, kind, number);
    }

    /// Sends an ACK, NACK or notification in answer to a data packet; where that is not the common answer to one that has just come.
    #[inline(never)]
    pub(super) fn answer(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        kind: PacketKind,
        number: u32,
    ) {
        self.answer_at_once(ctx, packet, kind, number);
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds ACKs by 65,535 bytes")]
    fn answer_at_once(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        kind: PacketKind,
        number: u32,
    ) {
        let mut answer = Packet {
            src: ctx.id,
            dst: packet.src,
            aux: number,
            size: ctx.world.transport.options.ack_size.0 as u16,
            kind,
            ingress: NO_INGRESS,
            trail: packet.trail.fresh(),
            ..*packet
        };
        self.control_sent += 1;
        self.nic.enqueue(NIC, &mut answer, ctx.now, &ctx.world.rules, &mut self.random, &mut ctx.wire());
    }

    /// A receiver that spares ACKs has got a packet: what waited for its ACK may have to have it first, and the packet may be the one that
    /// waits now, but not for ever.
    #[inline(never)]
    fn settle_held(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
        earlier: Option<u32>,
        packet: &Packet,
        reply: Reply,
    ) {
        let rare = self.rare.get_or_insert_default();
        let known = rare.held.get_mut(&slot);
        let waiting = known.and_then(|held| held.packet.take());
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
            let held = rare.held.entry(slot).or_default();
            held.packet = Some((last, due));
            if held.timer.is_none() {
                held.timer = Some(due);
                ctx.timer(due, Message::AckDelay { receiver: slot });
            }
        }
        if let (Some(number), Some((before, _))) = (earlier, waiting) {
            self.answer(ctx, &before, PacketKind::Ack, number);
        }
    }

    /// A packet may have waited for its ACK long enough.
    pub(super) fn on_ack_delay(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) {
        let Some(rare) = &mut self.rare else { return };
        let Some(held) = rare.held.get_mut(&slot).filter(|held| held.timer == Some(ctx.now)) else { return };
        match held.packet {
            // The one for which the timer was set has been acknowledged; another waits.
            Some((_, due)) if due > ctx.now => {
                held.timer = Some(due);
                ctx.timer(due, Message::AckDelay { receiver: slot });
            }
            Some((packet, _)) => {
                rare.held.remove(&slot);
                if let Some(number) = self.receivers.active(slot).receiver.on_ack_delay() {
                    self.answer(ctx, &packet, PacketKind::Ack, number);
                }
            }
            None => {
                rare.held.remove(&slot);
            }
        }
    }
}
