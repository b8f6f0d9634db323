//! How many hops shortest paths have where some are not counted: those over a link of high rank right behind one of low rank.
//!
//! That is how many virtual channels a packet uses where links have ranks. Which of several shortest paths a table takes is not asked, so that this bounds all
//! tables of a layer. As in [`super::hops`] one look at a link serves many targets, a bit each.

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
    /// Measures a layer, as far as paths begin and end at some routers. `is_high(router, place)` says the rank of the link to a router's neighbour at a place.
    pub(super) fn measure(
        graph: &RouterGraph,
        links: &LinkSet,
        ends: &[u32],
        is_high: impl Fn(u32, usize) -> bool,
    ) -> Self {
        let mut is_end = vec![false; graph.routers() as usize];
        ends.iter().for_each(|&end| is_end[end as usize] = true);
        let kept: Vec<Vec<(u32, bool)>> = (0..graph.routers())
            .map(|router| {
                let row = graph.neighbours(router).iter().zip(graph.edge_ids(router)).enumerate();
                let row = row.filter(|&(_, (_, &edge))| links.contains(edge));
                row.map(|(place, (&neighbour, _))| (neighbour, is_high(router, place))).collect()
            })
            .collect();
        let firsts: Vec<usize> = (0..is_end.len()).step_by(TARGETS).collect();
        let blocks = firsts.par_iter().map(|&first| Counted::to_some(&kept, first, &is_end));
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

    /// To the targets from `first` on.
    fn to_some(kept: &[Vec<(u32, bool)>], first: usize, is_end: &[bool]) -> Self {
        let routers = kept.len();
        let (mut all, mut ends): (Bits, Bits) = ([0; WORDS], [0; WORDS]);
        let mut before = Ways::new(routers, 0);
        let mut reached: Vec<Bits> = vec![[0; WORDS]; routers];
        for (place, target) in (first..routers.min(first + TARGETS)).enumerate() {
            let (word, bit) = (place / 64, 1 << (place % 64));
            reached[target][word] |= bit;
            all[word] |= bit;
            before.of_mut(target, false, 0)[word] |= bit;
            before.first[target] = 0;
            ends[word] |= if is_end[target] { bit } else { 0 };
        }
        let mut counted = Counted::default();
        for hops in 1u32.. {
            let mut after = Ways::new(routers, hops);
            let mut grew = false;
            let open = kept.iter().enumerate().filter(|&(router, _)| reached[router] != all);
            let open: Vec<_> = open.collect();
            for (router, neighbours) in open {
                for &(neighbour, is_high) in neighbours {
                    after.extend(router, is_high, &before, neighbour as usize);
                }
                let (left, known) = (after.keep(router, &reached[router]), &mut reached[router]);
                grew |= left.iter().any(|&word| word != 0);
                known.iter_mut().zip(left).for_each(|(known, left)| *known |= left);
                if let Some((free, place)) = after.fewest(router, &ends).filter(|_| is_end[router]) {
                    counted.note(hops - free, (router as u32, (first + place) as u32));
                }
            }
            if !grew {
                return counted;
            }
            before = after;
        }
        unreachable!("no path is longer than there are routers")
    }
}

/// What routers know of the targets at one distance: by the rank of the link with which a path begins, and by how many hops on it are free at most.
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
    fn new(routers: usize, hops: u32) -> Self {
        let most = hops as usize / 2;
        Ways { most, rows: vec![[0; WORDS]; routers * 2 * (most + 1)], first: vec![NONE; routers] }
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

    /// Adds the paths that begin with a link to a neighbour.
    fn extend(&mut self, router: usize, is_high: bool, nearer: &Ways, neighbour: usize) {
        for free in nearer.first[neighbour]..=self.most {
            let low = nearer.of(neighbour, false, free);
            // Behind a low link a high one is free.
            let high = match (is_high, free.checked_sub(1)) {
                (true, _) => nearer.of(neighbour, true, free),
                (false, Some(fewer)) => nearer.of(neighbour, true, fewer),
                (false, None) => &[0; WORDS],
            };
            let row = self.of_mut(router, is_high, free);
            row.iter_mut().zip(low.iter().zip(high)).for_each(|(row, (low, high))| *row |= low | high);
        }
    }

    /// Leaves out targets that are nearer. Returns those that are left.
    fn keep(&mut self, router: usize, nearer: &Bits) -> Bits {
        let begin = self.place(router, false, 0);
        for row in &mut self.rows[begin..begin + 2 * (self.most + 1)] {
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

    /// The fewest free hops on a path to one of some targets, and its place among all.
    fn fewest(&self, router: usize, targets: &Bits) -> Option<(u32, usize)> {
        (0..=self.most).find_map(|free| {
            let (low, high) = (self.of(router, false, free), self.of(router, true, free));
            let word = (0..WORDS).find(|&word| (low[word] | high[word]) & targets[word] != 0)?;
            let found = (low[word] | high[word]) & targets[word];
            Some((free as u32, word * 64 + found.trailing_zeros() as usize))
        })
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
            let counted = Counted::measure(&graph, &links, &ends, |router, place| {
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
    }
}
