//! How fast a port has sent lately: a discounting rate estimator.
//!
//! A register grows by the bytes of every packet whose transmission starts, and after every `period` it loses the share `discount` of what it
//! holds. Under a steady load it comes to rest near rate × period / discount, so what it holds over what it would hold on a busy link is the
//! link's utilisation over the last `period` / `discount` or so (CONGA, Alizadeh et al., SIGCOMM'14, section 3.2).
//!
//! It has no timer. Periods that have passed are made up for when the register is next touched, one by one, so that nothing depends on how
//! often it is read.

use netloom_units::{Rate, Time};

/// A utilisation of one, of the whole link.
pub(crate) const FULL: u64 = 1 << 16;

/// What a share of 1 is in fixed point.
const ONE: u64 = 1 << 32;

/// The estimator of one port.
#[derive(Clone, Debug)]
pub(crate) struct RateEstimator {
    period: Time,
    /// What a period leaves of the register, in parts of 2³².
    keeps: u64,
    /// Bytes, with the losses of all periods that end before `next`.
    register: u64,
    /// When it next loses something, if it holds anything.
    next: Time,
    /// The last packet to start, and when. It counts from the next picosecond on: whether a packet starts in the very instant of a look
    /// depends on what else that instant brings.
    last: (Time, u64),
    /// What the register comes to on a busy link of that rate.
    full: (Rate, u64),
    /// What joins the queue counts, and not what is sent.
    counts_routed: bool,
}

impl RateEstimator {
    /// One that has seen nothing. `discount`: above 0, at most 1.
    #[expect(clippy::cast_possible_truncation, reason = "a share of ONE")]
    pub(crate) fn new(period: Time, discount: f64, counts_routed: bool) -> Self {
        let loses = ((discount * ONE as f64).round() as u64).clamp(1, ONE);
        RateEstimator {
            period,
            keeps: ONE - loses,
            register: 0,
            next: period,
            last: (Time::ZERO, 0),
            full: (Rate(0), 1),
            counts_routed,
        }
    }

    /// Whether packets count when their transmission starts, rather than when they are routed.
    #[inline(always)]
    pub(crate) fn counts_sent(&self) -> bool {
        !self.counts_routed
    }

    /// A packet starts.
    pub(crate) fn note(&mut self, start: Time, bytes: u16) {
        if !self.counts_routed {
            self.settle();
            self.last = (start, u64::from(bytes));
        }
    }

    /// A packet joins the queue: it counts at once.
    #[inline]
    pub(crate) fn count_routed(&mut self, now: Time, bytes: u16) {
        if self.counts_routed {
            self.pass(now);
            self.register += u64::from(bytes);
        }
    }

    /// From now on the link has this rate: [`Self::utilisation_with`] is asked without it.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.full = (rate, self.at_rest(rate));
    }

    /// How much of a link of this rate has been used, in parts of [`FULL`].
    #[inline(always)]
    pub(crate) fn utilisation(&mut self, now: Time, rate: Rate) -> u64 {
        if self.last.1 > 0 && self.last.0 < now {
            self.settle();
        }
        self.pass(now);
        if self.full.0 != rate {
            self.set_rate(rate);
        }
        self.share()
    }

    /// [`Self::count_routed`], then [`Self::utilisation`] at the [rate](Self::set_rate) of before, where it is [such packets](Self::counts_sent) that count.
    #[inline(always)]
    pub(crate) fn utilisation_with(&mut self, now: Time, bytes: u16) -> u64 {
        debug_assert!(self.counts_routed && self.last.1 == 0, "nothing else counts");
        self.pass(now);
        self.register += u64::from(bytes);
        self.share()
    }

    /// How much of the link what it holds is, in parts of [`FULL`].
    #[inline(always)]
    fn share(&self) -> u64 {
        match self.register.checked_mul(FULL) {
            Some(scaled) => scaled / self.full.1,
            None => self.utilisation_of_much(),
        }
    }

    /// The same of a register that holds 2⁴⁸ bytes and more.
    #[cold]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a register holds a few times what it comes to on a busy link at most"
    )]
    fn utilisation_of_much(&self) -> u64 {
        (u128::from(self.register) * u128::from(FULL) / u128::from(self.full.1)) as u64
    }

    /// The last packet joins the others.
    fn settle(&mut self) {
        let (start, bytes) = std::mem::take(&mut self.last);
        if bytes > 0 {
            self.pass(start);
            self.register += bytes;
        }
    }

    /// The register loses what it loses until an instant.
    #[inline(always)]
    fn pass(&mut self, until: Time) {
        if until >= self.next {
            self.pass_periods(until);
        }
    }

    /// The same of one period or more.
    #[expect(clippy::cast_possible_truncation, reason = "less than before")]
    fn pass_periods(&mut self, until: Time) {
        let periods = (until - self.next).0 / self.period.0 + 1;
        for _ in 0..periods {
            if self.register == 0 {
                break;
            }
            self.register = ((u128::from(self.register) * u128::from(self.keeps)) >> 32) as u64;
        }
        self.next = Time(self.next.0.saturating_add(periods.saturating_mul(self.period.0)));
    }

    /// rate × period / discount, at least a byte.
    fn at_rest(&self, rate: Rate) -> u64 {
        // Bits per second times picoseconds.
        const BYTE: u128 = 8 * 1_000_000_000_000;
        let sent = u128::from(rate.0) * u128::from(self.period.0) / BYTE;
        u64::try_from(sent * u128::from(ONE) / u128::from(ONE - self.keeps)).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A byte per nanosecond.
    const RATE: Rate = Rate(8_000_000_000);

    fn ns(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn every_period_halves_what_a_discount_of_a_half_has_counted() {
        // A busy link holds 1000 / 0.5 = 2000 bytes.
        let held = |estimator: &mut RateEstimator, time| {
            (estimator.utilisation(ns(time), RATE) as f64 * 2000.0 / FULL as f64).round()
        };
        let mut estimator = RateEstimator::new(ns(1000), 0.5, false);
        assert_eq!(held(&mut estimator, 0), 0.0);
        estimator.note(ns(0), 500);
        estimator.note(ns(600), 300);
        let seen = [700, 999, 1000, 1999, 2000, 4000].map(|time| held(&mut estimator, time));
        assert_eq!(seen, [800.0, 800.0, 400.0, 400.0, 200.0, 50.0]);
        estimator.note(ns(4000), 100);
        // What starts now does not count yet.
        let seen = [4000, 4001, 5000].map(|time| held(&mut estimator, time));
        assert_eq!(seen, [50.0, 150.0, 75.0]);
    }

    #[test]
    fn a_busy_link_is_in_full_use_and_a_quarter_of_its_packets_a_quarter() {
        for (every, share) in [(1, 1.0), (4, 0.25)] {
            let mut estimator = RateEstimator::new(ns(16_000), 0.1, false);
            (0..4000).filter(|packet| packet % every == 0).for_each(|n| estimator.note(ns(n * 400), 400));
            // Between the end of one period and that of the next the register moves by the discount.
            let measured = estimator.utilisation(ns(1_600_000 - 1), RATE) as f64 / FULL as f64;
            assert!((measured - share).abs() < 0.01 * share, "{measured}");
        }
    }

    #[test]
    fn what_joins_the_queue_counts_at_once_and_more_than_the_link_carries() {
        let mut estimator = RateEstimator::new(ns(1000), 0.5, true);
        estimator.note(ns(0), 500);
        assert_eq!(estimator.utilisation(ns(1), RATE), 0, "what is sent does not count");
        for _ in 0..6 {
            estimator.count_routed(ns(10), 1000);
        }
        assert_eq!(estimator.utilisation(ns(10), RATE), 3 * FULL);
        assert_eq!(estimator.utilisation(ns(1000), RATE), 3 * FULL / 2);
    }

    #[test]
    fn a_slower_link_is_fuller() {
        let mut estimator = RateEstimator::new(ns(1000), 0.5, false);
        estimator.note(ns(0), 100);
        assert_eq!(estimator.utilisation(ns(1), RATE), FULL / 20);
        assert_eq!(estimator.utilisation(ns(1), RATE.scale(0.1)), FULL / 2);
    }

    proptest! {
        #[test]
        fn counting_and_looking_at_once_is_both(
            gaps in prop::collection::vec((0..5000u64, 1..9000u16), 1..200),
            discount in 0.01..1.0f64,
        ) {
            let mut both = RateEstimator::new(ns(700), discount, true);
            both.set_rate(RATE);
            let mut each = both.clone();
            let mut now = 0;
            for (gap, size) in gaps {
                now += gap;
                each.count_routed(ns(now), size);
                prop_assert_eq!(both.utilisation_with(ns(now), size), each.utilisation(ns(now), RATE));
            }
        }

        #[test]
        fn looks_change_nothing(
            gaps in prop::collection::vec((1..5000u64, 1..9000u16, any::<bool>()), 1..200),
            discount in 0.01..1.0f64,
        ) {
            let mut watched = RateEstimator::new(ns(700), discount, false);
            let mut alone = watched.clone();
            let mut now = 0;
            for (gap, size, look) in gaps {
                now += gap;
                for estimator in [&mut watched, &mut alone] {
                    estimator.note(ns(now), size);
                }
                if look {
                    watched.utilisation(ns(now), RATE);
                    // Still before the next packet, which starts a nanosecond later at the earliest.
                    watched.utilisation(ns(now) + Time(gap % 1000), RATE);
                }
            }
            prop_assert_eq!(watched.utilisation(ns(now + 1), RATE), alone.utilisation(ns(now + 1), RATE));
        }
    }
}
