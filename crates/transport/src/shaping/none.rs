//! No spacing.

use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Facts, ShapingConfig, Spacing};
/// Packets leave as soon as the window or rate allows, back to back at the NIC's rate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl ShapingConfig for None {
    #[inline(always)]
    fn facts(&self) -> Facts<'_> {
        Facts { spacing: Spacing::None, stretching: Option::None }
    }

    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn fit(&mut self, _: Option<Time>) -> Result<(), Invalid> {
        Ok(())
    }
}
