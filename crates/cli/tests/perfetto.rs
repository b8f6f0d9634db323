//! `netloom perfetto`: the trace holds what the outcome's tables do, in Chrome's trace event format.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const SCENARIO: &str = "
topology = { kind = \"crossbar\", hosts = 4, rate = \"100Gbps\" }
workload = { kind = \"collective\", size = \"64KiB\", compute = \"5us\" }
measure = { activities = true, sample = \"2us\" }
";

fn netloom(folder: &Path, args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_netloom")).args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What every event has, and what its phase asks for.
fn check_format(events: &[Value]) {
    let mut open: BTreeMap<(String, u64), f64> = BTreeMap::new();
    for event in events {
        let text =
            |field: &str| event[field].as_str().unwrap_or_else(|| panic!("{field} of {event}")).to_owned();
        let number = |field: &str| event[field].as_f64().unwrap_or_else(|| panic!("{field} of {event}"));
        assert!(event["pid"].is_u64() && event["tid"].is_u64() && !text("name").is_empty(), "{event}");
        match text("ph").as_str() {
            "M" => assert!(event["args"]["name"].is_string(), "{event}"),
            "X" => assert!(number("ts") >= 0.0 && number("dur") >= 0.0, "{event}"),
            "C" => assert!(event["args"].as_object().unwrap().values().all(Value::is_number), "{event}"),
            "b" => assert!(open.insert((text("cat"), event["id"].as_u64().unwrap()), number("ts")).is_none()),
            "e" => {
                let began = open.remove(&(text("cat"), event["id"].as_u64().unwrap()));
                assert!(began.is_some_and(|began| began <= number("ts")), "{event}");
            }
            phase => panic!("{phase} of {event}"),
        }
    }
    assert!(open.is_empty(), "never end: {open:?}");
}

#[test]
fn the_trace_holds_ranks_collectives_flows_and_links() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ring.toml"), SCENARIO).unwrap();
    netloom(folder.path(), &["run", "ring.toml", "--out", "ring"]);
    netloom(folder.path(), &["perfetto", "ring"]);
    let text = std::fs::read_to_string(folder.path().join("ring.perfetto.json")).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    check_format(events);

    let of = |phase: &str, name: &str| -> Vec<&Value> {
        let is_it =
            |event: &&Value| event["ph"] == phase && event["name"].as_str().unwrap().starts_with(name);
        events.iter().filter(is_it).collect()
    };
    assert_eq!(of("X", "repetition 0").len(), 4);
    assert_eq!(of("M", "thread_name").len(), 4);
    // Six steps of four messages each.
    assert_eq!(of("b", "h").len(), 24);
    assert_eq!(of("b", "all-reduce").len(), 1);
    // What h0 sent in all, 98,304 B in 24 packets with headers, and an ACK for each of as many: 2 us are 25,000 B.
    let mut sent = 0.0;
    for event in of("C", "h0 > s0").iter().filter(|event| event["args"].get("use_percent").is_some()) {
        sent += event["args"]["use_percent"].as_f64().unwrap() / 100.0 * 25_000.0;
    }
    let expected = 98_304.0 + 24.0 * 64.0 + 24.0 * 64.0;
    assert!((sent - expected).abs() < 1.0, "{sent} B, not {expected} B");
    for rank in 1..=4 {
        let at = |event: &&&Value| event["tid"] == rank && event["pid"] == 1;
        let lasts = |name: &str| -> f64 {
            of("X", name).iter().filter(at).map(|event| event["dur"].as_f64().unwrap()).sum()
        };
        let parts = lasts("computing") + lasts("sending") + lasts("waiting");
        assert!((lasts("repetition") - parts).abs() < 1e-5, "{parts} of {}", lasts("repetition"));
        assert!((lasts("computing") - 5.0).abs() < 1e-9);
    }
}
