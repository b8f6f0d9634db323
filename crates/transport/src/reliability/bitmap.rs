//! A receiver that remembers a bounded range of packets.

use netloom_units::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Facts, GivesUp, ReliabilityConfig, Takes};
/// MP-RDMA's reliability (Lu et al., NSDI'18): packets are taken in any order up to `length` from the next one expected, and acknowledged
/// one by one. A packet beyond that is refused with a NACK, also in lossless fabrics. Its sender then sends it again, with what left
/// earlier and is missing before it. A hole that no such packet follows is found by the retransmission timeout, with everything that left
/// at least two round trips before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bitmap {
    /// Packets that the receiver remembers, from the next one expected on.
    pub length: u32,
}

impl Default for Bitmap {
    /// 64 packets, as MP-RDMA's NIC.
    fn default() -> Self {
        Bitmap { length: 64 }
    }
}

impl ReliabilityConfig for Bitmap {
    #[inline(always)]
    fn facts(&self) -> Facts {
        Facts {
            has_acks: true,
            takes: Takes::Within(self.length),
            loss_detection: None,
            gives_up: GivesUp::TwoRoundTrips,
            nack_congestion: false,
            urgent_repeats: false,
            reroute_after: None,
            relies_on_trimming: false,
            sack_bytes: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("length", self.length, 1)
    }
}
