//! How nodes are made: those that begin something before the run, all others when something first reaches them.
//!
//! A host or switch that nothing reaches costs nothing but its place, and what reaches a node finds it as it would have stood there from the
//! beginning: a node does nothing by itself, and its random streams are its own.

use std::sync::Arc;

use netloom_engine::{END_OF_TIME, Scheduler};
use netloom_fabric::{FlowControl, LAST_RANK, PortSpec, Ports, check_switch};
use netloom_record::{SeriesWriter, SwitchHalf};
use netloom_routing::selector::conga::Counts;
use netloom_routing::{Decided, Decider, Decisions, FlowKey, Placement, channels};
use netloom_topology::{ChannelId, Network, NodeId, PortId};
use netloom_units::{Invalid, Rate, Time, narrow, random};
use netloom_workload::HostWork;

use crate::fault::Faults;
use crate::host::{Host, Numbering};
use crate::model::{Message, Node, World};
use crate::reports::Reports;
use crate::sampler::Sampler;
use crate::switch::{CongestionPoints, Duties, Held, Switch, Told, Trains};

/// What nodes are made from, beside what all may read.
#[derive(Debug)]
pub(crate) struct Blueprint {
    pub(crate) faults: Faults,
    pub(crate) seed: u64,
    /// From which number on a host numbers its flows.
    pub(crate) first_number: u32,
    /// The port of its node that feeds each channel.
    port_of: Vec<PortId>,
    /// Per switch, the rate of its fastest link.
    fastest: Vec<Rate>,
}

impl Blueprint {
    pub(crate) fn new(network: &Network, faults: Faults, seed: u64, first_number: u32) -> Self {
        let mut port_of = vec![0; network.links().len() * 2];
        for node in 0..network.nodes() {
            for (port, &channel) in network.ports(node).iter().enumerate() {
                port_of[channel as usize] = narrow::<PortId>(port);
            }
        }
        let fastest = (network.hosts()..network.nodes()).map(|switch| {
            let rates = network.ports(switch).iter().map(|&channel| network.channel(channel).rate);
            rates.max().unwrap_or(Rate(1))
        });
        let fastest = fastest.collect();
        Blueprint { faults, seed, first_number, port_of, fastest }
    }

    /// The rate of the fastest link of a switch, by its number among switches.
    pub(crate) fn fastest(&self, switch: u32) -> Rate {
        self.fastest[switch as usize]
    }

    /// The port of its node that feeds a channel.
    pub(crate) fn port_of(&self, channel: ChannelId) -> PortId {
        self.port_of[channel as usize]
    }
}

/// Takes the decisions of switches on flows, whose subflows count as they do.
#[derive(Debug)]
struct ByFlow {
    numbering: Numbering,
    decided: Arc<SeriesWriter<SwitchHalf>>,
}

impl Decided for ByFlow {
    fn add(&self, flows: &mut dyn Iterator<Item = (FlowKey, Decisions)>) {
        self.decided.extend(flows.map(|(FlowKey { src, flow }, Decisions { taken, deviating })| {
            SwitchHalf { src, flow: self.numbering.flow(flow), decisions: taken, deviations: deviating }
        }));
    }
}

impl World {
    /// A node that nothing has reached yet, as something reaches it.
    #[cold]
    #[inline(never)]
    pub(crate) fn make(&self, id: NodeId) -> Node {
        let mut node = match self.network.is_host(id) {
            true => Node::Host(Box::new(Host::new(self, id, HostWork::default(), None))),
            false => Node::Switch(Box::new(self.make_switch(id, None))),
        };
        node.note_drain(self.watch.load_until);
        node
    }

    pub(crate) fn make_switch(&self, id: NodeId, sampler: Option<Box<Sampler>>) -> Switch {
        let World { network, rules, routing, .. } = self;
        let Blueprint { faults, seed, .. } = &self.blueprint;
        let stride = routing.stride(network, id);
        let is_to_host = |&channel: &ChannelId| network.is_host(network.channel(channel).to);
        let has_hosts = network.ports(id).iter().any(is_to_host);
        let mut draws = random::Node::Router.stream(*seed, u64::from(id));
        let told = Told::new(faults.signals(network, id));
        let mut ports = Ports::new(self.specs(id), rules, false);
        if let Some(estimator) = routing.estimator() {
            let routed = routing.conga().is_some_and(|conga| conga.counts == Counts::Routed);
            ports.estimate_rates(estimator.period, estimator.discount, routed);
        }
        if let Some(telemetry) = &self.telemetry {
            ports.tell(telemetry);
        }
        let mut decider = Decider::of_switch(routing, stride, has_hosts, self.is_lossy, &mut draws);
        decider.count_flows(|| {
            Arc::new(ByFlow { numbering: self.numbering, decided: self.watch.decided.clone() })
        });
        Switch {
            points: CongestionPoints::new(self, ports.len()),
            ports,
            decider,
            draws,
            row: self.forwarding.table().row(id),
            trains: Trains::default(),
            epoch: 0,
            random: random::Node::Marking.stream(*seed, u64::from(id)),
            control_sent: 0,
            control_received: 0,
            held: Held::default(),
            duties: self.duties(has_hosts, sampler.is_some() || !told.is_empty() || self.watches_links(id)),
            sampler,
            told,
            gauge: self.gaps.at_switches.then(Box::default),
            reports: Reports::of(self, id, |channel| faults.cut[channel as usize / 2]),
            last_event: Time::ZERO,
        }
    }

    /// `looks`: it takes samples or traces, or does something when links are cut.
    fn duties(&self, has_hosts: bool, looks: bool) -> Duties {
        let World { fabric, forwarding, epochs, routing, rules, gaps, .. } = self;
        // Where only first switches count, those between them carry acknowledgements like any packet.
        let counts = routing.counted_flowcuts().is_some();
        let counts = counts && (has_hosts || routing.placement != Placement::Ingress);
        let decides_only = forwarding.is_minimal()
            && epochs.is_empty()
            && !counts
            && !routing.weaves()
            && routing.conga().is_none();
        if looks || gaps.at_switches || fabric.options.qcn.is_some() || !decides_only {
            Duties::Special
        } else if rules.is_lossless() {
            Duties::Lossless
        } else if rules.drops_tail() {
            Duties::Plain
        } else {
            Duties::Trims
        }
    }

    /// Whether a node does something when links of its are cut and repaired: under flow control.
    pub(crate) fn watches_links(&self, id: NodeId) -> bool {
        self.rules.is_lossless() && self.blueprint.faults.cuts_at(&self.network, id).next().is_some()
    }

    /// Sets the timers of a node for cuts and repairs of its links, if it does something then.
    pub(crate) fn watch_links(&self, id: NodeId, out: &mut impl Scheduler<Message>) {
        if !self.rules.is_lossless() {
            return;
        }
        for (port, from, until) in self.blueprint.faults.cuts_at(&self.network, id) {
            let instants = [(from, true), (until, false)].into_iter();
            for (at, is_cut) in instants.filter(|&(at, _)| at < END_OF_TIME) {
                out.timer(at, Message::Link { port, is_cut });
            }
        }
    }

    /// Refuses buffers that are too small for the cables of a switch.
    pub(crate) fn check_switches(&self) -> Result<(), Invalid> {
        if matches!(self.fabric.flow_control, FlowControl::Lossy(_) | FlowControl::Credits(_)) {
            return Ok(());
        }
        (self.network.hosts()..self.network.nodes()).try_for_each(|switch| {
            let specs: Vec<PortSpec> = self.specs(switch).collect();
            check_switch(&specs, &self.rules)
        })
    }

    /// What the ports of a node are wired to.
    pub(crate) fn specs(&self, node: NodeId) -> impl Iterator<Item = PortSpec> {
        let World { network, blueprint: Blueprint { faults, seed, port_of, fastest, .. }, .. } = self;
        network.ports(node).iter().map(|&id| {
            let channel = network.channel(id);
            let (rate, changes) = faults.schedule(id, channel.rate);
            let (opposite, its_changes) = faults.schedule(id ^ 1, channel.rate);
            let most = its_changes.iter().map(|&(_, rate)| rate).fold(opposite, Ord::max);
            let switch = channel.to.checked_sub(network.hosts());
            PortSpec {
                channel: id,
                to: self.node(channel.to),
                peer: port_of[(id ^ 1) as usize],
                latency: self.latency(id),
                rate,
                changes,
                faults: faults.of_channel(id, *seed),
                cut_through_from: switch.map(|switch| fastest[switch as usize]),
                ecn: self.fabric.ecn_at(channel.rate),
                inward: (self.latency(id ^ 1), most),
                rank: if switch.is_some() { channels::rank(network, id) } else { LAST_RANK },
            }
        })
    }

    /// Delay of a channel and of the switch at its end.
    pub(crate) fn latency(&self, id: ChannelId) -> Time {
        let channel = self.network.channel(id);
        let to_host = self.network.is_host(channel.to);
        channel.latency + if to_host { Time::ZERO } else { self.fabric.options.switch_latency }
    }
}
