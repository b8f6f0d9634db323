//! Which packet numbers have been seen.

use std::collections::VecDeque;

/// A set of packet numbers that contains everything below [`base`](Self::base), and few numbers above.
///
/// Numbers up to 63 above the base cost no memory beyond the struct.
#[derive(Clone, Debug, Default)]
pub struct SeqSet {
    base: u32,
    /// Bit `i` stands for number `base + i`; bit 0 is never set.
    near: u64,
    /// Bit `i` of word `w` stands for number `base + 64 (w + 1) + i`. The last word is never 0.
    far: VecDeque<u64>,
}

impl SeqSet {
    /// The lowest number not in the set.
    #[inline]
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Whether everything seen is below `base`: there are no holes.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.near == 0 && self.far.is_empty()
    }

    /// Whether the number is in the set.
    #[inline]
    pub fn contains(&self, seq: u32) -> bool {
        let Some(ahead) = seq.checked_sub(self.base) else { return true };
        let word =
            if ahead < 64 { self.near } else { self.far.get(ahead as usize / 64 - 1).copied().unwrap_or(0) };
        word >> (ahead % 64) & 1 == 1
    }

    /// Adds the lowest number not in the set if nothing above it is in; returns whether that is so.
    #[inline]
    pub fn insert_in_order(&mut self, seq: u32) -> bool {
        if seq != self.base || !self.is_contiguous() {
            return false;
        }
        self.base += 1;
        true
    }

    /// Adds a number; returns whether it is new.
    #[inline]
    pub fn insert(&mut self, seq: u32) -> bool {
        self.insert_in_order(seq) || self.insert_beyond(seq)
    }

    fn insert_beyond(&mut self, seq: u32) -> bool {
        if self.contains(seq) {
            return false;
        }
        let ahead = seq - self.base;
        if ahead >= 64 {
            let word = ahead as usize / 64 - 1;
            if word >= self.far.len() {
                self.far.resize(word + 1, 0);
            }
            self.far[word] |= 1 << (ahead % 64);
            return true;
        }
        self.near |= 1 << ahead;
        while self.near & 1 == 1 {
            self.shift(self.near.trailing_ones());
        }
        true
    }

    /// Moves the base up by 1 to 64 numbers that are in the set.
    #[inline]
    fn shift(&mut self, by: u32) {
        self.base += by;
        self.near = self.near.checked_shr(by).unwrap_or(0);
        if !self.far.is_empty() {
            self.shift_far(by);
        }
    }

    #[cold]
    fn shift_far(&mut self, by: u32) {
        let mut below = &mut self.near;
        for word in &mut self.far {
            *below |= word.checked_shl(64 - by).unwrap_or(0);
            *word = word.checked_shr(by).unwrap_or(0);
            below = word;
        }
        while self.far.back() == Some(&0) {
            self.far.pop_back();
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
