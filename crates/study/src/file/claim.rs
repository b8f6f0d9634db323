//! What the results should show.

use std::collections::BTreeMap;
use std::fmt;

use netloom_scenario::{Node, Place, Problem, Section, Value};
use serde::{Deserialize, Serialize};

use super::label_of;
use crate::claims::Expression;

/// A named comparison over the results.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Short name, e.g. `R2`.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// The claim as a comparison.
    pub expression: Formula,
    /// A number to show beside the published one; the sides of the comparison if absent.
    pub value: Option<Formula>,
    /// Digits behind the point that are shown of the number; absent: four significant ones.
    pub decimals: Option<usize>,
    /// What the source reports, in its words or numbers.
    pub published: String,
    /// Whether a failure fails the study.
    pub role: Use,
    /// What it takes for a gate to hold where there are several seeds.
    pub needs: Needs,
    /// Paper, section, figure.
    pub source: String,
    /// What a reader should know beside it, e.g. why it does not hold here.
    pub note: String,
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

/// What it takes for a gate to hold. With one seed both are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// The comparison holds over the whole 95% interval of its sides' difference over the seeds.
    #[default]
    Interval,
    /// The means over the seeds satisfy it, whatever the interval.
    Mean,
}

/// An expression and where it is written.
#[derive(Clone, Debug)]
pub struct Formula {
    /// What it says.
    pub expression: Expression,
    /// The field, for errors.
    field: String,
    node: Node,
}

impl Formula {
    fn read(node: Node, field: String, problems: &mut Vec<Problem>) -> Option<Self> {
        let Some(text) = node.as_str() else {
            let message = format!("expected an expression in quotes, found {}", node.describe());
            problems.push(Problem::new(field, message).at(&node.place));
            return None;
        };
        match Expression::parse(text) {
            Ok(expression) => Some(Formula { expression, field, node }),
            Err(error) => {
                let place = place_within(&node, &error.span);
                problems.push(Problem::new(field, error.message).at(&place));
                None
            }
        }
    }

    /// A problem with a part of the expression.
    pub(crate) fn problem(&self, message: String, part: &std::ops::Range<usize>) -> Problem {
        Problem::new(self.field.clone(), message).at(&place_within(&self.node, part))
    }
}

/// The place of a span of a string's text; the whole value where it was written with escapes or is no string.
fn place_within(node: &Node, span: &std::ops::Range<usize>) -> Place {
    let written = node.place.source.text().get(node.place.span.clone()).unwrap_or_default();
    match node.as_str().and_then(|text| written.find(text)) {
        Some(offset) => {
            let start = node.place.span.start + offset;
            Place { source: node.place.source.clone(), span: start + span.start..start + span.end }
        }
        None => node.place.clone(),
    }
}

pub(super) fn read_claim(node: &Node, path: &str, problems: &mut Vec<Problem>) -> Option<Claim> {
    let mut section = Section::new(node, path, problems)?;
    let id = section.required("id");
    let text = section.required("text");
    let expression = section.required_node("expression");
    let value = section.node("value");
    let published = section.node("published");
    let role = section.value("use", Use::Gate);
    let needs = section.value("needs", Needs::Interval);
    let source = section.value("source", String::new());
    let note = section.value("note", String::new());
    section.finish();
    let expression = expression.and_then(|node| Formula::read(node, format!("{path}.expression"), problems));
    let value = match value {
        Some(node) => Some(Formula::read(node, format!("{path}.value"), problems)?),
        None => None,
    };
    Some(Claim {
        id: id?,
        text: text?,
        expression: expression?,
        value,
        decimals: None,
        published: published.as_ref().map(label_of).unwrap_or_default(),
        role: role?,
        needs: needs?,
        source: source?,
        note: note?,
    })
}

/// A published table: one claim per entry, named `<table>.<row>.<column>`.
pub(super) fn read_table(node: &Node, path: &str, problems: &mut Vec<Problem>) -> Option<Vec<Claim>> {
    let mut section = Section::new(node, path, problems)?;
    let id = section.required("id");
    let text = section.required("text");
    let labels = section.value("labels", Vec::new());
    let columns = section.required("columns");
    let tolerances = section.required("tolerances");
    let role = section.value("use", Use::Gate);
    let needs = section.value("needs", Needs::Interval);
    let source = section.value("source", String::new());
    let rows = section.required_node("rows");
    let notes = section.value("notes", BTreeMap::new());
    section.finish();
    let table = Table {
        path: path.to_owned(),
        id: id?,
        text: text?,
        labels: labels?,
        columns: columns?,
        tolerances: tolerances?,
        role: role?,
        needs: needs?,
        source: source?,
    };
    table.claims(&rows?, notes?, node, problems)
}

/// How far a measured value may be from the published one.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
enum Tolerance {
    /// In the unit of the metric.
    Absolute(f64),
    /// As a share of the published value.
    Relative(f64),
}

/// A tolerance as it is written: `0.5`, or `"3%"` of the published value.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number, or a percentage such as \"3%\"")]
enum Written {
    Number(f64),
    Text(String),
}

impl TryFrom<Written> for Tolerance {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let (number, found) = match &written {
            Written::Number(number) => (Some(*number), number.to_string()),
            Written::Text(text) => (
                text.strip_suffix('%').and_then(|share| share.trim().parse::<f64>().ok()),
                format!("{text:?}"),
            ),
        };
        match (number, written) {
            (Some(number), _) if !(number >= 0.0 && number.is_finite()) => {
                Err(format!("expected 0 or more, found {found}"))
            }
            (Some(number), Written::Number(_)) => Ok(Self::Absolute(number)),
            (Some(percent), Written::Text(_)) => Ok(Self::Relative(percent / 100.0)),
            (None, _) => Err(format!("expected a number, or a percentage such as \"3%\", found {found}")),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(most) => write!(f, "{most}"),
            Self::Relative(most) => write!(f, "{}%", most * 100.0),
        }
    }
}

/// A published table without its entries.
struct Table {
    path: String,
    id: String,
    text: String,
    /// Labels that every entry's cell carries beside its row's.
    labels: Vec<String>,
    /// Metrics.
    columns: Vec<String>,
    /// How far a measured value may be from the published one, column by column.
    tolerances: Vec<Tolerance>,
    role: Use,
    needs: Needs,
    source: String,
}

impl Table {
    fn claims(
        &self,
        rows: &Node,
        mut notes: BTreeMap<String, String>,
        node: &Node,
        problems: &mut Vec<Problem>,
    ) -> Option<Vec<Claim>> {
        let before = problems.len();
        let mut fail = |field: &str, message: String, place: &Place| {
            problems.push(Problem::new(format!("{}.{field}", self.path), message).at(place));
        };
        let place = node.nearest_place(["tolerances"]);
        if self.tolerances.len() != self.columns.len() {
            let (columns, found) = (self.columns.len(), self.tolerances.len());
            fail(
                "tolerances",
                format!("expected one for each of the {columns} columns, found {found}"),
                &place,
            );
        }
        let mut claims = Vec::new();
        match rows.as_table() {
            None => {
                fail("rows", format!("expected a table of lists, found {}", rows.describe()), &rows.place)
            }
            Some(table) => {
                for row in &table.0 {
                    match &row.node.value {
                        Value::Array(values) if values.len() == self.columns.len() => {
                            for (i, value) in values.iter().enumerate() {
                                match number(value) {
                                    Some(published) if published.is_nan() => {}
                                    Some(published) => claims.push(self.claim(&row.key, i, published, value)),
                                    None => {
                                        let wanted = "expected a number, or nan where none is published";
                                        let message = format!("{wanted}, found {}", value.describe());
                                        fail(&format!("rows.{}.{i}", row.key), message, &value.place);
                                    }
                                }
                            }
                        }
                        _ => {
                            let message = format!("expected a list of {} values", self.columns.len());
                            fail(&format!("rows.{}", row.key), message, &row.node.place);
                        }
                    }
                }
            }
        }
        for claim in &mut claims {
            let entry = &claim.id[self.id.len() + 1..];
            claim.note = notes.remove(entry).unwrap_or_default();
        }
        for entry in notes.into_keys() {
            let message = format!("expected the row and column of a published value, found `{entry}`");
            fail("notes", message, &node.nearest_place(["notes", &entry]));
        }
        (problems.len() == before).then_some(claims)
    }

    fn claim(&self, row: &str, column: usize, published: f64, node: &Node) -> Claim {
        let labels = std::iter::once(row.to_owned()).chain(self.labels.iter().cloned()).collect();
        let (name, tolerance) = (&self.columns[column], self.tolerances[column]);
        let (function, most) = match tolerance {
            Tolerance::Absolute(most) => ("near", most),
            Tolerance::Relative(most) => ("within", most),
        };
        let (expression, value) = Expression::compared(function, name, labels, published, most);
        let formula = |expression| Formula {
            expression,
            field: format!("{}.rows.{row}.{column}", self.path),
            node: node.clone(),
        };
        Claim {
            id: format!("{}.{row}.{name}", self.id),
            text: self.text.clone(),
            expression: formula(expression),
            value: Some(formula(value)),
            decimals: published.to_string().split_once('.').map(|(_, decimals)| decimals.len()),
            published: format!("{published} ± {tolerance}"),
            role: self.role,
            needs: self.needs,
            source: self.source.clone(),
            note: String::new(),
        }
    }
}

fn number(node: &Node) -> Option<f64> {
    match node.value {
        Value::Float(value) => Some(value),
        Value::Integer(value) => Some(value as f64),
        _ => None,
    }
}
