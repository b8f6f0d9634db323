//! What comes back to a host about what it has sent, and who learns of it.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_routing::Advice;
use netloom_transport::{Ack, Feedback};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::{answer, flow_in};
use crate::message::Message;
use crate::world::World;

impl Host {
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        if flow.sender.learns() {
            return self.learn(&mut ctx.again(), packet);
        }
        self.paces.rest(Time::ZERO);
        let newly = flow.sender.note(&ctx.world.transport, &answer(ctx.now, packet));
        let is_done = flow.sender.is_done();
        if self.path_selector.as_ref().is_some_and(|path_selector| path_selector.listens()) {
            let feedback = flow.sender.feedback_of(&ctx.world.transport, answer(ctx.now, packet), newly);
            self.on_feedback(&mut ctx.again(), packet.slot, &feedback);
        }
        if is_done {
            self.finish(&mut ctx.again(), packet.slot);
        } else {
            self.enqueue_if_ready(ctx.world, packet.slot);
        }
    }

    /// An ACK arrived from which the flow's sender learns.
    #[inline(never)]
    pub(crate) fn learn(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if ctx.world.numbering.has_subflows() {
            self.paces.rest(Time::ZERO);
            return self.on_answer_to_subflow(ctx, packet);
        }
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        flow.read_telemetry(ctx.world, packet);
        let is_seen = self.meters.is_some()
            || self.path_selector.as_ref().is_some_and(|path_selector| path_selector.listens());
        if !is_seen && flow.sender.ignores_acks() {
            // Else what it waits for is what it waited for.
            if flow.sender.on_ack_unseen(&ctx.world.transport, answer(ctx.now, packet)) {
                self.paces.rest(Time::ZERO);
            }
            let is_done = flow.sender.is_done();
            return if is_done { self.finish(ctx, packet.slot) } else { self.go_on(ctx, packet.slot) };
        }
        self.paces.rest(Time::ZERO);
        let feedback = flow.sender.on_ack(&ctx.world.transport, answer(ctx.now, packet));
        let losses = flow.sender.find_losses(&ctx.world.transport, ctx.now);
        let is_done = flow.sender.is_done();
        self.on_feedback(ctx, packet.slot, &feedback);
        if let Some(losses) = losses {
            self.on_feedback(ctx, packet.slot, &losses);
        }
        if is_done {
            self.finish(ctx, packet.slot);
        } else {
            self.go_on(ctx, packet.slot);
        }
    }

    pub(crate) fn on_nack(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if ctx.world.numbering.has_subflows() {
            return self.on_answer_to_subflow(ctx, packet);
        }
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        let nack = ctx.world.says.echoed(answer(ctx.now, packet));
        let nack = Ack { at_last_hop: packet.flags.is_at_last_hop(), ..nack };
        let feedback = flow.sender.on_nack(&ctx.world.transport, nack);
        self.on_feedback(ctx, packet.slot, &feedback);
        self.go_on(ctx, packet.slot);
    }

    /// The receiver of a flow reports congestion.
    #[inline(never)]
    pub(crate) fn on_cnp(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        if let Some(feedback) = flow.sender.on_cnp(&ctx.world.transport, ctx.now) {
            self.on_feedback(ctx, packet.slot, &feedback);
        }
        self.go_on(ctx, packet.slot);
    }

    /// A flow may be able to send again, and its timer may have to fire earlier than it would.
    #[inline(always)]
    pub(crate) fn go_on(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) {
        if let Some(flow) = &mut self.flows[slot as usize] {
            flow.arm(ctx, slot);
        }
        self.enqueue_if_ready(ctx.world, slot);
    }

    /// What a flow's sender learnt goes to the NIC's part in routing.
    #[inline]
    pub(crate) fn on_feedback(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
        feedback: &Feedback,
    ) {
        self.meter(ctx.world, slot, feedback);
        let Some(path_selector) = self.path_selector.as_mut().filter(|path_selector| path_selector.listens())
        else {
            return;
        };
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        let tags = || ctx.world.routes(feedback.now).tags(ctx.id, flow.dst);
        let (advice, settled) = path_selector.on_feedback(flow.at, feedback, tags, &mut self.random);
        flow.settled = settled.filter(|_| !flow.sender.knows_paths());
        self.follow_advice(ctx, slot, advice);
    }

    /// Does what the path selector says of a flow.
    #[inline]
    pub(crate) fn follow_advice(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
        advice: Advice,
    ) {
        match advice {
            Advice::Continue => {}
            Advice::PauseUntil(limit) => {
                let Some(flow) = &self.flows[slot as usize] else { return };
                ctx.timer(limit, Message::PauseLimit { slot, flow: flow.at.key.flow });
            }
            Advice::Probe => self.send_path_probes(ctx, slot),
        }
    }

    /// Samples a sender that has learnt something.
    #[inline]
    pub(crate) fn meter(&mut self, world: &World, slot: u32, feedback: &Feedback) {
        let Some((meters, flow)) = self.meters.as_mut().zip(self.flows[slot as usize].as_ref()) else {
            return;
        };
        meters.count(world, (slot, flow), feedback);
    }

    /// Puts a flow that may send again into the send queue.
    #[inline(always)]
    pub(crate) fn enqueue_if_ready(&mut self, world: &World, slot: u32) {
        if let Some(flow) = &mut self.flows[slot as usize]
            && !flow.is_queued
            && flow.ready(world, self.path_selector.as_deref(), self.paused_classes).is_some()
        {
            flow.is_queued = true;
            self.paces.rest(Time::ZERO);
            self.send_queue.push(flow.queue, slot);
        }
    }
}
