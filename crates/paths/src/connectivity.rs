//! All-pairs edge connectivity without a length bound (Gusfield's equivalent flow tree).

use netloom_topology::RouterGraph;

use crate::flow::FlowNetwork;

/// A tree over the routers in which the smallest value on the path between two routers is their edge
/// connectivity: the number of edge-disjoint paths of any length (FatPaths App. B; D. Gusfield, "Very simple methods
/// for all pairs network flow analysis", 1990).
///
/// It takes one maximum flow per router on the original graph. It says nothing about bounded path lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowTree {
    /// Per router except router 0: its parent and the connectivity of the two.
    parent: Vec<(u32, u32)>,
    /// Hops to router 0 in the tree.
    depth: Vec<u32>,
}

impl FlowTree {
    /// Computes the tree.
    pub fn new(graph: &RouterGraph) -> Self {
        let routers = graph.routers();
        let mut network = FlowNetwork::new(routers as usize);
        for &(a, b) in graph.edges() {
            network.add(a, b, 1, 1);
        }
        let mut parent = vec![(0, 0); routers as usize];
        for router in 1..routers {
            network.reset();
            let (towards, _) = parent[router as usize];
            parent[router as usize].1 = network.max_flow(router, towards);
            for later in router + 1..routers {
                if parent[later as usize].0 == towards && network.on_source_side(later) {
                    parent[later as usize].0 = router;
                }
            }
        }
        let mut depth = vec![0; routers as usize];
        // A parent always has a smaller number than its child.
        for router in 1..routers as usize {
            depth[router] = depth[parent[router].0 as usize] + 1;
        }
        FlowTree { parent, depth }
    }

    /// Number of edge-disjoint paths between two different routers.
    pub fn connectivity(&self, mut a: u32, mut b: u32) -> u32 {
        let mut smallest = u32::MAX;
        while a != b {
            if self.depth[a as usize] < self.depth[b as usize] {
                std::mem::swap(&mut a, &mut b);
            }
            let (up, value) = self.parent[a as usize];
            smallest = smallest.min(value);
            a = up;
        }
        smallest
    }

    /// The smallest connectivity of any two routers: the size of the global minimum cut.
    pub fn smallest(&self) -> Option<u32> {
        self.parent.iter().skip(1).map(|&(_, value)| value).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{complete, cycle, petersen, random};

    #[test]
    fn regular_known_graphs() {
        assert_eq!(FlowTree::new(&cycle(9)).connectivity(2, 7), 2);
        assert_eq!(FlowTree::new(&complete(7)).smallest(), Some(6));
        assert_eq!(FlowTree::new(&petersen()).smallest(), Some(3));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn the_tree_agrees_with_one_flow_per_pair(seed in 0..1000u64) {
            let graph = random(14, 16, seed);
            let tree = FlowTree::new(&graph);
            let mut network = FlowNetwork::new(14);
            for &(a, b) in graph.edges() {
                network.add(a, b, 1, 1);
            }
            for a in 0..14 {
                for b in 0..a {
                    network.reset();
                    proptest::prop_assert_eq!(tree.connectivity(a, b), network.max_flow(a, b));
                }
            }
        }
    }
}
