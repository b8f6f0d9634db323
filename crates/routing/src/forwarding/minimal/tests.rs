use std::path::Path;

use netloom_topology::{BuildContext, Complete, Dragonfly, FatTree, Jellyfish, SlimFly, Topology};
use proptest::prelude::*;

use super::*;

fn networks() -> Vec<Network> {
    let build =
        |topology: Topology| topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
    vec![
        build(Topology::FatTree(FatTree { k: Some(8), ..FatTree::default() })),
        build(Topology::SlimFly(SlimFly { q: Some(7), ..SlimFly::default() })),
        build(Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(3), ..Dragonfly::default() })),
        build(Topology::Jellyfish(Jellyfish { switches: 90, degree: 5, ..Jellyfish::default() })),
        // With more ports than a word has bits.
        build(Topology::Complete(Complete { switches: 75, ..Complete::default() })),
    ]
}

/// The lengths of the ways of all switches to one, global links before hops, found by trying every link until nothing changes.
fn lengths(network: &Network, is_cut: &[bool], root: NodeId) -> Vec<Option<(u32, u32)>> {
    let hosts = network.hosts();
    let mut lengths = vec![None; network.nodes() as usize];
    lengths[root as usize] = Some((0, 0));
    loop {
        let mut changes = false;
        for channel in (0..network.channels()).filter(|&channel| !is_cut[channel as usize / 2]) {
            let ends = network.channel(channel);
            let is_between = ends.from >= hosts && ends.to >= hosts;
            let Some((globals, hops)) = lengths[ends.to as usize].filter(|_| is_between) else {
                continue;
            };
            let through = (globals + u32::from(network.global_tier() == Some(ends.tier)), hops + 1);
            let length = &mut lengths[ends.from as usize];
            if length.is_none_or(|length| through < length) {
                (*length, changes) = (Some(through), true);
            }
        }
        if !changes {
            return lengths;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// On what is left of a network every port leads nearer by its length, and the hops are those of the way, whether switches share rows or not. Sets are numbered as they
    /// come up: shared ones by edge switch, then by switch, after those that were there before, a switch's own by edge switch. A block of ways is that of the single ones.
    #[test]
    fn ports_lie_on_the_shortest_ways(
        of in 0usize..5, seed in any::<u64>(), cuts in 0u64..4, is_later in any::<bool>(), shares in any::<bool>(),
    ) {
        let network = &networks()[of];
        let is_cut: Vec<bool> = (0..u64::from(network.channels()) / 2)
            .map(|link| {
                let ends = network.links()[link as usize];
                let is_between = !network.is_host(ends.a) && !network.is_host(ends.b);
                is_between && seed.wrapping_add(link).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59 < cuts
            })
            .collect();
        let is_channel_cut = |channel: ChannelId| is_cut[channel as usize / 2];
        let least = if shares { 0 } else { usize::MAX };
        let before = is_later.then(|| {
            let is_cut = |channel| channel / 2 % 5 == 3 && is_channel_cut(channel);
            RouteTable::shared_from(least, network, Links::new(network, is_cut), None)
        });
        let table = RouteTable::shared_from(least, network, Links::new(network, is_channel_cut), before.as_ref());
        prop_assert_eq!(matches!(table.rows, Kept::Shared(_)), shares);
        let hops = Hops::measure(network, &table, is_channel_cut);
        let switches = network.hosts()..network.nodes();
        let shared = before.iter().flat_map(|table| match &table.rows {
            Kept::Shared(shared) => shared.sets.iter().map(<[PortId]>::to_vec).collect(),
            Kept::Own(_) => Vec::new(),
        });
        // One list of all switches, or one of each.
        let mut known: Vec<Vec<Vec<PortId>>> = vec![shared.collect(); if shares { 1 } else { switches.len() }];
        let (mut lost, mut by_block) = (Vec::new(), Vec::new());
        for edge in 0..table.edges() {
            let root = table.edge_switch(edge);
            let lengths = lengths(network, &is_cut, root);
            for here in switches.clone() {
                let is_nearer = |&(_, &channel): &(PortId, &ChannelId)| {
                    let ends = network.channel(channel);
                    let global = u32::from(network.global_tier() == Some(ends.tier));
                    !is_channel_cut(channel)
                        && ends.to >= network.hosts()
                        && lengths[ends.to as usize].map(|(globals, hops)| (globals + global, hops + 1))
                            .is_some_and(|through| lengths[here as usize] == Some(through))
                };
                let ports = (0..).zip(network.ports(here)).filter(is_nearer);
                let expected: Vec<PortId> = ports.map(|(port, _)| port).collect();
                let found = table.towards_edge(here, edge);
                prop_assert_eq!(found.ports, &expected);
                let first = edge / 64 * 64;
                table.towards_block(here, first..table.edges().min(first + 64), &mut by_block);
                let in_block = by_block.iter().filter(|&&(_, to)| to >> (edge % 64) & 1 == 1);
                prop_assert_eq!(in_block.map(|&(port, _)| port).collect::<Vec<_>>(), expected.clone());
                prop_assert!(by_block.is_sorted() && by_block.iter().all(|&(_, to)| to != 0));
                if here != root && expected.is_empty() && (0..table.edges()).any(|edge| table.edge_switch(edge) == here) {
                    lost.push((edge, here));
                }
                let known = &mut known[if shares { 0 } else { (here - network.hosts()) as usize }];
                let number = known.iter().position(|set| *set == expected).unwrap_or_else(|| {
                    known.push(expected);
                    known.len() - 1
                });
                prop_assert!(here == root || found.set as usize == number);
            }
            for from in 0..table.edges() {
                let length = lengths[table.edge_switch(from) as usize].unwrap_or((255, 255));
                prop_assert_eq!((u32::from(hops.globals(from, edge)), hops.between(from, edge)), length);
            }
        }
        let unreachable = table.unreachable().map(|lost| (table.edge_of(lost.host), lost.switch));
        prop_assert_eq!(unreachable, lost.into_iter().min());
    }

    /// Where a random network's ways do not change at a switch, nor do the numbers of its sets.
    #[test]
    fn numbers_stay_where_ways_do(seed in any::<u64>()) {
        let network = &networks()[3];
        let cut = (seed % u64::from(network.channels() / 2)) as u32;
        let is_cut = |channel| channel / 2 == cut && !network.is_host(network.channel(channel).from) && !network.is_host(network.channel(channel).to);
        let before = RouteTable::shared_from(usize::MAX, network, Links::new(network, |_| false), None);
        let after = RouteTable::in_part(network, is_cut, Some(&before));
        for here in (network.hosts()..network.nodes()).filter(|&here| before.agrees_at(here, &after)) {
            for edge in 0..before.edges() {
                prop_assert_eq!(before.towards_edge(here, edge).set, after.towards_edge(here, edge).set);
            }
        }
    }
}

/// A random network of some size shares too few sets.
#[test]
fn regular_networks_share_rows_and_random_ones_do_not() {
    let build =
        |topology: Topology| topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
    let random = build(Topology::Jellyfish(Jellyfish { switches: 300, degree: 16, ..Jellyfish::default() }));
    let shares =
        |network: &Network| matches!(RouteTable::in_part(network, |_| false, None).rows, Kept::Shared(_));
    assert!(networks().iter().all(shares));
    assert!(!shares(&random));
}

/// With all links and without some, so that nothing leads to some hosts.
#[test]
fn a_row_says_which_port_is_the_only_one() {
    for (network, every) in networks().iter().flat_map(|network| [(network, u32::MAX), (network, 2)]) {
        let table = RouteTable::in_part(network, |channel| channel / 2 % every == 1, None);
        for here in network.hosts()..network.nodes() {
            let row = table.row(here);
            for host in 0..network.hosts() {
                let ports = table.candidates_in_row(row, host).ports;
                match table.in_row(row).only_port(host) {
                    Ok(port) => assert_eq!(ports, [port]),
                    Err(set) => assert!(ports.len() != 1 && table.set(row, set) == ports),
                }
            }
        }
    }
}

#[test]
fn switches_with_equal_ways_share_a_row() {
    let table = RouteTable::minimal(&networks()[0], |_| false).unwrap();
    let Kept::Shared(shared) = &table.rows else { panic!("sets of ports are shared") };
    let rows: std::collections::BTreeSet<_> = shared.row_of.iter().collect();
    // Those of edge switches, of each of eight pods, and of core switches.
    assert_eq!((rows.len(), shared.set_of.len()), (10, 10 * 32));
}

/// By a product where switches have equally many hosts, one after the other, the last one perhaps fewer; by a list elsewhere.
#[test]
fn the_edge_switches_of_hosts_are_the_listed_ones() {
    for each in 1..70 {
        let listed: Vec<u32> = (0..each * 40 - each / 2).map(|host| host / each).collect();
        let edges = Edges::new(listed.clone(), 40);
        assert_ne!(edges.reciprocal, 0, "{each} hosts per switch");
        assert!((0..).zip(&listed).all(|(host, &edge)| edges.of(host) == edge));
    }
    for listed in [vec![0, 1, 0, 1], vec![0, 0, 0, 1, 1, 2], vec![0, 1, 1]] {
        let edges = Edges::new(listed.clone(), 2);
        assert_eq!(edges.reciprocal, 0, "{listed:?}");
        assert!((0..).zip(&listed).all(|(host, &edge)| edges.of(host) == edge));
    }
}
