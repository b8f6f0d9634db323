//! Distances between routers, from a few sources and from many at a time.

use crate::router_graph::RouterGraph;
use netloom_units::narrow;

/// The distance of a router that no path reaches.
pub const UNREACHABLE: u16 = u16::MAX;

/// Hop distances from a set of routers, [`UNREACHABLE`] where no path leads; a search that stops at `max_length`
/// hops leaves farther routers unreachable, as it does those more than 65,534 hops away.
pub fn distances_from(graph: &RouterGraph, sources: &[u32], max_length: u16) -> Vec<u16> {
    let mut distance = vec![UNREACHABLE; graph.routers() as usize];
    let mut queue = sources.to_vec();
    for &source in sources {
        distance[source as usize] = 0;
    }
    let farthest = max_length.min(UNREACHABLE - 1);
    let mut taken = 0;
    while taken < queue.len() {
        let router = queue[taken];
        taken += 1;
        if distance[router as usize] >= farthest {
            break;
        }
        let next = distance[router as usize] + 1;
        for &neighbour in graph.neighbours(router) {
            if distance[neighbour as usize] == UNREACHABLE {
                distance[neighbour as usize] = next;
                queue.push(neighbour);
            }
        }
    }
    distance
}

/// Sources per pass: one bit each in a few machine words, which the compiler turns into vector instructions.
const LANES: usize = 256;
type Lanes = [u64; LANES / 64];

/// How many pairs of routers lie how far apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistanceHistogram {
    /// `pairs[d]`: ordered pairs (source, target) at distance d; `pairs[0]` is 0, as a router is not its own target.
    pub pairs: Vec<u64>,
    /// Pairs without a path.
    pub unreachable: u64,
}

impl DistanceHistogram {
    /// Largest distance seen.
    pub fn diameter(&self) -> u32 {
        narrow::<u32>(self.pairs.len()) - 1
    }

    /// Mean distance of the pairs that have a path; `None` if there are no pairs.
    pub fn mean(&self) -> Option<f64> {
        let count: u64 = self.pairs.iter().sum();
        let total: u64 = (0..).zip(&self.pairs).map(|(distance, &pairs)| distance * pairs).sum();
        (count > 0).then(|| total as f64 / count as f64)
    }
}

impl RouterGraph {
    /// Distances in hops from every source to every router for which `is_target` holds, the source itself excepted.
    ///
    /// Bit-parallel breadth-first search: 256 sources advance together, at a cost of one pass over all links per hop.
    pub fn distance_histogram(&self, sources: &[u32], is_target: impl Fn(u32) -> bool) -> DistanceHistogram {
        let routers = self.routers() as usize;
        let targets: Vec<u32> = (0..self.routers()).filter(|&router| is_target(router)).collect();
        let mut pairs = vec![0u64];
        for batch in sources.chunks(LANES) {
            let mut seen = vec![Lanes::default(); routers];
            for (lane, &source) in batch.iter().enumerate() {
                seen[source as usize][lane / 64] |= 1 << (lane % 64);
            }
            let mut frontier = seen.clone();
            let mut next = vec![Lanes::default(); routers];
            for distance in 1.. {
                let mut advanced = false;
                for router in 0..routers {
                    let mut reached = Lanes::default();
                    for &other in self.neighbours(narrow::<u32>(router)) {
                        for (bits, from) in reached.iter_mut().zip(&frontier[other as usize]) {
                            *bits |= from;
                        }
                    }
                    for (bits, seen) in reached.iter_mut().zip(&mut seen[router]) {
                        *bits &= !*seen;
                        *seen |= *bits;
                        advanced |= *bits != 0;
                    }
                    next[router] = reached;
                }
                if !advanced {
                    break;
                }
                let ones = |lanes: &Lanes| lanes.iter().map(|bits| u64::from(bits.count_ones())).sum::<u64>();
                let found: u64 = targets.iter().map(|&target| ones(&next[target as usize])).sum();
                if found > 0 {
                    pairs.resize(pairs.len().max(distance + 1), 0);
                    pairs[distance] += found;
                }
                std::mem::swap(&mut frontier, &mut next);
            }
        }
        let own = sources.iter().filter(|&&source| is_target(source)).count() as u64;
        let wanted = sources.len() as u64 * targets.len() as u64 - own;
        DistanceHistogram { unreachable: wanted - pairs.iter().sum::<u64>(), pairs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Textbook breadth-first search from one source.
    fn distances(graph: &RouterGraph, source: u32) -> Vec<Option<usize>> {
        let mut distance = vec![None; graph.routers() as usize];
        distance[source as usize] = Some(0);
        let mut queue = std::collections::VecDeque::from([source]);
        while let Some(router) = queue.pop_front() {
            for &other in graph.neighbours(router) {
                if distance[other as usize].is_none() {
                    distance[other as usize] = distance[router as usize].map(|d| d + 1);
                    queue.push_back(other);
                }
            }
        }
        distance
    }

    #[test]
    fn what_is_farther_than_can_be_counted_is_out_of_reach() {
        let routers = 65_540;
        let line = RouterGraph::new(vec![0; routers as usize], (1..routers).map(|to| (to - 1, to)).collect());
        let found = distances_from(&line, &[0], UNREACHABLE);
        assert!(found[..65_535].iter().copied().eq(0..65_535));
        assert_eq!(found[65_535..], [UNREACHABLE; 5]);
    }

    proptest! {
        #[test]
        fn it_counts_as_a_textbook_search_does(
            routers in 2u32..300,
            links in prop::collection::vec((any::<u32>(), any::<u32>()), 1..600),
        ) {
            let edges = links.iter().map(|(a, b)| (a % routers, b % routers)).filter(|(a, b)| a != b).collect();
            let graph = RouterGraph::new(vec![0; routers as usize], edges);
            let sources: Vec<u32> = (0..routers).collect();
            let is_target = |router: u32| !router.is_multiple_of(3);
            let mut expected = DistanceHistogram { pairs: vec![0], unreachable: 0 };
            for &source in &sources {
                for (target, distance) in (0..).zip(distances(&graph, source)) {
                    match distance {
                        _ if target == source || !is_target(target) => {}
                        None => expected.unreachable += 1,
                        Some(distance) => {
                            expected.pairs.resize(expected.pairs.len().max(distance + 1), 0);
                            expected.pairs[distance] += 1;
                        }
                    }
                }
            }
            prop_assert_eq!(graph.distance_histogram(&sources, is_target), expected);
        }
    }
}
