//! Paths beyond the minimal ones on networks that stand side by side: each has those that it has alone.

use std::path::Path;

use netloom_topology::{
    BuildContext, Dragonfly, HyperX, Jellyfish, Network, Separate, SlimFly, Topology, Torus,
};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::channels::VcRule;
use super::{Forwarding, TagSpace};
use crate::preset;

fn build(topology: Topology) -> Network {
    topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
}

fn twice(plane: &Network) -> Network {
    let plane = Separate { network: plane, prefix: "", tier_prefix: "" };
    Network::apart("two planes", &[plane, plane]).unwrap()
}

fn paths(scheme: &str, network: &Network) -> Forwarding {
    let scheme = preset::find(scheme).unwrap().routing();
    Forwarding::build(&scheme, network, |_| false, 1).unwrap()
}

#[test]
fn two_planes_need_the_virtual_channels_of_one() {
    let dragonfly = || Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(2), ..Dragonfly::default() });
    let slim_fly = || Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() });
    let hyperx = || Topology::HyperX(HyperX { hosts_per_switch: Some(1), ..HyperX::default() });
    let cases = [
        ("valiant", slim_fly()),
        ("valiant", hyperx()),
        ("ugal-l", slim_fly()),
        ("ugal-l", dragonfly()),
        ("ugal-g", dragonfly()),
        ("par", dragonfly()),
        (
            "k-shortest",
            Topology::Jellyfish(Jellyfish {
                switches: 20,
                degree: 5,
                hosts_per_switch: 2,
                ..Jellyfish::default()
            }),
        ),
        ("dimension-order", Topology::Torus(Torus::default())),
    ];
    for (scheme, topology) in cases {
        let plane = build(topology);
        let planes = twice(&plane);
        let needed = |network: &Network| {
            let forwarding = paths(scheme, network);
            let rule = Forwarding::vc_rule([&forwarding].into_iter());
            let least = forwarding.vcs_without_cycle(network, rule);
            (rule == VcRule::Datelines, least, forwarding.vcs_needed(network, rule))
        };
        assert_eq!(needed(&planes), needed(&plane), "{scheme} on {}", plane.name());
    }
}

#[test]
fn intermediate_switches_are_in_the_plane() {
    let dragonfly = Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(2), ..Dragonfly::default() });
    let slim_fly = Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() });
    for (scheme, plane) in [("valiant-group", build(dragonfly)), ("valiant", build(slim_fly))] {
        let planes = twice(&plane);
        let (forwarding, alone) = (paths(scheme, &planes), paths(scheme, &plane));
        for src in [0, 7, plane.hosts(), plane.hosts() + 7] {
            let dst = src + 11;
            let (mut random, mut same) = (Pcg64Mcg::seed_from_u64(5), Pcg64Mcg::seed_from_u64(5));
            let TagSpace::Via { via, from, to } = forwarding.tags(src, dst) else { unreachable!() };
            let of_plane = (src % plane.hosts(), dst % plane.hosts());
            let TagSpace::Via { via: one, from: first, to: last } = alone.tags(of_plane.0, of_plane.1) else {
                unreachable!()
            };
            for _ in 0..200 {
                let drawn = via.draw(from, to, &mut random).unwrap();
                let switch = forwarding.table().edge_switch(drawn);
                assert_eq!(planes.component(switch), planes.component(src));
                let expected = alone.table().edge_switch(one.draw(first, last, &mut same).unwrap());
                let number = (switch - planes.hosts()) % plane.switches();
                assert_eq!(number, expected - plane.hosts(), "{}", plane.name());
            }
        }
    }
}
