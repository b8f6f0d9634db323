//! What the layers of a scheme give a router pair, and how many layers schemes need.

use netloom_paths::distance::endpoints;
use netloom_paths::routes::{RandomLayers, Spain};
use netloom_paths::sample::{Distribution, pairs};
use netloom_paths::{Routes, Scheme};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Quantities, named};
use crate::analysis::Subject;

/// The paths that layers give a random router pair. Quantities: `disjoint_mean` (edge-disjoint paths among a pair's layer paths),
/// `share_three` (share of pairs with at least three), `hops_mean`, `hops_longest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LayerPaths {
    /// The scheme whose layers are measured.
    pub scheme: Scheme,
    /// Router pairs sampled.
    pub samples: u32,
}

impl Default for LayerPaths {
    fn default() -> Self {
        LayerPaths { scheme: Scheme::RandomLayers(RandomLayers::default()), samples: 5000 }
    }
}

impl LayerPaths {
    pub(super) fn take(&self, subject: &Subject, seed: u64) -> Result<Quantities, String> {
        let graph = &subject.graph;
        let routes = self.scheme.build(graph, seed).map_err(|error| error.to_string())?;
        let sample = pairs(&endpoints(graph), self.samples as usize, seed);
        let mut disjoint = Vec::new();
        let mut hops = Vec::new();
        for &[from, to] in &sample.routers {
            let paths = routes.paths(graph, from, to);
            disjoint.push(most_disjoint(&paths) as f64);
            match &routes {
                // Layers with the same path count each.
                Routes::Tables(tables) => hops.extend(
                    (0..tables.layers())
                        .filter_map(|layer| tables.path(graph, layer, from, to))
                        .map(|path| path.len() as f64),
                ),
                Routes::PerPair(_) => hops.extend(paths.iter().map(|path| path.len() as f64)),
            }
        }
        let disjoint = Distribution::new(disjoint, sample.exhaustive);
        let hops = Distribution::new(hops, sample.exhaustive);
        Ok(named([
            ("disjoint_mean", disjoint.mean().value),
            ("share_three", disjoint.share(|paths| paths >= 3.0)),
            ("hops_mean", hops.mean().value),
            ("hops_longest", hops.quantile(1.0).value),
        ]))
    }
}

/// The most paths of a list that are pairwise edge-disjoint, by trying each path with and without. Exponential in the worst
/// case; the lists are as long as there are layers.
fn most_disjoint(paths: &[Vec<u32>]) -> usize {
    let Some((first, rest)) = paths.split_first() else { return 0 };
    let compatible: Vec<Vec<u32>> =
        rest.iter().filter(|path| path.iter().all(|edge| !first.contains(edge))).cloned().collect();
    let with = 1 + most_disjoint(&compatible);
    // Without the first path, one that conflicts with it must be taken instead.
    if compatible.len() == rest.len() { with } else { with.max(most_disjoint(rest)) }
}

/// How many layers each scheme needs. Quantities: `spain` (forests after merging), `spain_trees` (before), `past` (one tree per
/// host), `fatpaths` (9, whatever the network), `half_radix` (k'/2: forests needed to cover all links), `routers`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LayerCounts {
    /// Paths per pair of SPAIN.
    pub paths: u32,
}

impl Default for LayerCounts {
    fn default() -> Self {
        LayerCounts { paths: 3 }
    }
}

impl LayerCounts {
    pub(super) fn take(&self, subject: &Subject, seed: u64) -> Result<Quantities, String> {
        let graph = &subject.graph;
        let spain = Spain { paths: self.paths, layers: None };
        let forests = spain.forests(graph, seed).map_err(|error| error.to_string())?;
        let radix = endpoints(graph).iter().map(|&r| graph.neighbours(r).len()).max().unwrap_or(0);
        Ok(named([
            ("spain", forests.forests.len() as f64),
            ("spain_trees", forests.trees as f64),
            ("past", (0..graph.routers()).map(|r| f64::from(graph.hosts(r))).sum()),
            ("fatpaths", f64::from(RandomLayers::default().layers)),
            ("half_radix", radix as f64 / 2.0),
            ("routers", f64::from(graph.routers())),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_disjoint_paths_are_found() {
        assert_eq!(most_disjoint(&[]), 0);
        // The first path blocks both others.
        assert_eq!(most_disjoint(&[vec![1, 2], vec![1, 3], vec![2, 4]]), 2);
        assert_eq!(most_disjoint(&[vec![1], vec![2], vec![3]]), 3);
        assert_eq!(most_disjoint(&[vec![1, 2], vec![2, 3], vec![3, 1]]), 1);
    }
}
