//! No limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No window at all: a flow sends at its NIC's rate until it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}
