//! What layers carry in simulations, held against the linear program over the same layers and traffic, and against ideal sharing by flows that take a
//! layer each.

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
use netloom_topology::{Dragonfly, HyperX, Network, SlimFly, Topology, Xpander};
use netloom_transport::{Congestion, Reliability, preset};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Pattern, Permutation};

/// The ways that each flow of a permutation has, one per layer, as directed links between switches.
struct Ways {
    of_flows: Vec<Vec<Vec<u32>>>,
    links: usize,
    /// By how much of a host's link every host can send to its partner, says the program.
    theta: f64,
}

impl Ways {
    fn new(network: &Network, config: &SimConfig, partners: &[(u32, u32)]) -> Self {
        let Selector::Layer(layer) = &config.routing.selector else { panic!("layers") };
        let graph = network.router_graph();
        let scheme: Scheme = layer.construction.scheme().unwrap();
        let routes = scheme.build(&graph, layers_seed(config.seed)).unwrap();
        let tables = routes.tables().unwrap();
        let router = |host| network.edge_switch(host) - network.hosts();
        let pairs = partners.iter().map(|&(src, dst)| (router(src), router(dst)));
        let ways = |(from, to)| match from == to {
            true => vec![Vec::new()],
            false => (0..tables.layers()).filter_map(|layer| tables.path(&graph, layer, from, to)).collect(),
        };
        let demand = Demand::new(pairs.clone().filter(|(from, to)| from != to).map(|(a, b)| (a, b, 1.0)));
        let paths: Vec<_> =
            demand.commodities().iter().map(|pair| routes.paths(&graph, pair.from, pair.to)).collect();
        Ways {
            of_flows: pairs.map(ways).collect(),
            links: 2 * graph.edges().len(),
            theta: path_form(&graph, &demand, &paths).unwrap().upper,
        }
    }

    /// The rates, as shares of a host's link, of flows that share every link as fairly as can be, without any loss: all grow alike until a link is
    /// full. `loads` tells which share of a flow goes over which of its ways.
    fn fair(&self, loads: impl Fn(usize, usize) -> f64 + Copy) -> Vec<f64> {
        let parts = |flow: usize| {
            let ways =
                self.of_flows[flow].iter().enumerate().map(move |(way, links)| (loads(flow, way), links));
            let ways = ways.filter(|(load, _)| *load > 0.0);
            ways.flat_map(|(load, links)| links.iter().map(move |&link| (link as usize, load))).collect()
        };
        let uses: Vec<Vec<(usize, f64)>> = (0..self.of_flows.len()).map(parts).collect();
        let (mut rates, mut left) = (vec![0.0; uses.len()], vec![1.0; self.links]);
        let mut growing: Vec<usize> = (0..uses.len()).collect();
        while let Some(&first) = growing.first() {
            let mut load = vec![0.0; self.links];
            growing.iter().flat_map(|&flow| &uses[flow]).for_each(|&(link, part)| load[link] += part);
            let used = (0..self.links).filter(|&link| load[link] > 0.0);
            // All that still grow have the same rate.
            let step = used.map(|link| left[link] / load[link]).fold(1.0 - rates[first], f64::min);
            growing.iter().for_each(|&flow| rates[flow] += step);
            (0..self.links).for_each(|link| left[link] -= step * load[link]);
            let is_open = |&flow: &usize| uses[flow].iter().all(|&(link, _)| left[link] > 1e-9);
            growing.retain(|flow| rates[*flow] < 1.0 - 1e-9 && is_open(flow));
        }
        rates
    }

    /// Those if every flow goes by all of its layers alike.
    fn spread(&self) -> Vec<f64> {
        self.fair(|flow, _| 1.0 / self.of_flows[flow].len() as f64)
    }

    /// Those if every flow is on one layer.
    fn on_layers(&self, layers: &[usize]) -> Vec<f64> {
        self.fair(|flow, way| if layers[flow] == way { 1.0 } else { 0.0 })
    }

    /// Those after every flow, one after the other, has taken the best of its layers as the others then are, twice; as if it knew.
    fn as_if_they_knew(&self) -> Vec<f64> {
        let mut layers: Vec<usize> =
            (0..self.of_flows.len()).map(|flow| flow % self.of_flows[flow].len()).collect();
        for flow in (0..layers.len()).chain(0..layers.len()) {
            let rate = |way: usize| {
                let mut layers = layers.clone();
                layers[flow] = way;
                self.on_layers(&layers)[flow]
            };
            let rates: Vec<f64> = (0..self.of_flows[flow].len()).map(rate).collect();
            let best = rates.iter().copied().fold(0.0, f64::max);
            if rates[layers[flow]] < best - 1e-9 {
                layers[flow] = rates.iter().position(|&rate| rate == best).unwrap();
            }
        }
        self.on_layers(&layers)
    }
}

/// What the flows of a run get, and the ways that they have.
type Shares = (Vec<f64>, Ways);

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

fn least(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(f64::INFINITY, f64::min)
}

fn slim_fly(hosts_per_switch: u32) -> Network {
    let (q, hosts_per_switch, rate) = (Some(5), Some(hosts_per_switch), Rate::from_gbps(10));
    build(Topology::SlimFly(SlimFly { q, hosts_per_switch, rate, ..SlimFly::default() }))
}

/// A preset's run over nine layers, which packets of one flow change as `change` says.
fn setting(transport: &str, seed: u64, change: impl Fn(&mut SimConfig)) -> SimConfig {
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
    change(&mut config);
    config
}

/// A purified flow leaves its layer after so many trims in a row.
fn leaves_after(trims: u32) -> impl Fn(&mut SimConfig) {
    move |config| {
        let Reliability::Trimmed(trimmed) = &mut config.transport.reliability else { panic!("purified") };
        (trimmed.reroute, trimmed.reroute_after) =
            (trims < u32::MAX, if trims < u32::MAX { trims } else { 1 });
    }
}

/// The share of a host's link that each of a permutation's endless flows gets, and the ways that it has.
fn saturate(network: &Network, mut config: SimConfig) -> Shares {
    let (from, until) = (Time::from_ms(5), Time::from_ms(15));
    config.measure = Measure { warm_up: from, until: Some(until), ..Measure::default() };
    let pattern = Pattern::Permutation(Permutation { size: Bytes(1 << 30).into(), ..Default::default() });
    let records = run(network.clone(), config.clone(), plan(pattern, network, config.seed));
    let partners: Vec<_> = records.flows.iter().map(|flow| (flow.src, flow.dst)).collect();
    let wire = config.transport.packet_size().0 as f64 / config.transport.options.mtu.0 as f64;
    let link = 10e9 * (until - from).as_secs_f64() / 8.0;
    let rates = records.flows.iter().map(|flow| flow.delivered_after_warm_up as f64 * wire / link);
    (rates.collect(), Ways::new(network, &config, &partners))
}

/// Whatever share all flows get, the program allows no more; and MPTCP over the layers gets most of it in the mean. (A single window that goes by one layer at a
/// time does not: `docs/studies-fatpaths-simulation.md`.)
#[test]
fn endless_flows_get_no_more_than_the_program_allows_and_mptcp_most_of_that() {
    for (hosts_per_switch, seed) in [(4, 1), (6, 2)] {
        for transport in ["purified", "tcp", "mptcp"] {
            let (rates, ways) = saturate(&slim_fly(hosts_per_switch), setting(transport, seed, |_| ()));
            let (least, mean, theta) = (least(&rates), mean(&rates), ways.theta);
            let told =
                format!("{transport}, {hosts_per_switch} hosts, seed {seed}: {least} {mean} of {theta}");
            println!("{told}");
            assert!(least > 0.0 && least <= theta, "{told}");
            assert!(transport != "mptcp" || mean >= 0.85 * theta.min(1.0), "{told}");
        }
    }
}

/// Flows that are on one layer at a time cannot have what the program gives flows that split as they like, not even if they shared without loss and knew the
/// best layer. Of what such flows can have purified transport misses nothing.
#[test]
fn purified_flows_get_what_ideal_sharing_of_one_layer_each_gives() {
    for (hosts_per_switch, seed) in [(4, 1), (6, 2)] {
        let network = slim_fly(hosts_per_switch);
        let share = |trims| {
            let (rates, ways) = saturate(&network, setting("purified", seed, leaves_after(trims)));
            (mean(&rates) / ways.theta, ways)
        };
        let (eager, ways) = share(1);
        let (patient, _) = share(4);
        let (spread, knowing) =
            (mean(&ways.spread()) / ways.theta, mean(&ways.as_if_they_knew()) / ways.theta);
        let told = format!("{hosts_per_switch} hosts: {eager}, {patient}; ideally {spread}, {knowing}");
        println!("{told}");
        assert!(knowing < 0.85, "{told}");
        assert!(eager >= spread && patient >= knowing, "{told}");
    }
}

/// The table of `docs/studies-fatpaths-simulation.md`: one part of purified transport changed at a time.
#[test]
#[ignore = "takes two minutes; prints a table"]
fn survey() {
    let rate = Rate::from_gbps(10);
    let hosts = |hosts| Some(hosts);
    let networks = [
        slim_fly(4),
        slim_fly(6),
        build(Topology::Xpander(Xpander {
            degree: 7,
            lift: Some(6),
            hosts_per_switch: hosts(4),
            rate,
            ..Default::default()
        })),
        build(Topology::HyperX(HyperX {
            dimensions: 3,
            switches_per_dimension: vec![4; 3],
            parallel_links: vec![1; 3],
            hosts_per_switch: hosts(4),
            rate,
            ..Default::default()
        })),
        build(Topology::Dragonfly(Dragonfly {
            hosts_per_switch: hosts(3),
            switches_per_group: Some(4),
            global_links_per_switch: Some(2),
            rate,
            ..Default::default()
        })),
    ];
    let window = |packets| {
        move |config: &mut SimConfig| {
            let Congestion::Pulls(pulls) = &mut config.transport.congestion else { panic!("pulls") };
            pulls.initial_window = packets;
        }
    };
    let queue = |packets: u64| {
        move |config: &mut SimConfig| config.fabric.options.buffer = Some(Bytes(9000 * packets))
    };
    let print = |name: &str, share: &dyn Fn(&Network, u64) -> Shares| {
        let cells = networks.iter().map(|network| {
            let shares = [1, 2, 3].map(|seed| {
                let (rates, ways) = share(network, seed);
                assert!(least(&rates) <= ways.theta, "{name}");
                [least(&rates), mean(&rates)].map(|rate| rate / ways.theta)
            });
            [0, 1].map(|which| format!("{:.2}", mean(&shares.map(|share| share[which])))).join(", ")
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    };
    let row = |name: &str, transport: &str, change: &dyn Fn(&mut SimConfig)| {
        print(name, &|network, seed| saturate(network, setting(transport, seed, change)));
    };
    let ideal = |name: &str, rates: &dyn Fn(&Ways) -> Vec<f64>| {
        print(name, &|network, seed| {
            let (_, ways) = saturate(network, setting("purified", seed, |_| ()));
            (rates(&ways), ways)
        });
    };
    row("purified transport", "purified", &|_| ());
    for trims in [2, 3, 4, 6, 8] {
        row(&format!("leaves a layer after {trims} trims in a row"), "purified", &leaves_after(trims));
    }
    row("never", "purified", &leaves_after(u32::MAX));
    for packets in [4, 6, 12] {
        row(&format!("a window of {packets}"), "purified", &window(packets));
    }
    row("queues of 16 packets", "purified", &queue(16));
    row("queues of 16 packets, after 4 trims", "purified", &|config| {
        queue(16)(config);
        leaves_after(4)(config);
    });
    row("a layer per packet", "purified", &|config| {
        config.routing.granularity = Granularity::Packet(Default::default())
    });
    row("TCP", "tcp", &|_| ());
    row("MPTCP", "mptcp", &|_| ());
    ideal("ideal sharing of all layers alike", &Ways::spread);
    ideal("ideal sharing by flows that know the best layer", &Ways::as_if_they_knew);
}
