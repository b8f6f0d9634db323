//! Extreme parameters are refused; they neither panic nor allocate.

use std::path::Path;

use netloom_topology::{
    BuildContext, Complete, Crossbar, Dragonfly, FatTree, HyperX, Jellyfish, KaryNTree, LeafSpine, Lifting,
    Mesh, NetworkError, OrthogonalFatTree, PolarFly, SlimFly, Topology, Torus, Xgft, Xpander,
};
use netloom_units::Rate;
use proptest::prelude::*;

/// Small enough to build in no time, or absurd.
fn count() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0, 1, 2, 3, 4, 5, 1 << 31, u32::MAX - 1, u32::MAX])
}

fn maybe() -> impl Strategy<Value = Option<u32>> {
    prop::option::of(count())
}

fn specs() -> impl Strategy<Value = Topology> {
    let n = || (count(), count(), count(), count());
    let o = || (maybe(), maybe(), maybe(), maybe());
    let taper =
        || prop::option::of(prop::sample::select(vec![0.0, -1.0, 0.5, 2.0, 1e300, f64::NAN, f64::INFINITY]));
    let list = || prop::collection::vec(count(), 0..4);
    prop_oneof![
        (o(), o(), taper(), taper()).prop_map(
            |((k, about_hosts, pods, tors_per_pod), rest, tor_taper, agg_taper)| {
                let (aggs_per_pod, cores, hosts_per_tor, _) = rest;
                // A few million hosts are neither absurd nor quick.
                let about_hosts = about_hosts
                    .filter(|_| pods.is_none() && hosts_per_tor.is_none() && tors_per_pod.is_none());
                let counts =
                    FatTree { pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor, ..Default::default() };
                Topology::FatTree(FatTree { k, about_hosts, tor_taper, agg_taper, ..counts })
            }
        ),
        n().prop_map(|(leaves, spines, hosts_per_leaf, bundle)| {
            Topology::LeafSpine(LeafSpine { leaves, spines, hosts_per_leaf, bundle, ..Default::default() })
        }),
        (count(), count(), maybe()).prop_map(|(k, n, about_hosts)| Topology::KaryNTree(KaryNTree {
            k,
            n,
            about_hosts,
            ..Default::default()
        })),
        (list(), list(), list()).prop_map(|(m, w, bundle)| Topology::Xgft(Xgft {
            m,
            w,
            bundle,
            ..Default::default()
        })),
        count().prop_map(|hosts| Topology::Crossbar(Crossbar { hosts, ..Default::default() })),
        (maybe(), maybe(), maybe()).prop_map(|(q, about_hosts, hosts_per_switch)| {
            Topology::SlimFly(SlimFly { q, about_hosts, hosts_per_switch, ..Default::default() })
        }),
        (maybe(), maybe(), maybe()).prop_map(|(q, about_hosts, hosts_per_switch)| {
            Topology::PolarFly(PolarFly { q, about_hosts, hosts_per_switch, ..Default::default() })
        }),
        (maybe(), maybe(), maybe()).prop_map(|(k, about_hosts, hosts_per_leaf)| {
            Topology::OrthogonalFatTree(OrthogonalFatTree {
                k,
                about_hosts,
                hosts_per_leaf,
                ..Default::default()
            })
        }),
        (count(), list(), maybe(), any::<[bool; 2]>(), count()).prop_map(
            |(dimensions, switches_per_dimension, about_hosts, [wraps, twisted], hosts_per_switch)| {
                let wrap = vec![wraps];
                let sizes = Torus { dimensions, switches_per_dimension, about_hosts, ..Default::default() };
                Topology::Torus(Torus { wrap, twisted, hosts_per_switch, ..sizes })
            }
        ),
        (count(), list(), maybe(), count()).prop_map(
            |(dimensions, switches_per_dimension, about_hosts, hosts_per_switch)| {
                let sizes = Mesh { dimensions, switches_per_dimension, about_hosts, ..Default::default() };
                Topology::Mesh(Mesh { hosts_per_switch, ..sizes })
            }
        ),
        (o(), maybe(), maybe()).prop_map(|(sizes, links_per_group_pair, about_hosts)| {
            let (hosts_per_switch, switches_per_group, global_links_per_switch, groups) = sizes;
            // With so few links the largest one has up to a hundred million hosts.
            let about_hosts = about_hosts.filter(|_| global_links_per_switch.is_none());
            Topology::Dragonfly(Dragonfly {
                hosts_per_switch,
                switches_per_group,
                global_links_per_switch,
                groups,
                links_per_group_pair,
                about_hosts,
                ..Default::default()
            })
        }),
        (count(), list(), list(), maybe(), maybe()).prop_map(
            |(dimensions, sizes, links, hosts_per_switch, about_hosts)| {
                Topology::HyperX(HyperX {
                    dimensions,
                    switches_per_dimension: sizes,
                    parallel_links: links,
                    hosts_per_switch,
                    about_hosts,
                    ..Default::default()
                })
            }
        ),
        (count(), maybe(), maybe()).prop_map(|(switches, hosts_per_switch, about_hosts)| {
            Topology::Complete(Complete { switches, hosts_per_switch, about_hosts, ..Default::default() })
        }),
        (count(), count(), count(), maybe()).prop_map(|(switches, degree, hosts_per_switch, about_hosts)| {
            Topology::Jellyfish(Jellyfish {
                switches,
                degree,
                hosts_per_switch,
                about_hosts,
                ..Default::default()
            })
        }),
        (count(), maybe(), maybe(), maybe(), any::<bool>()).prop_map(
            |(degree, lift, hosts_per_switch, about_hosts, two)| {
                let method = if two { Lifting::RepeatedTwo } else { Lifting::Single };
                Topology::Xpander(Xpander {
                    degree,
                    lift,
                    hosts_per_switch,
                    about_hosts,
                    method,
                    ..Default::default()
                })
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn every_parameter_gives_a_network_or_a_reason(spec in specs()) {
        match spec.build(&BuildContext { seed: 1, base_dir: Path::new(".") }) {
            Ok(network) => prop_assert!(network.hosts() > 1 && network.links().len() as u32 >= network.hosts()),
            Err(
                NetworkError::Parameter(_)
                | NetworkError::TooLarge { .. }
                | NetworkError::TooManyPorts(_)
                | NetworkError::TooFewHosts(_),
            ) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn links_without_rate_are_refused() {
    let spec = Topology::LeafSpine(LeafSpine { spine_rate: Some(Rate(0)), ..Default::default() });
    let error = spec.build(&BuildContext { seed: 1, base_dir: Path::new(".") }).unwrap_err();
    assert_eq!(error, NetworkError::ZeroRate(128));
}
