//! How much traffic the paths of a network can carry.
//!
//! The maximum achievable throughput is the largest theta such that theta times every demand fits the network
//! (FatPaths sec. VI). [`solve`] computes it for a routing scheme ([`Routing`]) under a traffic pattern ([`Traffic`]):
//!
//! | module | question |
//! | --- | --- |
//! | [`demand`], [`traffic`] | what is to be carried, and what is the worst that can be asked? |
//! | [`path_form`] | how much fits onto the paths of a scheme? (linear program) |
//! | [`arc_form`] | how much fits with optimal routing? (linear program) |
//! | [`concurrent_flow`] | the same, approximately but with proven bounds, at any size |
//!
//! ```
//! use std::path::Path;
//! use netloom_paths::routes::Minimal;
//! use netloom_throughput::{AllToAll, Routing, ThroughputConfig, Traffic, solve};
//! use netloom_topology::RouterGraph;
//!
//! // A triangle with two hosts per router: each router sends 2 · 4/5 units over two links.
//! let triangle = RouterGraph::new(vec![2; 3], vec![(0, 1), (1, 2), (2, 0)]);
//! let config = ThroughputConfig {
//!     routing: Routing::Minimal(Minimal::default()),
//!     traffic: Traffic::AllToAll(AllToAll::default()),
//!     ..Default::default()
//! };
//! let report = solve(&triangle, &config, Path::new(".")).unwrap();
//! assert!((report.throughput.value() - 1.25).abs() < 1e-6);
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod arc_form;
pub mod concurrent_flow;
pub mod demand;
mod linear_program;
pub mod path_form;
mod shortest_paths;
mod solve;
pub mod traffic;

pub use demand::{Commodity, Demand};
pub use solve::{
    Method, Optimal, Routing, Throughput, ThroughputConfig, ThroughputError, ThroughputReport, solve,
    solve_demand,
};
pub use traffic::{AllToAll, FromFile, Traffic, WorstCase};
