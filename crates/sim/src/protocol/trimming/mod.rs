//! Packets that lost their payload in a full queue: the fabric makes headers of them, which reach their receiver or come back
//! to their sender.

pub(crate) mod host;

use netloom_fabric::{PacketKind, Queue};

use crate::protocol::declaration::{NoTimer, Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::state::ProtocolState;

/// Headers, on their way to the receiver and back to the sender.
pub(crate) struct Trimming;

impl Protocol for Trimming {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::data(PacketKind::Header, "header", Origin::Host)
            .turning_into(PacketKind::Unreachable)
            .concerning_arrivals(),
        PacketFacts::data(PacketKind::Returned, "returned", Origin::Switch),
    ];

    type Timer = NoTimer;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        match &parts.fabric.queue {
            Queue::TailDrop(_) => Vec::new(),
            // What is smaller than a header keeps its size.
            Queue::Trimming(trimming) => {
                vec![WireSize::queued(trimming.header_size.min(parts.transport.packet_size()))]
            }
        }
    }
}

impl ProtocolState for Trimming {
    type AtHost = ();
    type AtSwitch = ();
}
