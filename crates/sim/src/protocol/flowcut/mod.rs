//! Flowcut Switching where switches count: acknowledgements between them, and signals to sources.

pub(crate) mod host;
pub(crate) mod pause;
pub(crate) mod switch;

use netloom_routing::Placement;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::flowcut::pause::{PauseLimit, PausedClasses};
use crate::protocol::packets::{FLOW_ACK, XOFF, XON};
use crate::protocol::state::{Part, ProtocolState};
use crate::world::World;

/// Acknowledgements of what has passed, XOFF and XON.
pub(crate) struct Flowcut;

impl Protocol for Flowcut {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::control(FLOW_ACK, "flow-ack", Origin::Switch),
        PacketFacts::control(XOFF, "xoff", Origin::Switch),
        PacketFacts::control(XON, "xon", Origin::Switch),
    ];

    type Timer = PauseLimit;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        let sizes = parts.routing.counted_flowcuts().map(|flowcut| [flowcut.ack_size, flowcut.frame_size]);
        sizes.into_iter().flatten().map(WireSize::queued).collect()
    }
}

impl ProtocolState for Flowcut {
    type AtHost = PausedClasses;
    type AtSwitch = ();

    fn takes_part(world: &World, has_hosts: bool, (): &()) -> Option<Part> {
        // Where only first switches count, those between them carry acknowledgements like any packet.
        let counts = world.routing.counted_flowcuts().is_some();
        (counts && (has_hosts || world.routing.placement != Placement::Ingress)).then_some(Part::Routes)
    }
}
