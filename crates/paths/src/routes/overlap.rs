//! FatPaths' second construction: layers made of paths that avoid links already used.

use std::collections::{BTreeMap, HashSet};

use netloom_topology::RouterGraph;
use netloom_units::{narrow, random::Analysis};
use rand::Rng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SchemeError, check_layers};
use crate::distance::endpoints;
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
    given: Given,
    search: Search,
}

impl<'a> Construction<'a> {
    fn new(config: &'a OverlapMinimising, graph: &'a RouterGraph) -> Self {
        let ends = endpoints(graph);
        let (distances, diameter) = LayerDistances::with_diameter(graph, &LinkSet::full(graph));
        Construction {
            config,
            graph,
            diameter: u16::try_from(diameter.hops).unwrap_or(u16::MAX),
            distances,
            weight: vec![0; graph.edges().len()],
            given: Given { ends: narrow::<u32>(ends.len()), paths: BTreeMap::new() },
            search: Search::new(graph),
            ends,
        }
    }

    fn layer(&mut self, rng: &mut Pcg64Mcg) -> LinkSet {
        let mut order: Vec<u32> = (0..self.graph.routers()).collect();
        order.shuffle(rng);
        let mut position = vec![0u32; order.len()];
        order.iter().zip(0..).for_each(|(&router, place)| position[router as usize] = place);

        let later = Later::new(self.graph, &position);

        let limit = self.config.paths_per_layer.unwrap_or(self.ends.len() as u64);
        let mut turns = Turns::new(&self.given, limit, rng);
        let mut end_of = vec![u32::MAX; order.len()];
        self.ends.iter().zip(0..).for_each(|(&router, i)| end_of[router as usize] = i);
        let (mut served, mut chosen) = (HashSet::new(), Vec::new());
        let mut allowed = LinkSet::full(self.graph);
        let mut layer = LinkSet::empty(self.graph);
        while (chosen.len() as u64) < limit
            && let Some((i, j)) = turns.next(&self.given)
        {
            if served.contains(&(i, j)) {
                continue;
            }
            let (a, b) = (self.ends[i as usize], self.ends[j as usize]);
            let (from, to) = if position[a as usize] < position[b as usize] { (a, b) } else { (b, a) };
            let minimal = u16::from(self.distances.hops(from, to).unwrap_or(u8::MAX));
            let fewest = match self.config.minimum_hops {
                MinimumHops::Diameter => self.diameter,
                MinimumHops::OneMoreThanMinimal => minimal + 1,
            };
            let hops = fewest..=fewest.saturating_add(self.config.extra_hops);
            let weight = &self.weight;
            let bounds = Bounds { allowed: &allowed, position: &position, later: &later, weight, hops };
            let Some(path) = self.search.lightest(self.graph, &self.distances, from, to, &bounds) else {
                continue;
            };
            chosen.push((i, j));
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
                    if j - i < usize::from(fewest) && a != u32::MAX && b != u32::MAX {
                        served.insert((a.min(b), a.max(b)));
                    }
                }
            }
        }
        chosen.into_iter().for_each(|pair| *self.given.paths.entry(pair).or_default() += 1);
        layer
    }
}

/// How many paths were given to pairs of endpoints `i < j`, by their places among the endpoints.
struct Given {
    ends: u32,
    /// Only pairs with one at least.
    paths: BTreeMap<(u32, u32), u32>,
}

impl Given {
    /// How many pairs have this many paths each.
    fn pairs(&self) -> BTreeMap<u32, u64> {
        let ends = u64::from(self.ends);
        let mut pairs = BTreeMap::from([(0, ends * ends.saturating_sub(1) / 2 - self.paths.len() as u64)]);
        self.paths.values().for_each(|&paths| *pairs.entry(paths).or_default() += 1);
        pairs
    }

    /// How many pairs come before one in ascending order.
    fn place(&self, (i, j): (u32, u32)) -> u64 {
        let (ends, i, j) = (u64::from(self.ends), u64::from(i), u64::from(j));
        i * (2 * ends - i - 1) / 2 + j - i - 1
    }
}

/// The pairs in the order of their turns in a layer: fewest paths first, ties by chance. A pair is tried once per layer, so an order replaces a priority queue.
///
/// A layer mostly has all its paths when few of its pairs have been tried, so they are not sorted at once: a range of them, a number drawn for each being
/// between some bounds, is picked out and sorted when it is reached. The numbers are drawn again for each range.
struct Turns {
    /// Draws a number for each pair.
    rng: Pcg64Mcg,
    /// How many pairs have this many paths, where the last of them has not been reached.
    levels: BTreeMap<u32, u64>,
    /// The numbers of the first level below this one have been reached.
    reached: u64,
    /// About how many pairs the next range is to have.
    wanted: u64,
    range: std::vec::IntoIter<(u32, (u32, u32))>,
}

impl Turns {
    /// Draws a number for each pair. The ranges begin with about eight times as many pairs as a layer takes paths.
    fn new(given: &Given, paths: u64, rng: &mut Pcg64Mcg) -> Self {
        let own = rng.clone();
        let levels = given.pairs();
        rng.advance(levels.values().sum::<u64>().into());
        let wanted = paths.clamp(16, 1 << 40) * 8;
        Turns { rng: own, levels, reached: 0, wanted, range: Vec::new().into_iter() }
    }

    fn next(&mut self, given: &Given) -> Option<(u32, u32)> {
        loop {
            if let Some((_, pair)) = self.range.next() {
                return Some(pair);
            }
            let (level, pairs) = self.levels.first_key_value().map(|(&level, &pairs)| (level, pairs))?;
            let width = (u128::from(self.wanted) << 32) / u128::from(pairs.max(1));
            let from = self.reached;
            let until = (u128::from(from) + width).min(1 << 32) as u64;
            let numbers = from..until;
            let mut range = Vec::new();
            if level == 0 {
                let mut rng = self.rng.clone();
                for (i, j) in (0..given.ends).flat_map(|i| (i + 1..given.ends).map(move |j| (i, j))) {
                    let number = rng.next_u32();
                    if numbers.contains(&number.into()) && !given.paths.contains_key(&(i, j)) {
                        range.push((number, (i, j)));
                    }
                }
            }
            for (&pair, _) in given.paths.iter().filter(|&(_, &paths)| paths == level) {
                let mut rng = self.rng.clone();
                rng.advance(given.place(pair).into());
                let number = rng.next_u32();
                if numbers.contains(&number.into()) {
                    range.push((number, pair));
                }
            }
            range.sort_unstable();
            self.range = range.into_iter();
            (self.reached, self.wanted) = (until, self.wanted.saturating_mul(2));
            if until == 1 << 32 {
                self.levels.pop_first();
                self.reached = 0;
            }
        }
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

/// The links by which paths may go on in a layer's permutation, of each router in the order of its neighbours.
struct Later {
    /// Per router, where its part of `steps` begins; behind the last, where that ends.
    begins: Vec<usize>,
    steps: Vec<Step>,
}

/// A link to a router, and the router's place in the permutation.
struct Step {
    place: u32,
    to: u32,
    edge: u32,
}

impl Later {
    fn new(graph: &RouterGraph, position: &[u32]) -> Self {
        let (mut begins, mut steps) = (vec![0], Vec::with_capacity(graph.edges().len()));
        for here in 0..graph.routers() {
            let links = graph.neighbours(here).iter().zip(graph.edge_ids(here));
            let all = links.map(|(&to, &edge)| Step { place: position[to as usize], to, edge });
            steps.extend(all.filter(|step| step.place > position[here as usize]));
            begins.push(steps.len());
        }
        Later { begins, steps }
    }

    fn of(&self, router: u32) -> &[Step] {
        &self.steps[self.begins[router as usize]..self.begins[router as usize + 1]]
    }
}

/// What a path must obey.
struct Bounds<'a> {
    allowed: &'a LinkSet,
    /// Place of each router in the layer's permutation, which must grow along the path.
    position: &'a [u32],
    later: &'a Later,
    weight: &'a [u64],
    hops: std::ops::RangeInclusive<u16>,
}

/// One arrival at a router after some number of hops.
#[derive(Clone, Copy)]
struct Arrival {
    round: u32,
    /// Which of the routers reached after as many hops this is, in the order in which they were.
    rank: u32,
    weight: u64,
    from: u32,
    edge: u32,
}

/// The lightest path by dynamic programming over hops.
///
/// The listing enumerates all simple paths. Since the permutation grows along a path, every walk that obeys it is simple, so
/// that keeping only the lightest way to each router per number of hops finds the same path weight. Of several lightest ways the first one
/// found is kept: that from the router that was reached first.
struct Search {
    routers: usize,
    round: u32,
    /// `arrivals[hops * routers + router]`.
    arrivals: Vec<Arrival>,
}

/// Routers whose last hop is looked for: where a path goes, and over what graph.
#[derive(Clone, Copy)]
struct Hop<'a> {
    graph: &'a RouterGraph,
    bounds: &'a Bounds<'a>,
    to: u32,
    /// Where arrivals before this hop and after it begin.
    before: usize,
    after: usize,
}

impl Hop<'_> {
    /// Whether a path may go on from one router to another by an edge.
    fn is_open(&self, here: u32, next: u32, edge: u32) -> bool {
        let place = |router: u32| self.bounds.position[router as usize];
        place(here) < place(next) && place(next) <= place(self.to) && self.bounds.allowed.contains(edge)
    }
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
        let longest = (*bounds.hops.end()).min(u16::try_from(graph.routers()).unwrap_or(u16::MAX));
        let unknown = Arrival { round: 0, rank: 0, weight: 0, from: 0, edge: 0 };
        self.arrivals.resize(self.arrivals.len().max((usize::from(longest) + 1) * self.routers), unknown);
        self.arrivals[from as usize] = Arrival { round: self.round, ..unknown };
        let mut frontier = vec![from];
        let mut best: Option<(u64, u16)> = None;
        for hops in 1..=longest {
            let (before, after) = (usize::from(hops - 1) * self.routers, usize::from(hops) * self.routers);
            let hop = Hop { graph, bounds, to, before, after };
            // Where few routers are near enough, it is quicker to look back from these.
            let few = match longest - hops {
                0 => Some(&[][..]),
                1 => Some(graph.neighbours(to)),
                _ => None,
            };
            frontier = match few {
                Some(few) if few.len() < frontier.len() => self.back(hop, few),
                _ => self.forth(hop, &frontier, distances.within(to, longest - hops)),
            };
            let arrival = self.arrivals[after + to as usize];
            if arrival.round == self.round
                && bounds.hops.contains(&hops)
                && best.is_none_or(|(weight, _)| arrival.weight < weight)
            {
                best = Some((arrival.weight, hops));
            }
            if frontier.is_empty() {
                break;
            }
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

    /// A hop from routers, in their order, to those that are near enough. Returns these in the order in which they are reached.
    fn forth(&mut self, hop: Hop<'_>, frontier: &[u32], is_near: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut next = Vec::new();
        let last = hop.bounds.position[hop.to as usize];
        for &here in frontier.iter().filter(|&&here| here != hop.to) {
            let so_far = self.arrivals[hop.before + here as usize].weight;
            for &Step { place, to: neighbour, edge } in hop.bounds.later.of(here) {
                if place > last || !is_near(neighbour) || !hop.bounds.allowed.contains(edge) {
                    continue;
                }
                let arrival = &mut self.arrivals[hop.after + neighbour as usize];
                let weight = so_far + hop.bounds.weight[edge as usize];
                let (round, mut rank) = (self.round, arrival.rank);
                if arrival.round != self.round {
                    rank = narrow::<u32>(next.len());
                    next.push(neighbour);
                } else if arrival.weight <= weight {
                    continue;
                }
                *arrival = Arrival { round, rank, weight, from: here, edge };
            }
        }
        next
    }

    /// The same hop where only the end and some of its neighbours, all of them one after the other, are near enough.
    fn back(&mut self, hop: Hop<'_>, neighbours: &[u32]) -> Vec<u32> {
        let mut reached = Vec::new();
        let place = |router: u32| hop.bounds.position[router as usize];
        let different = neighbours.chunk_by(|one, other| one == other).map(|links| links[0]);
        for router in different.chain([hop.to]).filter(|&router| place(router) <= place(hop.to)) {
            // The router before that was reached first, and the lightest way: of several the one from the router that was reached first.
            let (mut first, mut lightest) = (u32::MAX, None);
            for (&here, &edge) in hop.graph.neighbours(router).iter().zip(hop.graph.edge_ids(router)) {
                let before = self.arrivals[hop.before + here as usize];
                if before.round != self.round || here == hop.to || !hop.is_open(here, router, edge) {
                    continue;
                }
                first = first.min(before.rank);
                let way = (before.weight + hop.bounds.weight[edge as usize], before.rank, edge, here);
                lightest = Some(lightest.map_or(way, |lightest| way.min(lightest)));
            }
            if let Some((weight, _, edge, from)) = lightest {
                let arrival = Arrival { round: self.round, rank: 0, weight, from, edge };
                self.arrivals[hop.after + router as usize] = arrival;
                reached.push((first, router));
            }
        }
        reached.sort_unstable();
        for (&(_, router), rank) in reached.iter().zip(0..) {
            self.arrivals[hop.after + router as usize].rank = rank;
        }
        reached.into_iter().map(|(_, router)| router).collect()
    }
}

#[cfg(test)]
mod tests;
