//! UGAL: what it carries, that it never deadlocks, and that nothing depends on the number of threads.

mod common;

use std::collections::BTreeMap;

use common::*;
use netloom_fabric::{Fabric, FlowControl, flow_control};
use netloom_record::{Records, Window};
use netloom_routing::granularity::{flowcell, flowcut, flowlet};
use netloom_routing::selector::ugal::{Decision, Global, Hops, Load, Queue, Ratio, Ugal};
use netloom_routing::{Granularity, Placement, Selector};
use netloom_sim::{Cut, Fault, SimConfig, SimError, Simulation};
use netloom_topology::{Dragonfly, HyperX, Network, SlimFly, Topology};
use netloom_transport::{Congestion, Reliability, Transport};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Bernoulli, OffDiagonal, Pattern, Uniform};
use proptest::prelude::*;

/// The balanced Dragonfly of p hosts per switch: a = 2p switches per group, h = p global links per switch, g = ah + 1 groups.
fn dragonfly(p: u32) -> Network {
    build(Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(p), ..Dragonfly::default() }))
}

fn credits(buffer: u64) -> Fabric {
    let credits = flow_control::credits::Credits { buffer: Bytes(buffer), ..Default::default() };
    Fabric { flow_control: FlowControl::Credits(credits), ..Fabric::default() }
}

/// Senders that nothing but flow control holds back, without ACKs that would take bandwidth.
fn saturating(scheme_name: &str) -> SimConfig {
    let reliability = Reliability::None(Default::default());
    let transport =
        Transport { reliability, congestion: Congestion::None(Default::default()), ..unlimited() };
    SimConfig { transport, fabric: credits(128 << 10), ..scheme(scheme_name) }
}

/// The share of the host links' rate at which data arrive once the network is full.
fn accepted(network: &Network, mut config: SimConfig, pattern: &Pattern) -> (f64, Records) {
    let (from, until) = (Time::from_us(300), Time::from_us(800));
    config.measure.windows = vec![Window { name: "full".into(), from, until }];
    config.measure.until = Some(until);
    let records = run(network.clone(), config, plan(pattern.clone(), network, 1));
    let payload: u64 = records.window_flows.to_vec().unwrap().iter().map(|row| row.bytes).sum();
    let seconds = (until - from).as_secs_f64();
    let most = Rate::from_gbps(200).0 as f64 / 8.0 * seconds * f64::from(network.hosts());
    (payload as f64 * (4160.0 / 4096.0) / most, records)
}

fn uniform() -> Pattern {
    let (frame, overhead) = (Bytes(4096), Bytes(64));
    Pattern::Bernoulli(Bernoulli { load: 1.0, frame, overhead, ..Bernoulli::default() })
}

/// Every host sends to the one of its number in the next group.
fn to_the_next_group(hosts_per_group: i64) -> Pattern {
    Pattern::OffDiagonal(OffDiagonal {
        offset: hosts_per_group,
        size: Bytes(1 << 27).into(),
        ..OffDiagonal::default()
    })
}

fn with(ugal: Ugal) -> SimConfig {
    let mut config = saturating("ugal-l");
    config.routing.selector = Selector::Ugal(ugal);
    config
}

#[test]
fn under_adversarial_traffic_a_dragonfly_carries_what_its_links_allow() {
    // p = h = 2, a = 4, g = 9.
    let (network, hosts, groups) = (dragonfly(2), 8.0, 9.0);
    let pattern = to_the_next_group(8);
    let share = |preset| accepted(&network, saturating(preset), &pattern);
    // All of a group share its one link to the next.
    let (minimal, _) = share("ecmp");
    assert!((minimal * hosts - 1.0).abs() < 0.01, "minimal {minimal}");
    // Over g - 2 groups each link but that carries a part of two groups' traffic, 2ap / (g - 2) hosts' worth.
    let (valiant, _) = share("valiant-group");
    let most = (groups - 2.0) / (2.0 * hosts);
    assert!((valiant / most - 1.0).abs() < 0.02, "Valiant {valiant} of {most}");
    // At best UGAL uses both; the window begins and ends in the middle of packets.
    let bound = (most + 1.0 / hosts) * 1.005;
    let mut shares = BTreeMap::new();
    for preset in ["ugal-l", "ugal-g", "par"] {
        let (share, records) = share(preset);
        let decisions = &records.totals.decisions["ugal"];
        assert!(decisions.non_default * 2 > decisions.taken, "{preset}: {decisions:?}");
        assert!(
            share >= 0.8 * valiant && share < bound,
            "{preset}: {share}, Valiant {valiant}, bound {bound}"
        );
        shares.insert(preset, share);
    }
    assert!(shares["ugal-g"] >= shares["ugal-l"], "{shares:?}");
    for ugal in [
        Ugal { decision: Decision::Ratio(Ratio::default()), ..Ugal::default() },
        Ugal { load: Load::Credits, ..Ugal::default() },
        Ugal { load: Load::Both, non_minimal: 4, ..Ugal::default() },
    ] {
        let (share, _) = accepted(&network, with(ugal.clone()), &pattern);
        assert!(share >= 0.8 * valiant && share < bound, "{ugal:?}: {share}, Valiant {valiant}");
    }
}

#[test]
fn under_uniform_traffic_ugal_carries_what_minimal_routing_does() {
    let network = dragonfly(2);
    let (minimal, _) = accepted(&network, saturating("ecmp"), &uniform());
    assert!(minimal > 0.95, "no link of a balanced Dragonfly is short: {minimal}");
    for preset in ["ugal-l", "ugal-g", "par"] {
        let (share, _) = accepted(&network, saturating(preset), &uniform());
        assert!(share >= 0.95 * minimal, "{preset}: {share} of {minimal}");
    }
    // At low load hardly anything leaves its minimal way.
    let Pattern::Bernoulli(low) = uniform() else { unreachable!() };
    let low = Pattern::Bernoulli(Bernoulli { load: 0.1, ..low });
    for preset in ["ugal-l", "ugal-g", "par"] {
        let (_, records) = accepted(&network, saturating(preset), &low);
        let decisions = &records.totals.decisions["ugal"];
        assert!(decisions.non_default * 200 < decisions.taken, "{preset}: {decisions:?}");
    }
}

#[test]
fn on_networks_without_groups_switches_are_intermediate() {
    let hyperx = HyperX {
        dimensions: 2,
        switches_per_dimension: vec![5, 5],
        hosts_per_switch: Some(4),
        ..HyperX::default()
    };
    let slim_fly = SlimFly { q: Some(5), hosts_per_switch: Some(4), ..SlimFly::default() };
    for topology in [Topology::HyperX(hyperx), Topology::SlimFly(slim_fly)] {
        let network = build(topology);
        // All hosts of a switch send to those of the next one.
        let pattern = to_the_next_group(4);
        let share = |preset| accepted(&network, saturating(preset), &pattern);
        let ((minimal, _), (valiant, _), (ugal, records)) =
            (share("ecmp"), share("valiant"), share("ugal-l"));
        let name = network.name();
        assert!(
            ugal >= 0.8 * valiant && ugal >= minimal,
            "{name}: {ugal}, Valiant {valiant}, minimal {minimal}"
        );
        assert!(records.totals.decisions["ugal"].non_default > 0);
        // Where later switches choose ports as well, no less arrives.
        let mut config = saturating("ugal-l");
        config.routing.placement = Placement::Switch;
        let (every, _) = accepted(&network, config, &pattern);
        assert!(every >= 0.95 * ugal, "{name}: {every} at every switch, {ugal} at the first one");
        let ((minimal, _), (ugal, _)) = (
            accepted(&network, saturating("ecmp"), &uniform()),
            accepted(&network, saturating("ugal-l"), &uniform()),
        );
        assert!(ugal >= 0.95 * minimal, "{name}, uniform: {ugal} of {minimal}");
    }
}

/// Minimal and other ways end in different virtual channels. The last switch acknowledges a packet when it has come there, so what waits for the
/// destination's link must not be overtaken by the next flowcut.
#[test]
fn flowcuts_over_ways_of_different_lengths_stay_in_order_at_the_last_hop() {
    let network = build(Topology::Dragonfly(Dragonfly {
        hosts_per_switch: Some(4),
        switches_per_group: Some(4),
        groups: Some(4),
        links_per_group_pair: Some(4),
        latency: Time::from_ns(200),
        ..Dragonfly::default()
    }));
    let pattern = Pattern::Uniform(Uniform {
        size: Bytes(1_000_000).into(),
        messages_per_host: Some(6),
        ..Uniform::default()
    });
    for seed in 1..4 {
        let mut config = SimConfig { fabric: credits(131_072), seed, ..scheme("ugal-artefact-df") };
        config.transport.options.mtu = Bytes(2048);
        config.routing.granularity =
            Granularity::Flowcut(flowcut::Flowcut { alpha: 0.7, threshold: 3.0, ..Default::default() });
        let records = run(network.clone(), config, plan(pattern.clone(), &network, seed));
        let early: u64 = records.flows.iter().map(|flow| flow.ooo_packets).sum();
        let drains: u32 = records.flows.iter().map(|flow| flow.drains).sum();
        assert!(early == 0 && drains > 0, "{early} packets out of order, {drains} drains");
    }
}

fn granularities() -> impl Strategy<Value = Granularity> {
    prop_oneof![
        Just(Granularity::Packet(Default::default())),
        Just(Granularity::Flow(Default::default())),
        (1..3000u64).prop_map(|gap| Granularity::Flowlet(flowlet::Flowlet {
            gap: Time::from_ns(gap),
            age_bit: false
        })),
        (1..9u64)
            .prop_map(|packets| Granularity::Flowcell(flowcell::Flowcell { size: Bytes(packets << 12) })),
        Just(Granularity::Flowcut(flowcut::Flowcut { threshold: 1.2, alpha: 0.5, ..Default::default() })),
    ]
}

fn ugals() -> impl Strategy<Value = Ugal> {
    let decision = prop_oneof![
        (0..40_000u64).prop_map(|bias| Decision::Hops(Hops { bias: Bytes(bias) })),
        (1..4u32, 0..9000u64).prop_map(|(ratio, bias)| Decision::Ratio(Ratio { ratio, bias: Bytes(bias) })),
    ];
    let load = prop_oneof![Just(Load::Queue), Just(Load::Credits), Just(Load::Both)];
    let period = prop::option::of(100..3000u64);
    let ways = prop_oneof![Just(1), 2..5u32];
    (decision, load, period, ways.clone(), ways, any::<bool>(), any::<bool>()).prop_map(
        |(decision, load, period, minimal, non_minimal, one_group, progressive)| Ugal {
            decision,
            load,
            queue: period.map_or(Queue::Local(Default::default()), |period| {
                Queue::Global(Global { period: Time::from_ns(period) })
            }),
            minimal,
            non_minimal,
            one_group: one_group && non_minimal > 1,
            intermediate: None,
            progressive,
        },
    )
}

fn fabrics() -> impl Strategy<Value = Fabric> {
    let pfc = |buffer| {
        let pfc = flow_control::pfc::Pfc { buffer: Bytes(buffer), ..Default::default() };
        Fabric { flow_control: FlowControl::Pfc(pfc), ..Fabric::default() }
    };
    prop_oneof![
        Just(Fabric::default()),
        (10_000..100_000u64).prop_map(credits),
        (120_000..300_000u64).prop_map(pfc),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A loss in a lossless fabric, a deadlock and a packet too few would each be an error of the run.
    #[test]
    fn everything_arrives_alike_on_any_number_of_threads(
        topology in prop::sample::select(families::all()),
        mut ugal in ugals(),
        granularity in granularities(),
        every_switch in any::<bool>(),
        entries in prop::option::weighted(0.2, 1..5u32),
        fabric in fabrics(),
        bytes in 1..40_000u64,
        cut in prop::option::weighted(0.3, 1..3u32),
        seed in any::<u64>(),
    ) {
        let network = families::build(&topology, seed);
        prop_assume!(!network.is_tree() && network.switches() > 1);
        if network.global_tier().is_none() {
            // What only groups have is refused elsewhere.
            ugal = Ugal { queue: Queue::Local(Default::default()), one_group: false, progressive: false, ..ugal };
        }
        if !matches!(fabric.flow_control, FlowControl::Credits(_)) {
            ugal.load = Load::Queue;
        }
        let is_flowcut = matches!(granularity, Granularity::Flowcut(_));
        ugal.progressive &= !is_flowcut || every_switch;
        let mut config = SimConfig { fabric, seed, ..scheme("ugal-l") };
        config.routing.max_flow_entries = entries.filter(|_| !matches!(granularity, Granularity::Packet(_)));
        let keeps_order = is_flowcut || matches!(granularity, Granularity::Flow(_)) && entries.is_none();
        config.routing.granularity = granularity;
        config.routing.selector = Selector::Ugal(ugal);
        config.routing.placement = if every_switch { Placement::Switch } else { Placement::Ingress };
        if let Some(links) = cut {
            config.faults = vec![Fault::Cut(Cut { links: Some(links), ..Cut::default() })];
        }
        let pattern = Pattern::Uniform(Uniform { size: Bytes(bytes).into(), messages_per_host: Some(2), ..Uniform::default() });
        let simulate = || Simulation::new(network.clone(), config.clone(), plan(pattern.clone(), &network, seed));
        let first = match simulate() {
            Err(SimError::Unreachable(_)) if cut.is_some() => return Ok(()),
            // Routes around cut links may be longer than there are virtual channels.
            Err(SimError::MayDeadlock(_)) => return Ok(()),
            first => first.unwrap(),
        };
        let one = first.run(1).unwrap().records;
        prop_assert!(one.flows.iter().all(|flow| flow.fct.is_some()), "an unfinished flow");
        prop_assert!(one.totals.decisions["ugal"].taken > 0);
        if keeps_order {
            prop_assert!(one.flows.iter().all(|flow| flow.ooo_packets == 0 && flow.max_ood == 0));
        }
        prop_assert_eq!(difference(&one, &simulate().unwrap().run_reference().unwrap().records), None);
        let threads = 2 + (seed % 3) as usize;
        prop_assert_eq!(difference(&one, &simulate().unwrap().run(threads).unwrap().records), None);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_a_way_out() {
    let refusal = |network: &Network, config: SimConfig| {
        Simulation::new(network.clone(), config, permutation(1, network, 1)).unwrap_err().to_string()
    };
    let error = refusal(&fat_tree(4), scheme("ugal-l"));
    assert!(error.contains("found \"ugal\" on "), "{error}");
    // The second decision in a group takes a virtual channel more.
    let with_vcs = |preset, vcs| {
        let credits = flow_control::credits::Credits { vcs: Some(vcs), ..Default::default() };
        SimConfig {
            fabric: Fabric { flow_control: FlowControl::Credits(credits), ..Fabric::default() },
            ..scheme(preset)
        }
    };
    let network = dragonfly(2);
    let error = refusal(&network, with_vcs("par", 3));
    assert!(
        error.contains("the routes can deadlock") && error.contains("expected 4 virtual channels"),
        "{error}"
    );
    let error = refusal(&network, with_vcs("ugal-l", 2));
    assert!(error.contains("expected 3 virtual channels"), "{error}");
    for (preset, vcs) in [("par", 4), ("ugal-l", 3), ("valiant-group", 3), ("ecmp", 2)] {
        assert!(Simulation::new(network.clone(), with_vcs(preset, vcs), permutation(1, &network, 1)).is_ok());
    }
    let mut lossy = scheme("ugal-l");
    lossy.routing.selector = Selector::Ugal(Ugal { load: Load::Both, ..Ugal::default() });
    let error = refusal(&network, lossy);
    assert!(
        error.contains("selector.load: expected \"queue\" where fabric.flow_control is \"lossy\""),
        "{error}"
    );
}

#[test]
fn a_trace_says_what_was_weighed() {
    let network = dragonfly(2);
    let simulation = Simulation::new(network.clone(), scheme("ugal-l"), permutation(1, &network, 1)).unwrap();
    let trace = simulation.trace(0, 71, 0, 0);
    assert!(
        trace.hops[0].reason.starts_with("UGAL weighs up to 1 minimal against 1 other ways"),
        "{}",
        trace.hops[0].reason
    );
    assert!(trace.hops.len() <= 4 && trace.hops[1..].iter().all(|hop| hop.reason.starts_with("minimal to")));

    // From corner to corner of a cube, where the second switch has two ports.
    let cube = HyperX {
        dimensions: 3,
        switches_per_dimension: vec![2],
        hosts_per_switch: Some(1),
        ..HyperX::default()
    };
    let network = build(Topology::HyperX(cube));
    let mut config = scheme("ugal-l");
    config.routing.placement = Placement::Switch;
    let simulation = Simulation::new(network.clone(), config, permutation(1, &network, 1)).unwrap();
    let reason = &simulation.trace(0, 7, 0, 0).hops[1].reason;
    assert_eq!(reason, "minimal to the destination, by the least load");
}
