//! The next in turn.

use netloom_topology::PortId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One candidate after the other. At a switch, one turn for all packets it forwards. At a NIC, path labels in turn from a random
/// first one per flow, as Presto's shadow MACs (He et al., SIGCOMM'15): on a tree, switches read the label's digits as up
/// ports, so consecutive labels visit every path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobin {}

/// The candidate whose turn it is.
#[inline]
pub(crate) fn pick(turn: &mut u32, candidates: &[PortId]) -> PortId {
    *turn = turn.wrapping_add(1);
    candidates[*turn as usize % candidates.len()]
}
