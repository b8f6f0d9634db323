//! Extended generalised fat trees: the one generator behind every tree of switches.
//!
//! XGFT(h; m₁…m_h; w₁…w_h) (Öhring et al., "On Generalized Fat Trees", IPPS 1995) has hosts at level 0 and
//! switches at levels 1…h; a node of level i − 1 has wᵢ parents and a node of level i has mᵢ children. A node of
//! level i is named by the digits a_h…a_{i+1} of its hosts (aⱼ < mⱼ) and by the digits b₁…bᵢ of the up-path
//! (bⱼ < wⱼ); parent and child agree in all digits they share.
//!
//! Numbering: within its level, a node is `A · (w₁⋯wᵢ) + B`, where `A` reads a_h…a_{i+1} and `B` reads b₁…bᵢ, the
//! last digit least significant. Hosts under one edge switch are therefore consecutive, the cores above one
//! aggregation position are consecutive, down port j leads to child digit j and up port j to parent digit j.

use netloom_units::{Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::{invalid, product};
use crate::network::{Network, NetworkBuilder};
use crate::size::Size;
use crate::topology::BuildContext;

/// Extended generalised fat tree XGFT(h; m; w) of Öhring et al. (IPPS 1995), with parallel links.
///
/// The default is the 2-ary 5-tree of Crisan et al. Link tiers are called `host`, `edge-agg`, `agg-core`,
/// `level3-level4`, …. A pod is everything below one child of a root; roots have no pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Xgft {
    /// Children per node of level 1, 2, …: hosts per edge switch, edge switches per aggregation switch, ….
    pub m: Vec<u32>,
    /// Parents per node of level 0, 1, …: the first is 1, since a host has one link.
    pub w: Vec<u32>,
    /// Parallel links between parent and child, from the host links up; empty: 1 everywhere.
    pub bundle: Vec<u32>,
    /// Rate of every link that is not in `rates`.
    pub rate: Rate,
    /// Propagation delay of every link that is not in `latencies`.
    pub latency: Time,
    /// Rate of each link, from the host links up; empty: `rate` everywhere.
    pub rates: Vec<Rate>,
    /// Propagation delay of each link, from the host links up; empty: `latency` everywhere.
    pub latencies: Vec<Time>,
}

impl Default for Xgft {
    fn default() -> Self {
        Xgft {
            m: vec![2; 5],
            w: vec![1, 2, 2, 2, 2],
            bundle: Vec::new(),
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            rates: Vec::new(),
            latencies: Vec::new(),
        }
    }
}

impl Xgft {
    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let levels = self.m.len();
        if levels == 0 || levels > 16 {
            return Err(invalid("m", "1 to 16 levels", levels));
        }
        let list = |values: &[u32]| values.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let lengths = [
            ("w", self.w.len(), false),
            ("bundle", self.bundle.len(), true),
            ("rates", self.rates.len(), true),
            ("latencies", self.latencies.len(), true),
        ];
        for (field, length, may_be_empty) in lengths {
            if length != levels && !(may_be_empty && length == 0) {
                return Err(invalid(field, format!("{levels} entries, as in m"), length));
            }
        }
        let tiers = (0..levels).map(|i| Tier {
            name: tier_name(i),
            children: self.m[i],
            parents: self.w[i],
            bundle: self.bundle.get(i).copied().unwrap_or(1),
            cable: Cable {
                rate: self.rates.get(i).copied().unwrap_or(self.rate),
                latency: self.latencies.get(i).copied().unwrap_or(self.latency),
            },
        });
        let name = format!("XGFT({levels}; {}; {})", list(&self.m), list(&self.w));
        build(&name, &tiers.collect::<Vec<_>>())
    }
}

/// The links between level i and level i + 1 of a tree.
#[derive(Clone, Debug)]
pub(crate) struct Tier {
    pub(crate) name: String,
    /// m_{i+1}: children per upper node.
    pub(crate) children: u32,
    /// w_{i+1}: parents per lower node.
    pub(crate) parents: u32,
    /// Parallel links per parent and child.
    pub(crate) bundle: u32,
    pub(crate) cable: Cable,
}

/// The usual name of the links between level `lower` and the next.
pub(crate) fn tier_name(lower: usize) -> String {
    match lower {
        0 => "host".into(),
        1 => "edge-agg".into(),
        2 => "agg-core".into(),
        _ => format!("level{lower}-level{}", lower + 1),
    }
}

/// Builds the tree from its tiers, the host links first.
pub(crate) fn build(name: &str, tiers: &[Tier]) -> Result<Network, NetworkError> {
    for tier in tiers {
        for (field, value) in [("m", tier.children), ("w", tier.parents), ("bundle", tier.bundle)] {
            if value == 0 {
                return Err(invalid(field, "positive numbers", format!("0 at \"{}\"", tier.name)));
            }
        }
    }
    for (field, value) in [("w", tiers[0].parents), ("bundle", tiers[0].bundle)] {
        if value != 1 {
            return Err(invalid(field, "1 first, since a host has one link", value));
        }
    }
    // nodes_at[i]: nodes of level i; level 0 are the hosts.
    let nodes_at: Vec<u64> = (0..=tiers.len())
        .map(|i| {
            let above = tiers[i..].iter().map(|tier| tier.children);
            product(tiers[..i].iter().map(|tier| tier.parents).chain(above))
        })
        .collect();
    let links = |i: usize| product([tiers[i].parents, tiers[i].bundle]).saturating_mul(nodes_at[i]);
    let size = Size {
        hosts: nodes_at[0],
        switches: nodes_at[1..].iter().fold(0, |sum, &n| u64::saturating_add(sum, n)),
        links: (0..tiers.len()).map(links).fold(0, u64::saturating_add),
    };
    size.check()?;

    let mut builder = NetworkBuilder::new(format!("{name}: {} hosts", nodes_at[0]));
    let mut first = builder.add_hosts(narrow::<u32>(nodes_at[0])).start;
    let mut first_above = first + narrow::<u32>(nodes_at[0]);
    let mut stride = 1u32;
    let mut strides = Vec::new();
    for (level, tier) in tiers.iter().enumerate() {
        stride = stride.saturating_mul(tier.parents).saturating_mul(tier.bundle);
        strides.push(stride);
        let per_pod = nodes_at[level + 1] / u64::from(tiers[tiers.len() - 1].children);
        for upper in 0..nodes_at[level + 1] {
            let is_root = level + 1 == tiers.len();
            let pod = match (is_root, tiers.len()) {
                (_, 1 | 2) => 0,
                (true, _) => u32::MAX,
                (false, _) => narrow::<u32>(upper / per_pod),
            };
            builder.add_switch(narrow::<u8>(level) + 1, pod);
        }
        let id = builder.tier(&tier.name);
        // All nodes of a level below have the same number of up-paths B.
        let paths: u32 = tiers[..level].iter().map(|tier| tier.parents).product();
        for child in 0..narrow::<u32>(nodes_at[level]) {
            let (a, b) = (child / paths, child % paths);
            for digit in 0..tier.parents {
                let parent = (a / tier.children * paths + b) * tier.parents + digit;
                for _ in 0..tier.bundle {
                    builder.link(
                        first + child,
                        first_above + parent,
                        tier.cable.rate,
                        tier.cable.latency,
                        id,
                    );
                }
            }
        }
        first = first_above;
        first_above += narrow::<u32>(nodes_at[level + 1]);
    }
    builder.up_strides(strides);
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::NodeId;
    use crate::topology::context;

    fn xgft(m: &[u32], w: &[u32]) -> Network {
        Xgft { m: m.to_vec(), w: w.to_vec(), ..Default::default() }.build(&context(1)).unwrap()
    }

    fn switches_at(network: &Network, level: u8) -> Vec<NodeId> {
        (network.hosts()..network.nodes()).filter(|&n| network.level(n) == level).collect()
    }

    #[test]
    fn published_instances_have_their_switch_counts() {
        let cases = [
            (vec![8, 8, 16], vec![1, 8, 8], 1024, vec![128, 128, 64]),
            (vec![8, 8, 16], vec![1, 4, 8], 1024, vec![128, 64, 32]),
            (vec![2, 2, 4], vec![1, 2, 2], 16, vec![8, 8, 4]),
            (vec![18, 18, 36], vec![1, 18, 18], 11664, vec![648, 648, 324]),
            (vec![2, 2, 2, 2, 2], vec![1, 2, 2, 2, 2], 32, vec![16, 16, 16, 16, 16]),
        ];
        for (m, w, hosts, switches) in cases {
            let network = xgft(&m, &w);
            assert_eq!(network.hosts(), hosts);
            for (level, count) in (1..).zip(switches) {
                assert_eq!(switches_at(&network, level).len(), count, "level {level} of {}", network.name());
            }
        }
    }

    /// Crisan et al.: switches l and l + 1 are joined iff their digits agree except digit l − 1, and up port j
    /// changes that digit to j.
    #[test]
    fn ports_of_a_k_ary_n_tree_are_digits() {
        let (k, n) = (3u32, 4u8);
        let network = xgft(&[k; 4], &[1, k, k, k]);
        let per_level = k.pow(u32::from(n) - 1);
        for host in 0..network.hosts() {
            let edge = network.edge_switch(host);
            assert_eq!(edge - network.hosts(), host / k);
            assert_eq!(network.neighbour(edge, (host % k) as u16), host);
        }
        for level in 1..n {
            for (index, &switch) in switches_at(&network, level).iter().enumerate() {
                assert_eq!(network.up_stride(level), k.pow(u32::from(level) - 1));
                for up in 0..k {
                    let parent = network.neighbour(switch, (k + up) as u16);
                    assert_eq!(network.level(parent), level + 1);
                    let parent_index = (parent - network.hosts()) % per_level;
                    // Up-digits b are the low ones here, most recent last; the child digit leaves from above them.
                    let paths = k.pow(u32::from(level) - 1);
                    let (a, b) = (index as u32 / paths, index as u32 % paths);
                    assert_eq!(parent_index, (a / k) * paths * k + b * k + up);
                    assert_eq!(network.neighbour(parent, (a % k) as u16), switch);
                }
            }
        }
    }

    /// Walking up by D-mod-k from any source meets the same root for one destination.
    #[test]
    fn d_mod_k_gives_every_host_its_own_root() {
        for (m, w) in [(vec![4, 4, 8], vec![1, 4, 4]), (vec![2, 3, 4, 2], vec![1, 2, 3, 4])] {
            let network = xgft(&m, &w);
            for destination in 0..network.hosts() {
                let mut roots: Vec<NodeId> = (0..network.hosts())
                    .map(|source| {
                        let mut node = network.edge_switch(source);
                        while (network.level(node) as usize) < m.len() {
                            let level = network.level(node);
                            let down = m[level as usize - 1];
                            let up = network.ports(node).len() as u32 - down;
                            let port = down + destination / network.up_stride(level) % up;
                            node = network.neighbour(node, port as u16);
                        }
                        node
                    })
                    .collect();
                roots.dedup();
                assert_eq!(roots.len(), 1);
            }
        }
    }

    #[test]
    fn bundles_multiply_links() {
        let tree = Xgft { m: vec![4, 2], w: vec![1, 2], bundle: vec![1, 3], ..Default::default() };
        let network = tree.build(&context(1)).unwrap();
        assert_eq!(network.links().len(), 8 + 2 * 2 * 3);
        assert_eq!(network.ports(network.edge_switch(0)).len(), 4 + 6);
        assert_eq!(network.up_stride(1), 1);
    }

    #[test]
    fn malformed_lists_are_refused() {
        let fail = |m: &[u32], w: &[u32]| {
            Xgft { m: m.to_vec(), w: w.to_vec(), ..Default::default() }
                .build(&context(1))
                .unwrap_err()
                .to_string()
        };
        assert!(fail(&[2, 2], &[1]).starts_with("w: expected 2 entries"));
        assert!(fail(&[2, 0], &[1, 2]).starts_with("m: expected positive numbers"));
        assert!(fail(&[2, 2], &[2, 2]).starts_with("w: expected 1 first"));
        assert!(fail(&[], &[]).starts_with("m: expected 1 to 16 levels"));
        let absurd = fail(&[100_000, 100_000, 100_000], &[1, 100_000, 100_000]);
        assert!(absurd.contains("GiB"), "{absurd}");
    }
}
