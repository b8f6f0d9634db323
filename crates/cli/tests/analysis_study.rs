//! Analysis studies on the command line: the studies of the repository run, gates, broken studies.

use std::path::Path;
use std::process::{Command, Output};

const STUDY: &str = r#"
title = "Two hops in a clique"

[[network]]
id = "clique"
topology = { kind = "complete", switches = 9 }

[[measurement]]
kind = "diversity"
max_length = 2

[[claim]]
id = "all-paths"
statement = "every link of a router begins a path of at most two hops"
metric = "clique.diversity.cdp_mean"
equals = 1.0
tolerance = 1e-9
use = "gate"
source = "elementary"
"#;

fn netloom(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netloom")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn folder_with(study: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    folder
}

#[test]
fn studies_of_the_repository_run_in_their_small_form() {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/fatpaths");
    for (name, claim) in [("concentration", "R135.sf7"), ("fig-19-edge-density", "R133.hx2")] {
        let folder = tempfile::tempdir().unwrap();
        let study = studies.join(format!("{name}.toml"));
        let output = netloom(folder.path(), &["study", study.to_str().unwrap(), "--small"]);
        // Small networks need not do what the paper says of large ones.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains(claim), "{name}: {}", text(&output.stdout));
        let results = folder.path().join(format!("runs/fatpaths-{name}-small"));
        let csv = std::fs::read_to_string(results.join("results.csv")).unwrap();
        assert!(csv.starts_with("network,measurement,quantity,value\n") && csv.lines().count() > 3, "{csv}");
        let claims = std::fs::read_to_string(results.join("claims.json")).unwrap();
        let claims: serde_json::Value = serde_json::from_str(&claims).unwrap();
        assert!(claims.as_array().unwrap().iter().all(|claim| claim["measured"].is_string()));
    }
}

#[test]
fn gates_decide_the_exit_code() {
    let folder = folder_with(STUDY);
    let output = netloom(folder.path(), &["study", "study.toml", "--out", "out", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["claims"][0]["holds"], true);
    assert_eq!(json["results"]["clique.diversity.cdp_mean"], 1.0);

    let folder = folder_with(&STUDY.replace("equals = 1.0", "equals = 0.5"));
    let output = netloom(folder.path(), &["study", "study.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("NO (gate)"), "{}", text(&output.stdout));

    let folder = folder_with(&STUDY.replace("equals = 1.0", "equals = 0.5").replace("gate", "report"));
    assert_eq!(netloom(folder.path(), &["study", "study.toml"]).status.code(), Some(0));
}

#[test]
fn a_broken_study_is_refused_with_its_place() {
    let breaks = [
        ("switches = 9", "swiches = 9", &["study.toml:6:", "swiches"][..]),
        ("max_length", "max_lenght", &["study.toml:8:", "measurement.0", "max_lenght"]),
        (
            "clique.diversity.cdp",
            "star.diversity.cdp",
            &["study.toml:15:", "claim.0.metric", "nothing measures"],
        ),
        ("clique.diversity.cdp_mean", "clique.diversity.x", &["gives no clique.diversity.x"]),
        ("id = \"clique\"", "id = \"a.b\"", &["study.toml:5:", "network.0.id", "without dots"]),
        ("\"complete\", switches = 9", "\"crossbar\", hosts = 4", &["study.toml:8:", "at least two routers"]),
        ("[[network]]", "scenario = {}\n[[network]]", &["either a `scenario` or measurements"]),
        ("[[measurement]]", "[[measure]]", &["neither a `scenario` nor a [[measurement]]"]),
        ("title = ", "title == ", &["study.toml:2:"]),
    ];
    for (from, to, expected) in breaks {
        let folder = folder_with(&STUDY.replace(from, to));
        let output = netloom(folder.path(), &["study", "study.toml"]);
        assert_eq!(output.status.code(), Some(2), "{to}: {}", text(&output.stderr));
        for part in expected {
            assert!(text(&output.stderr).contains(part), "{part}: {}", text(&output.stderr));
        }
        assert!(!folder.path().join("runs/study/claims.json").exists());
    }
}

#[test]
fn options_of_simulation_studies_are_refused() {
    let folder = folder_with(STUDY);
    for option in [["--set", "topology.k=8"], ["--workers", "2"]] {
        let output = netloom(folder.path(), &[&["study", "study.toml"], &option[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("analysis study"), "{}", text(&output.stderr));
    }
}
