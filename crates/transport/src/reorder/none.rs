//! Nothing is held.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets go to the transport as they come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}
