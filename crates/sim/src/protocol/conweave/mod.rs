//! ConWeave: the switches at the two ends of a flow tell each other when packets change their path.

pub(crate) mod reorder_queues;
pub(crate) mod switch;

use netloom_fabric::PacketKind;
use netloom_units::Bytes;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};

/// Size of what switches tell each other: a header without payload.
pub(crate) const WORD: Bytes = Bytes(64);

/// What switches tell each other of a flow.
pub(crate) struct ConWeave;

impl Protocol for ConWeave {
    const PACKETS: &'static [PacketFacts] =
        &[PacketFacts::control(PacketKind::Word, "word", Origin::Switch).with_own_tag()];

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        parts.routing.uses_conweave().then(|| WireSize::queued(WORD)).into_iter().collect()
    }
}
