//! Which flow of a host sends next: classes as at any port, the flows of a class in turn.

use std::collections::VecDeque;

use netloom_fabric::{RoundRobin, Rules};
use netloom_units::Time;

/// The flows that may have something to send, by data lane.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    lanes: Vec<VecDeque<u32>>,
    /// Lanes from here on are served by shares.
    first_shared: usize,
    /// Of a few fabrics only.
    shares: Option<Box<RoundRobin>>,
}

/// Whether and when something can be sent.
pub(crate) enum Turn {
    /// This flow sends.
    Now(u32),
    /// Nothing before then.
    At(Time),
    /// Nothing until something happens.
    Never,
}

impl Turns {
    pub(crate) fn new(rules: &Rules) -> Self {
        let (first_shared, quanta) = rules.shared_lanes();
        Turns {
            lanes: vec![VecDeque::new(); rules.data_lanes()],
            first_shared,
            shares: (!quanta.is_empty()).then(|| Box::new(RoundRobin::new(quanta.len()))),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, lane: u8, slot: u32) {
        self.lanes[usize::from(lane)].push_back(slot);
    }

    pub(crate) fn remove(&mut self, lane: u8, slot: u32) {
        self.lanes[usize::from(lane)].retain(|&other| other != slot);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.iter().all(VecDeque::is_empty)
    }

    /// Takes the next flow that can send at `at` out of its line.
    ///
    /// `is_open` tells whether flow control lets a lane send. `ready` tells from when on a flow can send, and `None` for one that cannot
    /// until something happens: it leaves the line and must be pushed again.
    #[inline(always)]
    pub(crate) fn next(
        &mut self,
        rules: &Rules,
        at: Time,
        is_open: impl Fn(usize) -> bool,
        mut ready: impl FnMut(u32) -> Option<Time>,
    ) -> Turn {
        let mut soonest = Time::MAX;
        let mut shared = 0u32;
        for (lane, line) in self.lanes.iter_mut().enumerate() {
            if line.is_empty() || !is_open(lane) {
                continue;
            }
            for _ in 0..line.len() {
                let Some(slot) = line.pop_front() else { break };
                let Some(from) = ready(slot) else { continue };
                if from > at {
                    line.push_back(slot);
                    soonest = soonest.min(from);
                } else if lane < self.first_shared {
                    return Turn::Now(slot);
                } else {
                    line.push_front(slot);
                    shared |= 1 << (lane - self.first_shared);
                    break;
                }
            }
        }
        if shared != 0
            && let Some(shares) = &mut self.shares
        {
            let (_, quanta) = rules.shared_lanes();
            // The size of a packet is known when it is taken; full ones are the rule.
            let lane = self.first_shared + shares.pick(shared, quanta, |_| rules.packet_size());
            if let Some(slot) = self.lanes[lane].pop_front() {
                return Turn::Now(slot);
            }
        }
        if soonest < Time::MAX { Turn::At(soonest) } else { Turn::Never }
    }
}
