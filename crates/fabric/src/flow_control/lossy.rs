//! No flow control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No flow control: an output queue with `fabric.buffer` drops or trims what does not fit; without it, queues are unlimited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lossy {}
