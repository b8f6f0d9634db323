//! Flows that ask before they send: requests in the place of the first window, and the PULLs that they are worth.

use netloom_engine::Scheduler;
use netloom_fabric::{Flags, NO_INGRESS, Packet, PacketKind};
use netloom_routing::FlowKey;
use netloom_units::Time;

use super::receivers::Place;
use super::{Host, NIC, flow_in};
use crate::ctx::Ctx;
use crate::model::Message;

/// The requests that a host has to send, as flows begin where nothing can leave yet.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// By slot and number of the flow, how many, all at one instant.
    waiting: Vec<(u32, u32, u32)>,
    at: Time,
}

impl Requests {
    /// A flow begins that asks for `count` packets.
    pub(super) fn add(&mut self, slot: u32, flow: u32, count: u32, now: Time) {
        self.waiting.push((slot, flow, count));
        self.at = now;
    }

    /// When they leave, if there are any.
    pub(super) fn next(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.at)
    }
}

impl Host {
    /// Sends the requests that wait, each on a path of its own where packets have one.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds ACKs by 65,535 bytes")]
    pub(super) fn request(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Some(rare) = &mut self.rare else { return };
        for (slot, number, count) in std::mem::take(&mut rare.requests.waiting) {
            let Host { flows, decider, random, nic, control_sent, .. } = self;
            let Some(flow) = flow_in(flows, slot, number) else { continue };
            for _ in 0..count {
                let tag = match flow.settled {
                    Some(tag) => tag.bits(),
                    None => flow.choose_path(ctx.world, decider, random, 0, ctx.now),
                };
                let mut request = Packet {
                    sent: ctx.now,
                    src: ctx.id,
                    dst: flow.dst,
                    flow: number,
                    slot,
                    aux: tag,
                    tag,
                    size: ctx.world.transport.options.ack_size.0 as u16,
                    kind: PacketKind::Request,
                    flags: Flags::new(flow.class, false),
                    ingress: NO_INGRESS,
                    ..Packet::EMPTY
                };
                *control_sent += 1;
                nic.enqueue(NIC, &mut request, ctx.now, &ctx.world.rules, random, &mut ctx.wire());
            }
        }
    }

    /// A flow asks for a PULL.
    pub(super) fn on_request(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.control_received += 1;
        let key = FlowKey { src: packet.src, flow: packet.flow };
        if let Place::Active(slot, active) = self.receivers.place(key, ctx.world.watch.is_on) {
            let missing = active.receiver.missing();
            self.ask_for_more(ctx, slot, packet, missing);
        }
    }
}
