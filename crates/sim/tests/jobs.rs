//! Jobs in the simulator: exact times of collectives on an idle star, and what must hold for all.

mod common;

use common::*;
use netloom_record::{ActivityRecord, CriticalKind, CriticalPaths, CriticalStep, FlowRecord, Records};
use netloom_routing::preset;
use netloom_sim::{SimConfig, Simulation};
use netloom_topology::Network;
use netloom_transport::{Congestion, Reliability, Transport};
use netloom_units::{Bytes, Time};
use netloom_workload::{
    Algorithm, AllToAll, Collective, Draw, Idle, Job, JobPlacement, NicSelection, Pattern, Permutation, Plan,
    PlanContext, Poisson, Servers, Straggler, Workload, add_jobs,
};
use proptest::prelude::*;
use std::sync::Arc;

const US: u64 = 1_000_000;

/// 64 B of header on 4096 B of payload, 200 Gb/s.
const PACKET: u64 = 166_400;

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

/// An all-reduce around a ring of `ranks` ranks, in blocks of `packets` packets, after `compute`.
fn ring(name: &str, ranks: u32, packets: u64, compute: Time) -> Job {
    let size = Some(Bytes(u64::from(ranks) * packets * 4096));
    job(name, ranks, Pattern::Collective(Collective { size, compute, ..Collective::default() }))
}

fn laid(network: &Network, workload: Pattern, jobs: &[Job], seed: u64) -> Option<Plan> {
    let context = PlanContext::new(seed);
    let plan = Workload::new(workload).plan(network, &context).ok()?;
    add_jobs(plan, jobs, network, &context).ok()
}

/// Runs jobs on a star of eight hosts, 200 Gb/s and 1 us per link, checked against the textbook executor.
fn star(jobs: &[Job]) -> Records {
    let network = crossbar(8);
    let simulation = || {
        let config = SimConfig { transport: without_acks(), ..scheme("ecmp") };
        let plan = laid(&network, Pattern::Idle(Idle::default()), jobs, 1).unwrap();
        Simulation::new(network.clone(), config, plan).unwrap()
    };
    let records = simulation().run(1).unwrap().records;
    assert_eq!(records.jobs, simulation().run_reference().unwrap().records.jobs);
    records
}

/// A step of the ring: packets back to back over two links.
fn step(packets: u64) -> u64 {
    (packets + 1) * PACKET + 2 * US
}

/// What ranks do when has no gaps, adds up to their records, and names flows that arrive as waits end.
fn check_activities(records: &Records) {
    let jobs = &records.jobs;
    for rank in jobs.ranks.iter().filter(|rank| rank.end.is_some()) {
        let is_its = |activity: &&ActivityRecord| {
            (activity.job, activity.rank, activity.repetition) == (rank.job, rank.rank, rank.repetition)
        };
        let (mut at, mut computing) = (rank.start, 0);
        for activity in jobs.activities.iter().filter(is_its) {
            assert_eq!(activity.start, at, "a gap: {activity:?}");
            at = activity.end;
            let lasted = (activity.end - activity.start).0;
            computing += if &*activity.activity == "computing" { lasted } else { 0 };
            let Some((src, number)) = activity.src.zip(activity.flow) else { continue };
            let is_awaited = |flow: &&FlowRecord| (flow.src.into(), flow.flow.into()) == (src, number);
            let flow = records.flows.iter().find(is_awaited).unwrap();
            assert_eq!(flow.fct.map(|fct| flow.start + fct), Some(activity.end), "{activity:?}");
        }
        assert_eq!((at, computing), (rank.end.unwrap(), rank.computation.0), "{rank:?}");
    }
}

#[test]
fn activities_make_up_the_time_of_ranks() {
    let network = crossbar(8);
    for (seed, compute) in [(1, 0), (2, 3), (3, 9)] {
        let jobs = [
            Job { repetitions: 3, ..ring("a", 4, 5, Time(compute * US)) },
            Job {
                stragglers: vec![Straggler {
                    ranks: Some(vec![1]),
                    count: None,
                    factor: 2.0,
                    max_factor: None,
                    draw: Draw::default(),
                }],
                ..ring("b", 4, 2, Time(5 * US))
            },
        ];
        let plan = laid(&network, Pattern::Idle(Idle::default()), &jobs, seed).unwrap();
        let mut config = SimConfig { transport: unlimited(), seed, ..scheme("ecmp") };
        config.measure.activities = true;
        let records = Simulation::new(network.clone(), config, plan).unwrap().run(1).unwrap().records;
        assert!(records.jobs.activities.iter().any(|activity| activity.flow.is_some()));
        check_activities(&records);
    }
    assert!(star(&[ring("a", 4, 5, Time(US))]).jobs.activities.is_empty(), "not asked for");
}

/// The critical path of a repetition, which has no gaps and ends with the repetition.
fn path_of(records: &Records, job: u16, repetition: u32) -> Vec<CriticalStep> {
    let jobs = &records.jobs;
    let steps = CriticalPaths::new(&jobs.operations, &jobs.ranks, &records.flows, &jobs.collectives)
        .of(job, repetition)
        .unwrap();
    assert!(steps.windows(2).all(|pair| pair[0].end == pair[1].start), "a gap: {steps:?}");
    let ranks: Vec<_> =
        jobs.ranks.iter().filter(|rank| (rank.job, rank.repetition) == (job, repetition)).collect();
    let Some((first, last)) = steps.first().zip(steps.last()) else {
        assert!(ranks.iter().all(|rank| rank.end == Some(rank.start)));
        return steps;
    };
    assert_eq!(Some(last.end), ranks.iter().filter_map(|rank| rank.end).max());
    assert_eq!(Some(first.start), ranks.iter().map(|rank| rank.start).min(), "it begins with the repetition");
    let own = steps.iter().find(|step| step.kind != CriticalKind::LateStart);
    assert!(
        own.is_none_or(|own| own.start == ranks[own.rank as usize].start),
        "a chain begins with its rank"
    );
    for step in &steps {
        let Some(message) = step.message.filter(|_| step.kind == CriticalKind::Message) else { continue };
        let is_it = |flow: &&FlowRecord| (flow.src, flow.flow) == (message.src, message.flow);
        let flow = records.flows.iter().find(is_it).unwrap();
        // Over several paths a short last packet need not wait behind the full ones, as it does on the idle path.
        let is_fast = flow.path_changes == 0 && step.end - step.start < message.ideal;
        assert!(!is_fast, "{step:?}");
    }
    steps
}

#[test]
fn a_critical_path_begins_with_the_straggler() {
    let network = crossbar(8);
    let slow =
        Straggler { ranks: Some(vec![1]), count: None, factor: 2.0, max_factor: None, draw: Draw::default() };
    let job = Job { repetitions: 2, stragglers: vec![slow], ..ring("a", 4, 5, Time(5 * US)) };
    let plan = laid(&network, Pattern::Idle(Idle::default()), &[job], 1).unwrap();
    let mut config = SimConfig { transport: without_acks(), ..scheme("ecmp") };
    config.measure.operations = true;
    let records = Simulation::new(network, config, plan).unwrap().run(1).unwrap().records;
    let first = path_of(&records, 0, 0);
    let found: Vec<_> = first.iter().map(|at| (at.kind, at.rank, (at.end - at.start).0)).collect();
    let message = |rank| (CriticalKind::Message, rank, step(5));
    let ring = [1, 2, 3, 0, 1, 2].map(message);
    let expected: Vec<_> = std::iter::once((CriticalKind::Computation, 1, 10 * US)).chain(ring).collect();
    assert_eq!(found, expected);
    // Each waits for the straggler again.
    let second = path_of(&records, 0, 1);
    assert!(second.iter().any(|step| (step.kind, step.rank) == (CriticalKind::Computation, 1)), "{second:?}");
}

#[test]
fn a_ring_all_reduce_takes_twice_n_minus_1_steps() {
    for (ranks, packets, repetitions) in [(2, 1, 1), (4, 5, 1), (8, 3, 4)] {
        let compute = Time(7 * US);
        let records = star(&[Job { repetitions, start: Time(3 * US), ..ring("a", ranks, packets, compute) }]);
        let communication = 2 * (u64::from(ranks) - 1) * step(packets);
        let one = compute.0 + communication;
        for (place, round) in (0..).zip(&records.jobs.repetitions) {
            assert_eq!((round.start, round.time), (Time(3 * US + place * one), Some(Time(one))));
            assert_eq!(
                (round.computation, round.exposed, round.waiting),
                (compute, Time(communication), Time::ZERO)
            );
            let bytes = u64::from(ranks) * 2 * (u64::from(ranks) - 1) * packets * 4096;
            assert_eq!((round.bytes, round.messages), (bytes, u64::from(2 * ranks * (ranks - 1))));
        }
        assert_eq!(records.jobs.repetitions.len(), repetitions as usize);
        let summary = &records.jobs.summaries()["a"];
        let all = u64::from(repetitions) * one;
        assert_eq!((summary.job_time, summary.step_time), (Some(Time(all)), Some(Time(one))));
        assert_eq!(records.totals.makespan, Some(Time(3 * US + all)));
        assert_eq!(records.jobs.collectives.len(), repetitions as usize);
        for collective in &records.jobs.collectives {
            let size = u64::from(ranks) * packets * 4096;
            assert_eq!(
                (&*collective.operation, collective.bytes, collective.ranks),
                ("all-reduce", size, ranks)
            );
            assert_eq!(
                (collective.last_start, collective.time),
                (collective.start, Some(Time(communication)))
            );
            // Size over time, and twice (n - 1)/n of it.
            let bandwidth = u128::from(size) * 8_000_000_000_000 / u128::from(communication);
            assert_eq!(u128::from(collective.algbw.unwrap()), bandwidth);
            let bus = u128::from(packets) * 4096 * 8_000_000_000_000 / u128::from(step(packets));
            assert_eq!(u128::from(collective.busbw.unwrap()), bus);
        }
    }
}

#[test]
fn ranks_wait_for_a_straggler_before_it_sends_and_communicate_from_then_on() {
    let (packets, compute) = (5, 50 * US);
    let slow =
        Straggler { ranks: Some(vec![2]), count: None, factor: 2.0, max_factor: None, draw: Draw::Rank };
    let records = star(&[Job { stragglers: vec![slow], ..ring("a", 4, packets, Time(compute)) }]);
    // Its first block goes once around, and half around again.
    let (sent, step) = (packets * PACKET, step(packets));
    assert_eq!(records.jobs.repetitions[0].time, Some(Time(2 * compute + 6 * step)));
    let ranks = &records.jobs.ranks;
    let of = |rank: usize| (ranks[rank].computation.0, ranks[rank].exposed.0, ranks[rank].waiting.0);
    // The straggler finds what the others have sent meanwhile, and sends four blocks one after the other. Then it waits for the first one that
    // depends on its own: the fourth that rank 1 sends, three steps after its own first one.
    assert_eq!(of(2), (2 * compute, step + 6 * sent, 3 * step - 4 * sent));
    // The next rank has sent its own block by the time that it begins to wait, once for the straggler and once as the straggler does.
    assert_eq!(of(3), (compute, 2 * step + 6 * sent, compute - sent + 3 * step - 4 * sent));
    let collective = &records.jobs.collectives[0];
    assert_eq!((collective.start, collective.last_start), (Time(compute), Time(2 * compute)));
}

#[test]
fn jobs_on_hosts_of_their_own_do_not_disturb_each_other_on_a_star() {
    let exchange = AllToAll { size: Bytes(4096).into(), window: 1, ..AllToAll::default() };
    let jobs = [
        ring("a", 3, 4, Time(US)),
        Job { start: Time(2 * US), ..ring("b", 2, 9, Time::ZERO) },
        Job { start: Time(US), ..job("c", 2, Pattern::AllToAll(exchange)) },
    ];
    let records = star(&jobs);
    let times: Vec<_> =
        records.jobs.repetitions.iter().map(|round| (round.start.0, round.time.unwrap().0)).collect();
    assert_eq!(times, [(0, US + 4 * step(4)), (2 * US, 2 * step(9)), (US, step(1))]);
    assert_eq!(records.groups, ["a", "b", "c"]);
    let hosts: Vec<_> = records.jobs.ranks.iter().map(|rank| (rank.job, rank.host)).collect();
    assert_eq!(hosts, [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]);
    // Of what is no program, messages tell all that is known.
    let last = records.jobs.ranks.last().unwrap();
    assert_eq!((last.exposed, last.bytes, last.messages), (Time(step(1)), 4096, 1));
}

#[test]
fn a_job_that_the_end_of_the_run_cuts_has_no_end() {
    let network = crossbar(8);
    let mut config = SimConfig { transport: without_acks(), ..scheme("ecmp") };
    let one = US + 6 * step(5);
    config.measure.until = Some(Time(one + US + step(5) / 2));
    let jobs = [Job { repetitions: 3, ..ring("a", 4, 5, Time(US)) }];
    let plan = laid(&network, Pattern::Idle(Idle::default()), &jobs, 1).unwrap();
    let jobs = Simulation::new(network, config, plan).unwrap().run(1).unwrap().records.jobs;
    let ends: Vec<_> = jobs.repetitions.iter().map(|round| round.end).collect();
    assert_eq!(ends, [Some(Time(one)), None]);
    assert_eq!((jobs.repetitions[1].computation, jobs.repetitions[1].exposed), (Time(US), Time(5 * PACKET)));
    let summary = &jobs.summaries()["a"];
    assert_eq!((summary.completed, summary.repetitions, summary.job_time), (1, 3, None));
}

#[test]
fn ranks_on_servers_wait_for_whole_messages() {
    // Two links per server: blocks of ten packets go in halves.
    let (network, servers) =
        (crossbar(8), Servers { nics: 2, nic_selection: NicSelection::Stripe, ..Servers::default() });
    let rails = Some(Arc::new(servers.build(&network, 1).unwrap()));
    let context = PlanContext { rails, ..PlanContext::new(1) };
    let plan = Workload::new(Pattern::Idle(Idle::default())).plan(&network, &context).unwrap();
    let plan = add_jobs(plan, &[ring("a", 4, 10, Time(US))], &network, &context).unwrap();
    let transport = Transport { congestion: Congestion::None(Default::default()), ..Transport::default() };
    let config = SimConfig { transport, ..scheme("ecmp") };
    let jobs = Simulation::new(network, config, plan).unwrap().run(1).unwrap().records.jobs;
    // A send is done when it is acknowledged, a link there and back after its last bit has come.
    let ack = 2 * at_200g(64).0 + 2 * US;
    assert_eq!(jobs.repetitions[0].time, Some(Time(US + 6 * (step(5) + ack))));
    assert!(jobs.ranks.iter().all(|rank| rank.waiting == Time::ZERO && rank.computation == Time(US)));
}

fn workloads() -> impl Strategy<Value = (Pattern, bool)> {
    let collective = (0..Algorithm::ALL.len(), 1..40_000u64, 0..3000u64, 0..2u64).prop_map(
        |(algorithm, size, compute, overhead)| {
            let collective = Collective {
                algorithm: Algorithm::ALL[algorithm],
                size: Some(Bytes(size)),
                compute: Time::from_ns(compute),
                overhead: Time::from_ns(overhead * 70),
                ..Collective::default()
            };
            (Pattern::Collective(collective), true)
        },
    );
    let permutation = (1..60_000u64).prop_map(|bytes| {
        (Pattern::Permutation(Permutation { size: Bytes(bytes).into(), ..Permutation::default() }), false)
    });
    let exchange = (1..20_000u64).prop_map(|bytes| {
        (Pattern::AllToAll(AllToAll { size: Bytes(bytes).into(), ..AllToAll::default() }), false)
    });
    prop_oneof![3 => collective, 1 => permutation, 1 => exchange]
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let placement = prop_oneof![
        Just(JobPlacement::Packed),
        Just(JobPlacement::Random),
        Just(JobPlacement::RoundRobinLeaves),
        Just(JobPlacement::ByRail),
    ];
    let fields = (
        workloads(),
        2..6u32,
        placement,
        any::<bool>(),
        0..20u64,
        0..3000u64,
        1..4u32,
        prop::option::of(1.0..3.0f64),
    );
    let any = fields.prop_map(
        |((workload, is_program), ranks, placement, share, start, jitter, repetitions, factor)| {
            let calculates =
                matches!(&workload, Pattern::Collective(collective) if collective.compute > Time::ZERO);
            let slow = |factor| Straggler {
                ranks: None,
                count: Some(1),
                factor: 1.0,
                max_factor: Some(factor),
                draw: Draw::Calculation,
            };
            Job {
                placement,
                share,
                start: Time::from_us(start),
                start_jitter: Time::from_ns(jitter),
                repetitions: if is_program { repetitions } else { 1 },
                stragglers: factor.filter(|_| calculates).map(slow).into_iter().collect(),
                ..job("", ranks, workload)
            }
        },
    );
    prop::collection::vec(any, 1..4).prop_map(|jobs| {
        let named = |(number, job)| Job { name: format!("job {number}"), ..job };
        jobs.into_iter().enumerate().map(named).collect()
    })
}

fn networks() -> impl Strategy<Value = Network> {
    prop_oneof![
        (9..16u32).prop_map(crossbar),
        (2..4u32, 1..4u32, 5..7u32).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        Just(fat_tree(4)),
    ]
}

/// What holds for the records of jobs, whatever they did.
fn check(records: &Records, plan: &Plan) {
    let jobs = &records.jobs;
    assert_eq!(jobs.jobs.len(), plan.jobs.len());
    for rank in &jobs.ranks {
        let whole = rank.end.unwrap() - rank.start;
        assert_eq!(rank.computation + rank.exposed + rank.waiting, whole, "{rank:?}");
    }
    for (number, job) in (0..).zip(&plan.jobs) {
        let rounds: Vec<_> = jobs.repetitions.iter().filter(|round| round.job == number).collect();
        assert_eq!(rounds.len(), job.repetitions as usize);
        let flows: Vec<_> = records.flows.iter().filter(|flow| job.groups.contains(&flow.group)).collect();
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        assert_eq!(rounds.iter().map(|round| round.bytes).sum::<u64>(), bytes);
        assert_eq!(rounds.iter().map(|round| round.messages).sum::<u64>(), flows.len() as u64);
        let (start, end) = (rounds[0].start, rounds.iter().filter_map(|round| round.end).max().unwrap());
        assert!(flows.iter().all(|flow| start <= flow.start && flow.start + fct(flow) <= end));
        assert!(start >= job.start);
        if job.takes_notes() {
            (0..job.repetitions).for_each(|repetition| drop(path_of(records, number, repetition)));
        }
        let collectives: Vec<_> = jobs.collectives.iter().filter(|one| one.job == number).collect();
        assert_eq!(collectives.len(), job.collectives().len() * job.repetitions as usize);
        for one in collectives {
            let round = rounds[one.repetition as usize];
            assert!(round.start <= one.start && one.start <= one.last_start);
            assert!(one.last_start <= one.end.unwrap() && one.end <= round.end);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn jobs_end_alike_on_any_number_of_threads(
        network in networks(),
        jobs in jobs(),
        background in any::<bool>(),
        name in 0..preset::PRESETS.len(),
        seed in any::<u64>(),
    ) {
        let poisson = Poisson { messages_per_host: Some(3), size: Bytes(8000).into(), ..Poisson::default() };
        let workload = if background { Pattern::Poisson(poisson) } else { Pattern::Idle(Idle::default()) };
        // What does not fit the network is refused.
        let Some(plan) = laid(&network, workload, &jobs, seed) else { return Ok(()) };
        let mut config = SimConfig { routing: preset::PRESETS[name].routing(), transport: unlimited(), seed, ..SimConfig::default() };
        schemes::fit(&mut config.fabric.options, &config.routing);
        config.measure.operations = true;
        let Ok(first) = Simulation::new(network.clone(), config.clone(), plan.clone()) else { return Ok(()) };
        let records = first.run(1).unwrap().records;
        check(&records, &plan);
        let again = Simulation::new(network.clone(), config.clone(), plan.clone()).unwrap();
        prop_assert_eq!(difference(&records, &again.run(3).unwrap().records), None);
        let reference = Simulation::new(network, config, plan).unwrap().run_reference().unwrap().records;
        prop_assert_eq!(difference(&records, &reference), None);
    }
}
