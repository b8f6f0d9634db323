//! HPCC: what switches write on packets lies beside these, and comes back with ACKs.

pub(crate) mod host;

use crate::protocol::declaration::{NoTimer, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::state::ProtocolState;

/// No packets of its own.
pub(crate) struct Telemetry;

impl Protocol for Telemetry {
    const PACKETS: &'static [PacketFacts] = &[];

    type Timer = NoTimer;

    fn wire_sizes(_: Parts<'_>) -> Vec<WireSize> {
        Vec::new()
    }
}

impl ProtocolState for Telemetry {
    type AtHost = ();
    type AtSwitch = ();
}
