//! One entropy value after the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Choice, Digits, Facts, NicTags, PathSet, Places, SelectorConfig, Signals, SwitchContext};
use super::random::Draw;

/// At a NIC: the next of the scheme's `entropy_values`, starting at a random one for each flow, so that a new decision is always another value (for
/// which switches may still choose the same ports).
/// FlowBender's V, Kabbani et al., CoNEXT'14.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NextEntropy {}

impl SelectorConfig for NextEntropy {
    type State = Draw;

    fn state(&self, _: SwitchContext) -> Draw {
        Draw
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::Nic(NicTags::EntropyInTurn),
            choice: Choice::InTurn,
            decides_control: false,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::Minimal,
        }
    }
}
