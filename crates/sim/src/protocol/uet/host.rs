//! ACKs with bitmaps at hosts.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_transport::{Receiver, Sack, sack_first};

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::message::Message;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::SwitchProtocol;
use crate::protocol::declaration::answer_to;
use crate::protocol::packets::UET_ACK;
use crate::protocol::uet::Uet;
use crate::protocol::uet::wire::{self, Report, is_direct};

impl HostProtocol for Uet {
    fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        host.on_uet_ack(ctx, packet);
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

    /// Sends an ACK.
    pub(crate) fn send_report(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        report: Report,
    ) {
        let size = ctx.world.transport.options.ack_size;
        let mut answer = answer_to(packet, UET_ACK, size, ctx.id);
        wire::write(&mut answer, report);
        self.send_control(ctx, &mut answer);
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
        self.on_feedback(ctx, packet.slot, &feedback);
        if is_done {
            self.finish(ctx, packet.slot);
        } else {
            self.go_on(ctx, packet.slot);
        }
    }
}
