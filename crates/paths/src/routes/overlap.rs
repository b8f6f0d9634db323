//! FatPaths' second construction: layers made of paths that avoid links already used.

use netloom_topology::RouterGraph;
use netloom_units::random::Analysis;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SchemeError, check_layers};
use crate::distance::{DistanceDistribution, endpoints};
use crate::link_set::LinkSet;
use crate::tables::{ForwardingTables, LayerDistances};

/// Layers that minimise the overlap of paths (FatPaths sec. V-B2, Listing 2). Each sparse layer is a union of almost
/// minimal paths, given first to the router pairs that have the fewest so far, over the links with the least weight.
///
/// The listing leaves open how many paths a layer takes, which lengths are allowed, and how both directions of a pair are
/// served; those are parameters here. Links are undirected, so one layer serves both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OverlapMinimising {
    /// Number of layers, the full one included.
    pub layers: u32,
    /// The fewest hops that a path given to a pair may have.
    pub minimum_hops: MinimumHops,
    /// How many hops more than the fewest are allowed.
    pub extra_hops: u16,
    /// Paths that one sparse layer takes; by default as many as routers carry hosts.
    ///
    /// The listing does not say. A layer must stay sparse for its minimal paths to differ from those of the whole network: with
    /// routers² / (layers − 1) paths, which would serve every ordered pair once, layers fill up and carry less than random
    /// ones; about one path per router carried the most on Slim Fly, Dragonfly, HyperX and Xpander of 200 to 300 routers.
    pub paths_per_layer: Option<u64>,
    /// How the weight of a path's links grows.
    pub weights: EdgeWeights,
}

/// The fewest hops of a path given to a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MinimumHops {
    /// As many as the two routers farthest apart need.
    Diameter,
    /// One more than the two routers need.
    OneMoreThanMinimal,
}

/// What a chosen path adds to the weight of its i-th edge (from 0) of n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeWeights {
    /// i · (n − i), as listed: nothing for the first edge.
    Listing,
    /// (i + 1) · (n − i): the number of pairs of path routers that use the edge, alike from both ends.
    Symmetric,
}

impl Default for OverlapMinimising {
    fn default() -> Self {
        OverlapMinimising {
            layers: 9,
            minimum_hops: MinimumHops::Diameter,
            extra_hops: 1,
            paths_per_layer: None,
            weights: EdgeWeights::Listing,
        }
    }
}

impl OverlapMinimising {
    pub(super) fn build(&self, graph: &RouterGraph, seed: u64) -> Result<ForwardingTables, SchemeError> {
        let layers = self.layers(graph, seed)?;
        Ok(ForwardingTables::minimal(graph, layers, seed))
    }

    /// Builds the link sets of the layers.
    ///
    /// # Errors
    /// If a parameter is out of its range.
    pub fn layers(&self, graph: &RouterGraph, seed: u64) -> Result<Vec<LinkSet>, SchemeError> {
        check_layers(graph, self.layers)?;
        let mut rng = Analysis::OverlapLayers.stream(seed);
        let mut construction = Construction::new(self, graph);
        let mut layers = vec![LinkSet::full(graph)];
        while layers.len() < self.layers as usize {
            layers.push(construction.layer(&mut rng));
        }
        Ok(layers)
    }
}

/// What is remembered from layer to layer.
struct Construction<'a> {
    config: &'a OverlapMinimising,
    graph: &'a RouterGraph,
    ends: Vec<u32>,
    diameter: u16,
    distances: LayerDistances,
    /// Per edge.
    weight: Vec<u64>,
    /// Per unordered pair of endpoint positions `[i][j]`, i < j: paths given so far.
    given: Vec<u32>,
    search: Search,
}

impl<'a> Construction<'a> {
    fn new(config: &'a OverlapMinimising, graph: &'a RouterGraph) -> Self {
        let ends = endpoints(graph);
        Construction {
            config,
            graph,
            diameter: DistanceDistribution::measure(graph).diameter(),
            distances: LayerDistances::new(graph, &LinkSet::full(graph)),
            weight: vec![0; graph.edges().len()],
            given: vec![0; ends.len() * ends.len()],
            search: Search::new(graph),
            ends,
        }
    }

    fn layer(&mut self, rng: &mut Pcg64Mcg) -> LinkSet {
        let n = self.ends.len();
        let mut order: Vec<u32> = (0..self.graph.routers()).collect();
        order.shuffle(rng);
        let mut position = vec![0u32; order.len()];
        order.iter().zip(0..).for_each(|(&router, place)| position[router as usize] = place);

        // Fewest paths first, ties by chance. A pair is tried once per layer, so sorting replaces a priority queue.
        let mut pairs: Vec<(u32, u32, u32, u32)> = (0..n)
            .flat_map(|i| (i + 1..n).map(move |j| (i, j)))
            .map(|(i, j)| (self.given[i * n + j], rng.random(), i as u32, j as u32))
            .collect();
        pairs.sort_unstable();

        let limit = self.config.paths_per_layer.unwrap_or(n as u64);
        let mut end_of = vec![usize::MAX; order.len()];
        self.ends.iter().enumerate().for_each(|(i, &router)| end_of[router as usize] = i);
        let mut served = vec![false; n * n];
        let mut allowed = LinkSet::full(self.graph);
        let mut layer = LinkSet::empty(self.graph);
        let mut paths = 0;
        for (_, _, i, j) in pairs {
            if paths == limit {
                break;
            }
            let (i, j) = (i as usize, j as usize);
            if served[i * n + j] {
                continue;
            }
            let (a, b) = (self.ends[i], self.ends[j]);
            let (from, to) = if position[a as usize] < position[b as usize] { (a, b) } else { (b, a) };
            let minimal = u16::from(self.distances.hops(from, to).unwrap_or(u8::MAX));
            let fewest = match self.config.minimum_hops {
                MinimumHops::Diameter => self.diameter,
                MinimumHops::OneMoreThanMinimal => minimal + 1,
            };
            let hops = fewest..=fewest.saturating_add(self.config.extra_hops);
            let bounds = Bounds { allowed: &allowed, position: &position, weight: &self.weight, hops };
            let Some(path) = self.search.lightest(self.graph, &self.distances, from, to, &bounds) else {
                continue;
            };
            paths += 1;
            self.given[i * n + j] += 1;
            let routers: Vec<u32> =
                std::iter::once(from).chain(path.iter().map(|&(router, _)| router)).collect();
            let length = path.len() as u64;
            for (&(_, edge), i) in path.iter().zip(0..) {
                layer.insert(edge);
                self.weight[edge as usize] += match self.config.weights {
                    EdgeWeights::Listing => i * (length - i),
                    EdgeWeights::Symmetric => (i + 1) * (length - i),
                };
            }
            for (i, &one) in routers.iter().enumerate() {
                for (j, &other) in routers.iter().enumerate().skip(i + 1) {
                    if j > i + 1 {
                        forbid(self.graph, &mut allowed, one, other);
                    }
                    let (a, b) = (end_of[one as usize], end_of[other as usize]);
                    if j - i < usize::from(fewest) && a != usize::MAX && b != usize::MAX {
                        served[a.min(b) * n + a.max(b)] = true;
                    }
                }
            }
        }
        layer
    }
}

/// Removes the links between two routers.
fn forbid(graph: &RouterGraph, allowed: &mut LinkSet, a: u32, b: u32) {
    let row = graph.neighbours(a);
    let first = row.partition_point(|&neighbour| neighbour < b);
    for position in (first..row.len()).take_while(|&position| row[position] == b) {
        allowed.remove(graph.edge_ids(a)[position]);
    }
}

/// What a path must obey.
struct Bounds<'a> {
    allowed: &'a LinkSet,
    /// Place of each router in the layer's permutation, which must grow along the path.
    position: &'a [u32],
    weight: &'a [u64],
    hops: std::ops::RangeInclusive<u16>,
}

/// One arrival at a router after some number of hops.
#[derive(Clone, Copy)]
struct Arrival {
    round: u32,
    weight: u64,
    from: u32,
    edge: u32,
}

/// The lightest path by dynamic programming over hops.
///
/// The listing enumerates all simple paths. Since the permutation grows along a path, every walk that obeys it is simple, so
/// that keeping only the lightest way to each router per number of hops finds the same path weight.
struct Search {
    routers: usize,
    round: u32,
    /// `arrivals[hops * routers + router]`.
    arrivals: Vec<Arrival>,
}

impl Search {
    fn new(graph: &RouterGraph) -> Self {
        Search { routers: graph.routers() as usize, round: 0, arrivals: Vec::new() }
    }

    /// The path as (router, edge by which it is entered), without its first router.
    fn lightest(
        &mut self,
        graph: &RouterGraph,
        distances: &LayerDistances,
        from: u32,
        to: u32,
        bounds: &Bounds<'_>,
    ) -> Option<Vec<(u32, u32)>> {
        self.round += 1;
        let longest = (*bounds.hops.end()).min(graph.routers() as u16);
        let unknown = Arrival { round: 0, weight: 0, from: 0, edge: 0 };
        self.arrivals.resize(self.arrivals.len().max((usize::from(longest) + 1) * self.routers), unknown);
        self.arrivals[from as usize] = Arrival { round: self.round, ..unknown };
        let mut frontier = vec![from];
        let mut best: Option<(u64, u16)> = None;
        for hops in 1..=longest {
            let (before, after) = (usize::from(hops - 1) * self.routers, usize::from(hops) * self.routers);
            let mut next = Vec::new();
            for &here in frontier.iter().filter(|&&here| here != to) {
                let so_far = self.arrivals[before + here as usize].weight;
                for (&neighbour, &edge) in graph.neighbours(here).iter().zip(graph.edge_ids(here)) {
                    let place = bounds.position[neighbour as usize];
                    let near = distances.hops(neighbour, to).is_some_and(|d| u16::from(d) + hops <= longest);
                    if !near
                        || place <= bounds.position[here as usize]
                        || place > bounds.position[to as usize]
                        || !bounds.allowed.contains(edge)
                    {
                        continue;
                    }
                    let arrival = &mut self.arrivals[after + neighbour as usize];
                    let weight = so_far + bounds.weight[edge as usize];
                    if arrival.round != self.round {
                        next.push(neighbour);
                    } else if arrival.weight <= weight {
                        continue;
                    }
                    *arrival = Arrival { round: self.round, weight, from: here, edge };
                }
            }
            let arrival = self.arrivals[after + to as usize];
            if arrival.round == self.round
                && bounds.hops.contains(&hops)
                && best.is_none_or(|(weight, _)| arrival.weight < weight)
            {
                best = Some((arrival.weight, hops));
            }
            frontier = next;
        }
        let (_, hops) = best?;
        let mut path = Vec::new();
        let mut here = to;
        for hop in (1..=usize::from(hops)).rev() {
            let arrival = self.arrivals[hop * self.routers + here as usize];
            path.push((here, arrival.edge));
            here = arrival.from;
        }
        path.reverse();
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{complete, cycle, petersen, random};
    use rand::SeedableRng;

    #[test]
    fn layers_of_a_clique_are_made_of_two_hop_paths() {
        let graph = complete(12);
        let config = OverlapMinimising {
            layers: 4,
            minimum_hops: MinimumHops::OneMoreThanMinimal,
            extra_hops: 0,
            paths_per_layer: Some(8),
            ..Default::default()
        };
        let layers = config.layers(&graph, 1).unwrap();
        assert_eq!(layers[0].len(), 66);
        assert!(layers[1..].iter().all(|links| (2..=16).contains(&links.len())));
    }

    #[test]
    fn later_layers_prefer_links_that_earlier_ones_left_out() {
        let graph = complete(10);
        let config = OverlapMinimising {
            layers: 3,
            minimum_hops: MinimumHops::OneMoreThanMinimal,
            extra_hops: 0,
            paths_per_layer: Some(5),
            weights: EdgeWeights::Symmetric,
        };
        let shared = |seed| {
            let layers = config.layers(&graph, seed).unwrap();
            layers[1].iter().filter(|&edge| layers[2].contains(edge)).count()
        };
        // Two independent layers of ten of 45 links would share 2.2 on average.
        let mean = (0..50).map(shared).sum::<usize>() as f64 / 50.0;
        assert!(mean < 1.2, "{mean}");
    }

    /// The lightest permutation-obeying path by trying all.
    fn enumerate(graph: &RouterGraph, here: u32, to: u32, hops: u16, bounds: &Bounds<'_>) -> Option<u64> {
        if here == to {
            return bounds.hops.contains(&hops).then_some(0);
        }
        let steps = graph.neighbours(here).iter().zip(graph.edge_ids(here));
        steps
            .filter(|&(&next, &edge)| {
                hops < *bounds.hops.end()
                    && bounds.allowed.contains(edge)
                    && bounds.position[next as usize] > bounds.position[here as usize]
            })
            .filter_map(|(&next, &edge)| {
                enumerate(graph, next, to, hops + 1, bounds).map(|w| w + bounds.weight[edge as usize])
            })
            .min()
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn dynamic_programming_finds_the_weight_that_enumeration_finds(seed in 0..1000u64, fewest in 1..4u16) {
            let graph = random(12, 30, seed);
            let distances = LayerDistances::new(&graph, &LinkSet::full(&graph));
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let weight: Vec<u64> = graph.edges().iter().map(|_| rng.random_range(0..9)).collect();
            let position: Vec<u32> = (0..12).collect();
            let mut allowed = LinkSet::full(&graph);
            allowed.remove(3);
            let bounds = Bounds { allowed: &allowed, position: &position, weight: &weight, hops: fewest..=fewest + 1 };
            let mut search = Search::new(&graph);
            for (from, to) in [(0, 11), (1, 8), (2, 3), (0, 5)] {
                let path = search.lightest(&graph, &distances, from, to, &bounds);
                let found = path.map(|p| p.iter().map(|&(_, edge)| weight[edge as usize]).sum::<u64>());
                proptest::prop_assert_eq!(found, enumerate(&graph, from, to, 0, &bounds));
            }
        }
    }

    #[test]
    fn every_path_and_table_is_valid() {
        for (graph, seed) in [(petersen(), 1), (cycle(7), 2), (random(40, 120, 3), 3), (complete(9), 4)] {
            let config = OverlapMinimising { layers: 5, ..Default::default() };
            let reach = config.build(&graph, seed).unwrap().validate(&graph).unwrap();
            assert_eq!(reach.len(), 5);
            assert_eq!(reach[0].unreached, 0);
            assert_eq!(config.layers(&graph, seed), config.layers(&graph, seed));
        }
    }
}
