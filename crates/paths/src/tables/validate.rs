//! Checking tables: every entry that exists leads to its destination, inside its layer, without a loop.

use netloom_topology::RouterGraph;
use netloom_units::narrow;
use rayon::prelude::*;

use super::ForwardingTables;

/// What is wrong with a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The table is for another graph.
    #[error("the tables are for {tables} routers, the network has {network}")]
    Routers {
        /// Routers the tables are for.
        tables: u32,
        /// Routers of the network.
        network: u32,
    },
    /// A port that the router does not have.
    #[error("layer {layer}: router {router} sends toward router {destination} by port {port} of {ports}")]
    Port {
        /// Layer, from 0.
        layer: u32,
        /// The router whose entry is wrong.
        router: u32,
        /// Destination of the entry.
        destination: u32,
        /// The port given.
        port: u16,
        /// How many ports the router has.
        ports: u32,
    },
    /// A link that the layer does not contain.
    #[error("layer {layer}: router {router} sends toward router {destination} over a link outside the layer")]
    Link {
        /// Layer, from 0.
        layer: u32,
        /// The router whose entry is wrong.
        router: u32,
        /// Destination of the entry.
        destination: u32,
    },
    /// A path that comes back to where it was.
    #[error("layer {layer}: the path toward router {destination} loops at router {router}")]
    Loop {
        /// Layer, from 0.
        layer: u32,
        /// A router on the loop.
        router: u32,
        /// Destination of the path.
        destination: u32,
    },
    /// A path that ends at a router without an entry.
    #[error("layer {layer}: the path toward router {destination} ends at router {router}")]
    DeadEnd {
        /// Layer, from 0.
        layer: u32,
        /// Where the path ends.
        router: u32,
        /// Destination of the path.
        destination: u32,
    },
}

/// What one layer reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerReach {
    /// Links the layer may use.
    pub links: u64,
    /// `pairs[l]` = number of ordered router pairs whose path has l hops.
    pub pairs: Vec<u64>,
    /// Ordered pairs of different routers that the layer does not connect.
    pub unreached: u64,
}

impl LayerReach {
    /// Mean hops of the layer's paths; 0 if it has none.
    pub fn mean_hops(&self) -> f64 {
        let paths: u64 = self.pairs.iter().sum();
        let hops: u64 = self.pairs.iter().zip(0..).map(|(&count, hops)| count * hops).sum();
        if paths == 0 { 0.0 } else { hops as f64 / paths as f64 }
    }

    /// Hops of the longest path.
    pub fn longest(&self) -> u32 {
        narrow::<u32>(self.pairs.len().saturating_sub(1))
    }
}

impl ForwardingTables {
    /// Follows every entry of every layer and reports what the layers reach.
    ///
    /// # Errors
    /// The first entry, by layer and destination, that leaves the layer, loops, or leads nowhere.
    pub fn validate(&self, graph: &RouterGraph) -> Result<Vec<LayerReach>, TableError> {
        if self.routers != graph.routers() {
            return Err(TableError::Routers { tables: self.routers, network: graph.routers() });
        }
        // Threads that ask for the same rows would wait for each other.
        self.complete();
        (0..self.layers())
            .map(|layer| {
                let rows: Vec<Result<Vec<u32>, TableError>> = (0..self.routers)
                    .into_par_iter()
                    .map(|destination| self.validate_destination(graph, layer, destination))
                    .collect();
                let mut reach =
                    LayerReach { links: self.links(layer).len() as u64, pairs: Vec::new(), unreached: 0 };
                for row in rows {
                    let hops = row?;
                    for &length in &hops {
                        if length == UNREACHED {
                            reach.unreached += 1;
                        } else if length > 0 {
                            reach.pairs.resize(reach.pairs.len().max(length as usize + 1), 0);
                            reach.pairs[length as usize] += 1;
                        }
                    }
                }
                Ok(reach)
            })
            .collect()
    }

    /// Hops from every router to one destination.
    fn validate_destination(
        &self,
        graph: &RouterGraph,
        layer: u32,
        destination: u32,
    ) -> Result<Vec<u32>, TableError> {
        let mut hops = vec![UNKNOWN; self.routers as usize];
        hops[destination as usize] = 0;
        let mut trail = Vec::new();
        for source in 0..self.routers {
            let mut here = source;
            while hops[here as usize] == UNKNOWN {
                let Some(port) = self.next_port(layer, here, destination) else {
                    if here != source {
                        return Err(TableError::DeadEnd { layer, router: here, destination });
                    }
                    hops[here as usize] = UNREACHED;
                    break;
                };
                let ports = narrow::<u32>(graph.neighbours(here).len());
                if u32::from(port) >= ports {
                    return Err(TableError::Port { layer, router: here, destination, port, ports });
                }
                if !self.links(layer).contains(graph.edge_ids(here)[usize::from(port)]) {
                    return Err(TableError::Link { layer, router: here, destination });
                }
                hops[here as usize] = ON_TRAIL;
                trail.push(here);
                here = graph.neighbours(here)[usize::from(port)];
            }
            match hops[here as usize] {
                ON_TRAIL => return Err(TableError::Loop { layer, router: here, destination }),
                UNREACHED if !trail.is_empty() => {
                    return Err(TableError::DeadEnd { layer, router: here, destination });
                }
                known => {
                    for (router, length) in trail.drain(..).rev().zip(known.wrapping_add(1)..) {
                        hops[router as usize] = length;
                    }
                }
            }
        }
        Ok(hops)
    }
}

const UNKNOWN: u32 = u32::MAX;
const ON_TRAIL: u32 = u32::MAX - 1;
const UNREACHED: u32 = u32::MAX - 2;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::link_set::LinkSet;
    use crate::tables::{NO_PORT, Paths, Trees};
    use crate::testing::{cycle, graph};

    fn ring_tables(links: LinkSet, entry: impl Fn(u32, u32) -> Option<u16>) -> ForwardingTables {
        let ring = cycle(4);
        let entries: Vec<u16> = (0..4)
            .flat_map(|to| (0..4).map(move |here| (here, to)))
            .map(|(here, to)| entry(here, to).unwrap_or(NO_PORT))
            .collect();
        let trees = Trees::alone(4, Paths::minimal(Arc::new(ring.clone())), move |to| {
            entries[4 * to..4 * to + 4].to_vec()
        });
        ForwardingTables::from_trees(&ring, vec![links], trees)
    }

    #[test]
    fn minimal_tables_of_a_ring_are_valid() {
        let ring = cycle(4);
        let tables = ForwardingTables::minimal(&ring, vec![LinkSet::full(&ring)], 1);
        let reach = &tables.validate(&ring).unwrap()[0];
        assert_eq!((reach.pairs.as_slice(), reach.unreached), ([0, 8, 4].as_slice(), 0));
        assert_eq!((reach.longest(), reach.links), (2, 4));
        assert!((reach.mean_hops() - 4.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn unconnected_pairs_are_counted() {
        let two = graph(4, vec![(0, 1), (2, 3)]);
        let tables = ForwardingTables::minimal(&two, vec![LinkSet::full(&two)], 1);
        assert_eq!(tables.validate(&two).unwrap()[0].unreached, 8);
    }

    #[test]
    fn wrong_entries_are_found() {
        let ring = cycle(4);
        let full = LinkSet::full(&ring);
        // Ports 0 and 1 of router 2 lead to routers 1 and 3; those of router 1 lead to 0 and 2.
        let looping = ring_tables(full.clone(), |here, to| match (here, to) {
            (1, 0) => Some(1),
            (2, 0) => Some(0),
            _ => None,
        });
        assert_eq!(looping.validate(&ring), Err(TableError::Loop { layer: 0, router: 1, destination: 0 }));
        let ending = ring_tables(full.clone(), |here, to| (here == 2 && to == 0).then_some(0));
        assert_eq!(ending.validate(&ring), Err(TableError::DeadEnd { layer: 0, router: 1, destination: 0 }));
        let beyond = ring_tables(full, |here, to| (here == 2 && to == 0).then_some(7));
        let expected = TableError::Port { layer: 0, router: 2, destination: 0, port: 7, ports: 2 };
        assert_eq!(beyond.validate(&ring), Err(expected));
        let outside = ring_tables(LinkSet::empty(&ring), |here, to| (here == 1 && to == 0).then_some(0));
        assert_eq!(outside.validate(&ring), Err(TableError::Link { layer: 0, router: 1, destination: 0 }));
        let other = cycle(5);
        assert_eq!(outside.validate(&other), Err(TableError::Routers { tables: 4, network: 5 }));
    }
}
