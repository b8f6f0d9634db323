//! `netloom init`: what it writes runs, and what is there stays.

use std::path::Path;
use std::process::{Command, Output};

fn netloom(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netloom")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn what_is_written_runs_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for (what, command) in [
        ("fat-tree", "run"),
        ("gpu-cluster", "run"),
        ("uet", "run"),
        ("slim-fly", "run"),
        ("study", "study"),
        ("gpu-study", "study"),
        ("slim-fly-study", "study"),
    ] {
        let written = netloom(folder.path(), &["init", what]);
        assert!(written.status.success(), "{}", text(&written.stderr));
        let file = format!("{what}.toml");
        assert!(text(&written.stdout).ends_with(&format!("next: netloom {command} {file}\n")));
        let ran = netloom(folder.path(), &[command, &file, "--strict"]);
        assert!(ran.status.success(), "{what}: {}{}", text(&ran.stdout), text(&ran.stderr));
        let comments = std::fs::read_to_string(folder.path().join(&file)).unwrap();
        assert!(comments.contains(&format!("netloom {command} {file}")) && !comments.contains("FILE"));
    }
}

#[test]
fn no_file_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), "mine").unwrap();
    let refused = netloom(folder.path(), &["init", "slim-fly", "mine.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("mine.toml exists and is not overwritten"));
    assert_eq!(std::fs::read_to_string(folder.path().join("mine.toml")).unwrap(), "mine");
    assert!(netloom(folder.path(), &["init", "slim-fly", "other.toml"]).status.success());
}
