//! Training jobs as ASTRA-sim 2 and SimAI schedule them: what every rank sends when.
//!
//! A [`Job`] is read from ASTRA-sim's own files: an execution trace per rank, the system file, communicator groups. A [`Rank`] of it is a state machine: it
//! is called when a time has come, a message has left or has arrived, and says what to send and when to call it again. What carries the messages is the caller's: packets (the
//! workload of kind `astra-sim`), or the [analytical networks](analytical) of ASTRA-sim, with which its answers come out to the nanosecond.
//!
//! | module | question |
//! | --- | --- |
//! | `chakra` | what does a trace's file hold? |
//! | `series` | which file is that of which rank? |
//! | `system`, `groups`, `trace` | what do the files say? |
//! | `job` | do they fit each other? |
//! | `plan`, `members` | in which phases is a collective operation done, between whom? |
//! | `steps` | which message comes next within a phase? |
//! | `rank` | what does a rank do next? |
//! | `simai` | the same of SimAI: its workload text, its flows, its ranks, its table of layers |
//! | `training` | which of the two is it? |
//! | `analytical` | when do messages arrive on a network without packets? |
//!
//! Sources: ASTRA-sim (Won et al., ISPASS 2023; its source at 518bd51, March 2026), MLCommons Chakra; for SimAI see [`simai`].

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod analytical;
pub mod chakra;
mod error;
pub mod groups;
mod job;
mod members;
mod plan;
mod rank;
mod series;
pub mod simai;
mod steps;
mod system;
mod trace;
mod training;

pub use error::JobError;
pub use job::{Files, Job, Shape};
pub use plan::Load;
pub use rank::{Call, End, Envelope, Network, Rank};
pub use series::{MOST_RANKS, Series};
pub use training::TrainingRank;
