//! The receiving side of a host: takes data, answers it, measures it.

use netloom_engine::Scheduler;
use netloom_fabric::{FRESH, Moment, NO_INGRESS, Packet, PacketKind};
use netloom_routing::FlowKey;
use netloom_transport::{Arrival, Receiver, Reply};
use netloom_units::Time;

use super::{FIRST_OWN, Host, NIC};
use crate::driven::Heard;
use crate::meter::Meter;
use crate::model::{Channels, Message, World};

impl Host {
    pub(super) fn on_data(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let key = FlowKey { src: packet.src, flow: packet.flow };
        let is_metered = world.watch.is_on;
        let receiver = self.receiver(key, is_metered);
        let was_complete = receiver.completed.is_some();
        let before = if is_metered { (receiver.delivered, receiver.resequencing()) } else { (0, 0) };
        let reply = receiver.on_data(
            &world.transport,
            Arrival {
                now,
                seq: packet.seq,
                payload: packet.size - world.transport.options.header.0 as u16,
                last: packet.flags.is_last(),
                marked: packet.flags.is_marked(),
                path: packet.aux,
            },
        );
        let completes = receiver.completed.is_some() && !was_complete;
        if is_metered {
            let (delivered, waited) = before;
            let bytes = receiver.delivered - delivered;
            let meter = &mut self.meters[self.last_receiver as usize];
            meter.count(&world.watch, (key, id), now, bytes, waited);
        }
        if completes && key.flow < FIRST_OWN && self.work.is_program() {
            self.follow_program(world, id, now, |work, actions| {
                work.on_received(now, key.src, key.flow, actions);
            });
        }
        if completes && world.is_driven {
            self.rare.get_or_insert_default().heard.push(Heard::Received(key));
        }
        let (kind, number) = match reply {
            Reply::None => return self.delay_ack(world, now, packet, out),
            Reply::Ack(number) => (PacketKind::Ack, number),
            Reply::Nack(number) => (PacketKind::Nack, number),
        };
        if let Some(rare) = &mut self.rare {
            rare.unanswered.remove(&self.last_receiver);
        }
        self.answer(world, id, now, packet, kind, number, out);
    }

    /// Sends an ACK or NACK in answer to a data packet.
    #[expect(clippy::too_many_arguments, reason = "the parts of one packet")]
    pub(super) fn answer(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        kind: PacketKind,
        number: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        let mut answer = Packet {
            src: id,
            dst: packet.src,
            aux: number,
            size: world.transport.options.ack_size.0 as u16,
            kind,
            ingress: NO_INGRESS,
            vc: FRESH,
            ..*packet
        };
        self.control_sent += 1;
        // Data of this instant waits for the NIC to be asked, so nothing else is in the answer's way.
        let moment = Moment { at: now, is_over: out.is_last_of_instant() };
        self.nic.enqueue(NIC, &mut answer, moment, &world.rules, &mut self.random, &mut Channels(out));
    }

    /// The receiver spares an ACK: remember what to answer, but not for ever.
    pub(super) fn delay_ack(
        &mut self,
        world: &World,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let is_delayed = !self.receivers[self.last_receiver as usize].1.is_answered();
        if !is_delayed {
            return;
        }
        let rare = self.rare.get_or_insert_default();
        if rare.unanswered.insert(self.last_receiver, *packet).is_none() {
            let due = now + world.transport.options.ack_delay;
            out.timer(due, Message::AckDelay { receiver: self.last_receiver });
        }
    }

    pub(super) fn on_ack_delay(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        receiver: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        let rare = self.rare.as_mut();
        let Some(packet) = rare.and_then(|rare| rare.unanswered.remove(&receiver)) else { return };
        if let Some(number) = self.receivers[receiver as usize].1.on_ack_delay() {
            self.answer(world, id, now, &packet, PacketKind::Ack, number, out);
        }
    }

    pub(super) fn receiver(&mut self, key: FlowKey, is_metered: bool) -> &mut Receiver {
        // Packets of a flow come in runs, so the last receiver is nearly always the right one.
        let last = self.last_receiver as usize;
        if self.receivers.get(last).is_none_or(|(known, _)| *known != key) {
            let Host { receivers, meters, .. } = self;
            self.last_receiver = *self.receiver_of.entry(key).or_insert_with(|| {
                receivers.push((key, Receiver::default()));
                if is_metered {
                    meters.push(Meter::default());
                }
                receivers.len() as u32 - 1
            });
        }
        &mut self.receivers[self.last_receiver as usize].1
    }
}
