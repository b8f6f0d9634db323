//! Two-level leaf-spine fabrics.

use netloom_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::{at_least, xgft};
use crate::network::Network;
use crate::topology::BuildContext;

/// Two-level leaf-spine fabric: every leaf has `bundle` links to every spine. The default is 8 leaves of 16 hosts
/// under 8 spines, 2:1 oversubscribed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeafSpine {
    /// Leaf (edge) switches.
    pub leaves: u32,
    /// Spine switches.
    pub spines: u32,
    /// Hosts per leaf.
    pub hosts_per_leaf: u32,
    /// Parallel links between each leaf and each spine.
    pub bundle: u32,
    /// Rate of every link that has no other rate.
    pub rate: Rate,
    /// Propagation delay of every link that has no other delay.
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    pub host_rate: Option<Rate>,
    /// Rate of leaf-spine links; `rate` if absent.
    pub spine_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    pub host_latency: Option<Time>,
    /// Propagation delay of leaf-spine links; `latency` if absent.
    pub spine_latency: Option<Time>,
}

impl Default for LeafSpine {
    fn default() -> Self {
        LeafSpine {
            leaves: 8,
            spines: 8,
            hosts_per_leaf: 16,
            bundle: 1,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            host_rate: None,
            spine_rate: None,
            host_latency: None,
            spine_latency: None,
        }
    }
}

impl LeafSpine {
    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        at_least("leaves", self.leaves, 1)?;
        at_least("spines", self.spines, 1)?;
        at_least("hosts_per_leaf", self.hosts_per_leaf, 1)?;
        at_least("bundle", self.bundle, 1)?;
        let common = Cable { rate: self.rate, latency: self.latency };
        let tier = |name: &str, children, parents, bundle, cable| xgft::Tier {
            name: name.into(),
            children,
            parents,
            bundle,
            cable,
        };
        let host = Cable::or(self.host_rate, self.host_latency, common);
        let spine = Cable::or(self.spine_rate, self.spine_latency, common);
        let tiers = [
            tier("host", self.hosts_per_leaf, 1, 1, host),
            tier("leaf-spine", self.leaves, self.spines, self.bundle, spine),
        ];
        xgft::build(&format!("leaf-spine {}x{}", self.leaves, self.spines), &tiers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    #[test]
    fn every_leaf_reaches_every_spine_in_order() {
        let config = LeafSpine {
            leaves: 3,
            spines: 4,
            hosts_per_leaf: 2,
            host_rate: Some(Rate::from_gbps(25)),
            ..Default::default()
        };
        let network = config.build(&context(1)).unwrap();
        assert_eq!((network.hosts(), network.switches(), network.links().len()), (6, 7, 6 + 12));
        for leaf in 6..9 {
            for spine in 0..4u16 {
                assert_eq!(network.neighbour(leaf, 2 + spine), 9 + u32::from(spine));
                assert_eq!(network.neighbour(9 + u32::from(spine), (leaf - 6) as u16), leaf);
            }
        }
        assert_eq!(network.channel(network.ports(0)[0]).rate, Rate::from_gbps(25));
        assert_eq!(network.channel(network.ports(6)[2]).rate, Rate::from_gbps(200));
        assert_eq!(network.tiers(), ["host", "leaf-spine"]);
    }
}
