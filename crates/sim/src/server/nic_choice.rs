//! By which of its NICs a message leaves a server.

use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, narrow};
use netloom_workload::{NicSelection, Rails};

/// What the choice depends on, at one server.
#[derive(Debug)]
pub struct NicChoice {
    /// The rail that is next.
    next_rail: u32,
    /// Per rail, the bytes of messages that have begun and not ended.
    outstanding: Vec<u64>,
}

impl NicChoice {
    /// At a server of that many rails, before its first message.
    pub fn new(rails: usize) -> Self {
        NicChoice { next_rail: 0, outstanding: vec![0; rails] }
    }

    /// The parts of a message from one server to another, by its number: rails and bytes. Striped messages are cut into packets of `mtu` bytes of payload.
    pub fn parts(
        &mut self,
        rails: &Rails,
        (src, dst, number): (u32, u32, u32),
        (bytes, mtu): (Bytes, Bytes),
    ) -> Vec<(u32, Bytes)> {
        let between = rails.between(src, dst);
        let count = narrow::<u32>(between.len());
        if count == 1 {
            return vec![(between.start, bytes)];
        }
        // In turn, from the next one on.
        let first = self.next_rail;
        let in_turn = |step: u32| between.start + (first + step) % count;
        match rails.nic_selection() {
            NicSelection::Stripe => {
                let parts = Rails::stripe(count, bytes, mtu);
                let parts: Vec<_> = (0..).zip(parts).map(|(part, bytes)| (in_turn(part), bytes)).collect();
                self.next_rail = (first + narrow::<u32>(parts.len())) % count;
                parts
            }
            NicSelection::RoundRobin => {
                self.next_rail = (first + 1) % count;
                vec![(in_turn(0), bytes)]
            }
            NicSelection::Hash | NicSelection::Gpu => vec![(rails.hashed(src, dst, number), bytes)],
            NicSelection::LeastOutstanding => {
                let steps = 0..count;
                let step = steps.min_by_key(|&step| self.outstanding[in_turn(step) as usize]).unwrap_or(0);
                self.next_rail = (first + step + 1) % count;
                vec![(in_turn(step), bytes)]
            }
        }
    }

    /// A whole message of these bytes begins on a rail.
    pub fn note_begin(&mut self, rail: u32, bytes: Bytes) {
        self.outstanding[rail as usize] += bytes.0;
    }

    /// It has ended.
    pub fn note_end(&mut self, rail: u32, bytes: Bytes) {
        self.outstanding[rail as usize] -= bytes.0;
    }

    /// What its state means to the [walk](netloom_units::recurrence).
    pub(crate) fn recur(&self, walk: &mut Walk) {
        let NicChoice { next_rail, outstanding } = self;
        walk.exact(*next_rail);
        outstanding.iter().for_each(|&bytes| walk.exact(bytes));
    }
}
