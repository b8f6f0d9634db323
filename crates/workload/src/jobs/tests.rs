use super::*;
use crate::pattern::tests::network;
use crate::program::testing::{Event, execute};
use crate::{
    AllToAll, Bernoulli, Collective, FlowList, Incast, Mix, Part, Permutation, Poisson, Uniform, Workload,
};
use netloom_units::Bytes;

fn job(name: &str, workload: Pattern) -> Job {
    Job {
        name: name.to_owned(),
        workload,
        ranks: None,
        placement: JobPlacement::Packed,
        share: false,
        start: Time::ZERO,
        start_jitter: Time::ZERO,
        repetitions: 1,
        class: 0,
        stragglers: Vec::new(),
    }
}

fn collective(name: &str, ranks: u32) -> Job {
    let workload = Pattern::Collective(Collective { compute: Time(100), ..Collective::default() });
    Job { ranks: Some(ranks), ..job(name, workload) }
}

/// 16 hosts at four leaf switches, two of which are a pod.
fn built(jobs: &[Job], seed: u64) -> Result<Plan, WorkloadError> {
    beside(Pattern::Idle(crate::Idle::default()), jobs, seed)
}

fn beside(workload: Pattern, jobs: &[Job], seed: u64) -> Result<Plan, WorkloadError> {
    let (network, context) = (network(16, 4), PlanContext::new(seed));
    let plan = Workload::new(workload).plan(&network, &context)?;
    add_jobs(plan, jobs, &network, &context)
}

fn hosts(plan: &Plan, job: usize) -> Vec<u32> {
    plan.jobs[job].hosts.to_vec()
}

fn refused(jobs: &[Job]) -> String {
    built(jobs, 1).unwrap_err().to_string()
}

fn placed(placement: JobPlacement, ranks: u32) -> Job {
    Job { placement, ..collective("job", ranks) }
}

#[test]
fn placements_are_what_they_say() {
    let of = |placement, ranks| hosts(&built(&[placed(placement, ranks)], 1).unwrap(), 0);
    assert_eq!(of(JobPlacement::Packed, 5), [0, 1, 2, 3, 4]);
    assert_eq!(of(JobPlacement::RoundRobinLeaves, 6), [0, 4, 8, 12, 1, 5]);
    assert_eq!(of(JobPlacement::ByRail, 10), [0, 4, 1, 5, 2, 6, 3, 7, 8, 12]);
    let listed = vec![HostName::Number(9), HostName::Name("h2".to_owned()), HostName::Number(4)];
    assert_eq!(of(JobPlacement::Hosts(listed), 3), [9, 2, 4]);
    let drawn = |seed| hosts(&built(&[placed(JobPlacement::Random, 8)], seed).unwrap(), 0);
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ranks.txt");
    std::fs::write(&file, "# a rank per line\n3\nh12\n\n7\n").unwrap();
    assert_eq!(of(JobPlacement::File(file.clone()), 3), [3, 12, 7]);
    std::fs::write(&file, "3\nh12\nh16\n").unwrap();
    let error = refused(&[placed(JobPlacement::File(file), 3)]);
    assert!(error.contains("ranks.txt:3: expected "), "{error}");
}

#[test]
fn jobs_have_hosts_of_their_own() {
    let lists = |hosts: [u32; 2]| JobPlacement::Hosts(hosts.map(HostName::Number).to_vec());
    let two = |first, second| {
        let named = |name: &str, placement| Job {
            ranks: None,
            name: name.to_owned(),
            placement,
            ..collective("", 2)
        };
        [named("a", first), named("b", second)]
    };
    // Listed hosts are taken from the beginning, also by jobs that come later.
    let jobs =
        [collective("first", 3), Job { ranks: None, placement: lists([1, 9]), ..collective("last", 2) }];
    let plan = built(&jobs, 1).unwrap();
    assert_eq!((hosts(&plan, 0), hosts(&plan, 1)), (vec![0, 2, 3], vec![1, 9]));
    assert_eq!(plan.groups, ["first", "last"]);
    assert_eq!(
        refused(&two(lists([1, 5]), lists([5, 6]))),
        "1.placement: expected hosts that no other job has, or `share = true`, found host h5, which jobs `a` and `b` both have"
    );
    let mut shared = two(lists([1, 5]), lists([5, 6]));
    shared[1].share = true;
    assert_eq!(hosts(&built(&shared, 1).unwrap(), 1), [5, 6]);
    assert_eq!(
        refused(&[collective("a", 10), collective("b", 7)]),
        "1.ranks: expected 2 to 6, the hosts that no other job has, found 7"
    );
    assert_eq!(
        refused(&[job("a", collective("", 2).workload), collective("b", 2)]),
        "1.ranks: expected at least two hosts that no other job has, or `share = true`, found 2"
    );
    let twice = refused(&[Job { ranks: None, placement: lists([3, 3]), ..collective("a", 2) }]);
    assert!(twice.ends_with("found host h3 at ranks 0 and 1"), "{twice}");
    let unlike = refused(&[Job { placement: lists([3, 4]), ..collective("a", 3) }]);
    assert_eq!(unlike, "0.ranks: expected 2, as many as `placement` lists hosts, found 3");
}

#[test]
fn programs_that_share_hosts_know_their_own_messages() {
    let jobs = ["a", "b", "c"].map(|name| Job { share: true, repetitions: 2, ..collective(name, 6) });
    let mut plan = built(&jobs, 1).unwrap();
    let (mut sent, mut numbers) = ([0; 3], std::collections::BTreeSet::new());
    execute(&mut plan, 3, Time(1000), |_, _, event| {
        if let Event::Sent { src, number, group, .. } = event {
            sent[usize::from(group)] += 1;
            assert!(numbers.insert((src, number)));
        }
    });
    assert_eq!(sent, [2 * 6 * 10; 3]);
    assert!(plan.hosts.iter().all(HostWork::is_finished));
}

#[test]
fn what_has_no_end_is_no_job() {
    let mix = Mix {
        parts: vec![Part { name: None, pattern: collective("", 2).workload, options: Options::default() }],
    };
    let uniform = Uniform { duration: Some(Time::from_us(1)), ..Uniform::default() };
    for (workload, expected) in [
        (Pattern::Poisson(Poisson::default()), "found `poisson`, which sends at a load"),
        (Pattern::Bernoulli(Bernoulli::default()), "found `bernoulli`, which sends at a load"),
        (Pattern::Idle(crate::Idle::default()), "found `idle`, which sends nothing"),
        (Pattern::Mix(mix), "found `mix`, whose parts are jobs of their own"),
        (Pattern::Uniform(uniform), "0.workload.duration: expected `messages_per_host` alone"),
    ] {
        let error = refused(&[job("a", workload)]);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_field() {
    let straggler =
        |factor| Straggler { ranks: None, count: None, factor, max_factor: None, draw: Draw::Rank };
    let slow = |straggler| Job { stragglers: vec![straggler], ..collective("a", 4) };
    let permutation = || Pattern::Permutation(Permutation::default());
    let incast = Pattern::Incast(Incast { receiver: 9, ..Incast::default() });
    let repeated = Pattern::Collective(Collective { repeat: 3, ..Collective::default() });
    for (job, expected) in [
        (Job { repetitions: 0, ..collective("a", 4) }, "0.repetitions: expected at least 1"),
        (Job { repetitions: 2, ..job("a", permutation()) }, "0.repetitions: expected 1, as only programs"),
        (
            Job { repetitions: 2, ..job("a", repeated) },
            "0.repetitions: expected 1, as the workload repeats itself 3 times",
        ),
        (Job { repetitions: 1 << 30, ..collective("a", 4) }, "0.repetitions: expected fewer"),
        (Job { class: 8, ..collective("a", 4) }, "0.class: expected 0 to 7"),
        (Job { start: Time::END, ..collective("a", 4) }, "0.start: expected "),
        (Job { ranks: Some(4), ..job("a", incast) }, "0.workload.receiver: expected 0 to 3"),
        (collective("", 4), "0.name: expected a name"),
        (collective("background", 4), "0.name: expected a name that no other job has"),
        (Job { stragglers: vec![straggler(2.0)], ..job("a", permutation()) }, "0.stragglers: expected none"),
        (slow(straggler(0.0)), "0.stragglers.0.factor: expected a number from 0.000001 to 1000"),
        (
            slow(Straggler { ranks: Some(vec![4]), ..straggler(2.0) }),
            "0.stragglers.0.ranks: expected ranks from 0 to 3",
        ),
        (slow(Straggler { count: Some(5), ..straggler(2.0) }), "0.stragglers.0.count: expected 1 to 4"),
        (
            slow(Straggler { count: Some(1), ranks: Some(vec![1]), ..straggler(2.0) }),
            "0.stragglers.0.count: expected either",
        ),
        (
            slow(Straggler { max_factor: Some(1.5), ..straggler(2.0) }),
            "0.stragglers.0.max_factor: expected at least",
        ),
        (
            slow(Straggler { draw: Draw::Calculation, ..straggler(2.0) }),
            "0.stragglers.0.draw: expected `max_factor`",
        ),
        (
            placed(JobPlacement::Hosts(vec![HostName::Number(16), HostName::Number(0)]), 2),
            "0.placement.hosts.0: expected one of the 16 hosts",
        ),
        (
            placed(JobPlacement::Hosts(vec![HostName::Name("s0".to_owned()), HostName::Number(0)]), 2),
            "0.placement.hosts.0: expected a host",
        ),
    ] {
        let error = refused(&[job]);
        assert!(error.starts_with(expected), "{expected}\n{error}");
    }
    let error = refused(&[collective("a", 4), collective("a", 4)]);
    assert!(error.starts_with("1.name: expected a name that no other job has"), "{error}");
    let error = beside(collective("", 4).workload, &[collective("a", 4)], 1).unwrap_err().to_string();
    assert!(error.contains("beside a `[workload]` that is a program"), "{error}");
}

#[test]
fn the_traffic_beside_jobs_has_a_group_of_its_own() {
    let poisson = Poisson { messages_per_host: Some(3), ..Poisson::default() };
    let jobs = [
        collective("a", 4),
        Job { ranks: Some(4), class: 3, ..job("b", Pattern::AllToAll(AllToAll::default())) },
    ];
    let mut plan = beside(Pattern::Poisson(poisson), &jobs, 1).unwrap();
    assert_eq!(plan.groups, ["background", "a", "b"]);
    assert_eq!(plan.jobs.iter().map(|job| job.groups.clone()).collect::<Vec<_>>(), [1..2, 2..3]);
    assert_eq!(plan.total_messages, Some(16 * 3 + 4 * 6 + 4 * 3));
    let first: Vec<_> = std::iter::from_fn(|| plan.hosts[5].next_timed()).collect();
    assert_eq!(first.iter().filter(|message| message.group == 0).count(), 3);
    assert!(
        first
            .iter()
            .filter(|message| message.group == 2)
            .all(|message| message.class == 3 && (4..8).contains(&message.dst))
    );
}

/// When a plan of one collective among ranks that calculate ends, on a network that delivers at once, per rank and repetition.
fn ends(job: Job, seed: u64) -> Vec<Vec<u64>> {
    let mut plan = built(&[job], seed).unwrap();
    let end = execute(&mut plan, 1, Time::ZERO, |_, _, _| {});
    let logs: Vec<_> = plan.hosts.iter_mut().flat_map(|work| work.take_logs(end)).collect();
    logs.iter().map(|log| log.rounds.iter().map(|round| round.end.unwrap().0).collect()).collect()
}

#[test]
fn a_straggler_holds_up_all_others() {
    let slow =
        Straggler { ranks: Some(vec![2]), count: None, factor: 1.5, max_factor: None, draw: Draw::Rank };
    let job = Job { repetitions: 3, start: Time(7), stragglers: vec![slow], ..collective("a", 4) };
    assert_eq!(ends(job, 1), vec![vec![157, 307, 457]; 4]);
    assert_eq!(ends(Job { repetitions: 2, ..collective("a", 4) }, 1), vec![vec![100, 200]; 4]);
}

#[test]
fn drawn_factors_differ_by_rank_or_by_calculation() {
    let job = |draw, count| {
        let slow = Straggler { ranks: None, count, factor: 1.0, max_factor: Some(2.0), draw };
        Job { repetitions: 20, stragglers: vec![slow], ..collective("a", 2) }
    };
    let steps = |draw, seed| -> Vec<u64> {
        let ends = ends(job(draw, None), seed);
        let steps = ends[0].windows(2).map(|pair| pair[1] - pair[0]);
        steps.collect()
    };
    let constant = steps(Draw::Rank, 1);
    assert!(constant.iter().all(|&step| step == constant[0] && (100..=200).contains(&step)), "{constant:?}");
    assert_ne!(constant[0], steps(Draw::Rank, 2)[0]);
    let drawn = steps(Draw::Calculation, 1);
    assert!(drawn.iter().all(|step| (100..=200).contains(step)), "{drawn:?}");
    assert!(drawn.iter().collect::<BTreeSet<_>>().len() > 10, "{drawn:?}");
    // One of two, drawn; the other one waits for it.
    assert!(ends(job(Draw::Rank, Some(1)), 1)[0][0] > 100);
}

#[test]
fn a_list_of_messages_is_a_job_from_its_start_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.csv");
    std::fs::write(&file, "src,dst,bytes,start\n0,1,10,0ps\n1,0,10,5ps\n").unwrap();
    let list = toml::from_str::<FlowList>(&format!("file = {:?}", file.to_str().unwrap())).unwrap();
    let job = Job { ranks: Some(2), start: Time(100), ..job("a", Pattern::FlowList(list)) };
    let mut plan = built(&[collective("before", 4), job], 1).unwrap();
    let message = plan.hosts[4].next_timed().unwrap();
    assert_eq!((message.dst, message.bytes, message.start), (5, Bytes(10), Time(100)));
    assert_eq!(plan.hosts[5].next_timed().unwrap().start, Time(105));
}
