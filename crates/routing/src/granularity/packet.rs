//! Once per packet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One decision per packet. Packets of a flow overtake each other wherever paths differ in delay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Packet {}
