//! Approximate maximum throughput with a proven gap, for programs too large to solve.

use netloom_topology::RouterGraph;
use netloom_units::Invalid;

use crate::demand::Demand;
use crate::shortest_paths::ShortestPaths;
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
/// above by Σ lengths / Σ demand · distance. ε is halved in stages, which keep the lengths and begin the flow anew. The run
/// ends when the bounds are within `gap` of each other, or after `max_phases`.
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
    Invalid::unless(gap > 0.0 && gap < 1.0, "gap", "0 < gap < 1", gap)?;
    let groups = groups(demand);
    let mut state = State {
        graph,
        allowed,
        epsilon: FIRST_EPSILON,
        length: vec![1.0; 2 * graph.edges().len()],
        load: vec![0.0; 2 * graph.edges().len()],
        paths: vec![Vec::new(); commodities.len()],
        distance: vec![0.0; commodities.len()],
        search: ShortestPaths::new(graph),
    };
    state.refresh_all(demand, &groups)?;
    let mut bounds = Throughput { lower: 0.0, upper: state.dual_bound(demand) };
    // A phase sends `scale` times each demand: about what fits the network at once.
    let mut scale = bounds.upper;
    let mut stage_phases = 0u32;
    for _ in 0..max_phases {
        for group in &groups {
            for index in group.clone() {
                state.send(demand, group.clone(), index, commodities[index].amount * scale)?;
            }
        }
        stage_phases += 1;
        let busiest = state.load.iter().copied().fold(0.0, f64::max);
        bounds.lower = bounds.lower.max(f64::from(stage_phases) * scale / busiest);
        bounds.upper = bounds.upper.min(state.dual_bound(demand));
        if bounds.gap() > gap && stage_phases.is_multiple_of(REFRESH) {
            // Distances of earlier phases are lower bounds; fresh ones sharpen the dual bound.
            state.refresh_all(demand, &groups)?;
            bounds.upper = bounds.upper.min(state.dual_bound(demand));
        }
        if bounds.gap() <= gap {
            break;
        }
        state.rescale();
        if f64::from(stage_phases) * state.epsilon > STAGE {
            // The lengths are good enough for finer steps; the flows that led there no longer count.
            state.epsilon /= 2.0;
            state.load.fill(0.0);
            stage_phases = 0;
            scale = bounds.lower;
        }
    }
    Ok(bounds)
}

/// Step size ε of the first stage; it is halved from stage to stage.
const FIRST_EPSILON: f64 = 0.5;
/// Phases of a stage, times ε.
const STAGE: f64 = 12.0;
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
    search: ShortestPaths,
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
                self.search.run(self.graph, source, &targets, &self.length);
                for (index, target) in group.zip(targets) {
                    let (distance, path) =
                        self.search.path(self.graph, target).ok_or_else(|| no_path(index))?;
                    self.distance[index] = distance;
                    self.paths[index] = path;
                }
            }
        }
        Ok(())
    }
}
