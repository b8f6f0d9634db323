//! Every scheme, wherever it may stand.
#![allow(dead_code, unreachable_pub)]

use netloom_fabric::{Ecn, Qcn};
use netloom_routing::{Placement, Routing, preset};
use netloom_transport::NicQueue;
use netloom_units::Bytes;
use proptest::prelude::*;

/// Every preset at every place where it may stand, by the preset's name.
pub fn all() -> Vec<(&'static str, Routing)> {
    let places = [Placement::Nic, Placement::Ingress, Placement::Switch];
    let presets = preset::PRESETS
        .iter()
        .flat_map(|preset| places.map(|placement| (preset.name, Routing { placement, ..preset.routing() })));
    presets.filter(|(_, routing)| routing.check().is_ok()).collect()
}

/// The congestion points that a scheme needs, eager to notify; none if it listens to none.
pub fn qcn_for(routing: &Routing) -> Option<Qcn> {
    let eager = Qcn { q_eq: Some(Bytes(8_000)), sample_base: Bytes(16_000), ..Qcn::default() };
    routing.selector.uncongested().map(|_| eager)
}

/// The marks that a scheme needs, on all that waits; none if it heeds none.
pub fn ecn_for(routing: &Routing) -> Option<Ecn> {
    routing.heeds_marks().then_some(Ecn {
        kmin: Bytes(0),
        kmax: Bytes(1),
        pmax: 1.0,
        mark: Default::default(),
    })
}

/// No queue at the NIC, or one in either order.
pub fn nic_queues() -> impl Strategy<Value = NicQueue> {
    prop_oneof![Just(NicQueue::None), Just(NicQueue::Fifo), Just(NicQueue::Fair)]
}
