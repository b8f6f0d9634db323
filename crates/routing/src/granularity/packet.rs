//! Once per packet.

use netloom_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::Runs;

/// One decision per packet. Packets of a flow overtake each other wherever paths differ in delay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Packet {}

impl Runs for Packet {
    type Run = ();
    type Shared = ();

    fn open(&self) {}

    fn continues(&self, (): &mut (), _: Time, _: u32) -> bool {
        false
    }
}
