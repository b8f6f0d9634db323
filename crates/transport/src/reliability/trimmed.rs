//! Losses are what trimming reports.

use netloom_units::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Facts, GivesUp, ReliabilityConfig, Takes};
/// NDP's reliability (Handley et al., SIGCOMM'17), for fabrics that trim: packets are accepted in any order and acknowledged one by one.
/// Exactly those whose header reached the receiver or came back are sent again, before anything new. Later arrivals do not indicate a loss, because
/// packets may be sprayed. Packets that left no header (dropped, or lost to a fault) are found by the retransmission timeout, one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trimmed {
    /// Whether packets that are sent again go in the control queue, before other data (FatPaths' purified transport). They lose their payload
    /// where that queue is full.
    pub priority: bool,
    /// Whether a trimmed packet asks its sender for another path, which the sender takes at most once per round trip: what left before the
    /// last change of path says nothing about the new one (FatPaths, sec. III). Matters where NICs choose paths, by layers, say.
    pub reroute: bool,
    /// This many trimmed packets of a flow, without one in between that arrives whole, cause that request. The paper leaves it open. With
    /// 1, flows finish soonest where the network carries the offered load; larger values are better for flows that never end
    /// (`docs/studies-fatpaths-simulation.md`).
    pub reroute_after: u32,
}

impl Default for Trimmed {
    fn default() -> Self {
        Trimmed { priority: false, reroute: false, reroute_after: 1 }
    }
}

impl ReliabilityConfig for Trimmed {
    #[inline(always)]
    fn facts(&self) -> Facts {
        Facts {
            has_acks: true,
            takes: Takes::Any,
            loss_detection: None,
            gives_up: GivesUp::Overdue,
            nack_congestion: false,
            urgent_repeats: self.priority,
            reroute_after: self.reroute.then_some(self.reroute_after),
            relies_on_trimming: true,
            sack_bytes: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("reroute_after", self.reroute_after, 1)?;
        let is_used = self.reroute || self.reroute_after == 1;
        Invalid::unless(
            is_used,
            "reroute_after",
            "1 where trimmed packets ask for nothing (reroute = false)",
            self.reroute_after,
        )
    }
}
