//! Where a run stands, and how it ends.

use netloom_record::Records;
use netloom_units::Time;

/// Where a run stands.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// Simulated time.
    pub time: Time,
    /// Flows fully acknowledged.
    pub flows_done: u64,
    /// Packets that crossed a channel.
    pub packet_hops: u64,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// What was seen.
    pub records: Records,
    /// Whether the observer stopped it before its end.
    pub interrupted: bool,
}
