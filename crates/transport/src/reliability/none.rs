//! No acknowledgement at all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No ACKs: what has been sent counts as delivered, and packets are taken in any order. Only for fabrics that lose nothing, and for
/// congestion controls that need no ACKs (`none`, `qcn`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}
