//! No spacing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may leave leaves at once, back to back at the NIC's rate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}
