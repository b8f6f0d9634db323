//! Slowdown by flow size: what most papers of the field plot.

use std::collections::BTreeMap;

use netloom_record::Statistics;
use serde::Serialize;

use crate::curve::round;

/// If there are no more sizes than this, each is a bin of its own.
const FEW: usize = 12;

/// Flows of a bin at least: a mean or a percentile of fewer says nothing.
const FEWEST: u64 = 10;

/// Flows of similar size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SizeBin {
    /// Flows are larger than this.
    pub(crate) above: u64,
    /// Flows are at most this large.
    pub(crate) up_to: u64,
    pub(crate) count: u64,
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Slowdowns by size in two ways; which one a page shows depends on all of its points.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BySize {
    /// By exact size, if there are few sizes.
    exact: Option<Vec<SizeBin>>,
    /// In bins of 1, 2, 5, 10, … bytes.
    binned: Vec<SizeBin>,
}

impl BySize {
    /// Sorts (size, slowdown) into bins.
    pub(crate) fn of(flows: &[(u64, f64)]) -> Self {
        let mut exact: Option<BTreeMap<u64, Vec<f64>>> = Some(BTreeMap::new());
        let mut binned: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for &(size, slowdown) in flows {
            binned.entry(bin_end(size)).or_default().push(slowdown);
            if let Some(sizes) = &mut exact {
                sizes.entry(size).or_default().push(slowdown);
                if sizes.len() > FEW {
                    exact = None;
                }
            }
        }
        let exact = exact
            .map(|sizes| sizes.into_iter().filter_map(|(size, values)| bin(size, size, values)).collect());
        let binned =
            binned.into_iter().filter_map(|(end, values)| bin(bin_start(end), end, values)).collect();
        BySize { exact, binned }
    }
}

/// The bins of all points, of the same kind for all, without those of fewer than ten flows; and how many flows by point those have.
pub(crate) fn alike(points: Vec<BySize>) -> (Vec<Vec<SizeBin>>, Vec<u64>) {
    let sizes: Option<Vec<&Vec<SizeBin>>> = points.iter().map(|point| point.exact.as_ref()).collect();
    let mut all: Vec<u64> = sizes.into_iter().flatten().flatten().map(|bin| bin.up_to).collect();
    all.sort_unstable();
    all.dedup();
    let is_exact = !all.is_empty() && all.len() <= FEW;
    let bins = |point: BySize| {
        let bins = if is_exact { point.exact.unwrap_or_default() } else { point.binned };
        let (told, few): (Vec<SizeBin>, Vec<SizeBin>) = bins.into_iter().partition(|bin| bin.count >= FEWEST);
        (told, few.iter().map(|bin| bin.count).sum::<u64>())
    };
    points.into_iter().map(bins).unzip()
}

fn bin(above: u64, up_to: u64, slowdowns: Vec<f64>) -> Option<SizeBin> {
    let statistics = Statistics::of(slowdowns)?;
    Some(SizeBin {
        above,
        up_to,
        count: statistics.count,
        mean: round(statistics.mean),
        p50: round(statistics.p50),
        p99: round(statistics.p99),
    })
}

/// The least of 1, 2, 5, 10, 20, … that holds the size.
fn bin_end(size: u64) -> u64 {
    let mut decade = 1u64;
    loop {
        for step in [1, 2, 5] {
            match decade.checked_mul(step) {
                Some(end) if end < size => {}
                Some(end) => return end,
                None => return u64::MAX,
            }
        }
        match decade.checked_mul(10) {
            Some(next) => decade = next,
            None => return u64::MAX,
        }
    }
}

/// Where the bin before it ends.
fn bin_start(end: u64) -> u64 {
    match end {
        0 | 1 => 0,
        u64::MAX => 10_000_000_000_000_000_000,
        // 1, 2, 5: halves, but 5 begins at 2.
        _ if end.to_string().starts_with('5') => end / 5 * 2,
        _ => end / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(bins: &[SizeBin]) -> Vec<(u64, u64, u64)> {
        bins.iter().map(|bin| (bin.above, bin.up_to, bin.count)).collect()
    }

    #[test]
    fn few_sizes_stand_for_themselves() {
        let flows: Vec<(u64, f64)> =
            (0..10).flat_map(|i| [(1500, 2.0 + f64::from(i % 2) * 2.0), (64, 1.0)]).collect();
        let (bins, few) = alike(vec![BySize::of(&flows)]);
        assert_eq!((ends(&bins[0]), few), (vec![(64, 64, 10), (1500, 1500, 10)], vec![0]));
        assert_eq!((bins[0][1].mean, bins[0][1].p50), (3.0, 3.0));
    }

    #[test]
    fn bins_of_fewer_than_ten_flows_are_counted_and_left_out() {
        let flows: Vec<(u64, f64)> = [64; 10].into_iter().chain([1500; 9]).map(|size| (size, 1.0)).collect();
        let (bins, few) = alike(vec![BySize::of(&flows)]);
        assert_eq!((ends(&bins[0]), few), (vec![(64, 64, 10)], vec![9]));
    }

    #[test]
    fn many_sizes_are_binned_for_all_points_alike() {
        let many = BySize::of(&(1..=40).map(|size| (size * 100, 1.0)).collect::<Vec<_>>());
        let few = BySize::of(&[(150, 1.0); 10]);
        let (bins, left_out) = alike(vec![many, few]);
        assert_eq!(ends(&bins[0]), [(1000, 2000, 10), (2000, 5000, 20)]);
        assert_eq!(ends(&bins[1]), [(100, 200, 10)]);
        assert_eq!(left_out, [10, 0]);
    }

    #[test]
    fn a_size_lies_within_its_bin() {
        for size in [1, 2, 3, 5, 6, 10, 11, 999, 1_000_001, u64::MAX / 2, u64::MAX] {
            let end = bin_end(size);
            assert!(bin_start(end) < size && size <= end, "{size}: {} to {end}", bin_start(end));
        }
        assert_eq!(bin_end(0), 1);
    }
}
