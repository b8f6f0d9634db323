//! Losses are what trimming reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// NDP's reliability (Handley et al., SIGCOMM'17), for fabrics that trim: packets are taken in any order and acknowledged one by one, and exactly
/// those are sent again, before anything new, whose header reached the receiver or came back. Later arrivals say nothing, because packets
/// may be sprayed. What left no header, dropped or lost to a fault, is found by the retransmission timeout, packet by packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trimmed {
    /// Whether packets that are sent again go in the control lane, before other data (FatPaths' purified transport). They lose their payload
    /// where that lane is full.
    pub priority: bool,
    /// Whether a trimmed packet asks its sender for another path, which senders heed once per round trip: what left before the last change of
    /// path says nothing about the new one (FatPaths, sec. III). Matters where NICs choose paths, by layers, say.
    pub reroute: bool,
}
