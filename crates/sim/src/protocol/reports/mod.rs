//! The reports of a group's switches to each other about the loads of their global channels (UGAL-G).
//!
//! At every multiple of a period a switch looks at its global channels and reports those whose load has changed to the switches of its group
//! that it has a link to. A report crosses that link beside the data, as credits do, in the link's delay and its own serialisation, and
//! takes no bandwidth; a cut link takes it, and it is not repeated. So what a switch knows of another's channel is exact, but as
//! old as the report's delay and up to a period more, and no node ever reads another one's state.
//!
//! While a load may change, the switch is scheduled for the next multiple of the period, so that reports leave in time
//! whatever else happens, under every executor and on any number of threads.

pub(crate) mod loads;
pub(crate) mod switch;

use netloom_fabric::PacketKind;
use netloom_units::Bytes;

use crate::protocol::declaration::{NoTimer, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::reports::loads::Reports;
use crate::protocol::state::ProtocolState;

/// A report as it crosses a link.
pub(crate) const SIZE: Bytes = Bytes(64);

/// Loads of global channels.
pub(crate) struct LoadReports;

impl Protocol for LoadReports {
    const PACKETS: &'static [PacketFacts] = &[PacketFacts::link(PacketKind::Report, None)];

    type Timer = NoTimer;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        parts.routing.report_period().map(|_| WireSize::beside(SIZE)).into_iter().collect()
    }
}

impl ProtocolState for LoadReports {
    type AtHost = ();
    type AtSwitch = Option<Box<Reports>>;
}
