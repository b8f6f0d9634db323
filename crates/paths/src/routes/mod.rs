//! Routing schemes whose paths are fixed before the traffic comes: layers, trees and explicit paths.

mod k_shortest;
mod minimal;
mod overlap;
mod past;
mod random;
mod spain;

use netloom_topology::RouterGraph;
use netloom_units::{Invalid, kinds, memory};

use crate::tables::ForwardingTables;

pub use k_shortest::{KShortest, KShortestPaths, Ties, yen};
pub use minimal::Minimal;
pub use overlap::{EdgeWeights, MinimumHops, OverlapMinimising};
pub use past::{Past, TreeKind};
pub use random::{RandomLayers, Sampling};
pub use spain::{Spain, SpainForests};

kinds! {
    /// Which paths a routing scheme provides between routers.
    pub enum Scheme: "scheme" {
        "minimal" => Minimal(Minimal),
        "fatpaths-random" => RandomLayers(RandomLayers),
        "fatpaths-overlap" => OverlapMinimising(OverlapMinimising),
        "spain" => Spain(Spain),
        "past" => Past(Past),
        "k-shortest" => KShortest(KShortest),
    }
}

/// Why a scheme's paths cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SchemeError {
    /// A parameter outside its range.
    #[error(transparent)]
    Parameter(#[from] Invalid),
    /// The tables would take more memory than they may.
    #[error("{layers} layers of {routers} routers are too many: {reason}")]
    TooLarge {
        /// Layers asked for.
        layers: u64,
        /// Routers of the network.
        routers: u32,
        /// How much memory their tables need.
        reason: memory::TooLarge,
    },
    /// The network is not connected.
    #[error("the network is not connected")]
    Disconnected,
}

/// The paths of a scheme on one network.
#[derive(Debug)]
pub enum Routes {
    /// One path per layer, by destination-based forwarding.
    Tables(ForwardingTables),
    /// A list of paths per router pair, computed when asked for.
    PerPair(KShortestPaths),
}

impl Scheme {
    /// Builds the paths of this scheme. The result is a function of the graph and the seed.
    ///
    /// # Errors
    /// If a parameter is out of its range, the network is not connected, or the tables would be too large.
    pub fn build(&self, graph: &RouterGraph, seed: u64) -> Result<Routes, SchemeError> {
        if !crate::LinkSet::full(graph).connects(graph) {
            return Err(SchemeError::Disconnected);
        }
        Ok(match self {
            Scheme::Minimal(config) => Routes::Tables(config.build(graph, seed)?),
            Scheme::RandomLayers(config) => Routes::Tables(config.build(graph, seed)?),
            Scheme::OverlapMinimising(config) => Routes::Tables(config.build(graph, seed)?),
            Scheme::Spain(config) => Routes::Tables(config.build(graph, seed)?),
            Scheme::Past(config) => Routes::Tables(config.build(graph, seed)?),
            Scheme::KShortest(config) => Routes::PerPair(config.build(seed)?),
        })
    }
}

impl Routes {
    /// All different paths from one router to another, each a list of directed edges
    /// (see [`directed_edge`](crate::tables::directed_edge)), in the order of layers or of length.
    pub fn paths(&self, graph: &RouterGraph, from: u32, to: u32) -> Vec<Vec<u32>> {
        let mut paths = match self {
            Routes::Tables(tables) => {
                (0..tables.layers()).filter_map(|layer| tables.path(graph, layer, from, to)).collect()
            }
            Routes::PerPair(paths) => paths.paths(graph, from, to),
        };
        let mut seen = std::collections::BTreeSet::new();
        paths.retain(|path: &Vec<u32>| seen.insert(path.clone()));
        paths
    }

    /// The forwarding tables, if the scheme has any.
    pub fn tables(&self) -> Option<&ForwardingTables> {
        match self {
            Routes::Tables(tables) => Some(tables),
            Routes::PerPair(_) => None,
        }
    }

    /// The forwarding tables, if the scheme has any; what else there is goes.
    pub fn into_tables(self) -> Option<ForwardingTables> {
        match self {
            Routes::Tables(tables) => Some(tables),
            Routes::PerPair(_) => None,
        }
    }
}

/// A packet names its layer in two bytes.
const MAX_LAYERS: u32 = 65_535;

/// Refuses a number of layers that is out of range or needs too much memory.
fn check_layers(graph: &RouterGraph, layers: u32) -> Result<(), SchemeError> {
    Invalid::unless((1..=MAX_LAYERS).contains(&layers), "layers", "1 to 65,535", layers)?;
    check_size(graph, u64::from(layers))
}

fn check_size(graph: &RouterGraph, layers: u64) -> Result<(), SchemeError> {
    let routers = graph.routers();
    let needed = layers.saturating_mul(u64::from(routers).pow(2));
    memory::check(needed).map_err(|reason| SchemeError::TooLarge { layers, routers, reason })
}
