//! What must hold whatever the network, scheme, work and faults.

mod support;

use std::sync::Arc;

use netloom_flow::FlowRun;
use netloom_record::Records;
use netloom_sim::{Cut, Degrade, Fault, SimConfig};
use netloom_topology::{FatTree, Network, Topology};
use netloom_transport::Transport;
use netloom_units::{Bytes, Time};
use netloom_workload::{
    AllToAll, Collective, Incast, NicSelection, Pattern, Permutation, PlanContext, Poisson, ScaleUp,
    ScaleUpWiring, Servers, Uniform, Wiring, Workload,
};
use proptest::prelude::*;
use support::common::schemes;
use support::common::*;
use support::try_flow_by_flow;

/// One of every family, and oddly shaped ones.
fn networks() -> impl Strategy<Value = Network> {
    let families = families::all();
    let shapes = prop_oneof![
        (2..12u32).prop_map(crossbar),
        (2..5u32, 1..5u32, 1..5u32).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        (2..4u32, 1..4u32, 1..3u32, 1..4u32).prop_map(|(pods, tors, aggs, hosts)| {
            build(Topology::FatTree(FatTree {
                pods: Some(pods),
                tors_per_pod: Some(tors),
                aggs_per_pod: Some(aggs),
                cores: Some(aggs * 2),
                hosts_per_tor: Some(hosts),
                ..FatTree::default()
            }))
        }),
        (2..30u32).prop_map(chain),
    ];
    let family =
        (0..families.len(), 0..4u64).prop_map(move |(family, seed)| families::build(&families[family], seed));
    prop_oneof![shapes, family]
}

fn patterns() -> impl Strategy<Value = Pattern> {
    let size = 1..500_000u64;
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
        size.clone().prop_map(|bytes| Pattern::AllToAll(AllToAll {
            size: Bytes(bytes / 8 + 1).into(),
            ..AllToAll::default()
        })),
        // Not the smallest messages, of which a million come at this load: each one that begins or ends changes the rates of most others.
        (20_000..500_000u64, 0.1..0.9f64).prop_map(|(bytes, load)| Pattern::Poisson(Poisson {
            size: Bytes(bytes).into(),
            load,
            duration: Some(Time::from_us(50)),
            ..Poisson::default()
        })),
        size.clone()
            .prop_map(|bytes| Pattern::Incast(Incast { size: Bytes(bytes).into(), ..Incast::default() })),
        size.prop_map(|bytes| Pattern::Collective(Collective {
            size: Some(Bytes(bytes)),
            ..Collective::default()
        })),
    ]
}

/// In half of the cases servers with several NICs, planes, GPUs or a network inside.
fn servers() -> impl Strategy<Value = Option<Servers>> {
    let selections = prop::sample::select(vec![
        NicSelection::Stripe,
        NicSelection::RoundRobin,
        NicSelection::Hash,
        NicSelection::LeastOutstanding,
    ]);
    let wiring = prop_oneof![Just(Wiring::SideBySide), Just(Wiring::RailOptimised)];
    let inside = prop_oneof![Just(ScaleUpWiring::Switch), Just(ScaleUpWiring::AllToAll)];
    let scale_up = prop::option::of(inside.prop_map(|wiring| ScaleUp { wiring, ..ScaleUp::default() }));
    let servers = (1..4u32, wiring, selections, 1..3u32, any::<bool>(), scale_up).prop_map(
        |(nics, wiring, nic_selection, planes, are_gpus, scale_up)| Servers {
            nics,
            wiring,
            nic_selection,
            planes,
            gpus: are_gpus.then_some(nics),
            scale_up,
            ..Servers::default()
        },
    );
    prop::option::of(servers)
}

/// Slow links and cuts that are repaired, with new routes and without.
fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let degrade = (0.0..0.6f64, 0.05..1.0f64, 0..50u64, prop::option::of(51..200u64));
    let degrade = degrade.prop_map(|(share, fraction, from, until)| {
        Fault::Degrade(Degrade {
            link_fraction: Some(share),
            rate_factor: fraction,
            from: Time::from_us(from),
            until: until.map(Time::from_us),
            ..Degrade::default()
        })
    });
    let cut = (1..3u32, 0..40u64, 1..100u64, prop::option::of(0..30_000u64), any::<bool>());
    let cut = cut.prop_map(|(links, from, lasts, reroute, host)| {
        Fault::Cut(Cut {
            tier: host.then(|| "host".into()),
            links: Some(links),
            from: Time::from_us(from),
            until: Some(Time::from_us(from + lasts)),
            reroute_after: reroute.map(Time::from_ns),
            ..Cut::default()
        })
    });
    prop::collection::vec(prop_oneof![degrade, cut], 0..3)
}

/// What is the same in every run.
fn check(network: &Network, records: &Records, paths_are_minimal: bool) -> Result<(), TestCaseError> {
    for flow in &records.flows {
        prop_assert_eq!(flow.delivered, flow.bytes, "{:?}", flow);
        let (Some(fct), Some(sender_fct)) = (flow.fct, flow.sender_fct) else {
            return Err(TestCaseError::fail(format!("no end of {flow:?}")));
        };
        prop_assert!(sender_fct > Time::ZERO, "{:?}", flow);
        let latency = network.links()[0].latency;
        let are_alike = paths_are_minimal && network.links().iter().all(|link| link.latency == latency);
        // Rates are rounded, once or twice in a flow's life.
        prop_assert!(!are_alike || fct + Time(1000) >= flow.ideal_fct, "{:?}", flow);
    }
    for channel in &records.channels {
        prop_assert!(
            channel.utilisation <= 1.0 + 1e-9 && channel.active_utilisation <= 1.0 + 1e-9,
            "{:?}",
            channel
        );
    }
    // What leaves the hosts is what comes to them.
    let sum = |is_of: &dyn Fn(u32, u32) -> bool| -> u64 {
        let of = |&&(_, from, to): &&(u64, u32, u32)| is_of(from, to);
        let ends: Vec<_> = (0..network.channels())
            .map(|channel| {
                (
                    records.channels[channel as usize].bytes,
                    network.channel(channel).from,
                    network.channel(channel).to,
                )
            })
            .collect();
        ends.iter().filter(of).map(|&(bytes, ..)| bytes).sum()
    };
    let (out, arrived) = (sum(&|from, _| network.is_host(from)), sum(&|_, to| network.is_host(to)));
    let slack = u64::from(network.channels());
    prop_assert!(out.abs_diff(arrived) <= slack, "{} bytes left the hosts, and {} came", out, arrived);
    let payload: u64 = records.flows.iter().map(|flow| flow.bytes).sum();
    prop_assert!(out + slack >= payload);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// A scenario is refused, or all of its bytes arrive, and the same each time.
    #[test]
    fn everything_arrives_or_is_refused(
        network in networks(),
        servers in servers(),
        pattern in patterns(),
        scheme in any::<prop::sample::Index>(),
        faults in faults(),
        seed in 0..1000u64,
    ) {
        let all = schemes::all();
        // The first one from there on that is run here.
        let start = scheme.index(all.len());
        // Hosts have one NIC where servers do not come out even.
        let railed = servers.and_then(|servers| {
            let network = servers.network(network.clone()).ok()?;
            let rails = servers.build(&network, seed).ok()?;
            Some((network, Some(Arc::new(rails))))
        });
        let (network, rails) = railed.unwrap_or((network, None));
        let plan = || {
            let context = PlanContext { rails: rails.clone(), ..PlanContext::new(seed) };
            Workload::new(pattern.clone()).plan(&network, &context)
        };
        prop_assume!(plan().is_ok());
        let config = |routing: &netloom_routing::Routing| {
            let mut config = SimConfig { routing: routing.clone(), transport: Transport::default(), faults: faults.clone(), seed, ..SimConfig::default() };
            schemes::fit(&mut config.fabric.options, &config.routing);
            config.fabric.options.qcn = schemes::qcn_for(&config.routing);
            config
        };
        let runs = |(_, routing): &&(&str, netloom_routing::Routing)| {
            let checked = FlowRun::check(network.clone(), config(routing), plan().unwrap());
            let made = FlowRun::new(network.clone(), config(routing), plan().unwrap()).map(drop);
            assert_eq!(checked.map_err(|e| e.to_string()), made.as_ref().map(|_| ()).map_err(|e| e.to_string()), "{routing:?}");
            made.is_ok()
        };
        let Some((_, routing)) = all.iter().cycle().skip(start).take(all.len()).find(runs) else {
            return Ok(());
        };
        let run = || try_flow_by_flow(&network, config(routing), plan().unwrap());
        let records = match run() {
            Ok(records) => records,
            Err(error) => return Err(TestCaseError::fail(format!("{routing:?}: {error}"))),
        };
        // Layers and k shortest paths of a Dragonfly may be shorter than its own minimal ones.
        let made = FlowRun::new(network.clone(), config(routing), plan().unwrap()).unwrap();
        let is_minimal = faults.is_empty() && made.stage().routes(Time::ZERO).is_minimal();
        check(&network, &records, is_minimal)?;
        prop_assert_eq!(difference(&records, &run().unwrap()), None);
    }
}
