//! From the command line to a document: a file, or a network in one word, with overrides.

use std::path::Path;

use netloom_scenario::{Node, Problem, Scenario, Source, apply_override};

use crate::args::Changes;
use crate::failure::Failure;

/// A checked scenario with the document that says where each field was written.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) document: Node,
    pub(crate) scenario: Scenario,
}

/// Reads a scenario file and applies the overrides.
pub(crate) fn load(file: &Path, changes: &Changes) -> Result<Loaded, Failure> {
    let mut document = Node::parse(&Source::read(file)?)?;
    let mut overrides = changes.set.clone();
    overrides.extend(changes.seed.map(|seed| format!("seed={seed}")));
    if document.at(["name"]).is_none()
        && let Some(stem) = file.file_stem()
    {
        // A file's name is the name of a scenario that has none.
        overrides.insert(0, format!("name={:?}", stem.to_string_lossy()));
    }
    for text in &overrides {
        apply_override(&mut document, text)?;
    }
    let scenario = Scenario::read(&document)?;
    Ok(Loaded { document, scenario })
}

/// Reads what describes a network: a scenario file, or `kind:field=value,…`.
pub(crate) fn load_network(spec: &str, seed: Option<u32>) -> Result<Loaded, Failure> {
    let changes = Changes { set: Vec::new(), seed };
    let path = Path::new(spec);
    if path.extension().is_some_and(|extension| extension == "toml") || path.is_file() {
        return load(path, &changes);
    }
    let (kind, fields) = spec.split_once(':').unwrap_or((spec, ""));
    let source = Source::new("SPEC", spec);
    let mut document = Node::parse(&Source::new("SPEC", ""))?;
    let mut set = |field: &str, value: &str, start: usize| -> Result<(), Failure> {
        let node = Node::parse_value(value, &source, start)?;
        let place = node.place.clone();
        let steps: Vec<&str> = std::iter::once("topology").chain(field.split('.')).collect();
        Ok(document.set(&steps, &place, node)?)
    };
    set("kind", &format!("{kind:?}"), 0)?;
    let mut start = kind.len() + 1;
    for part in split_fields(fields) {
        let Some((field, value)) = part.split_once('=') else {
            let message = format!("expected FIELD=VALUE, found `{part}`");
            return Err(Problem::new("", message).help("for example fat-tree:k=16,rate=400Gbps").into());
        };
        set(field.trim(), value, start + field.len() + 1)?;
        start += part.len() + 1;
    }
    if let Some(seed) = seed {
        apply_override(&mut document, &format!("seed={seed}"))?;
    }
    let scenario = Scenario::read(&document)?;
    Ok(Loaded { document, scenario })
}

/// Splits at commas outside of brackets: `m=[4,4],w=[1,4]` has two fields.
fn split_fields(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let mut fields = Vec::new();
    let mut start = 0;
    for (i, c) in text.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                fields.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    fields.push(&text[start..]);
    fields.retain(|field| !field.is_empty());
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_in_one_word_may_hold_lists() {
        assert_eq!(split_fields("m=[4,4],w=[1,4],k=2"), ["m=[4,4]", "w=[1,4]", "k=2"]);
        assert!(split_fields("").is_empty());
    }
}
