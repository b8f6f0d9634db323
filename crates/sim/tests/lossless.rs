//! What must hold where flow control keeps packets from being lost.

mod common;

use common::interruptions::{interruptions, tell};
use common::schemes::nic_queues;
use common::*;
use netloom_fabric::flow_control::{credits, pfc, pfc_shared};
use netloom_fabric::{Ecn, Fabric, FabricOptions, FlowControl, Qcn, TrafficClass};
use netloom_record::{Records, Window};
use netloom_routing::{Granularity, Selector, preset};
use netloom_sim::{ChannelEnds, Degrade, Fault, Measure, RunError, SimConfig, SimError, Simulation};
use netloom_topology::{KaryNTree, LeafSpine, Network, NetworkBuilder, SlimFly, Topology, Torus};
use netloom_transport::{Congestion, NicQueue, Reliability, Transport, TransportOptions, congestion};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{
    AllToAll, Bernoulli, Hotspot, Incast, OffDiagonal, Options, Pattern, Permutation, Plan, PlanContext,
    Stencil, Uniform, Workload,
};
use proptest::prelude::*;

/// Trees that a run congests quickly.
fn trees() -> impl Strategy<Value = Network> {
    prop_oneof![
        (2..8u32).prop_map(crossbar),
        (2..4u32, 1..4u32, 2..5u32).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        Just(fat_tree(4)),
        (2..5u32).prop_map(|n| build(Topology::KaryNTree(KaryNTree { k: 2, n, ..KaryNTree::default() }))),
    ]
}

fn networks() -> impl Strategy<Value = Network> {
    let slim_fly = SlimFly { q: Some(3), hosts_per_switch: Some(2), ..SlimFly::default() };
    let torus =
        |sizes: &[u32]| Torus { dimensions: 2, switches_per_dimension: sizes.to_vec(), ..Torus::default() };
    let tori = [torus(&[4, 3]), Torus { twisted: true, ..torus(&[3, 6]) }].map(Topology::Torus).map(build);
    prop_oneof![
        4 => trees(),
        1 => Just(build(Topology::SlimFly(slim_fly))),
        1 => (3..6u32).prop_map(ring),
        1 => prop::sample::select(tori.to_vec()),
    ]
}

/// Switches in a ring, a host at each.
fn ring(switches: u32) -> Network {
    let mut builder = NetworkBuilder::new("ring");
    let hosts = builder.add_hosts(switches);
    let (to_host, between) = (builder.tier("host"), builder.tier("ring"));
    let ring: Vec<_> = (0..switches).map(|_| builder.add_switch(0, 0)).collect();
    let (rate, latency) = (Rate::from_gbps(100), Time::from_ns(500));
    for (host, &switch) in hosts.zip(&ring) {
        builder.link(host, switch, rate, latency, to_host);
    }
    for (i, &switch) in ring.iter().enumerate() {
        builder.link(switch, ring[(i + 1) % ring.len()], rate, latency, between);
    }
    builder.build().unwrap()
}

fn patterns() -> impl Strategy<Value = Pattern> {
    let size = 1..300_000u64;
    prop_oneof![
        size.clone().prop_map(|bytes| Pattern::Permutation(Permutation {
            size: Bytes(bytes).into(),
            ..Permutation::default()
        })),
        (size.clone(), 1..4u64).prop_map(|(bytes, messages)| Pattern::Uniform(Uniform {
            size: Bytes(bytes).into(),
            messages_per_host: Some(messages),
            ..Uniform::default()
        })),
        size.prop_map(|bytes| Pattern::Incast(Incast { size: Bytes(bytes).into(), ..Incast::default() })),
        (0.2..1.0f64, 20..80u64).prop_map(|(load, until)| Pattern::Bernoulli(Bernoulli {
            load,
            until: Time::from_us(until),
            frame: Bytes(1500),
            ..Bernoulli::default()
        })),
    ]
}

fn transports() -> impl Strategy<Value = Transport> {
    let acknowledged = Reliability::SelectiveRepeat(Default::default());
    let unacknowledged = Reliability::None(Default::default());
    let open = || {
        prop_oneof![
            Just(Congestion::None(Default::default())),
            Just(Congestion::Qcn(congestion::qcn::Qcn { timer: Time::from_us(20), ..Default::default() })),
            Just(Congestion::Dcqcn(congestion::dcqcn::Dcqcn {
                increase_timer: Some(Time::from_us(20)),
                cnp_interval: Some(Time::from_us(5)),
                // Slower flows make runs long, of which every flow is sampled.
                min_rate: Some(Rate::from_gbps(5)),
                ..Default::default()
            })),
        ]
    };
    let pairs = prop_oneof![
        open().prop_map(move |congestion| (unacknowledged.clone(), congestion)),
        open().prop_map({
            let acknowledged = acknowledged.clone();
            move |congestion| (acknowledged.clone(), congestion)
        }),
        // ACKs echo marks.
        Just((
            acknowledged.clone(),
            Congestion::Dcqcn(congestion::dcqcn::Dcqcn {
                preset: congestion::dcqcn::DcqcnPreset::Conweave,
                min_rate: Some(Rate::from_gbps(5)),
                ..Default::default()
            })
        )),
        Just((acknowledged, Congestion::FixedWindow(Default::default()))),
    ];
    // As large as data, or larger, if somebody wants that.
    let acks = prop_oneof![3 => Just(64), 1 => 64..4000u64];
    (pairs, 1000..3000u64, acks, nic_queues()).prop_map(|((reliability, congestion), mtu, ack, nic_queue)| {
        let (mtu, ack_size) = (Bytes(mtu), Bytes(ack));
        let options = TransportOptions { mtu, ack_size, nic_queue, ..TransportOptions::default() };
        let mut transport = Transport { options, reliability, congestion, ..Transport::default() };
        // Not with what would be handed over without limit or end.
        if transport.check().is_err() {
            transport.options.nic_queue = NicQueue::None;
        }
        transport
    })
}

fn flow_controls() -> impl Strategy<Value = FlowControl> {
    let buffer = (8_000..150_000u64).prop_map(Bytes);
    // Resuming late and with a long response makes pauses overlap.
    let pfc = (prop::option::of(0..9000u64), 0..2000u64).prop_map(|(resume, response)| {
        FlowControl::Pfc(pfc::Pfc {
            // Beyond the headroom of a 200 Gb/s cable of a microsecond.
            buffer: Bytes(160_000),
            resume: resume.map(Bytes),
            response: Time::from_ns(response),
            ..pfc::Pfc::default()
        })
    });
    let shared = (1_500_000..9_000_000u64, 0.01..8.0f64, 0..5000u64).prop_map(|(buffer, alpha, reserve)| {
        let config = pfc_shared::PfcShared::default();
        FlowControl::PfcShared(pfc_shared::PfcShared {
            buffer: Bytes(buffer),
            alpha,
            reserve: Bytes(reserve),
            ..config
        })
    });
    let credits =
        buffer.prop_map(|buffer| FlowControl::Credits(credits::Credits { buffer, ..Default::default() }));
    prop_oneof![pfc, shared, credits]
}

fn fabrics() -> impl Strategy<Value = Fabric> {
    let classes = prop_oneof![Just(vec![]), Just(vec![TrafficClass { share: Some(3) }]),];
    let notifications = prop_oneof![3 => Just(64), 1 => 64..4000u64];
    let qcn =
        prop::option::of(notifications.prop_map(|size| Qcn { cnm_size: Bytes(size), ..Qcn::default() }));
    let cut_through = prop::option::of((1..500u64).prop_map(Bytes));
    // Output queues that are full hold packets at their inputs.
    let buffer = prop::option::of((4_000..60_000u64).prop_map(Bytes));
    (flow_controls(), classes, qcn, cut_through, any::<bool>(), 0..300u64, buffer).prop_map(
        |(flow_control, classes, qcn, cut_through, control_priority, latency, buffer)| {
            let switch_latency = Time::from_ns(latency);
            let options = FabricOptions {
                buffer,
                classes,
                qcn,
                cut_through,
                control_priority,
                switch_latency,
                ..Default::default()
            };
            Fabric { options, flow_control, ..Fabric::default() }
        },
    )
}

/// DCQCN needs a fabric that marks.
fn mark(config: &mut SimConfig) {
    if matches!(config.transport.congestion, Congestion::Dcqcn(_)) {
        let ecn = Ecn { kmin: Bytes(5_000), kmax: Bytes(50_000), pmax: 0.1, mark: Default::default() };
        config.fabric.options.ecn.get_or_insert(ecn);
    }
}

fn simulate(network: &Network, config: &SimConfig, pattern: &Pattern, seed: u64) -> Option<Simulation> {
    let plan: Plan = Workload::new(pattern.clone()).plan(network, &PlanContext::new(seed)).ok()?;
    Some(Simulation::new(network.clone(), config.clone(), plan).unwrap())
}

fn sent_and_delivered(records: &Records) -> (u64, u64) {
    let sum = |count: fn(&netloom_record::FlowRecord) -> u64| records.flows.iter().map(count).sum();
    (sum(|flow| flow.bytes), sum(|flow| flow.delivered))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// A drop or a deadlock would be an error of the run, credits and packets are counted in every run.
    #[test]
    fn everything_arrives_alike_on_any_number_of_threads(
        network in networks(),
        pattern in patterns(),
        scheme in 0..preset::PRESETS.len(),
        transport in transports(),
        fabric in fabrics(),
        degraded in prop::option::of((0.0..0.6f64, 0.1..1.0f64)),
        interruptions in interruptions(),
        seed in any::<u64>(),
    ) {
        let routing = preset::PRESETS[scheme].routing();
        prop_assume!(routing.fits(&network).is_ok());
        let is_for_trees = !matches!(routing.selector, Selector::Valiant(_) | Selector::Ugal(_));
        prop_assume!(is_for_trees || !network.is_tree());
        let watches_acks = matches!(routing.granularity, Granularity::Flowcut(_)) || routing.uses_acks();
        prop_assume!(transport.has_acks() || !watches_acks);
        // Without ACKs what is lost stays so, and a crossbar has no links between switches.
        let interruptions =
            if transport.has_acks() && network.switches() > 1 { interruptions } else { Vec::new() };
        let faults = degraded.map(|(share, fraction)| {
            Fault::Degrade(Degrade { link_fraction: Some(share), rate_factor: fraction, ..Degrade::default() })
        });
        let is_interrupted = !interruptions.is_empty();
        let mut config = SimConfig {
            routing,
            transport,
            fabric,
            faults: faults.into_iter().chain(interruptions).collect(),
            seed,
            measure: Measure {
                warm_up: Time::from_us(3),
                sample_flows: Some(Time::from_us(2)),
                windows: vec![Window { name: "all".into(), from: Time::ZERO, until: Time::from_ms(900) }],
                ..Measure::default()
            },
            ..SimConfig::default()
        };
        mark(&mut config);
        tell(&mut config);
        schemes::fit(&mut config.fabric.options, &config.routing);
        let plan = Workload::new(pattern.clone()).plan(&network, &PlanContext::new(seed));
        let Ok(plan) = plan else { return Ok(()) };
        // Some schemes want another network, and some routes more virtual channels than there are.
        let first = match Simulation::new(network.clone(), config.clone(), plan) {
            Err(SimError::Routing(_) | SimError::MayDeadlock(_)) => return Ok(()),
            // Large switches with many classes set aside more than the least buffer that is drawn.
            Err(SimError::Fabric(error)) if error.field == "flow_control.buffer" => return Ok(()),
            // Some schemes cannot follow cuts, and a switch may hang on one link.
            Err(SimError::Fault(error))
                if error.field.ends_with("reroute_after") || error.field.ends_with("until") =>
            {
                return Ok(());
            }
            first => first.unwrap(),
        };
        let expected = first.run(1).unwrap().records;
        let (sent, delivered) = sent_and_delivered(&expected);
        prop_assert_eq!(sent, delivered);
        prop_assert_eq!(expected.totals.data.dropped, expected.totals.data.lost);
        prop_assert!(is_interrupted || expected.totals.data.lost == 0);
        let in_windows: u64 = expected.window_flows.to_vec().unwrap().iter().map(|row| row.bytes).sum();
        let in_series: u64 = expected.flow_samples.to_vec().unwrap().iter().map(|row| row.bytes).sum();
        prop_assert_eq!((in_windows, in_series), (delivered, delivered));
        let run = || simulate(&network, &config, &pattern, seed).unwrap();
        prop_assert_eq!(difference(&expected, &run().run_reference().unwrap().records), None);
        for threads in 2..=3 {
            prop_assert_eq!(difference(&expected, &run().run(threads).unwrap().records), None);
        }
    }
}

/// All hosts of a ring send to the one opposite, clockwise, through small buffers.
fn around_the_ring(flow_control: FlowControl, transport: Transport) -> Result<Simulation, SimError> {
    let network = ring(5);
    let shift = OffDiagonal { offset: 2, size: Bytes(400_000).into(), ..OffDiagonal::default() };
    let plan = plan(Pattern::OffDiagonal(shift), &network, 1);
    let config =
        SimConfig { fabric: Fabric { flow_control, ..Fabric::default() }, transport, ..scheme("ecmp") };
    Simulation::new(network, config, plan)
}

#[test]
fn a_ring_deadlocks_where_the_user_insists_and_the_report_names_the_cycle() {
    let pfc = pfc::Pfc { vcs: Some(1), ..pfc::Pfc::default() };
    let credits = credits::Credits { vcs: Some(1), buffer: Bytes(20_000), ..Default::default() };
    let insisting = [
        FlowControl::Pfc(pfc::Pfc { allow_deadlock: true, ..pfc.clone() }),
        FlowControl::Credits(credits::Credits { allow_deadlock: true, ..credits.clone() }),
    ];
    // Retransmission timers go on for ever in a deadlock, and must not keep the run alive.
    let go_back_n = Transport { reliability: Reliability::GoBackN(Default::default()), ..unlimited() };
    for flow_control in insisting {
        for transport in [unlimited(), go_back_n.clone()] {
            let error = around_the_ring(flow_control.clone(), transport).unwrap().run(1).unwrap_err();
            let RunError::Deadlock(cycle) = &error else { panic!("{error}") };
            assert_eq!(cycle.len(), 5, "{error}");
            let is_between_switches =
                |channel: &String| channel.starts_with('s') && channel.contains(" -> s");
            assert!(cycle.iter().all(is_between_switches), "{error}");
        }
    }
    for flow_control in [FlowControl::Pfc(pfc), FlowControl::Credits(credits)] {
        let error = around_the_ring(flow_control, unlimited()).unwrap_err().to_string();
        assert!(error.contains("the routes can deadlock: channels s"), "{error}");
    }
}

#[test]
fn a_virtual_channel_per_hop_frees_the_ring() {
    let pfc = FlowControl::Pfc(pfc::Pfc::default());
    let credits = FlowControl::Credits(credits::Credits { buffer: Bytes(20_000), ..Default::default() });
    for flow_control in [pfc, credits] {
        let records = around_the_ring(flow_control, unlimited()).unwrap().run(1).unwrap().records;
        assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
        assert!(
            records.channels.iter().any(|channel| channel.pauses > 0),
            "the buffers were too large to matter"
        );
    }
}

#[test]
fn too_little_headroom_loses_packets_and_the_run_says_where() {
    let network = crossbar(4);
    let flow_control = FlowControl::Pfc(pfc::Pfc { headroom: Some(Bytes(5000)), ..pfc::Pfc::default() });
    let config = SimConfig {
        fabric: Fabric { flow_control, ..Fabric::default() },
        transport: unlimited(),
        ..scheme("ecmp")
    };
    let incast = Incast { size: Bytes(1_000_000).into(), ..Incast::default() };
    let work = plan(Pattern::Incast(incast), &network, 1);
    let error = Simulation::new(network, config, work).unwrap().run(1).unwrap_err();
    let RunError::Lost { channel, packets } = &error else { panic!("{error}") };
    assert!(*packets > 0 && channel.starts_with('h') && channel.ends_with(" -> s0"), "{error}");
}

#[test]
fn there_is_headroom_for_answers_that_are_larger_than_data() {
    let network = fat_tree(4);
    let pattern = Pattern::AllToAll(AllToAll { size: Bytes(300_000).into(), ..AllToAll::default() });
    let pfc = FlowControl::Pfc(pfc::Pfc { buffer: Bytes(100_000), ..pfc::Pfc::default() });
    let credits = FlowControl::Credits(credits::Credits { buffer: Bytes(20_000), ..Default::default() });
    for flow_control in [pfc, FlowControl::PfcShared(Default::default()), credits] {
        let mut config = SimConfig::default();
        config.fabric.flow_control = flow_control;
        config.transport.options.mtu = Bytes(1000);
        config.transport.options.ack_size = Bytes(9000);
        let records = run(network.clone(), config, plan(pattern.clone(), &network, 1));
        assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    }
}

#[test]
fn a_class_with_a_share_gets_it_and_an_idle_one_leaves_it() {
    let network = crossbar(4);
    let options = FabricOptions {
        classes: vec![TrafficClass { share: Some(60) }, TrafficClass { share: Some(40) }],
        ..FabricOptions::default()
    };
    let flow_control = FlowControl::Pfc(pfc::Pfc { buffer: Bytes(500_000), ..Default::default() });
    let measure = Measure { until: Some(Time::from_us(500)), ..Measure::default() };
    let config = SimConfig {
        fabric: Fabric { options, flow_control, ..Fabric::default() },
        transport: unlimited(),
        measure,
        ..scheme("ecmp")
    };
    let run = |classes: &[u8]| {
        let mut jobs = Vec::new();
        for (&class, src) in classes.iter().zip(1..) {
            let job = netloom_workload::Message::new(0, Bytes(1 << 30), Time::ZERO);
            jobs.push((src, netloom_workload::Message { class, ..job }));
        }
        let plan = Plan::of_messages(4, jobs);
        let records = Simulation::new(network.clone(), config.clone(), plan).unwrap().run(1).unwrap().records;
        let total: u64 = records.flows.iter().map(|flow| flow.delivered).sum();
        let share = |flow: &netloom_record::FlowRecord| flow.delivered as f64 / total as f64;
        records.flows.iter().map(share).collect::<Vec<_>>()
    };
    let shares = run(&[0, 1]);
    assert!((shares[0] - 0.6).abs() < 0.01, "{shares:?}");
    assert!((run(&[1, 1])[0] - 0.5).abs() < 0.01);
    let shares = run(&[0, 1, 1]);
    assert!((shares[0] - 0.6).abs() < 0.01 && (shares[1] - 0.2).abs() < 0.01, "{shares:?}");
}

/// One queue with many sources and QCN on both ends: fair shares, a full link, and a queue near its set point.
#[test]
fn rate_limiters_share_a_bottleneck_and_hold_its_queue_near_the_set_point() {
    const SENDERS: u32 = 10;
    let network = {
        let mut builder = NetworkBuilder::new("star");
        let hosts = builder.add_hosts(SENDERS + 1);
        let tier = builder.tier("host");
        let switch = builder.add_switch(0, 0);
        for host in hosts {
            builder.link(host, switch, Rate::from_gbps(10), Time::from_ns(500), tier);
        }
        builder.build().unwrap()
    };
    let options = FabricOptions { qcn: Some(Qcn::default()), ..FabricOptions::default() };
    let flow_control = FlowControl::Pfc(pfc::Pfc::default());
    let transport = Transport {
        options: TransportOptions { mtu: Bytes(1500), header: Bytes(0), ..TransportOptions::default() },
        reliability: Reliability::None(Default::default()),
        congestion: Congestion::Qcn(Default::default()),
        ..Transport::default()
    };
    let measure = Measure {
        until: Some(Time::from_ms(1500)),
        warm_up: Time::from_ms(500),
        sample: Some(Time::from_ms(1)),
        ..Measure::default()
    };
    let config = SimConfig {
        fabric: Fabric { options, flow_control, ..Fabric::default() },
        transport,
        measure,
        ..scheme("ecmp")
    };
    let jobs = (1..=SENDERS).map(|src| (src, netloom_workload::Message::new(0, Bytes(1 << 40), Time::ZERO)));
    let plan = Plan::of_messages(SENDERS + 1, jobs);
    let records = Simulation::new(network, config, plan).unwrap().run(1).unwrap().records;
    let rates: Vec<f64> =
        records.flows.iter().map(|flow| flow.delivered_after_warm_up as f64 * 8.0).collect();
    let total: f64 = rates.iter().sum();
    assert!(total > 0.97e10, "{total}");
    let jain = total * total / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>());
    assert!(jain > 0.9, "{jain} {rates:?}");
    let bottleneck = records.channels.iter().find(|channel| &*channel.to == "h0").unwrap();
    let late: Vec<u64> = records
        .samples
        .to_vec()
        .unwrap()
        .into_iter()
        .filter(|sample| sample.channel == bottleneck.channel && sample.time > Time::from_ms(500))
        .map(|sample| sample.queue)
        .collect();
    let mean = late.iter().sum::<u64>() as f64 / 1000.0;
    assert!((8_000.0..32_000.0).contains(&mean), "{mean}");
}

/// One source, four ways of 25, 10, 10 and 50% of its link (the output-generated hotspot of the CEE comparison): spraying sends a quarter
/// each way, and packets that wait for a slow way hold back those for the others, so four times the slowest passes.
#[test]
fn spraying_over_four_slow_ways_runs_at_four_times_the_slowest() {
    let rate = Rate::from_gbps(10);
    let network = build(Topology::LeafSpine(LeafSpine {
        leaves: 2,
        spines: 4,
        hosts_per_leaf: 1,
        rate,
        latency: Time::from_ns(100),
        ..LeafSpine::default()
    }));
    let leaf = network.node_name(network.edge_switch(0));
    let slow = [0.25, 0.1, 0.1, 0.5].into_iter().zip(1..).map(|(fraction, port)| {
        let to = network.node_name(network.neighbour(network.edge_switch(0), port));
        let channels = vec![ChannelEnds { from: leaf.clone(), to, parallel: 0 }];
        Fault::Degrade(Degrade { channels, rate_factor: fraction, ..Degrade::default() })
    });
    let flow_control = FlowControl::Pfc(pfc::Pfc::default());
    let transport = Transport {
        options: TransportOptions { mtu: Bytes(1500), header: Bytes(0), ..TransportOptions::default() },
        reliability: Reliability::None(Default::default()),
        congestion: Congestion::None(Default::default()),
        ..Transport::default()
    };
    let measure =
        Measure { until: Some(Time::from_ms(50)), warm_up: Time::from_ms(10), ..Measure::default() };
    let config = SimConfig {
        fabric: Fabric { flow_control, ..Fabric::default() },
        faults: slow.collect(),
        transport,
        measure,
        ..SimConfig::default()
    };
    let share = |scheme: &str| {
        let routing = preset::find(scheme).unwrap().routing();
        let config = SimConfig { routing, ..config.clone() };
        let job = netloom_workload::Message::new(1, Bytes(1 << 30), Time::ZERO);
        let plan = Plan::of_messages(2, [(0, job)]);
        let records = Simulation::new(network.clone(), config, plan).unwrap().run(1).unwrap().records;
        let bits = records.flows[0].delivered_after_warm_up * 8;
        (bits as f64 / 0.04 / rate.0 as f64, records.flows[0].ooo_packets)
    };
    let (random, reordered) = share("random-nca");
    assert!((random - 0.4).abs() < 0.02 && reordered > 0, "{random}");
    let (deterministic, reordered) = share("d-mod-k");
    assert!([0.25, 0.1, 0.5].iter().any(|way| (deterministic - way).abs() < 0.001), "{deterministic}");
    assert_eq!(reordered, 0);
}

/// A frame of the hotspot benchmark's streams is counted in order across the whole run.
#[test]
fn a_deterministic_path_keeps_streams_in_order_and_groups_apart() {
    let network = build(Topology::KaryNTree(KaryNTree { k: 2, n: 5, ..KaryNTree::default() }));
    let hotspot = Hotspot::default();
    let workload = Workload { pattern: Pattern::Hotspot(hotspot), options: Options::default() };
    let plan = workload.plan(&network, &PlanContext::new(1)).unwrap();
    let transport = Transport {
        options: TransportOptions { mtu: Bytes(1500), header: Bytes(0), ..TransportOptions::default() },
        reliability: Reliability::None(Default::default()),
        congestion: Congestion::None(Default::default()),
        ..Transport::default()
    };
    let flow_control = FlowControl::Pfc(pfc::Pfc { buffer: Bytes(200_000), ..Default::default() });
    let measure = Measure { until: Some(Time::from_ms(12)), ..Measure::default() };
    let config = SimConfig {
        fabric: Fabric { flow_control, ..Fabric::default() },
        transport,
        measure,
        ..scheme("d-mod-k")
    };
    let records = Simulation::new(network, config, plan).unwrap().run(1).unwrap().records;
    assert!(records.flows.iter().all(|flow| flow.stream && flow.ooo_packets == 0));
    let of = |name: &str| {
        let group = records.groups.iter().position(|group| group == name).unwrap() as u16;
        records.flows.iter().filter(move |flow| flow.group == group)
    };
    assert_eq!((of("hot").count(), of("victim").count()), (4, 1));
    assert!(of("hot").all(|flow| flow.start >= Time::from_ms(10)));
}

#[test]
fn a_program_may_calculate_for_long_where_deadlocks_are_allowed() {
    let network = ring(5);
    let pfc = pfc::Pfc { vcs: Some(1), allow_deadlock: true, ..pfc::Pfc::default() };
    let fabric = Fabric { flow_control: FlowControl::Pfc(pfc), ..Fabric::default() };
    let compute = Time::from_ms(30_000);
    let stencil = Stencil { offsets: Some(vec![1]), repeat: 3, barrier: true, compute, ..Stencil::default() };
    let config = SimConfig { fabric, ..scheme("ecmp") };
    let simulation = Simulation::new(network.clone(), config, plan(Pattern::Stencil(stencil), &network, 1));
    let finished = simulation.unwrap().run(1).unwrap();
    assert!(!finished.interrupted);
    assert!(finished.records.totals.simulated > compute * 3);
}
