//! `kill -9` at any moment of a study loses no finished cell and leaves nothing behind.
//!
//! The short form runs with the other tests; `make kill-test` kills a hundred times.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Instant, SystemTime};

/// Cells of some tens of milliseconds: a random moment falls into the writing of one often enough.
const STUDY: &str = r#"
title = "Cells to be killed"
repetitions = 12

[scenario]
topology = { kind = "fat-tree", k = 4 }
workload = { kind = "permutation", size = "512KiB" }

[[axis]]
name = "scheme"
field = "routing.preset"
values = ["ecmp", "spray", "flowcut-nic"]

[[claims]]
id = "order"
text = "ECMP does not reorder"
expression = 'ooo_share("ecmp") == 0'
"#;

fn start(folder: &Path, out: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netloom"));
    command.args(["study", "study.toml", "--workers", "2", "--out", out]).current_dir(folder);
    command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
}

fn complete(folder: &Path, out: &str) -> String {
    assert!(start(folder, out).wait().unwrap().success());
    std::fs::read_to_string(folder.join(out).join("results.csv")).unwrap()
}

/// Every finished cell and when it was written.
fn finished(cells: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let Ok(entries) = std::fs::read_dir(cells) else { return BTreeMap::new() };
    let folders = entries.map(|entry| entry.unwrap().path());
    let written = |folder: PathBuf| {
        let is_hidden = folder.file_name().unwrap().to_string_lossy().starts_with('.');
        let written = folder.join("summary.json").metadata().and_then(|file| file.modified()).ok();
        (!is_hidden)
            .then(|| (folder.clone(), written.unwrap_or_else(|| panic!("{folder:?} is no whole cell"))))
    };
    folders.filter_map(written).collect()
}

fn kill(times: u32) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    let begun = Instant::now();
    let reference = complete(folder.path(), "reference");
    let whole = begun.elapsed();

    let cells = folder.path().join("out/cells");
    let mut random = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    println!("random moments from {random}");
    let mut before = BTreeMap::new();
    let mut gained = 0;
    for _ in 0..times {
        let mut child = start(folder.path(), "out");
        // xorshift64 (Marsaglia): the moments need not be good, only different.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        sleep(whole.mul_f64((random >> 11) as f64 / (1u64 << 53) as f64 / 2.0));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = finished(&cells);
        for (cell, time) in &before {
            assert_eq!(now.get(cell), Some(time), "{cell:?} was lost or run again");
        }
        gained += now.len() - before.len();
        before = now;
        if before.len() == 36 {
            assert_eq!(complete(folder.path(), "out"), reference);
            std::fs::remove_dir_all(folder.path().join("out")).unwrap();
            before.clear();
        }
    }
    println!("{times} kills, {gained} cells finished between them");
    assert_eq!(
        complete(folder.path(), "out"),
        reference,
        "the results are those of a study that nobody killed"
    );
    for (cell, time) in before {
        assert_eq!(finished(&cells).get(&cell), Some(&time), "{cell:?} was run again");
    }
    let left: Vec<PathBuf> = std::fs::read_dir(&cells)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("partial"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn three_kills_lose_no_finished_cell() {
    kill(3);
}

#[test]
#[ignore = "long: `make kill-test`"]
fn a_hundred_kills_lose_no_finished_cell() {
    kill(100);
}
