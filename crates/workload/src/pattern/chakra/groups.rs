//! Who takes part in a collective operation, and in which ones: process groups.

use std::collections::BTreeMap;
use std::path::Path;

use netloom_astra::JobError;
use netloom_astra::chakra::Node;
use netloom_astra::groups::{EVERYONE, Groups as Named, Known};
use netloom_units::memory::Meter;
use netloom_units::names::shorten;
use netloom_units::narrow;

use super::rank::FIRST_COLLECTIVE;

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
    named: Named,
    /// Those that the rank that is being read knows.
    known: Known,
    /// By number of the group.
    progress: Vec<Progress>,
    /// Tag of the next collective of any group.
    next_tag: u32,
}

/// How far a group has come.
#[derive(Debug)]
struct Progress {
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
    /// One group of all ranks, and those of a file.
    pub(super) fn new(ranks: u32, file: Option<&Path>) -> Result<Self, JobError> {
        let mut named = Named::new(ranks);
        if let Some(file) = file {
            named.read(file)?;
        }
        Ok(Groups { named, known: Known::new(), progress: Vec::new(), next_tag: FIRST_COLLECTIVE })
    }

    /// Begins with the nodes of the next rank.
    pub(super) fn begin(&mut self, file: &Path, nodes: &[Node]) -> Result<(), JobError> {
        self.known = self.named.known(file, nodes)?;
        for group in &self.named.all()[self.progress.len()..] {
            let mut ranks = group.ranks.to_vec();
            ranks.sort_unstable();
            self.progress.push(Progress { ranks, collectives: Vec::new(), seen: 0 });
        }
        Ok(())
    }

    /// What the groups of the plan are called: that of all ranks, to which messages between two belong, too, and the process groups; `None` where the
    /// latter are absent, or too many to tell them apart.
    pub(super) fn in_plan(&self) -> Option<Vec<String>> {
        const ALL: &str = "all";
        let groups = &self.named.all()[1..];
        let is_kept = (1..usize::from(u8::MAX)).contains(&groups.len());
        if !is_kept || groups.iter().any(|group| group.name == ALL) {
            return None;
        }
        let mut times: BTreeMap<&str, u32> = BTreeMap::new();
        let names = groups.iter().map(|group| {
            let times = times.entry(&group.name).or_default();
            *times += 1;
            match *times {
                1 => group.name.clone(),
                // Ranks may mean different groups by one name.
                times => format!("{} ({times})", group.name),
            }
        });
        Some(std::iter::once(ALL.to_owned()).chain(names).collect())
    }

    /// Takes note that `rank` comes to a collective of the group of this name, and gives its part in it.
    pub(super) fn join(
        &mut self,
        name: &str,
        rank: u32,
        collective: Collective,
        memory: &mut Meter,
    ) -> Result<Part<'_>, String> {
        let index = self.named.find(&self.known, name, rank)?;
        let name_of = |number| called(&self.named, index, number);
        let group = &mut self.progress[index as usize];
        let first = group.ranks[0];
        if rank == first {
            memory.take(BYTES_PER_COLLECTIVE).map_err(|error| error.to_string())?;
            group.collectives.push((collective, self.next_tag));
            // Groups of all sizes share the numbers from the middle of the range on.
            self.next_tag = self.next_tag.checked_add(1).ok_or("more collectives than there are tags")?;
        }
        let tag = match group.collectives.get(group.seen) {
            Some(&(expected, tag)) if expected == collective => tag,
            _ => return Err(format!("{} is not that of rank {first}: {SAME}", name_of(group.seen))),
        };
        group.seen += 1;
        let place = narrow::<u32>(group.ranks.partition_point(|&other| other < rank));
        Ok(Part { ranks: &group.ranks, place, tag, in_plan: u8::try_from(index).unwrap_or(0) })
    }

    /// Ends the reading of a rank: it has come to all collectives of its groups.
    pub(super) fn end(&mut self, rank: u32) -> Result<(), String> {
        for (index, group) in (EVERYONE..).zip(&mut self.progress) {
            let seen = std::mem::take(&mut group.seen);
            if seen != group.collectives.len() && group.ranks.binary_search(&rank).is_ok() {
                return Err(format!(
                    "{} of rank {} has no counterpart here ({seen} of {}): {SAME}",
                    called(&self.named, index, seen),
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

/// What messages call a collective of a group.
fn called(named: &Named, group: u32, number: usize) -> String {
    match group {
        EVERYONE => format!("collective {number}"),
        _ => format!("collective {number} of group \"{}\"", shorten(&named.all()[group as usize].name)),
    }
}
