//! Building tables: minimal routing inside each layer, or whatever a function says.

use netloom_topology::RouterGraph;
use netloom_units::random::Analysis;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::{Entries, Entry, ForwardingTables, file};
use crate::link_set::LinkSet;

impl ForwardingTables {
    /// Minimal routing inside each layer, ties broken by chance.
    ///
    /// Every entry is drawn uniformly from the ports that begin a shortest path inside the layer, independently for each
    /// layer, router and destination (FatPaths sec. V-C; its Listing 3 keeps the first port found instead). Paths
    /// are loop-free because the distance falls by one at every hop.
    ///
    /// The cost grows with routers² × degree / 64 per layer and hop, plus one step per tied port.
    pub fn minimal(graph: &RouterGraph, layers: Vec<LinkSet>, seed: u64) -> Self {
        fn fill<E: Entry>(graph: &RouterGraph, layers: &[LinkSet], seed: u64) -> Vec<E> {
            let routers = graph.routers() as usize;
            let mut entries = vec![E::NONE; layers.len() * routers * routers];
            for (layer, (links, table)) in
                layers.iter().zip(entries.chunks_mut((routers * routers).max(1))).enumerate()
            {
                minimal_layer(graph, links, table, Analysis::TiesOfLayer(layer).stream(seed).next_u64());
            }
            entries
        }
        let entries = if is_narrow(graph) {
            Entries::Narrow(fill(graph, &layers, seed))
        } else {
            Entries::Wide(fill(graph, &layers, seed))
        };
        ForwardingTables { routers: graph.routers(), links: layers, entries, graph: file::fingerprint(graph) }
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
        fn fill<E: Entry>(
            routers: usize,
            layers: usize,
            toward: &mut impl FnMut(u32, u32) -> Vec<Option<u16>>,
        ) -> Vec<E> {
            let mut entries = vec![E::NONE; layers * routers * routers];
            for (layer, table) in entries.chunks_mut((routers * routers).max(1)).enumerate() {
                for destination in 0..routers {
                    let ports = toward(layer as u32, destination as u32);
                    for (here, port) in ports.into_iter().enumerate() {
                        table[here * routers + destination] = port.map_or(E::NONE, E::from_port);
                    }
                }
            }
            entries
        }
        let routers = graph.routers() as usize;
        let entries = if is_narrow(graph) {
            Entries::Narrow(fill(routers, links.len(), &mut toward))
        } else {
            Entries::Wide(fill(routers, links.len(), &mut toward))
        };
        ForwardingTables { routers: graph.routers(), links, entries, graph: file::fingerprint(graph) }
    }
}

/// Whether all ports fit one byte beside the mark of an unconnected pair.
pub(super) fn is_narrow(graph: &RouterGraph) -> bool {
    (0..graph.routers()).all(|router| graph.neighbours(router).len() <= usize::from(u8::MAX))
}

/// All-pairs breadth-first search in which one word carries 64 destinations.
///
/// After step l, `reached[v]` is the set of routers at most l hops from v. A router newly reached at step l + 1 has
/// as its candidates exactly the neighbours that had reached it by step l.
fn minimal_layer<E: Entry>(graph: &RouterGraph, links: &LinkSet, table: &mut [E], seed: u64) {
    let routers = graph.routers() as usize;
    let words = routers.div_ceil(64);
    let kept: Vec<Vec<(u32, u16)>> = (0..graph.routers())
        .map(|router| {
            let row = graph.neighbours(router).iter().zip(graph.edge_ids(router)).zip(0u16..);
            row.filter(|&((_, &edge), _)| links.contains(edge)).map(|((&n, _), port)| (n, port)).collect()
        })
        .collect();
    let mut reached = vec![0u64; routers * words];
    for router in 0..routers {
        reached[router * words + router / 64] |= 1 << (router % 64);
    }
    let mut next = reached.clone();
    for step in 0u64.. {
        let before = &reached;
        let rows = next.par_chunks_mut(words.max(1)).zip(table.par_chunks_mut(routers.max(1)));
        let grew = rows.enumerate().map(|(router, (row, ports))| {
            for &(neighbour, _) in &kept[router] {
                let other = &before[neighbour as usize * words..][..words];
                row.iter_mut().zip(other).for_each(|(word, &more)| *word |= more);
            }
            let old = &before[router * words..][..words];
            let new: Vec<u64> = row.iter().zip(old).map(|(&now, &old)| now & !old).collect();
            if new.iter().all(|&word| word == 0) {
                return false;
            }
            let mut rng = Pcg64Mcg::seed_from_u64(seed ^ ((router as u64) << 8 | step & 0xff));
            let mut candidates = vec![0u16; routers];
            for &(neighbour, port) in &kept[router] {
                let other = &before[neighbour as usize * words..][..words];
                for (index, (&new, &other)) in new.iter().zip(other).enumerate() {
                    let mut both = new & other;
                    while both != 0 {
                        let destination = index * 64 + both.trailing_zeros() as usize;
                        both &= both - 1;
                        // Reservoir sampling: the c-th candidate replaces the choice with probability 1/c.
                        candidates[destination] += 1;
                        let count = u64::from(candidates[destination]);
                        if count == 1 || (u64::from(rng.next_u32()) * count) >> 32 == 0 {
                            ports[destination] = E::from_port(port);
                        }
                    }
                }
            }
            true
        });
        // `any` would stop early and leave rows undone.
        if !grew.reduce(|| false, |a, b| a | b) {
            return;
        }
        reached.copy_from_slice(&next);
    }
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
    fn tables_do_not_depend_on_the_number_of_threads() {
        let graph = random(100, 200, 5);
        let build = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| ForwardingTables::minimal(&graph, vec![LinkSet::full(&graph)], 9))
        };
        assert_eq!(build(1), build(3));
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
