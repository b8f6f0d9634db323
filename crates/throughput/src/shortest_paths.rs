//! Shortest paths under lengths that change from search to search.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netloom_paths::tables::{directed_edge, head};
use netloom_topology::RouterGraph;

/// Dijkstra's algorithm with reused memory: from both ends for a single target, else from the source alone.
///
/// On a network of small diameter nearly all routers are nearer than the target, so that a search from the source visits
/// them all; two searches that meet halfway visit little more than the neighbours of either end.
#[derive(Clone, Debug)]
pub(crate) struct ShortestPaths {
    forward: Side,
    backward: Side,
    /// Where the two searches met, if they did; for a search from the source alone, unused.
    meeting: Option<u32>,
    both_ways: bool,
}

/// One search: distance and next channel toward its origin per router, valid if `round` is current.
#[derive(Clone, Debug)]
struct Side {
    best: Vec<(f64, u32)>,
    round: Vec<u32>,
    current: u32,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Side {
    fn new(routers: usize) -> Self {
        Side {
            best: vec![(f64::INFINITY, 0); routers],
            round: vec![0; routers],
            current: 0,
            heap: BinaryHeap::new(),
        }
    }

    fn start(&mut self, origin: u32) {
        self.current += 1;
        self.heap.clear();
        self.reach(origin, 0.0, 0);
    }

    fn distance(&self, router: u32) -> Option<f64> {
        (self.round[router as usize] == self.current).then(|| self.best[router as usize].0)
    }

    /// Notes a way to a router if it is the shortest so far.
    fn reach(&mut self, router: u32, distance: f64, channel: u32) {
        if self.distance(router).is_none_or(|known| distance < known) {
            self.round[router as usize] = self.current;
            self.best[router as usize] = (distance, channel);
            // Non-negative floats order like their bit patterns.
            self.heap.push(Reverse((distance.to_bits(), router)));
        }
    }

    /// Distance of the nearest router not yet settled.
    fn nearest(&self) -> f64 {
        self.heap.peek().map_or(f64::INFINITY, |&Reverse((bits, _))| f64::from_bits(bits))
    }

    /// Settles the nearest router and returns it, unless it was settled already.
    fn settle(&mut self) -> Option<(u32, f64)> {
        let Reverse((bits, router)) = self.heap.pop()?;
        let distance = f64::from_bits(bits);
        (distance <= self.best[router as usize].0).then_some((router, distance))
    }
}

impl ShortestPaths {
    pub(crate) fn new(graph: &RouterGraph) -> Self {
        let side = Side::new(graph.routers() as usize);
        ShortestPaths { forward: side.clone(), backward: side, meeting: None, both_ways: false }
    }

    /// Searches from a router to the targets; `length` is per channel and not negative.
    pub(crate) fn run(&mut self, graph: &RouterGraph, source: u32, targets: &[u32], length: &[f64]) {
        self.both_ways = targets.len() == 1;
        self.forward.start(source);
        if self.both_ways {
            self.meet(graph, targets[0], length);
            return;
        }
        let mut missing: Vec<u32> = targets.to_vec();
        missing.sort_unstable();
        let mut left = missing.len();
        while left > 0 && !self.forward.heap.is_empty() {
            let Some((here, distance)) = self.forward.settle() else { continue };
            if missing.binary_search(&here).is_ok() {
                left -= 1;
            }
            for (&next, &edge) in graph.neighbours(here).iter().zip(graph.edge_ids(here)) {
                let channel = directed_edge(graph, edge, here);
                self.forward.reach(next, distance + length[channel as usize], channel);
            }
        }
    }

    /// Grows whichever search is nearer its origin until no shorter way can be found.
    fn meet(&mut self, graph: &RouterGraph, target: u32, length: &[f64]) {
        self.backward.start(target);
        self.meeting = None;
        let mut shortest = f64::INFINITY;
        loop {
            let (ahead, behind) = (self.forward.nearest(), self.backward.nearest());
            if ahead + behind >= shortest || ahead + behind == f64::INFINITY {
                return;
            }
            let forth = ahead <= behind;
            let (side, other) = match forth {
                true => (&mut self.forward, &self.backward),
                false => (&mut self.backward, &self.forward),
            };
            let Some((here, distance)) = side.settle() else { continue };
            for (&next, &edge) in graph.neighbours(here).iter().zip(graph.edge_ids(here)) {
                let away = directed_edge(graph, edge, here);
                let channel = if forth { away } else { away ^ 1 };
                let total = distance + length[channel as usize];
                side.reach(next, total, channel);
                if let Some(rest) = other.distance(next)
                    && total + rest < shortest
                {
                    shortest = total + rest;
                    self.meeting = Some(next);
                }
            }
        }
    }

    /// Distance of a target of the last search and the path to it as directed edges.
    pub(crate) fn path(&self, graph: &RouterGraph, target: u32) -> Option<(f64, Vec<u32>)> {
        let mut path = Vec::new();
        let middle = if self.both_ways { self.meeting? } else { target };
        let mut distance = self.forward.distance(middle)?;
        let mut here = middle;
        while self.forward.best[here as usize].0 > 0.0 {
            let channel = self.forward.best[here as usize].1;
            path.push(channel);
            here = head(graph, channel ^ 1);
        }
        path.reverse();
        if self.both_ways {
            distance += self.backward.distance(middle)?;
            here = middle;
            while self.backward.best[here as usize].0 > 0.0 {
                let channel = self.backward.best[here as usize].1;
                path.push(channel);
                here = head(graph, channel);
            }
        }
        Some((distance, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn both_searches_find_distances_of_repeated_relaxation() {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        for _ in 0..50 {
            let n = 12;
            let mut edges: Vec<(u32, u32)> = (1..n).map(|i| (rng.random_range(0..i), i)).collect();
            edges.extend((0..10).map(|_| (rng.random_range(0..n / 2), rng.random_range(n / 2..n))));
            let length: Vec<f64> = (0..2 * edges.len()).map(|_| rng.random_range(1..9).into()).collect();
            let graph = RouterGraph::new(vec![1; n as usize], edges.clone());
            let mut expected = vec![f64::INFINITY; n as usize];
            expected[0] = 0.0;
            for _ in 0..n {
                for (edge, &(a, b)) in edges.iter().enumerate() {
                    for (from, to, channel) in [(a, b, 2 * edge), (b, a, 2 * edge + 1)] {
                        expected[to as usize] =
                            expected[to as usize].min(expected[from as usize] + length[channel]);
                    }
                }
            }
            let mut search = ShortestPaths::new(&graph);
            for target in 1..n {
                for targets in [vec![target], vec![target, 1]] {
                    search.run(&graph, 0, &targets, &length);
                    let (distance, path) = search.path(&graph, target).unwrap();
                    assert_eq!(distance, expected[target as usize]);
                    assert_eq!(path.iter().map(|&c| length[c as usize]).sum::<f64>(), distance);
                    let end = path.iter().fold(0, |here, &c| {
                        assert_eq!(head(&graph, c ^ 1), here);
                        head(&graph, c)
                    });
                    assert_eq!(end, target);
                }
            }
        }
    }
}
