//! What layers carry in simulations, held against the linear program over the same layers and traffic.

mod common;

use common::*;
use netloom_fabric::Queue;
use netloom_fabric::queue::trimming::Trimming;
use netloom_paths::Scheme;
use netloom_routing::selector::layer::First;
use netloom_routing::{Granularity, Selector};
use netloom_sim::{Measure, SimConfig, layers_seed};
use netloom_throughput::Demand;
use netloom_throughput::path_form::path_form;
use netloom_topology::{Network, SlimFly, Topology};
use netloom_transport::preset;
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Pattern, Permutation};

/// By how much of a host's link every host can send to its partner, says the program.
fn theta(network: &Network, config: &SimConfig, partners: &[(u32, u32)]) -> f64 {
    let Selector::Layer(layer) = &config.routing.selector else { panic!("layers") };
    let graph = network.router_graph();
    let scheme: Scheme = layer.construction.scheme().unwrap();
    let routes = scheme.build(&graph, layers_seed(config.seed)).unwrap();
    let router = |host| network.edge_switch(host) - network.hosts();
    let pairs = partners.iter().map(|&(src, dst)| (router(src), router(dst)));
    let demand = Demand::new(pairs.filter(|(from, to)| from != to).map(|(from, to)| (from, to, 1.0)));
    let paths: Vec<_> =
        demand.commodities().iter().map(|pair| routes.paths(&graph, pair.from, pair.to)).collect();
    path_form(&graph, &demand, &paths).unwrap().upper
}

/// The share of a host's link that each of a permutation's endless flows gets, and what the program allows all of them.
fn saturate(transport: &str, hosts_per_switch: u32, seed: u64) -> (Vec<f64>, f64) {
    let slim_fly = SlimFly {
        q: Some(5),
        hosts_per_switch: Some(hosts_per_switch),
        rate: Rate::from_gbps(10),
        ..SlimFly::default()
    };
    let network = build(Topology::SlimFly(slim_fly));
    let mut config = SimConfig { seed, ..scheme("fatpaths") };
    config.transport = preset::find(transport).unwrap().transport();
    match config.transport.pulls() {
        true => config.fabric.queue = Queue::Trimming(Trimming::default()),
        false => config.fabric.options.buffer = Some(Bytes(150_000)),
    }
    if config.transport.options.subflows > 1 {
        // A subflow on each of eight layers.
        config.routing.granularity = Granularity::Flow(Default::default());
        let Selector::Layer(layer) = &mut config.routing.selector else { panic!("layers") };
        layer.first = First::Random;
    }
    let (from, until) = (Time::from_ms(5), Time::from_ms(15));
    config.measure = Measure { warm_up: from, until: Some(until), ..Measure::default() };
    let pattern = Pattern::Permutation(Permutation { size: Bytes(1 << 30).into(), ..Default::default() });
    let records = run(network.clone(), config.clone(), plan(pattern, &network, seed));
    let partners: Vec<_> = records.flows.iter().map(|flow| (flow.src, flow.dst)).collect();
    let wire = config.transport.packet_size().0 as f64 / config.transport.options.mtu.0 as f64;
    let link = 10e9 * (until - from).as_secs_f64() / 8.0;
    let rates = records.flows.iter().map(|flow| flow.delivered_after_warm_up as f64 * wire / link);
    (rates.collect(), theta(&network, &config, &partners))
}

/// Whatever share all flows get, the program allows no more; and MPTCP over the layers gets most of it in the mean. (A single window that goes by one layer at a
/// time does not: `docs/studies-fatpaths-simulation.md`.)
#[test]
fn endless_flows_get_no_more_than_the_program_allows_and_mptcp_most_of_that() {
    for (hosts_per_switch, seed) in [(4, 1), (6, 2)] {
        for transport in ["purified", "tcp", "mptcp"] {
            let (rates, theta) = saturate(transport, hosts_per_switch, seed);
            let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            let told =
                format!("{transport}, {hosts_per_switch} hosts, seed {seed}: {least} {mean} of {theta}");
            println!("{told}");
            assert!(least > 0.0 && least <= theta, "{told}");
            assert!(transport != "mptcp" || mean >= 0.85 * theta.min(1.0), "{told}");
        }
    }
}
