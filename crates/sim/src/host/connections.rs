//! The connections of a host, whose subflows send together.

use std::collections::BTreeMap;

use netloom_transport::{Connection, Outgoing};

use crate::host::flow::Flow;
use crate::world::World;

/// The connections of a host by the numbers of their flows.
pub(crate) type Connections = BTreeMap<u32, Connected>;

/// A connection, and where its subflows are.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) connection: Connection,
    pub(crate) slots: Vec<u32>,
}

/// A subflow's sender has counted a packet: what that is in its flow, and whether that changes what the other subflows may send.
#[inline(never)]
pub(crate) fn take_of_connection(
    connections: &mut Option<Box<Connections>>,
    world: &World,
    flow: &mut Flow,
    counted: Outgoing,
) -> (Outgoing, bool) {
    let number = flow.at.key.flow;
    let (whole, subflow) = (world.numbering.flow(number), world.numbering.subflow(number));
    let connected = connections.as_mut().and_then(|connections| connections.get_mut(&whole));
    let Some(Connected { connection, .. }) = connected else { return (counted, false) };
    let next = connection.take(&world.transport, subflow, counted);
    let unsent = connection.unsent(&world.transport, subflow);
    flow.sender.offer(&world.transport, unsent);
    (next, unsent.0 == 0 || connection.is_unsettled())
}
