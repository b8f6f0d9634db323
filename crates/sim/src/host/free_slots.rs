//! Slots of a host's flows that are free again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netloom_units::recurrence::{Recur, Walk};

/// The lowest one is taken first. So which one a flow gets depends on how many there are, and not on the order in which others have ended: a host that does again what it has done comes to the same state.
#[derive(Debug, Default)]
pub(crate) struct FreeSlots(BinaryHeap<Reverse<u32>>);

impl FreeSlots {
    /// Takes one.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.0.pop().map(|Reverse(slot)| slot)
    }

    /// Gives one back.
    #[inline]
    pub(crate) fn give(&mut self, slot: u32) {
        self.0.push(Reverse(slot));
    }
}

impl Recur for FreeSlots {
    fn recur(&mut self, walk: &mut Walk) {
        walk.count(self.0.len());
        let mut slots: Vec<u32> = self.0.iter().map(|&Reverse(slot)| slot).collect();
        slots.sort_unstable();
        slots.into_iter().for_each(|slot| walk.exact(slot));
    }
}
