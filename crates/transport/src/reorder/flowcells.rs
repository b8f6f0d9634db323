//! Presto's receiver: flowcells wait for each other.

use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ReorderConfig;
/// Presto's receive offload. Packets of a flowcell are delivered as they arrive, since a hole within a cell is a loss; those of a later
/// cell wait until the cells before have arrived, or for `alpha` times as long as cells have recently waited. He et al., SIGCOMM'15,
/// section 3.3. For flowcells at the NIC over path labels in turn, which number the cells. The time is a moving average with a gain of 1/8,
/// which the paper leaves open.
///
/// Refused without flowcells at the NIC over path labels in turn (the preset `presto`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flowcells {
    /// How many times that average a cell waits.
    pub alpha: u32,
    /// How long it waits while none has waited before.
    pub initial: Time,
}

/// Largest `alpha`.
const MOST: u32 = 100_000;

impl Default for Flowcells {
    /// α = 2, as in the paper; the first wait is of no source.
    fn default() -> Self {
        Flowcells { alpha: 2, initial: Time::from_us(100) }
    }
}

impl ReorderConfig for Flowcells {
    const HOLDS: bool = true;
    const HAS_CELLS: bool = true;

    fn check(&self) -> Result<(), Invalid> {
        let fits = (1..=MOST).contains(&self.alpha);
        Invalid::unless(fits, "alpha", format!("1 to {MOST}"), self.alpha)?;
        Invalid::unless(self.initial > Time::ZERO, "initial", "more than 0", self.initial)
    }

    fn room(&self) -> u64 {
        u64::MAX
    }

    fn timeout(&self, average: Option<Time>) -> Option<Time> {
        Some(average.map_or(self.initial, |average| average * u64::from(self.alpha)).max(Time(1)))
    }

    fn learn(&self, average: Option<Time>, wait: Time) -> Option<Time> {
        Some(average.map_or(wait, |average| Time(average.0 - average.0 / 8 + wait.0 / 8)))
    }
}
