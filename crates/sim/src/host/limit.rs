//! QCN's reaction points at a host: a rate limiter per destination of which congestion was notified.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_transport::{Congestion, ReactionPoint};
use netloom_units::Time;

use super::{Host, Limiter, flow_in};
use crate::model::{Message, World};

impl Host {
    /// A packet to a destination leaves: its limiter pays for it, and goes once it limits nothing.
    #[inline(never)]
    pub(super) fn charge_limiter(&mut self, world: &World, dst: u32, now: Time, bytes: u64) {
        let Congestion::Qcn(config) = &world.transport.congestion else { return };
        let rare = self.rare.as_mut();
        let Some(limiter) = rare.and_then(|rare| rare.limiters.get_mut(&dst)) else { return };
        limiter.point.on_sent(config, now, bytes, &mut self.random);
        self.drop_limiter_if_released(world, dst);
    }

    pub(super) fn drop_limiter_if_released(&mut self, world: &World, dst: u32) {
        let Some(rare) = &mut self.rare else { return };
        let Some(limiter) = rare.limiters.get(&dst) else { return };
        // Whether something waits matters only to a limiter that is back at the line's rate.
        let backlog = || {
            self.flows.iter().flatten().any(|flow| {
                flow.dst == dst && flow.ready(world, self.decider.as_deref(), self.stopped).is_some()
            })
        };
        if limiter.point.is_released(false) && !backlog() {
            rare.limiters.remove(&dst);
        }
    }

    /// A congestion notification about packets to [`Packet::src`] arrived.
    pub(super) fn on_notification(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        self.control_received += 1;
        if let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) {
            flow.cnms += 1;
        }
        let Congestion::Qcn(config) = &world.transport.congestion else { return };
        let dst = packet.src;
        let line = world.network.host_rate(id);
        let limiter = self
            .rare
            .get_or_insert_default()
            .limiters
            .entry(dst)
            .or_insert_with(|| Limiter { point: ReactionPoint::new(config, line), timer: None });
        limiter.point.on_cnm(config, now, packet.aux as u8, &mut self.random);
        if limiter.timer.is_none() {
            limiter.timer = limiter.point.timer_due();
            if let Some(due) = limiter.timer {
                out.timer(due, Message::Limiter { dst });
            }
        }
    }

    pub(super) fn on_limiter_timer(
        &mut self,
        world: &World,
        now: Time,
        dst: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        let Congestion::Qcn(config) = &world.transport.congestion else { return };
        let limiter = self.rare.as_mut().and_then(|rare| rare.limiters.get_mut(&dst));
        let Some(limiter) = limiter.filter(|limiter| limiter.timer == Some(now)) else { return };
        limiter.timer = limiter.point.on_timer(config, now, &mut self.random);
        if let Some(due) = limiter.timer {
            out.timer(due, Message::Limiter { dst });
        }
        self.drop_limiter_if_released(world, dst);
    }
}
