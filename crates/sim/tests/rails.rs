//! Servers with several NICs: exact times, splits by hand, and the same run written flow by flow.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::*;
use netloom_fabric::{Fabric, FabricOptions};
use netloom_record::{PartRecord, Records, Status, Summary, SummaryOptions};
use netloom_sim::{Completion, Milestone, Order, SimConfig, SimError, Simulation};
use netloom_topology::Network;
use netloom_transport::reliability::selective_repeat::SelectiveRepeat;
use netloom_transport::{Reliability, Transport};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{
    Algorithm, Bernoulli, Collective, Goal, GpuCollective, Idle, Message, Method, Mix, NicChoice,
    NicSelection, Operation, Options, Part, Pattern, Permutation, Plan, PlanContext, Poisson, Rails, ScaleUp,
    ScaleUpWiring, Servers, TrainingStep, Uniform, Wiring, Workload,
};

const US: u64 = 1_000_000;

/// 64 B of header on 4096 B of payload, 200 Gb/s.
const PACKET: u64 = 166_400;

fn servers(nics: u32, nic_selection: NicSelection) -> Servers {
    Servers { nics, nic_selection, ..Servers::default() }
}

fn lay(servers: &Servers, network: &Network) -> Option<Arc<Rails>> {
    Some(Arc::new(servers.build(network, 1).unwrap()))
}

fn plan_of(pattern: Pattern, servers: &Servers, network: &Network) -> Plan {
    let context = PlanContext { rails: lay(servers, network), ..PlanContext::new(1) };
    Workload::new(pattern).plan(network, &context).unwrap()
}

/// Messages between servers: (source, destination, bytes, start in nanoseconds).
fn listed(messages: &[(u32, u32, u64, u64)], servers: &Servers, network: &Network) -> Plan {
    let message = |&(src, dst, bytes, at): &_| (src, Message::new(dst, Bytes(bytes), Time::from_ns(at)));
    let rails = lay(servers, network);
    let endpoints = rails.as_ref().map_or(0, |rails| rails.endpoints());
    let list = Plan::of_messages(endpoints, messages.iter().map(message));
    Plan { rails, ..list }
}

/// The same records on one thread, on three, and under the textbook executor.
fn everywhere(network: &Network, config: &SimConfig, plan: &Plan) -> Records {
    let simulation = || Simulation::new(network.clone(), config.clone(), plan.clone()).unwrap();
    let one = simulation().run(1).unwrap().records;
    for threads in 2..=4 {
        assert_eq!(difference(&one, &simulation().run(threads).unwrap().records), None, "{threads} threads");
    }
    assert_eq!(difference(&one, &simulation().run_reference().unwrap().records), None);
    one
}

fn parts(records: &Records) -> Vec<PartRecord> {
    records.parts.as_ref().unwrap().to_vec().unwrap()
}

fn without_window() -> SimConfig {
    SimConfig { transport: unlimited(), ..scheme("ecmp") }
}

#[test]
fn a_striped_message_takes_a_share_of_the_serialisation() {
    for nics in [2, 4, 8] {
        let network = crossbar(2 * nics);
        let striped = servers(nics, NicSelection::Stripe);
        let records =
            everywhere(&network, &without_window(), &listed(&[(0, 1, 400 * 4096, 0)], &striped, &network));
        // A packet goes over two links, one after the other; the packets behind it follow closely.
        let expected = Time((400 / u64::from(nics) + 1) * PACKET + 2 * US);
        let [message] = &records.flows[..] else { panic!("{:?}", records.flows) };
        assert_eq!((message.fct, message.ideal_fct, message.bytes), (Some(expected), expected, 400 * 4096));
        assert_eq!((message.src, message.dst, message.packets), (0, 1, 400));
        let rails: Vec<_> = parts(&records).iter().map(|part| (part.rail, part.src, part.dst)).collect();
        assert_eq!(rails, (0..nics).map(|rail| (rail, rail, nics + rail)).collect::<Vec<_>>());
        assert!(parts(&records).iter().all(|part| part.bytes == 400 * 4096 / u64::from(nics)));
        let summary = Summary::new(&records, &SummaryOptions::default(), Status::Complete).unwrap();
        assert_eq!((summary.flows.completed, summary.slowdown.unwrap().max), (1, 1.0));
    }
}

/// Where the parts are not equal, the largest decides.
#[test]
fn parts_are_whole_packets() {
    let network = crossbar(8);
    let messages = [(0, 1, 9 * 4096 + 1, 0), (0, 1, 4097, 50_000), (0, 1, 1, 100_000), (0, 1, 1, 150_000)];
    let records = everywhere(
        &network,
        &without_window(),
        &listed(&messages, &servers(4, NicSelection::Stripe), &network),
    );
    let bytes = |flow: u32| -> Vec<(u32, u64)> {
        let of_message = parts(&records).into_iter().filter(|part| part.flow == flow);
        of_message.map(|part| (part.rail, part.bytes)).collect()
    };
    // Ten packets; those of each message begin behind the last of the message before.
    assert_eq!(bytes(0), [(0, 3 * 4096), (1, 3 * 4096), (2, 2 * 4096), (3, 4096 + 1)]);
    assert_eq!(bytes(1), [(0, 4096), (1, 1)]);
    assert_eq!((bytes(2), bytes(3)), (vec![(2, 1)], vec![(3, 1)]));
    let expected = [4 * PACKET + 2 * US, 2 * PACKET + 2 * US];
    let one = Time(2 * US) + at_200g(65) * 2;
    let fcts: Vec<Time> = records.flows.iter().map(fct).collect();
    assert_eq!(fcts, [Time(expected[0]), Time(expected[1]), one, one]);
    assert!(records.flows.iter().all(|flow| flow.fct == Some(flow.ideal_fct)));
}

#[test]
fn whole_messages_are_spread_as_the_rule_says() {
    let network = crossbar(16);
    let rails_of = |messages: &[(u32, u32, u64, u64)], nic_selection| -> Vec<u32> {
        let plan = listed(messages, &servers(4, nic_selection), &network);
        let records = everywhere(&network, &without_window(), &plan);
        assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
        assert_eq!(parts(&records).len(), messages.len());
        parts(&records).iter().filter(|part| part.server == 0).map(|part| part.rail).collect()
    };
    // Six messages of server 0 to three others, and one of another server between them.
    let six = [
        (0, 1, 5000, 0),
        (0, 2, 1, 0),
        (1, 2, 7, 0),
        (0, 3, 9000, 10),
        (0, 1, 20, 10),
        (0, 2, 1, 20),
        (0, 1, 1, 30),
    ];
    assert_eq!(rails_of(&six, NicSelection::RoundRobin), [0, 1, 2, 3, 0, 1]);
    let hash = lay(&servers(4, NicSelection::Hash), &network).unwrap();
    let ends = [1, 2, 3, 1, 2, 1];
    let expected: Vec<u32> = (0..).zip(ends).map(|(number, dst)| hash.hashed(0, dst, number)).collect();
    assert!(expected.iter().any(|&rail| rail != expected[0]), "{expected:?}");
    assert_eq!(rails_of(&six, NicSelection::Hash), expected);
    // The large message is acknowledged after 4.2 us + 1000 packets of 166.4 ns, the small ones after some 4 us.
    let busy = [
        (0, 1, 1000 * 4096, 0),
        (0, 1, 1, 0),
        (0, 1, 1, 0),
        (0, 1, 1, 0),
        (0, 1, 1, 10_000),
        (0, 1, 1, 20_000),
        (0, 1, 1, 30_000),
        (0, 1, 1, 200_000),
    ];
    // In turn behind rail 3: not 0, but 1; then 2, 3, and 0 once it is free.
    assert_eq!(rails_of(&busy, NicSelection::LeastOutstanding), [0, 1, 2, 3, 1, 2, 3, 0]);
    assert_eq!(rails_of(&busy, NicSelection::RoundRobin), [0, 1, 2, 3, 0, 1, 2, 3]);
}

/// Each part as a message of its own, between the hosts that the NICs are.
fn by_hand(records: &Records, hosts: u32) -> Plan {
    let message = |part: &PartRecord| (part.src, Message::new(part.dst, Bytes(part.bytes), part.start));
    Plan::of_messages(hosts, parts(records).iter().map(message))
}

#[test]
fn a_list_of_flows_by_hand_is_the_same_run() {
    let network = leaf_spine(4, 2, 6);
    // A scheme to which a flow's number is nothing.
    let mut config = scheme("d-mod-k");
    config.fabric.options.buffer = Some(Bytes(60_000));
    // By number and not by time: then the load ends when the list does.
    let poisson =
        Poisson { load: 0.8, messages_per_host: Some(12), size: Bytes(90_000).into(), ..Poisson::default() };
    for nic_selection in
        [NicSelection::Stripe, NicSelection::RoundRobin, NicSelection::Hash, NicSelection::LeastOutstanding]
    {
        for wiring in [Wiring::SideBySide, Wiring::RailOptimised] {
            let servers = Servers { wiring, ..servers(2, nic_selection) };
            let plan = plan_of(Pattern::Poisson(poisson.clone()), &servers, &network);
            let railed = everywhere(&network, &config, &plan);
            let hand = run(network.clone(), config.clone(), by_hand(&railed, network.hosts()));
            assert!(railed.flows.len() == 12 * 12 && railed.totals.data.dropped > 0);
            assert!(hand.channels == railed.channels, "{nic_selection:?}, {wiring:?}");
            assert_eq!(hand.totals, railed.totals);
            assert_eq!(hand.flows.len(), parts(&railed).len());
            let line = |ends: (u32, u32), start: Time, bytes: u64, times: [Option<Time>; 2]| {
                format!("{ends:?} {start:?} {bytes} {times:?}")
            };
            let of_hand =
                hand.flows.iter().map(|f| line((f.src, f.dst), f.start, f.bytes, [f.fct, f.sender_fct]));
            let of_rails = parts(&railed)
                .into_iter()
                .map(|p| line((p.src, p.dst), p.start, p.bytes, [p.fct, p.sender_fct]));
            assert_eq!(BTreeSet::from_iter(of_hand), BTreeSet::from_iter(of_rails));
            // Every byte is delivered once, by the message as by its parts.
            let sum = |bytes: &mut dyn Iterator<Item = u64>| bytes.sum::<u64>();
            assert!(railed.flows.iter().all(|flow| flow.delivered == flow.bytes));
            assert_eq!(
                sum(&mut railed.flows.iter().map(|f| f.bytes)),
                sum(&mut parts(&railed).iter().map(|p| p.delivered))
            );
        }
    }
}

#[test]
fn optimised_rails_keep_a_group_off_the_spines() {
    let network = leaf_spine(4, 2, 6);
    let spines = |wiring, messages: &[(u32, u32, u64, u64)]| -> u64 {
        let servers = Servers { wiring, ..servers(2, NicSelection::Stripe) };
        let records = run(network.clone(), scheme("ecmp"), listed(messages, &servers, &network));
        assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
        records.channels.iter().filter(|channel| *channel.tier == *"leaf-spine").map(|c| c.packets).sum()
    };
    // Server 0 has its NICs at leaves 0 and 1, as servers 1 to 5 have; side by side, three servers are at a leaf.
    let within = [(0, 5, 100_000, 0), (5, 1, 100_000, 0)];
    assert_eq!(spines(Wiring::RailOptimised, &within), 0);
    assert!(spines(Wiring::SideBySide, &within) > 0);
    assert!(spines(Wiring::RailOptimised, &[(0, 6, 100_000, 0)]) > 0);
}

/// A closed loop goes on in the instant in which the last part of a message is acknowledged.
#[test]
fn closed_loops_wait_for_all_parts() {
    let network = crossbar(8);
    for nic_selection in
        [NicSelection::Stripe, NicSelection::RoundRobin, NicSelection::Hash, NicSelection::LeastOutstanding]
    {
        let loops = Uniform { size: Bytes(50_001).into(), messages_per_host: Some(20), ..Uniform::default() };
        let plan = plan_of(Pattern::Uniform(loops), &servers(4, nic_selection), &network);
        let records = everywhere(&network, &scheme("ecmp"), &plan);
        assert_eq!(records.flows.len(), 40);
        for pair in records.flows.windows(2).filter(|pair| pair[0].src == pair[1].src) {
            assert_eq!(pair[1].start, pair[0].start + pair[0].sender_fct.unwrap());
        }
        let last = |flow: u32, src: u32| {
            let of_message = parts(&records).into_iter().filter(move |p| (p.server, p.flow) == (src, flow));
            of_message.map(|part| (part.fct.unwrap(), part.sender_fct.unwrap())).collect::<Vec<_>>()
        };
        for flow in &records.flows {
            let parts = last(flow.flow, flow.src);
            assert_eq!(parts.len(), if nic_selection == NicSelection::Stripe { 4 } else { 1 });
            assert_eq!(flow.fct, parts.iter().map(|part| part.0).max());
            assert_eq!(flow.sender_fct, parts.iter().map(|part| part.1).max());
        }
    }
}

/// Messages of programs have fewer parts than there are NICs, or as many.
#[test]
fn programs_wait_for_all_parts() {
    let network = leaf_spine(4, 2, 4);
    for (algorithm, size) in [
        (Algorithm::RingAllreduce, 200_000),
        (Algorithm::DisseminationBarrier, 1),
        (Algorithm::PairwiseAllToAll, 9_000),
        (Algorithm::RecursiveDoublingAllreduce, 20_000),
    ] {
        for nic_selection in [
            NicSelection::Stripe,
            NicSelection::RoundRobin,
            NicSelection::Hash,
            NicSelection::LeastOutstanding,
        ] {
            let collective = Collective {
                algorithm,
                size: Some(Bytes(size)),
                repeat: 3,
                compute: Time::from_us(2),
                ..Collective::default()
            };
            let plan = plan_of(Pattern::Collective(collective), &servers(4, nic_selection), &network);
            let total = plan.total_messages;
            let records = everywhere(&network, &scheme("spray"), &plan);
            assert_eq!(Some(records.flows.len() as u64), total);
            assert!(records.flows.iter().all(|flow| flow.fct.is_some() && flow.src < 4 && flow.dst < 4));
        }
    }
}

/// Ranks 0 and 1 in turn, so that everything waits for the last part.
#[test]
fn a_ring_of_two_takes_its_steps_one_after_the_other() {
    let network = crossbar(8);
    let collective = Collective { size: Some(Bytes(2 * 40 * 4096)), ..Collective::default() };
    let plan = plan_of(Pattern::Collective(collective), &servers(4, NicSelection::Stripe), &network);
    let records = everywhere(&network, &without_window(), &plan);
    // Both send half of the data twice, 40 packets over four NICs: the second half when the first has come and is acknowledged.
    let step = Time(11 * PACKET + 2 * US);
    let acknowledged = step + Time(2 * US) + at_200g(64) * 2;
    let found: Vec<_> = records.flows.iter().map(|flow| (flow.src, flow.start, fct(flow))).collect();
    let expected = [0, 1].map(|src| [(src, Time::ZERO, step), (src, acknowledged, step)]);
    assert_eq!(found, expected.concat());
}

/// Four servers of four GPUs with a NIC each, at two leaves.
fn gpus(wiring: ScaleUpWiring) -> (Servers, Network) {
    let scale_up = ScaleUp { wiring, rate: Rate::from_gbps(1600), latency: Time::from_ns(500) };
    let servers = Servers { gpus: Some(4), scale_up: Some(scale_up), ..servers(4, NicSelection::Stripe) };
    let network = servers.network(leaf_spine(2, 2, 8)).unwrap();
    (servers, network)
}

/// 64 B of header on 4096 B of payload, 1600 Gb/s.
const FAST_PACKET: u64 = PACKET / 8;

#[test]
fn gpus_of_a_server_reach_each_other_over_its_scale_up_network() {
    for (wiring, ways) in [(ScaleUpWiring::Switch, 1), (ScaleUpWiring::AllToAll, 2)] {
        let (servers, network) = gpus(wiring);
        assert_eq!((network.hosts(), network.components()), (32, 5));
        // GPUs 4 and 7 are of one server, 8 is of another one at the same leaf.
        let messages = [(4, 7, 400 * 4096, 0), (4, 2, 400 * 4096, 0), (0, 3, 1, 200_000)];
        let records = everywhere(&network, &without_window(), &listed(&messages, &servers, &network));
        let of = |flow: usize| (records.flows[flow].src, records.flows[flow].dst, fct(&records.flows[flow]));
        // To the switch and from it at the whole rate; or at it to the own switch, at a third of it to the other one, and at it again.
        let link = |bytes| Rate(1_600_000_000_000 / 3).serialize(Bytes(bytes)).0;
        let [inside, small] = match wiring {
            ScaleUpWiring::Switch => [401 * FAST_PACKET, 2 * 65 * 5],
            ScaleUpWiring::Ideal => unreachable!("nothing is simulated then"),
            ScaleUpWiring::AllToAll => [400 * link(4160) + 2 * FAST_PACKET, link(65) + 2 * 65 * 5],
        };
        let outside = Time(401 * PACKET + 2 * US);
        let expected = [(0, 3, Time(small + US / 2)), (4, 7, Time(inside + US / 2)), (4, 2, outside)];
        let mut found: Vec<_> = (0..3).map(of).collect();
        found.sort();
        let mut sorted = expected.to_vec();
        sorted.sort();
        assert_eq!(found, sorted, "{wiring:?}");
        assert!(records.flows.iter().all(|flow| flow.fct == Some(flow.ideal_fct)));
        // The scale-up port is the one behind the GPU's NICs.
        let rails: Vec<_> = parts(&records).iter().map(|part| (part.server, part.rail)).collect();
        assert_eq!(rails, [(0, 1), (4, 1), (4, 0)]);
        let inside = records.channels.iter().filter(|channel| channel.tier.starts_with("scale-up-"));
        let carried: u64 = inside.map(|channel| channel.packets).sum();
        assert!(carried >= (ways + 1) * 401, "{carried}");
    }
}

/// Two planes take half of the packets each, and nothing crosses from one to the other.
#[test]
fn planes_carry_a_share_each() {
    let plane = leaf_spine(4, 2, 4);
    let servers = Servers { planes: 2, ..servers(1, NicSelection::Stripe) };
    let network = servers.network(plane.clone()).unwrap();
    assert_eq!(
        (network.hosts(), network.components(), network.name()),
        (32, 2, "2 planes of leaf-spine 4x2: 16 hosts")
    );
    let records =
        everywhere(&network, &without_window(), &listed(&[(1, 14, 400 * 4096, 0)], &servers, &network));
    // Four links, one after the other, at half of the packets.
    let expected = Time((200 + 3) * PACKET + 4 * US);
    assert_eq!((fct(&records.flows[0]), records.flows[0].ideal_fct), (expected, expected));
    let ends: Vec<_> = parts(&records).iter().map(|part| (part.rail, part.src, part.dst)).collect();
    assert_eq!(ends, [(0, 1, 14), (1, 17, 30)]);
    // As two runs of one plane that know nothing of each other.
    let poisson =
        Poisson { load: 0.7, messages_per_host: Some(8), size: Bytes(60_000).into(), ..Poisson::default() };
    let plan = plan_of(Pattern::Poisson(poisson), &servers, &network);
    let mut config = scheme("d-mod-k");
    config.fabric.options.buffer = Some(Bytes(50_000));
    let both = everywhere(&network, &config, &plan);
    assert!(both.flows.len() == 16 * 8 && both.totals.data.dropped > 0);
    for number in 0..2 {
        let own = parts(&both).into_iter().filter(|part| part.rail == number);
        let message = |part: PartRecord| {
            let host = |host: u32| host - 16 * number;
            (host(part.src), Message::new(host(part.dst), Bytes(part.bytes), part.start))
        };
        let alone = run(plane.clone(), config.clone(), Plan::of_messages(16, own.map(message)));
        let counts = |records: &Records, name: &dyn Fn(&str) -> Option<String>| -> BTreeSet<String> {
            let named = records.channels.iter().filter_map(|channel| {
                let ends = (name(&channel.from)?, name(&channel.to)?);
                Some(format!("{ends:?} {} {} {}", channel.packets, channel.bytes, channel.drops))
            });
            named.collect()
        };
        // Hosts of the second plane come behind those of the first, and its switches, too.
        let in_plane = |name: &str| {
            let (kind, digits) = name.split_at(1);
            let (at, count) = (digits.parse::<u32>().unwrap(), if kind == "h" { 16 } else { 6 });
            (at / count == number).then(|| format!("{kind}{}", at % count))
        };
        assert_eq!(counts(&both, &in_plane), counts(&alone, &|name| Some(name.to_owned())), "plane {number}");
    }
}

/// A collective of GPUs takes NVLink inside a server and NICs between them.
#[test]
fn programs_of_gpus_use_both_networks() {
    for nic_selection in
        [NicSelection::Stripe, NicSelection::RoundRobin, NicSelection::Hash, NicSelection::LeastOutstanding]
    {
        let (servers, _) = gpus(ScaleUpWiring::Switch);
        let servers = Servers { nics: 8, planes: 2, nic_selection, ..servers };
        let network = servers.network(leaf_spine(4, 2, 8)).unwrap();
        let collective = Collective { size: Some(Bytes(160_000)), ..Collective::default() };
        let plan = plan_of(Pattern::Collective(collective), &servers, &network);
        let records = everywhere(&network, &scheme("spray"), &plan);
        assert_eq!(records.flows.len(), 16 * 2 * 15);
        for part in parts(&records) {
            let is_inside = part.server / 4 == (part.server + 1) % 16 / 4;
            assert_eq!(part.rail == 4, is_inside, "{part:?}");
            assert!(part.fct.is_some());
        }
        let used: BTreeSet<u32> = parts(&records).iter().map(|part| part.rail).collect();
        assert_eq!(used.len(), 5, "{nic_selection:?}");
    }
}

#[test]
fn the_driven_run_equals_the_listed_one() {
    let network = leaf_spine(2, 2, 8);
    let shallow = Fabric {
        options: FabricOptions { buffer: Some(Bytes(40_000)), ..Default::default() },
        ..Fabric::default()
    };
    for nic_selection in
        [NicSelection::Stripe, NicSelection::RoundRobin, NicSelection::Hash, NicSelection::LeastOutstanding]
    {
        let servers = servers(4, nic_selection);
        let config = SimConfig { fabric: shallow.clone(), ..scheme("ecmp") };
        let idle = plan_of(Pattern::Idle(Idle::default()), &servers, &network);
        let mut run = Simulation::new(network.clone(), config.clone(), idle).unwrap().drive();
        assert_eq!(run.hosts(), 4);
        let mut orders = Vec::new();
        for src in 0..4 {
            let order = Order { src, dst: (src + 2) % 4, bytes: Bytes(70_000), at: Time::ZERO, class: 0 };
            run.start(order).unwrap();
            orders.push(order);
        }
        let mut completions = Vec::new();
        while let Some(Completion { ticket, at, .. }) = run.next_completion(Time::MAX, |_| true) {
            completions.push((ticket, at));
            if orders.len() < 40 {
                let done = orders[ticket.0 as usize];
                let order = Order {
                    src: done.dst,
                    dst: (done.dst + 1) % 4,
                    bytes: Bytes(done.bytes.0 * 3 % 99_991 + 1),
                    at,
                    class: 0,
                };
                run.start(order).unwrap();
                orders.push(order);
            }
        }
        assert!(run.start(Order { src: 4, ..orders[0] }).unwrap_err().to_string().contains("0 to 3"));
        assert_eq!(completions.len(), 40);
        let records = run.finish().unwrap().records;
        // A completion is that of the last part.
        let mut ends: Vec<Time> = records.flows.iter().map(|flow| flow.start + fct(flow)).collect();
        ends.sort();
        assert_eq!(ends, completions.iter().map(|&(_, at)| at).collect::<Vec<_>>());
        let messages = orders.iter().map(|order| (order.src, Message::new(order.dst, order.bytes, order.at)));
        let plan = Plan { rails: lay(&servers, &network), ..Plan::of_messages(4, messages) };
        assert_eq!(difference(&records, &everywhere(&network, &config, &plan)), None, "{nic_selection:?}");
    }
}

/// A message is acknowledged with the last ACK of its last part.
#[test]
fn servers_report_when_all_is_acknowledged() {
    let network = leaf_spine(2, 2, 8);
    let servers = servers(4, NicSelection::Stripe);
    for reaction in [Time::ZERO, Time::from_ns(10)] {
        let idle = plan_of(Pattern::Idle(Idle::default()), &servers, &network);
        let mut run = Simulation::new(network.clone(), scheme("ecmp"), idle).unwrap().drive();
        run.set_reaction(reaction).unwrap();
        run.report_acknowledged().unwrap();
        let order = Order { src: 0, dst: 2, bytes: Bytes(70_000), at: Time::ZERO, class: 0 };
        run.start(order).unwrap();
        let found: Vec<_> = std::iter::from_fn(|| run.next_completion(Time::MAX, |_| true)).collect();
        let records = run.finish().unwrap().records;
        let arrived = records.flows.iter().map(|flow| flow.start + fct(flow)).max().unwrap();
        let acknowledged =
            records.flows.iter().map(|flow| flow.start + flow.sender_fct.unwrap()).max().unwrap();
        let expected = [(Milestone::Arrived, arrived), (Milestone::Acknowledged, acknowledged)];
        assert_eq!(found.iter().map(|found| (found.milestone, found.at)).collect::<Vec<_>>(), expected);
        assert!(acknowledged > arrived);
    }
}

/// Open and closed loops, streams and programs at once, with losses and reordering.
#[test]
fn everything_goes_over_rails_together() {
    let network = leaf_spine(4, 2, 4);
    let part = |name: &str, pattern| Part { name: Some(name.into()), pattern, options: Options::default() };
    let frames = Bernoulli { load: 0.2, until: Time::from_us(40), ..Bernoulli::default() };
    let mix = |with_frames: bool| {
        let mut parts = vec![
            part(
                "loop",
                Pattern::Permutation(Permutation {
                    size: Bytes(60_000).into(),
                    repeat: 3,
                    ..Default::default()
                }),
            ),
            part(
                "ring",
                Pattern::Collective(Collective { size: Some(Bytes(90_000)), ..Collective::default() }),
            ),
            part(
                "open",
                Pattern::Poisson(Poisson {
                    size: Bytes(9_000).into(),
                    messages_per_host: Some(9),
                    ..Poisson::default()
                }),
            ),
        ];
        if with_frames {
            parts.push(part("frames", Pattern::Bernoulli(frames.clone())));
        }
        Pattern::Mix(Mix { parts })
    };
    let mut config = scheme("spray");
    config.transport = Transport {
        reliability: Reliability::SelectiveRepeat(SelectiveRepeat {
            rack: true,
            ..SelectiveRepeat::default()
        }),
        ..Transport::default()
    };
    config.fabric.options.buffer = Some(Bytes(12_500));
    for nic_selection in
        [NicSelection::Stripe, NicSelection::RoundRobin, NicSelection::Hash, NicSelection::LeastOutstanding]
    {
        for wiring in [Wiring::SideBySide, Wiring::RailOptimised] {
            let servers = Servers { wiring, ..servers(4, nic_selection) };
            let plan = plan_of(mix(nic_selection != NicSelection::LeastOutstanding), &servers, &network);
            let records = everywhere(&network, &config, &plan);
            assert!(records.flows.iter().all(|flow| flow.stream || flow.fct.is_some()));
            assert!(records.flows.iter().all(|flow| flow.bytes == flow.delivered), "each byte once");
            assert!(records.totals.data.dropped > 0, "{nic_selection:?}");
            for rail in 0..4 {
                assert!(
                    parts(&records).iter().any(|part| part.rail == rail),
                    "{nic_selection:?}: rail {rail}"
                );
            }
        }
    }
    let plan =
        plan_of(Pattern::Bernoulli(frames.clone()), &servers(4, NicSelection::LeastOutstanding), &network);
    let error = Simulation::new(network.clone(), config.clone(), plan).unwrap_err();
    assert!(matches!(&error, SimError::Servers(invalid) if invalid.field == "nic_selection"), "{error}");
    config.transport.reliability = Reliability::None(Default::default());
    config.transport.congestion = unlimited().congestion;
    config.fabric.options.buffer = None;
    let plan = plan_of(Pattern::Idle(Idle::default()), &servers(4, NicSelection::Stripe), &network);
    let error = Simulation::new(network, config, plan).unwrap_err().to_string();
    assert!(
        error.contains("transport.reliability: expected a reliability with ACKs where servers"),
        "{error}"
    );
}

/// A server offers a load as a share of all its links.
#[test]
fn loads_are_shares_of_all_links_of_a_server() {
    let network = crossbar(8);
    let frames = Bernoulli { load: 0.5, until: Time::from_us(500), ..Bernoulli::default() };
    let plan = plan_of(Pattern::Bernoulli(frames), &servers(4, NicSelection::RoundRobin), &network);
    let records = run(network, without_window(), plan);
    let bytes: u64 = records.flows.iter().map(|flow| flow.bytes).sum();
    // Two servers of 800 Gb/s for 500 us at a half: 50 MB, of which frames of 4 KiB are drawn one by one.
    assert!((49e6..51e6).contains(&(bytes as f64)), "{bytes}");
    let by_rail =
        |rail| parts(&records).iter().filter(|part| part.rail == rail).map(|p| p.bytes).sum::<u64>();
    let frame = records.flows[0].bytes / (records.flows[0].bytes / 1500).max(1);
    assert!((0..4).all(|rail| by_rail(rail).abs_diff(bytes / 4) <= 2 * frame.max(9000)), "turn by turn");
}

/// Servers with a GPU for each NIC, and an ideal scale-up network of eight times the rate of a NIC.
fn with_gpus(nics: u32, nic_selection: NicSelection) -> Servers {
    let (rate, latency) = (Rate::from_gbps(1600), Time::from_ns(500));
    let scale_up = Some(ScaleUp { wiring: ScaleUpWiring::Ideal, rate, latency });
    Servers { gpus: Some(nics), scale_up, ..servers(nics, nic_selection) }
}

/// The end of the last message.
fn end(records: &Records) -> Time {
    records.flows.iter().map(|flow| flow.start + fct(flow)).max().unwrap()
}

/// Whether messages end when a closed form without ACKs says, but for what ACKs in the opposite direction take: one for each packet at most.
fn takes(records: &Records, expected: Time, packets: u64) -> bool {
    let acks = at_200g(64) * packets;
    (expected..=expected + acks).contains(&end(records))
}

/// A step of a ring takes as long as its message alone: 2 (n - 1) of them for an all-reduce, over the network or along rails.
#[test]
fn rings_of_gpus_take_their_steps() {
    let bytes = 20 * 4096;
    let step = Time(21 * PACKET + 2 * US);
    for (operation, steps) in
        [(Operation::AllReduce, 6), (Operation::AllGather, 3), (Operation::ReduceScatter, 3)]
    {
        let (algorithm, size) = (Method::Ring, Bytes(4 * bytes));
        let ring = GpuCollective { operation, algorithm, size, ..GpuCollective::default() };
        let network = crossbar(4);
        let pattern = Pattern::GpuCollective(ring.clone());
        let plan = Workload::new(pattern).plan(&network, &PlanContext::new(1)).unwrap();
        let records = everywhere(&network, &without_window(), &plan);
        assert_eq!(records.flows.len(), 4 * steps, "{operation:?}");
        assert!(takes(&records, step * steps as u64, 20 * steps as u64), "{operation:?}: {}", end(&records));
        // Four servers of two GPUs, a ring along each rail.
        let network = crossbar(8);
        let ring = GpuCollective { group_size: Some(4), group_stride: 2, ..ring };
        let plan = plan_of(Pattern::GpuCollective(ring), &with_gpus(2, NicSelection::Gpu), &network);
        let records = everywhere(&network, &without_window(), &plan);
        assert_eq!(records.flows.len(), 2 * 4 * steps, "{operation:?}");
        assert!(takes(&records, step * steps as u64, 20 * steps as u64), "{operation:?}: {}", end(&records));
        for rail in 0..2 {
            let used = parts(&records).iter().filter(|part| part.rail == rail).count();
            assert_eq!(used, 4 * steps, "{operation:?}");
        }
    }
}

/// Halves of the data: inside, between the servers, inside again. A ring over all takes the slower way at each crossing.
#[test]
fn two_tiers_take_the_time_of_both() {
    let network = crossbar(8);
    let size = Bytes(8 * 40 * 4096);
    let plan = |algorithm| {
        let collective = GpuCollective { algorithm, size, ..GpuCollective::default() };
        plan_of(Pattern::GpuCollective(collective), &with_gpus(2, NicSelection::Gpu), &network)
    };
    let records = everywhere(&network, &without_window(), &plan(Method::Hierarchical));
    // The last message between servers begins after an exchange of half the data inside and five steps outside.
    let inside = Time(500_000 + 4 * 40 * 4096 * 8 * 10 / 16);
    let outside = Time(41 * PACKET + 2 * US);
    assert!(takes(&records, inside + outside * 6, 6 * 40), "{}", end(&records));
    assert_eq!(records.flows.len(), 8 * 6);
    let ring = everywhere(&network, &without_window(), &plan(Method::Ring));
    assert!(end(&ring) > end(&records));
}

/// A message for another GPU's rail crosses the server first.
#[test]
fn messages_reach_the_rail_of_their_destination_inside_the_server() {
    let network = crossbar(4);
    let collective = GpuCollective {
        operation: Operation::Broadcast,
        algorithm: Method::Direct,
        size: Bytes(10 * 4096),
        ..GpuCollective::default()
    };
    let plan = plan_of(Pattern::GpuCollective(collective), &with_gpus(2, NicSelection::Gpu), &network);
    let records = everywhere(&network, &without_window(), &plan);
    // GPU 0 sends to 1, 2 and 3 in this order: over its port to 1, by its NIC to 2, over its port and by the NIC of GPU 1 to 3.
    let hop = Time(500_000 + 10 * 4096 * 8 * 10 / 16);
    let mut found: Vec<_> = parts(&records).iter().map(|part| (part.rail, part.start)).collect();
    found.sort();
    assert_eq!(found, [(0, Time::ZERO), (1, hop * 2)]);
}

/// A GOAL schedule names the NIC of each send; where servers choose, its numbers have no effect.
#[test]
fn schedules_choose_nics_where_they_are_asked_to() {
    let (network, servers) = (crossbar(8), servers(4, NicSelection::RoundRobin));
    let file = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("nics.goal");
    let send = |tag: u32, nic: u32| format!("send 4096b to 1 tag {tag} cpu 0 nic {nic}\n");
    let recv = |tag: u32| format!("recv 4096b from 0 tag {tag} nic 9\n");
    let write = |nics: [u32; 3]| {
        let sends: String = (0..).zip(nics).map(|(tag, nic)| send(tag, nic)).collect();
        let receives: String = (0..3).map(recv).collect();
        let text = format!("num_ranks 2\nrank 0 {{\n{sends}}}\nrank 1 {{\n{receives}}}\n");
        std::fs::write(&file, text).unwrap();
    };
    let goal = |nics| {
        let time_unit = Time::from_ns(1);
        Pattern::Goal(Goal { file: file.clone(), time_unit, overhead: None, preset: None, nics })
    };
    write([3, 0, 3]);
    for (nics, expected) in [(NicChoice::Schedule, [3, 0, 3]), (NicChoice::Servers, [0, 1, 2])] {
        let records = everywhere(&network, &without_window(), &plan_of(goal(nics), &servers, &network));
        let mut rails: Vec<_> = parts(&records).iter().map(|part| (part.flow, part.rail)).collect();
        rails.sort_unstable();
        assert_eq!(rails.iter().map(|&(_, rail)| rail).collect::<Vec<_>>(), expected);
    }
    write([3, 4, 0]);
    let refused = |pattern, context: PlanContext| {
        Workload::new(pattern).plan(&network, &context).unwrap_err().to_string()
    };
    let railed = PlanContext { rails: lay(&servers, &network), ..PlanContext::new(1) };
    let message = refused(goal(NicChoice::Schedule), railed);
    assert!(
        message.ends_with("nics.goal:4: nic: expected one of the rank's NICs, 0 to 3, found 4"),
        "{message}"
    );
    let message = refused(goal(NicChoice::Schedule), PlanContext::new(1));
    assert!(
        message.contains("nics: expected \"servers\", as a host without `[servers]` has one NIC"),
        "{message}"
    );
}

/// The same collective where the inside is simulated: an exchange inside, steps over the NICs, an exchange inside.
#[test]
fn collectives_of_gpus_cross_a_simulated_scale_up_network() {
    let (servers, network) = gpus(ScaleUpWiring::Switch);
    let size = Bytes(16 * 40 * 4096);
    let records = |algorithm| {
        let collective = GpuCollective { algorithm, size, ..GpuCollective::default() };
        let plan = plan_of(Pattern::GpuCollective(collective), &servers, &network);
        let records = everywhere(&network, &without_window(), &plan);
        assert_eq!(Some(records.flows.len() as u64), plan.total_messages);
        records
    };
    let inside = |records: &Records| parts(records).iter().filter(|part| part.rail == 1).count();
    let two_tiers = records(Method::Hierarchical);
    // Reduce-scatter and all-gather in rings of four GPUs inside, of four servers outside.
    assert_eq!((inside(&two_tiers), two_tiers.flows.len()), (16 * 6, 16 * 12));
    let ring = records(Method::Ring);
    assert_eq!((inside(&ring), ring.flows.len()), (12 * 30, 16 * 30));
    assert!(end(&two_tiers) < end(&ring));
}

/// Training steps and collectives of GPUs, under schemes that reorder and lose packets, are the same on any number of threads and under the textbook
/// executor, and send every byte once.
#[test]
fn gpus_work_alike_everywhere() {
    let network = leaf_spine(4, 2, 4);
    let mut lossy = scheme("spray");
    lossy.fabric.options.buffer = Some(Bytes(12_500));
    lossy.transport = Transport {
        reliability: Reliability::SelectiveRepeat(SelectiveRepeat::default()),
        ..Transport::default()
    };
    let step = |layout: [u32; 3], zero| TrainingStep {
        hidden: Some(128),
        heads: Some(4),
        sequence: Some(64),
        vocabulary: Some(500),
        tensor: Some(layout[0]),
        pipeline: Some(layout[1]),
        context: Some(layout[2]),
        micro_batches: Some(3),
        zero: Some(zero),
        ..TrainingStep::default()
    };
    let experts = TrainingStep { experts: Some(4), expert: Some(4), ..step([1, 2, 1], 1) };
    let collective = |operation, algorithm| {
        let size = Bytes(90_001);
        let base = GpuCollective { operation, algorithm, size, ..GpuCollective::default() };
        Pattern::GpuCollective(GpuCollective { channels: 2, chunks: 3, repeat: 2, ..base })
    };
    let patterns = [
        Pattern::TrainingStep(step([4, 2, 1], 1)),
        Pattern::TrainingStep(step([2, 1, 2], 3)),
        Pattern::TrainingStep(experts),
        collective(Operation::AllReduce, Method::DoubleBinaryTree),
        collective(Operation::AllToAll, Method::Hierarchical),
        collective(Operation::AllGather, Method::Bruck),
    ];
    for (pattern, nic_selection) in patterns.iter().zip([
        NicSelection::Gpu,
        NicSelection::Stripe,
        NicSelection::Gpu,
        NicSelection::LeastOutstanding,
        NicSelection::Gpu,
        NicSelection::Hash,
    ]) {
        for config in [&scheme("ecmp"), &lossy] {
            let plan = plan_of(pattern.clone(), &with_gpus(4, nic_selection), &network);
            let records = everywhere(&network, config, &plan);
            assert_eq!(Some(records.flows.len() as u64), plan.total_messages);
            assert!(records.flows.iter().all(|flow| flow.fct.is_some() && flow.delivered == flow.bytes));
        }
    }
}
