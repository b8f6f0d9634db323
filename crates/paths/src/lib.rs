//! Which paths exist: path diversity of a network, routing layers, forwarding tables.
//!
//! Everything here looks at the routers alone ([`netloom_topology::RouterGraph`]) and depends on nothing
//! but the graph and a seed:
//!
//! | module | question |
//! | --- | --- |
//! | [`distance`] | how long are minimal paths, and how many are there? |
//! | [`diversity`] | how many edge-disjoint paths of bounded length join routers, and how do pairs interfere? |
//! | [`connectivity`], [`rank`], [`counting`] | the same without a length bound, by algebra, and by counting walks |
//! | [`routes`] | which paths does a routing scheme provide: FatPaths layers, SPAIN, PAST, k shortest paths? |
//! | [`pattern`], [`collisions`] | which hosts talk, and how many of their flows share a router pair or a link? |
//! | [`tables`] | the next hop per layer, router and destination: built, checked, saved, loaded |
//! | [`sample`] | what does a sample of pairs say about all of them? |
//! | [`report`](report()) | all of that for one network, as tables |
//!
//! ```
//! use netloom_paths::diversity::{GreedyDisjointPaths, length_bounded_cut};
//! use netloom_topology::RouterGraph;
//!
//! // A ring of four routers: two disjoint paths of two hops between opposite corners.
//! let ring = RouterGraph::new(vec![1; 4], vec![(0, 1), (1, 2), (2, 3), (3, 0)]);
//! assert_eq!(GreedyDisjointPaths::new(&ring).count(&[0], &[2], 2), 2);
//! assert_eq!(length_bounded_cut(&ring, &[0], &[2], 3), Some(2));
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod collisions;
pub mod columns;
pub mod connectivity;
pub mod counting;
pub mod distance;
pub mod diversity;
mod flow;
mod link_set;
pub mod pattern;
pub mod rank;
mod report;
pub mod routes;
pub mod sample;
pub mod tables;
#[cfg(test)]
mod testing;

pub use link_set::LinkSet;
pub use report::{
    Counting, DiversityAtLength, PathsConfig, PathsReport, ReportError, collisions, disjoint_paths,
    interference, report,
};
pub use routes::{Routes, Scheme, SchemeError};
pub use tables::ForwardingTables;
