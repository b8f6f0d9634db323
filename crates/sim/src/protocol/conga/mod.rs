//! CONGA: leaves' reports to each other travel on the packets of hosts, as their tag.

pub(crate) mod switch;

use crate::protocol::declaration::{NoTimer, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::state::{Part, ProtocolState};
use crate::world::World;

/// No packets of its own.
pub(crate) struct Conga;

impl Protocol for Conga {
    const PACKETS: &'static [PacketFacts] = &[];

    type Timer = NoTimer;

    fn wire_sizes(_: Parts<'_>) -> Vec<WireSize> {
        Vec::new()
    }
}

impl ProtocolState for Conga {
    type AtHost = ();
    type AtSwitch = ();

    fn takes_part(world: &World, _: bool, (): &()) -> Option<Part> {
        world.routing.conga().is_some().then_some(Part::Routes)
    }
}
