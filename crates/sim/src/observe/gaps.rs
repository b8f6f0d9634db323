//! Which gaps between packets a run measures.

use netloom_routing::Granularity;
use netloom_routing::granularity::flowlet::Flowlet;
use netloom_transport::Transport;
use netloom_units::Time;

use crate::observe::measure::Measure;

/// Which gaps are measured, and where.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    /// The gap that separates flowlets.
    pub(crate) flowlet: Option<Flowlet>,
    /// Whether gaps are counted by their length.
    pub(crate) are_counted: bool,
    /// Whether switches look at them, too.
    pub(crate) at_switches: bool,
}

impl Gaps {
    /// Flowlets are those of routing, or else those that the host makes.
    pub(crate) fn new(granularity: &Granularity, transport: &Transport, measure: &Measure) -> Self {
        let flowlet = match granularity.flowlet() {
            Some(flowlet) => Some(flowlet.clone()),
            // A gap that was stretched to the threshold ends a flowlet.
            None => transport.shaping.facts().stretching.and_then(|stretching| {
                let gap = stretching.flowlet?.saturating_sub(Time(1));
                Some(Flowlet { gap, age_bit: false })
            }),
        };
        Gaps { flowlet, are_counted: measure.gaps, at_switches: measure.switch_gaps }
    }
}
