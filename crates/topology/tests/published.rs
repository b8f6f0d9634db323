//! The networks of FatPaths, Table IV, and what theory says about the families.

use std::path::Path;

use netloom_topology::{
    BuildContext, Complete, Dragonfly, EquivalentJellyfish, FatTree, FatTreePreset, HyperX, KaryNTree,
    Metrics, Network, RouterGraph, SlimFly, Topology, Xpander,
};

fn build(spec: Topology) -> Network {
    spec.build(&BuildContext { seed: 1, base_dir: Path::new(".") }).unwrap()
}

fn slim_fly(q: u32) -> Topology {
    Topology::SlimFly(SlimFly { q: Some(q), ..Default::default() })
}

fn all_routers(graph: &RouterGraph) -> Vec<u32> {
    (0..graph.routers()).collect()
}

/// Length of the shortest cycle through a router.
fn girth_at(graph: &RouterGraph, start: u32) -> u32 {
    let mut distance = vec![u32::MAX; graph.routers() as usize];
    distance[start as usize] = 0;
    let mut queue = std::collections::VecDeque::from([(start, start)]);
    let mut shortest = u32::MAX;
    while let Some((router, parent)) = queue.pop_front() {
        for &other in graph.neighbours(router) {
            if distance[other as usize] == u32::MAX {
                distance[other as usize] = distance[router as usize] + 1;
                queue.push_back((other, router));
            } else if other != parent {
                shortest = shortest.min(distance[router as usize] + distance[other as usize] + 1);
            }
        }
    }
    shortest
}

#[test]
fn table_iv_networks_have_their_published_numbers() {
    let slim_fly = Topology::SlimFly(SlimFly { hosts_per_switch: Some(14), ..Default::default() });
    let ft3 = Topology::FatTree(FatTree { preset: Some(FatTreePreset::FatPaths11664), ..Default::default() });
    // Spec, k', switches, hosts, switch links, diameter, mean distance (0: random, checked loosely below).
    let cases = [
        (Topology::Complete(Complete::default()), 100, 101, 10_100, 5050, 1, 1.0),
        (slim_fly, 29, 722, 10_108, 10_469, 2, 1.9598),
        (Topology::Xpander(Xpander::default()), 32, 1056, 16_896, 16_896, 3, 0.0),
        (Topology::HyperX(HyperX::default()), 30, 1331, 13_310, 19_965, 3, 2.729),
        (Topology::Dragonfly(Dragonfly::default()), 23, 2064, 16_512, 23_736, 3, 2.8582),
        (ft3, 18, 1620, 11_664, 23_328, 4, (17.0 * 2.0 + 630.0 * 4.0) / 647.0),
    ];
    for (spec, degree, switches, hosts, links, diameter, mean) in cases {
        let metrics = build(spec).metrics();
        let found = (metrics.degree, metrics.switches, metrics.hosts, metrics.switch_links, metrics.diameter);
        assert_eq!(found, ((degree, degree), switches, hosts, links, diameter), "{}", metrics.name);
        let distance = metrics.mean_distance.unwrap();
        let expected = if mean == 0.0 { 2.349 } else { mean };
        assert!((distance - expected).abs() < 0.002, "{}: mean distance {distance}", metrics.name);
        assert!(!metrics.distances_sampled);
    }
}

#[test]
fn total_network_load_matches_the_formula() {
    let load = |spec| build(spec).metrics().total_network_load.unwrap();
    assert_eq!(load(slim_fly(19)).round(), 10_684.0);
    assert_eq!(load(Topology::Complete(Complete::default())), 10_100.0);
    assert!((load(Topology::HyperX(HyperX::default())) - 14_630.0).abs() < 2.0);
    assert!((load(Topology::Dragonfly(Dragonfly::default())) - 16_609.0).abs() < 1.0);
}

/// FatPaths counts all switches as targets: mean distance 3.156 from an edge switch.
#[test]
fn distances_from_fat_tree_edges_to_all_switches() {
    let network = build(Topology::FatTree(FatTree { k: Some(36), ..Default::default() }));
    let graph = network.router_graph();
    let edges: Vec<u32> = (0..graph.routers()).filter(|&router| graph.hosts(router) > 0).collect();
    let mean = graph.distance_histogram(&edges, |_| true).mean().unwrap();
    assert!((mean - 3.156).abs() < 0.001, "{mean}");
}

#[test]
fn every_slim_fly_up_to_64_is_regular_of_diameter_2() {
    for q in (3..=64u32).filter(|&q| is_prime_power(q)) {
        let graph = build(slim_fly(q)).router_graph();
        let delta = match q % 4 {
            1 => 1,
            3 => -1,
            _ => 0,
        };
        let degree = ((3 * q as i32 - delta) / 2) as usize;
        assert_eq!(graph.routers(), 2 * q * q);
        for router in 0..graph.routers() {
            let row = graph.neighbours(router);
            assert_eq!(row.len(), degree, "q = {q}, router {router}");
            assert!(row.windows(2).all(|pair| pair[0] < pair[1]), "q = {q}: no parallel links");
        }
        let distances = graph.distance_histogram(&all_routers(&graph), |_| true);
        assert_eq!((distances.diameter(), distances.unreachable), (2, 0), "q = {q}");
    }
}

fn is_prime_power(q: u32) -> bool {
    let p = (2..=q).find(|p| q.is_multiple_of(*p)).unwrap();
    std::iter::successors(Some(p), |power| Some(power * p))
        .take_while(|&power| power <= q)
        .any(|power| power == q)
}

#[test]
fn mean_distances_of_slim_flies() {
    for (q, mean) in [(5, 1.857), (7, 1.887), (11, 1.930), (13, 1.944), (17, 1.957), (19, 1.960), (29, 1.974)]
    {
        let found = build(slim_fly(q)).metrics().mean_distance.unwrap();
        assert!((found - mean).abs() < 0.0006, "q = {q}: {found}");
    }
}

#[test]
fn the_slim_fly_of_q_5_is_the_hoffman_singleton_graph() {
    let graph = build(slim_fly(5)).router_graph();
    assert_eq!((graph.routers(), graph.edges().len()), (50, 175));
    assert!(all_routers(&graph).into_iter().all(|router| girth_at(&graph, router) == 5));
}

#[test]
fn hyperx_distances_count_differing_coordinates() {
    let graph = build(Topology::HyperX(HyperX::default())).router_graph();
    let distances = graph.distance_histogram(&all_routers(&graph), |_| true);
    // C(3, j) 10^j pairs per router differ in j coordinates.
    assert_eq!(distances.pairs, [0, 1331 * 30, 1331 * 300, 1331 * 1000]);
}

#[test]
fn equivalent_jellyfish_have_the_published_diameters() {
    let published = [
        (slim_fly(19), 722, 3),
        (Topology::Xpander(Xpander::default()), 1056, 3),
        (Topology::HyperX(HyperX::default()), 1331, 3),
        (Topology::Dragonfly(Dragonfly::default()), 2064, 4),
        (Topology::FatTree(FatTree { k: Some(36), ..Default::default() }), 1620, 3),
    ];
    for (of, switches, diameter) in published {
        let graph = build(Topology::EquivalentJellyfish(EquivalentJellyfish::new(of))).router_graph();
        assert_eq!(graph.routers(), switches);
        assert!((1..switches).all(|router| graph.neighbours(router).len() == graph.neighbours(0).len()));
        assert_eq!(graph.distance_histogram(&all_routers(&graph), |_| true).diameter(), diameter);
    }
}

#[test]
fn bisection_bounds_enclose_known_values() {
    let per_link = 200e9;
    let bounds = |metrics: &Metrics| {
        let bisection = metrics.bisection.unwrap();
        (bisection.at_least.unwrap().0 as f64 / per_link, bisection.at_most.0 as f64 / per_link)
    };
    // A full fat tree carries what half of its hosts send; so does a k-ary n-tree.
    for spec in [
        Topology::FatTree(FatTree::default()),
        Topology::KaryNTree(KaryNTree { k: 4, n: 3, ..Default::default() }),
    ] {
        let metrics = build(spec).metrics();
        let half = f64::from(metrics.hosts / 2);
        let (low, high) = bounds(&metrics);
        assert_eq!((low, high), (half, half), "{}", metrics.name);
    }
    // Half the cores, half the bisection.
    let tapered = FatTree { preset: Some(FatTreePreset::Flowcut1024TorTaper), ..Default::default() };
    assert_eq!(bounds(&build(Topology::FatTree(tapered)).metrics()), (256.0, 256.0));
    // A clique of n cut in the middle: n²/4 links, both bounds exact.
    let (low, high) =
        bounds(&build(Topology::Complete(Complete { switches: 20, ..Default::default() })).metrics());
    assert!(low > 99.9 && low <= 100.0 && high == 100.0, "{low} {high}");
    // A cube of side 4: 16 rows cut through 2·2 links each.
    let cube = HyperX { switches_per_dimension: vec![4], ..Default::default() };
    let (low, high) = bounds(&build(Topology::HyperX(cube)).metrics());
    assert!(low > 62.0 && low <= 64.0 && high == 64.0, "{low} {high}");
}

#[test]
fn a_million_hosts_are_built() {
    let network = build(slim_fly(89));
    assert_eq!((network.switches(), network.hosts()), (15_842, 1_061_414));
}
