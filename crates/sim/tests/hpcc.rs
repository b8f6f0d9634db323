//! HPCC: windows that go by what switches write on packets.

mod common;

use common::*;
use netloom_fabric::FlowControl;
use netloom_fabric::flow_control::pfc_shared::PfcShared;
use netloom_record::{Records, Window};
use netloom_sim::{Measure, SimConfig, Simulation};
use netloom_topology::{Crossbar, Network, Topology};
use netloom_transport::congestion::hpcc::Hpcc;
use netloom_transport::{Congestion, preset};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

/// On the wire: 1000 B of payload, 48 B of headers, 42 B of telemetry.
const PACKET: u64 = 1090;
/// 64 B and the telemetry.
const ACK: u64 = 106;

fn hpcc() -> SimConfig {
    let mut config = SimConfig { transport: preset::find("hpcc").unwrap().transport(), ..scheme("ecmp") };
    config.fabric.flow_control = FlowControl::PfcShared(PfcShared::default());
    config
}

fn star(hosts: u32) -> Network {
    build(Topology::Crossbar(Crossbar { hosts, rate: Rate::from_gbps(100), ..Crossbar::default() }))
}

/// This many flows of different age into one host, seen between two instants.
fn into_one(senders: u32, mut config: SimConfig, from: Time, until: Time) -> Records {
    config.measure = Measure {
        until: Some(until),
        sample: Some(Time::from_us(5)),
        windows: vec![Window { name: "late".into(), from, until }],
        ..Measure::default()
    };
    let message = |src| (src, Message::new(senders, Bytes(1 << 30), Time::from_us(50 * u64::from(src))));
    run(star(senders + 1), config, Plan::of_messages(senders + 1, (0..senders).map(message)))
}

/// Jain's fairness index.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (shares.len() as f64 * squares)
}

#[test]
fn flows_of_different_age_keep_their_link_near_eta_and_its_queue_near_empty() {
    for senders in [1, 2, 8, 16] {
        let (from, until) = (Time::from_ms(6), Time::from_ms(10));
        let records = into_one(senders, hpcc(), from, until);
        let shares: Vec<f64> =
            records.window_flows.to_vec().unwrap().iter().map(|row| row.bytes as f64).collect();
        let wire = shares.iter().sum::<f64>() * PACKET as f64 / 1000.0;
        let used = wire * 8.0 / (until - from).as_secs_f64() / 100e9;
        let samples = records.samples.to_vec().unwrap();
        let late = samples.iter().filter(|sample| sample.time >= from);
        let queue = late.map(|sample| sample.queue).max().unwrap();
        let fairness = jain(&shares);
        println!("{senders}: {used:.4} of the line, Jain {fairness:.4}, at most {queue} B waiting");
        assert!((used - 0.95).abs() < 0.01, "{senders}: {used}");
        // A flow may begin a packet as long as less than its window is under way, so that shares go by whole packets: of 45 that are under way, eight
        // flows have five to eight each for milliseconds. The bound for them was found so, not derived.
        assert!(fairness >= if senders < 8 { 0.95 } else { 0.85 }, "{senders}: {fairness}");
        // A full window holds 45 packets. While less than its window is under way a sender may begin a packet that ends beyond: half a packet on average.
        assert!(queue <= 4 * PACKET + u64::from(senders) * PACKET / 2, "{senders}: {queue}");
        assert_eq!((shares.len() as u32, records.totals.data.dropped), (senders, 0));
    }
}

/// With eta = 0.8 the same link is four fifths full.
#[test]
fn utilisation_follows_eta() {
    let mut config = hpcc();
    config.transport.congestion = Congestion::Hpcc(Hpcc { eta: 0.8, ..Hpcc::default() });
    let (from, until) = (Time::from_ms(6), Time::from_ms(10));
    let records = into_one(4, config, from, until);
    let bytes: u64 = records.window_flows.to_vec().unwrap().iter().map(|row| row.bytes).sum();
    let used = bytes as f64 * PACKET as f64 / 1000.0 * 8.0 / (until - from).as_secs_f64() / 100e9;
    assert!((used - 0.8).abs() < 0.01, "{used}");
}

/// Of two links on the way it is the fuller one that counts, wherever it is.
#[test]
fn the_fullest_link_of_the_way_holds_a_flow_back() {
    let network = leaf_spine(2, 1, 4);
    // Three flows over the one spine, two of them to one host; all links have one rate.
    let message = |src, dst| (src, Message::new(dst, Bytes(1 << 30), Time::ZERO));
    let (from, until) = (Time::from_ms(4), Time::from_ms(6));
    let mut config = hpcc();
    config.measure = Measure {
        until: Some(until),
        windows: vec![Window { name: "late".into(), from, until }],
        ..Measure::default()
    };
    let rate = network.channel(network.ports(0)[0]).rate.0 as f64;
    let messages = [message(0, 4), message(1, 5), message(2, 5)];
    let records = run(network, config, Plan::of_messages(8, messages));
    let used: f64 = records
        .window_flows
        .to_vec()
        .unwrap()
        .iter()
        .map(|row| row.bytes as f64 * 8.0 * PACKET as f64 / 1000.0)
        .sum();
    let used = used / (until - from).as_secs_f64() / rate;
    assert!((used - 0.95).abs() < 0.015, "{used}");
}

#[test]
fn telemetry_takes_its_bytes_on_every_wire() {
    let plan = || Plan::of_messages(2, [(0, Message::new(1, Bytes(3_000), Time::ZERO))]);
    let records = run(star(2), hpcc(), plan());
    // Three packets and their ACKs over two channels each.
    let bytes: u64 = records.channels.iter().map(|channel| channel.bytes).sum();
    assert_eq!(bytes, 2 * 3 * (PACKET + ACK));
    assert_eq!(fct(&records.flows[0]), records.flows[0].ideal_fct);
    // 1090 B at 100 Gb/s are 87.2 ns: three leave one after the other, the last crosses another link.
    let mut bare = hpcc();
    bare.transport.congestion = Congestion::Hpcc(Hpcc { telemetry: Bytes(0), ..Hpcc::default() });
    let without = run(star(2), bare, plan());
    assert_eq!(fct(&records.flows[0]) - fct(&without.flows[0]), Time(4 * 42 * 80));
}

/// A way that changes with every packet never says anything twice.
#[test]
fn schemes_that_scatter_packets_are_refused() {
    for name in ["spray", "spray-nic", "drill", "reps"] {
        let config = SimConfig { routing: scheme(name).routing, ..hpcc() };
        let network = leaf_spine(2, 2, 2);
        let plan = Plan::of_messages(4, [(0, Message::new(2, Bytes(1), Time::ZERO))]);
        let error = Simulation::new(network, config, plan).unwrap_err().to_string();
        assert!(error.starts_with("routing.granularity: expected one that keeps a flow's path"), "{error}");
    }
}

/// Go-back-N repairs what is lost, and telemetry of what never came is no hindrance.
#[test]
fn losses_are_repaired() {
    let mut config = hpcc();
    config.fabric.flow_control = FlowControl::Lossy(Default::default());
    config.fabric.options.buffer = Some(Bytes(20_000));
    let message = |src| (src, Message::new(8, Bytes(300_000), Time::ZERO));
    let records = run(star(9), config, Plan::of_messages(9, (0..8).map(message)));
    assert!(records.totals.data.dropped > 0);
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
}
