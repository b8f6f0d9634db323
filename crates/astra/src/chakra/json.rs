//! Execution traces in JSON: what `chakra_jsonizer` writes, and the one object that Chakra's feeder reads.
//!
//! `chakra_jsonizer` writes one object after the other, protobuf's JSON form of each message: the metadata first, then every node. Numbers of 64 bits
//! are strings there, types of nodes are names, and what has its default is left out. The feeder's form is `{ "workload_graph": [...] }`, whose nodes
//! have `Id`, `Name`, `NodeType`, `runtime` (in microseconds), `data_deps` and attributes as fields; its `ctrlDeps` are not read, as the feeder does
//! not read them.

use std::io::BufRead;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json};

use super::file::Found;
use super::{Attribute, BoolList, Node, NodeType, Value, Values, named};
use crate::error::JobError;

/// Memory of a node of [`First::workload_graph`], as long as it is JSON.
const BYTES_PER_FIELD: u64 = 64;

/// Whether a file that begins with these bytes is JSON. A message of protobuf may begin with a brace and a line break, too, but not with what follows here.
pub(super) fn is_json(start: &[u8]) -> bool {
    let rest = start.trim_ascii_start();
    let Some(rest) = rest.strip_prefix(b"{") else { return false };
    let rest = rest.trim_ascii_start();
    rest.starts_with(b"\"") || rest.starts_with(b"}")
}

/// The first object of a file.
#[derive(Deserialize)]
struct First {
    workload_graph: Option<Vec<Map<String, Json>>>,
    /// Nodes of PyTorch's own trace.
    nodes: Option<IgnoredAny>,
    /// A node has one of these.
    id: Option<IgnoredAny>,
    r#type: Option<IgnoredAny>,
}

/// A node as protobuf writes it.
#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct JsonNode {
    id: Whole,
    name: String,
    r#type: Kind,
    #[serde(alias = "ctrl_deps")]
    ctrl_deps: Vec<Whole>,
    #[serde(alias = "data_deps")]
    data_deps: Vec<Whole>,
    #[serde(alias = "duration_micros")]
    duration_micros: Whole,
    inputs: Option<JsonValues>,
    attr: Vec<Map<String, Json>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct JsonValues {
    values: String,
}

/// A whole number from 0 on; protobuf writes those of 64 bits as strings.
#[derive(Clone, Copy, Default)]
struct Whole(u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = Json::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom(format!("expected a whole number from 0 on, found {found}"));
        whole(&found).map(Whole).ok_or_else(wrong)
    }
}

fn whole(found: &Json) -> Option<u64> {
    match found {
        Json::String(text) => text.parse().ok(),
        other => other.as_u64(),
    }
}

/// A [`NodeType`], by name or number.
#[derive(Clone, Copy, Default)]
struct Kind(i32);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = Json::deserialize(deserializer)?;
        let wrong =
            || serde::de::Error::custom(format!("type: expected one such as \"COMP_NODE\", found {found}"));
        kind(&found).map(Kind).ok_or_else(wrong)
    }
}

fn kind(found: &Json) -> Option<i32> {
    match found {
        Json::String(name) => named::<NodeType>(name.strip_suffix("_NODE")?).map(i32::from),
        other => other.as_i64().and_then(|number| i32::try_from(number).ok()),
    }
}

/// Reads a whole file.
pub(super) fn read(reader: Box<dyn BufRead>, found: &mut Found) -> Result<(), JobError> {
    let mut objects = serde_json::Deserializer::from_reader(reader);
    let first =
        First::deserialize(&mut objects).map_err(|error| found.no_trace(format!("its metadata: {error}")))?;
    if let Some(nodes) = first.workload_graph {
        return nodes.into_iter().try_for_each(|node| {
            let bytes = node.len() as u64 * BYTES_PER_FIELD;
            let node = node_of_feeder(node).map_err(|problem| found.malformed(problem))?;
            found.add(node, bytes)
        });
    }
    if first.nodes.is_some() {
        let problem = "this is the trace of PyTorch's execution trace observer: expected what chakra_trace_link and chakra_converter make of it";
        return Err(found.no_trace(problem));
    }
    if first.id.is_some() || first.r#type.is_some() {
        let problem = "expected the metadata before the first node, such as { \"version\": \"0.0.4\" }";
        return Err(found.no_trace(problem));
    }
    let mut nodes = objects.into_iter::<JsonNode>();
    loop {
        let before = nodes.byte_offset();
        let Some(node) = nodes.next() else { return Ok(()) };
        let node = node.map_err(|error| found.malformed(error))?;
        let bytes = (nodes.byte_offset() - before) as u64;
        found.add(node.into_node(), bytes)?;
    }
}

impl JsonNode {
    fn into_node(self) -> Node {
        let numbers = |list: Vec<Whole>| list.into_iter().map(|Whole(number)| number).collect();
        Node {
            id: self.id.0,
            name: self.name,
            kind: self.r#type.0,
            ctrl_deps: numbers(self.ctrl_deps),
            data_deps: numbers(self.data_deps),
            duration_micros: self.duration_micros.0,
            inputs: self.inputs.map(|JsonValues { values }| Values { values }),
            attr: self.attr.into_iter().filter_map(attribute).collect(),
        }
    }
}

/// `{ "name": "comm_size", "int64Val": "1048576" }`; none without a name.
fn attribute(fields: Map<String, Json>) -> Option<Attribute> {
    let mut attribute = Attribute::default();
    for (key, found) in fields {
        match key.as_str() {
            "name" => found.as_str()?.clone_into(&mut attribute.name),
            "docString" | "doc_string" => {}
            "boolList" | "bool_list" => attribute.value = list(&found).map(Value::Bools),
            key => {
                let is_text = key.trim_end_matches("Val").trim_end_matches("_val") == "string";
                attribute.value = scalar(found, is_text);
            }
        }
    }
    (!attribute.name.is_empty()).then_some(attribute)
}

/// A list of truth values; one of none is `{}`.
fn list(found: &Json) -> Option<BoolList> {
    let values = match found.get("values") {
        None => Vec::new(),
        Some(values) => values.as_array()?.iter().map(Json::as_bool).collect::<Option<_>>()?,
    };
    Some(BoolList { values })
}

/// A single value; `is_text` says whether a string is one, and not a number of 64 bits.
fn scalar(found: Json, is_text: bool) -> Option<Value> {
    Some(match found {
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => Value::Uint64(value),
            (None, Some(value)) => Value::Int64(value),
            (None, None) => Value::Double(number.as_f64()?),
        },
        Json::String(text) if !is_text => match (text.parse(), text.parse()) {
            (Ok(value), _) => Value::Uint64(value),
            (_, Ok(value)) => Value::Int64(value),
            _ => Value::Text(text),
        },
        Json::String(text) => Value::Text(text),
        Json::Null | Json::Array(_) | Json::Object(_) => return None,
    })
}

/// A node of the feeder's form.
fn node_of_feeder(mut fields: Map<String, Json>) -> Result<Node, String> {
    let mut number = |name: &str| match fields.remove(name) {
        None => Ok(None),
        Some(found) => match whole(&found) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{name}: expected a whole number from 0 on, found {found}")),
        },
    };
    let (id, runtime) = (number("Id")?, number("runtime")?);
    let id = id.ok_or("expected `Id`, a whole number")?;
    let wrong = |name: &str, expected: &str| format!("node {id}: {name}: expected {expected}");
    let kind = fields.remove("NodeType").and_then(|found| kind(&found));
    let kind = kind.ok_or_else(|| wrong("NodeType", "a type of node, such as 4 (computation)"))?;
    let name = fields.remove("Name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    let data_deps = match fields.remove("data_deps") {
        None => Vec::new(),
        Some(list) => {
            let numbers = list.as_array().and_then(|list| list.iter().map(whole).collect());
            numbers.ok_or_else(|| wrong("data_deps", "a list of nodes"))?
        }
    };
    let attr = fields.into_iter().map(|(name, found)| Attribute { name, value: scalar(found, true) });
    Ok(Node {
        id,
        name,
        kind,
        ctrl_deps: Vec::new(),
        data_deps,
        duration_micros: runtime.unwrap_or(0),
        inputs: None,
        attr: attr.collect(),
    })
}
