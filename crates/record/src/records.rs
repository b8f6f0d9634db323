//! What a simulator writes down: plain structs, one per flow, channel and sample, and totals of the run.

use std::collections::BTreeMap;

use netloom_units::{Rate, Time};
use serde::{Deserialize, Serialize};

/// Everything one run has seen.
///
/// Flows are in order of (`src`, `flow`), channels in order of `channel`, samples in order of (`time`, `channel`), so
/// that equal runs give equal files; [`Records::sort`] brings them there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// Every flow that started.
    pub flows: Vec<FlowRecord>,
    /// Every channel of the network, used or not.
    pub channels: Vec<ChannelRecord>,
    /// Sampled series; empty if nothing was sampled.
    pub samples: Vec<SampleRecord>,
    /// Totals of the run.
    pub totals: Totals,
}

impl Records {
    /// Brings all records into their canonical order; cheap where they are in order already.
    pub fn sort(&mut self) {
        self.flows.sort_by_key(|flow| (flow.src, flow.flow));
        self.channels.sort_by_key(|channel| channel.channel);
        self.samples.sort_by_key(|sample| (sample.time, sample.channel));
    }
}

/// One flow: a message from one host to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRecord {
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Number of the flow at its source, in order of start.
    pub flow: u32,
    /// Payload.
    pub bytes: u64,
    /// When the message was handed to the sender's transport.
    pub start: Time,
    /// Flow completion time: from the start to the delivery of the last byte; `None` if it did not finish.
    pub fct: Option<Time>,
    /// From the start to the ACK of the last byte at the sender; `None` if that did not arrive.
    pub sender_fct: Option<Time>,
    /// The FCT this flow would have alone on an idle fabric.
    pub idle_fct: Time,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Packets that arrived with a sequence number above the next expected one.
    pub ooo_packets: u64,
    /// Largest distance, in packets, between the sequence number that arrived and the next expected one.
    pub max_ood: u32,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Data packets that arrived with an ECN mark.
    pub ecn_marks: u64,
    /// How often the sender changed the flow's path.
    pub path_changes: u32,
    /// How often the flow was paused to drain its path.
    pub drains: u32,
    /// Time spent paused to drain.
    pub drain_time: Time,
    /// Routing decisions taken for the flow's data packets.
    pub decisions: u64,
    /// Decisions that differed from the scheme's default path.
    pub deviations: u64,
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelRecord {
    /// Number of the channel in the network.
    pub channel: u32,
    /// Name of the sending node.
    pub from: String,
    /// Name of the receiving node.
    pub to: String,
    /// Class of links, e.g. `host` or `agg-core`.
    pub tier: String,
    /// Nominal rate.
    pub rate: Rate,
    /// Bytes sent, headers included.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Time spent transmitting.
    pub busy: Time,
    /// Most bytes that waited in the port at a time.
    pub max_queue: u64,
    /// Average over time of the bytes that waited in the port.
    pub mean_queue: f64,
    /// Packets dropped at the port.
    pub drops: u64,
    /// Packets marked (ECN) at the port.
    pub marks: u64,
}

/// One sample of one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleRecord {
    /// When it was taken.
    pub time: Time,
    /// Which channel.
    pub channel: u32,
    /// Bytes waiting in the port.
    pub queue: u64,
    /// Bytes sent since the last sample.
    pub bytes: u64,
}

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Simulated time.
    #[serde(rename = "simulated_ps", with = "picoseconds")]
    pub simulated: Time,
    /// Packets of all kinds times the channels they crossed.
    pub packet_hops: u64,
    /// Data packets.
    pub data: PacketCounts,
    /// ACKs and other control packets.
    pub control: PacketCounts,
    /// Decisions by the name of the selector that took them.
    pub decisions: BTreeMap<String, DecisionCount>,
}

/// Where packets went: `sent = delivered + dropped + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketCounts {
    /// Sent by hosts.
    pub sent: u64,
    /// Received by hosts.
    pub delivered: u64,
    /// Dropped on the way.
    pub dropped: u64,
    /// On the way when the run ended.
    pub in_flight: u64,
}

/// What a selector did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionCount {
    /// Decisions taken.
    pub taken: u64,
    /// Decisions that differed from the selector's default.
    pub deviated: u64,
}

/// Times as whole picoseconds in JSON, under names that end in `_ps`.
pub(crate) mod picoseconds {
    use netloom_units::Time;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.0)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        u64::deserialize(deserializer).map(Time)
    }
}
