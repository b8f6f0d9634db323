//! Bolt in a network: a flow alone, how flows share and how little waits, and how what a flow leaves is taken.

mod common;

use std::collections::BTreeMap;

use common::*;
use netloom_record::{Records, Window};
use netloom_sim::{Measure, SimConfig, Simulation};
use netloom_topology::{Crossbar, Topology};
use netloom_transport::congestion::bolt::Bolt;
use netloom_transport::{Congestion, Reliability, preset};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

/// A full packet on the wire takes 400 ns.
const PACKET: u64 = 5000;
/// 8 us there and back, and what packets take: a bandwidth-delay product is 22 packets.
const LATENCY: Time = Time::from_us(2);
const SAMPLE: Time = Time::from_us(1);

fn config(bolt: Bolt) -> SimConfig {
    let mut transport = preset::find("bolt").unwrap().transport();
    transport.congestion = Congestion::Bolt(bolt);
    SimConfig { transport, ..scheme("ecmp") }
}

fn star(hosts: u32) -> netloom_topology::Network {
    build(Topology::Crossbar(Crossbar { hosts, rate: Rate::from_gbps(100), latency: LATENCY }))
}

/// This many flows into one host, seen between two instants.
fn into_one(senders: u32, mut config: SimConfig, from: Time, until: Time) -> Records {
    config.measure = Measure {
        until: Some(until),
        sample: Some(SAMPLE),
        windows: vec![Window { name: "late".into(), from, until }],
        ..Measure::default()
    };
    let message = |src| (src, Message::new(senders, Bytes(1 << 30), Time::from_us(50 * u64::from(src))));
    run(star(senders + 1), config, Plan::of_messages(senders + 1, (0..senders).map(message)))
}

/// The mean and the longest queue of the one full link, in bytes, the use of that link, and the shares of the flows, of their mean.
fn outcome(records: &Records, from: Time, until: Time) -> (f64, u64, f64, Vec<f64>) {
    let mut waiting = BTreeMap::<u32, Vec<u64>>::new();
    for sample in records.samples.to_vec().unwrap().iter().filter(|sample| sample.time >= from) {
        waiting.entry(sample.channel).or_default().push(sample.queue);
    }
    let instants = (until - from).as_secs_f64() / SAMPLE.as_secs_f64();
    let fullest = waiting.into_values().max_by_key(|queues| queues.iter().sum::<u64>()).unwrap();
    let bytes: Vec<f64> = records.window_flows.to_vec().unwrap().iter().map(|row| row.bytes as f64).collect();
    let sum = bytes.iter().sum::<f64>();
    let used = sum * PACKET as f64 / (PACKET - 41) as f64 * 8.0 / (until - from).as_secs_f64() / 100e9;
    let mean = sum / bytes.len() as f64;
    let queue = fullest.iter().sum::<u64>() as f64 / instants;
    (queue, *fullest.iter().max().unwrap(), used, bytes.iter().map(|bytes| bytes / mean).collect())
}

#[test]
fn a_flow_alone_fills_its_link_and_meets_no_queue() {
    let (from, until) = (Time::from_us(100), Time::from_us(500));
    let records = into_one(1, config(Bolt::default()), from, until);
    let (queue, longest, used, _) = outcome(&records, from, until);
    assert!(used > 0.99 && queue == 0.0 && longest == 0, "{used} {queue} {longest}");
    let notices: u32 = records.flows.iter().map(|flow| flow.cnms).sum();
    assert_eq!(notices, 0);
}

#[test]
fn several_flows_keep_the_link_full_and_the_queue_short_and_share_alike() {
    let (from, until) = (Time::from_ms(2), Time::from_ms(6));
    for senders in [2, 4, 8] {
        let records = into_one(senders, config(Bolt::default()), from, until);
        let (queue, longest, used, shares) = outcome(&records, from, until);
        // A round trip adds a packet to each window, which a notice takes back before another one is added.
        let most = (2 + u64::from(senders)) * PACKET;
        assert!(queue <= most as f64 && longest <= most, "{senders}: {queue} {longest}");
        assert!(used > 0.999, "{senders}: {used}");
        // Windows are whole packets, and each goes up and down by one.
        let product = 100e9 / 8.0 * 8e-6 + 2.0 * PACKET as f64;
        let window = (product + queue) / f64::from(senders) / PACKET as f64;
        let extremes = shares
            .iter()
            .fold((f64::MAX, 0.0), |(least, most): (f64, f64), &share| (least.min(share), most.max(share)));
        assert!((extremes.1 - extremes.0) * window < 2.1, "{senders}: {window} {shares:?}");
        let notices: u32 = records.flows.iter().map(|flow| flow.cnms).sum();
        assert!(notices > 0 && records.totals.data.dropped == 0);
    }
}

/// Two flows share a link until the shorter one ends; the completion time of the longer one.
fn rest(bolt: Bolt) -> Time {
    let messages =
        [(0, 4_000_000), (1, 1_000_000)].map(|(src, bytes)| (src, Message::new(2, Bytes(bytes), Time::ZERO)));
    let records = run(star(3), config(bolt), Plan::of_messages(3, messages));
    records.flows.iter().filter_map(|flow| flow.fct).max().unwrap()
}

#[test]
fn what_a_flow_leaves_is_taken_sooner_with_tokens() {
    let time = |proactive_ramp_up, supply_matching| {
        rest(Bolt { proactive_ramp_up, supply_matching, ..Bolt::default() }).as_secs_f64() * 1e6
    };
    let (neither, matching, ramp_up, both) =
        (time(false, false), time(false, true), time(true, false), time(true, true));
    // A full link all the time, and the way of the last packet.
    let ideal = 5e6 / (PACKET - 41) as f64 * 0.4 + 4.8;
    assert!(both > ideal && both < ideal + 8.0, "{both} {ideal}");
    for one in [matching, ramp_up] {
        assert!(both < one && one < neither, "{neither} {matching} {ramp_up} {both}");
    }
    // A packet per round trip for half a window: a quarter of a window is lost in eleven round trips of 8.8 us.
    assert!(neither - both > 10.0, "{neither} {both}");
}

#[test]
fn what_does_not_go_together_is_refused_by_field() {
    let refusal = |change: &dyn Fn(&mut SimConfig)| {
        let mut config = config(Bolt::default());
        change(&mut config);
        let plan = Plan::of_messages(4, [(0, Message::new(2, Bytes(30_000), Time::ZERO))]);
        Simulation::new(leaf_spine(2, 2, 2), config, plan).map(|_| ()).unwrap_err().to_string()
    };
    for name in ["flowcut", "flowcut-nic", "plb", "hopper"] {
        let error = refusal(&|config| config.routing = scheme(name).routing);
        assert!(
            error.starts_with("routing.granularity: expected another one with transport.congestion \"bolt\""),
            "{name}: {error}"
        );
    }
    let error = refusal(&|config| config.transport.options.ack_every = 2);
    assert!(error.starts_with("transport.ack_every: expected 1 with \"bolt\""), "{error}");
    let error = refusal(&|config| config.transport.options.subflows = 2);
    assert!(error.starts_with("transport."), "{error}");
    let error = refusal(&|config| config.transport.reliability = Reliability::Pds(Default::default()));
    assert!(
        error.starts_with("transport.reliability: expected \"selective-repeat\", \"go-back-n\""),
        "{error}"
    );
}
