//! Sets of ranks in the order of batches: the nodes that are scheduled in a window.

/// Sets of ranks, one per slot of the timing wheel.
pub(crate) struct RankSets {
    /// A bit per rank, set after set.
    bits: Vec<u64>,
    /// A bit per word of those, so that a set of few ranks is searched fast.
    nonzero: Vec<u64>,
    words: usize,
    summary_words: usize,
    /// By set.
    are_empty: Vec<bool>,
}

impl RankSets {
    /// This many empty sets, of ranks below `ranks`.
    pub(crate) fn new(sets: usize, ranks: usize) -> Self {
        let words = ranks.div_ceil(64);
        let summary_words = words.div_ceil(64);
        RankSets {
            bits: vec![0; sets * words],
            nonzero: vec![0; sets * summary_words],
            words,
            summary_words,
            are_empty: vec![true; sets],
        }
    }

    /// Whether a set is empty.
    pub(crate) fn is_empty(&self, set: usize) -> bool {
        self.are_empty[set]
    }

    /// Adds a rank to a set.
    #[inline]
    pub(crate) fn insert(&mut self, set: usize, rank: u32) {
        let word = rank as usize / 64;
        let bits = &mut self.bits[set * self.words + word];
        if *bits == 0 {
            self.nonzero[set * self.summary_words + word / 64] |= 1 << (word % 64);
            self.are_empty[set] = false;
        }
        *bits |= 1 << (rank % 64);
    }

    /// Takes all ranks below `end` out of a set.
    #[expect(clippy::cast_possible_truncation, reason = "at most `end`, which has 32 bits")]
    pub(crate) fn remove_before(&mut self, set: usize, end: u32) {
        let RankSets { bits, nonzero, words, summary_words, are_empty } = self;
        if are_empty[set] {
            return;
        }
        let (bits, nonzero) =
            (&mut bits[set * *words..][..*words], &mut nonzero[set * *summary_words..][..*summary_words]);
        let mut is_empty = true;
        for (first, nonzero) in (0..).step_by(64).zip(nonzero) {
            let mut left = *nonzero;
            while left != 0 {
                let word = first + left.trailing_zeros() as usize;
                let kept_from = (end as usize).saturating_sub(64 * word);
                bits[word] &= u64::MAX.checked_shl(kept_from as u32).unwrap_or(0);
                if bits[word] == 0 {
                    *nonzero &= !(1 << (word % 64));
                }
                left &= left - 1;
            }
            is_empty &= *nonzero == 0;
        }
        are_empty[set] = is_empty;
    }

    /// The first rank of a set from `from` on; `u32::MAX` if there is none.
    #[inline]
    pub(crate) fn first(&self, set: usize, from: u32) -> u32 {
        let word = from as usize / 64;
        if word >= self.words {
            return u32::MAX;
        }
        let left = self.bits[set * self.words + word] & u64::MAX << (from % 64);
        self.next(set, &mut RankCursor { left, word })
    }

    /// Begins to go through a set, to which nothing is added meanwhile.
    pub(crate) fn cursor(&self, set: usize) -> RankCursor {
        RankCursor { left: self.bits.get(set * self.words).copied().unwrap_or(0), word: 0 }
    }

    /// The next rank of a set; `u32::MAX` if there is none.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "ranks have 32 bits")]
    pub(crate) fn next(&self, set: usize, cursor: &mut RankCursor) -> u32 {
        if cursor.left == 0 {
            self.next_word(set, cursor);
        }
        if cursor.left == 0 {
            return u32::MAX;
        }
        let rank = cursor.word as u32 * 64 + cursor.left.trailing_zeros();
        cursor.left &= cursor.left - 1;
        rank
    }

    /// Goes on to the next word that is not zero, or to the end.
    #[inline(never)]
    fn next_word(&self, set: usize, cursor: &mut RankCursor) {
        let nonzero = &self.nonzero[set * self.summary_words..][..self.summary_words];
        let word = cursor.word + 1;
        let mut mask = u64::MAX << (word % 64);
        for (index, &words) in nonzero.iter().enumerate().skip(word / 64) {
            if words & mask != 0 {
                cursor.word = index * 64 + (words & mask).trailing_zeros() as usize;
                cursor.left = self.bits[set * self.words + cursor.word];
                return;
            }
            mask = u64::MAX;
        }
        cursor.word = self.words;
    }
}

/// A position in a set while going through it.
pub(crate) struct RankCursor {
    /// The bits of the word that are still to come.
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
            ranks in prop_oneof![1..200u32, 4000..9000u32],
            steps in prop::collection::vec((0..SETS, any::<u32>(), 0..20), 0..200),
        ) {
            let mut rank_sets = RankSets::new(SETS, ranks as usize);
            let mut sets = vec![BTreeSet::new(); SETS];
            for (set, rank, removes) in steps {
                let rank = rank % (ranks + 1);
                if removes == 0 {
                    rank_sets.remove_before(set, rank);
                    sets[set].retain(|&other| other >= rank);
                } else if rank < ranks {
                    rank_sets.insert(set, rank);
                    sets[set].insert(rank);
                }
                for (set, wanted) in sets.iter().enumerate() {
                    prop_assert_eq!(rank_sets.is_empty(set), wanted.is_empty());
                    for from in [0, rank, rank + 1, ranks, u32::MAX] {
                        let first = wanted.range(from..).next().copied();
                        prop_assert_eq!(rank_sets.first(set, from), first.unwrap_or(u32::MAX));
                    }
                    let mut cursor = rank_sets.cursor(set);
                    let all = std::iter::repeat_with(|| rank_sets.next(set, &mut cursor));
                    prop_assert!(all.take_while(|&rank| rank < u32::MAX).eq(wanted.iter().copied()));
                    prop_assert_eq!(rank_sets.next(set, &mut cursor), u32::MAX);
                }
            }
        }
    }
}
