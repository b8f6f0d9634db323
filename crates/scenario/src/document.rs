//! A TOML document in which every key and value knows where it was written.
//!
//! A scenario is put together from several texts (the file, overrides on the command line, presets), so each word
//! carries its own [`Source`].

use std::sync::Arc;

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

    /// Sets the field at `path`, the last step of which is its key here.
    fn set(&mut self, path: &[&str], key_place: Place, value: Node) {
        let Some(key) = path.last() else { return };
        match self.entry_mut(key) {
            Some(entry) => {
                (entry.key_place, entry.outlived) = (key_place, None);
                entry.node.lay(path, value);
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

    /// Lays `over`, which a user wrote, onto what the program supplies (defaults, or what a preset stands for): tables are merged key by
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

    /// Lays a value over what a user wrote before at `path`: the fields of a table are set one by one and all others stay, those of
    /// another kind or preset too; everything else is replaced.
    fn lay(&mut self, path: &[&str], mut over: Node) {
        // `selector = "hash"` is short for `selector = { kind = "hash" }`; a size is no kind.
        let has_kind = |node: &Node| node.as_table().is_some() || node.as_str().is_some();
        let one_is_table = self.as_table().is_some() || over.as_table().is_some();
        if one_is_table && has_kind(self) && has_kind(&over) && path.last() != Some(&"size") {
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
            self.value = Value::Table(Table(vec![Entry::new(choice(path), self.place.clone(), node)]));
        }
    }

    /// Sets the value at a path, creating tables on the way. A table is laid over the one that is there: what it does not name stays. So
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
                                "`{step}` is no position in this list of {length}; positions count from 0"
                            ));
                        }
                        Some(item) if last => {
                            item.lay(path, value);
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
const OVERRIDE: &str = "--set";

/// The key by which the table at a path says what it is.
fn choice(path: &[&str]) -> &'static str {
    match path {
        ["routing" | "transport"] => "preset",
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
    fn a_users_kind_starts_the_table_of_a_default_anew() {
        let mut under = document("[selector]\nkind = \"drill\"\nd = 2\nm = 1\n");
        under.merge(document("[selector]\nd = 4\n"));
        assert_eq!(under.at(["selector", "m"]).unwrap().value, Value::Integer(1));
        assert_eq!(under.at(["selector", "d"]).unwrap().value, Value::Integer(4));
        under.merge(document("[selector]\nkind = \"random\"\n"));
        assert!(under.at(["selector", "d"]).is_none());
    }

    /// Whichever way another kind is chosen, the others of the user's fields stay.
    #[test]
    fn a_later_kind_leaves_the_fields_of_its_table() {
        let texts = [
            "[topology]\nkind = \"fat-tree\"\nk = 4\nrate = \"100Gbps\"\n",
            "[topology]\nk = 4\nrate = \"100Gbps\"\n",
        ];
        let overrides = ["topology.kind=slim-fly", "topology=slim-fly", "topology={kind=\"slim-fly\"}"];
        for (text, change) in texts.iter().flat_map(|text| overrides.map(|change| (text, change))) {
            let mut root = document(text);
            apply_override(&mut root, change).unwrap();
            assert_eq!(root.at(["topology", "rate"]).unwrap().as_str(), Some("100Gbps"), "{change}");
            assert_eq!(root.at(["topology", "kind"]).unwrap().as_str(), Some("slim-fly"), "{change}");
            let outlived = root.entry_at(&["topology", "k"]).unwrap().outlived.as_deref();
            assert_eq!(outlived, Some("topology.kind = \"slim-fly\""), "{change}");
            // What is set afterwards is meant for the new kind.
            apply_override(&mut root, "topology.k=6").unwrap();
            assert_eq!(root.entry_at(&["topology", "k"]).unwrap().outlived, None, "{change}");
        }
        // The same kind once more is no other choice, and overrides beside each other are meant together.
        for changes in [&["topology.kind=fat-tree"][..], &["topology.k=8", "topology.kind=crossbar"]] {
            let mut root = document("[topology]\nkind = \"fat-tree\"\nk = 4\n");
            changes.iter().for_each(|change| apply_override(&mut root, change).unwrap());
            assert_eq!(root.entry_at(&["topology", "k"]).unwrap().outlived, None, "{changes:?}");
        }
    }

    #[test]
    fn a_table_is_laid_over_what_is_there() {
        let mut root = document(
            "[fabric]\nbuffer = \"1MB\"\necn = { kmin = 1, kmax = 2 }\n[workload]\nsize = { file = \"a\" }\n",
        );
        for change in ["fabric={ecn={kmin=3}}", "workload.size=1MiB"] {
            apply_override(&mut root, change).unwrap();
        }
        assert_eq!(root.at(["fabric", "buffer"]).unwrap().as_str(), Some("1MB"));
        assert_eq!(root.at(["fabric", "ecn", "kmin"]).unwrap().value, Value::Integer(3));
        assert_eq!(root.at(["fabric", "ecn", "kmax"]).unwrap().value, Value::Integer(2));
        assert_eq!(root.at(["workload", "size"]).unwrap().as_str(), Some("1MiB"), "a size is no kind");
    }

    #[test]
    fn a_parameter_can_be_set_on_a_kind_given_by_name_alone() {
        let mut root = document("selector = \"drill\"\n");
        apply_override(&mut root, "selector.d=3").unwrap();
        assert_eq!(root.at(["selector", "kind"]).unwrap().as_str(), Some("drill"));
        assert_eq!(root.at(["selector", "d"]).unwrap().value, Value::Integer(3));
    }
}
