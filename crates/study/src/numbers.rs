//! The numbers of a summary by name.

use std::collections::BTreeMap;

use netloom_record::Summary;
use serde_json::Value;

/// Every number of a summary under its path, e.g. `packets.ooo_share`.
///
/// Times are in microseconds and their names lose the `_ps` (`fct.p99`). Names that users or networks give have `_` for
/// `-` and `/`: tiers (`tiers.edge_agg.max_utilisation`), groups, windows and channels (`windows.hot.groups.victim.throughput_bps`).
/// Size bins go by their upper end in bytes (`by_size.10000.fct.mean`, the last one `by_size.larger`).
pub fn numbers(summary: &Summary) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    if let Ok(value) = serde_json::to_value(summary) {
        flatten("", &value, 1.0, &mut found);
    }
    found
}

/// The unit of a metric, by its name; `1` for counts and shares.
pub fn unit(metric: &str) -> &'static str {
    const TIMES: &[&str] = &[
        "fct",
        "latency",
        "sender_fct",
        "last_completion",
        "makespan",
        "active_from",
        "active_until",
        "load_until",
        "warm_up",
        "simulated",
        "time",
        "from",
        "until",
    ];
    /// Times of jobs, whose names are of the user's choice.
    const JOB_TIMES: &[&str] =
        &["job_time", "step_time", "start", "end", "computation", "exposed", "waiting"];
    let last = metric.rsplit('.').next().unwrap_or_default();
    if metric.starts_with("jobs.") && JOB_TIMES.contains(&last) {
        "us"
    } else if last == "count" {
        "1"
    } else if last.ends_with("_bps") {
        "bit/s"
    } else if last == "bytes" || last.ends_with("_bytes") {
        "B"
    } else if last.starts_with("dollars") || last.starts_with("cable_dollars") {
        "USD"
    } else if last.starts_with("watts") {
        "W"
    } else if metric.split('.').any(|step| TIMES.contains(&step)) {
        "us"
    } else {
        "1"
    }
}

const MICROSECONDS_PER_PICOSECOND: f64 = 1e-6;

fn flatten(path: &str, value: &Value, scale: f64, found: &mut BTreeMap<String, f64>) {
    match value {
        Value::Number(number) => {
            if let Some(number) = number.as_f64() {
                found.insert(path.to_owned(), number * scale);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let (name, scale) = match name.strip_suffix("_ps") {
                    Some(name) => (name, MICROSECONDS_PER_PICOSECOND),
                    None => (name.as_str(), scale),
                };
                // A count is a count, also below a time.
                let scale = if name == "count" { 1.0 } else { scale };
                flatten(&join(path, name), value, scale, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                flatten(&join(path, &name_of(item)), item, scale, found);
            }
        }
        _ => {}
    }
}

/// A path one step deeper; in claims a hyphen is a minus and a slash (of a mix's groups) divides.
fn join(path: &str, name: &str) -> String {
    let name = name.replace(['-', '/'], "_");
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

/// What an item of a list goes by: its tier, or the upper end of its size bin.
fn name_of(item: &Value) -> String {
    match (item.get("tier").and_then(Value::as_str), item.get("up_to_bytes").and_then(Value::as_u64)) {
        (Some(tier), _) => tier.to_owned(),
        (None, Some(bytes)) => bytes.to_string(),
        (None, None) => "larger".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_record::{
        ChannelRecord, FlowRecord, NamedChannel, PacketStatistics, Records, Status, SummaryOptions, Window,
        WindowRecord,
    };
    use netloom_units::Time;

    #[test]
    fn numbers_go_by_their_path_in_the_summary() {
        let flow = |us| FlowRecord {
            src: 0,
            dst: 1,
            bytes: 1000,
            fct: Some(Time::from_us(us)),
            ideal_fct: Time::from_us(5),
            ..FlowRecord::default()
        };
        let mut packets = PacketStatistics::default();
        packets.add(Time::from_us(2), 4);
        let records = Records {
            groups: vec!["hot".to_owned(), "by-stander/cold".to_owned()],
            windows: vec![Window {
                name: "on-peak".to_owned(),
                from: Time::from_us(10),
                until: Time::from_us(18),
            }],
            named_channels: vec![NamedChannel { name: "path1".to_owned(), channel: 0 }],
            window_flows: vec![WindowRecord { group: 1, bytes: 1000, ..WindowRecord::default() }].into(),
            flows: vec![flow(10), flow(20)],
            channels: vec![ChannelRecord { tier: "edge-agg".into(), ..ChannelRecord::default() }],
            packets: [((1, 0), packets)].into(),
            ..Records::default()
        };
        let summary = Summary::new(&records, &SummaryOptions::default(), Status::Complete).unwrap();
        let numbers = numbers(&summary);
        let expected = [
            ("fct.mean", 15.0),
            ("fct.count", 2.0),
            ("slowdown.max", 4.0),
            ("flows.completed", 2.0),
            ("by_size.10000.fct.max", 20.0),
            ("packets.ooo_share", 0.0),
            ("tiers.edge_agg.channels", 1.0),
            ("flows.last_completion", 20.0),
            ("groups.hot.fct.max", 20.0),
            ("windows.on_peak.from", 10.0),
            ("windows.on_peak.groups.by_stander_cold.throughput_bps", 1e9),
            ("channels.path1.max_queue_bytes", 0.0),
            ("packet_paths.by_stander_cold.latency.p99", 2.0),
            ("packet_paths.all.hops.4", 1.0),
        ];
        for (name, number) in expected {
            let found = numbers[name];
            assert!((found - number).abs() < 1e-9, "{name} = {found}");
        }
        // Times lose their suffix, so their names have to be known.
        let mut times = std::collections::BTreeSet::new();
        collect_times("", &serde_json::to_value(&summary).unwrap(), false, &mut times);
        for name in numbers.keys() {
            assert_eq!(unit(name) == "us", times.contains(name), "{name}");
        }
        assert_eq!(
            ["channels.c.max_queue_bytes", "throughput_bps", "flows.completed"].map(unit),
            ["B", "bit/s", "1"]
        );
    }

    /// The names of all numbers that stand below a `_ps`.
    fn collect_times(
        path: &str,
        value: &Value,
        is_time: bool,
        found: &mut std::collections::BTreeSet<String>,
    ) {
        match value {
            Value::Number(_) if is_time => {
                found.insert(path.to_owned());
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let is_time = name != "count" && (is_time || name.ends_with("_ps"));
                    collect_times(&join(path, name.trim_end_matches("_ps")), value, is_time, found);
                }
            }
            Value::Array(items) => {
                items
                    .iter()
                    .for_each(|item| collect_times(&join(path, &name_of(item)), item, is_time, found));
            }
            _ => {}
        }
    }
}
