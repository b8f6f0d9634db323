//! D-mod-k and S-mod-k: the digits of the destination or source pick the up ports of a tree.

use netloom_topology::PortId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The destination's digit: going up at level l, port ⌊D / Π w⌋ mod ports, so all traffic to D meets in one root and down
/// links never conflict under a permutation. Gómez et al., IPDPS'07; generalised to XGFTs by the product of the parent
/// counts below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DModK {}

/// The source's digit: as D-mod-k with the source host, so that up links never conflict under a permutation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SModK {}

/// The candidate that `number`'s digit names at a level with the given stride.
#[inline]
pub(crate) fn pick(number: u32, stride: u32, candidates: &[PortId]) -> PortId {
    candidates[place(number, stride, candidates.len())]
}

/// [`pick`]'s position among `ports` candidates.
#[inline]
pub(crate) fn place(number: u32, stride: u32, ports: usize) -> usize {
    (number / stride) as usize % ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destination_6_of_a_2_ary_3_tree() {
        // Level 1 chooses parent ⌊6/1⌋ mod 2 = 0, level 2 parent ⌊6/2⌋ mod 2 = 1.
        assert_eq!(pick(6, 1, &[0, 1]), 0);
        assert_eq!(pick(6, 2, &[0, 1]), 1);
    }
}
