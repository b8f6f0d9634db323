//! Maximum throughput over given paths: the path form of the linear program.

use netloom_topology::RouterGraph;

use crate::demand::Demand;
use crate::linear_program::LinearProgram;
use crate::solve::{Throughput, ThroughputError};

/// The largest theta such that theta times every demand fits onto the given paths, all channels having capacity 1.
///
/// FatPaths' layered program (sec. VI, eq. 5–9) has a variable per commodity, channel and layer. A layer gives each pair
/// exactly one path, so it collapses to one variable per path with the same optimum: the flow on a demand's paths is at
/// least theta times the demand, and at most 1 on every channel. `paths[i]` are the paths of commodity i as directed edges.
///
/// The bounds returned do not rest on the solver's tolerance: the lower one scales its flows until they fit, the upper one
/// weighs its prices by duality.
///
/// # Errors
/// If a commodity has no path or the solver fails.
pub fn path_form(
    graph: &RouterGraph,
    demand: &Demand,
    paths: &[Vec<Vec<u32>>],
) -> Result<Throughput, ThroughputError> {
    let commodities = demand.commodities();
    if commodities.is_empty() {
        return Err(ThroughputError::NoDemand);
    }
    let mut program = LinearProgram::default();
    let theta = program.variable();
    let mut on_channel: Vec<Vec<(usize, f64)>> = vec![Vec::new(); 2 * graph.edges().len()];
    let mut first_path = Vec::new();
    for (commodity, paths) in commodities.iter().zip(paths) {
        if paths.is_empty() {
            return Err(ThroughputError::NoPath { from: commodity.from, to: commodity.to });
        }
        let mut row = vec![(theta, commodity.amount)];
        for path in paths {
            let flow = program.variable();
            row.push((flow, -1.0));
            path.iter().for_each(|&channel| on_channel[channel as usize].push((flow, 1.0)));
        }
        first_path.push(row[1].0);
        program.at_most(row, 0.0);
    }
    let mut channel_rows = Vec::new();
    for (channel, row) in on_channel.into_iter().enumerate() {
        if !row.is_empty() {
            channel_rows.push((channel, program.at_most(row, 1.0)));
        }
    }
    let solution = program.maximise(theta).map_err(ThroughputError::Solver)?;

    let mut load = vec![0.0; 2 * graph.edges().len()];
    let mut served = f64::INFINITY;
    for ((commodity, paths), &first) in commodities.iter().zip(paths).zip(&first_path) {
        let mut flow = 0.0;
        for (path, value) in paths.iter().zip(&solution.values[first..]) {
            let value = value.max(0.0);
            flow += value;
            path.iter().for_each(|&channel| load[channel as usize] += value);
        }
        served = served.min(flow / commodity.amount);
    }
    let busiest = load.iter().copied().fold(0.0, f64::max);

    let mut price = vec![0.0; 2 * graph.edges().len()];
    for (channel, row) in channel_rows {
        price[channel] = solution.prices[row].max(0.0);
    }
    let cheapest = |paths: &Vec<Vec<u32>>| {
        let costs = paths.iter().map(|path| path.iter().map(|&channel| price[channel as usize]).sum::<f64>());
        costs.fold(f64::INFINITY, f64::min)
    };
    let cost: f64 = commodities.iter().zip(paths).map(|(c, paths)| c.amount * cheapest(paths)).sum();
    Ok(Throughput { lower: served / busiest, upper: price.iter().sum::<f64>() / cost })
}
