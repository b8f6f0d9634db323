//! Forwarding tables: one next hop per layer, router and destination router.

mod build;
mod ecmp;
mod file;
mod validate;

use netloom_topology::RouterGraph;

use crate::link_set::LinkSet;

pub use ecmp::LayerDistances;
pub use file::TableFileError;
pub use validate::{LayerReach, TableError};

/// The entry of a pair that a layer does not connect, in the widest form.
const NO_PORT: u16 = u16::MAX;

/// For every layer, router and destination router, the port of the next hop (FatPaths sec. V-C).
///
/// A port is a position in [`RouterGraph::neighbours`] of the router. Entries take one byte if no router has more
/// than 255 ports, else two. A pair that a layer does not connect has no entry: the sender takes another layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingTables {
    routers: u32,
    /// Per layer: the links it may use.
    links: Vec<LinkSet>,
    entries: Entries,
    /// Identifies the graph, so that saved tables are not used on another.
    graph: u64,
}

/// Ports by `[layer][here][destination]`: what one router needs in one layer lies together.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entries {
    Narrow(Vec<u8>),
    Wide(Vec<u16>),
}

/// One entry of either width.
trait Entry: Copy + Send + Sync {
    /// The entry of an unconnected pair.
    const NONE: Self;
    fn from_port(port: u16) -> Self;
}

impl Entry for u8 {
    const NONE: u8 = u8::MAX;
    fn from_port(port: u16) -> u8 {
        port as u8
    }
}

impl Entry for u16 {
    const NONE: u16 = NO_PORT;
    fn from_port(port: u16) -> u16 {
        port
    }
}

impl ForwardingTables {
    /// Number of routers.
    pub fn routers(&self) -> u32 {
        self.routers
    }

    /// Number of layers.
    pub fn layers(&self) -> u32 {
        self.links.len() as u32
    }

    /// The links that a layer may use.
    pub fn links(&self, layer: u32) -> &LinkSet {
        &self.links[layer as usize]
    }

    /// Memory of the entries in bytes.
    pub fn bytes(&self) -> u64 {
        match &self.entries {
            Entries::Narrow(entries) => entries.len() as u64,
            Entries::Wide(entries) => 2 * entries.len() as u64,
        }
    }

    /// The port by which `here` sends toward router `destination` in a layer; `None` if the layer does not connect
    /// them or if they are the same. One memory access.
    #[inline]
    pub fn next_port(&self, layer: u32, here: u32, destination: u32) -> Option<u16> {
        let routers = self.routers as usize;
        let index = (layer as usize * routers + here as usize) * routers + destination as usize;
        match &self.entries {
            Entries::Narrow(entries) => Some(entries[index]).filter(|&p| p != u8::NONE).map(u16::from),
            Entries::Wide(entries) => Some(entries[index]).filter(|&p| p != u16::NONE),
        }
    }

    /// The directed edges from one router to another in a layer, or `None` if it does not connect them.
    ///
    /// Directed edge 2e is edge e from its first end to its second, 2e + 1 the reverse.
    pub fn path(&self, graph: &RouterGraph, layer: u32, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut path = Vec::new();
        let mut here = from;
        while here != to {
            let port = usize::from(self.next_port(layer, here, to)?);
            path.push(directed_edge(graph, graph.edge_ids(here)[port], here));
            here = graph.neighbours(here)[port];
            if path.len() > self.routers as usize {
                return None;
            }
        }
        Some(path)
    }
}

/// Index of an edge in the direction that leaves `tail`: 2e from the first end, 2e + 1 from the second.
pub fn directed_edge(graph: &RouterGraph, edge: u32, tail: u32) -> u32 {
    2 * edge + u32::from(graph.edges()[edge as usize].0 != tail)
}

/// The router a directed edge leads to.
pub fn head(graph: &RouterGraph, directed: u32) -> u32 {
    let (a, b) = graph.edges()[directed as usize / 2];
    if directed.is_multiple_of(2) { b } else { a }
}
