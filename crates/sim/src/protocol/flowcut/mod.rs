//! Flowcut Switching where switches count: acknowledgements between them, and signals to sources.

pub(crate) mod host;
pub(crate) mod pause;
pub(crate) mod switch;

use netloom_fabric::PacketKind;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};

/// Acknowledgements of what has passed, XOFF and XON.
pub(crate) struct Flowcut;

impl Protocol for Flowcut {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::control(PacketKind::FlowAck, "flow-ack", Origin::Switch),
        PacketFacts::control(PacketKind::Xoff, "xoff", Origin::Switch),
        PacketFacts::control(PacketKind::Xon, "xon", Origin::Switch),
    ];

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        let sizes = parts.routing.counted_flowcuts().map(|flowcut| [flowcut.ack_size, flowcut.frame_size]);
        sizes.into_iter().flatten().map(WireSize::queued).collect()
    }
}
