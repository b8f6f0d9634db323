//! The axis of topologies: every family under the name a user writes.

use std::path::Path;

use netloom_units::kinds;

use crate::families::{Crossbar, FatTree, KaryNTree, LeafSpine, Xgft};
use crate::formats::EdgeList;
use crate::network::{Network, NetworkError};

/// What building a network needs beside its parameters.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// Seed of random graphs; other families ignore it.
    pub seed: u64,
    /// Directory that relative file paths start from.
    pub base_dir: &'a Path,
}

kinds! {
    /// Which network to build.
    pub enum Topology: "topology" {
        "fat-tree" => FatTree(FatTree),
        "leaf-spine" => LeafSpine(LeafSpine),
        "k-ary-n-tree" => KaryNTree(KaryNTree),
        "xgft" => Xgft(Xgft),
        "crossbar" => Crossbar(Crossbar),
        "edge-list" => EdgeList(EdgeList),
    }
}

impl Topology {
    /// Builds the network. The result is a function of the parameters, the seed and the file read, if any.
    ///
    /// # Errors
    /// If a parameter is out of its range, a file is malformed, or the network would not fit into memory.
    pub fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        match self {
            Topology::FatTree(config) => config.build(),
            Topology::LeafSpine(config) => config.build(),
            Topology::KaryNTree(config) => config.build(),
            Topology::Xgft(config) => config.build(),
            Topology::Crossbar(config) => config.build(),
            Topology::EdgeList(config) => config.build(context),
        }
    }
}
