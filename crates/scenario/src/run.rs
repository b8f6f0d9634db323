//! The program as a sentence: read the scenario, check it, build the network, the work and the routes on it,
//! make the nodes, run the windows, sum up, write the outcome.

mod analytical;
mod flow;
mod prepare;
mod problems;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use netloom_record::{
    ChannelRecord, FlowRecord, OutcomeError, OutcomeWriter, Performance, Records, SeriesError, Sink, Status,
    Summary, SummaryOptions, Tally,
};
use netloom_sim::{Finished, RunProgress};
use netloom_units::memory::{self, TooLarge};
use netloom_units::narrow;

pub use self::prepare::{
    Checked, Ready, Run, build_network, build_plane, check, left_out, prepare, prepare_packets,
};
use crate::document::Node;
use crate::scenario::Scenario;
use crate::source::Problems;
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

/// Runs a scenario from its text to its outcome. `observe` is called with the run's progress and may stop it; what was
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
    let mut draft = writer.draft(ready.run.groups());
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
    let Ready { run, warnings, switches, ends, analytical, .. } = ready;
    let tally = Tally::new(&summary_options(scenario), run.named_channels());
    let mut counted = Counted { tally, sink };
    let started = Instant::now();
    let mut memory = MemoryMonitor::new()?;
    let mut watched = |progress| if memory.holds() { observe(progress) } else { ControlFlow::Break(()) };
    let of_job = match (&analytical, &ends) {
        (Some(analytical), Some(ends)) => {
            Some(analytical::run(analytical, ends, scenario.measure.until, &mut watched, &mut counted)?)
        }
        _ => None,
    };
    let flow_level = matches!(run, Run::Flow(_));
    let (mut finished, threads) = match run {
        Run::Packets(simulation) => (simulation.run_streamed(threads, &mut watched, &mut counted)?, threads),
        Run::Flow(flows) => (flows.run(&mut watched, &mut counted)?, 1),
        Run::Region(region) => (region.run(threads, &mut watched, &mut counted)?, threads),
    };
    if let Some(of_job) = of_job {
        finished.records.totals = of_job.totals;
        finished.interrupted |= of_job.is_interrupted;
    }
    memory.result?;
    let wall_s = started.elapsed().as_secs_f64();

    let status = if finished.interrupted { Status::Interrupted } else { Status::Complete };
    let Finished { records, skipped, steady, background_flows, division, .. } = finished;
    let summary =
        Summary { flow_level, background_flows, steady, ..Summary::of(counted.tally, &records, status)? };
    let mut summary = warned(scenario, warnings, switches, summary, &records);
    let of_steady = |steady| warnings::of_steady(steady, records.totals.simulated);
    summary.warnings.extend(summary.steady.as_ref().and_then(of_steady));
    let hops = records.totals.packet_hops;
    let performance = Performance {
        skipped,
        division,
        ..Performance::new(env!("CARGO_PKG_VERSION"), narrow::<u32>(threads), wall_s, hops)
    };
    Ok((Ran { summary, performance }, records))
}

/// Checks from time to time that the process keeps to its limit of memory: what a run needs is not known before it.
struct MemoryMonitor {
    last: Instant,
    result: Result<(), TooLarge>,
}

impl MemoryMonitor {
    /// Short enough that little is allocated between two checks, and long enough that they cost nothing.
    const PERIOD: Duration = Duration::from_millis(10);

    fn new() -> Result<Self, TooLarge> {
        memory::check_use()?;
        Ok(MemoryMonitor { last: Instant::now(), result: Ok(()) })
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
    let after = warnings::after(scenario, switches, &summary, records);
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
