//! No file and no parameter takes the machine's memory, hangs, or brings netloom down.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SMALL: &str = "[topology]\nkind = \"fat-tree\"\nk = 4\n[workload]\nsize = \"64KiB\"\n";

/// Checks a scenario without running it, with so much memory: exit code and messages.
#[track_caller]
fn explain(folder: &Path, memory: &str, set: &[String]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netloom"));
    command.args(["explain", "s.toml"]).current_dir(folder).env("NETLOOM_MEMORY", memory);
    command.args(set.iter().flat_map(|set| ["--set", set]));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{set:?}: no answer within 60 s");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    (status.code().unwrap_or(-1), message)
}

fn folder_with(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.toml"), text).unwrap();
    folder
}

#[track_caller]
fn refused(folder: &Path, memory: &str, set: &[&str]) -> String {
    let set: Vec<String> = set.iter().map(|&set| set.to_owned()).collect();
    let (code, message) = explain(folder, memory, &set);
    assert_eq!(code, 2, "{set:?}\n{message}");
    message
}

#[test]
fn a_network_that_does_not_fit_is_refused_with_the_estimate() {
    let folder = folder_with(SMALL);
    let huge = ["topology.kind=dragonfly", "topology.global_links_per_switch=255"];
    let message = refused(folder.path(), "1GiB", &huge);
    assert!(message.contains("topology") && message.contains("GiB"), "{message}");
    // The network itself would fit, its routes do not.
    let message = refused(folder.path(), "1MiB", &["topology.k=16"]);
    assert!(message.contains("1024 hosts is too large: it needs at least"), "{message}");
}

#[test]
fn a_file_of_scenarios_size_is_no_scenario() {
    let folder = folder_with(&format!("{SMALL}[measure]\nsize_bins = [{}]\n", "1, ".repeat(2_000_000)));
    let message = refused(folder.path(), "8GiB", &[]);
    assert!(message.contains("cannot read s.toml: it is larger than 4.0 MiB"), "{message}");
    let folder = folder_with(&format!("{SMALL}[measure]\nsize_bins = [{}]\n", "1, ".repeat(2_000)));
    let message = refused(folder.path(), "8GiB", &[]);
    assert!(message.contains("measure.size_bins: expected at most 1000 bounds, found 2000"), "{message}");
}

#[test]
#[cfg(unix)]
fn a_file_without_end_is_refused() {
    let folder = folder_with(SMALL);
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.csv")).unwrap();
    for kind in [
        "edge-list",
        "graphml",
        "dot",
        "json",
        "htsim-topo",
        "ns3-topology",
        "astra-sim-network",
        "infragraph",
        "simai-topology",
    ] {
        let kind = format!("topology.kind={kind}");
        let message = refused(folder.path(), "256MiB", &[&kind, "topology.path=/dev/zero"]);
        assert!(message.contains("of memory") || message.contains("UTF-8"), "{kind}: {message}");
    }
    for kind in ["flow-list", "htsim-matrix", "ns3-flows", "goal"] {
        let kind = format!("workload.kind={kind}");
        let message = refused(folder.path(), "256MiB", &[&kind, "workload.file=zero.csv"]);
        assert!(message.contains("line"), "{kind}: {message}");
    }
    let message =
        refused(folder.path(), "256MiB", &["workload.kind=chakra", "workload.files=[\"/dev/zero\"]"]);
    assert!(message.contains("of memory"), "{message}");
    let message = refused(folder.path(), "256MiB", &["workload.size={file = \"/dev/zero\"}"]);
    assert!(message.contains("of memory"), "{message}");
}

#[test]
fn a_long_list_is_refused_where_memory_ends() {
    let folder = folder_with(SMALL);
    let goal = format!("num_ranks 1\nrank 0 {{\n{}}}\n", "calc 1\n".repeat(200_000));
    fs::write(folder.path().join("a.goal"), goal).unwrap();
    let flows = format!("src,dst,bytes,start\n{}", "0,1,1,0s\n".repeat(200_000));
    fs::write(folder.path().join("a.csv"), flows).unwrap();
    for (kind, file) in [("goal", "a.goal"), ("flow-list", "a.csv")] {
        let (kind, file) = (format!("workload.kind={kind}"), format!("workload.file={file}"));
        let message = refused(folder.path(), "8MiB", &[&kind, &file]);
        assert!(message.contains("of memory"), "{message}");
        let set = [kind, file];
        assert_eq!(explain(folder.path(), "8GiB", &set).0, 0, "{set:?} is read where there is memory");
    }
}

#[test]
fn a_limit_that_is_no_size_is_refused() {
    let folder = folder_with(SMALL);
    for wrong in ["lots", "4 GB of it", "-1"] {
        let message = refused(folder.path(), wrong, &[]);
        assert!(message.contains("NETLOOM_MEMORY: expected a size such as 4GiB, found"), "{message}");
    }
    let list = Command::new(env!("CARGO_BIN_EXE_netloom")).arg("list").env("NETLOOM_MEMORY", "x").output();
    assert_eq!(list.unwrap().status.code(), Some(2), "whatever the command");
}

/// A run of some 200 MiB, of which that is not known before it.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_was_set_is_kept() {
    let folder =
        folder_with("topology = { kind = \"fat-tree\", k = 32 }\nworkload = { size = \"256KiB\" }\n");
    let run = |limit: &str, memory: &str| {
        let script = format!("{limit} exec {} run s.toml --out out --quiet", env!("CARGO_BIN_EXE_netloom"));
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(folder.path()).env("NETLOOM_MEMORY", memory);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, message) = run("", "40MiB");
    assert_eq!(code, Some(1), "{message}");
    // What it had when it was looked at, which is a matter of time.
    let needed = message.split_once("error: the run was stopped: it needs at least ").map(|(_, rest)| rest);
    let needed = needed.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    assert!(needed.is_some_and(|mib| (40.0..150.0).contains(&mib)), "{message}");
    assert!(message.contains("40.0 MiB are available"), "{message}");
    // As batch systems limit a process.
    let (code, message) = run("ulimit -v 150000;", "");
    assert!([Some(1), Some(2)].contains(&code), "{code:?} {message}");
    assert!(message.contains("MiB are available") || message.contains("no more memory"), "{message}");
    if message.contains("no more memory") {
        // What ends where there is no memory cannot clear up; the next run does.
        run("", "40MiB");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

/// Every field that can be written, with values that make no sense: an answer, and no panic.
#[test]
fn no_value_of_any_field_brings_netloom_down() {
    let folder = folder_with(SMALL);
    fs::write(folder.path().join("net"), "a s\nb s\n").unwrap();
    let list = Command::new(env!("CARGO_BIN_EXE_netloom")).args(["list", "--json"]).output().unwrap();
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let mut cases: Vec<Vec<String>> = Vec::new();
    for entry in list.as_array().unwrap().iter().filter(|entry| entry["file"] == "scenario") {
        let (path, name) = (entry["path"].as_str().unwrap(), entry["name"].as_str().unwrap());
        // One fault stands for the list of them; layers are those of the selector `layer`.
        let is_kind = !["preset", "size", "scenario"].contains(&entry["axis"].as_str().unwrap())
            && name != entry["axis"];
        let mut before = Vec::new();
        let table = match path {
            "faults" => {
                before.push(format!("faults=[{{kind = {name:?}}}]"));
                "faults.0".to_owned()
            }
            "routing.selector.construction" => {
                before.push("routing.selector.kind=layer".to_owned());
                path.to_owned()
            }
            "routing.selector.decision" | "routing.selector.queue" => {
                before.extend(["topology.kind=complete", "routing.preset=ugal-l"].map(str::to_owned));
                path.to_owned()
            }
            _ => path.to_owned(),
        };
        if is_kind && path != "faults" && !["fabric", "routing", "transport", "measure"].contains(&path) {
            before.push(format!("{table}.kind={name}"));
        }
        for field in entry["fields"].as_array().unwrap() {
            let field = field["name"].as_str().unwrap();
            for value in ["0", "-1", "nan", "inf", "1e300", "9223372036854775807", "net", "1us"] {
                let dot = if table.is_empty() { "" } else { "." };
                cases.push([&before[..], &[format!("{table}{dot}{field}={value}")]].concat());
            }
        }
    }
    assert!(cases.len() > 1000, "{}", cases.len());
    let cases = Mutex::new(cases.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(set) = cases.lock().unwrap().next() else { return };
                    let (code, message) = explain(folder.path(), "256MiB", &set);
                    assert!([0, 2].contains(&code), "{set:?}: {code}\n{message}");
                }
            });
        }
    });
}
