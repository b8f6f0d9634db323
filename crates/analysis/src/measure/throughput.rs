//! Maximum achievable throughput.

use netloom_paths::pattern::Placement;
use netloom_throughput::{Method, Routing, ThroughputConfig, Traffic, solve};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Quantities, named};
use crate::named::Named;
use crate::study::{Scale, Subject};

/// Maximum achievable throughput of a routing scheme under a traffic pattern, over several seeds. Quantities: `theta` (mean of the
/// bounds' middles), `theta_least`, `theta_most`, `gap` (largest relative distance of the bounds), `layers`, `length_bound`, and
/// `hosts_at_saturation` (hosts per router times theta: where uniform traffic fills the network).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ThroughputOf {
    /// Which paths the traffic may take.
    pub routing: Named<Routing>,
    /// The traffic.
    pub traffic: Named<Traffic>,
    /// Which host sits at which router.
    pub placement: Placement,
    /// Exact or approximate.
    pub method: Method,
    /// Relative gap of the bounds where they are not exact.
    pub gap: f64,
    /// Number of seeds, from 1.
    pub seeds: u64,
}

impl Default for ThroughputOf {
    fn default() -> Self {
        let config = ThroughputConfig::default();
        ThroughputOf {
            routing: Named(config.routing),
            traffic: Named(config.traffic),
            placement: config.placement,
            method: config.method,
            gap: config.gap,
            seeds: 3,
        }
    }
}

impl ThroughputOf {
    pub(super) fn take(&self, subject: &Subject, scale: Scale) -> Result<Quantities, String> {
        let seeds = if scale == Scale::Small { 1 } else { self.seeds.max(1) };
        let mut reports = Vec::new();
        for seed in 1..=seeds {
            let config = ThroughputConfig {
                routing: self.routing.0.clone(),
                traffic: self.traffic.0.clone(),
                placement: self.placement,
                method: self.method,
                gap: self.gap,
                seed,
            };
            let report = solve(&subject.graph, &config, &subject.base_dir);
            reports.push(report.map_err(|error| error.to_string())?);
        }
        let thetas: Vec<f64> = reports.iter().map(|report| report.throughput.value()).collect();
        let theta = thetas.iter().sum::<f64>() / thetas.len() as f64;
        let graph = &subject.graph;
        let hosts = (0..graph.routers()).map(|r| graph.hosts(r)).max().unwrap_or(0);
        let last = &reports[reports.len() - 1];
        Ok(named([
            ("theta", theta),
            ("theta_least", thetas.iter().copied().fold(f64::INFINITY, f64::min)),
            ("theta_most", thetas.iter().copied().fold(0.0, f64::max)),
            ("gap", reports.iter().map(|report| report.throughput.gap()).fold(0.0, f64::max)),
            ("layers", f64::from(last.layers)),
            ("length_bound", last.length_bound),
            ("hosts_at_saturation", theta * f64::from(hosts)),
        ]))
    }
}
