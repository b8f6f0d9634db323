//! Signals of a packet's last switch to its first one, and packets that the last one holds back, under schemes whose edge switches
//! [work together](netloom_routing::edges).

pub(crate) mod reorder_queues;
pub(crate) mod switch;

use netloom_routing::edges::SIGNAL_SIZE;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::edge_signals::reorder_queues::{FlushDue, ReorderQueues};
use crate::protocol::packets::SIGNAL;
use crate::protocol::state::{Part, ProtocolState};
use crate::world::World;

/// Signals between edge switches about a flow: the scheme's word is the packet's tag.
pub(crate) struct EdgeSignals;

impl Protocol for EdgeSignals {
    const PACKETS: &'static [PacketFacts] =
        &[PacketFacts::control(SIGNAL, "signal", Origin::Switch).with_own_tag()];

    type Timer = FlushDue;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        parts.routing.has_edges().then(|| WireSize::queued(SIGNAL_SIZE)).into_iter().collect()
    }
}

impl ProtocolState for EdgeSignals {
    type AtHost = ();
    type AtSwitch = ReorderQueues;

    fn takes_part(world: &World, _: bool, _: &ReorderQueues) -> Option<Part> {
        world.routing.has_edges().then_some(Part::Routes)
    }
}
