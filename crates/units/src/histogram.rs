//! Counts of values that range over many orders of magnitude.

/// A log-linear histogram (as HdrHistogram's): 2^`KEPT` bins of equal width in every octave, so that a bin is at most 2^-`KEPT` as wide as
/// what it holds; exact below 2^(`KEPT` + 1). It costs memory only for bins in which something is.
///
/// ```
/// use netloom_units::Histogram;
///
/// let mut histogram = Histogram::<4>::default();
/// (0..1000).for_each(|value| histogram.add(value));
/// let bins: Vec<_> = histogram.bins().take(2).collect();
/// assert_eq!(bins, [(0..1, 1), (1..2, 1)]);
/// // At most a tenth of the values are as large as this.
/// assert_eq!(histogram.bound(0.9), Some(928));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram<const KEPT: u32> {
    /// Number of a bin and what is in it, in ascending order.
    bins: Vec<(u16, u64)>,
    total: u64,
}

impl<const KEPT: u32> Histogram<KEPT> {
    /// Bins have numbers of 16 bits.
    const FITS: () = assert!(KEPT <= 10, "more bins than have numbers");

    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        self.add_to(Self::bin(value), 1);
    }

    /// The number of the bin of a value.
    #[inline]
    pub fn bin(value: u64) -> u16 {
        const { Self::FITS };
        bin(value, KEPT)
    }

    /// The values of a bin.
    pub fn range(bin: u16) -> std::ops::Range<u64> {
        start(bin, KEPT)..start(bin + 1, KEPT)
    }

    /// Counts all values of another.
    pub fn merge(&mut self, other: &Self) {
        for &(bin, count) in &other.bins {
            self.add_to(bin, count);
        }
    }

    /// Counts values of a bin.
    pub fn add_to(&mut self, bin: u16, count: u64) {
        match self.bins.binary_search_by_key(&bin, |&(bin, _)| bin) {
            Ok(at) => self.bins[at].1 += count,
            Err(at) => self.bins.insert(at, (bin, count)),
        }
        self.total += count;
    }

    /// How many values were counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The numbers of the bins that hold something, ascending, and how much.
    pub fn counts(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.bins.iter().copied()
    }

    /// The bins that hold something, ascending, and how much.
    pub fn bins(&self) -> impl Iterator<Item = (std::ops::Range<u64>, u64)> + '_ {
        self.bins.iter().map(|&(bin, count)| (Self::range(bin), count))
    }

    /// The least end of a bin below which at least this share of the values lies; `None` if there is none.
    pub fn bound(&self, share: f64) -> Option<u64> {
        let mut below = 0;
        let wanted = share * self.total as f64;
        let bin = self.bins().find(|(_, count)| {
            below += count;
            below as f64 >= wanted
        });
        bin.map(|(range, _)| range.end)
    }
}

/// The bin of a value.
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most 64 − KEPT octaves of 2^KEPT bins: below 2¹⁶ where KEPT is at most 10"
)]
fn bin(value: u64, kept: u32) -> u16 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(kept + 1);
    ((u64::from(shift) << kept) + (value >> shift)) as u16
}

/// The least value of a bin; that beyond the last one is as large as there are numbers.
fn start(bin: u16, kept: u32) -> u64 {
    let shift = (u32::from(bin) >> kept).saturating_sub(1);
    let head = u64::from(bin) - (u64::from(shift) << kept);
    head.saturating_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_lies_in_its_bin_and_bins_are_narrow(bits in 0..64u32, value in any::<u64>(), kept in 1..8u32) {
            let value = value >> bits;
            let range = start(bin(value, kept), kept)..start(bin(value, kept) + 1, kept);
            prop_assert!(range.contains(&value) || value == u64::MAX, "{value} {range:?}");
            prop_assert!(range.end - range.start <= (range.start >> kept).max(1));
        }
    }

    #[test]
    fn bins_follow_each_other_and_are_narrow() {
        for value in (0..5000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX >> 8]) {
            let first = bin(value, 6);
            let (from, until) = (start(first, 6), start(first + 1, 6));
            assert!((from..until).contains(&value), "{value}: {from} {until}");
            assert!(until - from <= 1.max(from / 64), "{value}: {from} {until}");
        }
    }

    #[test]
    fn the_bound_of_a_percentile_leaves_no_more_than_the_rest_above() {
        let mut histogram = Histogram::<4>::default();
        assert_eq!(histogram.bound(0.99), None);
        (0..99).for_each(|_| histogram.add(83_840));
        histogram.add(1_000_000);
        assert_eq!(histogram.total(), 100);
        let bound = histogram.bound(0.99).unwrap();
        assert!(bound > 83_840 && bound < 90_000, "{bound}");
        assert!(histogram.bound(0.995).unwrap() > 1_000_000);
    }
}
