//! From a network and a plan to records.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use netloom_engine::{Engine, reference};
use netloom_fabric::{Fabric, FlowControl, Rules, Telemetry};
use netloom_record::{NamedChannel, Records, Sink};
use netloom_routing::{Forwarding, ForwardingError, Granularity, Layers, Placement, Routing, Selector};
use netloom_topology::{Network, NodeId};
use netloom_transport::{Congestion, Reorder, Shaping, Transport};
use netloom_units::kind::Kind;
use netloom_units::{Bytes, Rate, Time};
use netloom_units::{Invalid, random};
use netloom_workload::{HostWork, Plan, Spread};
use rand::Rng;

use crate::blueprint::Blueprint;
use crate::collect::{Remains, RunError, collect, collect_all};
use crate::config::SimConfig;
use crate::epochs::Epochs;
use crate::fault::Faults;
use crate::host::{FIRST_OWN, Gaps, Numbering};
use crate::layout;
use crate::measure::Measure;
use crate::meter::Watch;
use crate::model::{Node, World};
use crate::packet_trace::{PacketTrace, Tracer};
use crate::sampler::Sampler;
use crate::server::{Server, Servers};
use crate::stall::{Stall, channel_name};

/// A configuration that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The fabric makes no sense.
    #[error("fabric.{0}")]
    Fabric(Invalid),
    /// A lossless fabric has too few virtual channels for its routes.
    #[error("fabric.flow_control.vcs: {0}")]
    MayDeadlock(String),
    /// The routing scheme makes no sense, is not built, or does not fit the network or the transport.
    #[error("routing.{0}")]
    Routing(Invalid),
    /// What servers with several NICs are to do does not fit the workload.
    #[error("servers.{0}")]
    Servers(Invalid),
    /// The transport makes no sense.
    #[error("transport.{0}")]
    Transport(Invalid),
    /// A fault does not fit the network or the run: the field begins with the number of the fault in the list, from 0.
    #[error("faults.{0}")]
    Fault(Invalid),
    /// The cut links leave somebody unreachable.
    #[error("faults: {0}")]
    Unreachable(String),
    /// The links of a lossless fabric have error rates.
    #[error("topology: {0}")]
    ErrorRates(String),
    /// What to measure makes no sense.
    #[error("measure.{0}")]
    Measure(Invalid),
}

impl From<ForwardingError> for SimError {
    fn from(error: ForwardingError) -> Self {
        match error {
            ForwardingError::Routing(error) => SimError::Routing(error),
            ForwardingError::Unreachable(error) => SimError::Unreachable(error.to_string()),
        }
    }
}

/// Where a run stands.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// Simulated time.
    pub time: Time,
    /// Flows fully acknowledged.
    pub flows_done: u64,
    /// Packets that crossed a channel.
    pub packet_hops: u64,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// What was seen.
    pub records: Records,
    /// Whether the observer stopped it before its end.
    pub interrupted: bool,
}

/// Nodes ready to run.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) world: World,
    pub(crate) measure: Measure,
    pub(crate) named_channels: Vec<NamedChannel>,
    /// What is traced, and the numbers of the channels among it.
    pub(crate) traced: Option<(Arc<PacketTrace>, Vec<u32>)>,
    pub(crate) groups: Vec<String>,
    pub(crate) nodes: Vec<Node>,
}

impl Simulation {
    /// Lays routes, faults and work on a network.
    ///
    /// # Errors
    /// If a part of the configuration makes no sense, does not fit the network or another part, or is not built.
    pub fn new(network: Network, config: SimConfig, plan: Plan) -> Result<Self, SimError> {
        let SimConfig { fabric, routing, transport, faults, measure, seed } = config;
        transport.check().map_err(SimError::Transport)?;
        let mut transport = transport.on_the_wire();
        fabric.check(transport.packet_size()).map_err(SimError::Fabric)?;
        routing.check().map_err(SimError::Routing)?;
        if let Shaping::Hf2t(hf2t) = &mut transport.shaping {
            let gap = match &routing.granularity {
                Granularity::Flowlet(flowlet) => Some(flowlet.longest_kept()),
                _ => None,
            };
            hf2t.fit(gap).map_err(|error| SimError::Transport(error.within("shaping")))?;
        }
        let named_channels = measure.check(&network).map_err(SimError::Measure)?;
        let traced = match &measure.trace {
            Some(trace) => Some((Arc::new(trace.clone()), trace.check(&network).map_err(SimError::Measure)?)),
            None => None,
        };
        let watches_acks =
            matches!(routing.granularity, Granularity::Flowcut(_)) && routing.placement == Placement::Nic;
        if watches_acks && transport.options.ack_every != 1 {
            let expected = "1, as flowcut needs an ACK for every packet";
            return Err(SimError::Transport(Invalid::new(
                "ack_every",
                expected,
                transport.options.ack_every,
            )));
        }
        let has_fast_lane = fabric.queue.trims() && fabric.options.control_priority;
        if transport.hurries() && !has_fast_lane {
            let expected = "false without a control lane in which to hurry: fabric.queue = \"trimming\" and fabric.control_priority";
            return Err(SimError::Transport(Invalid::new("reliability.priority", expected, true)));
        }
        if let (true, Some(&(link, rate))) = (fabric.is_lossless(), network.error_rates().first()) {
            return Err(SimError::ErrorRates(format!(
                "expected links without error rates in a lossless fabric (or fabric.flow_control = \"lossy\"), found {rate} for {}",
                channel_name(&network, 2 * link)
            )));
        }
        let faults = Faults::lay(&faults, &network, seed).map_err(SimError::Fault)?;
        faults.check(fabric.is_lossless(), measure.until).map_err(SimError::Fault)?;
        let is_lossy = fabric.is_lossy() || faults.lose_packets();
        if matches!(transport.options.reorder, Reorder::Flowcells(_)) {
            let numbers_cells = routing.placement == Placement::Nic
                && matches!(routing.granularity, Granularity::Flowcell(_))
                && matches!(routing.selector, Selector::RoundRobin(_))
                && transport.options.subflows == 1;
            let expected = "a reorder other than \"flowcells\", or flowcells at the NIC over path labels in turn (routing.preset = \"presto\")";
            Invalid::unless(numbers_cells, "reorder", expected, "\"flowcells\"")
                .map_err(SimError::Transport)?;
        }
        let heeds_marks = routing.heeds_marks();
        let runs_ahead = routing.counted_flowcuts().is_some_and(|flowcut| flowcut.max_ood > 0);
        if !transport.has_acks() && (is_lossy || watches_acks || routing.heeds_acks() || runs_ahead) {
            let who = match is_lossy {
                true => "packets can get lost".to_owned(),
                false => format!("{} watches ACKs", routing.granularity_name()),
            };
            let expected = format!("a reliability with ACKs, as {who}");
            return Err(SimError::Transport(Invalid::new("reliability", expected, "\"none\"")));
        }
        if let Some(rails) = &plan.rails {
            let expected = "a reliability with ACKs where servers have several NICs";
            let has_acks = transport.has_acks();
            Invalid::unless(has_acks, "reliability", expected, "\"none\"").map_err(SimError::Transport)?;
            let has_ends = rails.spread() != Spread::LeastOutstanding || !plan.has_streams();
            let expected = "another one for frames of open loops, which have no end";
            Invalid::unless(has_ends, "spread", expected, "\"least-outstanding\"")
                .map_err(SimError::Servers)?;
        }
        if transport.chooses_paths() {
            check_entropy(&routing, &transport)?;
        }
        if transport.telemetry().is_some() && routing.scatters() {
            let expected = format!(
                "one that keeps a flow's way for a while with transport.congestion \"{}\", which compares what the links of a way say with \
                 what the same links said before",
                transport.congestion.name()
            );
            let found = format!("\"{}\"", routing.granularity_name());
            return Err(SimError::Routing(Invalid::new("granularity", expected, found)));
        }
        for (i, own) in fabric.options.ecn_by_rate.iter().enumerate() {
            let mut rates: Vec<Rate> = network.links().iter().map(|link| link.rate).collect();
            rates.sort_unstable();
            rates.dedup();
            let known: Vec<String> = rates.iter().map(Rate::to_string).collect();
            let expected = format!("a rate of the network's links ({})", known.join(", "));
            Invalid::unless(rates.contains(&own.rate), format!("ecn_by_rate.{i}.rate"), expected, own.rate)
                .map_err(SimError::Fabric)?;
        }
        let needs_marks = matches!(transport.congestion, Congestion::Dcqcn(_)) || transport.chooses_paths();
        if needs_marks && fabric.options.ecn.is_none() {
            let expected =
                format!("a fabric that marks packets (fabric.ecn) with \"{}\"", transport.congestion.name());
            return Err(SimError::Transport(Invalid::new("congestion", expected, "none")));
        }
        if heeds_marks && fabric.options.ecn.is_none() {
            let name = routing.granularity_name();
            let expected = format!("a fabric that marks packets (fabric.ecn) with \"{name}\"");
            return Err(SimError::Routing(Invalid::new("granularity", expected, "none")));
        }
        if routing.needs_tree() && !network.is_tree() {
            let expected = format!("a tree topology for {}", routing.selector_name());
            let found = network.name().to_owned();
            return Err(SimError::Routing(Invalid { field: "selector".into(), expected, found }));
        }
        if routing.needs_credits() && !matches!(fabric.flow_control, FlowControl::Credits(_)) {
            let name = fabric.flow_control.name();
            let expected = format!(
                "\"queue\" where fabric.flow_control is \"{name}\": only \"credits\" has credits to count"
            );
            return Err(SimError::Routing(Invalid::new(
                "selector.load",
                expected,
                "one that counts credits",
            )));
        }
        let counts_off_trees = routing.counted_flowcuts().is_some() && !network.is_tree();
        if counts_off_trees && fabric.is_lossless() && !fabric.options.control_priority {
            // On a tree the way back is as free of cycles as the way there.
            let expected = "\"nic\" for flowcuts in a lossless fabric that is no tree and where fabric.control_priority is false: nobody proves \
                            that acknowledgements which go back among the data do not wait for each other in a circle";
            let found = format!("\"{}\"", routing.placement.name());
            return Err(SimError::Routing(Invalid::new("placement", expected, found)));
        }
        let layers_seed = layers_seed(seed);
        let is_cut = |channel| faults.cut[channel as usize / 2];
        let forwarding = Forwarding::build(&routing, &network, is_cut, layers_seed)?;
        faults.check_scheme(&routing, &transport).map_err(SimError::Fault)?;
        let scheme = (&routing, &network, layers_seed);
        let epochs = Epochs::lay(&faults.withdrawals, &faults.cut, &forwarding, scheme);
        let epochs = epochs.map_err(SimError::Fault)?;
        let last = epochs.last(&forwarding).table();
        faults.check_last(last, measure.until).map_err(SimError::Fault)?;
        let vcs = virtual_channels(&fabric, &network, &forwarding)?;
        let rules = Rules::new(&fabric, transport.packet_size(), vcs);
        let rules = if faults.lose_packets() { rules.with_faults() } else { rules };
        let watch = Watch::new(&measure, plan.load_until());
        let least = routing.counted_flowcuts().map(|flowcut| flowcut.min_remaining);
        let gaps = Gaps::new(&routing.granularity, &transport, &measure);
        let options = &transport.options;
        let answers_wait =
            transport.pulls() || options.interrupt_interval.is_some() || options.reorder.holds();
        let numbering = Numbering::new(transport.options.subflows);
        if plan.numbers() > numbering.flows() {
            let expected = "as many as leave the messages of the workload's programs their numbers";
            return Err(SimError::Transport(Invalid::new("subflows", expected, transport.options.subflows)));
        }
        let first_number = if plan.hosts.iter().any(HostWork::is_program) { FIRST_OWN } else { 0 };
        let blueprint = Blueprint::new(&network, faults, seed, first_number);
        let telemetry = transport.telemetry().map(|_| Arc::new(Telemetry::new(network.hosts())));
        let world = World {
            network,
            fabric,
            rules,
            routing,
            forwarding,
            epochs,
            transport,
            numbering,
            answers_wait,
            watch,
            gaps,
            is_driven: false,
            servers: plan.rails.clone().map(|rails| Box::new(Servers::new(rails))),
            is_lossy,
            hint: least.filter(|&least| least > Bytes(0)),
            telemetry,
            blueprint,
            calculations: AtomicU64::new(0),
        };
        let groups = plan.groups.clone();
        let mut simulation = Simulation { world, measure, named_channels, traced, groups, nodes: Vec::new() };
        simulation.nodes = simulation.make_nodes(plan).map_err(SimError::Fabric)?;
        let load_until = simulation.world.watch.load_until;
        simulation.note_load(load_until);
        Ok(simulation)
    }

    /// Sets when the load ends; what comes later is the drain.
    pub(crate) fn note_load(&mut self, until: Time) {
        self.world.watch.load_until = until;
        self.nodes.iter_mut().for_each(|node| node.note_drain(until));
    }

    /// The layers by which switches forward, if the scheme has any.
    pub fn layers(&self) -> Option<&Layers> {
        self.world.forwarding.layers()
    }

    /// The kinds of traffic, by name.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The channels that are reported by name.
    pub fn named_channels(&self) -> &[NamedChannel] {
        &self.named_channels
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.world.network
    }

    /// Runs on `threads` threads.
    ///
    /// # Errors
    /// If packets got lost without a trace (a bug in netloom), if a lossless fabric lost some, or if the run stands still: in a
    /// deadlock, or because a program waits for what never comes.
    pub fn run(self, threads: usize) -> Result<Finished, RunError> {
        self.run_observed(threads, |_| ControlFlow::Continue(()))
    }

    /// Runs; `observe` is called every few simulated microseconds and may stop the run.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_observed(
        self,
        threads: usize,
        observe: impl FnMut(RunProgress) -> ControlFlow<()>,
    ) -> Result<Finished, RunError> {
        let mut kept = Records::default();
        let Finished { records, interrupted } = self.run_streamed(threads, observe, &mut kept)?;
        let Records { flows, channels, .. } = kept;
        Ok(Finished { records: Records { flows, channels, ..records }, interrupted })
    }

    /// The same, but the records of flows and channels are handed to `sink` and not kept: there may be more than fit the memory.
    ///
    /// # Errors
    /// As [`Self::run`]; some flows may have been handed over by then.
    pub fn run_streamed(
        self,
        threads: usize,
        mut observe: impl FnMut(RunProgress) -> ControlFlow<()>,
        sink: &mut dyn Sink,
    ) -> Result<Finished, RunError> {
        let Simulation { mut world, measure, named_channels, groups, nodes, .. } = self;
        let until = measure.until.unwrap_or(Time::MAX);
        let setup = layout::setup(&world, threads, until);
        let engine =
            Engine::new(&world, nodes, setup).expect("packets take time: the lookahead is never zero");
        let mut stall = Stall::new(&world);
        let run = engine.run_observed(|progress| {
            if stall.is_seen(&world, progress.time, progress.messages) || world.watch.is_broken() {
                return ControlFlow::Break(());
            }
            observe(RunProgress {
                time: progress.time,
                flows_done: progress.tally,
                packet_hops: progress.messages,
            })
        });
        // Records take much of what the layers of a large network have taken.
        world.forwarding.forget_beyond();
        let remains = Remains {
            nodes: run.nodes,
            pending: run.pending,
            groups,
            until,
            is_stopped: run.stopped,
            is_out_of_time: run.out_of_time,
        };
        let records = collect(&world, remains, sink)?;
        let records = Records { windows: measure.windows, named_channels, ..records };
        Ok(Finished { records, interrupted: run.stopped })
    }

    /// Runs under the textbook executor, one global event heap: slow, and a check of the other.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_reference(self) -> Result<Finished, RunError> {
        let Simulation { world, measure, named_channels, groups, nodes, .. } = self;
        let (nodes, _) = reference::run(&world, nodes);
        let records = collect_all(&world, Remains::at_the_end(nodes, groups))?;
        let records = Records { windows: measure.windows, named_channels, ..records };
        Ok(Finished { records, interrupted: false })
    }

    fn make_nodes(&self, plan: Plan) -> Result<Vec<Node>, Invalid> {
        let World { network, .. } = &self.world;
        self.world.check_switches()?;
        let mut nodes = Vec::with_capacity(network.nodes() as usize);
        match &plan.rails {
            None => nodes.extend((0..).zip(plan.hosts).map(|(id, work)| {
                let sampler = self.sampler(id);
                match work.is_idle() && sampler.is_none() {
                    true => Node::Untouched,
                    false => Node::Host(Box::new(self.world.make_host(id, work, sampler))),
                }
            })),
            Some(rails) => {
                nodes.extend((0..network.hosts()).map(|_| Node::InServer));
                for (number, work) in (0..).zip(plan.hosts) {
                    let ids = (0..rails.nics()).map(|rail| rails.nic(number, rail));
                    let host = |id| self.world.make_host(id, HostWork::default(), self.sampler(id));
                    let nics = ids.map(|id| (id, host(id))).collect();
                    let server = Server::new(number, nics, work, self.world.blueprint.first_number);
                    nodes[rails.nic(number, 0) as usize] = Node::Server(Box::new(server));
                }
            }
        }
        // One that has hosts is there from the beginning: records ask it what switches can tell at all.
        let first = (network.hosts() > 0).then(|| network.edge_switch(0));
        let reports = self.world.routing.report_period().is_some();
        nodes.extend((network.hosts()..network.nodes()).map(|id| {
            let sampler = self.sampler(id);
            match sampler.is_none() && !reports && first != Some(id) {
                true => Node::Untouched,
                false => Node::Switch(Box::new(self.world.make_switch(id, sampler))),
            }
        }));
        Ok(nodes)
    }

    fn sampler(&self, node: NodeId) -> Option<Box<Sampler>> {
        let network = &self.world.network;
        let Measure { sample: interval, windows, .. } = &self.measure;
        // Windows are reported for channels with names.
        let has_windows = !windows.is_empty() && !self.named_channels.is_empty();
        let tracer = self.traced.as_ref().and_then(|(trace, channels)| {
            Tracer::new(trace, channels, network, node, self.world.numbering, &self.world.watch.trace)
        });
        let wanted = self.measure.sample_tier.as_ref();
        let ports = network.ports(node).iter().enumerate().filter(|&(_, &channel)| {
            if !self.named_channels.is_empty() {
                return self.named_channels.iter().any(|named| named.channel == channel);
            }
            let tier = &network.tiers()[usize::from(network.channel(channel).tier)];
            wanted.is_none_or(|wanted| wanted == tier)
        });
        let is_sampled = interval.is_some() || has_windows;
        let ports: Vec<_> =
            ports.filter(|_| is_sampled).map(|(port, &channel)| (port as u16, channel)).collect();
        let windows = if has_windows { windows.as_slice() } else { &[] };
        let series = self.world.watch.series.clone();
        let is_needed = !ports.is_empty() || tracer.is_some();
        is_needed.then(|| Box::new(Sampler::new(*interval, windows, ports, series, tracer)))
    }
}

/// Refuses routing for a transport that chooses among entropy values itself, if something else would choose too.
fn check_entropy(routing: &Routing, transport: &Transport) -> Result<(), SimError> {
    let (field, what, found) = match (routing.placement, &routing.granularity, &routing.selector) {
        (Placement::Nic, Granularity::Packet(_), Selector::Random(_)) => return Ok(()),
        (Placement::Nic, Granularity::Packet(_), selector) => ("selector", "random", selector.name()),
        (Placement::Nic, granularity, _) => ("granularity", "packet", granularity.name()),
        (placement, _, _) => ("placement", "nic", placement.name()),
    };
    let name = transport.congestion.name();
    let expected = format!(
        "\"{what}\" with transport.congestion \"{name}\", which chooses among entropy values itself (routing \"spray-nic\")"
    );
    Err(SimError::Routing(Invalid::new(field, expected, format!("\"{found}\""))))
}

/// The seed of the layers of a run with this seed.
pub fn layers_seed(seed: u64) -> u64 {
    random::Node::Layers.stream(seed, 0).next_u64()
}

/// Virtual channels per class of a fabric, such that its routes cannot deadlock.
fn virtual_channels(fabric: &Fabric, network: &Network, forwarding: &Forwarding) -> Result<u8, SimError> {
    let flow_control = &fabric.flow_control;
    if flow_control.may_deadlock() {
        return Ok(flow_control.vcs().unwrap_or(1));
    }
    let most = flow_control.most_vcs(fabric.classes());
    if flow_control.vcs().is_none() {
        let needed = if forwarding.has_cycle(network, 1) { forwarding.vcs_needed(network) } else { 1 };
        if needed <= most {
            return Ok(needed);
        }
    }
    let Some(cycle) = forwarding.find_cycle(network, flow_control.vcs().unwrap_or(1)) else {
        return Ok(flow_control.vcs().unwrap_or(1));
    };
    let needed = forwarding.vcs_needed(network);
    let mut names: Vec<String> = Vec::new();
    for &(channel, vc) in cycle.iter().take(8) {
        let vc = if flow_control.vcs() == Some(1) { String::new() } else { format!(" (vc {vc})") };
        names.push(channel_name(network, channel) + &vc);
    }
    let more = if cycle.len() > names.len() { ", …" } else { "" };
    Err(SimError::MayDeadlock(format!(
        "the routes can deadlock: channels {}{more} wait for each other in a cycle; expected {needed} virtual channels (at most \
         {most} here), or `allow_deadlock = true` to run all the same",
        names.join(", ")
    )))
}
