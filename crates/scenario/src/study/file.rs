//! The study as it is written.

use serde::Deserialize;

use crate::document::{Node, Value};
use crate::section::Section;
use crate::source::{Place, Problem, Problems, Source};
use crate::study::expression::Expression;

/// A study: a scenario, axes laid over it, and claims about the results.
#[derive(Clone, Debug)]
pub struct Study {
    /// What the study shows.
    pub title: String,
    /// The scenario that every cell starts from, as it was written.
    pub scenario: Node,
    /// How many seeds each point is run with.
    pub repetitions: u32,
    /// What is varied; every combination is a point.
    pub axes: Vec<Axis>,
    /// What the results should show.
    pub claims: Vec<Claim>,
}

/// One thing that is varied.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name, e.g. `scheme`.
    pub name: String,
    /// A label without which a cell is not varied along this axis.
    pub only: Option<String>,
    /// Its values in the order in which they are run and shown.
    pub points: Vec<Point>,
}

/// One value of an axis.
#[derive(Clone, Debug)]
pub struct Point {
    /// What it is called in tables and claims.
    pub label: String,
    /// Field paths with the values they get, in the order in which they are set.
    pub set: Vec<Setting>,
}

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

/// A named comparison over the results.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Short name, e.g. `R2`.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// The claim as a comparison.
    pub expression: Expression,
    /// A number to show beside the published one; the sides of the comparison if absent.
    pub value: Option<Expression>,
    /// What the source reports, in its words or numbers.
    pub published: String,
    /// Whether a failure fails the study.
    pub role: Use,
    /// Paper, section, figure.
    pub source: String,
    /// What a reader should know beside it, e.g. why it does not hold here.
    pub note: String,
    /// Where the expression is written, for errors.
    pub place: Place,
}

/// What a claim is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// The study fails if the claim does not hold.
    #[default]
    Gate,
    /// Measured and shown, whatever it says.
    Report,
}

impl Study {
    /// Reads a study. With `small`, the changes of its `[small]` table are made.
    ///
    /// # Errors
    /// Everything that is wrong with the study itself; its cells are checked by [`cells`](Study::cells).
    pub fn read(document: &Node, small: bool) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        match read(document, small, &mut problems) {
            Some(study) if problems.is_empty() => Ok(study),
            _ => Err(Problems::in_order(problems)),
        }
    }
}

fn read(document: &Node, small: bool, problems: &mut Vec<Problem>) -> Option<Study> {
    let mut root = Section::new(document, "", problems)?;
    let title = root.required("title");
    let scenario = root.required_node("scenario");
    let repetitions = root.value("repetitions", 1);
    let axes = root.node("axis");
    let claims = root.node("claims");
    let change = root.node("small");
    root.finish();

    let mut scenario = scenario.and_then(|node| read_scenario(node, problems));
    let mut repetitions = repetitions?;
    let change = match change {
        Some(node) => read_small(&node, problems)?,
        None => Small::default(),
    };
    if small {
        repetitions = change.repetitions.unwrap_or(repetitions);
        if let Some(scenario) = &mut scenario {
            apply(scenario, &change.set, problems);
        }
    }
    if !(1..=10_000).contains(&repetitions) {
        let place = document.nearest_place(["repetitions"]);
        let message = format!("expected 1 to 10000, found {repetitions}");
        problems.push(Problem::new("repetitions", message).at(&place));
    }
    let axes = list(axes, "axis", problems, |node, path, problems| read_axis(node, path, small, problems));
    let claims = list(claims, "claims", problems, read_claim);
    check_names(&axes, &claims, document, problems);
    Some(Study { title: title?, scenario: scenario?, repetitions, axes, claims })
}

/// A file's name or the scenario itself.
fn read_scenario(node: Node, problems: &mut Vec<Problem>) -> Option<Node> {
    let file = match &node.value {
        Value::Table(_) => return Some(node),
        Value::String(file) => node.place.source.folder().join(file),
        _ => {
            let message = format!("expected a file's name or a table, found {}", node.describe());
            problems.push(Problem::new("scenario", message).at(&node.place));
            return None;
        }
    };
    let read = Source::read(&file).map_err(|problem| Problem { field: "scenario".to_owned(), ..problem });
    match read {
        Err(problem) => {
            problems.push(problem.at(&node.place));
            None
        }
        Ok(source) => match Node::parse(&source) {
            Ok(document) => Some(document),
            Err(found) => {
                problems.extend(found.0);
                None
            }
        },
    }
}

#[derive(Default)]
struct Small {
    repetitions: Option<u32>,
    set: Vec<Setting>,
}

fn read_small(node: &Node, problems: &mut Vec<Problem>) -> Option<Small> {
    let mut section = Section::new(node, "small", problems)?;
    let repetitions = section.value("repetitions", None);
    let set = section.node("set");
    section.finish();
    Some(Small { repetitions: repetitions?, set: read_settings(set, "small.set", problems) })
}

fn read_axis(node: &Node, path: &str, small: bool, problems: &mut Vec<Problem>) -> Option<Axis> {
    let mut section = Section::new(node, path, problems)?;
    let name: Option<String> = section.required("name");
    let only = section.value("only", None);
    let field = section.node("field");
    let values = section.node("values");
    let small_values = section.node("small_values");
    let cases = section.node("cases");
    section.finish();
    let values = if small { small_values.or(values) } else { values };
    let points = match (field, values, cases) {
        (Some(field), Some(values), None) => read_values(&field, &values, path, problems),
        (None, None, Some(cases)) => {
            list(Some(cases), &format!("{path}.cases"), problems, |node, path, problems| {
                read_case(node, path, small, problems)
            })
        }
        _ => {
            let message = "expected either `field` and `values`, or `cases`";
            problems.push(Problem::new(path, message).at(&node.place));
            return None;
        }
    };
    if points.is_empty() {
        problems.push(Problem::new(path, "this axis has no values").at(&node.place));
    }
    Some(Axis { name: name?, only: only?, points })
}

fn read_values(field: &Node, values: &Node, path: &str, problems: &mut Vec<Problem>) -> Vec<Point> {
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
    let setting = |value: &Node| Setting {
        path: name.split('.').map(|step| step.trim().to_owned()).collect(),
        path_place: field.place.clone(),
        value: value.clone(),
    };
    items.iter().map(|value| Point { label: label_of(value), set: vec![setting(value)] }).collect()
}

/// A value as people would write it in a claim: `load=0.5`.
fn label_of(value: &Node) -> String {
    match &value.value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Table(table) => match table.get("kind").and_then(Node::as_str) {
            Some(kind) => kind.to_owned(),
            None => value.place.source.text().get(value.place.span.clone()).unwrap_or_default().to_owned(),
        },
        Value::Array(items) => items.iter().map(label_of).collect::<Vec<_>>().join(","),
    }
}

fn read_case(node: &Node, path: &str, small: bool, problems: &mut Vec<Problem>) -> Option<Point> {
    let mut section = Section::new(node, path, problems)?;
    let label = section.required("label");
    let set = section.node("set");
    let small_set = section.node("small");
    section.finish();
    let mut set = read_settings(set, &format!("{path}.set"), problems);
    let small_set = read_settings(small_set, &format!("{path}.small"), problems);
    if small {
        set.extend(small_set);
    }
    Some(Point { label: label?, set })
}

/// Reads `{ "routing.preset" = "ecmp", transport = { window = "1MiB" } }`: keys are paths, and tables without a `kind`
/// are paths too.
fn read_settings(node: Option<Node>, path: &str, problems: &mut Vec<Problem>) -> Vec<Setting> {
    let mut settings = Vec::new();
    if let Some(node) = node {
        if node.as_table().is_none() {
            let message = format!("expected a table of fields and values, found {}", node.describe());
            problems.push(Problem::new(path, message).at(&node.place));
        }
        flatten(&node, &[], &mut settings);
    }
    // A kind or preset starts its table anew, so it comes before the parameters written with it.
    settings
        .sort_by_key(|setting| !matches!(setting.path.last().map(String::as_str), Some("kind" | "preset")));
    settings
}

fn flatten(node: &Node, above: &[String], settings: &mut Vec<Setting>) {
    for entry in node.as_table().into_iter().flat_map(|table| &table.0) {
        let mut path = above.to_vec();
        path.extend(entry.key.split('.').map(|step| step.trim().to_owned()));
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

pub(super) fn apply(scenario: &mut Node, settings: &[Setting], problems: &mut Vec<Problem>) {
    for setting in settings {
        let path: Vec<&str> = setting.path.iter().map(String::as_str).collect();
        if let Err(problem) = scenario.set(&path, &setting.path_place, setting.value.clone()) {
            problems.push(problem);
        }
    }
}

fn read_claim(node: &Node, path: &str, problems: &mut Vec<Problem>) -> Option<Claim> {
    let mut section = Section::new(node, path, problems)?;
    let id = section.required("id");
    let text = section.required("text");
    let expression = section.required_node("expression");
    let value = section.node("value");
    let published = section.node("published");
    let role = section.value("use", Use::Gate);
    let source = section.value("source", String::new());
    let note = section.value("note", String::new());
    section.finish();
    let place = expression.as_ref().map(|node| node.place.clone());
    let expression =
        expression.and_then(|node| read_expression(&node, &format!("{path}.expression"), problems));
    let value = match value {
        Some(node) => Some(read_expression(&node, &format!("{path}.value"), problems)?),
        None => None,
    };
    Some(Claim {
        id: id?,
        text: text?,
        expression: expression?,
        value,
        published: published.as_ref().map(label_of).unwrap_or_default(),
        role: role?,
        source: source?,
        note: note?,
        place: place?,
    })
}

fn read_expression(node: &Node, path: &str, problems: &mut Vec<Problem>) -> Option<Expression> {
    let Some(text) = node.as_str() else {
        let message = format!("expected an expression in quotes, found {}", node.describe());
        problems.push(Problem::new(path, message).at(&node.place));
        return None;
    };
    match Expression::parse(text) {
        Ok(expression) => Some(expression),
        Err(error) => {
            let problem = Problem::new(path, error.message.clone());
            problems.push(problem.at(&place_within(node, text, &error.span)));
            None
        }
    }
}

/// The place of a stretch of a string's text; the whole string where it was written with escapes.
fn place_within(node: &Node, text: &str, span: &std::ops::Range<usize>) -> Place {
    let written = node.place.source.text().get(node.place.span.clone()).unwrap_or_default();
    match written.find(text) {
        Some(offset) => {
            let start = node.place.span.start + offset;
            Place { source: node.place.source.clone(), span: start + span.start..start + span.end }
        }
        None => node.place.clone(),
    }
}

fn list<T>(
    node: Option<Node>,
    path: &str,
    problems: &mut Vec<Problem>,
    mut read: impl FnMut(&Node, &str, &mut Vec<Problem>) -> Option<T>,
) -> Vec<T> {
    match node {
        None => Vec::new(),
        Some(Node { value: Value::Array(items), .. }) => items
            .iter()
            .enumerate()
            .filter_map(|(i, item)| read(item, &format!("{path}.{i}"), problems))
            .collect(),
        Some(node) => {
            let message = format!("expected a list of tables, found {}", node.describe());
            problems.push(Problem::new(path, message).at(&node.place).help(format!("write [[{path}]]")));
            Vec::new()
        }
    }
}

/// Names by which cells and claims are told apart must differ.
fn check_names(axes: &[Axis], claims: &[Claim], document: &Node, problems: &mut Vec<Problem>) {
    let mut twice = |field: &str, what: &str, names: Vec<&str>| {
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                let place = document.nearest_place(field.split('.'));
                problems.push(Problem::new(field, format!("two {what} are called `{name}`")).at(&place));
            }
        }
    };
    twice("axis", "axes", axes.iter().map(|axis| axis.name.as_str()).collect());
    twice("claims", "claims", claims.iter().map(|claim| claim.id.as_str()).collect());
    for (i, axis) in axes.iter().enumerate() {
        let labels = axis.points.iter().map(|point| point.label.as_str()).collect();
        twice(&format!("axis.{i}"), "values", labels);
    }
}
