//! Everything a simulation needs besides a network and a plan.

use netloom_fabric::Fabric;
use netloom_routing::{Routing, preset};
use netloom_transport::Transport;
use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// Fabric, routing, transport, faults, and what to measure.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Queues and marking.
    pub fabric: Fabric,
    /// Which way packets go.
    pub routing: Routing,
    /// What hosts do.
    pub transport: Transport,
    /// Slow and cut links.
    pub faults: Vec<Fault>,
    /// What to measure.
    pub measure: Measure,
    /// Seed of everything random in the run; the workload has its own.
    pub seed: u64,
}

impl Default for SimConfig {
    /// ECMP under the default fabric and transport.
    fn default() -> Self {
        SimConfig {
            fabric: Fabric::default(),
            routing: preset::PRESETS[0].routing(),
            transport: Transport::default(),
            faults: Vec::new(),
            measure: Measure::default(),
            seed: 1,
        }
    }
}

/// What to measure, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// Flows that start before this are left out of the summary's statistics.
    pub warm_up: Time,
    /// The run ends at this instant even if flows are unfinished; absent: it ends when all work is done.
    pub until: Option<Time>,
    /// Write the queue and the bytes sent of every channel at multiples of this interval; absent: no series.
    pub sample: Option<Time>,
    /// Sample only the channels of this link tier; absent: all channels.
    pub sample_tier: Option<String>,
    /// Upper bounds of the flow-size bins of the summary, ascending; absent: bins at powers of ten.
    pub size_bins: Option<Vec<Bytes>>,
}
