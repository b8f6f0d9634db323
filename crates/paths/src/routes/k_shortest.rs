//! k shortest loop-free paths per router pair.

use netloom_units::Invalid;
use netloom_units::random::Analysis;
use std::collections::BTreeSet;

use netloom_topology::RouterGraph;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SchemeError;
use crate::distance::{UNREACHABLE, distances_from};
use crate::tables::{directed_edge, head};

/// The k shortest loop-free paths of every router pair (J. Y. Yen, 1971; used for Jellyfish with k = 8). Each flow takes one of them.
/// FatPaths does not say which k it compares with.
///
/// In a simulation packets carry the number of their path, and ACKs keep to minimal paths. Where routes have changed under a packet, it
/// continues on a minimal path. At the NIC only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KShortest {
    /// Paths per pair.
    pub k: u32,
    /// Which of several equally long paths are taken.
    pub ties: Ties,
}

/// Which of several equally long paths are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// At random, pair by pair, so that the paths of different pairs are spread.
    Random,
    /// In ascending order of the routers on the path, as Yen's algorithm on a numbered graph finds them.
    Ascending,
}

impl Default for KShortest {
    fn default() -> Self {
        KShortest { k: 8, ties: Ties::Random }
    }
}

impl KShortest {
    /// The paths of any graph with this seed. Routers that are not connected have none.
    ///
    /// # Errors
    /// If `k` is 0.
    pub fn build(&self, seed: u64) -> Result<KShortestPaths, SchemeError> {
        Invalid::at_least("k", self.k, 1)?;
        Ok(KShortestPaths { k: self.k as usize, seed: (self.ties == Ties::Random).then_some(seed) })
    }
}

/// How many hops beyond the minimum the fast search goes before Yen's algorithm takes over.
const SLACK: u16 = 3;

/// The k shortest paths of any pair, computed when asked for; ties at the longest length are broken as configured, from the
/// seed and the pair alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KShortestPaths {
    k: usize,
    /// `None` leaves ties in ascending order.
    seed: Option<u64>,
}

impl KShortestPaths {
    /// Paths from one router to another as directed edges, by ascending length.
    pub fn paths(&self, graph: &RouterGraph, from: u32, to: u32) -> Vec<Vec<u32>> {
        self.paths_by(graph, &distances_from(graph, &[to], UNREACHABLE), from, to)
    }

    /// Whether a pair has no more paths than this many.
    pub fn are_at_most(&self, count: usize) -> bool {
        self.k <= count
    }

    /// Whether all paths of a pair surely have at most this many hops, by how many hops every router is from the destination. If they have, it mostly says so.
    pub fn are_within(&self, graph: &RouterGraph, distance: &[u16], from: u32, hops: u32) -> bool {
        let far = distance[from as usize];
        // Each link to a neighbour that is no farther from the destination begins a path of its own, which does not come back.
        let begins = |&&next: &&u32| {
            let left = distance[next as usize];
            left <= far && left != UNREACHABLE && u32::from(left) < hops
        };
        let is_short = || graph.neighbours(from).iter().filter(begins).take(self.k).count() == self.k;
        let enough = || {
            let mut count = Count { graph, distance, wanted: self.k, looks: LOOKS, visited: vec![from] };
            count.extend(from, hops);
            count.wanted == 0
        };
        is_short() || enough()
    }

    /// [`Self::paths`] where it is known how many hops every router is from the destination ([`distances_from`]), as for all pairs.
    ///
    /// Paths are enumerated length by length, depth first, never entering a router from which the destination is too far.
    /// This visits little beyond the paths themselves on the well-connected graphs at hand. Where few paths are
    /// short, Yen's algorithm finds the rest.
    pub fn paths_by(&self, graph: &RouterGraph, distance: &[u16], from: u32, to: u32) -> Vec<Vec<u32>> {
        let minimal = distance[from as usize];
        if from == to || minimal == UNREACHABLE {
            return Vec::new();
        }
        let mut search = Enumeration {
            graph,
            distance,
            wanted: self.k,
            rng: self.seed.map(|seed| Analysis::Paths(from, to).stream(seed)),
            visited: vec![from],
            path: Vec::new(),
            found: Vec::new(),
        };
        for length in minimal..=minimal.saturating_add(SLACK) {
            search.extend(from, length);
            if search.found.len() == self.k {
                return search.found;
            }
        }
        yen(graph, from, to, self.k)
    }
}

/// At how many neighbours is looked to count the short paths of a pair: a few microseconds.
const LOOKS: u32 = 4096;

/// Counts simple paths of some length at most, depth first.
struct Count<'a> {
    graph: &'a RouterGraph,
    distance: &'a [u16],
    /// How many more are to be found.
    wanted: usize,
    /// At how many more neighbours is looked.
    looks: u32,
    visited: Vec<u32>,
}

impl Count<'_> {
    fn extend(&mut self, here: u32, remaining: u32) {
        if self.distance[here as usize] == 0 {
            self.wanted -= 1;
            return;
        }
        for &neighbour in self.graph.neighbours(here) {
            if self.wanted == 0 || self.looks == 0 {
                return;
            }
            self.looks -= 1;
            if u32::from(self.distance[neighbour as usize]) < remaining && !self.visited.contains(&neighbour)
            {
                self.visited.push(neighbour);
                self.extend(neighbour, remaining - 1);
                self.visited.pop();
            }
        }
    }
}

/// Depth-first enumeration of simple paths of an exact length.
struct Enumeration<'a> {
    graph: &'a RouterGraph,
    distance: &'a [u16],
    wanted: usize,
    rng: Option<Pcg64Mcg>,
    visited: Vec<u32>,
    path: Vec<u32>,
    found: Vec<Vec<u32>>,
}

impl Enumeration<'_> {
    fn extend(&mut self, here: u32, remaining: u16) {
        if self.distance[here as usize] == 0 {
            if remaining == 0 {
                self.found.push(self.path.clone());
            }
            return;
        }
        let row = self.graph.neighbours(here).iter().zip(self.graph.edge_ids(here));
        let near = row.filter(|&(&neighbour, _)| self.distance[neighbour as usize] < remaining);
        let mut steps: Vec<(u32, u32)> = near.map(|(&neighbour, &edge)| (neighbour, edge)).collect();
        if let Some(rng) = &mut self.rng {
            steps.shuffle(rng);
        }
        for (neighbour, edge) in steps {
            if self.found.len() == self.wanted {
                return;
            }
            if !self.visited.contains(&neighbour) {
                self.visited.push(neighbour);
                self.path.push(directed_edge(self.graph, edge, here));
                self.extend(neighbour, remaining - 1);
                self.path.pop();
                self.visited.pop();
            }
        }
    }
}

/// Yen's algorithm: up to `k` shortest loop-free paths as directed edges, by ascending length, ties in ascending order
/// of edges.
pub fn yen(graph: &RouterGraph, from: u32, to: u32, k: usize) -> Vec<Vec<u32>> {
    let mut found: Vec<Vec<u32>> = Vec::new();
    let mut candidates: BTreeSet<(usize, Vec<u32>)> = BTreeSet::new();
    let nothing = BTreeSet::new();
    if from != to
        && let Some(first) = shortest(graph, from, to, &nothing, &[])
    {
        candidates.insert((first.len(), first));
    }
    while found.len() < k {
        let Some((_, path)) = candidates.pop_first() else { break };
        // Every further path leaves some found path at a spur router by an edge that no found path takes there.
        for spur in 0..path.len() {
            let root = &path[..spur];
            let here = if spur == 0 { from } else { head(graph, path[spur - 1]) };
            let mut taken: BTreeSet<u32> = found
                .iter()
                .filter(|other| other.len() > spur && other[..spur] == *root)
                .map(|other| other[spur])
                .collect();
            taken.insert(path[spur]);
            let mut closed = vec![from];
            closed.extend(root.iter().map(|&edge| head(graph, edge)));
            if let Some(rest) = shortest(graph, here, to, &taken, &closed) {
                let whole: Vec<u32> = root.iter().copied().chain(rest).collect();
                candidates.insert((whole.len(), whole));
            }
        }
        found.push(path);
    }
    found
}

/// A shortest path that begins with none of the `taken` edges and enters none of the `closed` routers.
fn shortest(
    graph: &RouterGraph,
    from: u32,
    to: u32,
    taken: &BTreeSet<u32>,
    closed: &[u32],
) -> Option<Vec<u32>> {
    let mut arrived: Vec<Option<u32>> = vec![None; graph.routers() as usize];
    let mut blocked = vec![false; graph.routers() as usize];
    closed.iter().for_each(|&router| blocked[router as usize] = true);
    blocked[from as usize] = true;
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(here) = queue.pop_front() {
        for (&neighbour, &edge) in graph.neighbours(here).iter().zip(graph.edge_ids(here)) {
            let step = directed_edge(graph, edge, here);
            if blocked[neighbour as usize] || taken.contains(&step) {
                continue;
            }
            blocked[neighbour as usize] = true;
            arrived[neighbour as usize] = Some(step);
            if neighbour == to {
                let mut path = Vec::new();
                let mut back = to;
                while let Some(step) = arrived[back as usize] {
                    path.push(step);
                    back = head(graph, step ^ 1);
                }
                path.reverse();
                return Some(path);
            }
            queue.push_back(neighbour);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{complete, cycle, graph, random};

    #[test]
    fn a_ring_has_two_paths() {
        let ring = cycle(9);
        let paths = KShortestPaths { k: 8, seed: Some(1) }.paths(&ring, 0, 3);
        assert_eq!(paths.iter().map(Vec::len).collect::<Vec<_>>(), [3, 6]);
        assert!(yen(&ring, 4, 4, 3).is_empty());
    }

    #[test]
    fn parallel_links_make_different_paths() {
        let double = graph(3, vec![(0, 1), (0, 1), (1, 2)]);
        assert_eq!(yen(&double, 0, 2, 9).len(), 2);
        assert_eq!(KShortestPaths { k: 9, seed: Some(1) }.paths(&double, 0, 2).len(), 2);
    }

    /// All simple paths, by trying every walk.
    fn all_paths(graph: &RouterGraph, from: u32, to: u32) -> Vec<usize> {
        fn walk(graph: &RouterGraph, trail: &mut Vec<u32>, to: u32, lengths: &mut Vec<usize>) {
            let here = trail[trail.len() - 1];
            if here == to {
                lengths.push(trail.len() - 1);
                return;
            }
            for &neighbour in graph.neighbours(here) {
                if !trail.contains(&neighbour) {
                    trail.push(neighbour);
                    walk(graph, trail, to, lengths);
                    trail.pop();
                }
            }
        }
        let mut lengths = Vec::new();
        walk(graph, &mut vec![from], to, &mut lengths);
        lengths.sort_unstable();
        lengths
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn both_forms_find_the_k_shortest_of_all_simple_paths(seed in 0..1000u64, k in 1..20usize) {
            let graph = random(8, 9, seed);
            for (from, to) in [(0, 7), (3, 1), (5, 6)] {
                let mut expected = all_paths(&graph, from, to);
                expected.truncate(k);
                let fast = KShortestPaths { k, seed: Some(seed).filter(|s| s % 2 == 0) }.paths(&graph, from, to);
                let scheme = KShortestPaths { k, seed: None };
                let distances = distances_from(&graph, &[to], UNREACHABLE);
                for hops in 0..9 {
                    let is_within = expected.len() == k && expected[k - 1] <= hops;
                    proptest::prop_assert_eq!(scheme.are_within(&graph, &distances, from, hops as u32), is_within);
                }
                for paths in [yen(&graph, from, to, k), fast] {
                    let lengths: Vec<usize> = paths.iter().map(Vec::len).collect();
                    proptest::prop_assert_eq!(&lengths, &expected);
                    let different: BTreeSet<&Vec<u32>> = paths.iter().collect();
                    proptest::prop_assert_eq!(different.len(), paths.len());
                    for path in &paths {
                        let ends = path.iter().fold(from, |here, &step| {
                            if head(&graph, step ^ 1) == here { head(&graph, step) } else { u32::MAX }
                        });
                        proptest::prop_assert_eq!(ends, to);
                    }
                }
            }
        }
    }

    #[test]
    fn ties_differ_between_seeds_but_not_between_calls() {
        let clique = complete(20);
        let paths = |seed| KShortestPaths { k: 4, seed: Some(seed) }.paths(&clique, 2, 9);
        assert_eq!(paths(1), paths(1));
        assert_ne!(paths(1), paths(2));
        assert_eq!(paths(1).iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 2, 2]);
    }
}
