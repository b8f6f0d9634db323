//! The median of what the latest ACKs say, in the place of what the latest one says.

use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Invalid, Time};

/// The round-trip times and marks of the latest ACKs of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest {
    ring: Vec<(Time, bool)>,
    /// Where the next one goes.
    next: usize,
}

impl Recur for Latest {
    fn recur(&mut self, walk: &mut Walk) {
        let Latest { ring, next } = self;
        walk.count(*next);
        walk.count(ring.len());
        for &(rtt, marked) in &*ring {
            walk.exact(rtt.0);
            walk.exact(marked);
        }
    }
}

impl Latest {
    /// An ACK came. Returns the median of the round-trip times of the latest `count` ACKs, of an even number the lower one of the two in the middle, and whether more than half of them
    /// were marked: what less than half of the ACKs say changes neither.
    pub(super) fn median(&mut self, count: usize, rtt: Time, marked: bool) -> (Time, bool) {
        if self.ring.len() != count {
            // The latest ones remain, in their order.
            self.ring.rotate_left(self.next);
            let gone = self.ring.len().saturating_sub(count - 1);
            self.ring.drain(..gone);
            self.ring.push((rtt, marked));
            self.next = self.ring.len() % count;
        } else {
            // While there were fewer than a median then took, the next place was behind them all.
            let oldest = self.next % count;
            self.ring[oldest] = (rtt, marked);
            self.next = (oldest + 1) % count;
        }
        let mut rtts = [Time::ZERO; MOST as usize];
        let rtts = &mut rtts[..self.ring.len()];
        rtts.iter_mut().zip(&self.ring).for_each(|(rtt, latest)| *rtt = latest.0);
        let (_, median, _) = rtts.select_nth_unstable((self.ring.len() - 1) / 2);
        let marks = self.ring.iter().filter(|(_, marked)| *marked).count();
        (*median, 2 * marks > self.ring.len())
    }
}

/// Most ACKs of a median.
const MOST: u32 = 127;

/// The number of ACKs in a window of this many packets, at least one and at most `median_of`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
pub(super) fn count(median_of: u32, packets: f64) -> usize {
    (packets.ceil() as usize).clamp(1, median_of as usize)
}

/// Checks the field `median_of`.
pub(super) fn check(median_of: Option<u32>) -> Result<(), Invalid> {
    let found = median_of.unwrap_or(1);
    Invalid::unless((1..=MOST).contains(&found), "median_of", format!("1 to {MOST}"), found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medians(count: usize, rtts: &[u64]) -> Vec<u64> {
        let mut latest = Latest::default();
        rtts.iter().map(|&rtt| latest.median(count, Time(rtt), false).0.0).collect()
    }

    #[test]
    fn a_median_is_of_the_latest_and_of_two_in_the_middle_the_lower_one() {
        assert_eq!(medians(1, &[5, 9, 2]), [5, 9, 2]);
        assert_eq!(medians(3, &[5, 9, 2, 8, 7, 1]), [5, 5, 5, 8, 7, 7]);
        assert_eq!(medians(4, &[4, 3, 2, 1, 9, 9, 9]), [4, 3, 3, 2, 2, 2, 9]);
    }

    #[test]
    fn more_than_half_of_the_marks_make_one() {
        let mut latest = Latest::default();
        let marks = [true, false, false, true, true, false, true];
        let seen = marks.map(|marked| latest.median(3, Time(1), marked).1);
        assert_eq!(seen, [true, false, false, false, true, true, true]);
    }

    /// Of a window that shrinks the oldest are forgotten, of one that grows none.
    #[test]
    fn the_number_may_change() {
        let mut latest = Latest::default();
        for rtt in [1, 2, 3, 4, 5, 6, 7] {
            latest.median(5, Time(rtt), false);
        }
        // 6, 7, 8; then 7, 8, 9; then those and 1, then 2.
        let seen = [(3, 8), (3, 9), (5, 1), (5, 2), (5, 3)]
            .map(|(count, rtt)| latest.median(count, Time(rtt), false).0.0);
        assert_eq!(seen, [7, 8, 7, 7, 3]);
        assert_eq!(latest.median(1, Time(50), false).0, Time(50));
        // As many as there are, where more were wanted before: the oldest goes.
        let mut latest = Latest::default();
        let seen = [(5, 1), (5, 2), (5, 3), (3, 9), (3, 9)]
            .map(|(count, rtt)| latest.median(count, Time(rtt), false).0.0);
        assert_eq!(seen, [1, 1, 2, 3, 9]);
    }

    #[test]
    fn a_window_is_as_many_acks_up_to_a_bound() {
        assert_eq!([0.01, 1.0, 1.2, 30.0, 900.0].map(|packets| count(31, packets)), [1, 1, 2, 30, 31]);
        assert_eq!([None, Some(1), Some(127)].map(check), [Ok(()), Ok(()), Ok(())]);
        assert_eq!([Some(0), Some(128)].map(|of| check(of).unwrap_err().field), ["median_of", "median_of"]);
    }
}
