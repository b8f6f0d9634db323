//! Studies on the command line: claims, gates, going on after a stop, broken studies.

use std::path::Path;
use std::process::{Command, Output};

const STUDY: &str = r#"
title = "Spraying against ECMP"
scenario = "base.toml"
repetitions = 2

[[axis]]
name = "scheme"
cases = [
  { label = "ecmp", set = { "routing.preset" = "ecmp" } },
  { label = "spray", set = { "routing.preset" = "spray" } },
]

[[claims]]
id = "order"
text = "Spraying reorders, ECMP does not"
expression = 'ooo_share("ecmp") == 0 and ooo_share("spray") > 0'
published = "more than half"
source = "a paper, Fig. 8"

[[claims]]
id = "tail"
text = "A claim that does not hold"
expression = 'p99_fct("spray") > 100 * p99_fct("ecmp")'
use = "report"

[small]
repetitions = 1
set = { "workload.size" = "32KiB" }
"#;

const BASE: &str =
    "[topology]\nkind = \"fat-tree\"\nk = 4\n[workload]\nkind = \"permutation\"\nsize = \"64KiB\"\n";

fn netloom(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netloom")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn folder_with(study: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("base.toml"), BASE).unwrap();
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    folder
}

/// When each cell's summary was written.
fn written(folder: &Path) -> Vec<std::time::SystemTime> {
    let mut cells: Vec<_> =
        std::fs::read_dir(folder.join("out/cells")).unwrap().map(|entry| entry.unwrap().path()).collect();
    cells.sort();
    cells.iter().map(|cell| cell.join("summary.json").metadata().unwrap().modified().unwrap()).collect()
}

#[test]
fn a_study_shows_results_and_claims_and_runs_nothing_twice() {
    let folder = folder_with(STUDY);
    let first = netloom(folder.path(), &["study", "study.toml", "--out", "out"]);
    assert!(first.status.success(), "{}{}", text(&first.stdout), text(&first.stderr));
    for part in ["scheme=ecmp", "scheme=spray", "order", "yes", "more than half", "Fig. 8", "no"] {
        assert!(text(&first.stdout).contains(part), "{part}: {}", text(&first.stdout));
    }
    let times = written(folder.path());
    assert_eq!(times.len(), 4);
    let csv = std::fs::read_to_string(folder.path().join("out/results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.starts_with("scheme,seed,folder,"));

    let second = netloom(folder.path(), &["study", "study.toml", "--out", "out"]);
    assert_eq!(text(&second.stdout), text(&first.stdout));
    assert_eq!(written(folder.path()), times);

    let changed = STUDY.replace("\"spray\" }", "\"spray\", \"workload.size\" = \"65KiB\" }");
    std::fs::write(folder.path().join("study.toml"), changed).unwrap();
    assert!(netloom(folder.path(), &["study", "study.toml", "--out", "out"]).status.success());
    let now = written(folder.path());
    assert_eq!((now.len(), times.iter().filter(|time| now.contains(time)).count()), (6, 4));
}

#[test]
fn the_result_does_not_depend_on_the_number_of_workers() {
    let folder = folder_with(STUDY);
    let results = |workers: &str| {
        let args = ["study", "study.toml", "--workers", workers, "--out", workers, "--json"];
        let output = netloom(folder.path(), &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), std::fs::read(folder.path().join(workers).join("results.csv")).unwrap())
    };
    let one = results("1");
    assert!(one.0.contains("\"fct.p99\": "), "numbers go by their names: {}", one.0);
    assert_eq!(one, results("3"));
}

#[test]
fn a_gate_that_does_not_hold_fails_the_study() {
    let folder = folder_with(&STUDY.replace("use = \"report\"", "use = \"gate\""));
    let output = netloom(folder.path(), &["study", "study.toml", "--small"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("NO (gate)"), "{}", text(&output.stdout));
}

#[test]
fn a_broken_study_is_refused_before_anything_runs() {
    let breaks = [
        (
            "\"routing.preset\" = \"spray\"",
            "\"routing.presett\" = \"spray\"",
            "routing.presett: unknown field",
        ),
        ("p99_fct(\"spray\")", "p99_fct(\"spry\")", "did you mean `spray`?"),
        ("p99_fct(\"spray\") >", "p99_fct(\"spray\") >>", "claims.1.expression: expected a number"),
        ("base.toml", "nowhere.toml", "cannot read nowhere.toml"),
        ("repetitions = 2", "repetition = 2", "did you mean `repetitions`?"),
        ("\"spray\" } }", "\"spray\", \"topology.k\" = 3 } }", "topology.k: expected an even number"),
    ];
    for (from, to, expected) in breaks {
        let folder = folder_with(&STUDY.replace(from, to));
        let output = netloom(folder.path(), &["study", "study.toml"]);
        assert_eq!(output.status.code(), Some(2), "{to}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(expected), "{expected}: {}", text(&output.stderr));
        assert!(!folder.path().join("runs").exists(), "{to}");
    }
}

#[test]
fn a_metric_that_does_not_exist_fails_its_gate_and_says_so() {
    let folder = folder_with(&STUDY.replace("ooo_share(\"ecmp\") == 0", "oo_share(\"ecmp\") == 0"));
    let output = netloom(folder.path(), &["study", "study.toml", "--small"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("FAILED (gate)"), "{}", text(&output.stdout));
}

/// Waits until the process catches SIGINT itself.
#[cfg(target_os = "linux")]
fn wait_for_handler(pid: u32) {
    for _ in 0..2000 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        if u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & 0b10 != 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no handler for SIGINT within 20 s");
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_study_keeps_its_finished_cells_and_goes_on() {
    let long = "\"spray\", \"workload.size\" = \"64GiB\" }";
    let folder =
        folder_with(&STUDY.replace("\"spray\" }", long).replace("repetitions = 2", "repetitions = 1"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_netloom"));
    let args = ["study", "study.toml", "--workers", "1", "--out", "out"];
    let child =
        command.args(args).current_dir(folder.path()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    wait_for_handler(child.id());
    // The first cell is short, the second would take minutes.
    let cells = folder.path().join("out/cells");
    while std::fs::read_dir(&cells).map_or(0, Iterator::count) < 1 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(text(&output.stderr).contains("1 of 2 cells are done"), "{}", text(&output.stderr));

    let before = written(folder.path());
    std::fs::write(folder.path().join("study.toml"), STUDY.replace("repetitions = 2", "repetitions = 1"))
        .unwrap();
    assert!(netloom(folder.path(), &["study", "study.toml", "--out", "out"]).status.success());
    assert!(before.iter().all(|time| written(folder.path()).contains(time)));
}
