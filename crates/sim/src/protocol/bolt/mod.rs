//! Bolt: switches notify the sources of packets that meet a queue, and say whose windows may grow.

pub(crate) mod host;
pub(crate) mod points;
pub(crate) mod switch;

use crate::protocol::bolt::points::Points;
use crate::protocol::declaration::{NoTimer, Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::packets::SOURCE_NOTICE;
use crate::protocol::state::{Part, ProtocolState};
use crate::world::World;

/// Notices to sources (SRC packets).
pub(crate) struct Bolt;

impl Protocol for Bolt {
    const PACKETS: &'static [PacketFacts] =
        &[PacketFacts::control(SOURCE_NOTICE, "source-notice", Origin::Switch)];

    type Timer = NoTimer;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        let transport = parts.transport;
        transport.bolt().map(|_| WireSize::queued(transport.options.ack_size)).into_iter().collect()
    }
}

impl ProtocolState for Bolt {
    type AtHost = ();
    type AtSwitch = Points;

    fn takes_part(world: &World, _: bool, _: &Points) -> Option<Part> {
        world.transport.bolt().is_some().then_some(Part::Queues)
    }
}
