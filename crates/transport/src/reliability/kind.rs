//! What every reliability declares.

use netloom_units::{Bytes, Invalid, Time};

/// The parameters of a kind of reliability, and what they say of it.
pub(crate) trait ReliabilityConfig {
    /// What receivers take and answer, and how senders find losses.
    fn facts(&self) -> Facts;

    /// Refuses parameter values without meaning.
    fn check(&self) -> Result<(), Invalid>;
}

/// What receivers take and answer, and how senders find losses. Every kind declares all of it: there are no defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether receivers acknowledge what they get. If not, the fabric must lose nothing.
    pub has_acks: bool,
    /// Which packets a receiver takes.
    pub takes: Takes,
    /// How ACKs of later packets show losses; `None`: they do not.
    pub loss_detection: Option<LossDetection>,
    /// What a sender gives up at a timeout.
    pub gives_up: GivesUp,
    /// Whether a NACK is a notification of congestion as well.
    pub nack_congestion: bool,
    /// Whether packets that are sent again go before others in switches that trim.
    pub urgent_repeats: bool,
    /// After how many trimmed packets in a row a sender is asked for another path; `None`: never.
    pub reroute_after: Option<u32>,
    /// Whether trimmed packets are what reports losses, so that without them only timeouts do.
    pub relies_on_trimming: bool,
    /// One ACK may answer several packets that came in any order, and has a bitmap of them; it is due after this many bytes on the wire. `None`: ACKs say which
    /// packet has come, and answer several only where these came in order.
    pub sack_bytes: Option<Bytes>,
}

/// Which packets a receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Any.
    Any,
    /// Any that is fewer than this many packets ahead of the next one expected. What it refuses it answers with a NACK.
    Within(u32),
    /// Those in order. Others are discarded, and a NACK asks for the next one expected.
    InOrder {
        /// Least time between two NACKs that ask for the same packet.
        nack_interval: Time,
    },
}

impl Takes {
    /// Whether those in order only.
    #[inline]
    pub fn is_in_order(self) -> bool {
        matches!(self, Takes::InOrder { .. })
    }

    /// Whether a packet is too far ahead of the next one expected to be remembered.
    #[inline]
    pub(crate) fn is_beyond(self, seq: u32, expected: u32) -> bool {
        matches!(self, Takes::Within(length) if seq >= expected.saturating_add(length))
    }
}

/// How ACKs of later packets show losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossDetection {
    /// A packet is lost once this many packets that were sent later have arrived (RFC 5681, RFC 6675).
    pub reorder_threshold: u32,
    /// Whether time decides as well as the threshold (RACK-TLP, RFC 8985).
    pub rack: bool,
    /// Whether ACKs say which packets have arrived (SACK, RFC 2018).
    pub sack: bool,
}

/// What a sender gives up at a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivesUp {
    /// All that is in flight.
    All,
    /// What may be late by now, by RACK's measure.
    Late,
    /// What is overdue by itself.
    Overdue,
    /// What left two round trips ago or earlier.
    TwoRoundTrips,
}
