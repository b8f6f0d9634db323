//! One point of a report: all runs that carry the same labels, reduced to what a page shows.

use std::path::Path;

use netloom_record::{Estimate, Outcome, Status, Summary};
use serde::Serialize;

use crate::curve::{Curve, round};
use crate::folders::ReportError;
use crate::links::{LinkSums, LinkUse, Map, map};
use crate::series::Series;
use crate::sizes::BySize;

/// What the runs of a point did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Point {
    /// Label by axis; empty where the point is not varied along it.
    pub(crate) labels: Vec<String>,
    /// Folders of its runs, one per seed.
    pub(crate) folders: Vec<String>,
    /// Runs that were stopped early.
    interrupted: usize,
    /// What is probably a mistake; of several runs each only once.
    warnings: Vec<String>,
    /// Flows of all runs together, in microseconds.
    fct_us: Option<Curve>,
    slowdown: Option<Curve>,
    /// One number per [`METRICS`], with its uncertainty.
    metrics: Vec<Option<Estimate>>,
    tiers: Vec<TierUse>,
    pub(crate) link_use: LinkUse,
    /// Of the first run.
    series: Option<Series>,
    /// What the first run was.
    pub(crate) scenario: String,
}

/// What a point's runs leave for the page as a whole.
#[derive(Debug)]
pub(crate) struct Reduced {
    pub(crate) point: Point,
    pub(crate) by_size: BySize,
    pub(crate) map: Option<Map>,
}

/// Link use of a tier, mean over the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct TierUse {
    tier: String,
    mean_utilisation: f64,
    max_utilisation: f64,
    /// The same of the time in which something was active.
    mean_active_utilisation: f64,
    max_active_utilisation: f64,
    mean_queue_kb: f64,
    max_queue_kb: f64,
    paused_share: f64,
}

/// Where a metric stands on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// In the table of results.
    Result,
    /// Among what happened on the way.
    Event,
}

/// A number of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Metric {
    heading: &'static str,
    unit: &'static str,
    place: Place,
    #[serde(skip)]
    of: fn(&Summary) -> Option<f64>,
}

const fn metric(
    heading: &'static str,
    unit: &'static str,
    place: Place,
    of: fn(&Summary) -> Option<f64>,
) -> Metric {
    Metric { heading, unit, place, of }
}

const MICRO: f64 = 1e-6;
const GIGA: f64 = 1e-9;

/// The numbers of every run that a page shows; a column without any number, and an event that never occurred, is left out there.
pub(crate) const METRICS: &[Metric] = &[
    metric("FCT mean", "us", Place::Result, |s| Some(s.fct_ps.as_ref()?.mean * MICRO)),
    metric("FCT p50", "us", Place::Result, |s| Some(s.fct_ps.as_ref()?.p50 * MICRO)),
    metric("FCT p99", "us", Place::Result, |s| Some(s.fct_ps.as_ref()?.p99 * MICRO)),
    metric("FCT max", "us", Place::Result, |s| Some(s.fct_ps.as_ref()?.max * MICRO)),
    metric("slowdown mean", "", Place::Result, |s| Some(s.slowdown.as_ref()?.mean)),
    metric("slowdown p99", "", Place::Result, |s| Some(s.slowdown.as_ref()?.p99)),
    metric("throughput", "Gbit/s", Place::Result, |s| Some(s.throughput_bps? * GIGA)),
    metric("makespan", "us", Place::Result, |s| Some(s.totals.makespan?.0 as f64 * MICRO)),
    metric("completed", "", Place::Result, |s| Some(s.flows.completed as f64)),
    metric("unfinished", "", Place::Event, |s| Some(s.flows.unfinished as f64)),
    metric("out of order", "% of packets", Place::Event, |s| Some(s.packets.ooo_share * 100.0)),
    metric("largest reordering distance", "packets", Place::Event, |s| Some(f64::from(s.packets.max_ood))),
    metric("largest resequencing buffer", "packets", Place::Event, |s| {
        Some(f64::from(s.packets.max_resequencing))
    }),
    metric("reroutes", "by senders", Place::Event, |s| Some(s.packets.path_changes as f64)),
    metric("off the default path", "% of decisions", Place::Event, deviations),
    metric("drains", "", Place::Event, |s| Some(s.draining.drains as f64)),
    metric("time drained", "% of FCT", Place::Event, |s| Some(s.draining.time_share? * 100.0)),
    metric("retransmissions", "packets", Place::Event, |s| Some(s.packets.retransmissions as f64)),
    metric("timeouts", "", Place::Event, |s| Some(s.packets.timeouts as f64)),
    metric("drops", "packets", Place::Event, |s| {
        Some(s.tiers.iter().map(|tier| tier.drops).sum::<u64>() as f64)
    }),
    metric("lost to faults", "packets", Place::Event, |s| {
        Some((s.totals.data.lost + s.totals.control.lost) as f64)
    }),
    metric("trimmed", "packets", Place::Event, |s| {
        Some(s.tiers.iter().map(|tier| tier.trims).sum::<u64>() as f64)
    }),
    metric("ECN marks", "packets", Place::Event, |s| Some(s.packets.ecn_marks as f64)),
    metric("congestion notifications", "", Place::Event, |s| Some((s.packets.cnms + s.packets.cnps) as f64)),
    metric("pauses", "of channels", Place::Event, |s| {
        Some(s.tiers.iter().map(|tier| tier.pauses).sum::<u64>() as f64)
    }),
];

fn deviations(summary: &Summary) -> Option<f64> {
    let decisions = summary.totals.decisions.values();
    let (taken, non_default) =
        decisions.fold((0, 0), |sum, count| (sum.0 + count.taken, sum.1 + count.non_default));
    (taken > 0).then(|| 100.0 * non_default as f64 / taken as f64)
}

/// Reads the runs of a point one after the other and reduces them.
pub(crate) fn reduce(labels: &[String], folders: &[&Path]) -> Result<Reduced, ReportError> {
    let mut summaries = Vec::new();
    let mut flows: Vec<(u64, f64)> = Vec::new();
    let mut fct_us: Vec<f64> = Vec::new();
    let mut links = LinkSums::default();
    let mut series = None;
    let mut scenario = String::new();
    for (i, folder) in folders.iter().enumerate() {
        let outcome = Outcome::read(folder)?;
        let warm_up = outcome.summary.flows.warm_up;
        for flow in outcome.flows()? {
            // As the summary counts: streams have no completion, and flows of the warm-up are left out.
            let Some(fct) = flow.fct.filter(|_| !flow.stream && flow.start >= warm_up) else { continue };
            fct_us.push(fct.0 as f64 * MICRO);
            flows.push((flow.bytes, fct.0 as f64 / flow.ideal_fct.0.max(1) as f64));
        }
        links.add(outcome.channels()?, &outcome.summary.totals);
        if i == 0 {
            series = Series::of(&outcome.samples()?, &outcome.flow_samples()?, links.channels());
            scenario.clone_from(&outcome.scenario);
        }
        summaries.push(outcome.summary);
    }
    let by_size = BySize::of(&flows);
    let mut slowdowns: Vec<f64> = flows.into_iter().map(|(_, slowdown)| slowdown).collect();
    slowdowns.sort_unstable_by(f64::total_cmp);
    fct_us.sort_unstable_by(f64::total_cmp);
    let point = Point {
        labels: labels.to_vec(),
        folders: folders.iter().map(|folder| folder.display().to_string()).collect(),
        interrupted: summaries.iter().filter(|summary| summary.status == Status::Interrupted).count(),
        warnings: warnings(&summaries),
        fct_us: Curve::of(&fct_us),
        slowdown: Curve::of(&slowdowns),
        metrics: METRICS
            .iter()
            .map(|metric| estimate(&summaries.iter().filter_map(metric.of).collect::<Vec<_>>()))
            .collect(),
        tiers: tiers(&summaries),
        link_use: links.link_use(),
        series,
        scenario,
    };
    let map = map(&point.scenario, links.channels());
    Ok(Reduced { point, by_size, map })
}

fn warnings(summaries: &[Summary]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for warning in summaries.iter().flat_map(|summary| &summary.warnings) {
        if !all.contains(warning) {
            all.push(warning.clone());
        }
    }
    all
}

fn tiers(summaries: &[Summary]) -> Vec<TierUse> {
    let Some(first) = summaries.first() else { return Vec::new() };
    let runs = summaries.len() as f64;
    let tier = |number: usize| {
        let of = |value: &dyn Fn(&netloom_record::TierSummary) -> f64| {
            round(
                summaries.iter().filter_map(|summary| Some(value(summary.tiers.get(number)?))).sum::<f64>()
                    / runs,
            )
        };
        TierUse {
            tier: first.tiers[number].tier.clone(),
            mean_utilisation: of(&|tier| tier.mean_utilisation),
            max_utilisation: of(&|tier| tier.max_utilisation),
            mean_active_utilisation: of(&|tier| tier.mean_active_utilisation),
            max_active_utilisation: of(&|tier| tier.max_active_utilisation),
            mean_queue_kb: of(&|tier| tier.mean_queue_bytes * 1e-3),
            max_queue_kb: of(&|tier| tier.max_queue_bytes as f64 * 1e-3),
            paused_share: of(&|tier| tier.paused_share),
        }
    };
    (0..first.tiers.len()).map(tier).collect()
}

/// Mean and 95% confidence interval, as precisely as a page needs them.
fn estimate(values: &[f64]) -> Option<Estimate> {
    let Estimate { mean, plus_minus } = Estimate::of(values)?;
    Some(Estimate { mean: round(mean), plus_minus: plus_minus.map(round) })
}
