//! The ways that flows have over layers, what the linear program makes of them, and what ideal sharing does.

use netloom_paths::Scheme;
use netloom_routing::Selector;
use netloom_sim::{SimConfig, layers_seed};
use netloom_throughput::Demand;
use netloom_throughput::path_form::path_form;
use netloom_topology::Network;

/// The ways that each flow of a permutation has, one per layer, as directed links between switches.
pub(crate) struct Ways {
    pub(crate) of_flows: Vec<Vec<Vec<u32>>>,
    pub(crate) links: usize,
    /// By how much of a host's link every host can send to its partner, says the program.
    pub(crate) theta: f64,
}

impl Ways {
    pub(crate) fn new(network: &Network, config: &SimConfig, partners: &[(u32, u32)]) -> Self {
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
    pub(crate) fn spread(&self) -> Vec<f64> {
        self.fair(|flow, _| 1.0 / self.of_flows[flow].len() as f64)
    }

    /// Those if every flow is on one layer.
    fn on_layers(&self, layers: &[usize]) -> Vec<f64> {
        self.fair(|flow, way| if layers[flow] == way { 1.0 } else { 0.0 })
    }

    /// Those after every flow, one after the other, has taken the best of its layers as the others then are, twice; as if it knew.
    pub(crate) fn as_if_they_knew(&self) -> Vec<f64> {
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
