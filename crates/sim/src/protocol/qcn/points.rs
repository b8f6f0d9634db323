//! The congestion points of a switch.

use netloom_fabric::{CongestionPoint, Packet, Ports};
use netloom_topology::{NodeId, PortId};

use crate::protocol::state::SwitchState;
use crate::world::World;

/// The congestion points of a switch, one per output queue. Empty without QCN.
#[derive(Clone, Debug)]
pub(crate) struct CongestionPoints(Vec<CongestionPoint>);

impl SwitchState for CongestionPoints {
    fn recurs(&self) -> bool {
        self.0.is_empty()
    }

    fn new(world: &World, id: NodeId) -> Self {
        let ports = world.network.ports(id).len();
        let points = world.fabric.options.qcn.as_ref().map(|config| {
            let point = || CongestionPoint::new(config);
            std::iter::repeat_with(point).take(ports * world.rules.data_queues()).collect()
        });
        CongestionPoints(points.unwrap_or_default())
    }
}

impl CongestionPoints {
    pub(crate) fn at(
        &mut self,
        world: &World,
        ports: &Ports,
        port: PortId,
        packet: &Packet,
    ) -> &mut CongestionPoint {
        let queue = ports.data_queue_out(port, packet, &world.rules);
        &mut self.0[usize::from(port) * world.rules.data_queues() + queue]
    }
}
