//! Parameters of the rate estimators at ports.

use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A discounting rate estimator (DRE) at every port of a switch: a register that grows by the bytes of every packet sent, and after every
/// `period` loses the share `discount` of what it holds. It estimates the utilisation of the last `period` / `discount` or so. Alizadeh et al.,
/// CONGA, SIGCOMM'14, section 3.2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Estimator {
    /// Time between two losses.
    pub period: Time,
    /// What is lost; above 0, at most 1.
    pub discount: f64,
}

impl Default for Estimator {
    /// A time constant of 160 µs, as in the paper, which prints only the quotient.
    fn default() -> Self {
        Estimator { period: Time::from_us(16), discount: 0.1 }
    }
}

impl Estimator {
    /// Refuses parameter values without meaning.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.period > Time::ZERO, "estimator.period", "more than 0", self.period)?;
        let is_share = self.discount > 0.0 && self.discount <= 1.0;
        Invalid::unless(is_share, "estimator.discount", "more than 0, at most 1", self.discount)
    }
}
