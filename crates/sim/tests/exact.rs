//! Completion times that can be computed by hand, to the picosecond.

mod common;

use common::*;
use netloom_routing::{Selector, preset};
use netloom_sim::{ChannelEnds, Degrade, Fault, SimConfig};
use netloom_topology::{AstraSimNetwork, BuildContext, Network, Topology};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

const US: u64 = 1_000_000;

/// 64 B of header on 4096 B of payload, 200 Gb/s.
const PACKET: u64 = 166_400;

/// Messages as (source, destination, bytes, start in ps).
fn messages(network: &Network, list: &[(u32, u32, u64, u64)]) -> Plan {
    let message = |&(src, dst, bytes, start)| (src, Message::new(dst, Bytes(bytes), Time(start)));
    Plan::of_messages(network.hosts(), list.iter().map(message))
}

fn free(name: &str) -> SimConfig {
    let mut config = SimConfig { transport: unlimited(), ..scheme(name) };
    schemes::fit(&mut config.fabric.options, &config.routing);
    config
}

/// n packets over K links of 1 us: n·P + (K − 1)·P + K·d.
fn one_flow(packets: u64, links: u64) -> Time {
    Time((packets + links - 1) * PACKET + links * US)
}

#[test]
fn one_flow_takes_n_plus_k_minus_1_packet_times_and_k_delays() {
    // Host pairs in the same rack, the same pod and another pod.
    let cases = [
        (crossbar(4), 3, 2),
        (leaf_spine(4, 2, 2), 1, 2),
        (leaf_spine(4, 2, 2), 7, 4),
        (fat_tree(4), 1, 2),
        (fat_tree(4), 2, 4),
        (fat_tree(4), 15, 6),
    ];
    // All but Valiant, UGAL and k shortest paths, which take longer ones, and what does not fit trees.
    let is_minimal = |preset: &&preset::Preset| {
        !matches!(
            preset.routing().selector,
            Selector::Valiant(_) | Selector::Ugal(_) | Selector::KShortest(_)
        ) && preset.routing().fits(&cases[0].0).is_ok()
    };
    for preset in preset::PRESETS.iter().filter(is_minimal) {
        for (network, dst, links) in &cases {
            for packets in [1, 2, 100] {
                let plan = messages(network, &[(0, *dst, packets * 4096, 5 * US)]);
                let records = run(network.clone(), free(preset.name), plan);
                let flow = &records.flows[0];
                assert_eq!(fct(flow), one_flow(packets, *links), "{} {links} links", preset.name);
                assert_eq!(flow.ideal_fct, fct(flow));
                assert_eq!(flow.packets, packets);
            }
        }
    }
}

/// ASTRA-sim's networks: every link of the file adds its latency and a packet, the slowest one the others; links between ranks and their routers add a packet and no latency.
#[test]
fn messages_cross_astra_sims_networks_in_the_time_of_their_links() {
    let folder = tempfile::tempdir().unwrap();
    let text = "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 5, 3, 2 ]\n\
        bandwidth: [ 200.0, 100.0, 50.0 ]\nlatency: [ 50.0, 500.0, 2000.0 ]\n";
    std::fs::write(folder.path().join("network.yml"), text).unwrap();
    let kind = Topology::AstraSimNetwork(AstraSimNetwork::new("network.yml"));
    let network = kind.build(&BuildContext { seed: 1, base_dir: folder.path() }).unwrap();
    // GB are GiB.
    let packet = |gib: u64| Rate(gib * (8 << 30)).serialize(Bytes(4096 + 64)).0;
    // Two links of the ring, two of the clique and one of the switch.
    let npu = packet(2 * 200 + 2 * 100 + 50);
    for (dst, ring, clique, switch) in
        [(1, 1, 0, 0), (4, 1, 0, 0), (3, 2, 0, 0), (5, 0, 1, 0), (10, 0, 1, 0), (15, 0, 0, 2), (28, 2, 1, 2)]
    {
        let links =
            [(ring, packet(200), 50_000), (clique, packet(100), 500_000), (switch, packet(50), 2_000_000)];
        let one: u64 = links.iter().map(|(count, packet, latency)| count * (packet + latency)).sum();
        let used = links.iter().filter(|(count, ..)| *count > 0);
        let slowest = used.map(|(_, packet, _)| *packet).max().unwrap();
        for packets in [1, 2, 100] {
            let plan = messages(&network, &[(0, dst, packets * 4096, 5 * US)]);
            let records = run(network.clone(), free("ecmp"), plan);
            let expected = 2 * npu + one + (packets - 1) * slowest;
            assert_eq!(fct(&records.flows[0]), Time(expected), "{packets} packets to {dst}");
        }
    }
}

/// Every switch is counted, though there are more than a byte can hold, and none but the first is treated as the first one.
#[test]
fn a_packet_counts_the_channels_of_a_way_over_300_switches() {
    let network = chain(300);
    for name in ["ecmp", "letflow", "flowcut-nic"] {
        let mut config = free(name);
        config.measure.packets = true;
        config.measure.switch_gaps = true;
        let records = run(network.clone(), config, messages(&network, &[(0, 3, 3 * 4096, 0)]));
        assert_eq!(fct(&records.flows[0]), one_flow(3, 301), "{name}");
        let packets = records.flow_packets.to_vec().unwrap();
        assert_eq!((packets[0].hops_max, packets[0].hops_mean), (301, 301.0), "{name}");
        // Gaps are counted where packets have crossed one channel: two between three packets.
        let gaps = records.switch_gaps.as_ref().unwrap().to_vec().unwrap();
        assert_eq!(gaps.iter().map(|gap| gap.count).sum::<u64>(), 2, "{name}");
    }
}

#[test]
fn a_short_last_packet_arrives_right_behind_the_full_ones() {
    let network = fat_tree(4);
    for (bytes, full, last) in [(100, 0, 164), (4097, 1, 65), (10 * 4096 + 1000, 10, 1064)] {
        let records = run(network.clone(), free("ecmp"), messages(&network, &[(0, 15, bytes, 0)]));
        // The last packet waits for the full one before it on every link but the first.
        let expected = if full == 0 {
            at_200g(last) * 6 + Time(6 * US)
        } else {
            Time((full + 5) * PACKET + 6 * US) + at_200g(last)
        };
        assert_eq!(fct(&records.flows[0]), expected);
        assert_eq!(records.flows[0].ideal_fct, expected);
    }
}

#[test]
fn the_first_packet_and_the_round_trip_of_the_1024_host_tree() {
    let network = fat_tree(16);
    let records = run(network.clone(), free("ecmp"), messages(&network, &[(0, 1023, 4096, 0)]));
    let flow = &records.flows[0];
    assert_eq!(fct(flow), Time(6_998_400));
    assert_eq!(flow.sender_fct.unwrap(), Time(6_998_400 + 6 * (US + 2_560)));
}

#[test]
fn a_window_of_w_packets_sends_w_packets_per_round_trip() {
    let network = crossbar(2);
    let mut config = scheme("ecmp");
    let window = netloom_transport::congestion::fixed_window::FixedWindow {
        bytes: Some(Bytes(3 * 4160)),
        ..Default::default()
    };
    config.transport.congestion = netloom_transport::Congestion::FixedWindow(window);
    let records = run(network.clone(), config, messages(&network, &[(0, 1, 12 * 4096, 0)]));
    // Round trip of a packet and its ACK over two links; packets 0, 3, 6, 9 start a round trip apart, then 10 and 11 follow.
    let rtt = 2 * (PACKET + US) + 2 * (2_560 + US);
    assert_eq!(fct(&records.flows[0]), Time(3 * rtt + 2 * PACKET + 2 * (PACKET + US)));
}

#[test]
fn two_flows_share_a_link_packet_by_packet() {
    // Hosts 0 and 1 send to host 2 at the same time: packets alternate on the link to host 2.
    for (network, dst, links) in [(crossbar(4), 2, 2), (leaf_spine(2, 1, 2), 2, 4), (fat_tree(4), 15, 6)] {
        let sources = if links == 6 { [0, 4] } else { [0, 1] };
        let packets = 50;
        let plan = messages(&network, &sources.map(|src| (src, dst, packets * 4096, 0)));
        let records = run(network.clone(), free("ecmp"), plan);
        let mut fcts: Vec<Time> = records.flows.iter().map(fct).collect();
        fcts.sort();
        // 2n packets leave the shared link back to back; the flow whose last packet goes first is one packet time ahead.
        let last = Time((2 * packets + links - 1) * PACKET + links * US);
        assert_eq!(fcts, [last - Time(PACKET), last]);
    }
}

/// Two hosts send two packets each to a third one whose port holds one packet behind the one being sent. The first sender's second packet
/// comes when its first one is through, and finds that the other sender's has begun; the last of the four finds no room.
#[test]
fn what_ends_at_an_instant_has_left_when_something_arrives_then() {
    let network = crossbar(3);
    for (start, dropped) in [(0, 1), (1_000, 1), (PACKET - 1_000, 1), (PACKET, 0)] {
        let mut config = free("ecmp");
        config.fabric.options.buffer = Some(Bytes(4160));
        let plan = messages(&network, &[(0, 2, 2 * 4096, 0), (1, 2, 2 * 4096, start)]);
        let records = run(network.clone(), config, plan);
        assert_eq!(records.totals.data.dropped, dropped, "the second one starts at {start} ps");
    }
}

#[test]
fn an_incast_of_k_senders_fills_the_last_link_without_a_gap() {
    let cases: [(Network, Vec<u32>, u32, u64); 3] = [
        (crossbar(9), (1..9).collect(), 0, 2),
        (leaf_spine(3, 2, 4), (4..12).collect(), 0, 4),
        (fat_tree(4), (4..16).collect(), 0, 6),
    ];
    for (network, senders, dst, links) in cases {
        for scheme in ["ecmp", "spray", "d-mod-k"] {
            let (k, packets) = (senders.len() as u64, 20);
            let list: Vec<_> = senders.iter().map(|&src| (src, dst, packets * 4096, 0)).collect();
            let records = run(network.clone(), free(scheme), messages(&network, &list));
            let last = records.flows.iter().map(fct).max().unwrap();
            // k·n packets leave the last link back to back, from the moment the first has arrived there.
            assert_eq!(last, Time((k * packets + links - 1) * PACKET + links * US), "{scheme}");
        }
    }
}

#[test]
fn the_idle_time_holds_for_unequal_rates_too() {
    use netloom_topology::{LeafSpine, Topology};
    use netloom_units::Rate;
    for (host, spine) in [(100, 400), (400, 100), (30, 7)] {
        let network = build(Topology::LeafSpine(LeafSpine {
            leaves: 2,
            spines: 1,
            hosts_per_leaf: 2,
            host_rate: Some(Rate::from_gbps(host)),
            spine_rate: Some(Rate::from_gbps(spine)),
            ..LeafSpine::default()
        }));
        for bytes in [1, 4096, 4097, 123_456] {
            let records = run(network.clone(), free("ecmp"), messages(&network, &[(0, 3, bytes, 0)]));
            assert_eq!(records.flows[0].fct, Some(records.flows[0].ideal_fct), "{host} {spine} {bytes}");
        }
    }
}

#[test]
fn switch_latency_is_paid_once_per_switch() {
    let network = fat_tree(4);
    let mut config = free("ecmp");
    config.fabric.options.switch_latency = Time::from_ns(300);
    let records = run(network.clone(), config, messages(&network, &[(0, 15, 4096, 0)]));
    assert_eq!(fct(&records.flows[0]), one_flow(1, 6) + Time::from_ns(5 * 300));
    assert_eq!(records.flows[0].fct, Some(records.flows[0].ideal_fct));
}

#[test]
fn cut_through_pays_a_header_instead_of_a_packet_at_every_switch() {
    const HEADER: u64 = 128;
    for (network, dst, links) in [(crossbar(4), 3, 2), (fat_tree(4), 2, 4), (fat_tree(4), 15, 6)] {
        for packets in [1, 2, 100] {
            let mut config = free("ecmp");
            config.fabric.options.cut_through = Some(Bytes(HEADER));
            let plan = messages(&network, &[(0, dst, packets * 4096, 0)]);
            let flow = &run(network.clone(), config, plan).flows[0];
            let expected = at_200g(4160) * packets + at_200g(HEADER) * (links - 1) + Time::from_us(links);
            assert_eq!(fct(flow), expected);
            assert_eq!(flow.ideal_fct, expected);
        }
    }
}

#[test]
fn cut_through_stores_what_comes_more_slowly_than_it_could_leave() {
    // The host's link runs at a quarter: the leaf must have the whole packet before it may send at full rate.
    let network = leaf_spine(2, 1, 1);
    let mut config = free("ecmp");
    config.fabric.options.cut_through = Some(Bytes(128));
    let (from, to) = (network.node_name(0), network.node_name(network.edge_switch(0)));
    let channels = vec![ChannelEnds { from, to, parallel: 0 }];
    config.faults = vec![Fault::Degrade(Degrade { channels, rate_factor: 0.25, ..Degrade::default() })];
    let flow = &run(network.clone(), config, messages(&network, &[(0, 1, 4096, 0)])).flows[0];
    let expected = at_200g(4160) * 4 + at_200g(128) * 2 + at_200g(4160) + Time::from_us(4);
    assert_eq!(fct(flow), expected);
}

/// Both the leaf's and the aggregation switch's choice count; on the way down there is none.
#[test]
fn a_flow_has_the_decisions_of_its_nic_and_of_all_switches() {
    let network = fat_tree(4);
    let plan = || messages(&network, &[(0, 15, 100 * 4096, 0), (1, 2, 50 * 4096, 0), (4, 5, 30 * 4096, 0)]);
    for (name, expected) in [
        ("ecmp", [0, 0, 0]),
        ("d-mod-k", [0, 0, 0]),
        ("spray", [200, 50, 0]),
        ("adaptive", [200, 50, 0]),
        ("letflow", [2, 1, 0]),
        ("conga", [1, 1, 0]),
        ("flowcut-ingress", [1, 1, 0]),
        ("spray-nic", [100, 50, 30]),
        ("k-shortest", [1, 1, 0]),
    ] {
        let records = run(network.clone(), free(name), plan());
        let taken: Vec<_> = records.flows.iter().map(|flow| flow.decisions).collect();
        assert_eq!(taken, expected, "{name}");
        let deviating: u64 = records.flows.iter().map(|flow| flow.non_default_decisions).sum();
        let total = records.totals.decisions.values().next().unwrap();
        assert_eq!((taken.iter().sum::<u64>(), deviating), (total.taken, total.non_default), "{name}");
        assert!(records.flows.iter().all(|flow| flow.non_default_decisions <= flow.decisions));
    }
}

/// A short last packet would overtake the one before it on any other port.
#[test]
fn a_lone_flow_stays_on_one_path_under_drill() {
    use netloom_routing::selector::drill::{Drill, Load};
    let network = leaf_spine(2, 8, 1);
    let reordered = |load| {
        (0..40u64)
            .filter(|&seed| {
                let mut config = SimConfig { seed, ..free("drill") };
                config.routing.selector = Selector::Drill(Drill { load, ..Drill::default() });
                let records = run(network.clone(), config, messages(&network, &[(0, 1, 9 * 4096 + 100, 0)]));
                let flow = &records.flows[0];
                assert!(load == Load::Queued || fct(flow) == flow.ideal_fct && flow.path_changes == 0);
                flow.ooo_packets > 0
            })
            .count()
    };
    assert_eq!(reordered(Load::Waiting), 0);
    assert!(reordered(Load::Queued) > 10);
}
