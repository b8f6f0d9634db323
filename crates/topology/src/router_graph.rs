//! The switches alone, as path analysis sees them.

use crate::network::{LinkId, Network};
use netloom_units::narrow;

/// The graph of the switches of a network ("routers" in path analysis), in compressed sparse rows.
///
/// Router `r` is node `hosts + r` of the network. Edges are the switch-to-switch links in the order of creation;
/// parallel links are separate edges, so a neighbour may occur several times in a row.
///
/// ```
/// use std::path::Path;
/// use netloom_topology::{BuildContext, Crossbar, LeafSpine, RouterGraph, Topology};
///
/// let spec = Topology::LeafSpine(LeafSpine { leaves: 4, spines: 2, hosts_per_leaf: 8, ..Default::default() });
/// let network = spec.build(&BuildContext { seed: 1, base_dir: Path::new(".") }).unwrap();
/// let graph: RouterGraph = network.router_graph();
/// assert_eq!((graph.routers(), graph.edges().len()), (6, 8));
/// assert_eq!(graph.neighbours(0), [4, 5]);
/// assert_eq!(graph.hosts(0), 8);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterGraph {
    /// `targets[start[r]..start[r + 1]]` are the neighbours of router `r`.
    start: Vec<u32>,
    targets: Vec<u32>,
    /// Parallel to `targets`: which edge leads there.
    target_edges: Vec<u32>,
    edges: Vec<(u32, u32)>,
    links: Vec<LinkId>,
    hosts: Vec<u32>,
}

impl RouterGraph {
    /// Builds the graph from edges between routers `0..hosts.len()`, `hosts[r]` being the hosts at router `r`.
    ///
    /// # Panics
    /// If an edge names a router that does not exist.
    pub fn new(hosts: Vec<u32>, edges: Vec<(u32, u32)>) -> Self {
        let links = (0..narrow::<LinkId>(edges.len())).collect();
        RouterGraph::with_links(hosts, edges, links)
    }

    fn with_links(hosts: Vec<u32>, edges: Vec<(u32, u32)>, links: Vec<LinkId>) -> Self {
        let mut start = vec![0u32; hosts.len() + 1];
        for &(a, b) in &edges {
            start[a as usize + 1] += 1;
            start[b as usize + 1] += 1;
        }
        for router in 0..hosts.len() {
            start[router + 1] += start[router];
        }
        let mut next = start.clone();
        let mut rows = vec![(0u32, 0u32); 2 * edges.len()];
        for (edge, &(a, b)) in edges.iter().enumerate() {
            for (from, to) in [(a, b), (b, a)] {
                rows[next[from as usize] as usize] = (to, narrow::<u32>(edge));
                next[from as usize] += 1;
            }
        }
        for router in 0..hosts.len() {
            rows[start[router] as usize..start[router + 1] as usize].sort_unstable();
        }
        let (targets, target_edges) = rows.into_iter().unzip();
        RouterGraph { start, targets, target_edges, edges, links, hosts }
    }

    /// Number of routers.
    pub fn routers(&self) -> u32 {
        narrow::<u32>(self.hosts.len())
    }

    /// Neighbours of a router in ascending order, once per parallel link.
    pub fn neighbours(&self, router: u32) -> &[u32] {
        &self.targets[self.row(router)]
    }

    /// The edges to [`RouterGraph::neighbours`], in the same order.
    pub fn edge_ids(&self, router: u32) -> &[u32] {
        &self.target_edges[self.row(router)]
    }

    /// Both ends of every edge, indexed by edge id; the order of the ends is that of the network's link.
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// The network's link behind an edge.
    pub fn link(&self, edge: u32) -> LinkId {
        self.links[edge as usize]
    }

    /// Number of hosts at a router.
    pub fn hosts(&self, router: u32) -> u32 {
        self.hosts[router as usize]
    }

    fn row(&self, router: u32) -> std::ops::Range<usize> {
        self.start[router as usize] as usize..self.start[router as usize + 1] as usize
    }
}

impl Network {
    /// The switches and the links between them.
    pub fn router_graph(&self) -> RouterGraph {
        let mut hosts = vec![0; self.switches() as usize];
        let mut edges = Vec::new();
        let mut links = Vec::new();
        for (index, link) in self.links().iter().enumerate() {
            match (self.is_host(link.a), self.is_host(link.b)) {
                (false, false) => {
                    edges.push((link.a - self.hosts(), link.b - self.hosts()));
                    links.push(narrow::<LinkId>(index));
                }
                (true, false) => hosts[(link.b - self.hosts()) as usize] += 1,
                (false, true) => hosts[(link.a - self.hosts()) as usize] += 1,
                // Two hosts joined by a cable have no router between them.
                (true, true) => {}
            }
        }
        RouterGraph::with_links(hosts, edges, links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_links_are_separate_edges() {
        let graph = RouterGraph::new(vec![1, 0, 2], vec![(2, 0), (0, 1), (0, 2)]);
        assert_eq!(graph.neighbours(0), [1, 2, 2]);
        assert_eq!(graph.edge_ids(0), [1, 0, 2]);
        assert_eq!(graph.neighbours(1), [0]);
        assert_eq!(graph.hosts(2), 2);
    }
}
