//! Ultra Ethernet's ACKs: one for several packets that came in any order.

pub(crate) mod host;
pub(crate) mod wire;

use crate::protocol::declaration::{NoTimer, Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::packets::{PROBE, PROBE_ANSWER, UET_ACK, UNREACHABLE_UET_ACK};
use crate::protocol::state::ProtocolState;

/// ACKs with bitmaps, and probes with answers that say the same (SLEEK).
pub(crate) struct Uet;

impl Protocol for Uet {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::control(UET_ACK, "uet-ack", Origin::Host)
            .turning_into(UNREACHABLE_UET_ACK)
            .saying_more(),
        PacketFacts::control(PROBE, "probe", Origin::Host).concerning_arrivals(),
        PacketFacts::control(PROBE_ANSWER, "probe-answer", Origin::Host).saying_more(),
    ];

    type Timer = NoTimer;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        let has_sacks = parts.transport.has_sacks();
        has_sacks.then(|| WireSize::queued(parts.transport.options.ack_size)).into_iter().collect()
    }
}

impl ProtocolState for Uet {
    type AtHost = ();
    type AtSwitch = ();
}
