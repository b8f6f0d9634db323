//! Packets that lost their payload in a full queue or at a cut link: their headers reach the receiver, or come back to the sender.

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, PacketKind};
use netloom_routing::FlowKey;
use netloom_transport::Reply;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::{echo, flow_in};
use crate::host::receivers::Place;
use crate::message::Message;
use crate::protocol::at_hosts::{self, HostProtocol};
use crate::protocol::at_switches::SwitchProtocol;
use crate::protocol::packets::CNP;
use crate::protocol::trimming::Trimming;
use crate::protocol::uet::host::report;
use crate::world::TakesData;

impl HostProtocol for Trimming {}

impl SwitchProtocol for Trimming {}

impl Host {
    /// A header arrived instead of a packet.
    #[inline(never)]
    pub(crate) fn on_header(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let key = FlowKey { src: packet.src, flow: ctx.world.numbering.flow(packet.flow) };
        let mut sack = None;
        let has_sacks = matches!(ctx.world.takes, TakesData::ToSack(_));
        let (reply, notify, wants) = match self.receivers.place(key, ctx.world.recorder.is_on) {
            Place::Active(slot, active) => {
                let receiver = &mut active.receiver;
                let reply =
                    receiver.on_header(&ctx.world.transport, ctx.now, packet.seq, packet.flags.is_last());
                let notify = receiver.notifies_by_nack(&ctx.world.transport, ctx.now, reply);
                sack = (has_sacks && matches!(reply, Reply::Ack(_))).then(|| report(receiver, packet));
                (reply, notify, Some(slot))
            }
            Place::Done(late) => (late.note(|seen, count| seen.on_late_header(count)), false, None),
        };
        if notify {
            self.answer(ctx, packet, CNP, packet.seq);
        }
        match (sack, reply) {
            (Some(sack), _) => self.send_report(ctx, packet, sack),
            (None, Reply::Ack(count)) if has_sacks => self.send_last_sack(ctx, packet, count),
            _ => self.reply(ctx, packet, reply),
        }
        if let Some(slot) = wants {
            at_hosts::on_arrival(self, ctx, packet, slot);
        }
    }

    /// The header of a packet that was sent here has come back.
    #[inline(never)]
    pub(crate) fn on_returned(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else {
            // What it says has been repaired without it. It still is one of the flow's packets.
            let number = ctx.world.numbering.flow(packet.flow);
            match self.sent.iter_mut().rev().find(|sent| sent.flow == number) {
                Some(sent) => sent.note_return(),
                None => *self.rare.get_or_insert_default().late_returns.entry(number).or_default() += 1,
            }
            return;
        };
        if ctx.world.numbering.has_subflows() {
            return self.on_answer_to_subflow(ctx, packet);
        }
        let header = ctx.world.says.echoed(echo(ctx.now, packet, flow.sender.oldest()));
        if packet.kind == PacketKind::Unreachable {
            let feedback = flow.sender.on_unreachable(&ctx.world.transport, header);
            self.leave_path(ctx.world, ctx.id, packet.slot, &feedback);
        } else {
            let feedback = flow.sender.on_returned(&ctx.world.transport, header);
            self.on_feedback(ctx, packet.slot, &feedback);
        }
        self.go_on(ctx, packet.slot);
    }
}
