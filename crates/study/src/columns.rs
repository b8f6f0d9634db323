//! Which numbers of a study are shown: those that are chosen; else of measurements all, of runs what every study has, and what occurred in
//! this one.

use netloom_scenario::Problem;
use netloom_units::names::suggest;
use serde::{Deserialize, Serialize};

use crate::grid::Plan;
use crate::numbers::unit;
use crate::results::Results;

/// A number that is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// What stands above it, with its unit.
    pub heading: String,
    /// Its name among the results.
    pub metric: String,
    /// What the number is multiplied by to be in the heading's unit.
    pub scale: f64,
}

impl Column {
    fn new(heading: impl Into<String>, metric: impl Into<String>, scale: f64) -> Self {
        Column { heading: heading.into(), metric: metric.into(), scale }
    }

    /// A metric under its own name, with its unit.
    fn of(metric: &str) -> Self {
        match unit(metric) {
            "1" => Column::new(metric, metric, 1.0),
            "bit/s" => Column::new(format!("{} [Gbit/s]", metric.trim_end_matches("_bps")), metric, GIGA),
            "B" => Column::new(format!("{} [kB]", metric.trim_end_matches("_bytes")), metric, KILO),
            unit => Column::new(format!("{metric} [{unit}]"), metric, 1.0),
        }
    }
}

const GIGA: f64 = 1e-9;
const KILO: f64 = 1e-3;

/// A column: heading, metric (`*` is every tier, or every job), factor.
type Shown = (&'static str, &'static str, f64);

/// Words that stand for several columns of runs.
const SETS: [(&str, &[Shown]); 17] = [
    (
        "fct",
        &[
            ("FCT mean [us]", "fct.mean", 1.0),
            ("FCT p50 [us]", "fct.p50", 1.0),
            ("FCT p99 [us]", "fct.p99", 1.0),
            ("FCT max [us]", "fct.max", 1.0),
        ],
    ),
    (
        "slowdown",
        &[
            ("slowdown mean", "slowdown.mean", 1.0),
            ("slowdown p50", "slowdown.p50", 1.0),
            ("slowdown p99", "slowdown.p99", 1.0),
        ],
    ),
    (
        "completion",
        &[
            ("completed", "flows.completed", 1.0),
            ("unfinished", "flows.unfinished", 1.0),
            ("last completion [us]", "flows.last_completion", 1.0),
        ],
    ),
    (
        "job-time",
        &[
            ("job time, * [us]", "jobs.*.job_time", 1.0),
            ("step time, * [us]", "jobs.*.step_time", 1.0),
            ("makespan [us]", "totals.makespan", 1.0),
        ],
    ),
    (
        "jobs",
        &[
            ("job time, * [us]", "jobs.*.job_time", 1.0),
            ("step time, * [us]", "jobs.*.step_time", 1.0),
            ("computation, * [us]", "jobs.*.computation", 1.0),
            ("exposed, * [us]", "jobs.*.exposed", 1.0),
            ("waiting, * [us]", "jobs.*.waiting", 1.0),
            ("busbw, * [Gbit/s]", "jobs.*.busbw_bps", GIGA),
        ],
    ),
    (
        "throughput",
        &[("throughput [Gbit/s]", "throughput_bps", GIGA), ("goodput [Gbit/s]", "goodput_bps", GIGA)],
    ),
    (
        "drops",
        &[("data packets dropped", "totals.data.dropped", 1.0), ("lost to faults", "totals.data.lost", 1.0)],
    ),
    ("trims", &[("packets trimmed", "packets.trims", 1.0)]),
    ("retransmissions", &[("retransmissions", "packets.retransmissions", 1.0)]),
    ("timeouts", &[("timeouts", "packets.timeouts", 1.0)]),
    ("pauses", &[("pauses, *", "tiers.*.pauses", 1.0), ("time paused, *", "tiers.*.paused_share", 1.0)]),
    (
        "reordering",
        &[
            ("out of order", "packets.ooo_share", 1.0),
            ("largest distance [packets]", "packets.max_ood", 1.0),
            ("waiting for order [packets]", "packets.max_resequencing", 1.0),
        ],
    ),
    ("marks", &[("ECN marks", "packets.ecn_marks", 1.0)]),
    ("notifications", &[("CNMs", "packets.cnms", 1.0), ("CNPs", "packets.cnps", 1.0)]),
    (
        "queues",
        &[
            ("mean queue, * [kB]", "tiers.*.mean_queue_bytes", KILO),
            ("largest queue, * [kB]", "tiers.*.max_queue_bytes", KILO),
        ],
    ),
    (
        "utilisation",
        &[
            ("mean utilisation, *", "tiers.*.mean_utilisation", 1.0),
            ("max utilisation, *", "tiers.*.max_utilisation", 1.0),
        ],
    ),
    (
        "steady",
        &[
            ("time skipped [us]", "steady.time", 1.0),
            ("error of steady parts, mean", "steady.error_mean", 1.0),
            ("± (95%)", "steady.error_plus_minus", 1.0),
            ("error, p99", "steady.error_p99", 1.0),
            ("error, max", "steady.error_max", 1.0),
        ],
    ),
];

/// The words that `columns` takes beside the names of metrics.
pub fn column_sets() -> impl Iterator<Item = &'static str> {
    SETS.iter().map(|(name, _)| *name)
}

/// The columns that are asked for: words for sets of them, or metrics by the names that claims have for them.
///
/// # Errors
/// A name that is neither, with the nearest ones.
pub(crate) fn chosen(results: &Results, names: &[String]) -> Result<Vec<Column>, Problem> {
    let metrics = results.all_metrics();
    let mut columns: Vec<Column> = Vec::new();
    for name in names {
        let found = match SETS.iter().find(|(set, _)| set == name) {
            Some((_, set)) => {
                let found: Vec<Column> =
                    set.iter().flat_map(|column| occurring(results, of_set(column, &metrics))).collect();
                if found.is_empty() {
                    return Err(Problem::new("columns", format!("no cell of this study has `{name}`")));
                }
                found
            }
            None => match results.find_metric(name) {
                Ok(metric) => vec![Column::of(metric)],
                Err(message) => {
                    let sets: Vec<&str> = column_sets().collect();
                    let near = suggest(name, sets.iter().copied());
                    let help = format!("{near}; a metric goes by its name in claims, such as `p99_fct`");
                    return Err(Problem::new("columns", message).help(help));
                }
            },
        };
        columns.extend(found.into_iter().filter(|column| !columns.contains(column)).collect::<Vec<_>>());
    }
    Ok(columns)
}

impl Plan {
    /// Whether the columns exist.
    ///
    /// # Errors
    /// A name that is neither a set of columns nor a metric, with the nearest ones.
    pub fn check_columns(&self, names: &[String]) -> Result<(), Problem> {
        chosen(&self.outline, names).map(drop)
    }
}

/// Those of a set's metrics that there are.
fn of_set((heading, metric, scale): &(&str, &str, f64), metrics: &[&str]) -> Vec<Column> {
    match metric.split_once('*') {
        None if metrics.contains(metric) => vec![Column::new(*heading, *metric, *scale)],
        None => Vec::new(),
        Some((start, end)) => {
            let column =
                |(tier, metric): (&str, &str)| Column::new(heading.replace('*', tier), metric, *scale);
            between(start, metrics, end).into_iter().map(column).collect()
        }
    }
}

/// Of the columns of all tiers or jobs those in which something other than zero stands, and no second one of the same numbers; all of them if there is
/// none.
fn occurring(results: &Results, columns: Vec<Column>) -> Vec<Column> {
    let has_any = |column: &Column| {
        results.points().iter().any(|point| point.known(&column.metric).iter().any(|&value| value != 0.0))
    };
    match columns.iter().any(has_any) {
        true => columns.into_iter().filter(has_any).filter(|column| !repeats(results, column)).collect(),
        false => columns,
    }
}

/// Whether a column would repeat another one: the time of a step where each job has one step.
fn repeats(results: &Results, column: &Column) -> bool {
    match column.metric.strip_suffix(".step_time") {
        Some(job) => !differs(results, &column.metric, &format!("{job}.job_time")),
        None => false,
    }
}

/// Every number of measurements.
pub(crate) fn of_measurements(results: &Results) -> Vec<Column> {
    results.occurring().into_iter().map(Column::of).collect()
}

/// Some of the hundreds of numbers of runs.
pub(crate) fn of_runs(results: &Results) -> Vec<Column> {
    let metrics = results.occurring();
    let occurs = |metric: &str| {
        results.points().iter().any(|point| point.known(metric).iter().any(|&value| value != 0.0))
    };
    let mut columns = of_jobs(results, &metrics, occurs);
    let fct = [
        ("FCT mean [us]", "fct.mean"),
        ("FCT p50 [us]", "fct.p50"),
        ("FCT p99 [us]", "fct.p99"),
        ("FCT max [us]", "fct.max"),
        ("slowdown p99", "slowdown.p99"),
    ]
    .into_iter()
    .filter(|(_, metric)| metrics.contains(metric))
    .map(|(heading, metric)| Column::new(heading, metric, 1.0));
    columns.extend(fct);
    // What is computed after the last message.
    if !metrics.iter().any(|metric| metric.starts_with("jobs."))
        && occurs("totals.makespan")
        && differs(results, "totals.makespan", "flows.last_completion")
    {
        columns.push(Column::new("makespan [us]", "totals.makespan", 1.0));
    }
    columns.push(Column::new("out of order", "packets.ooo_share", 1.0));
    for (heading, metric) in [
        ("unfinished", "flows.unfinished"),
        ("data packets dropped", "totals.data.dropped"),
        ("lost to faults", "totals.data.lost"),
        ("retransmissions", "packets.retransmissions"),
        ("timeouts", "packets.timeouts"),
        ("CNMs", "packets.cnms"),
        ("CNPs", "packets.cnps"),
        ("error of steady parts, mean", "steady.error_mean"),
        ("error, max", "steady.error_max"),
    ] {
        if occurs(metric) {
            columns.push(Column::new(heading, metric, 1.0));
        }
    }
    for (tier, metric) in between("tiers.", &metrics, ".paused_share") {
        if occurs(metric) {
            columns.push(Column::new(format!("time paused, {tier}"), metric, 1.0));
        }
    }
    columns.extend(throughputs(&metrics, occurs("flows.streams")));
    for (channel, metric) in between("channels.", &metrics, ".mean_queue_bytes") {
        let throughput = format!("channels.{channel}.throughput_bps");
        columns.push(Column::new(format!("{channel} [Gbit/s]"), throughput, GIGA));
        columns.push(Column::new(format!("{channel} queue [kB]"), metric, KILO));
    }
    columns
}

/// Of every job its time, that of a step where it has several, and how much of it the network cost.
fn of_jobs(results: &Results, metrics: &[&str], occurs: impl Fn(&str) -> bool) -> Vec<Column> {
    let jobs = between("jobs.", metrics, ".job_time");
    let is_one = jobs.len() == 1;
    let mut columns = Vec::new();
    for (what, metric, unit, scale) in [
        ("job time", "job_time", "us", 1.0),
        ("step time", "step_time", "us", 1.0),
        ("exposed", "exposed", "us", 1.0),
        ("busbw", "busbw_bps", "Gbit/s", GIGA),
    ] {
        for (job, time) in &jobs {
            let metric = format!("jobs.{job}.{metric}");
            let of = if is_one { String::new() } else { format!(", {job}") };
            if occurs(&metric) && (metric == *time || differs(results, &metric, time)) {
                columns.push(Column::new(format!("{what}{of} [{unit}]"), metric, scale));
            }
        }
    }
    columns
}

/// Whether two metrics differ anywhere.
fn differs(results: &Results, a: &str, b: &str) -> bool {
    results.points().iter().any(|point| point.known(a) != point.known(b))
}

/// Throughput by window and kind of traffic, as far as there are any; of streams at least as a whole.
fn throughputs(metrics: &[&str], has_streams: bool) -> Vec<Column> {
    let groups = between("groups.", metrics, ".throughput_bps");
    let windows = between("windows.", metrics, ".throughput_bps");
    let (has_groups, has_windows) = (groups.len() > 1, !windows.is_empty());
    let mut columns = Vec::new();
    for (group, metric) in groups {
        if has_groups && !has_windows {
            columns.push(Column::new(format!("{group} [Gbit/s]"), metric, GIGA));
        } else if has_groups {
            columns.extend(windows.iter().map(|(window, _)| {
                let metric = format!("windows.{window}.groups.{group}.throughput_bps");
                Column::new(format!("{group} in {window} [Gbit/s]"), metric, GIGA)
            }));
        }
    }
    if has_windows && !has_groups {
        let column = |(window, metric)| Column::new(format!("in {window} [Gbit/s]"), metric, GIGA);
        columns.extend(windows.into_iter().map(column));
    }
    if has_streams && columns.is_empty() {
        columns.push(Column::new("throughput [Gbit/s]", "throughput_bps", GIGA));
    }
    columns
}

/// The metrics that have one name between two texts, with that name.
fn between<'a>(start: &str, metrics: &[&'a str], end: &str) -> Vec<(&'a str, &'a str)> {
    let name = |metric: &'a str| metric.strip_prefix(start)?.strip_suffix(end);
    metrics
        .iter()
        .filter_map(|metric| Some((name(metric)?, *metric)))
        .filter(|(name, _)| !name.contains('.'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::testing::cell;
    use crate::work::Numbers;

    fn results(given: &[(&str, f64)]) -> Results {
        let always =
            [("packets.ooo_share", 0.0), ("flows.unfinished", 0.0), ("groups.all.throughput_bps", 0.0)];
        let numbers: Numbers =
            always.iter().chain(given).map(|(name, number)| ((*name).to_owned(), *number)).collect();
        Results::new([(&cell(&[], 1), Some(&numbers))])
    }

    fn headings(given: &[(&str, f64)]) -> Vec<String> {
        of_runs(&results(given)).into_iter().map(|column| column.heading).skip(1).collect()
    }

    #[test]
    fn what_did_not_occur_has_no_column() {
        assert!(headings(&[("tiers.host.paused_share", 0.0), ("packets.cnms", 0.0)]).is_empty());
        assert_eq!(
            headings(&[("tiers.host.paused_share", 0.1), ("packets.cnms", 3.0), ("flows.streams", 1.0)]),
            ["CNMs", "time paused, host", "throughput [Gbit/s]"]
        );
        assert_eq!(
            headings(&[
                ("packets.timeouts", 2.0),
                ("packets.retransmissions", 3.0),
                ("totals.data.dropped", 1.0)
            ]),
            ["data packets dropped", "retransmissions", "timeouts"]
        );
    }

    #[test]
    fn groups_and_windows_show_throughput_and_channels_their_queues() {
        let window = ("windows.peak.throughput_bps", 1.0);
        assert_eq!(headings(&[window]), ["in peak [Gbit/s]"]);
        let group = ("groups.hot.throughput_bps", 1.0);
        assert_eq!(headings(&[group]), ["all [Gbit/s]", "hot [Gbit/s]"]);
        assert_eq!(headings(&[group, window]), ["all in peak [Gbit/s]", "hot in peak [Gbit/s]"]);
        let channel =
            [("channels.up.mean_queue_bytes", 1.0), ("channels.up.windows.peak.mean_queue_bytes", 1.0)];
        assert_eq!(headings(&channel), ["up [Gbit/s]", "up queue [kB]"]);
    }

    #[test]
    fn columns_are_chosen_by_word_or_by_metric() {
        let results = results(&[
            ("tiers.host.pauses", 1.0),
            ("tiers.core.pauses", 2.0),
            ("fct.p99", 3.0),
            ("channels.up.max_queue_bytes", 1.0),
            ("tiers.host.max_queue_bytes", 1.0),
            ("tiers.core.max_queue_bytes", 0.0),
            ("jobs.a.job_time", 9.0),
            ("jobs.a.step_time", 3.0),
            ("jobs.b.job_time", 4.0),
            ("jobs.b.step_time", 4.0),
        ]);
        let of =
            |names: &[&str]| chosen(&results, &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        let headings =
            |names| of(names).unwrap().into_iter().map(|column| column.heading).collect::<Vec<_>>();
        assert_eq!(headings(&["pauses", "p99_fct"]), ["pauses, core", "pauses, host", "fct.p99 [us]"]);
        assert_eq!(headings(&["queues"]), ["largest queue, host [kB]"]);
        assert_eq!(headings(&["job-time"]), ["job time, a [us]", "job time, b [us]", "step time, a [us]"]);
        assert_eq!(headings(&["fct", "fct", "ooo_share"]), ["FCT p99 [us]", "packets.ooo_share"]);
        assert_eq!(headings(&["up.max_queue"]), ["channels.up.max_queue [kB]"]);
        let wrong = of(&["timeout"]).unwrap_err();
        assert!(wrong.message.contains("there is no metric `timeout`"), "{wrong:?}");
        assert!(wrong.help.unwrap().contains("did you mean `timeouts`?"));
        assert!(of(&["timeouts"]).unwrap_err().message.contains("no cell of this study has `timeouts`"));
    }

    #[test]
    fn the_time_of_jobs_comes_first() {
        let job =
            [("jobs.a.job_time", 9.0), ("jobs.a.step_time", 9.0), ("jobs.a.exposed", 0.0), ("fct.p99", 2.0)];
        let all = |given: &[(&str, f64)]| -> Vec<String> {
            of_runs(&results(given)).into_iter().map(|column| column.heading).collect()
        };
        assert_eq!(all(&job)[..3], ["job time [us]", "FCT p99 [us]", "out of order"]);
        let two = [job[0], ("jobs.a.step_time", 3.0), ("jobs.b.job_time", 4.0), ("jobs.b.busbw_bps", 5.0)];
        assert_eq!(
            all(&two)[..4],
            ["job time, a [us]", "job time, b [us]", "step time, a [us]", "busbw, b [Gbit/s]"]
        );
    }

    /// Every word stands for numbers that a summary has.
    #[test]
    fn sets_are_made_of_metrics_of_summaries() {
        let text = "fast = { max_error = 0.01 }\ntopology = { kind = \"fat-tree\", k = 4 }\nworkload = { kind = \"collective\" }\n";
        let text = format!("title = \"t\"\n[scenario]\n{text}");
        let document = netloom_scenario::Node::parse(&netloom_scenario::Source::new("s", text)).unwrap();
        let study = crate::Study::read(&document, crate::Form::Middle).unwrap();
        let plan = study.plan().unwrap();
        for (name, set) in SETS {
            for column in set {
                assert!(!of_set(column, &plan.outline.all_metrics()).is_empty(), "{name}: {column:?}");
            }
        }
    }
}
