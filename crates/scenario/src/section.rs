//! A table being taken apart field by field: for scenarios, studies, and what else is written in TOML.

use serde::de::DeserializeOwned;

use crate::document::{Node, Table, Value};
use crate::read::{read, read_beside};
use netloom_units::names::{shorten, suggest};

use crate::source::{Place, Problem};

/// A table whose fields are taken out one by one; what nobody takes is unknown.
///
/// Problems are collected, so a method's `None` means "already reported".
pub struct Section<'a> {
    path: String,
    place: Place,
    rest: Table,
    asked: Vec<&'static str>,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Section<'a> {
    /// Starts with all fields of a table; a node that is no table is reported.
    pub fn new(node: &Node, path: impl Into<String>, problems: &'a mut Vec<Problem>) -> Option<Self> {
        let path = path.into();
        match &node.value {
            Value::Table(table) => {
                let (place, rest) = (node.place.clone(), table.clone());
                Some(Section { path, place, rest, asked: Vec::new(), problems })
            }
            _ => {
                let message = format!("expected a table, found {}", node.describe());
                problems.push(Problem::new(path, message).at(&node.place));
                None
            }
        }
    }

    fn below(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    /// Remembers a field that was taken out before, so that it is named where a field is misspelt.
    pub fn name(&mut self, field: &'static str) {
        self.asked.push(field);
    }

    /// Takes a field as it was written.
    pub fn node(&mut self, field: &'static str) -> Option<Node> {
        self.asked.push(field);
        self.rest.remove(field).map(|entry| entry.node)
    }

    /// Takes a field and reads it; an absent one is `default`.
    pub fn value<T: DeserializeOwned>(&mut self, field: &'static str, default: T) -> Option<T> {
        match self.node(field) {
            None => Some(default),
            Some(node) => report(read(&node, &self.below(field)), self.problems),
        }
    }

    /// Takes a field that must be there and reads it.
    pub fn required<T: DeserializeOwned>(&mut self, field: &'static str) -> Option<T> {
        let node = self.required_node(field)?;
        report(read(&node, &self.below(field)), self.problems)
    }

    /// Takes a field that must be there as it was written.
    pub fn required_node(&mut self, field: &'static str) -> Option<Node> {
        let node = self.node(field);
        if node.is_none() {
            let problem = Problem::new(self.path.clone(), format!("`{field}` is missing"));
            self.problems.push(problem.at(&self.place));
        }
        node
    }

    /// Reads all that is left as a struct.
    pub fn rest<T: DeserializeOwned>(self) -> Option<T> {
        let node = Node { value: Value::Table(self.rest), place: self.place };
        report(read_beside(&node, &self.path, &self.asked), self.problems)
    }

    /// Reports all that is left as unknown.
    pub fn finish(self) {
        for entry in &self.rest.0 {
            let message = format!("unknown field `{}`", shorten(&entry.key));
            let problem = Problem::new(self.below(&entry.key), message).at(&entry.key_place);
            let help = suggest(&entry.key, self.asked.iter().copied());
            self.problems.push(problem.help(help));
        }
    }
}

pub(crate) fn report<T>(result: Result<T, Vec<Problem>>, problems: &mut Vec<Problem>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(found) => {
            problems.extend(found);
            None
        }
    }
}
