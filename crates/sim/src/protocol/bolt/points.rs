//! What Bolt keeps at a switch.

use netloom_topology::NodeId;
use netloom_transport::BoltPort;

use crate::protocol::state::SwitchState;
use crate::world::World;

/// What each port of a switch remembers. Empty without Bolt.
#[derive(Clone, Debug)]
pub(crate) struct Points(pub(super) Vec<BoltPort>);

impl SwitchState for Points {
    fn recurs(&self) -> bool {
        self.0.is_empty()
    }

    fn new(world: &World, id: NodeId) -> Self {
        let ports = world.transport.bolt().map_or(0, |_| world.network.ports(id).len());
        Points(vec![BoltPort::default(); ports])
    }
}
