//! The study as it is written.

mod axis;
mod claim;
mod setting;

use std::ops::ControlFlow;

use netloom_scenario::{Node, Place, Problem, Problems, Section, Source, Value, apply_overrides};

pub use axis::{Axis, Case};
pub use claim::{Claim, Formula, Needs, Use};
pub use setting::Setting;
pub(crate) use setting::apply;

use axis::read_axis;
use claim::{read_claim, read_table};
use setting::read_settings;

/// A study: what its cells start from, axes set over it, and claims about the results.
#[derive(Clone, Debug)]
pub struct Study {
    /// What the study shows.
    pub title: String,
    /// What every cell starts from.
    pub base: Base,
    /// How many seeds each point is run with.
    pub repetitions: u32,
    /// The most cells that the study may have.
    pub max_cells: u64,
    /// What is varied; every combination is a point.
    pub axes: Vec<Axis>,
    /// What the results should show.
    pub claims: Vec<Claim>,
    /// The columns of the table of results, with where they are written; absent: those that occur.
    pub columns: Option<Vec<(String, Place)>>,
    /// Whether it was asked for in a form of which the file says nothing: it runs as it is written.
    pub(crate) has_no_such_form: bool,
    /// Where the axes are written, for errors.
    pub(crate) place: Place,
    /// Where `max_cells` is.
    pub(crate) max_cells_place: Place,
    /// The fields that [`set`](Study::set) has set, and where their values are.
    pub(crate) overridden: Vec<(Vec<String>, Place)>,
}

/// How large a study is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// In seconds, for tests: with `[small]`, and what axes and cases have of it.
    Small,
    /// As it is written.
    #[default]
    Middle,
    /// At the size of what it reproduces, which may take hours: with `[full]`.
    Full,
}

impl Form {
    /// What goes behind the name of the study's folder.
    pub fn suffix(self) -> &'static str {
        match self {
            Form::Small => "-small",
            Form::Middle => "",
            Form::Full => "-full",
        }
    }

    /// That one of two changes which this form makes; none as the study is written.
    fn choose<T: Default>(self, small: T, full: T) -> T {
        match self {
            Form::Small => small,
            Form::Middle => T::default(),
            Form::Full => full,
        }
    }
}

/// What every cell starts from, as it was written.
#[derive(Clone, Debug)]
pub enum Base {
    /// Cells are runs of a scenario.
    Scenario(Node),
    /// Cells are measurements of a network.
    Analysis(Node),
}

impl Base {
    fn document_mut(&mut self) -> &mut Node {
        match self {
            Base::Scenario(document) | Base::Analysis(document) => document,
        }
    }
}

/// More cells than this are more likely a mistake than a plan; a study that means it says so with `max_cells`.
pub(crate) const MAX_CELLS: u64 = 100_000;

/// The most repetitions of a point.
pub(crate) const MAX_REPETITIONS: u32 = 10_000;

impl Study {
    /// Reads a study in one of its forms: with the changes of its `[small]` or `[full]` table, or without.
    ///
    /// # Errors
    /// Everything that is wrong with the study itself; its cells are checked by [`plan`](Study::plan).
    pub fn read(document: &Node, form: Form) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        match read(document, form, &mut problems) {
            Some(study) if problems.is_empty() => Ok(study),
            _ => Err(Problems::in_order(problems)),
        }
    }

    /// Sets fields of what the cells start from, before the axes do: `topology.k=8`.
    ///
    /// # Errors
    /// As [`apply_overrides`].
    pub fn set(&mut self, changes: &[String]) -> Result<(), Problem> {
        apply_overrides(self.base.document_mut(), changes)?;
        for (path, _) in changes.iter().filter_map(|change| change.split_once('=')) {
            let path = setting::steps(path);
            if let Some(node) = self.base.document_mut().at(path.iter().map(String::as_str)) {
                self.overridden.push((path, node.place.clone()));
            }
        }
        Ok(())
    }

    /// Visits every combination of cases in the order in which they are run and shown, until `visit` has seen enough.
    pub(crate) fn each_combination<'a>(&'a self, visit: &mut Visit<'_, 'a>) -> ControlFlow<()> {
        descend(&self.axes, &mut Vec::new(), visit)
    }
}

/// What is done with a combination of cases.
type Visit<'f, 'a> = dyn FnMut(&[(&'a Axis, &'a Case)]) -> ControlFlow<()> + 'f;

fn descend<'a>(
    axes: &'a [Axis],
    chosen: &mut Vec<(&'a Axis, &'a Case)>,
    visit: &mut Visit<'_, 'a>,
) -> ControlFlow<()> {
    let Some((axis, rest)) = axes.split_first() else { return visit(chosen) };
    let applies = |only: &[String], chosen: &[(&Axis, &Case)]| {
        only.is_empty()
            || chosen.iter().any(|(axis, case)| only.iter().any(|label| axis.has_label(case, label)))
    };
    let mut any = false;
    if applies(&axis.only, chosen) {
        for case in &axis.cases {
            if applies(&case.only, chosen) {
                any = true;
                chosen.push((axis, case));
                descend(rest, chosen, visit)?;
                chosen.pop();
            }
        }
    }
    // A point to which the axis does not apply is not varied along it.
    if any { ControlFlow::Continue(()) } else { descend(rest, chosen, visit) }
}

fn read(document: &Node, form: Form, problems: &mut Vec<Problem>) -> Option<Study> {
    let has = |field: &&str| document.at([*field]).is_some();
    if !["scenario", "analysis", "axis", "claims"].iter().any(has)
        && let Some(field) = ["topology", "routing", "workload", "fabric", "transport"].into_iter().find(has)
    {
        let problem =
            Problem::new("", "this is a scenario, not a study").at(&document.nearest_place([field]));
        problems.push(problem.help("`netloom run FILE` runs it; a study names it as its `scenario`"));
        return None;
    }
    let mut root = Section::new(document, "", problems)?;
    let title = root.required("title");
    let scenario = root.node("scenario");
    let analysis = root.node("analysis");
    let repetitions = root.value("repetitions", 1);
    let max_cells = root.value("max_cells", MAX_CELLS);
    let axes = root.node("axis");
    let claims = root.node("claims");
    let tables = root.node("tables");
    let columns = root.node("columns");
    let (small, full) = (root.node("small"), root.node("full"));
    root.finish();

    let mut base = read_base(document, scenario, analysis, problems);
    let mut repetitions = repetitions?;
    let small = read_change(small, "small", problems)?;
    let full = read_change(full, "full", problems)?;
    if let Some(change) = form.choose(small, full) {
        repetitions = change.repetitions.unwrap_or(repetitions);
        if let Some(base) = &mut base {
            apply(base.document_mut(), &change.set, problems);
        }
    }
    if !(1..=MAX_REPETITIONS).contains(&repetitions) {
        let place = document.nearest_place(["repetitions"]);
        let message = format!("expected 1 to {MAX_REPETITIONS}, found {repetitions}");
        problems.push(Problem::new("repetitions", message).at(&place));
    }
    if form == Form::Full && !has_form(document, "full") {
        let message =
            "this study has no full form: it is run in the size in which it is written, without `--full`";
        let problem = Problem::new("full", message).at(&document.nearest_place([]));
        problems.push(
            problem.help("`[full]`, `full` in a case and `full_values` of an axis say what is larger there"),
        );
    }
    let axes = list(axes, "axis", problems, |node, path, problems| read_axis(node, path, form, problems));
    let mut claims = list(claims, "claims", problems, read_claim);
    claims.extend(list(tables, "tables", problems, read_table).into_iter().flatten());
    let columns = columns.map(|columns| read_columns(&columns, problems));
    check_names(&axes, &claims, document, problems);
    axis::check_only(&axes, problems);
    let (place, max_cells_place) = (document.nearest_place(["axis"]), document.nearest_place(["max_cells"]));
    Some(Study {
        title: title?,
        base: base?,
        repetitions,
        max_cells: max_cells?,
        axes,
        claims,
        columns,
        has_no_such_form: form == Form::Small && !has_form(document, "small"),
        place,
        max_cells_place,
        overridden: Vec::new(),
    })
}

/// Whether something is said of a form, `small` or `full`: at the root, in an axis, or in a case.
fn has_form(node: &Node, form: &str) -> bool {
    let inner = |field| {
        node.at([field]).map_or(&[][..], |node| match &node.value {
            Value::Array(nodes) => nodes,
            _ => &[],
        })
    };
    let values = format!("{form}_values");
    [form, &values].iter().any(|field| node.at([*field]).is_some())
        || ["axis", "cases"].into_iter().flat_map(inner).any(|node| has_form(node, form))
}

/// A study has either a scenario or an analysis.
fn read_base(
    document: &Node,
    scenario: Option<Node>,
    analysis: Option<Node>,
    problems: &mut Vec<Problem>,
) -> Option<Base> {
    let problem = match (scenario, analysis) {
        (Some(node), None) => return read_document(node, "scenario", problems).map(Base::Scenario),
        (None, Some(node)) => return read_document(node, "analysis", problems).map(Base::Analysis),
        (None, None) => {
            let message = "this is not a study: it has neither a `scenario` nor an `analysis`";
            Problem::new("", message).at(&document.nearest_place([])).help(
                "the cells of a study are runs of a `scenario`, or measurements of a network that `analysis` describes",
            )
        }
        (Some(_), Some(node)) => {
            let message = "a study has either a `scenario` or an `analysis`, not both";
            Problem::new("analysis", message).at(&node.place)
        }
    };
    problems.push(problem);
    None
}

/// A file's name or the table itself.
fn read_document(node: Node, field: &str, problems: &mut Vec<Problem>) -> Option<Node> {
    let file = match &node.value {
        Value::Table(_) => return Some(node),
        Value::String(file) => node.place.source.folder().join(file),
        _ => {
            let message = format!("expected a file's name or a table, found {}", node.describe());
            problems.push(Problem::new(field, message).at(&node.place));
            return None;
        }
    };
    let read = Source::read(&file).map_err(|problem| Problem { field: field.to_owned(), ..problem });
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

/// What a form changes.
struct Change {
    repetitions: Option<u32>,
    set: Vec<Setting>,
}

/// The change that a table describes, which no study must have. `None` if it is wrong.
fn read_change(node: Option<Node>, name: &str, problems: &mut Vec<Problem>) -> Option<Option<Change>> {
    let Some(node) = node else { return Some(None) };
    let mut section = Section::new(&node, name, problems)?;
    let repetitions = section.value("repetitions", None);
    let set = section.node("set");
    section.finish();
    let set = read_settings(set, &format!("{name}.set"), problems);
    Some(Some(Change { repetitions: repetitions?, set }))
}

/// Names of columns, with where they are written.
fn read_columns(node: &Node, problems: &mut Vec<Problem>) -> Vec<(String, Place)> {
    let mut wrong = |node: &Node, expected: &str| {
        let message = format!("expected {expected}, found {}", node.describe());
        problems.push(Problem::new("columns", message).at(&node.place));
    };
    let Value::Array(items) = &node.value else {
        wrong(node, "a list of names");
        return Vec::new();
    };
    if items.is_empty() {
        wrong(node, "at least one name");
    }
    let mut columns = Vec::new();
    for item in items {
        match item.as_str() {
            Some(name) => columns.push((name.to_owned(), item.place.clone())),
            None => wrong(item, "a name in quotes"),
        }
    }
    columns
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

/// Reads a list of tables item by item; what is wrong with an item is reported, and the others are read.
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
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            if !seen.insert(name) {
                let place = document.nearest_place(field.split('.'));
                problems.push(Problem::new(field, format!("two {what} are called `{name}`")).at(&place));
            }
        }
    };
    twice("axis", "axes", axes.iter().map(|axis| axis.name.as_str()).collect());
    twice("claims", "claims", claims.iter().map(|claim| claim.id.as_str()).collect());
    for (i, axis) in axes.iter().enumerate() {
        let labels = axis.cases.iter().map(|case| case.label.as_str()).collect();
        twice(&format!("axis.{i}"), "values", labels);
    }
    for (i, axis) in axes.iter().enumerate() {
        if RESERVED.contains(&axis.name.as_str()) {
            let message = format!("`{}` is a column of every table of results", axis.name);
            let place = document.nearest_place(["axis", &i.to_string(), "name"]);
            problems.push(Problem::new(format!("axis.{i}.name"), message).at(&place));
        }
    }
}

/// Columns of the table of results that are no axis.
const RESERVED: [&str; 2] = ["seed", "folder"];
