//! Hop distances and the number of minimal paths.

use netloom_topology::RouterGraph;
pub use netloom_topology::{UNREACHABLE, distances_from};
use netloom_units::narrow;
use rayon::prelude::*;

/// Hop distances from one router and the number of minimal paths to every router, parallel links counted apart.
///
/// The number is a float because it grows exponentially with the distance; it is exact up to 2⁵³.
pub fn minimal_paths_from(graph: &RouterGraph, source: u32) -> (Vec<u16>, Vec<f64>) {
    let distance = distances_from(graph, &[source], UNREACHABLE);
    let mut order: Vec<u32> = (0..graph.routers()).filter(|&r| distance[r as usize] != UNREACHABLE).collect();
    order.sort_by_key(|&r| distance[r as usize]);
    let mut paths = vec![0.0; distance.len()];
    paths[source as usize] = 1.0;
    for router in order {
        for &neighbour in graph.neighbours(router) {
            if distance[neighbour as usize] == distance[router as usize] + 1 {
                paths[neighbour as usize] += paths[router as usize];
            }
        }
    }
    (distance, paths)
}

/// Routers that carry hosts, or all routers of a network without hosts: the ends of paths.
///
/// On a fat tree these are the edge routers only, as FatPaths sec. IV evaluates it.
pub fn endpoints(graph: &RouterGraph) -> Vec<u32> {
    let with_hosts: Vec<u32> = (0..graph.routers()).filter(|&r| graph.hosts(r) > 0).collect();
    if with_hosts.is_empty() { (0..graph.routers()).collect() } else { with_hosts }
}

/// How long minimal paths are, over all ordered pairs of distinct endpoint routers.
#[derive(Clone, Debug, PartialEq)]
pub struct DistanceDistribution {
    /// `pairs[l]` = number of ordered pairs at distance l.
    pub pairs: Vec<u64>,
    /// Pairs that no path joins.
    pub disconnected: u64,
}

impl DistanceDistribution {
    /// Measures all pairs: one breadth-first search per endpoint.
    pub fn measure(graph: &RouterGraph) -> Self {
        let ends = endpoints(graph);
        let rows: Vec<(Vec<u64>, u64)> = ends
            .par_iter()
            .map(|&source| {
                let distance = distances_from(graph, &[source], UNREACHABLE);
                let (mut pairs, mut disconnected) = (Vec::new(), 0);
                for &end in ends.iter().filter(|&&end| end != source) {
                    match distance[end as usize] {
                        UNREACHABLE => disconnected += 1,
                        length => {
                            pairs.resize(pairs.len().max(usize::from(length) + 1), 0);
                            pairs[usize::from(length)] += 1;
                        }
                    }
                }
                (pairs, disconnected)
            })
            .collect();
        let mut total = DistanceDistribution { pairs: Vec::new(), disconnected: 0 };
        for (pairs, disconnected) in rows {
            total.pairs.resize(total.pairs.len().max(pairs.len()), 0);
            for (sum, count) in total.pairs.iter_mut().zip(pairs) {
                *sum += count;
            }
            total.disconnected += disconnected;
        }
        total
    }

    /// The longest minimal path in hops.
    pub fn diameter(&self) -> u16 {
        narrow::<u16>(self.pairs.len().saturating_sub(1))
    }

    /// Mean length of minimal paths in hops, over connected pairs; 0 if there are none.
    pub fn mean(&self) -> f64 {
        let pairs: u64 = self.pairs.iter().sum();
        let hops: u64 = self.pairs.iter().zip(0..).map(|(&count, length)| count * length).sum();
        if pairs == 0 { 0.0 } else { hops as f64 / pairs as f64 }
    }

    /// Share of connected pairs at each distance, indexed by hops.
    pub fn shares(&self) -> Vec<f64> {
        let pairs: u64 = self.pairs.iter().sum();
        self.pairs.iter().map(|&count| count as f64 / pairs as f64).collect()
    }
}

/// Total network load: directed links over mean path length, an upper bound on the flows of full rate that can run
/// at once (FatPaths sec. IV).
pub fn total_network_load(graph: &RouterGraph, mean_distance: f64) -> f64 {
    2.0 * graph.edges().len() as f64 / mean_distance
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{complete, cycle, petersen};

    #[test]
    fn distances_of_a_cycle() {
        let graph = cycle(6);
        assert_eq!(distances_from(&graph, &[0], UNREACHABLE), [0, 1, 2, 3, 2, 1]);
        assert_eq!(distances_from(&graph, &[0], 1)[2], UNREACHABLE);
        let (_, paths) = minimal_paths_from(&graph, 0);
        assert_eq!(paths, [1.0, 1.0, 1.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn the_petersen_graph_has_diameter_two_and_load_eighteen() {
        let graph = petersen();
        let distances = DistanceDistribution::measure(&graph);
        assert_eq!(distances.pairs, [0, 30, 60]);
        assert_eq!(distances.diameter(), 2);
        assert!((total_network_load(&graph, distances.mean()) - 18.0).abs() < 1e-12);
    }

    #[test]
    fn total_load_of_a_clique_is_its_directed_links() {
        let graph = complete(101);
        let distances = DistanceDistribution::measure(&graph);
        assert_eq!(total_network_load(&graph, distances.mean()), 10100.0);
    }
}
