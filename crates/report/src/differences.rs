//! What differs between scenarios, field by field.

use std::collections::BTreeMap;

use serde::Serialize;
use toml::{Table, Value};

/// A field that does not have the same value in all scenarios.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    field: String,
    /// By scenario; empty where it has no such field.
    values: Vec<String>,
}

/// The fields in which scenarios differ, in the order of their names. Seeds and names are no difference.
pub(crate) fn differences(scenarios: &[&str]) -> Vec<Difference> {
    let flat: Vec<BTreeMap<String, String>> = scenarios.iter().map(|text| fields(text)).collect();
    let mut names: Vec<&String> = flat.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let difference = |name: &String| {
        let values: Vec<String> =
            flat.iter().map(|fields| fields.get(name).cloned().unwrap_or_default()).collect();
        let differs = values.iter().any(|value| *value != values[0]);
        (differs && name != "seed" && name != "name").then(|| Difference { field: name.clone(), values })
    };
    names.into_iter().filter_map(difference).collect()
}

fn fields(scenario: &str) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    // An outcome's scenario was written by netloom; one that cannot be read differs in nothing that could be named.
    if let Ok(table) = scenario.parse::<Table>() {
        flatten("", &Value::Table(table), &mut fields);
    }
    fields
}

fn flatten(path: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Table(table) => table.iter().for_each(|(name, value)| flatten(&below(name), value, fields)),
        Value::Array(values) if values.iter().any(Value::is_table) => {
            values.iter().enumerate().for_each(|(i, value)| flatten(&below(&i.to_string()), value, fields));
        }
        Value::String(text) => {
            fields.insert(path.to_owned(), text.clone());
        }
        other => {
            fields.insert(path.to_owned(), other.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told() {
        let a = "seed = 1\nname = \"a\"\n[routing]\nselector = \"hash\"\nsize = 3\n[[faults]]\nlinks = 2\n";
        let b = "seed = 2\nname = \"b\"\n[routing]\nselector = \"random\"\nsize = 3\n";
        let found = differences(&[a, b]);
        let expected = [("faults.0.links", ["2", ""]), ("routing.selector", ["hash", "random"])];
        let expected = expected.map(|(field, values)| Difference {
            field: field.to_owned(),
            values: values.map(str::to_owned).to_vec(),
        });
        assert_eq!(found, expected);
    }
}
