//! A subset of the links of a network.

use netloom_topology::RouterGraph;
use netloom_units::narrow;

/// A set of edges of a router graph: the links that a layer may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSet {
    words: Vec<u64>,
    edges: usize,
}

impl LinkSet {
    /// No link of a graph.
    pub fn empty(graph: &RouterGraph) -> Self {
        let edges = graph.edges().len();
        LinkSet { words: vec![0; edges.div_ceil(64)], edges }
    }

    /// All links of a graph.
    pub fn full(graph: &RouterGraph) -> Self {
        let mut set = LinkSet::empty(graph);
        (0..narrow::<u32>(graph.edges().len())).for_each(|edge| set.insert(edge));
        set
    }

    pub(crate) fn from_words(words: Vec<u64>, edges: usize) -> Self {
        LinkSet { words, edges }
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of links of the whole graph.
    pub fn universe(&self) -> usize {
        self.edges
    }

    /// Number of links in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set has no link.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Whether the edge is in the set.
    #[inline]
    pub fn contains(&self, edge: u32) -> bool {
        self.words[edge as usize / 64] >> (edge % 64) & 1 == 1
    }

    /// Adds an edge.
    pub fn insert(&mut self, edge: u32) {
        self.words[edge as usize / 64] |= 1 << (edge % 64);
    }

    /// Takes an edge out.
    pub fn remove(&mut self, edge: u32) {
        self.words[edge as usize / 64] &= !(1 << (edge % 64));
    }

    /// Edges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..narrow::<u32>(self.edges)).filter(|&edge| self.contains(edge))
    }

    /// Whether the links of the set join all routers.
    pub fn connects(&self, graph: &RouterGraph) -> bool {
        let mut seen = vec![false; graph.routers() as usize];
        let mut stack: Vec<u32> = (0..graph.routers().min(1)).collect();
        let mut reached = 0;
        while let Some(router) = stack.pop() {
            if std::mem::replace(&mut seen[router as usize], true) {
                continue;
            }
            reached += 1;
            for (&neighbour, &edge) in graph.neighbours(router).iter().zip(graph.edge_ids(router)) {
                if self.contains(edge) && !seen[neighbour as usize] {
                    stack.push(neighbour);
                }
            }
        }
        reached == graph.routers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cycle;

    #[test]
    fn a_ring_without_two_links_falls_apart() {
        let graph = cycle(70);
        let mut links = LinkSet::empty(&graph);
        assert!(links.is_empty());
        (0..69).for_each(|edge| links.insert(edge));
        assert_eq!((links.len(), links.universe()), (69, 70));
        assert!(links.connects(&graph) && !links.contains(69));
        links.remove(66);
        assert!(!links.connects(&graph));
        assert_eq!(links.iter().count(), 68);
        assert!(LinkSet::full(&graph).connects(&graph));
    }
}
