//! How a switch is made: when something first reaches it, and as it would have stood there from the beginning.

use std::sync::Arc;

use netloom_fabric::Ports;
use netloom_record::{DecisionRow, SeriesWriter};
use netloom_routing::selector::conga::Counts;
use netloom_routing::{Decided, Decisions, FlowKey, SwitchPathSelector};
use netloom_topology::{ChannelId, NodeId};
use netloom_units::{Time, random};
use netloom_workload::Rails;

use crate::numbering::Numbering;
use crate::observe::sampler::Sampler;
use crate::protocol::state::{AtSwitch, Part};
use crate::switch::next_hop_cache::NextHopCache;
use crate::switch::{Duties, Switch};
use crate::wiring::Wiring;
use crate::world::World;

/// Takes the decisions of switches on flows, whose subflows count as they do.
#[derive(Debug)]
struct ByFlow {
    numbering: Numbering,
    /// By whose addresses flows are known, where NICs have several ports that are one.
    rails: Option<Arc<Rails>>,
    decided: Arc<SeriesWriter<DecisionRow>>,
}

impl Decided for ByFlow {
    fn add(&self, flows: &mut dyn Iterator<Item = (FlowKey, Decisions)>) {
        self.decided.extend(flows.map(|(FlowKey { src, flow }, Decisions { taken, deviating })| {
            DecisionRow {
                src: self.rails.as_ref().map_or(src, |rails| rails.first_port(src)),
                flow: self.numbering.flow(flow),
                decisions: taken,
                non_default_decisions: deviating,
            }
        }));
    }
}

impl Switch {
    /// A switch that nothing has reached.
    pub(crate) fn new(world: &World, id: NodeId, sampler: Option<Box<Sampler>>) -> Self {
        let World { network, rules, routing, .. } = world;
        let Wiring { seed, .. } = &world.wiring;
        let stride = routing.stride(network, id);
        let is_to_host = |&channel: &ChannelId| network.is_host(network.channel(channel).to);
        let has_hosts = network.ports(id).iter().any(is_to_host);
        let mut draws = random::Node::Router.stream(*seed, u64::from(id));
        let protocols = AtSwitch::new(world, id);
        let part = protocols.take_part(world, has_hosts);
        let is_special = sampler.is_some()
            || world.gaps.at_switches
            || world.has_timed_cuts(id)
            || protocols.reports.is_some()
            || part == Some(Part::Queues)
            || !world.epochs.is_empty();
        let mut ports = Ports::new(world.specs(id), rules, false);
        if let Some(estimator) = routing.estimator() {
            let routed = routing.conga().is_some_and(|conga| conga.counts == Counts::Routed);
            ports.estimate_rates(estimator.period, estimator.discount, routed);
        }
        if let Some(telemetry) = &world.telemetry {
            ports.set_telemetry(telemetry);
        }
        let mut path_selector =
            SwitchPathSelector::new(routing, stride, has_hosts, world.is_lossy, &mut draws);
        path_selector.count_flows(|| {
            let rails = world.servers.as_ref().map(|servers| Arc::clone(&servers.rails));
            let decided = world.recorder.decided.clone();
            Arc::new(ByFlow { numbering: world.numbering, rails, decided })
        });
        let duties = duties(world, is_special, part);
        Switch {
            ports,
            path_selector,
            draws,
            row: world.forwarding.table().row(id),
            next_hops: NextHopCache::default(),
            epoch: 0,
            random: random::Node::Marking.stream(*seed, u64::from(id)),
            control_sent: 0,
            control_received: 0,
            duties,
            sampler,
            protocols,
            gap_monitor: world.gaps.at_switches.then(Box::default),
            last_event: Time::ZERO,
            last_event_before: Time::ZERO,
        }
    }
}

/// `is_special`: it takes samples, measures gaps, reports loads, has links that are cut, changes its routes during the run, or has a protocol that handles packets before their queue. `part` is
/// what protocols have in its routes.
fn duties(world: &World, is_special: bool, part: Option<Part>) -> Duties {
    let rules = &world.rules;
    if is_special {
        Duties::Special
    } else if part.is_some() {
        Duties::Routes
    } else if rules.is_lossless() {
        Duties::Lossless
    } else if !rules.drops_tail() {
        Duties::Trims
    } else if world.telemetry.is_some() {
        Duties::Stamps
    } else if rules.has_plain_queues() {
        Duties::Plain
    } else {
        Duties::Classes
    }
}
