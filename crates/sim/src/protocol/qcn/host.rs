//! QCN's reaction points at a host: a rate limiter per destination of which congestion was notified.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_transport::ReactionPoint;
use netloom_transport::congestion::qcn::Qcn as Config;
use netloom_units::random::Stream;
use netloom_units::{Rate, Time};

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::message::Message;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::packets::CNM;
use crate::protocol::qcn::Qcn;
use crate::protocol::qcn::limiter::{Limiter, LimiterDue};
use crate::world::World;

impl HostProtocol for Qcn {
    fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        host.on_notification(ctx, packet);
    }

    fn on_timer(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, timer: LimiterDue) {
        host.on_limiter_timer(ctx, timer.dst);
    }

    #[inline(always)]
    fn on_work(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, dst: u32) {
        if host.protocols.qcn.0.is_some() {
            host.rouse_limiter(ctx, dst);
        }
    }

    #[inline(always)]
    fn on_sent(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if host.protocols.qcn.0.is_some() {
            host.charge_limiter(ctx.world, packet.dst, ctx.now, u64::from(packet.size));
        }
    }
}

impl Host {
    /// Whether a flow to a destination has anything to do. If none has, the destination's limiter sets no timer: what it does has no effect before
    /// the next flow begins, and [it takes its steps then](Self::rouse_limiter).
    pub(crate) fn has_work_for(&self, dst: u32) -> bool {
        self.flows.iter().flatten().any(|flow| flow.dst == dst && !flow.sender.is_idle())
    }

    /// Lets the limiter of a destination take a step, if there is one. If it did, as `step` says, it goes once it limits nothing.
    fn step_limiter(
        &mut self,
        world: &World,
        dst: u32,
        step: impl FnOnce(&mut Limiter, &Config, &mut Stream) -> bool,
    ) {
        let Some(config) = world.transport.congestion.facts().reaction_point else { return };
        let Host { protocols, random, .. } = self;
        let limiter = protocols.qcn.0.as_mut().and_then(|limiters| limiters.get_mut(&dst));
        if limiter.is_some_and(|limiter| step(limiter, config, random)) {
            self.drop_limiter_if_released(world, dst);
        }
    }

    /// A flow to a destination begins, or has something to send again: the limiter whose timer has not been set since the last one comes to `now`.
    #[cold]
    #[inline(never)]
    pub(crate) fn rouse_limiter(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, dst: u32) {
        self.step_limiter(ctx.world, dst, |limiter, config, random| {
            let is_idle = limiter.timer.is_none();
            if is_idle {
                limiter.come_to(config, ctx.now, random);
                limiter.arm(dst, ctx.out);
            }
            is_idle
        });
    }

    /// A packet to a destination leaves: its limiter pays for it.
    #[inline(never)]
    pub(crate) fn charge_limiter(&mut self, world: &World, dst: u32, now: Time, bytes: u64) {
        self.step_limiter(world, dst, |limiter, config, random| {
            limiter.point.on_sent(config, now, bytes, random);
            true
        });
    }

    fn drop_limiter_if_released(&mut self, world: &World, dst: u32) {
        let Some(limiters) = &mut self.protocols.qcn.0 else { return };
        let Some(limiter) = limiters.get(&dst) else { return };
        // Whether something waits matters only to a limiter that is back at the line's rate.
        let backlog = || {
            self.flows.iter().flatten().any(|flow| {
                flow.dst == dst
                    && flow.ready(world, self.path_selector.as_deref(), self.paused_classes).is_some()
            })
        };
        if limiter.point.is_released(false) && !backlog() {
            limiters.remove(&dst);
        }
    }

    /// A congestion notification about packets to [`Packet::src`] arrived.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a severity of 6 bits: Switch::notify writes it from a byte"
    )]
    pub(crate) fn on_notification(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) {
            flow.cnms += 1;
        }
        let Some(config) = ctx.world.transport.congestion.facts().reaction_point else { return };
        let dst = packet.src;
        let of_port = ctx.world.network.host_rate(ctx.id);
        let line_rate = Rate(of_port.0.saturating_mul(ctx.world.ports_in_use(ctx.id)));
        let known = self.protocols.qcn.0.as_ref().and_then(|limiters| limiters.get(&dst));
        let is_set = known.is_some_and(|limiter| limiter.timer.is_some());
        let sets_timer = !is_set && self.has_work_for(dst);
        let limiters = self.protocols.qcn.0.get_or_insert_default();
        let new = || Limiter { point: ReactionPoint::new(config, line_rate), timer: None };
        let limiter = limiters.entry(dst).or_insert_with(new);
        if !is_set {
            limiter.come_to(config, ctx.now, &mut self.random);
        }
        limiter.point.on_cnm(config, ctx.now, packet.number_of(&[CNM]) as u8, &mut self.random);
        if sets_timer {
            limiter.arm(dst, ctx.out);
        }
    }

    /// The timer of a destination's limiter fires.
    pub(crate) fn on_limiter_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, dst: u32) {
        let has_work = self.has_work_for(dst);
        self.step_limiter(ctx.world, dst, |limiter, config, random| {
            if limiter.timer != Some(ctx.now) {
                return false;
            }
            limiter.timer = None;
            if has_work {
                limiter.point.on_timer(config, ctx.now, random);
                limiter.arm(dst, ctx.out);
            }
            has_work
        });
    }
}
