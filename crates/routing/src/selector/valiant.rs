//! Valiant routing: over a random intermediate switch, minimal on both sides of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Choice, Digits, Facts, PathSet, Places, SelectorConfig, Signals, SwitchContext};
use super::random::Draw;

/// Over a random intermediate switch, independent of congestion. The first switch draws it for each decision. Packets take minimal paths to
/// it and from there to their destination, chosen by hash where there are several (with placement `switch`, at random by each switch).
/// Spreads any traffic evenly and doubles the mean path length in the limit. Valiant and Brebner, STOC'81; Dragonfly: Kim et al., ISCA'08.
/// On trees use the preset `random-nca`.
///
/// Packets carry the number of their intermediate switch as their entropy value. ACKs keep to minimal paths; windows and slowdowns refer to
/// the minimal path.
///
/// With placement `switch`, the first switch chooses the intermediate switch, and later ones choose among the ports towards it, for every
/// packet, flowlet or flowcut. A path may pass a switch twice; each pass is counted separately, and acknowledgements of flowcuts go back
/// along all of it.
///
/// Refused on trees: use the preset `random-nca` there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Valiant {
    /// What is drawn: a `switch` with hosts, other than the source's and the destination's; or a `group` of the topology (a
    /// Dragonfly's), other than those two, entered on a minimal path to one of its switches; between switches of one group, another
    /// switch of it.
    pub intermediate: Intermediate,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Intermediate {
    /// A switch with hosts.
    Switch,
    /// A group of switches.
    Group,
}

impl Default for Valiant {
    fn default() -> Self {
        Valiant { intermediate: Intermediate::Switch }
    }
}

/// The intermediate switch is drawn.
impl SelectorConfig for Valiant {
    type State = Draw;

    fn state(&self, _: SwitchContext) -> Draw {
        Draw
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::Switches,
            choice: Choice::Adaptive,
            decides_control: false,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::Detours(self),
        }
    }
}
