//! CONGA: flowlets leave paths that are congested here or far away.

mod common;

use common::*;
use netloom_fabric::flow_control::pfc::Pfc;
use netloom_fabric::{Fabric, FabricOptions, FlowControl};
use netloom_record::Records;
use netloom_routing::granularity::flowcut::Flowcut;
use netloom_routing::granularity::flowlet::Flowlet;
use netloom_routing::selector::conga::{Conga, Counts, Feedback, Order};
use netloom_routing::selector::estimator::Estimator;
use netloom_routing::{Granularity, Placement, Selector};
use netloom_sim::{Degrade, Fault, SimConfig, SimError, Simulation};
use netloom_topology::{Network, SlimFly, Topology};
use netloom_units::{Bytes, Time};
use netloom_workload::{AllToAll, Message, Pattern, Permutation, Plan};
use proptest::prelude::*;

const US: u64 = 1_000_000;

fn conga(gap: Time, config: Conga) -> SimConfig {
    let mut sim = SimConfig { transport: unlimited(), ..scheme("conga") };
    sim.routing.granularity = Granularity::Flowlet(Flowlet { gap, age_bit: false });
    sim.routing.selector = Selector::Conga(config);
    sim
}

/// Packets on the channel between two nodes.
fn packets(records: &Records, from: &str, to: &str) -> u64 {
    let channel = records.channels.iter().find(|channel| &*channel.from == from && &*channel.to == to);
    channel.unwrap().packets
}

/// A busy link holds 200 Gb/s × 10 us / 0.5 = 500,000 B, an eighth is 62,500. Sixteen packets of 4160 B, the last of which leaves the leaf before
/// 4 us, are more than that until the first period ends at 10 us, and less then.
#[test]
fn a_port_counts_as_used_by_an_eighth_until_its_estimator_has_forgotten_that() {
    let network = leaf_spine(2, 2, 2);
    let estimator = Estimator { period: Time::from_us(10), discount: 0.5 };
    let meets = |start: u64, seed| {
        let sim = SimConfig {
            seed,
            ..conga(Time::from_us(500), Conga { estimator: estimator.clone(), ..Conga::default() })
        };
        let flows =
            [(0, Message::new(2, Bytes(16 * 4096), Time(0))), (1, Message::new(3, Bytes(4096), Time(start)))];
        let records = run(network.clone(), sim, Plan::of_messages(4, flows));
        matches!(packets(&records, "s0", "s2"), 0 | 17)
    };
    // A packet reaches the leaf 1.17 us after it has left its host.
    assert!((0..24).all(|seed| !meets(8 * US, seed)), "at 9.17 us the other path is better");
    let met = (0..24).filter(|&seed| meets(9 * US, seed)).count();
    assert!((4..20).contains(&met), "at 10.17 us both are alike: {met}");
}

/// A flow keeps the way into a leaf busy; single packets from another leaf come the same way at most once per label, as their ACKs tell.
fn avoids_what_is_congested_far_away(network: &Network, long: (u32, u32), short: (u32, u32), labels: u64) {
    let leaf = network.node_name(network.edge_switch(long.1));
    let (bytes, frames) = (150_000_000, 8);
    let mut most = 0;
    for seed in 0..12 {
        let sim = SimConfig { seed, ..conga(Time::from_us(500), Conga::default()) };
        let frame = |n: u64| Message {
            stream: true,
            ..Message::new(short.1, Bytes(4096), Time((200 + n * 700) * US))
        };
        let flows = (0..frames).map(|n| (short.0, frame(n)));
        let flows = flows.chain([(long.0, Message::new(long.1, Bytes(bytes), Time(0)))]);
        let records = run(network.clone(), sim, Plan::of_messages(network.hosts(), flows));
        let down = records.channels.iter().filter(|channel| *channel.to == *leaf && &*channel.tier != "host");
        let used = down.map(|channel| channel.packets).max().unwrap();
        let ours = used - bytes.div_ceil(4096);
        assert!(ours <= labels, "seed {seed}: {ours} packets went where it is congested");
        most = most.max(ours);
        let decisions = &records.totals.decisions["conga"];
        assert_eq!(decisions.taken, frames + 1);
    }
    assert!(most > 0, "nobody ever met");
}

#[test]
fn a_leaf_learns_from_acks_which_spine_is_congested_towards_another() {
    avoids_what_is_congested_far_away(&leaf_spine(3, 2, 2), (4, 2), (0, 3), 1);
}

#[test]
fn so_it_does_on_three_levels_where_two_labels_lead_over_one_link() {
    // From pods 0 and 2 to one leaf of pod 1.
    avoids_what_is_congested_far_away(&fat_tree(4), (0, 4), (8, 5), 2);
}

#[test]
fn data_of_the_other_way_tell_without_any_ack() {
    // Reliability "none" has no ACKs: what host 3 sends to host 0 by itself must tell.
    let network = leaf_spine(3, 2, 2);
    let met = |answers: bool| {
        let frame =
            |dst: u32, at: u64| Message { stream: true, ..Message::new(dst, Bytes(4096), Time(at * US)) };
        let met = (0..12).map(|seed| {
            let mut sim = SimConfig { seed, ..conga(Time::from_us(500), Conga::default()) };
            sim.transport.reliability = netloom_transport::Reliability::None(Default::default());
            sim.fabric.flow_control = FlowControl::Pfc(Pfc::default());
            let asks = (0..8).map(|n| (0, frame(3, 200 + n * 700)));
            let tells = (0..8).filter(|_| answers).map(|n| (3, frame(0, 500 + n * 700)));
            let long = [(4, Message::new(2, Bytes(150_000_000), Time(0)))];
            let records = run(network.clone(), sim, Plan::of_messages(6, asks.chain(tells).chain(long)));
            let busy = if packets(&records, "s3", "s1") > 8 { "s3" } else { "s4" };
            packets(&records, "s0", busy)
        });
        met.collect::<Vec<_>>()
    };
    assert!(met(true).iter().all(|&met| met <= 1));
    assert!(met(false).contains(&8), "who hears nothing stays");
}

#[test]
fn labels_tell_all_paths_between_two_leaves_apart_or_it_is_refused() {
    // Of 10 bits, one label says that there is none.
    for (spines, fits) in [(1023, true), (1024, false)] {
        let network = leaf_spine(2, spines, 1);
        let plan = permutation(1, &network, 1);
        let config = conga(Time::from_us(500), Conga { capped: false, ..Conga::default() });
        match Simulation::new(network, config, plan) {
            Ok(_) => assert!(fits),
            Err(SimError::Routing(error)) => {
                assert!(!fits && error.field == "selector", "{error}");
                assert!(error.expected.starts_with("another one where more than 1023 paths"), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn it_needs_leaf_switches_first_switches_and_runs_that_labels_can_keep_to() {
    let network = build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }));
    let plan = permutation(1, &network, 1);
    let SimError::Routing(error) = Simulation::new(network, scheme("conga"), plan).unwrap_err() else {
        panic!("another error")
    };
    assert_eq!(
        (error.field.as_ref(), error.expected.as_str()),
        ("selector", "a tree topology for \"conga\"")
    );
    let mut routing = scheme("conga").routing;
    for placement in [Placement::Nic, Placement::Switch] {
        routing.placement = placement;
        assert!(routing.check().is_err());
    }
    routing.placement = Placement::Ingress;
    routing.granularity = Granularity::Flowcut(Flowcut::default());
    assert_eq!(routing.check().unwrap_err().field, "granularity");
    for granularity in ["flow", "packet"] {
        routing.granularity = match granularity {
            "flow" => Granularity::Flow(Default::default()),
            _ => Granularity::Packet(Default::default()),
        };
        assert_eq!(routing.check(), Ok(()), "{granularity}");
    }
}

fn networks() -> impl Strategy<Value = Network> {
    prop_oneof![
        (2..5u32, 2..5u32, 1..4u32).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        Just(fat_tree(4)),
    ]
}

fn granularities() -> impl Strategy<Value = Granularity> {
    prop_oneof![
        Just(Granularity::Flow(Default::default())),
        Just(Granularity::Packet(Default::default())),
        (0..3000u64)
            .prop_map(|gap| Granularity::Flowlet(Flowlet { gap: Time::from_ns(gap), age_bit: false })),
    ]
}

/// What the code of others does otherwise than the paper.
fn variants() -> impl Strategy<Value = Conga> {
    (any::<[bool; 5]>(), 1..6u32).prop_map(|([routed, capped, data, random, keeps], candidates)| Conga {
        counts: if routed { Counts::Routed } else { Counts::Sent },
        capped,
        feedback: if data { Feedback::Data } else { Feedback::All },
        order: if random { Order::Random } else { Order::ChangedFirst },
        candidates: Some(candidates).filter(|&candidates| candidates < 5),
        keeps,
        ..Conga::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn everything_arrives_and_threads_and_executors_agree(
        network in networks(),
        size in 1..300_000u64,
        all_to_all in any::<bool>(),
        granularity in granularities(),
        (period, discount, bits, ageing) in (1..20_000u64, 0.05..1.0f64, 1..5u8, 1..100u64),
        (lossy, slow) in (any::<bool>(), prop::option::of((0.0..0.5f64, 0.05..1.0f64))),
        entries in prop::option::of(1..20u32),
        variant in variants(),
        (seed, threads) in (any::<u64>(), 2..5usize),
    ) {
        let pattern = match all_to_all {
            true => Pattern::AllToAll(AllToAll { size: Bytes(size / 8 + 1).into(), window: 2, ..AllToAll::default() }),
            false => Pattern::Permutation(Permutation { size: Bytes(size).into(), ..Permutation::default() }),
        };
        let estimator = Estimator { period: Time::from_ns(period), discount };
        let mut sim = conga(Time::ZERO, Conga { estimator, bits, ageing: Time::from_us(ageing), ..variant });
        sim.transport = Default::default();
        sim.seed = seed;
        sim.routing.max_flow_entries = entries.filter(|_| !matches!(granularity, Granularity::Packet(_)));
        sim.routing.granularity = granularity;
        let buffer = Some(Bytes(60_000)).filter(|_| lossy);
        sim.fabric = Fabric { options: FabricOptions { buffer, ..FabricOptions::default() }, ..Fabric::default() };
        if !lossy {
            sim.fabric.flow_control = FlowControl::Pfc(Pfc { buffer: Bytes(300_000), ..Pfc::default() });
        }
        let degrade = |(share, fraction)| Fault::Degrade(Degrade { link_fraction: Some(share), rate_factor: fraction, ..Degrade::default() });
        sim.faults = slow.map(degrade).into_iter().collect();
        let make = || Simulation::new(network.clone(), sim.clone(), plan(pattern.clone(), &network, seed)).unwrap();
        let records = make().run(1).unwrap().records;
        for flow in &records.flows {
            prop_assert!(flow.fct.is_some());
            prop_assert!(flow.ooo_packets == 0 || !matches!(sim.routing.granularity, Granularity::Flow(_)) || lossy || entries.is_some());
        }
        prop_assert_eq!(difference(&records, &make().run(threads).unwrap().records), None);
        prop_assert_eq!(difference(&records, &make().run_reference().unwrap().records), None);
    }
}
