//! Whether a comparison is certain over the seeds of a study.
//!
//! A comparison is about the difference of its sides. Its 95% interval is that of the delete-one jackknife with Student's t: the difference is
//! computed again without each of the seeds in turn, in all points at once. Points that share their seeds are thereby compared seed by seed,
//! and whatever is computed from the means (ratios, the least along an axis) has an interval. For a difference of two means it is the
//! ordinary interval of paired differences (Efron and Tibshirani, *An Introduction to the Bootstrap*, chapter 11).

use netloom_record::Estimate;

use super::expression::{Binding, Counting, ExpressionError, Metrics, Sample};

/// A share of the larger side below which an interval is rounding: means of equal numbers differ in the last digit.
const ROUNDING: f64 = 1e-12;

/// Both sides of a comparison, with half of the interval of their difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides {
    left: f64,
    right: f64,
    /// Half of the 95% interval of left − right; zero with one seed and where the seeds agree.
    half: f64,
}

impl Sides {
    /// Computes both sides; with several seeds, without each of them, too.
    pub(super) fn of(
        metrics: &dyn Metrics,
        sides: impl Fn(&dyn Metrics) -> Result<(f64, f64), ExpressionError>,
    ) -> Result<Self, ExpressionError> {
        let (left, right) = sides(metrics)?;
        let difference = |metrics: &dyn Metrics| sides(metrics).map(|(left, right)| left - right);
        let half = half_interval(metrics, left - right, difference);
        let is_rounding = half <= ROUNDING * (left.abs() + right.abs());
        Ok(Sides { left, right, half: if is_rounding { 0.0 } else { half } })
    }

    /// What the operator says of the sides; `None` if the interval allows both answers.
    pub(super) fn compare(self, operator: &str) -> Option<bool> {
        let Sides { left, right, half } = self;
        if half == 0.0 {
            return Some(holds(operator, left, right));
        }
        let difference = left - right;
        if difference + half < 0.0 {
            Some(matches!(operator, "<" | "<=" | "!="))
        } else if difference - half > 0.0 {
            Some(matches!(operator, ">" | ">=" | "!="))
        } else {
            None
        }
    }

    /// The difference and half of its interval, where there is one.
    pub(super) fn difference(self) -> Option<(f64, f64)> {
        (self.half > 0.0).then_some((self.left - self.right, self.half))
    }
}

/// What an operator says of two numbers.
pub(super) fn holds(operator: &str, left: f64, right: f64) -> bool {
    match operator {
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        ">=" => left >= right,
        "==" => left == right,
        _ => left != right,
    }
}

/// A number with its 95% interval; `None` for the interval of a single seed.
pub(super) fn estimate(
    metrics: &dyn Metrics,
    number: impl Fn(&dyn Metrics) -> Result<f64, ExpressionError>,
) -> Result<Estimate, ExpressionError> {
    let mean = number(metrics)?;
    let half = half_interval(metrics, mean, &number);
    let half = if half <= ROUNDING * mean.abs() { 0.0 } else { half };
    Ok(Estimate { mean, plus_minus: (metrics.seeds() > 1).then_some(half) })
}

/// Half of the interval of a number that is `whole` with all seeds; infinite if it has no value without one of them.
fn half_interval(
    metrics: &dyn Metrics,
    whole: f64,
    number: impl Fn(&dyn Metrics) -> Result<f64, ExpressionError>,
) -> f64 {
    let seeds = metrics.seeds();
    if seeds < 2 || metrics.is_outline() {
        return 0.0;
    }
    let n = seeds as f64;
    // The interval of the jackknife is that of the mean of its pseudo-values.
    let pseudo = |seed| Some(n * whole - (n - 1.0) * number(&Without { metrics, seed }).ok()?);
    let pseudo: Option<Vec<f64>> = (0..seeds).map(pseudo).collect();
    pseudo.and_then(|values| Estimate::of(&values)?.plus_minus).unwrap_or(f64::INFINITY)
}

/// Metrics without one of the seeds.
struct Without<'a> {
    metrics: &'a dyn Metrics,
    /// Which one, from 0.
    seed: usize,
}

impl Metrics for Without<'_> {
    fn samples(&self, metric: &str, labels: &[String], bound: &[Binding<'_>]) -> Result<Vec<Sample>, String> {
        let mut samples = self.metrics.samples(metric, labels, bound)?;
        for sample in samples.iter_mut().filter(|sample| sample.runs.len() > 1) {
            if self.seed < sample.runs.len() {
                sample.runs.remove(self.seed);
            }
        }
        Ok(samples)
    }

    fn axis(&self, axis: &str) -> Result<Vec<String>, String> {
        self.metrics.axis(axis)
    }

    fn is_outline(&self) -> bool {
        self.metrics.is_outline()
    }

    fn seeds(&self) -> usize {
        self.metrics.seeds() - 1
    }

    fn counting(&self) -> Counting {
        self.metrics.counting()
    }
}

/// Metrics under which `count_over` counts in a certain way.
pub(super) struct Counted<'a> {
    pub(super) metrics: &'a dyn Metrics,
    pub(super) counting: Counting,
}

impl Metrics for Counted<'_> {
    fn samples(&self, metric: &str, labels: &[String], bound: &[Binding<'_>]) -> Result<Vec<Sample>, String> {
        self.metrics.samples(metric, labels, bound)
    }

    fn axis(&self, axis: &str) -> Result<Vec<String>, String> {
        self.metrics.axis(axis)
    }

    fn is_outline(&self) -> bool {
        self.metrics.is_outline()
    }

    fn seeds(&self) -> usize {
        self.metrics.seeds()
    }

    fn counting(&self) -> Counting {
        self.counting
    }
}
