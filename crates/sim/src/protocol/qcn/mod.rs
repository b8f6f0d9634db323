//! QCN (IEEE 802.1Qau): switches notify sources of congestion, and these limit their rate by destination.

pub(crate) mod host;
pub(crate) mod limiter;
pub(crate) mod points;
pub(crate) mod switch;

use netloom_fabric::PacketKind;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};

/// Congestion notification messages.
pub(crate) struct Qcn;

impl Protocol for Qcn {
    const PACKETS: &'static [PacketFacts] = &[PacketFacts::control(PacketKind::Cnm, "cnm", Origin::Switch)];

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        parts.fabric.options.qcn.iter().map(|qcn| WireSize::queued(qcn.cnm_size)).collect()
    }
}
