//! Switches tell sources that a link is cut: what is left of a packet goes back.

pub(crate) mod host;
pub(crate) mod notified_cuts;
pub(crate) mod switch;

use netloom_fabric::PacketKind;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};

/// What has turned back at a cut link.
pub(crate) struct Unreachable;

impl Protocol for Unreachable {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::data(PacketKind::Unreachable, "unreachable", Origin::Switch),
        PacketFacts::control(PacketKind::UnreachableAck, "unreachable-ack", Origin::Switch),
        PacketFacts::control(PacketKind::UnreachableNack, "unreachable-nack", Origin::Switch),
        PacketFacts::control(PacketKind::UnreachablePull, "unreachable-pull", Origin::Switch),
        PacketFacts::control(PacketKind::UnreachableCnp, "unreachable-cnp", Origin::Switch),
    ];

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        vec![WireSize::queued(parts.transport.options.ack_size)]
    }
}
