//! Mean and percentiles of a set of values.

use serde::{Deserialize, Serialize};

/// Mean, percentiles and maximum of a set of values.
///
/// Percentiles interpolate linearly between the two closest ranks (type 7 of Hyndman and Fan, The American
/// Statistician 1996): the p-th percentile of n sorted values is the value at position (n − 1)·p/100, counted from
/// 0. This is the default of numpy and pandas, and DuckDB's `quantile_cont`, so tables and summary agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Largest value.
    pub max: f64,
    /// Mean of the values strictly above the 99th percentile, which the plots of the Flowcut artefact call "p99";
    /// absent where no value is above it.
    pub mean_above_p99: Option<f64>,
}

impl Statistics {
    /// Statistics of values in any order; `None` if there are none.
    ///
    /// The result does not depend on the order.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let mut ascending = Ascending::new(values.len() as u64);
        values.into_iter().for_each(|value| ascending.see(value));
        ascending.statistics()
    }
}

/// Makes [`Statistics`] of values that come by in ascending order. How many they are is known before, so none of them has to be kept.
#[derive(Debug, Default)]
pub(crate) struct Ascending {
    count: u64,
    /// How many have come.
    seen: u64,
    sum: f64,
    max: f64,
    p50: Percentile,
    p99: Percentile,
    p99_9: Percentile,
    above_p99: u64,
    sum_above_p99: f64,
}

impl Ascending {
    /// None of this many has come yet.
    pub(crate) fn new(count: u64) -> Self {
        let [p50, p99, p99_9] = [50.0, 99.0, 99.9].map(|percent| Percentile::new(count, percent));
        let (sum, max, sum_above_p99) = (0.0, 0.0, 0.0);
        Ascending { count, seen: 0, sum, max, p50, p99, p99_9, above_p99: 0, sum_above_p99 }
    }

    /// The next value, which is none below the last.
    pub(crate) fn see(&mut self, value: f64) {
        for percentile in [&mut self.p50, &mut self.p99, &mut self.p99_9] {
            percentile.see(self.seen, value);
        }
        // What comes by up to there is not above it.
        if self.seen > self.p99.below && value > self.p99.value {
            self.above_p99 += 1;
            self.sum_above_p99 += value;
        }
        self.seen += 1;
        self.sum += value;
        self.max = value;
    }

    /// What they come to when all have come; `None` if there are none.
    pub(crate) fn statistics(&self) -> Option<Statistics> {
        debug_assert_eq!(self.seen, self.count);
        (self.count > 0).then(|| Statistics {
            count: self.count,
            mean: self.sum / self.count as f64,
            p50: self.p50.value,
            p99: self.p99.value,
            p99_9: self.p99_9.value,
            max: self.max,
            mean_above_p99: (self.above_p99 > 0).then(|| self.sum_above_p99 / self.above_p99 as f64),
        })
    }
}

/// A percentile of values that come by.
#[derive(Debug, Default)]
struct Percentile {
    /// Its position, rounded down.
    below: u64,
    /// How far it lies towards the next.
    share: f64,
    value: f64,
}

impl Percentile {
    /// That of this many values.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to `count`, as percentages are from 0 to 100"
    )]
    fn new(count: u64, percent: f64) -> Self {
        let position = count.saturating_sub(1) as f64 * (percent / 100.0);
        Percentile { below: position.floor() as u64, share: position - position.floor(), value: 0.0 }
    }

    fn see(&mut self, index: u64, value: f64) {
        if index == self.below {
            self.value = value;
        } else if index == self.below + 1 {
            self.value += (value - self.value) * self.share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_those_of_numpy() {
        // numpy.percentile([15, 20, 35, 40, 50], [50, 99, 99.9]) = 35, 49.6, 49.96
        let statistics = Statistics::of(vec![40.0, 15.0, 50.0, 20.0, 35.0]).unwrap();
        assert_eq!(
            (statistics.count, statistics.mean, statistics.p50, statistics.max),
            (5, 32.0, 35.0, 50.0)
        );
        assert!((statistics.p99 - 49.6).abs() < 1e-9 && (statistics.p99_9 - 49.96).abs() < 1e-9);
        assert_eq!(statistics.mean_above_p99, Some(50.0));
    }

    #[test]
    fn nothing_has_no_statistics_and_equal_values_no_tail() {
        assert_eq!(Statistics::of(vec![]), None);
        assert_eq!(Statistics::of(vec![3.0; 10]).unwrap().mean_above_p99, None);
    }

    /// The textbook definition in rational arithmetic: at least a share p of the values lies at or below the result,
    /// and it is the straight line between the neighbours in rank.
    fn naive(values: &[u32], per_mille: u64) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort();
        let scaled = (sorted.len() as u64 - 1) * per_mille;
        let (rank, rest) = ((scaled / 1000) as usize, scaled % 1000);
        let next = sorted.get(rank + 1).copied().unwrap_or(sorted[rank]);
        (u64::from(sorted[rank]) * (1000 - rest) + u64::from(next) * rest) as f64 / 1000.0
    }

    proptest! {
        #[test]
        fn percentiles_equal_the_naive_definition(values in prop::collection::vec(0..1_000_000u32, 1..400)) {
            let statistics = Statistics::of(values.iter().map(|&v| f64::from(v)).collect()).unwrap();
            for (found, per_mille) in [(statistics.p50, 500), (statistics.p99, 990), (statistics.p99_9, 999)] {
                prop_assert!((found - naive(&values, per_mille)).abs() < 1e-3);
            }
            let above: Vec<u32> = values.iter().copied().filter(|&v| f64::from(v) > statistics.p99).collect();
            let tail = above.iter().map(|&v| u64::from(v)).sum::<u64>() as f64 / above.len() as f64;
            prop_assert!(statistics.mean_above_p99.map_or(above.is_empty(), |mean| (mean - tail).abs() < 1e-3));
        }
    }
}
