//! Where `--export` and `--out` may point to.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

fn netloom(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netloom"));
    command.args(args).current_dir(folder);
    command
}

fn export(folder: &Path, file: &str) -> Command {
    netloom(folder, &["topology", "crossbar:hosts=2", "--export", file, "--format", "edge-list"])
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn an_export_follows_links() {
    let folder = tempfile::tempdir().unwrap();
    symlink("net.txt", folder.path().join("link.txt")).unwrap();
    for _ in 0..2 {
        let output = export(folder.path(), "link.txt").output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert!(folder.path().join("link.txt").is_symlink());
        assert!(fs::read_to_string(folder.path().join("net.txt")).unwrap().contains("h1 s0"));
    }
}

#[test]
fn an_export_is_written_to_a_fifo() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut child = export(folder.path(), "fifo").stdout(Stdio::null()).spawn().unwrap();
    // A reader of its own: it waits until somebody opens the FIFO to write.
    let read = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).unwrap()
    });
    assert!(child.wait().unwrap().success());
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo(), "it is still a FIFO");
    assert!(read.join().unwrap().contains("h1 s0"));
}

#[test]
fn an_export_to_standard_output_stands_beside_the_table() {
    let folder = tempfile::tempdir().unwrap();
    // A link of our own, as /dev/stdout is one: what is wrong here must not break the machine.
    symlink("/proc/self/fd/1", folder.path().join("stdout")).unwrap();
    let piped = export(folder.path(), "stdout").output().unwrap();
    assert!(piped.status.success(), "{}", text(&piped));
    let file = folder.path().join("printed");
    let status = export(folder.path(), "stdout").stdout(fs::File::create(&file).unwrap()).status().unwrap();
    assert!(status.success());
    let mut printed = String::new();
    fs::File::open(&file).unwrap().read_to_string(&mut printed).unwrap();
    for printed in [printed, String::from_utf8(piped.stdout).unwrap()] {
        assert!(printed.contains("h1 s0") && printed.contains("diameter"), "{printed}");
    }
    assert!(folder.path().join("stdout").is_symlink());
}

#[test]
fn an_outcome_below_a_link_that_leads_nowhere_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.toml"), "topology = { kind = \"crossbar\", hosts = 2 }\n").unwrap();
    symlink("nowhere", folder.path().join("out")).unwrap();
    let output = netloom(folder.path(), &["run", "s.toml", "--out", "out"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(output.stdout.is_empty() && text(&output).contains("link"), "{}", text(&output));
    fs::create_dir(folder.path().join("nowhere")).unwrap();
    let output = netloom(folder.path(), &["run", "s.toml", "--out", "out"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(folder.path().join("out").is_symlink() && folder.path().join("nowhere/summary.json").is_file());
}

#[test]
fn the_tables_of_path_analysis_are_written_all_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let paths = |out: &str| {
        netloom(folder.path(), &["paths", "complete:switches=4", "--samples", "5", "--out", out])
            .output()
            .unwrap()
    };
    assert!(paths("tables").status.success());
    let names = |out: &str| fs::read_dir(folder.path().join(out)).unwrap().count();
    let all = names("tables");
    assert!(all > 2);
    assert!(paths("tables").status.success(), "replaced");
    assert_eq!(names("tables"), all);
    fs::create_dir_all(folder.path().join("bad/diversity.parquet")).unwrap();
    let output = paths("bad");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("diversity.parquet"), "{}", text(&output));
    assert_eq!(names("bad"), 1, "none of the other tables");
    fs::create_dir(folder.path().join("notes")).unwrap();
    fs::write(folder.path().join("notes/a.txt"), "").unwrap();
    for (out, expected) in [
        ("notes", "it contains `a.txt`, which is not a table of `netloom paths`"),
        (".", "working directory"),
        ("notes/a.txt", "Not a directory"),
    ] {
        let output = paths(out);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(output.stdout.is_empty() && text(&output).contains(expected), "{}", text(&output));
    }
    assert_eq!(names("notes"), 1);
}

/// Whenever the process is killed, the folder is that of one run, or not there.
#[test]
fn killed_path_analysis_leaves_all_tables_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let start = |out: &str, seed: u64| {
        let seed = format!("--seed={seed}");
        let args = ["paths", "jellyfish:switches=30,degree=5", "--samples", "20", &seed, "--out", out];
        netloom(folder.path(), &args).stdout(Stdio::null()).spawn().unwrap()
    };
    let read = |out: &str| -> Option<BTreeMap<_, _>> {
        let entries = fs::read_dir(folder.path().join(out)).ok()?;
        Some(
            entries
                .map(|entry| entry.unwrap())
                .map(|e| (e.file_name(), fs::read(e.path()).unwrap()))
                .collect(),
        )
    };
    let begun = Instant::now();
    assert!(start("0", 0).wait().unwrap().success());
    let whole = begun.elapsed();
    assert!(start("1", 1).wait().unwrap().success());
    let known = [read("0"), read("1")];
    assert!(known[0] != known[1] && known[0].as_ref().is_some_and(|tables| tables.len() == 4));
    let (mut none, mut changed) = (0, 0);
    for round in 0..60 {
        let out = if round < 20 { format!("fresh-{round}") } else { "tables".to_owned() };
        let before = read(&out);
        let mut child = start(&out, round % 2);
        // On a busy machine a run may take twice as long as the first one.
        std::thread::sleep(whole.mul_f64(round as f64 % 20.0 / 8.0 + 0.3));
        child.kill().unwrap();
        child.wait().unwrap();
        let after = read(&out);
        none += u32::from(after.is_none());
        changed += u32::from(after != before);
        assert!(after == before || after == known[round as usize % 2], "a mixture in {out}");
    }
    assert!(none > 0 && changed > 0, "kills came before the end and after it: {none}, {changed}");
}
