//! What is to be carried: demands between routers.

use std::collections::BTreeMap;

use netloom_paths::distance::{UNREACHABLE, distances_from};
use netloom_topology::RouterGraph;

/// Traffic from one router to another, in units of the rate of one link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Commodity {
    /// Source router.
    pub from: u32,
    /// Destination router.
    pub to: u32,
    /// Demand; a host that sends at link rate counts 1.
    pub amount: f64,
}

/// All demands, at most one per ordered router pair, in ascending order of (from, to).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    commodities: Vec<Commodity>,
}

impl Demand {
    /// Adds up demands of equal ends; demands of a router to itself and empty ones are left out.
    pub fn new(demands: impl IntoIterator<Item = (u32, u32, f64)>) -> Self {
        let mut sums: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for (from, to, amount) in demands {
            if from != to && amount > 0.0 {
                *sums.entry((from, to)).or_default() += amount;
            }
        }
        let commodities =
            sums.into_iter().map(|((from, to), amount)| Commodity { from, to, amount }).collect();
        Demand { commodities }
    }

    /// The demands in ascending order of (from, to).
    pub fn commodities(&self) -> &[Commodity] {
        &self.commodities
    }

    /// Sum of all demands.
    pub fn total(&self) -> f64 {
        self.commodities.iter().map(|c| c.amount).sum()
    }

    /// The commodities of each source, in order.
    pub fn by_source(&self) -> impl Iterator<Item = &[Commodity]> {
        self.commodities.chunk_by(|a, b| a.from == b.from)
    }

    /// An upper bound of the throughput by capacity: all channels' capacity over the demands' total length,
    /// Σ c / Σ T·dist. Infinite without demands.
    pub fn length_bound(&self, graph: &RouterGraph) -> f64 {
        let mut length = 0.0;
        for group in self.by_source() {
            let distance = distances_from(graph, &[group[0].from], UNREACHABLE);
            length += group.iter().map(|c| c.amount * f64::from(distance[c.to as usize])).sum::<f64>();
        }
        2.0 * graph.edges().len() as f64 / length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_of_equal_ends_add_up() {
        let demand = Demand::new([(1, 0, 1.0), (0, 1, 2.0), (1, 0, 0.5), (2, 2, 9.0), (0, 2, 0.0)]);
        let expected = [Commodity { from: 0, to: 1, amount: 2.0 }, Commodity { from: 1, to: 0, amount: 1.5 }];
        assert_eq!(demand.commodities(), expected);
        assert_eq!(demand.total(), 3.5);
        assert_eq!(demand.by_source().count(), 2);
    }

    #[test]
    fn the_length_bound_of_a_ring() {
        // Four links, eight channels; two demands of one unit over two hops each.
        let ring = RouterGraph::new(vec![1; 4], vec![(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert_eq!(Demand::new([(0, 2, 1.0), (1, 3, 1.0)]).length_bound(&ring), 2.0);
    }
}
