//! From a network and a plan to records.

mod fitting;
mod lengths;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use netloom_engine::{Engine, reference};
use netloom_fabric::{Fabric, FlowControl, Rules, Telemetry};
use netloom_record::{NamedChannel, Records, Sink};
use netloom_routing::{Forwarding, ForwardingError, Layers};
use netloom_topology::{Network, NodeId};
use netloom_units::{Bytes, Time, narrow};
use netloom_units::{Invalid, random};
use netloom_workload::{HostWork, Plan};
use rand::Rng;

use self::fitting::Fitting;
use crate::blueprint::Blueprint;
use crate::collect::{Remains, RunError, collect, collect_all};
use crate::config::SimConfig;
use crate::epochs::Epochs;
use crate::host::{FIRST_OWN, Gaps, Host};
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
    /// Routes may be longer than packets can count.
    #[error("topology: {0}")]
    TooFar(String),
    /// There are more channels than messages can say that they came by.
    #[error("topology: {0}")]
    TooLarge(String),
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
        let fitting = Fitting::new(&network, config, &plan)?;
        Self::of(network, fitting, plan)
    }

    /// Refuses what [`Self::new`] refuses. Routes are laid only if something depends on which they are.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn check(network: Network, config: SimConfig, plan: Plan) -> Result<(), SimError> {
        let fitting = Fitting::new(&network, config, &plan)?;
        let Fitting { fabric, routing, faults, seed, .. } = &fitting;
        // A lossless fabric is searched for deadlocks, and new routes may leave some host out of reach.
        if !matches!(fabric.flow_control, FlowControl::Lossy(_)) || !faults.withdrawals.is_empty() {
            return Self::of(network, fitting, plan).map(drop);
        }
        let is_cut = |channel| faults.cut[channel as usize / 2];
        Ok(Forwarding::check(routing, &network, is_cut, layers_seed(*seed))?)
    }

    /// Lays the routes and makes the nodes.
    fn of(network: Network, fitting: Fitting, plan: Plan) -> Result<Self, SimError> {
        let Fitting { fabric, routing, transport, faults, measure, seed, .. } = fitting;
        let Fitting { named_channels, traced, is_lossy, numbering, largest, .. } = fitting;
        let layers_seed = layers_seed(seed);
        let is_cut = |channel| faults.cut[channel as usize / 2];
        let forwarding = Forwarding::build(&routing, &network, is_cut, layers_seed)?;
        let scheme = (&routing, &network, layers_seed);
        let epochs = Epochs::lay(&faults.withdrawals, &faults.cut, &forwarding, scheme);
        let epochs = epochs.map_err(SimError::Fault)?;
        let last = epochs.last(&forwarding).table();
        faults.check_last(last, measure.until).map_err(SimError::Fault)?;
        let vcs = virtual_channels(&fabric, &network, &epochs.all(&forwarding))?;
        let rules = Rules::new(&fabric, largest, vcs).with_seed(seed);
        let rules = if faults.lose_packets() { rules.with_faults() } else { rules };
        let watch = Watch::new(&measure, plan.load_until());
        let least = routing.counted_flowcuts().map(|flowcut| flowcut.min_remaining);
        let gaps = Gaps::new(&routing.granularity, &transport, &measure);
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
        let mut reached = Time::ZERO;
        let run = engine.run_observed(|progress| {
            reached = progress.time;
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
            stopped_at: run.stopped.then_some(reached),
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
                    false => Node::Host(Box::new(Host::new(&self.world, id, work, sampler))),
                }
            })),
            Some(rails) => {
                nodes.extend((0..network.hosts()).map(|_| Node::InServer));
                for (number, work) in (0..).zip(plan.hosts) {
                    let ids = (0..rails.nics()).map(|rail| rails.nic(number, rail));
                    let host = |id| Host::new(&self.world, id, HostWork::default(), self.sampler(id));
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
            ports.filter(|_| is_sampled).map(|(port, &channel)| (narrow::<u16>(port), channel)).collect();
        let windows = if has_windows { windows.as_slice() } else { &[] };
        let series = self.world.watch.series.clone();
        let is_needed = !ports.is_empty() || tracer.is_some();
        is_needed.then(|| Box::new(Sampler::new(*interval, windows, ports, series, tracer)))
    }
}

/// The seed of the layers of a run with this seed.
pub fn layers_seed(seed: u64) -> u64 {
    random::Node::Layers.stream(seed, 0).next_u64()
}

/// Virtual channels per class of a fabric, such that none of the routes by which a run goes at its times can deadlock.
fn virtual_channels(
    fabric: &Fabric,
    network: &Network,
    forwardings: &[(Time, &Forwarding)],
) -> Result<u8, SimError> {
    let flow_control = &fabric.flow_control;
    if flow_control.may_deadlock() {
        return Ok(flow_control.vcs().unwrap_or(1));
    }
    let most = flow_control.most_vcs(fabric.classes());
    if flow_control.vcs().is_none() {
        let needed = forwardings.iter().map(|(_, forwarding)| forwarding.vcs_without_cycle(network));
        let needed = needed.max().unwrap_or(1);
        if needed <= most {
            return Ok(needed);
        }
    }
    let vcs = flow_control.vcs().unwrap_or(1);
    let cycles = forwardings.iter().map(|&(from, forwarding)| {
        forwarding.find_cycle(network, vcs).map(|cycle| (from, forwarding, cycle))
    });
    let Some((from, forwarding, cycle)) = cycles.flatten().next() else { return Ok(vcs) };
    let needed = forwarding.vcs_needed(network);
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
