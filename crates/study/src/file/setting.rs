//! Fields and the values they get.

use netloom_scenario::{Node, Place, Problem, Value};

/// A field and the value it gets.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The field, e.g. `["routing", "preset"]`.
    pub path: Vec<String>,
    /// Where the field is named.
    pub path_place: Place,
    /// The value.
    pub value: Node,
}

/// The steps of a dotted path.
pub(super) fn steps(path: &str) -> Vec<String> {
    path.split('.').map(|step| step.trim().to_owned()).collect()
}

/// Reads `{ "routing.preset" = "ecmp", transport = { window = "1MiB" } }`: keys are paths, and tables without a `kind`
/// are paths too.
pub(super) fn read_settings(node: Option<Node>, path: &str, problems: &mut Vec<Problem>) -> Vec<Setting> {
    let mut settings = Vec::new();
    if let Some(node) = node {
        if node.as_table().is_none() {
            let message = format!("expected a table of fields and values, found {}", node.describe());
            problems.push(Problem::new(path, message).at(&node.place));
        }
        flatten(&node, &[], &mut settings);
    }
    // A kind or preset comes before the parameters written with it, which it must have.
    settings
        .sort_by_key(|setting| !matches!(setting.path.last().map(String::as_str), Some("kind" | "preset")));
    settings
}

fn flatten(node: &Node, above: &[String], settings: &mut Vec<Setting>) {
    for entry in node.as_table().into_iter().flat_map(|table| &table.0) {
        let mut path = above.to_vec();
        path.extend(steps(&entry.key));
        match &entry.node.value {
            // An empty one gives the defaults of what is absent otherwise, as in `"fabric.qcn" = {}`.
            Value::Table(table) if table.get("kind").is_none() && !table.0.is_empty() => {
                flatten(&entry.node, &path, settings);
            }
            _ => {
                let (path_place, value) = (entry.key_place.clone(), entry.node.clone());
                settings.push(Setting { path, path_place, value });
            }
        }
    }
}

/// Makes the changes, in order.
pub(crate) fn apply(document: &mut Node, settings: &[Setting], problems: &mut Vec<Problem>) {
    for setting in settings {
        let path: Vec<&str> = setting.path.iter().map(String::as_str).collect();
        if let Err(problem) = document.set(&path, &setting.path_place, setting.value.clone()) {
            problems.push(problem);
        }
    }
}
