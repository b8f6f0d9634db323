//! The table of results.
//!
//! Runs have hundreds of numbers: the table has a row per point and shows what every study has, and what occurred in this one.
//! Measurements have few, of many networks: the table has a row per number and a column per label of the first axis.

use std::collections::BTreeSet;

use netloom_study::{PointResults, Results, significant};

use crate::show;

/// Which way the table goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// A row per point.
    PointsDown,
    /// A row per metric and combination of the other axes' labels.
    MetricsDown,
}

/// One column.
struct Column {
    heading: String,
    /// Path of the number in the summary.
    metric: String,
    /// What the number is multiplied by to be in the heading's unit.
    scale: f64,
}

impl Column {
    fn new(heading: impl Into<String>, metric: impl Into<String>, scale: f64) -> Self {
        Column { heading: heading.into(), metric: metric.into(), scale }
    }
}

const GIGA: f64 = 1e-9;
const KILO: f64 = 1e-3;

impl Layout {
    /// The results for programs: every point with the numbers that the table shows, by metric, in the summary's units.
    pub(super) fn json(self, results: &Results) -> serde_json::Value {
        let metrics: Vec<String> = match self {
            Layout::PointsDown => columns(results).into_iter().map(|column| column.metric).collect(),
            Layout::MetricsDown => results.occurring().into_iter().map(str::to_owned).collect(),
        };
        let point = |point: &PointResults| {
            let values: serde_json::Map<String, serde_json::Value> =
                metrics.iter().map(|metric| (metric.clone(), mean(point, metric).into())).collect();
            serde_json::json!({ "name": point.name, "runs": point.runs.len(), "values": values })
        };
        results.points().iter().map(point).collect()
    }

    /// The results for people.
    pub(super) fn text(self, results: &Results) -> String {
        match self {
            Layout::PointsDown => points_down(results),
            Layout::MetricsDown => metrics_down(results),
        }
    }
}

/// Mean over the seeds; absent where the point has no such number.
fn mean(point: &PointResults, metric: &str) -> Option<f64> {
    let values = point.known(metric);
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), significant)
}

fn points_down(results: &Results) -> String {
    let columns = columns(results);
    let headings = columns.iter().map(|column| column.heading.clone());
    let mut rows: Vec<Vec<String>> = vec![std::iter::once(String::new()).chain(headings).collect()];
    for point in results.points() {
        let number = |column: &Column| cell(mean(point, &column.metric).map(|value| value * column.scale));
        rows.push(std::iter::once(point.name.clone()).chain(columns.iter().map(number)).collect());
    }
    show::table(rows)
}

fn metrics_down(results: &Results) -> String {
    let first = results.axes().next().unwrap_or_default();
    let of_first = |point: &PointResults| {
        point
            .labels
            .iter()
            .find(|(axis, _)| axis == first)
            .map(|(_, label)| label.clone())
            .unwrap_or_default()
    };
    let of_others = |point: &PointResults| {
        let others = point.labels.iter().filter(|(axis, _)| axis != first);
        others.map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
    };
    let (mut headings, mut groups) = (Vec::new(), Vec::new());
    for point in results.points() {
        for (list, name) in [(&mut headings, of_first(point)), (&mut groups, of_others(point))] {
            if !list.contains(&name) {
                list.push(name);
            }
        }
    }
    let mut rows: Vec<Vec<String>> =
        vec![std::iter::once(String::new()).chain(headings.iter().cloned()).collect()];
    for group in &groups {
        let points: Vec<&PointResults> =
            results.points().iter().filter(|point| of_others(point) == *group).collect();
        let runs = points.iter().flat_map(|point| point.runs.iter().flatten());
        let metrics: BTreeSet<&String> = runs.flat_map(|numbers| numbers.keys()).collect();
        for metric in metrics {
            let value = |heading: &String| {
                let point = points.iter().find(|point| of_first(point) == *heading);
                cell(point.and_then(|point| mean(point, metric)))
            };
            let name = if group.is_empty() { metric.clone() } else { format!("{group} {metric}") };
            rows.push(std::iter::once(name).chain(headings.iter().map(value)).collect());
        }
    }
    show::table(rows)
}

fn columns(results: &Results) -> Vec<Column> {
    let metrics = results.occurring();
    let occurs = |metric: &str| {
        results.points().iter().any(|point| point.known(metric).iter().any(|&value| value != 0.0))
    };
    let mut columns: Vec<Column> = [
        ("FCT mean [us]", "fct.mean"),
        ("p50", "fct.p50"),
        ("p99", "fct.p99"),
        ("max", "fct.max"),
        ("slowdown p99", "slowdown.p99"),
    ]
    .into_iter()
    .filter(|(_, metric)| metrics.contains(metric))
    .map(|(heading, metric)| Column::new(heading, metric, 1.0))
    .collect();
    columns.push(Column::new("OOO share", "packets.ooo_share", 1.0));
    columns.push(Column::new("unfinished", "flows.unfinished", 1.0));
    if occurs("packets.cnms") {
        columns.push(Column::new("CNMs", "packets.cnms", 1.0));
    }
    for (tier, metric) in between("tiers.", &metrics, ".paused_share") {
        if occurs(metric) {
            columns.push(Column::new(format!("paused, {tier}"), metric, 1.0));
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
    use netloom_scenario::{Node, Source};
    use netloom_study::{Cell, Numbers, Point, Work};
    use std::sync::Arc;

    fn cell(labels: &[(&str, &str)]) -> Cell {
        let document = Node::parse(&Source::new("", "")).unwrap();
        let work = Work::Run(Box::default(), document);
        let labels = labels.iter().map(|(axis, label)| ((*axis).to_owned(), (*label).to_owned())).collect();
        Cell { point: Arc::new(Point { labels, work }), repetition: 0 }
    }

    fn numbers(numbers: &[(&str, f64)]) -> Numbers {
        numbers.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
    }

    fn headings(given: &[(&str, f64)]) -> Vec<String> {
        let always =
            [("packets.ooo_share", 0.0), ("flows.unfinished", 0.0), ("groups.all.throughput_bps", 0.0)];
        let numbers = numbers(&[&always, given].concat());
        let results = Results::new([(&cell(&[]), Some(&numbers))]);
        columns(&results).into_iter().map(|column| column.heading).skip(2).collect()
    }

    #[test]
    fn networks_stand_side_by_side() {
        let cells = [
            cell(&[("network", "sf"), ("kind", "size")]),
            cell(&[("network", "sf"), ("kind", "paths")]),
            cell(&[("network", "df"), ("kind", "size")]),
        ];
        let of = [
            numbers(&[("radix", 7.0), ("hosts", 200.0)]),
            numbers(&[("mean", 1.5)]),
            numbers(&[("radix", 3.0)]),
        ];
        let results = Results::new(cells.iter().zip(of.iter().map(Some)));
        let text = Layout::MetricsDown.text(&results);
        let words: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with('│'))
            .map(|line| line.split('│').map(str::trim).filter(|word| !word.is_empty()).collect())
            .collect();
        assert_eq!(
            words,
            [
                vec!["sf", "df"],
                vec!["size hosts", "200", "-"],
                vec!["size radix", "7", "3"],
                vec!["paths mean", "1.5", "-"]
            ]
        );
    }

    #[test]
    fn what_did_not_occur_has_no_column() {
        assert!(headings(&[("tiers.host.paused_share", 0.0), ("packets.cnms", 0.0)]).is_empty());
        assert_eq!(
            headings(&[("tiers.host.paused_share", 0.1), ("packets.cnms", 3.0), ("flows.streams", 1.0)]),
            ["CNMs", "paused, host", "throughput [Gbit/s]"]
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
}
