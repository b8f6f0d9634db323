//! One entropy value after the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Facts, Kindred, Place};
use super::random::Draw;

/// At a NIC: the next of the scheme's `entropy_values`, from a random first one per flow, so that a new decision is always another value (with
/// which switches may still choose the same ports). FlowBender's V, Kabbani et al., CoNEXT'14.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NextEntropy {}

impl Kindred for NextEntropy {
    type State = Draw;

    fn state(&self, _: Place) -> Draw {
        Draw
    }

    fn facts(&self) -> Facts {
        Facts { works_at_nic: true, at_nic_only: true, ..Facts::default() }
    }
}
