//! The levels of the switches of a tree, found by its structure where a file does not say them.
//!
//! A switch with hosts is on level 1, one that is n links away from the nearest of these on level n + 1. The network is a tree if links join
//! neighbouring levels only and every minimal path between hosts rises first and then falls, so that it turns at a common ancestor. So are leaf-spines and fat
//! trees, also such that lack some links. A network of switches without any cycle is a tree as well, wherever its hosts are: its
//! root is the middle of a longest path.

use netloom_units::narrow;
use std::collections::VecDeque;

use crate::network::{Network, NodeId};

/// Roots of the breadth-first searches that are made at once, one bit each.
const BLOCK: usize = u64::BITS as usize;

/// Why a network is no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoTree {
    /// Two switches are linked that are equally far from the nearest switch with hosts.
    Level(NodeId, NodeId),
    /// A minimal path between hosts falls to this switch and rises again.
    Valley(NodeId),
    /// It has more levels than can be counted.
    Deep,
}

impl NoTree {
    /// In words, with the names of a network's nodes.
    pub(crate) fn words(&self, network: &Network) -> String {
        let name = |node: NodeId| network.node_name(node);
        match *self {
            NoTree::Level(a, b) => {
                format!("{} and {} are linked and equally far from the hosts", name(a), name(b))
            }
            NoTree::Valley(switch) => {
                format!("a shortest path between hosts goes down to {} and up again", name(switch))
            }
            NoTree::Deep => format!("there are more than {} levels", u8::MAX),
        }
    }
}

/// Per switch, its level, from 1.
pub(crate) fn find(network: &Network) -> Result<Vec<u8>, NoTree> {
    by_distance(network).or_else(|reason| without_cycles(network).ok_or(reason))
}

/// The switches next to a switch, once per link.
fn next_to(network: &Network, switch: usize) -> impl Iterator<Item = usize> {
    let hosts = network.hosts();
    let ends = network.ports(hosts + narrow::<NodeId>(switch)).iter().map(|&port| network.channel(port).to);
    ends.filter_map(move |end| end.checked_sub(hosts)).map(|end| end as usize)
}

/// Per switch, the links to the nearest of some, of which there is one at least.
fn distances(network: &Network, from: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut distances = vec![u32::MAX; network.switches() as usize];
    let mut open: VecDeque<usize> = from.collect();
    open.iter().for_each(|&switch| distances[switch] = 0);
    while let Some(here) = open.pop_front() {
        for next in next_to(network, here) {
            if distances[next] == u32::MAX {
                distances[next] = distances[here] + 1;
                open.push_back(next);
            }
        }
    }
    distances
}

fn by_distance(network: &Network) -> Result<Vec<u8>, NoTree> {
    let index = |switch: NodeId| (switch - network.hosts()) as usize;
    let mut edges: Vec<usize> = (0..network.hosts()).map(|host| index(network.edge_switch(host))).collect();
    edges.sort_unstable();
    edges.dedup();
    let from_hosts = distances(network, edges.iter().copied());
    for link in network.links().iter().filter(|link| !network.is_host(link.a) && !network.is_host(link.b)) {
        if from_hosts[index(link.a)] == from_hosts[index(link.b)] {
            return Err(NoTree::Level(link.a, link.b));
        }
    }
    let levels = from_hosts.into_iter().map(|links| u8::try_from(links + 1).map_err(|_| NoTree::Deep));
    let levels = levels.collect::<Result<Vec<u8>, _>>()?;
    let links: Vec<Vec<usize>> = (0..levels.len()).map(|switch| next_to(network, switch).collect()).collect();
    for roots in edges.chunks(BLOCK) {
        if let Some(valley) = valley(&links, &levels, roots) {
            return Err(NoTree::Valley(network.hosts() + narrow::<NodeId>(valley)));
        }
    }
    Ok(levels)
}

/// What the minimal paths from some roots to a switch have done, a bit per root.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    /// Only risen.
    risen: u64,
    /// Risen, and then fallen.
    fallen: u64,
    /// Fallen, and then risen.
    valley: u64,
}

impl Arrived {
    fn all(self) -> u64 {
        self.risen | self.fallen | self.valley
    }
}

/// A switch at which a minimal path from one of up to 64 roots to a switch of level 1 rises after it has fallen.
fn valley(links: &[Vec<usize>], levels: &[u8], roots: &[usize]) -> Option<usize> {
    let mut reached = vec![0u64; links.len()];
    let mut at = vec![Arrived::default(); links.len()];
    let mut here: Vec<usize> = roots.to_vec();
    for (bit, &root) in roots.iter().enumerate() {
        reached[root] = 1 << bit;
        at[root].risen = 1 << bit;
    }
    // Per switch, the last one below which a path had fallen before it rose.
    let mut lowest = vec![usize::MAX; links.len()];
    while !here.is_empty() {
        let mut next: Vec<usize> = Vec::new();
        let mut arriving = std::mem::take(&mut at);
        at = vec![Arrived::default(); links.len()];
        for &from in &here {
            let Arrived { risen, fallen, valley } = std::mem::take(&mut arriving[from]);
            for &to in &links[from] {
                let new = !reached[to];
                if (risen | fallen | valley) & new == 0 {
                    continue;
                }
                if at[to].all() == 0 {
                    next.push(to);
                }
                if levels[to] > levels[from] {
                    at[to].risen |= risen & new;
                    if fallen & new != 0 {
                        lowest[to] = from;
                    } else if valley & new != 0 {
                        lowest[to] = lowest[from];
                    }
                    at[to].valley |= (fallen | valley) & new;
                } else {
                    at[to].fallen |= (risen | fallen) & new;
                    if valley & new != 0 {
                        lowest[to] = lowest[from];
                    }
                    at[to].valley |= valley & new;
                }
            }
        }
        for &switch in &next {
            reached[switch] |= at[switch].all();
            if levels[switch] == 1 && at[switch].valley != 0 {
                return Some(lowest[switch]);
            }
        }
        here = next;
    }
    None
}

/// The levels of switches without a cycle among them, but for parallel links.
fn without_cycles(network: &Network) -> Option<Vec<u8>> {
    let neighbours = |switch: usize| {
        let mut found: Vec<usize> = next_to(network, switch).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    if network.components() > 1 {
        return None;
    }
    let switches = network.switches() as usize;
    let ends: usize = (0..switches).map(|switch| neighbours(switch).len()).sum();
    if ends / 2 + 1 != switches {
        return None;
    }
    let farthest = |from: &[u32]| (0..switches).rev().max_by_key(|&switch| from[switch]);
    let one_end = farthest(&distances(network, std::iter::once(0)))?;
    let from_one = distances(network, std::iter::once(one_end));
    let other_end = farthest(&from_one)?;
    let from_other = distances(network, std::iter::once(other_end));
    let length = from_one[other_end];
    let root = (0..switches)
        .find(|&switch| from_one[switch] == length / 2 && from_one[switch] + from_other[switch] == length)?;
    let below = distances(network, std::iter::once(root));
    let deepest = below.iter().copied().max()?;
    below.into_iter().map(|depth| u8::try_from(deepest - depth + 1).ok()).collect()
}
