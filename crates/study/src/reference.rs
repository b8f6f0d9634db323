//! What can be written in a study, as a reference.

use netloom_scenario::Chapter;
use netloom_units::kind::{Kind, KindInfo, describe_table};
use serde_json::Value;

use crate::claims::FUNCTIONS;
use crate::measure::Measurement;
use crate::schema;

/// What studies are called in a [`Chapter`].
const FILE: &str = "study";

/// The whole reference, in the order of a study.
pub fn reference() -> Vec<Chapter> {
    let short = |doc| schema::text(doc);
    let analysis = schema::analysis(
        short("The network, as in a scenario."),
        short("What is measured of it; see `measurement`."),
    );
    vec![
        table("study", "", "What a study starts from, and how often it is run.", &head()),
        table("analysis", "analysis", "A measurement of a network, instead of a scenario.", &analysis),
        measurements(),
        table("axis", "axis", "What is varied; each [[axis]] table is one.", &schema::axis()),
        table(
            "claims",
            "claims",
            "What the results should show; each [[claims]] table is one.",
            &schema::claim(),
        ),
        functions(),
        table(
            "tables",
            "tables",
            "Published tables, a claim per entry; each [[tables]] table is one.",
            &schema::published_table(),
        ),
        table("small", "small", "What --small changes.", &schema::change("What --small changes.")),
        table("full", "full", "What --full changes.", &schema::change("What --full changes.")),
    ]
}

/// The fields before all tables; what has a chapter of its own is not told twice.
fn head() -> Value {
    let mut whole = schema::schema();
    for (_, field) in whole["properties"].as_object_mut().into_iter().flatten() {
        if let Some(field) = field.as_object_mut() {
            ["anyOf", "items", "properties"].iter().for_each(|part| _ = field.remove(*part));
        }
    }
    whole
}

fn table(name: &'static str, path: &'static str, doc: &'static str, schema: &Value) -> Chapter {
    let entries = vec![describe_table(name, schema)];
    Chapter { file: FILE, name, path, doc, choice: None, entries }
}

fn measurements() -> Chapter {
    let doc = "What is measured of a network; its quantities are the metrics of claims.";
    let (name, path, entries) = (Measurement::AXIS, "analysis.measurement", Measurement::kinds());
    Chapter { file: FILE, name, path, doc, choice: Some("kind"), entries }
}

/// The functions of claims.
fn functions() -> Chapter {
    let entry =
        |&(name, doc): &(&'static str, &str)| KindInfo { name, doc: doc.to_owned(), fields: Vec::new() };
    let doc = "Functions in claims, in addition to metrics, numbers, comparisons, and, or, not.";
    let entries = FUNCTIONS.iter().map(entry).collect();
    Chapter {
        file: FILE,
        name: "expression",
        path: "claims.expression",
        doc,
        choice: Some("function"),
        entries,
    }
}
