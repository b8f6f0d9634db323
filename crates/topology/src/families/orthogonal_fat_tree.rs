//! Orthogonal fat trees of two levels: spines and leaves are lines and points of a projective plane.

use netloom_units::{Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::polarfly::{Plane, points};
use crate::families::{at_least, invalid, nearest};
use crate::galois::prime_power;
use crate::network::{Network, NetworkBuilder};
use crate::size::Size;
use crate::topology::BuildContext;

/// Two-level orthogonal fat tree (Valerio, Moser and Melliar-Smith, IPCCC 1994; Kathareios et al., SC 2015): two halves of k² - k + 1 leaf switches
/// with k hosts each, under k² - k + 1 spines that both share, for every k that is a prime power plus 1. In one half any two leaves have
/// exactly one spine in common, as two points have one line. All switches have 2k ports. The default is k = 12, which the paper
/// compares with a Slim Fly of as many hosts.
///
/// Leaves of the first half come first, then those of the second, then the spines. Tiers are `host` and `leaf-spine`; a pod is a half.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OrthogonalFatTree {
    /// Half the ports of a switch; a prime power plus 1. 12 if absent.
    pub k: Option<u32>,
    /// Take the k whose network has nearest to this number of hosts.
    pub about_hosts: Option<u32>,
    /// Hosts per leaf; k if absent.
    pub hosts_per_leaf: Option<u32>,
    /// Rate of all links, unless another field sets it.
    pub rate: Rate,
    /// Propagation delay of all links, unless another field sets it.
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    pub host_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    pub host_latency: Option<Time>,
}

impl Default for OrthogonalFatTree {
    fn default() -> Self {
        OrthogonalFatTree {
            k: None,
            about_hosts: None,
            hosts_per_leaf: None,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            host_rate: None,
            host_latency: None,
        }
    }
}

/// Kathareios et al.: 3,192 hosts.
const DEFAULT_K: u32 = 12;

impl OrthogonalFatTree {
    /// Writes down what is taken where nothing is given.
    pub(crate) fn fill(&mut self) {
        if self.about_hosts.is_none() {
            self.k.get_or_insert(DEFAULT_K);
        }
    }

    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let (k, name) = self.choose_k()?;
        let per_leaf = self.hosts_per_leaf.unwrap_or(k);
        at_least("hosts_per_leaf", per_leaf, 1)?;
        let count = points(k - 1);
        let leaves = count.saturating_mul(2);
        let hosts = leaves.saturating_mul(per_leaf.into());
        let links = hosts.saturating_add(leaves.saturating_mul(k.into()));
        Size { hosts, switches: count.saturating_mul(3), links }.check()?;
        let (hosts, count) = (narrow::<u32>(hosts), narrow::<u32>(count));
        let plane = Plane::new(k - 1)?;
        let common = Cable { rate: self.rate, latency: self.latency };
        let host_cable = Cable::or(self.host_rate, self.host_latency, common);

        let mut builder = NetworkBuilder::new(format!("{name}: {hosts} hosts"));
        builder.add_hosts(hosts);
        (0..2 * count).for_each(|leaf| _ = builder.add_switch(1, leaf / count));
        // Spines belong to no pod.
        (0..count).for_each(|_| _ = builder.add_switch(2, u32::MAX));
        let tier = builder.tier("host");
        for host in 0..hosts {
            builder.link(host, hosts + host / per_leaf, host_cable.rate, host_cable.latency, tier);
        }
        let tier = builder.tier("leaf-spine");
        for leaf in 0..2 * count {
            for spine in plane.line(leaf % count) {
                builder.link(hosts + leaf, hosts + 2 * count + spine, common.rate, common.latency, tier);
            }
        }
        builder.build()
    }

    fn choose_k(&self) -> Result<(u32, String), NetworkError> {
        let is_valid = |k: u32| k.checked_sub(1).is_some_and(|q| prime_power(q).is_some());
        match (self.k, self.about_hosts) {
            (Some(_), Some(wanted)) => Err(invalid("about_hosts", "no about_hosts where k is given", wanted)),
            (None, Some(wanted)) => {
                let hosts = |k: u32| {
                    let leaves = points(k - 1).saturating_mul(2);
                    leaves.saturating_mul(self.hosts_per_leaf.unwrap_or(k).into())
                };
                let k = nearest(wanted.into(), (3..20_000).filter(|&k| is_valid(k)).map(|k| (k, hosts(k))));
                Ok((k, format!("orthogonal fat tree k = {k} nearest to {wanted} hosts")))
            }
            (k, None) => {
                let k = k.unwrap_or(DEFAULT_K);
                if is_valid(k) {
                    return Ok((k, format!("orthogonal fat tree k = {k}")));
                }
                let below = (3..k).rev().find(|&k| is_valid(k));
                let above = (k.max(2)..u32::MAX).skip(1).find(|&k| is_valid(k));
                let near: Vec<String> = below.iter().chain(&above).map(u32::to_string).collect();
                Err(invalid("k", format!("a prime power plus 1, such as {}", near.join(" or ")), k))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    fn tree(k: u32) -> Network {
        OrthogonalFatTree { k: Some(k), ..OrthogonalFatTree::default() }.build(&context(1)).unwrap()
    }

    #[test]
    fn counts_are_the_published_ones() {
        // N = 2k³ - 2k² + 2k hosts, R = 3k² - 3k + 3 switches of radix 2k (Kathareios et al., section 2.3).
        for k in [3, 4, 5, 6, 8, 9, 10, 12] {
            let network = tree(k);
            assert_eq!(network.hosts(), 2 * k * k * k - 2 * k * k + 2 * k);
            assert_eq!(network.switches(), 3 * k * k - 3 * k + 3);
            let ports = |switch| network.ports(switch).len() as u32;
            assert!((network.hosts()..network.nodes()).all(|switch| ports(switch) == 2 * k), "k = {k}");
            assert_eq!(network.metrics().diameter, 2);
            assert!(network.is_tree() && !network.is_xgft());
        }
        assert_eq!(OrthogonalFatTree::default().build(&context(1)).unwrap().hosts(), 3192);
    }

    #[test]
    fn leaves_share_one_spine_but_for_those_of_the_same_point() {
        let k = 5;
        let graph = tree(k).router_graph();
        let count = k * k - k + 1;
        for (a, b) in (0..2 * count).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let common =
                graph.neighbours(a).iter().filter(|spine| graph.neighbours(b).contains(spine)).count();
            assert_eq!(common as u32, if a % count == b % count { k } else { 1 }, "{a} and {b}");
        }
    }

    #[test]
    fn a_k_without_a_plane_is_refused() {
        let refused = |k| {
            let tree = OrthogonalFatTree { k: Some(k), ..OrthogonalFatTree::default() };
            tree.build(&context(1)).unwrap_err().to_string()
        };
        assert_eq!(refused(7), "k: expected a prime power plus 1, such as 6 or 8, found 7");
        assert_eq!(refused(0), "k: expected a prime power plus 1, such as 3, found 0");
        assert!(refused(65_522).contains("GiB"));
    }
}
