//! Round-trip times of one flow.

use netloom_units::Time;

use crate::config::TransportOptions;

/// The smoothed round-trip time and its variation after RFC 6298, and the least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    smoothed: Option<Time>,
    variation: Time,
    least: Time,
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

    /// The retransmission timeout after so many timeouts in a row.
    pub(crate) fn timeout(&self, options: &TransportOptions, backoff: u32) -> Time {
        let base = match self.smoothed {
            Some(smoothed) => (smoothed + self.variation * 4).max(options.rto_min),
            None => options.rto_initial,
        };
        Time(base.0.saturating_mul(1 << backoff.min(6)))
    }
}
