//! From parts that fit each other to nodes that are ready to run.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use netloom_fabric::{Fabric, Rules, Telemetry};
use netloom_routing::Forwarding;
use netloom_routing::channels::VcRule;
use netloom_topology::{ChannelId, Network, NodeId};
use netloom_units::{Bytes, Time, narrow, random};
use netloom_workload::{HostWork, Notes, Plan};
use rand::Rng;

use crate::channel::channel_name;
use crate::config::Fast;
use crate::epochs::Epochs;
use crate::host::Host;
use crate::node::Node;
use crate::numbering::FIRST_OWN;
use crate::observe::gaps::Gaps;
use crate::observe::measure::Measure;
use crate::observe::packet_trace::Tracer;
use crate::observe::recorder::Recorder;
use crate::observe::sampler::Sampler;
use crate::rails::Servers;
use crate::run::error::SimError;
use crate::run::simulation::Simulation;
use crate::run::validate::Validated;
use crate::server::Server;
use crate::switch::Switch;
use crate::wiring::Wiring;
use crate::world::{Says, TakesData, World};

impl Simulation {
    /// Lays the routes and makes the nodes.
    pub(crate) fn of(network: Network, validated: Validated, mut plan: Plan) -> Result<Self, SimError> {
        let mut simulation = Self::lay(network, validated, &mut plan)?;
        simulation.world.check_switches().map_err(SimError::Fabric)?;
        simulation.make_nodes(plan.hosts);
        Ok(simulation)
    }

    /// Lays the routes and makes everything but the nodes.
    pub(crate) fn lay(network: Network, validated: Validated, plan: &mut Plan) -> Result<Self, SimError> {
        let Validated { fabric, routing, transport, faults, measure, seed, .. } = validated;
        let Validated { named_channels, traced, is_lossy, numbering, largest, .. } = validated;
        let layers_seed = layers_seed(seed);
        let is_cut = |channel| faults.cut[channel as usize / 2];
        let forwarding = Forwarding::build(&routing, &network, is_cut, layers_seed)?;
        let scheme = (&routing, &network, layers_seed);
        let epochs = Epochs::build(&faults.withdrawals, &faults.cut, &forwarding, scheme);
        let epochs = epochs.map_err(SimError::Fault)?;
        let last = epochs.last(&forwarding).table();
        faults.check_last(last, measure.until).map_err(SimError::Fault)?;
        let routes = epochs.all(&forwarding);
        let vc_rule = Forwarding::vc_rule(routes.iter().map(|&(_, forwarding)| forwarding));
        let vcs = virtual_channels(&fabric, &network, vc_rule, &routes)?;
        let rules = Rules::new(&fabric, largest, vcs).with_seed(seed);
        let rules = if faults.lose_packets() { rules.with_faults() } else { rules };
        plan.keep_notes(Notes { activities: measure.activities, operations: measure.operations });
        let recorder = Recorder::new(&measure, plan.load_until());
        let least = routing.counted_flowcuts().map(|flowcut| flowcut.min_remaining);
        let sack_bytes = transport.reliability.facts().sack_bytes;
        let rules = if transport.replaces_serialisation() { rules.without_serialisation() } else { rules };
        let says = match (sack_bytes, least.filter(|&least| least > Bytes(0))) {
            (Some(_), _) if transport.credit().is_some() => Says::AsksForCredit,
            (Some(_), _) => Says::AsksForAck,
            (None, _) if transport.bolt().is_some() => Says::Claims,
            (None, Some(least)) => Says::HasMore(least),
            (None, None) => Says::Nothing,
        };
        let takes = match (sack_bytes, transport.options.reorder.holds()) {
            (Some(bytes), _) => TakesData::ToSack(bytes),
            (None, true) => TakesData::InOrder,
            (None, false) => TakesData::AsTheyCome,
        };
        let gaps = Gaps::new(&routing.granularity, &transport, &measure);
        let first_number = if plan.hosts.iter().any(HostWork::is_program) { FIRST_OWN } else { 0 };
        let servers = plan.rails.clone().map(|rails| Box::new(Servers::new(rails, &network, &faults)));
        let wiring = Wiring::new(&network, plan.rails.as_deref(), faults, seed, first_number);
        let hosts = network.hosts() - plan.units.map_or(0, |_| network.switches());
        let telemetry = transport.telemetry().map(|_| Arc::new(Telemetry::new(network.hosts())));
        let mut world = World {
            network,
            fabric,
            rules,
            routing,
            forwarding,
            epochs,
            vc_rule,
            transport,
            numbering,
            recorder,
            gaps,
            is_driven: false,
            reports_sent: false,
            hosts,
            servers,
            is_lossy,
            says,
            takes,
            telemetry,
            wiring,
            jobs: plan.jobs.clone(),
            calculations: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
        };
        if let Some(None) = world.transport.congestion.network_rtt() {
            let longest = world.longest_rtt();
            if let Some(network_rtt) = world.transport.congestion.network_rtt() {
                *network_rtt = longest;
            }
        }
        let groups = plan.groups.clone();
        let fast = Fast::default();
        let (nodes, background) = (Vec::new(), None);
        Ok(Simulation { world, measure, named_channels, traced, groups, nodes, fast, background })
    }

    /// Makes the nodes, with the work of every host or server.
    pub(crate) fn make_nodes(&mut self, works: Vec<HostWork>) {
        self.nodes = self.nodes_with(works);
        let load_until = self.world.recorder.load_until;
        self.note_load(load_until);
    }

    fn nodes_with(&self, works: Vec<HostWork>) -> Vec<Node> {
        let World { network, .. } = &self.world;
        let mut nodes = Vec::with_capacity(network.nodes() as usize);
        match self.world.servers.as_ref().map(|servers| &servers.rails) {
            None => nodes.extend((0..).zip(works).map(|(id, work)| {
                let sampler = self.sampler(&[id]);
                match work.is_idle() && sampler.is_none() {
                    true => Node::Untouched,
                    false => Node::Host(Box::new(Host::new(&self.world, id, work, sampler))),
                }
            })),
            Some(rails) => {
                nodes.extend((0..network.hosts()).map(|_| Node::InServer));
                for (number, work) in (0..).zip(works) {
                    let nics = (0..rails.rails()).map(|rail| {
                        let ports = rails.hosts(number, rail);
                        let sampler = self.sampler(ports);
                        (ports[0], Host::new(&self.world, ports[0], HostWork::default(), sampler))
                    });
                    let nics = nics.collect();
                    let server = Server::new(number, nics, work, self.world.wiring.first_number);
                    nodes[rails.host(number, 0) as usize] = Node::Server(Box::new(server));
                }
            }
        }
        // One that has hosts is there from the beginning: records depend on what switches can observe.
        let first = (network.hosts() > 0).then(|| network.edge_switch(0));
        let reports = self.world.routing.report_period().is_some();
        nodes.extend((network.hosts()..network.nodes()).map(|id| {
            let sampler = self.sampler(&[id]);
            match sampler.is_none() && !reports && first != Some(id) {
                true => Node::Untouched,
                false => Node::Switch(Box::new(Switch::new(&self.world, id, sampler))),
            }
        }));
        nodes
    }

    /// What takes samples at a node, or at the hosts that are the ports of one NIC.
    pub(crate) fn sampler(&self, nodes: &[NodeId]) -> Option<Box<Sampler>> {
        let network = &self.world.network;
        let outputs: Vec<ChannelId> = nodes.iter().flat_map(|&node| network.ports(node)).copied().collect();
        let Measure { sample: interval, windows, .. } = &self.measure;
        // Windows are reported for channels with names.
        let has_windows = !windows.is_empty() && !self.named_channels.is_empty();
        let tracer = self.traced.as_ref().and_then(|(trace, channels)| {
            Tracer::new(trace, channels, &outputs, self.world.numbering, &self.world.recorder.trace)
        });
        let wanted = self.measure.sample_tier.as_ref();
        let ports = outputs.iter().enumerate().filter(|&(_, &channel)| {
            if !self.named_channels.is_empty() {
                return self.named_channels.iter().any(|named| named.channel == channel);
            }
            let tier = &network.tiers()[usize::from(network.channel(channel).tier)];
            wanted.is_none_or(|wanted| wanted == tier)
        });
        let is_sampled = interval.is_some() || has_windows;
        let ports: Vec<_> =
            ports.filter(|_| is_sampled).map(|(port, &channel)| (narrow::<u16>(port), channel)).collect();
        let windows = if has_windows { windows.as_slice() } else { &[] };
        let series = self.world.recorder.series.clone();
        let is_needed = !ports.is_empty() || tracer.is_some();
        is_needed.then(|| Box::new(Sampler::new(*interval, windows, ports, series, tracer)))
    }
}

/// Virtual channels per class of a fabric, such that none of the routes by which a run goes at its times can deadlock.
pub(crate) fn virtual_channels(
    fabric: &Fabric,
    network: &Network,
    rule: VcRule,
    forwardings: &[(Time, &Forwarding)],
) -> Result<u8, SimError> {
    let flow_control = &fabric.flow_control;
    if flow_control.may_deadlock() {
        return Ok(flow_control.vcs().unwrap_or(1));
    }
    let most = flow_control.most_vcs(fabric.classes());
    if flow_control.vcs().is_none() {
        let needed = forwardings.iter().map(|(_, forwarding)| forwarding.vcs_without_cycle(network, rule));
        let needed = needed.max().unwrap_or(1);
        if needed <= most {
            return Ok(needed);
        }
    }
    let vcs = flow_control.vcs().unwrap_or(1);
    let cycles = forwardings.iter().map(|&(from, forwarding)| {
        forwarding.find_cycle(network, rule, vcs).map(|cycle| (from, forwarding, cycle))
    });
    let Some((from, forwarding, cycle)) = cycles.flatten().next() else { return Ok(vcs) };
    let needed = forwarding.vcs_needed(network, rule);
    let mut names: Vec<String> = Vec::new();
    for &(channel, vc) in cycle.iter().take(8) {
        let vc = if flow_control.vcs() == Some(1) { String::new() } else { format!(" (vc {vc})") };
        names.push(channel_name(network, channel) + &vc);
    }
    let more = if cycle.len() > names.len() { ", …" } else { "" };
    let when = if from == Time::ZERO { String::new() } else { format!(" from {from} on") };
    Err(SimError::MayDeadlock(format!(
        "the routes{when} can deadlock: channels {}{more} wait for each other in a cycle; expected {needed} virtual channels (at most \
         {most} here), or `allow_deadlock = true` to run all the same",
        names.join(", ")
    )))
}

/// The seed of the layers of a run with this seed.
pub fn layers_seed(seed: u64) -> u64 {
    random::Node::Layers.stream(seed, 0).next_u64()
}
