//! The numbers by which networks are compared.

use crate::bisection::{Bisection, bisection};
use crate::network::Network;
use netloom_units::narrow;

/// Breadth-first work, in sources × links, up to which all distances are computed.
const EXACT_WORK: u64 = 200_000_000_000;
/// Sources where that is too much.
const SAMPLED_SOURCES: u64 = 1024;

/// Size, distances and capacity of a network. Distances are hops between switches that have hosts.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Metrics {
    /// What the network is.
    pub name: String,
    /// Number of switches (N_r).
    pub switches: u32,
    /// Number of hosts (N).
    pub hosts: u32,
    /// Number of links, host links included.
    pub links: u64,
    /// Number of links between switches.
    pub switch_links: u64,
    /// Most ports of a switch (k).
    pub radix: u32,
    /// Least and most links to other switches (k′) of the switches that have hosts.
    pub degree: (u32, u32),
    /// Least and most hosts (p) of the switches that have any.
    pub hosts_per_switch: (u32, u32),
    /// Largest distance (D), or the largest seen if `distances_sampled`.
    pub diameter: u32,
    /// Mean distance over ordered pairs of different switches (d); absent if there is one switch only.
    pub mean_distance: Option<f64>,
    /// Whether the distances start from a sample of the switches only.
    pub distances_sampled: bool,
    /// All links per host: (switch links + N) / N.
    pub edge_density: f64,
    /// Total network load (FatPaths): directed switch links over mean distance, an upper bound on flows at full rate.
    pub total_network_load: Option<f64>,
    /// Bounds on the bisection bandwidth; absent if fewer than two switches have hosts, or there are too many.
    pub bisection: Option<Bisection>,
    /// Bandwidth with which half of the hosts can send, to compare the bisection with, in bit/s.
    #[serde(rename = "half_injection_bps")]
    pub half_injection: u64,
}

impl Network {
    /// Measures the network. Takes about as long as one breadth-first search per 256 switches.
    pub fn metrics(&self) -> Metrics {
        let graph = self.router_graph();
        let with_hosts: Vec<u32> = (0..graph.routers()).filter(|&router| graph.hosts(router) > 0).collect();
        let range = |of: &dyn Fn(u32) -> u32| {
            let values = || with_hosts.iter().map(|&router| of(router));
            (values().min().unwrap_or(0), values().max().unwrap_or(0))
        };
        let switch_links = graph.edges().len() as u64;
        let distances_sampled = with_hosts.len() as u64 * switch_links > EXACT_WORK;
        let step = if distances_sampled { (with_hosts.len() as u64 / SAMPLED_SOURCES).max(1) } else { 1 };
        let sources: Vec<u32> = with_hosts.iter().copied().step_by(narrow::<usize>(step)).collect();
        let distances = graph.distance_histogram(&sources, |router| graph.hosts(router) > 0);
        let mean_distance = distances.mean();
        let injection: u64 =
            self.links().iter().filter(|link| self.is_host(link.a)).map(|link| link.rate.0).sum();
        Metrics {
            name: self.name().to_owned(),
            switches: self.switches(),
            hosts: self.hosts(),
            links: self.links().len() as u64,
            switch_links,
            radix: (self.hosts()..self.nodes())
                .map(|switch| narrow::<u32>(self.ports(switch).len()))
                .max()
                .unwrap_or(0),
            degree: range(&|router| narrow::<u32>(graph.neighbours(router).len())),
            hosts_per_switch: range(&|router| graph.hosts(router)),
            diameter: distances.diameter(),
            mean_distance,
            distances_sampled,
            edge_density: (switch_links as f64 + f64::from(self.hosts())) / f64::from(self.hosts()),
            total_network_load: mean_distance.map(|mean| 2.0 * switch_links as f64 / mean),
            bisection: bisection(self, &graph),
            half_injection: injection / 2,
        }
    }
}
