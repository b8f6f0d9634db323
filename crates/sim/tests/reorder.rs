//! What reordering costs NICs, and reorder buffers ahead of the transport.

mod common;

use common::*;
use netloom_fabric::flow_control::pfc::Pfc;
use netloom_fabric::{Fabric, FabricOptions, FlowControl};
use netloom_record::{Records, ReorderingCount};
use netloom_routing::preset;
use netloom_sim::{Degrade, Fault, SimConfig, SimError, Simulation};
use netloom_topology::Network;
use netloom_transport::reliability::selective_repeat::SelectiveRepeat;
use netloom_transport::reorder::buffer::Buffer;
use netloom_transport::reorder::flowcells::Flowcells;
use netloom_transport::{Congestion, Reliability, Reorder};
use netloom_units::{Bytes, Time};
use netloom_workload::{AllToAll, Pattern, Permutation};
use proptest::prelude::*;

fn go_back_n() -> Reliability {
    Reliability::GoBackN(Default::default())
}

fn buffer(size: u64, timeout: Time) -> Reorder {
    Reorder::Buffer(Buffer { size: Bytes(size), timeout })
}

/// Slower links, so that paths differ in delay.
fn slow() -> Fault {
    Fault::Degrade(Degrade { link_fraction: Some(0.3), rate_factor: 0.5, ..Degrade::default() })
}

/// A permutation, sprayed over a lossless leaf-spine.
fn sprayed(reliability: Reliability, reorder: Reorder) -> Records {
    let network = leaf_spine(4, 4, 4);
    let mut sim = SimConfig { faults: vec![slow()], seed: 3, ..scheme("left") };
    sim.fabric.flow_control = FlowControl::Pfc(Pfc::default());
    sim.transport.reliability = reliability;
    sim.transport.options.reorder = reorder;
    sim.transport.options.rto_min = Time::from_us(100);
    sim.transport.options.rto_initial = Time::from_us(500);
    let plan = permutation(1_000_000, &network, 1);
    let records = run(network, sim, plan);
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    records
}

fn last(records: &Records) -> Time {
    records.flows.iter().map(fct).max().unwrap()
}

#[test]
fn a_go_back_n_nic_pays_for_reordering_unless_it_has_a_buffer() {
    let bare = sprayed(go_back_n(), Reorder::default());
    let cost = bare.totals.reordering;
    assert!(cost.nacks > 100 && cost.refused > 1000, "{cost:?}");
    assert_eq!((cost.buffer_bytes_peak, cost.resequencing_packets_peak), (0, 0));
    let resent: u64 = bare.flows.iter().map(|flow| flow.retransmissions).sum();
    // What is sent again has been refused, or had come and comes again.
    assert_eq!(resent, cost.refused + cost.duplicates);

    let left = sprayed(go_back_n(), buffer(1 << 20, Time::from_ms(100)));
    let cost = left.totals.reordering;
    assert_eq!((cost.nacks, cost.refused, cost.duplicates, cost.overflows, cost.timeouts), (0, 0, 0, 0, 0));
    assert!(cost.buffer_bytes_peak > 4160 && cost.buffer_bytes_mean > 0.0, "{cost:?}");
    assert!(left.flows.iter().all(|flow| flow.ooo_packets == 0 && flow.retransmissions == 0));
    assert!(last(&left) * 2 < last(&bare), "{} against {}", last(&left), last(&bare));

    // Where the fabric is lossy and losses are guessed too early, packets come twice, early ones too, and none is refused.
    let mut guessed = SimConfig { seed: 3, faults: vec![slow()], ..scheme("left") };
    guessed.transport.reliability =
        Reliability::SelectiveRepeat(SelectiveRepeat { reorder_threshold: 1, rack: false, sack: true });
    guessed.fabric.options.buffer = Some(Bytes(1 << 20));
    let network = leaf_spine(4, 4, 4);
    let plan = permutation(1_000_000, &network, 1);
    let cost = run(network, guessed, plan).totals.reordering;
    assert!(cost.duplicates > 100, "{cost:?}");
    assert_eq!((cost.nacks, cost.refused), (0, 0));

    // An IRN NIC takes the same packets and keeps them in the transport.
    let irn = sprayed(Reliability::SelectiveRepeat(Default::default()), Reorder::default());
    let cost = irn.totals.reordering;
    assert!(cost.resequencing_packets_peak > 1 && cost.resequencing_packets_mean > 0.0, "{cost:?}");
    assert_eq!((cost.nacks, cost.refused, cost.buffer_bytes_peak), (0, 0, 0));
}

#[test]
fn a_buffer_that_overflows_or_times_out_behaves_like_the_nic_without_it() {
    let tiny = sprayed(go_back_n(), buffer(3 * 4160, Time::from_ms(100))).totals.reordering;
    assert!(tiny.overflows > 0 && tiny.nacks > 0 && tiny.refused > 0, "{tiny:?}");
    assert!(tiny.buffer_bytes_peak <= 3 * 4160);
    let hasty = sprayed(go_back_n(), buffer(1 << 20, Time(1))).totals.reordering;
    assert!(hasty.timeouts > 0 && hasty.nacks > 0 && hasty.overflows == 0, "{hasty:?}");
    // Room for nothing is no buffer at all.
    let none = sprayed(go_back_n(), buffer(1, Time::from_ms(100)));
    let bare = sprayed(go_back_n(), Reorder::default());
    let but_overflows = ReorderingCount { overflows: 0, ..none.totals.reordering };
    assert_eq!((but_overflows, &none.flows), (bare.totals.reordering, &bare.flows));
}

#[test]
fn prestos_receiver_hides_the_reordering_of_flowcells() {
    let run_with = |reorder: Reorder| {
        let network = leaf_spine(4, 4, 4);
        let mut sim = SimConfig { faults: vec![slow()], seed: 3, ..scheme("presto") };
        sim.transport.options.reorder = reorder;
        let plan = permutation(4_000_000, &network, 1);
        run(network, sim, plan)
    };
    let bare = run_with(Reorder::default());
    assert!(bare.flows.iter().map(|flow| flow.ooo_packets).sum::<u64>() > 100);
    let patient = run_with(Reorder::Flowcells(Flowcells { alpha: 100_000, initial: Time::from_ms(1000) }));
    assert!(patient.flows.iter().all(|flow| flow.ooo_packets == 0));
    assert_eq!(patient.totals.reordering.timeouts, 0);
    assert!(patient.totals.reordering.buffer_bytes_peak > 0);
    let hasty = run_with(Reorder::Flowcells(Flowcells { alpha: 1, initial: Time(1) }));
    assert!(hasty.totals.reordering.timeouts > 0);
    assert!(hasty.flows.iter().any(|flow| flow.ooo_packets > 0));
}

#[test]
fn flowcells_are_put_in_order_only_where_labels_number_them() {
    let network = leaf_spine(2, 2, 1);
    for (name, subflows) in [("ecmp", 1), ("spray-paths", 1), ("presto", 2)] {
        let mut sim = scheme(name);
        sim.transport.options.reorder = Reorder::Flowcells(Flowcells::default());
        sim.transport.options.subflows = subflows;
        let error = Simulation::new(network.clone(), sim, permutation(1, &network, 1)).unwrap_err();
        let SimError::Transport(error) = error else { panic!("{name}: {error}") };
        assert_eq!(error.field, "reorder");
    }
    let mut transport = netloom_transport::Transport::default();
    transport.options.reorder = buffer(0, Time(1));
    assert_eq!(transport.check().unwrap_err().field, "reorder.size");
}

fn networks() -> impl Strategy<Value = Network> {
    prop_oneof![
        (2..5u32, 2..5u32, 1..4u32).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        Just(fat_tree(4)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn everything_arrives_in_order_where_there_is_room_and_time(
        network in networks(),
        (size, all_to_all) in (1..300_000u64, any::<bool>()),
        name in prop_oneof![Just("left"), Just("spray-paths"), Just("presto"), Just("letflow"), Just("adaptive")],
        reorder in prop_oneof![
            (1..300_000u64, 1..300_000u64).prop_map(|(size, timeout)| buffer(size, Time::from_ns(timeout))),
            Just(buffer(1 << 30, Time::from_ms(500))),
            (1..5u32, 1..100_000u64).prop_map(|(alpha, initial)| {
                Reorder::Flowcells(Flowcells { alpha, initial: Time::from_ns(initial) })
            }),
        ],
        (gbn, lossy, ack_every) in (any::<bool>(), any::<bool>(), 1..4u32),
        slow in prop::option::of((0.0..0.5f64, 0.05..1.0f64)),
        (seed, threads) in (any::<u64>(), 2..5usize),
    ) {
        prop_assume!(name == "presto" || !matches!(reorder, Reorder::Flowcells(_)));
        let pattern = match all_to_all {
            true => Pattern::AllToAll(AllToAll { size: Bytes(size / 8 + 1).into(), window: 2, ..AllToAll::default() }),
            false => Pattern::Permutation(Permutation { size: Bytes(size).into(), ..Permutation::default() }),
        };
        let mut sim = SimConfig { routing: preset::find(name).unwrap().routing(), seed, ..SimConfig::default() };
        if gbn {
            sim.transport.reliability = go_back_n();
            sim.transport.congestion = Congestion::NewReno(Default::default());
        }
        sim.transport.options.ack_every = ack_every;
        sim.transport.options.reorder = reorder.clone();
        let buffer = Some(Bytes(60_000)).filter(|_| lossy);
        sim.fabric = Fabric { options: FabricOptions { buffer, ..FabricOptions::default() }, ..Fabric::default() };
        if !lossy {
            sim.fabric.flow_control = FlowControl::Pfc(Pfc { buffer: Bytes(300_000), ..Pfc::default() });
        }
        let degrade = |(share, fraction)| Fault::Degrade(Degrade { link_fraction: Some(share), rate_factor: fraction, ..Degrade::default() });
        sim.faults = slow.map(degrade).into_iter().collect();
        let make = || Simulation::new(network.clone(), sim.clone(), plan(pattern.clone(), &network, seed)).unwrap();
        let records = make().run(1).unwrap().records;
        let cost = records.totals.reordering;
        let is_ordered = !lossy && cost.overflows == 0 && cost.timeouts == 0;
        for flow in &records.flows {
            prop_assert!(flow.fct.is_some());
            prop_assert!(!is_ordered || matches!(reorder, Reorder::Flowcells(_)) || flow.ooo_packets == 0);
        }
        prop_assert_eq!(difference(&records, &make().run(threads).unwrap().records), None);
        prop_assert_eq!(difference(&records, &make().run_reference().unwrap().records), None);
    }
}
