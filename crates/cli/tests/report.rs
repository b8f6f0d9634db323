//! `netloom report` on the command line; `tests/test_report.py` looks at its page in a browser.

use std::path::Path;
use std::process::{Command, Output};

fn netloom(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netloom")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const SCENARIO: &str = "topology = { kind = \"crossbar\", hosts = 4 }\nworkload = { size = \"10KB\" }\n";

fn folder_with_a_run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.toml"), SCENARIO).unwrap();
    let output = netloom(folder.path(), &["run", "s.toml"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    folder
}

#[test]
fn a_report_lies_in_its_outcome_and_goes_with_it() {
    let folder = folder_with_a_run();
    let output = netloom(folder.path(), &["report", "runs/s"]);
    assert_eq!(text(&output.stdout), "report in runs/s/report.html\n", "{}", text(&output.stderr));
    let page = folder.path().join("runs/s/report.html");
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!doctype html>"));
    let again = netloom(folder.path(), &["run", "s.toml", "--force"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(!page.exists());
}

#[test]
fn the_same_outcomes_give_the_same_report() {
    let folder = folder_with_a_run();
    let page = |name: &str| {
        let output = netloom(folder.path(), &["report", "runs/s", "--out", name, "--title", "A title"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        std::fs::read(folder.path().join(name)).unwrap()
    };
    assert!(page("a.html") == page("b.html"));
}

#[test]
fn a_folder_that_is_no_outcome_is_refused_with_one_message() {
    let folder = folder_with_a_run();
    for (args, expected) in [
        (&["report", "runs"][..], "did you mean `runs/s`?"),
        (&["report", "runs/s", "nowhere"], "there is no such folder"),
        (&["report", "s.toml"], "it is no folder"),
    ] {
        let output = netloom(folder.path(), args);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}");
        let message = text(&output.stderr);
        assert!(message.contains(expected) && message.lines().count() <= 2, "{message}");
    }
    std::fs::remove_file(folder.path().join("runs/s/links.parquet")).unwrap();
    let output = netloom(folder.path(), &["report", "runs/s"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("links.parquet"), "{}", text(&output.stderr));
    assert!(!folder.path().join("runs/s/report.html").exists());
}
