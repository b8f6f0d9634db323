//! Selective repeat with an ideal reorder buffer.

use netloom_units::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Facts, GivesUp, LossDetection, ReliabilityConfig, Takes};
/// Selective repeat with an ideal reorder buffer: packets are taken in any order and acknowledged one by one, so that a sender knows each
/// hole. Where the fabric loses nothing, reordering costs nothing (the Flowcut evaluation charges it to no scheme). Where it can lose
/// packets, a hole counts as a loss once `reorder_threshold` packets sent later have arrived, or by `rack`; the retransmission timeout
/// is the last resort. Only what is lost is sent again.
///
/// Losses are looked for only where the fabric can lose packets: a lossy fabric with a `buffer`, one that trims, or one with faults. With
/// sprayed packets in such a fabric use `rack`, the default of the kind (the presets `tcp` and `dctcp` count packets instead): reordering
/// then costs only a few packets that are sent twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SelectiveRepeat {
    /// A packet is lost once this many packets that were sent later have arrived (RFC 5681, RFC 6675). With `rack` this holds until reordering
    /// is seen.
    pub reorder_threshold: u32,
    /// Whether time decides as well as the threshold, as RACK-TLP does (RFC 8985): a packet is lost if it is late by a quarter of the minimum
    /// round-trip time, or by more quarters, up to a whole smoothed one, after needless retransmissions; and if nothing has come back for
    /// two round-trip times, a probe finds out whether the tail is lost. Where routing sprays packets, reordering counts as seen from the
    /// start.
    pub rack: bool,
    /// Whether ACKs say which packets have come (SACK, RFC 2018). Without, it repairs one hole at a time, as NewReno (RFC 6582) and csg-htsim's TCP do: the first after
    /// `reorder_threshold` duplicate ACKs, each further one when the packets before it are acknowledged; a repetition that gets lost, and losses after a timeout, wait for the
    /// timeout. It still counts one packet less in flight for every duplicate ACK, which is NewReno's inflated window. Not with `rack`.
    pub sack: bool,
}

impl Default for SelectiveRepeat {
    fn default() -> Self {
        SelectiveRepeat { reorder_threshold: 3, rack: true, sack: true }
    }
}

impl ReliabilityConfig for SelectiveRepeat {
    #[inline(always)]
    fn facts(&self) -> Facts {
        Facts {
            has_acks: true,
            takes: Takes::Any,
            loss_detection: Some(LossDetection {
                reorder_threshold: self.reorder_threshold,
                rack: self.rack,
                sack: self.sack,
            }),
            gives_up: if self.rack { GivesUp::Late } else { GivesUp::All },
            nack_congestion: false,
            urgent_repeats: false,
            reroute_after: None,
            relies_on_trimming: false,
            sack_bytes: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("reorder_threshold", self.reorder_threshold, 1)?;
        let expected = "false without `sack`, which says how late a packet is";
        Invalid::unless(self.sack || !self.rack, "rack", expected, self.rack)
    }
}
