//! Receivers ask for packets (NDP) or grant credit for them (Ultra Ethernet's RCCC), and senders ask to be asked.

mod credit;
pub(crate) mod host;
pub(crate) mod queue;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::packets::{PULL, REQUEST, UNREACHABLE_PULL};
use crate::protocol::pulls::queue::{AtHost, PullDue};
use crate::protocol::state::ProtocolState;

/// PULLs and requests.
pub(crate) struct Pulls;

impl Protocol for Pulls {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::control(PULL, "pull", Origin::Host).turning_into(UNREACHABLE_PULL),
        PacketFacts::control(REQUEST, "request", Origin::Host).concerning_arrivals(),
    ];

    type Timer = PullDue;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        let size = parts.transport.options.ack_size;
        parts.transport.pulls().then(|| WireSize::queued(size)).into_iter().collect()
    }
}

impl ProtocolState for Pulls {
    type AtHost = AtHost;
    type AtSwitch = ();
}
