//! How sure a mean over seeds is.

use serde::{Deserialize, Serialize};

/// A mean over seeds with its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Mean over the seeds.
    pub mean: f64,
    /// Half the width of the 95% interval (Student's t, seeds as independent draws); `None` for a single seed.
    pub plus_minus: Option<f64>,
}

impl Estimate {
    /// The estimate from one value per seed; `None` if there is no value.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let plus_minus =
            (values.len() > 1).then(|| student_t(values.len() - 1) * (squares / (n - 1.0) / n).sqrt());
        Some(Estimate { mean, plus_minus })
    }

    /// The same in another unit.
    pub fn scaled(self, factor: f64) -> Self {
        Estimate { mean: self.mean * factor, plus_minus: self.plus_minus.map(|half| half * factor.abs()) }
    }
}

/// The 97.5% quantile of Student's t distribution with this many degrees of freedom.
fn student_t(freedom: usize) -> f64 {
    /// For one to ten degrees of freedom, where the expansion is not good enough.
    const FEW: [f64; 10] = [
        12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157,
        2.228_139,
    ];
    if let Some(t) = freedom.checked_sub(1).and_then(|i| FEW.get(i)) {
        return *t;
    }
    // Abramowitz and Stegun, 26.7.5: an expansion around the normal quantile.
    let (z, v) = (1.959_963_984_540_054_f64, freedom as f64);
    let [z3, z5, z7, z9] = [3, 5, 7, 9].map(|power| z.powi(power));
    let first = (z3 + z) / 4.0;
    let second = (5.0 * z5 + 16.0 * z3 + 3.0 * z) / 96.0;
    let third = (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / 384.0;
    let fourth = (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * z) / 92_160.0;
    z + first / v + second / v.powi(2) + third / v.powi(3) + fourth / v.powi(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, t) in
            [(1, 12.7062), (5, 2.5706), (10, 2.2281), (11, 2.2010), (20, 2.0860), (30, 2.0423), (120, 1.9799)]
        {
            assert!((student_t(freedom) - t).abs() < 1e-4, "{freedom}: {}", student_t(freedom));
        }
        assert!((1..500).all(|freedom| student_t(freedom) > student_t(freedom + 1)));
    }

    #[test]
    fn an_interval_needs_two_seeds() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[3.0]), Some(Estimate { mean: 3.0, plus_minus: None }));
        // Mean 2, standard deviation 1, t(2) = 4.3027: 4.3027 / √3.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(estimate.mean, 2.0);
        assert!((estimate.plus_minus.unwrap() - 2.484_138).abs() < 1e-6);
        assert_eq!(estimate.scaled(-2.0).plus_minus, estimate.plus_minus.map(|half| 2.0 * half));
    }
}
