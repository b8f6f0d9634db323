//! `netloom critical-path`: its parts and its steps add up to the time of the job.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const SCENARIO: &str = "
topology = { kind = \"crossbar\", hosts = 4, rate = \"100Gbps\" }
workload = { kind = \"collective\", size = \"64KiB\", compute = \"5us\" }
measure = { operations = true }
";

fn netloom(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netloom")).args(args).current_dir(folder).output().unwrap()
}

#[test]
fn parts_and_steps_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("ring.toml"), SCENARIO).unwrap();
    assert!(netloom(folder, &["run", "ring.toml", "--out", "ring"]).status.success());
    let output = netloom(folder, &["critical-path", "ring", "--json"]);
    let path: Value = serde_json::from_slice(&output.stdout).unwrap();
    let time = |value: &Value, field: &str| value[field].as_u64().unwrap();
    let steps = path["steps"].as_array().unwrap();
    let of_steps: u64 = steps.iter().map(|step| time(step, "end_ps") - time(step, "start_ps")).sum();
    let of_parts: u64 = path["parts"].as_array().unwrap().iter().map(|part| time(part, "time_ps")).sum();
    assert_eq!(path["job"], "collective");
    let whole = time(steps.last().unwrap(), "end_ps") - time(&steps[0], "start_ps");
    assert_eq!((of_steps, of_parts), (whole, whole));
    assert_eq!(steps[0]["what"], "computation");
    let table = netloom(folder, &["critical-path", "ring", "--longest", "2"]).stdout;
    let table = String::from_utf8(table).unwrap();
    assert!(table.starts_with("collective, repetition 0: ") && table.contains("all-reduce"), "{table}");
}

#[test]
fn steps_have_the_labels_of_the_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let schedule = "num_ranks 2\nrank 0 {\nforward: calc 9000\nactivations: send 64b to 1\nactivations requires forward\n}\n\
                    rank 1 {\ngot: recv 64b from 0\nbackward: calc 9000\nbackward requires got\n}\n";
    std::fs::write(folder.join("step.goal"), schedule).unwrap();
    let scenario = SCENARIO.replace(
        "kind = \"collective\", size = \"64KiB\", compute = \"5us\"",
        "kind = \"goal\", file = \"step.goal\"",
    );
    std::fs::write(folder.join("step.toml"), scenario).unwrap();
    assert!(netloom(folder, &["run", "step.toml", "--out", "step"]).status.success());
    let output = netloom(folder, &["critical-path", "step", "--json"]).stdout;
    let path: Value = serde_json::from_slice(&output).unwrap();
    let steps = path["steps"].as_array().unwrap();
    let steps: Vec<_> =
        steps.iter().map(|step| (step["what"].as_str().unwrap(), step["label"].as_str().unwrap())).collect();
    assert_eq!(steps, [("computation", "forward"), ("message", "activations"), ("computation", "backward")]);
    let table = String::from_utf8(netloom(folder, &["critical-path", "step"]).stdout).unwrap();
    assert!(table.contains("forward") && table.contains("activations"), "{table}");
}

#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("ring.toml"), SCENARIO.replace("operations = true", "")).unwrap();
    assert!(netloom(folder, &["run", "ring.toml", "--out", "ring"]).status.success());
    let error = |args: &[&str]| {
        let output = netloom(folder, args);
        assert!(!output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error(&["critical-path", "ring"]).contains("measure.operations = true"));
    assert!(error(&["critical-path", "ring", "--job", "x"]).contains("expected one of collective"));
}
