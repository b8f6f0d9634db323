//! What must hold where packets go over an intermediate switch.

mod common;

use common::*;
use netloom_routing::Granularity;
use netloom_routing::granularity::flowlet::Flowlet;
use netloom_sim::Simulation;
use netloom_topology::{Dragonfly, HyperX, Network, SlimFly, Topology};
use netloom_units::Time;

fn networks() -> [Network; 3] {
    let dragonfly = Dragonfly { hosts_per_switch: Some(2), ..Dragonfly::default() };
    let hyperx = HyperX {
        dimensions: 2,
        switches_per_dimension: vec![4, 3],
        hosts_per_switch: Some(2),
        ..Default::default()
    };
    let slim_fly = SlimFly { q: Some(5), hosts_per_switch: Some(1), ..SlimFly::default() };
    [Topology::SlimFly(slim_fly), Topology::HyperX(hyperx), Topology::Dragonfly(dragonfly)].map(build)
}

#[test]
fn everything_arrives_alike_on_any_number_of_threads() {
    for network in networks() {
        let presets: &[&str] = if network.name().starts_with("Dragonfly") {
            &["valiant", "valiant-group"]
        } else {
            &["valiant"]
        };
        let granularities = [
            Granularity::Flow(Default::default()),
            Granularity::Packet(Default::default()),
            Granularity::Flowlet(Flowlet { gap: Time::from_ns(200), age_bit: false }),
        ];
        for (preset, granularity) in
            presets.iter().flat_map(|preset| granularities.clone().map(|granularity| (preset, granularity)))
        {
            let mut config = scheme(preset);
            config.routing.granularity = granularity;
            let simulate = || {
                Simulation::new(network.clone(), config.clone(), permutation(20_000, &network, 1)).unwrap()
            };
            let one = simulate().run(1).unwrap().records;
            assert!(one.flows.iter().all(|flow| flow.fct.is_some()), "an unfinished flow");
            let count = &one.totals.decisions["valiant"];
            assert!(count.non_default > 0 && count.non_default <= count.taken, "{count:?}");
            if matches!(config.routing.granularity, Granularity::Flow(_)) {
                assert!(one.flows.iter().all(|flow| flow.path_changes == 0));
            }
            let reference = simulate().run_reference().unwrap().records;
            assert_eq!(fingerprint(&one), fingerprint(&reference));
            assert_eq!(fingerprint(&one), fingerprint(&simulate().run(3).unwrap().records));
        }
    }
}

#[test]
fn a_trace_goes_over_the_intermediate_switch_that_it_names() {
    let [network, ..] = networks();
    let simulation =
        Simulation::new(network.clone(), scheme("valiant"), permutation(1, &network, 1)).unwrap();
    for dst in 1..network.hosts() {
        let trace = simulation.trace(0, dst, 0, 0);
        let reason = &trace.hops[0].reason;
        let via = reason.split("intermediate switch ").nth(1).unwrap_or_else(|| panic!("{reason}"));
        let via: u32 = via.split(',').next().unwrap().parse().unwrap();
        let switches: Vec<_> = trace.hops.iter().map(|hop| hop.switch - network.hosts()).collect();
        assert!(switches[1..switches.len() - 1].contains(&via), "{via}: {switches:?}");
        for hop in &trace.hops {
            assert!(hop.candidates.iter().any(|&(port, _)| port == hop.chosen), "{hop:?}");
        }
    }
}

#[test]
fn trees_are_refused_with_a_way_out() {
    let network = fat_tree(4);
    let error = Simulation::new(network.clone(), scheme("valiant"), permutation(1, &network, 1)).unwrap_err();
    assert!(error.to_string().contains("the preset \"random-nca\""), "{error}");
}
