//! Which packet numbers have been seen.

use std::collections::VecDeque;

/// A set of packet numbers that contains everything below [`base`](Self::base), and few numbers above.
///
/// While numbers arrive in order it holds no memory at all.
#[derive(Clone, Debug, Default)]
pub struct SeqSet {
    base: u32,
    /// Bit `i` of word `w` stands for number `(base & !63) + 64 w + i`; bits below `base` mean nothing.
    words: VecDeque<u64>,
}

impl SeqSet {
    /// The lowest number not in the set.
    #[inline]
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Whether everything seen is below `base`: there are no holes.
    pub fn is_contiguous(&self) -> bool {
        self.words.is_empty()
    }

    fn place(&self, seq: u32) -> (usize, u64) {
        (((seq >> 6) - (self.base >> 6)) as usize, 1 << (seq & 63))
    }

    /// Whether the number is in the set.
    #[inline]
    pub fn contains(&self, seq: u32) -> bool {
        if seq < self.base {
            return true;
        }
        let (word, bit) = self.place(seq);
        self.words.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Adds a number; returns whether it is new.
    #[inline]
    pub fn insert(&mut self, seq: u32) -> bool {
        if seq == self.base && self.words.is_empty() {
            self.base += 1;
            return true;
        }
        if self.contains(seq) {
            return false;
        }
        let (word, bit) = self.place(seq);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
        if seq == self.base {
            self.advance();
        }
        true
    }

    /// Moves `base` over everything that is in the set.
    fn advance(&mut self) {
        while let Some(&bits) = self.words.front() {
            let offset = self.base & 63;
            let run = (bits >> offset).trailing_ones().min(64 - offset);
            self.base += run;
            if offset + run < 64 {
                // Only numbers below the base are left in the last word: forget it.
                if self.words.len() == 1 && (bits >> (offset + run)) == 0 {
                    self.words.clear();
                }
                return;
            }
            self.words.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_set(numbers in prop::collection::vec(0..400u32, 0..600)) {
            let mut set = SeqSet::default();
            let mut model = std::collections::BTreeSet::new();
            for number in numbers {
                prop_assert_eq!(set.insert(number), model.insert(number));
                let base = (0..).find(|n| !model.contains(n)).unwrap();
                prop_assert_eq!(set.base(), base);
                prop_assert_eq!(set.is_contiguous(), model.iter().all(|&n| n < base));
                for probe in 0..410 {
                    prop_assert_eq!(set.contains(probe), model.contains(&probe));
                }
            }
        }
    }
}
