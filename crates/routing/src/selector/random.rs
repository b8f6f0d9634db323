//! A uniform draw.

use netloom_topology::PortId;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Uniformly random and congestion-oblivious: random packet spraying (Dixit et al., INFOCOM'13), LetFlow (Vanini et al., NSDI'17)
/// and, at a NIC, Flowcut's new entropy value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Random {}

/// A uniform number below `count`.
///
/// The multiply-shift map is off by at most 2⁻³² · count, which no simulation can see.
#[inline]
pub(crate) fn below(count: usize, random: &mut impl Rng) -> usize {
    ((u64::from(random.next_u32()) * count as u64) >> 32) as usize
}

/// One of the candidates.
#[inline]
pub(crate) fn pick(candidates: &[PortId], random: &mut impl Rng) -> PortId {
    candidates[below(candidates.len(), random)]
}
