//! What is skipped because it is steady: how much, what stays exact, and that the error is measured.

mod common;

use std::path::PathBuf;

use common::*;
use netloom_fabric::flow_control::pfc;
use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{Ecn, Fabric, FabricOptions, FlowControl, Mark, Queue};
use netloom_record::{Records, SteadySkipped};
use netloom_routing::preset;
use netloom_sim::{Beyond, Cut, Fast, Fault, Measure, RunError, SimConfig, Simulation, Steady};
use netloom_topology::Network;
use netloom_transport::congestion::newreno::NewReno;
use netloom_transport::{Congestion, Transport};
use netloom_units::{Bytes, Time};
use netloom_workload::{Algorithm, Collective, Goal, NicChoice, Pattern, Plan};
use proptest::prelude::*;

/// Runs with what is steady skipped, on several threads, with the same outcome.
fn skipped(network: &Network, config: &SimConfig, plan: impl Fn() -> Plan) -> (Records, SteadySkipped) {
    let run =
        |threads| Simulation::new(network.clone(), config.clone(), plan()).unwrap().run(threads).unwrap();
    let one = run(1);
    let skipped = one.steady.expect("it was asked for, and may be");
    for threads in [2, 3] {
        let many = run(threads);
        assert_eq!(difference(&one.records, &many.records), None, "{threads} threads");
        assert_eq!(many.steady.as_ref(), Some(&skipped), "{threads} threads");
    }
    (one.records, skipped)
}

/// The outcome in packets.
fn in_packets(network: &Network, config: &SimConfig, plan: impl Fn() -> Plan) -> Records {
    run(network.clone(), SimConfig { fast: Fast::Nothing, ..config.clone() }, plan())
}

fn steady(max_error: f64, config: SimConfig) -> SimConfig {
    SimConfig { fast: Fast::Steady(Steady { max_error, ..Steady::default() }), ..config }
}

/// Packets of several flows are sprayed at random, so that nothing recurs.
fn sprayed() -> SimConfig {
    steady(0.02, scheme("spray"))
}

/// Each of eight hosts at two leaf switches sends so many bytes to one at the other.
fn crossing(bytes: u64) -> Vec<String> {
    (0..8).map(|src| format!("{src},{},{bytes},{src}ns", (src + 4) % 8)).collect()
}

/// What does not depend on how it was found: everything arrives, and channels have carried it.
fn check_all_arrived(records: &Records) {
    let mut bytes = 0;
    for flow in &records.flows {
        assert!(flow.fct.is_some(), "{flow:?}");
        assert_eq!(flow.delivered, flow.bytes, "{flow:?}");
        bytes += flow.bytes;
    }
    let from_hosts = records.channels.iter().filter(|channel| channel.from.starts_with('h'));
    let carried: u64 = from_hosts.map(|channel| channel.bytes).sum();
    assert!(carried >= bytes, "{carried} of {bytes} bytes");
}

/// The largest relative difference of completion times.
fn error(packets: &Records, skipped: &Records) -> f64 {
    assert_eq!(packets.flows.len(), skipped.flows.len());
    let pairs = packets.flows.iter().zip(&skipped.flows);
    let errors = pairs.map(|(one, other)| {
        assert_eq!((one.src, one.flow, one.bytes), (other.src, other.flow, other.bytes));
        let (one, other) = (fct(one).as_secs_f64(), fct(other).as_secs_f64());
        (one - other).abs() / one
    });
    errors.fold(0.0, f64::max)
}

#[test]
fn most_of_a_steady_run_is_skipped_and_its_error_is_measured() {
    let network = leaf_spine(2, 3, 4);
    // The last packet is short.
    let pattern = flows("most", &crossing(1_000_000_001));
    let plan = || plan(pattern.clone(), &network, 1);
    let (records, skipped) = skipped(&network, &sprayed(), plan);
    assert!(skipped.packet_hops * 2 > records.totals.packet_hops, "{skipped:?}");
    assert!(skipped.jumps > 0 && skipped.audited > 0 && skipped.stretches == skipped.jumps + skipped.audited);
    assert!(skipped.audited_flows >= 8 && skipped.error_mean.unwrap() <= 0.02, "{skipped:?}");
    check_all_arrived(&records);
    let packets = in_packets(&network, &sprayed(), plan);
    let error = error(&packets, &records);
    assert!(error < 0.02, "{error}");
    // Each packet is counted at each of its channels, in both runs alike.
    assert_eq!(records.totals.data.sent, packets.totals.data.sent);
    let bytes = |records: &Records| records.channels.iter().map(|channel| channel.bytes).sum::<u64>();
    assert!(bytes(&records).abs_diff(bytes(&packets)) * 1000 < bytes(&packets));
    let busy = |records: &Records| records.channels.iter().map(|channel| channel.busy.0).sum::<u64>();
    assert!(busy(&records).abs_diff(busy(&packets)) * 100 < busy(&packets));
}

/// Each pod by itself: one whose flows change all the time does not keep the others from being skipped.
#[test]
fn components_are_skipped_one_by_one() {
    let network = fat_tree(4);
    let pod = |pod: u32, bytes: u64| {
        (0..4).map(move |src| format!("{},{},{bytes},{src}ns", 4 * pod + src, 4 * pod + (src + 2) % 4))
    };
    // One flow after the other, each too short to be skipped.
    let changing = (0..400u32).map(|number| {
        let bytes = 200_000 + 1000 * (number * 37 % 61);
        format!("{},{},{bytes},{}us", 12 + number % 4, 12 + (number + 2) % 4, number * 25)
    });
    let lines: Vec<String> = pod(0, 500_000_001).chain(pod(1, 700_000_000)).chain(changing).collect();
    let pattern = flows("pods", &lines);
    let plan = || plan(pattern.clone(), &network, 1);
    let (records, of_steady) = skipped(&network, &sprayed(), plan);
    check_all_arrived(&records);
    let packets = in_packets(&network, &sprayed(), plan);
    assert!(error(&packets, &records) < 0.02);
    assert_eq!(records.totals.data.sent, packets.totals.data.sent);
    // The run ends when the last component does, by the clock of records.
    let (end, in_packets) = (records.totals.simulated, packets.totals.simulated);
    assert!(end.0.abs_diff(in_packets.0) * 50 < in_packets.0 && of_steady.time < end, "{end}, {in_packets}");
    assert!(of_steady.packet_hops * 2 > records.totals.packet_hops, "{of_steady:?}");
    // What is a mean over time goes on where time was skipped.
    let mean = |records: &Records| records.totals.reordering.resequencing_packets_mean;
    let (found, expected) = (mean(&records), mean(&packets));
    assert!(expected > 0.01 && (found / expected - 1.0).abs() < 0.5, "{found} instead of {expected}");
    let finished = Simulation::new(network.clone(), sprayed(), plan()).unwrap().run(1).unwrap();
    assert_eq!(finished.skipped.map(|skipped| skipped.components), Some(3));
}

#[test]
fn whatever_reacts_may_be_skipped() {
    let network = leaf_spine(2, 2, 4);
    let pattern = flows("reacts", &crossing(200_000_000));
    let ecn = Ecn { kmin: Bytes(40_000), kmax: Bytes(200_000), pmax: 0.2, mark: Mark::Arrival };
    let fabric = |flow_control, queue| {
        let options = FabricOptions {
            ecn: Some(ecn.clone()),
            buffer: Some(Bytes(500_000)),
            ..FabricOptions::default()
        };
        Fabric { options, flow_control, queue }
    };
    let lossy = || fabric(FlowControl::Lossy(Default::default()), Fabric::default().queue);
    let lossless = || {
        let fabric = fabric(FlowControl::Pfc(pfc::Pfc::default()), Fabric::default().queue);
        Fabric { options: FabricOptions { buffer: None, ..fabric.options }, ..fabric }
    };
    let trimming = || fabric(FlowControl::Lossy(Default::default()), Queue::Trimming(Trimming::default()));
    let cases = [
        ("dctcp", "ecmp", lossy()),
        ("tcp", "spray", lossy()),
        ("roce", "spray", lossless()),
        ("hpcc", "ecmp", lossless()),
        ("uet-nscc", "uet-mixed", trimming()),
        ("ndp", "spray", trimming()),
    ];
    let mut jumps = 0;
    for (transport, routing, fabric) in cases {
        let transport = netloom_transport::preset::find(transport).unwrap().transport();
        // What is tested is that all of it can go on, not how steady it is.
        let config = steady(0.5, SimConfig { fabric, transport, ..scheme(routing) });
        let (records, skipped) = skipped(&network, &config, || plan(pattern.clone(), &network, 1));
        check_all_arrived(&records);
        jumps += u32::from(skipped.jumps > 0);
    }
    assert!(jumps >= 5, "{jumps} of 6");
}

/// A run goes on in packets or ends with an error where an audit shows too much, as asked.
#[test]
fn a_run_fails_where_it_would_have_gone_on_in_packets() {
    let network = leaf_spine(2, 3, 4);
    let pattern = flows("fails", &crossing(1_000_000_001));
    let transport = netloom_transport::preset::find("hpcc").unwrap().transport();
    let mut outcomes = [0, 0];
    for max_error in [0.02, 0.005, 0.002] {
        let run = |beyond| {
            let fast = Fast::Steady(Steady { max_error, beyond, ..Steady::default() });
            let config = SimConfig { transport: transport.clone(), fast, ..scheme("ecmp") };
            Simulation::new(network.clone(), config, plan(pattern.clone(), &network, 1)).unwrap().run(1)
        };
        let in_packets = run(Beyond::Packets).unwrap();
        let steady = in_packets.steady.expect("it was asked for, and may be");
        let is_beyond = steady.jumps > 0 && steady.stopped.is_some_and(|why| why.contains("an audit"));
        outcomes[usize::from(is_beyond)] += 1;
        match run(Beyond::Fail) {
            Err(error) => {
                assert!(is_beyond && matches!(error, RunError::Inaccurate(_)), "{error}");
            }
            Ok(finished) => {
                assert!(!is_beyond);
                assert_eq!(difference(&in_packets.records, &finished.records), None);
            }
        }
    }
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
}

#[test]
fn a_jump_ends_before_a_flow_begins() {
    let network = leaf_spine(2, 3, 4);
    let mut lines = crossing(1_000_000_000);
    lines.push("0,5,1000,14000123ns".into());
    lines.push("1,6,3000,30ms".into());
    let pattern = flows("late", &lines);
    let (records, skipped) = skipped(&network, &sprayed(), || plan(pattern.clone(), &network, 1));
    assert!(skipped.jumps > 1, "{skipped:?}");
    check_all_arrived(&records);
    let starts: Vec<Time> = records.flows.iter().map(|flow| flow.start).collect();
    assert!(starts.contains(&Time::from_ns(14_000_123)) && starts.contains(&Time::from_ms(30)), "{starts:?}");
    let short = records.flows.iter().filter(|flow| flow.bytes < 10_000);
    short.for_each(|flow| assert!(fct(flow) < Time::from_us(100), "{flow:?}"));
}

#[test]
fn a_jump_ends_before_a_calculation_does() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("steady.goal");
    let sends = (0..4).map(|rank| {
        let work = if rank == 3 { "w: calc 20000000\nl: send 5b to 0 tag 9\nl requires w\n" } else { "" };
        let also = if rank == 0 { "recv 5b from 3 tag 9\n" } else { "" };
        let (to, from) = ((rank + 2) % 4, (rank + 2) % 4);
        format!("rank {rank} {{\nsend 1000000000b to {to} tag 0\nrecv 1000000000b from {from} tag 0\n{work}{also}}}\n")
    });
    std::fs::write(&file, format!("num_ranks 4\n{}", sends.collect::<String>())).unwrap();
    let time_unit = Time::from_ns(1);
    let goal = Goal { file, time_unit, overhead: None, preset: None, nics: NicChoice::Servers };
    let network = leaf_spine(2, 3, 2);
    let plan = || plan(Pattern::Goal(goal.clone()), &network, 1);
    let (records, skipped) = skipped(&network, &sprayed(), plan);
    assert!(skipped.jumps > 1, "{skipped:?}");
    check_all_arrived(&records);
    let last = records.flows.iter().find(|flow| flow.bytes == 5).unwrap();
    assert_eq!(last.start, Time::from_ms(20));
}

#[test]
fn a_run_that_is_cut_short_ends_where_it_should() {
    let network = leaf_spine(2, 3, 4);
    let pattern = flows("cut", &crossing(1_000_000_000));
    let measure = Measure { until: Some(Time(28_765_432_109)), ..Measure::default() };
    let config = SimConfig { measure, ..sprayed() };
    let plan = || plan(pattern.clone(), &network, 1);
    let (records, skipped) = skipped(&network, &config, plan);
    assert!(skipped.jumps > 0, "{skipped:?}");
    assert_eq!(records.totals.simulated, Time(28_765_432_109));
    let delivered = |records: &Records| records.flows.iter().map(|flow| flow.delivered).sum::<u64>();
    let (all, of_packets) = (delivered(&records), delivered(&in_packets(&network, &config, plan)));
    assert!(all.abs_diff(of_packets) * 50 < of_packets, "{all} and {of_packets}");
}

#[test]
fn steps_of_a_program_are_skipped_each() {
    let network = leaf_spine(2, 3, 4);
    let ring = Collective {
        algorithm: Algorithm::WindowedAllToAll,
        size: Some(Bytes(60_000_000)),
        window: 7,
        compute: Time::from_us(50),
        repeat: 2,
        ..Collective::default()
    };
    let plan = || plan(Pattern::Collective(ring.clone()), &network, 1);
    let (records, skipped) = skipped(&network, &sprayed(), plan);
    assert!(skipped.jumps > 1, "{skipped:?}");
    check_all_arrived(&records);
    let packets = in_packets(&network, &sprayed(), plan);
    let (one, other) = (packets.totals.makespan.unwrap(), records.totals.makespan.unwrap());
    assert!(one.0.abs_diff(other.0) * 50 < one.0, "{one} and {other}");
}

/// A window that grows by a packet in a round trip is nearly the same in two successive ones, and not for long.
#[test]
fn an_audit_notices_what_only_looks_steady() {
    let network = chain(4);
    let congestion = Congestion::NewReno(NewReno {
        initial_window: 400,
        initial_ssthresh: Some(400),
        ..NewReno::default()
    });
    let transport = Transport { congestion, ..Transport::default() };
    let pattern = flows("grows", &["0,3,2000000000,0ns".to_owned()]);
    let config = steady(0.01, SimConfig { transport, ..scheme("ecmp") });
    let plan = || plan(pattern.clone(), &network, 1);
    let (records, skipped) = skipped(&network, &config, plan);
    let packets = in_packets(&network, &config, plan);
    let error = error(&packets, &records);
    assert!(error < 0.01, "{error}: {skipped:?}");
}

#[test]
fn what_cannot_be_skipped_is_said_beforehand() {
    let network = leaf_spine(2, 3, 4);
    let pattern = flows("refused", &crossing(1_000_000));
    let of = |config: SimConfig| {
        let simulation =
            Simulation::new(network.clone(), config, plan(pattern.clone(), &network, 1)).unwrap();
        simulation.skips_nothing_because_of().map(str::to_owned)
    };
    assert_eq!(of(sprayed()), None);
    assert_eq!(of(steady(0.01, scheme("letflow"))), None);
    let measuring = |measure| of(SimConfig { measure, ..sprayed() }).unwrap();
    assert!(measuring(Measure { sample: Some(Time::from_us(10)), ..Measure::default() }).contains("samples"));
    assert!(measuring(Measure { warm_up: Time::from_us(10), ..Measure::default() }).contains("warm-up"));
    assert!(measuring(Measure { gaps: true, ..Measure::default() }).contains("gaps"));
    let cut =
        Cut { links: Some(1), from: Time::from_us(50), until: Some(Time::from_us(90)), ..Cut::default() };
    assert!(of(SimConfig { faults: vec![Fault::Cut(cut)], ..sprayed() }).is_some());
}

/// A fabric for a transport and a scheme, of those that are meant for them.
fn fabric_for(
    network: &Network,
    config: &SimConfig,
    plan: impl Fn() -> Plan,
    first: usize,
) -> Option<Fabric> {
    let ecn = Some(Ecn { kmin: Bytes(40_000), kmax: Bytes(200_000), pmax: 0.2, mark: Mark::Arrival });
    let options = FabricOptions { ecn, ..FabricOptions::default() };
    let lossy = Fabric { options, ..Fabric::default() };
    let lossless = Fabric { flow_control: FlowControl::Pfc(pfc::Pfc::default()), ..lossy.clone() };
    let trimming = Fabric { queue: Queue::Trimming(Trimming::default()), ..lossy.clone() };
    let mut all = [lossy, lossless, trimming];
    all.rotate_left(first);
    all.into_iter().find(|fabric| {
        let config = SimConfig { fabric: fabric.clone(), ..config.clone() };
        Simulation::check(network.clone(), config, plan()).is_ok()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever is sent and however large an error may be: all of it arrives, on any number of threads at the same time.
    #[test]
    fn everything_arrives(
        network in prop_oneof![Just(leaf_spine(2, 3, 3)), Just(fat_tree(4)), Just(crossbar(6)), Just(chain(5))],
        list in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 20_000_000..120_000_000u64, 0..20_000u64), 1..6),
        late in prop::option::of(0..4_000_000u64),
        routing in prop::sample::select(vec!["ecmp", "spray", "spray-nic", "adaptive", "letflow", "drill", "flowcut", "reps", "plb", "conweave", "uet-mixed"]),
        transport in prop::sample::select(vec!["dctcp", "tcp", "roce", "hpcc", "irn", "cubic", "mp-rdma", "uet-nscc", "ndp", "smartt", "uet-rccc", "bolt", "powertcp", "mswift", "strack-like"]),
        first in 0..3usize,
        max_error in prop::sample::select(vec![0.03, 1.0]),
        number in any::<u64>(),
        seed in any::<u64>(),
    ) {
        let hosts = network.hosts() as usize;
        let lines: Vec<String> =
            list.iter().map(|flow| flow_line(hosts, flow)).chain(late.map(|start| format!("0,1,5000,{start}ns"))).collect();
        let pattern = flows(&format!("random-{number}"), &lines);
        let plan = || plan(pattern.clone(), &network, 1);
        let transport = netloom_transport::preset::find(transport).unwrap().transport();
        let config = SimConfig { routing: preset::find(routing).unwrap().routing(), transport, seed, ..SimConfig::default() };
        let Some(fabric) = fabric_for(&network, &config, plan, first) else { return Ok(()) };
        let config = steady(max_error, SimConfig { fabric, ..config });
        let (records, _) = skipped(&network, &config, plan);
        check_all_arrived(&records);
        let start = late.map(Time::from_ns);
        prop_assert!(start.is_none_or(|start| records.flows.iter().any(|flow| flow.start == start)));
    }
}
