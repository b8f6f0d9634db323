//! Go-back-N: the receiver takes packets in order only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Go-back-N as in RoCEv2 NICs: an out-of-order packet is discarded and answered with a NACK (one per gap), upon which the sender sends
/// everything again from the missing packet on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GoBackN {}
