//! TOML text as a document, and back.

use netloom_units::names::shorten;
use toml::de::{DeTable, DeValue};

use super::{Entry, Node, Table, Value};
use crate::source::{Place, Problem, Problems, Source};

impl Node {
    /// Reads a TOML document; every syntax error is reported.
    ///
    /// # Errors
    /// All syntax errors, each with its place.
    pub fn parse(source: &Source) -> Result<Node, Problems> {
        let (root, errors) = DeTable::parse_recoverable(source.text());
        if !errors.is_empty() {
            return Err(Problems(errors.iter().map(|error| syntax_problem(error, source)).collect()));
        }
        let place = Place { source: source.clone(), span: 0..0 };
        Ok(Node { value: Value::Table(read_table(root.get_ref(), source)?), place })
    }

    /// Reads a single TOML value, e.g. the right side of an override; what is no TOML value is a bare string.
    ///
    /// `offset` is where `text` starts in `source`.
    ///
    /// # Errors
    /// A number that does not fit 64 bits.
    pub fn parse_value(text: &str, source: &Source, offset: usize) -> Result<Node, Problems> {
        let place = Place { source: source.clone(), span: offset..offset + text.len() };
        let Ok(value) = DeValue::parse(text) else {
            return Ok(Node { value: Value::String(text.trim().to_owned()), place });
        };
        let mut node = read_value(value.get_ref(), 0..text.len(), source)?;
        // All words of an override lie in one short text: the whole right side is the place.
        node.relocate(&place);
        Ok(node)
    }

    /// Serialises any value into a document written nowhere but in the program.
    ///
    /// # Errors
    /// A value that TOML cannot express, e.g. a whole number above 2⁶³ − 1.
    pub fn from_value<T: serde::Serialize>(name: &str, value: &T) -> Result<Node, Problem> {
        Node::write_and_read(name, value).map(|(_, node)| node)
    }

    /// Any value as TOML that reads back.
    ///
    /// # Errors
    /// As [`Node::from_value`].
    pub fn write<T: serde::Serialize>(name: &str, value: &T) -> Result<String, Problem> {
        Node::write_and_read(name, value).map(|(text, _)| text)
    }

    fn write_and_read<T: serde::Serialize>(name: &str, value: &T) -> Result<(String, Node), Problem> {
        let text = toml::to_string(value).map_err(|error| Problem::new(name, error.to_string()))?;
        let node =
            Node::parse(&Source::new(name, text.clone())).map_err(|mut problems| problems.0.remove(0))?;
        Ok((text, node))
    }

    fn relocate(&mut self, place: &Place) {
        self.place = place.clone();
        match &mut self.value {
            Value::Array(items) => items.iter_mut().for_each(|item| item.relocate(place)),
            Value::Table(table) => {
                for entry in &mut table.0 {
                    entry.key_place = place.clone();
                    entry.node.relocate(place);
                }
            }
            _ => {}
        }
    }
}

fn syntax_problem(error: &toml::de::Error, source: &Source) -> Problem {
    let problem = Problem::new("", format!("this is not TOML: {}", error.message()));
    match error.span() {
        Some(span) => problem.at(&Place { source: source.clone(), span }),
        None => problem.at(&Place { source: source.clone(), span: 0..0 }),
    }
}

fn read_table(table: &DeTable<'_>, source: &Source) -> Result<Table, Problems> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let key_place = Place { source: source.clone(), span: key.span() };
        let node = read_value(value.get_ref(), value.span(), source)?;
        entries.push(Entry::new(key.get_ref().to_string(), key_place, node));
    }
    // The parser sorts by name; people read top to bottom.
    entries.sort_by_key(|entry| entry.key_place.span.start);
    Ok(Table(entries))
}

fn read_value(value: &DeValue<'_>, span: std::ops::Range<usize>, source: &Source) -> Result<Node, Problems> {
    let place = Place { source: source.clone(), span };
    let value = match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => {
                let number = shorten(number.as_str());
                let message = format!("the number {number} does not fit 64 bits with a sign");
                return Err(Problem::new("", message).at(&place).into());
            }
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => Value::Float(number),
            Err(_) => {
                return Err(Problem::new("", format!("{number} is not a number")).at(&place).into());
            }
        },
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| read_value(item.get_ref(), item.span(), source));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Value::Table(read_table(table, source)?),
    };
    Ok(Node { value, place })
}
