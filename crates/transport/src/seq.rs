//! Which packet numbers have been seen.

use std::collections::VecDeque;

use netloom_units::recurrence::Walk;

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
    /// [Recurs](netloom_units::recurrence) as the set of numbers of a flow.
    pub(crate) fn recur(&mut self, flow: u64, walk: &mut Walk) {
        let SeqSet { base, near, far } = self;
        walk.seq(flow, base);
        walk.exact(*near);
        walk.count(far.len());
        far.iter().for_each(|&word| walk.exact(word));
    }

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

    /// Whether 64 numbers are in the set, from `first` on; bit 0 stands for `first`.
    pub(crate) fn bits_from(&self, first: u32) -> u64 {
        let Some(ahead) = first.checked_sub(self.base) else {
            let below = self.base - first;
            return match below {
                0..64 => ((1 << below) - 1) | self.bits_from(self.base) << below,
                _ => u64::MAX,
            };
        };
        let word = |index: usize| match index {
            0 => self.near,
            far => self.far.get(far - 1).copied().unwrap_or(0),
        };
        let (index, shift) = (ahead as usize / 64, ahead % 64);
        word(index) >> shift | word(index + 1).checked_shl(64 - shift).unwrap_or(0)
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

    #[inline(never)]
    fn insert_beyond(&mut self, seq: u32) -> bool {
        self.insert_out_of_order(seq)
    }

    /// [`Self::insert`], quick where numbers come out of order.
    #[inline(always)]
    pub(crate) fn insert_out_of_order(&mut self, seq: u32) -> bool {
        if let Some(is_new) = self.insert_above(seq) {
            return is_new;
        }
        if seq != self.base {
            return self.insert_far(seq);
        }
        self.near |= 1;
        self.move_up();
        true
    }

    /// Adds a number that is near above the base, which then stays where it is; returns whether it is new. Of any other number says nothing, and does not add it.
    #[inline(always)]
    pub(crate) fn insert_above(&mut self, seq: u32) -> Option<bool> {
        // Of those below the base it is great.
        let ahead = seq.wrapping_sub(self.base);
        if !(1..u64::BITS).contains(&ahead) {
            return None;
        }
        let is_new = self.near >> ahead & 1 == 0;
        self.near |= 1 << ahead;
        Some(is_new)
    }

    #[cold]
    #[inline(never)]
    fn insert_far(&mut self, seq: u32) -> bool {
        if self.contains(seq) {
            return false;
        }
        let ahead = seq - self.base;
        let word = ahead as usize / 64 - 1;
        if word >= self.far.len() {
            self.far.resize(word + 1, 0);
        }
        self.far[word] |= 1 << (ahead % 64);
        true
    }

    /// Moves the base, which has come into the set, up to the next number that is not in it.
    #[inline(always)]
    fn move_up(&mut self) {
        let by = self.near.trailing_ones();
        self.base += by;
        self.near = self.near.checked_shr(by).unwrap_or(0);
        if !self.far.is_empty() {
            self.shift_far(by);
        }
    }

    /// Moves the numbers far above the base, which has moved up, and then the base on if they follow it.
    #[cold]
    #[inline(never)]
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
        if self.near & 1 == 1 {
            self.move_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_set(
            numbers in prop_oneof![
                prop::collection::vec(0..400u32, 0..600),
                // The lowest of many comes last.
                (1..400u32, 1..90u32).prop_map(|(end, gap)| (0..end).rev().filter(|n| n % gap > 0).chain([0, gap]).collect()),
            ],
        ) {
            let mut set = SeqSet::default();
            let mut model = std::collections::BTreeSet::new();
            for number in numbers {
                let is_new = set.insert_above(number).unwrap_or_else(|| set.insert(number));
                prop_assert_eq!(is_new, model.insert(number));
                let base = (0..).find(|n| !model.contains(n)).unwrap();
                prop_assert_eq!(set.base(), base);
                prop_assert_eq!(set.is_contiguous(), model.iter().all(|&n| n < base));
                for probe in 0..410 {
                    prop_assert_eq!(set.contains(probe), model.contains(&probe));
                }
                for first in [0, 1, 40, 63, 64, 65, 100, 128, 300, number, base] {
                    let bits = set.bits_from(first);
                    prop_assert!((0..64).all(|i| (bits >> i & 1 == 1) == model.contains(&(first + i))));
                }
            }
        }
    }
}
