use super::*;
use serde::Serialize;

/// By a count.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Few {
    count: u8,
    inner: Option<Box<Shape>>,
}

impl Default for Few {
    fn default() -> Self {
        Few { count: 3, inner: None }
    }
}

/// By a file.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Listed {
    file: String,
}

crate::kinds! {
    /// How it looks.
    enum Shape: "shape" {
        "few" => Few(Few),
        "listed" => Listed(Listed),
    }
}

#[derive(Default)]
struct Class(u8);

impl Beside for Class {
    const FIELDS: &'static [&'static str] = &["class"];
    fn read<'de, A: MapAccess<'de>>(&mut self, _: &'static str, map: &mut A) -> Result<(), A::Error> {
        self.0 = map.next_value()?;
        Ok(())
    }
}

fn few(count: u8, inner: Option<Shape>) -> Shape {
    Shape::Few(Few { count, inner: inner.map(Box::new) })
}

#[test]
fn the_name_may_stand_anywhere_in_the_table() {
    for text in [r#"{"kind": "few", "count": 5}"#, r#"{"count": 5, "kind": "few"}"#] {
        assert_eq!(serde_json::from_str::<Shape>(text).unwrap(), few(5, None));
    }
    let nested = r#"{"inner": {"file": "x", "kind": "listed"}, "count": 1, "kind": "few"}"#;
    let listed = Shape::Listed(Listed { file: "x".into() });
    assert_eq!(serde_json::from_str::<Shape>(nested).unwrap(), few(1, Some(listed)));
}

#[test]
fn a_bare_name_means_the_defaults() {
    let table: Map<String, Value> = Map::new();
    assert_eq!(Shape::read("few", table).unwrap().unwrap(), few(3, None));
    #[derive(serde::Deserialize)]
    struct Holder {
        shape: Shape,
    }
    assert_eq!(toml::from_str::<Holder>("shape = 'few'").unwrap().shape, few(3, None));
    assert!(toml::from_str::<Holder>("shape = 'listed'").is_err(), "a file is required");
}

#[test]
fn other_fields_may_share_the_table() {
    for text in [r#"{"class": 4, "kind": "few", "count": 5}"#, r#"{"count": 5, "kind": "few", "class": 4}"#] {
        let mut class = Class::default();
        let mut json = serde_json::Deserializer::from_str(text);
        let shape: Shape = deserialize_beside(&mut json, &mut class).unwrap();
        assert_eq!((shape, class.0), (few(5, None), 4));
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    for (text, expected) in [
        (r#"{"kind": "fwe"}"#, "unknown variant `fwe`, expected `few` or `listed`"),
        (r#"{"count": 5}"#, "`kind` is missing; expected one of few, listed"),
        (r#"{"kind": 3}"#, "expected a shape's name"),
        (r#"{"kind": "few", "class": 3}"#, "unknown field `class`, expected `count` or `inner`"),
        ("3", "expected a shape: a name, or a table with a `kind`"),
    ] {
        let error = serde_json::from_str::<Shape>(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// One field of each sort.
#[derive(serde::Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Sorts {
    time: crate::Time,
    size: Option<crate::Bytes>,
    ways: Option<std::num::NonZeroU8>,
    share: f64,
    names: Vec<String>,
    on: bool,
}

#[test]
fn a_field_says_what_it_accepts() {
    let info = describe::<Sorts>("sorts");
    let field = |name: &str| info.fields.iter().find(|field| field.name == name).unwrap();
    assert_eq!(field("time").accepts, "a time, such as `\"1.5us\"`");
    assert_eq!(field("size").accepts, "a size, such as `\"8MiB\"` or a number of bytes");
    assert_eq!(field("ways").accepts, "a whole number, at least 1");
    assert_eq!(field("share").accepts, "a number");
    assert_eq!(field("names").accepts, "a list; each entry is a text");
    assert_eq!(field("on").accepts, "`true` or `false`");
    assert!(field("time").is_required && !field("size").is_required);
}

#[test]
fn the_schema_names_every_kind_with_its_fields() {
    let schema = schemars::schema_for!(Shape).to_value();
    let alternatives = schema["anyOf"].as_array().unwrap();
    assert_eq!(alternatives[0], json!({ "enum": ["few"] }), "`listed` requires a field");
    assert_eq!(alternatives[1]["properties"]["kind"], json!({ "const": "few" }));
    assert_eq!(alternatives[2]["required"], json!(["file", "kind"]));
    assert_eq!(alternatives[2]["additionalProperties"], json!(false));
}
