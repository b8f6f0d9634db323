//! What can be run, but is probably a mistake: before the run from the scenario and its network, after it from what happened.
//!
//! A warning is one sentence that begins with the field it is about. It is no error: there are good reasons to run any of these.

mod outcome;
mod overload;
mod round_trip;
mod signals;
#[cfg(test)]
mod tests;
mod unread;
mod windows;

use netloom_record::{Records, SteadySkipped, Summary};
use netloom_topology::Network;
use netloom_units::Time;
use netloom_units::kind::Kind;
use netloom_workload::{Overlap, Pattern, Plan};

use self::round_trip::Farthest;
use crate::detail::Detail;
use crate::scenario::Scenario;

/// What is suspicious before anything has run.
pub(crate) fn before(scenario: &Scenario, network: &Network, plan: &Plan) -> Vec<String> {
    let is_of_packets = scenario.detail != Detail::Flow;
    let mut found = if is_of_packets { of_packets(scenario, network) } else { Vec::new() };
    found.extend(overload::warning(scenario, network));
    found.extend(no_messages(scenario, plan));
    found.extend(plan.overlaps.iter().map(shared_hosts));
    found.extend(plan.notes.iter().map(|note| format!("workload: {note}")));
    if is_of_packets {
        found.extend(unread::unread(scenario, network));
        found.extend(unread::one_entropy_value(scenario, network));
        found.extend(unread::high_ceiling(scenario, network));
    }
    found
}

/// What is suspicious about queues, signals and windows.
fn of_packets(scenario: &Scenario, network: &Network) -> Vec<String> {
    let farthest = Farthest::of(scenario, network);
    let mut found = Vec::new();
    found.extend(signals::expected_marks(scenario));
    found.extend(signals::conweave_without_ecn(scenario));
    found.extend(signals::trimmed_without_trimming(scenario));
    found.extend(signals::scattered_go_back_n(scenario, network));
    found.extend(signals::impossible_marks(scenario));
    found.extend(signals::trimmed_go_back_n(scenario));
    found.extend(round_trip::early_timeouts(scenario, network, &farthest));
    found.extend(windows::below_the_product(scenario, &farthest));
    found.extend(windows::no_room_for_late_acks(scenario, &farthest));
    found.extend(windows::target_below_idle(scenario, &farthest));
    found.extend(windows::plb_below_idle(scenario, &farthest));
    found.extend(windows::faster_than_one_path(scenario, network));
    found.extend(round_trip::small_pause_buffers(scenario, &farthest));
    found
}

/// What is suspicious about what happened.
pub(crate) fn after(scenario: &Scenario, switches: u32, summary: &Summary, records: &Records) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(outcome::late_warm_up(summary));
    found.extend(outcome::empty_trace(scenario, records));
    found.extend(outcome::no_activity(scenario, records));
    found.extend(outcome::unfinished(summary));
    found.extend(outcome::one_sided(summary));
    if scenario.detail != Detail::Flow {
        found.extend(outcome::no_decision(scenario, switches, summary));
        found.extend(outcome::no_reaction(scenario, summary));
    }
    found
}

/// What was skipped of a run because it was steady makes it an approximation.
pub(crate) fn of_steady(steady: &SteadySkipped, simulated: Time) -> Option<String> {
    let percent = |error: Option<f64>| format!("{:.2} %", 100.0 * error.unwrap_or_default());
    let mut text = match steady.jumps {
        0 => "fast: nothing was skipped because it was steady".to_owned(),
        _ => format!(
            "fast: completion times are approximate, as {:.0} % of the time was skipped because it was steady; in audits the progress of flows was wrong by {} on average, by {} at most",
            100.0 * steady.time.0 as f64 / simulated.0.max(1) as f64,
            match steady.error_plus_minus {
                Some(half) =>
                    format!("{:.2} ± {}", 100.0 * steady.error_mean.unwrap_or_default(), percent(Some(half))),
                None => percent(steady.error_mean),
            },
            percent(steady.error_max),
        ),
    };
    if let Some(why) = &steady.stopped {
        text += &format!("; no more was skipped after that, as {why}");
    }
    (steady.jumps > 0 || steady.stopped.is_some()).then_some(text)
}

/// A list that holds nothing, say.
fn no_messages(scenario: &Scenario, plan: &Plan) -> Option<String> {
    let is_meant = matches!(scenario.workload.pattern, Pattern::Idle(_));
    (plan.total_messages == Some(0) && !is_meant).then(|| {
        format!("workload: nothing is sent, as \"{}\" has no message", scenario.workload.pattern.name())
    })
}

/// Parts of a mix are not placed beside each other.
fn shared_hosts(overlap: &Overlap) -> String {
    let fields = overlap.parts.each_ref().map(|part| format!("workload.{part}"));
    format!(
        "{}: their ranks are on the same {}, as a placement is the same for all parts of a mix",
        fields.join(", "),
        overlap.shared
    )
}
