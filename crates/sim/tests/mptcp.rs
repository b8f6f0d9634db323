//! MPTCP: several subflows send a flow together, each on a path of its own.

mod common;

use common::*;
use netloom_fabric::Queue;
use netloom_fabric::queue::trimming::Trimming;
use netloom_record::Records;
use netloom_sim::{ChannelEnds, Cut, Degrade, Fault, Measure, SimConfig, SimError, Simulation};
use netloom_topology::{Crossbar, FatTree, LeafSpine, Network, SlimFly, Topology};
use netloom_transport::congestion::fixed_window::FixedWindow;
use netloom_transport::reliability::selective_repeat::SelectiveRepeat;
use netloom_transport::{Congestion, Reliability, Transport, preset};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Bernoulli, Message, Pattern, Permutation, Plan, Poisson, Traffic};

fn subflows(count: u32, mut transport: Transport) -> Transport {
    transport.options.subflows = count;
    transport
}

/// A host at each of two leaves, with a path over each spine.
fn two_paths() -> Network {
    let (rate, latency) = (Rate::from_gbps(10), Time::from_us(1));
    build(Topology::LeafSpine(LeafSpine {
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 1,
        rate,
        latency,
        ..LeafSpine::default()
    }))
}

/// A subflow per path.
fn on_both(transport: Transport) -> SimConfig {
    SimConfig { transport: subflows(2, transport), ..scheme("k-shortest") }
}

fn one_flow(network: Network, config: SimConfig, bytes: u64) -> Records {
    let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(bytes), Time(0)))]);
    run(network, config, plan)
}

#[test]
fn on_a_single_path_nothing_limits_subflows_together_fill_the_line() {
    for count in [1, 2, 3, 8, 64] {
        for bytes in [1, 4096, 4097, 1_000_000] {
            let config = SimConfig { transport: subflows(count, unlimited()), ..scheme("ecmp") };
            let network = build(Topology::Crossbar(Crossbar { hosts: 2, ..Crossbar::default() }));
            let records = one_flow(network, config, bytes);
            let [flow] = records.flows.as_slice() else { panic!("subflows are no flows") };
            assert_eq!((flow.fct, flow.delivered), (Some(flow.ideal_fct), bytes), "{count} subflows");
            assert_eq!((flow.packets, flow.ooo_packets), (bytes.div_ceil(4096), 0));
        }
    }
}

/// Each subflow sends a packet per round trip, the first at once and the second 3328 ns later. Full packets take 3328 ns at 10 Gb/s and 33,280 at a
/// tenth of it, ACKs 51.2.
///
/// ```text
///   fast path: 4 × (3328 + 1000) there, 4 × (51.2 + 1000) back    17,312 ns, a packet every 21,516.8 ns
///   slow path: 2 × (3328 + 1000) + 2 × (33,280 + 1000) there       77,216 ns
/// ```
///
/// If the first subflow has the fast path, it sends 0, 2, 3 and 4, of which 2 and 3 come before 1 and wait; 4 comes to the last link while 1 is on it,
/// and follows it. Otherwise the second sends 1, 2, 3 and 4, of which all but 4 come before 0.
#[test]
fn packets_of_the_fast_path_wait_in_the_reorder_buffer_for_those_of_the_slow_one() {
    let window = FixedWindow { bytes: Some(Bytes(4160)), ..FixedWindow::default() };
    let transport = Transport { congestion: Congestion::FixedWindow(window), ..Transport::default() };
    let channel = |from: &str, to: &str| ChannelEnds { from: from.into(), to: to.into(), parallel: 0 };
    let mut outcomes = ["s2", "s3"].map(|spine| {
        let mut config = on_both(transport.clone());
        let channels = vec![channel("s0", spine), channel(spine, "s1")];
        config.faults = vec![Fault::Degrade(Degrade { channels, rate_factor: 0.1, ..Degrade::default() })];
        let records = one_flow(two_paths(), config, 5 * 4096);
        let flow = &records.flows[0];
        assert_eq!((flow.delivered, flow.packets), (5 * 4096, 5));
        (fct(flow), flow.ooo_packets, flow.max_ood, flow.max_resequencing)
    });
    outcomes.sort();
    let packet = Time::from_ns(3328);
    let (there, every, slow) = (Time::from_ns(17_312), Time(21_516_800), Time::from_ns(77_216));
    assert_eq!(outcomes, [(packet + slow + packet, 2, 2, 2), (packet + every * 3 + there, 3, 3, 3)]);
}

/// Neither the network nor the routing says that one of two paths is dead.
fn with_a_dead_path(config: SimConfig) -> SimConfig {
    let cut =
        Cut { links: Some(1), from: Time::from_us(30), until: Some(Time::from_ms(400)), ..Cut::default() };
    SimConfig { faults: vec![Fault::Cut(cut)], ..config }
}

#[test]
fn the_other_subflows_carry_what_a_dead_path_had_under_way() {
    let bytes = 4_000_000;
    let config = with_a_dead_path(on_both(preset::find("mptcp").unwrap().transport()));
    let records = one_flow(two_paths(), config, bytes);
    let flow = &records.flows[0];
    // 4 MB take 3.3 ms at 10 Gb/s, and a timeout or two are of milliseconds.
    assert!(fct(flow) < Time::from_ms(20), "{:?}", flow.fct);
    assert!(flow.timeouts > 0 && flow.delivered == bytes);
}

/// Goodput of a permutation on the fat tree of 128 hosts in shares of the line, once windows have grown.
fn permutation_goodput(transport: Transport) -> f64 {
    let rate = Rate::from_gbps(10);
    let network = build(Topology::FatTree(FatTree { k: Some(8), rate: Some(rate), ..FatTree::default() }));
    let mut config = SimConfig { transport, ..scheme("ecmp") };
    config.fabric.options.buffer = Some(Bytes(100 * 1500));
    let (warm_up, until) = (Time::from_ms(10), Time::from_ms(25));
    config.measure = Measure { warm_up, until: Some(until), ..Measure::default() };
    let pattern = Pattern::Permutation(Permutation { size: Bytes(1 << 30).into(), ..Permutation::default() });
    let plan = plan(pattern, &network, 1);
    let records = run(network, config, plan);
    let bytes: u64 = records.flows.iter().map(|flow| flow.delivered_after_warm_up).sum();
    // Payload is 1460 of 1500 bytes.
    bytes as f64 * 8.0 / (until - warm_up).as_secs_f64() / 10e9 / 128.0 * (1500.0 / 1460.0)
}

/// Raiciu et al., SIGCOMM'11, Fig. 2: on a permutation a single path per flow gives half of the line, eight subflows about nine tenths.
#[test]
fn eight_subflows_fill_a_fat_tree_of_which_single_paths_use_half() {
    let mptcp = preset::find("mptcp").unwrap().transport();
    let single = permutation_goodput(subflows(1, mptcp.clone()));
    let tcp = permutation_goodput(preset::find("tcp").unwrap().transport());
    let eight = permutation_goodput(mptcp);
    // One linked subflow is NewReno.
    assert_eq!(single, tcp);
    assert!((0.4..0.6).contains(&single), "{single}");
    assert!(eight > 0.85, "{eight}");
}

#[test]
fn a_stream_goes_over_its_subflows_too() {
    let network = two_paths();
    let pattern = Pattern::Bernoulli(Bernoulli {
        load: 0.5,
        traffic: Traffic::Uniform,
        until: Time::from_us(500),
        ..Bernoulli::default()
    });
    let plan = plan(pattern, &network, 3);
    let records = run(network, on_both(preset::find("mptcp").unwrap().transport()), plan);
    assert_eq!(records.flows.len(), 2);
    for flow in &records.flows {
        assert!(flow.stream && flow.bytes > 100_000 && flow.delivered == flow.bytes, "{flow:?}");
    }
}

#[test]
fn more_messages_than_leave_bits_for_subflows_are_refused() {
    for (count, fits) in [(8, true), (64, false)] {
        let network = two_paths();
        let messages_per_host = Some(1 << 26);
        let pattern = Pattern::Poisson(Poisson { messages_per_host, ..Poisson::default() });
        let plan = plan(pattern, &network, 1);
        let transport = subflows(count, preset::find("mptcp").unwrap().transport());
        let config = SimConfig { transport, ..scheme("k-shortest") };
        match Simulation::new(network, config, plan) {
            Ok(_) => assert!(fits, "{count} subflows"),
            Err(SimError::Transport(error)) => assert!(!fits && error.field == "subflows", "{error}"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A lost ACK is made up for by those of later packets.
#[test]
fn without_losses_nothing_is_sent_twice() {
    let reliability =
        Reliability::SelectiveRepeat(SelectiveRepeat { reorder_threshold: 3, rack: false, sack: true });
    let transport = Transport { reliability, ..preset::find("mptcp").unwrap().transport() };
    let mut config = on_both(transport);
    config.fabric.options.buffer = Some(Bytes(100_000_000));
    let records = one_flow(two_paths(), config, 10_000_000);
    let flow = &records.flows[0];
    assert_eq!((flow.retransmissions, flow.timeouts, flow.packets), (0, 0, 10_000_000u64.div_ceil(1460)));
}

/// A header that comes back after other subflows' packets have brought what its subflow had under way: the subflow's sender must hear of both, or
/// it counts otherwise than its connection from then on. Queues of one packet and timers shorter than a round trip make many such.
#[test]
fn a_header_that_comes_back_late_tells_what_has_arrived_too() {
    let network =
        build(Topology::SlimFly(SlimFly { q: Some(3), hosts_per_switch: Some(2), ..SlimFly::default() }));
    for seed in 1..6 {
        let mut transport = subflows(5, unlimited());
        transport.options.mtu = Bytes(3771);
        (transport.options.rto_initial, transport.options.rto_min) = (Time::from_ns(1504), Time::from_ns(1));
        transport.reliability =
            Reliability::SelectiveRepeat(SelectiveRepeat { reorder_threshold: 1, rack: false, sack: true });
        let mut config = SimConfig { transport, seed, ..scheme("spray") };
        config.fabric.queue = Queue::Trimming(Trimming { control_weight: 1, ..Trimming::default() });
        let messages = (1..36).map(|src| (src, Message::new(0, Bytes(95_385), Time(0))));
        let records = run(network.clone(), config, Plan::of_messages(36, messages));
        assert!(records.flows.iter().all(|flow| flow.delivered == 95_385));
        assert!(records.flows.iter().any(|flow| flow.returned_to_sender > 0));
    }
}
