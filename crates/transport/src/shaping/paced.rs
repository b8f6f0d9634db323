//! A window spread over a round trip, or a rate of its own for every flow.

use netloom_units::{Invalid, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Facts, ShapingConfig, Spacing};
/// A flow spaces its packets by round-trip time × size / window instead of sending bursts (Aggarwal, Savage, Anderson, INFOCOM'00). The
/// round-trip time is the smoothed one of RFC 6298; before the first ACK, that of the idle path. Needs a window, unless there is a `rate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Paced {
    /// Rate at which a flow's packets leave at most, in bits on the wire, whatever its window: a pacer beside the link, as the sources of csg-htsim's RoCE have. Absent: the window over the
    /// round trip. Not with a congestion control that sets rates itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

impl ShapingConfig for Paced {
    #[inline(always)]
    fn facts(&self) -> Facts<'_> {
        Facts { spacing: self.rate.map_or(Spacing::RoundTrip, Spacing::Rate), stretching: None }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("rate", self.rate.unwrap_or(Rate(1)), Rate(1))
    }

    fn fit(&mut self, _: Option<Time>) -> Result<(), Invalid> {
        Ok(())
    }
}
