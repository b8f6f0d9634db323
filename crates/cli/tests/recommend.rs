//! `netloom recommend`: answers, and what is wrong with questions.

use std::path::Path;
use std::process::{Command, Output};

fn netloom(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netloom")).current_dir(folder).args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

/// A question is answered with a winner where there is one, with none where schemes are the same, and leaves a study that repeats it.
#[test]
fn recommendations_name_a_winner_only_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let text = "topology = { kind = \"leaf-spine\", leaves = 4, spines = 4, hosts_per_leaf = 4 }\nworkload = { kind = \"permutation\", size = \"256KiB\" }\n";
    std::fs::write(at.join("s.toml"), text).unwrap();
    let ask = |more: &[&str]| {
        let words = [&["recommend", "s.toml", "--budget", "2min"], more].concat();
        let done = netloom(at, &words);
        assert!(done.status.success(), "{}", stderr(&done));
        stdout(&done)
    };
    let clear = ask(&["--among", "ecmp,spray", "--vary", "faults", "--out", "clear"]);
    assert_says(&clear, &["spray is the best of them, with 95% confidence", "out of order"]);
    let again = ask(&["--among", "ecmp,spray", "--vary", "faults", "--out", "clear", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert_eq!((&json["ended"], &json["circumstances"]), (&"decided".into(), &2.into()));
    assert_eq!(json["schemes"][1]["scheme"], "ecmp");
    // The study runs what was left out as well.
    let study = netloom(at, &["study", "clear/recommend.toml", "--dry-run"]);
    assert!(study.status.success(), "{}", stderr(&study));

    // With one path there is nothing to choose between.
    let same = ask(&[
        "--among",
        "ecmp,spray,letflow:granularity.gap=5us",
        "--set",
        "topology.spines=1",
        "--seeds",
        "4",
        "--out",
        "same",
    ]);
    assert_says(&same, &["cannot be told apart with the most seeds allowed"]);
    let wrong = netloom(at, &["recommend", "s.toml", "--among", "ecmp,spary"]);
    assert_says(&stderr(&wrong), &["did you mean `spray`?"]);
    assert_says(
        &stderr(&netloom(at, &["recommend", "s.toml", "--among", "ecmp"])),
        &["two schemes or more, found 1"],
    );
    assert_says(
        &stderr(&netloom(at, &["recommend", "s.toml", "--metric", "p98"])),
        &["there is no metric `p98`"],
    );
}
