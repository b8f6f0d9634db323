//! Interrupt throttling: a host looks at what has come, data and ACKs alike, at most once in an interval. Signals of its link are its NIC's own affair.

use netloom_fabric::Packet;
use netloom_units::Time;

/// What waits for a host to look at it.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    pub(crate) coalesced: Vec<Packet>,
    /// When the host may look next.
    pub(crate) opens: Time,
}
