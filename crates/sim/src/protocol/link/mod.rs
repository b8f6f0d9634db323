//! What the two ends of a link say to each other for flow control. Ports make it and obey it; nodes hand it to them.

pub(crate) mod host;
pub(crate) mod switch;

use netloom_fabric::{FlowControl, PacketKind};

use crate::protocol::declaration::{NoTimer, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::state::ProtocolState;

/// PAUSE frames and credits.
pub(crate) struct Link;

impl Protocol for Link {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::link(PacketKind::Pause, Some("pause")).freeing_ports(),
        PacketFacts::link(PacketKind::Credit, None).freeing_ports(),
        PacketFacts::link(PacketKind::Missed, None).freeing_ports(),
    ];

    type Timer = NoTimer;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        let size = match &parts.fabric.flow_control {
            FlowControl::Lossy(_) => return Vec::new(),
            FlowControl::Pfc(pfc) => pfc.pause_size,
            FlowControl::PfcShared(pfc) => pfc.pause_size,
            FlowControl::Credits(credits) => credits.credit_size,
        };
        vec![WireSize::beside(size)]
    }
}

impl ProtocolState for Link {
    type AtHost = ();
    type AtSwitch = ();
}
