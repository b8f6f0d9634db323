//! WCMP: the hash of the header picks a port in proportion to its rate.

use netloom_topology::PortId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Weighted-cost multi-path: hash of the header, each candidate weighted by its link's rate (as configured, also where a fault slows
/// it for a while). Zhou et al., EuroSys'14.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Weighted {}

/// The candidate in whose share of the hash space `hash` falls.
#[inline]
pub(crate) fn pick(hash: u32, candidates: &[PortId], weight: impl Fn(PortId) -> u64) -> PortId {
    let total: u128 = candidates.iter().map(|&port| u128::from(weight(port))).sum();
    let mut point = (u128::from(hash) * total) >> 32;
    for &port in candidates {
        let share = u128::from(weight(port));
        if point < share {
            return port;
        }
        point -= share;
    }
    candidates[candidates.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_three_times_the_rate_gets_three_times_the_flows() {
        let weight = |port| if port == 7 { 300 } else { 100 };
        let fast = (0..4096u32).filter(|i| pick(i << 20, &[7, 8], weight) == 7).count();
        assert_eq!(fast, 3072);
    }
}
