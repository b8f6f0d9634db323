//! Counting walks by matrix products (FatPaths App. B).

use netloom_topology::RouterGraph;
use netloom_units::narrow;
use rayon::prelude::*;

/// Numbers of walks between all pairs of routers, as powers of the adjacency matrix.
///
/// Entry (s, t) of the l-th power is the number of walks of exactly l hops, parallel links counted apart. Walks may
/// visit a router twice, so from length 3 on the number exceeds that of simple paths. Memory: 8 bytes per pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkCounts {
    routers: usize,
    length: u32,
    counts: Vec<u64>,
}

impl WalkCounts {
    /// Walks of length 0: one from every router to itself.
    pub fn identity(graph: &RouterGraph) -> Self {
        let routers = graph.routers() as usize;
        let mut counts = vec![0; routers * routers];
        for router in 0..routers {
            counts[router * routers + router] = 1;
        }
        WalkCounts { routers, length: 0, counts }
    }

    /// Walks of one hop more: the product with the adjacency matrix. Counts stop at `u64::MAX`.
    pub fn extended(&self, graph: &RouterGraph) -> Self {
        let mut counts = vec![0u64; self.counts.len()];
        counts.par_chunks_mut(self.routers.max(1)).enumerate().for_each(|(source, row)| {
            let before = &self.counts[source * self.routers..][..self.routers];
            for (target, count) in row.iter_mut().enumerate() {
                let arriving =
                    graph.neighbours(narrow::<u32>(target)).iter().map(|&via| before[via as usize]);
                *count = arriving.fold(0, u64::saturating_add);
            }
        });
        WalkCounts { routers: self.routers, length: self.length + 1, counts }
    }

    /// Hops of the walks counted.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Number of walks from one router to another.
    pub fn get(&self, from: u32, to: u32) -> u64 {
        self.counts[from as usize * self.routers + to as usize]
    }
}

/// First hops of the walks of exactly `length` hops from `source` to every router, as sets of neighbour positions:
/// the same product with sets instead of numbers and union instead of sum.
///
/// The right operand is always the adjacency matrix; the product of two sets of first hops has no meaning.
pub fn first_hops(graph: &RouterGraph, source: u32, length: u32) -> Vec<Vec<u32>> {
    let mut sets: Vec<Vec<u32>> = vec![Vec::new(); graph.routers() as usize];
    if length == 0 {
        return sets;
    }
    for (position, &neighbour) in graph.neighbours(source).iter().enumerate() {
        sets[neighbour as usize].push(narrow::<u32>(position));
    }
    for _ in 1..length {
        let next = (0..graph.routers()).map(|target| {
            let mut union: Vec<u32> =
                graph.neighbours(target).iter().flat_map(|&via| sets[via as usize].iter().copied()).collect();
            union.sort_unstable();
            union.dedup();
            union
        });
        sets = next.collect();
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::minimal_paths_from;
    use crate::testing::{complete, random};

    #[test]
    fn two_hop_walks_of_a_clique() {
        let graph = complete(6);
        let two = WalkCounts::identity(&graph).extended(&graph).extended(&graph);
        assert_eq!((two.length(), two.get(0, 3), two.get(2, 2)), (2, 4, 5));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn the_shortest_walks_are_the_minimal_paths(seed in 0..1000u64) {
            let graph = random(15, 15, seed);
            let mut walks = WalkCounts::identity(&graph);
            for length in 1..5u32 {
                walks = walks.extended(&graph);
                for source in 0..15 {
                    let (distance, paths) = minimal_paths_from(&graph, source);
                    let hops = first_hops(&graph, source, length);
                    for target in (0..15).filter(|&t| u32::from(distance[t as usize]) == length) {
                        proptest::prop_assert_eq!(walks.get(source, target) as f64, paths[target as usize]);
                        let towards = minimal_paths_from(&graph, target).0;
                        let minimal: Vec<u32> = graph.neighbours(source).iter().zip(0..)
                            .filter(|&(&n, _)| u32::from(towards[n as usize]) == length - 1)
                            .map(|(_, position)| position).collect();
                        proptest::prop_assert_eq!(&hops[target as usize], &minimal);
                    }
                }
            }
        }
    }
}
