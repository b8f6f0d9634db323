//! Windows: stretches of time of equal length, numbered from zero on.

use netloom_units::Time;

use crate::order::TIME_BITS;

/// A length of windows, and what finding a window takes: a multiplication where an instant is near, a division elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    length: u64,
    /// ⌊2⁶⁴ ÷ length⌋ + 1.
    reciprocal: u64,
}

impl Windows {
    /// The longest windows, in picoseconds: an instant's place in one fits the keys by which events are ordered.
    pub(crate) const LONGEST: u64 = 1 << TIME_BITS;

    /// Windows of so many picoseconds, at least one.
    pub(crate) fn new(length: u64) -> Self {
        debug_assert!((1..=Self::LONGEST).contains(&length));
        Windows { length, reciprocal: (u64::MAX / length).saturating_add(1) }
    }

    /// Length of a window, in picoseconds.
    pub(crate) fn length(self) -> u64 {
        self.length
    }

    /// Whether [`Self::ahead`] can be asked: one picosecond has no reciprocal of 64 bits.
    pub(crate) fn are_counted_ahead(self) -> bool {
        self.length > 1
    }

    /// First instant of a window.
    #[inline]
    pub(crate) fn start(self, window: u64) -> Time {
        Time(window * self.length)
    }

    /// The window of an instant.
    pub(crate) fn of(self, at: Time) -> u64 {
        at.0 / self.length
    }

    /// How many windows lie between the beginning of one, at `origin`, and an instant: exact below 256; what is more is at least 256, and so is what is
    /// before `origin`.
    #[inline(always)]
    pub(crate) fn ahead(self, origin: Time, at: Time) -> u64 {
        // With r = reciprocal × length - 2⁶⁴ ≤ length the product is distance ÷ length × (2⁶⁴ + r): too much by less than 1 ÷ length as long as
        // distance × length < 2⁶⁴.
        let distance = at.0.wrapping_sub(origin.0);
        ((u128::from(distance) * u128::from(self.reciprocal)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn windows_begin_where_they_begin() {
        for length in [2, 3, 1 << 19, 1_005_120, Windows::LONGEST - 1, Windows::LONGEST] {
            let windows = Windows::new(length);
            for origin in [0, 7, 1 << 30, (1 << 62) / length] {
                let begin = windows.start(origin);
                for ahead in (0..=300).chain([1 << 14]) {
                    let start = windows.start(origin + ahead);
                    assert_eq!(windows.of(start), origin + ahead);
                    assert_eq!(windows.ahead(begin, start), ahead, "{length}");
                    assert_eq!(windows.ahead(begin, Time(start.0 + length - 1)), ahead, "{length}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_near_is_exact_and_what_is_not_is_far(
            length in 2..=Windows::LONGEST,
            origin in 0u64..1 << 30,
            at in prop_oneof![any::<u64>(), 0u64..1 << 56],
        ) {
            let windows = Windows::new(length);
            let begin = windows.start(origin);
            let ahead = windows.ahead(begin, Time(at));
            match (at / length).checked_sub(origin).filter(|_| at >= begin.0) {
                Some(near) if near < 256 => prop_assert_eq!(ahead, near),
                _ => prop_assert!(ahead >= 256),
            }
        }
    }
}
