//! Studies of networks on the command line: those of the repository run, gates, broken studies.

use std::path::Path;
use std::process::{Command, Output};

const STUDY: &str = r#"
title = "Two hops in a clique"

[analysis]
topology = { kind = "complete", switches = 9 }
measurement = { kind = "diversity", max_length = 2 }

[[claims]]
id = "all-paths"
text = "every link of a router begins a path of at most two hops"
expression = 'near(cdp_mean(), 1, 1e-9)'
value = 'cdp_mean()'
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
    let mut count = 0;
    for entry in std::fs::read_dir(studies).unwrap() {
        let study = entry.unwrap().path();
        let folder = tempfile::tempdir().unwrap();
        let output = netloom(folder.path(), &["study", study.to_str().unwrap(), "--small", "--out", "out"]);
        // Small networks need not do what the paper says of large ones.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{study:?}: {}", text(&output.stderr));
        let csv = std::fs::read_to_string(folder.path().join("out/results.csv")).unwrap();
        assert!(csv.starts_with("network,") && csv.lines().count() > 3, "{study:?}: {csv}");
        let claims = std::fs::read_to_string(folder.path().join("out/study.json")).unwrap();
        let claims: serde_json::Value = serde_json::from_str(&claims).unwrap();
        for claim in claims["claims"].as_array().unwrap() {
            assert!(claim["holds"].is_boolean(), "{study:?}: {claim}");
        }
        count += 1;
    }
    assert_eq!(count, 10);
}

#[test]
fn gates_decide_the_exit_code() {
    let folder = folder_with(STUDY);
    let output = netloom(folder.path(), &["study", "study.toml", "--out", "out", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["claims"][0]["holds"], true);
    assert_eq!(json["results"][0]["values"]["cdp_mean"], 1.0);

    let folder = folder_with(&STUDY.replace("(), 1,", "(), 0.5,"));
    let output = netloom(folder.path(), &["study", "study.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("does not hold (GATE FAILS)"), "{}", text(&output.stdout));

    let folder = folder_with(&STUDY.replace("(), 1,", "(), 0.5,").replace("gate", "report"));
    assert_eq!(netloom(folder.path(), &["study", "study.toml"]).status.code(), Some(0));
}

#[test]
fn a_broken_study_is_refused_with_its_place() {
    let breaks = [
        (
            "switches = 9",
            "swiches = 9",
            &["study.toml:5:", "topology.swiches", "did you mean `switches`?"][..],
        ),
        ("max_length", "max_lenght", &["study.toml:6:", "measurement.max_lenght"]),
        (
            "cdp_mean(), 1",
            "cdp_meen(), 1",
            &["study.toml:11:20", "claims.0.expression", "there is no metric `cdp_meen`"],
        ),
        ("cdp_mean(), 1", "cdp_mean(\"star\"), 1", &["no cell carries the label \"star\""]),
        ("cdp_mean(), 1,", "cdp_mean(),", &["`near` takes three numbers"]),
        ("\"complete\", switches = 9", "\"crossbar\", hosts = 4", &["study.toml:5:", "at least two routers"]),
        (
            "\"complete\", switches = 9",
            "\"slim-fly\", q = 6",
            &["study.toml:5:", "topology.q", "prime power"],
        ),
        ("[analysis]", "scenario = {}\n[analysis]", &["either a `scenario` or an `analysis`"]),
        ("[analysis]", "[analyses]", &["neither a `scenario` nor an `analysis`"]),
        ("title = ", "title == ", &["study.toml:2:"]),
    ];
    for (from, to, expected) in breaks {
        let folder = folder_with(&STUDY.replace(from, to));
        let output = netloom(folder.path(), &["study", "study.toml"]);
        assert_eq!(output.status.code(), Some(2), "{to}: {}", text(&output.stderr));
        for part in expected {
            assert!(text(&output.stderr).contains(part), "{part}: {}", text(&output.stderr));
        }
        assert!(!folder.path().join("runs").exists());
    }
}

#[test]
fn fields_are_set_and_measurements_are_not_taken_twice() {
    let folder = folder_with(STUDY);
    let args = ["study", "study.toml", "--set", "topology.switches=12", "--workers", "2", "--out", "out"];
    assert!(netloom(folder.path(), &args).status.success());
    let cells = || {
        let cells =
            std::fs::read_dir(folder.path().join("out/cells")).unwrap().map(|entry| entry.unwrap().path());
        cells.filter(|cell| cell.join("quantities.json").exists()).collect::<Vec<_>>()
    };
    let [cell] = &cells()[..] else { panic!("{:?}", cells()) };
    assert!(std::fs::read_to_string(cell.join("analysis.toml")).unwrap().contains("switches = 12"));
    // What is there is taken as it is.
    std::fs::write(cell.join("quantities.json"), "{ \"cdp_mean\": 0.5 }").unwrap();
    let output = netloom(folder.path(), &args);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("0.5"), "{}", text(&output.stdout));
}
