//! Round-trip times of one flow.

use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

use crate::config::TransportOptions;

/// The smoothed round-trip time and its variation after RFC 6298, and the least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    smoothed: Option<Time>,
    variation: Time,
    least: Time,
}

impl Recur for Rtt {
    fn recur(&mut self, walk: &mut Walk) {
        let Rtt { smoothed, variation, least } = self;
        if walk.is_some(smoothed) {
            walk.exact(smoothed.unwrap_or_default().0);
        }
        walk.exact(variation.0);
        walk.exact(least.0);
    }
}

impl Default for Rtt {
    fn default() -> Self {
        Rtt { smoothed: None, variation: Time::ZERO, least: Time::MAX }
    }
}

impl Rtt {
    /// ACKs echo when their packet was sent, so every one of them is a sample, that of a packet sent again too.
    pub(crate) fn sample(&mut self, rtt: Time) {
        self.least = self.least.min(rtt);
        (self.smoothed, self.variation) = match self.smoothed {
            None => (Some(rtt), rtt / 2),
            Some(smoothed) => {
                let error = Time(smoothed.0.abs_diff(rtt.0));
                (Some((smoothed * 7 + rtt) / 8), (self.variation * 3 + error) / 4)
            }
        };
    }

    /// `None` until the first sample.
    #[inline]
    pub(crate) fn smoothed(&self) -> Option<Time> {
        self.smoothed
    }

    /// The least sample.
    pub(crate) fn least(&self) -> Option<Time> {
        self.smoothed.map(|_| self.least)
    }

    /// No [timeout](Self::timeout) is shorter: the largest is at least the first one.
    #[inline(always)]
    pub(crate) fn least_timeout(options: &TransportOptions) -> Time {
        options.rto_min.min(options.rto_initial)
    }

    /// The retransmission timeout after that many timeouts in a row.
    pub(crate) fn timeout(&self, options: &TransportOptions, backoff: u32) -> Time {
        let base = match self.smoothed {
            Some(smoothed) => (smoothed + self.variation * 4).max(options.rto_min),
            None => options.rto_initial,
        };
        let most = options.rto_max.unwrap_or(Time::MAX);
        Time(base.0.saturating_mul(1 << backoff.min(6))).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_double_up_to_the_largest() {
        let (ms, mut rtt) = (Time::from_ms, Rtt::default());
        let mut options =
            TransportOptions { rto_min: ms(2), rto_initial: ms(3), ..TransportOptions::default() };
        let timeouts = |rtt: &Rtt, options: &TransportOptions| {
            [0, 1, 2, 6, 9].map(|backoff| rtt.timeout(options, backoff))
        };
        assert_eq!(timeouts(&rtt, &options), [3, 6, 12, 192, 192].map(ms));
        options.rto_max = Some(ms(7));
        assert_eq!(timeouts(&rtt, &options), [3, 6, 7, 7, 7].map(ms));
        rtt.sample(Time::from_us(10));
        assert_eq!(timeouts(&rtt, &options), [2, 4, 7, 7, 7].map(ms));
    }
}
