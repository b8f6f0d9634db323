//! Disjoint paths counted the way FatPaths counts them: greedily.

use netloom_topology::RouterGraph;

use crate::distance::{UNREACHABLE, distances_from};

/// Counts edge-disjoint paths of bounded length by taking shortest ones until none is left.
///
/// A breadth-first search in ascending neighbour order finds a shortest path of at most `max_length` hops, its
/// edges are deleted, and so on (FatPaths sec. IV-B, without residual edges). The count is a lower bound of the
/// exact length-bounded cut; the paper's Table IV is reproduced by this procedure.
///
/// The scratch memory is reused from pair to pair: keep one value per thread.
#[derive(Clone, Debug)]
pub struct GreedyDisjointPaths<'g> {
    graph: &'g RouterGraph,
    /// `removed[e] == sample` and `seen[r] == search` mark without clearing.
    removed: Vec<u32>,
    sample: u32,
    seen: Vec<u32>,
    search: u32,
    /// The router and the edge by which a router was discovered.
    parent: Vec<(u32, u32)>,
    depth: Vec<u16>,
    queue: Vec<u32>,
}

impl<'g> GreedyDisjointPaths<'g> {
    /// Prepares the search on a graph.
    pub fn new(graph: &'g RouterGraph) -> Self {
        let routers = graph.routers() as usize;
        GreedyDisjointPaths {
            graph,
            removed: vec![0; graph.edges().len()],
            sample: 0,
            seen: vec![0; routers],
            search: 0,
            parent: vec![(0, 0); routers],
            depth: vec![0; routers],
            queue: Vec::new(),
        }
    }

    /// c_l(A, B) as a greedy count: paths of at most `max_length` hops from a router of `from` to one of `to`.
    ///
    /// The two sets must be disjoint.
    pub fn count(&mut self, from: &[u32], to: &[u32], max_length: u16) -> u32 {
        let to_target = distances_from(self.graph, to, max_length);
        self.sample += 1;
        let mut paths = 0;
        while let Some(end) = self.shortest(from, &to_target, max_length) {
            let mut router = end;
            while self.depth[router as usize] > 0 {
                let (parent, edge) = self.parent[router as usize];
                self.removed[edge as usize] = self.sample;
                router = parent;
            }
            paths += 1;
        }
        paths
    }

    /// One breadth-first search over the remaining edges; the first router of the target set that it discovers.
    ///
    /// Routers too far from the target to lie on a path of bounded length, even with every edge present, are left
    /// out. Neither they nor anything discovered only through them can lie on the path found, so the path is the one
    /// that the full search finds.
    fn shortest(&mut self, from: &[u32], to_target: &[u16], max_length: u16) -> Option<u32> {
        self.search += 1;
        self.queue.clear();
        for &source in from {
            self.seen[source as usize] = self.search;
            self.depth[source as usize] = 0;
            self.queue.push(source);
        }
        let mut taken = 0;
        while taken < self.queue.len() {
            let router = self.queue[taken];
            taken += 1;
            if self.depth[router as usize] >= max_length {
                return None;
            }
            let depth = self.depth[router as usize] + 1;
            let edges = self.graph.edge_ids(router);
            for (&neighbour, &edge) in self.graph.neighbours(router).iter().zip(edges) {
                let remaining = to_target[neighbour as usize];
                if self.seen[neighbour as usize] == self.search
                    || remaining == UNREACHABLE
                    || remaining > max_length - depth
                    || self.removed[edge as usize] == self.sample
                {
                    continue;
                }
                self.seen[neighbour as usize] = self.search;
                self.depth[neighbour as usize] = depth;
                self.parent[neighbour as usize] = (router, edge);
                if remaining == 0 {
                    return Some(neighbour);
                }
                self.queue.push(neighbour);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{complete, cycle, graph, petersen};

    #[test]
    fn a_clique_has_as_many_two_hop_paths_as_its_degree() {
        let graph = complete(8);
        let mut paths = GreedyDisjointPaths::new(&graph);
        assert_eq!(paths.count(&[0], &[5], 1), 1);
        assert_eq!(paths.count(&[0], &[5], 2), 7);
    }

    #[test]
    fn length_bounds_count() {
        let graph = cycle(7);
        let mut paths = GreedyDisjointPaths::new(&graph);
        assert_eq!(paths.count(&[0], &[3], 2), 0);
        assert_eq!(paths.count(&[0], &[3], 3), 1);
        assert_eq!(paths.count(&[0], &[3], 4), 2);
    }

    #[test]
    fn parallel_links_are_disjoint_paths() {
        let graph = graph(3, vec![(0, 1), (0, 1), (1, 2), (1, 2), (1, 2)]);
        assert_eq!(GreedyDisjointPaths::new(&graph).count(&[0], &[2], 2), 2);
    }

    /// The same procedure without any pruning.
    fn textbook(graph: &RouterGraph, from: &[u32], to: &[u32], max_length: u16) -> u32 {
        let mut removed = vec![false; graph.edges().len()];
        let mut paths = 0;
        'next_path: loop {
            let mut found = vec![None; graph.routers() as usize];
            let mut queue: Vec<(u32, u16)> = from.iter().map(|&r| (r, 0)).collect();
            let mut taken = 0;
            while taken < queue.len() {
                let (router, depth) = queue[taken];
                taken += 1;
                if to.contains(&router) {
                    let mut back = router;
                    while let Some((parent, edge)) = found[back as usize] {
                        removed[edge as usize] = true;
                        back = parent;
                    }
                    paths += 1;
                    continue 'next_path;
                }
                if depth == max_length {
                    continue;
                }
                for (&neighbour, &edge) in graph.neighbours(router).iter().zip(graph.edge_ids(router)) {
                    let new = found[neighbour as usize].is_none() && !from.contains(&neighbour);
                    if new && !removed[edge as usize] {
                        found[neighbour as usize] = Some((router, edge));
                        queue.push((neighbour, depth + 1));
                    }
                }
            }
            return paths;
        }
    }

    proptest::proptest! {
        #[test]
        fn pruning_changes_no_count(seed in 0..200u64, max_length in 1..5u16) {
            let graph = crate::testing::random(12, 20, seed);
            let mut paths = GreedyDisjointPaths::new(&graph);
            for (from, to) in [(vec![0], vec![1]), (vec![2, 3], vec![4]), (vec![5, 6], vec![7, 8])] {
                proptest::prop_assert_eq!(
                    paths.count(&from, &to, max_length),
                    textbook(&graph, &from, &to, max_length)
                );
            }
        }
    }

    #[test]
    fn the_petersen_graph_has_three_paths_of_length_four_between_adjacent_routers() {
        let graph = petersen();
        assert_eq!(GreedyDisjointPaths::new(&graph).count(&[0], &[1], 4), 3);
        assert_eq!(GreedyDisjointPaths::new(&graph).count(&[0], &[1], 3), 1);
    }
}
