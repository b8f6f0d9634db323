//! Maximum throughput over any paths for larger networks: the path form, with paths made as they are needed.

use netloom_paths::routes::{KShortest, Scheme};
use netloom_topology::RouterGraph;

use crate::concurrent_flow::ShortestPaths;
use crate::demand::Demand;
use crate::path_form::{path_form_with_prices, priced_bound};
use crate::solve::{Throughput, ThroughputError};

/// Paths per demand that the first program has.
const INITIAL_PATHS: u32 = 8;
/// Paths made per demand and round.
const NEW_PATHS: usize = 4;
/// Rounds after which the bounds are given as they are.
const MAX_ROUNDS: usize = 200;

/// Optimal routing by column generation (Ford and Fulkerson 1958).
///
/// The path form is solved over a few paths per demand. Its channel prices tell which missing path would help: any that
/// is cheaper than the demand's paths. Such paths are added and the program is solved again. The flows of every round are a
/// lower bound, and its prices, with the cheapest of all paths, an upper bound; the run ends when the two are
/// within `gap` of each other or no cheaper path exists.
///
/// # Errors
/// If there is no demand, a commodity has no path, or the solver fails.
pub fn column_generation(
    graph: &RouterGraph,
    demand: &Demand,
    gap: f64,
) -> Result<Throughput, ThroughputError> {
    let routes = Scheme::KShortest(KShortest { k: INITIAL_PATHS }).build(graph, 0)?;
    let commodities = demand.commodities();
    let mut paths: Vec<Vec<Vec<u32>>> =
        commodities.iter().map(|c| routes.paths(graph, c.from, c.to)).collect();
    let mut best = Throughput { lower: 0.0, upper: demand.length_bound(graph) };
    for _ in 0..MAX_ROUNDS {
        let (bounds, prices) = path_form_with_prices(graph, demand, &paths)?;
        best.lower = best.lower.max(bounds.lower);
        let mut search = ShortestPaths::new(graph);
        let mut distances = Vec::with_capacity(commodities.len());
        let mut added = false;
        for (commodity, known) in commodities.iter().zip(&mut paths) {
            // Several nearly cheapest paths at once: each path found makes its channels dearer for the next.
            let mut length: Vec<f64> = prices.iter().map(|price| price + f64::EPSILON).collect();
            for attempt in 0..NEW_PATHS {
                search.run(graph, commodity.from, &[commodity.to], &length);
                let path = search
                    .path(graph, commodity.from, commodity.to)
                    .ok_or(ThroughputError::NoPath { from: commodity.from, to: commodity.to })?;
                if attempt == 0 {
                    distances.push(path.iter().map(|&channel| prices[channel as usize]).sum::<f64>());
                }
                let dearer = distances[distances.len() - 1].max(f64::EPSILON);
                path.iter().for_each(|&channel| length[channel as usize] += dearer);
                if !known.contains(&path) {
                    known.push(path);
                    added = true;
                }
            }
        }
        best.upper = best.upper.min(priced_bound(demand, &prices, &distances));
        if !added || best.gap() <= gap {
            break;
        }
    }
    Ok(best)
}
