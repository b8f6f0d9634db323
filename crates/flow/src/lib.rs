//! A scenario flow by flow: instead of packets, rates.
//!
//! Every flow has a rate, and all rates are max-min fair on the links that flows take: no flow's rate can grow without that of a flow that is no faster
//! becoming smaller. A flow takes the path that its routing scheme gives it, or divides evenly among its paths where the scheme sprays packets; see
//! [`Spread`](netloom_routing::Spread). Rates change when flows begin and end and when links or routes change, and between that nothing happens: so a
//! run costs a little per flow, however large the flow. There are no queues, no losses and no congestion control.
//!
//! A flow's last byte arrives later than it leaves by what its packets would take beyond the time of their bits on the slowest link: so a flow that is
//! alone takes exactly as long as its packets do.
//!
//! | module | contents |
//! | --- | --- |
//! | `max_min.rs` | rates of flows on links, kept up to date |
//! | `split.rs` | how a flow divides among the links between its switches |
//! | `alike.rs` | links that are always loaded alike count as one |
//! | `paths.rs` | which links the routing scheme lets a flow take |
//! | `endpoints.rs` | messages of servers with several NICs |
//! | `run.rs` | when flows begin and end |
//! | `outcome.rs` | the records |
//! | `background.rs` | what flows outside of a region leave to its packets |
//! | `region.rs` | a region in packets beside flows |
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::path::Path;
//! use netloom_flow::FlowRun;
//! use netloom_record::Records;
//! use netloom_sim::SimConfig;
//! use netloom_topology::{BuildContext, Crossbar, Topology};
//! use netloom_workload::{Pattern, Permutation, PlanContext, Workload};
//!
//! let network = Topology::Crossbar(Crossbar { hosts: 4, ..Crossbar::default() });
//! let network = network.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
//! let plan = Workload::new(Pattern::Permutation(Permutation::default()));
//! let plan = plan.plan(&network, &PlanContext::new(1)).unwrap();
//!
//! let mut records = Records::default();
//! let run = FlowRun::new(network, SimConfig::default(), plan).unwrap();
//! run.run(&mut |_| ControlFlow::Continue(()), &mut records).unwrap();
//! assert!(records.flows.iter().all(|flow| flow.fct == Some(flow.ideal_fct)));
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod alike;
mod background;
mod endpoints;
mod max_min;
mod outcome;
mod paths;
mod region;
mod run;
mod split;

pub use region::RegionRun;
pub use run::FlowRun;
