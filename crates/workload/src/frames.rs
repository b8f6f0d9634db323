//! Frames injected at a load, whatever the network does.
//!
//! A host's link carries one frame per *slot*. A two-state Markov chain says which slots are taken: within a burst every
//! slot, between bursts none; both lengths are geometric. Nothing is drawn for a slot that stays empty: an idle time
//! is one draw. Bursts of one frame make every slot an independent Bernoulli trial.

use std::borrow::Cow;

use netloom_topology::HostId;
use netloom_units::{Bytes, Time};

use crate::closed::Partners;
use crate::plan::{HostWork, PlanContext, Setting};
use crate::random::{RngExt, Stream, Work};
use crate::{Message, WorkloadError};

/// How frames are injected at a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Injection {
    /// Share of the slots that are taken, above 0 and at most 1.
    pub(crate) load: f64,
    /// Mean number of frames in a burst, at least 1.
    pub(crate) mean_burst: f64,
    pub(crate) frame: Bytes,
    pub(crate) overhead: Bytes,
    pub(crate) from: Time,
    pub(crate) until: Time,
}

impl Injection {
    /// Refuses what is no injection; `load` is what the user calls the load.
    pub(crate) fn check(
        &self,
        load: impl Into<Cow<'static, str>>,
        context: &PlanContext,
    ) -> Result<(), WorkloadError> {
        if !(self.load > 0.0 && self.load <= 1.0) {
            return Err(WorkloadError::parameter(load, "a number above 0, at most 1", self.load));
        }
        if !(self.mean_burst >= 1.0 && self.mean_burst.is_finite()) {
            return Err(WorkloadError::parameter("mean_burst", "a number of at least 1", self.mean_burst));
        }
        if self.frame == Bytes(0) {
            return Err(WorkloadError::parameter("frame", "at least one byte", 0));
        }
        context
            .check_message(self.frame)
            .map_err(|expected| WorkloadError::parameter("frame", expected, self.frame))?;
        if self.from >= self.until {
            let expected = format!("a time after `from`, {}", self.from);
            return Err(WorkloadError::parameter("until", expected, self.until));
        }
        Ok(())
    }

    /// The frames of one host. Several injections at one host differ by `index`; their slots begin together.
    pub(crate) fn at(&self, setting: &Setting, host: HostId, index: u32, partners: Partners) -> HostWork {
        let seed = setting.context.seed;
        let slot =
            setting.endpoints.rate(host).serialize(Bytes(self.frame.0.saturating_add(self.overhead.0)));
        let phase = Work::Phase.stream(seed, host).random_range(0..slot.0);
        let begin = self.from.0.saturating_add(setting.first_start(host).0);
        let first = phase.saturating_add(begin.saturating_sub(phase).div_ceil(slot.0).saturating_mul(slot.0));
        let mean_idle = self.mean_burst * (1.0 - self.load) / self.load;
        let mut frames = Frames {
            rng: Work::Host.stream(Work::Source.seed(seed, index), host),
            partners,
            idle: Geometric::new(1.0 / (1.0 + mean_idle)),
            more: Geometric::new(1.0 / self.mean_burst),
            bytes: self.frame,
            slot,
            until: self.until,
            next: Time(first),
            dst: host,
            left: 0,
        };
        // The chain begins in its stationary state, so that the first slot is as likely to be taken as any other.
        let is_idle = frames.rng.random::<f64>() >= self.load;
        let idle = if is_idle { frames.idle.draw(&mut frames.rng).saturating_add(1) } else { 0 };
        frames.begin_burst(idle);
        HostWork::frames(frames, setting.options.class)
    }
}

/// The frames of one host.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    rng: Stream,
    pub(crate) partners: Partners,
    /// Empty slots between two bursts.
    idle: Geometric,
    /// Frames of a burst after the first.
    more: Geometric,
    bytes: Bytes,
    slot: Time,
    until: Time,
    /// When the next frame starts.
    next: Time,
    dst: HostId,
    /// Frames that are left of the burst, the next one included.
    left: u64,
}

impl Frames {
    /// When they end.
    pub(crate) fn until(&self) -> Time {
        self.until
    }

    pub(crate) fn next(&mut self) -> Option<Message> {
        let start = self.next;
        if start >= self.until {
            return None;
        }
        let message = Message { stream: true, ..Message::new(self.dst, self.bytes, start) };
        self.skip(1);
        self.left -= 1;
        if self.left == 0 {
            let idle = self.idle.draw(&mut self.rng);
            self.begin_burst(idle);
        }
        Some(message)
    }

    fn begin_burst(&mut self, idle: u64) {
        self.skip(idle);
        self.left = self.more.draw(&mut self.rng).saturating_add(1);
        self.dst = self.partners.next(&mut self.rng);
    }

    fn skip(&mut self, slots: u64) {
        self.next = Time(self.next.0.saturating_add(slots.saturating_mul(self.slot.0)));
    }
}

/// The number of failures before the first success of independent trials.
#[derive(Clone, Copy, Debug)]
struct Geometric {
    /// ln(1 − p); minus infinity where every trial succeeds.
    ln_failure: f64,
}

impl Geometric {
    /// Trials that succeed with probability `p`, above 0.
    fn new(p: f64) -> Self {
        Geometric { ln_failure: libm::log1p(-p) }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 on; saturates")]
    fn draw(&self, rng: &mut Stream) -> u64 {
        if self.ln_failure == f64::NEG_INFINITY {
            return 0;
        }
        // By inversion: P(failures ≥ n) = (1 − p)^n. The logarithm is a portable one, as for Poisson arrivals.
        (libm::log(1.0 - rng.random::<f64>()) / self.ln_failure) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_before_a_success_are_geometric() {
        let (p, draws) = (0.3, 100_000);
        let (geometric, mut rng) = (Geometric::new(p), Work::Host.stream(1, 0));
        let mut count = [0u32; 64];
        for _ in 0..draws {
            count[geometric.draw(&mut rng) as usize] += 1;
        }
        for (n, &found) in (0..).zip(&count[..8]) {
            let share = p * (1.0f64 - p).powi(n);
            let deviation = (f64::from(draws) * share * (1.0 - share)).sqrt();
            assert!((f64::from(found) - f64::from(draws) * share).abs() < 5.0 * deviation, "{n}: {found}");
        }
    }

    #[test]
    fn a_sure_success_has_no_failures() {
        let mut rng = Work::Host.stream(1, 0);
        assert!((0..100).all(|_| Geometric::new(1.0).draw(&mut rng) == 0));
        // Near impossible ones do not overflow.
        assert!(Geometric::new(1e-300).draw(&mut rng) > 1 << 60);
    }
}
