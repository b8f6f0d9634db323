//! Flowcut Switching at the first switch and at every switch: exact moments, the way of the acknowledgements, order.

mod common;

use std::collections::BTreeMap;

use common::*;
use netloom_fabric::flow_control::pfc::Pfc;
use netloom_fabric::{Fabric, FlowControl};
use netloom_record::Records;
use netloom_routing::granularity::flowcut::{Flowcut, Measures, Stops, Timestamps};
use netloom_routing::selector::ugal::{Decision, Ratio};
use netloom_routing::{Granularity, Placement, Selector, preset};
use netloom_sim::{Cut, Degrade, Fault, Loss, SimConfig, SimError, Simulation};
use netloom_topology::{Dragonfly, HyperX, Network, SlimFly, Topology};
use netloom_transport::{Congestion, Reliability, Transport};
use netloom_units::{Bytes, Time};
use netloom_workload::{AllToAll, Incast, Message, Pattern, Permutation, Plan};
use proptest::prelude::*;

const US: u64 = 1_000_000;

/// A full packet at 200 Gb/s.
const PACKET: u64 = 166_400;

/// An acknowledgement of 20 B.
const ACK: u64 = 800;

/// A balanced Dragonfly with this many hosts per switch.
fn dragonfly(hosts: u32) -> Network {
    build(Topology::Dragonfly(Dragonfly {
        hosts_per_switch: Some(hosts),
        switches_per_group: Some(2 * hosts),
        global_links_per_switch: Some(hosts),
        ..Dragonfly::default()
    }))
}

/// Whole packets of one open flow from host 0 to another host, handed over at these times.
fn frames(network: &Network, dst: u32, starts: &[u64]) -> Plan {
    let frame = |&start: &u64| {
        let message = Message::new(dst, Bytes(4096), Time(start));
        (0, Message { stream: true, ..message })
    };
    Plan::of_messages(network.hosts(), starts.iter().map(frame))
}

fn flowcuts(records: &Records) -> u64 {
    records.totals.decisions["least-loaded"].taken
}

fn with(name: &str, flowcut: Flowcut) -> SimConfig {
    let mut config = scheme(name);
    config.routing.granularity = Granularity::Flowcut(flowcut);
    config
}

/// A fabric that loses nothing, whose hosts send no ACKs.
fn silent(name: &str) -> SimConfig {
    let mut config = scheme(name);
    config.fabric.flow_control = FlowControl::Credits(Default::default());
    let reliability = Reliability::None(Default::default());
    config.transport =
        Transport { reliability, congestion: Congestion::None(Default::default()), ..unlimited() };
    config
}

#[test]
fn a_flowcut_ends_when_the_acknowledgement_of_its_last_packet_reaches_the_switch() {
    // Two leaves and two spines. A packet reaches the last switch two links after the first, and its acknowledgement is
    // back after two more.
    let network = leaf_spine(2, 2, 1);
    let round_trip = 2 * (PACKET + US) + 2 * (ACK + US);
    for name in ["flowcut", "flowcut-ingress"] {
        for (gap, expected) in [(round_trip - 1, 1), (round_trip + 1, 2), (PACKET, 1), (2 * round_trip, 2)] {
            let plan = frames(&network, 1, &[0, gap]);
            let records = run(network.clone(), SimConfig { transport: unlimited(), ..scheme(name) }, plan);
            assert_eq!(flowcuts(&records), expected, "{name} {gap}");
            assert_eq!(records.flows[0].ooo_packets, 0);
        }
    }
}

#[test]
fn every_packet_in_flight_keeps_the_flowcut_open() {
    let network = leaf_spine(2, 2, 1);
    let round_trip = 2 * (PACKET + US) + 2 * (ACK + US);
    // Each packet but the last leaves before the one before it is acknowledged.
    let starts: Vec<u64> = (0..20).map(|n| n * (round_trip - 1)).chain([20 * round_trip]).collect();
    let records = run(
        network.clone(),
        SimConfig { transport: unlimited(), ..scheme("flowcut-ingress") },
        frames(&network, 1, &starts),
    );
    assert_eq!(flowcuts(&records), 2);
}

#[test]
fn a_switch_behind_the_first_reroutes_as_soon_as_nothing_is_in_flight_behind_it() {
    // Host 0 to another pod of the fat tree: its edge and aggregation switches have two ports each. The way back from the last switch is
    // three links to the aggregation switch, four to the edge switch.
    let network = fat_tree(4);
    let behind_edge = 4 * (PACKET + US) + 4 * (ACK + US);
    let behind_aggregation = 3 * (PACKET + US) + 3 * (ACK + US);
    let count = |gap| {
        let plan = frames(&network, 15, &[0, gap]);
        flowcuts(&run(network.clone(), SimConfig { transport: unlimited(), ..scheme("flowcut") }, plan))
    };
    assert_eq!(count(behind_aggregation - 1), 2);
    assert_eq!(count(behind_aggregation + 1), 3);
    assert_eq!(count(behind_edge - 1), 3);
    assert_eq!(count(behind_edge + 1), 4);
}

/// Host 0 to the farthest corner of a cube, under UGAL, whose ways are minimal ones while nothing waits anywhere: the first switch
/// decides on the way, the second one on one of two ports.
#[test]
fn a_switch_behind_the_first_chooses_another_port_of_the_same_way() {
    let cube = HyperX {
        dimensions: 3,
        switches_per_dimension: vec![2],
        hosts_per_switch: Some(1),
        ..HyperX::default()
    };
    let network = build(Topology::HyperX(cube));
    let [behind_first, behind_second] = [3, 2].map(|hops| hops * (PACKET + US) + hops * (ACK + US));
    let count = |gap| {
        let config = over_others("ugal-l", Placement::Switch, Flowcut::default());
        let plan = frames(&network, 7, &[0, gap]);
        let records = run(network.clone(), SimConfig { transport: unlimited(), ..config }, plan);
        records.totals.decisions["ugal"].taken
    };
    assert_eq!(count(behind_second - 1), 2);
    assert_eq!(count(behind_second + 1), 3);
    assert_eq!(count(behind_first - 1), 3);
    assert_eq!(count(behind_first + 1), 4);
}

/// The selector of a preset; UGAL's without a bias for minimal ways, of which it weighs this many.
fn eager(preset: &str, ways: u32) -> Selector {
    let mut selector = preset::find(preset).unwrap().routing().selector;
    if let Selector::Ugal(ugal) = &mut selector {
        ugal.decision = Decision::Ratio(Ratio { ratio: 1, bias: Bytes(0) });
        (ugal.minimal, ugal.non_minimal) = (ways, ways);
    }
    selector
}

/// A scheme that sends flowcuts over intermediate switches.
fn over_others(selector: &str, placement: Placement, flowcut: Flowcut) -> SimConfig {
    let mut config = scheme(selector);
    config.routing.placement = placement;
    config.routing.granularity = Granularity::Flowcut(flowcut);
    config
}

#[test]
fn acknowledgements_take_the_way_of_the_data_in_reverse() {
    let hyperx = HyperX {
        dimensions: 2,
        switches_per_dimension: vec![3],
        hosts_per_switch: Some(2),
        ..HyperX::default()
    };
    let slim_fly = SlimFly { q: Some(5), hosts_per_switch: Some(2), ..SlimFly::default() };
    let (hyperx, slim_fly) = (build(Topology::HyperX(hyperx)), build(Topology::SlimFly(slim_fly)));
    // Ways over intermediate switches come by some switches twice; under "par" also by the first one.
    let cases = [
        (fat_tree(4), vec!["adaptive"]),
        (leaf_spine(3, 4, 2), vec!["adaptive"]),
        (dragonfly(2), vec!["adaptive", "valiant", "valiant-group", "ugal-l", "ugal-g", "par"]),
        (hyperx, vec!["adaptive", "valiant", "ugal-l"]),
        (slim_fly, vec!["adaptive", "valiant", "ugal-l"]),
    ];
    let cases = cases.into_iter().flat_map(|(network, selectors)| {
        selectors.into_iter().map(move |selector| (network.clone(), selector))
    });
    let mut non_default = BTreeMap::new();
    for (network, selector) in cases {
        for seed in 1..4 {
            let plan = permutation(200_000, &network, seed);
            let mut config = SimConfig { seed, ..silent("flowcut") };
            config.routing.granularity =
                Granularity::Flowcut(Flowcut { threshold: 1.1, alpha: 1.0, ..Flowcut::default() });
            config.routing.selector = eager(selector, 1);
            let records = run(network.clone(), config, plan);
            let between_switches = |channel: u32| {
                !network.is_host(network.channel(channel).from)
                    && !network.is_host(network.channel(channel).to)
            };
            let mut crossed = 0;
            for there in records.channels.iter().filter(|record| between_switches(record.channel)) {
                let back = &records.channels[(there.channel ^ 1) as usize];
                // As many acknowledgements go one way as data go the other: the packets of both directions are as many, and the
                // bytes say how many of them are data.
                assert_eq!(there.packets, back.packets, "{} - {}", there.from, there.to);
                crossed += there.packets;
            }
            let acks = records.totals.control;
            assert_eq!(acks.sent, acks.delivered);
            assert!(crossed > 0);
            *non_default.entry(selector).or_insert(0) +=
                records.totals.decisions.values().map(|count| count.non_default).sum::<u64>();
        }
    }
    assert!(non_default.len() == 6 && non_default.values().all(|&count| count > 0), "{non_default:?}");
}

#[test]
fn the_first_switch_stops_a_congested_source_until_its_path_is_empty() {
    // Two hosts of a leaf send to one host each over one spine: their link is shared, its queue grows until a drain.
    let network = leaf_spine(2, 1, 2);
    let message = |src, dst| (src, Message::new(dst, Bytes(4_000_000), Time::ZERO));
    let plan = || Plan::of_messages(4, [message(0, 2), message(1, 3)]);
    let transport = Transport::default();
    for stops in [Stops::Flow, Stops::Class] {
        for timestamps in [Timestamps::Exact, Timestamps::Nanoseconds] {
            let flowcut = Flowcut { threshold: 1.5, pauses: stops, timestamps, ..Flowcut::default() };
            let config = SimConfig { transport: transport.clone(), ..with("flowcut-ingress", flowcut) };
            let records = run(network.clone(), config, plan());
            let drains: u32 = records.flows.iter().map(|flow| flow.drains).sum();
            assert!(drains >= 2, "{drains}");
            for flow in &records.flows {
                assert!(flow.drains == 0 || flow.drain_time > Time::ZERO);
                assert!(flow.drain_time < fct(flow) && flow.ooo_packets == 0);
            }
        }
    }
    let calm = Flowcut { threshold: 1e6, ..Flowcut::default() };
    let records = run(network.clone(), with("flowcut-ingress", calm), plan());
    assert!(records.flows.iter().all(|flow| (flow.drains, flow.drain_time) == (0, Time::ZERO)));
}

/// Flows of several pods meet at the last links of their ways. What waits there is little compared with the whole way, and much compared
/// with the rest of it.
#[test]
fn where_every_switch_measures_the_rest_of_the_way_counts() {
    let network = fat_tree(4);
    let message = |src, dst| (src, Message::new(dst, Bytes(4_000_000), Time::ZERO));
    let drains = |measures, flows: &[(u32, Message)]| {
        let flowcut = Flowcut { measured_at: measures, ..Flowcut::default() };
        let plan = Plan::of_messages(16, flows.iter().cloned());
        let records = run(network.clone(), with("flowcut", flowcut), plan);
        assert!(records.flows.iter().all(|flow| flow.fct.is_some() && flow.ooo_packets == 0));
        records.flows.iter().map(|flow| flow.drains).sum::<u32>()
    };
    let (two, four) =
        ([message(4, 0), message(8, 1)], [message(4, 0), message(6, 1), message(8, 0), message(12, 1)]);
    assert_eq!(drains(Measures::First, &two), 0);
    assert_eq!(drains(Measures::Every, &two), 2);
    assert!(drains(Measures::Every, &four) > 2 * drains(Measures::First, &four));
}

/// How far packets come ahead of others, and how long flows were stopped, if they resume with this many in flight.
fn resumed(max_ood: u32, seed: u64) -> (u32, Time) {
    let network = leaf_spine(3, 4, 4);
    let flowcut = Flowcut { threshold: 1.5, max_ood, ..Flowcut::default() };
    let config = SimConfig { seed, ..with("flowcut-ingress", flowcut) };
    let records = run(network.clone(), config, permutation(4_000_000, &network, seed));
    let most = records.flows.iter().map(|flow| flow.max_ood).max();
    (most.unwrap(), records.flows.iter().map(|flow| flow.drain_time).sum())
}

#[test]
fn resuming_early_waits_less_and_bounds_the_distance() {
    for seed in 1..4 {
        let [strict, early, earlier] = [0, 12, 100].map(|most| resumed(most, seed));
        assert!(strict.0 == 0 && early.0 <= 12 && (1..=100).contains(&earlier.0), "{early:?} {earlier:?}");
        assert!(earlier.1 < early.1 && early.1 < strict.1, "{strict:?} {early:?} {earlier:?}");
    }
}

#[test]
fn a_stopped_class_stops_the_flows_beside_it_too() {
    // Host 0 has two flows, of which one is alone in its rack; the other shares the leaf's only uplink.
    let network = leaf_spine(2, 1, 3);
    let message = |src, dst, bytes| (src, Message::new(dst, Bytes(bytes), Time::ZERO));
    let list = [message(0, 3, 4_000_000), message(0, 1, 1_000_000), message(2, 4, 4_000_000)];
    let neighbour = |stops| {
        let flowcut = Flowcut { threshold: 1.3, pauses: stops, ..Flowcut::default() };
        let plan = Plan::of_messages(6, list);
        let records = run(network.clone(), with("flowcut-ingress", flowcut), plan);
        fct(records.flows.iter().find(|flow| flow.dst == 1).unwrap())
    };
    assert!(neighbour(Stops::Class) > neighbour(Stops::Flow));
}

#[test]
fn credit_lets_a_stopped_flow_go_on_for_a_while() {
    let network = leaf_spine(2, 1, 2);
    let message = |src, dst| (src, Message::new(dst, Bytes(4_000_000), Time::ZERO));
    let stopped = |credit| {
        let flowcut = Flowcut { threshold: 1.5, credit, ..Flowcut::default() };
        let plan = Plan::of_messages(4, [message(0, 2), message(1, 3)]);
        let records = run(network.clone(), with("flowcut-ingress", flowcut), plan);
        assert!(records.flows.iter().all(|flow| flow.ooo_packets == 0 && flow.fct.is_some()));
        records.flows.iter().map(|flow| flow.drain_time.0).sum::<u64>()
    };
    assert_ne!(stopped(0), stopped(5));
}

#[test]
fn a_full_table_keeps_order_and_its_bound() {
    let network = fat_tree(4);
    for name in ["flowcut", "flowcut-ingress"] {
        for entries in [1, 3, 20] {
            let mut config = with(name, Flowcut { threshold: 1.5, ..Flowcut::default() });
            config.routing.max_flow_entries = Some(entries);
            let pattern = Pattern::AllToAll(AllToAll { size: Bytes(40_000).into(), ..AllToAll::default() });
            let records = run(network.clone(), config, plan(pattern, &network, 3));
            assert!(records.flows.iter().all(|flow| flow.fct.is_some() && flow.ooo_packets == 0));
            let count = records.totals.flowcut_entries.unwrap();
            assert!(count.peak <= u64::from(entries) && count.mean > 0.0, "{count:?}");
        }
    }
}

/// A way over an intermediate switch may lead through the destination's switch before it ends there: only then has a packet come so far.
#[test]
fn a_packet_that_passes_its_last_switch_on_the_way_is_still_in_flight() {
    let hyperx = HyperX {
        dimensions: 2,
        switches_per_dimension: vec![4],
        hosts_per_switch: Some(3),
        ..HyperX::default()
    };
    let slim_fly = SlimFly { q: Some(5), hosts_per_switch: Some(3), ..SlimFly::default() };
    for topology in [Topology::HyperX(hyperx), Topology::SlimFly(slim_fly)] {
        let network = build(topology);
        for seed in 1..4 {
            for placement in [Placement::Ingress, Placement::Switch] {
                let flowcut = Flowcut { threshold: 1.2, ..Flowcut::default() };
                let config = SimConfig { seed, ..over_others("valiant", placement, flowcut) };
                let records = run(network.clone(), config, permutation(400_000, &network, seed));
                let early: u64 = records.flows.iter().map(|flow| flow.ooo_packets).sum();
                let acks = records.totals.control;
                assert_eq!((early, acks.sent), (0, acks.delivered), "{} {placement:?}", network.name());
                assert!(records.totals.decisions["valiant"].non_default > 0);
            }
        }
    }
}

#[test]
fn acknowledgements_among_the_data_are_refused_where_they_might_wait_in_a_circle() {
    let error = |network: &Network, control_priority, flow_control| {
        let mut config = with("flowcut", Flowcut::default());
        config.fabric.options.control_priority = control_priority;
        config.fabric.flow_control = flow_control;
        Simulation::new(network.clone(), config, frames(network, 1, &[0]))
            .err()
            .map(|error| error.to_string())
    };
    let (lossy, pfc) = (FlowControl::Lossy(Default::default()), FlowControl::Pfc(Pfc::default()));
    let refused = error(&dragonfly(2), false, pfc.clone()).unwrap();
    assert!(refused.contains("placement: expected \"nic\""), "{refused}");
    for (network, control_priority, flow_control) in
        [(dragonfly(2), true, pfc.clone()), (dragonfly(2), false, lossy), (fat_tree(4), false, pfc)]
    {
        assert_eq!(error(&network, control_priority, flow_control), None);
    }
}

fn networks() -> impl Strategy<Value = Network> {
    prop_oneof![
        (2..5u32, 1..4u32, 1..4u32).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        Just(fat_tree(4)),
        Just(dragonfly(1)),
        Just(dragonfly(2)),
        Just(build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }))),
        Just(build(Topology::HyperX(HyperX {
            dimensions: 2,
            switches_per_dimension: vec![4],
            hosts_per_switch: Some(2),
            ..HyperX::default()
        }))),
    ]
}

fn patterns() -> impl Strategy<Value = Pattern> {
    let bytes = || (1..400_000u64).prop_map(Bytes);
    prop_oneof![
        bytes().prop_map(|size| Pattern::Permutation(Permutation {
            size: size.into(),
            ..Permutation::default()
        })),
        (bytes(), 1..4u32).prop_map(|(size, window)| Pattern::AllToAll(AllToAll {
            size: Bytes(size.0 / 8 + 1).into(),
            window,
            ..AllToAll::default()
        })),
        bytes().prop_map(|size| Pattern::Incast(Incast { size: size.into(), ..Incast::default() })),
    ]
}

fn schemes() -> impl Strategy<Value = SimConfig> {
    let config =
        (1.0..5.0f64, 0.03..1.0f64, prop::option::of(0.05..1.0f64), 0..60_000u64, any::<bool>(), 0..20u32);
    let places = prop_oneof![Just("flowcut"), Just("flowcut-ingress"), Just("flowcut-nic")];
    let selectors = prop::sample::select(vec!["adaptive", "spray", "drill", "spray-round-robin"]);
    (config, (places, any::<bool>()), selectors, any::<bool>(), prop::option::of(1..30u32), 5..200u64)
        .prop_map(
            |(
                (threshold, alpha, trend_threshold, more, short, credit),
                (place, every),
                selector,
                of_class,
                entries,
                timeout,
            )| {
                let mut flowcut = Flowcut {
                    threshold,
                    alpha,
                    trend_threshold,
                    min_remaining: Bytes(more),
                    drain_timeout: Time::from_us(timeout),
                    timestamps: if short { Timestamps::Nanoseconds } else { Timestamps::Exact },
                    ..Flowcut::default()
                };
                if place != "flowcut-nic" {
                    flowcut.pauses = if of_class { Stops::Class } else { Stops::Flow };
                    flowcut.credit = if of_class { 0 } else { credit };
                }
                if place == "flowcut" && every {
                    flowcut.measured_at = Measures::Every;
                }
                let mut config = with(place, flowcut);
                if place != "flowcut-nic" {
                    config.routing.selector = preset::find(selector).unwrap().routing().selector;
                    config.routing.max_flow_entries = entries;
                }
                config
            },
        )
}

/// Networks with intermediate switches.
fn wide_networks() -> impl Strategy<Value = Network> {
    let tapered = Dragonfly {
        hosts_per_switch: Some(3),
        switches_per_group: Some(4),
        groups: Some(3),
        links_per_group_pair: Some(4),
        latency: Time::from_ns(300),
        ..Dragonfly::default()
    };
    let hyperx = |dimensions, switches| HyperX {
        dimensions,
        switches_per_dimension: vec![switches],
        hosts_per_switch: Some(2),
        ..HyperX::default()
    };
    prop_oneof![
        Just(dragonfly(1)),
        Just(dragonfly(2)),
        Just(build(Topology::Dragonfly(tapered))),
        Just(build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }))),
        Just(build(Topology::HyperX(hyperx(2, 4)))),
        Just(build(Topology::HyperX(hyperx(3, 2)))),
    ]
}

fn selectors() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["valiant", "valiant-group", "ugal-l", "ugal-g", "par"])
}

/// The simulation; none if it is refused because PFC has one virtual channel only.
fn unless_one_channel_deadlocks(
    config: &SimConfig,
    made: Result<Simulation, SimError>,
) -> Option<Simulation> {
    match made {
        Err(SimError::MayDeadlock(_)) if matches!(config.fabric.flow_control, FlowControl::Pfc(_)) => None,
        made => Some(made.unwrap()),
    }
}

/// The same flowcuts over intermediate switches, as far as the network has such.
fn over_others_if_any(network: &Network, scheme: SimConfig, selector: &str, ways: u32) -> SimConfig {
    let selector = match selector {
        _ if network.is_tree() => return scheme,
        "par" | "ugal-g" if network.global_tier().is_none() => "ugal-l",
        "valiant-group" if network.global_tier().is_none() => "valiant",
        other => other,
    };
    let mut config = scheme;
    config.routing.selector = eager(selector, ways);
    if selector == "par" || config.routing.placement == Placement::Nic {
        config.routing.placement = Placement::Switch;
    }
    config
}

fn fabrics() -> impl Strategy<Value = Fabric> {
    let kinds = prop_oneof![
        Just(FlowControl::Lossy(Default::default())),
        Just(FlowControl::Pfc(Pfc { buffer: Bytes(300_000), ..Pfc::default() })),
        Just(FlowControl::Credits(Default::default())),
    ];
    kinds.prop_map(|flow_control| Fabric { flow_control, ..Fabric::default() })
}

fn degradations() -> impl Strategy<Value = Vec<Fault>> {
    let degrade = (0.0..0.5f64, 0.05..1.0f64, 0..50u64).prop_map(|(share, fraction, from)| {
        let from = Time::from_us(from);
        Fault::Degrade(Degrade {
            link_fraction: Some(share),
            rate_factor: fraction,
            from,
            ..Degrade::default()
        })
    });
    prop::collection::vec(degrade, 0..2)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn flowcuts_stay_in_order_wherever_they_are_switched(
        network in networks(),
        pattern in patterns(),
        scheme in schemes(),
        fabric in fabrics(),
        faults in degradations(),
        seed in any::<u64>(),
        threads in 2..5usize,
    ) {
        let config = SimConfig { fabric, faults, seed, ..scheme };
        let make = || Simulation::new(network.clone(), config.clone(), plan(pattern.clone(), &network, seed)).unwrap();
        let records = make().run(1).unwrap().records;
        for flow in &records.flows {
            prop_assert_eq!((flow.ooo_packets, flow.max_ood, flow.retransmissions), (0, 0, 0));
            prop_assert!(flow.fct.is_some());
        }
        prop_assert_eq!(difference(&records, &make().run(threads).unwrap().records), None);
        prop_assert_eq!(difference(&records, &make().run_reference().unwrap().records), None);
    }

    #[test]
    fn flowcuts_over_intermediate_switches_stay_in_order(
        network in wide_networks(),
        pattern in patterns(),
        scheme in schemes(),
        selector in selectors(),
        ways in 1..5u32,
        fabric in fabrics(),
        faults in degradations(),
        seed in any::<u64>(),
        threads in 2..5usize,
    ) {
        let scheme = over_others_if_any(&network, scheme, selector, ways);
        let config = SimConfig { fabric, faults, seed, ..scheme };
        let make = || Simulation::new(network.clone(), config.clone(), plan(pattern.clone(), &network, seed));
        let Some(first) = unless_one_channel_deadlocks(&config, make()) else { return Ok(()) };
        let records = first.run(1).unwrap().records;
        for flow in &records.flows {
            prop_assert_eq!((flow.ooo_packets, flow.max_ood, flow.retransmissions), (0, 0, 0));
            prop_assert!(flow.fct.is_some());
        }
        prop_assert_eq!(difference(&records, &make().unwrap().run(threads).unwrap().records), None);
        prop_assert_eq!(difference(&records, &make().unwrap().run_reference().unwrap().records), None);
    }

    #[test]
    fn resuming_early_keeps_its_bound(
        network in prop_oneof![networks(), wide_networks()],
        pattern in patterns(),
        scheme in schemes(),
        selector in prop::option::of(selectors()),
        most in 1..20u32,
        fabric in fabrics(),
        faults in degradations(),
        seed in any::<u64>(),
        threads in 2..5usize,
    ) {
        let scheme = match selector.filter(|&selector| selector != "par") {
            Some(selector) => over_others_if_any(&network, scheme, selector, 1),
            None => scheme,
        };
        let mut config = SimConfig { fabric, faults, seed, ..scheme };
        prop_assume!(config.routing.placement != Placement::Nic);
        (config.routing.placement, config.routing.max_flow_entries) = (Placement::Ingress, None);
        if let Granularity::Flowcut(flowcut) = &mut config.routing.granularity {
            (flowcut.max_ood, flowcut.measured_at) = (most, Measures::First);
        }
        let make = || Simulation::new(network.clone(), config.clone(), plan(pattern.clone(), &network, seed));
        let Some(first) = unless_one_channel_deadlocks(&config, make()) else { return Ok(()) };
        let records = first.run(1).unwrap().records;
        for flow in &records.flows {
            prop_assert!(flow.max_ood <= most && flow.fct.is_some(), "{flow:?}");
        }
        prop_assert_eq!(difference(&records, &make().unwrap().run(threads).unwrap().records), None);
    }

    #[test]
    fn losses_hang_nothing(
        network in networks(),
        pattern in patterns(),
        scheme in schemes(),
        selector in prop::option::of(selectors()),
        probability in 0.0001..0.05f64,
        cut in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut faults = vec![Fault::Loss(Loss { link_fraction: Some(0.5), probability, ..Loss::default() })];
        if cut {
            let (from, until) = (Time::from_us(5), Some(Time::from_us(60)));
            faults.push(Fault::Cut(Cut { links: Some(1), from, until, ..Cut::default() }));
        }
        let scheme = match selector {
            Some(selector) => over_others_if_any(&network, scheme, selector, 1),
            None => scheme,
        };
        let mut config = SimConfig { faults, seed, ..scheme };
        config.transport.options.rto_min = Time::from_us(50);
        config.transport.options.rto_initial = Time::from_us(100);
        let plan = plan(pattern, &network, seed);
        let records = Simulation::new(network, config, plan).unwrap().run(1).unwrap().records;
        prop_assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    }
}
