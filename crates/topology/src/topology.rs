//! The axis of topologies: every family under the name a user writes.

use std::path::Path;

use netloom_units::kinds;

use crate::error::NetworkError;
use crate::families::*;
use crate::formats::{AstraSimNetwork, Dot, EdgeList, GraphMl, HtsimTopo, InfraGraph, Json, Ns3, SimAi};
use crate::network::Network;

/// What building a network needs beside its parameters.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// Seed of random graphs; other families ignore it.
    pub seed: u64,
    /// Directory that relative file paths start from.
    pub base_dir: &'a Path,
}

/// What families get of a run, in tests.
#[cfg(test)]
pub(crate) fn context(seed: u64) -> BuildContext<'static> {
    BuildContext { seed, base_dir: Path::new("") }
}

kinds! {
    /// Which network to build.
    pub enum Topology: "topology" {
        "fat-tree" => FatTree(FatTree),
        "leaf-spine" => LeafSpine(LeafSpine),
        "k-ary-n-tree" => KaryNTree(KaryNTree),
        "xgft" => Xgft(Xgft),
        "crossbar" => Crossbar(Crossbar),
        "slim-fly" => SlimFly(SlimFly),
        "dragonfly" => Dragonfly(Dragonfly),
        "hyperx" => HyperX(HyperX),
        "torus" => Torus(Torus),
        "mesh" => Mesh(Mesh),
        "polarfly" => PolarFly(PolarFly),
        "orthogonal-fat-tree" => OrthogonalFatTree(OrthogonalFatTree),
        "complete" => Complete(Complete),
        "jellyfish" => Jellyfish(Jellyfish),
        "equivalent-jellyfish" => EquivalentJellyfish(EquivalentJellyfish),
        "xpander" => Xpander(Xpander),
        "edge-list" => EdgeList(EdgeList),
        "graphml" => GraphMl(GraphMl),
        "dot" => Dot(Dot),
        "json" => Json(Json),
        "htsim-topo" => HtsimTopo(HtsimTopo),
        "ns3-topology" => Ns3(Ns3),
        "astra-sim-network" => AstraSimNetwork(AstraSimNetwork),
        "infragraph" => InfraGraph(InfraGraph),
        "simai-topology" => SimAi(SimAi),
    }

    /// Builds the network. The result is a function of the parameters, the seed and the file read, if any.
    ///
    /// # Errors
    /// If a parameter is out of its range, a file is malformed, or the network would not fit into memory.
    pub fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError>;
}

impl Topology {
    /// The same network with the defaults written down that its kind would fall back on: the size, rate and latency where none is given.
    /// Fields that follow another one, such as `host_rate` the `rate`, stay absent, so that they still follow it.
    pub fn with_defaults(mut self) -> Self {
        match &mut self {
            Topology::FatTree(tree) => tree.fill(),
            Topology::SlimFly(slim_fly) => slim_fly.fill(),
            Topology::Dragonfly(dragonfly) => dragonfly.fill(),
            Topology::PolarFly(polarfly) => polarfly.fill(),
            Topology::OrthogonalFatTree(tree) => tree.fill(),
            Topology::EquivalentJellyfish(jellyfish) => {
                *jellyfish.of = jellyfish.of.as_ref().clone().with_defaults();
            }
            _ => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_units::kind::{Kind, KindInfo};

    /// Every kind with what it requires.
    fn minimal(name: &str) -> String {
        match name {
            "edge-list" | "graphml" | "dot" | "json" | "htsim-topo" | "ns3-topology"
            | "astra-sim-network" | "infragraph" | "simai-topology" => "path = 'net'".into(),
            "equivalent-jellyfish" => "of = { kind = 'complete', switches = 5 }".into(),
            _ => String::new(),
        }
    }

    #[test]
    fn every_kind_is_documented_and_survives_writing() {
        for KindInfo { name, doc, fields } in Topology::kinds() {
            assert!(!doc.is_empty() && fields.iter().all(|field| !field.doc.is_empty()), "{name}");
            let table: toml::Table = minimal(name).parse().unwrap();
            let topology = Topology::read(name, table).unwrap().unwrap();
            let written = toml::to_string(&topology).unwrap();
            assert_eq!(toml::from_str::<Topology>(&written).unwrap(), topology, "{written}");
        }
    }

    #[test]
    fn defaults_are_networks() {
        for name in Topology::NAMES.iter().filter(|name| !minimal(name).starts_with("path")) {
            let topology =
                Topology::read(name, minimal(name).parse::<toml::Table>().unwrap()).unwrap().unwrap();
            let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new(".") }).unwrap();
            assert!(network.hosts() > 1 && network.name().ends_with("hosts"), "{name}");
        }
    }
}
