//! What is run flow by flow beside a run in packets.

use netloom_record::{FlowRecord, Series};
use netloom_topology::ChannelId;
use netloom_units::Time;
use netloom_workload::RankLog;

/// Flows that take a share of the channels' rates and have no packets: what they did, and what they leave to packets.
#[derive(Debug, Default)]
pub struct Background {
    /// Their records.
    pub flows: Series<FlowRecord>,
    /// How many of them have begun, as messages: where servers have several NICs, one may have several records.
    pub messages: u64,
    /// How many of the messages have ended.
    pub messages_done: u64,
    /// What the ranks of their jobs noted.
    pub logs: Vec<RankLog>,
    /// When the last calculation of these was over.
    pub calculated: Option<Time>,
    /// Whether some of their work is left.
    pub has_work_left: bool,
    /// When the last of them, or of these calculations, ended; the end of the run if some flows were under way then.
    pub active_until: Time,
    /// The same, but the end of the run also if work is left.
    pub end: Time,
    /// Per channel, what it carried of them.
    pub carried: Vec<Carried>,
    /// Per channel of which they take some, in order of channels: the share of its rate that they leave to packets from each instant on.
    pub shares: Vec<(ChannelId, Vec<(Time, f64)>)>,
}

/// What a channel carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes on the wire.
    pub bytes: u64,
    /// For how long these would have taken all of its rate.
    pub busy: Time,
    /// The part of `bytes` after the end of the load.
    pub bytes_in_drain: u64,
    /// The part of `busy` after the end of the load.
    pub busy_in_drain: Time,
}
