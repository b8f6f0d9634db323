//! Fabrics that lose packets: congestion controls reach their textbook steady states, and no loss costs more than it must.

mod common;

use common::*;
use netloom_fabric::{Ecn, Mark};
use netloom_record::Records;
use netloom_sim::{ChannelName, Measure, SimConfig};
use netloom_topology::{Crossbar, LeafSpine, Network, Topology};
use netloom_transport::preset;
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

const LINE: f64 = 10e9;
const PACKET: f64 = 1500.0;

/// Hosts at 10 Gb/s around one switch; all but the last send to the last for ever.
fn dumbbell(senders: u32) -> (Network, Plan) {
    let rate = Rate::from_gbps(10);
    let network = build(Topology::Crossbar(Crossbar { hosts: senders + 1, rate, ..Crossbar::default() }));
    let message = |src| (src, Message::new(senders, Bytes(10 << 30), Time(0)));
    let plan = Plan::of_messages(senders + 1, (0..senders).map(message));
    (network, plan)
}

fn transport(name: &str, buffer: u64, mark_at: Option<u64>) -> SimConfig {
    let mut config = SimConfig { transport: preset::find(name).unwrap().transport(), ..scheme("ecmp") };
    config.fabric.options.buffer = Some(Bytes(buffer));
    config.fabric.options.ecn = mark_at.map(|bytes| Ecn {
        kmin: Bytes(bytes),
        kmax: Bytes(bytes),
        pmax: 1.0,
        mark: Default::default(),
    });
    config
}

fn until(config: SimConfig, warm_up: Time, until: Time) -> SimConfig {
    SimConfig { measure: Measure { warm_up, until: Some(until), ..Measure::default() }, ..config }
}

/// Share of the line that delivered packets took, headers included, after the first 10 ms of 40.
fn goodput(senders: u32, config: SimConfig) -> f64 {
    let (network, plan) = dumbbell(senders);
    let records = run(network, until(config, Time::from_ms(10), Time::from_ms(40)), plan);
    let payload: u64 = records.flows.iter().map(|flow| flow.delivered_after_warm_up).sum();
    payload as f64 * 8.0 / 30e-3 / LINE
}

#[test]
fn long_dctcp_flows_fill_a_port() {
    // Payload is 97.3% of the line at most.
    for senders in [2, 8, 32] {
        for mark_at in [Some(97_500), None] {
            let share = goodput(senders, transport("dctcp", 200_000, mark_at));
            assert!(share > 0.9, "{senders} flows, marks at {mark_at:?}: {share}");
        }
    }
}

#[test]
fn long_newreno_and_cubic_flows_fill_a_port() {
    for name in ["tcp", "cubic"] {
        for senders in [2, 8, 32] {
            let share = goodput(senders, transport(name, 200_000, None));
            assert!(share > 0.9, "{senders} flows of {name}: {share}");
        }
    }
}

/// One flow from a fast host over one link of 10 Gb/s, four links of so much delay each; the records of 20 to 120 ms.
fn bottleneck(config: SimConfig, latency: Time) -> Records {
    let network = build(Topology::LeafSpine(LeafSpine {
        leaves: 2,
        spines: 1,
        hosts_per_leaf: 1,
        host_rate: Some(Rate::from_gbps(100)),
        spine_rate: Some(Rate::from_gbps(10)),
        latency,
        ..LeafSpine::default()
    }));
    let (from, to) = (network.node_name(2), network.node_name(4));
    let mut config = until(config, Time::from_ms(20), Time::from_ms(120));
    config.measure.sample = Some(Time::from_us(10));
    config.measure.channels = vec![ChannelName { name: "bottleneck".into(), from, to, parallel: 0 }];
    let message = Message::new(1, Bytes(10 << 30), Time(0));
    run(network, config, Plan::of_messages(2, [(0, message)]))
}

/// What the path of [`bottleneck`] holds without queues, in bytes.
fn pipe(latency: Time) -> f64 {
    let serialisation = 2.0 * PACKET * 8.0 / LINE + 2.0 * PACKET * 8.0 / 100e9;
    ((latency * 8).as_secs_f64() + serialisation) * LINE / 8.0
}

/// Mean queue after the first 20 ms.
fn mean_queue(records: &Records) -> f64 {
    let samples: Vec<u64> = records
        .samples
        .to_vec()
        .unwrap()
        .iter()
        .filter(|sample| sample.time >= Time::from_ms(20))
        .map(|sample| sample.queue)
        .collect();
    samples.iter().sum::<u64>() as f64 / samples.len() as f64
}

#[test]
fn newrenos_window_is_three_quarters_of_its_peak_on_average() {
    let buffer = 200_000.0;
    let latency = Time::from_us(1);
    let records = bottleneck(transport("tcp", 200_000, None), latency);
    // The sawtooth runs between half of what pipe and buffer hold, and all of it.
    let pipe = pipe(latency);
    let mean = mean_queue(&records) + pipe;
    let expected = 0.75 * (buffer + pipe);
    assert!((mean / expected - 1.0).abs() < 0.05, "{mean} against {expected}");
    assert_eq!(records.flows[0].timeouts, 0);
}

/// RFC 9438, section 4.3: where round trips are short, a sawtooth between seven tenths of the peak and the peak.
#[test]
fn cubics_window_is_seventeen_twentieths_of_its_peak_on_average() {
    let latency = Time::from_us(1);
    let records = bottleneck(transport("cubic", 200_000, None), latency);
    let pipe = pipe(latency);
    let mean = mean_queue(&records) + pipe;
    let expected = 0.85 * (200_000.0 + pipe);
    assert!((mean / expected - 1.0).abs() < 0.05, "{mean} against {expected}");
    assert_eq!(records.flows[0].timeouts, 0);
}

#[test]
fn newreno_fills_three_quarters_of_a_pipe_without_buffer() {
    let latency = Time::from_us(20);
    let pipe = pipe(latency);
    let buffer = 12.0 * PACKET;
    let records = bottleneck(transport("tcp", buffer as u64, None), latency);
    // The window grows evenly from half of its peak to the peak; beyond the pipe it only fills the buffer.
    let peak = pipe + buffer;
    let below = (pipe - peak / 2.0) * (pipe + peak / 2.0) / 2.0;
    let expected = (below + (peak - pipe) * pipe) / (peak / 2.0) / pipe;
    let share = records.flows[0].delivered_after_warm_up as f64 / 1460.0 * PACKET * 8.0 / 100e-3 / LINE;
    assert!((share / expected - 1.0).abs() < 0.05, "{share} against {expected}");
}

/// α² (1 − α/4) = (2 W* + 1) / (W* + 1)², with W* the window in packets at which marks begin (Alizadeh et al., SIGCOMM'10, section 3.3).
fn alpha(star: f64) -> f64 {
    let right = (2.0 * star + 1.0) / (star + 1.0).powi(2);
    let steps = (0..10_000).map(|step| f64::from(step) / 10_000.0);
    steps.into_iter().find(|alpha| alpha * alpha * (1.0 - alpha / 4.0) >= right).unwrap()
}

#[test]
fn dctcps_marks_tend_to_the_fixed_point_of_alpha() {
    for threshold in [30.0, 65.0, 130.0] {
        let mut config = transport("dctcp", 2_000_000, Some((threshold * PACKET) as u64));
        // The analysis marks what arrives: what a window's packets find, they learn a round trip later, the queue included.
        if let Some(ecn) = &mut config.fabric.options.ecn {
            ecn.mark = Mark::Arrival;
        }
        let latency = Time::from_us(1);
        let flow = &bottleneck(config, latency).flows[0];
        let expected = alpha(threshold + pipe(latency) / PACKET);
        let share = flow.ecn_marks as f64 / flow.packets as f64;
        assert!((share / expected - 1.0).abs() < 0.2, "{threshold}: {share} against {expected}");
    }
}

#[test]
fn an_incast_into_a_small_buffer_costs_a_few_round_trips_and_at_most_the_least_timeout() {
    let network = crossbar(9);
    let mut config = scheme("ecmp");
    config.fabric.options.buffer = Some(Bytes(80_000));
    let message = |src| (src, Message::new(0, Bytes(256 << 10), Time(0)));
    let records = run(network, config.clone(), Plan::of_messages(9, (1..9).map(message)));
    let drops: u64 = records.channels.iter().map(|channel| channel.drops).sum();
    let again: u64 = records.flows.iter().map(|flow| flow.retransmissions).sum();
    // Nothing is sent again that arrived: repetitions repair drops, and are dropped in turn.
    assert_eq!(drops, again);
    let slow = records.flows.iter().filter(|flow| fct(flow) > config.transport.options.rto_min).count();
    assert!(slow <= 2, "{slow} flows");
    assert!(records.flows.iter().all(|flow| fct(flow) < config.transport.options.rto_min * 2));
}

#[test]
fn a_sprayed_run_repeats_little_of_what_is_only_late() {
    let network = fat_tree(8);
    let mut config = scheme("spray");
    config.fabric.options.buffer = Some(Bytes(200_000));
    let records = run(network.clone(), config, permutation(1 << 20, &network, 1));
    let drops: u64 = records.channels.iter().map(|channel| channel.drops).sum();
    let again: u64 = records.flows.iter().map(|flow| flow.retransmissions).sum();
    let early: u64 = records.flows.iter().map(|flow| flow.ooo_packets).sum();
    assert!(early > 10_000, "{early}");
    assert!(again - drops < 32_768 / 50, "{again} against {drops}");
}
