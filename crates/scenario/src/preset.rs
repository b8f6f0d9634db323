//! Tables that start from a named preset: `[routing]` and `[transport]`.

use netloom_units::names::{shorten, suggest};
use serde::Serialize;

use crate::document::Node;
use crate::source::Problem;

/// A table that may name a preset, under the fields of which the others are laid.
pub(crate) struct Presets<T: 'static> {
    /// Where the table stands.
    pub(crate) path: &'static str,
    /// The names, of which the first holds where none is written.
    pub(crate) names: Vec<&'static str>,
    /// What a name stands for.
    pub(crate) expand: fn(&str) -> Option<T>,
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
}
