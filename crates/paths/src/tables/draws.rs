//! Minimal routing inside each layer, drawn for a router when its way is first asked for.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use netloom_topology::RouterGraph;
use netloom_units::{narrow, random::Analysis};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::hops::{Diameter, Hops, Reach};
use super::rises::Counted;
use super::{Bound, Entries, NO_PORT};
use crate::distance::endpoints;
use crate::link_set::LinkSet;

/// What it takes to draw the rows of tables: a row is what one router knows in one layer.
///
/// Rows are drawn independently of each other, so that they are the same in whatever order and by whichever thread. A layer is measured for its first row.
#[derive(Debug)]
pub(super) struct Draws {
    graph: RouterGraph,
    layers: Vec<Layer>,
    /// By layer and router.
    is_drawn: Vec<Once>,
    /// By layer.
    reaches: OnceLock<Vec<Reach>>,
}

/// One layer's part.
#[derive(Debug)]
struct Layer {
    seed: u64,
    distances: Mutex<Distances>,
    /// Rows that are not drawn.
    left: AtomicUsize,
}

#[derive(Debug)]
enum Distances {
    /// Nobody has asked for a row.
    Unmeasured,
    Known(Arc<Hops>),
    /// All rows are drawn.
    GivenUp,
}

impl Layer {
    fn distances(&self) -> MutexGuard<'_, Distances> {
        self.distances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are known.
    fn hops(&self) -> Option<Arc<Hops>> {
        match &*self.distances() {
            Distances::Known(hops) => Some(hops.clone()),
            Distances::Unmeasured | Distances::GivenUp => None,
        }
    }

    /// The same, for which the layer may have to be measured: who asks meanwhile waits.
    fn measured(&self, graph: &RouterGraph, links: &LinkSet) -> Arc<Hops> {
        let mut distances = self.distances();
        if let Distances::Known(hops) = &*distances {
            return hops.clone();
        }
        let hops = Arc::new(Hops::measure_alone(graph, links));
        *distances = Distances::Known(hops.clone());
        hops
    }
}

impl Draws {
    pub(super) fn new(graph: &RouterGraph, layers: usize, seed: u64) -> Self {
        let layer = |layer| Layer {
            seed: Analysis::TiesOfLayer(layer).stream(seed).next_u64(),
            distances: Mutex::new(Distances::Unmeasured),
            left: AtomicUsize::new(graph.routers() as usize),
        };
        let is_drawn = (0..layers * graph.routers() as usize).map(|_| Once::new()).collect();
        let layers = (0..layers).map(layer).collect();
        Draws { graph: graph.clone(), layers, is_drawn, reaches: OnceLock::new() }
    }

    /// How far routers are apart, by layer.
    fn reaches(&self, links: &[LinkSet]) -> &[Reach] {
        let reach = |(layer, links): (&Layer, &LinkSet)| match layer.hops() {
            Some(hops) => hops.reach().clone(),
            None => Reach::measure(&self.graph, links),
        };
        self.reaches.get_or_init(|| self.layers.par_iter().zip(links).map(reach).collect())
    }

    pub(super) fn diameter(&self, layer: u32, links: &[LinkSet]) -> Diameter {
        self.reaches(links)[layer as usize].diameter
    }

    /// As [`ForwardingTables::bound`](super::ForwardingTables::bound). `reaches` says whether the route of a layer, from one router to another, counts this many hops.
    pub(super) fn bound(
        &self,
        links: &[LinkSet],
        is_high: impl Fn(u32, usize) -> bool + Copy,
        reaches: impl Fn(&RouterGraph, (u32, u32, u32), u32) -> bool,
    ) -> Bound {
        let ends = endpoints(&self.graph);
        let apart = self.reaches(links);
        let is_connected = apart.iter().any(|reach| reach.diameter.is_connected);
        let mut bound = Bound { hops: 0, is_used: true, is_connected };
        let mut longest_first: Vec<usize> = (0..links.len()).collect();
        longest_first.sort_by_key(|&layer| Reverse(apart[layer].diameter.hops));
        for layer in longest_first {
            // No more hops are counted than there are, so that only pairs matter that are so far apart.
            let least = bound.hops + u32::from(bound.is_used);
            let is_far = |&&end: &&u32| u32::from(apart[layer].farthest[end as usize]) >= least;
            let far: Vec<u32> = ends.iter().filter(is_far).copied().collect();
            let Counted { hops, between } = Counted::measure(&self.graph, &links[layer], &far, &far, is_high);
            if hops > bound.hops {
                (bound.hops, bound.is_used) = (hops, false);
            }
            let reaches = |(from, to)| reaches(&self.graph, (narrow::<u32>(layer), from, to), hops);
            bound.is_used = bound.is_used || hops == bound.hops && between.into_iter().any(reaches);
        }
        bound
    }

    /// As [`ForwardingTables::longer_pairs`](super::ForwardingTables::longer_pairs).
    pub(super) fn longer_pairs(&self, links: &[LinkSet], most: usize) -> Vec<(u32, u32, u32)> {
        let ends = endpoints(&self.graph);
        let full = LinkSet::full(&self.graph);
        let hops = |layer: usize| {
            let known = self.layers[layer].hops();
            known.unwrap_or_else(|| Arc::new(Hops::measure(&self.graph, &links[layer])))
        };
        let whole = links.iter().position(|links| *links == full).map(hops);
        let whole = whole.unwrap_or_else(|| Arc::new(Hops::measure(&self.graph, &full)));
        let mut pairs = Vec::new();
        for layer in (0..self.layers.len()).filter(|&layer| links[layer] != full) {
            let hops = hops(layer);
            let longer = hops.longer_than(&whole, &ends).map(|(from, to)| (narrow::<u32>(layer), from, to));
            pairs.extend(longer.take(most - pairs.len()));
        }
        pairs
    }

    /// The distances in a layer, if a row has been asked for, and not all.
    pub(super) fn hops(&self, layer: u32) -> Option<Arc<Hops>> {
        self.layers[layer as usize].hops()
    }

    /// Draws all rows.
    pub(super) fn all(&self, links: &[LinkSet], entries: &Entries) {
        // A thread that holds the lock of a layer must not take up another's rows.
        let undrawn =
            self.layers.par_iter().zip(links).filter(|(layer, _)| layer.left.load(Ordering::Relaxed) > 0);
        let _held: Vec<_> = undrawn.map(|(layer, links)| layer.measured(&self.graph, links)).collect();
        (0..self.is_drawn.len()).into_par_iter().for_each(|row| self.row(row, links, entries));
    }

    /// Draws a row, by its number, unless that has been done. Who asks for the same row meanwhile waits.
    pub(super) fn row(&self, row: usize, links: &[LinkSet], entries: &Entries) {
        self.is_drawn[row].call_once(|| {
            let routers = self.graph.routers() as usize;
            let (layer, here) = (row / routers, row % routers);
            let drawn = &self.layers[layer];
            let hops = drawn.measured(&self.graph, &links[layer]);
            let ports = draw(&self.graph, &links[layer], &hops, narrow::<u32>(here), drawn.seed);
            (row * routers..).zip(ports).for_each(|(place, port)| entries.set(place, port));
            if drawn.left.fetch_sub(1, Ordering::Relaxed) == 1 {
                *drawn.distances() = Distances::GivenUp;
            }
        });
    }
}

/// The ports of one router in one layer, by destination.
///
/// A destination's port is drawn from those to neighbours that are nearer to it, a hop of distance at a time, by reservoir sampling in the order
/// of ports and then of destinations: the c-th candidate replaces the choice with probability 1/c.
fn draw(graph: &RouterGraph, links: &LinkSet, hops: &Hops, here: u32, seed: u64) -> Vec<u16> {
    let routers = graph.routers() as usize;
    let row = graph.neighbours(here).iter().zip(graph.edge_ids(here)).zip(0u16..);
    let kept: Vec<(u32, u16)> =
        row.filter(|&((_, &edge), _)| links.contains(edge)).map(|((&to, _), port)| (to, port)).collect();
    let mut choices = vec![Choice { port: NO_PORT, candidates: 0 }; routers];
    let (mut farther, mut nearer) = (Vec::new(), Vec::new());
    for step in 0..hops.reach().longest {
        hops.at(here, step + 1, &mut farther);
        if farther.iter().all(|&word| word == 0) {
            continue;
        }
        let mut rng = Pcg64Mcg::seed_from_u64(seed ^ (u64::from(here) << 8 | u64::from(step) & 0xff));
        for &(neighbour, port) in &kept {
            hops.at(neighbour, step, &mut nearer);
            nearer.iter_mut().zip(&farther).for_each(|(nearer, farther)| *nearer &= farther);
            offer(port, &nearer, &mut choices, &mut rng);
        }
    }
    choices.into_iter().map(|choice| choice.port).collect()
}

/// The port of one destination so far.
#[derive(Clone, Copy)]
struct Choice {
    port: u16,
    /// How many ports there have been to choose from.
    candidates: u16,
}

/// Offers a port to destinations, a bit each.
fn offer(port: u16, to: &[u64], choices: &mut [Choice], rng: &mut Pcg64Mcg) {
    // A generator of one's own stays in registers.
    let mut own = rng.clone();
    for (word, choices) in to.iter().zip(choices.chunks_mut(64)) {
        let mut word = *word;
        while word != 0 {
            let choice = &mut choices[word.trailing_zeros() as usize];
            word &= word - 1;
            choice.candidates += 1;
            let count = u64::from(choice.candidates);
            if count == 1 || (u64::from(own.next_u32()) * count) >> 32 == 0 {
                choice.port = port;
            }
        }
    }
    *rng = own;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::distance::{UNREACHABLE, distances_from};
    use crate::tables::ForwardingTables;
    use crate::testing::{entries, random};

    /// What [`draw`] says of all routers of a layer, from distances that are searched for one by one.
    fn plain(graph: &RouterGraph, links: &LinkSet, seed: u64) -> Vec<Option<u16>> {
        let routers = graph.routers();
        let kept = links.iter().map(|edge| graph.edges()[edge as usize]).collect();
        let inside = RouterGraph::new(vec![1; routers as usize], kept);
        let hops: Vec<Vec<u16>> =
            (0..routers).map(|from| distances_from(&inside, &[from], UNREACHABLE)).collect();
        let mut entries = vec![None; (routers * routers) as usize];
        let (mut count, longest) = (vec![0u64; entries.len()], routers as u16);
        for (here, step) in (0..routers).flat_map(|here| (0..longest).map(move |step| (here, step))) {
            let mut rng = Pcg64Mcg::seed_from_u64(seed ^ (u64::from(here) << 8 | u64::from(step) & 0xff));
            for (port, (&neighbour, &edge)) in
                (0u16..).zip(graph.neighbours(here).iter().zip(graph.edge_ids(here)))
            {
                for to in 0..routers {
                    let distance = |from: u32| hops[from as usize][to as usize];
                    if links.contains(edge) && distance(here) == step + 1 && distance(neighbour) == step {
                        let place = (here * routers + to) as usize;
                        count[place] += 1;
                        if count[place] == 1 || (u64::from(rng.next_u32()) * count[place]) >> 32 == 0 {
                            entries[place] = Some(port);
                        }
                    }
                }
            }
        }
        entries
    }

    /// A graph with a sparse layer, which may be in pieces, beside the full one.
    fn layered(routers: u32, chords: usize, every: u32, seed: u64) -> (RouterGraph, Vec<LinkSet>) {
        let graph = random(routers, chords, seed);
        let mut sparse = LinkSet::full(&graph);
        (0..graph.edges().len() as u32).filter(|edge| edge % every == 1).for_each(|edge| sparse.remove(edge));
        let layers = vec![LinkSet::full(&graph), sparse];
        (graph, layers)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// In whatever order rows are asked for, by one thread or by four at once.
        #[test]
        fn entries_are_those_that_are_drawn_one_by_one(
            routers in 2u32..90, chords in 0usize..200, every in 2u32..9, seed in any::<u64>(),
            order in prop::collection::vec((0u32..2, 0u32..90, 0u32..90), 0..40), threads in 1..=4,
        ) {
            let (graph, layers) = layered(routers, chords, every, seed);
            let seeds = (0..2).map(|layer| Analysis::TiesOfLayer(layer).stream(seed).next_u64());
            let expected: Vec<_> = layers.iter().zip(seeds).flat_map(|(links, seed)| plain(&graph, links, seed)).collect();
            let tables = ForwardingTables::minimal(&graph, layers, seed);
            for (layer, here, to) in order.into_iter().map(|(layer, here, to)| (layer, here % routers, to % routers)) {
                let place = ((layer * routers + here) * routers + to) as usize;
                prop_assert_eq!(tables.next_port(layer, here, to), expected[place]);
            }
            let all = || prop::test_runner::TestCaseResult::from(
                if entries(&tables) == expected { Ok(()) } else { Err(TestCaseError::fail("others")) });
            std::thread::scope(|scope| {
                let asking: Vec<_> = (0..threads).map(|_| scope.spawn(all)).collect();
                asking.into_iter().try_for_each(|thread| thread.join().unwrap())
            })?;
        }
    }

    #[test]
    fn distances_are_measured_with_the_first_row_of_a_layer_and_given_up_with_the_last() {
        let (graph, layers) = layered(40, 60, 5, 1);
        let draws = Draws::new(&graph, layers.len(), 3);
        let entries = Entries::new(&graph, layers.len());
        let are_known = || [0, 1].map(|layer| draws.hops(layer).is_some());
        assert_eq!(are_known(), [false, false]);
        draws.row(50, &layers, &entries);
        assert_eq!(are_known(), [false, true]);
        (1..80).for_each(|row| draws.row(row, &layers, &entries));
        assert_eq!(are_known(), [true, false]);
        draws.row(0, &layers, &entries);
        assert!(draws.hops(0).is_none());
        // Nothing is drawn twice.
        draws.all(&layers, &entries);
    }
}
