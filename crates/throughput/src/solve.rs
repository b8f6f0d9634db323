//! From a routing scheme and a traffic pattern to a throughput.

use std::path::{Path, PathBuf};

use netloom_paths::pattern::Placement;
use netloom_paths::routes::{KShortest, Minimal, OverlapMinimising, Past, RandomLayers, Scheme, Spain};
use netloom_paths::{Routes, SchemeError};
use netloom_topology::RouterGraph;
use netloom_units::{Invalid, kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arc_form::{ARC_FORM_LIMIT, arc_form, arc_form_variables};
use crate::concurrent_flow::{AllowedPaths, concurrent_flow};
use crate::demand::Demand;
use crate::path_form::path_form;
use crate::traffic::Traffic;

/// Optimal routing: flow may take any path in any share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Optimal {}

kinds! {
    /// Which paths the traffic may take.
    pub enum Routing: "routing" {
        "optimal" => Optimal(Optimal),
        "minimal" => Minimal(Minimal),
        "fatpaths-random" => RandomLayers(RandomLayers),
        "fatpaths-overlap" => OverlapMinimising(OverlapMinimising),
        "spain" => Spain(Spain),
        "past" => Past(Past),
        "k-shortest" => KShortest(KShortest),
    }
}

impl Routing {
    /// The scheme that provides the paths; `None` for optimal routing.
    pub fn scheme(&self) -> Option<Scheme> {
        match self.clone() {
            Routing::Optimal(_) => None,
            Routing::Minimal(config) => Some(Scheme::Minimal(config)),
            Routing::RandomLayers(config) => Some(Scheme::RandomLayers(config)),
            Routing::OverlapMinimising(config) => Some(Scheme::OverlapMinimising(config)),
            Routing::Spain(config) => Some(Scheme::Spain(config)),
            Routing::Past(config) => Some(Scheme::Past(config)),
            Routing::KShortest(config) => Some(Scheme::KShortest(config)),
        }
    }
}

/// How the throughput is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The linear program where it is small enough, else the approximation.
    Auto,
    /// The linear program, whatever its size.
    Exact,
    /// The approximation with a proven gap.
    Approximate,
}

/// A computation of maximum achievable throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct ThroughputConfig {
    /// Which paths the traffic may take.
    pub routing: Routing,
    /// The traffic.
    pub traffic: Traffic,
    /// Which host sits at which router.
    pub placement: Placement,
    /// Exact or approximate.
    pub method: Method,
    /// Relative gap of the bounds at which the approximation stops.
    pub gap: f64,
    /// Seed of the layers, tie-breaks and traffic.
    pub seed: u64,
}

impl Default for ThroughputConfig {
    fn default() -> Self {
        ThroughputConfig {
            routing: Routing::RandomLayers(RandomLayers::default()),
            traffic: Traffic::WorstCase(crate::traffic::WorstCase::default()),
            placement: Placement::Identity,
            method: Method::Auto,
            gap: 0.05,
            seed: 1,
        }
    }
}

/// Bounds of the largest theta such that theta times every demand can be carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// A flow of this value exists.
    pub lower: f64,
    /// No flow of a larger value exists.
    pub upper: f64,
}

impl Throughput {
    /// The middle of the bounds.
    pub fn value(&self) -> f64 {
        f64::midpoint(self.lower, self.upper)
    }

    /// Relative distance of the bounds.
    pub fn gap(&self) -> f64 {
        self.upper / self.lower - 1.0
    }
}

/// What was found, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct ThroughputReport {
    /// Bounds of the maximum achievable throughput: 1 means that all hosts of the pattern send at link rate. Host links
    /// are not modelled, so it may exceed 1.
    pub throughput: Throughput,
    /// `path form`, `arc form` or `approximation`.
    pub method: &'static str,
    /// Upper bound for any routing by capacity over path length.
    pub length_bound: f64,
    /// Number of router pairs with traffic.
    pub commodities: u64,
    /// Sum of all demands in units of a link's rate.
    pub demand: f64,
    /// Different paths over all commodities; 0 for optimal routing.
    pub paths: u64,
    /// Layers of the scheme; 0 if it has none.
    pub layers: u32,
    /// The throughput under every draw of the traffic, in order; the least is the one reported.
    pub draws: Vec<f64>,
}

/// Why a throughput cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ThroughputError {
    /// The scheme's paths cannot be built.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// A parameter outside its range.
    #[error(transparent)]
    Parameter(#[from] Invalid),
    /// A traffic file that cannot be used.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        reason: String,
    },
    /// The pattern has no traffic between different routers.
    #[error("the traffic has no demand between different routers")]
    NoDemand,
    /// The scheme gives a pair with traffic no path.
    #[error("the routing scheme has no path from router {from} to router {to}")]
    NoPath {
        /// Source router.
        from: u32,
        /// Destination router.
        to: u32,
    },
    /// The solver gave up.
    #[error("the linear program was not solved: {0}")]
    Solver(String),
}

/// Paths over all commodities up to which the path form is solved exactly.
const PATH_FORM_LIMIT: u64 = 30_000;

/// Phases after which the approximation gives its bounds as they are.
const MAX_PHASES: u32 = 100_000;

/// Computes the maximum achievable throughput of a routing scheme under a traffic pattern; where the traffic is drawn several times, the
/// least.
///
/// # Errors
/// If a parameter is out of its range, the scheme leaves a pair with traffic without a path, or the solver fails.
pub fn solve(
    graph: &RouterGraph,
    config: &ThroughputConfig,
    base_dir: &Path,
) -> Result<ThroughputReport, ThroughputError> {
    let first = config.traffic.demand(graph, config.placement, base_dir, config.seed)?;
    let routes = config.routing.scheme().map(|scheme| scheme.build(graph, config.seed)).transpose()?;
    let solve = |demand: &Demand| solve_demand(graph, demand, routes.as_ref(), config.method, config.gap);
    let mut least = solve(&first)?;
    if let Traffic::WorstCase(worst) = &config.traffic {
        for draw in 1..worst.draws {
            let next = solve(&worst.demand(graph, config.seed, draw)?)?;
            let mut draws = std::mem::take(&mut least.draws);
            draws.extend(&next.draws);
            if next.throughput.value() < least.throughput.value() {
                least = next;
            }
            least.draws = draws;
        }
    }
    Ok(least)
}

/// The same for given demands and paths; `None` stands for optimal routing.
///
/// # Errors
/// As [`solve`].
pub fn solve_demand(
    graph: &RouterGraph,
    demand: &Demand,
    routes: Option<&Routes>,
    method: Method,
    gap: f64,
) -> Result<ThroughputReport, ThroughputError> {
    let paths: Option<Vec<Vec<Vec<u32>>>> =
        routes.map(|routes| demand.commodities().iter().map(|c| routes.paths(graph, c.from, c.to)).collect());
    let count = paths.iter().flatten().map(Vec::len).sum::<usize>() as u64;
    let (size, limit) = match paths {
        Some(_) => (count, PATH_FORM_LIMIT),
        None => (arc_form_variables(graph, demand), ARC_FORM_LIMIT),
    };
    let exact = method == Method::Exact || method == Method::Auto && size <= limit;
    let (throughput, method) = match (&paths, exact) {
        (Some(paths), true) => (path_form(graph, demand, paths)?, "path form"),
        (None, true) => (arc_form(graph, demand)?, "arc form"),
        (paths, false) => {
            let allowed = paths.as_ref().map_or(AllowedPaths::Any, |paths| AllowedPaths::Listed(paths));
            (concurrent_flow(graph, demand, allowed, gap, MAX_PHASES)?, "approximation")
        }
    };
    Ok(ThroughputReport {
        throughput,
        method,
        length_bound: demand.length_bound(graph),
        commodities: demand.commodities().len() as u64,
        demand: demand.total(),
        paths: count,
        layers: routes.and_then(Routes::tables).map_or(0, |tables| tables.layers()),
        draws: vec![throughput.value()],
    })
}
