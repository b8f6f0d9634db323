//! How many flows share a router pair, and how many share a link (FatPaths sec. IV-A, Fig. 4).

use netloom_units::narrow;
use std::collections::{BTreeMap, BTreeSet};

use netloom_topology::RouterGraph;

use crate::distance::endpoints;
use crate::tables::ForwardingTables;

/// How many ordered pairs of endpoint routers carry how many flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollisionHistogram {
    /// `pairs[c]` = number of ordered pairs of different endpoint routers with exactly c flows.
    pub pairs: Vec<u64>,
}

impl CollisionHistogram {
    /// Counts flows given as pairs of different routers.
    pub fn new(graph: &RouterGraph, flows: &[(u32, u32)]) -> Self {
        let ends = endpoints(graph).len() as u64;
        let per_pair = flows_per_pair(flows);
        let mut pairs = vec![ends * ends.saturating_sub(1) - per_pair.len() as u64];
        for (_, count) in per_pair {
            pairs.resize(pairs.len().max(narrow::<usize>(count) + 1), 0);
            pairs[narrow::<usize>(count)] += 1;
        }
        CollisionHistogram { pairs }
    }

    /// Share of all ordered pairs that carry at least `flows` flows.
    pub fn share_at_least(&self, flows: usize) -> f64 {
        let total: u64 = self.pairs.iter().sum();
        self.pairs.iter().skip(flows).sum::<u64>() as f64 / total as f64
    }

    /// Flows per ordered pair.
    pub fn mean(&self) -> f64 {
        let total: u64 = self.pairs.iter().sum();
        let flows: u64 = self.pairs.iter().zip(0..).map(|(&pairs, flows)| pairs * flows).sum();
        flows as f64 / total as f64
    }
}

fn flows_per_pair(flows: &[(u32, u32)]) -> Vec<((u32, u32), u64)> {
    let mut sorted = flows.to_vec();
    sorted.sort_unstable();
    sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect()
}

/// Pairs of flows that get into each other's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowConflicts {
    /// Pairs of flows with the same source and destination router.
    pub collisions: u64,
    /// Pairs of flows whose paths share at least one channel.
    pub overlaps: u64,
}

/// Counts conflicts of flows that all take layer 0 of the tables. Flows between routers that the layer does not
/// connect are left out.
pub fn flow_conflicts(graph: &RouterGraph, tables: &ForwardingTables, flows: &[(u32, u32)]) -> FlowConflicts {
    let mut users: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let pairs = flows_per_pair(flows);
    let mut conflicts = FlowConflicts { collisions: 0, overlaps: 0 };
    for (&((from, to), count), index) in pairs.iter().zip(0..) {
        let Some(path) = tables.path(graph, 0, from, to) else { continue };
        path.into_iter().for_each(|channel| users.entry(channel).or_default().push(index));
        conflicts.collisions += count * (count - 1) / 2;
    }
    let mut meeting: BTreeSet<(u32, u32)> = BTreeSet::new();
    for indices in users.values() {
        for (i, &one) in indices.iter().enumerate() {
            meeting.extend(indices[i + 1..].iter().map(|&other| (one, other)));
        }
    }
    let product = |(a, b): (u32, u32)| pairs[a as usize].1 * pairs[b as usize].1;
    conflicts.overlaps = conflicts.collisions + meeting.into_iter().map(product).sum::<u64>();
    conflicts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkSet;
    use crate::testing::{complete, cycle};

    #[test]
    fn a_histogram_covers_all_pairs() {
        let histogram = CollisionHistogram::new(&complete(4), &[(0, 1), (0, 1), (2, 3), (1, 0)]);
        assert_eq!(histogram.pairs, [9, 2, 1]);
        assert_eq!(histogram.share_at_least(2), 1.0 / 12.0);
        assert_eq!(histogram.mean(), 4.0 / 12.0);
    }

    #[test]
    fn colliding_flows_overlap_and_crossing_ones_too() {
        let ring = cycle(5);
        let tables = ForwardingTables::minimal(&ring, vec![LinkSet::full(&ring)], 1);
        // Two flows 0-1-2, one flow 1-2, one the other way.
        let conflicts = flow_conflicts(&ring, &tables, &[(0, 2), (0, 2), (1, 2), (2, 0)]);
        assert_eq!(conflicts, FlowConflicts { collisions: 1, overlaps: 3 });
    }
}
