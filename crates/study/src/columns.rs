//! Which numbers of a study are shown: of measurements all, of runs what every study has, and what occurred in this one.

use serde::{Deserialize, Serialize};

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
}

const GIGA: f64 = 1e-9;
const KILO: f64 = 1e-3;

/// Every number of measurements.
pub(crate) fn of_measurements(results: &Results) -> Vec<Column> {
    results.occurring().into_iter().map(|metric| Column::new(metric, metric, 1.0)).collect()
}

/// Some of the hundreds of numbers of runs.
pub(crate) fn of_runs(results: &Results) -> Vec<Column> {
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
    for (heading, metric) in [("CNMs", "packets.cnms"), ("CNPs", "packets.cnps")] {
        if occurs(metric) {
            columns.push(Column::new(heading, metric, 1.0));
        }
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
    use crate::cell::testing::cell;
    use crate::work::Numbers;

    fn headings(given: &[(&str, f64)]) -> Vec<String> {
        let always =
            [("packets.ooo_share", 0.0), ("flows.unfinished", 0.0), ("groups.all.throughput_bps", 0.0)];
        let numbers: Numbers =
            always.iter().chain(given).map(|(name, number)| ((*name).to_owned(), *number)).collect();
        let results = Results::new([(&cell(&[], 1), Some(&numbers))]);
        of_runs(&results).into_iter().map(|column| column.heading).skip(2).collect()
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
