//! Selective repeat with an ideal reorder buffer.

use netloom_units::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Selective repeat with an ideal reorder buffer: packets are taken in any order and acknowledged one by one, so that a sender knows each hole.
/// Where the fabric loses nothing, reordering costs nothing (the Flowcut evaluation charges it to no scheme). Where it can lose packets, a
/// hole is taken for a loss once `reorder_threshold` packets sent later have arrived, or by `rack`; the retransmission timeout is the last
/// resort. Only what is lost is sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SelectiveRepeat {
    /// A packet is lost once so many packets that were sent later have arrived (RFC 5681, RFC 6675). With `rack` this holds until reordering
    /// is seen.
    pub reorder_threshold: u32,
    /// Whether time decides beside the threshold, as RACK-TLP does (RFC 8985): a packet is lost if it is late by a quarter of the least
    /// round-trip time, or by more quarters, up to a whole smoothed one, after needless retransmissions; and if nothing has come back for
    /// two round-trip times, a probe finds out whether the tail is lost. Where routing sprays packets, reordering counts as seen from the start.
    pub rack: bool,
}

impl Default for SelectiveRepeat {
    fn default() -> Self {
        SelectiveRepeat { reorder_threshold: 3, rack: true }
    }
}

impl SelectiveRepeat {
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("reorder_threshold", self.reorder_threshold, 1)
    }
}
