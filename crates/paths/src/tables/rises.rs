//! How many hops shortest paths have where some are not counted: those over a link of high rank right behind one of low rank.
//!
//! That is how many virtual channels a packet uses where links have ranks. Which of several shortest paths a table takes is not asked, so that this bounds all
//! tables of a layer. As in [`super::hops`] one look at a link serves many targets, a bit each.

use netloom_units::narrow;
use std::collections::{BTreeMap, HashMap};

use netloom_topology::RouterGraph;
use rayon::prelude::*;

use crate::link_set::LinkSet;

/// Words of a row of bits about the targets of one search. What routers know at one distance is several rows, of two distances at a time.
const WORDS: usize = 4;

/// The targets of one search.
const TARGETS: usize = WORDS * u64::BITS as usize;

/// A bit per target.
type Bits = [u64; WORDS];

/// How many pairs are told of a search's targets.
const TOLD: usize = 8;

/// The most counted hops of shortest paths between some routers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) hops: u32,
    /// Some pairs of routers, from and to, between which a shortest path has as many.
    pub(super) between: Vec<(u32, u32)>,
}

impl Counted {
    /// Measures a layer, as far as paths begin at some routers and end at some of them. `is_high(router, place)` says the rank of the link to a router's neighbour
    /// at a place.
    pub(super) fn measure(
        graph: &RouterGraph,
        links: &LinkSet,
        from: &[u32],
        to: &[u32],
        is_high: impl Fn(u32, usize) -> bool,
    ) -> Self {
        let kept = kept(graph, links, is_high);
        let mut begins = vec![false; kept.len()];
        from.iter().for_each(|&router| begins[router as usize] = true);
        let blocks = to.par_chunks(TARGETS).map(|targets| {
            let mut counted = Counted::default();
            spread(&kept, targets, Way::There, |hops, router, ways| {
                if let Some((free, place)) = ways.fewest(router).filter(|_| begins[router]) {
                    counted.note(hops - free, (narrow::<u32>(router), targets[place]));
                }
            });
            counted
        });
        blocks.reduce(Counted::default, Counted::merge)
    }

    fn merge(mut self, mut other: Counted) -> Counted {
        if other.hops > self.hops {
            return other;
        }
        if other.hops == self.hops {
            self.between.append(&mut other.between);
        }
        self
    }

    fn note(&mut self, hops: u32, pair: (u32, u32)) {
        if hops > self.hops {
            *self = Counted { hops, between: Vec::new() };
        }
        if hops == self.hops && self.between.len() < TOLD {
            self.between.push(pair);
        }
    }
}

/// The most counted hops of paths that lead over a root: along any shortest path to it, and on along any from there.
pub(super) struct OverRoots {
    /// Per root, of the paths to it from any of the ends, by the rank of their last link; 0 if none has that.
    to: Vec<[u32; 2]>,
    /// From a root to a destination, by the rank of the first link.
    on: HashMap<(u32, u32), [u32; 2]>,
}

impl OverRoots {
    /// Measures a network for some pairs of a root and a destination.
    pub(super) fn measure(
        graph: &RouterGraph,
        ends: &[u32],
        pairs: impl Iterator<Item = (u32, u32)>,
        is_high: impl Fn(u32, usize) -> bool,
    ) -> Self {
        let kept = kept(graph, &LinkSet::full(graph), is_high);
        let to = ends.par_chunks(TARGETS).map(|ends| {
            let mut to = vec![[0; 2]; kept.len()];
            spread(&kept, ends, Way::Back, |hops, root, ways| {
                for (rank, most) in to[root].iter_mut().enumerate() {
                    let fewest = ways.counts(root, rank == 1, &[u64::MAX; WORDS]).next();
                    *most = fewest.map_or(*most, |(free, _)| (*most).max(hops - free));
                }
            });
            to
        });
        let most = |mut all: Vec<[u32; 2]>, more: Vec<[u32; 2]>| {
            let both = all.iter_mut().flatten().zip(more.into_iter().flatten());
            both.for_each(|(most, more)| *most = (*most).max(more));
            all
        };
        let to = to.reduce(|| vec![[0; 2]; kept.len()], most);

        let mut roots_to: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        pairs.for_each(|(root, destination)| roots_to.entry(destination).or_default().push(root));
        let roots_to: Vec<(u32, Vec<u32>)> = roots_to.into_iter().collect();
        let on = roots_to.par_chunks(TARGETS).map(|block| {
            let targets: Vec<u32> = block.iter().map(|&(destination, _)| destination).collect();
            let mut wanted: HashMap<usize, Bits> = HashMap::new();
            for (place, &root) in
                (0..).zip(block).flat_map(|(place, (_, roots))| roots.iter().map(move |root| (place, root)))
            {
                wanted.entry(root as usize).or_default()[place / 64] |= 1 << (place % 64);
            }
            let mut on: HashMap<(u32, u32), [u32; 2]> = HashMap::new();
            spread(&kept, &targets, Way::There, |hops, root, ways| {
                let Some(wanted) = wanted.get(&root) else { return };
                for rank in 0..2 {
                    for (free, found) in ways.counts(root, rank == 1, wanted) {
                        for place in
                            (0..targets.len()).filter(|place| found[place / 64] >> (place % 64) & 1 == 1)
                        {
                            on.entry((narrow::<u32>(root), targets[place])).or_default()[rank] = hops - free;
                        }
                    }
                }
            });
            on
        });
        let all = |mut all: HashMap<_, _>, more| {
            all.extend::<HashMap<_, _>>(more);
            all
        };
        OverRoots { to, on: on.reduce(HashMap::new, all) }
    }

    /// A number that no path from an end over a root to a destination exceeds on which no link is taken forth and back: what such a detour would count is not
    /// less than what the hop behind it then may.
    pub(super) fn most(&self, root: u32, destination: u32) -> u32 {
        let on = self.on.get(&(root, destination)).copied().unwrap_or_default();
        let over = |last: usize, first: usize| {
            let (to, on) = (self.to[root as usize][last], on[first]);
            // Behind a low link a high one is free.
            to + on - u32::from(last == 0 && first == 1 && to > 0 && on > 0)
        };
        [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().map(|(last, first)| over(last, first)).max().unwrap_or(0)
    }
}

/// In which direction paths are counted.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// From routers to the targets.
    There,
    /// From the targets to routers.
    Back,
}

/// Per router, its neighbours in a layer, and whether the link has a high rank.
fn kept(graph: &RouterGraph, links: &LinkSet, is_high: impl Fn(u32, usize) -> bool) -> Vec<Vec<(u32, bool)>> {
    let kept = |router| {
        let row = graph.neighbours(router).iter().zip(graph.edge_ids(router)).enumerate();
        let row = row.filter(|&(_, (_, &edge))| links.contains(edge));
        row.map(|(place, (&neighbour, _))| (neighbour, is_high(router, place))).collect()
    };
    (0..graph.routers()).map(kept).collect()
}

/// Searches from some targets at a time, at most [`TARGETS`]. At every distance `note` is told of every router and of what all know that are as far away.
fn spread(kept: &[Vec<(u32, bool)>], targets: &[u32], way: Way, mut note: impl FnMut(u32, usize, &Ways)) {
    let routers = kept.len();
    let mut all: Bits = [0; WORDS];
    let [mut before, mut after] = [Ways::default(), Ways::default()];
    before.restart(routers, 0);
    let mut reached: Vec<Bits> = vec![[0; WORDS]; routers];
    for (place, target) in targets.iter().map(|&target| target as usize).enumerate() {
        let (word, bit) = (place / 64, 1 << (place % 64));
        reached[target][word] |= bit;
        all[word] |= bit;
        // The first hop is always counted.
        before.of_mut(target, way == Way::Back, 0)[word] |= bit;
        before.first[target] = 0;
    }
    for hops in 1u32.. {
        after.restart(routers, hops);
        let mut grew = false;
        for (router, neighbours) in kept.iter().enumerate() {
            if reached[router] == all {
                continue;
            }
            for &(neighbour, is_high) in neighbours {
                after.extend(router, is_high, &before, neighbour as usize, way);
            }
            let (left, known) = (after.keep(router, &reached[router]), &mut reached[router]);
            grew |= left.iter().any(|&word| word != 0);
            known.iter_mut().zip(left).for_each(|(known, left)| *known |= left);
            note(hops, router, &after);
        }
        if !grew {
            return;
        }
        std::mem::swap(&mut before, &mut after);
    }
    unreachable!("no path is longer than there are routers")
}

/// What routers know of the targets at one distance: by the rank of the link of a path at the router, and by how many hops on it are free at most.
#[derive(Default)]
struct Ways {
    /// The most free hops on paths so long.
    most: usize,
    /// `[router][rank][free hops]`
    rows: Vec<Bits>,
    /// Per router, with how few free hops it knows of any target; [`NONE`] if of none.
    first: Vec<usize>,
}

/// More free hops than any path has.
const NONE: usize = usize::MAX;

impl Ways {
    /// Knows nothing yet of paths of this many hops. Rows are wiped where something comes to them: mostly that is a part of them.
    fn restart(&mut self, routers: usize, hops: u32) {
        self.most = hops as usize / 2;
        self.rows.resize(routers * 2 * (self.most + 1), [0; WORDS]);
        self.first.clear();
        self.first.resize(routers, NONE);
    }

    /// All rows of a router.
    fn all_mut(&mut self, router: usize) -> &mut [Bits] {
        let begin = self.place(router, false, 0);
        &mut self.rows[begin..begin + 2 * (self.most + 1)]
    }

    fn place(&self, router: usize, is_high: bool, free: usize) -> usize {
        (router * 2 + usize::from(is_high)) * (self.most + 1) + free.min(self.most)
    }

    fn of(&self, router: usize, is_high: bool, free: usize) -> &Bits {
        &self.rows[self.place(router, is_high, free)]
    }

    fn of_mut(&mut self, router: usize, is_high: bool, free: usize) -> &mut Bits {
        let place = self.place(router, is_high, free);
        &mut self.rows[place]
    }

    /// Adds the paths of a neighbour, with the link to it.
    fn extend(&mut self, router: usize, is_high: bool, nearer: &Ways, neighbour: usize, way: Way) {
        // Behind a low link a high one is free.
        let (is_free_at_low, is_free_at_high) = match way {
            Way::There => (false, !is_high),
            Way::Back => (is_high, false),
        };
        let rows = |rank: bool, is_free: bool, free: usize| match (is_free, free.checked_sub(1)) {
            (false, _) => nearer.of(neighbour, rank, free),
            (true, Some(fewer)) => nearer.of(neighbour, rank, fewer),
            (true, None) => &[0; WORDS],
        };
        let first = nearer.first[neighbour];
        if first == NONE {
            return;
        }
        if std::mem::replace(&mut self.first[router], 0) == NONE {
            self.all_mut(router).fill([0; WORDS]);
        }
        for free in first..=self.most {
            let (low, high) = (rows(false, is_free_at_low, free), rows(true, is_free_at_high, free));
            let row = self.of_mut(router, is_high, free);
            row.iter_mut().zip(low.iter().zip(high)).for_each(|(row, (low, high))| *row |= low | high);
        }
    }

    /// Leaves out targets that are nearer. Returns those that are left.
    fn keep(&mut self, router: usize, nearer: &Bits) -> Bits {
        if self.first[router] == NONE {
            return [0; WORDS];
        }
        for row in self.all_mut(router) {
            row.iter_mut().zip(nearer).for_each(|(row, nearer)| *row &= !nearer);
        }
        let knows = |&free: &usize| {
            let (low, high) = (self.of(router, false, free), self.of(router, true, free));
            low.iter().chain(high).any(|&word| word != 0)
        };
        self.first[router] = (0..=self.most).find(knows).unwrap_or(NONE);
        let (low, high) = (self.of(router, false, self.most), self.of(router, true, self.most));
        std::array::from_fn(|word| low[word] | high[word])
    }

    /// The fewest free hops on paths whose link at a router has some rank, and which of some targets they join with it; not those with fewer.
    fn counts<'a>(
        &'a self,
        router: usize,
        is_high: bool,
        targets: &'a Bits,
    ) -> impl Iterator<Item = (u32, Bits)> + 'a {
        (self.first[router]..=self.most).filter_map(move |free| {
            let fewer = free.checked_sub(1).map_or(&[0; WORDS], |fewer| self.of(router, is_high, fewer));
            let row = self.of(router, is_high, free);
            let found: Bits = std::array::from_fn(|word| row[word] & !fewer[word] & targets[word]);
            (found != [0; WORDS]).then_some((narrow::<u32>(free), found))
        })
    }

    /// The fewest free hops on a path of a router, and the place of its target.
    fn fewest(&self, router: usize) -> Option<(u32, usize)> {
        // Where any are known some are with so few.
        let free = Some(self.first[router]).filter(|&first| first != NONE)?;
        let (low, high) = (self.of(router, false, free), self.of(router, true, free));
        let (word, found) =
            (0..WORDS).map(|word| (word, low[word] | high[word])).find(|&(_, found)| found != 0)?;
        Some((narrow::<u32>(free), word * 64 + found.trailing_zeros() as usize))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::distance::{UNREACHABLE, distances_from, endpoints};
    use crate::testing::random;

    /// The most counted hops of shortest paths from a router behind a link of some rank, by following all of them.
    fn walked(
        inside: &RouterGraph,
        is_high: &dyn Fn(u32, u32) -> bool,
        hops: &[u16],
        here: u32,
        came: Option<bool>,
    ) -> u32 {
        let nearer = inside.neighbours(here).iter().filter(|&&n| hops[n as usize] + 1 == hops[here as usize]);
        let on = nearer.map(|&next| {
            let high = is_high(here, next);
            u32::from(came != Some(false) || !high) + walked(inside, is_high, hops, next, Some(high))
        });
        on.max().unwrap_or(0)
    }

    /// All shortest paths between two routers.
    fn shortest(graph: &RouterGraph, from: u32, to: u32) -> Vec<Vec<u32>> {
        if from == to {
            return vec![vec![to]];
        }
        let hops = distances_from(graph, &[to], UNREACHABLE);
        let nearer = graph.neighbours(from).iter().filter(|&&n| hops[n as usize] < hops[from as usize]);
        let behind = nearer.flat_map(|&next| shortest(graph, next, to));
        behind.map(|path| [&[from], &path[..]].concat()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// With few targets and with more than one search has, in pieces, and with hosts at some routers only.
        #[test]
        fn as_many_hops_are_counted_as_on_paths_that_are_followed(
            routers in prop_oneof![1u32..80, 250u32..300], more in 0usize..200, every in 2u32..9, group in 1u32..12,
            seed in any::<u64>(),
        ) {
            let edges = random(routers, more, seed).edges().to_vec();
            let graph = RouterGraph::new((0..routers).map(|router| router % 3).collect(), edges);
            let mut links = LinkSet::full(&graph);
            (0..graph.edges().len() as u32).filter(|edge| edge % every == 1).for_each(|edge| links.remove(edge));
            let inside = RouterGraph::new(
                vec![1; routers as usize], links.iter().map(|edge| graph.edges()[edge as usize]).collect());
            let is_high = |a: u32, b: u32| a / group != b / group;
            let (mut most, ends) = (0, endpoints(&graph));
            let counted = Counted::measure(&graph, &links, &ends, &ends, |router, place| {
                is_high(router, graph.neighbours(router)[place])
            });
            for &to in &ends {
                let hops = distances_from(&inside, &[to], UNREACHABLE);
                for &from in ends.iter().filter(|&&from| hops[from as usize] != UNREACHABLE) {
                    let used = walked(&inside, &is_high, &hops, from, None);
                    most = most.max(used);
                    prop_assert!(used == counted.hops || !counted.between.contains(&(from, to)));
                }
            }
            prop_assert_eq!((counted.hops, counted.between.is_empty()), (most, most == 0));
        }

        /// Over every root, by all pairs of shortest paths to it and from it.
        #[test]
        fn no_path_over_a_root_counts_more_hops(
            routers in 2u32..14, more in 0usize..12, group in 1u32..6, seed in any::<u64>(),
        ) {
            let edges = random(routers, more, seed).edges().to_vec();
            let graph = RouterGraph::new((0..routers).map(|router| router % 3).collect(), edges);
            let is_high = |a: u32, b: u32| a / group != b / group;
            let ends = endpoints(&graph);
            let pairs = || (0..routers).flat_map(|root| ends.iter().map(move |&to| (root, to)));
            let over = OverRoots::measure(&graph, &ends, pairs(), |router, place| {
                is_high(router, graph.neighbours(router)[place])
            });
            for (root, to) in pairs() {
                let on = shortest(&graph, root, to);
                let all = ends.iter().flat_map(|&from| shortest(&graph, from, root)).flat_map(|first| {
                    on.iter().map(move |then| [&first[..], &then[1..]].concat())
                });
                let counted = |path: Vec<u32>| {
                    let ranks: Vec<bool> = path.windows(2).map(|hop| is_high(hop[0], hop[1])).collect();
                    let free = ranks.windows(2).filter(|pair| !pair[0] && pair[1]).count();
                    (ranks.len() - free) as u32
                };
                prop_assert_eq!(over.most(root, to), all.map(counted).max().unwrap());
            }
        }
    }
}
