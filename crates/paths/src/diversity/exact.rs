//! Disjoint paths counted exactly: the length-bounded minimum edge cut, for up to three hops.

use netloom_topology::RouterGraph;
use netloom_units::narrow;

use crate::flow::FlowNetwork;

/// The longest paths for which the cut is computed exactly.
///
/// Up to three hops the edge version of Menger's theorem holds, so the smallest cut equals the largest set of
/// edge-disjoint paths. From four hops on the two differ in general and both are NP-hard.
pub const MAX_EXACT_LENGTH: u16 = 3;

/// c_l(A, B): the fewest edges whose removal leaves no path of at most `max_length` hops from a router of `from` to
/// one of `to` (FatPaths sec. IV-B), or `None` beyond [`MAX_EXACT_LENGTH`].
///
/// The two sets must be disjoint. The value is a maximum flow in a layered graph: source, first-hop copies of
/// the routers, second-hop copies, sink. Every edge has capacity 1; the two copies of one router are joined without
/// limit, which makes two-hop paths. An edge between two middle routers occurs once per direction, but a flow that
/// uses both can be turned into two two-hop paths, so the copies do not add capacity.
pub fn length_bounded_cut(graph: &RouterGraph, from: &[u32], to: &[u32], max_length: u16) -> Option<u32> {
    if max_length > MAX_EXACT_LENGTH {
        return None;
    }
    let direct = narrow::<u32>(
        from.iter().flat_map(|&a| graph.neighbours(a)).filter(|neighbour| to.contains(neighbour)).count(),
    );
    if max_length < 2 {
        return Some(if max_length == 0 { 0 } else { direct });
    }
    // Middle routers next to either end, with the number of edges that lead there.
    let beside = |ends: &[u32]| {
        let mut routers: Vec<u32> = ends
            .iter()
            .flat_map(|&end| graph.neighbours(end))
            .copied()
            .filter(|router| !from.contains(router) && !to.contains(router))
            .collect();
        routers.sort_unstable();
        routers
    };
    let (first, second) = (counted(&beside(from)), counted(&beside(to)));
    const SOURCE: u32 = 0;
    const SINK: u32 = 1;
    let first_copy = |index: usize| 2 + narrow::<u32>(index);
    let second_copy = |index: usize| 2 + narrow::<u32>(first.len() + index);
    let position = |router: u32| second.binary_search_by_key(&router, |&(r, _)| r).ok().map(second_copy);
    let mut network = FlowNetwork::new(2 + first.len() + second.len());
    for (index, &(router, edges)) in first.iter().enumerate() {
        network.add(SOURCE, first_copy(index), edges, 0);
        if let Some(copy) = position(router) {
            network.add(first_copy(index), copy, u32::MAX / 2, 0);
        }
        if max_length == 3 {
            for &neighbour in graph.neighbours(router) {
                if let Some(copy) = position(neighbour) {
                    network.add(first_copy(index), copy, 1, 0);
                }
            }
        }
    }
    for (index, &(_, edges)) in second.iter().enumerate() {
        network.add(second_copy(index), SINK, edges, 0);
    }
    Some(direct + network.max_flow(SOURCE, SINK))
}

/// Distinct values of a sorted list with their multiplicity.
fn counted(sorted: &[u32]) -> Vec<(u32, u32)> {
    sorted.chunk_by(|a, b| a == b).map(|run| (run[0], narrow::<u32>(run.len()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diversity::GreedyDisjointPaths;
    use crate::testing::{complete, graph, petersen, random};

    /// The fewest edges whose removal leaves no bounded path, by trying all sets of edges in order of size.
    fn brute_force(graph: &RouterGraph, from: &[u32], to: &[u32], max_length: u16) -> u32 {
        let edges = graph.edges();
        let bounded_path_without = |removed: u32| {
            let kept: Vec<(u32, u32)> =
                (0..edges.len()).filter(|e| removed >> e & 1 == 0).map(|e| edges[e]).collect();
            let rest = RouterGraph::new(vec![0; graph.routers() as usize], kept);
            let distance = crate::distance::distances_from(&rest, from, max_length);
            to.iter().any(|&t| distance[t as usize] <= max_length)
        };
        (0..1u32 << edges.len())
            .filter(|&removed| !bounded_path_without(removed))
            .map(u32::count_ones)
            .min()
            .unwrap()
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
        #[test]
        fn the_flow_equals_the_cut_found_by_trying_all_edge_sets(seed in 0..1000u64, max_length in 1..4u16) {
            let graph = random(7, 7, seed);
            for (from, to) in [(vec![0], vec![6]), (vec![1, 2], vec![5]), (vec![0, 3], vec![4, 6])] {
                proptest::prop_assert_eq!(
                    length_bounded_cut(&graph, &from, &to, max_length),
                    Some(brute_force(&graph, &from, &to, max_length))
                );
            }
        }

        #[test]
        fn greedy_never_exceeds_exact(seed in 0..1000u64, max_length in 1..4u16) {
            let graph = random(20, 60, seed);
            let mut greedy = GreedyDisjointPaths::new(&graph);
            for (from, to) in [(vec![0], vec![19]), (vec![1, 2], vec![5]), (vec![0, 3], vec![4, 6])] {
                let exact = length_bounded_cut(&graph, &from, &to, max_length).unwrap();
                proptest::prop_assert!(greedy.count(&from, &to, max_length) <= exact);
            }
        }
    }

    #[test]
    fn a_greedy_choice_can_miss_paths_that_the_flow_finds() {
        // The path 0-1-2-5, found first, takes an edge of each of the two disjoint paths 0-1-3-5 and 0-4-2-5.
        let graph = graph(6, vec![(0, 1), (1, 2), (2, 5), (1, 3), (3, 5), (0, 4), (4, 2)]);
        assert_eq!(GreedyDisjointPaths::new(&graph).count(&[0], &[5], 3), 1);
        assert_eq!(length_bounded_cut(&graph, &[0], &[5], 3), Some(2));
    }

    #[test]
    fn known_graphs() {
        assert_eq!(length_bounded_cut(&complete(8), &[0], &[5], 2), Some(7));
        assert_eq!(length_bounded_cut(&petersen(), &[0], &[1], 3), Some(1));
        assert_eq!(length_bounded_cut(&petersen(), &[0], &[1], 4), None);
    }
}
