//! Communicator groups: who takes part in a collective operation.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use netloom_units::names::{shorten, suggest};
use netloom_units::narrow;
use serde_json::Value;

use crate::chakra::{self, NodeType};
use crate::error::JobError;
use crate::system::read_object;

/// The group of all ranks.
pub const EVERYONE: u32 = 0;

/// Ranks that do collective operations together.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it is called; empty for that of all ranks.
    pub name: String,
    /// In the order of their ring.
    pub ranks: Arc<[u32]>,
}

/// The groups that a rank knows by name, as numbers of [`Groups::all`].
pub type Known = BTreeMap<String, u32>;

/// All groups: that of all ranks first. Two ranks may mean different groups by one name, as process groups of PyTorch do.
#[derive(Debug)]
pub struct Groups {
    all: Vec<Group>,
    places: BTreeMap<(String, Arc<[u32]>), u32>,
    /// Those of the file, which hold for all ranks.
    common: Known,
}

impl Groups {
    /// The group of all ranks.
    pub fn new(ranks: u32) -> Self {
        let everyone = Group { name: String::new(), ranks: (0..ranks).collect() };
        Groups { all: vec![everyone], places: BTreeMap::new(), common: Known::new() }
    }

    /// All of them.
    pub fn all(&self) -> &[Group] {
        &self.all
    }

    /// All of them, when no more are read.
    pub(crate) fn into_all(self) -> Vec<Group> {
        self.all
    }

    fn ranks(&self) -> u32 {
        narrow::<u32>(self.all[0].ranks.len())
    }

    /// Adds a group; no ranks mean all of them.
    fn add(&mut self, name: &str, ranks: &[Value]) -> Result<u32, String> {
        let count = u64::from(self.ranks());
        let wrong = |problem: String| format!("group \"{}\": {problem}", shorten(name));
        let rank = |rank: &Value| match rank.as_u64() {
            Some(rank) if rank < count => Ok(narrow::<u32>(rank)),
            _ => Err(wrong(format!(
                "expected ranks from 0 to {}, found {}",
                count - 1,
                shorten(&rank.to_string())
            ))),
        };
        let mut list = ranks.iter().map(rank).collect::<Result<Vec<u32>, _>>()?;
        if list.is_empty() {
            list = (0..self.ranks()).collect();
        }
        let mut sorted = list.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("rank {} is there twice", twice[0])));
        }
        if is_everyone(name) {
            return match sorted.len() as u64 == count {
                true => Ok(EVERYONE),
                false => Err(wrong("expected another name: this one means all ranks".to_owned())),
            };
        }
        let ranks: Arc<[u32]> = list.into();
        let next = narrow::<u32>(self.all.len());
        let place = *self.places.entry((name.to_owned(), ranks.clone())).or_insert(next);
        if place == next {
            self.all.push(Group { name: name.to_owned(), ranks });
        }
        Ok(place)
    }

    /// Adds the groups of a file: a JSON object of the ranks by the name of the group, `{ "1": [0, 1], "2": [2, 3] }`.
    ///
    /// # Errors
    /// If the file cannot be read or holds something else.
    pub fn read(&mut self, file: &Path) -> Result<(), JobError> {
        let mut groups: Vec<(String, Value)> =
            read_object(file, "ranks by group, such as { \"1\": [0, 1] }")?.into_iter().collect();
        // In an order that does not depend on how the file is read.
        groups.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, ranks) in groups {
            let fail = |problem: String| JobError::file(file, problem);
            let Some(ranks) = ranks.as_array() else {
                return Err(fail(format!("group \"{}\": expected a list of ranks", shorten(&name))));
            };
            let place = self.add(&name, ranks).map_err(fail)?;
            self.common.insert(name, place);
        }
        Ok(())
    }

    /// The groups as a rank knows them whose trace has these nodes: those of the file, and the process groups that metadata nodes define.
    ///
    /// # Errors
    /// If a metadata node of `file` defines groups that cannot be.
    pub fn known(&mut self, file: &Path, nodes: &[chakra::Node]) -> Result<Known, JobError> {
        let mut known = self.common.clone();
        for node in nodes.iter().filter(|node| node.kind == i32::from(NodeType::Metadata)) {
            let text = node.inputs.as_ref().map_or("", |inputs| inputs.values.as_str());
            let read = self.read_metadata(text, &mut known);
            read.map_err(|problem| node.fail(file, format!("inputs.values: {problem}")))?;
        }
        Ok(known)
    }

    /// Adds the process groups that a metadata node holds, if it holds any: a list of `{pg_name, ranks}` in JSON, within two brackets and
    /// quotation marks that the tracer puts around it.
    fn read_metadata(&mut self, text: &str, known: &mut Known) -> Result<(), String> {
        let Some(list) = text.get(2..text.len().saturating_sub(2)) else { return Ok(()) };
        let Ok(list) = serde_json::from_str::<Vec<Value>>(list) else { return Ok(()) };
        for item in list {
            let (Some(name), Some(ranks)) = (item["pg_name"].as_str(), item["ranks"].as_array()) else {
                continue;
            };
            let place = self.add(name, ranks)?;
            known.insert(name.to_owned(), place);
        }
        Ok(())
    }

    /// The group of a name that a rank uses.
    ///
    /// # Errors
    /// If it knows no such group, or is not in it.
    pub fn find(&self, known: &Known, name: &str, rank: u32) -> Result<u32, String> {
        if is_everyone(name) {
            return Ok(EVERYONE);
        }
        let Some(&group) = known.get(name) else {
            let advice = match known.is_empty() {
                true => "`groups` names the file that lists the ranks of each group; metadata nodes can define groups, too"
                    .to_owned(),
                false => suggest(name, known.keys().map(String::as_str)),
            };
            return Err(format!("pg_name: there is no group \"{}\" ({advice})", shorten(name)));
        };
        match self.all[group as usize].ranks.contains(&rank) {
            true => Ok(group),
            false => Err(format!("pg_name: expected a group of rank {rank}, found \"{}\"", shorten(name))),
        }
    }
}

/// No name, and `0`, mean all ranks.
fn is_everyone(name: &str) -> bool {
    matches!(name, "" | "0")
}
