//! The conservation check works: runs whose switches lose a packet without a trace fail it.

use netloom_engine::{Model, NodeIndex, Scheduler, reference};
use netloom_fabric::Packet;
use netloom_topology::{BuildContext, FatTree, Topology};
use netloom_units::{Bytes, Time};
use netloom_workload::{Pattern, Permutation, PlanContext, Workload};

use crate::collect::{ConservationError, Remains, RunError, collect};
use crate::config::SimConfig;
use crate::model::{Message, Node, World};
use crate::simulation::Simulation;

/// The model, but its switches lose some packets.
struct Losing<'a> {
    world: &'a World,
    loses: fn(&Packet) -> bool,
}

impl Model for Losing<'_> {
    type Node = Node;
    type Payload = Message;

    fn start(&self, node: &mut Node, id: NodeIndex, out: &mut impl Scheduler<Message>) {
        self.world.start(node, id, out);
    }

    fn handle(
        &self,
        node: &mut Node,
        id: NodeIndex,
        at: Time,
        source: u32,
        message: &mut Message,
        out: &mut impl Scheduler<Message>,
    ) {
        let is_lost = matches!(node, Node::Switch(_)) && message.packet().is_some_and(self.loses);
        if !is_lost {
            self.world.handle(node, id, at, source, message, out);
        }
    }

    fn advance(
        &self,
        node: &mut Node,
        id: NodeIndex,
        until: Time,
        out: &mut impl Scheduler<Message>,
    ) -> Option<Time> {
        self.world.advance(node, id, until, out)
    }
}

/// A permutation of messages on a small fat tree whose switches lose packets.
fn run(bytes: u64, loses: fn(&Packet) -> bool) -> Result<(), RunError> {
    let topology = Topology::FatTree(FatTree { k: Some(4), ..FatTree::default() });
    let network = topology.build(&BuildContext { seed: 1, base_dir: "".as_ref() }).unwrap();
    let pattern = Pattern::Permutation(Permutation { size: Bytes(bytes).into(), ..Permutation::default() });
    let plan = Workload::new(pattern).plan(&network, &PlanContext::new(1)).unwrap();
    let Simulation { world, nodes, groups, .. } =
        Simulation::new(network, SimConfig::default(), plan).unwrap();
    let (nodes, _) = reference::run(&Losing { world: &world, loses }, nodes);
    let remains = Remains {
        nodes,
        pending: Vec::new(),
        groups,
        until: Time::MAX,
        is_stopped: false,
        is_out_of_time: false,
    };
    collect(&world, remains).map(drop)
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
