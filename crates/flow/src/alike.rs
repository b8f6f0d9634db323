//! Links that are always loaded alike when every flow divides evenly among all minimal paths: on a tree, all up links of a switch, and all links from a pod
//! to the core. They count as one, so that a flow has six links on a large fat tree and not some hundreds.
//!
//! Two links are alike if the part of a flow that takes each is the same for every pair of switches. All these parts are compared at once, by a random
//! linear combination of them in the field of integers modulo a prime, where a part of 1/n is a number like any other: different vectors have
//! equal combinations with a probability of 2⁻⁶¹ (the identity test of Schwartz and Zippel).

use netloom_routing::RouteTable;
use netloom_topology::{ChannelId, Network, NodeId};
use netloom_units::{narrow, random};
use rand::Rng;
use rustc_hash::FxHashMap;

use crate::max_min::Resource;

/// 2⁶¹ − 1.
const PRIME: u64 = (1 << 61) - 1;

fn times(a: u64, b: u64) -> u64 {
    narrow::<u64>(u128::from(a) * u128::from(b) % u128::from(PRIME))
}

fn plus(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

/// 1/n, by Fermat's little theorem.
fn inverse(n: u64) -> u64 {
    let (mut base, mut exponent, mut result) = (n % PRIME, PRIME - 2, 1);
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = times(result, base);
        }
        base = times(base, base);
        exponent /= 2;
    }
    result
}

/// Per channel, its resource; and how many there are.
pub(crate) fn each_for_itself(network: &Network) -> (Vec<Resource>, u32) {
    ((0..network.channels()).collect(), network.channels())
}

/// The channels by which flows to an edge switch may leave another switch.
fn towards<'n>(
    network: &'n Network,
    table: &'n RouteTable,
    switch: NodeId,
    to: u32,
) -> impl Iterator<Item = ChannelId> + 'n {
    let ports = table.towards_edge(switch, to).ports.iter();
    ports.map(move |&port| network.ports(switch)[usize::from(port)])
}

/// As [`each_for_itself`], but with one resource for channels that are alike. Those that are `apart`, as their rates change, have their own. None if routes lead over a link
/// that is `dead`, which flows then go around.
pub(crate) fn alike(
    network: &Network,
    table: &RouteTable,
    dead: impl Fn(ChannelId) -> bool,
    apart: impl Fn(ChannelId) -> bool,
) -> Option<(Vec<Resource>, u32)> {
    let channels = |switch: NodeId, to: u32| towards(network, table, switch, to);
    let mut numbers = random::Node::Router.stream(0, u64::from(network.nodes()));
    let mut draw = || numbers.next_u64() % PRIME;
    let sources: Vec<u64> = (0..table.edges()).map(|_| draw()).collect();
    let most =
        (network.hosts()..network.nodes()).map(|switch| network.ports(switch).len()).max().unwrap_or(0);
    let parts: Vec<u64> = (0..=most as u64).map(inverse).collect();
    let mut sums = vec![0; network.channels() as usize];
    let switches = (network.nodes() - network.hosts()) as usize;
    let place = |switch: NodeId| (switch - network.hosts()) as usize;
    let (mut waits_for, mut here, mut ready) = (vec![0u32; switches], vec![0; switches], Vec::new());
    for to in 0..table.edges() {
        let factor = draw();
        waits_for.fill(0);
        here.fill(0);
        (0..table.edges()).filter(|&from| from != to).for_each(|from| {
            here[place(table.edge_switch(from))] = sources[from as usize];
        });
        for switch in network.hosts()..network.nodes() {
            for channel in channels(switch, to) {
                if dead(channel) {
                    return None;
                }
                waits_for[place(network.channel(channel).to)] += 1;
            }
        }
        ready.extend((network.hosts()..network.nodes()).filter(|&switch| waits_for[place(switch)] == 0));
        while let Some(switch) = ready.pop() {
            let part = times(here[place(switch)], parts[channels(switch, to).count()]);
            for channel in channels(switch, to) {
                let sum = &mut sums[channel as usize];
                *sum = plus(*sum, times(part, factor));
                let next = network.channel(channel).to;
                here[place(next)] = plus(here[place(next)], part);
                waits_for[place(next)] -= 1;
                if waits_for[place(next)] == 0 {
                    ready.push(next);
                }
            }
        }
    }
    let mut known: FxHashMap<(u64, u64), Resource> = FxHashMap::default();
    let mut count = 0;
    let mut next = || {
        count += 1;
        count - 1
    };
    let resource = |channel: ChannelId| {
        let ends = network.channel(channel);
        let is_at_host = network.is_host(ends.from) || network.is_host(ends.to);
        match sums[channel as usize] {
            _ if is_at_host || apart(channel) => next(),
            sum => *known.entry((sum, ends.rate.0)).or_insert_with(&mut next),
        }
    };
    let resources = (0..network.channels()).map(resource).collect();
    Some((resources, count))
}

/// Whether no other division of flows among their minimal paths carries more than the even one: so that schemes which avoid congestion divide them evenly.
///
/// That is so where, for each destination, all links by which flows may leave a switch are [`alike`], and those that are alike lead to switches which flows
/// leave by links that are alike in turn, as many steps before the destination. The links that a flow may take at its n-th step are then a cut of links of one resource,
/// which every division crosses once with all of the flow. A resource may have several of these cuts, as between two leaf switches, where the links up and those down
/// are alike; every division loads all of it with the same sum, which even shares spread evenly.
pub(crate) fn is_levelled_by_even_shares(network: &Network, table: &RouteTable) -> bool {
    let Some((resources, _)) = alike(network, table, |_| false, |_| false) else { return false };
    let step = |switch: NodeId, to: u32| towards(network, table, switch, to);
    let mut behind: FxHashMap<(Resource, usize), Option<Resource>> = FxHashMap::default();
    (0..table.edges()).all(|to| {
        behind.clear();
        let first = |switch| step(switch, to).next().map(|channel| resources[channel as usize]);
        let left = |switch| {
            let onward = |&at: &NodeId| step(at, to).next().map(|channel| network.channel(channel).to);
            std::iter::successors(Some(switch), onward).count()
        };
        (network.hosts()..network.nodes())
            .flat_map(|switch| {
                let left = left(switch);
                step(switch, to).map(move |channel| (switch, left, channel))
            })
            .all(|(switch, left, channel)| {
                let (here, next) = (resources[channel as usize], first(network.channel(channel).to));
                Some(here) == first(switch) && *behind.entry((here, left)).or_insert(next) == next
            })
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use netloom_topology::{BuildContext, Complete, FatTree, LeafSpine, Topology, Torus, Xgft};

    use super::*;

    #[test]
    fn an_inverse_is_one() {
        for n in [1, 2, 3, 36, 1 << 40] {
            assert_eq!(times(n, inverse(n)), 1);
        }
    }

    #[test]
    fn on_a_fat_tree_a_switchs_up_links_are_alike_and_a_pods_links_to_the_core() {
        let k = 4;
        let topology = Topology::FatTree(FatTree { k: Some(k), ..FatTree::default() });
        let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        let table = RouteTable::minimal(&network, |_| false).unwrap();
        let (resources, count) = alike(&network, &table, |_| false, |_| false).unwrap();
        // Each host's two channels; up and down, those of each edge switch, and of each pod.
        assert_eq!(count, 2 * (16 + 8 + 4));
        let edge = network.edge_switch(0);
        let up = |port: usize| resources[network.ports(edge)[port] as usize];
        let ups: Vec<Resource> = (0..network.ports(edge).len())
            .filter(|&port| !network.is_host(network.neighbour(edge, narrow(port))))
            .map(up)
            .collect();
        assert_eq!(ups.len(), 2);
        assert_eq!(ups[0], ups[1]);
        // A link that is apart makes others differ only if flows avoid it.
        let (_, with_one) =
            alike(&network, &table, |_| false, |channel| channel == network.ports(edge)[0]).unwrap();
        assert!(with_one <= count + 1);
        let cut = network.ports(edge)[3] / 2;
        assert!(alike(&network, &table, |channel| channel / 2 == cut, |_| false).is_none());
        let table = RouteTable::minimal(&network, |channel| channel / 2 == cut).unwrap();
        assert!(alike(&network, &table, |_| false, |_| false).unwrap().1 > count);
    }

    #[test]
    fn even_shares_level_congestion_on_whole_trees_and_where_there_is_one_path() {
        let of = |topology: Topology, cut: Option<u32>| {
            let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
            let table = RouteTable::minimal(&network, |channel| Some(channel / 2) == cut).unwrap();
            is_levelled_by_even_shares(&network, &table)
        };
        let tree = || Topology::FatTree(FatTree { k: Some(4), ..FatTree::default() });
        let leaf_spine =
            |leaves| Topology::LeafSpine(LeafSpine { leaves, spines: 2, bundle: 2, ..LeafSpine::default() });
        let xgft = || {
            let (m, w, bundle) = (vec![3, 2, 3], vec![1, 2, 3], vec![1, 2, 1]);
            Topology::Xgft(Xgft { m, w, bundle, ..Xgft::default() })
        };
        assert!(of(tree(), None) && of(xgft(), None));
        // Between two leaf switches the links up and those down are loaded alike.
        assert!((2..5).all(|leaves| of(leaf_spine(leaves), None)));
        // Host links are the first ones, so the last one is between switches.
        assert!(!of(tree(), Some(16 + 31)));
        // On a grid, flows between other switches take some of the links of a pair and not others.
        assert!(!of(
            Topology::Torus(Torus { dimensions: 2, switches_per_dimension: vec![4, 4], ..Torus::default() }),
            None
        ));
        assert!(of(Topology::Complete(Complete { switches: 6, ..Complete::default() }), None));
    }
}
