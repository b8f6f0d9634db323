//! What the links of a flow's path say, compared with what they said before.

use crate::feedback::LinkState;

/// What the links of a path said by the last ACK and by the present one.
#[derive(Clone, Debug, Default)]
pub(super) struct Telemetry {
    /// Empty before the first ACK.
    before: Vec<LinkState>,
    /// By the ACK that comes now.
    received: Vec<LinkState>,
}

/// What a link did between two ACKs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    /// In picoseconds; more than 0.
    pub(super) elapsed: f64,
    /// Bytes per picosecond that the link carries.
    pub(super) rate: f64,
    /// Bytes that it carried meanwhile.
    pub(super) carried: f64,
    /// Bytes that waited for it then and now.
    pub(super) queued: [u64; 2],
}

impl Telemetry {
    /// An ACK is about to arrive that brings this.
    pub(super) fn receive(&mut self, links: impl Iterator<Item = LinkState>) {
        self.received.clear();
        self.received.extend(links);
    }

    /// Whether the present ACK has brought anything.
    pub(super) fn is_there(&self) -> bool {
        !self.received.is_empty()
    }

    /// Whether there is nothing to compare it with yet.
    pub(super) fn is_first(&self) -> bool {
        self.before.is_empty()
    }

    /// The largest measure of a link since the last ACK, and the time since then there, in picoseconds. `None`: the links are others, or this is the first ACK. The
    /// present ACK is then the last one.
    pub(super) fn largest(&mut self, measure: impl Fn(Interval) -> f64) -> Option<(f64, f64)> {
        let largest = self.compare(measure);
        std::mem::swap(&mut self.before, &mut self.received);
        self.received.clear();
        largest
    }

    fn compare(&self, measure: impl Fn(Interval) -> f64) -> Option<(f64, f64)> {
        let is_same_way = self.before.len() == self.received.len();
        let mut largest = None;
        for (before, now) in self.before.iter().zip(&self.received).filter(|_| is_same_way) {
            if before.channel != now.channel || before.at >= now.at {
                return None;
            }
            let elapsed = float((now.at - before.at).0);
            let found = measure(Interval {
                elapsed,
                rate: float(now.rate.0) / BITS,
                carried: float(now.sent - before.sent),
                queued: [before.queued, now.queued],
            });
            if largest.is_none_or(|(most, _)| found > most) {
                largest = Some((found, elapsed));
            }
        }
        largest
    }
}

/// A number below 2⁶³, such as all that links say. As a signed number it takes one instruction to convert, as an unsigned one six.
#[inline(always)]
pub(super) fn float(number: u64) -> f64 {
    debug_assert!(i64::try_from(number).is_ok());
    number.cast_signed() as f64
}

/// Bits per second times picoseconds in a byte.
pub(super) const BITS: f64 = 8e12;
