//! HPCC: what switches write on packets lies beside these, and comes back with ACKs.

pub(crate) mod host;

use crate::protocol::declaration::{NoTimer, PacketFacts, Parts, Protocol, WireSize};

/// No packets of its own.
pub(crate) struct Telemetry;

impl Protocol for Telemetry {
    const PACKETS: &'static [PacketFacts] = &[];

    type AtHost = ();
    type AtSwitch = ();
    type Timer = NoTimer;

    fn wire_sizes(_: Parts<'_>) -> Vec<WireSize> {
        Vec::new()
    }
}
