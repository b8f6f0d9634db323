//! The lookahead of a network, its bipartition, and the partitions of its nodes: which thread runs which.

use netloom_engine::{Bipartition, NodeIndex, Rebalance, Setup, contiguous, deferred_nodes};
use netloom_topology::{Channel, Network, NodeId};
use netloom_units::Time;
use netloom_workload::Rails;

use crate::protocol::declaration::Parts;
use crate::protocol::smallest;
use crate::world::World;

/// How the engine cuts time and partitions nodes.
pub(crate) fn setup(world: &World, threads: usize, until: Time) -> Setup {
    let network = &world.network;
    let World { fabric, routing, transport, .. } = world;
    let smallest = smallest(Parts { fabric, routing, transport });
    // Under cut-through a packet counts as arrived when so much of it has passed.
    let smallest = smallest.min(fabric.options.cut_through.unwrap_or(smallest));
    let largest = world.transport.packet_size();
    let is_odd = bipartition(network, world.servers.as_ref().map(|servers| &*servers.rails));
    let mut lookaheads = [Time::MAX; 2];
    let mut slowest = Time::ZERO;
    for id in 0..network.channels() {
        let Channel { from, rate, .. } = network.channel(id);
        let latency = world.latency(id);
        let side = is_odd.as_ref().is_some_and(|is_odd| is_odd[from as usize]);
        let lookahead = &mut lookaheads[usize::from(side)];
        *lookahead = (*lookahead).min(latency + rate.serialize(smallest));
        slowest = slowest.max(latency + rate.serialize(largest));
    }
    let shortest = lookaheads[0].min(lookaheads[1]);
    // Time::MAX: there is no such channel.
    let lookahead = if shortest < Time::MAX { shortest } else { Time(1) };
    let lookaheads = lookaheads.map(|of_side| if of_side < Time::MAX { of_side } else { lookahead });
    let bipartition = is_odd.map(|is_odd| Bipartition { is_odd, lookaheads });
    let order = neighbour_order(network);
    let partition = (threads > 1).then(|| {
        let ports = |node| network.ports(node).len() as u64;
        let deferred =
            bipartition.as_ref().map(|sides| deferred_nodes(world, &order, &sides.is_odd, threads));
        // Until the work of nodes has been measured, all ports count as equally busy.
        contiguous(&order, deferred.as_deref(), ports, threads)
    });
    Setup {
        until,
        horizon: slowest + lookahead,
        rebalance: partition.is_some().then(Rebalance::default),
        partition,
        order: Some(order),
        bipartition,
        ..Setup::new(lookahead)
    }
}

/// The bipartition of a network, such as any tree by level: for every node, whether it is on the odd side. `None` if there is none.
fn bipartition(network: &Network, rails: Option<&Rails>) -> Option<Vec<bool>> {
    let mut sides: Vec<Option<bool>> = vec![None; network.nodes() as usize];
    let mut found = Vec::new();
    for first in 0..network.nodes() {
        if sides[first as usize].is_none() {
            sides[first as usize] = Some(false);
            found.push(first);
        }
        while let Some(node) = found.pop() {
            let side = sides[node as usize].expect("it was found with its side");
            let others = network.ports(node).iter().map(|&channel| (network.channel(channel).to, !side));
            // All NICs of a server are one node of the engine.
            let rails = rails.filter(|_| network.is_host(node)).into_iter();
            let nics = rails.flat_map(|rails| {
                let (server, _) = rails.endpoint(node);
                (0..rails.rails())
                    .flat_map(move |rail| rails.hosts(server, rail))
                    .map(move |&nic| (nic, side))
            });
            for (other, side) in others.chain(nics) {
                match sides[other as usize] {
                    Some(known) if known != side => return None,
                    Some(_) => {}
                    None => {
                        sides[other as usize] = Some(side);
                        found.push(other);
                    }
                }
            }
        }
    }
    sides.into_iter().collect()
}

/// Hosts next to their switch, and the switches of a pod next to each other: nodes that send to each other most are close.
fn neighbour_order(network: &Network) -> Vec<NodeIndex> {
    let mut hosts_of: Vec<Vec<NodeIndex>> = vec![Vec::new(); network.switches() as usize];
    for host in 0..network.hosts() {
        hosts_of[(network.edge_switch(host) - network.hosts()) as usize].push(host);
    }
    // Switches of no pod (cores) come last; in a pod those come first that are not next to few hosts, but to all switches that are.
    let mut switches: Vec<NodeId> = (network.hosts()..network.nodes()).collect();
    switches.sort_by_key(|&switch| {
        let hosts = &hosts_of[(switch - network.hosts()) as usize];
        (network.pod(switch), !hosts.is_empty(), switch)
    });
    let mut order = Vec::with_capacity(network.nodes() as usize);
    for switch in switches {
        order.append(&mut hosts_of[(switch - network.hosts()) as usize]);
        order.push(switch);
    }
    order
}

#[cfg(test)]
mod tests {
    use netloom_topology::{BuildContext, Crossbar, Dragonfly, FatTree, HyperX, Topology};
    use netloom_workload::Servers;

    use super::*;

    fn build(topology: Topology) -> Network {
        topology.build(&BuildContext { seed: 1, base_dir: "".as_ref() }).unwrap()
    }

    fn tree() -> Network {
        build(Topology::FatTree(FatTree { k: Some(4), ..FatTree::default() }))
    }

    /// Four switches, each with a host and joined with two others.
    fn square() -> Network {
        build(Topology::HyperX(HyperX {
            dimensions: 2,
            switches_per_dimension: vec![2],
            hosts_per_switch: Some(1),
            ..HyperX::default()
        }))
    }

    #[test]
    fn levels_of_trees_alternate_and_groups_have_no_bipartition() {
        for network in
            [tree(), square(), build(Topology::Crossbar(Crossbar { hosts: 5, ..Crossbar::default() }))]
        {
            let is_odd = bipartition(&network, None).expect("there is a bipartition");
            assert!(network.links().iter().all(|link| is_odd[link.a as usize] != is_odd[link.b as usize]));
        }
        let dragonfly = Dragonfly {
            hosts_per_switch: Some(2),
            switches_per_group: Some(4),
            global_links_per_switch: Some(2),
            ..Dragonfly::default()
        };
        assert_eq!(bipartition(&build(Topology::Dragonfly(dragonfly)), None), None);
    }

    #[test]
    fn a_server_is_on_one_side_or_there_is_no_bipartition() {
        let of = |network: Network| {
            let servers = Servers { nics: 2, ..Servers::default() };
            bipartition(&network, Some(&servers.build(&network, 1).unwrap()))
        };
        assert!(of(tree()).is_some());
        // A server's NICs are at neighbours.
        assert_eq!(of(square()), None);
    }
}
