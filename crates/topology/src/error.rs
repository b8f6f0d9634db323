//! Why there is no such network.

use std::path::PathBuf;

use netloom_units::{Invalid, Time};

use crate::network::{HostId, LinkId, NodeId};

/// Why a network cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// A parameter has a value for which no such network exists.
    #[error(transparent)]
    Parameter(#[from] Invalid),
    /// Nobody could send to anybody.
    #[error("expected a network of at least 2 hosts, found {0}")]
    TooFewHosts(u32),
    /// A link's two ends are the same node.
    #[error("a link joins node {0} to itself")]
    SelfLoop(NodeId),
    /// A host has no link, or more than one.
    #[error("host {host} has {links} links; every host has exactly one")]
    HostLinks {
        /// The host.
        host: HostId,
        /// How many links it has.
        links: usize,
    },
    /// Some node cannot be reached from host 0.
    #[error("the network is not connected: node {0} cannot be reached from node 0")]
    Disconnected(NodeId),
    /// A switch has more ports than [`PortId`](crate::PortId) can number.
    #[error("switch {0} has more than 65,535 ports")]
    TooManyPorts(NodeId),
    /// Links have more tiers than [`TierId`](crate::TierId) can number.
    #[error("expected at most 256 tiers of links, found {0}")]
    TooManyTiers(usize),
    /// A link's rate is zero.
    #[error("link {0} has rate 0")]
    ZeroRate(LinkId),
    /// A link's propagation delay is beyond anything on earth.
    #[error("link {link} has a latency of {latency}; expected at most 16s")]
    Latency {
        /// The link.
        link: LinkId,
        /// Its propagation delay.
        latency: Time,
    },
    /// The network has more nodes or channels than 32 bits can number, or needs more memory than there is.
    #[error(
        "a network of {} hosts and {} links needs {needed} of memory; {available} are available",
        count_in_words(*hosts), count_in_words(*links)
    )]
    TooLarge {
        /// Hosts it would have.
        hosts: u64,
        /// Links it would have.
        links: u64,
        /// Memory that building it would need.
        needed: String,
        /// Memory that this machine has left.
        available: String,
    },
    /// A file cannot be read or is malformed.
    #[error("{}{}: {message}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1; absent if the error belongs to no single line.
        line: Option<usize>,
        /// What is wrong and what was expected.
        message: String,
    },
}

/// A count of what a network would have. Large ones are not exact: they stop at the largest number.
fn count_in_words(count: u64) -> String {
    const MOST: u64 = 1_000_000_000_000_000;
    if count > MOST { "more than 10^15".to_owned() } else { count.to_string() }
}
