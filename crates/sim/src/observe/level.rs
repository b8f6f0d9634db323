//! How much of something there is at a time.

use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

/// An amount that changes: what it is, the most that it was, and its mean over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    now: u64,
    /// The most that it was.
    pub(crate) peak: u64,
    since: Time,
    /// Amount × picoseconds until `since`.
    area: u128,
}

impl Recur for Level {
    fn recur(&mut self, walk: &mut Walk) {
        // Where only counts go on, the mean is over what was simulated.
        if walk.counts() {
            return;
        }
        let Level { now, peak, since, area } = self;
        walk.exact(*now);
        walk.exact(*peak);
        walk.last(since);
        walk.sum128(area);
    }
}

impl Level {
    /// From now on it is that.
    #[inline]
    pub(crate) fn is(&mut self, amount: u64, now: Time) {
        self.area += u128::from(self.now) * u128::from((now - self.since).0);
        (self.now, self.since, self.peak) = (amount, now, self.peak.max(amount));
    }

    /// It was as much on average during a further time, behind `until`, in which it was not followed.
    pub(crate) fn go_on_alike(&mut self, until: Time, more: Time) {
        self.is(self.now, until.max(self.since));
        if self.since > Time::ZERO {
            let (since, more) = (u128::from(self.since.0), u128::from(more.0));
            // A product of all three may have more than 128 bits.
            self.area += self.area / since * more + self.area % since * more / since;
        }
        self.since += more;
    }

    /// What it is.
    pub(crate) fn get(&self) -> u64 {
        self.now
    }

    /// Its mean over time, from the beginning until `end`.
    pub(crate) fn mean(&self, end: Time) -> f64 {
        let mut until = *self;
        until.is(self.now, end.max(self.since));
        if until.since == Time::ZERO { 0.0 } else { until.area as f64 / until.since.0 as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_over_all_of_the_time() {
        let mut level = Level::default();
        level.is(6, Time(10));
        level.is(2, Time(20));
        level.is(0, Time(30));
        // 6 for ten picoseconds, 2 for ten, nothing for twenty.
        assert_eq!((level.peak, level.mean(Time(40)), level.get()), (6, 2.0, 0));
        assert_eq!(Level::default().mean(Time::ZERO), 0.0);
    }

    #[test]
    fn a_time_in_which_it_was_not_followed_changes_no_mean() {
        let mut level = Level::default();
        [(4, 0), (0, 10)].into_iter().for_each(|(amount, now)| level.is(amount, Time(now)));
        level.go_on_alike(Time(20), Time(180));
        assert_eq!((level.mean(Time(200)), level.mean(Time(400)), level.peak), (2.0, 1.0, 4));
        let mut never = Level::default();
        never.go_on_alike(Time::ZERO, Time(5));
        assert_eq!(never.mean(Time(5)), 0.0);
    }
}
