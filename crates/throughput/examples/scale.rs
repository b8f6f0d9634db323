//! How long the largest analyses take: nine layers with tables, their validation, and their throughput.
//!
//! `cargo run --release -p netloom-throughput --example scale -- 19` takes the Slim Fly of that q (722 routers);
//! 89 gives 15,842 routers and about a million hosts.

use std::path::Path;
use std::time::Instant;

use netloom_paths::routes::RandomLayers;
use netloom_paths::{Routes, Scheme};
use netloom_throughput::{Method, Traffic, WorstCase, solve_demand};
use netloom_topology::{BuildContext, SlimFly, Topology};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let q = std::env::args().nth(1).map_or(Ok(19), |q| q.parse())?;
    let topology = Topology::SlimFly(SlimFly { q: Some(q), ..Default::default() });
    let base_dir = Path::new(".");
    let clock = Instant::now();
    let graph = topology.build(&BuildContext { seed: 1, base_dir })?.router_graph();
    let hosts: u64 = (0..graph.routers()).map(|r| u64::from(graph.hosts(r))).sum();
    println!("{} routers, {hosts} hosts: built in {:.2} s", graph.routers(), clock.elapsed().as_secs_f64());

    let clock = Instant::now();
    let routes = Scheme::RandomLayers(RandomLayers::default()).build(&graph, 1)?;
    println!("nine layers with tables: {:.2} s", clock.elapsed().as_secs_f64());
    if let Routes::Tables(tables) = &routes {
        let clock = Instant::now();
        let reach = tables.validate(&graph)?;
        let hops: Vec<String> = reach.iter().map(|layer| format!("{:.2}", layer.mean_hops())).collect();
        println!(
            "{} bytes of entries, validated in {:.2} s; mean hops {}",
            tables.bytes(),
            clock.elapsed().as_secs_f64(),
            hops.join(" ")
        );
    }
    if graph.routers() > 4000 {
        return Ok(());
    }
    let clock = Instant::now();
    let traffic = Traffic::WorstCase(WorstCase { intensity: 0.55, draws: 1 });
    let demand = traffic.demand(&graph, netloom_paths::pattern::Placement::Identity, base_dir, 1)?;
    println!("longest matching: {:.2} s", clock.elapsed().as_secs_f64());
    for method in [Method::Exact, Method::Approximate] {
        let clock = Instant::now();
        let report = solve_demand(&graph, &demand, Some(&routes), method, 0.05)?;
        println!(
            "throughput at intensity 0.55 by {}: {:.6} to {:.6}, {} paths: {:.2} s",
            report.method,
            report.throughput.lower,
            report.throughput.upper,
            report.paths,
            clock.elapsed().as_secs_f64()
        );
    }
    let clock = Instant::now();
    let report = solve_demand(&graph, &demand, None, Method::Approximate, 0.05)?;
    println!(
        "optimal routing by {}: {:.4} to {:.4}, length bound {:.4}: {:.2} s",
        report.method,
        report.throughput.lower,
        report.throughput.upper,
        report.length_bound,
        clock.elapsed().as_secs_f64()
    );
    Ok(())
}
