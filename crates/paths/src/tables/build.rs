//! Building tables: minimal routing inside each layer, or trees.

use netloom_topology::RouterGraph;

use super::draws::Draws;
use super::trees::Trees;
use super::{Entries, ForwardingTables, Source, Strides, file};
use crate::link_set::LinkSet;

impl ForwardingTables {
    /// Minimal routing inside each layer, ties broken by chance.
    ///
    /// Every entry is drawn uniformly from the ports that begin a shortest path inside the layer, independently for each
    /// layer, router and destination (FatPaths sec. V-C; its Listing 3 keeps the first port found instead). Paths
    /// are loop-free because the distance falls by one at every hop.
    ///
    /// Nothing is done at once. A layer's distances are measured, routers² × degree / 64 steps per hop, when a way in it is first asked for; what takes longest, a draw
    /// per tied port, is done when a router's ways are asked for.
    pub fn minimal(graph: &RouterGraph, layers: Vec<LinkSet>, seed: u64) -> Self {
        ForwardingTables {
            routers: graph.routers(),
            entries: Entries::new(graph, layers.len()),
            strides: Strides::by_router(graph.routers()),
            source: Source::Draws(Box::new(Draws::new(graph, layers.len(), seed))),
            links: layers,
            graph: file::fingerprint(graph),
        }
    }

    /// Tables of a tree per layer and destination.
    pub(crate) fn from_trees(graph: &RouterGraph, links: Vec<LinkSet>, trees: Trees) -> Self {
        ForwardingTables {
            routers: graph.routers(),
            entries: Entries::new(graph, links.len()),
            strides: Strides::by_destination(graph.routers()),
            source: Source::Trees(Box::new(trees)),
            links,
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
    use std::sync::Arc;

    use super::*;
    use crate::distance::{UNREACHABLE, distances_from};
    use crate::tables::{NO_PORT, Paths};
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
            ring.neighbours(router).iter().position(|&n| n == next).unwrap() as u16
        };
        let ports: Vec<u16> = (0..5).map(clockwise).collect();
        let tree =
            move |to: usize| (0..5).map(|here| if here == to { NO_PORT } else { ports[here] }).collect();
        let trees = Trees::alone(5, Paths::minimal(Arc::new(ring.clone())), tree);
        let tables = ForwardingTables::from_trees(&ring, vec![LinkSet::full(&ring)], trees);
        assert_eq!(tables.path(&ring, 0, 3, 2).unwrap().len(), 4);
        assert_eq!(tables.next_port(0, 2, 2), None);
    }
}
