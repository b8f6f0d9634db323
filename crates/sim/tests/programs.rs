//! Programs in the simulator: exact times of tiny ones, and what must hold for all.

mod common;

use std::path::PathBuf;

use common::*;
use netloom_fabric::flow_control::{credits, pfc};
use netloom_fabric::{Fabric, FabricOptions, FlowControl, Qcn};
use netloom_record::Records;
use netloom_routing::preset;
use netloom_sim::{SimConfig, SimError, Simulation};
use netloom_topology::{KaryNTree, Network, Topology};
use netloom_transport::{Congestion, Reliability, Transport};
use netloom_units::{Bytes, Time};
use netloom_workload::{
    Algorithm, Application, Bernoulli, Collective, Goal, Mix, NicChoice, Options, Part, Pattern, Placement,
    Plan, PlanContext, Skeleton, Workload,
};
use proptest::prelude::*;

const US: u64 = 1_000_000;

/// 64 B of header on 4096 B of payload, 200 Gb/s.
const PACKET: u64 = 166_400;

fn without_acks() -> Transport {
    Transport { reliability: Reliability::None(Default::default()), ..unlimited() }
}

/// Runs a schedule on a crossbar of three hosts, 200 Gb/s and 1 us per link, checked against the textbook executor.
fn goal(name: &str, text: &str, transport: Transport) -> Records {
    goal_in(Time::from_ns(1), name, text, transport)
}

fn goal_in(time_unit: Time, name: &str, text: &str, transport: Transport) -> Records {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.goal"));
    std::fs::write(&file, text).unwrap();
    let pattern =
        Pattern::Goal(Goal { file, time_unit, overhead: None, preset: None, nics: NicChoice::Servers });
    let network = crossbar(3);
    let simulation = || {
        let config = SimConfig { transport: transport.clone(), ..scheme("ecmp") };
        Simulation::new(network.clone(), config, plan(pattern.clone(), &network, 1)).unwrap()
    };
    let records = simulation().run(1).unwrap().records;
    assert_eq!(difference(&records, &simulation().run_reference().unwrap().records), None);
    records
}

/// When a rank's message of that size was handed to its transport, and when it had arrived.
fn times(records: &Records, src: u32, bytes: u64) -> (Time, Time) {
    let mut found = records.flows.iter().filter(|flow| (flow.src, flow.bytes) == (src, bytes));
    let flow = found.next().expect("the message was sent");
    assert!(found.next().is_none(), "sizes tell messages apart");
    (flow.start, flow.start + fct(flow))
}

/// From a message's first bit at a free NIC to its last bit at the receiver, if it fits one packet.
fn one_way(bytes: u64) -> Time {
    at_200g(bytes + 64) * 2 + Time(2 * US)
}

const TWO_SENDS: &str = "num_ranks 2
rank 0 {
a: send 8192b to 1 tag 0
b: send 100b to 1 tag 1
b requires a
}
rank 1 {
recv 8192b from 0 tag 0
recv 100b from 0 tag 1
}";

#[test]
fn without_acks_a_send_is_done_when_its_last_bit_has_left() {
    let records = goal("left", TWO_SENDS, without_acks());
    assert_eq!(times(&records, 0, 8192), (Time::ZERO, Time(3 * PACKET + 2 * US)));
    assert_eq!(times(&records, 0, 100).0, Time(2 * PACKET));
    // At the switch it waits for the packet before it.
    assert_eq!(times(&records, 0, 100).1, Time(3 * PACKET + 2 * US) + at_200g(164));
}

#[test]
fn with_acks_a_send_is_done_when_it_is_acknowledged() {
    let records = goal("acknowledged", TWO_SENDS, unlimited());
    let acknowledged = Time(3 * PACKET + 2 * US) + at_200g(64) * 2 + Time(2 * US);
    assert_eq!(times(&records, 0, 100).0, acknowledged);
    // The last ACK is no work.
    assert_eq!(records.totals.makespan, Some(times(&records, 0, 100).1));
    assert!(records.totals.makespan < Some(records.totals.simulated));
}

#[test]
fn calculations_start_at_zero_and_take_their_time_even_none() {
    let text = "num_ranks 2
rank 0 {
none: calc 0
again: calc 0
again requires none
at_once: send 1b to 1 tag 0
at_once requires again
work: calc 1500
work requires again
later: send 2b to 1 tag 1
later requires work
rest: calc 5000000
rest requires later
}
rank 1 {
recv 1b from 0 tag 0
recv 2b from 0 tag 1
}";
    let records = goal("calc", text, without_acks());
    assert_eq!(times(&records, 0, 1), (Time::ZERO, one_way(1)));
    assert_eq!(times(&records, 0, 2), (Time::from_ns(1500), Time::from_ns(1500) + one_way(2)));
    // The run is not over while a rank calculates, whatever the network does.
    let end = Time::from_ns(1500) + at_200g(66) + Time::from_ms(5);
    assert_eq!((records.totals.simulated, records.totals.makespan), (end, Some(end)));
}

#[test]
fn a_program_without_messages_lasts_as_long_as_its_calculations() {
    let text = "num_ranks 2
rank 0 {
a: calc 700
b: calc 300
}
rank 1 {
a: calc 50
}";
    let records = goal("alone", text, without_acks());
    assert!(records.flows.is_empty());
    assert_eq!(records.totals.simulated, Time::from_us(1));
}

#[test]
fn a_byte_goes_to_and_fro_in_one_way_times() {
    let round = |round: u32| {
        let (ping, pong) = (2 * round, 2 * round + 1);
        let first = format!(
            "s{round}: send 1b to 1 tag {ping}\nr{round}: recv 1b from 1 tag {pong}\nr{round} requires s{round}\n"
        );
        let second = format!(
            "r{round}: recv 1b from 0 tag {ping}\ns{round}: send 1b to 0 tag {pong}\ns{round} requires r{round}\n"
        );
        let chain = round.checked_sub(1).map(|before| format!("s{round} requires r{before}\n"));
        (first + &chain.unwrap_or_default(), second)
    };
    let (first, second): (String, String) = (0..10).map(round).unzip();
    let text = format!("num_ranks 2\nrank 0 {{\n{first}}}\nrank 1 {{\n{second}}}");
    let records = goal("ping-pong", &text, without_acks());
    let mut starts: Vec<Time> = records.flows.iter().map(|flow| flow.start).collect();
    starts.sort_unstable();
    assert_eq!(starts, (0..20).map(|i| one_way(1) * i).collect::<Vec<_>>());
    assert_eq!(records.totals.simulated, one_way(1) * 20);
}

#[test]
fn a_message_waits_for_the_one_that_it_has_overtaken() {
    // The NIC takes turns, so the short message arrives first; matched in the order of sending it has to wait.
    let text = "num_ranks 2
rank 0 {
send 40960b to 1 tag 7
send 100b to 1 tag 7
recv 1b from 1 tag 1
recv 2b from 1 tag 2
}
rank 1 {
first: recv 40960b from 0 tag 7
second: recv 100b from 0 tag 7
of_first: send 1b to 0 tag 1
of_first requires first
of_second: send 2b to 0 tag 2
of_second requires second
}";
    let records = goal("match", text, without_acks());
    let (long, short) = (times(&records, 0, 40_960).1, times(&records, 0, 100).1);
    assert!(short < long);
    assert_eq!(times(&records, 1, 1).0, long);
    assert_eq!(times(&records, 1, 2).0, long);
}

#[test]
fn a_calculation_that_ends_as_a_packet_arrives_ends_then() {
    // 65 B twice at 200 Gb/s and 2 us: no whole nanosecond, so `calc` counts in the picoseconds of `time_unit`.
    let arrival = one_way(1);
    for (name, worked) in [("together", arrival), ("before", arrival - Time(1)), ("after", arrival + Time(1))]
    {
        let picoseconds = worked.0;
        let text = format!(
            "num_ranks 3
rank 0 {{
send 1b to 1 tag 0
}}
rank 1 {{
got: recv 1b from 0 tag 0
work: calc {picoseconds}
by_work: send 2b to 2 tag 2
by_work requires work
by_message: send 3b to 2 tag 3
by_message requires got
by_both: send 4b to 2 tag 4
by_both requires work
by_both requires got
}}
rank 2 {{
recv 2b from 1 tag 2
recv 3b from 1 tag 3
recv 4b from 1 tag 4
}}"
        );
        let records = goal_in(Time(1), &format!("wake-{name}"), &text, without_acks());
        assert_eq!(times(&records, 1, 2).0, worked, "{name}");
        assert_eq!(times(&records, 1, 3).0, arrival, "{name}");
        assert_eq!(times(&records, 1, 4).0, worked.max(arrival), "{name}");
    }
}

#[test]
fn every_collective_ends_on_a_fat_tree_for_any_number_of_ranks() {
    let network = fat_tree(4);
    for algorithm in Algorithm::ALL {
        for ranks in [2, 3, 5, 8, 13, 16] {
            let collective =
                Collective { algorithm, size: Some(Bytes(10_000)), repeat: 2, ..Default::default() };
            let options = Options { ranks: Some(ranks), placement: Placement::Random, ..Options::default() };
            let workload = Workload { pattern: Pattern::Collective(collective), options };
            let plan = workload.plan(&network, &PlanContext::new(7)).unwrap();
            let messages = plan.total_messages.unwrap();
            let config = SimConfig { transport: without_acks(), ..scheme("spray") };
            let records = run(network.clone(), config, plan);
            assert_eq!(records.flows.len() as u64, messages, "{algorithm:?} {ranks}");
            let last = records.flows.iter().map(|flow| flow.start + fct(flow)).max();
            assert_eq!(Some(records.totals.simulated), last, "{algorithm:?} {ranks}");
        }
    }
}

#[test]
fn a_thousand_hosts_reduce_by_recursive_doubling_in_log_n_rounds() {
    let network = fat_tree(16);
    let collective = Collective {
        algorithm: Algorithm::RecursiveDoublingAllreduce,
        size: Some(Bytes(4096)),
        ..Default::default()
    };
    let plan = plan(Pattern::Collective(collective), &network, 1);
    let records = run(network, SimConfig { transport: without_acks(), ..scheme("d-mod-k") }, plan);
    assert_eq!(records.flows.len(), 10 * 1024);
    // Neighbours in the rack (8), the pod (64) and beyond: 3 rounds over 2 links, 3 over 4 and 4 over 6.
    let links = 3 * 2 + 3 * 4 + 4 * 6;
    assert_eq!(records.totals.simulated, Time(links * (PACKET + US)));
}

fn fabrics() -> impl Strategy<Value = Fabric> {
    let pfc = FlowControl::Pfc(pfc::Pfc { buffer: Bytes(160_000), ..pfc::Pfc::default() });
    let credits = FlowControl::Credits(credits::Credits { buffer: Bytes(20_000), ..Default::default() });
    let lossy = FlowControl::Lossy(Default::default());
    let flow_control = prop_oneof![Just(lossy), Just(pfc), Just(credits)];
    let buffer = prop::option::of((20_000..100_000u64).prop_map(Bytes));
    (flow_control, buffer, any::<bool>(), prop::option::of((1..500u64).prop_map(Bytes))).prop_map(
        |(flow_control, buffer, has_qcn, cut_through)| {
            let is_lossy = matches!(flow_control, FlowControl::Lossy(_));
            let options = FabricOptions {
                buffer: buffer.filter(|_| is_lossy),
                qcn: has_qcn.then(Qcn::default),
                cut_through,
                ..FabricOptions::default()
            };
            Fabric { options, flow_control, ..Fabric::default() }
        },
    )
}

fn trees() -> impl Strategy<Value = Network> {
    prop_oneof![
        (2..9u32).prop_map(crossbar),
        (2..4u32, 1..4u32, 2..4u32).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        (2..5u32).prop_map(|n| build(Topology::KaryNTree(KaryNTree { k: 2, n, ..KaryNTree::default() }))),
    ]
}

fn programs() -> impl Strategy<Value = Pattern> {
    let collective = (0..Algorithm::ALL.len(), 1..40_000u64, 1..3u32, 0..3000u64, 0..2u64).prop_map(
        |(algorithm, size, repeat, compute, overhead)| {
            Pattern::Collective(Collective {
                algorithm: Algorithm::ALL[algorithm],
                size: Some(Bytes(size)),
                repeat,
                compute: Time::from_ns(compute),
                overhead: Time::from_ns(overhead * 70),
                ..Collective::default()
            })
        },
    );
    let applications = [Application::Cg, Application::Mg, Application::Liso, Application::Is];
    let skeleton = (0..applications.len()).prop_map(move |application| {
        Pattern::Skeleton(Skeleton {
            application: applications[application],
            iterations: 1,
            ..Skeleton::default()
        })
    });
    prop_oneof![3 => collective, 1 => skeleton]
}

/// A program alone, or with frames of others in between.
fn with_background(program: Pattern, background: bool) -> Pattern {
    if !background {
        return program;
    }
    let frames =
        Bernoulli { load: 0.3, until: Time::from_us(30), frame: Bytes(1500), ..Bernoulli::default() };
    let part = |name: &str, pattern| Part { name: Some(name.into()), pattern, options: Options::default() };
    let parts = vec![part("program", program), part("background", Pattern::Bernoulli(frames))];
    Pattern::Mix(Mix { parts })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn programs_end_alike_on_any_number_of_threads(
        network in trees(),
        program in programs(),
        background in any::<bool>(),
        name in 0..preset::PRESETS.len(),
        fabric in fabrics(),
        acknowledged in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let transport = if acknowledged || fabric.is_lossy() { unlimited() } else { without_acks() };
        let transport = Transport {
            reliability: if acknowledged { Reliability::SelectiveRepeat(Default::default()) } else { transport.reliability },
            congestion: Congestion::None(Default::default()),
            ..transport
        };
        let pattern = with_background(program, background);
        let mut config = SimConfig { routing: preset::PRESETS[name].routing(), transport, fabric, seed, ..SimConfig::default() };
        schemes::fit(&mut config.fabric.options, &config.routing);
        let plan = || -> Option<Plan> {
            Workload::new(pattern.clone()).plan(&network, &PlanContext::new(seed)).ok()
        };
        let Some(first) = plan() else { return Ok(()) };
        let first = match Simulation::new(network.clone(), config.clone(), first) {
            // Not every scheme suits every network, fabric and transport.
            Err(SimError::Routing(_) | SimError::MayDeadlock(_) | SimError::Transport(_)) => return Ok(()),
            first => first.unwrap(),
        };
        let simulation = || Simulation::new(network.clone(), config.clone(), plan().unwrap()).unwrap();
        let expected = first.run(1).unwrap().records;
        prop_assert!(expected.flows.iter().all(|flow| flow.stream || flow.fct.is_some()));
        prop_assert_eq!(difference(&expected, &simulation().run_reference().unwrap().records), None);
        for threads in 2..=3 {
            prop_assert_eq!(difference(&expected, &simulation().run(threads).unwrap().records), None);
        }
    }
}

#[test]
fn background_traffic_slows_a_program_down_and_neither_disturbs_the_other_in_the_books() {
    let network = fat_tree(4);
    let program = || {
        Pattern::Collective(Collective {
            algorithm: Algorithm::PairwiseAllToAll,
            size: Some(Bytes(8192)),
            ..Default::default()
        })
    };
    let config = || SimConfig { transport: without_acks(), ..scheme("d-mod-k") };
    let alone = run(network.clone(), config(), plan(program(), &network, 1));
    let mixed = run(network.clone(), config(), plan(with_background(program(), true), &network, 1));
    assert_eq!(mixed.groups, ["program", "background"]);
    let last = |records: &Records, group| {
        let flows = records.flows.iter().filter(|flow| flow.group == group && !flow.stream);
        flows.map(|flow| flow.start + fct(flow)).max().unwrap()
    };
    assert!(last(&mixed, 0) > last(&alone, 0));
    let messages = |records: &Records| records.flows.iter().filter(|flow| flow.group == 0).count();
    assert_eq!((messages(&alone), messages(&mixed)), (16 * 15, 16 * 15));
    assert!(mixed.flows.iter().any(|flow| flow.group == 1 && flow.stream && flow.delivered == flow.bytes));
}
