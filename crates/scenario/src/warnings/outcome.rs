//! What is suspicious about the numbers of a run that has ended.

use netloom_record::{Records, Summary};
use netloom_routing::Placement;
use netloom_transport::congestion::Signal;
use netloom_units::Time;

use crate::detail::Detail;
use crate::scenario::Scenario;

pub(super) fn late_warm_up(summary: &Summary) -> Option<String> {
    let (flows, end) = (&summary.flows, summary.totals.simulated);
    let warm_up = flows.warm_up;
    if warm_up > Time::ZERO && warm_up >= end {
        return Some(format!(
            "measure.warm_up: {} is beyond the end of the run at {}: no flow counts",
            warm_up.rounded(),
            end.rounded()
        ));
    }
    let excluded = flows.excluded_by_warm_up;
    (excluded > 0 && flows.completed + flows.unfinished + flows.streams == 0).then(|| {
        format!(
            "measure.warm_up: all flows ({excluded}) started before {}: none counts in FCT or slowdown",
            warm_up.rounded()
        )
    })
}

/// A region that is nothing or everything, which random arrivals may make it.
pub(super) fn one_sided(summary: &Summary) -> Option<String> {
    let side = match summary.background_flows? {
        0 => "outside of the region",
        _ if summary.totals.data.sent == 0 => "inside the region, and no packet was sent",
        _ => return None,
    };
    Some(format!("detail.packets: no flow began {side}"))
}

/// Nothing passed where a trace was asked for.
pub(super) fn empty_trace(scenario: &Scenario, records: &Records) -> Option<String> {
    let of_whom = match scenario.detail {
        Detail::Region(_) => "none of these flows sent anything inside the region, and no packet",
        _ => "none of these flows sent anything, and nothing",
    };
    (scenario.measure.trace.is_some() && records.trace.is_empty())
        .then(|| format!("measure.trace: no packet was traced: {of_whom} crossed these channels"))
}

/// There are no ranks whose activities or operations could be kept.
pub(super) fn no_activity(scenario: &Scenario, records: &Records) -> Option<String> {
    let (measure, jobs) = (&scenario.measure, &records.jobs);
    let is_empty = |field| match field {
        "activities" => measure.activities && jobs.activities.is_empty(),
        _ => measure.operations && jobs.operations.is_empty(),
    };
    let fields: Vec<&str> =
        ["activities", "operations"].into_iter().filter(|&field| is_empty(field)).collect();
    (!fields.is_empty()).then(|| {
        format!(
            "measure.{}: changes nothing, as no rank of a program did anything",
            fields.join(", measure.")
        )
    })
}

/// The flows that did not finish are not a random sample: they are the slow and the large ones.
pub(super) fn unfinished(summary: &Summary) -> Option<String> {
    let flows = &summary.flows;
    (flows.unfinished > 0).then(|| {
        format!(
            "measure: {} of {} flows did not finish and are in no FCT or slowdown; those are the slowest, so mean and percentiles are too low",
            flows.unfinished,
            flows.unfinished + flows.completed
        )
    })
}

/// A scheme that never had anything to choose. One switch has no paths to choose from, and a function of the header decides nothing.
pub(super) fn no_decision(scenario: &Scenario, switches: u32, summary: &Summary) -> Option<String> {
    let (decisions, routing) = (&summary.totals.decisions, &scenario.routing);
    // What a NIC draws for a whole flow is the flow's first path, and a decision only where paths have numbers.
    let is_idle = !routing.selector.is_static()
        && !routing.draws_first_paths_only()
        && switches > 1
        && summary.totals.data.sent > 0
        && decisions.values().all(|count| count.taken == 0);
    is_idle.then(|| {
        let granularity = &routing.granularity;
        if routing.placement == Placement::Nic && !granularity.is_per_flow() && !granularity.is_per_packet() {
            return format!("routing: `{}` never moved a flow", routing.granularity_name());
        }
        let selectors: Vec<&str> = decisions.keys().map(String::as_str).collect();
        let reason = match scenario.routing.placement {
            Placement::Nic => "every flow stayed on its first path",
            Placement::Ingress | Placement::Switch => "no packet had more than one next hop to choose from",
        };
        format!("routing: {} had no effect: {reason}", selectors.join(", "))
    })
}

/// A control loop that could have acted and never did: what is compared is then something else.
pub(super) fn no_reaction(scenario: &Scenario, summary: &Summary) -> Option<String> {
    if summary.totals.data.sent == 0 {
        return None;
    }
    let packets = &summary.packets;
    let facts = scenario.transport.congestion.facts();
    let missing = match facts.acts_on {
        // That no switch marks is said before the run.
        Some(Signal::MarksOrLosses) => {
            let may_mark = scenario.fabric.options.ecn.is_some();
            (may_mark && packets.ecn_marks == 0 && packets.retransmissions == 0)
                .then_some("no packet was marked or lost")
        }
        Some(Signal::Cnms) => (packets.cnms == 0).then_some("no congestion notification arrived"),
        Some(Signal::Cnps) => (packets.cnps == 0).then_some("no packet was marked"),
        None => None,
    };
    if let Some(missing) = missing {
        return Some(format!("transport.congestion: {} had no effect: {missing}", facts.title));
    }
    if summary.totals.conweave.is_some_and(|counts| counts.late_replies == 0) {
        return Some("routing.granularity: conweave had no effect: every reply came in time".to_owned());
    }
    if scenario.routing.granularity.flowcut().is_some() && summary.draining.drains == 0 {
        return Some("routing.granularity: flowcut drained no flow: none was congested".to_owned());
    }
    None
}
