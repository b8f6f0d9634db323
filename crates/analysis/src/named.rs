//! A kind inside another kind's parameters: `routing = { kind = "spain", layers = 9 }`.

use netloom_units::kind::Kind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};

/// A value of a named kind, read from a table with a `kind` and that kind's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<K>(pub K);

impl<K: Serialize> Serialize for Named<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, K: Kind> Deserialize<'de> for Named<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = toml::Table::deserialize(deserializer)?;
        read_kind(table).map(Named).map_err(de::Error::custom)
    }
}

/// Reads a kind from a table; the error names the kind and the field.
pub(crate) fn read_kind<K: Kind>(mut table: toml::Table) -> Result<K, String> {
    let axis = K::AXIS;
    let name = match table.remove("kind") {
        Some(toml::Value::String(name)) => name,
        Some(other) => return Err(format!("{axis}: kind: expected a string, found {other}")),
        None => return Err(format!("{axis}: missing field `kind`, one of {}", K::NAMES.join(", "))),
    };
    match K::read(&name, toml::Value::Table(table)) {
        Some(read) => read.map_err(|error| format!("{axis} {name}: {}", error.to_string().trim_end())),
        None => Err(format!("{axis}: no kind \"{name}\"; expected one of {}", K::NAMES.join(", "))),
    }
}

impl<K: Kind> JsonSchema for Named<K> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        K::AXIS.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "required": ["kind"], "properties": { "kind": { "enum": K::NAMES } } })
    }
}
