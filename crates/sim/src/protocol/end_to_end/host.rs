//! Answers to data, other than ACKs, at the host that sent these.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::message::Message;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::SwitchProtocol;
use crate::protocol::end_to_end::EndToEnd;
use crate::protocol::packets::{CNP, NACK};

impl HostProtocol for EndToEnd {
    fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        match packet.kind {
            NACK => host.on_nack(ctx, packet),
            CNP => host.on_cnp(ctx, packet),
            kind => unreachable!("{kind:?}: `Host::take_in` takes ACKs itself"),
        }
    }
}

impl SwitchProtocol for EndToEnd {}
