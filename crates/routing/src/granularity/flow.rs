//! Once per flow.

use netloom_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::Runs;

/// One decision per flow, kept until the flow ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flow {}

impl Runs for Flow {
    type Run = ();
    type Shared = ();

    fn open(&self) {}

    fn continues(&self, (): &mut (), _: Time, _: u32) -> bool {
        true
    }

    fn is_settled(&self, (): &(), _: u32) -> bool {
        true
    }
}
