//! Closed sets of named kinds with documented parameters.
//!
//! An axis of a scenario (the selector of a routing scheme, the pattern of a workload) is an enum whose variants
//! each hold a config struct. [`kinds!`](crate::kinds) declares such an enum; from the one declaration come the
//! names a user may write, the reader (`Deserialize`), the JSON schema that editors use, and the reference that
//! `netloom list` prints (descriptions and defaults are taken from the config struct's doc comments and `Default`).
//!
//! ```
//! use netloom_units::kind::Kind;
//! use netloom_units::{Time, kinds};
//!
//! /// Re-decides after an idle gap.
//! #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields, default)]
//! pub struct Flowlet {
//!     /// Idle time after which a new path may be taken.
//!     pub gap: Time,
//! }
//! impl Default for Flowlet {
//!     fn default() -> Self {
//!         Flowlet { gap: Time::from_us(100) }
//!     }
//! }
//!
//! kinds! {
//!     /// When a scheme may choose another path.
//!     pub enum Granularity: "granularity" {
//!         "flowlet" => Flowlet(Flowlet),
//!     }
//! }
//!
//! let info = &Granularity::kinds()[0];
//! assert_eq!((info.name, info.fields[0].default.as_str()), ("flowlet", "\"100us\""));
//!
//! let read: Granularity = toml::from_str("gap = '50us'\nkind = 'flowlet'").unwrap();
//! assert_eq!(read, Granularity::Flowlet(Flowlet { gap: Time::from_us(50) }));
//! ```
//!
//! A kind is written as a table with a `kind` key, wherever in the table that stands, or where no parameter is given as its bare
//! name: `selector = "hash"` is short for `selector = { kind = "hash" }`. There is one reader for all of them,
//! [`deserialize`]; a scenario's deserializer gives its errors the places of the words to blame. (JSON knows the table
//! only.) Where other fields share a kind's table, as the options of a workload do, they are read on the way:
//! [`deserialize_beside`].

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserializer;
use serde::de::value::{MapAccessDeserializer, MapDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{self, Deserialize, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};

#[doc(hidden)]
pub use schemars;

/// The reference entry of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// The name a user writes as `kind = "…"`.
    pub name: &'static str,
    /// What it does and which paper it comes from.
    pub doc: String,
    /// Its parameters, in declaration order.
    pub fields: Vec<FieldInfo>,
}

/// The reference entry of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// The name a user writes.
    pub name: String,
    /// What it means, with its unit.
    pub doc: String,
    /// The default as JSON, or an empty string where the field is required or absent by default.
    pub default: String,
    /// Whether it has to be written.
    pub is_required: bool,
    /// What may be written, with its unit, e.g. ``a time, such as `"1.5us"` ``; empty where the schema does not say, and for tables and kinds.
    pub accepts: String,
    /// The words that can be written, where it is a choice among words.
    pub values: Vec<ValueInfo>,
    /// The fields of its table, or of each of its tables, where it is one.
    pub fields: Vec<FieldInfo>,
}

/// The reference entry of a word that is the value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// The word.
    pub name: String,
    /// What it means.
    pub doc: String,
}

/// An axis: a closed set of named kinds. Implemented by [`kinds!`](crate::kinds).
pub trait Kind: Sized + DeserializeOwned + JsonSchema {
    /// What the axis is called in a scenario, e.g. `selector`.
    const AXIS: &'static str;
    /// Every name, in declaration order.
    const NAMES: &'static [&'static str];

    /// The name of this value's kind.
    fn name(&self) -> &'static str;

    /// The reference entries of all kinds.
    fn kinds() -> Vec<KindInfo>;

    /// Reads the parameters of the kind `name` from a table without its `kind` key.
    ///
    /// Returns `None` if there is no such kind.
    fn read<'de, D: Deserializer<'de>>(name: &str, table: D) -> Option<Result<Self, D::Error>>;
}

/// Fields that share the table of a kind, and where they are kept once read.
pub trait Beside {
    /// Their names, none of which a kind uses for a parameter of its own.
    const FIELDS: &'static [&'static str];

    /// Reads the value of one of them.
    ///
    /// # Errors
    /// Those of the value.
    fn read<'de, A: MapAccess<'de>>(&mut self, field: &'static str, map: &mut A) -> Result<(), A::Error>;
}

/// Nothing stands beside the kind's own parameters.
struct Nothing;

impl Beside for Nothing {
    const FIELDS: &'static [&'static str] = &[];
    fn read<'de, A: MapAccess<'de>>(&mut self, field: &'static str, _: &mut A) -> Result<(), A::Error> {
        Err(de::Error::unknown_field(field, &[]))
    }
}

/// Reads a kind from its table or its bare name.
///
/// # Errors
/// If there is no such kind, or those of its parameters.
pub fn deserialize<'de, K: Kind, D: Deserializer<'de>>(deserializer: D) -> Result<K, D::Error> {
    deserialize_beside(deserializer, &mut Nothing)
}

/// Reads a kind from a table in which other fields stand as well; these are handed to `beside`.
///
/// # Errors
/// If there is no such kind, or those of any field.
pub fn deserialize_beside<'de, K: Kind, B: Beside, D: Deserializer<'de>>(
    deserializer: D,
    beside: &mut B,
) -> Result<K, D::Error> {
    // A deserializer that knows its words names the axis and these fields in its errors.
    deserializer.deserialize_struct(K::AXIS, B::FIELDS, Table { beside, kind: PhantomData })
}

struct Table<'b, K, B> {
    beside: &'b mut B,
    kind: PhantomData<K>,
}

impl<'de, K: Kind, B: Beside> Visitor<'de> for Table<'_, K, B> {
    type Value = K;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {}: a name, or a table with a `kind`", K::AXIS)
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<K, E> {
        let no_fields = MapDeserializer::<_, E>::new(std::iter::empty::<(&str, &str)>());
        K::read(name, no_fields).unwrap_or_else(|| Err(E::unknown_variant(name, K::NAMES)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<K, A::Error> {
        // The name says how to read the rest. What stands before it is kept until it is known.
        let mut before = Vec::new();
        let name = loop {
            match map.next_key::<String>()? {
                Some(key) if key == "kind" => break map.next_value_seed(Name::<K>(PhantomData))?,
                Some(key) => match B::FIELDS.iter().find(|&&field| field == key) {
                    Some(field) => self.beside.read(field, &mut map)?,
                    None => before.push((key, map.next_value::<Value>()?)),
                },
                None => {
                    let names = K::NAMES.join(", ");
                    return Err(de::Error::custom(format!("`kind` is missing; expected one of {names}")));
                }
            }
        };
        let rest = Rest { before: before.into_iter(), value: None, map, beside: self.beside };
        match K::read(name, MapAccessDeserializer::new(rest)) {
            Some(read) => read,
            None => Err(de::Error::unknown_variant(name, K::NAMES)),
        }
    }
}

/// The name of a kind.
struct Name<K>(PhantomData<K>);

impl<'de, K: Kind> DeserializeSeed<'de> for Name<K> {
    type Value = &'static str;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<K: Kind> Visitor<'_> for Name<K> {
    type Value = &'static str;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {}'s name", K::AXIS)
    }
    fn visit_str<E: de::Error>(self, name: &str) -> Result<&'static str, E> {
        let known = K::NAMES.iter().find(|&&known| known == name);
        known.copied().ok_or_else(|| E::unknown_variant(name, K::NAMES))
    }
}

/// The parameters of a kind: what stood before its name, then what comes after it, without the fields beside them.
struct Rest<'b, A, B> {
    before: std::vec::IntoIter<(String, Value)>,
    /// The value of the last key that came from `before`.
    value: Option<Value>,
    map: A,
    beside: &'b mut B,
}

impl<'de, A: MapAccess<'de>, B: Beside> MapAccess<'de> for Rest<'_, A, B> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, mut seed: S) -> Result<Option<S::Value>, A::Error> {
        if let Some((key, value)) = self.before.next() {
            self.value = Some(value);
            let key: StringDeserializer<A::Error> = key.into_deserializer();
            return seed.deserialize(key).map(Some);
        }
        loop {
            match self.map.next_key_seed(Key::<S, B> { seed, beside: PhantomData })? {
                None => return Ok(None),
                Some(Found::Own(key)) => return Ok(Some(key)),
                Some(Found::Beside(field, unused)) => {
                    self.beside.read(field, &mut self.map)?;
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.value.take() {
            Some(value) => seed.deserialize(value).map_err(de::Error::custom),
            None => self.map.next_value_seed(seed),
        }
    }
}

/// A key: one of the kind's own, read as it wishes, or one of those beside.
struct Key<S, B> {
    seed: S,
    beside: PhantomData<B>,
}

enum Found<T, S> {
    Own(T),
    Beside(&'static str, S),
}

impl<'de, S: DeserializeSeed<'de>, B: Beside> DeserializeSeed<'de> for Key<S, B> {
    type Value = Found<S::Value, S>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let key = Cow::<str>::deserialize(deserializer)?;
        match B::FIELDS.iter().find(|&&field| field == key) {
            Some(field) => Ok(Found::Beside(field, self.seed)),
            // An unknown field is refused in here, so that the deserializer knows which key was to blame.
            None => self.seed.deserialize(StrDeserializer::<D::Error>::new(&key)).map(Found::Own),
        }
    }
}

/// Extracts the reference entry of a config struct from its schema.
pub fn describe<T: JsonSchema>(name: &'static str) -> KindInfo {
    describe_table(name, &schemars::schema_for!(T).to_value())
}

/// The same from the schema of a table, whose references lead into itself.
pub fn describe_table(name: &'static str, schema: &Value) -> KindInfo {
    KindInfo { name, doc: text(schema, "description"), fields: fields(schema, schema, 0) }
}

/// Tables within tables are described so deep.
const DEEPEST: usize = 3;

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned()
}

/// The fields of a struct's schema; `root` is where references lead.
fn fields(root: &Value, schema: &Value, depth: usize) -> Vec<FieldInfo> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let field = |(name, field): (&String, &Value)| {
        let (mut values, mut inner) = (Vec::new(), Vec::new());
        if depth < DEEPEST {
            look_into(root, field, depth, &mut values, &mut inner);
        }
        FieldInfo {
            name: name.clone(),
            doc: text(field, "description"),
            default: match field.get("default") {
                None | Some(Value::Null) => String::new(),
                Some(value) => value.to_string(),
            },
            is_required: required.contains(&name.as_str()),
            accepts: accepts(root, field),
            values,
            fields: inner,
        }
    };
    properties.into_iter().flatten().map(field).collect()
}

/// What a field's schema accepts, in words.
fn accepts(root: &Value, schema: &Value) -> String {
    if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
        return root
            .pointer(path.trim_start_matches('#'))
            .map(|target| accepts(root, target))
            .unwrap_or_default();
    }
    let alternatives = schema.get("anyOf").and_then(Value::as_array);
    if let Some(alternatives) = alternatives {
        let mut texts: Vec<String> = alternatives.iter().map(|schema| accepts(root, schema)).collect();
        texts.retain(|text| !text.is_empty());
        texts.dedup();
        return texts.join(", or ");
    }
    match schema.get("format").and_then(Value::as_str) {
        Some("Time") => return "a time, such as `\"1.5us\"`".to_owned(),
        Some("Rate") => return "a rate, such as `\"100Gbps\"`".to_owned(),
        Some("Bytes") => return "a size, such as `\"8MiB\"` or a number of bytes".to_owned(),
        _ => {}
    }
    let types = match schema.get("type") {
        Some(Value::String(only)) => vec![only.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let has = |name: &str| types.contains(&name);
    if schema.get("enum").is_some() || schema.get("oneOf").is_some() {
        String::new()
    } else if has("boolean") {
        "`true` or `false`".to_owned()
    } else if has("integer") {
        match schema.get("minimum").and_then(Value::as_i64) {
            Some(least) if least > 0 => format!("a whole number, at least {least}"),
            _ => "a whole number".to_owned(),
        }
    } else if has("number") {
        "a number".to_owned()
    } else if has("array") {
        let item = schema.get("items").map(|items| accepts(root, items)).unwrap_or_default();
        if item.is_empty() { "a list".to_owned() } else { format!("a list; each entry is {item}") }
    } else if has("string") {
        "a text".to_owned()
    } else {
        String::new()
    }
}

/// Gathers the words and the fields that a field's schema allows, itself or in one of its alternatives. Kinds are left out: they are
/// an axis of their own, and may hold each other.
fn look_into(
    root: &Value,
    schema: &Value,
    depth: usize,
    values: &mut Vec<ValueInfo>,
    inner: &mut Vec<FieldInfo>,
) {
    if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
        if let Some(target) = root.pointer(path.trim_start_matches('#')) {
            look_into(root, target, depth, values, inner);
        }
        return;
    }
    let is_axis = |alternative: &Value| !alternative["properties"]["kind"]["const"].is_null();
    let alternatives = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    if alternatives("anyOf").any(is_axis) {
        return;
    }
    for alternative in alternatives("anyOf").chain(schema.get("items")) {
        look_into(root, alternative, depth, values, inner);
    }
    for value in alternatives("enum") {
        values.extend(value.as_str().map(|name| ValueInfo { name: name.to_owned(), doc: String::new() }));
    }
    for value in alternatives("oneOf") {
        let name = value.get("const").and_then(Value::as_str);
        values.extend(name.map(|name| ValueInfo { name: name.to_owned(), doc: text(value, "description") }));
    }
    inner.extend(fields(root, schema, depth + 1));
}

/// The schema of an axis from those of its config structs: any kind's table, or the bare name of a kind that requires
/// nothing.
#[doc(hidden)]
pub fn schema(doc: &str, kinds: Vec<(&'static str, Schema)>) -> Schema {
    let mut bare = Vec::new();
    let mut alternatives = Vec::new();
    for (name, config) in kinds {
        let mut table = config.to_value();
        let Some(object) = table.as_object_mut() else { continue };
        let entry = |object: &mut Map<String, Value>, key: &str, empty: Value| {
            object.entry(key.to_owned()).or_insert(empty);
        };
        entry(object, "properties", json!({}));
        entry(object, "required", json!([]));
        object["properties"]["kind"] = json!({ "const": name });
        if object["required"].as_array().is_some_and(Vec::is_empty) {
            bare.push(name);
        }
        if let Some(required) = object["required"].as_array_mut() {
            required.push("kind".into());
        }
        alternatives.push(table);
    }
    alternatives.insert(0, json!({ "enum": bare }));
    let schema = json!({ "description": doc, "anyOf": alternatives });
    Schema::try_from(schema).unwrap_or_default()
}

/// The schema of a kind's table in which the fields of `beside` (whose schema is that of a struct) may stand as well.
pub fn schema_beside<K: Kind>(generator: &mut SchemaGenerator, beside: &[Schema]) -> Schema {
    let mut schema = K::json_schema(generator).to_value();
    for table in schema["anyOf"].as_array_mut().into_iter().flatten() {
        let Some(properties) = table.get_mut("properties").and_then(Value::as_object_mut) else { continue };
        for fields in beside {
            let fields = fields.get("properties").and_then(Value::as_object);
            properties
                .extend(fields.into_iter().flatten().map(|(name, field)| (name.clone(), field.clone())));
        }
    }
    Schema::try_from(schema).unwrap_or_default()
}

/// Declares an axis: an enum of config structs, one per named kind. See the [module](crate::kind).
///
/// Each config struct must implement `Clone`, `Debug`, `PartialEq`, `Serialize`, `Deserialize` (with
/// `deny_unknown_fields`) and `JsonSchema`; the crate that calls the macro must depend on `serde`.
#[macro_export]
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident: $axis:literal {
            $($name:literal => $Variant:ident($Config:ty)),+ $(,)?
        }

        $(#[$fn_meta:meta])*
        $fn_vis:vis fn $function:ident(&self, $argument:ident: $Argument:ty) -> $Result:ty;
    ) => {
        $crate::kinds! {
            $(#[$meta])*
            $vis enum $Name: $axis {
                $($name => $Variant($Config)),+
            }
        }

        impl $Name {
            $(#[$fn_meta])*
            $fn_vis fn $function(&self, $argument: $Argument) -> $Result {
                match self {
                    $($Name::$Variant(config) => config.$function($argument),)+
                }
            }
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident: $axis:literal {
            $($name:literal => $Variant:ident($Config:ty)),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(tag = "kind")]
        $vis enum $Name {
            $(
                #[doc = concat!("`", $name, "`")]
                #[serde(rename = $name)]
                $Variant($Config),
            )+
        }

        impl $crate::kind::Kind for $Name {
            const AXIS: &'static str = $axis;
            const NAMES: &'static [&'static str] = &[$($name),+];

            fn name(&self) -> &'static str {
                match self {
                    $($Name::$Variant(_) => $name,)+
                }
            }

            fn kinds() -> Vec<$crate::kind::KindInfo> {
                vec![$($crate::kind::describe::<$Config>($name)),+]
            }

            fn read<'de, D: serde::Deserializer<'de>>(
                name: &str,
                table: D,
            ) -> Option<Result<Self, D::Error>> {
                match name {
                    $($name => Some(<$Config as serde::Deserialize>::deserialize(table).map($Name::$Variant)),)+
                    _ => None,
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::kind::deserialize(deserializer)
            }
        }

        impl $crate::kind::schemars::JsonSchema for $Name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Name).into()
            }

            // Several rooms have a `Pattern`.
            fn schema_id() -> std::borrow::Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($Name)).into()
            }

            fn json_schema(
                generator: &mut $crate::kind::schemars::SchemaGenerator,
            ) -> $crate::kind::schemars::Schema {
                $crate::kind::schema(
                    concat!("A ", $axis, "."),
                    vec![$(($name, <$Config as $crate::kind::schemars::JsonSchema>::json_schema(generator))),+],
                )
            }
        }
    };
}

#[cfg(test)]
mod tests;
