//! Where a run stands, and how it ends.

use netloom_record::{Division, Records, Skipped, SteadySkipped};
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

impl RunProgress {
    /// Which share of a run is done, by flows (of `flows` in all) or by time (of `until`), whichever is further; `None` if neither is known.
    pub fn share(&self, flows: Option<u64>, until: Option<Time>) -> Option<f64> {
        let by_flows = flows.map(|flows| self.flows_done as f64 / flows.max(1) as f64);
        let by_time = until.map(|until| self.time.as_secs_f64() / until.as_secs_f64());
        [by_flows, by_time].into_iter().flatten().reduce(f64::max)
    }
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// What was seen.
    pub records: Records,
    /// Whether the observer stopped it before its end.
    pub interrupted: bool,
    /// What was skipped, where that was asked for.
    pub skipped: Option<Skipped>,
    /// What of it was steady without recurring, where that may be skipped.
    pub steady: Option<SteadySkipped>,
    /// How many of the flows were run flow by flow, where some were.
    pub background_flows: Option<u64>,
    /// How the work was divided, if several threads shared it.
    pub division: Option<Division>,
}
