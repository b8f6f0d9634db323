//! A kind of granularity or selector is known by its own file and by the line in the list of kinds, and nowhere else: whatever the rest of netloom wants to
//! know of it, the kind declares as a fact. So a new kind is one file and one line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The kinds of an axis, by the name of their variant, and the file or folder in which each is whole.
fn kinds(axis: &str) -> BTreeMap<String, String> {
    let list = read(&source().join(axis).join("mod.rs"));
    let kind = |line: &str| {
        let (_, kind) = line.trim().strip_prefix('"')?.split_once("\" => ")?;
        let (variant, config) = kind.split_once('(')?;
        let module = config.strip_prefix("Box<").unwrap_or(config).split_once("::")?.0;
        // The parameters of this one are those of path analysis.
        let module = if module == "netloom_paths" { "k_shortest" } else { module };
        Some((variant.to_owned(), format!("{axis}/{module}")))
    };
    list.lines().filter_map(kind).collect()
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The source files of all crates, without those of tests.
fn sources() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<_> =
        std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
                files.push(path);
            }
        }
    }
    files
}

/// What follows `axis::` in the code of a file, with the numbers of the lines; comments and the tests at its end left out.
fn variants<'t>(text: &'t str, axis: &str) -> Vec<(usize, &'t str)> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut found = Vec::new();
    for (number, line) in (1..).zip(code.lines()).filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices(axis) {
            let is_whole = !line[..at].ends_with(|before: char| before.is_alphanumeric());
            if is_whole && let Some(name) = line[at + axis.len()..].strip_prefix("::") {
                found.push((
                    number,
                    name.split(|character: char| !character.is_alphanumeric()).next().unwrap(),
                ));
            }
        }
    }
    found
}

#[test]
fn no_code_asks_which_kind_a_granularity_or_selector_is() {
    let mut elsewhere = Vec::new();
    for (axis, folder) in [("Granularity", "granularity"), ("Selector", "selector")] {
        let kinds = kinds(folder);
        assert!(kinds.len() > 10 && kinds.values().all(|home| home.len() > folder.len() + 1), "{kinds:?}");
        let mut own = 0;
        for file in sources() {
            let text = read(&file);
            for (line, variant) in variants(&text, axis) {
                let Some(home) = kinds.get(variant) else { continue };
                let home = source().join(home);
                let is_home = file == home.with_extension("rs") || file.starts_with(&home);
                own += usize::from(is_home);
                if !is_home && file != source().join("preset.rs") {
                    elsewhere.push(format!("{}:{line}: {axis}::{variant}", file.display()));
                }
            }
        }
        assert!(own > 1, "the files are found");
    }
    assert!(elsewhere.is_empty(), "state a fact of the kind instead:\n{}", elsewhere.join("\n"));
}
