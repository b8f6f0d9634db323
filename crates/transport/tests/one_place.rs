//! A kind of congestion control, reliability, shaping or reordering is one file and one line: nothing else in the sources tells kinds apart. What others need to know of a kind
//! they ask for by its facts.

use std::fs;
use std::path::{Path, PathBuf};

/// The axes: their enum, their folder in `src`.
const AXES: [(&str, &str); 4] = [
    ("Congestion", "congestion"),
    ("Reliability", "reliability"),
    ("Shaping", "shaping"),
    ("Reorder", "reorder"),
];

/// A line of a list: `"name" => Variant(module::Config),`.
#[derive(Debug)]
struct Kind {
    axis: &'static str,
    name: String,
    variant: String,
    /// Where it may be named: its file and the list.
    own: [PathBuf; 2],
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (axis, folder) in AXES {
        let folder = Path::new("crates/transport/src").join(folder);
        let list = folder.join("mod.rs");
        for line in fs::read_to_string(root().join(&list)).unwrap().lines() {
            let Some((name, rest)) = line.trim().strip_prefix('"').and_then(|rest| rest.split_once("\" => "))
            else {
                continue;
            };
            let (variant, config) = rest.split_once('(').unwrap();
            let module = config.split_once("::").unwrap().0;
            let own = [folder.join(module).with_extension("rs"), list.clone()];
            kinds.push(Kind { axis, name: name.into(), variant: variant.into(), own });
        }
    }
    kinds
}

/// Every source file outside tests, by its path in the repository, without comments and without the tests at its end.
fn sources() -> Vec<(PathBuf, String)> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    folders.extend([root().join("python/src"), root().join("benches/src")]);
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests.rs")
            {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
                // The kind that tests add is all test.
                let code = code.split("\nmod tests {").next().unwrap();
                let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                let code = code.collect::<Vec<_>>().join("\n");
                sources.push((path.strip_prefix(root()).unwrap().to_owned(), code));
            }
        }
    }
    sources
}

#[test]
fn kinds_are_told_apart_in_their_own_file_and_one_list_only() {
    let (kinds, sources) = (kinds(), sources());
    assert!(kinds.len() > 20 && sources.len() > 200, "{} kinds, {} files", kinds.len(), sources.len());
    // Presets are points of the product of the axes by name.
    let presets = Path::new("crates/transport/src/preset.rs");
    let mut found = Vec::new();
    for Kind { axis, name, variant, own } in &kinds {
        let variant = format!("{axis}::{variant}(");
        // By name they could be told apart, too; but "none" and "buffer" are other things as well. Converters write what others call theirs.
        let name = Some(format!("\"{name}\"")).filter(|_| name != "none" && name != "buffer");
        let runs = |path: &Path| {
            ["transport", "sim", "scenario"].iter().any(|of| path.starts_with(format!("crates/{of}")))
        };
        for (path, code) in &sources {
            let by_name = runs(path) && name.as_ref().is_some_and(|name| code.contains(name));
            let is_named = code.contains(&variant) || by_name;
            if is_named && path != presets && !own.contains(path) {
                found.push(format!("{variant}) in {}", path.display()));
            }
        }
    }
    // What holds where nothing is written.
    found.retain(|place| place != "Reorder::None() in crates/transport/src/reorder/mod.rs");
    assert!(found.is_empty(), "{found:#?}");
}

/// The kind that the unit tests add works (`congestion/aimd.rs`) though nothing but the list names it.
#[test]
fn a_kind_that_is_added_is_named_in_the_list_alone() {
    let aimd = kinds().into_iter().find(|kind| kind.name == "aimd").expect("it is in the list");
    let names = |code: &str| code.to_lowercase().contains("aimd");
    let mut places: Vec<PathBuf> =
        sources().into_iter().filter(|(_, code)| names(code)).map(|(path, _)| path).collect();
    places.sort();
    assert_eq!(places, aimd.own);
}
