//! Flowcut Switching at the first switch and at every switch: exact moments, the way of the acknowledgements, order.

mod common;

use common::*;
use netloom_fabric::flow_control::pfc::Pfc;
use netloom_fabric::{Fabric, FlowControl};
use netloom_record::Records;
use netloom_routing::granularity::flowcut::{Flowcut, Stops, Timestamps};
use netloom_routing::{Granularity, preset};
use netloom_sim::{Cut, Degrade, Fault, Loss, SimConfig, Simulation};
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

/// A balanced Dragonfly with so many hosts per switch.
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

#[test]
fn acknowledgements_take_the_way_of_the_data_in_reverse() {
    let networks = [
        fat_tree(4),
        leaf_spine(3, 4, 2),
        dragonfly(2),
        build(Topology::HyperX(HyperX {
            dimensions: 2,
            switches_per_dimension: vec![3],
            hosts_per_switch: Some(2),
            ..HyperX::default()
        })),
    ];
    for network in networks {
        for seed in 1..4 {
            let plan = permutation(200_000, &network, seed);
            let records = run(network.clone(), SimConfig { seed, ..silent("flowcut") }, plan);
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
        }
    }
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
            let flowcut = Flowcut { threshold: 1.5, stops, timestamps, ..Flowcut::default() };
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

#[test]
fn a_stopped_class_stops_the_flows_beside_it_too() {
    // Host 0 has two flows, of which one is alone in its rack; the other shares the leaf's only uplink.
    let network = leaf_spine(2, 1, 3);
    let message = |src, dst, bytes| (src, Message::new(dst, Bytes(bytes), Time::ZERO));
    let list = [message(0, 3, 4_000_000), message(0, 1, 1_000_000), message(2, 4, 4_000_000)];
    let neighbour = |stops| {
        let flowcut = Flowcut { threshold: 1.3, stops, ..Flowcut::default() };
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
            config.routing.entries = Some(entries);
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
            let mut config = with("flowcut-ingress", Flowcut { threshold: 1.2, ..Flowcut::default() });
            config.routing.selector = preset::find("valiant").unwrap().routing().selector;
            let records =
                run(network.clone(), SimConfig { seed, ..config }, permutation(400_000, &network, seed));
            let early: u64 = records.flows.iter().map(|flow| flow.ooo_packets).sum();
            let acks = records.totals.control;
            assert_eq!((early, acks.sent), (0, acks.delivered), "{}", network.name());
            assert!(records.totals.decisions["valiant"].deviated > 0);
        }
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
    (config, places, selectors, any::<bool>(), prop::option::of(1..30u32), 5..200u64).prop_map(
        |(
            (threshold, alpha, trend_threshold, more, short, credit),
            place,
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
                flowcut.stops = if of_class { Stops::Class } else { Stops::Flow };
                flowcut.credit = if of_class { 0 } else { credit };
            }
            let mut config = with(place, flowcut);
            if place != "flowcut-nic" {
                config.routing.selector = preset::find(selector).unwrap().routing().selector;
                config.routing.entries = entries;
            }
            config
        },
    )
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
        Fault::Degrade(Degrade { share: Some(share), fraction, from, ..Degrade::default() })
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
    fn losses_hang_nothing(
        network in networks(),
        pattern in patterns(),
        scheme in schemes(),
        probability in 0.0001..0.05f64,
        cut in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut faults = vec![Fault::Loss(Loss { share: Some(0.5), probability, ..Loss::default() })];
        if cut {
            let (from, until) = (Time::from_us(5), Some(Time::from_us(60)));
            faults.push(Fault::Cut(Cut { links: Some(1), from, until, ..Cut::default() }));
        }
        let mut config = SimConfig { faults, seed, ..scheme };
        config.transport.options.rto_min = Time::from_us(50);
        config.transport.options.rto_initial = Time::from_us(100);
        let plan = plan(pattern, &network, seed);
        let records = Simulation::new(network, config, plan).unwrap().run(1).unwrap().records;
        prop_assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    }
}
