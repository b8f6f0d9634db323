//! ACKs with bitmaps at hosts.

use netloom_engine::Scheduler;
use netloom_fabric::{Flags, NO_INGRESS, Packet, PacketKind};
use netloom_routing::FlowKey;
use netloom_transport::{Ack, Feedback, Receiver, Sack, sack_first};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::host::receivers::Place;
use crate::message::Message;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::SwitchProtocol;
use crate::protocol::declaration::answer_to;
use crate::protocol::packets::{PROBE, PROBE_ANSWER, UET_ACK};
use crate::protocol::uet::Uet;
use crate::protocol::uet::wire::{self, Report, is_direct};

impl HostProtocol for Uet {
    fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        match packet.kind {
            PROBE => host.on_probe(ctx, packet),
            PROBE_ANSWER => host.on_probe_answer(ctx, packet),
            _ => host.on_uet_ack(ctx, packet),
        }
    }
}

impl SwitchProtocol for Uet {}

/// What an ACK says that a packet causes.
pub(crate) fn report(receiver: &Receiver, packet: &Packet) -> Report {
    let (expected, sack) = receiver.sack(packet.seq, is_direct(packet), packet.flags.is_repeat());
    Report { expected, sack }
}

impl Host {
    /// Answers a packet of a flow of which everything has arrived, `count` packets.
    pub(crate) fn send_last_sack(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        count: u32,
    ) {
        let first = sack_first(packet.seq, count, is_direct(packet));
        let sack = Sack { received: count, first, bits: 0, is_repeat: packet.flags.is_repeat() };
        self.send_report(ctx, packet, Report { expected: count, sack });
    }

    /// Sends a probe of a flow, on a path of its own where packets have one.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds ACKs by 65,535 bytes")]
    pub(crate) fn send_probe(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32, number: u32) {
        let Host { flows, path_selector, random, .. } = self;
        let Some(flow) = &mut flows[slot as usize] else { return };
        let tag = match flow.settled {
            Some(tag) => tag.bits(),
            None => flow.choose_path(ctx.world, path_selector, random, 0, ctx.now),
        };
        let mut flags = Flags::new(flow.class, false);
        flags.set_asks_for_ack(true);
        let mut probe = Packet {
            sent: ctx.now,
            src: ctx.id,
            dst: flow.dst,
            flow: flow.at.key.flow,
            slot,
            seq: flow.sender.oldest(),
            serialisation: number,
            tag,
            size: ctx.world.transport.options.ack_size.0 as u16,
            kind: PROBE,
            flags,
            ingress: NO_INGRESS,
            ..Packet::EMPTY
        };
        self.send_control(ctx, &mut probe);
    }

    /// A probe arrived: its answer says what an ACK does.
    fn on_probe(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let key = FlowKey { src: packet.src, flow: packet.flow };
        let report = match self.receivers.place(key, ctx.world.recorder.is_on) {
            Place::Active(_, active) => report(&active.receiver, packet),
            Place::Done(late) => {
                let expected = late.note(|_, count| count);
                let first = sack_first(packet.seq, expected, is_direct(packet));
                Report { expected, sack: Sack { received: expected, first, bits: 0, is_repeat: false } }
            }
        };
        self.send_report_as(ctx, packet, PROBE_ANSWER, report);
    }

    /// The answer to a probe arrived.
    fn on_probe_answer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        let (ack, sack) = wire::read(ctx.now, packet);
        let ack = Ack { serialisation: Time::ZERO, ..ack };
        let feedback = flow.sender.on_probe_answer(&ctx.world.transport, ack, sack, packet.serialisation);
        let is_done = flow.sender.is_done();
        self.learn_from(ctx, packet.slot, &feedback, is_done);
    }

    /// Sends an ACK.
    pub(crate) fn send_report(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        report: Report,
    ) {
        self.send_report_as(ctx, packet, UET_ACK, report);
    }

    fn send_report_as(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        kind: PacketKind,
        report: Report,
    ) {
        let size = ctx.world.transport.options.ack_size;
        let mut answer = answer_to(packet, kind, size, ctx.id);
        wire::write(&mut answer, report);
        self.send_answer(ctx, &mut answer);
    }

    /// An ACK with a bitmap arrived.
    fn on_uet_ack(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        let (ack, sack) = wire::read(ctx.now, packet);
        let ack = ctx.world.says.echoed(ack);
        if ctx.world.telemetry.is_some()
            && let Some(sent) = flow.sender.departure_of(packet.seq, sack.is_repeat)
        {
            // Telemetry lies by the time at which its packet left, which such an ACK does not say.
            flow.read_telemetry(ctx.world, &Packet { sent, ..*packet });
        }
        let feedback = flow.sender.on_sack(&ctx.world.transport, ack, sack);
        let is_done = flow.sender.is_done();
        self.learn_from(ctx, packet.slot, &feedback, is_done);
    }

    fn learn_from(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
        feedback: &Feedback,
        is_done: bool,
    ) {
        self.on_feedback(ctx, slot, feedback);
        if is_done {
            self.finish(ctx, slot);
        } else {
            self.ask_for_credit(ctx.world, slot, ctx.now);
            self.go_on(ctx, slot);
        }
    }
}
