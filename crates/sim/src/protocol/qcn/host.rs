//! QCN's reaction points at a host: a rate limiter per destination of which congestion was notified.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_transport::{Congestion, ReactionPoint};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::message::Message;
use crate::protocol::qcn::limiter::Limiter;
use crate::world::World;

impl Host {
    /// Whether a flow to a destination has anything to do. If none has, the destination's limiter sets no timer: what it does has no effect before
    /// the next flow begins, and [it takes its steps then](Self::rouse_limiter).
    pub(crate) fn has_work_for(&self, dst: u32) -> bool {
        self.flows.iter().flatten().any(|flow| flow.dst == dst && !flow.sender.is_idle())
    }

    /// A flow to a destination begins, or has something to send again: the limiter whose timer has not been set since the last one comes to `now`.
    #[cold]
    #[inline(never)]
    pub(crate) fn rouse_limiter(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, dst: u32) {
        let Congestion::Qcn(config) = &ctx.world.transport.congestion else { return };
        let Host { rare, random, .. } = self;
        let limiter = rare.as_mut().and_then(|rare| rare.limiters.get_mut(&dst));
        let Some(limiter) = limiter.filter(|limiter| limiter.timer.is_none()) else { return };
        limiter.come_to(config, ctx.now, random);
        limiter.arm(dst, ctx.out);
        self.drop_limiter_if_released(ctx.world, dst);
    }

    /// A packet to a destination leaves: its limiter pays for it, and goes once it limits nothing.
    #[inline(never)]
    pub(crate) fn charge_limiter(&mut self, world: &World, dst: u32, now: Time, bytes: u64) {
        let Congestion::Qcn(config) = &world.transport.congestion else { return };
        let rare = self.rare.as_mut();
        let Some(limiter) = rare.and_then(|rare| rare.limiters.get_mut(&dst)) else { return };
        limiter.point.on_sent(config, now, bytes, &mut self.random);
        self.drop_limiter_if_released(world, dst);
    }

    pub(crate) fn drop_limiter_if_released(&mut self, world: &World, dst: u32) {
        let Some(rare) = &mut self.rare else { return };
        let Some(limiter) = rare.limiters.get(&dst) else { return };
        // Whether something waits matters only to a limiter that is back at the line's rate.
        let backlog = || {
            self.flows.iter().flatten().any(|flow| {
                flow.dst == dst && flow.ready(world, self.decider.as_deref(), self.paused_classes).is_some()
            })
        };
        if limiter.point.is_released(false) && !backlog() {
            rare.limiters.remove(&dst);
        }
    }

    /// A congestion notification about packets to [`Packet::src`] arrived.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a severity of 6 bits: Switch::notify writes it from a byte"
    )]
    pub(crate) fn on_notification(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.control_received += 1;
        if let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) {
            flow.cnms += 1;
        }
        let Congestion::Qcn(config) = &ctx.world.transport.congestion else { return };
        let dst = packet.src;
        let line = ctx.world.network.host_rate(ctx.id);
        let limiter = self
            .rare
            .get_or_insert_default()
            .limiters
            .entry(dst)
            .or_insert_with(|| Limiter { point: ReactionPoint::new(config, line), timer: None });
        let is_set = limiter.timer.is_some();
        if !is_set {
            limiter.come_to(config, ctx.now, &mut self.random);
        }
        limiter.point.on_cnm(config, ctx.now, packet.aux as u8, &mut self.random);
        if !is_set
            && self.has_work_for(dst)
            && let Some(limiter) = self.rare.as_mut().and_then(|rare| rare.limiters.get_mut(&dst))
        {
            limiter.arm(dst, ctx.out);
        }
    }

    pub(crate) fn on_limiter_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, dst: u32) {
        let Congestion::Qcn(config) = &ctx.world.transport.congestion else { return };
        let has_work = self.has_work_for(dst);
        let limiter = self.rare.as_mut().and_then(|rare| rare.limiters.get_mut(&dst));
        let Some(limiter) = limiter.filter(|limiter| limiter.timer == Some(ctx.now)) else { return };
        limiter.timer = None;
        if !has_work {
            return;
        }
        limiter.point.on_timer(config, ctx.now, &mut self.random);
        limiter.arm(dst, ctx.out);
        self.drop_limiter_if_released(ctx.world, dst);
    }
}
