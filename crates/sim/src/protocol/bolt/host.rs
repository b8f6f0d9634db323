//! Bolt at hosts: a flow learns of the queue that one of its packets has met.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_transport::SourceNotice;
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::message::Message;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::bolt::Bolt;
use crate::protocol::packets::SOURCE_NOTICE;

impl HostProtocol for Bolt {
    fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flow) = flow_in(&mut host.flows, packet.slot, packet.flow) else { return };
        flow.cnms += 1;
        let drain = Time::from_ns(u64::from(packet.number_of(&[SOURCE_NOTICE])));
        let notice = SourceNotice { sent: packet.sent, drain };
        if let Some(feedback) = flow.sender.on_source_notice(&ctx.world.transport, ctx.now, notice) {
            host.on_feedback(ctx, packet.slot, &feedback);
        }
        host.go_on(ctx, packet.slot);
    }
}
