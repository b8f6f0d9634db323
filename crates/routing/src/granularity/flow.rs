//! Once per flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One decision per flow, kept until the flow ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flow {}
