//! The rooms at work together: hosts and switches as nodes of the engine, from a network and a plan to records.
//!
//! [`Simulation::new`] lays routes and faults on a network and makes the nodes; [`Simulation::run`] runs them, checks that no
//! packet was lost track of, and collects the records.
//!
//! ```
//! use std::path::Path;
//! use netloom_sim::{SimConfig, Simulation};
//! use netloom_topology::{BuildContext, Crossbar, Topology};
//! use netloom_workload::{Pattern, Permutation, PlanContext, Workload};
//!
//! let network = Topology::Crossbar(Crossbar { hosts: 4, ..Crossbar::default() });
//! let network = network.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
//! let plan = Workload::new(Pattern::Permutation(Permutation::default()));
//! let plan = plan.plan(&network, &PlanContext::new(1)).unwrap();
//!
//! let outcome = Simulation::new(network, SimConfig::default(), plan).unwrap().run(1).unwrap();
//! assert!(outcome.records.flows.iter().all(|flow| flow.fct.is_some()));
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod blueprint;
mod calculations;
mod channel;
mod collect;
mod config;
mod ctx;
mod driven;
mod epochs;
mod fault;
mod halves;
mod host;
mod intervals;
mod layout;
mod level;
mod measure;
mod meter;
mod model;
#[cfg(test)]
mod mutation;
mod packet_trace;
mod passages;
mod path;
mod reports;
mod sampler;
mod server;
#[cfg(test)]
mod shortest;
mod simulation;
mod stall;
mod switch;
mod trace;
mod turns;
#[cfg(test)]
mod untouched;
#[cfg(test)]
mod watched;

pub use channel::ChannelEnds;
pub use collect::{ConservationError, RunError};
pub use config::SimConfig;
pub use driven::{Completion, Driven, Order, Ticket};
pub use fault::{Cut, Degrade, Fault, Loss, Unreachable};
pub use measure::{ChannelName, Measure};
pub use packet_trace::{PacketTrace, TracedFlow};
pub use path::PathProfile;
pub use simulation::{Finished, RunProgress, SimError, Simulation, layers_seed};
pub use trace::{Choice, Trace};
