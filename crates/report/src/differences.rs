//! What differs between scenarios, field by field.

use std::collections::BTreeMap;

use serde::Serialize;
use toml::{Table, Value};

/// A field that does not have the same value in all scenarios.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub(crate) field: String,
    /// The axis that alone decides on the value; `None` if it takes several.
    pub(crate) axis: Option<usize>,
    /// By label of the axis, or else by scenario; empty where there is no such field.
    values: Vec<String>,
    /// Whether all scenarios have the field, and not only some kinds.
    is_everywhere: bool,
}

/// The fields in which scenarios differ, in the order of their names. Seeds and names are no difference.
///
/// `labels` are those of every axis, `of` gives the labels of each scenario.
pub(crate) fn differences(scenarios: &[&str], labels: &[&[String]], of: &[&[String]]) -> Vec<Difference> {
    let flat: Vec<BTreeMap<String, String>> = scenarios.iter().map(|text| fields(text)).collect();
    let mut names: Vec<&String> = flat.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let difference = |name: &String| {
        let values: Vec<String> =
            flat.iter().map(|fields| fields.get(name).cloned().unwrap_or_default()).collect();
        let differs = values.iter().any(|value| *value != values[0]);
        if !differs || name == "seed" || name == "name" {
            return None;
        }
        let is_everywhere = flat.iter().all(|fields| fields.contains_key(name));
        let by_axis = labels.iter().enumerate().find_map(|(axis, labels)| {
            let values = by_label(labels, of.iter().zip(&values).map(|(of, value)| (&of[axis], value)))?;
            Some((axis, values))
        });
        let (axis, values) = by_axis.map_or((None, values), |(axis, values)| (Some(axis), values));
        Some(Difference { field: name.clone(), axis, values, is_everywhere })
    };
    names.into_iter().filter_map(difference).collect()
}

/// The value of every label, if scenarios with the same label have the same value.
fn by_label<'a>(
    labels: &[String],
    scenarios: impl Iterator<Item = (&'a String, &'a String)>,
) -> Option<Vec<String>> {
    let mut found: Vec<Option<&String>> = vec![None; labels.len()];
    for (label, value) in scenarios {
        let place = labels.iter().position(|known| known == label)?;
        if *found[place].get_or_insert(value) != value {
            return None;
        }
    }
    Some(found.into_iter().map(|value| value.cloned().unwrap_or_default()).collect())
}

/// The axis that chooses the scheme, which gives points their colour, and the one that chooses the network, which gives them their mark.
///
/// A name says it, or else what the axis decides on. Without either, the first axis and the next that are varied.
pub(crate) fn styles(axes: &[(&str, usize)], differences: &[Difference]) -> (Option<usize>, Option<usize>) {
    let varied = |axis: &usize| axes[*axis].1 > 1;
    let decides = |axis: usize, sections: &[&str]| {
        let is_of = |field: &str| sections.iter().any(|section| field.starts_with(section));
        differences.iter().filter(|found| found.axis == Some(axis) && is_of(&found.field)).count()
    };
    let best = |names: &[&str], sections: &[&str]| {
        let named = (0..axes.len()).filter(varied).find(|&axis| names.contains(&axes[axis].0));
        // Of axes that decide on equally many fields the first.
        named.or_else(|| {
            let counted = (0..axes.len()).rev().filter(varied).map(|axis| (decides(axis, sections), axis));
            counted.filter(|(count, _)| *count > 0).max_by_key(|(count, _)| *count).map(|(_, axis)| axis)
        })
    };
    let colour = best(&["scheme", "routing", "balancer"], &["routing.", "transport.", "congestion."])
        .or_else(|| (0..axes.len()).find(varied));
    let mark = best(&["network", "topology"], &["topology.", "servers.", "faults."])
        .filter(|axis| Some(*axis) != colour)
        .or_else(|| (0..axes.len()).filter(varied).find(|axis| Some(*axis) != colour));
    (colour, mark)
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

    const A: &str =
        "seed = 1\nname = \"a\"\n[routing]\nselector = \"hash\"\nsize = 3\n[[faults]]\nlinks = 2\n";
    const B: &str = "seed = 2\nname = \"b\"\n[routing]\nselector = \"random\"\nsize = 3\n";

    fn difference(field: &str, axis: Option<usize>, values: &[&str], is_everywhere: bool) -> Difference {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        Difference { field: field.to_owned(), axis, values, is_everywhere }
    }

    #[test]
    fn only_what_differs_is_told() {
        let found = differences(&[A, B], &[], &[&[], &[]]);
        let expected = [
            difference("faults.0.links", None, &["2", ""], false),
            difference("routing.selector", None, &["hash", "random"], true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_field_belongs_to_the_axis_that_decides_on_it() {
        let words = |words: [&str; 2]| words.map(str::to_owned);
        let (schemes, loads) = (words(["ecmp", "spray"]), words(["0.5", "0.9"]));
        let mut scenarios = Vec::new();
        let mut labels = Vec::new();
        for (i, scheme) in schemes.iter().enumerate() {
            for (j, load) in loads.iter().enumerate() {
                scenarios
                    .push(format!("load = {load}\nboth = {}\n[routing]\nselector = \"{scheme}\"\n", i * j));
                labels.push([scheme.clone(), load.clone()]);
            }
        }
        let texts: Vec<&str> = scenarios.iter().map(String::as_str).collect();
        let of: Vec<&[String]> = labels.iter().map(|labels| &labels[..]).collect();
        let found = differences(&texts, &[&schemes, &loads], &of);
        let expected = [
            difference("both", None, &["0", "0", "0", "1"], true),
            difference("load", Some(1), &["0.5", "0.9"], true),
            difference("routing.selector", Some(0), &["ecmp", "spray"], true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn schemes_have_colours_and_networks_marks() {
        let by = |field: &str, axis: usize| difference(field, Some(axis), &[], true);
        let found = [by("topology.kind", 0), by("routing.selector", 2), by("workload.load", 1)];
        assert_eq!(styles(&[("net", 2), ("load", 3), ("lb", 4)], &found), (Some(2), Some(0)));
        // A name counts more, and what is not varied needs no colour.
        assert_eq!(styles(&[("scheme", 2), ("load", 3), ("lb", 4)], &found), (Some(0), Some(1)));
        assert_eq!(styles(&[("net", 1), ("load", 3)], &[]), (Some(1), None));
        assert_eq!(styles(&[], &[]), (None, None));
    }
}
