//! Dimension-order routing on grids: its routes, their virtual channels, and the loads that theory gives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use netloom_topology::{BuildContext, Dimension, HyperX, Mesh, Network, NodeId, SlimFly, Topology, Torus};

use super::channels::{VcRule, next_in_order};
use super::{Forwarding, RouteTable};
use crate::preset;

fn build(topology: Topology) -> Network {
    topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
}

fn torus(sizes: &[u32]) -> Torus {
    let dimensions = sizes.len() as u32;
    Torus { dimensions, switches_per_dimension: sizes.to_vec(), ..Torus::default() }
}

fn twisted(sizes: &[u32]) -> Network {
    build(Topology::Torus(Torus { twisted: true, ..torus(sizes) }))
}

fn mesh(sizes: &[u32]) -> Network {
    let (dimensions, switches_per_dimension) = (sizes.len() as u32, sizes.to_vec());
    build(Topology::Mesh(Mesh { dimensions, switches_per_dimension, ..Mesh::default() }))
}

fn hyperx() -> Network {
    let switches_per_dimension = vec![4, 3, 3];
    build(Topology::HyperX(HyperX { switches_per_dimension, hosts_per_switch: Some(1), ..HyperX::default() }))
}

/// Grids of one host per switch, with and without rings.
fn grids() -> Vec<Network> {
    let partly = Torus { wrap: vec![true, false, true], ..torus(&[5, 4, 3]) };
    vec![
        build(Topology::Torus(torus(&[9]))),
        build(Topology::Torus(torus(&[4, 5]))),
        build(Topology::Torus(torus(&[2, 4, 6]))),
        build(Topology::Torus(partly)),
        twisted(&[3, 6]),
        twisted(&[4, 4, 8]),
        twisted(&[6, 3, 6]),
        mesh(&[4, 3, 2]),
        hyperx(),
    ]
}

fn in_order(network: &Network) -> Forwarding {
    let scheme = preset::find("dimension-order").unwrap().routing();
    Forwarding::build(&scheme, network, |_| false, 1).unwrap()
}

/// All routes between two switches with hosts, as lists of dimensions, and what each visits.
fn follow(
    network: &Network,
    table: &RouteTable,
    (here, edge): (NodeId, u32),
    path: &mut Vec<(u32, Dimension)>,
    visit: &mut impl FnMut(&[(u32, Dimension)]),
) {
    let ports = table.towards_edge(here, edge).ports;
    if ports.is_empty() {
        return visit(path);
    }
    for &port in ports {
        let channel = network.ports(here)[usize::from(port)];
        path.push((channel, network.dimension(channel).unwrap()));
        follow(network, table, (network.channel(channel).to, edge), path, visit);
        path.pop();
    }
}

fn each_route(network: &Network, table: &RouteTable, mut visit: impl FnMut(&[(u32, Dimension)])) {
    for (from, to) in (0..table.edges()).flat_map(|from| (0..table.edges()).map(move |to| (from, to))) {
        follow(network, table, (table.edge_switch(from), to), &mut Vec::new(), &mut visit);
    }
}

#[test]
fn routes_are_minimal_and_go_along_the_dimensions_in_their_order() {
    for network in grids() {
        let (all, ordered) = (RouteTable::minimal(&network, |_| false).unwrap(), in_order(&network));
        let mut most = 0;
        each_route(&network, ordered.table(), |path| {
            assert!(path.is_sorted_by_key(|(_, along)| along.number), "{}: {path:?}", network.name());
            most = most.max(path.len() as u32);
        });
        assert_eq!(most, network.metrics().diameter, "{}", network.name());
        for here in network.hosts()..network.nodes() {
            for edge in 0..all.edges() {
                let (free, bound) =
                    (all.towards_edge(here, edge).ports, ordered.table().towards_edge(here, edge).ports);
                assert!(bound.iter().all(|port| free.contains(port)) && bound.is_empty() == free.is_empty());
            }
        }
    }
}

#[test]
fn datelines_leave_no_cycle_with_two_virtual_channels() {
    for network in grids() {
        let forwarding = in_order(&network);
        assert_eq!(Forwarding::vc_rule([&forwarding].into_iter()), VcRule::Datelines);
        let mut onward: BTreeMap<(u32, u8), BTreeSet<(u32, u8)>> = BTreeMap::new();
        let mut highest = 0;
        each_route(&network, forwarding.table(), |path| {
            let mut vc = 0;
            for pair in path.windows(2) {
                let next = next_in_order(vc, pair[0].1, pair[1].1);
                onward.entry((pair[0].0, vc)).or_default().insert((pair[1].0, next));
                vc = next;
                highest = highest.max(vc);
            }
        });
        // What waits for nothing, or only for what waits for nothing, is taken away until nothing is left.
        let mut left: BTreeSet<(u32, u8)> = onward.keys().copied().collect();
        loop {
            let free: Vec<_> = left.iter().copied().filter(|at| onward[at].is_disjoint(&left)).collect();
            if free.is_empty() {
                break;
            }
            free.iter().for_each(|at| _ = left.remove(at));
        }
        assert!(left.is_empty(), "{}: a cycle among {left:?}", network.name());
        let needed = forwarding.vcs_needed(&network, VcRule::Datelines);
        assert_eq!(highest + 1, needed, "{}", network.name());
        assert_eq!(forwarding.find_cycle(&network, VcRule::Datelines, 1).is_some(), needed == 2);
        assert_eq!(forwarding.find_cycle(&network, VcRule::Datelines, 2), None);
        assert_eq!(forwarding.vcs_without_cycle(&network, VcRule::Datelines), needed);
    }
}

#[test]
fn rings_of_three_meshes_and_hyperx_need_one_virtual_channel() {
    let small = build(Topology::Torus(torus(&[3, 3, 2])));
    for network in [small, mesh(&[5, 4]), hyperx()] {
        assert_eq!(in_order(&network).vcs_needed(&network, VcRule::Datelines), 1, "{}", network.name());
    }
}

#[test]
fn without_some_links_packets_change_virtual_channels_by_hop() {
    let network = build(Topology::Torus(torus(&[5, 5])));
    let scheme = preset::find("dimension-order").unwrap().routing();
    // The first link between switches, both ways.
    let cut = 2 * network.hosts();
    let forwarding = Forwarding::build(&scheme, &network, |channel| channel & !1 == cut, 1).unwrap();
    let rule = Forwarding::vc_rule([&forwarding, &in_order(&network)].into_iter());
    assert_eq!(rule, VcRule::Hops);
    let needed = forwarding.vcs_needed(&network, rule);
    assert_eq!(forwarding.find_cycle(&network, rule, needed), None);
    assert!(needed > 2);
}

/// The load of every channel where each host sends as much to each of the given ones, spread evenly over the ports of each switch.
fn loads(network: &Network, table: &RouteTable, targets: impl Fn(u32) -> Vec<u32>) -> BTreeMap<u32, f64> {
    let mut loads = BTreeMap::new();
    for source in 0..table.edges() {
        let targets = targets(source);
        for &to in &targets {
            let mut front = BTreeMap::from([(table.edge_switch(source), 1.0 / targets.len() as f64)]);
            while !front.is_empty() {
                let mut after = BTreeMap::new();
                for (here, part) in front {
                    let ports = table.towards_edge(here, to).ports;
                    for &port in ports {
                        let channel = network.ports(here)[usize::from(port)];
                        let share = part / ports.len() as f64;
                        *loads.entry(channel).or_insert(0.0) += share;
                        *after.entry(network.channel(channel).to).or_insert(0.0) += share;
                    }
                }
                front = after;
            }
        }
    }
    loads
}

#[test]
fn uniform_traffic_loads_every_channel_of_a_torus_alike() {
    // k/8 with even k, (k² - 1)/8k with odd k, of what a host sends to all, itself too (Dally and Towles, section 5.2.2).
    for (k, load) in [(8, 1.0), (4, 0.5), (5, 24.0 / 40.0)] {
        let network = build(Topology::Torus(torus(&[k, k])));
        let count = network.hosts();
        let all = loads(&network, in_order(&network).table(), |_| (0..count).collect());
        assert_eq!(all.len() as u32, 4 * count);
        assert!(all.values().all(|found| (found - load).abs() < 1e-9), "k = {k}");
    }
    // In a mesh the links in the middle carry twice that.
    let network = mesh(&[8, 8]);
    let all = loads(&network, in_order(&network).table(), |_| (0..64).collect());
    let most = all.values().copied().fold(0.0, f64::max);
    assert!((most - 2.0).abs() < 1e-9);
}

#[test]
fn a_twisted_torus_carries_more_than_one_that_is_not() {
    // The long dimension of 4x4x8 is loaded by k/8 = 1. A twisted one is alike in all directions: at best its load is the mean distance over six.
    let [plain, other] = [build(Topology::Torus(torus(&[4, 4, 8]))), twisted(&[4, 4, 8])];
    let most = |network: &Network, table: &RouteTable| {
        loads(network, table, |_| (0..128).collect()).values().copied().fold(0.0, f64::max)
    };
    assert!((most(&plain, in_order(&plain).table()) - 1.0).abs() < 1e-9);
    let best = (7.0 * 256.0 - 32.0) / 4.0 / 128.0 / 6.0;
    let minimal = most(&other, &RouteTable::minimal(&other, |_| false).unwrap());
    assert!(minimal >= best - 1e-9 && minimal < 0.75, "{best} {minimal}");
}

#[test]
fn tornado_traffic_loads_one_direction_of_a_ring() {
    // Every host sends ⌈k/2⌉ - 1 switches further: that is the load of the links that way round, and 0 the other way (Dally and Towles, section 3.2).
    for k in [5u32, 8, 9] {
        let network = build(Topology::Torus(torus(&[k])));
        let offset = k.div_ceil(2) - 1;
        let all = loads(&network, in_order(&network).table(), |source| vec![(source + offset) % k]);
        assert_eq!(all.len() as u32, k);
        assert!(all.values().all(|&load| load == f64::from(offset)));
    }
}

#[test]
fn networks_without_dimensions_are_refused() {
    let slim_fly = build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }));
    let scheme = preset::find("dimension-order").unwrap().routing();
    let error = Forwarding::build(&scheme, &slim_fly, |_| false, 1).unwrap_err().to_string();
    assert!(error.starts_with("routing.selector: expected another one, or a grid of dimensions"), "{error}");
}
