//! A cumulative distribution of sizes, given by points.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkloadError;

/// What a draw between two points of a distribution gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// The size on the straight line between the points, as the generators of HPCC and ConWeave draw it.
    #[default]
    Interpolate,
    /// The size of the lower point, as in netbench's "lower bound" distributions.
    Lower,
    /// The size of the upper point, as in netbench's "upper bound" distributions.
    Upper,
}

/// A distribution of sizes, scaled and cut off.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cdf {
    /// (bytes, share of sizes that are at most so large); both ascending, the share from 0 to 1.
    points: Vec<(f64, f64)>,
    sampling: Sampling,
    /// Larger sizes become this one.
    max: f64,
}

/// Sizes beyond 2⁵³ bytes are not exact as floats, and never meant.
const LARGEST: f64 = (1u64 << 53) as f64;

impl Cdf {
    /// Reads lines of `BYTES SHARE`, separated by spaces or a comma, with the share up to 1 or up to 100 (percent).
    /// Empty lines and lines that start with `#` are skipped. If the first share is above zero, that share of the
    /// sizes equals the first size.
    pub(super) fn parse(
        text: &str,
        file: &Path,
        sampling: Sampling,
        scale: f64,
        max: f64,
    ) -> Result<Self, WorkloadError> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut last_line = 1;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fail = |problem: String| Err(WorkloadError::line(file, number, problem));
            let fields: Vec<&str> =
                line.split(|c: char| c == ',' || c.is_whitespace()).filter(|f| !f.is_empty()).collect();
            let [Ok(bytes), Ok(share)] = fields.iter().map(|f| f.parse::<f64>()).collect::<Vec<_>>()[..]
            else {
                return fail(format!("expected two numbers, BYTES and SHARE, found \"{line}\""));
            };
            if !(0.0..=LARGEST).contains(&bytes) {
                return fail(format!("expected a size from 0 to 2^53 bytes, found {bytes}"));
            }
            if !(0.0..=100.0).contains(&share) {
                return fail(format!("expected a share from 0 to 1 or 0 to 100 percent, found {share}"));
            }
            let (least_bytes, least_share) = *points.last().unwrap_or(&(bytes, 0.0));
            if bytes < least_bytes || share < least_share {
                return fail(format!(
                    "expected at least {least_bytes} {least_share} as before, found {line}"
                ));
            }
            if points.is_empty() && share > 0.0 {
                points.push((bytes, 0.0));
            }
            points.push((bytes, share));
            last_line = number;
        }
        let &(largest, whole) = points
            .last()
            .ok_or_else(|| WorkloadError::file(file, "expected lines of BYTES SHARE, found none"))?;
        if largest < 1.0 {
            return Err(WorkloadError::line(file, last_line, "expected a largest size of at least one byte"));
        }
        // Tables are printed with few digits, but their end is always exact.
        if whole != 1.0 && whole != 100.0 {
            let problem = format!("expected a last share of 1 or 100 (percent), found {whole}");
            return Err(WorkloadError::line(file, last_line, problem));
        }
        for (bytes, share) in &mut points {
            *bytes *= scale;
            *share /= whole;
        }
        Ok(Cdf { points, sampling, max })
    }

    /// The size, in bytes, below which a share `u` (from 0, less than 1) of the sizes lies.
    pub(super) fn quantile(&self, u: f64) -> f64 {
        // The first share is 0 and the last is 1, so `above` has a neighbour below.
        let above = self.points.partition_point(|&(_, share)| share <= u);
        let ((low, from), (high, to)) = (self.points[above - 1], self.points[above]);
        let size = match self.sampling {
            Sampling::Interpolate => low + (high - low) * ((u - from) / (to - from)),
            Sampling::Lower => low,
            Sampling::Upper => high,
        };
        size.min(self.max)
    }

    /// The largest size in bytes.
    pub(super) fn largest(&self) -> f64 {
        self.points.last().map_or(0.0, |&(largest, _)| largest.min(self.max))
    }

    /// The mean size in bytes.
    pub(super) fn mean(&self) -> f64 {
        let segment = |pair: &[(f64, f64)]| {
            let ((low, from), (high, to)) = (pair[0], pair[1]);
            let mean = match self.sampling {
                Sampling::Lower => low.min(self.max),
                Sampling::Upper => high.min(self.max),
                Sampling::Interpolate if high <= self.max => (low + high) / 2.0,
                Sampling::Interpolate if low >= self.max => self.max,
                Sampling::Interpolate => {
                    let below = (self.max - low) / (high - low);
                    below * (low + self.max) / 2.0 + (1.0 - below) * self.max
                }
            };
            (to - from) * mean
        };
        self.points.windows(2).map(segment).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cdf(text: &str, sampling: Sampling, scale: f64, max: f64) -> Cdf {
        Cdf::parse(text, Path::new("sizes.cdf"), sampling, scale, max).unwrap()
    }

    #[test]
    fn sizes_lie_on_the_line_between_the_points() {
        let cdf = cdf("# sizes\n1000 0\n\n2000,0.5\n4000 1\n", Sampling::Interpolate, 1.0, f64::INFINITY);
        assert_eq!([0.0, 0.25, 0.5, 0.75].map(|u| cdf.quantile(u)), [1000.0, 1500.0, 2000.0, 3000.0]);
        assert_eq!(cdf.mean(), 2250.0);
    }

    #[test]
    fn a_first_share_above_zero_is_a_share_of_the_first_size() {
        let cdf = cdf("100 20\n300 100\n", Sampling::Interpolate, 1.0, f64::INFINITY);
        assert_eq!([0.0, 0.19, 0.6].map(|u| cdf.quantile(u)), [100.0, 100.0, 200.0]);
        assert!((cdf.mean() - 180.0).abs() < 1e-9);
    }

    #[test]
    fn mistakes_name_file_and_line() {
        for (text, expected) in [
            ("10 0\n20\n", "sizes.cdf:2: expected two numbers"),
            ("10 0\n20 0.5 1\n", "sizes.cdf:2: expected two numbers"),
            ("10 0\nx 1\n", "sizes.cdf:2: expected two numbers"),
            ("10 0\n20 NaN\n", "sizes.cdf:2: expected a share"),
            ("-1 0\n20 1\n", "sizes.cdf:1: expected a size"),
            ("10 0\n20 101\n", "sizes.cdf:2: expected a share"),
            ("10 0\n9 1\n", "sizes.cdf:2: expected at least 10 0"),
            ("10 0.5\n20 0.4\n30 1\n", "sizes.cdf:2: expected at least 10 0.5"),
            ("10 0\n20 0.9\n", "sizes.cdf:2: expected a last share of 1 or 100 (percent), found 0.9"),
            ("0 1\n", "sizes.cdf:1: expected a largest size of at least one byte"),
            ("# nothing\n", "sizes.cdf: expected lines of BYTES SHARE"),
        ] {
            let error =
                Cdf::parse(text, Path::new("sizes.cdf"), Sampling::Lower, 1.0, 1e9).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    proptest! {
        /// The mean over evenly spaced quantiles approaches the mean, whatever is scaled and cut.
        #[test]
        fn the_mean_is_that_of_the_quantiles(
            mut sizes in prop::collection::vec(1..10_000u32, 2..8),
            mut shares in prop::collection::vec(1..1000u32, 8),
            sampling in prop_oneof![Just(Sampling::Interpolate), Just(Sampling::Lower), Just(Sampling::Upper)],
            scale in 0.1..3.0,
            max in 100.0..20_000.0,
        ) {
            sizes.sort();
            shares.sort();
            shares.truncate(sizes.len());
            let whole = f64::from(*shares.last().unwrap());
            let lines = sizes.iter().zip(&shares).map(|(size, &share)| format!("{size} {}\n", f64::from(share) / whole));
            let cdf = cdf(&lines.collect::<String>(), sampling, scale, max);
            let steps = 100_000;
            let sum: f64 = (0..steps).map(|i| cdf.quantile((f64::from(i) + 0.5) / f64::from(steps))).sum();
            prop_assert!((sum / f64::from(steps) / cdf.mean() - 1.0).abs() < 2e-3, "{} {}", sum / 1e5, cdf.mean());
        }
    }
}
