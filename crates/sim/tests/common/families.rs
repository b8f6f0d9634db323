//! Small networks of every family.
#![allow(dead_code, unreachable_pub)]

use std::path::Path;

use netloom_topology::{
    BuildContext, Complete, Crossbar, Dragonfly, EquivalentJellyfish, FatTree, HyperX, Jellyfish, KaryNTree,
    LeafSpine, Mesh, Network, OrthogonalFatTree, PolarFly, SlimFly, Topology, Torus, Xgft, Xpander,
};

/// Every family once or more, by its name, with at most 64 hosts. Families of random graphs draw from the seed.
pub fn all() -> Vec<Topology> {
    let slim_fly = SlimFly { q: Some(3), hosts_per_switch: Some(2), ..SlimFly::default() };
    let hyperx = |switches: &[u32], parallel: &[u32], hosts| HyperX {
        dimensions: switches.len() as u32,
        switches_per_dimension: switches.to_vec(),
        parallel_links: parallel.to_vec(),
        hosts_per_switch: Some(hosts),
        ..HyperX::default()
    };
    let dragonfly = |hosts, switches, global| Dragonfly {
        hosts_per_switch: Some(hosts),
        switches_per_group: Some(switches),
        global_links_per_switch: Some(global),
        ..Dragonfly::default()
    };
    let torus = |switches: &[u32], hosts_per_switch| Torus {
        dimensions: switches.len() as u32,
        switches_per_dimension: switches.to_vec(),
        hosts_per_switch,
        ..Torus::default()
    };
    vec![
        Topology::FatTree(FatTree { k: Some(4), ..FatTree::default() }),
        Topology::LeafSpine(LeafSpine {
            leaves: 3,
            spines: 2,
            hosts_per_leaf: 3,
            bundle: 2,
            ..LeafSpine::default()
        }),
        Topology::KaryNTree(KaryNTree { k: 2, n: 4, ..KaryNTree::default() }),
        Topology::Xgft(Xgft { m: vec![3, 2, 3], w: vec![1, 2, 3], bundle: vec![1, 2, 1], ..Xgft::default() }),
        Topology::Crossbar(Crossbar { hosts: 5, ..Crossbar::default() }),
        Topology::SlimFly(slim_fly.clone()),
        Topology::Dragonfly(dragonfly(1, 4, 2)),
        Topology::Dragonfly(dragonfly(2, 3, 1)),
        // Two global links between any two groups.
        Topology::Dragonfly(Dragonfly {
            groups: Some(4),
            links_per_group_pair: Some(2),
            ..dragonfly(2, 3, 2)
        }),
        Topology::HyperX(hyperx(&[4, 4, 4], &[1, 1, 1], 1)),
        Topology::HyperX(hyperx(&[4, 3], &[2, 1], 2)),
        Topology::Torus(torus(&[4, 5], 2)),
        Topology::Torus(Torus { wrap: vec![true, false, true], ..torus(&[4, 3, 2], 1) }),
        Topology::Torus(Torus { twisted: true, ..torus(&[3, 3, 6], 1) }),
        Topology::Mesh(Mesh { switches_per_dimension: vec![4, 3], hosts_per_switch: 2, ..Mesh::default() }),
        Topology::PolarFly(PolarFly { q: Some(3), hosts_per_switch: Some(2), ..PolarFly::default() }),
        Topology::OrthogonalFatTree(OrthogonalFatTree { k: Some(3), ..OrthogonalFatTree::default() }),
        Topology::Complete(Complete { switches: 6, hosts_per_switch: Some(3), ..Complete::default() }),
        Topology::Jellyfish(Jellyfish {
            switches: 14,
            degree: 4,
            hosts_per_switch: 2,
            ..Jellyfish::default()
        }),
        Topology::EquivalentJellyfish(EquivalentJellyfish::new(Topology::SlimFly(slim_fly))),
        Topology::Xpander(Xpander {
            degree: 4,
            lift: Some(4),
            hosts_per_switch: Some(2),
            ..Xpander::default()
        }),
    ]
}

/// One of them.
pub fn build(topology: &Topology, seed: u64) -> Network {
    let context = BuildContext { seed, base_dir: Path::new("") };
    topology.build(&context).unwrap_or_else(|error| panic!("{topology:?}: {error}"))
}
