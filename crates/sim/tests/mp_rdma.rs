//! MP-RDMA: many paths, one window.

mod common;

use common::*;
use netloom_fabric::{Ecn, Fabric, FabricOptions, Mark};
use netloom_record::Records;
use netloom_sim::{ChannelEnds, Cut, Degrade, Fault, Measure, SimConfig, Simulation};
use netloom_topology::Network;
use netloom_transport::congestion::mp_rdma::MpRdma;
use netloom_transport::reliability::bitmap::Bitmap;
use netloom_transport::{Congestion, Reliability, preset as transport};
use netloom_units::{Bytes, Time};
use netloom_workload::{Message, Plan};

/// Marks above 20 packets, as DCTCP does.
fn marking() -> Fabric {
    let ecn = Some(Ecn { kmin: Bytes(83_200), kmax: Bytes(83_200), pmax: 1.0, mark: Mark::default() });
    let options = FabricOptions { ecn, ..FabricOptions::default() };
    Fabric { options, ..Fabric::default() }
}

fn mp_rdma() -> SimConfig {
    let transport = transport::find("mp-rdma").unwrap().transport();
    SimConfig { transport, fabric: marking(), ..scheme("spray-nic") }
}

/// One flow from host 0 to host 1, in two racks with one host each.
fn one_flow(network: &Network, config: SimConfig, bytes: u64) -> Records {
    let plan = Plan::of_messages(network.hosts(), [(0, Message::new(1, Bytes(bytes), Time::ZERO))]);
    run(network.clone(), config, plan)
}

fn slow(from: &str, to: &str, fraction: f64) -> Fault {
    let channels = vec![ChannelEnds { from: from.into(), to: to.into(), parallel: 0 }];
    Fault::Degrade(Degrade { channels, rate_factor: fraction, ..Degrade::default() })
}

/// Data bytes on the channels from the first leaf to the spines.
fn up(network: &Network, records: &Records) -> Vec<u64> {
    let leaf = network.hosts();
    let ups = network.ports(leaf).iter().filter(|&&channel| network.channel(channel).to >= leaf);
    ups.map(|&channel| records.channels[channel as usize].bytes).collect()
}

/// How many packets the faster one of two paths gets for one of the slower one: of 100 Gb/s and a part of it, for a NIC of 200, with marks
/// above this many packets.
fn ratio_of_two_paths(part: f64, packets: u64, delta: u32, length: u32, seed: u64) -> (f64, Records) {
    let network = leaf_spine(2, 2, 1);
    let faults = vec![slow("s0", "s2", 0.5), slow("s0", "s3", 0.5 * part)];
    let mut config = SimConfig { faults, seed, ..mp_rdma() };
    let limit = Bytes(4160 * packets);
    config.fabric.options.ecn = Some(Ecn { kmin: limit, kmax: limit, pmax: 1.0, mark: Default::default() });
    config.transport.congestion = Congestion::MpRdma(MpRdma { delta, ..MpRdma::default() });
    config.transport.reliability = Reliability::Bitmap(Bitmap { length });
    let records = one_flow(&network, config, 40_000_000);
    let [fast, slow] = up(&network, &records)[..] else { panic!("two spines") };
    (fast as f64 / slow as f64, records)
}

/// A packet of the slower path waits for up to K packets before it and for itself, while each of them lasts for r packets on the faster path:
/// it comes about r (K + 2) behind. A path is pruned where that is above delta: 220 of 250 here.
#[test]
fn two_paths_get_packets_in_the_ratio_of_their_rates() {
    for seed in 1..4 {
        let (ratio, records) = ratio_of_two_paths(0.1, 20, 250, 500, seed);
        assert!((9.0..11.0).contains(&ratio), "{ratio}");
        // 110 Gb/s less what is not yet there in the beginning.
        let rate = 40_000_000.0 * 8.0 / fct(&records.flows[0]).as_secs_f64();
        assert!(rate > 0.95 * 110e9 * 4096.0 / 4160.0, "{rate}");
        assert_eq!((records.flows[0].timeouts, records.flows[0].retransmissions), (0, 0));
    }
}

/// The same with the paper's distance of 32: 16 of it where one path is twice as fast and the other one's queue short.
#[test]
fn the_papers_distance_holds_for_paths_that_differ_by_two() {
    for seed in 1..4 {
        let (ratio, records) = ratio_of_two_paths(0.5, 6, 32, 64, seed);
        assert!((1.8..2.2).contains(&ratio), "{ratio}");
        assert_eq!((records.flows[0].timeouts, records.flows[0].retransmissions), (0, 0));
    }
}

/// The price of order: a slow path whose packets come more than 32 behind the others is pruned.
#[test]
fn a_short_distance_keeps_packets_nearly_in_order_and_prunes_the_slow_path() {
    for seed in 1..4 {
        let (wide, narrow) =
            (ratio_of_two_paths(0.1, 20, 250, 500, seed), ratio_of_two_paths(0.1, 20, 32, 64, seed));
        let ood = |records: &Records| records.flows[0].max_ood;
        assert!(ood(&narrow.1) < 64 && ood(&wide.1) > 64);
        assert!(narrow.0 > 1.5 * wide.0, "{}", narrow.0);
    }
}

/// What a flow over two paths of 100 Gb/s gets per 10 us, as parts of one path's rate, if links are cut from 300 us on: the second path's for
/// good, and the first one's, too, until some instant.
fn around_a_cut(first_until: Option<Time>, seed: u64) -> (Vec<f64>, Records) {
    let network = leaf_spine(2, 2, 1);
    let cut = |to: &str, until| {
        let link = ChannelEnds { from: "s0".into(), to: to.into(), parallel: 0 };
        Fault::Cut(Cut { channels: vec![link], from: Time::from_us(300), until, ..Cut::default() })
    };
    let mut faults = vec![slow("s0", "s2", 0.5), slow("s0", "s3", 0.5), cut("s3", None)];
    faults.extend(first_until.map(|until| cut("s2", Some(until))));
    let until = Some(Time::from_us(2500));
    let measure = Measure { until, sample_flows: Some(Time::from_us(10)), ..Measure::default() };
    let records = one_flow(&network, SimConfig { faults, seed, measure, ..mp_rdma() }, 100_000_000);
    let samples = records.flow_samples.to_vec().unwrap();
    let got = |end: Time| samples.iter().filter(|row| row.time == end).map(|row| row.bytes).sum::<u64>();
    let parts =
        (1..=250).map(|tens| got(Time::from_us(10 * tens)) as f64 / (100e9 * 4096.0 / 4160.0 * 10e-6 / 8.0));
    (parts.collect(), records)
}

/// The receiver's bitmap finds what was lost: 64 packets at 100 Gb/s take 21 us.
#[test]
fn a_cut_path_is_given_up_without_a_timeout() {
    for seed in 1..6 {
        let (parts, records) = around_a_cut(None, seed);
        // In one of the five runs ACKs keep one path at 0.86 of its rate for good, since what ends at an instant leaves before what arrives at it.
        let before = &parts[25..30];
        assert!(before.iter().all(|&part| part > 1.86), "both paths are full before: {before:?}");
        // The first 50 us in which the path that is left is full.
        let recovered = (30..).find(|&at| parts[at..at + 5].iter().all(|&part| part > 0.88)).unwrap();
        assert!(recovered <= 30 + 15, "{recovered}: {:?}", &parts[30..50]);
        assert_eq!(records.flows[0].timeouts, 0);
        // Now and then a path that is tried turns out to be the one that was cut.
        let mean = parts[45..].iter().sum::<f64>() / parts[45..].len() as f64;
        assert!(mean > 0.97, "{mean}");
    }
}

#[test]
fn after_a_timeout_a_flow_is_back_within_three_round_trips() {
    for seed in 1..6 {
        let (parts, records) = around_a_cut(Some(Time::from_us(400)), seed);
        assert_eq!(records.flows[0].timeouts, 1);
        let first = (40..).find(|&at| parts[at] > 0.0).unwrap();
        // The least timeout is 1 ms, a round trip 8.7 us and 6.7 us in the queue.
        assert!((128..134).contains(&first), "{first}");
        assert!(parts[first].max(parts[first + 1]) > 0.85, "{:?}", &parts[first..first + 10]);
    }
}

#[test]
fn anything_but_entropy_values_at_the_nic_is_refused() {
    let network = leaf_spine(2, 2, 1);
    let refused = |name: &str| {
        let config = SimConfig { routing: scheme(name).routing, ..mp_rdma() };
        let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(1), Time::ZERO))]);
        Simulation::new(network.clone(), config, plan).unwrap_err().to_string()
    };
    for (name, field, found) in [
        ("ecmp", "placement", "switch"),
        ("valiant", "placement", "ingress"),
        ("flowcut-nic", "granularity", "flowcut"),
        ("spray-paths", "selector", "round-robin"),
    ] {
        let error = refused(name);
        assert!(error.starts_with(&format!("routing.{field}: expected")), "{error}");
        assert!(
            error.contains("(routing \"spray-nic\")") && error.ends_with(&format!("found \"{found}\"")),
            "{error}"
        );
    }
    let config = SimConfig { fabric: Fabric::default(), ..mp_rdma() };
    let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(1), Time::ZERO))]);
    let error = Simulation::new(network.clone(), config, plan).unwrap_err().to_string();
    assert!(error.starts_with("transport.congestion: expected a fabric that marks"), "{error}");
}
