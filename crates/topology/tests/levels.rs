//! Trees from files that say nothing of levels are the trees that they are, and what is no tree is none.

use std::collections::BTreeSet;
use std::path::Path;

use netloom_topology::{
    BuildContext, Complete, Crossbar, Dot, Dragonfly, EdgeList, FatTree, GraphMl, HyperX, Jellyfish, Json,
    KaryNTree, LeafSpine, Network, NodeId, Ns3, SlimFly, Topology, Xgft, Xpander,
};
use proptest::prelude::*;

fn build(spec: &Topology, base_dir: &Path) -> Network {
    spec.build(&BuildContext { seed: 5, base_dir }).unwrap()
}

fn read(spec: &Topology, text: &str) -> Network {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("net"), text).unwrap();
    build(spec, dir.path())
}

fn edge_list(text: &str) -> Network {
    read(&Topology::EdgeList(EdgeList { parallel_links: true, ..EdgeList::new("net") }), text)
}

/// The network read back from every format that holds any network; the first two say nothing of levels.
fn read_back(network: &Network) -> [Network; 5] {
    let parallel_links = true;
    [
        edge_list(&network.to_edge_list()),
        read(&Topology::Ns3(Ns3 { parallel_links, ..Ns3::new("net") }), &network.to_ns3()),
        read(&Topology::Dot(Dot { parallel_links, ..Dot::new("net") }), &network.to_dot()),
        read(&Topology::GraphMl(GraphMl { parallel_links, ..GraphMl::new("net") }), &network.to_graphml()),
        read(&Topology::Json(Json { parallel_links, ..Json::new("net") }), &network.to_json()),
    ]
}

/// All that a scheme can ask of a tree.
fn facts(network: &Network) -> impl PartialEq + std::fmt::Debug {
    let switches = || network.hosts()..network.nodes();
    let ports: Vec<Vec<u32>> = (0..network.nodes()).map(|node| network.ports(node).to_vec()).collect();
    // An XGFT of two levels has the names of a fat tree's tiers, and nothing else distinguishes it from a leaf-spine.
    let tiers: Vec<String> =
        network.tiers().iter().map(|tier| tier.replace("leaf-spine", "edge-agg")).collect();
    (
        switches().map(|switch| (network.level(switch), network.pod(switch))).collect::<Vec<_>>(),
        (0..17).map(|level| network.up_stride(level)).collect::<Vec<_>>(),
        (network.is_tree(), network.is_xgft()),
        (network.links().to_vec(), tiers, ports),
    )
}

fn trees() -> impl Strategy<Value = Topology> {
    let xgft = (1usize..5).prop_flat_map(|levels| {
        let counts = || prop::collection::vec(1u32..4, levels);
        (counts(), counts(), counts()).prop_map(|(mut m, mut w, mut bundle)| {
            (w[0], bundle[0]) = (1, 1);
            m[0] += 1;
            Topology::Xgft(Xgft { m, w, bundle, ..Xgft::default() })
        })
    });
    let leaf_spine =
        (1u32..6, 1u32..5, 2u32..4, 1u32..3).prop_map(|(leaves, spines, hosts_per_leaf, bundle)| {
            Topology::LeafSpine(LeafSpine { leaves, spines, hosts_per_leaf, bundle, ..LeafSpine::default() })
        });
    let fat_tree = prop::sample::select(vec![2u32, 4, 6])
        .prop_map(|k| Topology::FatTree(FatTree { k: Some(k), ..FatTree::default() }));
    prop_oneof![xgft, leaf_spine, fat_tree]
}

/// The same network with its links in another order, some of them turned round. Hosts and switches keep their numbers.
fn shuffled(network: &Network, seed: u64) -> Network {
    let mut lines: Vec<(u64, u32, u32)> = Vec::new();
    for (number, link) in (1..).zip(network.links()) {
        let mixed = (seed | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15u64.wrapping_mul(number)) >> 20;
        let (a, b) = if mixed & 1 == 0 { (link.a, link.b) } else { (link.b, link.a) };
        lines.push((mixed, a, b));
    }
    lines.sort_unstable();
    let hosts = (0..network.hosts()).map(|host| host.to_string()).collect::<Vec<_>>().join(" ");
    let links = lines.iter().map(|(_, a, b)| format!("{a} {b}\n")).collect::<String>();
    edge_list(&format!("host {hosts}\n{links}"))
}

/// Whether every minimal path between hosts rises first and then falls, by walking all of them over switches of these levels.
fn rises_first(network: &Network, level: &dyn Fn(NodeId) -> u32) -> bool {
    let edges: BTreeSet<NodeId> = (0..network.hosts()).map(|host| network.edge_switch(host)).collect();
    let next = |node: NodeId| {
        let ends = network.ports(node).iter().map(|&port| network.channel(port).to);
        ends.filter(|&end| !network.is_host(end)).collect::<Vec<_>>()
    };
    edges.iter().all(|&from| {
        let mut far = vec![u32::MAX; network.nodes() as usize];
        far[from as usize] = 0;
        let mut open = std::collections::VecDeque::from([from]);
        while let Some(here) = open.pop_front() {
            for to in next(here) {
                if far[to as usize] == u32::MAX {
                    far[to as usize] = far[here as usize] + 1;
                    open.push_back(to);
                }
            }
        }
        // Backwards from every other one: what has risen on the way back must not have fallen before.
        edges.iter().all(|&to| {
            let mut open = vec![(to, false)];
            let mut known = BTreeSet::from([(to, false)]);
            while let Some((here, has_fallen)) = open.pop() {
                for before in next(here) {
                    if far[before as usize] + 1 != far[here as usize] {
                        continue;
                    }
                    let falls = level(before) < level(here);
                    if level(before) == level(here) || has_fallen && !falls {
                        return false;
                    }
                    if known.insert((before, falls)) {
                        open.push((before, falls));
                    }
                }
            }
            true
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn exported_trees_read_back_are_the_same(tree in trees()) {
        let network = build(&tree, Path::new("."));
        for (number, again) in read_back(&network).into_iter().enumerate() {
            prop_assert_eq!(facts(&again), facts(&network));
            prop_assert_eq!(again.has_found_levels(), number < 2 && network.switches() > 0);
            prop_assert_eq!(again.why_no_tree(), None);
        }
    }

    /// Whatever the order of the links is, all traffic to a host meets in one root by the digits of its number.
    #[test]
    fn trees_with_links_in_any_order_are_trees(tree in trees(), seed in any::<u64>()) {
        let network = build(&tree, Path::new("."));
        let again = shuffled(&network, seed);
        prop_assert_eq!((again.is_tree(), again.is_xgft()), (true, true));
        prop_assert_eq!(again.links().len(), network.links().len());
        prop_assert!(again.links().iter().all(|link| again.level(link.a) < again.level(link.b)));
        // Switches are numbered by the file's lines.
        let levels = |network: &Network| {
            let mut levels: Vec<u8> = (network.hosts()..network.nodes()).map(|switch| network.level(switch)).collect();
            levels.sort_unstable();
            levels
        };
        prop_assert_eq!(levels(&again), levels(&network));
        let top = levels(&again).last().copied().unwrap();
        prop_assert!((1..=top).all(|level| again.up_stride(level) == network.up_stride(level)));
        for destination in 0..again.hosts() {
            let root = |source: u32| {
                let mut node = again.edge_switch(source);
                while again.level(node) < top {
                    let up: Vec<NodeId> = again.ports(node).iter().map(|&port| again.channel(port).to)
                        .filter(|&end| again.level(end) > again.level(node)).collect();
                    node = up[(destination / again.up_stride(again.level(node))) as usize % up.len()];
                }
                node
            };
            let roots: BTreeSet<NodeId> = (0..again.hosts()).map(root).collect();
            prop_assert_eq!(roots.len(), 1);
        }
    }

    /// Random graphs, dense and sparse, with hosts at some switches: held against all paths.
    #[test]
    fn what_is_a_tree_is_seen_by_its_paths(
        switches in 2u32..10, hosts in prop::collection::vec(0u32..10, 2..7),
        links in prop::collection::vec((0u32..10, 0u32..10), 1..24),
    ) {
        let hosts: Vec<u32> = hosts.into_iter().map(|switch| switch % switches).collect();
        let links: Vec<(u32, u32)> =
            links.into_iter().map(|(a, b)| (a % switches, b % switches)).filter(|(a, b)| a != b).collect();
        let mut text = (0..hosts.len()).fold("host".to_owned(), |text, host| format!("{text} h{host}")) + "\n";
        (0..).zip(&hosts).for_each(|(host, switch): (u32, _)| text += &format!("h{host} s{switch}\n"));
        links.iter().for_each(|(a, b)| text += &format!("s{a} s{b}\n"));
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("net"), text).unwrap();
        let spec = Topology::EdgeList(EdgeList { parallel_links: true, ..EdgeList::new("net") });
        // Not all random graphs are connected.
        let Ok(network) = spec.build(&BuildContext { seed: 1, base_dir: dir.path() }) else { return Ok(()) };
        let mut far = vec![u32::MAX; network.nodes() as usize];
        (0..network.hosts()).for_each(|host| far[network.edge_switch(host) as usize] = 1);
        for _ in 0..network.nodes() {
            for link in network.links().iter().filter(|link| !network.is_host(link.a) && !network.is_host(link.b)) {
                let (a, b) = (link.a as usize, link.b as usize);
                far[a] = far[a].min(far[b].saturating_add(1));
                far[b] = far[b].min(far[a].saturating_add(1));
            }
        }
        let distinct: BTreeSet<(NodeId, NodeId)> = network.links().iter().filter(|link| !network.is_host(link.a) && !network.is_host(link.b))
            .map(|link| (link.a.min(link.b), link.a.max(link.b))).collect();
        let is_acyclic = distinct.len() as u32 + 1 == network.switches();
        let joins_neighbours = distinct.iter().all(|&(a, b)| far[a as usize] != far[b as usize]);
        let is_tree = is_acyclic || joins_neighbours && rises_first(&network, &|node| far[node as usize]);
        prop_assert_eq!(network.is_tree(), is_tree);
        prop_assert_eq!(network.why_no_tree().is_none(), is_tree);
        if is_tree {
            prop_assert!(rises_first(&network, &|node| network.level(node).into()));
            prop_assert!(network.links().iter().all(|link| network.level(link.a) < network.level(link.b)));
        }
    }
}

#[test]
fn networks_that_are_no_trees_stay_so() {
    let networks = [
        Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }),
        Topology::Dragonfly(Dragonfly::default()),
        Topology::Jellyfish(Jellyfish {
            switches: 20,
            degree: 4,
            hosts_per_switch: 2,
            ..Jellyfish::default()
        }),
        Topology::HyperX(HyperX::default()),
        Topology::Xpander(Xpander::default()),
        Topology::Complete(Complete::default()),
    ];
    for network in networks.iter().map(|spec| build(spec, Path::new("."))) {
        for again in read_back(&network) {
            assert!(!again.is_tree() && !again.is_xgft(), "{}", network.name());
            let why = again.why_no_tree().unwrap();
            assert!(why.ends_with("are linked and equally far from the hosts"), "{why}");
        }
    }
}

#[test]
fn a_leaf_spine_that_lacks_links_is_a_tree_and_a_ring_is_none() {
    let network = edge_list("a l0\nb l1\nc l2\nl0 s0\nl1 s0\nl2 s0\nl0 s1\nl1 s1\n");
    let levels: Vec<u8> = (network.hosts()..network.nodes()).map(|switch| network.level(switch)).collect();
    assert_eq!(levels, [1, 1, 1, 2, 2]);
    assert!(network.is_tree() && !network.is_xgft());
    assert_eq!(network.tiers(), ["host", "leaf-spine"]);
    // Three leaves, each pair of them with a spine of its own, are a tree of three spines; four in a ring are none.
    assert!(edge_list("a l0\nb l1\nc l2\nl0 s0\nl1 s0\nl1 s1\nl2 s1\nl2 s2\nl0 s2\n").is_tree());
    let ring = edge_list("a l0\nb l1\nc l2\nd l3\nl0 s0\nl1 s0\nl1 s1\nl2 s1\nl2 s2\nl3 s2\nl3 s3\nl0 s3\n");
    assert!(!ring.is_tree());
    let why = ring.why_no_tree().unwrap();
    assert!(why.starts_with("a shortest path between hosts goes down to l"), "{why}");
}

#[test]
fn what_has_no_cycle_is_a_tree_from_its_middle() {
    let chain = edge_list("a s0\nb s1\nc s2\nd s3\ns0 s1\ns1 s2\ns2 s3\n");
    let levels: Vec<u8> = (chain.hosts()..chain.nodes()).map(|switch| chain.level(switch)).collect();
    assert_eq!(levels, [1, 2, 3, 2]);
    let long: String = (0..600).map(|i| format!("s{i} s{}\n", i + 1)).collect();
    let long = edge_list(&format!("host a b c\na s0\nb s600\nc s300\n{long}"));
    assert!(!long.is_tree());
}

#[test]
fn a_crossbar_and_a_k_ary_n_tree_read_back() {
    for spec in [Topology::Crossbar(Crossbar::default()), Topology::KaryNTree(KaryNTree::default())] {
        let network = build(&spec, Path::new("."));
        for again in read_back(&network) {
            assert_eq!(facts(&again), facts(&network));
        }
    }
}
