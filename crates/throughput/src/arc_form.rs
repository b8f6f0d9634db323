//! Maximum throughput over any paths: the arc form of the linear program.

use netloom_paths::tables::{directed_edge, head};
use netloom_topology::RouterGraph;

use crate::demand::Demand;
use crate::linear_program::LinearProgram;
use crate::solve::{Throughput, ThroughputError};

/// Number of flow variables up to which the arc form is solved; beyond, the solver takes minutes and gigabytes.
pub const ARC_FORM_LIMIT: u64 = 40_000;

/// Number of flow variables of the arc form.
pub fn arc_form_variables(graph: &RouterGraph, demand: &Demand) -> u64 {
    demand.by_source().count() as u64 * 2 * graph.edges().len() as u64
}

/// The largest theta such that theta times every demand can be routed in any way, all channels having capacity 1.
///
/// The multi-commodity flow program of FatPaths sec. VI (eq. 1–4), with the commodities of one source joined into one flow:
/// the optimum is the same, and there are fewer variables. The bounds are the objective with the solver's tolerance.
///
/// # Errors
/// If there is no demand or the solver fails.
pub fn arc_form(graph: &RouterGraph, demand: &Demand) -> Result<Throughput, ThroughputError> {
    if demand.commodities().is_empty() {
        return Err(ThroughputError::NoDemand);
    }
    let mut program = LinearProgram::default();
    let theta = program.variable();
    let mut on_channel: Vec<Vec<(usize, f64)>> = vec![Vec::new(); 2 * graph.edges().len()];
    for group in demand.by_source() {
        let source = group[0].from;
        // Net inflow of every router but the source equals its share of the demand; flow never returns to the source.
        let mut balance: Vec<Vec<(usize, f64)>> = vec![Vec::new(); graph.routers() as usize];
        for here in 0..graph.routers() {
            for &edge in graph.edge_ids(here) {
                let channel = directed_edge(graph, edge, here);
                let next = head(graph, channel);
                if next == source {
                    continue;
                }
                let flow = program.variable();
                on_channel[channel as usize].push((flow, 1.0));
                balance[next as usize].push((flow, 1.0));
                balance[here as usize].push((flow, -1.0));
            }
        }
        for commodity in group {
            balance[commodity.to as usize].push((theta, -commodity.amount));
        }
        balance.swap_remove(source as usize);
        balance.into_iter().filter(|row| !row.is_empty()).for_each(|row| program.equal_zero(row));
    }
    for row in on_channel.into_iter().filter(|row| !row.is_empty()) {
        program.at_most(row, 1.0);
    }
    let solution = program.maximise(theta).map_err(ThroughputError::Solver)?;
    let value = solution.values[theta];
    Ok(Throughput { lower: value * (1.0 - 1e-6), upper: value * (1.0 + 1e-6) })
}
