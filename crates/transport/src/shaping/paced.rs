//! A window spread over a round trip.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A flow spaces its packets by round-trip time × size / window instead of sending bursts (Aggarwal, Savage, Anderson, INFOCOM'00). The
/// round-trip time is the smoothed one of RFC 6298; before the first ACK, that of the idle path. Needs a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Paced {}
