//! Approximate maximum throughput with a proven gap, for programs too large to solve.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netloom_paths::tables::{directed_edge, head};
use netloom_topology::RouterGraph;

use crate::demand::Demand;
use crate::solve::{Throughput, ThroughputError};

/// Which paths flow may take.
#[derive(Clone, Copy, Debug)]
pub enum AllowedPaths<'a> {
    /// Any path of the network.
    Any,
    /// Per commodity, a list of paths as directed edges.
    Listed(&'a [Vec<Vec<u32>>]),
}

/// Maximum concurrent flow by multiplicative weights (Garg and Könemann 1998, in Fleischer's form of 2000).
///
/// Every channel has a length that grows exponentially with the flow on it. Phase by phase each demand is sent once along
/// paths that are shortest within a factor 1 + ε. After any phase two bounds hold, whatever happened before: all flow
/// sent, divided by the load of the busiest channel, fits the network; and by duality the lengths bound the optimum from
/// above by Σ lengths / Σ demand · distance. The run ends when the two are within `gap` of each other.
///
/// # Errors
/// If a commodity has no path, there is no demand, or `gap` is not between 0 and 1.
pub fn concurrent_flow(
    graph: &RouterGraph,
    demand: &Demand,
    allowed: AllowedPaths<'_>,
    gap: f64,
    max_phases: u32,
) -> Result<Throughput, ThroughputError> {
    let commodities = demand.commodities();
    if commodities.is_empty() {
        return Err(ThroughputError::NoDemand);
    }
    if !(gap > 0.0 && gap < 1.0) {
        let found = gap.to_string();
        return Err(ThroughputError::Parameter { field: "gap", expected: "0 < gap < 1", found });
    }
    let epsilon = gap / 2.0;
    // Demands are scaled so that one phase loads the busiest channel by about 1: steps are then neither too long
    // for the bound nor needlessly short.
    let mut state = State {
        graph,
        allowed,
        epsilon,
        length: vec![1.0; 2 * graph.edges().len()],
        load: vec![0.0; 2 * graph.edges().len()],
        paths: vec![Vec::new(); commodities.len()],
        distance: vec![0.0; commodities.len()],
    };
    let groups = groups(demand);
    state.refresh_all(demand, &groups)?;
    let scale = 1.0 / demand.length_bound(graph).recip().max(f64::MIN_POSITIVE);
    let mut bounds = Throughput { lower: 0.0, upper: f64::INFINITY };
    for phase in 1..=max_phases {
        for group in &groups {
            for index in group.clone() {
                state.send(demand, group.clone(), index, commodities[index].amount * scale)?;
            }
        }
        let busiest = state.load.iter().copied().fold(0.0, f64::max);
        bounds.lower = bounds.lower.max(f64::from(phase) * scale / busiest);
        bounds.upper = bounds.upper.min(state.dual_bound(demand));
        if bounds.upper > bounds.lower * (1.0 + gap) && phase.is_multiple_of(REFRESH) {
            // Distances of earlier phases are lower bounds; fresh ones sharpen the dual bound.
            state.refresh_all(demand, &groups)?;
            bounds.upper = bounds.upper.min(state.dual_bound(demand));
        }
        if bounds.upper <= bounds.lower * (1.0 + gap) {
            return Ok(bounds);
        }
        state.rescale();
    }
    Ok(bounds)
}

/// Phases between two exact evaluations of the dual bound.
const REFRESH: u32 = 16;

/// Index ranges of the commodities of one source each.
fn groups(demand: &Demand) -> Vec<std::ops::Range<usize>> {
    let mut start = 0;
    let range = |group: &[_]| {
        start += group.len();
        start - group.len()..start
    };
    demand.by_source().map(range).collect()
}

struct State<'a> {
    graph: &'a RouterGraph,
    allowed: AllowedPaths<'a>,
    epsilon: f64,
    length: Vec<f64>,
    load: Vec<f64>,
    /// Per commodity: a path that was shortest when last searched for, and its length then. Lengths only grow, so that
    /// length is a lower bound of the distance ever after.
    paths: Vec<Vec<u32>>,
    distance: Vec<f64>,
}

impl State<'_> {
    /// Sends `amount` of one commodity along nearly shortest paths, at most a channel's capacity at a time.
    fn send(
        &mut self,
        demand: &Demand,
        group: std::ops::Range<usize>,
        index: usize,
        amount: f64,
    ) -> Result<(), ThroughputError> {
        let mut remaining = amount;
        while remaining > 0.0 {
            if self.path_length(index) > (1.0 + self.epsilon) * self.distance[index] {
                self.refresh(demand, group.clone(), Some(index))?;
            }
            let flow = remaining.min(1.0);
            for &channel in &self.paths[index] {
                self.load[channel as usize] += flow;
                self.length[channel as usize] *= 1.0 + self.epsilon * flow;
            }
            remaining -= flow;
        }
        Ok(())
    }

    fn path_length(&self, index: usize) -> f64 {
        self.paths[index].iter().map(|&channel| self.length[channel as usize]).sum()
    }

    fn dual_bound(&self, demand: &Demand) -> f64 {
        let distance = demand.commodities().iter().zip(&self.distance).map(|(c, d)| c.amount * d);
        self.length.iter().sum::<f64>() / distance.sum::<f64>()
    }

    /// Keeps lengths within the range of floats; every bound is a ratio of lengths.
    fn rescale(&mut self) {
        let longest = self.length.iter().copied().fold(0.0, f64::max);
        if longest > 1e100 {
            self.length.iter_mut().chain(&mut self.distance).for_each(|value| *value /= longest);
        }
    }

    fn refresh_all(
        &mut self,
        demand: &Demand,
        groups: &[std::ops::Range<usize>],
    ) -> Result<(), ThroughputError> {
        groups.iter().try_for_each(|group| self.refresh(demand, group.clone(), None))
    }

    /// Finds shortest paths: from the list for one commodity (`only`) or all of a group, or by one search from the
    /// group's source for all of them.
    fn refresh(
        &mut self,
        demand: &Demand,
        group: std::ops::Range<usize>,
        only: Option<usize>,
    ) -> Result<(), ThroughputError> {
        let commodities = demand.commodities();
        let no_path = |index: usize| ThroughputError::NoPath {
            from: commodities[index].from,
            to: commodities[index].to,
        };
        match self.allowed {
            AllowedPaths::Listed(lists) => {
                for index in only.map_or(group, |index| index..index + 1) {
                    let length = |path: &Vec<u32>| path.iter().map(|&c| self.length[c as usize]).sum::<f64>();
                    let best = lists[index].iter().map(|path| (length(path), path));
                    let best = best.min_by(|a, b| a.0.total_cmp(&b.0)).ok_or_else(|| no_path(index))?;
                    self.distance[index] = best.0;
                    self.paths[index].clone_from(best.1);
                }
            }
            AllowedPaths::Any => {
                let source = commodities[group.start].from;
                let targets: Vec<u32> = group.clone().map(|index| commodities[index].to).collect();
                let tree = self.shortest_tree(source, &targets);
                for index in group {
                    let mut here = commodities[index].to;
                    if !tree[here as usize].0.is_finite() {
                        return Err(no_path(index));
                    }
                    self.distance[index] = tree[here as usize].0;
                    self.paths[index].clear();
                    while here != source {
                        let channel = tree[here as usize].1;
                        self.paths[index].push(channel);
                        here = head(self.graph, channel ^ 1);
                    }
                }
            }
        }
        Ok(())
    }

    /// Dijkstra's algorithm until all targets are settled: distance and arriving channel per router.
    fn shortest_tree(&self, source: u32, targets: &[u32]) -> Vec<(f64, u32)> {
        let mut best = vec![(f64::INFINITY, 0); self.graph.routers() as usize];
        let mut wanted = vec![false; best.len()];
        targets.iter().for_each(|&target| wanted[target as usize] = true);
        let mut missing = targets.len();
        best[source as usize].0 = 0.0;
        // Non-negative floats order like their bit patterns.
        let mut heap = BinaryHeap::from([Reverse((0f64.to_bits(), source))]);
        while let Some(Reverse((bits, here))) = heap.pop() {
            let distance = f64::from_bits(bits);
            if distance > best[here as usize].0 {
                continue;
            }
            if std::mem::take(&mut wanted[here as usize]) {
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
            for (&next, &edge) in self.graph.neighbours(here).iter().zip(self.graph.edge_ids(here)) {
                let channel = directed_edge(self.graph, edge, here);
                let total = distance + self.length[channel as usize];
                if total < best[next as usize].0 {
                    best[next as usize] = (total, channel);
                    heap.push(Reverse((total.to_bits(), next)));
                }
            }
        }
        best
    }
}
