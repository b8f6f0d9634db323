//! Events of a host's flows.

use netloom_routing::FlowKey;
use netloom_units::Time;

/// An event of a flow that was started from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FlowEvent {
    /// The flow of a ticket has this number at its source, and is sent in `parts` parts.
    Started { ticket: u32, flow: u32, parts: u32 },
    /// A NIC of a server is done with sending a flow.
    Sent { flow: u32 },
    /// The last byte of a flow has come at an instant.
    Received { flow: FlowKey, at: Time },
}
