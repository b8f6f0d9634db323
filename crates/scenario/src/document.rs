//! A TOML document in which every key and value knows where it was written.
//!
//! A scenario is put together from several texts (the file, overrides on the command line, presets), so each word
//! carries its own [`Source`].

use netloom_units::names::shorten;
use toml::de::{DeTable, DeValue};

use crate::source::{Place, Problem, Problems, Source};

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

    fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }
}

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

    /// Lays `over` onto this node: tables are merged key by key, except that a table with a `kind`
    /// starts anew; everything else is replaced.
    pub fn merge(&mut self, over: Node) {
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

    /// Sets the value at a path, creating tables on the way. Setting the `kind` of a table (or the `preset` of routing or transport)
    /// starts that table anew, because the fields of another kind mean nothing to it.
    ///
    /// # Errors
    /// A step that goes through a value which is neither a table nor a list, or beyond a list's end.
    pub fn set(&mut self, path: &[&str], path_place: &Place, value: Node) -> Result<(), Problem> {
        let fail = |message: String| Err(Problem::new(path.join("."), message).at(path_place));
        let mut node = self;
        for (depth, step) in path.iter().enumerate() {
            let last = depth + 1 == path.len();
            // `selector = "hash"` is short for `selector = { kind = "hash" }`, also when a parameter is set later.
            if let Value::String(kind) = &node.value {
                let key_place = node.place.clone();
                let kind = Node { value: Value::String(kind.clone()), place: node.place.clone() };
                let key = if depth == 1 && has_presets(path[0]) { "preset" } else { "kind" };
                node.value = Value::Table(Table(vec![Entry { key: key.to_owned(), key_place, node: kind }]));
            }
            let found = node.describe();
            match &mut node.value {
                Value::Table(table) => {
                    if last && names_start(path) {
                        table.0.clear();
                        // What the table lacks now, it lacks because of this.
                        node.place = path_place.clone();
                    }
                    if table.get(step).is_none() {
                        let empty = Node { value: Value::Table(Table::default()), place: path_place.clone() };
                        let key = (*step).to_owned();
                        table.insert(Entry { key, key_place: path_place.clone(), node: empty });
                    }
                    if last {
                        let entry =
                            Entry { key: (*step).to_owned(), key_place: path_place.clone(), node: value };
                        table.insert(entry);
                        return Ok(());
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
                                "`{step}` is no position in this list of {length}; positions count from 0"
                            ));
                        }
                        Some(item) if last => {
                            *item = value;
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

/// Applies an override such as `routing.granularity.gap=50us`.
///
/// The value is read as TOML; what is no TOML is a bare string, so `gap=50us` needs no quotes.
///
/// # Errors
/// Text without `=`, an empty field name, or a path through something that is no table; the place is the
/// override's own text.
pub fn apply_override(document: &mut Node, text: &str) -> Result<(), Problem> {
    let source = Source::new("--set", text);
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

/// Whether a table of the scenario may name a preset.
fn has_presets(table: &str) -> bool {
    matches!(table, "routing" | "transport")
}

/// The steps to the table that setting the field at a path starts anew, if it names a kind or preset; else to the field itself.
pub(crate) fn start_of<'a, 'p>(path: &'a [&'p str]) -> &'a [&'p str] {
    if names_start(path) { &path[..path.len() - 1] } else { path }
}

/// Whether setting the field at a `later` path takes away what was set at an `earlier` one within the same table.
pub fn undoes(later: &[&str], earlier: &[&str]) -> bool {
    let start = start_of(later);
    earlier.len() > start.len() && earlier.starts_with(start) && earlier != later
}

/// Whether setting the field at a path starts its table anew.
fn names_start(path: &[&str]) -> bool {
    path.last() == Some(&"kind") || names_preset(path)
}

fn names_preset(path: &[&str]) -> bool {
    matches!(path, [table, "preset"] if has_presets(table))
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
        entries.push(Entry { key: key.get_ref().to_string(), key_place, node });
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
                return Err(Problem::new("", format!("{number} is no number")).at(&place).into());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Node {
        Node::parse(&Source::new("test.toml", text)).unwrap()
    }

    #[test]
    fn every_value_knows_where_it_was_written() {
        let root = document("seed = 1\n[routing]\n  selector = { kind = \"hash\" }\n");
        let kind = root.at(["routing", "selector", "kind"]).unwrap();
        assert_eq!((kind.as_str(), kind.place.describe().as_str()), (Some("hash"), "test.toml:3:23"));
    }

    #[test]
    fn all_syntax_errors_are_reported_with_their_place() {
        let problems = Node::parse(&Source::new("bad.toml", "a = = 1\nb = 2\nc = [1,\n")).unwrap_err();
        assert!(problems.0.len() >= 2, "{problems}");
        assert!(problems.to_string().contains("bad.toml:1:5"), "{problems}");
    }

    #[test]
    fn an_override_takes_toml_or_a_bare_string() {
        let mut root = document("[a]\nx = 1\n");
        for text in ["a.x=50us", "a.y=2", "a.z=[1, 2]", "b.c.d=true", "a.t={ kind = \"hash\" }"] {
            apply_override(&mut root, text).unwrap();
        }
        assert_eq!(root.at(["a", "x"]).unwrap().as_str(), Some("50us"));
        assert_eq!(root.at(["a", "y"]).unwrap().value, Value::Integer(2));
        assert_eq!(root.at(["a", "z", "1"]).unwrap().value, Value::Integer(2));
        assert_eq!(root.at(["b", "c", "d"]).unwrap().value, Value::Boolean(true));
        assert_eq!(root.at(["a", "t", "kind"]).unwrap().as_str(), Some("hash"));
    }

    #[test]
    fn an_override_without_meaning_points_at_its_own_text() {
        let mut root = document("list = [1]\nn = 1\n");
        for (text, expected) in [
            ("seed", "--set:1:1: expected an override of the form FIELD=VALUE"),
            ("a..b=1", "--set:1:1: a field name is missing"),
            ("=1", "--set:1:1: a field name is missing"),
            ("n.x=1", "--set:1:1: n.x: `x` cannot be set inside number 1"),
            ("list.3=1", "--set:1:1: list.3: `3` is no position in this list of 1"),
        ] {
            let problem = Problems::from(apply_override(&mut root, text).unwrap_err()).to_string();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }

    #[test]
    fn a_new_kind_starts_its_table_anew() {
        let mut root = document("[selector]\nkind = \"drill\"\nd = 2\n");
        apply_override(&mut root, "selector.kind=hash").unwrap();
        assert_eq!(root.at(["selector"]).unwrap().as_table().unwrap().0.len(), 1);

        let mut under = document("[selector]\nkind = \"drill\"\nd = 2\nm = 1\n");
        under.merge(document("[selector]\nd = 4\n"));
        assert_eq!(under.at(["selector", "m"]).unwrap().value, Value::Integer(1));
        assert_eq!(under.at(["selector", "d"]).unwrap().value, Value::Integer(4));
        under.merge(document("[selector]\nkind = \"random\"\n"));
        assert!(under.at(["selector", "d"]).is_none());
    }

    #[test]
    fn a_parameter_can_be_set_on_a_kind_given_by_name_alone() {
        let mut root = document("selector = \"drill\"\n");
        apply_override(&mut root, "selector.d=3").unwrap();
        assert_eq!(root.at(["selector", "kind"]).unwrap().as_str(), Some("drill"));
        assert_eq!(root.at(["selector", "d"]).unwrap().value, Value::Integer(3));
    }
}
