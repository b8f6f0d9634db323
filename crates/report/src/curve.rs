//! A distribution as few points as a chart needs.

use serde::Serialize;

/// Points of a curve at most: a chart is no wider than a thousand pixels.
const MOST: usize = 220;

/// An empirical distribution: `share[i]` of the values are at most `value[i]`.
///
/// Every point is a value that occurred with the share it really has: points are left out, none is smoothed or moved. The median and
/// the last of every ten of the tail (90%, 99%, 99.9%, …) are always among them, and so are the least and the largest value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Curve {
    pub(crate) value: Vec<f64>,
    pub(crate) share: Vec<f64>,
}

impl Curve {
    /// The distribution of sorted values; `None` if there are none.
    pub(crate) fn of(sorted: &[f64]) -> Option<Self> {
        if sorted.is_empty() {
            return None;
        }
        let count = sorted.len();
        let mut ranks: Vec<usize> = if count <= MOST { (0..count).collect() } else { ranks(count) };
        ranks.sort_unstable();
        // Of equal values the last rank tells the share; the first value's first rank is where the curve begins.
        let last = |rank: usize| sorted.partition_point(|value| *value <= sorted[rank]) - 1;
        let mut ranks: Vec<usize> = ranks.into_iter().map(last).collect();
        ranks.dedup();
        Some(Curve {
            value: ranks.iter().map(|&rank| round(sorted[rank])).collect(),
            share: ranks.iter().map(|&rank| round((rank + 1) as f64 / count as f64)).collect(),
        })
    }
}

/// Ranks, from 0, that are evenly spread, and ever closer towards the tail.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to `count`, as shares are from 0 to 1"
)]
fn ranks(count: usize) -> Vec<usize> {
    const EVEN: usize = 120;
    let at = |share: f64| (((count as f64 * share).ceil() as usize).max(1) - 1).min(count - 1);
    let mut ranks = vec![0, count - 1];
    ranks.extend((0..=EVEN).map(|i| at(i as f64 / EVEN as f64)));
    let mut tail = 0.1;
    while tail * count as f64 >= 1.0 {
        // Nine steps per power of ten: 90%, 91%, … 99%, 99.1%, …
        ranks.extend((1..10).map(|i| at(1.0 - tail * f64::from(i) / 10.0)));
        ranks.push(at(1.0 - tail));
        tail /= 10.0;
    }
    ranks
}

/// Six digits: more than a chart or its table shows.
#[expect(clippy::cast_possible_truncation, reason = "−324 to 308, as the number is finite and not zero")]
pub(crate) fn round(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    let digits = 5 - number.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits.abs());
    if digits >= 0 { (number * scale).round() / scale } else { (number / scale).round() * scale }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_values_are_all_there() {
        let curve = Curve::of(&[1.0, 2.0, 2.0, 5.0]).unwrap();
        assert_eq!((curve.value, curve.share), (vec![1.0, 2.0, 5.0], vec![0.25, 0.75, 1.0]));
        assert_eq!(Curve::of(&[]), None);
    }

    #[test]
    fn quantiles_of_the_tail_are_exact() {
        let sorted: Vec<f64> = (1..=100_000).map(f64::from).collect();
        let curve = Curve::of(&sorted).unwrap();
        assert!(curve.value.len() <= MOST, "{}", curve.value.len());
        for (share, value) in
            [(0.5, 50_000.0), (0.9, 90_000.0), (0.99, 99_000.0), (0.999, 99_900.0), (0.9999, 99_990.0)]
        {
            let point = curve.value.iter().position(|&found| found == value);
            assert_eq!(point.map(|point| curve.share[point]), Some(share));
        }
    }

    #[test]
    fn numbers_keep_six_digits() {
        assert_eq!(
            [round(123_456.7), round(0.001_234_567_8), round(0.0), round(9.0)],
            [123_457.0, 0.001_234_57, 0.0, 9.0]
        );
        assert_eq!(round(123_456_789.0), 123_457_000.0);
    }

    proptest! {
        /// Whatever the values, every point of the curve is a point of the whole distribution.
        #[test]
        fn every_point_is_true(mut values in prop::collection::vec(1..5000u32, 1..3000)) {
            values.sort_unstable();
            let sorted: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
            let curve = Curve::of(&sorted).unwrap();
            for (value, share) in curve.value.iter().zip(&curve.share) {
                let at_most = sorted.iter().filter(|other| *other <= value).count() as f64 / sorted.len() as f64;
                prop_assert!((at_most - share).abs() < 1e-5);
            }
            prop_assert_eq!(curve.share.last(), Some(&1.0));
            prop_assert_eq!(curve.value.last(), sorted.last());
            prop_assert!(curve.value.first() == sorted.first());
        }
    }
}
