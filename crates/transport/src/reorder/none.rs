//! Nothing is held.

use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ReorderConfig;
/// Packets go to the transport as they arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl ReorderConfig for None {
    const HOLDS: bool = false;
    const HAS_CELLS: bool = false;

    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn room(&self) -> u64 {
        0
    }

    fn timeout(&self, _: Option<Time>) -> Option<Time> {
        Option::None
    }

    fn learn(&self, _: Option<Time>, _: Time) -> Option<Time> {
        Option::None
    }
}
