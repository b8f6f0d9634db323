//! Who sends what, when.
//!
//! A [`Workload`] is what the user writes: a [`Pattern`] (which host sends to which, and by what rule), and
//! [`Options`] that hold for every pattern. [`Workload::plan`] builds it for a network and gives one [`HostWork`] per
//! host. A host's work has three faces, and a simulator asks all of them:
//!
//! - messages that start *by the clock* ([`HostWork::next_timed`]): open-loop arrivals, flow lists, the first messages
//!   of closed loops;
//! - messages that start *when another one completes* ([`HostWork::next_closed`]): closed loops;
//! - messages that a *program* sends ([`HostWork::begin`] and the calls after it): graphs of sends, receives and
//!   calculations.
//!
//! Every host draws from its own random stream, so its messages are a function of (workload, seed, host, and for
//! closed loops the completion times) only, never of the order in which hosts are asked.
//!
//! ```
//! use netloom_topology::NetworkBuilder;
//! use netloom_units::{Bytes, Rate, Time};
//! use netloom_workload::{Pattern, Permutation, PlanContext, Workload};
//!
//! let mut builder = NetworkBuilder::new("four hosts");
//! let hosts = builder.add_hosts(4);
//! let switch = builder.add_switch(1, 0);
//! let tier = builder.tier("host");
//! for host in hosts {
//!     builder.link(host, switch, Rate::from_gbps(200), Time::from_us(1), tier);
//! }
//! let network = builder.build().unwrap();
//!
//! let pattern = Pattern::Permutation(Permutation { size: Bytes(8 << 20).into(), ..Default::default() });
//! let mut plan = Workload::new(pattern).plan(&network, &PlanContext::new(1)).unwrap();
//! assert_eq!(plan.total_messages, Some(4));
//! let message = plan.hosts[0].next_timed().unwrap();
//! assert_ne!(message.dst, 0);
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod arrivals;
mod bond;
mod closed;
pub mod clusters;
mod error;
mod frames;
mod gpus;
mod jobs;
mod map;
mod merge;
mod options;
mod pattern;
mod plan;
mod program;
mod random;
mod region;
mod servers;
mod size;
mod traffic;

pub use bond::{Bond, PortSelection, by_hash};
pub use error::WorkloadError;
pub use gpus::transfers::{Method, Operation};
pub use jobs::{Draw, HostName, Job, JobPlacement, Straggler, add_jobs};
pub use map::Map;
pub use options::{Destination, Options, Placement};
pub use pattern::*;
pub use plan::{
    Analytical, HostWork, JobPlan, Message, Overlap, Plan, PlanContext, ReductionUnits, Workload, find_stall,
};
pub use program::{
    Action, Activity, ActivityKind, CollectiveInfo, CollectiveKind, CollectiveLog, Notes, OperationKind,
    OperationLog, RankEnds, RankLog, Round, RoundLog, Wait,
};
pub use region::{Inside, Region};
pub use servers::{NicSelection, Rails, ScaleUp, ScaleUpWiring, Servers, Wiring};
pub use size::{Sampling, Size, SizeDistribution, Table};
pub use traffic::Traffic;
