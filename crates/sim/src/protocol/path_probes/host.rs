//! Probes of paths at hosts. A probe is of the class of its flow and has the entropy value of its path, so that it waits where data of the flow would wait there; its answer takes the way of the ACKs of such data.

use netloom_engine::Scheduler;
use netloom_fabric::{Flags, NO_INGRESS, Packet};
use netloom_routing::Tag;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::message::Message;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::SwitchProtocol;
use crate::protocol::declaration::answer_to;
use crate::protocol::packets::{PATH_PROBE, PATH_PROBE_ANSWER};
use crate::protocol::path_probes::PathProbes;

impl HostProtocol for PathProbes {
    fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if packet.kind == PATH_PROBE {
            let size = ctx.world.transport.options.ack_size;
            let mut answer = answer_to(packet, PATH_PROBE_ANSWER, size, ctx.id);
            host.send_control(ctx, &mut answer);
        } else {
            host.on_path_probe_answer(ctx, packet);
        }
    }
}

impl SwitchProtocol for PathProbes {}

impl Host {
    /// Sends the probes of a flow for which the NIC's path selector names paths.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds ACKs by 65,535 bytes")]
    pub(crate) fn send_path_probes(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) {
        loop {
            let Host { flows, path_selector, random, .. } = self;
            let Some((flow, path_selector)) = flows[slot as usize].as_ref().zip(path_selector.as_mut())
            else {
                return;
            };
            let tags = || ctx.world.routes(ctx.now).tags(ctx.id, flow.dst);
            let Some(path) = path_selector.probe(flow.at, ctx.now, tags, random) else { return };
            let mut probe = Packet {
                sent: ctx.now,
                src: ctx.id,
                dst: flow.dst,
                flow: flow.at.key.flow,
                slot,
                tag: path.bits(),
                size: ctx.world.transport.options.ack_size.0 as u16,
                kind: PATH_PROBE,
                flags: Flags::new(flow.class, false),
                ingress: NO_INGRESS,
                ..Packet::EMPTY
            };
            self.send_control(ctx, &mut probe);
        }
    }

    /// The answer to a probe arrived.
    fn on_path_probe_answer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Host { flows, path_selector, .. } = self;
        let flow = flow_in(flows, packet.slot, packet.flow);
        let Some((flow, path_selector)) = flow.zip(path_selector.as_mut()) else { return };
        let probe = (Tag::from_bits(packet.tag), packet.sent);
        let (advice, settled) = path_selector.on_probe_answer(flow.at, probe, ctx.now, flow.sender.oldest());
        flow.settled = settled.filter(|_| !flow.sender.knows_paths());
        self.follow_advice(ctx, packet.slot, advice);
    }
}
