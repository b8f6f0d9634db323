//! A table being taken apart field by field.

use netloom_units::kind::Kind;
use serde::de::DeserializeOwned;

use crate::document::{Node, Table, Value};
use crate::read::{read, read_beside, read_kind, read_kind_beside};
use crate::source::{Place, Problem, suggest};

/// A table whose fields are taken out one by one; what nobody takes is unknown.
///
/// Problems are collected, so a method's `None` means "already reported".
pub(crate) struct Section<'a> {
    path: String,
    place: Place,
    rest: Table,
    asked: Vec<&'static str>,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Section<'a> {
    /// Starts with all fields of a table; a node that is no table is reported.
    pub(crate) fn new(node: &Node, path: impl Into<String>, problems: &'a mut Vec<Problem>) -> Option<Self> {
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
    pub(crate) fn name(&mut self, field: &'static str) {
        self.asked.push(field);
    }

    /// Takes a field as it was written.
    pub(crate) fn node(&mut self, field: &'static str) -> Option<Node> {
        self.asked.push(field);
        self.rest.remove(field).map(|entry| entry.node)
    }

    /// Takes a field and reads it; an absent one is `default`.
    pub(crate) fn value<T: DeserializeOwned>(&mut self, field: &'static str, default: T) -> Option<T> {
        match self.node(field) {
            None => Some(default),
            Some(node) => report(read(&node, &self.below(field)), self.problems),
        }
    }

    /// Takes a field that must be there and reads it.
    pub(crate) fn required<T: DeserializeOwned>(&mut self, field: &'static str) -> Option<T> {
        let node = self.required_node(field)?;
        report(read(&node, &self.below(field)), self.problems)
    }

    /// Takes a field that must be there as it was written.
    pub(crate) fn required_node(&mut self, field: &'static str) -> Option<Node> {
        let node = self.node(field);
        if node.is_none() {
            let problem = Problem::new(self.path.clone(), format!("`{field}` is missing"));
            self.problems.push(problem.at(&self.place));
        }
        node
    }

    /// Takes a field that must be there and reads it as a kind.
    pub(crate) fn required_kind<K: Kind>(&mut self, field: &'static str) -> Option<K> {
        let node = self.required_node(field)?;
        Self::read_kind(&node, &self.below(field), self.problems)
    }

    /// Reads a node as a kind.
    pub(crate) fn read_kind<K: Kind>(node: &Node, path: &str, problems: &mut Vec<Problem>) -> Option<K> {
        report(read_kind(node, path), problems)
    }

    /// Takes the given fields, as many as there are, and reads them as one struct.
    pub(crate) fn some_of<T: DeserializeOwned>(&mut self, fields: &[String]) -> Option<T> {
        let entries = fields.iter().filter_map(|field| self.rest.remove(field)).collect();
        let node = Node { value: Value::Table(Table(entries)), place: self.place.clone() };
        report(read(&node, &self.path), self.problems)
    }

    /// Reads all that is left as a struct.
    pub(crate) fn rest<T: DeserializeOwned>(self) -> Option<T> {
        let node = Node { value: Value::Table(self.rest), place: self.place };
        report(read_beside(&node, &self.path, &self.asked), self.problems)
    }

    /// Reads all that is left as a kind; `others` are further fields that could have stood here.
    pub(crate) fn rest_as_kind<K: Kind>(self, others: &[String]) -> Option<K> {
        let node = Node { value: Value::Table(self.rest), place: self.place };
        let others: Vec<&str> = self.asked.into_iter().chain(others.iter().map(String::as_str)).collect();
        report(read_kind_beside(&node, &self.path, &others), self.problems)
    }

    /// Reports all that is left as unknown.
    pub(crate) fn finish(self) {
        for entry in &self.rest.0 {
            let message = format!("unknown field `{}`", entry.key);
            let problem = Problem::new(self.below(&entry.key), message).at(&entry.key_place);
            let help = suggest(&entry.key, self.asked.iter().copied());
            self.problems.push(problem.help(help));
        }
    }
}

fn report<T>(result: Result<T, Vec<Problem>>, problems: &mut Vec<Problem>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(found) => {
            problems.extend(found);
            None
        }
    }
}
