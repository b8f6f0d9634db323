//! Dimension-order routing on grids.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hash::ByHash;
use super::kind::{Choice, Digits, Facts, PathSet, Places, SelectorConfig, Signals, SwitchContext};

/// Dimension-order routing on a torus, mesh or HyperX: a packet first goes as far as it must along dimension 1, then along dimension 2, and so on, the
/// short way round every ring (e-cube; Dally and Towles, Principles and Practices of Interconnection Networks, section 8.4). Where both ways
/// round a ring are as short, and among parallel links, the hash of the header chooses.
///
/// Lossless fabrics need two virtual channels at most: a packet takes the second one of a ring once it has crossed the link that closes it, its
/// dateline (Dally and Seitz, IEEE Trans. Computers 1987). Where links are cut, minimal paths leave that order and use a virtual channel per hop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DimensionOrder {}

impl SelectorConfig for DimensionOrder {
    type State = ByHash;

    fn state(&self, _: SwitchContext) -> ByHash {
        ByHash
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::Switches,
            choice: Choice::Hash,
            decides_control: false,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::InOrder,
        }
    }
}
