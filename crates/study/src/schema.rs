//! The study as a JSON schema, by which editors complete and check what is written.

use netloom_scenario::{bound_integers, schema_properties};
use netloom_topology::Topology;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::columns::column_sets;
use crate::file::{MAX_CELLS, MAX_REPETITIONS};
use crate::measure::Measurement;

/// The schema of a study file (JSON Schema, draft 2020-12).
///
/// It allows what [`Study::read`](crate::Study::read) reads. Whether labels, metrics and the fields that axes set exist is left to
/// [`Study::plan`](crate::Study::plan).
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let scenario = table("What every cell starts from.", &[], schema_properties(&mut generator));
    let topology = Topology::json_schema(&mut generator).to_value();
    let measurement = Measurement::json_schema(&mut generator).to_value();
    let analysis = analysis(topology, measurement);
    let fields = [
        ("title", text("What the study shows.")),
        (
            "scenario",
            file_or(scenario, "A scenario: a file, or the scenario itself. Its runs are the cells."),
        ),
        ("analysis", file_or(analysis, "A measurement of a network: a file, or the table itself.")),
        (
            "repetitions",
            count(
                "Seeds that every point is run with: the scenario's, then the following ones.",
                MAX_REPETITIONS.into(),
            ),
        ),
        (
            "max_cells",
            json!({ "description": "The most cells that the study may have.", "type": "integer", "minimum": 0, "default": MAX_CELLS }),
        ),
        ("axis", list("What is varied; every combination is a point.", axis())),
        (
            "columns",
            json!({
                "description": "The columns of the table of results: words for sets of them, or metrics as claims name them.",
                "type": "array", "items": { "type": "string", "examples": column_sets().collect::<Vec<_>>() }, "minItems": 1,
            }),
        ),
        ("claims", list("What the results should show.", claim())),
        ("tables", list("Published tables: one claim per entry.", published_table())),
        ("small", change("What --small changes.")),
        ("full", change("What --full changes.")),
    ];
    let mut schema = object("A grid of cells, and claims about the results.", &["title"], fields);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("netloom study");
    schema["oneOf"] = json!([{ "required": ["scenario"] }, { "required": ["analysis"] }]);
    schema["$defs"] = Value::Object(generator.take_definitions(true));
    bound_integers(&mut schema);
    schema
}

/// An analysis, with the schemas of its network and of what is measured.
pub(crate) fn analysis(topology: Value, measurement: Value) -> Value {
    let seed = json!({ "description": "Seed of everything that is drawn.", "type": "integer", "minimum": 0 });
    let fields = [("seed", seed), ("topology", topology), ("measurement", measurement)];
    object("A network and what is measured of it.", &[], fields)
}

pub(crate) fn change(description: &str) -> Value {
    let repetitions = count("Seeds that every point is run with.", MAX_REPETITIONS.into());
    object(description, &[], [("repetitions", repetitions), ("set", settings())])
}

pub(crate) fn axis() -> Value {
    let case = object(
        "One value of an axis.",
        &["label"],
        [
            ("label", text("Its name in tables and claims.")),
            ("only", labels("Points without any of these labels do not take the case.")),
            ("set", settings()),
            ("small", settings()),
            ("full", settings()),
        ],
    );
    let fields = [
        ("name", text("Its name, such as scheme.")),
        ("only", labels("Points without any of these labels are not varied along the axis.")),
        ("field", text("The field that takes the values, such as workload.load.")),
        ("values", json!({ "description": "Its values.", "type": "array", "minItems": 1 })),
        (
            "small_values",
            json!({ "description": "Its values under --small.", "type": "array", "minItems": 1 }),
        ),
        ("full_values", json!({ "description": "Its values under --full.", "type": "array", "minItems": 1 })),
        (
            "cases",
            json!({ "description": "Its values, each of which sets any number of fields.", "type": "array", "items": case, "minItems": 1 }),
        ),
    ];
    let mut axis = object("What is varied.", &["name"], fields);
    axis["oneOf"] = json!([{ "required": ["field", "values"] }, { "required": ["cases"] }]);
    axis
}

pub(crate) fn claim() -> Value {
    let fields = [
        ("id", text("Short name, such as R2.")),
        ("text", text("The claim in words.")),
        ("expression", text("The claim as a comparison.")),
        ("value", text("A number to show as measured; the sides of the comparison if absent.")),
        ("published", json!({ "description": "What the source reports." })),
        ("use", role()),
        ("needs", needs()),
        ("source", text("Paper, section, figure.")),
        ("note", text("A remark for the reader.")),
    ];
    object("A named comparison over the results.", &["id", "text", "expression"], fields)
}

pub(crate) fn published_table() -> Value {
    let number = json!({ "type": "number" });
    let row = json!({ "type": "array", "items": number });
    let percentage = json!({ "type": "string", "pattern": "^ *[0-9.]+ *%$" });
    let tolerance = json!({ "anyOf": [{ "type": "number", "minimum": 0 }, percentage] });
    let fields = [
        ("id", text("Its claims are called ID.ROW.COLUMN.")),
        ("text", text("What it shows.")),
        ("labels", list("Further labels of every entry's cell.", json!({ "type": "string" }))),
        ("columns", list("Metrics.", json!({ "type": "string" }))),
        (
            "tolerances",
            list(
                "How far a measured value may be from the published one, column by column: in the metric's unit, or \"3%\" of the published value.",
                tolerance,
            ),
        ),
        ("use", role()),
        ("needs", needs()),
        ("source", text("Paper, section, table.")),
        (
            "rows",
            json!({ "description": "Published values by label; nan where there is none.", "type": "object", "additionalProperties": row }),
        ),
        (
            "notes",
            json!({ "description": "Remarks on entries, by ROW.COLUMN.", "type": "object", "additionalProperties": { "type": "string" } }),
        ),
    ];
    object("A published table.", &["id", "text", "columns", "tolerances", "rows"], fields)
}

pub(crate) fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

fn count(description: &str, most: u64) -> Value {
    json!({ "description": description, "type": "integer", "minimum": 1, "maximum": most })
}

fn role() -> Value {
    json!({ "description": "gate: the study fails if it does not hold; report: it is only shown.", "enum": ["gate", "report"] })
}

fn needs() -> Value {
    json!({ "description": "What a gate requires with several seeds. interval: the comparison holds over the whole 95% interval of the difference; mean: the means satisfy it, whatever the interval.", "enum": ["interval", "mean"], "default": "interval" })
}

fn settings() -> Value {
    json!({ "description": "Fields by their paths, and the values they get.", "type": "object" })
}

fn labels(description: &str) -> Value {
    json!({ "description": description, "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
}

fn list(description: &str, items: Value) -> Value {
    json!({ "description": description, "type": "array", "items": items })
}

fn file_or(table: Value, description: &str) -> Value {
    json!({ "description": description, "anyOf": [{ "type": "string" }, table] })
}

fn object(
    description: &str,
    required: &[&str],
    fields: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    table(description, required, fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect())
}

fn table(description: &str, required: &[&str], properties: Map<String, Value>) -> Value {
    json!({
        "description": description,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Form, Study};
    use netloom_scenario::{Node, Source};

    /// Every field that the reader knows, by what it says where one is misspelt.
    #[test]
    fn the_schema_has_the_fields_of_the_reader() {
        let schema = schema();
        for (text, place) in [
            ("xyzzy = 1\n", "/properties"),
            ("[small]\nxyzzy = 1\n", "/properties/small/properties"),
            ("[[axis]]\nxyzzy = 1\n", "/properties/axis/items/properties"),
            (
                "[[axis]]\nname = \"a\"\n[[axis.cases]]\nxyzzy = 1\n",
                "/properties/axis/items/properties/cases/items/properties",
            ),
            ("[[claims]]\nxyzzy = 1\n", "/properties/claims/items/properties"),
            ("[[tables]]\nxyzzy = 1\n", "/properties/tables/items/properties"),
        ] {
            let document = Node::parse(&Source::new("s.toml", text)).unwrap();
            let problems = Study::read(&document, Form::Middle).unwrap_err();
            let problem = problems.0.iter().find(|problem| problem.message.contains("xyzzy")).unwrap();
            let help = problem.help.clone().unwrap();
            let fields = help.rsplit(": ").next().unwrap().split(" and ").next().unwrap();
            let known = schema.pointer(place).unwrap().as_object().unwrap();
            let fields: Vec<&str> = fields.split(", ").collect();
            assert!(fields.len() >= 2, "{help}");
            for field in fields {
                assert!(known.contains_key(field), "{place}/{field}\n{help}");
            }
        }
    }
}
