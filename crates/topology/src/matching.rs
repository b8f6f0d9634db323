//! Worst-case traffic: routers paired with routers far away.

use netloom_units::random::Analysis;
use rand::RngExt;
use rand::seq::SliceRandom;

use crate::distance::{UNREACHABLE, distances_from};
use crate::router_graph::RouterGraph;

/// The most routers for which the matching is exact; the effort grows with their cube.
pub const EXACT_MATCHING_LIMIT: usize = 1024;

/// A longest matching and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matching {
    /// Disjoint pairs of routers.
    pub pairs: Vec<(u32, u32)>,
    /// Whether no other matching has a larger sum of distances.
    pub exact: bool,
}

/// The longest matching at an intensity (Jyothi et al., "Measuring and understanding throughput of network topologies",
/// SC 2016, as TopoBench computes it): a maximum-weight perfect matching of the host-bearing routers, weighted by distance;
/// the most distant pairs are taken until ⌊intensity · routers⌋ routers are selected; those are matched once more among
/// themselves.
///
/// Up to [`EXACT_MATCHING_LIMIT`] routers the matching is exact (blossom algorithm); beyond, it is greedy by distance and then
/// improved by exchanging partners between pairs. With an odd number of routers one stays alone.
///
/// Many matchings are equally long. Which of them is found depends on the order of the routers: `draw` 0 shuffles them by the seed; 1
/// leaves them as they are numbered, as other implementations do, so that on regular networks the matching is regular too, and
/// hard to carry; further draws shuffle them anew.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; no more than all are selected"
)]
pub fn longest_matching(graph: &RouterGraph, intensity: f64, seed: u64, draw: u32) -> Matching {
    let mut ends: Vec<u32> = (0..graph.routers()).filter(|&r| graph.hosts(r) > 0).collect();
    match draw {
        1 => {}
        draw => ends.shuffle(&mut Analysis::OrderOfRouters(draw).stream(seed)),
    }
    let first = matching(graph, &ends, seed);
    let wanted = (intensity * ends.len() as f64).floor() as usize;
    if wanted >= 2 * first.pairs.len() {
        return first;
    }
    let distance = Distances::new(graph, &ends);
    let mut pairs: Vec<(u16, u32, u32)> =
        first.pairs.iter().map(|&(a, b)| (distance.between(a, b), a, b)).collect();
    pairs.sort_by_key(|&(distance, ..)| std::cmp::Reverse(distance));
    let mut selected: Vec<u32> = pairs.iter().flat_map(|&(_, a, b)| [a, b]).collect();
    selected.truncate(wanted);
    let second = matching(graph, &selected, seed);
    Matching { exact: first.exact && second.exact, pairs: second.pairs }
}

fn matching(graph: &RouterGraph, ends: &[u32], seed: u64) -> Matching {
    let distance = Distances::new(graph, ends);
    if ends.len() <= EXACT_MATCHING_LIMIT {
        let weight: Vec<i32> = ends
            .iter()
            .flat_map(|&a| ends.iter().map(move |&b| (a, b)))
            .map(|(a, b)| if a == b { 0 } else { i32::from(distance.between(a, b)) })
            .collect();
        let mates = integer_blossom::max_weight_matching(&weight, ends.len());
        let pairs = mates.iter().enumerate().filter_map(|(i, mate)| mate.filter(|&j| i < j).map(|j| (i, j)));
        return Matching { pairs: pairs.map(|(i, j)| (ends[i], ends[j])).collect(), exact: true };
    }
    Matching { pairs: greedy(&distance, ends, seed), exact: false }
}

/// Hop distances between selected routers, one byte per ordered pair.
struct Distances {
    position: Vec<u32>,
    width: usize,
    hops: Vec<u16>,
}

impl Distances {
    fn new(graph: &RouterGraph, ends: &[u32]) -> Self {
        let mut position = vec![0; graph.routers() as usize];
        ends.iter().zip(0..).for_each(|(&router, place)| position[router as usize] = place);
        let rows = ends.iter().flat_map(|&from| {
            let row = distances_from(graph, &[from], UNREACHABLE);
            ends.iter().map(move |&to| row[to as usize]).collect::<Vec<_>>()
        });
        Distances { position, width: ends.len(), hops: rows.collect() }
    }

    fn between(&self, a: u32, b: u32) -> u16 {
        self.hops[self.position[a as usize] as usize * self.width + self.position[b as usize] as usize]
    }
}

/// Each router in turn takes the most distant free one; then random pairs of pairs exchange partners when that helps.
fn greedy(distance: &Distances, ends: &[u32], seed: u64) -> Vec<(u32, u32)> {
    let mut free = ends.to_vec();
    let mut pairs = Vec::new();
    while free.len() >= 2 {
        let a = free.swap_remove(free.len() - 1);
        let farthest = (0..free.len()).max_by_key(|&i| distance.between(a, free[i])).unwrap_or(0);
        pairs.push((a, free.swap_remove(farthest)));
    }
    let mut rng = Analysis::Exchanges.stream(seed);
    for _ in 0..EXCHANGES * pairs.len() {
        let (i, j) = (rng.random_range(0..pairs.len()), rng.random_range(0..pairs.len()));
        let ((a, b), (c, d)) = (pairs[i], pairs[j]);
        if i != j {
            let sum = |p, q, r, s| u32::from(distance.between(p, q)) + u32::from(distance.between(r, s));
            if sum(a, c, b, d) > sum(a, b, c, d) {
                (pairs[i], pairs[j]) = ((a, c), (b, d));
            } else if sum(a, d, b, c) > sum(a, b, c, d) {
                (pairs[i], pairs[j]) = ((a, d), (b, c));
            }
        }
    }
    pairs
}

/// Exchanges tried per pair.
const EXCHANGES: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(n: u32) -> RouterGraph {
        RouterGraph::new(vec![1; n as usize], (0..n).map(|i| (i, (i + 1) % n)).collect())
    }

    #[test]
    fn opposite_routers_of_a_ring_are_matched() {
        let graph = ring(12);
        let matching = longest_matching(&graph, 1.0, 1, 0);
        assert!(matching.exact);
        assert_eq!(matching.pairs.len(), 6);
        assert!(matching.pairs.iter().all(|&(a, b)| a.abs_diff(b) == 6));
    }

    #[test]
    fn intensity_selects_a_share_of_the_routers() {
        let graph = ring(20);
        assert_eq!(longest_matching(&graph, 0.55, 1, 0).pairs.len(), 5);
        assert_eq!(longest_matching(&ring(7), 1.0, 1, 0).pairs.len(), 3);
    }

    #[test]
    fn the_fast_method_is_valid_and_nearly_as_long() {
        let graph = ring(40);
        let ends: Vec<u32> = (0..40).collect();
        let distance = Distances::new(&graph, &ends);
        let pairs = greedy(&distance, &ends, 3);
        let mut seen: Vec<u32> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
        seen.sort_unstable();
        assert_eq!(seen, ends);
        let length: u32 = pairs.iter().map(|&(a, b)| u32::from(distance.between(a, b))).sum();
        assert!(length >= 390, "{length} of 400");
    }
}
