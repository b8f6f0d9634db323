//! Windows: stretches of time of equal length, numbered from zero on.
//!
//! Where the network has two sides, windows overlap: those of even numbers are one side's, those of odd numbers the other's, and each
//! begins in the middle of the one before it. When one is run, the other side has come to its middle, one lookahead before its end; so
//! they are twice as long as the lookahead, and still nothing can come that belongs to it.

use netloom_units::Time;

use crate::order::TIME_BITS;

/// A length of windows, and what finding a window takes: a multiplication where an instant is near, a division elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    length: u64,
    /// How far apart they begin: the length, or half of it.
    pace: u64,
    /// One if there are two sides, else zero: how far a number is to be shifted for those of one's own side only.
    shift: u32,
    /// ⌊2⁶⁴ ÷ length⌋ + 1.
    reciprocal: u64,
}

impl Windows {
    /// The longest windows, in picoseconds: an instant's place in one fits the keys by which events are ordered.
    pub(crate) const LONGEST: u64 = 1 << TIME_BITS;

    /// Windows of so many picoseconds, at least one.
    pub(crate) fn new(length: u64) -> Self {
        debug_assert!((1..=Self::LONGEST).contains(&length));
        Windows { length, pace: length, shift: 0, reciprocal: (u64::MAX / length).saturating_add(1) }
    }

    /// Windows for two sides that begin so many picoseconds apart, at least one.
    pub(crate) fn of_two_sides(pace: u64) -> Self {
        Windows { pace, shift: 1, ..Windows::new(2 * pace) }
    }

    /// How many numbers a window is from the next one of the same side.
    pub(crate) fn step(self) -> u64 {
        1 << self.shift
    }

    /// Which side's window this is; 0 if there are no sides.
    #[inline]
    pub(crate) fn side(self, window: u64) -> usize {
        (window & (self.step() - 1)) as usize
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
        // The first of two sides' windows is half as long.
        Time((window + 1).saturating_sub(self.step()) * self.pace)
    }

    /// First instant after a window.
    #[inline]
    pub(crate) fn end(self, window: u64) -> Time {
        Time((window + 1) * self.pace)
    }

    /// The window of an instant, of the side that the window `like` is of.
    pub(crate) fn of(self, at: Time, like: u64) -> u64 {
        let window = at.0 / self.pace;
        window + ((window ^ like) & (self.step() - 1))
    }

    /// The window of one side that is so many of them after another one.
    #[inline(always)]
    pub(crate) fn after(self, window: u64, ahead: u64) -> u64 {
        window + (ahead << self.shift)
    }

    /// How many windows of one side lie between the beginning of one, at `origin`, and an instant: exact below 256; what is more is at least 256, and so
    /// is what is before `origin`.
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

    fn both(pace: u64) -> impl Iterator<Item = Windows> {
        [Some(Windows::new(pace)), (2 * pace <= Windows::LONGEST).then(|| Windows::of_two_sides(pace))]
            .into_iter()
            .flatten()
    }

    #[test]
    fn windows_begin_where_they_begin() {
        for pace in [2, 3, 1 << 19, 1_005_120, Windows::LONGEST / 2, Windows::LONGEST - 1, Windows::LONGEST] {
            for windows in both(pace) {
                for origin in [1, 7, 1 << 30, (1 << 61) / pace] {
                    let begin = windows.start(origin);
                    for ahead in (0..=300).chain([1 << 14]) {
                        let window = windows.after(origin, ahead);
                        let start = windows.start(window);
                        let last = Time(start.0 + windows.length() - 1);
                        assert_eq!(windows.end(window), last + Time(1));
                        assert_eq!(windows.end(window), windows.start(windows.after(window, 1)));
                        for at in [start, last] {
                            assert_eq!(windows.of(at, origin), window);
                            assert_eq!(windows.ahead(begin, at), ahead, "{pace}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_instant_is_in_one_window_of_each_side() {
        let windows = Windows::of_two_sides(5);
        let spans = (0..5).map(|window| (windows.start(window).0, windows.end(window).0));
        assert_eq!(spans.collect::<Vec<_>>(), [(0, 5), (0, 10), (5, 15), (10, 20), (15, 25)]);
        let of = |at| [0, 1].map(|side| windows.of(Time(at), side));
        assert_eq!(
            [0, 4, 5, 9, 10, 14, 15].map(of),
            [[0, 1], [0, 1], [2, 1], [2, 1], [2, 3], [2, 3], [4, 3]]
        );
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
