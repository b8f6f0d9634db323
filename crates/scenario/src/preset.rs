//! Tables that start from a named preset: `[routing]` and `[transport]`.

use netloom_units::names::{shorten, suggest};
use serde::Serialize;

use crate::document::{Entry, Node, Table};
use crate::source::Problem;

/// A table that may name a preset, whose fields are set below the others.
pub(crate) struct Presets<T: 'static> {
    /// Where the table stands.
    pub(crate) path: &'static str,
    /// The names, of which the first holds where none is written.
    pub(crate) names: Vec<&'static str>,
    /// What a name stands for.
    pub(crate) expand: fn(&str) -> Option<T>,
    /// The axes of the product of which a name stands for a point.
    pub(crate) axes: [&'static str; 3],
}

impl<T: Serialize> Presets<T> {
    /// The complete table: the preset's fields with the user's over them. `preset` itself is gone.
    pub(crate) fn complete(&self, node: Option<&Node>, problems: &mut Vec<Problem>) -> Option<Node> {
        let mut node = node.cloned();
        // `routing = "ecmp"` is short for `routing.preset = "ecmp"`.
        let name = match node.take_if(|node| node.as_str().is_some()) {
            Some(name) => Some(name),
            None => node
                .as_mut()
                .and_then(Node::as_table_mut)
                .and_then(|table| table.remove("preset"))
                .map(|entry| entry.node),
        };
        let name = match name {
            None => self.names[0],
            Some(name) => self.find(&name, problems)?,
        };
        let expanded = (self.expand)(name)?;
        let mut complete = match Node::from_value(&format!("preset {name}"), &expanded) {
            Ok(complete) => complete,
            Err(problem) => {
                problems.push(problem);
                return None;
            }
        };
        if let Some(node) = node {
            complete.merge(node);
        }
        Some(complete)
    }

    fn find(&self, name: &Node, problems: &mut Vec<Problem>) -> Option<&'static str> {
        let path = format!("{}.preset", self.path);
        let Some(text) = name.as_str() else {
            let message = format!("expected a preset's name, found {}", name.describe());
            problems.push(Problem::new(path, message).at(&name.place));
            return None;
        };
        let found = self.names.iter().find(|known| **known == text).copied();
        if found.is_none() {
            let problem = Problem::new(path, format!("there is no preset `{}`", shorten(text)));
            problems.push(problem.at(&name.place).help(suggest(text, self.names.iter().copied())));
        }
        found
    }

    /// Takes out what was chosen on an axis of the product before a preset was: a preset is a point, and chooses on all of them. Fields of a
    /// choice stay, for what the preset chooses to take or leave. Returns what was taken out but what the preset chooses, too.
    pub(crate) fn give_way(&self, document: &mut Node) -> Vec<Problem> {
        let Some(table) = document.at_mut(&[self.path]).and_then(Node::as_table_mut) else {
            return Vec::new();
        };
        let preset = table.get("preset").and_then(Node::as_str);
        let point = preset.and_then(self.expand).and_then(|point| Node::from_value("preset", &point).ok());
        let Some(point) = point else { return Vec::new() };
        self.axes.iter().filter_map(|axis| self.give_way_on(axis, table, &point)).collect()
    }

    fn give_way_on(&self, axis: &str, table: &mut Table, point: &Node) -> Option<Problem> {
        let of_preset = format!("{}.preset = ", self.path);
        let is_former = |entry: &Entry| entry.outlived.as_ref().is_some_and(|by| by.starts_with(&of_preset));
        let entry = table.entry(axis).filter(|entry| is_former(entry))?;
        let (place, choice) = (entry.key_place.clone(), entry.outlived.clone()?);
        let taken = match entry.node.as_table() {
            None => table.remove(axis)?.node,
            Some(inner) => {
                inner.entry("kind").filter(|kind| is_former(kind))?;
                table.get_mut(axis)?.as_table_mut()?.remove("kind")?.node
            }
        };
        let own = point.at([axis, "kind"]).or_else(|| point.at([axis]))?;
        let field = format!("{}.{axis}", self.path);
        let message =
            format!("{} is left out, as {choice} was chosen after it and brings its own", taken.describe());
        (own.as_str() != taken.as_str()).then(|| Problem::new(field, message).at(&place))
    }
}
