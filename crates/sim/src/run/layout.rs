//! How the engine cuts time, and on which thread each node runs.

use netloom_engine::{Balance, NodeIndex, Setup, Sides, contiguous, late};
use netloom_topology::{Channel, Network, NodeId};
use netloom_units::Time;
use netloom_workload::Rails;

use crate::protocol::declaration::Parts;
use crate::protocol::smallest;
use crate::world::World;

/// How the engine cuts time and places nodes.
pub(crate) fn setup(world: &World, threads: usize, until: Time) -> Setup {
    let network = &world.network;
    let World { fabric, routing, transport, .. } = world;
    let smallest = smallest(Parts { fabric, routing, transport });
    // Under cut-through a packet counts as arrived when so much of it has passed.
    let smallest = smallest.min(fabric.options.cut_through.unwrap_or(smallest));
    let largest = world.transport.packet_size();
    let of = sides(network, world.servers.as_ref().map(|servers| &*servers.rails));
    let mut lookaheads = [Time::MAX; 2];
    let mut slowest = Time::ZERO;
    for id in 0..network.channels() {
        let Channel { from, rate, .. } = network.channel(id);
        let latency = world.latency(id);
        let side = of.as_ref().is_some_and(|of| of[from as usize]);
        let lookahead = &mut lookaheads[usize::from(side)];
        *lookahead = (*lookahead).min(latency + rate.serialize(smallest));
        slowest = slowest.max(latency + rate.serialize(largest));
    }
    let shortest = lookaheads[0].min(lookaheads[1]);
    // Time::MAX: there is no such channel.
    let lookahead = if shortest < Time::MAX { shortest } else { Time(1) };
    let lookaheads = lookaheads.map(|of_side| if of_side < Time::MAX { of_side } else { lookahead });
    let sides = of.map(|of| Sides { of, lookaheads });
    let order = neighbour_order(network);
    let placed = (threads > 1).then(|| {
        let ports = |node| network.ports(node).len() as u64;
        let late = sides.as_ref().map(|sides| late(world, &order, &sides.of, threads));
        // Until it shows who has how much to do, as if all ports were as busy.
        (contiguous(&order, late.as_deref(), ports, threads), Balance::default())
    });
    let (parts, balance) = placed.unzip();
    Setup {
        until,
        horizon: slowest + lookahead,
        parts,
        order: Some(order),
        balance,
        sides,
        ..Setup::new(lookahead)
    }
}

/// The two sides of a network in which no channel joins nodes of one side, such as any tree, by level. `None` if there are none.
fn sides(network: &Network, rails: Option<&Rails>) -> Option<Vec<bool>> {
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
            // All NICs of a server live in one node.
            let rails = rails.filter(|_| network.is_host(node)).into_iter();
            let nics = rails.flat_map(|rails| {
                let (server, _) = rails.server(node);
                (0..rails.nics()).map(move |rail| (rails.nic(server, rail), side))
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

/// Hosts next to their switch, and the switches of a pod next to each other: nodes that talk to each other most are close.
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
    use netloom_workload::{Servers, Wiring};

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
    fn levels_of_trees_alternate_and_groups_have_no_sides() {
        for network in
            [tree(), square(), build(Topology::Crossbar(Crossbar { hosts: 5, ..Crossbar::default() }))]
        {
            let of = sides(&network, None).expect("two sides");
            assert!(network.links().iter().all(|link| of[link.a as usize] != of[link.b as usize]));
        }
        let dragonfly = Dragonfly {
            hosts_per_switch: Some(2),
            switches_per_group: Some(4),
            global_links_per_switch: Some(2),
            ..Dragonfly::default()
        };
        assert_eq!(sides(&build(Topology::Dragonfly(dragonfly)), None), None);
    }

    #[test]
    fn a_server_is_on_one_side_or_there_are_none() {
        let of = |network: Network| {
            let servers = Servers { nics: 2, wiring: Wiring::SideBySide, ..Servers::default() };
            sides(&network, Some(&servers.lay(&network, 1).unwrap()))
        };
        assert!(of(tree()).is_some());
        // A server's NICs are at neighbours.
        assert_eq!(of(square()), None);
    }
}
