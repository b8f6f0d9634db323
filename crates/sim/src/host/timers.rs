//! The timers of a host.

use netloom_engine::Scheduler;
use netloom_fabric::At;
use netloom_routing::FlowKey;
use netloom_units::Time;
use netloom_workload::Message as Job;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::message::Message;
use crate::protocol::at_hosts;
use crate::protocol::packets::ACK;
use crate::world::World;

impl Host {
    /// A timer fires.
    #[inline(never)]
    pub(crate) fn on_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, timer: &Message) {
        self.paces.forget_by_timer(timer);
        match timer {
            Message::Interrupt => self.on_interrupt(ctx),
            Message::Start => self.start_flows(ctx),
            Message::Order { dst, bytes, ticket, class } => {
                let job = Job { class: *class, ..Job::new(*dst, *bytes, ctx.now) };
                self.follow_order(ctx, job, *ticket);
            }
            Message::FlowTimer { slot, flow } => self.on_flow_timer(ctx, *slot, *flow),
            Message::AckDelay { receiver } => self.on_ack_delay(ctx, *receiver),
            Message::Answer { is_cnp } => self.on_processed(ctx, *is_cnp),
            Message::PauseLimit { slot, flow } => self.on_pause_limit(ctx.world, ctx.now, *slot, *flow),
            Message::Reorder { src, flow } => {
                let key = FlowKey { src: *src, flow: *flow };
                self.on_reorder_timer(ctx, key);
            }
            Message::Protocol(timer) => at_hosts::on_timer(self, ctx, *timer),
            Message::Link { port, is_cut } => self.on_link(ctx, *port, *is_cut),
            Message::Grant(credit) => self.nic.on_credit(*credit, ctx.now, &ctx.world.rules, &mut ctx.wire()),
            other => self.take_part(ctx, other),
        }
    }

    pub(crate) fn on_flow_timer(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
        number: u32,
    ) {
        let flow = flow_in(&mut self.flows, slot, number).filter(|flow| flow.timer == ctx.now);
        let Some(flow) = flow else { return };
        flow.timer = Time::MAX;
        let feedback = flow.sender.on_timer(&ctx.world.transport, ctx.now);
        let probe = flow.sender.take_probe();
        if flow.sender.take_request() {
            self.add_requests(slot, number, 1, ctx.now);
        }
        if let Some(probe) = probe {
            self.send_probe(ctx, slot, probe);
        }
        if let Some(feedback) = feedback {
            if ctx.world.numbering.has_subflows() {
                self.on_subflow_timer(ctx.world, number, &feedback);
            }
            self.on_feedback(ctx, slot, &feedback);
        }
        self.go_on(ctx, slot);
    }

    pub(crate) fn on_pause_limit(&mut self, world: &World, now: Time, slot: u32, number: u32) {
        let Some(flow) = flow_in(&mut self.flows, slot, number) else { return };
        if let Some(path_selector) = &mut self.path_selector {
            path_selector.on_deadline(flow.at, now);
        }
        self.enqueue_if_ready(world, slot);
    }

    /// The link of the NIC is cut, or repaired.
    #[cold]
    pub(crate) fn on_link(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, port: u16, is_cut: bool) {
        let Ctx { world, now, .. } = *ctx;
        let wire = &mut ctx.wire();
        match is_cut {
            // What a host has held back has left the NIC's input.
            true => {
                let at = At::new(now, &world.rules, wire);
                self.nic.cut_link(port, std::iter::empty(), |_| false, at);
            }
            false => self.nic.restore_link(port, now, &world.rules, wire),
        }
    }

    /// A packet may have waited for its ACK long enough.
    pub(crate) fn on_ack_delay(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) {
        let Some(rare) = &mut self.rare else { return };
        let Some(delayed_acks) =
            rare.delayed_acks.get_mut(&slot).filter(|delayed_acks| delayed_acks.timer == Some(ctx.now))
        else {
            return;
        };
        match delayed_acks.packet {
            // The one for which the timer was set has been acknowledged; another waits.
            Some((_, due)) if due > ctx.now => {
                delayed_acks.timer = Some(due);
                ctx.timer(due, Message::AckDelay { receiver: slot });
            }
            Some((packet, _)) => {
                rare.delayed_acks.remove(&slot);
                if let Some(number) = self.receivers.active(slot).receiver.on_ack_delay() {
                    self.answer(ctx, &packet, ACK, number);
                }
            }
            None => {
                rare.delayed_acks.remove(&slot);
            }
        }
    }
}
