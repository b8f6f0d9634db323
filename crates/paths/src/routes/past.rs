//! PAST: one spanning tree per destination.

use netloom_topology::RouterGraph;
use netloom_units::random::Analysis;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SchemeError, check_layers};
use crate::link_set::LinkSet;
use crate::tables::ForwardingTables;

/// A spanning tree per destination address (Stephens et al., "PAST: scalable Ethernet for data centers", CoNEXT 2012;
/// FatPaths Listing 5). Hosts of one router have different trees: layer i holds the trees of each router's hosts
/// i, i + layers, …
///
/// PAST as published has as many layers as a router has hosts; fewer let hosts share trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Past {
    /// Number of trees per destination router.
    pub layers: u32,
    /// How a tree is built.
    pub tree: TreeKind,
}

/// How PAST builds a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TreeKind {
    /// Breadth-first from the destination, the first parent found; all layers are alike.
    BreadthFirst,
    /// Breadth-first, ties broken by chance (PAST-R).
    Random,
    /// Breadth-first, ties go to the parent with the fewest hosts below it over all trees so far (PAST-W).
    Weighted,
    /// Breadth-first from a random router, so that paths are non-minimal (NM-PAST).
    NonMinimal,
}

impl Default for Past {
    fn default() -> Self {
        Past { layers: 9, tree: TreeKind::Random }
    }
}

impl Past {
    pub(super) fn build(&self, graph: &RouterGraph, seed: u64) -> Result<ForwardingTables, SchemeError> {
        check_layers(graph, self.layers)?;
        let mut rng = Analysis::PastTrees.stream(seed);
        let mut below = vec![0u64; graph.routers() as usize];
        let links = vec![LinkSet::full(graph); self.layers as usize];
        Ok(ForwardingTables::from_trees(graph, links, |_, destination| {
            let root = match self.tree {
                TreeKind::NonMinimal => rng.random_range(0..graph.routers()),
                _ => destination,
            };
            let tree = self.tree(graph, root, &mut rng, &mut below);
            rerooted(graph, tree, destination)
        }))
    }

    /// The port of every router toward its parent in a tree, `None` at the root.
    fn tree(
        &self,
        graph: &RouterGraph,
        root: u32,
        rng: &mut Pcg64Mcg,
        below: &mut [u64],
    ) -> Vec<Option<u16>> {
        let routers = graph.routers() as usize;
        let mut parent: Vec<Option<u16>> = vec![None; routers];
        let mut hosts_below: Vec<u64> = (0..graph.routers()).map(|r| u64::from(graph.hosts(r))).collect();
        let distance = crate::distance::distances_from(graph, &[root], u16::MAX);
        let mut order: Vec<u32> = (0..graph.routers()).collect();
        if self.tree == TreeKind::Weighted {
            // The deepest routers choose first, so that a parent's own hosts below are known when it chooses.
            order.shuffle(rng);
            order.sort_by_key(|&router| std::cmp::Reverse(distance[router as usize]));
        }
        for router in order {
            let closer = |&&(_, neighbour): &&(u16, u32)| {
                u32::from(distance[neighbour as usize]) + 1 == u32::from(distance[router as usize])
            };
            let ports: Vec<(u16, u32)> = (0u16..).zip(graph.neighbours(router).iter().copied()).collect();
            let mut candidates = ports.iter().filter(closer);
            let chosen = match self.tree {
                TreeKind::BreadthFirst => candidates.next(),
                TreeKind::Weighted => {
                    candidates.min_by_key(|&&(_, n)| below[n as usize] + hosts_below[n as usize])
                }
                TreeKind::Random | TreeKind::NonMinimal => {
                    let all: Vec<_> = candidates.collect();
                    (!all.is_empty()).then(|| all[rng.random_range(0..all.len())])
                }
            };
            if let Some(&(port, neighbour)) = chosen {
                parent[router as usize] = Some(port);
                hosts_below[neighbour as usize] += hosts_below[router as usize];
            }
        }
        if self.tree == TreeKind::Weighted {
            below.iter_mut().zip(&hosts_below).for_each(|(sum, &hosts)| *sum += hosts);
        }
        parent
    }
}

/// Turns the links on the way from the destination to the root around, so that the tree leads to the destination.
fn rerooted(graph: &RouterGraph, mut tree: Vec<Option<u16>>, destination: u32) -> Vec<Option<u16>> {
    let mut here = destination;
    let mut turned = None;
    while let Some(port) = std::mem::replace(&mut tree[here as usize], turned) {
        let parent = graph.neighbours(here)[usize::from(port)];
        let edge = graph.edge_ids(here)[usize::from(port)];
        turned = graph.edge_ids(parent).iter().position(|&e| e == edge).map(|p| p as u16);
        here = parent;
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::DistanceDistribution;
    use crate::testing::{complete, petersen, random};

    fn past(tree: TreeKind) -> Past {
        Past { layers: 3, tree }
    }

    #[test]
    fn every_tree_reaches_every_router() {
        for tree in [TreeKind::BreadthFirst, TreeKind::Random, TreeKind::Weighted, TreeKind::NonMinimal] {
            for graph in [petersen(), complete(9), random(30, 40, 3)] {
                let reach = past(tree).build(&graph, 1).unwrap().validate(&graph).unwrap();
                assert!(reach.iter().all(|layer| layer.unreached == 0), "{tree:?}");
            }
        }
    }

    #[test]
    fn breadth_first_trees_are_minimal_and_non_minimal_ones_longer() {
        let graph = random(40, 60, 1);
        let minimal = DistanceDistribution::measure(&graph).mean();
        for tree in [TreeKind::BreadthFirst, TreeKind::Random, TreeKind::Weighted] {
            let reach = past(tree).build(&graph, 1).unwrap().validate(&graph).unwrap();
            assert!(reach.iter().all(|layer| (layer.mean_hops() - minimal).abs() < 1e-9));
        }
        let reach = past(TreeKind::NonMinimal).build(&graph, 1).unwrap().validate(&graph).unwrap();
        assert!(reach.iter().all(|layer| layer.mean_hops() > 1.1 * minimal));
    }

    #[test]
    fn the_paths_to_one_destination_form_a_tree() {
        let graph = random(30, 60, 2);
        let tables = past(TreeKind::NonMinimal).build(&graph, 5).unwrap();
        for destination in 0..30 {
            let mut links = LinkSet::empty(&graph);
            for source in (0..30).filter(|&s| s != destination) {
                let path = tables.path(&graph, 0, source, destination).unwrap();
                path.iter().for_each(|&directed| links.insert(directed / 2));
            }
            assert_eq!(links.len(), 29);
        }
    }

    #[test]
    fn weights_spread_the_trees() {
        // Two leaves' worth of ties: eight leaves, four spines.
        let edges = (0..8).flat_map(|leaf| (8..12).map(move |spine| (leaf, spine))).collect();
        let mut hosts = vec![4; 8];
        hosts.resize(12, 0);
        let graph = RouterGraph::new(hosts, edges);
        let busiest_spine = |tree| {
            let tables = Past { layers: 1, tree }.build(&graph, 1).unwrap();
            let mut load = vec![0; 12];
            for (from, to) in (0..8).flat_map(|s| (0..8).map(move |t| (s, t))).filter(|(s, t)| s != t) {
                let first = tables.path(&graph, 0, from, to).unwrap()[0];
                load[crate::tables::head(&graph, first) as usize] += 1;
            }
            load.into_iter().max().unwrap()
        };
        // 56 paths over four spines: 14 each at best.
        assert_eq!(busiest_spine(TreeKind::BreadthFirst), 56);
        assert!(busiest_spine(TreeKind::Weighted) <= 16);
    }
}
