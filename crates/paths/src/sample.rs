//! Random pairs and quadruples of routers, and what a sample says about the whole.

use netloom_units::random::Analysis;
use rand::RngExt;

/// Two-sided 95% quantile of the normal distribution.
const Z95: f64 = 1.959_963_985;

/// Ordered pairs of distinct endpoints: all of them if there are at most `samples`, else that many drawn uniformly
/// with replacement.
pub fn pairs(endpoints: &[u32], samples: usize, seed: u64) -> Sample<2> {
    let n = endpoints.len();
    if n * n.saturating_sub(1) <= samples {
        let all = endpoints.iter().flat_map(|&s| endpoints.iter().map(move |&t| [s, t]));
        return Sample { routers: all.filter(|[s, t]| s != t).collect(), exhaustive: true };
    }
    distinct(endpoints, samples, seed)
}

/// Quadruples of distinct endpoints, drawn uniformly; none if there are fewer than four endpoints.
pub fn quadruples(endpoints: &[u32], samples: usize, seed: u64) -> Sample<4> {
    distinct(endpoints, samples, seed)
}

fn distinct<const K: usize>(endpoints: &[u32], samples: usize, seed: u64) -> Sample<K> {
    let mut rng = (if K == 2 { Analysis::Pairs } else { Analysis::Quadruples }).stream(seed);
    let mut routers = Vec::new();
    while endpoints.len() >= K && routers.len() < samples {
        let drawn: [u32; K] = std::array::from_fn(|_| endpoints[rng.random_range(0..endpoints.len())]);
        if (1..K).all(|i| !drawn[..i].contains(&drawn[i])) {
            routers.push(drawn);
        }
    }
    Sample { routers, exhaustive: false }
}

/// Groups of K routers to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample<const K: usize> {
    /// The groups.
    pub routers: Vec<[u32; K]>,
    /// Whether these are all groups there are, so that nothing is left to chance.
    pub exhaustive: bool,
}

/// A number estimated from a sample, with its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Measured values, sorted.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    sorted: Vec<f64>,
    exhaustive: bool,
}

impl Distribution {
    /// Takes the values of a sample; `exhaustive` if it covers everything.
    pub fn new(mut values: Vec<f64>, exhaustive: bool) -> Self {
        values.sort_by(f64::total_cmp);
        Distribution { sorted: values, exhaustive }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The values in ascending order.
    pub fn values(&self) -> &[f64] {
        &self.sorted
    }

    /// The mean, with the interval of the normal approximation; NaN without values.
    pub fn mean(&self) -> Estimate {
        let n = self.sorted.len() as f64;
        let mean = self.sorted.iter().sum::<f64>() / n;
        let variance = self.sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        let half = if self.exhaustive { 0.0 } else { Z95 * (variance / n).sqrt() };
        Estimate { value: mean, low: mean - half, high: mean + half }
    }

    /// The value that a share `q` of all values does not exceed (nearest rank), with the interval between the order
    /// statistics that a binomial rank makes likely; NaN without values.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 on; saturates, and is cut to the number of values"
    )]
    pub fn quantile(&self, q: f64) -> Estimate {
        let n = self.sorted.len() as f64;
        let at = |rank: f64| {
            let index = (rank.ceil().max(1.0) as usize).min(self.sorted.len());
            self.sorted.get(index.wrapping_sub(1)).copied().unwrap_or(f64::NAN)
        };
        let half = if self.exhaustive { 0.0 } else { Z95 * (n * q * (1.0 - q)).sqrt() };
        Estimate { value: at(n * q), low: at(n * q - half), high: at(n * q + half) }
    }

    /// Share of values for which the condition holds.
    pub fn share(&self, condition: impl Fn(f64) -> bool) -> f64 {
        self.sorted.iter().filter(|&&v| condition(v)).count() as f64 / self.sorted.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_populations_are_taken_whole() {
        let sample = pairs(&[3, 5, 9], 6, 1);
        assert!(sample.exhaustive);
        assert_eq!(sample.routers, [[3, 5], [3, 9], [5, 3], [5, 9], [9, 3], [9, 5]]);
        assert!(!pairs(&[3, 5, 9], 5, 1).exhaustive);
        assert_eq!(quadruples(&[1, 2, 3], 10, 1).routers, Vec::<[u32; 4]>::new());
    }

    #[test]
    fn drawn_groups_are_distinct_and_repeatable() {
        let ends: Vec<u32> = (0..10).collect();
        let sample = quadruples(&ends, 500, 7);
        assert_eq!(sample.routers.len(), 500);
        for [a, b, c, d] in &sample.routers {
            assert!(a != b && a != c && a != d && b != c && b != d && c != d);
        }
        assert_eq!(sample, quadruples(&ends, 500, 7));
        assert_ne!(sample, quadruples(&ends, 500, 8));
    }

    #[test]
    fn quantiles_and_intervals() {
        let sampled = Distribution::new((1..=1000).rev().map(f64::from).collect(), false);
        assert_eq!(sampled.quantile(0.01).value, 10.0);
        assert_eq!(sampled.quantile(0.999).value, 999.0);
        assert_eq!(sampled.quantile(1.0).value, 1000.0);
        // 1000 × 1% has a standard deviation of 3.1 ranks.
        assert_eq!((sampled.quantile(0.01).low, sampled.quantile(0.01).high), (4.0, 17.0));
        let mean = sampled.mean();
        assert_eq!(mean.value, 500.5);
        assert!((mean.high - mean.value - 17.9).abs() < 0.1);
        let whole = Distribution::new(vec![1.0, 3.0], true);
        assert_eq!(whole.mean(), Estimate { value: 2.0, low: 2.0, high: 2.0 });
        assert_eq!(whole.share(|v| v > 2.0), 0.5);
    }
}
