//! NDP: receivers ask for packets, and senders ask to be asked.

pub(crate) mod host;
pub(crate) mod queue;

use netloom_fabric::PacketKind;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};

/// PULLs and requests.
pub(crate) struct Pulls;

impl Protocol for Pulls {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::control(PacketKind::Pull, "pull", Origin::Host),
        PacketFacts::control(PacketKind::Request, "request", Origin::Host),
    ];

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        let size = parts.transport.options.ack_size;
        parts.transport.pulls().then(|| WireSize::queued(size)).into_iter().collect()
    }
}
