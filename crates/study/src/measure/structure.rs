//! Size, distances, load bounds and cost of a network.

use netloom_paths::distance::{DistanceDistribution, UNREACHABLE, distances_from, endpoints};
use netloom_paths::sample::{Distribution, quadruples};
use netloom_topology::{CostModel, RouterGraph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Quantities, named};
use crate::analysis::Subject;

/// Size, distances, load bounds and cost. Quantities: `routers`, `radix` (k'), `hosts`, `links`, `diameter`,
/// `mean_distance`, `total_network_load`, `edge_density` (cables per host), `ports` (most ports of a router), `dollars_per_host`,
/// `cable_dollars_per_host`, `watts_per_host`, `valiant_ratio` (mean hops via a random router over minimal mean hops), and
/// `share_at_<l>` (share of router pairs at l hops).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Structure {}

impl Structure {
    pub(super) fn take(&self, subject: &Subject) -> Result<Quantities, String> {
        let metrics = subject.network.metrics();
        let cost = CostModel::published().price(&subject.network);
        let distances = DistanceDistribution::measure(&subject.graph);
        let hosts = f64::from(metrics.hosts);
        let cables = cost.host_cables.dollars + cost.electric_cables.dollars + cost.optical_cables.dollars;
        let mut quantities = named([
            ("routers", f64::from(metrics.switches)),
            ("radix", f64::from(metrics.degree.1)),
            ("hosts", hosts),
            ("links", metrics.switch_links as f64),
            ("ports", f64::from(metrics.radix)),
            ("diameter", f64::from(distances.diameter())),
            ("mean_distance", distances.mean()),
            (
                "total_network_load",
                netloom_paths::distance::total_network_load(&subject.graph, distances.mean()),
            ),
            ("edge_density", metrics.edge_density),
            ("dollars_per_host", cost.dollars_per_host),
            ("cable_dollars_per_host", cables / hosts),
            ("watts_per_host", cost.watts_per_host),
            ("valiant_ratio", valiant_ratio(&subject.graph, distances.mean())),
        ]);
        let shares = distances.shares();
        quantities
            .extend(shares.iter().enumerate().skip(1).map(|(l, &share)| (format!("share_at_{l}"), share)));
        Ok(quantities)
    }
}

/// What is measured of every network, beside the shares by distance.
pub(super) const QUANTITIES: [&str; 13] = [
    "routers",
    "radix",
    "hosts",
    "links",
    "ports",
    "diameter",
    "mean_distance",
    "total_network_load",
    "edge_density",
    "dollars_per_host",
    "cable_dollars_per_host",
    "watts_per_host",
    "valiant_ratio",
];

/// Random triples from which Valiant's mean path length is estimated.
const TRIPLES: usize = 2000;

/// Mean hops from s to t through a random third router, over the mean distance; 1 if there is no third router.
fn valiant_ratio(graph: &RouterGraph, mean_distance: f64) -> f64 {
    let sample = quadruples(&endpoints(graph), TRIPLES, 1).routers;
    let hops = sample.iter().map(|&[s, via, t, _]| {
        let distance = distances_from(graph, &[via], UNREACHABLE);
        f64::from(distance[s as usize]) + f64::from(distance[t as usize])
    });
    let hops = Distribution::new(hops.collect(), false);
    if hops.is_empty() { 1.0 } else { hops.mean().value / mean_distance }
}
