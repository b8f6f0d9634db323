//! What is varied.

use netloom_scenario::{Node, Place, Problem, Section, Value};
use netloom_units::names::suggest;

use super::setting::{Setting, read_settings, steps};
use super::{Form, label_of, list};

/// One thing that is varied.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name, e.g. `scheme`.
    pub name: String,
    /// Labels of earlier axes; a point that carries none of them is not varied along this axis. Empty: all are.
    pub only: Vec<String>,
    /// Its values in the order in which they are run and shown.
    pub cases: Vec<Case>,
    /// Where it is written.
    place: Place,
}

/// One value of an axis.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name in tables and claims.
    pub label: String,
    /// Labels of earlier axes; a point that carries none of them does not take this value. Empty: all do.
    pub only: Vec<String>,
    /// Field paths with the values they get, in the order in which they are set.
    pub set: Vec<Setting>,
}

impl Axis {
    /// Whether `wanted`, a label or `axis=label`, means this case.
    pub(super) fn has_label(&self, case: &Case, wanted: &str) -> bool {
        case.label == wanted
            || wanted
                .split_once('=')
                .is_some_and(|(axis, label)| axis.trim() == self.name && label.trim() == case.label)
    }
}

pub(super) fn read_axis(node: &Node, path: &str, form: Form, problems: &mut Vec<Problem>) -> Option<Axis> {
    let mut section = Section::new(node, path, problems)?;
    let name: Option<String> = section.required("name");
    let only = section.node("only");
    let field = section.node("field");
    let values = section.node("values");
    let (small_values, full_values) = (section.node("small_values"), section.node("full_values"));
    let cases = section.node("cases");
    section.finish();
    let only = read_only(only, path, problems);
    let values = form.choose(small_values, full_values).or(values);
    let cases = match (field, values, cases) {
        (Some(field), Some(values), None) => read_values(&field, &values, path, problems),
        (None, None, Some(cases)) => {
            list(Some(cases), &format!("{path}.cases"), problems, |node, path, problems| {
                read_case(node, path, form, problems)
            })
        }
        _ => {
            let message = "expected either `field` and `values`, or `cases`";
            problems.push(Problem::new(path, message).at(&node.place));
            return None;
        }
    };
    if cases.is_empty() {
        problems.push(Problem::new(path, "this axis has no values").at(&node.place));
    }
    Some(Axis { name: name?, only: only?, cases, place: node.place.clone() })
}

/// A label, or a list of labels.
fn read_only(node: Option<Node>, path: &str, problems: &mut Vec<Problem>) -> Option<Vec<String>> {
    let Some(node) = node else { return Some(Vec::new()) };
    let labels: Option<Vec<String>> = match &node.value {
        Value::String(label) => Some(vec![label.clone()]),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    if labels.is_none() {
        let message =
            format!("expected a label of an earlier axis, or a list of labels, found {}", node.describe());
        problems.push(Problem::new(format!("{path}.only"), message).at(&node.place));
    }
    labels
}

fn read_values(field: &Node, values: &Node, path: &str, problems: &mut Vec<Problem>) -> Vec<Case> {
    let Some(name) = field.as_str() else {
        let message = format!("expected a field's path in quotes, found {}", field.describe());
        problems.push(Problem::new(format!("{path}.field"), message).at(&field.place));
        return Vec::new();
    };
    let Value::Array(items) = &values.value else {
        let message = format!("expected a list of values, found {}", values.describe());
        problems.push(Problem::new(format!("{path}.values"), message).at(&values.place));
        return Vec::new();
    };
    let setting =
        |value: &Node| Setting { path: steps(name), path_place: field.place.clone(), value: value.clone() };
    let case = |value: &Node| Case { label: label_of(value), only: Vec::new(), set: vec![setting(value)] };
    items.iter().map(case).collect()
}

fn read_case(node: &Node, path: &str, form: Form, problems: &mut Vec<Problem>) -> Option<Case> {
    let mut section = Section::new(node, path, problems)?;
    let label = section.required("label");
    let only = section.node("only");
    let set = section.node("set");
    let (small, full) = (section.node("small"), section.node("full"));
    section.finish();
    let only = read_only(only, path, problems);
    let mut set = read_settings(set, &format!("{path}.set"), problems);
    let small = read_settings(small, &format!("{path}.small"), problems);
    let full = read_settings(full, &format!("{path}.full"), problems);
    let of_form = form.choose(small, full);
    // What a form sets as a whole takes the place of what the case sets there, and is not merged with it.
    set.retain(|setting| !of_form.iter().any(|other| setting.path.starts_with(&other.path)));
    set.extend(of_form);
    Some(Case { label: label?, only: only?, set })
}

/// An `only` that names no label of an earlier axis would leave its axis or case out in silence.
pub(super) fn check_only(axes: &[Axis], problems: &mut Vec<Problem>) {
    for (i, axis) in axes.iter().enumerate() {
        let earlier = &axes[..i];
        let known = |label: &str| {
            earlier.iter().any(|axis| axis.cases.iter().any(|case| axis.has_label(case, label)))
        };
        for label in axis.only.iter().chain(axis.cases.iter().flat_map(|case| &case.only)) {
            if !known(label) {
                let labels = earlier.iter().flat_map(|axis| &axis.cases).map(|case| case.label.as_str());
                let message = format!("no axis before it has the label `{label}`");
                let problem = Problem::new(format!("axis.{i}.only"), message).at(&axis.place);
                problems.push(problem.help(suggest(label, labels)));
            }
        }
    }
}
