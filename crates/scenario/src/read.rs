//! From a [`Node`] to a checked value, with errors that point at the words to blame.
//!
//! This is a serde deserializer of our own because the words of a scenario come from several texts. How a kind is
//! written, and how it is read, stands in [`netloom_units::kind`]; here its errors get their places and the names of
//! what could have been written.

use std::fmt;

use netloom_units::names::{nearest, shorten, suggest};
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor};

use crate::document::{Entry, Node, Table, Value};
use crate::source::{Place, Problem};

/// Reads a value, finding as many problems as it can: after one, the field to blame is left out and reading goes on.
///
/// # Errors
/// All problems found, each with its field below `path` and its place.
pub fn read<T: DeserializeOwned>(node: &Node, path: &str) -> Result<T, Vec<Problem>> {
    read_beside(node, path, &[])
}

/// As [`read`], of a table whose fields `others` were taken out already; they are named where a field is misspelt.
pub(crate) fn read_beside<T: DeserializeOwned>(
    node: &Node,
    path: &str,
    others: &[&str],
) -> Result<T, Vec<Problem>> {
    collect(node, path, others, |node| T::deserialize(Reader::new(node)))
}

/// What an axis is called until the table that it is written in says more.
const UNNAMED_AXIS: &str = "choice";

/// Enough to be useful, few enough to be read.
const MOST_PROBLEMS: usize = 12;

fn collect<T>(
    node: &Node,
    path_of_node: &str,
    others: &[&str],
    read_once: impl Fn(&Node) -> Result<T, Error>,
) -> Result<T, Vec<Problem>> {
    let mut rest = node.clone();
    let mut problems = Vec::new();
    let mut blamed: Vec<Vec<String>> = Vec::new();
    loop {
        let mut error = match read_once(&rest) {
            Ok(value) if problems.is_empty() => return Ok(value),
            Ok(_) => return Err(problems),
            Err(error) => error,
        };
        // A required field that was left out because it was wrong is not missing.
        if error.missing().is_some_and(|field| blamed.iter().any(|path| path.starts_with(&field))) {
            return Err(problems);
        }
        let mut path = error.0.path.clone();
        if let (What::UnknownField { valid, .. }, [_]) = (&mut error.0.what, path.as_slice()) {
            valid.extend(others.iter().map(|&name| name.to_owned()));
        }
        problems.push(error.into_problem(path_of_node, node));
        if path.last().is_some_and(|last| last == "kind") {
            path.pop();
        }
        if problems.len() == MOST_PROBLEMS || !rest.prune(&path) {
            return Err(problems);
        }
        blamed.push(path);
    }
}

/// Which kind a node names, and where.
struct KindOf<'a> {
    name: &'a str,
    place: &'a Place,
    /// Whether the name is a table's `kind` key, not the node itself.
    in_table: bool,
}

impl<'a> KindOf<'a> {
    fn find(node: &'a Node, axis: &str, names: &[&'static str]) -> Result<Self, Error> {
        let wanted = || format!("a {axis}: a name, or a table with a `kind`");
        match &node.value {
            Value::String(name) => Ok(KindOf { name, place: &node.place, in_table: false }),
            Value::Table(table) => match table.get("kind") {
                Some(Node { value: Value::String(name), place }) => {
                    Ok(KindOf { name, place, in_table: true })
                }
                Some(other) => {
                    let what = What::Type { expected: format!("a {axis}'s name"), found: other.describe() };
                    Err(Error::new(what).within(&other.place).below("kind"))
                }
                None => {
                    let names = names.join(", ");
                    let what = What::Other(format!("`kind` is missing; expected one of {names}"));
                    Err(Error::new(what).within(&node.place))
                }
            },
            _ => {
                let what = What::Type { expected: wanted(), found: node.describe() };
                Err(Error::new(what).within(&node.place))
            }
        }
    }

    fn unknown(&self, axis: &str, names: &[&'static str]) -> Error {
        let what = What::UnknownKind {
            axis: lower_words(axis),
            found: self.name.to_owned(),
            valid: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let error = Error::new(what).within(self.place);
        if self.in_table { error.below("kind") } else { error }
    }
}

/// What is wrong, where, and in which field.
#[derive(Clone, Debug)]
pub(crate) struct Error(Box<Details>);

#[derive(Clone, Debug)]
struct Details {
    what: What,
    place: Option<Place>,
    /// Keys from the value that is read down to the one to blame.
    path: Vec<String>,
    /// The kind whose table was being read.
    kind: Option<String>,
}

#[derive(Clone, Debug)]
enum What {
    UnknownField { found: String, valid: Vec<String> },
    UnknownKind { axis: String, found: String, valid: Vec<String> },
    Missing { field: String },
    Type { expected: String, found: String },
    Other(String),
}

impl Error {
    fn new(what: What) -> Self {
        Error(Box::new(Details { what, place: None, path: Vec::new(), kind: None }))
    }

    /// Gives the error a place unless it has a nearer one.
    fn within(mut self, place: &Place) -> Self {
        self.0.place.get_or_insert_with(|| place.clone());
        self
    }

    fn below(mut self, key: &str) -> Self {
        self.0.path.insert(0, key.to_owned());
        self
    }

    fn kind(mut self, kind: &str) -> Self {
        // Only the innermost kind's fields are meant.
        if self.0.path.len() <= 1 && self.0.kind.is_none() {
            self.0.kind = Some(kind.to_owned());
        }
        self
    }

    /// Adds to the error of a table what the table is: the struct or axis that it is read as, which fields may stand in it,
    /// and its kind.
    fn in_table(mut self, axis: &str, fields: &[&str], kind: Option<&str>) -> Self {
        let path: Vec<&str> = self.0.path.iter().map(String::as_str).collect();
        match (&mut self.0.what, path.as_slice()) {
            (What::UnknownField { valid, .. }, [_]) => {
                let others = fields.iter().filter(|&&field| !valid.iter().any(|known| known == field));
                let others: Vec<String> = others.map(|&field| field.to_owned()).collect();
                valid.extend(others);
            }
            (What::UnknownKind { axis: named, .. }, [] | ["kind"]) if named == UNNAMED_AXIS => {
                *named = lower_words(axis);
            }
            _ => {}
        }
        match kind {
            Some(kind) => self.kind(kind),
            None => self,
        }
    }

    /// The field that is missing, from the value that is read down.
    fn missing(&self) -> Option<Vec<String>> {
        let What::Missing { field } = &self.0.what else { return None };
        Some(self.0.path.iter().chain([field]).cloned().collect())
    }

    fn into_problem(self, base: &str, root: &Node) -> Problem {
        let Details { what, place, path, kind } = *self.0;
        let mut field: Vec<&str> = Vec::new();
        field.extend(Some(base).filter(|base| !base.is_empty()));
        field.extend(path.iter().map(String::as_str));
        // Where `kind` itself is unknown, its value is no kind.
        let has_kinds = !matches!(&what, What::UnknownField { found, .. } if found == "kind");
        let owner =
            kind.as_deref().filter(|_| has_kinds).map(|kind| format!(" of `{kind}`")).unwrap_or_default();
        let (message, help) = match &what {
            What::UnknownField { found, valid } if valid.is_empty() => {
                (format!("unknown field `{}`{owner}", shorten(found)), Some("it has no fields".to_owned()))
            }
            What::UnknownField { found, valid } => (
                format!("unknown field `{}`{owner}", shorten(found)),
                // Only a kind's own fields are known here; who misspelt `kind` has another kind's.
                Some(suggest(
                    found,
                    valid.iter().map(String::as_str).chain(nearest(found, ["kind"]).filter(|_| has_kinds)),
                )),
            ),
            What::UnknownKind { axis, found, valid } => (
                format!("there is no {axis} `{}`", shorten(found)),
                Some(suggest(found, valid.iter().map(String::as_str))),
            ),
            What::Missing { field } => match kind {
                Some(kind) => (format!("`{kind}` needs `{field}`"), None),
                None => (format!("`{field}` is missing"), None),
            },
            What::Type { expected, found } => (format!("expected {expected}, found {found}"), None),
            What::Other(message) => (message.clone(), None),
        };
        let place = place.unwrap_or_else(|| root.nearest_place(path.iter().map(String::as_str)));
        let is_unknown_field = matches!(what, What::UnknownField { .. });
        Problem { message, field: field.join("."), help, place: Some(place), is_unknown_field }
    }
}

/// The name of a type as words: `NicSelection` is a nic selection.
fn lower_words(name: &str) -> String {
    let mut words = String::new();
    for (at, character) in name.char_indices() {
        if character.is_uppercase() && at > 0 {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    words
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.what)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::new(What::Other(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Str(text) => format!("string {:?}", shorten(text)),
            Unexpected::Map => "a table".to_owned(),
            Unexpected::Seq => "a list".to_owned(),
            other => {
                other.to_string().replace("integer `", "number `").replace("floating point `", "number `")
            }
        };
        Error::new(What::Type { expected: in_words(&expected.to_string()), found })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(found: &str, valid: &'static [&'static str]) -> Self {
        let valid = valid.iter().map(|&name| name.to_owned()).collect();
        let what = What::UnknownKind { axis: UNNAMED_AXIS.to_owned(), found: found.to_owned(), valid };
        Error::new(what)
    }

    fn unknown_field(found: &str, valid: &'static [&'static str]) -> Self {
        let valid = valid.iter().map(|&name| name.to_owned()).collect();
        Error::new(What::UnknownField { found: found.to_owned(), valid })
    }

    fn missing_field(field: &'static str) -> Self {
        Error::new(What::Missing { field: field.to_owned() })
    }
}

/// What serde expects, in words of people: its name of a number's type says which numbers there are.
fn in_words(expected: &str) -> String {
    let whole = |from: &str, to: &str| format!("a whole number from {from} to {to}");
    match expected {
        "u8" => whole("0", &u8::MAX.to_string()),
        "u16" => whole("0", &u16::MAX.to_string()),
        "u32" => whole("0", &u32::MAX.to_string()),
        // TOML knows no larger one.
        "u64" | "usize" => whole("0", &i64::MAX.to_string()),
        "i32" => whole(&i32::MIN.to_string(), &i32::MAX.to_string()),
        "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        // What a table is called in here says nothing to a user who writes one.
        table if table.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}

/// A node, to be read.
#[derive(Clone, Copy)]
struct Reader<'a> {
    node: &'a Node,
    /// Whether the `kind` of the table has been read.
    is_known: bool,
}

impl<'a> Reader<'a> {
    fn new(node: &'a Node) -> Self {
        Reader { node, is_known: false }
    }

    fn fields(&self) -> Fields<'a> {
        let entries: &[Entry] = self.node.as_table().map_or(&[], |table: &Table| &table.0);
        // The kind comes first: it says how to read the others.
        let kind = entries.iter().find(|entry| entry.key == KIND).filter(|_| !self.is_known);
        Fields { kind, entries: entries.iter(), current: None }
    }
}

impl<'de> de::Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_known {
            return visitor.visit_map(self.fields()).map_err(|error| error.within(&self.node.place));
        }
        match &self.node.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Array(items) => visitor.visit_seq(Items { items: items.iter(), position: 0 }),
            Value::Table(_) => visitor.visit_map(self.fields()),
        }
        .map_err(|error: Error| error.within(&self.node.place))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        axis: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let kind = self.node.as_table().and_then(|table| table.get(KIND)).and_then(Node::as_str);
        self.deserialize_any(visitor).map_err(|error| error.in_table(axis, fields, kind))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        axis: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let kind = KindOf::find(self.node, axis, names)?;
        if !names.contains(&kind.name) {
            return Err(kind.unknown(axis, names));
        }
        visitor
            .visit_enum(Choice { name: kind.name, node: self.node })
            .map_err(|error: Error| error.within(&self.node.place).kind(kind.name))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

impl<'a> IntoDeserializer<'a, Error> for Reader<'a> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

/// The key that names the kind of a table.
const KIND: &str = "kind";

struct Fields<'a> {
    /// The entry that names the kind, until it has been given out.
    kind: Option<&'a Entry>,
    entries: std::slice::Iter<'a, Entry>,
    current: Option<&'a Entry>,
}

impl<'a> de::MapAccess<'a> for Fields<'a> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.current = self.kind.take().or_else(|| self.entries.by_ref().find(|entry| entry.key != KIND));
        let Some(entry) = self.current else { return Ok(None) };
        let key: StrDeserializer<'_, Error> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|error| error.within(&entry.key_place).below(&entry.key))
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some(entry) = self.current else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        seed.deserialize(Reader::new(&entry.node))
            .map_err(|error| error.within(&entry.node.place).below(&entry.key))
    }
}

struct Items<'a> {
    items: std::slice::Iter<'a, Node>,
    position: usize,
}

impl<'a> de::SeqAccess<'a> for Items<'a> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let position = self.position.to_string();
        self.position += 1;
        seed.deserialize(Reader::new(item))
            .map(Some)
            .map_err(|error| error.within(&item.place).below(&position))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Choice<'a> {
    name: &'a str,
    node: &'a Node,
}

impl<'a> de::EnumAccess<'a> for Choice<'a> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'a>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let name: StrDeserializer<'_, Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'a> de::VariantAccess<'a> for Choice<'a> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        let extra = self.node.as_table().and_then(|table| table.0.iter().find(|entry| entry.key != "kind"));
        match extra {
            None => Ok(()),
            Some(entry) => {
                let what = What::UnknownField { found: entry.key.clone(), valid: Vec::new() };
                Err(Error::new(what).within(&entry.key_place).below(&entry.key))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(Reader { node: self.node, is_known: true })
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        de::Deserializer::deserialize_any(Reader { node: self.node, is_known: true }, visitor)
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        de::Deserializer::deserialize_any(Reader { node: self.node, is_known: true }, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Problems, Source};
    use netloom_units::{Time, kinds};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// By a table.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Flowlet {
        gap: Time,
        count: u32,
        ratio: f64,
        when: When,
    }

    impl Default for Flowlet {
        fn default() -> Self {
            Flowlet { gap: Time::from_us(100), count: 1, ratio: 1.0, when: When::Early }
        }
    }

    /// By nothing.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Packet {}

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum When {
        Early,
        Late,
    }

    kinds! {
        /// When a scheme may choose another path.
        enum Granularity: "granularity" {
            "flowlet" => Flowlet(Flowlet),
            "packet" => Packet(Packet),
        }
    }

    fn node(text: &str) -> Node {
        let root = Node::parse(&Source::new("t.toml", text)).unwrap();
        root.at(["g"]).unwrap().clone()
    }

    fn problems(text: &str) -> String {
        Problems(read::<Granularity>(&node(text), "routing.granularity").unwrap_err()).to_string()
    }

    #[test]
    fn a_kind_is_a_table_or_a_bare_name() {
        let expected = Flowlet { gap: Time::from_us(50), ratio: 2.0, when: When::Late, ..Flowlet::default() };
        let table = node("g = { kind = \"flowlet\", gap = \"50us\", ratio = 2, when = \"late\" }");
        assert_eq!(read::<Granularity>(&table, ""), Ok(Granularity::Flowlet(expected)));
        assert_eq!(read::<Granularity>(&node("g = \"packet\""), ""), Ok(Granularity::Packet(Packet {})));
    }

    #[test]
    fn a_misspelt_field_is_pointed_at_with_the_nearest_name() {
        assert_eq!(
            problems("[g]\nkind = \"flowlet\"\ngapp = \"50us\"\n"),
            "t.toml:3:1: routing.granularity.gapp: unknown field `gapp` of `flowlet` \
             (did you mean `gap`? valid here: gap, count, ratio, when)"
        );
    }

    #[test]
    fn a_wrong_unit_is_pointed_at_with_what_was_expected() {
        let found = problems("[g]\nkind = \"flowlet\"\ngap = \"50 parsecs\"\n");
        assert!(found.starts_with("t.toml:3:7: routing.granularity.gap: expected a time"), "{found}");
        let found = problems("[g]\nkind = \"flowlet\"\ngap = 50\n");
        assert!(found.contains("t.toml:3:7: routing.granularity.gap: expected a time"), "{found}");
        assert!(found.ends_with("found number `50`"), "{found}");
    }

    #[test]
    fn an_unknown_kind_lists_the_kinds() {
        assert_eq!(
            problems("g = { kind = \"flowlett\" }"),
            "t.toml:1:14: routing.granularity.kind: there is no granularity `flowlett` \
             (did you mean `flowlet`? valid here: flowlet, packet)"
        );
        assert!(
            problems("g = \"zebra\"").contains("t.toml:1:5: routing.granularity: there is no granularity")
        );
        assert!(problems("g = { gap = \"1us\" }").contains("`kind` is missing"));
        assert!(problems("g = { kind = 3 }").contains("expected a granularity's name, found number `3`"));
        assert!(
            problems("g = 3")
                .contains("expected a granularity: a name, or a table with a `kind`, found number `3`")
        );
    }

    #[test]
    fn all_problems_of_a_table_are_found_at_once() {
        let found =
            problems("[g]\nkind = \"flowlet\"\ngapp = 1\ncount = -1\nratio = \"x\"\nwhen = \"latte\"\n");
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines.len(), 4, "{found}");
        assert!(lines[1].contains("t.toml:4:9: routing.granularity.count: expected a whole number from 0 to 4294967295, found number `-1`"));
        assert!(lines[3].contains("did you mean `late`?"), "{found}");
    }

    #[test]
    fn a_field_of_a_kind_without_fields_is_refused() {
        assert!(problems("g = { kind = \"packet\", gap = 1 }").contains("unknown field `gap` of `packet`"));
    }
}
