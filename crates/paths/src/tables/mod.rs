//! Forwarding tables: one next hop per layer, router and destination router.

mod build;
mod chunks;
mod draws;
mod ecmp;
mod file;
mod hops;
mod rises;
mod trees;
mod validate;

use netloom_units::narrow;
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};

use netloom_topology::RouterGraph;

use self::chunks::Chunks;
use self::draws::Draws;
pub(crate) use self::trees::{Paths, Trees};
use crate::link_set::LinkSet;

pub use ecmp::LayerDistances;
pub use file::TableFileError;
pub use hops::Diameter;
pub use validate::{LayerReach, TableError};

/// In place of a port, of a pair that a layer does not connect.
pub(crate) const NO_PORT: u16 = u16::MAX;

/// For every layer, router and destination router, the port of the next hop (FatPaths sec. V-C).
///
/// A port is a position in [`RouterGraph::neighbours`] of the router. Entries take one byte if no router has more
/// than 255 ports, else two. A pair that a layer does not connect has no entry: the sender takes another layer.
///
/// Tables that are drawn ([`Self::minimal`]) are so router by router, when a way from there is first asked for; trees are grown when
/// a way to their destination is first asked for.
#[derive(Debug)]
pub struct ForwardingTables {
    routers: u32,
    /// Per layer: the links it may use.
    links: Vec<LinkSet>,
    entries: Entries,
    /// How far entries lie apart.
    strides: Strides,
    source: Source,
    /// Identifies the graph, so that saved tables are not used on another.
    graph: u64,
}

/// Where entries come from that are not there from the beginning.
#[derive(Debug)]
enum Source {
    /// All are there.
    Given,
    /// Row by row.
    Draws(Box<Draws>),
    /// Destination by destination.
    Trees(Box<Trees>),
}

/// What [`ForwardingTables::bound`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// No route has more counted hops.
    pub hops: u32,
    /// Whether some route has as many. If not, nobody has seen one.
    pub is_used: bool,
    /// Whether some layer joins any two routers with hosts.
    pub is_connected: bool,
}

/// How far the entries of one layer and the next lie apart, of one router and the next, and of one destination and the next.
#[derive(Clone, Copy, Debug)]
struct Strides {
    layer: usize,
    here: usize,
    destination: usize,
}

impl Strides {
    /// `[layer][here][destination]`: what one router needs in one layer lies together.
    fn by_router(routers: u32) -> Self {
        let routers = routers as usize;
        Strides { layer: routers * routers, here: routers, destination: 1 }
    }

    /// `[layer][destination][here]`: a tree lies together.
    fn by_destination(routers: u32) -> Self {
        let routers = routers as usize;
        Strides { layer: routers * routers, here: 1, destination: routers }
    }

    #[inline]
    fn place(self, layer: u32, here: u32, destination: u32) -> usize {
        self.layer * layer as usize + self.here * here as usize + self.destination * destination as usize
    }
}

/// Ports, in the order that [`Strides`] says.
///
/// Each is one more than the port; 0 where there is none, or none yet. Threads may ask and write at the same time: each thread that writes an entry writes the same.
#[derive(Debug)]
enum Entries {
    Narrow(Chunks<AtomicU8>),
    Wide(Chunks<AtomicU16>),
}

impl Entries {
    /// This many, all without a port.
    fn new(graph: &RouterGraph, layers: usize) -> Self {
        let count = layers * (graph.routers() as usize).pow(2);
        match build::is_narrow(graph) {
            true => Entries::Narrow(Chunks::new(count)),
            false => Entries::Wide(Chunks::new(count)),
        }
    }

    #[inline]
    fn get(&self, place: usize) -> u16 {
        match self {
            Entries::Narrow(entries) => {
                entries.get(place).map_or(0, |entry| entry.load(Ordering::Relaxed).into())
            }
            Entries::Wide(entries) => entries.get(place).map_or(0, |entry| entry.load(Ordering::Relaxed)),
        }
    }

    /// Writes a port, or that there is none.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "entries are narrow where no router has more than 254 ports; NO_PORT becomes 0"
    )]
    fn set(&self, place: usize, port: u16) {
        match self {
            Entries::Narrow(entries) => {
                entries.at(place).store((port as u8).wrapping_add(1), Ordering::Relaxed)
            }
            Entries::Wide(entries) => entries.at(place).store(port.wrapping_add(1), Ordering::Relaxed),
        }
    }
}

impl ForwardingTables {
    /// Number of routers.
    pub fn routers(&self) -> u32 {
        self.routers
    }

    /// Number of layers.
    pub fn layers(&self) -> u32 {
        narrow::<u32>(self.links.len())
    }

    /// The links that a layer may use.
    pub fn links(&self, layer: u32) -> &LinkSet {
        &self.links[layer as usize]
    }

    /// How far routers are apart in a layer, if its paths are minimal ones.
    pub fn diameter(&self, layer: u32) -> Option<Diameter> {
        match &self.source {
            Source::Given => None,
            Source::Draws(draws) => Some(draws.diameter(layer, &self.links)),
            Source::Trees(trees) => trees.diameter(),
        }
    }

    /// Layers and routers with hosts, from and to, that the layer joins by paths that are longer than the shortest ones of the whole network; this many at most.
    /// `None` if nobody knows how the tables came to be.
    pub fn longer_pairs(&self, most: usize) -> Option<Vec<(u32, u32, u32)>> {
        match &self.source {
            Source::Given => None,
            Source::Draws(draws) => Some(draws.longer_pairs(&self.links, most)),
            Source::Trees(trees) => trees.longer_pairs(),
        }
    }

    /// A number of hops that no route between routers with hosts exceeds in any layer, by the distances and a few routes; hops over a link of high rank right behind
    /// one of low rank are not counted. `is_high(router, place)` says the rank of the link to a router's neighbour at a place. Where `spreads` routes are all
    /// shortest ways inside a layer instead of those of the tables. `None` where nobody knows how the tables came to be.
    pub fn bound(&self, spreads: bool, is_high: impl Fn(u32, usize) -> bool + Copy) -> Option<Bound> {
        let reaches =
            |graph: &RouterGraph, route, hops| spreads || self.counted(graph, route, is_high) == hops;
        match &self.source {
            Source::Given => None,
            Source::Draws(draws) => Some(draws.bound(&self.links, is_high, reaches)),
            Source::Trees(trees) => Some(trees.bound(&self.entries, is_high, reaches)),
        }
    }

    /// The hops of a layer's route, from one router to another, counted as for a [`Bound`].
    fn counted(
        &self,
        graph: &RouterGraph,
        (layer, from, to): (u32, u32, u32),
        is_high: impl Fn(u32, usize) -> bool,
    ) -> u32 {
        let (mut here, mut hops, mut was_high) = (from, 0, true);
        while here != to
            && let Some(port) = self.next_port(layer, here, to)
        {
            let place = usize::from(port);
            let high = is_high(here, place);
            hops += u32::from(was_high || !high);
            (here, was_high) = (graph.neighbours(here)[place], high);
        }
        hops
    }

    /// Hop distances inside a layer.
    pub fn distances(&self, graph: &RouterGraph, layer: u32) -> LayerDistances {
        let known = match &self.source {
            Source::Draws(draws) => draws.hops(layer),
            Source::Given | Source::Trees(_) => None,
        };
        known.map_or_else(
            || LayerDistances::new(graph, self.links(layer)),
            |hops| LayerDistances::of(&hops, graph),
        )
    }

    /// Makes all entries that are not there yet, on several threads where none waits for another.
    pub(crate) fn complete(&self) {
        match &self.source {
            Source::Given => {}
            Source::Draws(draws) => draws.all(&self.links, &self.entries),
            Source::Trees(trees) => trees.all(self.links.len() * self.routers as usize, &self.entries),
        }
    }

    /// Memory of the entries in bytes, when all are there.
    pub fn bytes(&self) -> u64 {
        match &self.entries {
            Entries::Narrow(entries) => entries.len() as u64,
            Entries::Wide(entries) => 2 * entries.len() as u64,
        }
    }

    /// The port by which `here` sends toward router `destination` in a layer; `None` if the layer does not connect
    /// them or if they are the same. One memory access, except the first time that a way from `here` is asked for, or along a tree.
    #[inline]
    pub fn next_port(&self, layer: u32, here: u32, destination: u32) -> Option<u16> {
        match self.entries.get(self.strides.place(layer, here, destination)) {
            0 => self.not_yet(layer, here, destination),
            entry => Some(entry - 1),
        }
    }

    /// An entry that may not have been made.
    #[cold]
    fn not_yet(&self, layer: u32, here: u32, destination: u32) -> Option<u16> {
        let first = layer as usize * self.routers as usize;
        match &self.source {
            Source::Given => return None,
            Source::Draws(draws) => draws.row(first + here as usize, &self.links, &self.entries),
            Source::Trees(trees) => trees.tree(first + destination as usize, &self.entries),
        }
        self.entries.get(self.strides.place(layer, here, destination)).checked_sub(1)
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
