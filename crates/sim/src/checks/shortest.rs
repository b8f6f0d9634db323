//! No packet strays: on every family of networks, under every scheme whose packets keep to minimal paths, every hop of every packet leads
//! nearer to its destination, so that its hops are the minimal distance.

#[path = "../../tests/common/families.rs"]
pub(crate) mod families;
#[path = "../../tests/common/schemes.rs"]
pub(crate) mod schemes;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use netloom_fabric::Packet;
use netloom_record::Records;
use netloom_routing::{Routing, preset};
use netloom_topology::{ChannelId, Network, NodeId, Topology};
use netloom_units::kind::Kind;
use netloom_units::{Bytes, Time};
use netloom_workload::{Pattern, Plan, PlanContext, Uniform, Workload};

use crate::checks::watched;
use crate::config::SimConfig;
use crate::fault::{Cut, Fault, Faults, Loss};
use crate::message::Message;
use crate::node::Node;
use crate::run::error::SimError;
use crate::run::simulation::Simulation;
use crate::world::World;

/// Links between groups, and hops. Fewer of the first are nearer whatever the second.
type Distance = (u32, u32);

/// The distances of all nodes of a network to its hosts: an implementation of its own, one search per host.
struct Distances(Vec<Vec<Distance>>);

impl Distances {
    fn new(network: &Network, is_cut: impl Fn(ChannelId) -> bool) -> Self {
        let to = |host| {
            let mut to_host = vec![(u32::MAX, u32::MAX); network.nodes() as usize];
            let mut heap = BinaryHeap::from([Reverse(((0, 0), host))]);
            while let Some(Reverse((distance, here))) = heap.pop() {
                if to_host[here as usize] <= distance {
                    continue;
                }
                to_host[here as usize] = distance;
                // Hosts forward nothing.
                if here != host && network.is_host(here) {
                    continue;
                }
                for &channel in network.ports(here).iter().filter(|&&channel| !is_cut(channel)) {
                    heap.push(Reverse((longer(distance, network, channel), network.channel(channel).to)));
                }
            }
            to_host
        };
        Distances((0..network.hosts()).map(to).collect())
    }

    fn of(&self, from: NodeId, host: NodeId) -> Distance {
        self.0[host as usize][from as usize]
    }
}

/// A distance and the channel behind it.
fn longer((groups, hops): Distance, network: &Network, channel: ChannelId) -> Distance {
    (groups + u32::from(Some(network.channel(channel).tier) == network.global_tier()), hops + 1)
}

/// The distances of a network whose links come and go: from when on, in order of time.
struct Spells(Vec<(Time, Distances)>);

impl Spells {
    fn new(world: &World, faults: &Faults) -> Self {
        let spells = &faults.withdrawals;
        let mut moments: Vec<Time> = spells.iter().flat_map(|spell| [spell.from, spell.until]).collect();
        moments.extend([Time::ZERO]);
        moments.sort_unstable();
        let distances = moments.into_iter().map(|moment| {
            let is_gone = |channel: ChannelId| {
                let link = channel / 2;
                let mut spells = spells.iter().filter(|spell| spell.from <= moment && moment < spell.until);
                faults.cut[link as usize] || spells.any(|spell| spell.links.contains(&link))
            };
            (moment, Distances::new(&world.network, is_gone))
        });
        Spells(distances.collect())
    }

    /// The distances by which a packet that comes now may have been sent on.
    fn in_use(&self, now: Time) -> impl Iterator<Item = &Distances> {
        self.0.iter().take_while(move |(from, _)| *from <= now).map(|(_, distances)| distances)
    }

    /// A packet that crosses a channel to a node must lead nearer to its destination.
    fn check(&self, network: &Network, id: NodeId, at: Time, channel: ChannelId, packet: &Packet) {
        let from = network.channel(channel).from;
        let leads_nearer = |distances: &Distances| {
            let (before, after) = (distances.of(from, packet.dst), distances.of(id, packet.dst));
            before.1 < u32::MAX && longer(after, network, channel) == before
        };
        assert!(self.in_use(at).any(leads_nearer), "{packet:?} strays at {from}");
        if let [(_, only)] = self.0.as_slice()
            && packet.is_data()
        {
            let (way, rest) = (only.of(packet.src, packet.dst).1, only.of(id, packet.dst).1);
            assert_eq!(u32::from(packet.trail.hops()) + rest, way, "{packet:?}");
        }
    }
}

/// Runs to the end and looks at every packet. `None` if the scheme does not keep to minimal paths.
fn run(simulation: Simulation) -> Option<Records> {
    let Simulation { world, nodes, groups, .. } = simulation;
    if !world.forwarding.is_minimal() {
        return None;
    }
    let spells = Spells::new(&world, &world.wiring.faults);
    let lets_pass = |_: &Node, id, at, source, message: &Message| {
        if let Some(packet) = message.packet().filter(|packet| !packet.is_of_the_link()) {
            spells.check(&world.network, id, at, source, packet);
        }
        true
    };
    Some(watched::run(&world, nodes, groups, lets_pass).unwrap())
}

fn uniform(bytes: u64, network: &Network, seed: u64) -> Plan {
    let pattern = Pattern::Uniform(Uniform {
        size: Bytes(bytes).into(),
        messages_per_host: Some(2),
        ..Uniform::default()
    });
    Workload::new(pattern).plan(network, &PlanContext::new(seed)).unwrap()
}

fn simulation(network: &Network, routing: Routing, faults: Vec<Fault>, bytes: u64) -> Option<Simulation> {
    simulation_of(network, routing, faults, uniform(bytes, network, 5))
}

/// The simulation of a scheme, unless it is not meant for the network.
pub(crate) fn simulation_of(
    network: &Network,
    routing: Routing,
    faults: Vec<Fault>,
    plan: Plan,
) -> Option<Simulation> {
    let mut config = SimConfig { routing, faults, ..SimConfig::default() };
    config.transport.options.ack_every = 1;
    config.fabric.options.qcn = schemes::qcn_for(&config.routing);
    schemes::fit(&mut config.fabric.options, &config.routing);
    match Simulation::new(network.clone(), config, plan) {
        Err(SimError::Routing(_)) => None,
        // Some schemes cannot follow, and on some networks not all hosts reach each other without the links.
        Err(SimError::Fault(error))
            if error.field.ends_with("reroute_after") || error.field.ends_with("until") =>
        {
            None
        }
        simulation => Some(simulation.unwrap()),
    }
}

#[test]
fn all_families_are_there() {
    let files = [
        "edge-list",
        "graphml",
        "dot",
        "json",
        "htsim-topo",
        "ns3-topology",
        "astra-sim-network",
        "infragraph",
        "simai-topology",
    ];
    let generated: BTreeSet<_> = Topology::NAMES.iter().filter(|name| !files.contains(name)).collect();
    let topologies = families::all();
    let names: BTreeSet<_> = topologies.iter().map(|topology| topology.name()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>(), generated);
    assert!(topologies.iter().all(|topology| families::build(topology, 1).hosts() <= 64));
}

#[test]
fn hops_are_minimal_and_everything_arrives_under_every_scheme_on_every_family() {
    for topology in families::all() {
        let network = families::build(&topology, 1);
        for (name, routing) in schemes::all() {
            let place = routing.placement.name();
            let Some(simulation) = simulation(&network, routing, Vec::new(), 30_000) else { continue };
            let Some(records) = run(simulation) else { continue };
            let is_done = records.flows.iter().all(|flow| flow.fct.is_some());
            assert!(is_done, "{name} at {place} on {}: unfinished", network.name());
        }
    }
}

#[test]
fn hops_are_minimal_among_the_links_that_are_left_and_while_links_come_and_go() {
    let cut = |from, until| Fault::Cut(Cut { links: Some(2), from, until, ..Cut::default() });
    let faults = vec![
        cut(Time::ZERO, None),
        cut(Time::from_us(2), Some(Time::from_us(30))),
        Fault::Loss(Loss { link_fraction: Some(0.3), probability: 0.02, ..Loss::default() }),
    ];
    for topology in families::all().into_iter().filter(|topology| topology.name() != "crossbar") {
        let network = families::build(&topology, 2);
        for (name, routing) in schemes::all() {
            let place = routing.placement.name();
            let faults = faults.clone();
            let Some(simulation) = simulation(&network, routing, faults, 20_000) else { continue };
            let Some(records) = run(simulation) else { continue };
            let is_done = records.flows.iter().all(|flow| flow.fct.is_some());
            assert!(is_done, "{name} at {place} on {}: unfinished", network.name());
        }
    }
}

#[test]
fn routes_that_follow_cuts_lead_everybody_to_the_end_by_the_shortest_ways() {
    let cut = |from, until| {
        let reroute_after = Some(Time::from_us(3));
        Fault::Cut(Cut { links: Some(2), from, until, reroute_after, ..Cut::default() })
    };
    let faults = vec![
        cut(Time::from_us(1), Some(Time::from_us(4))),
        cut(Time::from_us(2), None),
        cut(Time::from_us(5), Some(Time::from_us(6))),
    ];
    let mut runs = 0;
    for topology in families::all().into_iter().filter(|topology| topology.name() != "crossbar") {
        let network = families::build(&topology, 1);
        for (name, routing) in schemes::all() {
            let place = routing.placement.name();
            let faults = faults.clone();
            let Some(simulation) = simulation(&network, routing, faults, 40_000) else { continue };
            assert!(!simulation.world.epochs.is_empty());
            let Some(records) = run(simulation) else { continue };
            let is_done = records.flows.iter().all(|flow| flow.fct.is_some());
            assert!(is_done, "{name} at {place} on {}: unfinished", network.name());
            runs += 1;
        }
    }
    assert!(runs > 200, "{runs}");
}

#[test]
fn drill_ends_on_a_hyperx_of_three_dimensions() {
    let hyperx = families::all().into_iter().find(|topology| topology.name() == "hyperx").unwrap();
    let network = families::build(&hyperx, 1);
    assert_eq!((network.hosts(), network.switches()), (64, 64));
    let routing = preset::find("drill").unwrap().routing();
    let records = run(simulation(&network, routing, Vec::new(), 65_536).unwrap()).unwrap();
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    let decisions = &records.totals.decisions["drill"];
    assert!(decisions.taken > 0 && decisions.non_default > 0, "{decisions:?}");
}
