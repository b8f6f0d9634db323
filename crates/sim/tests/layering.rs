//! The files of this crate build on each other without circles: none of more than two files, so that each can be read by what it imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What each module imports from other modules of the crate.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The sources below a folder, by the path of the module: `crate::host::tx`.
fn sources(folder: &Path, module: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let inner = format!("{module}::{stem}");
        match (path.is_dir(), stem.as_str()) {
            (true, _) => sources(&path, &inner, found),
            (false, "mod" | "lib") => _ = found.insert(module.to_owned(), read(&path)),
            (false, _) => _ = found.insert(inner, read(&path)),
        }
    }
}

fn read(path: &Path) -> String {
    let source = std::fs::read_to_string(path).unwrap();
    // What tests import does not count.
    source.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned()
}

/// A path as an import has it, absolute; none if it leads out of the crate.
fn absolute(module: &str, path: &str) -> Option<String> {
    let (mut base, mut rest) = (module, path.trim());
    if let Some(rest) = rest.strip_prefix("crate::") {
        return Some(format!("crate::{rest}"));
    }
    rest = rest.strip_prefix("self::").unwrap_or(rest);
    while let Some(above) = rest.strip_prefix("super::") {
        (base, rest) = (base.rsplit_once("::")?.0, above);
    }
    (rest.len() < path.trim().len()).then(|| format!("{base}::{rest}"))
}

/// The paths that a source imports from the crate, absolute.
fn paths(module: &str, source: &str) -> Vec<String> {
    let statements = source.split("use ").skip(1).filter_map(|statement| statement.split_once(';'));
    let of_statement = |(statement, _): (&str, &str)| -> Vec<String> {
        let (prefix, names) = statement.split_once('{').unwrap_or((statement, ""));
        let names = names.trim_end_matches('}').split(',').map(str::trim);
        absolute(module, prefix)
            .into_iter()
            .flat_map(|path| names.clone().map(move |name| path.clone() + name))
            .collect()
    };
    statements.flat_map(of_statement).collect()
}

/// What imports what, where a path counts for the innermost module that it leads into.
fn imports(sources: &BTreeMap<String, String>) -> Imports {
    let module_of = |path: &str| {
        let mut path = path.trim_end_matches("::");
        while !sources.contains_key(path) {
            path = path.rsplit_once("::")?.0;
        }
        Some(path.to_owned())
    };
    let imported = |module: &str, source: &str| {
        let others = paths(module, source).into_iter().filter_map(|path| module_of(&path));
        others.filter(|other| other != module).collect()
    };
    sources.iter().map(|(module, source)| (module.clone(), imported(module, source))).collect()
}

/// All that can be reached from a module by imports.
fn reached<'a>(imports: &'a Imports, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = imports[from].iter().map(String::as_str).collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(imports[module].iter().map(String::as_str));
        }
    }
    reached
}

/// The largest set of modules that all lead to each other.
fn largest_circle(imports: &Imports) -> BTreeSet<&str> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (module.as_str(), reached(imports, module))).collect();
    let circle = |module: &str| -> BTreeSet<&str> {
        reached[module].iter().copied().filter(|other| reached[other].contains(module)).collect()
    };
    imports.keys().map(|module| circle(module)).max_by_key(BTreeSet::len).unwrap_or_default()
}

#[test]
fn no_more_than_two_files_import_each_other_in_a_circle() {
    let mut found = BTreeMap::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "crate", &mut found);
    // Tests of the crate look into everything.
    found.retain(|module, _| !module.starts_with("crate::checks") && module != "crate");
    let imports = imports(&found);
    assert!(imports["crate::host::tx"].contains("crate::host::connections"), "imports are not understood");
    assert!(imports.values().map(BTreeSet::len).sum::<usize>() > 200, "imports are not understood");
    let circle = largest_circle(&imports);
    assert!(circle.len() <= 2, "{circle:?} import each other");
}

#[test]
fn a_circle_of_three_is_seen_through_every_kind_of_import() {
    let source = |module: &str, source: &str| (format!("crate::{module}"), source.to_owned());
    let found = [
        source("a", "use std::fmt;\n\nuse crate::b::{One, inner::Two};\n"),
        source("b", "use self::inner::Three;\n"),
        source("b::inner", "pub(crate) use super::super::c::Four;\nuse crate::c;\n"),
        source("c", "use super::a::Five;\n"),
        source("d", "use crate::a::Six;\n"),
    ];
    let imports = imports(&found.into_iter().collect());
    assert_eq!(largest_circle(&imports).len(), 4);
    assert!(reached(&imports, "crate::d").len() == 4 && !reached(&imports, "crate::a").contains("crate::d"));
}
