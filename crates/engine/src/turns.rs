//! The order in which a thread's nodes take turns, and which of them have one.
//!
//! Where the network has two sides, whose windows are run one after the other, a node of the odd side does not wait until all of the even side have had their turns of a window, but
//! only for those that send to it. If its turn of the next window follows soon, what they have sent to it is still in the cache. So the nodes of the even side are taken in an order in which
//! neighbours follow each other, each of the odd side soon behind the last one that sends to it, and two windows are run in one sweep. What waits for nodes of other threads comes behind all that.

use crate::model::{Model, NodeIndex};
use netloom_units::narrow;

/// After this many nodes of the even side those of the odd side follow that can: nodes of one kind after each other have their code in the cache, and what hundreds of them send still is, too.
const SWEPT: u32 = 128;

/// The order of turns.
pub(crate) struct Sequence {
    /// The node in each place.
    pub(crate) nodes: Vec<u32>,
    /// Nodes of the odd side in places before this one are *early*: they get messages only from nodes that come before them, and may have a turn of the next window as soon as these have had theirs.
    pub(crate) early: u32,
}

impl Sequence {
    /// That of a thread's nodes, which are given in the order of their own numbers: nearly that of `order`, if there is one. `local` gives the number of a node that is this thread's, and `sides` are those of all nodes.
    pub(crate) fn new<M: Model>(
        model: &M,
        order: Option<&[NodeIndex]>,
        sides: Option<&[bool]>,
        ids: &[NodeIndex],
        local: impl Fn(NodeIndex) -> Option<u32>,
    ) -> Self {
        let all: Vec<u32> = match order {
            Some(order) => order.iter().filter_map(|&id| local(id)).collect(),
            None => (0..narrow::<u32>(ids.len())).collect(),
        };
        let Some(sides) = sides else { return Sequence { nodes: all, early: 0 } };
        let (odd, even): (Vec<u32>, Vec<u32>) =
            all.into_iter().partition(|&node| sides[ids[node as usize] as usize]);
        let mut places = vec![None; ids.len()];
        (0u32..).zip(&even).for_each(|(place, &node)| places[node as usize] = Some(place));
        // Among those of the even side, the place of the last one that sends to a node, if all that do are here.
        let last_sender = |node: u32| {
            let (mut last, mut are_here) = (None, true);
            are_here &= model.senders(ids[node as usize], |sender| {
                let place = local(sender).and_then(|sender| places[sender as usize]);
                are_here &= place.is_some();
                last = last.max(place);
            });
            last.filter(|_| are_here)
        };
        let (mut behind, mut late) = (Vec::new(), Vec::new());
        for node in odd {
            match last_sender(node) {
                Some(place) => behind.push((place, node)),
                None => late.push(node),
            }
        }
        behind.sort_by_key(|&(place, _)| place);
        let mut behind = behind.into_iter().peekable();
        let mut nodes = Vec::with_capacity(ids.len());
        let last = narrow::<u32>(even.len()).saturating_sub(1);
        for (place, node) in (0..).zip(even) {
            nodes.push(node);
            if place % SWEPT == SWEPT - 1 || place == last {
                nodes.extend(
                    std::iter::from_fn(|| behind.next_if(|&(sender, _)| sender <= place))
                        .map(|(_, early)| early),
                );
            }
        }
        let early = narrow::<u32>(nodes.len());
        nodes.append(&mut late);
        Sequence { nodes, early }
    }
}

/// Who has a turn: sets of places in the order of turns, one per window.
pub(crate) struct Turns {
    /// A bit per place, set after set.
    bits: Vec<u64>,
    /// A bit per word of those, so that a window in which few have a turn is looked through fast.
    busy: Vec<u64>,
    words: usize,
    busy_words: usize,
    /// By set.
    are_empty: Vec<bool>,
}

impl Turns {
    /// This many empty sets, of this many places.
    pub(crate) fn new(sets: usize, places: usize) -> Self {
        let words = places.div_ceil(64);
        let busy_words = words.div_ceil(64);
        Turns {
            bits: vec![0; sets * words],
            busy: vec![0; sets * busy_words],
            words,
            busy_words,
            are_empty: vec![true; sets],
        }
    }

    /// Whether a set is empty.
    pub(crate) fn is_empty(&self, set: usize) -> bool {
        self.are_empty[set]
    }

    /// Adds a place to a set.
    #[inline]
    pub(crate) fn insert(&mut self, set: usize, place: u32) {
        let word = place as usize / 64;
        let bits = &mut self.bits[set * self.words + word];
        if *bits == 0 {
            self.busy[set * self.busy_words + word / 64] |= 1 << (word % 64);
            self.are_empty[set] = false;
        }
        *bits |= 1 << (place % 64);
    }

    /// Takes all places before `end` out of a set.
    #[expect(clippy::cast_possible_truncation, reason = "at most `end`, which has 32 bits")]
    pub(crate) fn remove_before(&mut self, set: usize, end: u32) {
        let Turns { bits, busy, words, busy_words, are_empty } = self;
        if are_empty[set] {
            return;
        }
        let (bits, busy) =
            (&mut bits[set * *words..][..*words], &mut busy[set * *busy_words..][..*busy_words]);
        let mut is_empty = true;
        for (first, busy) in (0..).step_by(64).zip(busy) {
            let mut left = *busy;
            while left != 0 {
                let word = first + left.trailing_zeros() as usize;
                let leave = (end as usize).saturating_sub(64 * word);
                bits[word] &= u64::MAX.checked_shl(leave as u32).unwrap_or(0);
                if bits[word] == 0 {
                    *busy &= !(1 << (word % 64));
                }
                left &= left - 1;
            }
            is_empty &= *busy == 0;
        }
        are_empty[set] = is_empty;
    }

    /// The first place of a set that is not before `from`; `u32::MAX` if there is none.
    #[inline]
    pub(crate) fn first(&self, set: usize, from: u32) -> u32 {
        let word = from as usize / 64;
        if word >= self.words {
            return u32::MAX;
        }
        let left = self.bits[set * self.words + word] & u64::MAX << (from % 64);
        self.next(set, &mut Walk { left, word })
    }

    /// Begins to go through a set, to which nothing is added meanwhile.
    pub(crate) fn walk(&self, set: usize) -> Walk {
        Walk { left: self.bits.get(set * self.words).copied().unwrap_or(0), word: 0 }
    }

    /// The next place on a walk through a set; `u32::MAX` if there is none.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "places have 32 bits")]
    pub(crate) fn next(&self, set: usize, walk: &mut Walk) -> u32 {
        if walk.left == 0 {
            self.go_on(set, walk);
        }
        if walk.left == 0 {
            return u32::MAX;
        }
        let place = walk.word as u32 * 64 + walk.left.trailing_zeros();
        walk.left &= walk.left - 1;
        place
    }

    /// Goes on to the next word with a place in it, or to nowhere.
    #[inline(never)]
    fn go_on(&self, set: usize, walk: &mut Walk) {
        let busy = &self.busy[set * self.busy_words..][..self.busy_words];
        let word = walk.word + 1;
        let mut mask = u64::MAX << (word % 64);
        for (index, &words) in busy.iter().enumerate().skip(word / 64) {
            if words & mask != 0 {
                walk.word = index * 64 + (words & mask).trailing_zeros() as usize;
                walk.left = self.bits[set * self.words + walk.word];
                return;
            }
            mask = u64::MAX;
        }
        walk.word = self.words;
    }
}

/// A place between those of a set.
pub(crate) struct Walk {
    /// What is still to come of a word.
    left: u64,
    word: usize,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const SETS: usize = 2;

    proptest! {
        #[test]
        fn as_ordered_sets_would(
            places in prop_oneof![1..200u32, 4000..9000u32],
            steps in prop::collection::vec((0..SETS, any::<u32>(), 0..20), 0..200),
        ) {
            let mut turns = Turns::new(SETS, places as usize);
            let mut sets = vec![BTreeSet::new(); SETS];
            for (set, place, leaves) in steps {
                let place = place % (places + 1);
                if leaves == 0 {
                    turns.remove_before(set, place);
                    sets[set].retain(|&other| other >= place);
                } else if place < places {
                    turns.insert(set, place);
                    sets[set].insert(place);
                }
                for (set, wanted) in sets.iter().enumerate() {
                    prop_assert_eq!(turns.is_empty(set), wanted.is_empty());
                    for from in [0, place, place + 1, places, u32::MAX] {
                        let first = wanted.range(from..).next().copied();
                        prop_assert_eq!(turns.first(set, from), first.unwrap_or(u32::MAX));
                    }
                    let mut walk = turns.walk(set);
                    let all = std::iter::repeat_with(|| turns.next(set, &mut walk));
                    prop_assert!(all.take_while(|&place| place < u32::MAX).eq(wanted.iter().copied()));
                    prop_assert_eq!(turns.next(set, &mut walk), u32::MAX);
                }
            }
        }
    }
}
