//! GPU clusters by name: a network and the servers in it, as their owners or makers describe them.

use netloom_topology::{LeafSpine, Topology};
use netloom_units::{Rate, Time};
use serde::Serialize;

use crate::bond::Bond;
use crate::servers::{NicSelection, ScaleUp, ScaleUpWiring, Servers, Wiring};

/// A cluster by its name.
pub struct ClusterPreset {
    /// The name that a user writes as `cluster = "…"`.
    pub name: &'static str,
    /// What it is and where its figures come from.
    pub doc: &'static str,
    expand: fn() -> (LeafSpine, Servers),
}

/// What a cluster sets of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// Its network; where there are planes, one of them.
    pub topology: Topology,
    /// Its servers.
    pub servers: Servers,
}

impl ClusterPreset {
    /// What it sets.
    pub fn expand(&self) -> Cluster {
        let (network, servers) = (self.expand)();
        Cluster { topology: Topology::LeafSpine(network), servers }
    }
}

/// The cluster of that name.
pub fn find(name: &str) -> Option<&'static ClusterPreset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// A leaf-spine network with links of one rate.
fn leaf_spine(leaves: u32, spines: u32, hosts_per_leaf: u32, bundle: u32, gbps: u64) -> LeafSpine {
    let rate = Rate::from_gbps(gbps);
    LeafSpine { leaves, spines, hosts_per_leaf, bundle, rate, latency: CABLE, ..LeafSpine::default() }
}

/// SimAI's delay of a cable (`gen_Topo_Template.py`).
const CABLE: Time = Time::from_ns(500);

/// Servers of eight GPUs with a NIC each. Messages leave by one of its GPU's ports in turn.
fn of_eight(wiring: Wiring, planes: u32, scale_up: ScaleUp) -> Servers {
    Servers {
        nics: 8,
        wiring,
        nic_selection: NicSelection::RoundRobin,
        planes,
        ports: 1,
        gpus: Some(8),
        bond: None,
        scale_up: Some(scale_up),
    }
}

/// Servers of eight GPUs whose NICs have two ports at two leaf switches of one network. Flows keep their port.
fn dual_tor(wiring: Wiring, scale_up: ScaleUp) -> Servers {
    Servers { ports: 2, bond: Some(Bond::default()), ..of_eight(wiring, 1, scale_up) }
}

/// SimAI's NVLink: 2880 Gb/s and 25 ns each to and from an NVSwitch (`gen_Topo_Template.py`).
const SIMAI_NVLINK: ScaleUp =
    ScaleUp { wiring: ScaleUpWiring::Switch, rate: Rate::from_gbps(2880), latency: Time::from_ns(50) };

/// Every cluster, in the order in which `netloom list` shows them.
pub static PRESETS: &[ClusterPreset] = &[
    ClusterPreset {
        name: "dgx-h100-like",
        doc: "One scalable unit of a DGX SuperPOD with H100: 32 servers of 8 GPUs, 8 rails of one leaf switch with 32 servers, 4 spines, no oversubscription, 400 Gb/s (NVIDIA DGX SuperPOD reference architecture, RA-11333, table 4, which leaves one server out for the fabric manager); NVLink 4 with \
              450 GB/s each way per GPU (H100 data sheet). All latencies are guesses. Two units are leaves = 16, spines = 8, bundle = 4; four are 32, 16 and 2.",
        expand: || (leaf_spine(8, 4, 32, 8, 400), of_eight(Wiring::RailOptimised, 1, ScaleUp::default())),
    },
    ClusterPreset {
        name: "gb200-nvl72-like",
        doc: "Eight racks of 72 GPUs: NVLink 5 with 900 GB/s each way per GPU in a rack (NVIDIA GB200 NVL72 data sheet), and a NIC of 400 Gb/s per GPU (ConnectX-7). That each rack has a leaf switch for its 72 NICs under 36 spines without \
              oversubscription is a guess, and so are the latencies.",
        expand: || {
            let rack = ScaleUp { rate: Rate::from_gbps(7200), ..ScaleUp::default() };
            let servers = Servers { nics: 72, gpus: Some(72), ..of_eight(Wiring::SideBySide, 1, rack) };
            (leaf_spine(8, 36, 72, 2, 400), servers)
        },
    },
    ClusterPreset {
        name: "mi300x-like",
        doc: "16 servers of 8 MI300X with a link of 64 GB/s each way between any two GPUs, 448 GB/s per GPU (AMD Instinct MI300X platform data sheet: 896 GB/s in both directions together), and a NIC of 400 Gb/s per GPU. The network of 8 \
              rails under 8 spines without oversubscription and the latencies are guesses.",
        expand: || {
            let (wiring, rate) = (ScaleUpWiring::AllToAll, Rate::from_gbps(7 * 512));
            let inside = ScaleUp { wiring, rate, ..ScaleUp::default() };
            (leaf_spine(8, 8, 16, 2, 400), of_eight(Wiring::RailOptimised, 1, inside))
        },
    },
    ClusterPreset {
        name: "alibaba-hpn",
        doc: "A pod of Alibaba's HPN (Qian et al., SIGCOMM 2024): two planes, in each of them 15 segments of 8 rails, a leaf switch for the 128 servers of a segment and rail with a port of 200 Gb/s per NIC, and 60 spines with a link of 400 Gb/s to every leaf; \
              15,360 GPUs. The core layer above is left out. NVLink and latencies as in SimAI's generator of this network. leaves = 8 is one segment of 1,024 GPUs.",
        expand: || {
            let network = leaf_spine(120, 60, 128, 1, 400);
            let network = LeafSpine { host_rate: Some(Rate::from_gbps(200)), ..network };
            (network, of_eight(Wiring::RailOptimised, 2, SIMAI_NVLINK))
        },
    },
    ClusterPreset {
        name: "alibaba-hpn-single-plane",
        doc: "The network of alibaba-hpn without planes, as SimAI's generator builds it for comparison (gen_Topo_Template.py, AlibabaHPN without --dp): both leaf switches of a segment and rail, one for each port of 200 Gb/s of a NIC \
              (dual ToR), under the same 120 spines. Ports of a NIC are one, by flow; what the generator leaves to NCCL. leaves = 16 is one segment of 1,024 GPUs.",
        expand: || {
            let network = leaf_spine(240, 120, 128, 1, 400);
            let network = LeafSpine { host_rate: Some(Rate::from_gbps(200)), ..network };
            (network, dual_tor(Wiring::RailOptimised, SIMAI_NVLINK))
        },
    },
    ClusterPreset {
        name: "spectrum-x",
        doc: "NVIDIA's Spectrum-X as SimAI's generator builds it (gen_Topo_Template.py, Spectrum-X): 4,096 GPUs, 8 rails, a leaf switch for 64 servers and a rail, 64 spines, 400 Gb/s, no oversubscription; NVLink and latencies from there.",
        expand: || (leaf_spine(64, 64, 64, 1, 400), of_eight(Wiring::RailOptimised, 1, SIMAI_NVLINK)),
    },
    ClusterPreset {
        name: "dcn-plus",
        doc: "DCN+, Alibaba's network before HPN, as SimAI's generator builds it with single ToRs (gen_Topo_Template.py, DCN+): 512 GPUs, all NICs of a server at one of 8 leaf switches with 64 NICs, 8 spines with one link of 400 Gb/s to each leaf: 8:1 \
              oversubscribed, as its default is; NVLink and latencies from there.",
        expand: || (leaf_spine(8, 8, 64, 1, 400), of_eight(Wiring::SideBySide, 1, SIMAI_NVLINK)),
    },
    ClusterPreset {
        name: "dcn-plus-dual-tor",
        doc: "DCN+ with dual ToRs as SimAI's generator builds it (gen_Topo_Template.py, DCN+ with --dt): 512 GPUs, each NIC with two ports of 200 Gb/s at a pair of leaf switches that serves 16 servers, 8 leaf switches of 128 ports, \
              8 spines with one link of 400 Gb/s to each leaf; NVLink and latencies from there. Ports of a NIC are one, by flow; what the generator leaves to NCCL.",
        expand: || {
            let network =
                LeafSpine { host_rate: Some(Rate::from_gbps(200)), ..leaf_spine(8, 8, 128, 1, 400) };
            (network, dual_tor(Wiring::SideBySide, SIMAI_NVLINK))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_topology::BuildContext;

    #[test]
    fn clusters_have_the_published_counts() {
        // GPUs, their ports to the network, leaf switches and spines of a plane, planes, and links up by links down of a leaf in rate.
        let expected = [
            ("dgx-h100-like", 256, 1, 8, 4, 1, 1.0),
            ("gb200-nvl72-like", 576, 1, 8, 36, 1, 1.0),
            ("mi300x-like", 128, 1, 8, 8, 1, 1.0),
            ("alibaba-hpn", 15_360, 2, 120, 60, 2, 24_000.0 / 25_600.0),
            ("alibaba-hpn-single-plane", 15_360, 2, 240, 120, 1, 48_000.0 / 25_600.0),
            ("spectrum-x", 4096, 1, 64, 64, 1, 1.0),
            ("dcn-plus", 512, 1, 8, 8, 1, 1.0 / 8.0),
            ("dcn-plus-dual-tor", 512, 2, 8, 8, 1, 1.0 / 8.0),
        ];
        assert_eq!(PRESETS.len(), expected.len());
        for (name, gpus, ports, leaves, spines, planes, up) in expected {
            let Cluster { topology, servers } = find(name).unwrap().expand();
            let plane = topology.build(&BuildContext { seed: 1, base_dir: "".as_ref() }).unwrap();
            let at = |level| (plane.hosts()..plane.nodes()).filter(|&s| plane.level(s) == level).count();
            assert_eq!((at(1), at(2), servers.planes), (leaves, spines, planes), "{name}");
            let leaf = plane.edge_switch(0);
            let rate = |above: bool| -> u64 {
                let links = plane.ports(leaf).iter().map(|&channel| plane.channel(channel));
                links.filter(|link| (link.to >= plane.hosts()) == above).map(|link| link.rate.0).sum()
            };
            assert!((rate(true) as f64 / rate(false) as f64 - up).abs() < 1e-9, "{name}");
            // A segment of the largest is as good as all of it.
            let plane = match topology {
                Topology::LeafSpine(network) if gpus > 5000 => {
                    Topology::LeafSpine(LeafSpine { leaves: 8 * servers.ports, ..network })
                }
                other => other,
            };
            let plane = plane.build(&BuildContext { seed: 1, base_dir: "".as_ref() }).unwrap();
            let whole = servers.network(plane).unwrap();
            let rails = servers.build(&whole, 1).unwrap();
            let endpoints = if gpus > 5000 { gpus / 15 } else { gpus };
            assert_eq!((rails.endpoints(), rails.ports()), (endpoints, ports + 1), "{name}");
        }
    }
}
