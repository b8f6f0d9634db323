//! PowerTCP in a network: its fixed point and how flows share.

mod common;

use std::collections::BTreeMap;

use common::*;
use netloom_fabric::FlowControl;
use netloom_fabric::flow_control::pfc_shared::PfcShared;
use netloom_record::{Records, Window};
use netloom_sim::{Measure, SimConfig, Simulation};
use netloom_topology::{Crossbar, Topology};
use netloom_transport::preset;
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

/// 1000 B of payload and 48 B of headers; telemetry takes 42 B more.
const PACKET: f64 = 1048.0;
/// 20 us there and back: with what packets take, some 252,000 B are a bandwidth-delay product, and one flow's β is a tenth.
const LATENCY: Time = Time::from_us(5);

fn config(name: &str) -> SimConfig {
    let mut config = SimConfig { transport: preset::find(name).unwrap().transport(), ..scheme("ecmp") };
    config.fabric.flow_control = FlowControl::PfcShared(PfcShared::default());
    config
}

const SAMPLE: Time = Time::from_us(1);

/// This many flows into one host, that begin one after the other, seen between two instants.
fn into_one(senders: u32, mut config: SimConfig, from: Time, until: Time) -> Records {
    config.measure = Measure {
        until: Some(until),
        sample: Some(SAMPLE),
        windows: vec![Window { name: "late".into(), from, until }],
        ..Measure::default()
    };
    let topology = Crossbar { hosts: senders + 1, rate: Rate::from_gbps(100), latency: LATENCY };
    let message = |src| (src, Message::new(senders, Bytes(1 << 30), Time::from_us(50 * u64::from(src))));
    run(
        build(Topology::Crossbar(topology)),
        config,
        Plan::of_messages(senders + 1, (0..senders).map(message)),
    )
}

/// The mean queue of the one full link, in bytes, and the shares of the flows, of their mean.
fn outcome(records: &Records, from: Time, until: Time) -> (f64, Vec<f64>) {
    let mut waiting = BTreeMap::<u32, u64>::new();
    for sample in records.samples.to_vec().unwrap().iter().filter(|sample| sample.time >= from) {
        *waiting.entry(sample.channel).or_default() += sample.queue;
    }
    let instants = (until - from).as_secs_f64() / SAMPLE.as_secs_f64();
    let queue = waiting.into_values().max().unwrap() as f64 / instants;
    let bytes: Vec<f64> = records.window_flows.to_vec().unwrap().iter().map(|row| row.bytes as f64).collect();
    let mean = bytes.iter().sum::<f64>() / bytes.len() as f64;
    (queue, bytes.iter().map(|bytes| bytes / mean).collect())
}

/// The paper's theorem: in equilibrium Σβ bytes wait. Windows are filled by whole packets, and stamps are packets apart: two packets of each flow of room.
#[test]
fn in_equilibrium_each_flow_keeps_its_beta_waiting_and_all_share_alike() {
    let (from, until) = (Time::from_ms(4), Time::from_ms(10));
    for (name, packet) in [("powertcp", PACKET + 42.0), ("theta-powertcp", PACKET)] {
        for senders in [2, 4, 8] {
            let records = into_one(senders, config(name), from, until);
            let (queue, shares) = outcome(&records, from, until);
            // A full packet there and its ACK back.
            let ack = 64.0 + packet - PACKET;
            let product = 100e9 / 8.0 * 20e-6 + 2.0 * (packet + ack);
            let expected = f64::from(senders) * product / 10.0;
            println!("{name}, {senders}: {queue:.0} B waiting, expected {expected:.0}; shares {shares:.3?}");
            let more = f64::from(senders) * 2.0 * packet;
            assert!(
                queue > expected - more && queue < expected + more,
                "{name}, {senders}: {queue} {expected}"
            );
            // A window is filled by whole packets: one of 54 where eight flows share what the link and its queue hold.
            let window = (product + expected) / f64::from(senders);
            let unfair = shares.iter().map(|share| (share - 1.0).abs()).fold(0.0, f64::max);
            assert!(unfair < f64::max(0.01, packet / window), "{name}, {senders}: {shares:?}");
            assert_eq!(records.totals.data.dropped, 0);
        }
    }
}

/// A flow alone fills its link and keeps nothing waiting.
#[test]
fn a_flow_alone_fills_its_link() {
    let (from, until) = (Time::from_ms(1), Time::from_ms(2));
    for (name, packet) in [("powertcp", PACKET + 42.0), ("theta-powertcp", PACKET)] {
        let records = into_one(1, config(name), from, until);
        let bytes: u64 = records.window_flows.to_vec().unwrap().iter().map(|row| row.bytes).sum();
        let used = bytes as f64 * packet / 1000.0 * 8.0 / (until - from).as_secs_f64() / 100e9;
        assert!(used > 0.99, "{name}: {used}");
    }
}

#[test]
fn telemetry_needs_paths_that_last_and_round_trip_times_do_not() {
    let plan = || Plan::of_messages(4, [(0, Message::new(2, Bytes(30_000), Time::ZERO))]);
    let routed = |name| SimConfig { routing: scheme("spray").routing, ..config(name) };
    let error = Simulation::new(leaf_spine(2, 2, 2), routed("powertcp"), plan()).unwrap_err().to_string();
    assert!(error.starts_with("routing.granularity: expected one that keeps a flow's path"), "{error}");
    assert!(run(leaf_spine(2, 2, 2), routed("theta-powertcp"), plan()).flows[0].fct.is_some());
}
