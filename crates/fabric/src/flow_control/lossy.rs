//! No flow control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No flow control: an output queue with `fabric.buffer` drops what does not fit, one without grows as it must.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lossy {}
