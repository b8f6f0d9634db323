//! Packet delivery of Ultra Ethernet: one ACK for several packets, with a bitmap.

use netloom_units::{Bytes, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Facts, GivesUp, ReliabilityConfig, Takes};

/// Packet delivery of Ultra Ethernet (PDS; UEC specification 1.0, as far as the public simulator uet-htsim, commit 40ccb05, has it): packets
/// are taken in any order. One ACK answers several of them: it carries a cumulative ACK, a count of received packets and a 64-bit
/// SACK bitmap, and echoes mark and entropy value of the packet that caused it. An ACK leaves for the first packet of a flow, for one that is
/// marked, that came twice or that asks for it, and else after `ack_bytes`. A packet asks if nothing can follow it at once (the last one, and
/// one that fills the window) or if it is sent again; its ACK is followed by another one when nothing is missing before it any more.
///
/// A trimmed packet is reported by a NACK at once, and sent again before anything new. Other losses are found by the timeout, counted for each
/// packet from its departure, and only that packet is sent again. Ultra Ethernet's timeout does not grow and follows no round-trip times: set
/// `rto_min`, `rto_initial` and `rto_max` to the same time, as the preset `uet-nscc` does. Round-trip times are those of packets that were sent
/// once, or twice if the ACK is for the second time.
///
/// In fabrics that lose nothing there are timeouts as well, since a window that shrinks may leave packets unanswered that asked for no ACK; a pause that lasts
/// longer makes packets be sent twice.
///
/// A window has to hold what waits for a shared ACK beyond the bandwidth-delay product: on short paths, or slow ones, a flow that is alone is slower than its link
/// unless `ack_bytes` is small. `netloom run` warns of that for the longest path. With `rccc` alone credit is what limits a flow, which does not wait for ACKs.
///
/// No timer makes a receiver send an ACK that is not due yet. If the packets of a flow leave far apart, because many flows share its NIC, set a
/// longer timeout or a smaller `ack_bytes`; otherwise packets are sent twice.
///
/// Where the window holds back what a timeout has found to be missing, the sender asks for an ACK by a request (RTS, a packet of `ack_size`), at most once in a round trip, and not again while packets wait to be
/// sent again. As in uet-htsim (commit 40ccb05); there requests take a packet number and are repeated if they get lost.
///
/// Works with the congestion controls that use windows, rates or credit (`rccc`). Left out: the receiver's window penalty. Messages of a connection are frames of a stream; a connection keeps its window and its credit between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pds {
    /// Bytes on the wire that arrive before an ACK is due; 0: every packet has its own.
    pub ack_bytes: Bytes,
    /// Fast loss recovery without trimming (uet-htsim: `-sleek`); absent: only trimming and timeouts show losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleek: Option<Sleek>,
}

/// Least waiting time before a probe, in round-trip times: a run with less would do little else than send probes.
const LEAST_WAIT: f64 = 0.01;

/// SLEEK, Ultra Ethernet's optional fast loss recovery where switches do not trim (as in uet-htsim, commit 40ccb05): if more packets have come beyond the next one expected than
/// `window_factor` times the window holds (no more than the largest window), a sender sends every packet again that is not acknowledged, from the next one expected on as far as its window
/// reaches, each once and whatever is in flight, until all that had been sent by then is acknowledged. If no ACK comes for a while, it sends a probe, a control packet on a path of the balancer's choice; an answer that was
/// delayed by less than the target delay begins a recovery as well.
///
/// Needs `congestion = "nscc"`, of which target and least round-trip time are. The first probe leaves after the first ACK at the earliest, so that a first window that is lost as a whole needs a timeout. Timeouts
/// remain besides; uet-htsim suspends those of packets that a recovery may still send again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sleek {
    /// Windows of packets beyond the next one expected that show a loss (uet-htsim: 1.5). They hold no more than the largest window (1.5 bandwidth-delay products by default), so that with a
    /// window of that size a factor above 1 does as 1 does.
    pub window_factor: f64,
    /// Least number of such packets (uet-htsim: 5).
    pub min_packets: u32,
    /// A probe leaves that many least round-trip times after the last ACK, while there is something new to send (uet-htsim: 3; at least 0.01); otherwise after one and the target delay.
    pub first_probe: f64,
    /// And again after that many, while no ACK comes (uet-htsim: 5; at least 0.01).
    pub next_probe: f64,
}

impl Default for Sleek {
    fn default() -> Self {
        Sleek { window_factor: 1.5, min_packets: 5, first_probe: 3.0, next_probe: 5.0 }
    }
}

impl Default for Pds {
    /// 16 KiB, four packets of 4 KiB, as uet-htsim (`-sack_threshold`).
    fn default() -> Self {
        Pds { ack_bytes: Bytes(16_384), sleek: None }
    }
}

impl ReliabilityConfig for Pds {
    #[inline(always)]
    fn facts(&self) -> Facts {
        Facts {
            has_acks: true,
            takes: Takes::Any,
            loss_detection: None,
            gives_up: GivesUp::Overdue,
            nack_congestion: false,
            urgent_repeats: false,
            reroute_after: None,
            relies_on_trimming: self.sleek.is_none(),
            sack_bytes: Some(self.ack_bytes),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let fits = self.ack_bytes.0 <= MOST_BYTES;
        Invalid::unless(fits, "ack_bytes", format!("at most {}", Bytes(MOST_BYTES)), self.ack_bytes)?;
        let Some(sleek) = &self.sleek else { return Ok(()) };
        Invalid::positive("sleek.window_factor", sleek.window_factor)?;
        Invalid::at_least("sleek.min_packets", sleek.min_packets, 1)?;
        for (field, factor) in
            [("sleek.first_probe", sleek.first_probe), ("sleek.next_probe", sleek.next_probe)]
        {
            Invalid::positive(field, factor)?;
            Invalid::at_least(field, factor, LEAST_WAIT)?;
        }
        Ok(())
    }
}

/// So much is never under way of one flow.
const MOST_BYTES: u64 = 1 << 30;
