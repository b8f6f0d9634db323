//! CONGA: what leaves tell each other goes with the packets of hosts, as their tag.

pub(crate) mod switch;

use crate::protocol::declaration::{PacketFacts, Parts, Protocol, WireSize};

/// No packets of its own.
pub(crate) struct Conga;

impl Protocol for Conga {
    const PACKETS: &'static [PacketFacts] = &[];

    fn wire_sizes(_: Parts<'_>) -> Vec<WireSize> {
        Vec::new()
    }
}
