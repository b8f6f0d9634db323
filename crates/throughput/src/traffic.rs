//! The traffic a network is asked to carry.

use std::path::{Path, PathBuf};

use netloom_paths::pattern::{
    Adversarial, OffDiagonal, Pattern, Permutation, Placement, Shuffle, Stencil, Uniform,
};
use netloom_topology::{RouterGraph, longest_matching};
use netloom_units::{Invalid, kinds, memory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::demand::Demand;
use crate::solve::ThroughputError;

/// Worst-case traffic: routers are matched so that the sum of distances is largest, and the hosts of matched
/// routers exchange traffic pairwise in both directions (Jyothi et al., SC 2016; FatPaths sec. VI). Many matchings are equally long, and
/// some carry twice as much as others: `draws` tries several and keeps the one that carries least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorstCase {
    /// Share of the routers that communicate, 0 to 1 (FatPaths Fig. 9: 0.55).
    pub intensity: f64,
    /// Longest matchings drawn, 1 to 1000; the one with the least throughput counts.
    pub draws: u32,
}

impl Default for WorstCase {
    fn default() -> Self {
        WorstCase { intensity: 0.55, draws: 1 }
    }
}

/// Every host sends to every other host, one link's worth of traffic in total; also the mean of uniform traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AllToAll {}

/// Demands between routers from a text file: one `from to amount` per line, routers numbered from 0, amounts in units
/// of a link's rate; empty lines and lines that begin with `#` are skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FromFile {
    /// The file, relative to the scenario's folder.
    pub path: PathBuf,
}

kinds! {
    /// The traffic a network is asked to carry.
    pub enum Traffic: "traffic" {
        "worst-case" => WorstCase(WorstCase),
        "permutation" => Permutation(Permutation),
        "uniform" => Uniform(Uniform),
        "off-diagonal" => OffDiagonal(OffDiagonal),
        "shuffle" => Shuffle(Shuffle),
        "stencil" => Stencil(Stencil),
        "adversarial" => Adversarial(Adversarial),
        "all-to-all" => AllToAll(AllToAll),
        "file" => FromFile(FromFile),
    }
}

impl Traffic {
    /// The demands between routers; of several that worst-case traffic draws, the first. Traffic between hosts of one router is left out.
    ///
    /// # Errors
    /// If a parameter is out of its range or the file cannot be read.
    pub fn demand(
        &self,
        graph: &RouterGraph,
        placement: Placement,
        base_dir: &Path,
        seed: u64,
    ) -> Result<Demand, ThroughputError> {
        let flows = |pattern: Pattern| {
            let flows = pattern.router_flows(graph, placement, seed);
            Ok(Demand::new(flows.into_iter().map(|(from, to)| (from, to, 1.0))))
        };
        match self {
            Traffic::WorstCase(config) => config.demand(graph, seed, 0),
            Traffic::Permutation(config) => flows(Pattern::Permutation(config.clone())),
            Traffic::Uniform(config) => flows(Pattern::Uniform(config.clone())),
            Traffic::OffDiagonal(config) => flows(Pattern::OffDiagonal(config.clone())),
            Traffic::Shuffle(config) => flows(Pattern::Shuffle(config.clone())),
            Traffic::Stencil(config) => flows(Pattern::Stencil(config.clone())),
            Traffic::Adversarial(config) => flows(Pattern::Adversarial(config.clone())),
            Traffic::AllToAll(_) => {
                let hosts: Vec<(u32, f64)> =
                    (0..graph.routers()).map(|r| (r, f64::from(graph.hosts(r)))).collect();
                let others = hosts.iter().map(|&(_, count)| count).sum::<f64>() - 1.0;
                let pairs = hosts.iter().flat_map(|&s| hosts.iter().map(move |&t| (s, t)));
                Ok(Demand::new(pairs.map(|((s, p), (t, q))| (s, t, p * q / others))))
            }
            Traffic::FromFile(config) => config.demand(graph, base_dir),
        }
    }
}

impl WorstCase {
    /// The demands of one of the draws.
    pub(crate) fn demand(
        &self,
        graph: &RouterGraph,
        seed: u64,
        draw: u32,
    ) -> Result<Demand, ThroughputError> {
        let valid = self.intensity > 0.0 && self.intensity <= 1.0;
        Invalid::unless(valid, "intensity", "0 < intensity <= 1", self.intensity)?;
        Invalid::unless((1..=1000).contains(&self.draws), "draws", "1 to 1000", self.draws)?;
        let pairs = longest_matching(graph, self.intensity, seed, draw).pairs;
        Ok(Demand::new(pairs.into_iter().flat_map(|(a, b)| {
            let hosts = f64::from(graph.hosts(a).min(graph.hosts(b)));
            [(a, b, hosts), (b, a, hosts)]
        })))
    }
}

impl FromFile {
    fn demand(&self, graph: &RouterGraph, base_dir: &Path) -> Result<Demand, ThroughputError> {
        let path = base_dir.join(&self.path);
        // The text and its demands.
        let text = memory::read_text(&path, 8)
            .map_err(|error| ThroughputError::File { path: path.clone(), reason: error.to_string() })?;
        let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
        let demands: Result<Vec<_>, _> = lines
            .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
            .map(|(line, number)| {
                parse(line, graph.routers()).ok_or_else(|| ThroughputError::File {
                    path: path.clone(),
                    reason: format!(
                        "line {number}: expected two routers below {} and a positive amount, found \"{line}\"",
                        graph.routers()
                    ),
                })
            })
            .collect();
        Ok(Demand::new(demands?))
    }
}

fn parse(line: &str, routers: u32) -> Option<(u32, u32, f64)> {
    let mut words = line.split_whitespace();
    let from = words.next()?.parse().ok().filter(|&router| router < routers)?;
    let to = words.next()?.parse().ok().filter(|&router| router < routers)?;
    let amount = words.next()?.parse().ok().filter(|&amount: &f64| amount > 0.0 && amount.is_finite())?;
    words.next().is_none().then_some((from, to, amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square() -> RouterGraph {
        RouterGraph::new(vec![3; 4], vec![(0, 1), (1, 2), (2, 3), (3, 0)])
    }

    fn demand(traffic: Traffic) -> Result<Demand, ThroughputError> {
        traffic.demand(&square(), Placement::Identity, Path::new("."), 1)
    }

    #[test]
    fn worst_case_traffic_runs_between_opposite_corners() {
        let demand = demand(Traffic::WorstCase(WorstCase { intensity: 1.0, draws: 1 })).unwrap();
        assert_eq!(demand.total(), 12.0);
        assert!(demand.commodities().iter().all(|c| c.from.abs_diff(c.to) == 2));
        for wrong in [WorstCase { intensity: 0.0, draws: 1 }, WorstCase { intensity: 1.0, draws: 0 }] {
            assert!(wrong.demand(&square(), 1, 0).is_err());
        }
    }

    #[test]
    fn all_to_all_sends_one_unit_per_host_less_what_stays_at_the_router() {
        let demand = demand(Traffic::AllToAll(AllToAll {})).unwrap();
        assert_eq!(demand.commodities().len(), 12);
        assert!((demand.total() - 12.0 * 9.0 / 11.0).abs() < 1e-12);
    }

    #[test]
    fn demands_are_read_from_a_file_and_mistakes_located() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(folder.path().join("demands"), text).unwrap();
            let traffic = Traffic::FromFile(FromFile { path: "demands".into() });
            traffic.demand(&square(), Placement::Identity, folder.path(), 1)
        };
        assert_eq!(read("# comment\n\n0 2 1.5\n 2 0 1\n").unwrap().total(), 2.5);
        for wrong in ["0 9 1", "0 1", "0 1 -2", "0 1 2 3", "a b c"] {
            let error = read(&format!("0 1 1\n{wrong}")).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(wrong), "{error}");
        }
        assert!(demand(Traffic::FromFile(FromFile { path: "nowhere".into() })).is_err());
    }
}
