//! From a file, or a network in one word, to a document.

use std::path::Path;

use crate::document::{Node, Table, Value, apply_override};
use crate::source::{Place, Problem, Problems, Source};

/// Reads a scenario file and applies overrides such as `routing.granularity.gap=50us`. A scenario without a name takes
/// its file's.
///
/// # Errors
/// A file that cannot be read or is no TOML, and overrides as in [`apply_override`].
pub fn load(file: &Path, overrides: &[String]) -> Result<Node, Problems> {
    let mut document = Node::parse(&Source::read(file)?)?;
    if document.at(["name"]).is_none()
        && let Some(stem) = file.file_stem()
    {
        apply_override(&mut document, &format!("name={:?}", stem.to_string_lossy()))?;
    }
    apply_overrides(&mut document, overrides)?;
    Ok(document)
}

/// Reads what describes a network: a scenario file, or `kind:field=value,…`.
///
/// # Errors
/// As [`load`] and [`one_word`].
pub fn load_network(spec: &str, overrides: &[String]) -> Result<Node, Problems> {
    let path = Path::new(spec);
    if path.extension().is_some_and(|extension| extension == "toml") || path.is_file() {
        return load(path, overrides);
    }
    let topology = one_word("SPEC", spec)?;
    let mut document = Node::parse(&Source::new("SPEC", ""))?;
    let place = topology.place.clone();
    document.set(&["topology"], &place, topology)?;
    apply_overrides(&mut document, overrides)?;
    Ok(document)
}

/// Applies overrides in the order given.
///
/// # Errors
/// As [`apply_override`].
pub fn apply_overrides(document: &mut Node, overrides: &[String]) -> Result<(), Problem> {
    overrides.iter().try_for_each(|text| apply_override(document, text))
}

/// `kind:field=value,…` as the table of a kind; every word of it is placed in `text`, which errors call `name`.
///
/// # Errors
/// A part without `=`, or a value that is none.
pub fn one_word(name: &str, text: &str) -> Result<Node, Problems> {
    let source = Source::new(name, text);
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
pub fn split_fields(text: &str) -> Vec<&str> {
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
