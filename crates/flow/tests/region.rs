//! A region of interest in packets beside flows.

mod support;

use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_flow::{FlowRun, RegionRun};
use netloom_record::{ChannelRecord, FlowRecord, Records};
use netloom_sim::{Cut, Degrade, Fault, SimConfig, SimError};
use netloom_topology::{Complete, Network, Topology};
use netloom_transport::Congestion;
use netloom_transport::congestion::fixed_window::FixedWindow;
use netloom_units::{Bytes, Time};
use netloom_workload::{
    Algorithm, Collective, HostName, Job, JobPlacement, Mix, Options, Part, Pattern, Permutation, Plan,
    PlanContext, Poisson, Region, Servers, Uniform, Wiring, Workload,
};
use proptest::prelude::*;
use support::common::*;
use support::{flow_by_flow, free, laid, messages};

fn hosts(numbers: impl IntoIterator<Item = u32>) -> Region {
    Region { hosts: numbers.into_iter().map(HostName::Number).collect(), ..Region::default() }
}

fn jobs(names: &[&str]) -> Region {
    Region { jobs: names.iter().map(|&name| name.to_owned()).collect(), ..Region::default() }
}

fn in_region(network: &Network, config: &SimConfig, plan: Plan, region: &Region, threads: usize) -> Records {
    let run = RegionRun::new(network.clone(), config.clone(), plan, region).unwrap();
    let mut records = Records::default();
    let finished = run.run(threads, &mut |_| ControlFlow::Continue(()), &mut records).unwrap();
    let Records { flows, channels, .. } = records;
    Records { flows, channels, ..finished.records }
}

fn refusal(network: &Network, config: SimConfig, plan: Plan, region: &Region) -> String {
    let checked = RegionRun::check(network.clone(), config.clone(), plan.clone(), region).unwrap_err();
    let refused = RegionRun::new(network.clone(), config, plan, region).unwrap_err();
    assert_eq!(checked, refused);
    refused.to_string()
}

fn job(name: &str, hosts: std::ops::Range<u32>, workload: Pattern) -> Job {
    support::job(name, JobPlacement::Hosts(hosts.map(HostName::Number).collect()), workload)
}

fn ring(bytes: u64) -> Pattern {
    let (algorithm, size) = (Algorithm::RingAllreduce, Some(Bytes(bytes)));
    Pattern::Collective(Collective { algorithm, size, ..Collective::default() })
}

fn of_group(records: &Records, group: u16) -> Vec<FlowRecord> {
    records.flows.iter().filter(|flow| flow.group == group).cloned().collect()
}

/// Each job has a leaf switch of its own.
#[test]
fn a_job_on_links_of_its_own_is_as_if_alone_and_so_is_that_beside_it() {
    let network = leaf_spine(2, 2, 8);
    let (a, b) = (job("a", 0..8, ring(3_000_000)), job("b", 8..16, ring(1_000_000)));
    let config = scheme("ecmp");
    let both = || laid(&network, &[a.clone(), b.clone()]);
    let records = in_region(&network, &config, both(), &jobs(&["a"]), 1);
    let alone = run(network.clone(), config.clone(), laid(&network, std::slice::from_ref(&a)));
    assert!(!alone.flows.is_empty());
    assert_eq!(of_group(&records, 0), alone.flows);
    let beside = flow_by_flow(&network, config.clone(), both());
    assert_eq!(of_group(&records, 1), of_group(&beside, 1));
    assert_ne!(of_group(&records, 0), of_group(&beside, 0), "packets and flows are not told apart");
    // So does what ranks noted of both, and what is counted of all.
    let of_job = |records: &Records, job| {
        let ranks = records.jobs.ranks.iter().filter(|rank| rank.job == job);
        ranks.cloned().collect::<Vec<_>>()
    };
    assert_eq!(of_job(&records, 0), of_job(&alone, 0));
    assert_eq!(of_job(&records, 1), of_job(&beside, 1));
    assert!(of_job(&records, 0).len() == 8 && of_job(&records, 1).len() == 8);
    assert_eq!(records.totals.makespan, alone.totals.makespan.max(beside.totals.makespan));
    assert_eq!(records.totals.data, alone.totals.data);
    let bytes = |records: &Records| records.channels.iter().map(|channel| channel.bytes).collect::<Vec<_>>();
    let of_b = bytes(&flow_by_flow(&network, config, laid(&network, &[job("b", 8..16, ring(1_000_000))])));
    for ((channel, of_a), of_b) in records.channels.iter().zip(bytes(&alone)).zip(of_b) {
        assert_eq!(channel.bytes, of_a + of_b, "{channel:?}");
    }
}

/// Hosts 1 and 2 are the region; host 0 sends to host 2, too.
#[test]
fn a_flow_beside_another_one_gets_its_share_of_the_link() {
    let network = crossbar(4);
    let fct_of = |list: &[(u32, u32, u64, u64)]| {
        let records = in_region(&network, &free("ecmp"), messages(&network, list), &hosts([1, 2]), 1);
        let flow = records.flows.iter().find(|flow| flow.src == 1).unwrap();
        assert!(flow.packets > 0);
        assert!(records.flows.iter().all(|flow| flow.src == 1 || flow.packets == 0));
        fct(flow).0 as f64 / flow.ideal_fct.0 as f64
    };
    let (own, long) = ((1, 2, 8 << 20, 0), 64 << 20);
    for (beside, slowdown) in [
        // Nothing, or elsewhere.
        (vec![(0, 3, long, 0)], 1.0),
        // One or two flows all the time.
        (vec![(0, 2, long, 0)], 2.0),
        (vec![(0, 2, long, 0), (3, 2, long, 0)], 3.0),
        // One that ends when half of the own one has left: as much is left then as it had itself.
        (vec![(0, 2, 4 << 20, 0)], 1.5),
    ] {
        let found = fct_of(&[&[own], &beside[..]].concat());
        assert!((found / slowdown - 1.0).abs() < 0.03, "{found} instead of {slowdown} beside {beside:?}");
    }
}

/// The window lets a flow of the region send at a tenth of the link's rate. In flows it has ended long before, and the one beside it takes all of the link:
/// it still gets more than it needs.
#[test]
fn a_link_is_never_taken_whole() {
    let network = crossbar(4);
    let mut config = scheme("ecmp");
    let window = FixedWindow { bdp: 0.1, ..FixedWindow::default() };
    config.transport.congestion = Congestion::FixedWindow(window);
    let slowdown = |list: &[(u32, u32, u64, u64)]| {
        let records = in_region(&network, &config, messages(&network, list), &hosts([1, 2]), 1);
        let flow = records.flows.iter().find(|flow| flow.src == 1).unwrap();
        fct(flow).0 as f64 / flow.ideal_fct.0 as f64
    };
    let own = (1, 2, 4 << 20, 0);
    let (alone, beside) = (slowdown(&[own, (0, 3, 1, 0)]), slowdown(&[own, (0, 2, 1 << 30, 0)]));
    assert!(alone > 5.0, "{alone}");
    assert!((alone..1.1 * alone).contains(&beside), "{beside} instead of {alone}");
}

/// What is counted of flows outside is what the solver gives them, on one path, on many, and where they take more when a first one is full.
#[test]
fn channels_carry_of_flows_outside_what_these_take() {
    let topology = Complete { switches: 6, hosts_per_switch: Some(6), ..Complete::default() };
    let network = build(Topology::Complete(topology));
    // Within the first switch, and from all other hosts to the next one.
    let inside = [(4, 5, 400 * 4096, 0)];
    let outside = (0..36).filter(|src| ![4, 5].contains(src)).map(|src| (src, (src + 6) % 36, 400 * 4096, 0));
    let list: Vec<_> = inside.into_iter().chain(outside).collect();
    for name in ["ecmp", "valiant", "ugal-l"] {
        let records = in_region(&network, &free(name), messages(&network, &list), &hosts([4, 5]), 1);
        let flows = flow_by_flow(&network, free(name), messages(&network, &list));
        let between = |channel: &&ChannelRecord| {
            let of = network.channel(channel.channel);
            !network.is_host(of.from) && !network.is_host(of.to)
        };
        let bytes = |records: &Records| -> Vec<u64> {
            records.channels.iter().filter(between).map(|channel| channel.bytes).collect()
        };
        let (found, expected) = (bytes(&records), bytes(&flows));
        assert!(expected.iter().sum::<u64>() > 34 * 400 * 4096);
        assert!(
            found.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 1),
            "{name}: {found:?} {expected:?}"
        );
    }
}

/// Messages keep the numbers, and so the paths of their hashes, that they have if all is run in one way.
#[test]
fn flows_keep_their_numbers() {
    let network = fat_tree(4);
    let plan = || {
        let poisson = Poisson {
            load: 0.4,
            duration: Some(Time::from_us(200)),
            size: Bytes(30_000).into(),
            ..Poisson::default()
        };
        plan(Pattern::Poisson(poisson), &network, 3)
    };
    let names = |records: &Records| -> Vec<_> {
        let name = |flow: &FlowRecord| (flow.src, flow.flow, flow.dst, flow.start, flow.bytes);
        records.flows.iter().map(name).collect()
    };
    let config = scheme("ecmp");
    let records = in_region(&network, &config, plan(), &hosts(0..8), 1);
    let is_inside = |flow: &&FlowRecord| flow.src < 8 && flow.dst < 8;
    assert_eq!(names(&records), names(&run(network.clone(), config, plan())));
    let (inside, outside): (Vec<&FlowRecord>, _) = records.flows.iter().partition(is_inside);
    assert!(inside.len() > 20 && inside.iter().all(|flow| flow.packets > 0));
    assert!(outside.len() > 60 && outside.iter().all(|flow: &&FlowRecord| flow.packets == 0));
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let network = fat_tree(8);
    let poisson = Poisson { load: 0.6, duration: Some(Time::from_us(300)), ..Poisson::default() };
    let plan = || plan(Pattern::Poisson(poisson.clone()), &network, 5);
    let cut = Cut {
        links: Some(2),
        from: Time::from_us(50),
        until: Some(Time::from_us(200)),
        reroute_after: Some(Time::from_us(10)),
        ..Cut::default()
    };
    let slow =
        Degrade { link_fraction: Some(0.2), rate_factor: 0.5, from: Time::from_us(20), ..Degrade::default() };
    for (name, faults) in [("ecmp", vec![Fault::Cut(cut), Fault::Degrade(slow)]), ("spray", Vec::new())] {
        let config = SimConfig { faults, ..scheme(name) };
        let of = |threads| in_region(&network, &config, plan(), &hosts(0..64), threads);
        let one = of(1);
        assert!(one.flows.iter().any(|flow| flow.packets > 0), "{name}");
        for threads in [2, 3] {
            assert_eq!(difference(&one, &of(threads)), None, "{name} on {threads} threads");
        }
    }
}

#[test]
fn a_region_by_part_of_a_mix_has_its_messages_and_no_others() {
    let network = leaf_spine(4, 2, 4);
    let part =
        |name: &str, pattern| Part { name: Some(name.to_owned()), pattern, options: Options::default() };
    let uniform =
        |bytes: u64| Uniform { size: Bytes(bytes).into(), messages_per_host: Some(3), ..Uniform::default() };
    let poisson = Poisson {
        load: 0.3,
        duration: Some(Time::from_us(100)),
        size: Bytes(9_000).into(),
        ..Poisson::default()
    };
    let mixed = |parts| plan(Pattern::Mix(Mix { parts }), &network, 2);
    let program = || part("program", ring(400_000));
    let beside = || part("beside", Pattern::Poisson(poisson.clone()));
    let records =
        in_region(&network, &scheme("ecmp"), mixed(vec![program(), beside()]), &jobs(&["program"]), 2);
    let all = flow_by_flow(&network, scheme("ecmp"), mixed(vec![program(), beside()]));
    assert_eq!(records.flows.len(), all.flows.len());
    for flow in &records.flows {
        assert_eq!(flow.group == 0, flow.packets > 0, "{flow:?}");
        assert!(flow.fct.is_some());
    }
    // The other way round.
    let records =
        in_region(&network, &scheme("ecmp"), mixed(vec![program(), beside()]), &jobs(&["beside"]), 2);
    assert!(records.flows.iter().all(|flow| (flow.group == 1) == (flow.packets > 0) && flow.fct.is_some()));
    assert_eq!(records.jobs.ranks.len(), 16);
    assert!(records.jobs.ranks.iter().all(|rank| rank.end.is_some()));
    // Numbers would depend on when closed loops go on.
    let loops = mixed(vec![beside(), part("loops", Pattern::Uniform(uniform(50_000)))]);
    let refused = refusal(&network, scheme("ecmp"), loops, &jobs(&["loops"]));
    assert!(
        refused.starts_with("detail.packets.jobs: expected all messages of a host beside a closed loop"),
        "{refused}"
    );
}

/// Servers with several NICs: the parts of a message come together as usual.
#[test]
fn servers_are_inside_with_all_of_their_nics() {
    let servers = Servers { nics: 4, wiring: Wiring::RailOptimised, ..Servers::default() };
    let network = servers.network(leaf_spine(4, 2, 4)).unwrap();
    let rails = Arc::new(servers.build(&network, 1).unwrap());
    let context = PlanContext { rails: Some(rails), ..PlanContext::new(1) };
    let poisson = Poisson {
        load: 0.3,
        duration: Some(Time::from_us(100)),
        size: Bytes(300_000).into(),
        ..Poisson::default()
    };
    let plan = || Workload::new(Pattern::Poisson(poisson.clone())).plan(&network, &context).unwrap();
    let run = RegionRun::new(network.clone(), scheme("ecmp"), plan(), &hosts([0, 2])).unwrap();
    let mut records = Records::default();
    let finished = run.run(2, &mut |_| ControlFlow::Continue(()), &mut records).unwrap();
    let all = flow_by_flow(&network, scheme("ecmp"), plan());
    assert_eq!(
        finished.records.parts.as_ref().map(|parts| parts.len()),
        all.parts.as_ref().map(|parts| parts.len())
    );
    let names = |records: &Records| -> Vec<_> {
        records.flows.iter().map(|flow| (flow.src, flow.flow, flow.dst, flow.bytes)).collect()
    };
    assert_eq!(names(&records), names(&all));
    let in_packets = records.flows.iter().filter(|flow| flow.packets > 0).count();
    assert!(in_packets > 0 && in_packets < records.flows.len(), "{in_packets} of {}", records.flows.len());
    assert_eq!(
        finished.background_flows,
        Some((records.flows.len() - in_packets) as u64),
        "messages, not their parts"
    );
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let network = leaf_spine(2, 2, 4);
    let two = || laid(&network, &[job("a", 0..4, ring(100_000)), job("b", 4..8, ring(100_000))]);
    let permutation = || plan(Pattern::Permutation(Permutation::default()), &network, 1);
    let uniform =
        || plan(Pattern::Uniform(Uniform { messages_per_host: Some(2), ..Uniform::default() }), &network, 1);
    let in_leaf = || {
        let lists = [(0, 1, 1000, 0), (1, 2, 1000, 0), (2, 0, 1000, 0)];
        messages(&network, &lists)
    };
    for (plan, region, expected) in [
        (two(), jobs(&["c"]), "detail.packets.jobs.0: expected one of a, b, found \"c\""),
        (two(), jobs(&["a", "b"]), "detail.packets.jobs: expected a region beside which messages are sent"),
        (
            permutation(),
            jobs(&["all"]),
            "detail.packets.jobs: expected a region beside which messages are sent",
        ),
        (permutation(), jobs(&["a"]), "detail.packets.jobs.0: expected `hosts` instead"),
        (two(), Region::default(), "detail.packets.hosts: expected it or `jobs`, found neither"),
        (
            two(),
            Region { jobs: vec!["a".to_owned()], ..hosts([1]) },
            "detail.packets.hosts: expected it or `jobs`, found both",
        ),
        (two(), hosts([0, 1, 2]), "detail.packets.hosts: expected the hosts of all ranks of `a` or of none"),
        (two(), hosts([8]), "detail.packets.hosts.0: expected one of the 8 hosts"),
        (two(), hosts([1, 1]), "detail.packets.hosts.1: expected every host once"),
        (uniform(), hosts(0..7), "detail.packets.hosts: expected all hosts to which a closed loop sends"),
        (
            permutation(),
            hosts(0..8),
            "detail.packets.hosts: expected a region beside which messages are sent",
        ),
        (in_leaf(), hosts([3, 4]), "detail.packets.hosts: expected a region in which messages are sent"),
        (
            in_leaf(),
            hosts([0, 1, 2, 5]),
            "detail.packets.hosts: expected a region beside which messages are sent",
        ),
    ] {
        let found = refusal(&network, scheme("ecmp"), plan, &region);
        assert!(found.starts_with(expected), "{expected}\n{found}");
    }
    let mut lossless = scheme("ecmp");
    lossless.fabric.flow_control = netloom_fabric::FlowControl::Pfc(Default::default());
    let found = refusal(&network, lossless, two(), &jobs(&["a"]));
    assert!(
        found.starts_with("fabric.flow_control: expected \"lossy\" where only a region is run in packets"),
        "{found}"
    );
    let found = refusal(&network, scheme("letflow"), two(), &jobs(&["a"]));
    assert!(found.contains("where all but a region is at the level of flows"), "{found}");
    assert!(matches!(RegionRun::check(network.clone(), scheme("ecmp"), two(), &jobs(&["a"])), Ok(())));
    assert!(matches!(
        RegionRun::check(network.clone(), scheme("ecmp"), two(), &jobs(&["c"])),
        Err(SimError::Region(_))
    ));
}

/// Other jobs are not meant whose names only begin with it.
#[test]
fn a_name_of_a_job_means_that_job() {
    let network = leaf_spine(2, 2, 4);
    let two = || laid(&network, &[job("a", 0..4, ring(100_000)), job("a/b", 4..8, ring(100_000))]);
    for (name, inside) in [("a", 0), ("a/b", 1)] {
        let records = in_region(&network, &scheme("ecmp"), two(), &jobs(&[name]), 1);
        assert!(records.flows.iter().all(|flow| (flow.group == inside) == (flow.packets > 0)), "{name}");
    }
    let found = refusal(&network, scheme("ecmp"), two(), &jobs(&["a/"]));
    assert!(found.starts_with("detail.packets.jobs.0: expected one of a, a/b, found"), "{found}");
}

/// What the region is in flows, which take longer here as all messages of a window end at the same instant, says nothing of its packets.
#[test]
fn a_region_that_is_done_in_time_is_done() {
    let network = leaf_spine(4, 2, 4);
    let windowed = Pattern::Collective(Collective {
        algorithm: Algorithm::WindowedAllToAll,
        size: Some(Bytes(30_000)),
        window: 2,
        ..Collective::default()
    });
    let plan = || {
        let spread = [0, 4, 8, 12, 1, 5, 9, 13].map(HostName::Number);
        let windowed = support::job("a", JobPlacement::Hosts(spread.into()), windowed.clone());
        laid(&network, &[windowed, job("b", 2..4, ring(10_000))])
    };
    let run = |config: &SimConfig| in_region(&network, config, plan(), &jobs(&["a"]), 1);
    let free = run(&scheme("ecmp"));
    let end = free.totals.simulated;
    let in_flows = flow_by_flow(&network, scheme("ecmp"), plan()).totals.simulated;
    assert!(in_flows > end + Time::from_ns(100), "{in_flows} {end}");
    let mut config = scheme("ecmp");
    config.measure.until = Some(end + Time::from_ns(50));
    let cut = run(&config);
    assert_eq!(cut.totals, free.totals);
    assert_eq!(cut.flows, free.flows);
    // What is left outside is left.
    config.measure.until = Some(Time::from_us(2));
    let records = in_region(&network, &config, plan(), &jobs(&["a"]), 1);
    assert_eq!((records.totals.makespan, records.totals.simulated), (None, Time::from_us(2)));
}

/// A run that is stopped while flows are run says so, and has no packets.
#[test]
fn a_run_can_be_stopped_in_either_part() {
    let network = fat_tree(4);
    let poisson = Poisson { load: 0.5, duration: Some(Time::from_us(500)), ..Poisson::default() };
    let run = |most: usize| {
        let plan = plan(Pattern::Poisson(poisson.clone()), &network, 5);
        let run = RegionRun::new(network.clone(), scheme("ecmp"), plan, &hosts(0..8)).unwrap();
        let (mut records, mut calls) = (Records::default(), 0);
        let mut observe = |_| {
            calls += 1;
            if calls > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let finished = run.run(1, &mut observe, &mut records).unwrap();
        (finished.interrupted, records.flows.iter().map(|flow| flow.packets).sum::<u64>(), calls)
    };
    let (is_interrupted, all, calls) = run(usize::MAX);
    assert!(!is_interrupted && all > 0);
    let (is_interrupted, packets, _) = run(0);
    assert!(is_interrupted && packets < all);
    let (is_interrupted, packets, _) = run(calls - 1);
    assert!(is_interrupted && packets > 0 && packets <= all);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// All messages arrive, those inside in packets, and channels carry both.
    #[test]
    fn everything_arrives_in_its_own_way(
        region in prop::collection::btree_set(0..16u32, 2..15),
        load in 0.1..0.7f64,
        bytes in 5_000..200_000u64,
        name in prop::sample::select(vec!["ecmp", "spray", "valiant", "adaptive", "spray-paths", "ugal-l"]),
        is_slow in any::<bool>(),
        until in prop::option::of(20..300u64),
        seed in 0..1000u64,
    ) {
        let network = fat_tree(4);
        let poisson = Poisson { load, size: Bytes(bytes).into(), duration: Some(Time::from_us(150)), ..Poisson::default() };
        let plan = || plan(Pattern::Poisson(poisson.clone()), &network, seed);
        let mut config = scheme(name);
        if is_slow && name != "adaptive" {
            let slow = Degrade { link_fraction: Some(0.3), rate_factor: 0.4, from: Time::from_us(30), ..Degrade::default() };
            config.faults.push(Fault::Degrade(slow));
        }
        config.measure.until = until.map(Time::from_us);
        let chosen = hosts(region.iter().copied());
        if RegionRun::check(network.clone(), config.clone(), plan(), &chosen).is_err() {
            return Ok(());
        }
        let records = in_region(&network, &config, plan(), &chosen, 1);
        prop_assert_eq!(difference(&records, &in_region(&network, &config, plan(), &chosen, 3)), None);
        let mut flows = Records::default();
        FlowRun::new(network.clone(), config.clone(), plan()).unwrap().run(&mut |_| ControlFlow::Continue(()), &mut flows).unwrap();
        let names = |records: &Records| records.flows.iter().map(|flow| (flow.src, flow.flow, flow.dst)).collect::<Vec<_>>();
        prop_assert_eq!(names(&records), names(&flows));
        let mut payload = 0;
        for flow in &records.flows {
            let is_inside = region.contains(&flow.src) && region.contains(&flow.dst);
            prop_assert!(is_inside || flow.packets == 0);
            prop_assert!(until.is_some() || (flow.fct.is_some() && is_inside == (flow.packets > 0)), "{:?}", flow);
            payload += flow.delivered;
        }
        let into_hosts = |channel: &&ChannelRecord| network.is_host(network.channel(channel.channel).to);
        let bytes: u64 = records.channels.iter().filter(into_hosts).map(|channel| channel.bytes).sum();
        prop_assert!(bytes + 100 >= payload, "{} bytes came to hosts, with {} of payload", bytes, payload);
        prop_assert!(records.totals.simulated >= Time::ZERO && until.is_none_or(|until| records.totals.simulated <= Time::from_us(until)));
    }
}
