//! From a scenario to a simulation that can run, or the reason why there is none.

use std::path::Path;
use std::sync::Arc;

use netloom_flow::{FlowRun, RegionRun};
use netloom_record::{NamedChannel, Summary};
use netloom_sim::{ChannelEnds, Cut, Fault, SimConfig, Simulation};
use netloom_topology::{BuildContext, Network, NodeId};
use netloom_units::Time;
use netloom_units::memory;
use netloom_workload::{Analytical, Job, Plan, PlanContext, RankEnds, add_jobs};

use super::analytical;
use super::flow;
use super::problems::{
    invalid_problem, job_problem, located, network_problem, sim_problem, workload_problem,
};
use crate::detail::Detail;
use crate::document::Node;
use crate::outline::outline;
use crate::scenario::Scenario;
use crate::source::{Problem, Problems};
use crate::warnings;

/// What is run.
#[derive(Debug)]
pub enum Run {
    /// Hosts and switches that send packets.
    Packets(Simulation),
    /// Flows with rates.
    Flow(FlowRun),
    /// Packets of a region beside flows with rates.
    Region(RegionRun),
}

impl Run {
    /// The kinds of traffic, by name.
    pub(super) fn groups(&self) -> &[String] {
        match self {
            Run::Packets(simulation) => simulation.groups(),
            Run::Flow(flows) => flows.stage().groups(),
            Run::Region(region) => region.stage().groups(),
        }
    }

    /// The channels that are reported by name.
    pub(super) fn named_channels(&self) -> &[NamedChannel] {
        match self {
            Run::Packets(simulation) => simulation.named_channels(),
            Run::Flow(flows) => flows.stage().named_channels(),
            Run::Region(region) => region.stage().named_channels(),
        }
    }
}

/// A scenario whose parts fit each other, ready to run.
#[derive(Debug)]
pub struct Ready {
    /// What is run, in the [detail](Detail) that the scenario asks for.
    pub run: Run,
    /// How many messages there will be, where that is known.
    pub total_messages: Option<u64>,
    /// A summary in which everything has a value that may have one after the run. Its names are those of the run, its numbers mean
    /// nothing.
    pub outline: Summary,
    /// What the workload is about, in lines; empty where its fields say all.
    pub work: Vec<String>,
    /// What is probably a mistake, each in one sentence.
    pub warnings: Vec<String>,
    /// How many hosts the network has.
    pub hosts: u32,
    /// How many switches the network has.
    pub switches: u32,
    /// How the ranks of a training job end, once they have.
    pub ends: Option<Arc<RankEnds>>,
    /// A training job that is run without packets.
    pub analytical: Option<Arc<Analytical>>,
}

/// Builds the network, the work, the faults and the routes on it, and makes the nodes.
///
/// # Errors
/// What does not fit, placed where `document` names it.
pub fn prepare(scenario: &Scenario, document: &Node) -> Result<Ready, Problems> {
    let Built { network, config, plan, outline } = build(scenario, document)?;
    let (total_messages, work) = (plan.total_messages, plan.outline.clone());
    let warnings = all_warnings(scenario, document, &network, &plan);
    let (hosts, switches) = (network.hosts(), network.switches());
    let (ends, analytical) = (plan.ends.clone(), plan.analytical.clone());
    let run = match &scenario.detail {
        Detail::Packets => Simulation::new(network, config, plan).map(Run::Packets),
        Detail::Flow => FlowRun::new(network, config, plan).map(Run::Flow),
        Detail::Region(region) => RegionRun::new(network, config, plan, region).map(Run::Region),
    };
    let run = run.map_err(|error| sim_problem(&error, document))?;
    Ok(Ready { run, total_messages, outline, work, warnings, hosts, switches, ends, analytical })
}

/// The simulation of a scenario packet by packet, whatever its detail: which path a packet takes does not depend on that.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_packets(scenario: &Scenario, document: &Node) -> Result<Simulation, Problems> {
    let Built { network, config, plan, .. } = build(scenario, document)?;
    Simulation::new(network, config, plan).map_err(|error| sim_problem(&error, document).into())
}

/// What is known of a run that [`prepare`] does not refuse.
#[derive(Debug)]
pub struct Checked {
    /// How many hosts the network has.
    pub hosts: u32,
    /// How many messages there will be, where that is known.
    pub total_messages: Option<u64>,
    /// As in [`Ready`].
    pub outline: Summary,
    /// As in [`Ready`].
    pub warnings: Vec<String>,
    /// Bytes of memory that network, routes and busy hosts take at least; what a run has in flight is not known before it.
    pub memory: u64,
}

/// Refuses what [`prepare`] refuses. Routes are built only where something depends on which they are, so that many scenarios can be checked
/// before the first of them runs.
///
/// # Errors
/// As [`prepare`].
pub fn check(scenario: &Scenario, document: &Node) -> Result<Checked, Problems> {
    let Built { network, config, plan, outline } = build(scenario, document)?;
    let (hosts, total_messages) = (network.hosts(), plan.total_messages);
    let memory = routes(&network) + busy_network(&network, &plan);
    let warnings = all_warnings(scenario, document, &network, &plan);
    let checked = match &scenario.detail {
        Detail::Packets => Simulation::check(network, config, plan),
        Detail::Flow => FlowRun::check(network, config, plan),
        Detail::Region(region) => RegionRun::check(network, config, plan, region),
    };
    checked.map_err(|error| sim_problem(&error, document))?;
    Ok(Checked { hosts, total_messages, outline, warnings, memory })
}

/// What can be warned of before the run.
fn all_warnings(scenario: &Scenario, document: &Node, network: &Network, plan: &Plan) -> Vec<String> {
    let mut warnings = left_out(document);
    warnings.extend(warnings::before(scenario, network, plan));
    warnings.extend(flow::warning(scenario, document));
    warnings.extend(plan.analytical.as_ref().and_then(|_| analytical::warning(document)));
    warnings
}

/// The fields that a kind or preset chosen after them does not have, each in one sentence.
pub fn left_out(document: &Node) -> Vec<String> {
    if !document.has_outlived() {
        return Vec::new();
    }
    let settled = Scenario::settle(document).map(|settled| settled.left_out).unwrap_or_default();
    settled.iter().map(Problem::to_string).collect()
}

/// A network and what is to be done on it.
struct Built {
    network: Network,
    config: SimConfig,
    plan: Plan,
    outline: Summary,
}

fn build(scenario: &Scenario, document: &Node) -> Result<Built, Problems> {
    // Messages are counted in packets, and memory is asked for: what is wrong with these is not the fault of a message or a network.
    scenario.transport.check().map_err(|invalid| invalid_problem(&invalid, "transport", document))?;
    memory::limit().map_err(|error| Problem::new("", error.to_string()))?;
    let network = build_network(scenario, document)?;
    check_memory(scenario, &network, document)?;
    let rails = scenario.servers.as_ref().map(|servers| servers.build(&network, scenario.seed)).transpose();
    let rails = rails.map_err(|invalid| invalid_problem(&invalid, "servers", document))?;
    let largest_message = scenario.transport.largest_message();
    let (rails, until) = (rails.map(Arc::new), scenario.measure.until);
    let keeps_labels = scenario.measure.operations;
    let context =
        PlanContext { largest_message, until, rails, keeps_labels, ..PlanContext::new(scenario.seed) };
    let plan =
        scenario.workload.plan(&network, &context).map_err(|error| workload_problem(&error, document))?;
    let plan =
        add_jobs(plan, &scenario.jobs, &network, &context).map_err(|error| job_problem(&error, document))?;
    check_busy(&network, &plan, document)?;
    if plan.analytical.is_some() {
        analytical::check(scenario, document)?;
    }
    check_classes(scenario, document)?;
    flow::check(scenario, document)?;
    if let Some((section, field, who)) = lacks_notifications(scenario) {
        let reason = format!(
            "{who} learns of congestion from notifications only: expected `fabric.qcn = {{}}`, found none"
        );
        return Err(located(document, section, field, &reason).into());
    }
    let outline = outline(scenario, &network, &plan);
    let mut faults = scenario.faults.clone();
    faults.extend(plan.cuts.iter().map(|&ends| cut_between(&network, ends)));
    let config = SimConfig {
        fabric: scenario.fabric.clone(),
        routing: scenario.routing.clone(),
        transport: scenario.transport.clone(),
        faults,
        measure: scenario.measure.clone(),
        seed: scenario.seed,
        fast: scenario.fast,
    };
    Ok(Built { network, config, plan, outline })
}

/// Refuses traffic classes that the fabric does not have.
fn check_classes(scenario: &Scenario, document: &Node) -> Result<(), Problem> {
    let classes = scenario.fabric.classes();
    let of_workload = ("workload", "class".to_owned(), scenario.workload.highest_class());
    let of_job = |(index, job): (usize, &Job)| ("jobs", format!("{index}.class"), job.class);
    let mut all = std::iter::once(of_workload).chain(scenario.jobs.iter().enumerate().map(of_job));
    match all.find(|(_, _, class)| usize::from(*class) >= classes) {
        None => Ok(()),
        Some((section, field, class)) => {
            let known = format!("there are {classes}, numbered from 0; `fabric.classes` lists them");
            let reason = format!("expected a traffic class that the fabric has ({known}), found {class}");
            Err(located(document, section, &field, &reason))
        }
    }
}

/// A link that does not exist, as a fault.
fn cut_between(network: &Network, (a, b): (NodeId, NodeId)) -> Fault {
    let ends = ChannelEnds { from: network.node_name(a), to: network.node_name(b), parallel: 0 };
    Fault::Cut(Cut { channels: vec![ends], ..Default::default() })
}

/// Refuses what surely does not fit into memory, before the nodes are made. The terms are the large ones of a run, a little below
/// what was measured: what passes may still be too much, what is refused is.
fn check_memory(scenario: &Scenario, network: &Network, document: &Node) -> Result<(), Problems> {
    let channels = u64::from(network.channels());
    check_network(network, routes(network) + idle_network(network), document)?;
    // Rows of series are kept until they are written.
    let measure = &scenario.measure;
    if let (Some(interval), Some(until)) = (measure.sample, measure.until)
        && interval > Time::ZERO
    {
        let sampled = if measure.channels.is_empty() { channels } else { measure.channels.len() as u64 };
        let rows = sampled.saturating_mul(until.0 / interval.0);
        memory::check(rows.saturating_mul(40)).map_err(|error| {
            located(
                document,
                "measure",
                "sample",
                &format!("expected a longer interval: {rows} rows, and {error}"),
            )
        })?;
    }
    let bins = measure.size_bins.as_ref().map_or(0, Vec::len);
    if bins > MOST_BINS {
        let message = format!("expected at most {MOST_BINS} bounds, found {bins}");
        return Err(located(document, "measure", "size_bins", &message).into());
    }
    Ok(())
}

/// What routes take: four bytes at each switch for each one that has hosts.
fn routes(network: &Network) -> u64 {
    let mut edges: Vec<u32> = (0..network.hosts()).map(|host| network.edge_switch(host)).collect();
    edges.sort_unstable();
    edges.dedup();
    4 * u64::from(network.switches()) * edges.len() as u64
}

/// What a network takes in which nothing happens, without routes.
fn idle_network(network: &Network) -> u64 {
    u64::from(network.channels()) * 20 + u64::from(network.hosts()) * 40
}

/// The same with all hosts that have something to send, each with its port and that of its switch.
fn busy_network(network: &Network, plan: &Plan) -> u64 {
    let busy = plan.hosts.iter().filter(|work| !work.is_idle()).count();
    idle_network(network) + 1000 * busy as u64
}

/// Refuses a network all of whose hosts that have something to send do not fit into memory.
fn check_busy(network: &Network, plan: &Plan, document: &Node) -> Result<(), Problems> {
    check_network(network, busy_network(network, plan), document)
}

fn check_network(network: &Network, bytes: u64, document: &Node) -> Result<(), Problems> {
    memory::check(bytes).map_err(|error| {
        located(document, "topology", "", &format!("{} is too large: {error}", network.name())).into()
    })
}

/// Flow-size bins beyond this number are no summary.
const MOST_BINS: usize = 1000;

/// The part that needs congestion notifications although no switch sends any, and the field that says so.
fn lacks_notifications(scenario: &Scenario) -> Option<(&'static str, &'static str, &'static str)> {
    if scenario.fabric.options.qcn.is_some() {
        None
    } else if scenario.routing.selector.uncongested().is_some() {
        Some(("routing", "selector", scenario.routing.selector_name()))
    } else if scenario.transport.congestion.facts().reaction_point.is_some() {
        Some(("transport", "congestion", "a rate limiter"))
    } else {
        None
    }
}

/// Builds the network of a run: with the planes and scale-up networks of servers, if there are some.
///
/// # Errors
/// Why there is no such network, placed where `document` names it.
pub fn build_network(scenario: &Scenario, document: &Node) -> Result<Network, Problems> {
    let plane = build_plane(scenario, document)?;
    match &scenario.servers {
        Some(servers) => {
            servers.network(plane).map_err(|invalid| invalid_problem(&invalid, "servers", document).into())
        }
        None if plane.links_per_host() > 1 => {
            let links = plane.links_per_host();
            let reason = format!(
                "the hosts of the file have {links} links each: expected a table `servers` with nics = {links}, found none"
            );
            Err(located(document, "topology", "path", &reason).into())
        }
        None => Ok(plane),
    }
}

/// Builds the network that `topology` describes, one plane of it where servers have several.
///
/// # Errors
/// Why there is no such network, placed where `document` names it.
pub fn build_plane(scenario: &Scenario, document: &Node) -> Result<Network, Problems> {
    // File names are absolute in a checked scenario.
    let context = BuildContext { seed: scenario.seed, base_dir: Path::new("") };
    scenario.topology.build(&context).map_err(|error| network_problem(&error, document).into())
}
