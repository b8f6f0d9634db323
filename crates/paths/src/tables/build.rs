//! Building tables: minimal routing inside each layer, or whatever a function says.

use netloom_topology::RouterGraph;

use super::draws::Draws;
use super::{Entries, ForwardingTables, NO_PORT, file};
use crate::link_set::LinkSet;

impl ForwardingTables {
    /// Minimal routing inside each layer, ties broken by chance.
    ///
    /// Every entry is drawn uniformly from the ports that begin a shortest path inside the layer, independently for each
    /// layer, router and destination (FatPaths sec. V-C; its Listing 3 keeps the first port found instead). Paths
    /// are loop-free because the distance falls by one at every hop.
    ///
    /// Distances are measured at once: routers² × degree / 64 steps per layer and hop. What takes long, a draw per tied port, waits until somebody
    /// asks for a router's ways.
    pub fn minimal(graph: &RouterGraph, layers: Vec<LinkSet>, seed: u64) -> Self {
        ForwardingTables {
            routers: graph.routers(),
            entries: Entries::new(graph, layers.len()),
            draws: Some(Box::new(Draws::new(graph, &layers, seed))),
            links: layers,
            graph: file::fingerprint(graph),
        }
    }

    /// Tables whose entries toward each destination are given by a function.
    ///
    /// `toward(layer, destination)` returns a port per router, `None` where there is no path. It is called for the
    /// layers and destinations in ascending order.
    pub fn from_trees(
        graph: &RouterGraph,
        links: Vec<LinkSet>,
        mut toward: impl FnMut(u32, u32) -> Vec<Option<u16>>,
    ) -> Self {
        let entries = Entries::new(graph, links.len());
        let routers = graph.routers() as usize;
        for (layer, destination) in (0..links.len()).flat_map(|layer| (0..routers).map(move |to| (layer, to)))
        {
            let ports = toward(layer as u32, destination as u32);
            for (here, port) in ports.into_iter().enumerate() {
                entries.set((layer * routers + here) * routers + destination, port.unwrap_or(NO_PORT));
            }
        }
        ForwardingTables {
            routers: graph.routers(),
            links,
            entries,
            draws: None,
            graph: file::fingerprint(graph),
        }
    }
}

/// Whether all ports fit one byte beside the mark of an unconnected pair.
pub(super) fn is_narrow(graph: &RouterGraph) -> bool {
    (0..graph.routers()).all(|router| graph.neighbours(router).len() <= usize::from(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::{UNREACHABLE, distances_from};
    use crate::testing::{complete, cycle, graph, random};

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
        #[test]
        fn layer_paths_are_as_long_as_the_distance_inside_the_layer(seed in 0..1000u64) {
            let graph = random(70, 80, seed);
            let mut some = LinkSet::empty(&graph);
            (0..graph.edges().len() as u32).filter(|e| e % 4 != 0).for_each(|e| some.insert(e));
            let inside = RouterGraph::new(
                vec![1; 70], some.iter().map(|e| graph.edges()[e as usize]).collect());
            let tables = ForwardingTables::minimal(&graph, vec![LinkSet::full(&graph), some], seed);
            for destination in 0..70 {
                let full = distances_from(&graph, &[destination], UNREACHABLE);
                let sparse = distances_from(&inside, &[destination], UNREACHABLE);
                for source in (0..70).filter(|&s| s != destination) {
                    let length = |layer| tables.path(&graph, layer, source, destination).map(|p| p.len());
                    proptest::prop_assert_eq!(length(0), Some(usize::from(full[source as usize])));
                    let expected = Some(usize::from(sparse[source as usize])).filter(|&d| d < 70);
                    proptest::prop_assert_eq!(length(1), expected);
                }
            }
        }
    }

    #[test]
    fn ties_are_broken_evenly_and_independently() {
        // Sixteen leaves and sixteen spines: every pair of leaves has sixteen two-hop paths.
        let spines = 16..32;
        let edges = (0..16).flat_map(|leaf| spines.clone().map(move |spine| (leaf, spine))).collect();
        let graph = graph(32, edges);
        let tables = ForwardingTables::minimal(&graph, vec![LinkSet::full(&graph); 8], 3);
        let mut uses = [0u32; 16];
        for (layer, from, to) in
            (0..8).flat_map(|l| (0..16).flat_map(move |s| (0..16).map(move |t| (l, s, t))))
        {
            if let Some(port) = tables.next_port(layer, from, to) {
                uses[usize::from(port)] += 1;
            }
        }
        // 1920 draws over 16 ports: 120 each, standard deviation 10.6.
        assert_eq!(uses.iter().sum::<u32>(), 1920);
        assert!(uses.iter().all(|u| (75..165).contains(u)), "{uses:?}");
    }

    #[test]
    fn wide_tables_where_a_router_has_more_than_255_ports() {
        let narrow = complete(256);
        assert_eq!(ForwardingTables::minimal(&narrow, vec![LinkSet::full(&narrow)], 1).bytes(), 65536);
        let wide = complete(257);
        let tables = ForwardingTables::minimal(&wide, vec![LinkSet::full(&wide)], 1);
        assert_eq!(tables.bytes(), 2 * 257 * 257);
        assert_eq!(tables.next_port(0, 0, 256), Some(255));
    }

    #[test]
    fn trees_are_taken_as_given() {
        // Clockwise only: the port to the next router is the higher one, except across the seam.
        let ring = cycle(5);
        let clockwise = |router: u32| {
            let next = (router + 1) % 5;
            ring.neighbours(router).iter().position(|&n| n == next).map(|p| p as u16)
        };
        let tables = ForwardingTables::from_trees(&ring, vec![LinkSet::full(&ring)], |_, to| {
            (0..5).map(|here| clockwise(here).filter(|_| here != to)).collect()
        });
        assert_eq!(tables.path(&ring, 0, 3, 2).unwrap().len(), 4);
        assert_eq!(tables.next_port(0, 2, 2), None);
    }
}
