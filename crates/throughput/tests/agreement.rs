//! The three methods agree with each other and with closed forms.

use std::path::Path;

use netloom_paths::Scheme;
use netloom_paths::routes::{KShortest, Minimal, RandomLayers};
use netloom_throughput::arc_form::arc_form;
use netloom_throughput::concurrent_flow::{AllowedPaths, concurrent_flow};
use netloom_throughput::path_form::path_form;
use netloom_throughput::{
    Demand, Method, Routing, ThroughputConfig, ThroughputError, Traffic, WorstCase, solve, solve_demand,
};
use netloom_topology::RouterGraph;
use proptest::prelude::*;

fn complete(n: u32, hosts: u32) -> RouterGraph {
    let edges = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect();
    RouterGraph::new(vec![hosts; n as usize], edges)
}

fn petersen() -> RouterGraph {
    let outer = (0..5).map(|i| (i, (i + 1) % 5));
    let spokes = (0..5).map(|i| (i, i + 5));
    let inner = (0..5).map(|i| (i + 5, (i + 2) % 5 + 5));
    RouterGraph::new(vec![2; 10], outer.chain(spokes).chain(inner).collect())
}

fn matched(n: u32, amount: f64) -> Demand {
    Demand::new((0..n).map(|i| (i, i ^ 1, amount)))
}

#[test]
fn a_clique_with_matched_routers_carries_n_over_2p() {
    // A demand fills its direct link and n − 2 detours of two hops; of the n (n − 1) channels the n direct ones carry one
    // hop and the rest two: theta · p · n = n + (n (n − 1) − n) / 2.
    let (n, p) = (8, 5.0);
    let optimum = f64::from(n) / (2.0 * p);
    let arc = arc_form(&complete(n, 5), &matched(n, p)).unwrap();
    assert!((arc.value() - optimum).abs() < 1e-6, "{arc:?}");
    let routes =
        Scheme::KShortest(KShortest { k: 7, ..Default::default() }).build(&complete(n, 5), 1).unwrap();
    let path = solve_demand(&complete(n, 5), &matched(n, p), Some(&routes), Method::Exact, 0.1).unwrap();
    assert!((path.throughput.value() - optimum).abs() < 1e-6, "{path:?}");
    let minimal = Scheme::Minimal(Minimal::default()).build(&complete(n, 5), 1).unwrap();
    let single = solve_demand(&complete(n, 5), &matched(n, p), Some(&minimal), Method::Exact, 0.1).unwrap();
    assert!((single.throughput.value() - 1.0 / p).abs() < 1e-6);
}

#[test]
fn more_layers_carry_more() {
    let graph = complete(16, 8);
    let theta = |layers| {
        let scheme = Scheme::RandomLayers(RandomLayers { layers, rho: 0.5, ..Default::default() });
        let routes = scheme.build(&graph, 3).unwrap();
        solve_demand(&graph, &matched(16, 8.0), Some(&routes), Method::Exact, 0.1).unwrap().throughput.value()
    };
    let [one, four, nine] = [1, 4, 9].map(theta);
    let any = arc_form(&graph, &matched(16, 8.0)).unwrap().value();
    assert!(one < four && four < nine && nine < any, "{one} {four} {nine} {any}");
}

#[test]
fn the_petersen_graph_under_all_to_all_traffic_reaches_its_length_bound() {
    let graph = petersen();
    let all = Demand::new((0..10).flat_map(|s| (0..10).map(move |t| (s, t, 1.0))));
    // 30 channels over 30 pairs at one hop and 60 at two; the graph is edge-transitive, so all channels fill.
    assert!((all.length_bound(&graph) - 0.2).abs() < 1e-12);
    assert!((arc_form(&graph, &all).unwrap().value() - 0.2).abs() < 1e-6);
}

#[test]
fn a_demand_without_a_path_is_refused() {
    let apart = RouterGraph::new(vec![1; 4], vec![(0, 1), (2, 3)]);
    let demand = Demand::new([(0, 2, 1.0)]);
    let error = ThroughputError::NoPath { from: 0, to: 2 };
    assert_eq!(concurrent_flow(&apart, &demand, AllowedPaths::Any, 0.1, 10), Err(error.clone()));
    assert_eq!(path_form(&apart, &demand, &[vec![]]), Err(error));
    assert_eq!(arc_form(&apart, &Demand::default()), Err(ThroughputError::NoDemand));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn path_form_over_all_paths_equals_arc_form(chords in prop::collection::btree_set((0..7u32, 0..7u32), 4..9), seed in 0..100u64) {
        let ring = (0..7u32).map(|i| (i, (i + 1) % 7));
        let chords = chords.into_iter().filter(|(a, b)| a + 1 < *b && b - a < 6);
        let graph = RouterGraph::new(vec![1; 7], ring.chain(chords).collect());
        let demand = Demand::new((0..5u32).map(|i| {
            let x = (seed + u64::from(i) * 37) as u32;
            (x % 7, (x / 7 + i) % 7, f64::from(1 + i))
        }));
        prop_assume!(!demand.commodities().is_empty());
        let arc = arc_form(&graph, &demand).unwrap();
        // All simple paths of seven routers.
        let routes = Scheme::KShortest(KShortest { k: 1000, ..Default::default() }).build(&graph, 1).unwrap();
        let path = solve_demand(&graph, &demand, Some(&routes), Method::Exact, 0.1).unwrap().throughput;
        prop_assert!((path.value() / arc.value() - 1.0).abs() < 1e-6, "{:?} {:?}", path, arc);
        prop_assert!(path.gap() < 1e-6);
        prop_assert!(path.upper <= demand.length_bound(&graph) * (1.0 + 1e-6));

        let paths: Vec<_> = demand.commodities().iter().map(|c| routes.paths(&graph, c.from, c.to)).collect();
        for allowed in [AllowedPaths::Any, AllowedPaths::Listed(&paths)] {
            let bounds = concurrent_flow(&graph, &demand, allowed, 0.05, 100_000).unwrap();
            prop_assert!(bounds.lower <= path.upper * (1.0 + 1e-9) && bounds.upper >= path.lower * (1.0 - 1e-9));
            prop_assert!(bounds.gap() <= 0.05 + 1e-12, "{:?}", bounds);
        }
    }
}

#[test]
fn of_several_draws_the_least_counts_and_all_are_told() {
    // A 3 × 3 × 3 HyperX: routers that differ in one coordinate are neighbours.
    let digits = |router: u32| [router % 3, router / 3 % 3, router / 9];
    let differ = |a: u32, b: u32| digits(a).iter().zip(digits(b)).filter(|(a, b)| **a != *b).count();
    let edges = (0..27).flat_map(|a| (a + 1..27).map(move |b| (a, b))).filter(|&(a, b)| differ(a, b) == 1);
    let graph = RouterGraph::new(vec![1; 27], edges.collect());
    let solved = |draws| {
        let traffic = Traffic::WorstCase(WorstCase { intensity: 1.0, draws });
        let routing = Routing::Minimal(Minimal { layers: 1 });
        solve(&graph, &ThroughputConfig { traffic, routing, ..ThroughputConfig::default() }, Path::new(""))
            .unwrap()
    };
    let (one, six) = (solved(1), solved(6));
    assert_eq!(one.draws, [one.throughput.value()]);
    assert_eq!((six.draws.len(), six.draws[0]), (6, one.draws[0]));
    let least = six.draws.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(six.throughput.value(), least);
    assert!(six.draws.iter().any(|theta| *theta > least), "matchings differ: {:?}", six.draws);
}
