//! A TOML document in which every key and value knows where it was written.
//!
//! A scenario is put together from several texts (the file, overrides on the command line, presets), so each word
//! carries its own [`Source`].

mod overrides;
mod parse;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use netloom_units::names::shorten;

use self::overrides::OVERRIDE;
pub use self::overrides::{apply_option, apply_override};
use crate::source::Place;

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it was written.
    pub place: Place,
}

/// A TOML value. Dates are read as strings: no field of a scenario is a date.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A decimal number.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
}

/// A key of a table with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key was written.
    pub key_place: Place,
    /// The value.
    pub node: Node,
    /// The choice of a kind or preset for its table that was made after it was written, e.g. `topology.kind = "slim-fly"`. Where what was
    /// chosen has no such field, the field is left out ([`settle`](crate::settle)).
    pub outlived: Option<Arc<str>>,
}

/// The entries of a table in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(pub Vec<Entry>);

impl Table {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The entry of a key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let index = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(index))
    }

    /// Puts a key in, in place of an entry of the same name.
    pub fn insert(&mut self, entry: Entry) {
        match self.0.iter_mut().find(|old| old.key == entry.key) {
            Some(old) => *old = entry,
            None => self.0.push(entry),
        }
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entry_mut(key).map(|entry| &mut entry.node)
    }

    fn entry_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.key == key)
    }
}

impl Entry {
    /// A field that nothing was chosen after.
    pub fn new(key: impl Into<String>, key_place: Place, node: Node) -> Self {
        Entry { key: key.into(), key_place, node, outlived: None }
    }

    fn outlive(&mut self, place: &Place, choice: &Arc<str>) {
        let both_are_overrides = [&self.key_place, place].iter().all(|of| of.source.name() == OVERRIDE);
        if !both_are_overrides {
            self.outlived = Some(Arc::clone(choice));
        }
        self.node.outlive(place, choice);
    }
}

impl Node {
    /// The table, if it is one.
    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The table, if it is one.
    pub fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// What the value is, for messages: `string "abc"`, `table`.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::String(text) => format!("string {:?}", shorten(text)),
            Value::Integer(number) => format!("number {number}"),
            Value::Float(number) => format!("number {number:?}"),
            Value::Boolean(value) => format!("`{value}`"),
            Value::Array(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// The node at a path of keys and list positions.
    pub fn at<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&Node> {
        path.into_iter().try_fold(self, |node, step| match &node.value {
            Value::Table(table) => table.get(step),
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The node at a path of keys.
    pub fn at_mut(&mut self, path: &[&str]) -> Option<&mut Node> {
        path.iter().try_fold(self, |node, step| node.as_table_mut()?.get_mut(step))
    }

    /// Makes the name of a file absolute; it starts from the folder of the text in which it is written.
    pub fn make_absolute(&mut self) {
        let folder = self.place.source.folder().to_owned();
        if let Value::String(file) = &mut self.value
            && let Ok(absolute) = std::path::absolute(folder.join(&*file))
        {
            *file = absolute.display().to_string();
        }
    }

    /// The place of the deepest part of a path that exists; the key's place where the last step is a key.
    pub fn nearest_place<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Place {
        let mut node = self;
        let mut place = self.place.clone();
        for step in path {
            match &node.value {
                Value::Table(table) => match table.entry(step) {
                    Some(entry) => (node, place) = (&entry.node, entry.node.place.clone()),
                    None => break,
                },
                Value::Array(items) => match step.parse::<usize>().ok().and_then(|i| items.get(i)) {
                    Some(item) => (node, place) = (item, item.place.clone()),
                    None => break,
                },
                _ => break,
            }
        }
        place
    }

    /// Takes out what stands at a path; an item of a list only with the whole list, as the others keep their positions. Returns
    /// whether something was there.
    pub fn prune(&mut self, path: &[String]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let table = match &mut self.value {
            Value::Table(table) => table,
            Value::Array(items) => {
                let item = first.parse::<usize>().ok().and_then(|i| items.get_mut(i));
                return item.is_some_and(|item| item.prune(rest));
            }
            _ => return false,
        };
        if let Some(child) = table.get_mut(first)
            && !rest.is_empty()
            && child.prune(rest)
        {
            return true;
        }
        table.remove(first).is_some()
    }

    /// The entry at a path of keys and list positions.
    pub(crate) fn entry_at(&self, path: &[&str]) -> Option<&Entry> {
        let (key, above) = path.split_last()?;
        self.at(above.iter().copied())?.as_table()?.entry(key)
    }

    fn outlive(&mut self, place: &Place, choice: &Arc<str>) {
        match &mut self.value {
            Value::Table(table) => table.0.iter_mut().for_each(|entry| entry.outlive(place, choice)),
            Value::Array(items) => items.iter_mut().for_each(|item| item.outlive(place, choice)),
            _ => {}
        }
    }

    /// Whether a kind or preset was chosen after some field of its table.
    pub(crate) fn has_outlived(&self) -> bool {
        match &self.value {
            Value::Table(table) => {
                table.0.iter().any(|entry| entry.outlived.is_some() || entry.node.has_outlived())
            }
            Value::Array(items) => items.iter().any(Node::has_outlived),
            _ => false,
        }
    }

    /// Whether the values are the same, wherever they were written and in whatever order.
    pub fn means(&self, other: &Node) -> bool {
        match (&self.value, &other.value) {
            (Value::Table(one), Value::Table(other)) => {
                one.0.len() == other.0.len()
                    && one
                        .0
                        .iter()
                        .all(|entry| other.get(&entry.key).is_some_and(|other| entry.node.means(other)))
            }
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.means(other))
            }
            (one, other) => one == other,
        }
    }
}
