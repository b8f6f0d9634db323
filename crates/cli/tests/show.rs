//! Outcomes and studies after the run: shown again, compared, freed of stale cells; and how much is printed.

use std::path::Path;
use std::process::{Command, Output};

const STUDY: &str = r#"
title = "Spraying against ECMP"
repetitions = 3

[scenario]
topology = { kind = "fat-tree", k = 4 }
workload = { kind = "permutation", size = "64KiB" }

[[axis]]
name = "scheme"
field = "routing.preset"
values = ["ecmp", "spray"]

[[claims]]
id = "order"
text = "Spraying reorders, ECMP does not"
expression = 'ooo_share("ecmp") == 0 and ooo_share("spray") > 0'
"#;

const SCENARIO: &str =
    "topology = { kind = \"fat-tree\", k = 4 }\nworkload = { kind = \"permutation\", size = \"64KiB\" }\n";

fn netloom_in(folder: &Path, columns: Option<&str>, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netloom"));
    command.args(args).current_dir(folder).env_remove("COLUMNS");
    if let Some(columns) = columns {
        command.env("COLUMNS", columns);
    }
    command.output().unwrap()
}

/// What a command prints that succeeds and complains of nothing.
fn said(folder: &Path, args: &[&str]) -> String {
    let output = netloom_in(folder, None, args);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success() && err.is_empty(), "{args:?}: {out}{err}");
    out
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    std::fs::write(folder.path().join("s.toml"), SCENARIO).unwrap();
    folder
}

#[test]
fn what_is_shown_again_is_what_was_printed() {
    let folder = folder();
    let folder = folder.path();
    let study = said(folder, &["study", "study.toml", "--out", "a"]);
    assert!(study.contains(" ± ") && study.contains("over the seeds"), "{study}");
    assert_eq!(study.strip_suffix("results in a\n"), Some(said(folder, &["show", "a"]).as_str()));
    let study = said(folder, &["study", "study.toml", "--out", "a", "--json"]);
    assert_eq!(study, said(folder, &["show", "a", "--json"]));

    let run = said(folder, &["run", "s.toml", "--out", "r"]);
    assert_eq!(run.strip_suffix("outcome    r\n"), Some(said(folder, &["show", "r"]).as_str()));
    let run = said(folder, &["run", "s.toml", "--out", "r", "--force", "--json"]);
    assert_eq!(run, said(folder, &["show", "r", "--json"]));

    let nothing = netloom_in(folder, None, &["show", "."]);
    let message = String::from_utf8(nothing.stderr).unwrap();
    assert_eq!(
        message,
        "error: DIR: . is neither an outcome nor a study: it contains neither summary.json nor study.json; did you mean `./a` or `./r`?\n"
    );
    std::fs::write(folder.join("a/study.json"), "{}").unwrap();
    let broken = netloom_in(folder, None, &["show", "a"]);
    assert!(
        String::from_utf8(broken.stderr).unwrap().starts_with("error: cannot read a/study.json: missing")
    );
}

#[test]
fn two_runs_differ_in_fields_and_numbers() {
    let folder = folder();
    let folder = folder.path();
    said(folder, &["run", "s.toml", "--out", "a"]);
    said(folder, &["run", "s.toml", "--out", "b", "--set", "routing.preset=spray"]);
    let same = said(folder, &["compare", "a", "a"]);
    assert!(same.contains("the scenarios are the same\n0 of "), "{same}");
    let text = said(folder, &["compare", "a", "b"]);
    for part in ["routing.granularity.kind", "\"flow\"", "\"packet\"", "FCT mean [us]", "out of order"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("workload.size"), "{text}");
}

#[test]
fn two_studies_differ_in_points_numbers_and_claims() {
    let folder = folder();
    let folder = folder.path();
    said(folder, &["study", "study.toml", "--out", "a"]);
    let other = STUDY
        .replace("\"ecmp\", \"spray\"", "\"ecmp\", \"letflow\"")
        .replace("64KiB", "1MiB")
        .replace("spray\") > 0'", "letflow\") > 0'\nuse = \"report\"");
    std::fs::write(folder.join("study.toml"), other).unwrap();
    said(folder, &["study", "study.toml", "--out", "b"]);
    let text = said(folder, &["compare", "a", "b"]);
    for part in ["only in A: scheme=spray", "only in B: scheme=letflow", "intervals apart"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains("claim order: holds (") && text.contains(") in A, does not hold ("), "{text}");

    said(folder, &["run", "s.toml", "--out", "r"]);
    let mixed = netloom_in(folder, None, &["compare", "a", "r"]);
    // As other commands answer a folder that they cannot take.
    assert_eq!(mixed.status.code(), Some(2));
    assert!(
        String::from_utf8(mixed.stderr).unwrap().contains("one is the outcome of a run, the other a study")
    );
}

#[test]
fn stale_cells_are_listed_and_removed_on_request() {
    let folder = folder();
    let folder = folder.path();
    let cells = || std::fs::read_dir(folder.join("a/cells")).unwrap().count();
    assert!(!said(folder, &["study", "study.toml", "--out", "a"]).contains("stale"));
    std::fs::write(folder.join("study.toml"), STUDY.replace("64KiB", "65KiB")).unwrap();
    let listed = said(folder, &["study", "study.toml", "--out", "a"]);
    assert!(listed.contains("6 stale cells are left from another"), "{listed}");
    assert!(
        listed.contains("\n  a/cells/scheme=ecmp_seed=1.") && listed.contains("… and 1 more"),
        "{listed}"
    );
    assert_eq!(cells(), 12);
    let cleaned = said(folder, &["study", "study.toml", "--out", "a", "--clean"]);
    assert!(cleaned.ends_with("6 stale cells removed\n"), "{cleaned}");
    assert_eq!(cells(), 6);
    assert!(!said(folder, &["study", "study.toml", "--out", "a", "--clean"]).contains("stale"));
}

#[test]
fn quiet_commands_print_nothing() {
    let folder = folder();
    let folder = folder.path();
    assert_eq!(said(folder, &["run", "s.toml", "--out", "r", "--quiet"]), "");
    assert_eq!(said(folder, &["study", "study.toml", "--out", "a", "--quiet", "--shard", "1/2"]), "");
    assert_eq!(said(folder, &["study", "study.toml", "--out", "a", "-q"]), "");
    std::fs::write(folder.join("study.toml"), STUDY.replace("== 0", "== 1")).unwrap();
    let output = netloom_in(folder, None, &["study", "study.toml", "--out", "a", "--quiet"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
}

#[test]
fn tables_fit_the_terminal() {
    let folder = folder();
    let folder = folder.path();
    said(folder, &["study", "study.toml", "--out", "a"]);
    said(folder, &["run", "s.toml", "--out", "r"]);
    for args in [&["show", "a"][..], &["show", "r"], &["compare", "a", "a"], &["route", "s.toml", "0", "15"]]
    {
        for columns in ["70", "100"] {
            let output = netloom_in(folder, Some(columns), args);
            let text = String::from_utf8(output.stdout).unwrap();
            let tables = text.lines().filter(|line| line.starts_with(['│', '╭']));
            for line in tables {
                assert!(line.chars().count() <= columns.parse().unwrap(), "{args:?} {columns}:\n{text}");
            }
        }
    }
    let narrow = String::from_utf8(netloom_in(folder, Some("70"), &["show", "a"]).stdout).unwrap();
    let wide = said(folder, &["show", "a"]);
    for heading in ["FCT mean [us]", "FCT p50 [us]", "slowdown p99", "out of order"] {
        assert!(narrow.contains(heading) && wide.contains(heading), "{narrow}");
    }
    // Two tables of results, and the claims one below the other.
    assert!(narrow.matches('╭').count() > 1 && narrow.contains("  verdict ") && wide.contains("│ claim"));
}
