//! The program as a sentence: read the scenario, check it, build the network, lay the work and the routes on it,
//! make the nodes, run the windows, sum up, write the outcome.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use netloom_record::{
    ChannelRecord, FlowRecord, OutcomeError, OutcomeWriter, Performance, Records, SeriesError, Sink, Status,
    Summary, SummaryOptions, Tally,
};
use netloom_sim::{ChannelEnds, Cut, Fault, RunProgress, SimConfig, SimError, Simulation};
use netloom_topology::{BuildContext, Network, NetworkError, NodeId};
use netloom_units::memory::{self, TooLarge};
use netloom_units::{Invalid, Time, narrow};
use netloom_workload::{Plan, PlanContext, WorkloadError};

use crate::document::Node;
use crate::outline::outline;
use crate::scenario::Scenario;
use crate::source::{Problem, Problems};
use crate::warnings;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] Problems),
    /// The outcome cannot be written.
    #[error(transparent)]
    Outcome(#[from] OutcomeError),
    /// The run needs more memory than it may have.
    #[error("the run was stopped: {0}")]
    Memory(#[from] TooLarge),
    /// The run came to no good end: a deadlock, a lossless fabric that loses packets, or a bug in netloom.
    #[error("{0}")]
    Simulation(#[from] netloom_sim::RunError),
}

impl From<SeriesError> for RunError {
    fn from(error: SeriesError) -> Self {
        netloom_sim::RunError::from(error).into()
    }
}

/// What a run is worth showing.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The summary, as written to the outcome.
    pub summary: Summary,
    /// What the run cost, as written to the outcome.
    pub performance: Performance,
}

/// Runs a scenario from its text to its outcome. `observe` is told where the run stands and may stop it; what was
/// seen until then is written and marked as interrupted.
///
/// # Errors
/// If the scenario is wrong, or the outcome cannot be written.
pub fn run(
    document: &Node,
    threads: usize,
    writer: &OutcomeWriter,
    observe: impl FnMut(RunProgress) -> ControlFlow<()>,
) -> Result<Ran, RunError> {
    let scenario = Scenario::read(document)?;
    let ready = prepare(&scenario, document)?;
    finish(&scenario, ready, threads, writer, observe)
}

/// A scenario whose parts fit each other, ready to run.
#[derive(Debug)]
pub struct Ready {
    /// The nodes.
    pub simulation: Simulation,
    /// How many messages there will be, where that is known.
    pub total_messages: Option<u64>,
    /// A summary in which everything has a value that may have one after the run. Its names are those of the run, its numbers mean
    /// nothing.
    pub outline: Summary,
    /// What is probably a mistake, each in one sentence.
    pub warnings: Vec<String>,
    /// How many switches the network has.
    pub switches: u32,
}

/// Builds the network, lays the work, the faults and the routes on it, and makes the nodes.
///
/// # Errors
/// What does not fit, placed where `document` names it.
pub fn prepare(scenario: &Scenario, document: &Node) -> Result<Ready, Problems> {
    let Laid { network, config, plan, outline } = lay(scenario, document)?;
    let total_messages = plan.total_messages;
    let mut warnings = left_out(document);
    warnings.extend(warnings::before(scenario, &network, &plan));
    let switches = network.switches();
    let simulation = Simulation::new(network, config, plan).map_err(|error| sim_problem(&error, document))?;
    Ok(Ready { simulation, total_messages, outline, warnings, switches })
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
}

/// Refuses what [`prepare`] refuses. Routes are laid only where something depends on which they are, so that many scenarios can be checked
/// before the first of them runs.
///
/// # Errors
/// As [`prepare`].
pub fn check(scenario: &Scenario, document: &Node) -> Result<Checked, Problems> {
    let Laid { network, config, plan, outline } = lay(scenario, document)?;
    let (hosts, total_messages) = (network.hosts(), plan.total_messages);
    let mut warnings = left_out(document);
    warnings.extend(warnings::before(scenario, &network, &plan));
    Simulation::check(network, config, plan).map_err(|error| sim_problem(&error, document))?;
    Ok(Checked { hosts, total_messages, outline, warnings })
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
struct Laid {
    network: Network,
    config: SimConfig,
    plan: Plan,
    outline: Summary,
}

fn lay(scenario: &Scenario, document: &Node) -> Result<Laid, Problems> {
    // Messages are counted in packets, and memory is asked for: what is wrong with these is not the fault of a message or a network.
    scenario.transport.check().map_err(|invalid| invalid_problem(&invalid, "transport", document))?;
    memory::limit().map_err(|error| Problem::new("", error.to_string()))?;
    let network = build_network(scenario, document)?;
    check_memory(scenario, &network, document)?;
    let rails = scenario.servers.as_ref().map(|servers| servers.lay(&network, scenario.seed)).transpose();
    let rails = rails.map_err(|invalid| invalid_problem(&invalid, "servers", document))?;
    let largest_message = scenario.transport.largest_message();
    let (rails, until) = (rails.map(Arc::new), scenario.measure.until);
    let context = PlanContext { largest_message, until, rails, ..PlanContext::new(scenario.seed) };
    let plan =
        scenario.workload.plan(&network, &context).map_err(|error| workload_problem(&error, document))?;
    check_busy(&network, &plan, document)?;
    let (class, classes) = (scenario.workload.highest_class(), scenario.fabric.classes());
    if usize::from(class) >= classes {
        let known = format!("there are {classes}, numbered from 0; `fabric.classes` lists them");
        let reason = format!("expected a traffic class that the fabric has ({known}), found {class}");
        return Err(located(document, "workload", "class", &reason).into());
    }
    if let Some((section, field, who)) = listens_in_vain(scenario) {
        let reason = format!(
            "{who} hears of congestion by notifications only: expected `fabric.qcn = {{}}`, found none"
        );
        return Err(located(document, section, field, &reason).into());
    }
    let outline = outline(scenario, &network, &plan.groups);
    let mut faults = scenario.faults.clone();
    faults.extend(plan.cuts.iter().map(|&ends| cut_between(&network, ends)));
    let config = SimConfig {
        fabric: scenario.fabric.clone(),
        routing: scenario.routing.clone(),
        transport: scenario.transport.clone(),
        faults,
        measure: scenario.measure.clone(),
        seed: scenario.seed,
    };
    Ok(Laid { network, config, plan, outline })
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
    let mut edges: Vec<u32> = (0..network.hosts()).map(|host| network.edge_switch(host)).collect();
    edges.sort_unstable();
    edges.dedup();
    let routes = 4 * u64::from(network.switches()) * edges.len() as u64;
    check_network(network, routes + idle_network(network), document)?;
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

/// What a network takes in which nothing happens, without routes.
fn idle_network(network: &Network) -> u64 {
    u64::from(network.channels()) * 20 + u64::from(network.hosts()) * 40
}

/// Refuses a network all of whose hosts that have something to send do not fit into memory, each with its port and that of its switch.
fn check_busy(network: &Network, plan: &Plan, document: &Node) -> Result<(), Problems> {
    let busy = plan.hosts.iter().filter(|work| !work.is_idle()).count();
    check_network(network, idle_network(network) + 1000 * busy as u64, document)
}

fn check_network(network: &Network, bytes: u64, document: &Node) -> Result<(), Problems> {
    memory::check(bytes).map_err(|error| {
        located(document, "topology", "", &format!("{} is too large: {error}", network.name())).into()
    })
}

/// Flow-size bins beyond this number are no summary.
const MOST_BINS: usize = 1000;

/// Who waits for congestion notifications although no switch sends any, and where that is written.
fn listens_in_vain(scenario: &Scenario) -> Option<(&'static str, &'static str, &'static str)> {
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

/// Builds the network alone.
///
/// # Errors
/// Why there is no such network, placed where `document` names it.
pub fn build_network(scenario: &Scenario, document: &Node) -> Result<Network, Problems> {
    // File names are absolute in a checked scenario.
    let context = BuildContext { seed: scenario.seed, base_dir: Path::new("") };
    scenario.topology.build(&context).map_err(|error| network_problem(&error, document).into())
}

/// Runs the windows, sums up and writes the outcome.
///
/// # Errors
/// If the outcome cannot be written, or a packet was lost track of.
pub fn finish(
    scenario: &Scenario,
    ready: Ready,
    threads: usize,
    writer: &OutcomeWriter,
    observe: impl FnMut(RunProgress) -> ControlFlow<()>,
) -> Result<Ran, RunError> {
    let groups = ready.simulation.groups().to_vec();
    let mut draft = writer.draft(&groups);
    let (ran, records) = simulate_streamed(scenario, ready, threads, observe, &mut draft)?;
    let text = scenario.to_toml().map_err(Problems::from)?;
    draft.finish(&text, &ran.summary, &records, &ran.performance)?;
    Ok(ran)
}

/// Runs the windows and sums up; writes nothing.
///
/// # Errors
/// If the run comes to no good end, or a packet was lost track of.
pub fn simulate(
    scenario: &Scenario,
    ready: Ready,
    threads: usize,
    observe: impl FnMut(RunProgress) -> ControlFlow<()>,
) -> Result<(Ran, Records), RunError> {
    let mut kept = Records::default();
    let (ran, records) = simulate_streamed(scenario, ready, threads, observe, &mut kept)?;
    let Records { flows, channels, .. } = kept;
    Ok((ran, Records { flows, channels, ..records }))
}

/// The same, but the records of flows and channels are handed to `sink` and not kept.
fn simulate_streamed(
    scenario: &Scenario,
    ready: Ready,
    threads: usize,
    mut observe: impl FnMut(RunProgress) -> ControlFlow<()>,
    sink: &mut dyn Sink,
) -> Result<(Ran, Records), RunError> {
    let Ready { simulation, warnings, switches, .. } = ready;
    let tally = Tally::new(&summary_options(scenario), simulation.named_channels());
    let mut counted = Counted { tally, sink };
    let started = Instant::now();
    let mut memory = MemoryWatch::new()?;
    let watched = |progress| if memory.holds() { observe(progress) } else { ControlFlow::Break(()) };
    let finished = simulation.run_streamed(threads, watched, &mut counted)?;
    memory.result?;
    let wall_s = started.elapsed().as_secs_f64();

    let status = if finished.interrupted { Status::Interrupted } else { Status::Complete };
    let summary = Summary::of(counted.tally, &finished.records, status)?;
    let summary = warned(scenario, warnings, switches, summary, &finished.records);
    let hops = finished.records.totals.packet_hops;
    let performance = Performance::new(env!("CARGO_PKG_VERSION"), narrow::<u32>(threads), wall_s, hops);
    Ok((Ran { summary, performance }, finished.records))
}

/// Looks now and then whether the process keeps to the memory that it may have: what a run needs is not known before it.
struct MemoryWatch {
    last: Instant,
    result: Result<(), TooLarge>,
}

impl MemoryWatch {
    /// Often enough that not much is taken between two looks, and so seldom that they cost nothing.
    const PERIOD: Duration = Duration::from_millis(10);

    fn new() -> Result<Self, TooLarge> {
        memory::check_use()?;
        Ok(MemoryWatch { last: Instant::now(), result: Ok(()) })
    }

    fn holds(&mut self) -> bool {
        if self.last.elapsed() >= Self::PERIOD && self.result.is_ok() {
            self.last = Instant::now();
            self.result = memory::check_use();
        }
        self.result.is_ok()
    }
}

/// Counts the records that it hands on.
struct Counted<'a> {
    tally: Tally,
    sink: &'a mut dyn Sink,
}

impl Sink for Counted<'_> {
    fn flow(&mut self, flow: FlowRecord) {
        self.tally.add_flow(&flow);
        self.sink.flow(flow);
    }

    fn channel(&mut self, channel: ChannelRecord) {
        self.tally.add_channel(&channel);
        self.sink.channel(channel);
    }
}

/// A summary with what was probably a mistake: the `warnings` from before the run, and those that its numbers give rise to.
pub(crate) fn warned(
    scenario: &Scenario,
    warnings: Vec<String>,
    switches: u32,
    summary: Summary,
    records: &Records,
) -> Summary {
    let after = warnings::after(scenario, switches, &summary, !records.trace.is_empty());
    Summary { warnings: warnings.into_iter().chain(after).collect(), ..summary }
}

/// What the summary of a scenario's run counts.
pub(crate) fn summary_options(scenario: &Scenario) -> SummaryOptions {
    let measure = &scenario.measure;
    let defaults = SummaryOptions::default();
    SummaryOptions {
        warm_up: measure.warm_up,
        size_bins: measure.size_bins.clone().unwrap_or(defaults.size_bins),
    }
}

fn network_problem(error: &NetworkError, document: &Node) -> Problem {
    match error {
        NetworkError::Parameter(invalid) => invalid_problem(invalid, "topology", document),
        other => located(document, "topology", "", &other.to_string()),
    }
}

fn workload_problem(error: &WorkloadError, document: &Node) -> Problem {
    match error {
        WorkloadError::Parameter(invalid) => invalid_problem(invalid, "workload", document),
        other => located(document, "workload", "", &other.to_string()),
    }
}

fn sim_problem(error: &SimError, document: &Node) -> Problem {
    match error {
        SimError::Fabric(invalid) => invalid_problem(invalid, "fabric", document),
        SimError::MayDeadlock(reason) => located(document, "fabric", "flow_control.vcs", reason),
        SimError::Servers(error) => invalid_problem(error, "servers", document),
        SimError::Routing(error) => routing_problem(error, document),
        SimError::Transport(error) => invalid_problem(error, "transport", document),
        SimError::Fault(error) => invalid_problem(error, "faults", document),
        SimError::Measure(error) => invalid_problem(error, "measure", document),
        SimError::Unreachable(reason) => located(document, "faults", "", reason),
        SimError::TooFar(reason) | SimError::TooLarge(reason) => located(document, "topology", "", reason),
    }
}

/// A value of a routing scheme that makes no sense. Where it is the value of a preset, that is what the user wrote.
fn routing_problem(invalid: &Invalid, document: &Node) -> Problem {
    let routing = document.at(["routing"]);
    let preset = routing.and_then(|routing| routing.as_str().or_else(|| routing.at(["preset"])?.as_str()));
    let field = invalid.field.split('.');
    let is_written = routing.is_some_and(|routing| routing.at(field).is_some());
    let of_preset = preset.filter(|_| !is_written).map(|name| format!(" (by the preset \"{name}\")"));
    located(document, "routing", &invalid.field, &(invalid.reason() + &of_preset.unwrap_or_default()))
}

/// A value that makes no sense in one of the sections.
fn invalid_problem(invalid: &Invalid, section: &str, document: &Node) -> Problem {
    located(document, section, &invalid.field, &invalid.reason())
}

/// A problem at a field of a section, placed at the nearest part of it that the user wrote.
fn located(document: &Node, section: &str, field: &str, message: &str) -> Problem {
    let path = if field.is_empty() { section.to_owned() } else { format!("{section}.{field}") };
    let problem = Problem::new(path.clone(), message);
    match document.at(section.split('.').take(1)) {
        Some(_) => problem.at(&document.nearest_place(path.split('.'))),
        None => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use netloom_record::{Existing, Outcome};

    fn document(text: &str) -> Node {
        Node::parse(&Source::new("s.toml", text)).unwrap()
    }

    /// What is wrong with a scenario; it is the same whether it is to run or only checked.
    fn problem(text: &str) -> String {
        let document = document(text);
        let scenario = Scenario::read(&document).unwrap();
        let said = |refused: Option<Problems>| refused.map_or("no problem".to_owned(), |it| it.to_string());
        let problem = said(prepare(&scenario, &document).err());
        assert_eq!(said(check(&scenario, &document).err()), problem);
        problem
    }

    #[test]
    fn a_scenario_becomes_an_outcome_that_says_what_was_run() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let document =
            document("topology = { kind = \"crossbar\", hosts = 4 }\nworkload = { size = \"10KB\" }\n");
        let writer = OutcomeWriter::prepare(&out, Existing::Refuse).unwrap();
        let ran = run(&document, 1, &writer, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(ran.summary.flows.completed, 4);
        let outcome = Outcome::read(&out).unwrap();
        assert_eq!(outcome.summary, ran.summary);
        let again = Node::parse(&Source::new("scenario.toml", outcome.scenario)).unwrap();
        assert_eq!(Scenario::read(&again), Scenario::read(&document));
    }

    /// Flows that go into their table while they come make the same outcome as flows that are in memory until the end.
    #[test]
    fn an_outcome_is_the_same_byte_by_byte_when_its_flows_were_never_all_in_memory() {
        let measures = "measure = { warm_up = \"2us\", size_bins = [\"2KB\"], packets = true, gaps = true, switch_gaps = true }";
        let scenarios = [
            format!(
                "topology = {{ kind = \"fat-tree\", k = 4 }}\nrouting = \"flowcut-nic\"\nfabric = {{ buffer = \"20KB\" }}\n{measures}\n"
            ),
            "topology = { kind = \"fat-tree\", k = 4 }\nservers = {}\n".to_owned(),
        ];
        let work = "[workload]\nkind = \"mix\"\nparts = [\n  { kind = \"poisson\", name = \"small\", size = \"1KiB\", load = 0.5, duration = \"10us\" },\n  \
                    { kind = \"poisson\", name = \"large\", size = \"9KB\", load = 0.5, duration = \"20us\" },\n]\n";
        for scenario in scenarios {
            let folder = tempfile::tempdir().unwrap();
            let document = document(&(scenario + work));
            let scenario = Scenario::read(&document).unwrap();
            let write = |name| OutcomeWriter::prepare(&folder.path().join(name), Existing::Refuse).unwrap();
            let ready = || prepare(&scenario, &document).unwrap();
            let go_on = |_| ControlFlow::Continue(());
            let ran = finish(&scenario, ready(), 2, &write("streamed"), go_on).unwrap();
            let (of_memory, records) = simulate(&scenario, ready(), 1, go_on).unwrap();
            let text = scenario.to_toml().unwrap();
            write("at-once").write(&text, &of_memory.summary, &records, &of_memory.performance).unwrap();

            assert!(records.flows.len() > 100 && ran.summary.flows.completed > 100);
            assert_eq!(
                Summary::new(&records, &summary_options(&scenario), Status::Complete).unwrap(),
                Summary { warnings: Vec::new(), ..ran.summary }
            );
            let names = |name: &str| {
                let entries = std::fs::read_dir(folder.path().join(name)).unwrap();
                let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
                names.sort();
                names
            };
            assert_eq!(names("streamed"), names("at-once"));
            for name in names("streamed").into_iter().filter(|name| *name != *"performance.json") {
                let bytes = |of: &str| std::fs::read(folder.path().join(of).join(&name)).unwrap();
                assert!(bytes("streamed") == bytes("at-once"), "{name:?}");
            }
        }
    }

    /// The failure of a matrix is the fault that says the same.
    #[test]
    fn failures_of_a_connection_matrix_cut_links() {
        let folder = tempfile::tempdir().unwrap();
        let run = |failures: &str, faults: &str| {
            let file = folder.path().join("f.cm");
            std::fs::write(&file, format!("Nodes 16\nConnections 1\n0->12 start 0 size 9000000\n{failures}"))
                .unwrap();
            let document = document(&format!(
                "topology = {{ kind = \"fat-tree\", k = 4 }}\nrouting = \"spray\"\n{faults}\n\
                 [workload]\nkind = \"htsim-matrix\"\nfile = \"{}\"\n",
                file.display()
            ));
            let scenario = Scenario::read(&document).unwrap();
            let ready = prepare(&scenario, &document).unwrap();
            let (_, records) = simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap();
            let sent = |from: &str, to: &str| {
                let channel = records.channels.iter().find(|c| (&*c.from, &*c.to) == (from, to));
                channel.map(|channel| channel.packets)
            };
            [sent("s8", "s16"), sent("s8", "s17"), sent("s9", "s18"), sent("s9", "s19")]
        };
        let whole = run("", "");
        assert!(whole.iter().all(|&sent| sent > Some(0)), "{whole:?}");
        let failed = run("Failures 1\nfailure switch_type AGG switch_id 1 link_id 0\n", "");
        assert!(failed[2].is_none_or(|sent| sent == 0) && failed[3] > Some(0), "{failed:?}");
        assert_eq!(
            failed,
            run("", "faults = [{ kind = \"cut\", channels = [{ from = \"s9\", to = \"s18\" }] }]")
        );
    }

    #[test]
    fn what_does_not_fit_is_placed_where_it_is_written() {
        let cases = [
            ("[topology]\nk = 5\n", "s.toml:2:5: topology.k: expected an even number"),
            ("[workload]\nranks = 1\n", "s.toml:2:9: workload.ranks: expected 2 to 1024"),
            (
                "[workload]\nkind = \"mix\"\n[[workload.parts]]\nkind = \"bursty\"\nload = 0.3\n[[workload.parts]]\nkind = \"bernoulli\"\nload = 1.5\n",
                "s.toml:8:8: workload.parts.1.load: expected a number above 0, at most 1, found 1.5",
            ),
            (
                "[workload]\nkind = \"mix\"\nparts = [\"bursty\"]\nclass = 1\n",
                "s.toml:4:9: workload.class: expected it in the parts of a mix",
            ),
            (
                "[routing]\nselector = \"drill\"\nplacement = \"nic\"\n",
                "s.toml:2:12: routing.selector: expected \"hash\", \"random\"",
            ),
            (
                "[servers]\nnics = 3\n",
                "s.toml:2:8: servers.nics: expected a divisor of the network's 1024 hosts",
            ),
            (
                "[servers]\nnics = 1\n",
                "s.toml:2:8: servers.nics: expected 2 to 64; leave the table `servers` out",
            ),
            (
                "servers = { wiring = \"rail-optimised\" }\n[workload]\nkind = \"worst-case\"\n",
                "s.toml:3:8: workload.kind: expected another pattern where a server's NICs are at several switches",
            ),
            (
                "servers = {}\nworkload = { ranks = 129 }\n",
                "workload.ranks: expected 2 to 128, the servers of the network",
            ),
            (
                "[topology]\nkind = \"crossbar\"\nhosts = 6\n[servers]\nnics = 2\nwiring = \"rail-optimised\"\n",
                "s.toml:6:10: servers.wiring: expected \"side-by-side\", or a network in which the 1 switches with hosts",
            ),
            (
                "servers.nics = 2\nservers.nic_selection = \"least-outstanding\"\nworkload = { kind = \"bernoulli\", load = 0.1, until = \"1us\" }\n",
                "servers.nic_selection: expected another one for frames of open loops",
            ),
            (
                "servers.nics = 2\ntransport = { reliability = \"none\", congestion = \"none\" }\n",
                "transport.reliability: expected a reliability with ACKs where servers have several NICs",
            ),
            ("transport = { mtu = \"0B\" }\n", "s.toml:1:21: transport.mtu: expected at least 1B, found 0B"),
            ("[transport]\nack_every = 0\n", "s.toml:2:13: transport.ack_every: expected at least 1"),
            ("[fabric]\nbuffer = \"100B\"\n", "s.toml:2:10: fabric.buffer: expected room for a packet"),
            (
                "[routing]\npreset = \"switch-ar\"\n",
                "routing.selector: switch-ar hears of congestion by notifications only",
            ),
            (
                "[transport]\ncongestion = \"qcn\"\n",
                "s.toml:2:14: transport.congestion: a rate limiter hears of congestion",
            ),
            (
                "[[faults]]\nkind = \"cut\"\n",
                "faults.0.links: expected one of `links`, `link_fraction`, `channels` or `switches`",
            ),
            (
                "[[faults]]\nkind = \"cut\"\nlinks = 1\nfrom = \"0ps\"\nreroute_after = \"1us\"\n",
                "faults.0.reroute_after: expected none where a cut lasts for the whole run, of which routing knows; or a `from` above 0, found 1us",
            ),
            (
                "[workload]\nsize = \"1000000GB\"\n",
                "s.toml:2:8: workload.size: expected at most 17179869180KiB, whose packets",
            ),
            (
                "[topology]\nlatency = \"17s\"\n",
                "topology: link 0 has a latency of 17s; expected at most 16s",
            ),
            (
                "[workload]\nkind = \"poisson\"\nduration = \"1us\"\nload = 1e300\n",
                "s.toml:4:8: workload.load: expected a number above 0, at most 100, found 1",
            ),
            (
                "[measure]\nsample = \"1ps\"\nuntil = \"10s\"\n",
                "s.toml:2:10: measure.sample: expected a longer interval: 61440000000000000 rows",
            ),
            ("[measure]\nsample = \"0us\"\n", "s.toml:2:10: measure.sample: expected more than 0"),
            (
                "[measure]\nwindows = [{ name = \"w\", from = \"2us\", until = \"1us\" }]\n",
                "s.toml:2:48: measure.windows.0.until: expected a time after from = 2us",
            ),
            (
                "[[measure.channels]]\nname = \"c\"\nfrom = \"s0\"\nto = \"h2000\"\n",
                "s.toml:4:6: measure.channels.0.to: expected a node, h0 to h1023 or s0 to s319, found \"h2000\"; did you mean `h1023`?",
            ),
        ];
        for (text, expected) in cases {
            let found = problem(text);
            assert!(found.contains(expected), "{expected}\n{found}");
        }
    }

    #[test]
    fn the_nearest_written_table_stands_for_a_field_nobody_wrote() {
        let text = "[topology]\nkind = \"crossbar\"\nhosts = 2\n[workload]\nkind = \"incast\"\nsenders = 5\n";
        assert!(problem(text).starts_with("s.toml:6:11: workload.senders"), "{}", problem(text));
        let text = "[topology]\nkind = \"complete\"\nswitches = 5\n[routing]\npreset = \"d-mod-k\"\n";
        assert!(
            problem(text).starts_with("s.toml:4:1: routing.selector: expected a tree"),
            "{}",
            problem(text)
        );
    }
}
