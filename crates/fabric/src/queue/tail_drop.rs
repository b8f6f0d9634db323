//! A full queue drops what comes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A data packet that finds `fabric.buffer` bytes waiting is dropped; control packets always fit. In a lossless fabric nothing is dropped:
/// the packet waits at its input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TailDrop {}
