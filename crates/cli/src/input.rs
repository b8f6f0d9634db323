//! From the command line to a document: a file, or a network in one word, with overrides.

use std::path::Path;

use netloom_scenario::{
    Node, Place, Problem, Problems, Scenario, Source, Table, Value, apply_override, read_kind,
};
use netloom_units::kind::Kind;

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
pub(crate) fn load_network(spec: &str, seed: Option<u64>) -> Result<Loaded, Failure> {
    let path = Path::new(spec);
    if path.extension().is_some_and(|extension| extension == "toml") || path.is_file() {
        return load(path, &Changes { set: Vec::new(), seed });
    }
    let topology = one_word("SPEC", spec)?;
    let mut document = Node::parse(&Source::new("SPEC", ""))?;
    let place = topology.place.clone();
    document.set(&["topology"], &place, topology)?;
    if let Some(seed) = seed {
        apply_override(&mut document, &format!("seed={seed}"))?;
    }
    let scenario = Scenario::read(&document)?;
    Ok(Loaded { document, scenario })
}

/// Reads a kind from one word of the command line, e.g. `worst-case:intensity=0.55`.
pub(crate) fn kind_in_one_word<K: Kind>(option: &str, text: &str) -> Result<K, Failure> {
    read_kind(&one_word(option, text)?, option).map_err(|problems| Failure::Input(Problems(problems)))
}

/// `kind:field=value,…` as the table of a kind; every word of it is placed in `text`.
fn one_word(option: &str, text: &str) -> Result<Node, Failure> {
    let source = Source::new(option, text);
    let (kind, fields) = text.split_once(':').unwrap_or((text, ""));
    let place = |start: usize, length: usize| Place { source: source.clone(), span: start..start + length };
    let mut table = Node { value: Value::Table(Table::default()), place: place(0, text.len()) };
    let kind_node = Node { value: Value::String(kind.to_owned()), place: place(0, kind.len()) };
    table.set(&["kind"], &place(0, kind.len()), kind_node)?;
    let mut start = kind.len() + 1;
    for part in split_fields(fields) {
        let Some((field, value)) = part.split_once('=') else {
            let problem = Problem::new("", format!("expected FIELD=VALUE, found `{part}`"));
            return Err(problem
                .at(&place(start, part.len()))
                .help("for example fat-tree:k=16,rate=400Gbps")
                .into());
        };
        let node = Node::parse_value(value, &source, start + field.len() + 1)?;
        let steps: Vec<&str> = field.trim().split('.').collect();
        table.set(&steps, &place(start, field.len()), node)?;
        start += part.len() + 1;
    }
    Ok(table)
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
    if start < text.len() {
        fields.push(&text[start..]);
    }
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
