//! Maximum achievable throughput.

use std::path::Path;

use netloom_paths::pattern::Placement;
use netloom_throughput::{Method, Routing, ThroughputConfig, Traffic, solve};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Quantities, named};
use crate::analysis::Subject;

/// Maximum achievable throughput of a routing scheme under a traffic pattern. Quantities: `theta` (the middle of the bounds),
/// `theta_lower` and `theta_upper` (the bounds), `gap` (their relative distance), `theta_friendliest` (the largest over the draws of
/// worst-case traffic, of which `theta` is the least), `layers`, `length_bound`, and `hosts_at_saturation` (hosts per router times theta:
/// where uniform traffic fills the network).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ThroughputOf {
    /// Which paths the traffic may take.
    pub routing: Routing,
    /// The traffic.
    pub traffic: Traffic,
    /// Which host sits at which router.
    pub placement: Placement,
    /// Exact or approximate.
    pub method: Method,
    /// Relative gap of the bounds where they are not exact.
    pub gap: f64,
}

impl Default for ThroughputOf {
    fn default() -> Self {
        let config = ThroughputConfig::default();
        ThroughputOf {
            routing: config.routing,
            traffic: config.traffic,
            placement: config.placement,
            method: config.method,
            gap: config.gap,
        }
    }
}

impl ThroughputOf {
    pub(super) fn take(&self, subject: &Subject, seed: u64) -> Result<Quantities, String> {
        let config = ThroughputConfig {
            routing: self.routing.clone(),
            traffic: self.traffic.clone(),
            placement: self.placement,
            method: self.method,
            gap: self.gap,
            seed,
        };
        let graph = &subject.graph;
        let report = solve(graph, &config, Path::new("")).map_err(|error| error.to_string())?;
        let (theta, bounds) = (report.throughput.value(), report.throughput);
        let hosts = (0..graph.routers()).map(|r| graph.hosts(r)).max().unwrap_or(0);
        Ok(named([
            ("theta", theta),
            ("theta_lower", bounds.lower),
            ("theta_upper", bounds.upper),
            ("gap", bounds.gap()),
            ("theta_friendliest", report.draws.iter().copied().fold(0.0, f64::max)),
            ("layers", f64::from(report.layers)),
            ("length_bound", report.length_bound),
            ("hosts_at_saturation", theta * f64::from(hosts)),
        ]))
    }
}
