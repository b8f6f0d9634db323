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

mod background;
mod calculations;
mod channel;
#[cfg(test)]
mod checks;
mod config;
mod ctx;
mod epochs;
mod fault;
mod host;
mod message;
mod node;
mod numbering;
mod observe;
mod path;
mod protocol;
mod rails;
mod run;
mod server;
mod switch;
mod wiring;
mod world;

pub use background::{Background, Carried};
pub use channel::ChannelEnds;
pub use config::{Beyond, Fast, SimConfig, Steady};
pub use fault::{Cut, Degrade, Fault, Loss, Unreachable};
pub use observe::measure::{ChannelName, Measure};
pub use observe::packet_trace::{PacketTrace, TracedFlow};
pub use path::PathProfile;
pub use run::assemble::layers_seed;
pub use run::driven::{Completion, Driven, Milestone, Order, Ticket};
pub use run::error::{ConservationError, RunError, SimError};
pub use run::jobs::Jobs;
pub use run::progress::{Finished, RunProgress};
pub use run::simulation::Simulation;
pub use run::stage::{Lone, Stage};
pub use run::trace::{Choice, IdleSwitch, Trace};
pub use server::nic_choice::NicChoice;
