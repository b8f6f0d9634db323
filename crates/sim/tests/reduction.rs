//! Collectives in which switches reduce: exact times on idle trees, bytes on every link, and what must hold for all.

mod common;

use common::*;
use netloom_fabric::{Ecn, FlowControl, Queue};
use netloom_record::Records;
use netloom_routing::preset;
use netloom_sim::{ChannelEnds, Cut, Fault, SimConfig, SimError, Simulation};
use netloom_topology::{FatTree, Network, Topology};
use netloom_transport::congestion::Marks;
use netloom_transport::{Reliability, Transport};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{
    Algorithm, Collective, HostName, Idle, Job, JobPlacement, Pattern, Plan, PlanContext, SharpLike,
    SwitchOperation, Uniform, Workload, add_jobs,
};
use proptest::prelude::*;

const US: u64 = 1_000_000;

/// 64 B of header on 2048 B of payload, 200 Gb/s: a chunk.
const CHUNK: u64 = 84_480;

/// What a unit takes besides transmission.
const LATENCY: u64 = 500_000;

/// An ACK at 800 Gb/s.
const ACK: u64 = 640;

/// A send is done when its last bit has left.
fn without_acks() -> Transport {
    Transport { reliability: Reliability::None(Default::default()), ..unlimited() }
}

fn job(name: &str, ranks: u32, workload: Pattern) -> Job {
    Job {
        name: name.to_owned(),
        workload,
        ranks: Some(ranks),
        placement: JobPlacement::Packed,
        share: false,
        start: Time::ZERO,
        start_jitter: Time::ZERO,
        repetitions: 1,
        class: 0,
        stragglers: Vec::new(),
    }
}

fn laid(network: &Network, workload: Pattern, jobs: &[Job]) -> Plan {
    let context = PlanContext::new(1);
    let plan = Workload::new(workload).plan(network, &context).unwrap();
    add_jobs(plan, jobs, network, &context).unwrap()
}

fn reduced(size: u64) -> SharpLike {
    SharpLike { size: Some(Bytes(size)), ..SharpLike::default() }
}

fn run_jobs(network: &Network, transport: Transport, jobs: &[Job]) -> Records {
    let config = SimConfig { transport, ..scheme("ecmp") };
    run(network.clone(), config, laid(network, Pattern::Idle(Idle::default()), jobs))
}

/// How long a collective of all hosts takes.
fn time(network: &Network, transport: Transport, workload: Pattern) -> Time {
    let records = run_jobs(network, transport, &[job("all", network.hosts(), workload)]);
    records.jobs.repetitions[0].time.expect("the job is complete")
}

/// The way of one chunk up and down a tree all of whose links are alike, over switches with these numbers of children, which have four links each. At a unit, chunks come one after the other at
/// four times the rate of a link, and so do copies leave; in between one sum leaves upwards, and one result comes.
fn one_chunk(children: &[u64], acknowledges: bool) -> u64 {
    let (links, units) = (2 * children.len() as u64, 2 * children.len() as u64 - 1);
    let transmissions = 2 * children.iter().sum::<u64>() + 2 * (children.len() as u64 - 1);
    let acks = if acknowledges { units * ACK } else { 0 };
    links * (CHUNK + US) + units * LATENCY + transmissions * CHUNK / 4 + acks
}

#[test]
fn chunks_go_up_and_down_a_tree_in_a_pipeline() {
    // Two hosts and two spines for each of four leaves; edge switches, aggregation switches and cores of a fat tree with four links each.
    for (network, children) in [(leaf_spine(4, 2, 2), vec![2, 4]), (fat_tree(4), vec![2, 2, 4])] {
        for chunks in [1, 2, 10] {
            let sharp = Pattern::SharpLike(reduced(chunks * 2048));
            let expected = one_chunk(&children, false) + (chunks - 1) * CHUNK;
            assert_eq!(time(&network, without_acks(), sharp), Time(expected), "{} {chunks}", network.name());
        }
        // The ACK for the last child leaves before the sum.
        let sharp = Pattern::SharpLike(reduced(2048));
        assert_eq!(
            time(&network, unlimited(), sharp),
            Time(one_chunk(&children, true)),
            "{}",
            network.name()
        );
    }
}

#[test]
fn latency_and_rate_of_units_count_as_often_as_they_are_passed() {
    let network = leaf_spine(4, 2, 2);
    let with =
        |latency, rate| Pattern::SharpLike(SharpLike { latency: Time(latency), rate, ..reduced(2048) });
    let expected = one_chunk(&[2, 4], false);
    assert_eq!(time(&network, without_acks(), with(100_000, None)), Time(expected - 3 * (LATENCY - 100_000)));
    // At the rate of one link, children's chunks come as if they shared one.
    let slow = with(LATENCY, Some(Rate::from_gbps(200)));
    assert_eq!(time(&network, without_acks(), slow), Time(expected + 14 * (CHUNK - CHUNK / 4)));
}

#[test]
fn switches_hold_no_more_chunks_than_they_may() {
    let network = leaf_spine(4, 2, 2);
    let sharp = SharpLike { outstanding: 1, ..reduced(5 * 2048) };
    // One chunk after the other. The ranks that get a result first send first, so that only the last child's chunk is still to come when it does: of two at a leaf and of four at the spine.
    let next = one_chunk(&[2, 4], false) - (1 + 3) * CHUNK / 4;
    let expected = one_chunk(&[2, 4], false) + 4 * next;
    assert_eq!(time(&network, without_acks(), Pattern::SharpLike(sharp)), Time(expected));
}

#[test]
fn each_link_of_the_tree_carries_the_vector_once_each_way() {
    let size = 20 * 2048;
    for (network, trees) in
        [(leaf_spine(4, 2, 2), 1), (leaf_spine(4, 2, 2), 2), (fat_tree(4), 1), (fat_tree(4), 4)]
    {
        let sharp = Pattern::SharpLike(SharpLike { trees, ..reduced(size) });
        let records = run_jobs(&network, without_acks(), &[job("all", network.hosts(), sharp)]);
        let wire = size / 2048 * 2112;
        let (mut used, mut by_tier) = (0, std::collections::BTreeMap::<String, u64>::new());
        for channel in &records.channels {
            *by_tier.entry(channel.tier.to_string()).or_default() += channel.bytes;
            used += u32::from(channel.bytes > 0 && &*channel.tier != "reduction");
            if &*channel.tier == "host" {
                assert_eq!(channel.bytes, wire, "{} -> {}", channel.from, channel.to);
            }
        }
        by_tier.remove("reduction");
        let hosts = u64::from(network.hosts());
        let expected: Vec<u64> = match network.name() {
            name if name.contains("fat tree") => vec![2 * 4 * wire, 2 * 8 * wire, 2 * hosts * wire],
            _ => vec![2 * hosts * wire, 2 * 4 * wire],
        };
        assert_eq!(by_tier.values().copied().collect::<Vec<_>>(), expected, "{by_tier:?}");
        if trees == 1 {
            // No other link between switches is used.
            let links = if expected.len() == 3 { 16 + 8 + 4 } else { 8 + 4 };
            assert_eq!(used, 2 * links);
        }
        // Units are neither ranks nor hosts of the job.
        assert_eq!(records.jobs.ranks.len(), network.hosts() as usize);
        assert!(records.jobs.ranks.iter().all(|rank| rank.host < network.hosts() && rank.bytes == size));
        assert_eq!(records.jobs.collectives.len(), 1);
        assert_eq!(
            (&*records.jobs.collectives[0].operation, records.jobs.collectives[0].bytes),
            ("all-reduce", size)
        );
    }
}

#[test]
fn half_the_bytes_and_far_fewer_steps_than_a_ring() {
    let network = leaf_spine(4, 4, 4);
    let ring = |size| {
        let (algorithm, size) = (Algorithm::RingAllreduce, Some(Bytes(size)));
        time(
            &network,
            unlimited(),
            Pattern::Collective(Collective { algorithm, size, ..Collective::default() }),
        )
        .0 as f64
    };
    let sharp = |size| {
        // As large packets as the ring has.
        let config = SharpLike { chunk: Bytes(4096), ..reduced(size) };
        time(&network, unlimited(), Pattern::SharpLike(config)).0 as f64
    };
    // 2 (P - 1)/P = 1.875 vectors instead of one. Each of the ring's 30 steps of 173 us takes up to eight links there and back, too.
    let large = ring(64 << 20) / sharp(64 << 20);
    assert!((1.875..1.875 * 1.06).contains(&large), "{large}");
    // Thirty steps of two links or more against four links and three units.
    let small = ring(16) / sharp(16);
    assert!(small > 10.0, "{small}");
    assert!(sharp(16) < 6.0 * US as f64);
}

#[test]
fn jobs_share_units_and_links_with_others() {
    let network = leaf_spine(4, 2, 4);
    let placed = |name: &str, hosts: [u32; 4], workload| Job {
        ranks: None,
        placement: JobPlacement::Hosts(hosts.map(HostName::Number).to_vec()),
        ..job(name, 4, workload)
    };
    let sharp = |chunks: u64| Pattern::SharpLike(reduced(chunks * 2048));
    let alone = |job: &Job| {
        run_jobs(&network, unlimited(), std::slice::from_ref(job)).jobs.repetitions[0].time.unwrap()
    };
    let first = placed("first", [0, 4, 8, 12], sharp(50));
    let second = placed("second", [5, 9, 13, 1], sharp(30));
    let pattern = Uniform { size: Bytes(50_000).into(), messages_per_host: Some(3), ..Uniform::default() };
    let background = laid(&network, Pattern::Uniform(pattern), &[first.clone(), second.clone()]);
    let config = SimConfig { transport: unlimited(), ..scheme("ecmp") };
    let both = run_jobs(&network, unlimited(), &[first.clone(), second.clone()]);
    let busy = run(network.clone(), config, background);
    for (number, job) in [(0, &first), (1, &second)] {
        let time = |records: &Records| records.jobs.repetitions[number].time.unwrap();
        assert!(alone(job) <= time(&both) && time(&both) < time(&busy));
        assert_eq!(busy.jobs.repetitions[number].ranks, 4);
    }
}

#[test]
fn messages_go_around_a_cut_link_of_the_tree() {
    let network = leaf_spine(4, 2, 2);
    // The root is s4, the first spine.
    let cut = ChannelEnds { from: "s1".to_owned(), to: "s4".to_owned(), parallel: 0 };
    let fault = Fault::Cut(Cut { channels: vec![cut], ..Cut::default() });
    let config = SimConfig { transport: unlimited(), faults: vec![fault], ..scheme("ecmp") };
    let all = job("all", 8, Pattern::SharpLike(reduced(2048)));
    let plan = laid(&network, Pattern::Idle(Idle::default()), &[all]);
    let around = run(network, config, plan).jobs.repetitions[0].time.unwrap();
    // Two more links there and back. Its sum comes after all others to the root, and the result for it leaves second of four, but may wait for that of the leaf that it goes by.
    let late = one_chunk(&[2, 4], true) + 4 * (CHUNK + US) - 5 * CHUNK / 4;
    assert!((late..=late + CHUNK).contains(&around.0), "{around}");
}

/// Every scheme either reduces or is refused by its field.
#[test]
fn schemes_that_take_all_switches_with_hosts_for_leaves_are_refused() {
    let network = leaf_spine(3, 2, 2);
    let (mut run, mut refused) = (Vec::new(), Vec::new());
    for preset in preset::PRESETS {
        let mut config = SimConfig { transport: unlimited(), ..scheme(preset.name) };
        config.fabric.options.ecn = schemes::ecn_for(&config.routing);
        // Hopper's probes wait with data.
        config.fabric.options.control_priority = false;
        let plan = laid(
            &network,
            Pattern::Idle(Idle::default()),
            &[job("all", 6, Pattern::SharpLike(reduced(9000)))],
        );
        match Simulation::new(network.clone(), config, plan) {
            Ok(simulation) => {
                let records = simulation.run(1).unwrap().records;
                assert!(records.jobs.repetitions[0].time.is_some(), "{}", preset.name);
                run.push(preset.name);
            }
            Err(SimError::Routing(_)) => refused.push(preset.name),
            Err(error) => assert!(preset.routing().fits(&network).is_err(), "{}: {error}", preset.name),
        }
    }
    for name in ["ecmp", "spray", "letflow", "drill", "flowcut", "adaptive"] {
        assert!(run.contains(&name) || preset::find(name).is_none(), "{name}: {run:?}");
    }
    for name in ["conga", "conweave", "presto", "valiant"] {
        assert!(refused.contains(&name), "{name}: {refused:?}");
    }
}

fn flow_controls() -> impl Strategy<Value = FlowControl> {
    prop_oneof![
        Just(FlowControl::Lossy(Default::default())),
        Just(FlowControl::Pfc(Default::default())),
        Just(FlowControl::Credits(Default::default())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any scheme, fabric and operation: all ranks are done, on any number of threads alike.
    #[test]
    fn any_operation_ends_on_any_tree(
        (pods, tors, aggs, hosts) in (2..4u32, 1..4u32, 1..3u32, 1..4u32),
        number in 0..preset::PRESETS.len(),
        transport in 0..netloom_transport::preset::PRESETS.len(),
        trims: bool,
        flow_control in flow_controls(),
        operation in prop::sample::select(vec![
            SwitchOperation::AllReduce, SwitchOperation::Reduce, SwitchOperation::Broadcast, SwitchOperation::Barrier,
        ]),
        (size, chunk, outstanding) in (1..40_000u64, 500..9000u64, 1..20u32),
        random: bool,
    ) {
        let network = build(Topology::FatTree(FatTree {
            pods: Some(pods), tors_per_pod: Some(tors), aggs_per_pod: Some(aggs), cores: Some(aggs * 2), hosts_per_tor: Some(hosts),
            ..FatTree::default()
        }));
        let ranks = network.hosts();
        prop_assume!(ranks >= 2);
        let mut config = scheme(preset::PRESETS[number].name);
        config.fabric.options.ecn = schemes::ecn_for(&config.routing);
        config.fabric.flow_control = flow_control;
        config.transport = netloom_transport::preset::PRESETS[transport].transport();
        if config.transport.congestion.facts().marks == Marks::Required {
            config.fabric.options.ecn = Some(Ecn { kmin: Bytes(9000), kmax: Bytes(30_000), pmax: 1.0, mark: Default::default() });
        }
        if trims {
            config.fabric.queue = Queue::Trimming(Default::default());
        }
        let sharp = SharpLike { operation, chunk: Bytes(chunk), outstanding, ..reduced(size) };
        let placement = if random { JobPlacement::Random } else { JobPlacement::Packed };
        let job = Job { placement, repetitions: 2, ..job("all", ranks, Pattern::SharpLike(sharp)) };
        let simulation = || {
            let plan = laid(&network, Pattern::Idle(Idle::default()), std::slice::from_ref(&job));
            Simulation::new(network.clone(), config.clone(), plan)
        };
        let Ok(first) = simulation() else { return Ok(()) };
        let records = first.run(1).unwrap().records;
        prop_assert_eq!(records.jobs.repetitions.len(), 2);
        prop_assert!(records.jobs.repetitions.iter().all(|repetition| repetition.time.is_some()));
        let threads = simulation().unwrap().run(3).unwrap().records;
        prop_assert_eq!(difference(&records, &threads), None);
        let reference = simulation().unwrap().run_reference().unwrap().records;
        prop_assert_eq!(difference(&records, &reference), None);
    }
}
