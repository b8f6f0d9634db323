//! SPAIN: forests merged from the disjoint paths toward every destination.

use netloom_units::Invalid;
use netloom_units::random::Analysis;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netloom_topology::RouterGraph;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SchemeError, check_size};
use crate::distance::{UNREACHABLE, distances_from, endpoints};
use crate::link_set::LinkSet;
use crate::tables::{ForwardingTables, directed_edge, head};

/// Spanning forests, one per VLAN (Mudigonda et al., "SPAIN: COTS data-center Ethernet for multipathing over arbitrary
/// topologies", NSDI 2010; FatPaths Listing 4). For each destination a few paths per source, disjoint where possible, are
/// coloured into in-trees; the trees of all destinations are merged, in random order, while their union has no cycle.
///
/// The number of forests follows from the network. The listing also counts the whole network as a first layer, which
/// spanning-tree Ethernet cannot have; it is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Spain {
    /// Paths per ordered pair of routers that the forests are made of.
    pub paths: u32,
    /// How many forests are used: those with the most links. All by default.
    pub layers: Option<u32>,
}

impl Default for Spain {
    fn default() -> Self {
        Spain { paths: 3, layers: None }
    }
}

/// What SPAIN's construction gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpainForests {
    /// The merged forests, those with the most links first.
    pub forests: Vec<LinkSet>,
    /// How many in-trees they were merged from.
    pub trees: usize,
}

impl Spain {
    pub(super) fn build(&self, graph: &RouterGraph, seed: u64) -> Result<ForwardingTables, SchemeError> {
        let mut forests = self.forests(graph, seed)?.forests;
        if let Some(layers) = self.layers {
            super::check_layers(graph, layers)?;
            forests.truncate(layers as usize);
        }
        check_size(graph, forests.len() as u64)?;
        Ok(ForwardingTables::minimal(graph, forests, seed))
    }

    /// Builds all forests.
    ///
    /// # Errors
    /// If no paths are asked for.
    pub fn forests(&self, graph: &RouterGraph, seed: u64) -> Result<SpainForests, SchemeError> {
        Invalid::at_least("paths", self.paths, 1)?;
        let ends = endpoints(graph);
        let mut trees: Vec<Vec<u32>> = ends
            .par_iter()
            .map(|&destination| {
                let rng = Analysis::SpainPaths(destination).stream(seed);
                Toward::new(graph, destination, rng).in_trees(&ends, self.paths)
            })
            .collect::<Vec<_>>()
            .concat();
        trees.shuffle(&mut Analysis::SpainMerging.stream(seed));
        let count = trees.len();
        let mut forests: Vec<Forest> = Vec::new();
        for tree in trees {
            if !forests.iter_mut().any(|forest| forest.try_add(graph, &tree)) {
                let mut forest = Forest::new(graph);
                forest.try_add(graph, &tree);
                forests.push(forest);
            }
        }
        let mut forests: Vec<LinkSet> = forests.into_iter().map(|forest| forest.links).collect();
        forests.sort_by_key(|links| Reverse(links.len()));
        Ok(SpainForests { forests, trees: count })
    }
}

/// The search for paths toward one destination.
struct Toward<'a> {
    graph: &'a RouterGraph,
    destination: u32,
    distance: Vec<u16>,
    rng: Pcg64Mcg,
    /// Edges of the current pair's earlier paths, how often each is used.
    used: Vec<u32>,
    /// `(search, edge by which the router was entered)`.
    entered: Vec<(u32, u32)>,
    search: u32,
}

/// How many hops beyond the minimum a disjoint path is searched for before all paths are weighed.
const SLACK: u16 = 3;

impl<'a> Toward<'a> {
    fn new(graph: &'a RouterGraph, destination: u32, rng: Pcg64Mcg) -> Self {
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
    fn in_trees(mut self, sources: &[u32], paths: u32) -> Vec<Vec<u32>> {
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
        let edges = |colour: Vec<u32>| colour.into_iter().filter(|&s| s != UNSET).map(|s| s / 2).collect();
        colours.into_iter().map(edges).collect()
    }

    /// Up to `count` paths from a source. Each edge of a path found makes later use of that edge dearer than any detour;
    /// the search ends when it finds a path again.
    fn disjoint_paths(&mut self, source: u32, count: u32) -> Vec<Vec<u32>> {
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
                    self.entered[neighbour as usize] = (self.search, directed_edge(self.graph, edge, here));
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
struct Forest {
    links: LinkSet,
    parent: Vec<u32>,
}

impl Forest {
    fn new(graph: &RouterGraph) -> Self {
        Forest { links: LinkSet::empty(graph), parent: (0..graph.routers()).collect() }
    }

    /// Adds a tree if the union stays free of cycles.
    fn try_add(&mut self, graph: &RouterGraph, tree: &[u32]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{complete, cycle, petersen, random};
    use rand::SeedableRng;

    fn is_forest(graph: &RouterGraph, links: &LinkSet) -> bool {
        let mut forest = Forest::new(graph);
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
}
