//! All minimal ports inside a layer, for schemes that spread over them ("ECMP within a layer").

use netloom_topology::RouterGraph;
use netloom_units::narrow;
use rayon::prelude::*;

use super::hops::{Diameter, Hops};
use crate::link_set::LinkSet;

/// Hop distances between all routers inside one layer: one byte per pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerDistances {
    routers: usize,
    hops: Vec<u8>,
}

/// No path, or one longer than a byte counts.
const FAR: u8 = u8::MAX;

impl LayerDistances {
    /// Measures a layer. Routers more than 254 hops apart count as unconnected.
    pub fn new(graph: &RouterGraph, links: &LinkSet) -> Self {
        LayerDistances::of(&Hops::measure(graph, links), graph)
    }

    /// The same, and how far routers with hosts are apart.
    pub(crate) fn with_diameter(graph: &RouterGraph, links: &LinkSet) -> (Self, Diameter) {
        let hops = Hops::measure(graph, links);
        (LayerDistances::of(&hops, graph), hops.reach().diameter)
    }

    /// The same of a layer that has been measured.
    pub(super) fn of(measured: &Hops, graph: &RouterGraph) -> Self {
        let routers = graph.routers() as usize;
        let mut hops = vec![FAR; routers * routers];
        hops.par_chunks_mut(routers.max(1)).enumerate().for_each(|(source, row)| {
            row[source] = 0;
            let mut at = Vec::new();
            for distance in 1..=measured.reach().longest.min(u32::from(FAR) - 1) {
                measured.at(narrow::<u32>(source), distance, &mut at);
                for (index, &word) in at.iter().enumerate() {
                    let mut word = word;
                    while word != 0 {
                        row[index * 64 + word.trailing_zeros() as usize] = narrow::<u8>(distance);
                        word &= word - 1;
                    }
                }
            }
        });
        LayerDistances { routers, hops }
    }

    /// Hops between two routers inside the layer, `None` if it does not connect them.
    pub fn hops(&self, from: u32, to: u32) -> Option<u8> {
        Some(self.hops[from as usize * self.routers + to as usize]).filter(|&hops| hops != FAR)
    }

    /// Says of routers whether they are at most this many hops from one.
    pub(crate) fn within(&self, from: u32, hops: u16) -> impl Fn(u32) -> bool {
        let row = &self.hops[from as usize * self.routers..][..self.routers];
        let most = narrow::<u8>(hops.min(u16::from(FAR) - 1));
        move |to| row[to as usize] <= most
    }

    /// The ports of `here` that begin a shortest path to `to` inside the layer, in ascending order.
    pub fn minimal_ports<'a>(
        &'a self,
        graph: &'a RouterGraph,
        links: &'a LinkSet,
        here: u32,
        to: u32,
    ) -> impl Iterator<Item = u16> + 'a {
        let closer = self.hops(here, to).and_then(|hops| hops.checked_sub(1));
        let row = graph.neighbours(here).iter().zip(graph.edge_ids(here)).zip(0u16..);
        row.filter(move |&((&neighbour, &edge), _)| {
            closer.is_some() && links.contains(edge) && self.hops(neighbour, to) == closer
        })
        .map(|(_, port)| port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::ForwardingTables;
    use crate::testing::{cycle, random};

    #[test]
    fn both_ways_around_an_even_ring() {
        let ring = cycle(6);
        let links = LinkSet::full(&ring);
        let distances = LayerDistances::new(&ring, &links);
        assert_eq!(distances.hops(0, 3), Some(3));
        assert_eq!(distances.minimal_ports(&ring, &links, 0, 3).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(distances.minimal_ports(&ring, &links, 0, 1).collect::<Vec<_>>(), [0]);
        assert_eq!(distances.minimal_ports(&ring, &links, 2, 2).count(), 0);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]
        #[test]
        fn table_entries_are_among_the_minimal_ports(seed in 0..1000u64) {
            let graph = random(40, 60, seed);
            let links = LinkSet::full(&graph);
            let distances = LayerDistances::new(&graph, &links);
            let tables = ForwardingTables::minimal(&graph, vec![links.clone()], seed);
            for (here, to) in (0..40).flat_map(|s| (0..40).map(move |t| (s, t))).filter(|(s, t)| s != t) {
                let port = tables.next_port(0, here, to).unwrap();
                proptest::prop_assert!(distances.minimal_ports(&graph, &links, here, to).any(|p| p == port));
            }
        }
    }
}
