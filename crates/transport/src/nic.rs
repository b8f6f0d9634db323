//! How a host's NIC queues packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The queue between a host's transport and its link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NicQueue {
    /// No queue: whenever it is free, the NIC takes a packet from its flows in turn.
    #[default]
    None,
    /// First in, first out among the packets of a class: a packet waits for all that were handed over before it, whole first windows of other flows included.
    Fifo,
    /// Each flow (each subflow, under MPTCP) has a queue of its own, and within a class these send a packet each in turn: csg-htsim's `FairPriorityQueue`, its hosts' queue by
    /// default.
    Fair,
}

impl NicQueue {
    /// Whether packets wait in a queue at all.
    pub fn exists(self) -> bool {
        self != NicQueue::None
    }
}
