//! A training job on a network without packets: its messages as flows, each carried whole.

use std::ops::ControlFlow;

use netloom_astra::analytical::{Message, Outcome, idle_delay, run as run_job};
use netloom_record::{FlowRecord, Sink, Totals};
use netloom_sim::{Measure, RunProgress};
use netloom_units::Time;
use netloom_workload::{Analytical, RankEnds};

use super::RunError;
use super::problems::located;
use crate::document::Node;
use crate::scenario::Scenario;
use crate::source::Problems;

/// Refuses what an analytical network would silently do without.
pub(super) fn check(scenario: &Scenario, document: &Node) -> Result<(), Problems> {
    let refuse = |section: &str, expected: &str| {
        let message = format!(
            "{expected} where workload.network is analytical: it carries whole messages by its own rules"
        );
        Err(located(document, section, "", &message).into())
    };
    if !scenario.faults.is_empty() {
        return refuse("faults", "expected none");
    }
    if scenario.servers.is_some() {
        return refuse("servers", "expected none");
    }
    if !scenario.jobs.is_empty() {
        return refuse("jobs", "expected none");
    }
    let Measure { warm_up, until, size_bins, .. } = scenario.measure.clone();
    if scenario.measure != (Measure { warm_up, until, size_bins, ..Measure::default() }) {
        return refuse("measure", "expected `warm_up`, `until` and `size_bins` only");
    }
    Ok(())
}

/// Warns of sections that an analytical network does not use.
pub(super) fn warning(document: &Node) -> Option<String> {
    let sections = ["topology", "fabric", "routing", "transport"];
    let written: Vec<&str> =
        sections.into_iter().filter(|section| document.at([*section]).is_some()).collect();
    (!written.is_empty()).then(|| {
        let sections = written.join(", ");
        format!(
            "workload.network: {sections} without effect, as an analytical network carries whole messages by its own rules"
        )
    })
}

/// What a run leaves beside its flows.
pub(super) struct Ran {
    pub(super) totals: Totals,
    pub(super) is_interrupted: bool,
}

const PS_PER_NS: u64 = 1000;

fn time(ns: u64) -> Time {
    Time(ns.saturating_mul(PS_PER_NS))
}

/// Runs the job and hands on its messages.
pub(super) fn run(
    analytical: &Analytical,
    ends: &RankEnds,
    until: Option<Time>,
    observe: &mut dyn FnMut(RunProgress) -> ControlFlow<()>,
    sink: &mut dyn Sink,
) -> Result<Ran, RunError> {
    let Analytical { job, network, has_congestion } = analytical;
    let until_ns = until.map_or(u64::MAX, |until| until.0.div_ceil(PS_PER_NS));
    let mut is_interrupted = false;
    let outcome = run_job(job, network, *has_congestion, until_ns, |ns, flows_done| {
        let progress = RunProgress { time: time(ns), flows_done, packet_hops: 0 };
        is_interrupted = observe(progress).is_break();
        !is_interrupted
    });
    let Outcome { ends: of_ranks, unfinished, mut messages, until: last } = outcome;
    let is_cut = is_interrupted || until.is_some();
    if let Some(what) = unfinished.into_iter().next().filter(|_| !is_cut) {
        return Err(netloom_sim::RunError::Unfinished(what).into());
    }
    let is_done = of_ranks.iter().all(Option::is_some);
    let finished = of_ranks.iter().flatten().map(|end| end.finished).max();
    ends.set_all(of_ranks);
    let first = messages.iter().map(|message| message.start).min();
    messages.sort_unstable_by_key(|message| (message.src, message.number));
    for message in &messages {
        sink.flow(flow(message, idle_delay(network, message, *has_congestion)));
    }
    let last = time(last);
    let end = if is_done { last } else { until.unwrap_or(last) };
    let totals = Totals {
        simulated: end,
        makespan: finished.filter(|_| is_done).map(time),
        active_from: first.map(time),
        active_until: last,
        ..Totals::default()
    };
    Ok(Ran { totals, is_interrupted })
}

/// A message as a flow without packets.
fn flow(message: &Message, idle: u64) -> FlowRecord {
    let &Message { src, dst, number, bytes, start, end } = message;
    let fct = end.map(|end| time(end - start));
    let delivered = if fct.is_some() { bytes } else { 0 };
    FlowRecord {
        src,
        dst,
        flow: number,
        bytes,
        delivered,
        delivered_after_warm_up: delivered,
        start: time(start),
        fct,
        sender_fct: fct,
        ideal_fct: time(idle),
        ..FlowRecord::default()
    }
}
