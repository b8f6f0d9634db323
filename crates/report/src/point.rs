//! One point of a report: all runs that carry the same labels, reduced to what a page shows.

use std::path::Path;

use netloom_record::{Estimate, GroupSummary, JobSummary, Outcome, Status, Summary};
use netloom_units::Time;
use serde::Serialize;

use crate::critical::{CriticalPart, critical_parts};
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
    /// Whether there were no packets, but flows with rates.
    flow_level: bool,
    /// Whether only a region was run in packets.
    has_background: bool,
    /// What is probably a mistake; of several runs each only once.
    warnings: Vec<String>,
    /// Flows of all runs together, in microseconds.
    pub(crate) fct_us: Option<Curve>,
    pub(crate) slowdown: Option<Curve>,
    /// One number per [`METRICS`], with its uncertainty.
    pub(crate) metrics: Vec<Option<Estimate>>,
    /// Kinds of traffic, if there are several.
    groups: Vec<Group>,
    /// Jobs.
    jobs: Vec<Group>,
    /// Of the first run.
    critical: Vec<CriticalPart>,
    pub(crate) tiers: Vec<TierUse>,
    pub(crate) link_use: LinkUse,
    /// Of the first run.
    pub(crate) series: Option<Series>,
    /// What the first run was; the page has its lines elsewhere.
    #[serde(skip)]
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
pub(crate) struct TierUse {
    pub(crate) tier: String,
    pub(crate) mean_utilisation: f64,
    pub(crate) max_utilisation: f64,
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
pub(crate) enum Place {
    /// In the table of results.
    Result,
    /// Among what happened to packets: losses, reordering, pauses.
    Event,
}

/// A number of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Metric {
    /// What a figure of it is called: `fct-p99`.
    pub(crate) name: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) place: Place,
    /// Whether more of it is better, so that a table of many points can shade the worst.
    more_is_better: bool,
    #[serde(skip)]
    of: fn(&Summary, Option<Job>) -> Option<f64>,
}

const fn result(
    name: &'static str,
    heading: &'static str,
    unit: &'static str,
    of: fn(&Summary, Option<Job>) -> Option<f64>,
) -> Metric {
    Metric { name, heading, unit, place: Place::Result, more_is_better: false, of }
}

const fn event(
    name: &'static str,
    heading: &'static str,
    unit: &'static str,
    of: fn(&Summary, Option<Job>) -> Option<f64>,
) -> Metric {
    Metric { place: Place::Event, ..result(name, heading, unit, of) }
}

const fn more_is_better(metric: Metric) -> Metric {
    Metric { more_is_better: true, ..metric }
}

const MICRO: f64 = 1e-6;
const GIGA: f64 = 1e-9;

/// The numbers of every run that a page shows; a column without any number, and an event that never occurred, is left out there.
pub(crate) const METRICS: &[Metric] = &[
    result("job-time", "job time", "us", |s, job| {
        longest(s, |of| of.job_time)
            .unwrap_or_else(|| job.and_then(|_| Some(s.totals.makespan?.0 as f64 * MICRO)))
    }),
    result("step-time", "time per step", "us", |s, job| {
        longest(s, |of| of.step_time.filter(|_| of.repetitions > 1)).unwrap_or_else(|| {
            let steps = job?.steps.filter(|&steps| steps > 1)?;
            Some(s.totals.makespan?.0 as f64 * MICRO / f64::from(steps))
        })
    }),
    result("exposed", "exposed communication", "us", |s, _| longest(s, |of| Some(of.exposed)).flatten()),
    more_is_better(result("busbw", "lowest bus bandwidth", "Gbit/s", |s, _| {
        s.jobs.values().filter_map(|job| job.busbw_bps).min_by(f64::total_cmp).map(|bps| bps * GIGA)
    })),
    result("fct-p99", "FCT p99", "us", |s, _| Some(s.fct_ps.as_ref()?.p99 * MICRO)),
    result("fct-mean", "FCT mean", "us", |s, _| Some(s.fct_ps.as_ref()?.mean * MICRO)),
    result("fct-p50", "FCT p50", "us", |s, _| Some(s.fct_ps.as_ref()?.p50 * MICRO)),
    result("fct-max", "FCT max", "us", |s, _| Some(s.fct_ps.as_ref()?.max * MICRO)),
    result("slowdown-mean", "slowdown mean", "", |s, _| Some(s.slowdown.as_ref()?.mean)),
    result("slowdown-p99", "slowdown p99", "", |s, _| Some(s.slowdown.as_ref()?.p99)),
    more_is_better(result("throughput", "throughput", "Gbit/s", |s, _| Some(s.throughput_bps? * GIGA))),
    result("makespan", "makespan", "us", |s, job| match job {
        Some(_) => None,
        None if !s.jobs.is_empty() => None,
        None => Some(s.totals.makespan?.0 as f64 * MICRO),
    }),
    more_is_better(result("completed", "completed", "flows", |s, _| Some(s.flows.completed as f64))),
    event("unfinished", "unfinished", "flows", |s, _| Some(s.flows.unfinished as f64)),
    event("out-of-order", "out of order", "% of packets", |s, _| Some(s.packets.ooo_share * 100.0)),
    event("reordering-distance", "largest reordering distance", "packets", |s, _| {
        Some(f64::from(s.packets.max_ood))
    }),
    event("resequencing", "largest resequencing buffer", "packets", |s, _| {
        Some(f64::from(s.packets.max_resequencing))
    }),
    event("path-changes", "path changes by senders", "", |s, _| Some(s.packets.path_changes as f64)),
    event("non-default", "decisions other than the ECMP hash", "%", |s, _| non_default(s)),
    event("drains", "drains", "", |s, _| Some(s.draining.drains as f64)),
    event("time-drained", "time spent draining", "% of FCT", |s, _| Some(s.draining.time_share? * 100.0)),
    event("retransmissions", "retransmissions", "packets", |s, _| Some(s.packets.retransmissions as f64)),
    event("timeouts", "timeouts", "", |s, _| Some(s.packets.timeouts as f64)),
    event(
        "drops",
        "drops",
        "packets",
        |s, _| Some(s.tiers.iter().map(|tier| tier.drops).sum::<u64>() as f64),
    ),
    event("lost", "lost to faults", "packets", |s, _| {
        Some((s.totals.data.lost + s.totals.control.lost) as f64)
    }),
    event("trimmed", "trimmed", "packets", |s, _| {
        Some(s.tiers.iter().map(|tier| tier.trims).sum::<u64>() as f64)
    }),
    event("ecn-marks", "ECN marks", "packets", |s, _| Some(s.packets.ecn_marks as f64)),
    event("notifications", "congestion notifications", "", |s, _| {
        Some((s.packets.cnms + s.packets.cnps) as f64)
    }),
    event("pauses", "pauses of channels", "", |s, _| {
        Some(s.tiers.iter().map(|tier| tier.pauses).sum::<u64>() as f64)
    }),
    event("steady-skipped", "skipped, as it was steady", "% of the time", |s, _| {
        Some(100.0 * s.steady.as_ref()?.time.0 as f64 / s.totals.simulated.0.max(1) as f64)
    }),
    event("steady-error-mean", "error of that, mean of flows", "%", |s, _| {
        Some(100.0 * s.steady.as_ref()?.error_mean?)
    }),
    event("steady-error-plus-minus", "± (95% interval of that mean, over audits)", "%", |s, _| {
        Some(100.0 * s.steady.as_ref()?.error_plus_minus?)
    }),
    event("steady-error-p99", "error of that, p99", "%", |s, _| Some(100.0 * s.steady.as_ref()?.error_p99?)),
    event("steady-error-max", "error of that, largest", "%", |s, _| {
        Some(100.0 * s.steady.as_ref()?.error_max?)
    }),
];

/// The longest of a time of all jobs, in microseconds: `None` inside where some job has none, and outside where there are no jobs, as in outcomes of
/// versions that did not record them.
fn longest(summary: &Summary, of: fn(&JobSummary) -> Option<Time>) -> Option<Option<f64>> {
    if summary.jobs.is_empty() {
        return None;
    }
    let times = summary.jobs.values().map(|job| Some(of(job)?.0)).collect::<Option<Vec<u64>>>();
    Some(times.and_then(|times| times.into_iter().max()).map(|time| time as f64 * MICRO))
}

fn non_default(summary: &Summary) -> Option<f64> {
    let decisions = summary.totals.decisions.values();
    let (taken, non_default) =
        decisions.fold((0, 0), |sum, count| (sum.0 + count.taken, sum.1 + count.non_default));
    (taken > 0).then(|| 100.0 * non_default as f64 / taken as f64)
}

/// A workload that is a job: messages depend on each other, so that what counts is when all of them are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    /// How often it repeats the same, where the scenario says so.
    steps: Option<u32>,
}

impl Job {
    /// The job that a scenario runs; `None` where its flows start on their own.
    fn of(scenario: &str) -> Option<Self> {
        let table: toml::Table = scenario.parse().ok()?;
        let workload = table.get("workload")?.as_table()?;
        let steps =
            |field: &str| workload.get(field)?.as_integer().and_then(|steps| u32::try_from(steps).ok());
        match workload.get("kind")?.as_str()? {
            "collective" => Some(Job { steps: steps("repeat") }),
            "skeleton" => Some(Job { steps: steps("iterations") }),
            "stencil" if workload.get("barrier")?.as_bool()? => Some(Job { steps: steps("repeat") }),
            "goal" | "chakra" | "astra-sim" | "simai" => Some(Job { steps: None }),
            _ => None,
        }
    }
}

/// Flows of one kind of traffic, where a workload has several.
#[derive(Clone, Debug, Serialize)]
struct Group {
    name: String,
    /// One number per [`GROUP_METRICS`], or per [`JOB_METRICS`].
    metrics: Vec<Option<Estimate>>,
}

/// A number of a job.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct JobMetric {
    heading: &'static str,
    unit: &'static str,
    #[serde(skip)]
    of: fn(&JobSummary) -> Option<f64>,
}

const fn of_job(heading: &'static str, unit: &'static str, of: fn(&JobSummary) -> Option<f64>) -> JobMetric {
    JobMetric { heading, unit, of }
}

/// What a page shows of every job.
pub(crate) const JOB_METRICS: &[JobMetric] = &[
    of_job("job time", "us", |job| Some(job.job_time?.0 as f64 * MICRO)),
    of_job("time per step", "us", |job| {
        Some(job.step_time.filter(|_| job.repetitions > 1)?.0 as f64 * MICRO)
    }),
    of_job("computation", "us", |job| Some(job.computation.0 as f64 * MICRO)),
    of_job("exposed communication", "us", |job| Some(job.exposed.0 as f64 * MICRO)),
    of_job("waiting for other ranks", "us", |job| Some(job.waiting.0 as f64 * MICRO)),
    of_job("bus bandwidth", "Gbit/s", |job| Some(job.busbw_bps? * GIGA)),
    of_job("algorithm bandwidth", "Gbit/s", |job| Some(job.algbw_bps? * GIGA)),
];

/// The jobs, in the order of the first run.
fn jobs(summaries: &[Summary]) -> Vec<Group> {
    let Some(first) = summaries.first() else { return Vec::new() };
    let job = |name: &String| {
        let of = |metric: &JobMetric| {
            let values = summaries.iter().filter_map(|summary| (metric.of)(summary.jobs.get(name)?));
            estimate(&values.collect::<Vec<_>>())
        };
        Group { name: name.clone(), metrics: JOB_METRICS.iter().map(of).collect() }
    };
    first.jobs.keys().map(job).collect()
}

/// A number of a group.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct GroupMetric {
    heading: &'static str,
    unit: &'static str,
    #[serde(skip)]
    of: fn(&GroupSummary) -> Option<f64>,
}

const fn of_group(
    heading: &'static str,
    unit: &'static str,
    of: fn(&GroupSummary) -> Option<f64>,
) -> GroupMetric {
    GroupMetric { heading, unit, of }
}

/// What a page shows of every kind of traffic.
pub(crate) const GROUP_METRICS: &[GroupMetric] = &[
    of_group("last completion", "us", |g| Some(g.flows.last_completion?.0 as f64 * MICRO)),
    of_group("FCT mean", "us", |g| Some(g.fct_ps.as_ref()?.mean * MICRO)),
    of_group("FCT p99", "us", |g| Some(g.fct_ps.as_ref()?.p99 * MICRO)),
    of_group("slowdown mean", "", |g| Some(g.slowdown.as_ref()?.mean)),
    of_group("slowdown p99", "", |g| Some(g.slowdown.as_ref()?.p99)),
    of_group("throughput", "Gbit/s", |g| Some(g.throughput_bps? * GIGA)),
    of_group("completed", "flows", |g| Some(g.flows.completed as f64)),
    of_group("unfinished", "flows", |g| Some(g.flows.unfinished as f64)),
];

/// The kinds of traffic, where there are several, in the order of the first run.
fn groups(summaries: &[Summary]) -> Vec<Group> {
    let Some(first) = summaries.first().filter(|first| first.groups.len() > 1) else { return Vec::new() };
    let group = |name: &String| {
        let of = |metric: &GroupMetric| {
            let values = summaries.iter().filter_map(|summary| (metric.of)(summary.groups.get(name)?));
            estimate(&values.collect::<Vec<_>>())
        };
        Group { name: name.clone(), metrics: GROUP_METRICS.iter().map(of).collect() }
    };
    first.groups.keys().map(group).collect()
}

/// Reads the runs of a point one after the other and reduces them. `points`: how many the report has.
pub(crate) fn reduce(labels: &[String], folders: &[&Path], points: usize) -> Result<Reduced, ReportError> {
    let mut summaries = Vec::new();
    let mut flows: Vec<(u64, f64)> = Vec::new();
    let mut fct_us: Vec<f64> = Vec::new();
    let mut links = LinkSums::default();
    let mut series = None;
    let mut scenario = String::new();
    let mut critical = Vec::new();
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
            series = Series::of(&outcome.samples()?, &outcome.flow_samples()?, links.channels(), points);
            critical = critical_parts(&outcome)?;
            scenario.clone_from(&outcome.scenario);
        }
        summaries.push(outcome.summary);
    }
    let map = map(&scenario, links.channels(), points);
    let job = Job::of(&scenario);
    let by_size = BySize::of(&flows);
    let mut slowdowns: Vec<f64> = flows.into_iter().map(|(_, slowdown)| slowdown).collect();
    slowdowns.sort_unstable_by(f64::total_cmp);
    fct_us.sort_unstable_by(f64::total_cmp);
    let point = Point {
        labels: labels.to_vec(),
        folders: folders.iter().map(|folder| folder.display().to_string()).collect(),
        interrupted: summaries.iter().filter(|summary| summary.status == Status::Interrupted).count(),
        flow_level: summaries.iter().any(|summary| summary.flow_level),
        has_background: summaries.iter().any(|summary| summary.background_flows.is_some()),
        warnings: warnings(&summaries),
        fct_us: Curve::of(&fct_us),
        slowdown: Curve::of(&slowdowns),
        metrics: METRICS
            .iter()
            .map(|metric| {
                let values = summaries.iter().filter_map(|summary| (metric.of)(summary, job));
                estimate(&values.collect::<Vec<_>>())
            })
            .collect(),
        groups: groups(&summaries),
        jobs: jobs(&summaries),
        critical,
        tiers: tiers(&summaries),
        link_use: links.link_use(map.as_ref()),
        series,
        scenario,
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_workloads_whose_messages_depend_on_each_other() {
        let job = |workload: &str| Job::of(&format!("[workload]\n{workload}\n"));
        assert_eq!(job("kind = \"permutation\"\nrepeat = 3"), None);
        assert_eq!(job("kind = \"collective\"\nrepeat = 3"), Some(Job { steps: Some(3) }));
        assert_eq!(job("kind = \"skeleton\"\niterations = 5"), Some(Job { steps: Some(5) }));
        assert_eq!(job("kind = \"stencil\"\nbarrier = false\nrepeat = 2"), None);
        assert_eq!(job("kind = \"stencil\"\nbarrier = true\nrepeat = 2"), Some(Job { steps: Some(2) }));
        for kind in ["goal", "chakra", "astra-sim", "simai"] {
            assert_eq!(job(&format!("kind = \"{kind}\"")), Some(Job { steps: None }));
        }
    }

    #[test]
    fn figures_have_names_of_their_own() {
        for (i, metric) in METRICS.iter().enumerate() {
            assert!(METRICS[..i].iter().all(|other| other.name != metric.name), "{}", metric.name);
        }
    }
}
