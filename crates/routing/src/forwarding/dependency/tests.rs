use std::collections::BTreeSet;
use std::path::Path;

use netloom_topology::{
    BuildContext, Dragonfly, FatTree, HyperX, KaryNTree, NetworkBuilder, SlimFly, Topology, Xgft,
};
use netloom_units::{Rate, Time};
use proptest::prelude::*;

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::forwarding::Forwarding;
use crate::forwarding::channels::VcRule;
use crate::header::{Carries, Header, View};
use crate::path_selector::PacketContext;
use crate::preset;
use crate::selector::Selector;
use crate::selector::layer::{Construction, Layer, WithinLayer};
use crate::selector::random::below;
use crate::selector::ugal::Ugal;
use crate::selector::valiant::{Intermediate, Valiant};
use crate::tag::Tag;

pub(super) fn build(topology: Topology) -> Network {
    topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
}

pub(super) fn slim_fly() -> Network {
    build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }))
}

/// Three dimensions of seven switches: as many hops as any HyperX of three dimensions has, at a small part of the default one's size.
pub(super) fn hyperx() -> Network {
    let switches_per_dimension = vec![7];
    build(Topology::HyperX(HyperX { switches_per_dimension, hosts_per_switch: Some(1), ..HyperX::default() }))
}

pub(super) fn dragonfly() -> Network {
    build(Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(2), ..Dragonfly::default() }))
}

/// Switches with one host each, where `groups` of them follow each other, and links between them.
fn wired(groups: &[u32], links: &[(u32, u32)]) -> Network {
    wired_with(groups, links, false)
}

/// The same; links between groups may be global ones.
pub(super) fn wired_with(groups: &[u32], links: &[(u32, u32)], has_ranks: bool) -> Network {
    let mut builder = NetworkBuilder::new("wired");
    let hosts = builder.add_hosts(groups.len() as u32);
    let count = hosts.len() as u32;
    groups.iter().for_each(|&group| {
        builder.add_switch(0, group);
    });
    let (tier, global) = (builder.tier("all"), builder.tier("global"));
    if has_ranks {
        builder.global_tier(global);
    }
    let mut link = |a, b, tier| builder.link(a, b, Rate::from_gbps(1), Time(1), tier);
    hosts.for_each(|host| {
        link(host, count + host, tier);
    });
    links.iter().for_each(|&(a, b)| {
        let is_between = has_ranks && groups[a as usize] != groups[b as usize];
        link(count + a, count + b, if is_between { global } else { tier });
    });
    builder.build().unwrap()
}

fn ring(switches: u32) -> Network {
    let links: Vec<_> = (0..switches).map(|i| (i, (i + 1) % switches)).collect();
    wired(&vec![0; switches as usize], &links)
}

pub(super) fn minimal(network: &Network) -> RouteTable {
    RouteTable::minimal(network, |_| false).unwrap()
}

#[test]
fn a_ring_deadlocks_with_one_virtual_channel_and_the_cycle_is_named() {
    for switches in 4..10 {
        let network = ring(switches);
        let table = minimal(&network);
        let cycle = find_cycle(&network, &table, Ways::Minimal, 1).unwrap();
        assert_eq!(cycle.len(), switches as usize);
        for (&(channel, vc), &(next, _)) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
            assert_eq!((network.channel(channel).to, vc), (network.channel(next).from, 0));
        }
        let longest = vcs_needed(&network, &table, Ways::Minimal);
        assert_eq!(u32::from(longest), switches / 2);
        assert_eq!(find_cycle(&network, &table, Ways::Minimal, longest), None);
    }
    // In a triangle no packet goes on to a second link.
    assert_eq!(find_cycle(&ring(3), &minimal(&ring(3)), Ways::Minimal, 1), None);
}

#[test]
fn long_rings_need_many_virtual_channels() {
    let network = ring(160);
    let table = minimal(&network);
    assert_eq!(vcs_needed(&network, &table, Ways::Minimal), 80);
    assert_eq!(find_cycle(&network, &table, Ways::Minimal, 80), None);
    let cycle = find_cycle(&network, &table, Ways::Minimal, 79).unwrap();
    assert!(cycle.iter().all(|&(_, vc)| vc == 78), "packets on their last two hops wait for each other");
}

#[test]
fn trees_need_one_virtual_channel() {
    let trees = [
        Topology::KaryNTree(KaryNTree::default()),
        Topology::FatTree(FatTree { k: Some(6), ..FatTree::default() }),
        Topology::Xgft(Xgft { m: vec![3, 2, 4], w: vec![1, 2, 3], ..Xgft::default() }),
    ];
    for network in trees.map(build) {
        let table = minimal(&network);
        assert_eq!(find_cycle(&network, &table, Ways::Minimal, 1), None, "{}", network.name());
        let levels = network.level(network.nodes() - 1);
        assert_eq!(vcs_needed(&network, &table, Ways::Minimal), 2 * (levels - 1));
    }
}

#[test]
fn low_diameter_networks_need_as_many_as_their_diameter_and_a_dragonfly_one_per_side_of_a_global_link() {
    for (network, needed) in [(slim_fly(), 2), (dragonfly(), 2), (hyperx(), 3)] {
        let table = minimal(&network);
        assert_eq!(vcs_needed(&network, &table, Ways::Minimal), needed);
        assert!(find_cycle(&network, &table, Ways::Minimal, needed - 1).is_some(), "{}", network.name());
        assert_eq!(find_cycle(&network, &table, Ways::Minimal, needed), None, "{}", network.name());
    }
}

#[test]
fn a_dragonflys_packets_need_three_over_a_group_and_four_over_a_switch() {
    let network = dragonfly();
    let table = minimal(&network);
    for (intermediate, needed) in [(Intermediate::Group, 3), (Intermediate::Switch, 4)] {
        let via = Intermediates::build(&Valiant { intermediate }, &network, &table).unwrap();
        assert_eq!(vcs_needed(&network, &table, Ways::Via(&via)), needed);
        assert!(find_cycle(&network, &table, Ways::Via(&via), needed - 1).is_some());
        assert_eq!(find_cycle(&network, &table, Ways::Via(&via), needed), None);
    }
}

#[test]
fn layers_and_intermediate_switches_need_more() {
    let network = slim_fly();
    let table = minimal(&network);
    let layers = Layers::build(&Layer::default(), &network, |_| false, 3).unwrap();
    let via = Intermediates::build(&Valiant::default(), &network, &table).unwrap();
    let dragonfly = dragonfly();
    let dragonfly_table = minimal(&dragonfly);
    let by_group = Valiant { intermediate: Intermediate::Group };
    let groups = Intermediates::build(&by_group, &dragonfly, &dragonfly_table).unwrap();
    assert_eq!(vcs_needed(&network, &table, Ways::Via(&via)), 4);
    assert!(vcs_needed(&network, &table, Ways::Layers(&layers)) > 2);
    for (network, table, ways) in [
        (&network, &table, Ways::Layers(&layers)),
        (&network, &table, Ways::Via(&via)),
        (&dragonfly, &dragonfly_table, Ways::Via(&groups)),
    ] {
        let longest = vcs_needed(network, table, ways);
        assert!(find_cycle(network, table, ways, 1).is_some());
        assert_eq!(find_cycle(network, table, ways, longest), None);
    }
}

#[test]
fn one_layer_that_is_a_tree_has_no_cycle() {
    let past = Construction::Past(netloom_paths::routes::Past { layers: 1, ..Default::default() });
    let network = slim_fly();
    let layers =
        Layers::build(&Layer { construction: past, ..Layer::default() }, &network, |_| false, 3).unwrap();
    // One tree per destination, each its own: only all of them together make a cycle.
    assert!(find_cycle(&network, &minimal(&network), Ways::Layers(&layers), 1).is_some());
    let spain = netloom_paths::routes::Spain { layers: Some(1), ..Default::default() };
    let layer = Layer { construction: Construction::Spain(spain), ..Layer::default() };
    let links: Vec<_> = (1..8).map(|i| (i, (i - 1) / 2)).collect();
    let tree = wired(&[0; 8], &links);
    let layers = Layers::build(&layer, &tree, |_| false, 3).unwrap();
    assert_eq!(find_cycle(&tree, &minimal(&tree), Ways::Layers(&layers), 1), None);
}

/// Where layers lead along minimal paths, as PAST's trees do and sparse layers of many links, nothing needs to be followed.
#[test]
fn layers_of_minimal_paths_on_a_tree_have_no_cycle() {
    let network = build(Topology::FatTree(FatTree { k: Some(6), ..FatTree::default() }));
    let table = minimal(&network);
    let past = || Construction::Past(netloom_paths::routes::Past::default());
    let random = |rho| {
        let layers = netloom_paths::routes::RandomLayers { layers: 3, rho, ..Default::default() };
        Construction::RandomLayers(layers)
    };
    for (construction, has_cycle) in [(past(), false), (random(1.0), false), (random(0.5), true)] {
        for within_layer in [WithinLayer::SinglePath, WithinLayer::Ecmp] {
            let config = Layer { construction: construction.clone(), within_layer, ..Layer::default() };
            let layers = Layers::build(&config, &network, |_| false, 3).unwrap();
            let ways = Ways::Layers(&layers);
            assert_eq!(known_cycle(&network, &table, ways, None, 1), Some(has_cycle), "{config:?}");
            assert_eq!(known_cycle(&network, &table, ways, None, 2), Some(false).filter(|_| !has_cycle));
            let mut graph = Dependencies::new(&network, 1);
            follow(&network, &table, ways, 1, &mut graph);
            assert_eq!(graph.cycle().is_some(), has_cycle);
        }
    }
    let slim_fly = slim_fly();
    let config = Layer { construction: past(), ..Layer::default() };
    let layers = Layers::build(&config, &slim_fly, |_| false, 3).unwrap();
    assert_eq!(known_cycle(&slim_fly, &minimal(&slim_fly), Ways::Layers(&layers), None, 1), None);
}

/// Connected graphs of switches in up to three groups; in some of them the links between groups are global.
pub(super) fn graphs() -> impl Strategy<Value = Network> {
    (3..9u32)
        .prop_flat_map(|switches| {
            let parents: Vec<_> = (1..switches).map(|i| 0..i).collect();
            let more = prop::collection::vec((0..switches, 1..switches), 0..8);
            let groups = prop::collection::vec(0..4u32, switches as usize);
            (Just(switches), parents, more, groups, any::<bool>())
        })
        .prop_map(|(switches, parents, more, groups, has_ranks)| {
            let mut links: Vec<_> = (1..).zip(parents).collect();
            links.extend(more.into_iter().map(|(a, offset)| (a, (a + offset) % switches)));
            wired_with(&groups, &links, has_ranks)
        })
}

type Dependency = ((ChannelId, u8), (ChannelId, u8));

/// A visitor of all dependencies.
struct Listener<F>(F);

impl<F: FnMut(ChannelId, VcSet, &Onward)> Listen for Listener<F> {
    fn depend(&mut self, channel: ChannelId, at: VcSet, onward: &Onward) {
        self.0(channel, at, onward);
    }
}

/// The dependencies that [`follow`] finds.
fn followed(network: &Network, table: &RouteTable, ways: Ways<'_>, vcs: u8) -> BTreeSet<Dependency> {
    let mut found = BTreeSet::new();
    follow(
        network,
        table,
        ways,
        vcs,
        &mut Listener(|channel: ChannelId, at: VcSet, onward: &Onward| {
            let here = network.ports(network.channel(channel).to);
            let ports = || (0..here.len()).filter(|port| onward.words[port / 64] >> (port % 64) & 1 == 1);
            for (vc, port) in at.iter().flat_map(|vc| ports().map(move |port| (vc, port))) {
                let next = here[port];
                let ranks = (rank(network, channel), rank(network, next));
                found.insert(((channel, vc), (next, channels::next(vc, ranks.0, ranks.1, vcs))));
            }
        }),
    );
    found
}

/// The same, walking every single route: `ports` are those of a switch for a packet whose state is `state`, which the walk
/// may change.
fn walked<S: Clone>(
    network: &Network,
    routes: impl Iterator<Item = (NodeId, S)>,
    ports: impl Fn(NodeId, &mut S) -> Vec<PortId>,
    vcs: u8,
) -> BTreeSet<Dependency> {
    let mut found = BTreeSet::new();
    let mut open: Vec<_> = routes.map(|(from, state)| (from, state, None::<(ChannelId, u8)>)).collect();
    while let Some((here, mut state, came)) = open.pop() {
        for port in ports(here, &mut state) {
            let channel = network.ports(here)[usize::from(port)];
            let after = |(came, vc)| channels::next(vc, rank(network, came), rank(network, channel), vcs);
            let now = (channel, came.map_or(0, after));
            found.extend(came.map(|came| (came, now)));
            open.push((network.channel(channel).to, state.clone(), Some(now)));
        }
    }
    found
}

/// A scheme that weighs paths, built for a network.
pub(super) fn weighing(network: &Network, config: Ugal) -> Result<Forwarding, crate::ForwardingError> {
    let mut scheme = preset::find("ugal-l").unwrap().routing();
    scheme.selector = Selector::Ugal(config);
    Forwarding::build(&scheme, network, |_| false, 1)
}

/// A switch whose loads are drawn anew at every look.
struct Drawn(Pcg64Mcg);

impl View for Drawn {
    fn now(&self) -> netloom_units::Time {
        netloom_units::Time::ZERO
    }

    fn load(&mut self, _: PortId) -> u64 {
        u64::from(self.0.next_u32()) % 100_000
    }
    fn rate(&self, _: PortId) -> u64 {
        1
    }
}

/// The channels between switches, and their virtual channels, that a packet crosses whose decisions are taken at random loads.
fn walk(
    network: &Network,
    forwarding: &Forwarding,
    src: u32,
    dst: u32,
    vcs: u8,
    view: &mut Drawn,
) -> Vec<(ChannelId, u8)> {
    let carries = Carries::Data;
    let mut header =
        Header { src, dst, flow: 0, tag: Tag::DIRECT, bytes: 4160, payload: 4096, hops: 1, carries };
    let (mut here, mut way) = (network.edge_switch(src), Vec::<(ChannelId, u8)>::new());
    loop {
        let mut random = Pcg64Mcg::new(view.0.next_u64().into());
        let mut choose = |ports| below(ports, &mut random);
        let mut hop = forwarding.onward(here, &header, &mut choose);
        if forwarding.is_decided(here, &header) {
            let packet = PacketContext { forwarding, place: forwarding.place(here), header: &header };
            let choice = forwarding.alternatives().unwrap().choose(packet, hop, view, &mut random);
            hop = choice.map_or(hop, |(hop, _)| hop);
        }
        let channel = network.ports(here)[usize::from(hop.port)];
        here = network.channel(channel).to;
        if here == dst {
            return way;
        }
        let vc = way
            .last()
            .map_or(0, |&(last, vc)| channels::next(vc, rank(network, last), rank(network, channel), vcs));
        way.push((channel, vc));
        (header.tag, header.hops) = (hop.tag, header.hops + 1);
        assert!(way.len() < 30, "{way:?}");
    }
}

#[test]
fn ugal_needs_three_virtual_channels_on_a_dragonfly_and_par_four() {
    let network = dragonfly();
    for (preset, needed) in [("ugal-l", 3), ("ugal-g", 3), ("par", 4)] {
        let scheme = preset::find(preset).unwrap().routing();
        let forwarding = Forwarding::build(&scheme, &network, |_| false, 1).unwrap();
        assert_eq!(forwarding.vcs_needed(&network, VcRule::Hops), needed, "{preset}");
        assert!(forwarding.find_cycle(&network, VcRule::Hops, needed - 1).is_some(), "{preset}");
        assert_eq!(forwarding.find_cycle(&network, VcRule::Hops, needed), None, "{preset}");
    }
    for (network, needed) in [(slim_fly(), 4), (hyperx(), 6)] {
        let forwarding = weighing(&network, Ugal::default()).unwrap();
        assert_eq!(
            forwarding.vcs_needed(&network, VcRule::Hops),
            needed,
            "as many hops as Valiant's longest route"
        );
    }
}

#[test]
fn detours_between_more_switches_than_a_block_takes_are_all_followed() {
    let mut links: Vec<_> = (1..70).map(|switch| (switch, (switch - 1) / 2)).collect();
    links.extend([(30, 69), (17, 44), (5, 60)]);
    let groups: Vec<_> = (0..70).map(|switch| switch / 24).collect();
    let network = wired_with(&groups, &links, true);
    let table = minimal(&network);
    for intermediate in [Intermediate::Switch, Intermediate::Group] {
        let via = Intermediates::build(&Valiant { intermediate }, &network, &table).unwrap();
        let (group, groups) = (|edge| via.group(edge), via.groups());
        let lies = |from, to, over| match group(from) == group(to) {
            true => group(over) == group(from) && over != from && over != to,
            false => groups > 2 && group(over) != group(from) && group(over) != group(to),
        };
        let triples = (0..70u32).flat_map(|from| (0..70u32).map(move |to| (from, to)));
        let triples = triples.filter(|(from, to)| from != to);
        let triples = triples.flat_map(|(from, to)| (0..70u32).map(move |over| (from, to, over)));
        let routes = triples.filter(|&(from, to, over)| lies(from, to, over));
        let routes = routes.map(|(from, to, over)| (table.edge_switch(from), (from, to, Some(over))));
        let ports = |here, (from, to, over): &mut (u32, u32, Option<u32>)| {
            if over.is_some_and(|over| via.is_passed(&table, *from, over, here)) {
                *over = None;
            }
            table.towards_edge(here, over.unwrap_or(*to)).ports.to_vec()
        };
        let expected = walked(&network, routes, ports, 3);
        assert_eq!(followed(&network, &table, Ways::Via(&via), 3), expected);
    }
}

#[test]
fn weighed_ways_have_the_promised_hops_on_every_family() {
    let flowcut = Some(netloom_topology::DragonflyPreset::Flowcut1024);
    let flowcut = build(Topology::Dragonfly(Dragonfly {
        preset: flowcut,
        hosts_per_switch: Some(1),
        ..Dragonfly::default()
    }));
    // The longest ways: local, global, local, global, local; and a local hop more where it is decided again. Where all switches have links to
    // all groups, one of the local hops is left out.
    for (network, minimal, longest) in
        [(dragonfly(), 3, 5), (flowcut, 2, 4), (slim_fly(), 2, 4), (hyperx(), 3, 6)]
    {
        for (progressive, ways) in [(false, 1), (false, 16), (true, 1), (true, 16)] {
            let config = Ugal { progressive, minimal: ways, non_minimal: ways, ..Ugal::default() };
            let Ok(forwarding) = weighing(&network, config) else {
                assert!(progressive && network.global_tier().is_none());
                continue;
            };
            let (hosts, mut view) = (network.hosts(), Drawn(Pcg64Mcg::new(3)));
            let mut lengths = BTreeSet::new();
            for (src, dst) in
                (0..hosts).step_by(3).flat_map(|src| (0..hosts).step_by(5).map(move |dst| (src, dst)))
            {
                if network.edge_switch(src) != network.edge_switch(dst) {
                    let way = walk(&network, &forwarding, src, dst, 9, &mut view);
                    let globals = way.iter().filter(|(channel, _)| rank(&network, *channel) == 1).count();
                    assert!(globals <= 2, "{way:?}");
                    lengths.insert(way.len());
                }
            }
            let longest = longest + usize::from(progressive);
            assert!(lengths.contains(&1) && lengths.contains(&minimal), "{lengths:?}");
            assert_eq!(lengths.last(), Some(&longest), "{} {lengths:?}", network.name());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_weighed_way_causes_a_dependency_that_is_not_found(
        network in graphs(),
        vcs in 1..6u8,
        ways in 1..4u32,
        progressive in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let has_groups = network.global_tier().is_some();
        let config = Ugal { minimal: ways, non_minimal: ways, progressive, ..Ugal::default() };
        let Ok(forwarding) = weighing(&network, config) else {
            prop_assert!(progressive || has_groups, "only groups and PAR can be missing");
            return Ok(());
        };
        let found = followed(&network, forwarding.table(), forwarding.ways(), vcs);
        let mut view = Drawn(Pcg64Mcg::new(seed.into()));
        let hosts = network.hosts();
        for (src, dst) in (0..hosts).flat_map(|src| (0..hosts).map(move |dst| (src, dst))).filter(|(src, dst)| src != dst) {
            for _ in 0..20 {
                for pair in walk(&network, &forwarding, src, dst, vcs, &mut view).windows(2) {
                    prop_assert!(found.contains(&(pair[0], pair[1])), "{:?}", pair);
                }
            }
        }
        let needed = forwarding.vcs_needed(&network, VcRule::Hops);
        prop_assert_eq!(forwarding.find_cycle(&network, VcRule::Hops, needed), None);
    }

    #[test]
    fn only_real_dependencies_are_found_and_all_of_them(network in graphs(), vcs in 1..6u8) {
        let table = minimal(&network);
        let edges = 0..table.edges();
        let pairs = || edges.clone().flat_map(|a| (0..table.edges()).map(move |b| (a, b)));
        let pairs = || pairs().filter(|(a, b)| a != b);
        let routes = pairs().map(|(from, to)| (table.edge_switch(from), to));
        let expected =
            walked(&network, routes, |here, to| table.towards_edge(here, *to).ports.to_vec(), vcs);
        prop_assert_eq!(followed(&network, &table, Ways::Minimal, vcs), expected);

        for intermediate in [Intermediate::Switch, Intermediate::Group] {
            let Ok(via) = Intermediates::build(&Valiant { intermediate }, &network, &table) else { continue };
            // Every intermediate switch that is ever drawn between two switches.
            let between = |from, to| -> BTreeSet<Option<u32>> {
                let mut random = rand_pcg::Pcg64Mcg::new(7);
                (0..200).map(|_| via.draw(from, to, &mut random)).collect()
            };
            let drawn = |(from, to)| between(from, to).into_iter().map(move |over| (from, to, over));
            let routes = pairs().flat_map(drawn);
            let routes = routes.map(|(from, to, over)| (table.edge_switch(from), (from, to, over)));
            let ports = |here, (from, to, over): &mut (u32, u32, Option<u32>)| {
                if over.is_some_and(|over| via.is_passed(&table, *from, over, here)) {
                    *over = None;
                }
                table.towards_edge(here, over.unwrap_or(*to)).ports.to_vec()
            };
            let expected = walked(&network, routes, ports, vcs);
            prop_assert_eq!(followed(&network, &table, Ways::Via(&via), vcs), expected);
        }

        let random =
            netloom_paths::routes::RandomLayers { layers: 3, rho: 0.4, retries: 0, ..Default::default() };
        for within_layer in [WithinLayer::SinglePath, WithinLayer::Ecmp] {
            let construction = Construction::RandomLayers(random.clone());
            let config = Layer { within_layer, construction, ..Layer::default() };
            let layers = Layers::build(&config, &network, |_| false, 3).unwrap();
            let router = |edge| layers.router(table.edge_switch(edge));
            let leads = |from, to| {
                let some: Vec<_> =
                    (0..3).filter(|&layer| layers.connects(layer, router(from), router(to))).map(Some).collect();
                if some.is_empty() { vec![None] } else { some }
            };
            let routes = pairs().flat_map(|(from, to)| leads(from, to).into_iter().map(move |by| (from, to, by)));
            let routes = routes.map(|(from, to, by)| (table.edge_switch(from), (to, by)));
            let ports = |here, (to, by): &mut (u32, Option<u32>)| match by {
                Some(layer) => layers.ports(*layer, layers.router(here), router(*to)),
                None => table.towards_edge(here, *to).ports.to_vec(),
            };
            let expected = walked(&network, routes, ports, vcs);
            prop_assert_eq!(followed(&network, &table, Ways::Layers(&layers), vcs), expected);
        }
    }

    #[test]
    fn as_many_virtual_channels_as_routes_use_never_have_a_cycle(network in graphs(), more in 0..3u8) {
        let table = minimal(&network);
        let via = Intermediates::build(&Valiant::default(), &network, &table).unwrap();
        let layered = |within_layer, rho| {
            let random = netloom_paths::routes::RandomLayers { layers: 3, rho, retries: 0, ..Default::default() };
            let construction = Construction::RandomLayers(random);
            Layers::build(&Layer { within_layer, construction, ..Layer::default() }, &network, |_| false, 3).unwrap()
        };
        let (single, ecmp) = (layered(WithinLayer::SinglePath, 0.4), layered(WithinLayer::Ecmp, 0.4));
        let full = layered(WithinLayer::SinglePath, 1.0);
        for ways in [Ways::Minimal, Ways::Via(&via), Ways::Layers(&single), Ways::Layers(&ecmp), Ways::Layers(&full)] {
            let longest = vcs_needed(&network, &table, ways);
            prop_assert_eq!(find_cycle(&network, &table, ways, longest + more), None);
            let dependencies = followed(&network, &table, ways, longest + 9);
            let highest = dependencies.iter().map(|&(_, (_, vc))| vc).max().unwrap_or(0);
            prop_assert_eq!(longest, highest + 1);
            for vcs in 1..=longest {
                let is_found = find_cycle(&network, &table, ways, vcs).is_some();
                prop_assert_eq!(has_cycle(&network, &table, ways, vcs), is_found, "{} channels", vcs);
            }
        }
    }
}

/// Of a switch with 70 ports, which take more than one word.
#[test]
fn ports_are_added_and_removed_one_by_one() {
    let mut builder = NetworkBuilder::new("star");
    let hosts = builder.add_hosts(70);
    let switch = builder.add_switch(0, 0);
    let tier = builder.tier("host");
    for host in hosts {
        builder.link(host, switch, Rate::from_gbps(1), Time::from_ns(1), tier);
    }
    let network = builder.build().unwrap();
    let mut dependencies = Dependencies::new(&network, 2);
    let [first, second] = [0, 69].map(|host| network.ports(host)[0]);
    for (channel, port) in [(first, 3), (first, 69), (second, 64)] {
        dependencies.add_port(channel, port);
    }
    let found = |dependencies: &Dependencies<'_>, channel, vc| -> Vec<usize> {
        let node = dependencies.node(channel, vc);
        (0..70).filter(|&port| dependencies.next(node, port).is_some_and(|(_, next)| next == port)).collect()
    };
    assert_eq!((found(&dependencies, first, 0), found(&dependencies, second, 0)), (vec![3, 69], vec![64]));
    assert!(found(&dependencies, first, 1).is_empty() && found(&dependencies, second, 1).is_empty());
    dependencies.remove(first, network.ports(switch)[69]);
    assert_eq!((found(&dependencies, first, 0), found(&dependencies, second, 0)), (vec![3], vec![64]));
}
