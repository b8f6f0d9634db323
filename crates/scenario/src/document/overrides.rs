//! Values set over others: defaults and presets below what a user wrote, and overrides and options of the command line above it.

use std::sync::Arc;

use netloom_units::names::shorten;

use super::{Entry, Node, Table, Value};
use crate::source::{Place, Problem, Source};

impl Table {
    /// Sets the field at `path`, the last step of which is its key here.
    fn set(&mut self, path: &[&str], key_place: Place, value: Node) {
        let Some(key) = path.last() else { return };
        match self.entry_mut(key) {
            Some(entry) => {
                (entry.key_place, entry.outlived) = (key_place, None);
                entry.node.overlay(path, value);
            }
            None => self.insert(Entry::new(*key, key_place, value)),
        }
    }

    /// Notes on all fields but the choice itself that another kind or preset, `name`, is chosen at `path` now. Fields of the same text of
    /// overrides are meant for it.
    fn choose(&mut self, path: &[&str], place: &Place, name: &Node) {
        let Some(key) = path.last() else { return };
        if self.get(key).is_some_and(|old| old.value == name.value) {
            return;
        }
        let name = match &name.value {
            Value::String(name) => format!("{:?}", shorten(name)),
            _ => name.describe(),
        };
        let choice: Arc<str> = format!("{} = {name}", path.join(".")).into();
        for entry in self.0.iter_mut().filter(|entry| entry.key != *key) {
            entry.outlive(place, &choice);
        }
    }
}

impl Node {
    /// Sets `over`, which a user wrote, over what the program supplies (defaults, or what a preset stands for): tables are merged key by
    /// key, except that a table with a `kind` starts anew; everything else is replaced.
    pub(crate) fn merge(&mut self, over: Node) {
        match (&mut self.value, over.value) {
            (Value::Table(under), Value::Table(table)) if table.get("kind").is_none() => {
                for entry in table.0 {
                    match under.get_mut(&entry.key) {
                        Some(node) => node.merge(entry.node),
                        None => under.insert(entry),
                    }
                }
                self.place = over.place;
            }
            (_, value) => *self = Node { value, place: over.place },
        }
    }

    /// Sets a value over what a user wrote before at `path`: the fields of a table are set one by one and all others stay, those of
    /// another kind or preset too; everything else is replaced.
    fn overlay(&mut self, path: &[&str], mut over: Node) {
        // `selector = "hash"` is short for `selector = { kind = "hash" }`; a size and a level of detail are no kinds.
        let has_kind = |node: &Node| node.as_table().is_some() || node.as_str().is_some();
        let one_is_table = self.as_table().is_some() || over.as_table().is_some();
        let is_kind = path.last() != Some(&"size") && path != ["detail"];
        if one_is_table && has_kind(self) && has_kind(&over) && is_kind {
            self.spell_out(path);
            over.spell_out(path);
        }
        let key = choice(path);
        match (&mut self.value, over.value) {
            (Value::Table(under), Value::Table(table)) => {
                if let Some(name) = table.entry(key) {
                    under.choose(&[path, &[key]].concat(), &name.key_place, &name.node);
                }
                for entry in table.0 {
                    under.set(&[path, &[entry.key.as_str()]].concat(), entry.key_place, entry.node);
                }
                self.place = over.place;
            }
            (_, value) => *self = Node { value, place: over.place },
        }
    }

    /// Turns the name of a kind or preset into the table that it is short for.
    fn spell_out(&mut self, path: &[&str]) {
        if let Value::String(name) = &self.value {
            let node = Node { value: Value::String(name.clone()), place: self.place.clone() };
            let entry = Entry::new(choice(path), self.place.clone(), node);
            // A level of detail has no parameters: those of a region take its place.
            self.value = Value::Table(Table(if path == ["detail"] { Vec::new() } else { vec![entry] }));
        }
    }

    /// Sets the value at a path, creating the tables that are missing. A table is merged into the one that is there: what it does not name stays. So
    /// does everything else in a table of which another `kind` is chosen (or another `preset` of routing or transport), as if that one
    /// word had been written in the place of the old one; [`settle`](crate::settle) leaves out what the new kind does not have.
    ///
    /// # Errors
    /// A step that goes through a value which is neither a table nor a list, or beyond a list's end.
    pub fn set(&mut self, path: &[&str], path_place: &Place, value: Node) -> Result<(), Problem> {
        let fail = |message: String| Err(Problem::new(path.join("."), message).at(path_place));
        let mut node = self;
        for (depth, step) in path.iter().enumerate() {
            let last = depth + 1 == path.len();
            // A parameter may be set later of a kind that was given by its name alone.
            node.spell_out(&path[..depth]);
            let found = node.describe();
            match &mut node.value {
                Value::Table(table) if last => {
                    if *step == choice(&path[..depth]) {
                        table.choose(path, path_place, &value);
                        // What the table lacks now, it lacks because of this.
                        node.place = path_place.clone();
                    }
                    table.set(path, path_place.clone(), value);
                    return Ok(());
                }
                Value::Table(table) => {
                    if table.get(step).is_none() {
                        let empty = Node { value: Value::Table(Table::default()), place: path_place.clone() };
                        table.insert(Entry::new(*step, path_place.clone(), empty));
                    }
                    let Some(next) = table.get_mut(step) else {
                        return fail(format!("`{step}` cannot be set"));
                    };
                    node = next;
                }
                Value::Array(items) => {
                    let length = items.len();
                    match step.parse::<usize>().ok().and_then(|i| items.get_mut(i)) {
                        None => {
                            return fail(format!(
                                "`{step}` is not a position in this list of {length}; positions count from 0"
                            ));
                        }
                        Some(item) if last => {
                            item.overlay(path, value);
                            return Ok(());
                        }
                        Some(item) => node = item,
                    }
                }
                _ => return fail(format!("`{step}` cannot be set inside {found}")),
            }
        }
        fail("a field is expected before the `=`".to_owned())
    }
}

/// Applies an override such as `routing.granularity.gap=50us`.
///
/// The value is read as TOML; what is no TOML is a bare string, so `gap=50us` needs no quotes.
///
/// # Errors
/// Text without `=`, an empty field name, or a path through something that is no table; the place is the
/// override's own text.
pub fn apply_override(document: &mut Node, text: &str) -> Result<(), Problem> {
    let source = Source::new(OVERRIDE, text);
    let whole = Place { source: source.clone(), span: 0..text.len() };
    let Some((path, value)) = text.split_once('=') else {
        return Err(Problem::new("", "expected an override of the form FIELD=VALUE")
            .at(&whole)
            .help("for example --set routing.granularity.gap=50us"));
    };
    let path_place = Place { source: source.clone(), span: 0..path.len() };
    let steps: Vec<&str> = path.trim().split('.').map(str::trim).collect();
    if steps.iter().any(|step| step.is_empty()) {
        return Err(Problem::new("", "a field name is missing before, after or between the dots")
            .at(&path_place)
            .help("for example --set routing.granularity.gap=50us"));
    }
    let node =
        Node::parse_value(value, &source, path.len() + 1).map_err(|mut problems| problems.0.remove(0))?;
    document.set(&steps, &path_place, node)
}

/// What errors call the text of an override.
pub(super) const OVERRIDE: &str = "--set";

/// The key by which the table at a path says what it is.
fn choice(path: &[&str]) -> &'static str {
    match path {
        ["routing" | "transport" | "cluster"] => "preset",
        _ => "kind",
    }
}

/// Sets a field to the value of an option of the command line, e.g. `--seed 7`, so that problems point at the option.
///
/// # Errors
/// A number that does not fit 64 bits.
pub fn apply_option(document: &mut Node, option: &str, field: &str, value: &str) -> Result<(), Problem> {
    let source = Source::new(option, value);
    let node = Node::parse_value(value, &source, 0).map_err(|mut problems| problems.0.remove(0))?;
    let place = node.place.clone();
    document.set(&field.split('.').collect::<Vec<_>>(), &place, node)
}
