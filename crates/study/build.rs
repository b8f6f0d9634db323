//! What identifies a build: a hash of all sources that a cell's result depends on, the same in whatever they are linked into.
//!
//! Those are this crate and what it depends on in the workspace, and the lock file for everything else.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let crates = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("..");
    let mut names = BTreeSet::new();
    collect("study", &crates, &mut names)?;
    let mut files = vec![crates.join("../Cargo.lock")];
    for name in &names {
        files.push(crates.join(name).join("Cargo.toml"));
        sources(&crates.join(name).join("src"), &mut files)?;
    }
    files.sort();
    let mut hash = Fnv::new();
    // Floating point may come out otherwise on another kind of processor.
    hash.add(env("CARGO_CFG_TARGET_ARCH").as_bytes());
    for file in &files {
        hash.add(file.strip_prefix(&crates).unwrap_or(file).to_string_lossy().as_bytes());
        // A package that is built from an archive of its sources may have no lock file.
        hash.add(&fs::read(file).unwrap_or_default());
        println!("cargo::rerun-if-changed={}", file.display());
    }
    for name in names {
        // A file that is added or taken away changes its folder.
        println!("cargo::rerun-if-changed={}", crates.join(name).join("src").display());
    }
    println!("cargo::rustc-env=NETLOOM_SOURCES={:032x}", hash.0);
    Ok(())
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// A crate of the workspace and those that it depends on.
fn collect(name: &str, crates: &Path, names: &mut BTreeSet<String>) -> io::Result<()> {
    if !names.insert(name.to_owned()) {
        return Ok(());
    }
    let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml"))?;
    let dependencies =
        manifest.split("\n[").find(|table| table.starts_with("dependencies]")).unwrap_or_default();
    for line in dependencies.lines() {
        if let Some(rest) = line.strip_prefix("netloom-") {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
            collect(&rest[..end], crates, names)?;
        }
    }
    Ok(())
}

/// All files below a folder.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { sources(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

include!("src/fnv.rs");
