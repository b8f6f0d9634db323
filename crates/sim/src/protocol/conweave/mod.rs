//! ConWeave: the switches at the two ends of a flow tell each other when packets change their path.

pub(crate) mod reorder_queues;
pub(crate) mod switch;

use netloom_units::Bytes;

use crate::protocol::conweave::reorder_queues::{FlushDue, ReorderQueues};
use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::packets::WORD;
use crate::world::World;

/// Size of what switches tell each other: a header without payload.
pub(crate) const WORD_SIZE: Bytes = Bytes(64);

/// What switches tell each other of a flow.
pub(crate) struct ConWeave;

impl Protocol for ConWeave {
    const PACKETS: &'static [PacketFacts] =
        &[PacketFacts::control(WORD, "word", Origin::Switch).with_own_tag()];

    type AtHost = ();
    type AtSwitch = ReorderQueues;
    type Timer = FlushDue;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        parts.routing.weaves().then(|| WireSize::queued(WORD_SIZE)).into_iter().collect()
    }

    fn takes_part(world: &World, _: bool, _: &ReorderQueues) -> bool {
        world.routing.weaves()
    }
}
