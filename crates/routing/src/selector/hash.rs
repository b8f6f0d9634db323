//! ECMP: the hash of the header picks the port.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hash of (source, destination, flow, entropy value): every packet of a flow takes the same path. Equal-cost multi-path,
/// RFC 2992; the function and its salt are the fields `hash` and `salt` of the scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hash {}
