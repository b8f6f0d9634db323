//! Communicator groups: who takes part in a collective operation.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use netloom_units::names::shorten;
use netloom_units::narrow;
use serde_json::Value;

use crate::error::JobError;
use crate::system::read_object;

/// The group of all ranks.
pub(crate) const EVERYONE: u32 = 0;

/// Ranks that do collective operations together.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// In the order of their ring.
    pub(crate) ranks: Arc<[u32]>,
}

/// All groups: that of all ranks first. Two ranks may mean different groups by one name, as process groups of PyTorch do.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) all: Vec<Group>,
    places: BTreeMap<(String, Arc<[u32]>), u32>,
    /// Those of the file, which hold for all ranks.
    common: BTreeMap<String, u32>,
}

impl Groups {
    /// The group of all ranks.
    pub(crate) fn new(ranks: u32) -> Self {
        let everyone = Group { name: String::new(), ranks: (0..ranks).collect() };
        Groups { all: vec![everyone], places: BTreeMap::new(), common: BTreeMap::new() }
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
        let ranks: Arc<[u32]> = list.into();
        let next = narrow::<u32>(self.all.len());
        let place = *self.places.entry((name.to_owned(), ranks.clone())).or_insert(next);
        if place == next {
            self.all.push(Group { name: name.to_owned(), ranks });
        }
        Ok(place)
    }

    /// Adds the groups of a file: a JSON object of the ranks by the name of the group, `{ "1": [0, 1], "2": [2, 3] }`.
    pub(crate) fn read(&mut self, file: &Path) -> Result<(), JobError> {
        for (name, ranks) in read_object(file, "ranks by group, such as { \"1\": [0, 1] }")? {
            let fail = |problem: String| JobError::file(file, problem);
            let Some(ranks) = ranks.as_array() else {
                return Err(fail(format!("group \"{}\": expected a list of ranks", shorten(&name))));
            };
            if is_everyone(&name) {
                let problem =
                    format!("group \"{name}\": expected another name: this one means all ranks already");
                return Err(fail(problem));
            }
            let place = self.add(&name, ranks).map_err(fail)?;
            self.common.insert(name, place);
        }
        Ok(())
    }

    /// The groups as a rank without process groups of its own knows them.
    pub(crate) fn common(&self) -> BTreeMap<String, u32> {
        self.common.clone()
    }

    /// Adds the process groups that a metadata node holds, if it holds any: a list of `{pg_name, ranks}` in JSON, within two brackets and
    /// quotation marks that the tracer puts around it.
    pub(crate) fn read_metadata(
        &mut self,
        text: &str,
        known: &mut BTreeMap<String, u32>,
    ) -> Result<(), String> {
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
}

/// No name, and `0`, mean all ranks.
pub(crate) fn is_everyone(name: &str) -> bool {
    matches!(name, "" | "0")
}
