//! How long packets take on a channel, in few bytes.

use netloom_units::{Rate, Time, greatest_common_divisor};

/// What a byte takes at one bit per second, in picoseconds.
const SLOWEST: u64 = 8_000_000_000_000;

/// A rate as a fraction in lowest terms: a number of bytes in a number of picoseconds.
///
/// Nearly all rates in use are a byte in a whole number of picoseconds, so that a multiplication says exactly what a packet takes; the others
/// take a division. No packet takes so long that 32 bits do not hold it.
// Six bytes, as ports have use for the other two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(2))]
pub(crate) struct Pace {
    picoseconds: u32,
    bytes: u16,
}

impl Pace {
    /// That of no rate.
    pub(crate) const NONE: Pace = Pace { picoseconds: 0, bytes: 0 };

    /// A rate, if it is such a fraction.
    pub(crate) fn of(rate: Rate) -> Option<Self> {
        let common = greatest_common_divisor(SLOWEST, rate.0);
        let bytes = u16::try_from(rate.0 / common).ok().filter(|&bytes| bytes > 0)?;
        let picoseconds = u32::try_from(SLOWEST / common).ok()?;
        let is_fast = picoseconds / u32::from(bytes) < u32::from(u16::MAX);
        is_fast.then_some(Pace { picoseconds, bytes })
    }

    /// The rate; `None` for [`Self::NONE`].
    #[inline]
    pub(crate) fn rate(self) -> Option<Rate> {
        let common = SLOWEST.checked_div(u64::from(self.picoseconds))?;
        Some(Rate(common * u64::from(self.bytes)))
    }

    /// Whether a byte takes a whole number of picoseconds.
    pub(crate) fn is_whole(self) -> bool {
        self.bytes == 1
    }

    /// What a packet takes then.
    #[inline(always)]
    pub(crate) fn take_whole(self, size: u16) -> u32 {
        self.picoseconds * u32::from(size)
    }

    /// What a packet takes, as [`Rate::serialize`] says, wherever there is a rate.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a pace is made of rates at which the largest packet fits"
    )]
    pub(crate) fn take(self, size: u16) -> Option<u32> {
        let work = u64::from(self.picoseconds) * u64::from(size);
        (self.bytes > 0).then(|| work.div_ceil(u64::from(self.bytes)) as u32)
    }
}

/// A rate that is no [`Pace`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct OddRate {
    pub(crate) rate: Rate,
    /// Most of a packet's serialisation that must be over for it to count as arrived.
    pub(crate) head: Time,
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_units::Bytes;

    #[test]
    fn a_pace_says_what_its_rate_says() {
        let even = [10_000_000_000, 100_000_000_000, 400_000_000_000, 1_600_000_000_000, 1_000_000_000];
        let uneven =
            [56_000_000_000, 75_000_000_000, 3_200_000_000_000, 33_330_000_000, 123_456_000, 122_080_000];
        for rate in even.into_iter().chain(uneven).map(Rate) {
            let pace = Pace::of(rate).unwrap();
            assert_eq!(pace.rate(), Some(rate));
            for size in [0, 1, 2, 3, 64, 84, 1500, 4096, 9000, u16::MAX - 1, u16::MAX] {
                let takes = rate.serialize(Bytes(u64::from(size)));
                assert_eq!(
                    pace.take(size).map(|time| Time(u64::from(time))),
                    Some(takes),
                    "{rate:?}, {size}"
                );
                assert_eq!(pace.is_whole(), even.contains(&rate.0));
                assert!(!pace.is_whole() || Time(u64::from(pace.take_whole(size))) == takes);
            }
        }
    }

    #[test]
    fn rates_are_no_paces_that_are_slow_or_no_short_fractions() {
        for rate in [0, 1, 100_000_000, 99_999_999_999, 100_000_000_007] {
            assert_eq!(Pace::of(Rate(rate)), None);
        }
        assert_eq!(Pace::NONE.rate(), None);
        assert_eq!(Pace::NONE.take(1), None);
    }
}
