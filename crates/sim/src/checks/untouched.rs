//! A node that is made when something reaches it is as it would be had it been there from the beginning.

use netloom_engine::reference;
use netloom_routing::preset;
use netloom_topology::Network;
use netloom_units::kind::Kind;
use netloom_units::{Bytes, Time};
use netloom_workload::{Incast, Pattern, Plan, PlanContext, Workload};

use crate::checks::shortest::{families, schemes, simulation_of};
use crate::fault::{Degrade, Fault, Loss};
use crate::node::Node;
use crate::run::simulation::Simulation;

/// Three hosts send to a fourth.
fn incast(network: &Network) -> Plan {
    let incast = Incast { senders: Some(3), size: Bytes(30_000).into(), ..Incast::default() };
    Workload::new(Pattern::Incast(incast)).plan(network, &PlanContext::new(7)).unwrap()
}

fn untouched(nodes: &[Node]) -> usize {
    nodes.iter().filter(|node| matches!(node, Node::Untouched)).count()
}

fn with_all_nodes(mut simulation: Simulation) -> Simulation {
    for id in 0..simulation.network().nodes() {
        if let Node::Untouched = simulation.nodes[id as usize] {
            simulation.nodes[id as usize] = Node::new(&simulation.world, id);
        }
    }
    simulation
}

#[test]
fn under_every_scheme_it_makes_no_difference_when_nodes_are_made() {
    let faults = vec![
        Fault::Loss(Loss { link_fraction: Some(0.3), probability: 0.02, ..Loss::default() }),
        Fault::Degrade(Degrade {
            link_fraction: Some(0.3),
            rate_factor: 0.5,
            from: Time::from_us(3),
            ..Degrade::default()
        }),
    ];
    let mut runs = 0;
    for topology in families::all().into_iter().filter(|topology| topology.name() != "crossbar") {
        let network = families::build(&topology, 1);
        for (name, routing) in schemes::all() {
            let lay = || simulation_of(&network, routing.clone(), faults.clone(), incast(&network));
            let (Some(late), Some(early)) = (lay(), lay()) else { continue };
            // Under UGAL-G switches talk before anybody has sent something.
            assert!(untouched(&late.nodes) > 0 || late.world.routing.report_period().is_some());
            let (late, early) = (late.run(2).unwrap(), with_all_nodes(early).run(1).unwrap());
            assert_eq!(late.records, early.records, "{name} on {}", network.name());
            runs += 1;
        }
    }
    assert!(runs > 200, "{runs}");
}

#[test]
fn what_nothing_reaches_is_never_made() {
    let fat_tree = families::all().into_iter().find(|topology| topology.name() == "fat-tree").unwrap();
    let network = families::build(&fat_tree, 1);
    let routing = preset::find("ecmp").unwrap().routing();
    let Simulation { world, nodes, .. } =
        simulation_of(&network, routing, Vec::new(), incast(&network)).unwrap();
    let all = network.nodes() as usize;
    // The three that send, and the switch that records ask.
    assert_eq!(untouched(&nodes), all - 4);
    let (nodes, _) = reference::run(&world, nodes);
    let left = untouched(&nodes);
    // At most the fourth host and five switches on each of three ways.
    assert!((all - 20..all - 4).contains(&left), "{left} of {all}");
}
