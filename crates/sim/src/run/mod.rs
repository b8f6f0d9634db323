//! From a network and a plan to records.

pub(crate) mod assemble;
pub(crate) mod channels;
pub(crate) mod collect;
mod components;
pub(crate) mod conservation;
pub(crate) mod counts;
pub(crate) mod driven;
pub(crate) mod error;
pub(crate) mod final_state;
pub(crate) mod flow_observations;
pub(crate) mod jobs;
pub(crate) mod join;
pub(crate) mod layout;
pub(crate) mod lengths;
pub(crate) mod progress;
pub(crate) mod rows;
pub(crate) mod simulation;
pub(crate) mod skip;
mod skip_repetitions;
mod skip_steps;
mod skip_walk;
pub(crate) mod stage;
pub(crate) mod stall;
mod steady;
pub(crate) mod trace;
pub(crate) mod validate;
