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
        let max = *values.last()?;
        let p99 = percentile(&values, 99.0);
        let above = &values[values.partition_point(|&value| value <= p99)..];
        Some(Statistics {
            count: values.len() as u64,
            mean: mean(&values)?,
            p50: percentile(&values, 50.0),
            p99,
            p99_9: percentile(&values, 99.9),
            max,
            mean_above_p99: mean(above),
        })
    }
}

/// Percentile of sorted values, at least one.
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let position = (sorted.len() - 1) as f64 * (percent / 100.0);
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// The mean of `count` values that are not negative, of which those above zero are given; the same as that of [`Statistics::of`] all of them.
pub(crate) fn mean_with_zeros(mut above_zero: Vec<f64>, count: u64) -> Option<f64> {
    above_zero.sort_unstable_by(f64::total_cmp);
    (count > 0).then(|| above_zero.iter().fold(0.0, |sum, value| sum + value) / count as f64)
}

fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
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
        fn zeros_need_not_be_kept_for_a_mean(values in prop::collection::vec(1e-9..1.0f64, 0..50), zeros in 0..50u64) {
            let all = values.iter().copied().chain((0..zeros).map(|_| 0.0)).collect();
            let count = zeros + values.len() as u64;
            let mean = Statistics::of(all).map(|statistics| statistics.mean);
            prop_assert_eq!(mean_with_zeros(values, count).map(f64::to_bits), mean.map(f64::to_bits));
        }

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
