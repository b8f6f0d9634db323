use proptest::prelude::*;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::testing::{complete, cycle, petersen, random};

/// The construction as the listing has it: every search looks at all links, and every tree tries all forests.
mod plain {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use netloom_topology::RouterGraph;
    use rand::RngExt;
    use rand_pcg::Pcg64Mcg;

    use crate::distance::{UNREACHABLE, distances_from};
    use crate::link_set::LinkSet;
    use crate::tables::{directed_edge, head};

    /// The search for paths toward one destination.
    pub(super) struct Toward<'a> {
        graph: &'a RouterGraph,
        destination: u32,
        distance: Vec<u16>,
        pub(super) rng: Pcg64Mcg,
        /// Edges of the current pair's earlier paths, how often each is used.
        used: Vec<u32>,
        /// `(search, edge by which the router was entered)`.
        entered: Vec<(u32, u32)>,
        search: u32,
    }

    /// How many hops beyond the minimum a disjoint path is searched for before all paths are weighed.
    const SLACK: u16 = 3;

    impl<'a> Toward<'a> {
        pub(super) fn new(graph: &'a RouterGraph, destination: u32, rng: Pcg64Mcg) -> Self {
            Toward {
                graph,
                destination,
                distance: distances_from(graph, &[destination], UNREACHABLE),
                rng,
                used: vec![0; graph.edges().len()],
                entered: vec![(0, 0); graph.routers() as usize],
                search: 0,
            }
        }

        /// Colours the paths of all sources: paths that go on differently from a shared router get different colours. Each
        /// colour is a tree toward the destination, returned as its edges.
        pub(super) fn in_trees(mut self, sources: &[u32], paths: u32) -> Vec<Vec<u32>> {
            let routers = self.graph.routers() as usize;
            const UNSET: u32 = u32::MAX;
            let mut colours: Vec<Vec<u32>> = Vec::new();
            let destination = self.destination;
            for &source in sources.iter().filter(|&&source| source != destination) {
                for path in self.disjoint_paths(source, paths) {
                    let tail = |step: u32| head(self.graph, step ^ 1) as usize;
                    let fits = |colour: &Vec<u32>| {
                        path.iter().all(|&step| colour[tail(step)] == UNSET || colour[tail(step)] == step)
                    };
                    let index = colours.iter().position(fits).unwrap_or_else(|| {
                        colours.push(vec![UNSET; routers]);
                        colours.len() - 1
                    });
                    path.iter().for_each(|&step| colours[index][tail(step)] = step);
                }
            }
            let edges =
                |colour: Vec<u32>| colour.into_iter().filter(|&s| s != UNSET).map(|s| s / 2).collect();
            colours.into_iter().map(edges).collect()
        }

        /// Up to `count` paths from a source. Each edge of a path found makes later use of that edge dearer than any detour;
        /// the search ends when it finds a path again.
        pub(super) fn disjoint_paths(&mut self, source: u32, count: u32) -> Vec<Vec<u32>> {
            let mut paths: Vec<Vec<u32>> = Vec::new();
            if self.distance[source as usize] == UNREACHABLE {
                return paths;
            }
            while paths.len() < count as usize {
                let shortest = self.distance[source as usize];
                let unused = (shortest..=shortest.saturating_add(SLACK)).find_map(|l| self.unused(source, l));
                let path = unused.unwrap_or_else(|| self.lightest(source));
                if paths.contains(&path) {
                    break;
                }
                path.iter().for_each(|&step| self.used[step as usize / 2] += 1);
                paths.push(path);
            }
            for step in paths.iter().flatten() {
                self.used[*step as usize / 2] = 0;
            }
            paths
        }

        /// A path of at most `longest` hops without used edges, breadth-first from a random port.
        fn unused(&mut self, source: u32, longest: u16) -> Option<Vec<u32>> {
            self.search += 1;
            self.entered[source as usize].0 = self.search;
            let mut frontier = vec![source];
            for hops in 1..=longest {
                let mut next = Vec::new();
                for &here in &frontier {
                    let (neighbours, edges) = (self.graph.neighbours(here), self.graph.edge_ids(here));
                    let start = self.rng.random_range(0..neighbours.len());
                    for port in (start..neighbours.len()).chain(0..start) {
                        let (neighbour, edge) = (neighbours[port], edges[port]);
                        let remaining = self.distance[neighbour as usize];
                        let seen = self.entered[neighbour as usize].0 == self.search;
                        if seen || remaining > longest - hops || self.used[edge as usize] > 0 {
                            continue;
                        }
                        self.entered[neighbour as usize] =
                            (self.search, directed_edge(self.graph, edge, here));
                        if neighbour == self.destination {
                            return Some(self.way_back(source));
                        }
                        next.push(neighbour);
                    }
                }
                frontier = next;
            }
            None
        }

        /// The path with the fewest repeated uses, then the fewest hops.
        fn lightest(&mut self, source: u32) -> Vec<u32> {
            let mut cost = vec![(u32::MAX, u32::MAX); self.graph.routers() as usize];
            cost[source as usize] = (0, 0);
            let mut heap = BinaryHeap::from([Reverse(((0, 0), source))]);
            while let Some(Reverse((so_far, here))) = heap.pop() {
                if so_far > cost[here as usize] {
                    continue;
                }
                for (&neighbour, &edge) in self.graph.neighbours(here).iter().zip(self.graph.edge_ids(here)) {
                    let total = (so_far.0 + self.used[edge as usize], so_far.1 + 1);
                    if total < cost[neighbour as usize] {
                        cost[neighbour as usize] = total;
                        self.entered[neighbour as usize].1 = directed_edge(self.graph, edge, here);
                        heap.push(Reverse((total, neighbour)));
                    }
                }
            }
            self.way_back(source)
        }

        fn way_back(&self, source: u32) -> Vec<u32> {
            let mut path = Vec::new();
            let mut here = self.destination;
            while here != source {
                let step = self.entered[here as usize].1;
                path.push(step);
                here = head(self.graph, step ^ 1);
            }
            path.reverse();
            path
        }
    }

    /// A cycle-free set of links with its components.
    pub(super) struct Forest {
        pub(super) links: LinkSet,
        parent: Vec<u32>,
    }

    impl Forest {
        pub(super) fn new(graph: &RouterGraph) -> Self {
            Forest { links: LinkSet::empty(graph), parent: (0..graph.routers()).collect() }
        }

        /// Adds a tree if the union stays free of cycles.
        pub(super) fn try_add(&mut self, graph: &RouterGraph, tree: &[u32]) -> bool {
            // Most attempts fail at their first few edges, so joined components are remembered aside until all fit.
            let mut joined: Vec<(u32, u32)> = Vec::new();
            for &edge in tree.iter().filter(|&&edge| !self.links.contains(edge)) {
                let (a, b) = graph.edges()[edge as usize];
                let (a, b) = (self.root(a), self.root(b));
                if a == b {
                    for &(root, _) in &joined {
                        self.parent[root as usize] = root;
                    }
                    return false;
                }
                self.parent[a as usize] = b;
                joined.push((a, edge));
            }
            joined.iter().for_each(|&(_, edge)| self.links.insert(edge));
            true
        }

        /// Without path compression, so that a failed attempt can be undone.
        fn root(&self, mut router: u32) -> u32 {
            while self.parent[router as usize] != router {
                router = self.parent[router as usize];
            }
            router
        }
    }
}

/// All forests and the number of trees, by [`plain`].
fn plainly(config: &Spain, graph: &RouterGraph, seed: u64) -> SpainForests {
    let ends = endpoints(graph);
    let toward = |&to: &u32| {
        let rng = Analysis::SpainPaths(to).stream(seed);
        plain::Toward::new(graph, to, rng).in_trees(&ends, config.paths)
    };
    let mut trees: Vec<Vec<u32>> = ends.iter().flat_map(toward).collect();
    trees.shuffle(&mut Analysis::SpainMerging.stream(seed));
    let mut forests: Vec<plain::Forest> = Vec::new();
    for tree in &trees {
        if !forests.iter_mut().any(|forest| forest.try_add(graph, tree)) {
            let mut forest = plain::Forest::new(graph);
            forest.try_add(graph, tree);
            forests.push(forest);
        }
    }
    let mut forests: Vec<LinkSet> = forests.into_iter().map(|forest| forest.links).collect();
    forests.sort_by_key(|links| Reverse(links.len()));
    SpainForests { forests, trees: trees.len() }
}

/// Random networks with few links and with many, with parallel ones, with hosts at some routers only, and with a router of more than 64 ports.
fn networks() -> impl Strategy<Value = RouterGraph> {
    (2u32..40, 0usize..150, 1u32..4, any::<bool>(), any::<u64>()).prop_map(
        |(routers, more, every, is_wide, seed)| {
            let mut edges = random(routers, more, seed).edges().to_vec();
            edges.extend(edges.clone().into_iter().take(more / 8));
            let leaves = if is_wide { 70 } else { 0 };
            edges.extend((0..leaves).map(|leaf| (0, routers + leaf)));
            let hosts = (0..routers).map(|router| u32::from(router % every == 0));
            RouterGraph::new(hosts.chain((0..leaves).map(|leaf| u32::from(leaf % 8 == 0))).collect(), edges)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn forests_are_those_of_the_plain_construction(graph in networks(), paths in 1u32..6, seed in any::<u64>()) {
        let config = Spain { paths, layers: None };
        let plain = plainly(&config, &graph, seed);
        prop_assert_eq!(&config.forests(&graph, seed).unwrap(), &plain);
        for layers in [1, 2, 5, 1000] {
            let tables = Spain { paths, layers: Some(layers) }.build(&graph, seed).unwrap();
            let kept = (0..tables.layers()).map(|layer| tables.links(layer));
            prop_assert!(kept.eq(plain.forests.iter().take(layers as usize)));
        }
        let tables = config.build(&graph, seed).unwrap();
        prop_assert!((0..tables.layers()).map(|layer| tables.links(layer)).eq(&plain.forests));
    }

    /// Path by path, with the random numbers that are left behind them.
    #[test]
    fn paths_are_those_of_the_plain_search(graph in networks(), paths in 1u32..6, seed in any::<u64>(), to in any::<u32>()) {
        let to = to % graph.routers();
        let rng = Pcg64Mcg::seed_from_u64(seed);
        let (mut toward, mut plain) = (Toward::new(&graph, to, rng.clone()), plain::Toward::new(&graph, to, rng));
        for source in (0..graph.routers()).filter(|&source| source != to) {
            prop_assert_eq!(toward.disjoint_paths(source, paths), plain.disjoint_paths(source, paths));
        }
        prop_assert_eq!(toward.rng, plain.rng);
    }
}

fn is_forest(graph: &RouterGraph, links: &LinkSet) -> bool {
    let mut forest = plain::Forest::new(graph);
    forest.try_add(graph, &links.iter().collect::<Vec<_>>())
}

#[test]
fn forests_have_no_cycle_and_cover_every_pair() {
    for (graph, seed) in [(petersen(), 1), (complete(8), 2), (random(30, 60, 3), 3), (cycle(9), 4)] {
        let forests = Spain::default().forests(&graph, seed).unwrap();
        assert!(forests.forests.iter().all(|links| is_forest(&graph, links)));
        assert!(forests.forests.len() <= forests.trees);
        let tables = Spain::default().build(&graph, seed).unwrap();
        tables.validate(&graph).unwrap();
        for (from, to) in (0..graph.routers()).flat_map(|s| (0..s).map(move |t| (s, t))) {
            assert!((0..tables.layers()).any(|layer| tables.next_port(layer, from, to).is_some()));
        }
    }
}

#[test]
fn a_ring_gives_each_pair_both_ways_round() {
    let ring = cycle(5);
    let paths = Toward::new(&ring, 0, Pcg64Mcg::seed_from_u64(1)).disjoint_paths(2, 3);
    assert_eq!(paths.iter().map(Vec::len).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn without_a_disjoint_path_the_least_overlap_is_taken() {
    // A bridge 0-1, then a square: the second path must cross the bridge again.
    let graph = crate::testing::graph(5, vec![(0, 1), (1, 2), (2, 4), (1, 3), (3, 4)]);
    let paths = Toward::new(&graph, 4, Pcg64Mcg::seed_from_u64(1)).disjoint_paths(0, 3);
    assert_eq!(paths.len(), 2);
    assert_eq!(paths.iter().filter(|path| path[0] / 2 == 0).count(), 2);
}

#[test]
fn a_chosen_number_of_forests_keeps_the_largest() {
    let graph = complete(8);
    let all = Spain::default().forests(&graph, 1).unwrap().forests;
    assert!(all.len() > 3);
    let tables = Spain { layers: Some(3), ..Default::default() }.build(&graph, 1).unwrap();
    assert_eq!(tables.layers(), 3);
    assert_eq!(tables.links(0).len(), 7);
}

#[test]
fn what_would_take_minutes_is_refused() {
    let graph =
        |routers: u32| RouterGraph::new(vec![1; routers as usize], (1..routers).map(|r| (0, r)).collect());
    let refused = |routers, paths| {
        Spain { paths, layers: Some(1) }.forests(&graph(routers), 1).unwrap_err().to_string()
    };
    assert_eq!(
        refused(5000, 2),
        "paths: expected 1 to 1 for 5000 routers with hosts, 33554432 in all, found 2"
    );
    let expected = "kind: expected a network of at most 5792 routers with hosts, as a path to each from each is looked for, \
                    found \"spain\" on one of 5793";
    assert_eq!(refused(5793, 1), expected);
    assert_eq!(refused(9, 0), "paths: expected at least 1, found 0");
}
