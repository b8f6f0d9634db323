//! Path interference: what two communicating pairs take from each other.

use netloom_topology::RouterGraph;

use super::{GreedyDisjointPaths, length_bounded_cut};

/// I^l_{ac,bd} = c_l({a,c},{b}) + c_l({a,c},{d}) − c_l({a,c},{b,d}), with the greedy count for c_l.
///
/// This is the formula as FatPaths prints it (sec. IV-B). Its prose adds c_l({a},{b}) and c_l({c},{d}) instead,
/// which gives other values than the paper's Table IV. The four routers must be distinct.
pub fn interference_greedy(
    paths: &mut GreedyDisjointPaths<'_>,
    [a, b, c, d]: [u32; 4],
    max_length: u16,
) -> i64 {
    interference([a, b, c, d], |from, to| paths.count(from, to, max_length))
}

/// The same with the exact cut; `None` beyond [`MAX_EXACT_LENGTH`](super::MAX_EXACT_LENGTH) hops.
pub fn interference_exact(graph: &RouterGraph, routers: [u32; 4], max_length: u16) -> Option<i64> {
    length_bounded_cut(graph, &[], &[], max_length)?;
    Some(interference(routers, |from, to| length_bounded_cut(graph, from, to, max_length).unwrap_or(0)))
}

fn interference([a, b, c, d]: [u32; 4], mut disjoint: impl FnMut(&[u32], &[u32]) -> u32) -> i64 {
    let sources = [a.min(c), a.max(c)];
    let apart = i64::from(disjoint(&sources, &[b])) + i64::from(disjoint(&sources, &[d]));
    apart - i64::from(disjoint(&sources, &[b.min(d), b.max(d)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{complete, graph};

    #[test]
    fn a_shared_bottleneck_interferes_by_its_whole_width() {
        // Two sources and two sinks hang on the two ends of one link.
        let graph = graph(6, vec![(0, 4), (1, 4), (4, 5), (5, 2), (5, 3)]);
        assert_eq!(interference_exact(&graph, [0, 2, 1, 3], 3), Some(1));
        assert_eq!(interference_greedy(&mut GreedyDisjointPaths::new(&graph), [0, 2, 1, 3], 3), 1);
        assert_eq!(interference_exact(&graph, [0, 2, 1, 3], 4), None);
    }

    #[test]
    fn pairs_of_a_clique_share_only_the_links_between_their_ends() {
        // c({a,c},{b}) = k' for either sink; together they lose the two edges that join b with d as a middle router.
        let graph = complete(10);
        let mut paths = GreedyDisjointPaths::new(&graph);
        let greedy = interference_greedy(&mut paths, [0, 1, 2, 3], 2);
        assert_eq!(Some(greedy), interference_exact(&graph, [0, 1, 2, 3], 2));
        assert_eq!(greedy, 2);
    }
}
