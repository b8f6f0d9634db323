//! How far routers are from each other inside a layer, for all pairs.
//!
//! A search that spreads from one router looks at every link. Here one look serves 1024 of them: what a router knows is a row of words with a bit
//! per search, and a link passes the whole row on (multi-source breadth-first search; Then et al., VLDB'14).

use netloom_units::narrow;
use std::ops::Range;

use netloom_topology::RouterGraph;
use rayon::prelude::*;

use crate::distance::endpoints;
use crate::link_set::LinkSet;

/// Words of a row of bits about the targets of one search. The rows of all routers of a large network fit in a second-level cache.
const WORDS: usize = 16;

/// The targets of one search.
const TARGETS: usize = WORDS * u64::BITS as usize;

/// A bit per target.
type Bits = [u64; WORDS];

/// Hop distances between all routers inside a layer, each in as many bits as the longest of its block needs.
#[derive(Debug)]
pub(super) struct Hops {
    blocks: Vec<Block>,
    reach: Reach,
}

/// How far the routers of a layer are apart.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// Hops of the longest path between any two routers.
    pub(super) longest: u32,
    pub(super) diameter: Diameter,
    /// Per router with hosts, how far the farthest one to which there is a path is from it.
    pub(super) farthest: Box<[u16]>,
}

/// The diameter of a layer: how far routers with hosts are apart, or all routers of a network without hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diameter {
    /// The most hops between two that a path joins.
    pub hops: u32,
    /// Whether a path joins any two.
    pub is_connected: bool,
}

/// The distances of all routers to the targets of one search.
#[derive(Debug)]
struct Block {
    /// For every bit of a distance, the lowest first: `[router]`, that bit of its distances. All bits are 0 where there is no path.
    planes: Vec<Vec<Bits>>,
    /// Words of a row that are in use.
    words: usize,
}

impl Hops {
    /// Measures a layer on several threads.
    pub(super) fn measure(graph: &RouterGraph, links: &LinkSet) -> Self {
        let search = Search::new(graph, links);
        Hops::of(search.firsts().into_par_iter().map(|first| search.distances(first)).collect())
    }

    /// The same on this thread alone, which may hold what others wait for.
    pub(super) fn measure_alone(graph: &RouterGraph, links: &LinkSet) -> Self {
        let search = Search::new(graph, links);
        Hops::of(search.firsts().into_iter().map(|first| search.distances(first)).collect())
    }

    fn of(blocks: Vec<(Block, Reach)>) -> Self {
        let (blocks, reaches): (_, Vec<Reach>) = blocks.into_iter().unzip();
        Hops { blocks, reach: Reach::all(reaches) }
    }

    pub(super) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The pairs of some routers that a path joins, but none as short as in another layer of the same network.
    pub(super) fn longer_than(&self, other: &Hops, routers: &[u32]) -> impl Iterator<Item = (u32, u32)> {
        let blocks = (0..).step_by(TARGETS).zip(self.blocks.iter().zip(&other.blocks));
        blocks.flat_map(move |(first, (mine, others))| mine.longer_than(others, first, routers))
    }

    /// Writes a bit for every router that is this many hops from one, in words of 64. At 0 hops there are also those to which there is no path.
    pub(super) fn at(&self, router: u32, hops: u32, found: &mut Vec<u64>) {
        found.clear();
        for Block { planes, words, .. } in &self.blocks {
            let is_beyond = hops.checked_shr(narrow::<u32>(planes.len())).is_some_and(|beyond| beyond != 0);
            let first = found.len();
            found.resize(first + words, if is_beyond { 0 } else { u64::MAX });
            for (place, plane) in planes.iter().enumerate() {
                // Turns the bits that are as they should be to 1.
                let flip = if hops >> place & 1 == 1 { 0 } else { u64::MAX };
                found[first..]
                    .iter_mut()
                    .zip(&plane[router as usize])
                    .for_each(|(bits, &plane)| *bits &= plane ^ flip);
            }
        }
    }
}

impl Block {
    /// As [`Hops::longer_than`], the second of each pair one of the targets, which begin with `first`.
    fn longer_than(&self, other: &Block, first: usize, routers: &[u32]) -> impl Iterator<Item = (u32, u32)> {
        let mut targets: Bits = [0; WORDS];
        for place in routers.iter().filter_map(|&router| (router as usize).checked_sub(first)) {
            targets.get_mut(place / 64).into_iter().for_each(|word| *word |= 1 << (place % 64));
        }
        // Of a bit that no distance of a block has there is no plane.
        let row = |block: &Block, place: usize, router: u32| {
            block.planes.get(place).map_or([0; WORDS], |plane| plane[router as usize])
        };
        let places = self.planes.len().max(other.planes.len());
        let of_router = move |&router: &u32| {
            let (mut known, mut differs): (Bits, Bits) = ([0; WORDS], [0; WORDS]);
            for place in 0..places {
                let rows = row(self, place, router).into_iter().zip(row(other, place, router));
                for ((known, differs), (mine, others)) in known.iter_mut().zip(&mut differs).zip(rows) {
                    *known |= mine;
                    *differs |= mine ^ others;
                }
            }
            let found: Bits = std::array::from_fn(|word| known[word] & differs[word] & targets[word]);
            let targets = (0..TARGETS).filter(move |place| found[place / 64] >> (place % 64) & 1 == 1);
            let is_any = found != [0; WORDS];
            is_any
                .then(|| targets.map(move |place| (router, narrow::<u32>(first + place))))
                .into_iter()
                .flatten()
        };
        routers.iter().flat_map(of_router)
    }
}

impl Reach {
    /// That of a layer, whose distances are not kept.
    pub(super) fn measure(graph: &RouterGraph, links: &LinkSet) -> Self {
        let search = Search::new(graph, links);
        let firsts = search.firsts().into_par_iter();
        Reach::all(firsts.map(|first| search.spread(first, |_, _, _| {})).collect())
    }

    /// That to all targets, of those to the targets of single searches.
    fn all(of: Vec<Reach>) -> Self {
        let routers = of.first().map_or(0, |reach| reach.farthest.len());
        let farthest = |router: usize| of.iter().map(|reach| reach.farthest[router]).max().unwrap_or(0);
        let diameter = Diameter {
            hops: of.iter().map(|reach| reach.diameter.hops).max().unwrap_or(0),
            is_connected: of.iter().all(|reach| reach.diameter.is_connected),
        };
        let longest = of.iter().map(|reach| reach.longest).max().unwrap_or(0);
        Reach { longest, diameter, farthest: (0..routers).map(farthest).collect() }
    }
}

/// Searches inside a layer.
struct Search {
    kept: Kept,
    is_end: Vec<bool>,
}

impl Search {
    fn new(graph: &RouterGraph, links: &LinkSet) -> Self {
        let mut is_end = vec![false; graph.routers() as usize];
        endpoints(graph).iter().for_each(|&end| is_end[end as usize] = true);
        Search { kept: Kept::new(graph, links), is_end }
    }

    /// Where the targets of each search begin.
    fn firsts(&self) -> Vec<usize> {
        (0..self.is_end.len()).step_by(TARGETS).collect()
    }

    fn targets(&self, first: usize) -> Range<usize> {
        first..self.is_end.len().min(first + TARGETS)
    }

    /// Distances to the targets from `first` on.
    fn distances(&self, first: usize) -> (Block, Reach) {
        let mut planes: Vec<Vec<Bits>> = Vec::new();
        let reach = self.spread(first, |router, hops, new| {
            for place in (0..u32::BITS as usize).filter(|place| hops >> place & 1 == 1) {
                if planes.len() <= place {
                    planes.resize_with(place + 1, || vec![[0; WORDS]; self.is_end.len()]);
                }
                planes[place][router].iter_mut().zip(new).for_each(|(bits, new)| *bits |= new);
            }
        });
        (Block { planes, words: self.targets(first).len().div_ceil(64) }, reach)
    }

    /// Searches from the targets from `first` on. `tell` hears of every router how far it is from which targets.
    fn spread(&self, first: usize, mut tell: impl FnMut(usize, u32, &Bits)) -> Reach {
        let routers = self.is_end.len();
        let mut reached: Vec<Bits> = vec![[0; WORDS]; routers];
        let (mut all, mut ends): (Bits, Bits) = ([0; WORDS], [0; WORDS]);
        for (place, target) in self.targets(first).enumerate() {
            let (word, bit) = (place / 64, 1 << (place % 64));
            reached[target][word] |= bit;
            all[word] |= bit;
            ends[word] |= if self.is_end[target] { bit } else { 0 };
        }
        let (mut longest, mut farthest) = (0, vec![0; routers]);
        let mut open: Vec<usize> = (0..routers).collect();
        let mut after: Vec<Bits> = Vec::new();
        for hops in 1u32.. {
            after.clear();
            let mut grew = false;
            for &router in &open {
                let before = reached[router];
                let mut row = before;
                for &neighbour in self.kept.of(router) {
                    row.iter_mut().zip(&reached[neighbour as usize]).for_each(|(word, &more)| *word |= more);
                }
                if row != before {
                    grew = true;
                    let new: Bits = std::array::from_fn(|word| row[word] & !before[word]);
                    tell(router, hops, &new);
                    if self.is_end[router] && new.iter().zip(&ends).any(|(new, ends)| new & ends != 0) {
                        farthest[router] = u16::try_from(hops).unwrap_or(u16::MAX);
                    }
                }
                after.push(row);
            }
            if !grew {
                break;
            }
            longest = hops;
            open.iter().zip(&after).for_each(|(&router, &row)| reached[router] = row);
            open.retain(|&router| reached[router] != all);
        }
        let is_missed =
            |router: usize| reached[router].iter().zip(&ends).any(|(reached, end)| end & !reached != 0);
        let is_connected = !open.iter().any(|&router| self.is_end[router] && is_missed(router));
        let hops = farthest.iter().copied().max().unwrap_or(0).into();
        Reach { longest, diameter: Diameter { hops, is_connected }, farthest: farthest.into() }
    }
}

/// The neighbours of routers inside a layer.
struct Kept {
    /// Per router, where its neighbours begin; behind the last, where they end.
    begins: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Kept {
    fn new(graph: &RouterGraph, links: &LinkSet) -> Self {
        let (mut begins, mut neighbours) = (vec![0], Vec::new());
        for router in 0..graph.routers() {
            let row = graph.neighbours(router).iter().zip(graph.edge_ids(router));
            neighbours
                .extend(row.filter(|&(_, &edge)| links.contains(edge)).map(|(&neighbour, _)| neighbour));
            begins.push(neighbours.len());
        }
        Kept { begins, neighbours }
    }

    fn of(&self, router: usize) -> &[u32] {
        &self.neighbours[self.begins[router]..self.begins[router + 1]]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::distance::{UNREACHABLE, distances_from};
    use crate::testing::random;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// With few targets and with more than one search has, in long chains and in pieces, and with hosts at some routers only.
        #[test]
        fn distances_are_those_of_single_searches(
            routers in prop_oneof![1u32..80, 1000u32..1100], more in 0usize..200, every in 2u32..9, seed in any::<u64>(),
        ) {
            let edges = random(routers, more, seed).edges().to_vec();
            let hosts_at = (0..routers).map(|router| router % 3).collect();
            let graph = RouterGraph::new(hosts_at, edges);
            let mut links = LinkSet::full(&graph);
            (0..graph.edges().len() as u32).filter(|edge| edge % every == 1).for_each(|edge| links.remove(edge));
            let inside = RouterGraph::new(
                vec![1; routers as usize], links.iter().map(|edge| graph.edges()[edge as usize]).collect());
            let hops = Hops::measure(&graph, &links);
            let (mut diameter, mut found) = (Diameter { hops: 0, is_connected: true }, Vec::new());
            let mut farthest = vec![0; routers as usize];
            let ends = endpoints(&graph);
            for from in (0..routers).step_by(1 + routers as usize / 40).chain(ends.iter().copied()) {
                let expected = distances_from(&inside, &[from], UNREACHABLE);
                let longest = expected.iter().filter(|&&hops| hops != UNREACHABLE).max().unwrap();
                prop_assert!(hops.reach().longest >= u32::from(*longest));
                if routers < 80 || from % 50 == 0 {
                    for distance in 0..=longest + 5 {
                        hops.at(from, distance.into(), &mut found);
                        for (to, &expected) in expected.iter().enumerate() {
                            let is_found = found[to / 64] >> (to % 64) & 1 == 1;
                            let is_at = expected == distance || distance == 0 && expected == UNREACHABLE;
                            prop_assert_eq!(is_found, is_at, "{} to {}", from, to);
                        }
                    }
                }
                if ends.contains(&from) {
                    for hops in ends.iter().map(|&to| expected[to as usize]) {
                        match hops {
                            UNREACHABLE => diameter.is_connected = false,
                            hops => {
                                diameter.hops = diameter.hops.max(hops.into());
                                farthest[from as usize] = hops.max(farthest[from as usize]);
                            }
                        }
                    }
                }
            }
            for reach in [hops.reach(), &Reach::measure(&graph, &links), Hops::measure_alone(&graph, &links).reach()] {
                prop_assert_eq!(reach.longest, hops.reach().longest);
                prop_assert_eq!(reach.diameter, diameter);
                prop_assert_eq!(&*reach.farthest, &*farthest);
            }
            prop_assert_eq!(hops.longer_than(&hops, &ends).count(), 0);
            let whole = Hops::measure(&graph, &LinkSet::full(&graph));
            let longer: BTreeSet<(u32, u32)> = hops.longer_than(&whole, &ends).collect();
            for &from in &ends {
                let [layer, all] =
                    [&inside, &graph].map(|graph| distances_from(graph, &[from], UNREACHABLE));
                for &to in &ends {
                    let [layer, all] = [&layer, &all].map(|distances| distances[to as usize]);
                    prop_assert_eq!(longer.contains(&(from, to)), layer != UNREACHABLE && layer > all);
                }
            }
        }
    }
}
