//! Collective operations within a program: which operations of a rank are its part of which one.

use std::collections::BTreeMap;
use std::sync::Arc;

use netloom_units::{Bytes, narrow};

/// What a collective operation does, by NCCL's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectiveKind {
    /// Every rank gets the sum of all ranks' vectors.
    AllReduce,
    /// Every rank gets the blocks of all ranks.
    AllGather,
    /// Every rank gets its block of the sum.
    ReduceScatter,
    /// Every rank sends every other a block of its own.
    AllToAll,
    /// All ranks get what one has.
    Broadcast,
    /// One rank gets the sum.
    Reduce,
    /// No rank goes on before all have arrived.
    Barrier,
}

impl CollectiveKind {
    /// What tables call it.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::AllReduce => "all-reduce",
            CollectiveKind::AllGather => "all-gather",
            CollectiveKind::ReduceScatter => "reduce-scatter",
            CollectiveKind::AllToAll => "all-to-all",
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::Reduce => "reduce",
            CollectiveKind::Barrier => "barrier",
        }
    }

    /// Bus bandwidth divided by algorithm bandwidth, of at least one rank, as a fraction (NCCL-tests, `doc/PERFORMANCE.md`); `None` for a barrier,
    /// which moves no data.
    pub fn bus_factor(self, ranks: u32) -> Option<(u32, u32)> {
        match self {
            CollectiveKind::AllReduce => Some((2 * (ranks - 1), ranks)),
            CollectiveKind::AllGather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => {
                Some((ranks - 1, ranks))
            }
            CollectiveKind::Broadcast | CollectiveKind::Reduce => Some((1, 1)),
            CollectiveKind::Barrier => None,
        }
    }
}

/// A collective operation of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveInfo {
    /// What it does.
    pub kind: CollectiveKind,
    /// What the program calls it; empty if it has no name.
    pub name: Arc<str>,
    /// What the program calls the ranks that take part; empty if that has no name.
    pub group: Arc<str>,
    /// How many take part.
    pub ranks: u32,
    /// How many of them have operations in it.
    pub parts: u32,
    /// Size as NCCL-tests count it: what a rank holds after an all-gather or before a reduce-scatter, for an all-to-all what a rank has for all ranks,
    /// itself included; else the vector.
    pub bytes: Bytes,
}

/// A rank's part in a collective while programs are made.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Its operations: from this one to the one before `end`.
    pub(super) first: u32,
    pub(super) end: u32,
    /// Tag of its messages, and the first rank of those that take part.
    pub(super) key: (u32, u32),
    /// Whether the key is that of one collective only, in which the rank may have several parts: one for each of its GPUs.
    pub(super) is_unique: bool,
    pub(super) info: CollectiveInfo,
}

/// The same in a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) first: u32,
    pub(super) end: u32,
    /// Which collective of the program.
    pub(super) collective: u32,
}

/// The collectives of a program, while its ranks are joined: ranks whose parts have the same tag, kind and first rank, and are as many as that, are in the
/// same one; where a rank has several such parts, in their order.
#[derive(Default)]
pub(super) struct Joined {
    found: BTreeMap<(u32, u32, CollectiveKind, u32, u32), u32>,
    pub(super) infos: Vec<CollectiveInfo>,
}

impl Joined {
    pub(super) fn add(&mut self, members: Vec<Member>) -> Box<[Part]> {
        let mut times: BTreeMap<(u32, u32, CollectiveKind, u32), u32> = BTreeMap::new();
        let part = |Member { first, end, key: (tag, root), is_unique, info }: Member| {
            let time = times.entry((tag, root, info.kind, info.ranks)).or_default();
            let key = (tag, root, info.kind, info.ranks, *time);
            *time += u32::from(!is_unique);
            let collective = *self.found.entry(key).or_insert_with(|| {
                self.infos.push(info);
                narrow::<u32>(self.infos.len()) - 1
            });
            self.infos[collective as usize].parts += 1;
            Part { first, end, collective }
        };
        members.into_iter().map(part).collect()
    }
}
