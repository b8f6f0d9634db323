//! Windows: intervals of time of equal length, numbered from zero on.
//!
//! With a bipartition of the nodes windows overlap: those of even numbers belong to the even side, those of odd numbers to the odd side, and each
//! begins within the one before it. When one is run, the other side has come to an instant one lookahead of its messages before the end.
//! So windows are as long as both sides' lookaheads together, and no message can arrive in the window being run.

use netloom_units::Time;

use crate::sort::TIME_BITS;

/// The length of windows, and how the window of an instant is found: by a multiplication where the instant is near, by a division elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    length: u64,
    /// The length of the first one, which is shorter with a bipartition.
    first: u64,
    /// One with a bipartition, else zero: a window's number shifted right by this counts the windows of its own side.
    shift: u32,
    /// ⌊2⁶⁴ ÷ length⌋ + 1.
    reciprocal: u64,
}

impl Windows {
    /// The longest windows, in picoseconds: an offset within one fits the keys by which events are sorted.
    pub(crate) const LONGEST: u64 = 1 << TIME_BITS;

    /// Windows of this many picoseconds, at least one.
    pub(crate) fn new(length: u64) -> Self {
        debug_assert!((1..=Self::LONGEST).contains(&length));
        Windows { length, first: length, shift: 0, reciprocal: (u64::MAX / length).saturating_add(1) }
    }

    /// Windows for the two sides of a bipartition, whose messages to the other side take this many picoseconds, at least one.
    pub(crate) fn of_bipartition([even, odd]: [u64; 2]) -> Self {
        Windows { first: odd, shift: 1, ..Windows::new(even + odd) }
    }

    /// The difference between the numbers of two successive windows of one side.
    pub(crate) fn step(self) -> u64 {
        1 << self.shift
    }

    /// The side to which a window belongs: 0 for the even one, or without a bipartition; 1 for the odd one.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "0 or 1")]
    pub(crate) fn side(self, window: u64) -> usize {
        (window & (self.step() - 1)) as usize
    }

    /// Length of a window, in picoseconds.
    pub(crate) fn length(self) -> u64 {
        self.length
    }

    /// Whether [`Self::count_between`] can be used: a length of one picosecond has no reciprocal of 64 bits.
    pub(crate) fn have_reciprocal(self) -> bool {
        self.length > 1
    }

    /// First instant of a window.
    #[inline]
    pub(crate) fn start(self, window: u64) -> Time {
        window.checked_sub(self.step()).map_or(Time::ZERO, |before| self.end(before))
    }

    /// First instant after a window.
    #[inline]
    pub(crate) fn end(self, window: u64) -> Time {
        let first = if self.side(window) == 0 { self.first } else { self.length };
        Time((window >> self.shift) * self.length + first)
    }

    /// The window of an instant on the side of the window `like`.
    pub(crate) fn of(self, at: Time, like: u64) -> u64 {
        let side = self.side(like);
        let missing = if side == 0 { self.length - self.first } else { 0 };
        ((at.0.saturating_add(missing) / self.length) << self.shift) + side as u64
    }

    /// The window that is this many windows of its side after another one.
    #[inline(always)]
    pub(crate) fn after(self, window: u64, count: u64) -> u64 {
        window + (count << self.shift)
    }

    /// How many windows of one side lie between the beginning of one, at `origin`, and an instant: exact below 256. More, and instants before `origin`, give at
    /// least 256.
    #[inline(always)]
    pub(crate) fn count_between(self, origin: Time, at: Time) -> u64 {
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

    fn all(length: u64) -> impl Iterator<Item = Windows> {
        let sides = [[length, length], [length, 1], [length / 3 + 1, length]];
        let sides = sides.into_iter().filter(|[even, odd]| even + odd <= Windows::LONGEST);
        std::iter::once(Windows::new(length)).chain(sides.map(Windows::of_bipartition))
    }

    #[test]
    fn windows_begin_where_they_begin() {
        for length in [2, 3, 1 << 19, 1_005_120, Windows::LONGEST / 2, Windows::LONGEST - 1, Windows::LONGEST]
        {
            for windows in all(length) {
                for origin in [1, 7, 1 << 30, (1 << 61) / length] {
                    let begin = windows.start(origin);
                    for count in (0..=300).chain([1 << 14]) {
                        let window = windows.after(origin, count);
                        let start = windows.start(window);
                        let last = Time(start.0 + windows.length() - 1);
                        assert_eq!(windows.end(window), last + Time(1));
                        assert_eq!(windows.end(window), windows.start(windows.after(window, 1)));
                        for at in [start, last] {
                            assert_eq!(windows.of(at, origin), window);
                            assert_eq!(windows.count_between(begin, at), count, "{length}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_instant_is_in_one_window_of_each_side() {
        let spans = |windows: Windows| -> Vec<(u64, u64)> {
            (0..5).map(|window| (windows.start(window).0, windows.end(window).0)).collect()
        };
        // What the odd side sends takes 3.
        assert_eq!(spans(Windows::of_bipartition([7, 3])), [(0, 3), (0, 10), (3, 13), (10, 20), (13, 23)]);
        let windows = Windows::of_bipartition([5, 5]);
        assert_eq!(spans(windows), [(0, 5), (0, 10), (5, 15), (10, 20), (15, 25)]);
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
            let count = windows.count_between(begin, Time(at));
            match (at / length).checked_sub(origin).filter(|_| at >= begin.0) {
                Some(near) if near < 256 => prop_assert_eq!(count, near),
                _ => prop_assert!(count >= 256),
            }
        }
    }
}
