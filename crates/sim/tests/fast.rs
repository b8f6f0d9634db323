//! What is skipped because it recurs leaves no trace in the outcome.

mod common;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use common::*;
use netloom_fabric::flow_control::{credits, pfc};
use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{Ecn, Fabric, FabricOptions, FlowControl, Mark, Queue};
use netloom_record::{Records, Skipped, Window};
use netloom_routing::selector::round_robin::RoundRobin;
use netloom_routing::{Routing, Selector, preset};
use netloom_sim::{Degrade, Fast, Fault, Measure, RunProgress, SimConfig, Simulation};
use netloom_topology::{Crossbar, Network, Topology};
use netloom_transport::congestion::dcqcn::{Dcqcn, DcqcnPreset};
use netloom_transport::congestion::dctcp::{Cut, Dctcp};
use netloom_transport::congestion::newreno::NewReno;
use netloom_transport::congestion::pulls::{Adaptive, Pulls};
use netloom_transport::congestion::swift::Swift;
use netloom_transport::congestion::timely::Timely;
use netloom_transport::reliability::go_back_n::GoBackN;
use netloom_transport::reliability::selective_repeat::SelectiveRepeat;
use netloom_transport::{Congestion, Reliability, Transport, TransportOptions};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{
    Algorithm, Collective, Draw, Goal, GpuCollective, Idle, Incast, Job, JobPlacement, Method, NicChoice,
    NicSelection, Operation, Pattern, Permutation, Plan, PlanContext, ScaleUp, ScaleUpWiring, Servers,
    Straggler, TrainingStep, Wiring, Workload, add_jobs,
};
use proptest::prelude::*;

/// Runs with and without skipping, on several threads: the outcomes are the same, and so is what is skipped on any number of threads.
fn skipped(network: &Network, config: &SimConfig, pattern: &Pattern) -> (Records, Skipped) {
    skipped_of_plan(network, config, || plan(pattern.clone(), network, 1))
}

/// The same of what was planned otherwise.
fn skipped_of_plan(network: &Network, config: &SimConfig, plan: impl Fn() -> Plan) -> (Records, Skipped) {
    let simulation = |fast| {
        let fast = if fast { Fast::Recurring } else { Fast::Nothing };
        let config = SimConfig { fast, ..config.clone() };
        Simulation::new(network.clone(), config, plan()).unwrap()
    };
    let expected = simulation(false).run(1).unwrap();
    assert_eq!(expected.skipped, None);
    let fast = simulation(true).run(1).unwrap();
    let skipped = fast.skipped.unwrap();
    assert_eq!(difference(&expected.records, &fast.records), None, "{skipped:?}");
    for threads in [2, 3] {
        let many = simulation(true).run(threads).unwrap();
        assert_eq!(difference(&expected.records, &many.records), None, "{threads} threads");
        let of_many = many.skipped.unwrap();
        assert_eq!(of_many.obstacle, skipped.obstacle);
        // Pauses cost more on several threads, so that fewer may be made; not in runs as short as these.
        assert_eq!((of_many.jumps, of_many.time_ps), (skipped.jumps, skipped.time_ps), "{threads} threads");
    }
    (expected.records, skipped)
}

/// A workload on servers; on hosts without servers where these have one NIC. None if it is refused.
fn planned(network: &Network, servers: &Servers, pattern: &Pattern) -> Option<Plan> {
    let rails = if servers.nics > 1 { Some(Arc::new(servers.build(network, 1).ok()?)) } else { None };
    let context = PlanContext { rails, ..PlanContext::new(1) };
    Workload::new(pattern.clone()).plan(network, &context).ok()
}

/// The skipping of a workload on servers.
fn skipped_on(
    network: &Network,
    config: &SimConfig,
    servers: &Servers,
    pattern: &Pattern,
) -> (Records, Skipped) {
    skipped_of_plan(network, config, || planned(network, servers, pattern).unwrap())
}

/// Outcomes with and without skipping are the same, unless the workload on these servers is refused.
fn compare_on(network: &Network, config: &SimConfig, servers: &Servers, pattern: &Pattern) {
    let accepts = |plan| Simulation::check(network.clone(), config.clone(), plan).is_ok();
    if planned(network, servers, pattern).is_some_and(accepts) {
        skipped_on(network, config, servers, pattern);
    }
}

/// The share of packet-hops that was skipped.
fn share(network: &Network, config: &SimConfig, pattern: &Pattern) -> f64 {
    let (records, skipped) = skipped(network, config, pattern);
    skipped.packet_hops as f64 / records.totals.packet_hops as f64
}

/// What keeps everything from being skipped.
fn obstacle(network: &Network, config: &SimConfig, pattern: &Pattern) -> String {
    let (_, skipped) = skipped(network, config, pattern);
    assert_eq!(skipped.jumps, 0);
    skipped.obstacle.expect("there is one")
}

fn ecmp() -> SimConfig {
    scheme("ecmp")
}

fn under(flow_control: FlowControl) -> SimConfig {
    let fabric = Fabric { flow_control, ..Fabric::default() };
    SimConfig { fabric, transport: unlimited(), ..ecmp() }
}

#[test]
fn a_lone_flow_is_nearly_all_skipped() {
    // The last packet is short.
    let pattern = flows("lone", &["0,3,80000001,0ps"]);
    for network in [crossbar(4), leaf_spine(2, 2, 2), fat_tree(4)] {
        for transport in [Transport::default(), unlimited()] {
            let config = SimConfig { transport, ..ecmp() };
            assert!(share(&network, &config, &pattern) > 0.9);
        }
    }
}

#[test]
fn flows_that_share_a_link_recur_together() {
    // Three into one, of different sizes, so that some go on when others have ended.
    let pattern = flows("shared", &["0,3,9000000,0ps", "1,3,7000000,13ns", "2,3,8000001,1us"]);
    assert!(share(&crossbar(4), &ecmp(), &pattern) > 0.5);
    // Two of one host, which take turns.
    let pattern = flows("turns", &["0,3,9000000,0ps", "0,2,7000000,0ps"]);
    assert!(share(&fat_tree(4), &ecmp(), &pattern) > 0.5);
    // Hosts that send data in both directions have ACKs between them, so that rates differ: it takes long until all is as before.
    let pattern = flows("both", &["0,3,9000000,0ps", "0,2,7000000,0ps", "3,0,8000001,1us"]);
    skipped(&fat_tree(4), &ecmp(), &pattern);
}

#[test]
fn nothing_is_skipped_beyond_a_flow_that_begins() {
    let late = flows("late", &["0,3,40000000,0ps", "1,2,100,700123ns", "1,3,3000,900us"]);
    let (records, skipped) = skipped(&crossbar(4), &ecmp(), &late);
    assert!(skipped.jumps >= 3, "{skipped:?}");
    assert!(records.flows.iter().any(|flow| flow.start == Time::from_ns(700_123)));
}

#[test]
fn what_comes_behind_a_long_silence_is_skipped() {
    // As the first gradients of a step of training come behind all of its calculations.
    let silent = flows("silent", &["0,3,40000000,20ms", "1,2,40000000,47ms", "2,3,40000000,47.1ms"]);
    assert!(share(&crossbar(4), &ecmp(), &silent) > 0.9);
}

#[test]
fn a_run_that_is_cut_short_ends_where_it_should() {
    let pattern = flows("cut", &["0,3,80000000,0ps", "1,3,80000000,0ps"]);
    for until in [1_234_567_890, 1_234_567_891, 2_000_000_000] {
        let measure = Measure { until: Some(Time(until)), ..Measure::default() };
        let config = SimConfig { measure, ..ecmp() };
        assert!(share(&crossbar(4), &config, &pattern) > 0.8);
    }
}

#[test]
fn alarms_of_flows_that_may_lose_packets_do_not_keep_time_from_passing() {
    let fabric = |buffer| {
        let options = FabricOptions { buffer: Some(Bytes(buffer)), ..FabricOptions::default() };
        Fabric { options, ..Fabric::default() }
    };
    let reliabilities =
        [Reliability::GoBackN(GoBackN::default()), Reliability::SelectiveRepeat(SelectiveRepeat::default())];
    for reliability in reliabilities {
        let transport = Transport { reliability, ..Transport::default() };
        let config = SimConfig { fabric: fabric(10_000_000), transport, ..ecmp() };
        let pattern = flows("alarms", &["0,3,40000000,0ps", "1,2,30000000,5us"]);
        assert!(share(&crossbar(4), &config, &pattern) > 0.8);
        // What is lost is not skipped, and what does not recur is not either.
        let config = SimConfig { fabric: fabric(50_000), ..config };
        let pattern = flows("losses", &["0,3,4000000,0ps", "1,3,4000000,0ps", "2,3,3000000,5us"]);
        let (records, _) = skipped(&crossbar(4), &config, &pattern);
        assert!(records.totals.data.dropped > 0);
    }
}

#[test]
fn the_time_that_flow_control_pauses_recurs() {
    let incast = Pattern::Incast(Incast { size: Bytes(6_000_000).into(), ..Incast::default() });
    let pfc = under(FlowControl::Pfc(pfc::Pfc::default()));
    assert!(share(&crossbar(4), &pfc, &incast) > 0.3);
    let (records, _) = skipped(&leaf_spine(2, 1, 2), &pfc, &incast);
    assert!(records.channels.iter().any(|channel| channel.paused > Time::ZERO));
    let credits = under(FlowControl::Credits(credits::Credits::default()));
    assert!(share(&crossbar(4), &credits, &incast) > 0.3);
}

#[test]
fn marks_that_are_certain_recur_and_draws_do_not() {
    let ecn = |low, high| {
        let ecn = Ecn { kmin: Bytes(low), kmax: Bytes(high), pmax: 1.0, mark: Mark::Arrival };
        let options = FabricOptions { ecn: Some(ecn), ..FabricOptions::default() };
        SimConfig { fabric: Fabric { options, ..Fabric::default() }, ..ecmp() }
    };
    let pattern = flows("marks", &["0,3,9000000,0ps", "1,3,9000000,0ps"]);
    let (records, of_certain) = skipped(&crossbar(4), &ecn(10_000, 10_000), &pattern);
    assert!(of_certain.jumps > 0 && records.flows.iter().all(|flow| flow.ecn_marks > 1000));
    // Where the queue is between the two every packet draws.
    let (_, of_drawn) = skipped(&crossbar(4), &ecn(1000, 10_000_000), &pattern);
    assert!(of_drawn.packet_hops < of_certain.packet_hops / 2);
}

/// Controls that react, as far as they are known to rest where nothing slows them.
fn reactions() -> Vec<Congestion> {
    let window = Some(Bytes(200_000));
    let presets = [DcqcnPreset::Paper, DcqcnPreset::Hpcc, DcqcnPreset::Conweave, DcqcnPreset::Uet];
    let mut all: Vec<_> =
        presets.map(|preset| Congestion::Dcqcn(Dcqcn { preset, ..Dcqcn::default() })).into();
    for cut in [Cut::default(), Cut::EveryWindow] {
        let initial_alpha = if cut == Cut::EveryWindow { 0.0 } else { 1.0 };
        all.push(Congestion::Dctcp(Dctcp { cut, initial_alpha, ..Dctcp::default() }));
    }
    all.extend([
        Congestion::Dctcp(Dctcp { max_window: window, ..Dctcp::default() }),
        Congestion::NewReno(NewReno::default()),
        Congestion::Swift(Swift { max_window: window, initial_window: 50, ..Swift::default() }),
        Congestion::Swift(Swift {
            max_window: window,
            initial_window: 40,
            median_of: Some(5),
            ..Swift::default()
        }),
        Congestion::Timely(Timely::default()),
    ]);
    all
}

/// A fabric that marks, with certainty or by chance.
fn marking(kmin: u64, kmax: u64) -> Fabric {
    let ecn = Ecn { kmin: Bytes(kmin), kmax: Bytes(kmax), pmax: 1.0, mark: Mark::Arrival };
    Fabric { options: FabricOptions { ecn: Some(ecn), ..FabricOptions::default() }, ..Fabric::default() }
}

#[test]
fn flows_that_nothing_has_slowed_recur_until_something_does() {
    let alone = flows("unslowed", &["0,3,40000000,0ps", "1,2,30000000,2us"]);
    // The second one begins when most of the first one has been skipped, and slows it down.
    let slowed = flows("slowed", &["0,3,40000000,0ps", "1,3,4000000,1ms"]);
    for congestion in reactions() {
        let transport = Transport { congestion: congestion.clone(), ..Transport::default() };
        let config = SimConfig { fabric: marking(20_000, 60_000), transport, ..ecmp() };
        let of_alone = share(&crossbar(4), &config, &alone);
        assert!(of_alone > 0.7, "{congestion:?}: {of_alone}");
        let (records, skipped) = skipped(&crossbar(4), &config, &slowed);
        assert!(skipped.jumps > 0, "{congestion:?}: {skipped:?}");
        let first = records.flows.iter().find(|flow| flow.start == Time::ZERO).unwrap();
        let is_slowed =
            first.ecn_marks > 0 && (first.cnps > 0 || !matches!(congestion, Congestion::Dcqcn(_)));
        assert!(is_slowed, "{congestion:?}: {} marks, {} CNPs", first.ecn_marks, first.cnps);
    }
}

#[test]
fn flows_recur_again_once_they_have_recovered_from_notifications() {
    let pattern = flows("recovered", &["0,3,200000000,0ps", "1,3,1000000,50us"]);
    let dcqcn = Dcqcn { preset: DcqcnPreset::Uet, ..Dcqcn::default() };
    let transport = Transport { congestion: Congestion::Dcqcn(dcqcn), ..Transport::default() };
    let config = SimConfig { fabric: marking(20_000, 60_000), transport, ..ecmp() };
    let (records, skipped) = skipped(&crossbar(4), &config, &pattern);
    assert!(records.flows.iter().any(|flow| flow.start == Time::ZERO && flow.cnps > 0));
    assert!(skipped.packet_hops * 2 > records.totals.packet_hops, "{skipped:?}");
}

#[test]
fn what_is_not_known_to_recur_is_said_beforehand() {
    let pattern = flows("obstacles", &["0,3,3000000,0ps"]);
    let network = leaf_spine(2, 2, 2);
    let measuring = |measure| SimConfig { measure, ..ecmp() };
    let of = |config: &SimConfig| obstacle(&network, config, &pattern);
    for name in ["conga", "flowcut"] {
        assert!(!of(&scheme(name)).is_empty(), "{name}");
    }
    assert!(of(&scheme("spray-nic")).contains("paths"), "{}", of(&scheme("spray-nic")));
    for name in ["cubic", "hpcc", "theta-powertcp", "smartt"] {
        let transport = netloom_transport::preset::find(name).unwrap().transport();
        let config = SimConfig { transport, fabric: marking(20_000, 60_000), ..ecmp() };
        assert!(!of(&config).is_empty(), "{name}");
    }
    let sampled = Measure { sample: Some(Time::from_us(10)), ..Measure::default() };
    assert!(of(&measuring(sampled)).contains("samples"));
    assert!(of(&measuring(Measure { packets: true, ..Measure::default() })).contains("packets"));
    assert!(of(&measuring(Measure { warm_up: Time::from_us(1), ..Measure::default() })).contains("warm-up"));
    let window = Window { name: "w".into(), from: Time::from_us(1), until: Time::from_us(2) };
    assert!(of(&measuring(Measure { windows: vec![window], ..Measure::default() })).contains("windows"));
    assert!(of(&measuring(Measure { gaps: true, ..Measure::default() })).contains("gaps"));
    let faults =
        vec![Fault::Degrade(Degrade { links: Some(1), from: Time::from_us(50), ..Degrade::default() })];
    let (_, skipped) = skipped(&network, &SimConfig { faults, ..ecmp() }, &pattern);
    assert_eq!(skipped.jumps, 0, "a rate that changes");
}

fn networks() -> impl Strategy<Value = Network> {
    prop_oneof![
        (2..7u32).prop_map(crossbar),
        (2..4u32, 1..4u32, 1..4u32).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        Just(fat_tree(4)),
        (2..9u32).prop_map(chain),
    ]
}

fn transports() -> impl Strategy<Value = Transport> {
    let reliability = prop_oneof![
        Just(Reliability::GoBackN(GoBackN::default())),
        Just(Reliability::SelectiveRepeat(SelectiveRepeat::default())),
    ];
    let congestion = prop_oneof![
        1 => Just(unlimited().congestion),
        1 => Just(Transport::default().congestion),
        2 => prop::sample::select(reactions()),
    ];
    (reliability, congestion, 300..5000u64, 1..4u32, any::<bool>()).prop_map(
        |(reliability, congestion, mtu, ack_every, handshake)| {
            let options =
                TransportOptions { mtu: Bytes(mtu), ack_every, handshake, ..TransportOptions::default() };
            Transport { reliability, congestion, options, ..Transport::default() }
        },
    )
}

fn flow_controls() -> impl Strategy<Value = (FlowControl, Option<u64>)> {
    prop_oneof![
        Just((FlowControl::Lossy(Default::default()), None)),
        (20_000..400_000u64).prop_map(|buffer| (FlowControl::Lossy(Default::default()), Some(buffer))),
        Just((FlowControl::Pfc(pfc::Pfc::default()), None)),
        Just((FlowControl::Credits(credits::Credits::default()), None)),
    ]
}

fn marks() -> impl Strategy<Value = Option<Ecn>> {
    let marks =
        (2_000..200_000u64, 0..100_000u64).prop_map(|(kmin, more)| marking(kmin, kmin + more).options.ecn);
    prop_oneof![1 => Just(None), 3 => marks]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is sent over whatever network: the outcome is that of a run which goes through all of it.
    #[test]
    fn outcomes_are_the_same(
        network in networks(),
        list in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..4_000_000u64, 0..300_000u64), 1..7),
        transport in transports(),
        (flow_control, buffer) in flow_controls(),
        ecn in marks(),
        gbps in prop::option::of(1..400u64),
        name in prop::sample::select(vec!["ecmp", "ecmp", "ecmp", "d-mod-k", "spray", "letflow", "adaptive", "drill", "spray-round-robin", "in-turn", "in-turn"]),
        number in any::<u64>(),
        seed in any::<u64>(),
    ) {
        let hosts = network.hosts() as usize;
        let lines: Vec<String> = list.iter().map(|flow| flow_line(hosts, flow)).collect();
        let pattern = flows(&format!("random-{number}"), &lines);
        let options = FabricOptions { buffer: buffer.map(Bytes), ecn, ..FabricOptions::default() };
        let fabric = Fabric { options, flow_control, ..Fabric::default() };
        let routing = preset::find(name).map_or_else(in_turn, |preset| preset.routing());
        let faults = gbps.map(|gbps| Fault::Degrade(Degrade { links: Some(1), rate_factor: gbps as f64 / 400.0, ..Degrade::default() }));
        // Senders without congestion control that lose packets may need seconds.
        let measure = Measure { until: Some(Time::from_us(3000)), ..Measure::default() };
        let config = SimConfig { routing, fabric, transport, seed, faults: faults.into_iter().collect(), measure, ..SimConfig::default() };
        if Simulation::check(network.clone(), config.clone(), plan(pattern.clone(), &network, 1)).is_err() {
            return Ok(());
        }
        skipped(&network, &config, &pattern);
    }
}

fn collectives() -> impl Strategy<Value = Collective> {
    let algorithm = prop_oneof![
        3 => Just(Algorithm::RingAllreduce),
        1 => prop::sample::select(Algorithm::ALL.to_vec()),
    ];
    let times = || prop_oneof![3 => Just(Time::ZERO), 1 => (1..20_000_000u64).prop_map(Time)];
    let repeat = prop_oneof![2 => 1..3u32, 1 => 4..16u32];
    (algorithm, 1..4_000_000u64, repeat, times(), times(), 1..4u32).prop_map(
        |(algorithm, size, repeat, overhead, compute, window)| Collective {
            algorithm,
            // Rings divide it, often into equal blocks.
            size: Some(Bytes(
                if algorithm == Algorithm::RingAllreduce { size * 12 } else { size } / u64::from(repeat),
            )),
            repeat,
            overhead,
            compute,
            window,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever program is run: the outcome is that of a run which goes through all of its steps.
    #[test]
    fn outcomes_of_programs_are_the_same(
        network in networks(),
        collective in collectives(),
        nics in prop::sample::select(vec![1u32, 1, 1, 2]),
        transport in transports(),
        (flow_control, buffer) in flow_controls(),
        ecn in marks(),
        until in prop_oneof![3 => Just(3000u64), 1 => 20..600u64],
        name in prop::sample::select(vec!["ecmp", "ecmp", "ecmp", "d-mod-k", "spray", "letflow", "adaptive", "drill"]),
        seed in any::<u64>(),
    ) {
        if network.hosts() % nics > 0 || network.hosts() / nics < 2 {
            return Ok(());
        }
        let options = FabricOptions { buffer: buffer.map(Bytes), ecn, ..FabricOptions::default() };
        let fabric = Fabric { options, flow_control, ..Fabric::default() };
        let measure = Measure { until: Some(Time::from_us(until)), ..Measure::default() };
        let Some(preset) = preset::find(name) else { return Ok(()) };
        let config = SimConfig { routing: preset.routing(), fabric, transport, seed, measure, ..SimConfig::default() };
        let servers = Servers { nics, ..Servers::default() };
        compare_on(&network, &config, &servers, &Pattern::Collective(collective));
    }
}

/// Servers of GPUs with a NIC each, along rails, and an ideal scale-up network.
fn servers_of(gpus: u32, nic_selection: NicSelection) -> Servers {
    let (rate, latency) = (Rate::from_gbps(900), Time::from_ns(500));
    let scale_up = Some(ScaleUp { wiring: ScaleUpWiring::Ideal, rate, latency });
    let wiring = Wiring::RailOptimised;
    Servers { nics: gpus, gpus: Some(gpus), wiring, nic_selection, scale_up, ..Servers::default() }
}

/// A step of a model whose layers are alike.
fn training(layers: u32) -> TrainingStep {
    TrainingStep {
        layers: Some(layers),
        hidden: Some(1024),
        heads: Some(8),
        vocabulary: Some(1000),
        sequence: Some(256),
        micro_batches: Some(2),
        ..TrainingStep::default()
    }
}

/// The skipping of a training step on servers of two GPUs, tensor-parallel each.
fn skipped_of_training(config: &SimConfig, step: TrainingStep) -> (Records, Skipped) {
    let (network, servers) = (leaf_spine(2, 2, 4), servers_of(2, NicSelection::Gpu));
    let step = TrainingStep { tensor: Some(2), ..step };
    skipped_on(&network, config, &servers, &Pattern::TrainingStep(step))
}

#[test]
fn layers_of_a_training_step_are_skipped_with_all_that_their_ranks_do() {
    let congestion = Congestion::Dcqcn(Dcqcn::default());
    let fabric = Fabric { flow_control: FlowControl::Pfc(pfc::Pfc::default()), ..marking(400_000, 400_000) };
    let roce = SimConfig { fabric, transport: Transport { congestion, ..Transport::default() }, ..ecmp() };
    // Gradients are added up while the layers before are computed, with ZeRO in halves, or afterwards.
    for (config, zero, overlap) in [(ecmp(), 1, true), (ecmp(), 0, true), (ecmp(), 1, false), (roce, 1, true)]
    {
        let step = TrainingStep { zero: Some(zero), overlap: Some(overlap), ..training(96) };
        let (records, skipped) = skipped_of_training(&config, step);
        // Embedding and layers on both rails, and what is inside of servers.
        assert!(records.jobs.collectives.len() > 2 * 96, "{}", records.jobs.collectives.len());
        // Within the messages of the first layers, and over many layers at once.
        assert!(skipped.jumps < 150, "{zero} {overlap} {skipped:?}");
        assert!(skipped.packet_hops * 10 > records.totals.packet_hops * 8, "{zero} {overlap} {skipped:?}");
    }
}

/// What was sent in the steps before is not taken for what is under way.
#[test]
fn layers_of_later_training_steps_are_skipped_as_those_of_the_first() {
    let of_steps = |steps| skipped_of_training(&ecmp(), TrainingStep { steps: Some(steps), ..training(96) });
    let ((_, one), (records, three)) = (of_steps(1), of_steps(3));
    assert!(three.packet_hops * 10 > records.totals.packet_hops * 8, "{three:?}");
    assert!(three.packet_hops * 100 > one.packet_hops * 3 * 95, "{one:?} {three:?}");
}

#[test]
fn layers_are_skipped_however_long_their_ranks_calculate() {
    for peak_tflops in [0.02, 0.3, 3.0] {
        let step = TrainingStep { peak_tflops: Some(peak_tflops), steps: Some(3), ..training(24) };
        let (records, skipped) = skipped_of_training(&ecmp(), step);
        assert!(skipped.packet_hops * 10 > records.totals.packet_hops * 9, "{peak_tflops} {skipped:?}");
    }
}

#[test]
fn repetitions_of_a_program_are_skipped_as_a_whole() {
    let switch = crossbar(6);
    let roce = SimConfig {
        transport: preset_of_transport("roce"),
        fabric: Fabric { flow_control: FlowControl::Pfc(pfc::Pfc::default()), ..marking(400_000, 400_000) },
        ..ecmp()
    };
    let dctcp = SimConfig { transport: preset_of_transport("dctcp"), ..ecmp() };
    for config in [ecmp(), roce, dctcp] {
        for algorithm in [Algorithm::PairwiseAllToAll, Algorithm::BruckAllToAll, Algorithm::Rabenseifner] {
            let (size, compute) = (Some(Bytes(30_000)), Time::from_us(3));
            let collective = Collective { algorithm, size, compute, repeat: 60, ..Collective::default() };
            let (records, skipped) = skipped(&switch, &config, &Pattern::Collective(collective));
            assert!(skipped.repetitions >= 50, "{algorithm:?} {skipped:?}");
            assert_eq!(records.jobs.repetitions.len(), 60);
            assert!(skipped.packet_hops * 10 > records.totals.packet_hops * 8, "{algorithm:?} {skipped:?}");
        }
    }
    let (_, steps) = skipped_of_training(&ecmp(), TrainingStep { steps: Some(8), ..training(12) });
    assert!(steps.repetitions >= 4, "{steps:?}");
}

#[test]
fn repetitions_whose_paths_are_hashed_anew_are_not_taken_for_the_same() {
    let size = Some(Bytes(30_000));
    let algorithm = Algorithm::PairwiseAllToAll;
    let collective = Collective { algorithm, size, repeat: 40, ..Collective::default() };
    let (_, skipped) = skipped(&fat_tree(4), &ecmp(), &Pattern::Collective(collective));
    assert_eq!(skipped.repetitions, 0, "{skipped:?}");
}

#[test]
fn a_training_step_that_is_cut_short_is_as_it_was() {
    let all = skipped_of_training(&ecmp(), training(48)).0;
    let last = all.flows.iter().map(|flow| flow.start).max().unwrap();
    for part in [11, 13, 17] {
        let measure = Measure { until: Some(Time(last.0 * part / 18 + 12_345)), ..Measure::default() };
        let (records, skipped) = skipped_of_training(&SimConfig { measure, ..ecmp() }, training(48));
        assert!(records.flows.len() < all.flows.len() && skipped.jumps > 0, "{skipped:?}");
    }
}

/// Steps of models on servers of one to four GPUs, with all kinds of parallelism; how many servers there are.
fn trainings() -> impl Strategy<Value = (u32, u32, NicSelection, TrainingStep)> {
    let layout = (
        1..5u32,
        3..7u32,
        prop::sample::select(vec![1u32, 1, 1, 2]),
        prop::sample::select(vec![1u32, 1, 1, 2]),
    );
    let model = (2..20u32, prop::sample::select(vec![128u32, 192, 256]), 0..4u8, any::<bool>(), 1..4u32);
    let parts = (1..3u32, 1..4u32, 1..3u32, any::<bool>());
    let selection =
        prop::sample::select(vec![NicSelection::Gpu, NicSelection::Gpu, NicSelection::RoundRobin]);
    (layout, model, parts, selection).prop_map(
        |(
            (gpus, servers, pipeline, context),
            (layers, hidden, zero, overlap, batches),
            (channels, chunks, steps, recompute),
            selection,
        )| {
            let step = TrainingStep {
                layers: Some(layers * pipeline),
                hidden: Some(hidden),
                heads: Some(8),
                vocabulary: Some(300),
                sequence: Some(64),
                tensor: Some(gpus),
                pipeline: Some(pipeline),
                context: Some(context),
                zero: Some(if pipeline > 1 { zero % 2 } else { zero }),
                overlap: Some(overlap),
                micro_batches: Some(batches),
                channels: Some(channels),
                chunks: Some(chunks),
                steps: Some(steps),
                recompute: Some(recompute),
                ..TrainingStep::default()
            };
            (gpus, servers * pipeline * context, selection, step)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is trained: all that is kept of the step is as in a run that goes through all of it.
    #[test]
    fn outcomes_of_training_steps_are_the_same(
        (gpus, count, selection, step) in trainings(),
        transport in transports(),
        (flow_control, buffer) in flow_controls(),
        ecn in marks(),
        until in prop_oneof![3 => Just(20_000u64), 1 => 100..3000u64],
        seed in any::<u64>(),
    ) {
        let network = leaf_spine(gpus, 2, count);
        let options = FabricOptions { buffer: buffer.map(Bytes), ecn, ..FabricOptions::default() };
        let fabric = Fabric { options, flow_control, ..Fabric::default() };
        let measure = Measure { until: Some(Time::from_us(until)), ..Measure::default() };
        let config = SimConfig { fabric, transport, seed, measure, ..ecmp() };
        let servers = if gpus > 1 { servers_of(gpus, selection) } else { Servers::default() };
        compare_on(&network, &config, &servers, &Pattern::TrainingStep(step));
    }
}

#[test]
fn hosts_that_go_in_step_recur_together() {
    let size = Bytes(4_000_000).into();
    let pattern = Pattern::Permutation(Permutation { size, ..Permutation::default() });
    assert!(share(&crossbar(6), &ecmp(), &pattern) > 0.5);
    skipped(&fat_tree(4), &ecmp(), &pattern);
    // Step by step: a program sends when it has received.
    let ring = Collective {
        algorithm: Algorithm::RingAllreduce,
        size: Some(Bytes(24_000_000)),
        ..Collective::default()
    };
    let pattern = Pattern::Collective(ring);
    let (_, skipped) = skipped(&crossbar(6), &ecmp(), &pattern);
    // Within the first steps, over many at once, and within the last ones.
    assert!((4..=8).contains(&skipped.jumps), "{skipped:?}");
}

/// The skipping of a ring over a network in which each flow has one path: all steps but the first ones and the last ones are skipped.
fn skipped_of_ring(network: &Network, config: &SimConfig, ring: Collective, nics: u32) -> (Records, Skipped) {
    let servers = Servers { nics, ..Servers::default() };
    skipped_on(network, config, &servers, &Pattern::Collective(ring))
}

fn ring(size: u64) -> Collective {
    Collective { algorithm: Algorithm::RingAllreduce, size: Some(Bytes(size)), ..Collective::default() }
}

#[test]
fn steps_that_are_the_same_are_skipped() {
    // 18 steps of 2 MB, or 8 of 3 MB.
    for (nics, size) in [(1, 20_000_000), (2, 15_000_000)] {
        let (records, skipped) = skipped_of_ring(&crossbar(10), &ecmp(), ring(size), nics);
        // Messages of servers take the one NIC and the other in turn.
        assert_eq!(records.flows.len(), if nics == 1 { 18 * 10 } else { 8 * 5 });
        // Within the first two steps and the last one, and all between.
        assert_eq!(skipped.jumps, 4, "{skipped:?}");
        assert!(skipped.packet_hops * 100 > records.totals.packet_hops * 94, "{skipped:?}");
    }
}

/// Unless it is said otherwise, what recurs is skipped in programs, also where packets may be lost and while timers are set.
#[test]
fn programs_are_skipped_by_default() {
    let run = |config: &SimConfig, pattern: &Pattern, fast| {
        let config = SimConfig { fast, ..config.clone() };
        let network = crossbar(10);
        let simulation = Simulation::new(network.clone(), config, plan(pattern.clone(), &network, 1));
        simulation.unwrap().run(1).unwrap()
    };
    let by_default = |config: &SimConfig, pattern: &Pattern| {
        let (expected, found) =
            (run(config, pattern, Fast::Nothing), run(config, pattern, SimConfig::default().fast));
        assert_eq!(difference(&expected.records, &found.records), None);
        found.skipped
    };
    let collective = Pattern::Collective(ring(20_000_000));
    let of_ring = by_default(&ecmp(), &collective).expect("something is skipped");
    assert!(of_ring.jumps > 0 && of_ring.obstacle.is_none(), "{of_ring:?}");
    // Hosts without programs; what does not recur.
    assert_eq!(by_default(&ecmp(), &flows("no-program", &["0,3,40000000,0ps"])), None);
    let options = FabricOptions { buffer: Some(Bytes(10_000_000)), ..FabricOptions::default() };
    let lossy = SimConfig { fabric: Fabric { options, ..Fabric::default() }, ..ecmp() };
    assert!(by_default(&lossy, &collective).is_some_and(|of_lossy| of_lossy.jumps > 0));
    assert_eq!(by_default(&scheme("spray-nic"), &collective), None);
    // Timers of DCQCN are set once a packet has been marked, and are not any more when it has recovered.
    let dcqcn = Congestion::Dcqcn(Dcqcn { preset: DcqcnPreset::Uet, ..Dcqcn::default() });
    let transport = Transport { congestion: dcqcn, ..Transport::default() };
    let marked = SimConfig { fabric: marking(5_000, 10_000), transport, ..ecmp() };
    by_default(&marked, &collective);
}

/// With so many hosts the initial budget of the search is spent before anything has recurred. At 400 Gb/s each step of the ring lasts only about twice as long as its transient.
#[test]
fn searches_that_cannot_be_paid_for_at_once_find_steps_that_are_the_same() {
    for rate in [200, 400].map(Rate::from_gbps) {
        let network = build(Topology::Crossbar(Crossbar { hosts: 130, rate, ..Crossbar::default() }));
        let (records, skipped) = skipped_of_ring(&network, &ecmp(), ring(65_000_000), 1);
        assert!(skipped.packet_hops * 10 > records.totals.packet_hops * 9, "{skipped:?}");
    }
}

#[test]
fn steps_of_other_sizes_end_what_is_the_same() {
    // One byte more in some blocks; and in each repetition all begins anew.
    for (size, repeat) in [(20_000_003, 1), (12_000_000, 3)] {
        let ring = Collective { repeat, ..ring(size) };
        let (records, skipped) = skipped_of_ring(&crossbar(10), &ecmp(), ring, 1);
        assert_eq!(records.flows.len() as u64, 18 * 10 * u64::from(repeat));
        assert!(
            skipped.jumps >= 12 && skipped.packet_hops * 4 > 3 * records.totals.packet_hops,
            "{skipped:?}"
        );
    }
}

#[test]
fn steps_whose_paths_are_hashed_anew_are_not_taken_for_the_same() {
    // Each host at a leaf switch of its own, so that all go in step.
    let (_, of_one_path) = skipped_of_ring(&leaf_spine(6, 1, 1), &ecmp(), ring(18_000_000), 1);
    assert!(of_one_path.jumps <= 6, "{of_one_path:?}");
    let (_, of_several) = skipped_of_ring(&leaf_spine(6, 3, 1), &ecmp(), ring(18_000_000), 1);
    // Within each of nearly all ten steps.
    assert!(of_several.jumps >= 8, "{of_several:?}");
}

#[test]
fn steps_of_short_messages_are_skipped() {
    // Nothing recurs within a message of 20 packets. What steps take on CPUs recurs, too.
    for overhead in [Time::ZERO, Time::from_ns(700)] {
        let ring = Collective { overhead, ..ring(16 * 20 * 4096) };
        let (records, skipped) = skipped_of_ring(&crossbar(16), &ecmp(), ring, 1);
        assert_eq!(records.flows.len(), 30 * 16);
        assert!(skipped.jumps > 0, "{skipped:?}");
        assert!(skipped.packet_hops * 10 > records.totals.packet_hops * 7, "{skipped:?}");
    }
}

/// A schedule in which each rank calculates for that many nanoseconds, sends to these ranks behind it and waits for as many messages, again and again.
fn schedule(ranks: u32, to: &[u32], (steps, calculation, bytes): (u32, u32, u64)) -> Pattern {
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        text += &format!("rank {rank} {{\n");
        for step in 0..steps {
            text += &format!("c{step}: calc {calculation}\n");
            for (place, behind) in to.iter().enumerate() {
                let (next, last) = ((rank + behind) % ranks, (rank + ranks - behind) % ranks);
                text +=
                    &format!("s{step}x{place}: send {bytes}b to {next}\ns{step}x{place} requires c{step}\n");
                text += &format!("r{step}x{place}: recv {bytes}b from {last}\n");
                if let Some(before) = step.checked_sub(1) {
                    for what in ["s", "r"] {
                        text += &format!("c{step} requires {what}{before}x{place}\n");
                    }
                    text += &format!("r{step}x{place} requires c{before}\n");
                }
            }
        }
        text += "}\n";
    }
    let name = format!("fast-{ranks}-{}-{steps}-{calculation}-{bytes}.goal", to.len());
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, text).unwrap();
    let time_unit = Time::from_ns(1);
    Pattern::Goal(Goal { file, time_unit, overhead: None, preset: None, nics: NicChoice::Servers })
}

#[test]
fn steps_with_calculations_between_them_are_skipped() {
    // While all calculate nothing is on its way. Messages of 98 packets have ended before anything recurs within one.
    for (calculation, bytes) in [(30_000, 20_000), (30_000, 400_000), (3_000, 400_000), (200_000, 100_000)] {
        let pattern = schedule(8, &[1], (60, calculation, bytes));
        let share = share(&crossbar(8), &ecmp(), &pattern);
        assert!(share > 0.7, "{calculation} ns, {bytes} B: {share}");
    }
    // Two messages at once, as of a grid that exchanges its borders.
    let share = share(&crossbar(9), &ecmp(), &schedule(9, &[1, 3, 6, 8], (60, 20_000, 60_000)));
    assert!(share > 0.7, "{share}");
}

#[test]
fn steps_of_a_job_are_skipped() {
    let network = crossbar(8);
    let job = Job {
        name: "steps".to_owned(),
        workload: schedule(6, &[1], (60, 10_000, 100_000)),
        ranks: Some(6),
        placement: JobPlacement::Packed,
        share: false,
        start: Time::from_us(3),
        start_jitter: Time::ZERO,
        repetitions: 2,
        class: 0,
        stragglers: Vec::new(),
    };
    let jobs = || {
        let context = PlanContext::new(1);
        let idle = Workload::new(Pattern::Idle(Idle {})).plan(&network, &context).unwrap();
        add_jobs(idle, std::slice::from_ref(&job), &network, &context).unwrap()
    };
    let (records, skipped) = skipped_of_plan(&network, &ecmp(), jobs);
    assert!(skipped.packet_hops * 10 > records.totals.packet_hops * 6, "{skipped:?}");
}

/// Two jobs with messages of one size, of which one calculates for times that are drawn: the other one recurs by itself.
#[test]
fn a_job_is_skipped_beside_one_that_draws() {
    let network = leaf_spine(2, 1, 6);
    let job = |name: &str, stragglers| Job {
        name: name.to_owned(),
        workload: schedule(6, &[1], (60, 10_000, 100_000)),
        ranks: Some(6),
        placement: JobPlacement::Packed,
        share: false,
        start: Time::ZERO,
        start_jitter: Time::ZERO,
        repetitions: 2,
        class: 0,
        stragglers,
    };
    let draws =
        Straggler { ranks: None, count: None, factor: 1.0, max_factor: Some(1.3), draw: Draw::Calculation };
    let both = [job("calm", Vec::new()), job("noisy", vec![draws])];
    let jobs = || {
        let context = PlanContext::new(1);
        let idle = Workload::new(Pattern::Idle(Idle {})).plan(&network, &context).unwrap();
        add_jobs(idle, &both, &network, &context).unwrap()
    };
    let (records, skipped) = skipped_of_plan(&network, &ecmp(), jobs);
    assert_eq!(skipped.components, 2);
    assert!(skipped.packet_hops * 10 > records.totals.packet_hops * 3, "{skipped:?}");
}

#[test]
fn all_is_as_it_was_after_steps_that_were_skipped() {
    // The run ends within a step, at any place of it; packets and timers are under way.
    let all = skipped_of_ring(&crossbar(10), &ecmp(), ring(20_000_000), 1).0;
    let last = all.flows.iter().map(|flow| flow.start).max().unwrap();
    for part in [11, 13, 17] {
        let measure = Measure { until: Some(Time(last.0 * part / 18 + 12_345)), ..Measure::default() };
        let config = SimConfig { measure, ..ecmp() };
        let (records, skipped) = skipped_of_ring(&crossbar(10), &config, ring(20_000_000), 1);
        assert!(records.flows.len() < all.flows.len() && skipped.jumps > 0, "{skipped:?}");
    }
}

#[test]
fn choices_of_switches_recur_where_they_have_one_port_to_choose_from() {
    let one_leaf = flows("one-leaf", &["0,1,40000000,0ps", "2,1,30000000,1us"]);
    let both = flows("both-leaves", &["0,1,40000000,0ps", "2,3,30000000,1us"]);
    let across = flows("across", &["0,1,40000000,0ps", "2,4,30000000,1us"]);
    for name in ["spray", "spray-round-robin", "adaptive", "drill", "letflow"] {
        assert!(share(&leaf_spine(2, 3, 3), &scheme(name), &one_leaf) > 0.8, "{name}");
        assert!(share(&leaf_spine(2, 1, 2), &scheme(name), &both) > 0.8, "{name}");
        let (records, of_across) = skipped(&leaf_spine(2, 3, 3), &scheme(name), &across);
        // What is left of the first flow when the second one has ended.
        assert!(of_across.packet_hops * 2 < records.totals.packet_hops, "{name}: {of_across:?}");
        // Steps of a ring, too.
        let (records, of_ring) = skipped_of_ring(&crossbar(10), &scheme(name), ring(20_000_000), 1);
        assert!(of_ring.packet_hops * 10 > records.totals.packet_hops * 9, "{name}: {of_ring:?}");
    }
}

/// Spraying by switches in turn, in an order that is always the same, so that nothing is drawn.
fn in_turn() -> Routing {
    let selector = Selector::RoundRobin(RoundRobin::default());
    Routing { selector, ..scheme("spray-round-robin").routing }
}

#[test]
fn turns_recur_over_several_ports() {
    let config = SimConfig { routing: in_turn(), ..SimConfig::default() };
    let pattern = flows("in-turn", &["0,4,40000000,0ps", "1,5,40000001,1us", "2,3,30000000,2us"]);
    for spines in [2, 3] {
        assert!(share(&leaf_spine(2, spines, 4), &config, &pattern) > 0.6);
    }
    // Two switches that have four ports and two: all of them must come round.
    assert!(share(&fat_tree(4), &config, &flows("in-turn-tree", &["0,15,40000000,0ps"])) > 0.9);
    let ring = skipped(&leaf_spine(4, 2, 4), &config, &Pattern::Collective(ring(80_000_000)));
    assert!(ring.1.packet_hops * 2 > ring.0.totals.packet_hops, "{:?}", ring.1);
}

/// In each step of a ring over several leaf switches flows end at different times, also those by which states are compared.
#[test]
fn another_flow_is_taken_when_one_has_ended() {
    let ring = GpuCollective {
        operation: Operation::ReduceScatter,
        algorithm: Method::Ring,
        size: Bytes(160_000_000),
        ..GpuCollective::default()
    };
    assert!(share(&leaf_spine(4, 2, 8), &ecmp(), &Pattern::GpuCollective(ring)) > 0.5);
}

#[test]
fn servers_of_several_nics_recur() {
    let network = leaf_spine(2, 2, 4);
    for nic_selection in [NicSelection::Stripe, NicSelection::RoundRobin, NicSelection::Hash] {
        let servers = Servers { nics: 2, nic_selection, ..Servers::default() };
        let ring = Collective { size: Some(Bytes(24_000_000)), ..Collective::default() };
        let pattern = Pattern::Collective(ring);
        // Alarms wait at each NIC, where packets may be lost.
        for buffer in [None, Some(Bytes(4_000_000))] {
            let options = FabricOptions { buffer, ..FabricOptions::default() };
            let config = SimConfig { fabric: Fabric { options, ..Fabric::default() }, ..ecmp() };
            let (_, skipped) = skipped_on(&network, &config, &servers, &pattern);
            assert_eq!(skipped.obstacle, None);
        }
    }
}

/// How many components of flows are run one by one.
fn components(network: &Network, config: &SimConfig, list: &[&str]) -> u64 {
    let (records, skipped) = skipped(network, config, &flows("components", list));
    assert!(skipped.packet_hops * 2 > records.totals.packet_hops, "{skipped:?}");
    skipped.components
}

#[test]
fn components_are_run_one_by_one() {
    let pairs = ["0,1,40000000,0ps", "3,2,50000000,1us", "4,5,60000000,2us"];
    let network = leaf_spine(2, 2, 4);
    let credits = under(FlowControl::Credits(credits::Credits::default()));
    for config in [ecmp(), credits] {
        assert_eq!(components(&network, &config, &pairs), 3);
        // What is alike recurs together.
        let alike = ["0,1,40000000,0ps", "3,2,50000000,1us", "4,5,40000000,2us"];
        assert_eq!(components(&network, &config, &alike), 2);
        // One that comes by the same link, one that leaves by it.
        let meeting = ["0,1,40000000,0ps", "2,1,50000000,1us", "1,3,60000000,2us"];
        assert_eq!(components(&network, &config, &meeting), 1);
    }
    // What a switch has in common is shared: random numbers, a scheme's state, what pauses.
    let pauses = under(FlowControl::Pfc(pfc::Pfc::default()));
    let Some(Ecn { kmin, kmax, pmax, .. }) = marking(20_000, 40_000).options.ecn else { unreachable!() };
    let ecn = Some(Ecn { kmin, kmax, pmax, mark: Mark::Arrival });
    let options = FabricOptions { ecn, ..FabricOptions::default() };
    let marks = SimConfig { fabric: Fabric { options, ..Fabric::default() }, ..ecmp() };
    for config in [scheme("adaptive"), scheme("spray"), pauses, marks] {
        assert_eq!(components(&network, &config, &pairs), 2);
    }
    // All paths count that there are.
    let across = ["0,1,40000000,0ps", "2,4,50000000,1us", "3,5,60000000,2us", "6,7,70000000,0ps"];
    assert_eq!(components(&network, &ecmp(), &across), 3);
}

/// NDP's transport with that first window, on a fabric that trims.
fn ndp(initial_window: u32) -> SimConfig {
    let fabric = Fabric { queue: Queue::Trimming(Trimming::default()), ..Fabric::default() };
    let transport = preset_of_transport("ndp");
    let congestion = Congestion::Pulls(Pulls { initial_window, ..Pulls::default() });
    SimConfig { fabric, transport: Transport { congestion, ..transport }, ..ecmp() }
}

fn preset_of_transport(name: &str) -> Transport {
    netloom_transport::preset::find(name).unwrap().transport()
}

#[test]
fn pulls_recur() {
    let alone = flows("pulls", &["0,3,80000001,0ps"]);
    let both = flows("pulls-both-ways", &["0,3,80000001,0ps", "3,0,70000000,2us"]);
    for network in [crossbar(4), leaf_spine(2, 1, 2)] {
        // With a window of less than a round trip, too: then the sender waits for PULLs.
        for initial_window in [3, 30] {
            assert!(share(&network, &ndp(initial_window), &alone) > 0.9);
        }
        assert!(share(&network, &ndp(30), &both) > 0.8);
    }
    // One pacer for all receivers of a host; the first windows of all are trimmed.
    let incast = flows("pulls-of-three", &["0,3,40000000,0ps", "1,3,40000000,0ps", "2,3,30000000,5us"]);
    let (records, skipped) = skipped(&crossbar(4), &ndp(30), &incast);
    assert!(records.channels.iter().any(|channel| channel.trims > 0));
    assert!(skipped.packet_hops * 10 > records.totals.packet_hops * 8, "{skipped:?}");
}

#[test]
fn steps_of_pulls_are_skipped() {
    for (nics, size) in [(1, 20_000_000), (2, 30_000_000)] {
        let (records, skipped) = skipped_of_ring(&crossbar(10), &ndp(30), ring(size), nics);
        assert!(skipped.packet_hops * 10 > records.totals.packet_hops * 8, "{skipped:?}");
    }
    // Nothing recurs within a message so short. Each begins with requests, and takes the place of another one at both ends.
    let Congestion::Pulls(pulls) = ndp(8).transport.congestion else { unreachable!() };
    for request_to_send in [false, true] {
        let congestion = Congestion::Pulls(Pulls { request_to_send, ..pulls.clone() });
        let config = SimConfig { transport: Transport { congestion, ..ndp(8).transport }, ..ndp(8) };
        let (records, skipped) = skipped_of_ring(&crossbar(16), &config, ring(16 * 20 * 4096), 1);
        assert!(skipped.packet_hops * 10 > records.totals.packet_hops * 6, "{skipped:?}");
    }
}

/// Receivers that ask for packets, in all ways that there are.
fn pulls() -> impl Strategy<Value = Transport> {
    let congestion = (1..60u32, prop::option::of(0.3..2.0f64), any::<bool>(), 0..4u8).prop_map(
        |(initial_window, initial_bdp, request_to_send, kind)| match kind {
            0 => Pulls { initial_window, adaptive: Some(Adaptive::default()), ..Pulls::default() },
            1 => Pulls { initial_bdp, request_to_send, pace: 0.97, ..Pulls::default() },
            _ => Pulls { initial_window, request_to_send, ..Pulls::default() },
        },
    );
    (congestion, 300..9000u64, 1..3u32, any::<bool>()).prop_map(|(pulls, mtu, ack_every, is_trimmed)| {
        let transport = preset_of_transport("ndp");
        let reliability =
            if is_trimmed { transport.reliability } else { Reliability::GoBackN(GoBackN::default()) };
        let options = TransportOptions { mtu: Bytes(mtu), ack_every, ..transport.options };
        Transport { reliability, congestion: Congestion::Pulls(pulls), options, ..transport }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever is asked for, trimmed and sent back: the outcome is that of a run which goes through all of it.
    #[test]
    fn outcomes_of_pulls_are_the_same(
        network in networks(),
        list in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..8_000_000u64, 0..300_000u64), 1..6),
        collective in prop::option::of(collectives()),
        nics in prop::sample::select(vec![1u32, 1, 2]),
        transport in pulls(),
        (buffer, control_priority) in (prop::option::of(10_000..200_000u64), any::<bool>()),
        until in prop_oneof![3 => Just(3000u64), 1 => 20..600u64],
        name in prop::sample::select(vec!["ecmp", "ecmp", "ecmp", "d-mod-k", "spray", "spray-round-robin"]),
        number in any::<u64>(),
        seed in any::<u64>(),
    ) {
        let options = FabricOptions { buffer: buffer.map(Bytes), control_priority, ..FabricOptions::default() };
        let fabric = Fabric { options, ..ndp(1).fabric };
        let measure = Measure { until: Some(Time::from_us(until)), ..Measure::default() };
        let Some(preset) = preset::find(name) else { return Ok(()) };
        let config = SimConfig { routing: preset.routing(), fabric, transport, seed, measure, ..SimConfig::default() };
        let hosts = network.hosts();
        if let Some(collective) = collective {
            if hosts % nics == 0 && hosts / nics >= 2 {
                let servers = Servers { nics, ..Servers::default() };
                compare_on(&network, &config, &servers, &Pattern::Collective(collective));
            }
            return Ok(());
        }
        let lines: Vec<String> = list.iter().map(|flow| flow_line(hosts as usize, flow)).collect();
        let pattern = flows(&format!("pulls-{number}"), &lines);
        if Simulation::check(network.clone(), config.clone(), plan(pattern.clone(), &network, 1)).is_ok() {
            skipped(&network, &config, &pattern);
        }
    }
}

/// A switch that trims draws which packet it trims.
#[test]
fn incasts_on_a_switch_that_trims_are_one_component() {
    let lines =
        |hosts: [u32; 3], bytes: u32| [1, 2].map(|src| format!("{},{},{bytes},0ps", hosts[src], hosts[0]));
    let lines: Vec<String> = [lines([0, 1, 2], 1_000_000), lines([3, 4, 5], 2_000_000)].concat();
    let queue = Queue::Trimming(Trimming::default());
    let transport = preset_of_transport("ndp");
    let config = SimConfig { fabric: Fabric { queue, ..Fabric::default() }, transport, ..ecmp() };
    skipped(&crossbar(6), &config, &flows("incasts", &lines));
    let reliability = Reliability::GoBackN(GoBackN::default());
    let config = SimConfig { transport: Transport { reliability, ..unlimited() }, ..config };
    skipped(&crossbar(6), &config, &flows("incasts", &lines));
}

#[test]
fn components_that_are_stopped_leave_nothing_behind() {
    let network = leaf_spine(2, 2, 4);
    let pattern = flows("stopped", &["0,1,40000000,0ps", "3,2,50000000,1us", "4,5,60000000,2us"]);
    for after in [1, 5, 9] {
        let config = SimConfig { fast: Fast::Recurring, ..ecmp() };
        let simulation =
            Simulation::new(network.clone(), config, plan(pattern.clone(), &network, 1)).unwrap();
        let mut last = RunProgress { time: Time::ZERO, flows_done: 0, packet_hops: 0 };
        let mut left = after;
        // Packets are accounted for at the end.
        let stopped = simulation.run_observed(1, |progress| {
            assert!(progress.time >= last.time && progress.flows_done >= last.flows_done);
            assert!(progress.packet_hops >= last.packet_hops);
            last = progress;
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let stopped = stopped.unwrap();
        assert!(stopped.interrupted && stopped.records.totals.simulated == last.time);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever components there are: the outcome is that of a run in which all is run at once.
    #[test]
    fn outcomes_of_components_are_the_same(
        network in prop_oneof![
            Just(crossbar(8)),
            (2..4u32, 1..3u32).prop_map(|(leaves, spines)| leaf_spine(leaves, spines, 4)),
            Just(fat_tree(4)),
        ],
        list in prop::collection::vec((0..16u32, prop::sample::select(vec![1u32, 1, 1, 2, 4]), 1..3_000_000u64, 0..200_000u64), 2..7),
        transport in transports(),
        flow_control in flow_controls().prop_map(|(flow_control, _)| flow_control),
        ecn in marks(),
        at_arrival in any::<bool>(),
        name in prop::sample::select(vec!["ecmp", "ecmp", "d-mod-k", "spray", "letflow", "adaptive", "spray-round-robin"]),
        number in any::<u64>(),
        seed in any::<u64>(),
    ) {
        let hosts = network.hosts();
        let line = |&(src, step, bytes, start): &(u32, u32, u64, u64)| {
            let src = src % hosts;
            let dst = src ^ step;
            format!("{src},{},{bytes},{start}ps", if dst < hosts { dst } else { src ^ 1 })
        };
        let lines: Vec<String> = list.iter().map(line).collect();
        let pattern = flows(&format!("components-{number}"), &lines);
        let ecn = ecn.map(|ecn| if at_arrival { Ecn { mark: Mark::Arrival, ..ecn } } else { ecn });
        let options = FabricOptions { ecn, ..FabricOptions::default() };
        let fabric = Fabric { options, flow_control, ..Fabric::default() };
        let Some(preset) = preset::find(name) else { return Ok(()) };
        let config = SimConfig { routing: preset.routing(), fabric, transport, seed, ..SimConfig::default() };
        if Simulation::check(network.clone(), config.clone(), plan(pattern.clone(), &network, 1)).is_err() {
            return Ok(());
        }
        skipped(&network, &config, &pattern);
    }
}
