//! Answers to data at the host that sent these.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::message::Message;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::SwitchProtocol;
use crate::protocol::end_to_end::EndToEnd;
use crate::protocol::packets::{ACK, NACK};

impl HostProtocol for EndToEnd {
    fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        match packet.kind {
            ACK => host.on_ack(ctx, packet),
            NACK => host.on_nack(ctx, packet),
            _ => host.on_cnp(ctx, packet),
        }
    }
}

impl SwitchProtocol for EndToEnd {}
