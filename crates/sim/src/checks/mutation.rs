//! The conservation check works: runs whose switches lose a packet without a trace fail it.

use netloom_fabric::Packet;
use netloom_topology::{BuildContext, FatTree, Topology};
use netloom_units::Bytes;
use netloom_workload::{Pattern, Permutation, PlanContext, Workload};

use crate::checks::watched;
use crate::config::SimConfig;
use crate::message::Message;
use crate::node::Node;
use crate::run::error::{ConservationError, RunError};
use crate::run::simulation::Simulation;

/// A permutation of messages on a small fat tree whose switches lose packets.
fn run(bytes: u64, loses: fn(&Packet) -> bool) -> Result<(), RunError> {
    let topology = Topology::FatTree(FatTree { k: Some(4), ..FatTree::default() });
    let network = topology.build(&BuildContext { seed: 1, base_dir: "".as_ref() }).unwrap();
    let pattern = Pattern::Permutation(Permutation { size: Bytes(bytes).into(), ..Permutation::default() });
    let plan = Workload::new(pattern).plan(&network, &PlanContext::new(1)).unwrap();
    let Simulation { world, nodes, groups, .. } =
        Simulation::new(network, SimConfig::default(), plan).unwrap();
    let lets_pass = |_: &Node, id, _, _, message: &Message| {
        world.network.is_host(id) || !message.packet().is_some_and(loses)
    };
    watched::run(&world, nodes, groups, lets_pass).map(drop)
}

fn loses_the_fourth(packet: &Packet) -> bool {
    packet.is_data() && packet.seq == 3
}

#[test]
fn a_lost_packet_is_noticed_and_its_flow_named() {
    let error = run(100_000, loses_the_fourth).unwrap_err();
    let RunError::Conservation(ConservationError::Flow {
        sent,
        delivered,
        trimmed: 0,
        dropped,
        in_flight,
        ..
    }) = error
    else {
        panic!("another check failed first: {error}");
    };
    assert_eq!((sent - delivered, dropped, in_flight), (1, 0, 0));
}

#[test]
fn lost_acks_are_noticed() {
    let error = run(10_000, |packet| !packet.is_data() && packet.seq == 1).unwrap_err();
    let RunError::Conservation(ConservationError::Control { sent, delivered, dropped, in_flight }) = error
    else {
        panic!("another check failed first: {error}");
    };
    // One of every host's.
    assert_eq!((sent - delivered, dropped, in_flight), (16, 0, 0));
}

#[test]
fn small_messages_do_not_meet_the_broken_spot() {
    assert_eq!(run(10_000, loses_the_fourth), Ok(()));
}
