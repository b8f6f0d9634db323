//! Selective repeat with an ideal reorder buffer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Selective repeat with an ideal reorder buffer: packets are taken in any order and acknowledged one by one, so reordering costs nothing
/// (the Flowcut evaluation charges it to no scheme). Losses are found by timeout alone, since reordering must not look like
/// loss; then all unacknowledged packets are sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SelectiveRepeat {}
