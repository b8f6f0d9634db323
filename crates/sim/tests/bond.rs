//! NICs whose ports are one: exact times by every rule, ports that fail, and what is refused.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::*;
use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{Fabric, FlowControl, Queue, flow_control};
use netloom_record::{ChannelRecord, FlowRecord, Records};
use netloom_sim::{
    ChannelEnds, Cut, Degrade, Fault, PacketTrace, SimConfig, SimError, Simulation, TracedFlow,
};
use netloom_topology::Network;
use netloom_transport::{Transport, preset};
use netloom_units::{Bytes, Time};
use netloom_workload::{
    Bond, Message, NicSelection, Pattern, Plan, PlanContext, PortSelection, Servers, Uniform, Workload,
};
use proptest::prelude::*;

const US: u64 = 1_000_000;

/// 64 B of header on 4096 B of payload, 200 Gb/s.
const PACKET: u64 = 166_400;

const SELECTIONS: [PortSelection; 4] =
    [PortSelection::Flow, PortSelection::RoundRobin, PortSelection::Entropy, PortSelection::LeastLoaded];

/// Servers with one NIC of this many ports.
fn bonded(planes: u32, port_selection: PortSelection) -> Servers {
    let bond = Bond { port_selection, failover_after: Time::from_us(20) };
    Servers { nics: 1, planes, bond: Some(bond), ..Servers::default() }
}

/// Messages between servers: (source, destination, bytes, start in nanoseconds).
fn listed(messages: &[(u32, u32, u64, u64)], servers: &Servers, plane: &Network) -> (Network, Plan) {
    let network = servers.network(plane.clone()).unwrap();
    let rails = Arc::new(servers.build(&network, 1).unwrap());
    let message = |&(src, dst, bytes, at): &_| (src, Message::new(dst, Bytes(bytes), Time::from_ns(at)));
    let list = Plan::of_messages(rails.endpoints(), messages.iter().map(message));
    (network, Plan { rails: Some(rails), ..list })
}

fn planned(pattern: Pattern, servers: &Servers, plane: &Network) -> (Network, Plan) {
    let network = servers.network(plane.clone()).unwrap();
    let rails = Some(Arc::new(servers.build(&network, 1).unwrap()));
    let context = PlanContext { rails, ..PlanContext::new(1) };
    let plan = Workload::new(pattern).plan(&network, &context).unwrap();
    (network, plan)
}

/// Routing by entropy values, which all rules know, and a transport that no window limits.
fn config() -> SimConfig {
    SimConfig { transport: unlimited(), ..scheme("spray-nic") }
}

/// The same records on one thread, on three, and under the textbook executor.
fn everywhere((network, plan): &(Network, Plan), config: &SimConfig) -> Records {
    let simulation = || Simulation::new(network.clone(), config.clone(), plan.clone()).unwrap();
    let one = simulation().run(1).unwrap().records;
    assert_eq!(difference(&one, &simulation().run(3).unwrap().records), None);
    assert_eq!(difference(&one, &simulation().run_reference().unwrap().records), None);
    one
}

/// What the ports of hosts of the network sent.
fn sent<'a>(records: &'a Records, host: &'a str) -> &'a ChannelRecord {
    records.channels.iter().find(|channel| &*channel.from == host).unwrap()
}

fn received<'a>(records: &'a Records, host: &'a str) -> &'a ChannelRecord {
    records.channels.iter().find(|channel| &*channel.to == host).unwrap()
}

#[test]
fn packets_of_one_flow_take_a_share_of_the_serialisation() {
    for selection in [PortSelection::RoundRobin, PortSelection::LeastLoaded] {
        for planes in [2, 4] {
            let run = listed(&[(0, 1, 400 * 4096, 0)], &bonded(planes, selection), &crossbar(2));
            let records = everywhere(&run, &config());
            let expected = Time((400 / u64::from(planes) + 1) * PACKET + 2 * US);
            let [message] = &records.flows[..] else { panic!("{:?}", records.flows) };
            assert_eq!((message.fct, message.ideal_fct, message.packets), (Some(expected), expected, 400));
            let parts = records.parts.as_ref().unwrap().to_vec().unwrap();
            assert_eq!(
                parts.iter().map(|part| (part.rail, part.bytes)).collect::<Vec<_>>(),
                [(0, 400 * 4096)]
            );
            for plane in 0..planes {
                let host = format!("h{}", 2 * plane);
                assert_eq!(sent(&records, &host).bytes, 400 * 4160 / u64::from(planes), "{selection:?}");
            }
        }
    }
}

/// The port is a part of a packet's path, and a flow that is traced is so by all ports.
#[test]
fn ports_count_as_paths_and_are_traced() {
    let run = listed(&[(0, 1, 16 * 4096, 0)], &bonded(2, PortSelection::RoundRobin), &crossbar(2));
    let mut config = config();
    let flows = vec![TracedFlow { src: 0, dst: 1, flow: Some(0) }];
    config.measure.trace = Some(PacketTrace { flows, ..PacketTrace::default() });
    let records = everywhere(&run, &config);
    assert_eq!(records.flows[0].path_changes, 15);
    let trace = records.trace.to_vec().unwrap();
    let packets: BTreeSet<u32> = trace.iter().filter(|row| row.kind == "data").map(|row| row.seq).collect();
    assert_eq!(packets, (0..16).collect());
}

#[test]
fn a_short_last_packet_may_be_alone_in_its_round() {
    let messages = [(0, 1, 4 * 4096 + 1, 0), (0, 1, 5 * 4096 + 1, 50_000)];
    let run = listed(&messages, &bonded(2, PortSelection::RoundRobin), &crossbar(2));
    let records = everywhere(&run, &config());
    // Two rounds and one byte behind them; then three rounds, as the port beside that of the last byte has a full packet.
    let expected = [Time(3 * PACKET + 2 * US) + at_200g(65), Time(4 * PACKET + 2 * US)];
    assert_eq!(records.flows.iter().map(fct).collect::<Vec<_>>(), expected);
    assert!(records.flows.iter().all(|flow| flow.fct == Some(flow.ideal_fct)));
}

/// In turn the slow port sets the pace of both; by what is free each sends what it can.
#[test]
fn a_slow_port_is_waited_for_in_turn_and_not_otherwise() {
    let slow = Degrade {
        channels: vec![ChannelEnds { from: "h2".into(), to: "s1".into(), parallel: 0 }],
        rate_factor: 0.5,
        ..Degrade::default()
    };
    let config = SimConfig { faults: vec![Fault::Degrade(slow)], ..config() };
    let fct_by = |selection| {
        let run = listed(&[(0, 1, 400 * 4096, 0)], &bonded(2, selection), &crossbar(2));
        fct(&everywhere(&run, &config).flows[0])
    };
    // 200 packets of twice the time at the slow port, and a hop.
    assert_eq!(fct_by(PortSelection::RoundRobin), Time(401 * PACKET + 2 * US));
    // Three packets in the time of two, the slow port first when both are free: the last one begins there after 266.
    assert_eq!(fct_by(PortSelection::LeastLoaded), Time(269 * PACKET + 2 * US));
}

#[test]
fn a_flow_keeps_its_port_and_flows_spread() {
    let messages: Vec<_> = (0..64).map(|number| (0, 1, 40_960, number * 10_000)).collect();
    let run = listed(&messages, &bonded(2, PortSelection::Flow), &crossbar(2));
    let records = everywhere(&run, &config());
    let alone = Time(11 * PACKET + 2 * US);
    assert!(records.flows.iter().all(|flow| flow.fct == Some(alone) && flow.ideal_fct == alone));
    let [one, other] = ["h0", "h2"].map(|host| sent(&records, host).packets);
    // A binomial draw of 64 with p = 1/2: four standard deviations of 4.
    assert_eq!((one + other, one % 10), (640, 0));
    assert!((160..=480).contains(&one), "{one}");
}

/// As the paths of ECMP: of 64 flows about half leave by another port under another seed, and in a dual ToR about three quarters by another pair.
#[test]
fn other_seeds_send_flows_by_other_ports() {
    let messages: Vec<_> = (0..64).map(|number| (0, 2, 4096, number * 20_000)).collect();
    let bonds = [
        (bonded(2, PortSelection::Flow), crossbar(4), 2, 16..=48),
        (dual_tor(PortSelection::Flow), leaf_spine(4, 1, 2), 4, 34..=62),
    ];
    for (servers, plane, dst, expected) in bonds {
        let run = listed(&messages, &servers, &plane);
        let ends_under = |seed| {
            let flows = vec![TracedFlow { src: 0, dst, flow: None }];
            let mut config = SimConfig { seed, ..config() };
            config.measure.trace = Some(PacketTrace { flows, ..PacketTrace::default() });
            let trace = everywhere(&run, &config).trace.to_vec().unwrap();
            let data = trace.iter().filter(|row| row.kind == "data");
            data.map(|row| (row.flow, (row.src, row.dst))).collect::<BTreeSet<_>>()
        };
        let (one, other) = (ends_under(1), ends_under(2));
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_eq!(one, ends_under(1));
        let moved = one.difference(&other).count();
        assert!(expected.contains(&moved), "{moved}");
    }
}

/// Two ports that are drawn, and a packet that waits for its port: after two packets that begin together both ports become free together; otherwise the
/// other port is drawn half of the time and takes the packet at once. So a packet takes 2/3 of its time at a port, not 1/2.
#[test]
fn ports_by_entropy_value_reach_three_quarters() {
    let packets = 20_000;
    let run = listed(&[(0, 1, packets * 4096, 0)], &bonded(2, PortSelection::Entropy), &crossbar(2));
    let records = Simulation::new(run.0, config(), run.1).unwrap().run(1).unwrap().records;
    let found = (fct(&records.flows[0]) - Time(2 * US)).0 as f64 / (packets * PACKET) as f64;
    // The steps between two meetings are geometric: five standard deviations are below 2%.
    assert!((found * 1.5 - 1.0).abs() < 0.02, "{found}");
    let [one, other] = ["h0", "h2"].map(|host| sent(&records, host).packets as f64);
    // A binomial draw of 20,000 with p = 1/2: five standard deviations of 70.7.
    assert!((one - other).abs() < 707.0, "{one} {other}");
}

fn cut(host: &str, switch: &str, from: u64, until: Option<u64>) -> Fault {
    Fault::Cut(Cut {
        channels: vec![ChannelEnds { from: host.into(), to: switch.into(), parallel: 0 }],
        from: Time::from_us(from),
        until: until.map(Time::from_us),
        ..Cut::default()
    })
}

/// Both servers send when the second port of server 0 fails, at 10 us: what either has sent there until 30 us is all.
#[test]
fn a_dead_port_is_left_at_both_ends_within_the_time_that_is_said() {
    let transport = Transport { congestion: unlimited().congestion, ..Transport::default() };
    let both = [(0, 1, 2_000_000, 0), (1, 0, 2_000_000, 0)];
    for selection in SELECTIONS {
        let flows: Vec<_> =
            (0..8).flat_map(|at| both.map(|(src, dst, bytes, _)| (src, dst, bytes, at))).collect();
        let run = listed(&flows, &bonded(2, selection), &crossbar(2));
        let config = |until| {
            let faults = vec![cut("h2", "s1", 10, until)];
            SimConfig { transport: transport.clone(), faults, ..scheme("spray-nic") }
        };
        let records = everywhere(&run, &config(None));
        assert!(records.flows.iter().all(|flow| flow.delivered == flow.bytes), "{selection:?}");
        // As many full packets as begin in 30 us, and ACKs for what has come in 10.
        let most = 30 * US / PACKET + 1 + 10 * US / PACKET;
        for host in ["h2", "h3"] {
            let packets = sent(&records, host).packets;
            assert!((60..=most).contains(&packets), "{selection:?}: {packets} of {host}");
        }
        // What h3 sends after the cut ends at the switch, and what h2 sends never gets there.
        assert!(received(&records, "h2").lost > 0 && sent(&records, "h2").lost > 0, "{selection:?}");
        // After a repair at 60 us the port is used again from 80 us on.
        let repaired = everywhere(&run, &config(Some(60)));
        assert!(sent(&repaired, "h2").packets > 2 * most, "{selection:?}");
        assert!(repaired.flows.iter().all(|flow| flow.fct.is_some()));
    }
}

/// The receiver's second port fails at 10 us: from 30 us on PULLs come at the pace of the other one, and no more is trimmed than first windows and what came at the old pace.
#[test]
fn credit_comes_at_the_pace_of_the_ports_that_are_alive() {
    for (name, selection) in [
        ("uet-rccc", PortSelection::LeastLoaded),
        ("uet-rccc", PortSelection::RoundRobin),
        ("uet-rccc", PortSelection::Entropy),
        ("ndp", PortSelection::LeastLoaded),
    ] {
        let senders = [(1, 0, 4_000_000, 0), (2, 0, 4_000_000, 0), (3, 0, 4_000_000, 0)];
        let (network, plan) = listed(&senders, &bonded(2, selection), &crossbar(4));
        let faults = vec![cut("h4", "s1", 10, None)];
        let mut config =
            SimConfig { transport: preset::find(name).unwrap().transport(), faults, ..scheme("spray-nic") };
        config.fabric.queue = Queue::Trimming(Trimming::default());
        config.fabric.options.buffer = Some(Bytes(150_000));
        let records = run(network, config, plan);
        assert!(records.flows.iter().all(|flow| flow.delivered == flow.bytes), "{name} {selection:?}");
        let packets: u64 = records.flows.iter().map(|flow: &FlowRecord| flow.packets).sum();
        let trims: u64 = records.flows.iter().map(|flow| flow.trims).sum();
        assert!(trims > 0 && trims < packets / 8, "{name} {selection:?}: {trims} of {packets}");
    }
}

/// Where nothing leaves a dead port, a run in which one fails for good cannot end, and is refused.
#[test]
fn a_port_that_fails_for_good_needs_another_one() {
    let refused = |servers: &Servers, faults: Vec<Fault>| {
        let (network, plan) = listed(&[(0, 1, 1, 0)], servers, &crossbar(2));
        match Simulation::new(network, SimConfig { faults, ..config() }, plan) {
            Err(SimError::Fault(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let one =
        refused(&Servers { bond: None, ..bonded(2, PortSelection::Flow) }, vec![cut("h2", "s1", 1, None)]);
    assert!(one.contains("another port of its NIC does, with `servers.bond`"), "{one}");
    let both = vec![cut("h2", "s1", 1, None), cut("h0", "s0", 5, None)];
    let both = refused(&bonded(2, PortSelection::Flow), both);
    assert!(both.starts_with("1.until") && both.contains("for any two NICs ports that stay alive"), "{both}");
    // Ports are left, but not links between switches of which routing does not learn.
    let leaf = Cut { switches: vec!["s0".into()], from: Time::from_us(1), ..Cut::default() };
    let (network, plan) = listed(&[(0, 1, 1, 0)], &bonded(2, PortSelection::Flow), &leaf_spine(2, 1, 2));
    let faults = vec![Fault::Cut(leaf)];
    let message = Simulation::new(network, SimConfig { faults, ..config() }, plan).unwrap_err().to_string();
    assert!(
        message.contains("0.until") && message.contains("or `reroute_after`, from which on"),
        "{message}"
    );
    assert!(!message.contains("servers.bond"), "{message}");
    // Each server has a live port, but in no plane do both.
    let apart = vec![cut("h2", "s1", 1, None), cut("h1", "s0", 5, None)];
    assert!(refused(&bonded(2, PortSelection::Flow), apart).starts_with("1.until"));
    let (network, plan) = listed(&[(0, 1, 1, 0)], &bonded(3, PortSelection::Flow), &crossbar(2));
    let faults = vec![cut("h2", "s1", 1, None), cut("h1", "s0", 5, None)];
    Simulation::new(network, SimConfig { faults, ..config() }, plan).unwrap();
}

#[test]
fn what_cannot_be_with_several_ports_is_refused() {
    let error = |selection, config: SimConfig| {
        let (network, plan) = listed(&[(0, 1, 1, 0)], &bonded(2, selection), &leaf_spine(2, 2, 2));
        Simulation::new(network, config, plan).unwrap_err().to_string()
    };
    for (selection, scheme_name, expected) in [
        (PortSelection::Entropy, "ecmp", "or packets with entropy values"),
        (PortSelection::RoundRobin, "flowcut", "\"flow\" with routing.granularity \"flowcut\""),
        (PortSelection::LeastLoaded, "conweave", "\"flow\" with routing.granularity \"conweave\""),
    ] {
        let found = error(selection, scheme(scheme_name));
        assert!(found.contains("bond.port_selection") && found.contains(expected), "{found}");
    }
    let credit =
        SimConfig { transport: preset::find("uet-rccc").unwrap().transport(), ..scheme("spray-nic") };
    assert!(error(PortSelection::Flow, credit).contains("bond.port_selection: expected one by packets"));
    let mut queue = scheme("ecmp");
    queue.transport.options.nic_queue = netloom_transport::NicQueue::Fair;
    assert!(error(PortSelection::Flow, queue).contains("nic_queue"));
    let one_plane = Servers { planes: 1, nics: 2, ..bonded(1, PortSelection::Flow) };
    let found = one_plane.network(crossbar(4)).unwrap_err().to_string();
    assert!(found.starts_with("bond: expected ports of a NIC to choose among"), "{found}");
}

/// Schemes with paths beyond the minimal ones, in every plane for itself, whichever chooses the plane.
#[test]
fn every_plane_is_a_network_of_its_own() {
    use netloom_topology::{Dragonfly, Jellyfish, SlimFly, Topology, Torus};
    let slim_fly = build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }));
    let dragonfly =
        build(Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(2), ..Dragonfly::default() }));
    let jellyfish = build(Topology::Jellyfish(Jellyfish {
        switches: 20,
        degree: 5,
        hosts_per_switch: 2,
        ..Jellyfish::default()
    }));
    let torus = build(Topology::Torus(Torus::default()));
    for (name, plane) in [
        ("valiant", &slim_fly),
        ("ugal-l", &slim_fly),
        ("ugal-l", &dragonfly),
        ("ugal-g", &dragonfly),
        ("par", &dragonfly),
        ("k-shortest", &jellyfish),
        ("dimension-order", &torus),
    ] {
        for port_selection in [None, Some(PortSelection::Flow), Some(PortSelection::LeastLoaded)] {
            let bond = port_selection
                .map(|port_selection| Bond { port_selection, failover_after: Time::from_us(20) });
            let servers = Servers { nics: 1, planes: 2, bond, ..Servers::default() };
            let pattern =
                Uniform { size: Bytes(100_000).into(), messages_per_host: Some(2), ..Uniform::default() };
            let (network, plan) = planned(Pattern::Uniform(pattern), &servers, plane);
            for lossless in [false, true] {
                let mut config = scheme(name);
                if lossless {
                    config.fabric.flow_control =
                        FlowControl::Credits(flow_control::credits::Credits::default());
                }
                let simulation = Simulation::new(network.clone(), config, plan.clone());
                let records = simulation.unwrap().run(2).unwrap().records;
                let on = format!("{name} on {}, {port_selection:?}", plane.name());
                assert!(records.flows.iter().all(|flow| flow.fct.is_some()), "{on}");
                let switches = records.channels.iter().filter(|channel| &*channel.tier != "host");
                let (mut bytes, number) = ([0; 2], |name: &str| name[1..].parse::<u32>().unwrap());
                for channel in switches {
                    let [from, to] = [&channel.from, &channel.to].map(|name| number(name) / plane.switches());
                    assert_eq!(from, to, "{on}");
                    bytes[from as usize] += channel.bytes;
                }
                // Half of the packets are in each, of single flows about.
                let share = bytes[0] as f64 / (bytes[0] + bytes[1]) as f64;
                assert!((0.3..0.7).contains(&share), "{on}: {bytes:?}");
            }
        }
    }
}

/// Layers are made of all switches of one connected network.
#[test]
fn layers_are_refused_beside_planes() {
    let plane = build(netloom_topology::Topology::SlimFly(netloom_topology::SlimFly {
        q: Some(5),
        ..Default::default()
    }));
    let (network, plan) = listed(&[(0, 1, 1, 0)], &bonded(2, PortSelection::Flow), &plane);
    let error = Simulation::new(network, scheme("fatpaths"), plan).unwrap_err().to_string();
    assert!(error.contains("selector") && error.contains("layers are made of all switches"), "{error}");
}

/// Servers with one NIC of two ports at two leaf switches of one network.
fn dual_tor(port_selection: PortSelection) -> Servers {
    Servers { planes: 1, ports: 2, ..bonded(1, port_selection) }
}

/// Bytes between switches.
fn between_switches(records: &Records) -> u64 {
    records.channels.iter().filter(|channel| &*channel.tier != "host").map(|channel| channel.bytes).sum()
}

/// Servers 0 and 1 are at leaves 0 and 1, servers 2 and 3 at leaves 2 and 3.
#[test]
fn ports_of_one_network_reach_each_other_by_the_shortest_way() {
    let plane = leaf_spine(4, 1, 2);
    let fct_to = |dst| {
        let run = listed(&[(0, dst, 400 * 4096, 0)], &dual_tor(PortSelection::RoundRobin), &plane);
        let records = everywhere(&run, &config());
        assert_eq!(records.flows[0].fct, Some(records.flows[0].ideal_fct));
        let to = if dst == 1 { ["h1", "h3"] } else { ["h4", "h6"] };
        for host in ["h0", "h2"] {
            assert_eq!(sent(&records, host).packets, 200);
        }
        for host in to {
            assert_eq!(received(&records, host).packets, 200);
        }
        (fct(&records.flows[0]), between_switches(&records))
    };
    // Beneath the same leaves a packet stays at the one by which it comes.
    assert_eq!(fct_to(1), (Time(201 * PACKET + 2 * US), 0));
    // The spine has a link to each leaf, and packets that come at the same time go on to different ones: both links of a NIC are full.
    let (fct, bytes) = fct_to(2);
    assert_eq!(fct, Time(203 * PACKET + 4 * US));
    assert!(bytes >= 2 * 400 * 4160);
}

/// All four pairs of ports are taken, and a flow keeps its own.
#[test]
fn flows_take_any_pair_of_ports() {
    let plane = leaf_spine(4, 1, 2);
    let messages: Vec<_> = (0..64).map(|number| (0, 2, 40_960, number * 20_000)).collect();
    let run = listed(&messages, &dual_tor(PortSelection::Flow), &plane);
    let mut config = config();
    let flows = vec![TracedFlow { src: 0, dst: 4, flow: None }];
    config.measure.trace = Some(PacketTrace { flows, ..PacketTrace::default() });
    let records = everywhere(&run, &config);
    let alone = Time(13 * PACKET + 4 * US);
    assert!(records.flows.iter().all(|flow| flow.fct == Some(alone) && flow.ideal_fct == alone));
    let traced = records.trace.to_vec().unwrap();
    let data = traced.iter().filter(|row| row.kind == "data");
    let pairs: BTreeSet<(u32, (u32, u32))> = data.map(|row| (row.flow, (row.src, row.dst))).collect();
    assert_eq!(pairs.len(), 64, "each has one");
    let mut counts = std::collections::BTreeMap::new();
    pairs.into_iter().for_each(|(_, ends)| *counts.entry(ends).or_insert(0) += 1);
    // A binomial draw of 64 with p = 1/4: four standard deviations of 3.5.
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [(0, 4), (0, 6), (2, 4), (2, 6)]);
    assert!(counts.values().all(|count| (2..=30).contains(count)), "{counts:?}");
}

/// Server 0 loses a port: it is left at both ends, while the other server goes on by both of its own.
#[test]
fn the_last_hop_of_a_dual_tor_may_be_either_port() {
    let plane = leaf_spine(4, 2, 2);
    let transport = Transport { congestion: unlimited().congestion, ..Transport::default() };
    let both = [(0, 2, 2_000_000, 0), (2, 0, 2_000_000, 0)];
    for selection in SELECTIONS {
        let flows: Vec<_> =
            (0..8).flat_map(|at| both.map(|(src, dst, bytes, _)| (src, dst, bytes, at))).collect();
        let run = listed(&flows, &dual_tor(selection), &plane);
        let config = |until| {
            let faults = vec![cut("h2", "s1", 10, until)];
            SimConfig { transport: transport.clone(), faults, ..scheme("spray-nic") }
        };
        let records = everywhere(&run, &config(None));
        assert!(records.flows.iter().all(|flow| flow.delivered == flow.bytes), "{selection:?}");
        let most = 30 * US / PACKET + 1 + 10 * US / PACKET;
        let packets = sent(&records, "h2").packets;
        assert!((60..=most).contains(&packets), "{selection:?}: {packets}");
        assert!(received(&records, "h2").lost > 0 && sent(&records, "h2").lost > 0, "{selection:?}");
        // Both ports of the other server send data for 30 us, and an answer to each packet of two ports.
        let (lost, in_time) = (received(&records, "h2").lost, 30 * US / PACKET + 1);
        assert!(lost <= 4 * in_time, "{selection:?}: {lost}");
        for host in ["h4", "h6"] {
            assert!(sent(&records, host).packets > 2 * most, "{selection:?}: {host} has a port to go to");
        }
        let repaired = everywhere(&run, &config(Some(60)));
        assert!(sent(&repaired, "h2").packets > 2 * most, "{selection:?}");
        assert!(repaired.flows.iter().all(|flow| flow.fct.is_some()));
    }
}

/// Each NIC needs a live port, whichever it is; and routing must find the other one.
#[test]
fn what_cannot_change_the_last_hop_is_refused() {
    let plane = leaf_spine(4, 2, 2);
    let built = |name: &str, faults: Vec<Fault>| {
        let (network, plan) = listed(&[(0, 2, 1, 0)], &dual_tor(PortSelection::Flow), &plane);
        Simulation::new(network, SimConfig { faults, ..scheme(name) }, plan)
    };
    let crossed = vec![cut("h2", "s1", 1, None), cut("h4", "s2", 5, None)];
    assert!(built("ecmp", crossed).is_ok());
    let both = vec![cut("h2", "s1", 1, None), cut("h0", "s0", 5, None)];
    let error = built("ecmp", both).unwrap_err().to_string();
    assert!(error.contains("1.until"), "{error}");
    for (name, cut, expected) in [
        ("letflow", Some(cut("h2", "s1", 1, None)), "no cut of a host's link"),
        ("letflow", None, ""),
        ("presto", None, "one at NICs that draws entropy values"),
    ] {
        let error = built(name, cut.into_iter().collect()).err().map(|error| error.to_string());
        match error {
            Some(error) => assert!(!expected.is_empty() && error.contains(expected), "{name}: {error}"),
            None => assert_eq!(expected, "", "{name}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever fails, flows end, and every plane carries some of what is sent while it lasts.
    #[test]
    fn flows_end_though_a_port_is_dead(
        selection in 0..4usize,
        planes in 2..5u32,
        joined in any::<bool>(),
        nics in 1..3u32,
        nic_selection in 0..4usize,
        name in 0..5usize,
        lossless in any::<bool>(),
        dead in (0..16u32, 0..4u32),
        from in 1..40u64,
        failover_after in 0..40u64,
        repair in prop::option::of(41..120u64),
        seed in any::<u64>(),
    ) {
        let plane = leaf_spine(4, 2, 4);
        let name = ["ecmp", "spray-nic", "spray", "letflow", "adaptive"][name];
        let port_selection = match SELECTIONS[selection] {
            PortSelection::Entropy if name != "spray-nic" => PortSelection::LeastLoaded,
            selection => selection,
        };
        let bond = Bond { port_selection, failover_after: Time::from_us(failover_after) };
        let nic_selection = [
            NicSelection::Stripe, NicSelection::RoundRobin, NicSelection::Hash, NicSelection::LeastOutstanding,
        ][nic_selection];
        // The second leaf switch of a pair stands for the second plane.
        let (name, planes) = if joined && name == "letflow" { ("adaptive", planes) } else { (name, planes) };
        let servers = Servers { nics, nic_selection, bond: Some(bond), ..Servers::default() };
        let (of_plane, servers) = match joined {
            true => (4, Servers { ports: 2, ..servers }),
            false => (16, Servers { planes, ..servers }),
        };
        let planes = if joined { 4 } else { planes };
        let pattern = Uniform { size: Bytes(150_000).into(), messages_per_host: Some(12), ..Uniform::default() };
        let run = planned(Pattern::Uniform(pattern), &servers, &plane);
        let mut config = SimConfig { seed, ..scheme(name) };
        if lossless {
            config.fabric = Fabric {
                flow_control: FlowControl::Credits(flow_control::credits::Credits::default()),
                ..Fabric::default()
            };
        }
        let host = if joined { dead.0 } else { dead.0 + of_plane * (dead.1 % planes) };
        let switch = run.0.node_name(run.0.edge_switch(host));
        config.faults = vec![cut(&run.0.node_name(host), &switch, from, repair)];
        let records = everywhere(&run, &config);
        prop_assert!(records.flows.iter().all(|flow| flow.fct.is_some() && flow.delivered == flow.bytes));
        for plane in 0..planes {
            let hosts = plane * of_plane..(plane + 1) * of_plane;
            let bytes: u64 = hosts.map(|host| sent(&records, &run.0.node_name(host)).bytes).sum();
            prop_assert!(bytes > 0, "nothing in plane {}", plane);
        }
        if repair.is_none() {
            // No port sends to nowhere for longer than the time said.
            let most = (from + failover_after + 1) * US / PACKET + 1;
            let host = run.0.node_name(host);
            let full = sent(&records, &host).bytes / 4160;
            prop_assert!(full <= most, "{} of {}", full, most);
        }
    }
}
