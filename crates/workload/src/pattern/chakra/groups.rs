//! Who takes part in a collective operation, and in which ones: process groups.

use netloom_units::narrow;
use std::collections::BTreeMap;
use std::path::Path;

use netloom_units::memory::{self, Meter};
use netloom_units::names::{shorten, suggest};

use super::rank::FIRST_COLLECTIVE;
use crate::WorkloadError;

/// Memory that a file of groups takes, times its size.
const TIMES: u64 = 16;

/// Memory of a collective of a group.
const BYTES_PER_COLLECTIVE: u64 = 32;

/// A collective operation; all ranks of a group come to the same ones in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collective {
    pub(super) kind: u64,
    pub(super) size: u64,
}

/// The process groups of a training, and the collectives that their ranks have come to so far.
#[derive(Debug)]
pub(super) struct Groups {
    /// All ranks first.
    groups: Vec<Group>,
    by_name: BTreeMap<String, usize>,
    /// Tag of the next collective of any group.
    next_tag: u32,
    /// Whether the plan tells the groups apart.
    in_plan_is_kept: bool,
}

#[derive(Debug)]
struct Group {
    name: String,
    /// Its ranks, ascending: its own numbers of them are their places.
    ranks: Vec<u32>,
    /// What its first rank comes to, each with the tag of its messages.
    collectives: Vec<(Collective, u32)>,
    /// How many of them the rank that is being read has come to.
    seen: usize,
}

/// A rank's part in a collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// Who takes part.
    pub(super) ranks: &'a [u32],
    /// The rank's place among them.
    pub(super) place: u32,
    /// Tag of the messages.
    pub(super) tag: u32,
    /// Their group of the plan.
    pub(super) in_plan: u8,
}

impl Groups {
    /// One group of all ranks.
    pub(super) fn all(ranks: u32) -> Self {
        let all =
            Group { name: "0".to_owned(), ranks: (0..ranks).collect(), collectives: Vec::new(), seen: 0 };
        Groups {
            groups: vec![all],
            by_name: BTreeMap::new(),
            next_tag: FIRST_COLLECTIVE,
            in_plan_is_kept: false,
        }
    }

    /// Adds the groups of a file: a JSON object of the ranks by the name of the group, `{ "1": [0, 1], "2": [2, 3] }`.
    pub(super) fn read(&mut self, file: &Path) -> Result<(), WorkloadError> {
        let text = memory::read_text(file, TIMES)
            .map_err(|source| WorkloadError::Read { file: file.to_owned(), source })?;
        let fail = |problem: String| WorkloadError::file(file, problem);
        let table: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text).map_err(|error| {
                fail(format!(
                    "expected a JSON object of ranks by group, such as {{ \"1\": [0, 1] }}: {error}"
                ))
            })?;
        let count = self.groups[0].ranks.len() as u64;
        for (name, ranks) in table {
            let wrong =
                |problem: &dyn std::fmt::Display| fail(format!("group \"{}\": {problem}", shorten(&name)));
            let list = ranks.as_array().ok_or_else(|| wrong(&"expected a list of ranks"))?;
            let rank = |rank: &serde_json::Value| match rank.as_u64() {
                Some(rank) if rank < count => Ok(narrow::<u32>(rank)),
                _ => {
                    let found = rank.to_string();
                    Err(wrong(&format!("expected a rank from 0 to {}, found {}", count - 1, shorten(&found))))
                }
            };
            let mut ranks = list.iter().map(rank).collect::<Result<Vec<u32>, _>>()?;
            ranks.sort_unstable();
            if let Some(twice) = ranks.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(wrong(&format!("rank {} is there twice", twice[0])));
            }
            if ranks.is_empty() {
                return Err(wrong(&"expected at least one rank"));
            }
            if is_all(&name) {
                if ranks.len() as u64 != count {
                    return Err(wrong(&"this name means all ranks"));
                }
                continue;
            }
            self.groups.push(Group { name, ranks, collectives: Vec::new(), seen: 0 });
        }
        // In an order that does not depend on how the file is read.
        self.groups[1..].sort_by(|a, b| a.name.cmp(&b.name));
        self.by_name =
            (0..).zip(&self.groups).skip(1).map(|(place, group)| (group.name.clone(), place)).collect();
        self.in_plan_is_kept = self.in_plan().is_some();
        Ok(())
    }

    /// What the groups of the plan are called: that of all ranks, to which messages between two belong, too, and the process groups; `None` where the
    /// latter are absent, or too many to tell them apart.
    pub(super) fn in_plan(&self) -> Option<Vec<String>> {
        const ALL: &str = "all";
        let is_kept =
            (2..=usize::from(u8::MAX)).contains(&self.groups.len()) && !self.by_name.contains_key(ALL);
        let names = self.groups.iter().skip(1).map(|group| group.name.clone());
        is_kept.then(|| std::iter::once(ALL.to_owned()).chain(names).collect())
    }

    /// Takes note that `rank` comes to a collective of the group of this name, and gives its part in it.
    pub(super) fn join(
        &mut self,
        name: &str,
        rank: u32,
        collective: Collective,
        memory: &mut Meter,
    ) -> Result<Part<'_>, String> {
        let index = match self.by_name.get(name) {
            Some(&index) => index,
            None if is_all(name) => 0,
            None if self.by_name.is_empty() => {
                return Err(format!(
                    "there is no group \"{}\": `groups` names the file that lists the ranks of each group",
                    shorten(name)
                ));
            }
            None => {
                let advice = suggest(name, self.by_name.keys().map(String::as_str));
                return Err(format!("there is no group \"{}\" ({advice})", shorten(name)));
            }
        };
        let in_plan = if self.in_plan_is_kept { u8::try_from(index).unwrap_or(0) } else { 0 };
        let group = &mut self.groups[index];
        let Ok(place) = group.ranks.binary_search(&rank) else {
            return Err(format!("the rank is not in group \"{}\"", shorten(name)));
        };
        let first = group.ranks[0];
        if rank == first {
            memory.take(BYTES_PER_COLLECTIVE).map_err(|error| error.to_string())?;
            group.collectives.push((collective, self.next_tag));
            // Groups of all sizes share the numbers from the middle of the range on.
            self.next_tag = self.next_tag.checked_add(1).ok_or("more collectives than there are tags")?;
        }
        let tag = match group.collectives.get(group.seen) {
            Some(&(expected, tag)) if expected == collective => tag,
            _ => return Err(format!("{} is not that of rank {first}: {SAME}", group.collective(group.seen))),
        };
        group.seen += 1;
        Ok(Part { ranks: &group.ranks, place: narrow::<u32>(place), tag, in_plan })
    }

    /// Ends the reading of a rank: it has come to all collectives of its groups.
    pub(super) fn end(&mut self, rank: u32) -> Result<(), String> {
        for group in &mut self.groups {
            let seen = std::mem::take(&mut group.seen);
            if seen != group.collectives.len() && group.ranks.binary_search(&rank).is_ok() {
                return Err(format!(
                    "{} of rank {} has no counterpart here ({seen} of {}): {SAME}",
                    group.collective(seen),
                    group.ranks[0],
                    group.collectives.len()
                ));
            }
        }
        Ok(())
    }
}

/// What is expected of the ranks of a group.
const SAME: &str = "all ranks of a group come to the same collectives in the same order";

impl Group {
    fn collective(&self, index: usize) -> String {
        match self.name.as_str() {
            "0" => format!("collective {index}"),
            name => format!("collective {index} of group \"{}\"", shorten(name)),
        }
    }
}

/// No name, and `0`, mean all ranks, as in ASTRA-sim.
fn is_all(name: &str) -> bool {
    matches!(name, "" | "0")
}
