//! What must hold where switches forward by the tables of layers.

mod common;

use std::collections::BTreeSet;

use common::*;
use netloom_fabric::Ecn;
use netloom_paths::routes::{Minimal, OverlapMinimising, Past, RandomLayers, Spain, TreeKind};
use netloom_routing::granularity::flow::Flow;
use netloom_routing::granularity::flowbender::FlowBender;
use netloom_routing::granularity::flowcut::Flowcut;
use netloom_routing::granularity::{flowcell, flowlet};
use netloom_routing::selector::layer::{Acks, Construction, First, Layer, Saved, WithinLayer};
use netloom_routing::{Granularity, Selector, Tag};
use netloom_sim::{Cut, Fault, SimConfig, SimError, Simulation};
use netloom_topology::{Dragonfly, HyperX, Network, SlimFly, Topology};
use netloom_transport::preset;
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Adversarial, Incast, Pattern, Permutation, PlanContext, Uniform, Workload};
use proptest::prelude::*;

fn slim_fly() -> Network {
    build(Topology::SlimFly(SlimFly { q: Some(5), hosts_per_switch: Some(1), ..SlimFly::default() }))
}

/// With two links between any two switches of a dimension.
fn hyperx() -> Network {
    build(Topology::HyperX(HyperX {
        dimensions: 2,
        switches_per_dimension: vec![4, 3],
        parallel_links: vec![2, 1],
        hosts_per_switch: Some(2),
        ..HyperX::default()
    }))
}

fn dragonfly() -> Network {
    build(Topology::Dragonfly(Dragonfly {
        hosts_per_switch: Some(2),
        switches_per_group: Some(4),
        global_links_per_switch: Some(2),
        ..Dragonfly::default()
    }))
}

fn networks() -> impl Strategy<Value = Network> {
    prop_oneof![
        Just(slim_fly()),
        Just(hyperx()),
        Just(dragonfly()),
        Just(fat_tree(4)),
        (2..5u32).prop_map(crossbar),
    ]
}

fn layers() -> impl Strategy<Value = Layer> {
    let (layers, rho) = (1..6u32, 0.3..1.0f64);
    let trees = prop_oneof![Just(TreeKind::Random), Just(TreeKind::NonMinimal), Just(TreeKind::Weighted)];
    let construction = prop_oneof![
        (layers.clone(), rho, 0..3u32).prop_map(|(layers, rho, retries)| {
            Construction::RandomLayers(RandomLayers { layers, rho, retries, ..Default::default() })
        }),
        layers.clone().prop_map(|layers| {
            Construction::OverlapMinimising(OverlapMinimising { layers, ..Default::default() })
        }),
        prop::option::of(layers.clone())
            .prop_map(|layers| Construction::Spain(Spain { layers, ..Default::default() })),
        (layers.clone(), trees).prop_map(|(layers, tree)| Construction::Past(Past { layers, tree })),
        layers.prop_map(|layers| Construction::Minimal(Minimal { layers })),
    ];
    (construction, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(construction, ecmp, random, same)| {
            let is_tree = matches!(construction, Construction::Spain(_) | Construction::Past(_));
            Layer {
                first: if random { First::Random } else { First::Minimal },
                within_layer: if ecmp && !is_tree { WithinLayer::Ecmp } else { WithinLayer::SinglePath },
                acks: if same { Acks::Same } else { Acks::Minimal },
                construction,
            }
        },
    )
}

fn granularities() -> impl Strategy<Value = Granularity> {
    prop_oneof![
        Just(Granularity::Flow(Default::default())),
        Just(Granularity::Packet(Default::default())),
        (1..5000u64).prop_map(|gap| Granularity::Flowlet(flowlet::Flowlet {
            gap: Time::from_ns(gap),
            age_bit: false
        })),
        Just(Granularity::Flowcell(flowcell::Flowcell::default())),
        Just(eager_flowcut()),
    ]
}

/// Drains at the least congestion.
fn eager_flowcut() -> Granularity {
    Granularity::Flowcut(Flowcut { threshold: 1.1, min_remaining: Bytes(0), ..Flowcut::default() })
}

fn config(granularity: Granularity, mut layer: Layer, seed: u64) -> SimConfig {
    if matches!(granularity, Granularity::Flow(_)) {
        layer.first = First::Random;
    }
    let mut config = SimConfig { seed, ..scheme("fatpaths") };
    config.routing.granularity = granularity;
    config.routing.selector = Selector::Layer(Box::new(layer));
    config.transport.options.ack_every = 1;
    config
}

fn permutation_of(bytes: u64) -> Pattern {
    Pattern::Permutation(Permutation { size: Bytes(bytes).into(), ..Permutation::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn everything_arrives_alike_on_any_number_of_threads(
        network in networks(),
        layer in layers(),
        granularity in granularities(),
        bytes in 1..60_000u64,
        buffer in prop::option::of(9_000..40_000u64),
        cut in 0..3u32,
        seed in any::<u64>(),
    ) {
        let mut config = config(granularity, layer, seed);
        config.fabric.options.buffer = buffer.map(Bytes);
        if cut > 0 && network.switches() > 1 {
            config.faults = vec![Fault::Cut(Cut { links: Some(cut), ..Cut::default() })];
        }
        let pattern = Pattern::Uniform(Uniform {
            size: Bytes(bytes).into(),
            messages_per_host: Some(2),
            ..Uniform::default()
        });
        let simulate = || {
            Simulation::new(network.clone(), config.clone(), plan(pattern.clone(), &network, seed))
        };
        let first = match simulate() {
            // A switch of a fat tree may hang on the links that were cut.
            Err(SimError::Unreachable(_)) if cut > 0 => return Ok(()),
            ready => ready.unwrap(),
        };
        let one = first.run(1).unwrap().records;
        prop_assert!(one.flows.iter().all(|flow| flow.fct.is_some()), "an unfinished flow");
        let reference = simulate().unwrap().run_reference().unwrap().records;
        prop_assert_eq!(fingerprint(&one), fingerprint(&reference));
        for threads in 2..=4 {
            let many = simulate().unwrap().run(threads).unwrap().records;
            prop_assert_eq!(fingerprint(&one), fingerprint(&many), "{} threads", threads);
        }
    }

    #[test]
    fn switches_follow_the_layer_of_the_packet(
        network in networks(),
        layer in layers(),
        seed in any::<u64>(),
    ) {
        let is_single = layer.within_layer == WithinLayer::SinglePath;
        let config = config(Granularity::Packet(Default::default()), layer, seed);
        let simulation = Simulation::new(network.clone(), config, plan(permutation_of(1), &network, 1)).unwrap();
        let (layers, graph) = (simulation.layers().unwrap(), network.router_graph());
        let pairs = (0..network.hosts()).flat_map(|src| (0..network.hosts()).map(move |dst| (src, dst)));
        for (src, dst) in pairs.filter(|(src, dst)| src != dst).step_by(7) {
            let (from, to) = (layers.router_of(src), layers.router_of(dst));
            simulation.trace(src, dst, 0, Tag::NO_LAYER.bits());
            for layer in 0..layers.tables().layers() {
                let trace = simulation.trace(src, dst, 0, layer);
                let Some(path) = layers.tables().path(&graph, layer, from, to) else {
                    // It arrived all the same, over minimal ports until it met the layer.
                    continue;
                };
                prop_assert!(layers.connects(layer, from, to));
                prop_assert_eq!(trace.hops.len(), path.len() + 1);
                let heads = path.iter().map(|&edge| netloom_paths::tables::head(&graph, edge));
                let taken = trace.hops[1..].iter().map(|hop| layers.router(hop.switch));
                prop_assert!(!is_single || heads.eq(taken));
            }
        }
    }

    #[test]
    fn a_decision_per_flow_or_flowcut_never_reorders(
        network in networks(),
        layer in layers(),
        flowcut in any::<bool>(),
        bytes in 1..400_000u64,
        seed in any::<u64>(),
    ) {
        let granularity = if flowcut { eager_flowcut() } else { Granularity::Flow(Default::default()) };
        let config = config(granularity, layer, seed);
        for flow in run(network.clone(), config, plan(permutation_of(bytes), &network, seed)).flows {
            prop_assert_eq!((flow.ooo_packets, flow.max_ood, flow.retransmissions), (0, 0, 0));
            prop_assert!(flow.path_changes <= flow.drains);
        }
    }
}

const DST: u32 = 37;
/// An incast's only sender is the host after the receiver.
const SRC: u32 = DST + 1;

/// The channels that the one packet of a flow from `SRC` to `DST` crosses, as the run records them.
fn crossed(network: &Network, config: &SimConfig) -> BTreeSet<u32> {
    let pattern = Pattern::Incast(Incast {
        receiver: DST,
        senders: Some(1),
        size: Bytes(1000).into(),
        ..Incast::default()
    });
    let plan = plan(pattern, network, 1);
    let records = run(network.clone(), config.clone(), plan);
    let data = records.channels.iter().filter(|channel| channel.bytes >= 1000);
    data.map(|channel| channel.channel).collect()
}

#[test]
fn a_packet_crosses_the_links_of_one_layers_path_and_all_layers_are_used() {
    let network = slim_fly();
    let layer = Layer { first: First::Random, ..Layer::default() };
    let mut lengths = BTreeSet::new();
    for seed in 0..40 {
        let config = config(Granularity::Flow(Default::default()), layer.clone(), seed);
        let idle = Simulation::new(network.clone(), config.clone(), permutation(1, &network, 1)).unwrap();
        let way = |layer| {
            let trace = idle.trace(SRC, DST, 0, layer);
            let hops = trace.hops.iter().map(|hop| network.ports(hop.switch)[usize::from(hop.chosen)]);
            hops.chain([network.ports(SRC)[0]]).collect::<BTreeSet<u32>>()
        };
        let ways: Vec<_> = (0..9).map(way).collect();
        let taken = crossed(&network, &config);
        assert!(ways.contains(&taken), "seed {seed}: {taken:?} is none of {ways:?}");
        lengths.insert(taken.len());
    }
    assert!(lengths.len() > 1, "layers lead over paths of several lengths: {lengths:?}");
}

#[test]
fn a_flow_starts_on_the_minimal_layer_and_its_next_flowlets_leave_it() {
    let network = slim_fly();
    let config = scheme("fatpaths");
    let minimal = Simulation::new(network.clone(), config.clone(), permutation(1, &network, 1)).unwrap();
    assert_eq!(crossed(&network, &config).len(), minimal.trace(SRC, DST, 0, 0).hops.len() + 1);

    let mut gaps = config.clone();
    gaps.routing.granularity = Granularity::Flowlet(flowlet::Flowlet { gap: Time(1), age_bit: false });
    let records = run(network.clone(), gaps, permutation(100_000, &network, 1));
    assert!(records.flows.iter().any(|flow| flow.decisions > 0 && flow.non_default_decisions > 0));
    assert!(records.flows.iter().all(|flow| flow.non_default_decisions <= flow.decisions));
}

#[test]
fn the_link_that_most_layers_share_sets_the_pace_between_two_switches() {
    let network = build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }));
    let construction = |layers| match layers {
        1 => Construction::Minimal(Minimal::default()),
        _ => Construction::RandomLayers(RandomLayers { layers, ..Default::default() }),
    };
    let config = |layers| {
        let layer = Layer { construction: construction(layers), ..Layer::default() };
        config(Granularity::Packet(Default::default()), layer, 1)
    };
    // Hosts 0 to 3 of one switch and 4 to 7 of the next one send to each other.
    let mean = |layers| {
        let pattern = Pattern::Adversarial(Adversarial { size: Bytes(1 << 18).into(), ..Default::default() });
        let mut workload = Workload::new(pattern);
        workload.options.ranks = Some(8);
        let plan = workload.plan(&network, &PlanContext::new(1)).unwrap();
        let flows = run(network.clone(), config(layers), plan).flows;
        flows.iter().map(|flow| fct(flow).as_secs_f64()).sum::<f64>() / flows.len() as f64
    };
    let idle = Simulation::new(network.clone(), config(9), permutation(1, &network, 1)).unwrap();
    let most_shared = |src, dst| {
        let first = |layer| idle.trace(src, dst, 0, layer).hops[0].chosen;
        let sharing = |port| (0..9).filter(|&layer| first(layer) == port).count();
        (0..9).map(|layer| sharing(first(layer))).max().unwrap() as f64 / 9.0
    };
    let share = (most_shared(0, 4) + most_shared(4, 0)) / 2.0;
    let ratio = mean(9) / mean(1);
    assert!(share < 0.95 && (ratio - share).abs() < 0.07, "share {share}, ratio {ratio}");
}

#[test]
fn layers_that_cannot_be_laid_are_refused() {
    let network = slim_fly();
    let with = |layers, rho| {
        let random = RandomLayers { layers, rho, ..RandomLayers::default() };
        let layer = Layer { construction: Construction::RandomLayers(random), ..Layer::default() };
        let config = config(Granularity::Packet(Default::default()), layer, 1);
        Simulation::new(network.clone(), config, permutation(1, &network, 1)).unwrap_err().to_string()
    };
    assert!(with(9, 0.0).contains("routing.selector.construction.rho"), "{}", with(9, 0.0));
    assert!(with(0, 0.5).contains("construction.layers"), "{}", with(0, 0.5));
    assert!(with(u32::MAX, 0.5).contains("layers whose tables take at most"), "{}", with(u32::MAX, 0.5));
}

/// The same run, whether its layers are made or come from a file; and a file is of one network.
#[test]
fn layers_from_a_file_are_those_that_were_saved() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layers");
    let saved = |file: &std::path::Path| Construction::File(Saved { file: file.to_owned() });
    let network = slim_fly();
    let with = |construction| {
        let mut config = scheme("fatpaths");
        config.routing.selector = Selector::Layer(Box::new(Layer { construction, ..Layer::default() }));
        config
    };
    let made =
        with(Construction::RandomLayers(RandomLayers { layers: 5, rho: 0.6, ..RandomLayers::default() }));
    let plan = permutation(200_000, &network, 1);
    let simulation = Simulation::new(network.clone(), made, plan.clone()).unwrap();
    simulation.layers().unwrap().tables().save(&file).unwrap();
    let expected = simulation.run(1).unwrap().records;
    assert_eq!(difference(&expected, &run(network, with(saved(&file)), plan)), None);

    let refused = |file: &std::path::Path, network: Network| {
        let plan = permutation(1000, &network, 1);
        Simulation::new(network, with(saved(file)), plan).unwrap_err().to_string()
    };
    let error = refused(&file, hyperx());
    assert!(error.starts_with("routing.selector.construction.file: "), "{error}");
    assert!(error.contains("another network (50 routers, 175 links); this one has 12 routers"), "{error}");
    let error = refused(&folder.path().join("none"), slim_fly());
    assert!(error.contains("construction.file: ") && error.ends_with("none"), "{error}");
    std::fs::write(&file, "layers").unwrap();
    assert!(refused(&file, slim_fly()).contains("construction.file"));
    // Ten gigabytes that hold nothing.
    std::fs::File::create(&file).unwrap().set_len(10 << 30).unwrap();
    assert!(refused(&file, slim_fly()).contains("bytes of tables are more than"));
    assert!(
        refused(std::path::Path::new(""), slim_fly())
            .contains("construction.file: expected the name of a file")
    );
}

/// Links die, nobody is told, and layers stay as they are. A sender that draws another layer after a timeout finds a way around, if what comes back to it
/// does not keep to the dead links.
#[test]
fn flows_find_a_way_around_links_that_die_while_layers_stay() {
    let network = slim_fly();
    let repair = Time::from_ms(300);
    let last = |acks, transport: &str| {
        let mut config = scheme("fatpaths");
        config.transport = netloom_transport::preset::find(transport).unwrap().transport();
        let Selector::Layer(layer) = &mut config.routing.selector else { panic!("layers") };
        layer.acks = acks;
        config.fabric.options.buffer = Some(Bytes(150_000));
        config.faults = vec![Fault::Cut(Cut {
            link_fraction: Some(0.05),
            from: Time::from_us(20),
            until: Some(repair),
            ..Cut::default()
        })];
        let records = run(network.clone(), config, permutation(4_000_000, &network, 1));
        records.flows.iter().map(fct).max().unwrap()
    };
    for transport in ["tcp", "cubic", "dctcp", "mptcp"] {
        let last = last(Acks::Same, transport);
        assert!(last < Time::from_ms(60), "{transport}: {last}");
    }
    assert!(last(Acks::Minimal, "tcp") >= repair);
}

/// Flows that choose their layer by what they learn, by marks or by their round-trip times, end earlier than those that keep the drawn one;
/// those that drain first stay in order.
#[test]
fn flows_leave_congested_layers() {
    let network =
        build(Topology::SlimFly(SlimFly { q: Some(5), rate: Rate::from_gbps(10), ..SlimFly::default() }));
    let run = |granularity: Granularity| {
        let layer = Layer { first: First::Random, ..Layer::default() };
        let mut config = config(granularity, layer, 1);
        config.transport = preset::find("dctcp").unwrap().transport();
        config.fabric.options.ecn =
            Some(Ecn { kmin: Bytes(30_000), kmax: Bytes(30_000), pmax: 1.0, mark: Default::default() });
        config.fabric.options.buffer = Some(Bytes(200_000));
        let records = common::run(network.clone(), config, permutation(1 << 20, &network, 1));
        let mean = records.flows.iter().map(|flow| fct(flow).as_secs_f64()).sum::<f64>();
        (mean, records.flows.iter().map(|flow| flow.ooo_packets).sum::<u64>())
    };
    let drawn = run(Granularity::Flow(Flow {}));
    let (by_marks, by_time) =
        (run(Granularity::FlowBender(FlowBender::default())), run(Granularity::Flowcut(Flowcut::default())));
    assert!(by_marks.0 < drawn.0 && by_time.0 < drawn.0, "{by_marks:?} {by_time:?} {drawn:?}");
    assert_eq!(by_time.1, 0);
}
