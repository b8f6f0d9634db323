//! Latency, hops and traces of single packets.

mod common;

use common::*;
use netloom_fabric::flow_control::pfc;
use netloom_fabric::{Fabric, FlowControl, TrafficClass};
use netloom_record::{Records, Status, Summary, SummaryOptions};
use netloom_sim::{ChannelEnds, Measure, PacketTrace, SimConfig, Simulation, TracedFlow};
use netloom_topology::Network;
use netloom_units::{Bytes, Time};
use netloom_workload::{Message, Plan};

fn run(network: &Network, config: &SimConfig, messages: &[(u32, u32, u64)], threads: usize) -> Records {
    let messages =
        messages.iter().map(|&(src, dst, bytes)| (src, Message::new(dst, Bytes(bytes), Time::ZERO)));
    let plan = Plan::of_messages(network.hosts(), messages);
    Simulation::new(network.clone(), config.clone(), plan).unwrap().run(threads).unwrap().records
}

fn with(config: &SimConfig, measure: Measure) -> SimConfig {
    SimConfig { measure, ..config.clone() }
}

fn traced(flow: TracedFlow) -> Measure {
    Measure { trace: Some(PacketTrace { flows: vec![flow], ..PacketTrace::default() }), ..Measure::default() }
}

fn lossless() -> Fabric {
    let pfc = pfc::Pfc { buffer: Bytes(100_000), ..pfc::Pfc::default() };
    Fabric { flow_control: FlowControl::Pfc(pfc), ..Fabric::default() }
}

const MESSAGES: [(u32, u32, u64); 4] = [(0, 15, 200_000), (1, 15, 150_000), (2, 3, 50_000), (15, 0, 90_000)];

#[test]
fn a_packet_alone_takes_the_time_of_its_way() {
    let network = fat_tree(4);
    let config = with(&scheme("ecmp"), Measure { packets: true, ..Measure::default() });
    let records = run(&network, &config, &[(0, 15, 1000)], 1);
    let [packets] = &records.flow_packets.to_vec().unwrap()[..] else { panic!("{:?}", records.flow_packets) };
    // The only packet left its NIC at once, so its latency is the flow's completion time.
    assert_eq!((packets.packets, packets.hops_max, packets.hops_mean), (1, 6, 6.0));
    assert_eq!(packets.latency_max, records.flows[0].fct.unwrap());
    assert_eq!(packets.latency_mean_ps, packets.latency_max.0 as f64);
    assert_eq!(packets.latency_p99, packets.latency_max);
}

#[test]
fn every_packet_that_arrives_is_counted_whatever_the_threads() {
    let network = fat_tree(4);
    let config = with(&scheme("spray"), Measure { packets: true, ..Measure::default() });
    let records = run(&network, &config, &MESSAGES, 1);
    for (flow, packets) in records.flows.iter().zip(&records.flow_packets.to_vec().unwrap()) {
        assert_eq!((flow.src, flow.dst, flow.packets), (packets.src, packets.dst, packets.packets));
        assert!(packets.latency_max < flow.fct.unwrap() && packets.latency_p50 <= packets.latency_p99);
    }
    let all: u64 = records.flows.iter().map(|flow| flow.packets).sum();
    assert_eq!(records.packets.values().map(|packets| packets.count()).sum::<u64>(), all);
    assert_eq!(records.latencies.iter().map(|row| row.packets).sum::<u64>(), all);
    assert_eq!(difference(&records, &run(&network, &config, &MESSAGES, 2)), None);

    // Nothing else changes, and nothing is written where nothing was asked for.
    let plain = run(&network, &scheme("spray"), &MESSAGES, 1);
    assert_eq!(plain.flows, records.flows);
    assert!(plain.flow_packets.is_empty() && plain.packets.is_empty() && plain.latencies.is_empty());
}

/// The first of two classes goes first at every port.
#[test]
fn classes_are_told_apart() {
    let network = crossbar(3);
    let mut config = with(&scheme("ecmp"), Measure { packets: true, ..Measure::default() });
    config.fabric.options.classes = vec![TrafficClass::default(); 2];
    let messages = [(0, 0), (1, 1)];
    let messages =
        messages.map(|(src, class)| (src, Message { class, ..Message::new(2, Bytes(1 << 20), Time::ZERO) }));
    let plan = Plan::of_messages(3, messages);
    let records = Simulation::new(network, config, plan).unwrap().run(1).unwrap().records;
    let counts: Vec<_> = records.packets.iter().map(|(&of, packets)| (of, packets.count())).collect();
    assert_eq!(counts, [((0, 0), 256), ((0, 1), 256)]);
    let classes: Vec<_> =
        records.flow_packets.to_vec().unwrap().iter().map(|flow| (flow.src, flow.class)).collect();
    assert_eq!(classes, [(0, 0), (1, 1)]);
    assert!(records.packets[&(0, 0)].mean_ps() < records.packets[&(0, 1)].mean_ps() / 2.0);
    assert!(records.latencies.is_sorted_by_key(|row| (row.group, row.class, row.from)));
    let summary = Summary::new(&records, &SummaryOptions::default(), Status::Complete).unwrap();
    let counts: Vec<_> =
        ["class-0", "class-1", "all"].iter().map(|&of| summary.packet_paths[of].packets).collect();
    assert_eq!(counts, [256, 256, 512]);
}

#[test]
fn a_flow_is_traced_on_all_of_its_way_and_nothing_changes() {
    let network = fat_tree(4);
    for (name, fabric) in [("ecmp", Fabric::default()), ("flowcut", Fabric::default()), ("spray", lossless())]
    {
        let config = SimConfig { fabric, ..scheme(name) };
        let plain = run(&network, &config, &MESSAGES, 1);
        let config = with(&config, traced(TracedFlow { src: 0, dst: 15, flow: None }));
        let records = run(&network, &config, &MESSAGES, 1);
        assert_eq!(plain.flows, records.flows, "{name}");
        assert_eq!(plain.channels, records.channels, "{name}");
        assert_eq!(difference(&records, &run(&network, &config, &MESSAGES, 2)), None);

        let rows = records.trace.to_vec().unwrap();
        let of = |kind: &str| rows.iter().filter(|row| row.kind == kind).count() as u64;
        // Six channels each way.
        assert_eq!((of("data"), of("ack")), (6 * records.flows[0].packets, 6 * records.flows[0].packets));
        let first: Vec<_> = rows.iter().filter(|row| row.kind == "data" && row.seq == 0).collect();
        assert_eq!(first.iter().map(|row| row.hops).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        for pair in first.windows(2) {
            let (a, b) = (network.channel(pair[0].channel), network.channel(pair[1].channel));
            assert!(a.to == b.from && pair[0].time < pair[1].time);
        }
        assert_eq!(network.channel(first[0].channel).from, 0);
        assert_eq!(network.channel(first[5].channel).to, 15);
    }
}

#[test]
fn a_channel_is_traced_between_two_moments() {
    let network = fat_tree(4);
    let ends = |from: &str, to: &str| ChannelEnds { from: from.to_owned(), to: to.to_owned(), parallel: 0 };
    let last_hop = (0..network.links().len() as u32 * 2)
        .find(|&id| network.channel(id).to == 15)
        .map(|id| network.node_name(network.channel(id).from))
        .unwrap();
    let trace = |from, until| PacketTrace {
        channels: vec![ends(&last_hop, "h15")],
        from,
        until,
        ..PacketTrace::default()
    };
    let config = |trace| with(&scheme("ecmp"), Measure { trace: Some(trace), ..Measure::default() });
    let all = run(&network, &config(trace(Time::ZERO, None)), &MESSAGES, 1);
    let rows = all.trace.to_vec().unwrap();
    let channel = rows[0].channel;
    assert!(rows.iter().all(|row| row.channel == channel && row.dst == 15));
    assert_eq!(rows.len() as u64, all.channels[channel as usize].packets);
    let (from, until) = (rows[10].time, rows[20].time);
    let some = run(&network, &config(trace(from, Some(until))), &MESSAGES, 1);
    assert_eq!(some.trace.to_vec().unwrap(), rows[10..20]);
}

#[test]
fn what_cannot_be_traced_is_refused() {
    let network = fat_tree(4);
    let refusal = |trace: PacketTrace| {
        let measure = Measure { trace: Some(trace), ..Measure::default() };
        let plan = Plan::of_messages(network.hosts(), []);
        Simulation::new(network.clone(), with(&scheme("ecmp"), measure), plan).unwrap_err().to_string()
    };
    let flow =
        |src, dst| PacketTrace { flows: vec![TracedFlow { src, dst, flow: None }], ..PacketTrace::default() };
    assert_eq!(
        refusal(PacketTrace::default()),
        "measure.trace.flows: expected flows or channels to trace, found none"
    );
    assert_eq!(refusal(flow(0, 16)), "measure.trace.flows.0.dst: expected a host from 0 to 15, found 16");
    assert_eq!(refusal(flow(3, 3)), "measure.trace.flows.0.dst: expected another host than src, found 3");
    let late = PacketTrace { from: Time::from_us(5), until: Some(Time::from_us(5)), ..flow(0, 1) };
    assert_eq!(refusal(late), "measure.trace.until: expected a time after from = 5us, found 5us");
    let ends = ChannelEnds { from: "h0".to_owned(), to: "h1".to_owned(), parallel: 0 };
    let nowhere = PacketTrace { channels: vec![ends], ..PacketTrace::default() };
    assert!(refusal(nowhere).starts_with("measure.trace.channels.0.to: expected a neighbour of h0"));
}
