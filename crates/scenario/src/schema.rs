//! The scenario as a JSON schema, by which editors complete and check what is written.

use netloom_fabric::{FabricOptions, FlowControl, Queue};
use netloom_routing::{Granularity, Selector, preset};
use netloom_sim::{Fast, Fault, Measure, Steady};
use netloom_topology::Topology;
use netloom_transport::preset as transport;
use netloom_transport::{Congestion, Reliability, Shaping, TransportOptions};
use netloom_units::kind::Kind;
use netloom_workload::{Job, Region, Servers, Workload, clusters};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::routing::RoutingFields;

/// The schema of a scenario file (JSON Schema, draft 2020-12).
///
/// It allows what [`Scenario::read`](crate::Scenario::read) reads, one table at a time. Whether the tables fit each other, and
/// a number its network, is left to the reader.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let properties = properties(&mut generator);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "netloom scenario",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "$defs": generator.take_definitions(true),
    });
    bound_integers(&mut schema);
    schema
}

/// Gives all whole numbers of a schema that have no maximum the greatest one that TOML has.
pub fn bound_integers(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_type = |kind: &Value| match kind {
                Value::Array(kinds) => kinds.iter().any(|kind| kind == "integer"),
                kind => kind == "integer",
            };
            if fields.get("type").is_some_and(is_type) {
                let is_short = fields.get("format").is_some_and(|format| format == "uint32");
                fields
                    .entry("maximum")
                    .or_insert_with(|| if is_short { u32::MAX.into() } else { i64::MAX.into() });
            }
            fields.values_mut().for_each(bound_integers);
        }
        Value::Array(items) => items.iter_mut().for_each(bound_integers),
        _ => {}
    }
}

/// The schemas of the fields that stand before all tables.
pub(crate) fn head() -> Map<String, Value> {
    let name = json!({
        "description": "Name of the scenario, and of its outcome folder.",
        "type": "string",
        "pattern": "^[^/\\\\]+$",
    });
    let seed = json!({
        "description": "Seed of every random choice.",
        "type": "integer", "minimum": 0, "maximum": i64::MAX,
    });
    let steady =
        Steady::json_schema(&mut SchemaSettings::draft2020_12().with(inline).into_generator()).to_value();
    let fast = json!({
        "description": "Whether to skip parts of the run that exactly repeat earlier parts. The outcome is the same. \"auto\": in runs of programs, such as collectives and training steps. A table: what is steady without repeating is skipped, too, at an error that is measured in the run.",
        "anyOf": [{ "enum": ["auto"] }, { "type": "boolean" }, steady], "default": Fast::default(),
    });
    let detail = json!({
        "description": "The level of detail: \"packets\", or \"flow\", in which flows have max-min fair rates and there are no queues, losses or congestion control. A table: only the messages that it names are run in packets, all others as flows.",
        "anyOf": [{ "enum": ["packets", "flow"] }, region()], "default": "packets",
    });
    [("name", name), ("seed", seed), ("fast", fast), ("detail", detail)]
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect()
}

/// What a schema is made of stands in it, not elsewhere.
fn inline(settings: &mut SchemaSettings) {
    settings.inline_subschemas = true;
}

/// The table that says what is run in packets.
fn region() -> Value {
    let settings = SchemaSettings::draft2020_12().with(inline);
    let mut region = settings.into_generator().into_root_schema_for::<Region>().to_value();
    if let Some(fields) = region.as_object_mut() {
        fields.retain(|name, _| name != "$schema" && name != "title");
    }
    json!({ "type": "object", "properties": { "packets": region }, "required": ["packets"], "additionalProperties": false })
}

/// The schemas of a scenario's fields; what they refer to is left in the generator.
pub fn properties(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let fields = [
        ("cluster", cluster()),
        ("topology", changes(Topology::json_schema(generator).to_value())),
        ("servers", generator.subschema_for::<Servers>().to_value()),
        ("fabric", fabric(generator)),
        ("routing", routing(generator)),
        ("transport", transport_table(generator)),
        ("workload", changes(Workload::json_schema(generator).to_value())),
        ("jobs", json!({ "type": "array", "items": generator.subschema_for::<Job>() })),
        ("faults", json!({ "type": "array", "items": generator.subschema_for::<Fault>() })),
        ("measure", generator.subschema_for::<Measure>().to_value()),
    ];
    head().into_iter().chain(fields.map(|(name, schema)| (name.to_owned(), schema))).collect()
}

fn cluster() -> Value {
    let names: Vec<&str> = clusters::PRESETS.iter().map(|preset| preset.name).collect();
    let preset = json!({ "description": "A GPU cluster: its network and servers.", "enum": names });
    let table = json!({ "type": "object", "properties": { "preset": preset }, "required": ["preset"], "additionalProperties": false });
    json!({ "anyOf": [preset, table] })
}

fn fabric(generator: &mut SchemaGenerator) -> Value {
    let flow_control = changes_of::<FlowControl>(generator);
    let queue = changes_of::<Queue>(generator);
    with::<FabricOptions>(generator, [("queue", queue), ("flow_control", flow_control)])
}

fn transport_table(generator: &mut SchemaGenerator) -> Value {
    let names: Vec<&str> = transport::PRESETS.iter().map(|preset| preset.name).collect();
    let preset = json!({ "description": "A transport by the name that its users know.", "enum": names });
    let reliability = changes_of::<Reliability>(generator);
    let congestion = changes_of::<Congestion>(generator);
    let shaping = changes_of::<Shaping>(generator);
    let fields = [
        ("preset", preset.clone()),
        ("reliability", reliability),
        ("congestion", congestion),
        ("shaping", shaping),
    ];
    let table = with::<TransportOptions>(generator, fields);
    json!({ "anyOf": [preset, table] })
}

fn routing(generator: &mut SchemaGenerator) -> Value {
    let names: Vec<&str> = preset::PRESETS.iter().map(|preset| preset.name).collect();
    let preset = json!({ "description": "A scheme by the name of its paper.", "enum": names });
    let granularity = changes_of::<Granularity>(generator);
    let selector = changes_of::<Selector>(generator);
    let fields = [("preset", preset.clone()), ("granularity", granularity), ("selector", selector)];
    let table = with::<RoutingFields>(generator, fields);
    json!({ "anyOf": [preset, table] })
}

/// The table of a struct with further fields; none is required, as all have defaults.
fn with<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    fields: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let mut table = T::json_schema(generator).to_value();
    table["required"] = json!([]);
    for (name, schema) in fields {
        table["properties"][name] = schema;
    }
    table
}

fn changes_of<K: Kind>(generator: &mut SchemaGenerator) -> Value {
    changes(K::json_schema(generator).to_value())
}

/// A kind where one holds by default: a table without a `kind` changes that one.
fn changes(mut kind: Value) -> Value {
    for table in kind["anyOf"].as_array_mut().into_iter().flatten() {
        if let Some(required) = table.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|field| field != "kind");
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use crate::document::Node;
    use crate::source::Source;

    /// Every field that the reader knows, by what it says where one is misspelt.
    #[test]
    fn the_schema_has_the_fields_of_the_reader() {
        let schema = schema();
        for table in ["", "fabric", "routing", "transport", "measure"] {
            let text =
                if table.is_empty() { "xyzzy = 1\n".to_owned() } else { format!("[{table}]\nxyzzy = 1\n") };
            let document = Node::parse(&Source::new("s.toml", text)).unwrap();
            let problems = Scenario::read(&document).unwrap_err();
            let help = problems.0[0].help.clone().unwrap();
            let at = |value: &Value, name: &str| match value.get("$ref").and_then(Value::as_str) {
                Some(path) => {
                    schema.pointer(path.trim_start_matches('#')).unwrap()["properties"][name].clone()
                }
                None => match value["anyOf"].as_array() {
                    Some(alternatives) => alternatives[1]["properties"][name].clone(),
                    None => value["properties"][name].clone(),
                },
            };
            let holder = if table.is_empty() { &schema } else { &schema["properties"][table] };
            for field in help.rsplit(": ").next().unwrap().split(" and ").next().unwrap().split(", ") {
                assert!(!at(holder, field).is_null(), "{table}.{field}\n{help}");
            }
        }
    }

    /// TOML has no greater whole numbers than 2⁶³ − 1.
    #[test]
    fn whole_numbers_have_a_maximum() {
        let schema = schema();
        let (mut open, mut numbers) = (vec![&schema], 0);
        while let Some(value) = open.pop() {
            match value {
                Value::Object(fields) => {
                    let kind = fields.get("type").map(Value::to_string).unwrap_or_default();
                    if kind.contains("\"integer\"") {
                        assert!(fields["maximum"].as_i64().is_some(), "{value}");
                        numbers += 1;
                    }
                    open.extend(fields.values());
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        assert!(numbers > 50, "{numbers}");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let schema = schema();
        let mut open = vec![&schema];
        let mut references = 0;
        while let Some(value) = open.pop() {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(path)) = fields.get("$ref") {
                        assert!(schema.pointer(path.trim_start_matches('#')).is_some(), "{path}");
                        references += 1;
                    }
                    open.extend(fields.values());
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        assert!(references > 20, "{references}");
    }
}
