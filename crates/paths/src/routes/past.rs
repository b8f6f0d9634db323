//! PAST: one spanning tree per destination.

use std::sync::Arc;

use netloom_topology::RouterGraph;
use netloom_units::{narrow, random::Analysis};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_pcg::Pcg64Mcg;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SchemeError, check_layers};
use crate::distance::{UNREACHABLE, distances_from};
use crate::link_set::LinkSet;
use crate::tables::{ForwardingTables, NO_PORT, Paths, Trees};

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
    pub(crate) fn build(&self, graph: &RouterGraph, seed: u64) -> Result<ForwardingTables, SchemeError> {
        check_layers(graph, self.layers)?;
        let links = vec![LinkSet::full(graph); self.layers as usize];
        Ok(ForwardingTables::from_trees(graph, links, self.trees(graph, seed)))
    }

    /// What it takes to grow the trees of a connected graph.
    fn trees(&self, graph: &RouterGraph, seed: u64) -> Trees {
        let routers = graph.routers() as usize;
        let count = self.layers as usize * routers;
        let destination = move |tree: usize| narrow::<u32>(tree % routers);
        let mut rng = Analysis::PastTrees.stream(seed);
        let own = Arc::new(graph.clone());
        let minimal = Paths::minimal(Arc::clone(&own));
        match self.tree {
            TreeKind::BreadthFirst => {
                Trees::alone(count, minimal, move |tree| grow(&own, destination(tree), |ports| ports[0].0))
            }
            TreeKind::Random => {
                let starts = starts(graph, &mut rng, (0..count).map(destination), false);
                Trees::alone(count, minimal, move |tree| {
                    let mut rng = starts[tree].rng.clone();
                    grow(&own, destination(tree), |ports| one_of(ports, &mut rng))
                })
            }
            TreeKind::NonMinimal => {
                let starts = starts(graph, &mut rng, (0..count).map(destination), true);
                let roots = starts.iter().map(|start| start.root).collect();
                Trees::alone(count, Paths::OverRoot(Arc::clone(&own), roots), move |tree| {
                    let Start { root, mut rng } = starts[tree].clone();
                    let mut ports = grow(&own, root, |ports| one_of(ports, &mut rng));
                    reroot(&own, &mut ports, destination(tree));
                    ports
                })
            }
            TreeKind::Weighted => {
                let mut below = vec![0; routers];
                Trees::in_turn(minimal, move |tree| {
                    grow_weighted(&own, destination(tree), &mut rng, &mut below)
                })
            }
        }
    }
}

/// How the growth of a tree with random ties begins.
#[derive(Clone)]
struct Start {
    root: u32,
    rng: Pcg64Mcg,
}

/// Where trees with random ties begin, of which each goes on with the random numbers where the one before ended.
///
/// Every router but the root takes one number, so the trees themselves need not grow to know where the next one begins. A few numbers in a billion may
/// make a draw take another one; a tree that meets such a number is grown to see.
fn starts(
    graph: &RouterGraph,
    rng: &mut Pcg64Mcg,
    destinations: impl Iterator<Item = u32>,
    is_elsewhere: bool,
) -> Vec<Start> {
    let retries = Retries::new((0..graph.routers()).map(|router| graph.neighbours(router).len()).max());
    let start = |destination| {
        let root = if is_elsewhere { rng.random_range(0..graph.routers()) } else { destination };
        let start = Start { root, rng: rng.clone() };
        match retries.may_follow_any(rng, graph.routers() - 1) {
            true => drop(grow(graph, root, |ports| one_of(ports, rng))),
            false => rng.advance(u128::from(graph.routers()) - 1),
        }
        start
    };
    destinations.map(start).collect()
}

/// The random numbers after which a draw among some things takes another one: [`RngExt::random_range`] scales a number of 32 bits to their count, and where
/// the bits that are cut off come close to the next whole, further ones decide.
struct Retries {
    most: u32,
    /// A bit for every range of numbers with such a one, for counts up to the most.
    ranges: Vec<u64>,
    /// How far to shift a number to know its range.
    shift: u32,
}

impl Retries {
    #[expect(clippy::cast_possible_truncation, reason = "`nth` is below `count`")]
    fn new(most: Option<usize>) -> Self {
        let most = narrow::<u32>(most.unwrap_or(0).max(1));
        // Enough of them for few to have one.
        let bits = (2 * most.ilog2() + 8).min(26);
        let mut retries = Retries { most, ranges: vec![0; 1 << (bits - 6)], shift: u32::BITS - bits };
        for (count, nth) in (2..=u64::from(most)).flat_map(|count| (1..count).map(move |nth| (count, nth))) {
            let range = ((nth << 32) / count) as u32 >> retries.shift;
            retries.ranges[range as usize / 64] |= 1 << (range % 64);
        }
        retries
    }

    /// Whether a draw that meets one of this many numbers to come may take another one.
    fn may_follow_any(&self, rng: &Pcg64Mcg, numbers: u32) -> bool {
        // In ranges side by side, as each number waits for the one before it.
        let (quarter, rest) = (numbers / 4, numbers % 4);
        let mut lanes: [Pcg64Mcg; 4] = std::array::from_fn(|lane| {
            let mut rng = rng.clone();
            rng.advance((lane as u128) * u128::from(quarter));
            rng
        });
        let mut any = false;
        for _ in 0..quarter {
            let numbers = lanes.each_mut().map(|rng| rng.next_u32());
            any |= numbers.iter().any(|&number| self.may_follow(number));
        }
        any || (0..rest).any(|_| self.may_follow(lanes[3].next_u32()))
    }

    /// Whether a draw that meets this number may take another one.
    #[inline]
    fn may_follow(&self, number: u32) -> bool {
        let range = number >> self.shift;
        self.ranges[range as usize / 64] >> (range % 64) & 1 == 1
            && (2..=self.most).any(|count| number.wrapping_mul(count) > count.wrapping_neg())
    }
}

/// A breadth-first tree, as the port of every router toward its parent. `choose` is asked in the order of routers, for all ports and neighbours that are nearer to
/// the root.
fn grow(graph: &RouterGraph, root: u32, mut choose: impl FnMut(&[(u16, u32)]) -> u16) -> Vec<u16> {
    let distance = distances_from(graph, &[root], UNREACHABLE);
    let mut nearer = Vec::new();
    let mut parent = |router| {
        nearer.clear();
        nearer.extend(nearer_ports(graph, &distance, router));
        if nearer.is_empty() { NO_PORT } else { choose(&nearer) }
    };
    (0..graph.routers()).map(&mut parent).collect()
}

/// The ports by which a router comes nearer to where distances are measured from, and the neighbours.
fn nearer_ports<'a>(
    graph: &'a RouterGraph,
    distance: &'a [u16],
    router: u32,
) -> impl Iterator<Item = (u16, u32)> + 'a {
    // At the root this is no distance.
    let wanted = distance[router as usize].wrapping_sub(1);
    let neighbours = (0u16..).zip(graph.neighbours(router).iter().copied());
    neighbours.filter(move |&(_, neighbour)| distance[neighbour as usize] == wanted && wanted != UNREACHABLE)
}

fn one_of(ports: &[(u16, u32)], rng: &mut Pcg64Mcg) -> u16 {
    ports[rng.random_range(0..ports.len())].0
}

/// A breadth-first tree whose ties go to the parents with the fewest hosts below them, in it and in all trees before, which are summed up.
fn grow_weighted(graph: &RouterGraph, root: u32, rng: &mut Pcg64Mcg, below: &mut [u64]) -> Vec<u16> {
    let distance = distances_from(graph, &[root], UNREACHABLE);
    // The deepest routers choose first, so that a parent's own hosts below are known when it chooses.
    let mut order: Vec<u32> = (0..graph.routers()).collect();
    order.shuffle(rng);
    order.sort_by_key(|&router| std::cmp::Reverse(distance[router as usize]));
    let mut hosts_below: Vec<u64> = (0..graph.routers()).map(|r| u64::from(graph.hosts(r))).collect();
    let mut parent = vec![NO_PORT; order.len()];
    for router in order {
        let weight = |&(_, parent): &(u16, u32)| below[parent as usize] + hosts_below[parent as usize];
        if let Some((port, neighbour)) = nearer_ports(graph, &distance, router).min_by_key(weight) {
            parent[router as usize] = port;
            hosts_below[neighbour as usize] += hosts_below[router as usize];
        }
    }
    below.iter_mut().zip(&hosts_below).for_each(|(sum, &hosts)| *sum += hosts);
    parent
}

/// Turns the links on the way from the destination to the root around, so that the tree leads to the destination.
fn reroot(graph: &RouterGraph, tree: &mut [u16], destination: u32) {
    let mut here = destination;
    let mut turned = NO_PORT;
    loop {
        let port = std::mem::replace(&mut tree[here as usize], turned);
        if port == NO_PORT {
            break;
        }
        let parent = graph.neighbours(here)[usize::from(port)];
        let edge = graph.edge_ids(here)[usize::from(port)];
        let back = graph.edge_ids(parent).iter().position(|&e| e == edge);
        turned = narrow::<u16>(back.expect("a link has two ends"));
        here = parent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::DistanceDistribution;
    use crate::testing::{complete, entries, graph, petersen, random};
    use proptest::prelude::*;
    use rand::SeedableRng;

    const KINDS: [TreeKind; 4] =
        [TreeKind::BreadthFirst, TreeKind::Random, TreeKind::Weighted, TreeKind::NonMinimal];

    fn past(tree: TreeKind) -> Past {
        Past { layers: 3, tree }
    }

    /// All trees, one after the other with one stream of random numbers: the parents of routers.
    fn plain(config: &Past, graph: &RouterGraph, seed: u64) -> Vec<Option<u16>> {
        let routers = graph.routers();
        let mut rng = Analysis::PastTrees.stream(seed);
        let mut below = vec![0u64; routers as usize];
        let mut entries = vec![None; (config.layers * routers * routers) as usize];
        for (layer, to) in (0..config.layers).flat_map(|layer| (0..routers).map(move |to| (layer, to))) {
            let root = if config.tree == TreeKind::NonMinimal { rng.random_range(0..routers) } else { to };
            let hops = distances_from(graph, &[root], UNREACHABLE);
            let mut hosts: Vec<u64> = (0..routers).map(|router| graph.hosts(router).into()).collect();
            let mut order: Vec<u32> = (0..routers).collect();
            if config.tree == TreeKind::Weighted {
                order.shuffle(&mut rng);
                order.sort_by_key(|&router| std::cmp::Reverse(hops[router as usize]));
            }
            let mut parents: Vec<Option<u32>> = vec![None; routers as usize];
            for router in order.into_iter().filter(|&router| router != root) {
                let all = graph.neighbours(router).iter().copied();
                let nearer: Vec<u32> =
                    all.filter(|&parent| hops[parent as usize] + 1 == hops[router as usize]).collect();
                let weight = |parent: &&u32| below[**parent as usize] + hosts[**parent as usize];
                let parent = match config.tree {
                    TreeKind::BreadthFirst => nearer[0],
                    TreeKind::Weighted => *nearer.iter().min_by_key(weight).unwrap(),
                    TreeKind::Random | TreeKind::NonMinimal => nearer[rng.random_range(0..nearer.len())],
                };
                parents[router as usize] = Some(parent);
                hosts[parent as usize] += hosts[router as usize];
            }
            below.iter_mut().zip(&hosts).for_each(|(sum, hosts)| *sum += hosts);
            // Where the destination is not the root, the way from it to the root is turned around.
            let (mut here, mut child) = (to, None);
            while let Some(parent) = std::mem::replace(&mut parents[here as usize], child) {
                (here, child) = (parent, Some(here));
            }
            for here in 0..routers {
                let port = parents[here as usize]
                    .map(|parent| graph.neighbours(here).iter().position(|&n| n == parent).unwrap() as u16);
                entries[((layer * routers + here) * routers + to) as usize] = port;
            }
        }
        entries
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// In whatever order trees are asked for, by one thread or by four at once.
        #[test]
        fn trees_are_those_that_grow_one_after_the_other(
            routers in 2u32..60, chords in 0usize..150, seed in any::<u64>(), kind in 0usize..4,
            order in prop::collection::vec((0u32..3, 0u32..60, 0u32..60), 0..20), threads in 1..=4,
        ) {
            let graph = random(routers, chords, seed);
            let config = past(KINDS[kind]);
            let expected = plain(&config, &graph, seed);
            let tables = config.build(&graph, seed).unwrap();
            if let Some(diameter) = tables.diameter(2) {
                let reach = config.build(&graph, seed).unwrap().validate(&graph).unwrap();
                prop_assert_eq!((diameter.hops, diameter.is_connected), (reach[2].longest(), true));
            }
            for (layer, here, to) in order.into_iter().map(|(layer, here, to)| (layer, here % routers, to % routers)) {
                let place = ((layer * routers + here) * routers + to) as usize;
                prop_assert_eq!(tables.next_port(layer, here, to), expected[place]);
            }
            let all = || entries(&tables) == expected;
            std::thread::scope(|scope| {
                let asking: Vec<_> = (0..threads).map(|_| scope.spawn(all)).collect();
                asking.into_iter().for_each(|thread| assert!(thread.join().unwrap()));
            });
        }

        /// Numbers beside those whose part that is cut off is the largest.
        #[test]
        fn a_draw_takes_another_number_only_after_those_that_are_known_for_it(
            most in 2u32..300, count in any::<u32>(), nth in any::<u32>(), beside in -3i64..=3,
        ) {
            struct Counted(u32, u32);
            impl rand::rand_core::TryRng for Counted {
                type Error = std::convert::Infallible;
                fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
                    self.1 += 1;
                    Ok(if self.1 == 1 { self.0 } else { 1 << 31 })
                }
                fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
                    unreachable!("32 bits are enough")
                }
                fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> {
                    unreachable!("32 bits are enough")
                }
            }
            let retries = Retries::new(Some(most as usize));
            let count = 2 + count % (most - 1);
            let number = (i64::from(nth % count) << 32) / i64::from(count) + beside;
            let number = number.rem_euclid(1 << 32) as u32;
            let takes = |count: u32| {
                let mut numbers = Counted(number, 0);
                assert!(numbers.random_range(0..count as usize) < count as usize);
                numbers.1
            };
            prop_assert_eq!(retries.may_follow(number), (1..=most).any(|count| takes(count) > 1));
        }
    }

    #[test]
    fn a_tree_whose_draw_takes_another_number_moves_all_after_it() {
        // Three leaves, 61 spines: one leaf comes nearer to another over any spine.
        let graph = graph(64, (0..3).flat_map(|leaf| (3..64).map(move |spine| (leaf, spine))).collect());
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let first = loop {
            let before = rng.clone();
            if rng.next_u32().wrapping_mul(61) > 61u32.wrapping_neg() {
                break before;
            }
        };
        let retries = Retries::new(Some(61));
        for numbers in 0..70 {
            let mut rng = first.clone();
            rng.advance((1 << 126) - 40);
            assert_eq!(retries.may_follow_any(&rng, numbers), numbers > 40);
        }
        let mut plain = first.clone();
        for (destination, start) in (0..).zip(starts(&graph, &mut first.clone(), 0..9, false)) {
            assert_eq!((start.root, &start.rng), (destination, &plain));
            grow(&graph, destination, |ports| one_of(ports, &mut plain));
        }
        let mut straight = first;
        straight.advance(9 * 63);
        assert_ne!(straight, plain);
        straight.advance(1);
        assert_eq!(straight, plain);
    }

    #[test]
    fn every_tree_reaches_every_router() {
        for tree in KINDS {
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
