//! Events of a host's flows.

use netloom_routing::FlowKey;
use netloom_units::Time;

/// An event of a flow that was started from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FlowEvent {
    /// The flow of a ticket has this number at its source, and is sent in `parts` parts.
    Started { ticket: u32, flow: u32, parts: u32 },
    /// The sender of a flow is done with it: all of it has been acknowledged. A NIC of a server tells the server, and hosts and servers what drives the run, if it
    /// [asked for that](crate::Driven::report_acknowledged).
    Sent { flow: u32, at: Time },
    /// The last byte of a flow has come at an instant.
    Received { flow: FlowKey, at: Time },
}
