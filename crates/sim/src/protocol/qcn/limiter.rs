//! A rate limiter of one destination, a reaction point of QCN.

use netloom_engine::Scheduler;
use netloom_transport::ReactionPoint;
use netloom_transport::congestion::qcn::Qcn;
use netloom_units::Time;
use netloom_units::random::Stream;
use rustc_hash::FxHashMap;

use crate::message::Message;
use crate::protocol::Timer;
use crate::protocol::state::HostState;

/// The limiters of a host, by destination; absent until first needed.
#[derive(Debug, Default)]
pub(crate) struct Limiters(pub(crate) Option<Box<FxHashMap<u32, Limiter>>>);

impl HostState for Limiters {
    fn recurs(&self) -> bool {
        self.0.is_none()
    }

    #[inline(always)]
    fn gates(&self) -> bool {
        self.0.as_ref().is_some_and(|limiters| !limiters.is_empty())
    }

    #[inline(always)]
    fn ready_at(&self, dst: u32) -> Time {
        let limiter = self.0.as_ref().and_then(|limiters| limiters.get(&dst));
        limiter.map_or(Time::ZERO, |limiter| limiter.point.ready_at())
    }
}

/// The timer of a destination's limiter fires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimiterDue {
    pub(crate) dst: u32,
}

/// The limiter of one destination's rate.
#[derive(Debug)]
pub(crate) struct Limiter {
    pub(crate) point: ReactionPoint,
    /// When its timer fires; an older one means nothing.
    pub(crate) timer: Option<Time>,
}

impl Limiter {
    /// Its clock has not been running: takes the steps that were due by `now`.
    pub(crate) fn come_to(&mut self, config: &Qcn, now: Time, random: &mut Stream) {
        while let Some(due) = self.point.timer_due().filter(|&due| due <= now) {
            self.point.on_timer(config, due, random);
        }
    }

    /// Sets its timer to the end of the clock's cycle.
    pub(crate) fn arm(&mut self, dst: u32, out: &mut impl Scheduler<Message>) {
        self.timer = self.point.timer_due();
        if let Some(due) = self.timer {
            out.timer(due, Message::Protocol(Timer::Qcn(LimiterDue { dst })));
        }
    }
}
