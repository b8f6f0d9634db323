//! What is wired to what: networks of hosts, switches and links, and the generators of every topology family.
//!
//! A [`Network`] is plain immutable data: nodes, full-duplex links with a rate and a latency, and the little
//! structure that routing and workloads ask for (tiers of links, levels of switches, racks, pods).
//!
//! A [`Topology`] says which: one kind per family (fat trees, Slim Fly, Dragonfly, …) and per file format, each with its
//! parameters; [`Topology::build`] makes the network. [`Network::metrics`] and [`CostModel`] measure and price it,
//! [`Network::router_graph`] shows its switches as a plain graph, [`Network::export`] writes it for other programs.
//!
//! ```
//! use netloom_topology::{BuildContext, CostModel, SlimFly, Topology};
//!
//! let slim_fly = Topology::SlimFly(SlimFly { about_hosts: Some(10_000), ..Default::default() });
//! let network = slim_fly.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap();
//! assert_eq!(network.name(), "Slim Fly q = 19 nearest to 10000 hosts: 10830 hosts");
//! assert_eq!(network.metrics().diameter, 2);
//! assert_eq!(CostModel::published().price(&network).racks, 19);
//! ```
//!
//! Networks can also be wired by hand:
//!
//! ```
//! use netloom_topology::NetworkBuilder;
//! use netloom_units::{Rate, Time};
//!
//! let mut builder = NetworkBuilder::new("two hosts");
//! let hosts = builder.add_hosts(2);
//! let switch = builder.add_switch(1, 0);
//! let tier = builder.tier("host");
//! for host in hosts {
//!     builder.link(host, switch, Rate::from_gbps(200), Time::from_us(1), tier);
//! }
//! let network = builder.build().unwrap();
//! assert_eq!(network.ports(switch).len(), 2);
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod apart;
mod bisection;
mod cable;
mod cost;
mod distance;
mod error;
mod families;
mod formats;
mod galois;
mod levels;
mod matching;
mod metrics;
mod names;
mod network;
mod reduction;
mod router_graph;
mod size;
mod spectrum;
mod topology;
mod xgft_order;

pub use apart::Separate;
pub use bisection::Bisection;
pub use cost::{CablePrice, Cables, Cost, CostModel, Layout, SwitchPrice};
pub use distance::{DistanceHistogram, UNREACHABLE, distances_from};
pub use error::NetworkError;
pub use families::*;
pub use formats::{
    AstraSimNetwork, Block, Dot, EdgeList, ExportFormat, GraphMl, HtsimTopo, InfraGraph, Json,
    NetworkDimension, NetworkFile, Ns3, SimAi,
};
pub use matching::{EXACT_MATCHING_LIMIT, Matching, longest_matching};
pub use metrics::Metrics;
pub use network::{
    Channel, ChannelId, Dimension, HostId, Link, LinkId, Network, NetworkBuilder, NodeId, PortId, TierId,
};
pub use reduction::REDUCTION_TIER;
pub use router_graph::RouterGraph;
pub use topology::{BuildContext, Topology};
