//! Everything a simulation needs besides a network and a plan.

use netloom_fabric::Fabric;
use netloom_routing::{Routing, preset};
use netloom_transport::Transport;

use crate::fault::Fault;
use crate::observe::measure::Measure;

/// Fabric, routing, transport, faults, and what to measure.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Queues and marking.
    pub fabric: Fabric,
    /// Which path packets take.
    pub routing: Routing,
    /// What hosts do.
    pub transport: Transport,
    /// Slow and cut links.
    pub faults: Vec<Fault>,
    /// What to measure.
    pub measure: Measure,
    /// Seed of everything random in the run; the workload has its own.
    pub seed: u64,
    /// Whether what recurs is skipped, with the same outcome.
    pub fast: bool,
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
            fast: false,
        }
    }
}
