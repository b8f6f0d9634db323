//! The whole path-diversity report of one network.

use netloom_units::{Invalid, narrow};
use std::collections::BTreeMap;

use netloom_topology::RouterGraph;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::collisions::CollisionHistogram;
use crate::columns::{Column, ReportTable, Values};
use crate::distance::{DistanceDistribution, UNREACHABLE, distances_from, endpoints, total_network_load};
use crate::diversity::{
    GreedyDisjointPaths, MAX_EXACT_LENGTH, interference_exact, interference_greedy, length_bounded_cut,
};
use crate::pattern::{Pattern, Placement};
use crate::sample::{Distribution, Estimate, Sample, pairs, quadruples};
use netloom_units::kind::Kind;

/// What to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathsConfig {
    /// Router pairs, and quadruples, to sample; all pairs are taken if there are no more.
    pub samples: u32,
    /// Seed of the samples.
    pub seed: u64,
    /// The longest paths counted, in hops. By default the smallest length at which 99% of the pairs have three
    /// disjoint paths (FatPaths' d').
    pub max_length: Option<u16>,
    /// Whether to count disjoint paths exactly as well, where that is possible.
    pub exact: bool,
    /// Whether to measure path interference.
    pub interference: bool,
}

impl Default for PathsConfig {
    fn default() -> Self {
        PathsConfig { samples: 5000, seed: 1, max_length: None, exact: true, interference: true }
    }
}

/// Why a report cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// There is no pair to measure.
    #[error("path diversity needs at least two routers that carry hosts, found {0}")]
    TooFewEndpoints(usize),
    /// Some routers cannot be reached.
    #[error("the network is not connected: {0} ordered router pairs have no path")]
    Disconnected(u64),
    /// A parameter outside its range.
    #[error(transparent)]
    Parameter(#[from] Invalid),
}

/// How disjoint paths were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Shortest paths taken one by one, as FatPaths did.
    Greedy,
    /// The minimum cut.
    Exact,
}

impl Counting {
    /// The word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Counting::Greedy => "greedy",
            Counting::Exact => "exact",
        }
    }
}

/// Disjoint paths and interference at one length, as counts of paths.
#[derive(Clone, Debug, PartialEq)]
pub struct DiversityAtLength {
    /// Longest paths counted, in hops.
    pub length: u16,
    /// How they were counted.
    pub counting: Counting,
    /// c_l(A, B) over router pairs.
    pub disjoint: Distribution,
    /// I^l over router quadruples; empty if not asked for.
    pub interference: Distribution,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PathsReport {
    /// Number of routers (N_r).
    pub routers: u32,
    /// Number of routers that paths start from and end at.
    pub endpoints: u32,
    /// Links of such a router to other routers (k'), the most if they differ.
    pub radix: u32,
    /// Number of hosts (N).
    pub hosts: u64,
    /// Number of links between routers.
    pub links: u64,
    /// Minimal path lengths over all pairs.
    pub distances: DistanceDistribution,
    /// Upper bound on concurrent flows at full rate.
    pub total_network_load: f64,
    /// Disjoint minimal paths c_min over the sampled pairs.
    pub minimal: Distribution,
    /// Disjoint almost-minimal paths, per length from the diameter to the longest, greedy and exact.
    pub diversity: Vec<DiversityAtLength>,
}

/// Measures the path diversity of a network (FatPaths sec. IV). The result is a function of the graph and the
/// configuration, whatever the number of threads.
///
/// # Errors
/// If fewer than two routers carry hosts, the network is not connected, or a parameter is out of its range.
pub fn report(graph: &RouterGraph, config: &PathsConfig) -> Result<PathsReport, ReportError> {
    let ends = endpoints(graph);
    if ends.len() < 2 {
        return Err(ReportError::TooFewEndpoints(ends.len()));
    }
    Invalid::at_least("samples", config.samples, 1)?;
    let distances = DistanceDistribution::measure(graph);
    if distances.disconnected > 0 {
        return Err(ReportError::Disconnected(distances.disconnected));
    }
    let sample = pairs(&ends, config.samples as usize, config.seed);
    let groups = quadruples(&ends, config.samples as usize, config.seed.wrapping_add(1));
    let mut report = PathsReport {
        routers: graph.routers(),
        endpoints: narrow::<u32>(ends.len()),
        radix: ends.iter().map(|&r| narrow::<u32>(graph.neighbours(r).len())).max().unwrap_or(0),
        hosts: (0..graph.routers()).map(|r| u64::from(graph.hosts(r))).sum(),
        links: graph.edges().len() as u64,
        total_network_load: total_network_load(graph, distances.mean()),
        minimal: minimal_disjoint_paths(graph, &sample),
        diversity: Vec::new(),
        distances,
    };
    let lengths = match config.max_length {
        Some(length) => length..=length,
        None => report.distances.diameter()..=u16::MAX,
    };
    for length in lengths {
        let disjoint = disjoint_paths(graph, &sample, length, Counting::Greedy);
        // Longer paths than there are routers do not exist.
        let last = config.max_length.is_some()
            || disjoint.quantile(0.01).value >= 3.0
            || u32::from(length) >= graph.routers();
        let interference = |counting| match config.interference && last {
            true => interference(graph, &groups, length, counting),
            false => Distribution::new(Vec::new(), true),
        };
        report.diversity.push(DiversityAtLength {
            length,
            counting: Counting::Greedy,
            disjoint,
            interference: interference(Counting::Greedy),
        });
        if config.exact && length <= MAX_EXACT_LENGTH {
            report.diversity.push(DiversityAtLength {
                length,
                counting: Counting::Exact,
                disjoint: disjoint_paths(graph, &sample, length, Counting::Exact),
                interference: interference(Counting::Exact),
            });
        }
        if last {
            break;
        }
    }
    Ok(report)
}

/// c_min(s, t): disjoint paths of minimal length, greedily counted.
fn minimal_disjoint_paths(graph: &RouterGraph, sample: &Sample<2>) -> Distribution {
    let count = |search: &mut GreedyDisjointPaths<'_>, &[s, t]: &[u32; 2]| {
        let minimal = distances_from(graph, &[t], UNREACHABLE)[s as usize];
        f64::from(search.count(&[s], &[t], minimal))
    };
    let values = sample.routers.par_iter().map_init(|| GreedyDisjointPaths::new(graph), count).collect();
    Distribution::new(values, sample.exhaustive)
}

/// c_l(s, t) over a sample of pairs.
///
/// With [`Counting::Exact`] beyond [`MAX_EXACT_LENGTH`] the distribution is empty.
pub fn disjoint_paths(
    graph: &RouterGraph,
    sample: &Sample<2>,
    length: u16,
    counting: Counting,
) -> Distribution {
    let values = match counting {
        Counting::Greedy => {
            let count = |search: &mut GreedyDisjointPaths<'_>, &[s, t]: &[u32; 2]| {
                f64::from(search.count(&[s], &[t], length))
            };
            sample.routers.par_iter().map_init(|| GreedyDisjointPaths::new(graph), count).collect()
        }
        Counting::Exact => {
            let count = |&[s, t]: &[u32; 2]| length_bounded_cut(graph, &[s], &[t], length).map(f64::from);
            sample.routers.par_iter().filter_map(count).collect()
        }
    };
    Distribution::new(values, sample.exhaustive)
}

/// I^l over a sample of quadruples; empty where [`disjoint_paths`] is.
pub fn interference(
    graph: &RouterGraph,
    sample: &Sample<4>,
    length: u16,
    counting: Counting,
) -> Distribution {
    let values = match counting {
        Counting::Greedy => {
            let count = |search: &mut GreedyDisjointPaths<'_>, &routers: &[u32; 4]| {
                interference_greedy(search, routers, length) as f64
            };
            sample.routers.par_iter().map_init(|| GreedyDisjointPaths::new(graph), count).collect()
        }
        Counting::Exact => {
            let count = |&routers: &[u32; 4]| interference_exact(graph, routers, length).map(|i| i as f64);
            sample.routers.par_iter().filter_map(count).collect()
        }
    };
    Distribution::new(values, sample.exhaustive)
}

/// Collision histograms of several traffic patterns, one per pattern (FatPaths Fig. 4).
pub fn collisions(
    graph: &RouterGraph,
    patterns: &[Pattern],
    placement: Placement,
    seed: u64,
) -> Vec<(&'static str, CollisionHistogram)> {
    let one = |pattern: &Pattern| {
        let flows = pattern.router_flows(graph, placement, seed);
        (pattern.name(), CollisionHistogram::new(graph, &flows))
    };
    patterns.iter().map(one).collect()
}

impl PathsReport {
    /// The names of [`Self::tables`].
    pub const TABLES: [&str; 4] = ["network", "distances", "minimal_paths", "diversity"];

    /// The result at the largest length, d', in one way of counting.
    pub fn at_largest_length(&self, counting: Counting) -> Option<&DiversityAtLength> {
        self.diversity.iter().rev().find(|row| row.counting == counting)
    }

    /// All tables by columns, for Parquet files and for printing: `network`, `distances`, `minimal_paths`,
    /// `diversity`. Counts of disjoint paths are given as fractions of k'.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count, from 0 on; beyond 2⁶⁴ it saturates"
    )]
    pub fn tables(&self) -> Vec<ReportTable> {
        let radix = f64::from(self.radix);
        let network = [
            ("routers", f64::from(self.routers)),
            ("endpoints", f64::from(self.endpoints)),
            ("radix", radix),
            ("hosts", self.hosts as f64),
            ("links", self.links as f64),
            ("diameter", f64::from(self.distances.diameter())),
            ("mean_distance", self.distances.mean()),
            ("total_network_load", self.total_network_load),
        ];
        let mut minimal: BTreeMap<u64, u64> = BTreeMap::new();
        self.minimal.values().iter().for_each(|&paths| *minimal.entry(paths as u64).or_default() += 1);
        let sampled = self.minimal.len() as f64;
        let of = |pick: &dyn Fn(&DiversityAtLength) -> f64| {
            Values::Float(self.diversity.iter().map(|row| pick(row) / radix).collect())
        };
        let estimate = |pick: fn(&Estimate) -> f64, quantile: Option<f64>, interference: bool| {
            of(&|row| {
                let values = if interference { &row.interference } else { &row.disjoint };
                pick(&quantile.map_or_else(|| values.mean(), |q| values.quantile(q)))
            })
        };
        vec![
            ReportTable {
                name: "network",
                columns: vec![
                    Column::new(
                        "quantity",
                        Values::Text(network.iter().map(|(n, _)| (*n).to_owned()).collect()),
                    ),
                    Column::new("value", Values::Float(network.iter().map(|(_, v)| *v).collect())),
                ],
            },
            ReportTable {
                name: "distances",
                columns: vec![
                    Column::new("hops", Values::Count((0..self.distances.pairs.len() as u64).collect())),
                    Column::new("pairs", Values::Count(self.distances.pairs.clone())),
                    Column::new("share", Values::Float(self.distances.shares())),
                ],
            },
            ReportTable {
                name: "minimal_paths",
                columns: vec![
                    Column::new("disjoint_paths", Values::Count(minimal.keys().copied().collect())),
                    Column::new("pairs", Values::Count(minimal.values().copied().collect())),
                    Column::new(
                        "share",
                        Values::Float(minimal.values().map(|&n| n as f64 / sampled).collect()),
                    ),
                ],
            },
            ReportTable {
                name: "diversity",
                columns: vec![
                    Column::new(
                        "length",
                        Values::Count(self.diversity.iter().map(|row| u64::from(row.length)).collect()),
                    ),
                    Column::new(
                        "counting",
                        Values::Text(
                            self.diversity.iter().map(|row| row.counting.name().to_owned()).collect(),
                        ),
                    ),
                    Column::new("cdp_mean", estimate(|e| e.value, None, false)),
                    Column::new("cdp_mean_low", estimate(|e| e.low, None, false)),
                    Column::new("cdp_mean_high", estimate(|e| e.high, None, false)),
                    Column::new("cdp_tail_1pct", estimate(|e| e.value, Some(0.01), false)),
                    Column::new("cdp_tail_low", estimate(|e| e.low, Some(0.01), false)),
                    Column::new("cdp_tail_high", estimate(|e| e.high, Some(0.01), false)),
                    Column::new("pi_mean", estimate(|e| e.value, None, true)),
                    Column::new("pi_mean_low", estimate(|e| e.low, None, true)),
                    Column::new("pi_mean_high", estimate(|e| e.high, None, true)),
                    Column::new("pi_tail_99_9pct", estimate(|e| e.value, Some(0.999), true)),
                    Column::new("pi_tail_low", estimate(|e| e.low, Some(0.999), true)),
                    Column::new("pi_tail_high", estimate(|e| e.high, Some(0.999), true)),
                ],
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Permutation;
    use crate::testing::{complete, cycle, graph, petersen};

    #[test]
    fn a_clique_has_all_its_paths_within_two_hops() {
        let report = report(&complete(12), &PathsConfig::default()).unwrap();
        let row = report.at_largest_length(Counting::Greedy).unwrap();
        assert_eq!((row.length, row.disjoint.mean().value), (2, 11.0));
        assert_eq!(row.interference.mean().value, 2.0);
        assert_eq!(report.minimal.mean().value, 1.0);
        let exact = report.at_largest_length(Counting::Exact).unwrap();
        assert_eq!(exact.disjoint, row.disjoint);
    }

    #[test]
    fn the_length_grows_until_three_disjoint_paths_exist() {
        let report = report(&petersen(), &PathsConfig::default()).unwrap();
        let lengths: Vec<u16> = report.diversity.iter().map(|row| row.length).collect();
        assert_eq!(lengths.first(), Some(&2));
        let last = report.diversity.last().unwrap();
        assert_eq!(last.disjoint.quantile(0.01).value, 3.0);
    }

    #[test]
    fn a_ring_never_has_three_and_the_search_ends() {
        let report = report(&cycle(6), &PathsConfig::default()).unwrap();
        assert_eq!(report.diversity.last().unwrap().length, 6);
        assert_eq!(report.diversity.last().unwrap().disjoint.mean().value, 2.0);
    }

    #[test]
    fn columns_of_a_table_are_equally_long() {
        let report = report(&petersen(), &PathsConfig::default()).unwrap();
        let tables = report.tables();
        assert_eq!(tables.iter().map(|t| t.name).collect::<Vec<_>>(), PathsReport::TABLES);
        for table in &tables {
            assert!(table.columns.iter().all(|column| column.values.len() == table.rows()), "{}", table.name);
        }
        assert_eq!(tables[1].cells()[2], ["1", "30", "0.3333"]);
    }

    #[test]
    fn networks_without_pairs_are_refused() {
        let error = report(&graph(1, vec![]), &PathsConfig::default()).unwrap_err();
        assert_eq!(error, ReportError::TooFewEndpoints(1));
        let apart = graph(4, vec![(0, 1), (2, 3)]);
        assert_eq!(report(&apart, &PathsConfig::default()).unwrap_err(), ReportError::Disconnected(8));
        assert!(report(&petersen(), &PathsConfig { samples: 0, ..Default::default() }).is_err());
    }

    #[test]
    fn collisions_of_several_patterns() {
        let patterns =
            [Pattern::Permutation(Permutation::default()), Pattern::Permutation(Permutation { count: 4 })];
        let histograms = collisions(&complete(20), &patterns, Placement::Random, 3);
        assert!((histograms[1].1.mean() / histograms[0].1.mean() - 4.0).abs() < 1e-9);
    }
}
