//! SPAIN: forests merged from the disjoint paths toward every destination.

mod merge;
mod toward;

use std::cmp::Reverse;

use netloom_topology::RouterGraph;
use netloom_units::Invalid;
use netloom_units::random::Analysis;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::merge::{Tree, merge};
use self::toward::Toward;
use super::{SchemeError, check_layers, check_size};
use crate::distance::endpoints;
use crate::link_set::LinkSet;
use crate::tables::ForwardingTables;

/// Spanning forests, one per VLAN (Mudigonda et al., "SPAIN: COTS data-center Ethernet for multipathing over arbitrary
/// topologies", NSDI 2010; FatPaths Listing 4). For each destination a few paths per source, disjoint where possible, are
/// coloured into in-trees; the trees of all destinations are merged, in random order, while their union has no cycle.
///
/// The number of forests follows from the network. The listing also counts the whole network as a first layer, which
/// spanning-tree Ethernet cannot have; it is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Spain {
    /// Paths per ordered pair of routers with hosts that the forests are made of. All pairs together may have at most 33,554,432.
    pub paths: u32,
    /// How many forests are used: those with the most links. All by default.
    pub layers: Option<u32>,
}

impl Default for Spain {
    fn default() -> Self {
        Spain { paths: 3, layers: None }
    }
}

/// The most paths that are looked for: each takes one to two microseconds.
const MOST_PATHS: u64 = 1 << 25;

/// What SPAIN's construction gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpainForests {
    /// The merged forests, those with the most links first.
    pub forests: Vec<LinkSet>,
    /// How many in-trees they were merged from.
    pub trees: usize,
}

impl Spain {
    pub(super) fn build(&self, graph: &RouterGraph, seed: u64) -> Result<ForwardingTables, SchemeError> {
        self.check(graph)?;
        let forests = match self.layers {
            Some(layers) => {
                check_layers(graph, layers)?;
                largest(graph, merge(graph, self.trees(graph, seed)), layers as usize)
            }
            None => {
                let mut all = Vec::new();
                for forest in merge(graph, self.trees(graph, seed)) {
                    all.push(forest);
                    check_size(graph, all.len() as u64).map_err(|_| too_many(graph, all.len()))?;
                }
                by_links(all)
            }
        };
        Ok(ForwardingTables::minimal(graph, forests, seed))
    }

    /// Builds all forests.
    ///
    /// # Errors
    /// If no paths are asked for, or too many.
    pub fn forests(&self, graph: &RouterGraph, seed: u64) -> Result<SpainForests, SchemeError> {
        self.check(graph)?;
        let trees = self.trees(graph, seed);
        Ok(SpainForests { trees: trees.len(), forests: by_links(merge(graph, trees).collect()) })
    }

    /// The in-trees of all destinations in the order in which they are merged.
    fn trees(&self, graph: &RouterGraph, seed: u64) -> Vec<Tree> {
        let ends = endpoints(graph);
        let mut trees: Vec<Tree> = ends
            .par_iter()
            .flat_map_iter(|&destination| {
                let rng = Analysis::SpainPaths(destination).stream(seed);
                let trees = Toward::new(graph, destination, rng).in_trees(&ends, self.paths);
                trees.into_iter().map(|edges| Tree::new(graph, edges))
            })
            .collect();
        trees.shuffle(&mut Analysis::SpainMerging.stream(seed));
        trees
    }

    /// Refuses what would take minutes.
    fn check(&self, graph: &RouterGraph) -> Result<(), Invalid> {
        Invalid::at_least("paths", self.paths, 1)?;
        let ends = endpoints(graph).len() as u64;
        match MOST_PATHS / (ends * ends).max(1) {
            0 => {
                let most = MOST_PATHS.isqrt();
                let expected = format!(
                    "a network of at most {most} routers with hosts, as a path to each from each is looked for"
                );
                Err(Invalid::new("kind", expected, format!("\"spain\" on one of {ends}")))
            }
            most => {
                let expected = format!("1 to {most} for {ends} routers with hosts, {MOST_PATHS} in all");
                Invalid::unless(u64::from(self.paths) <= most, "paths", expected, self.paths)
            }
        }
    }
}

/// Why all forests are not taken, which are this many or more.
fn too_many(graph: &RouterGraph, forests: usize) -> SchemeError {
    let (fit, routers) = (forests - 1, graph.routers());
    let expected = format!(
        "at most {fit}, whose tables fit in memory: this network of {routers} routers has more forests"
    );
    SchemeError::Parameter(Invalid::new("layers", expected, "none, which takes all"))
}

/// Forests in the order of their links, most first.
fn by_links(mut forests: Vec<(usize, LinkSet)>) -> Vec<LinkSet> {
    forests.sort_by_key(|&(count, _)| Reverse(count));
    forests.into_iter().map(|(_, links)| links).collect()
}

/// The first this many of [`by_links`]. No forest comes before one that joins all routers but those that do so and are made earlier, so the others need not be
/// made once there are enough of these.
fn largest(
    graph: &RouterGraph,
    forests: impl Iterator<Item = (usize, LinkSet)>,
    wanted: usize,
) -> Vec<LinkSet> {
    let (mut kept, mut spanning) = (Vec::new(), 0);
    for (count, links) in forests {
        spanning += usize::from(count + 1 == graph.routers() as usize);
        kept.push((count, links));
        if spanning == wanted {
            break;
        }
    }
    let mut largest = by_links(kept);
    largest.truncate(wanted);
    largest
}

#[cfg(test)]
mod tests;
