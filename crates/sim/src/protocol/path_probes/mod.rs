//! Probes by which NICs find out how long paths take (Hopper), and their answers.

pub(crate) mod host;

use crate::protocol::declaration::{NoTimer, Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::packets::{PATH_PROBE, PATH_PROBE_ANSWER};
use crate::protocol::state::ProtocolState;

/// Probes of paths.
pub(crate) struct PathProbes;

impl Protocol for PathProbes {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::control(PATH_PROBE, "path-probe", Origin::Host).concerning_arrivals(),
        PacketFacts::control(PATH_PROBE_ANSWER, "path-probe-answer", Origin::Host),
    ];

    type Timer = NoTimer;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        let sends = parts.routing.sends_probes();
        sends.then(|| WireSize::queued(parts.transport.options.ack_size)).into_iter().collect()
    }
}

impl ProtocolState for PathProbes {
    type AtHost = ();
    type AtSwitch = ();
}
