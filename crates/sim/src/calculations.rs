//! The calculations of one program that are under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use netloom_units::Time;
use netloom_units::recurrence::Walk;
use netloom_workload::HostWork;

use crate::world::World;

/// When a program wants to be called, in order of (time, order of asking), and about which operation.
#[derive(Debug, Default)]
pub(crate) struct Calculations {
    ends: BinaryHeap<Reverse<(Time, u64, u32)>>,
    asked: u64,
}

impl Calculations {
    /// The program wants to be called at `at`.
    pub(crate) fn begin(&mut self, world: &World, at: Time, op: u32) {
        self.asked += 1;
        world.calculations.fetch_add(1, Ordering::Relaxed);
        self.ends.push(Reverse((at, self.asked, op)));
    }

    /// [Recur](netloom_units::recurrence): as many go on, as long, of a program, the `work` of `origin`. Where no messages succeed others none ends in a period.
    pub(crate) fn recur(&mut self, (origin, work): (u32, &HostWork), walk: &mut Walk) {
        let Calculations { ends, asked } = self;
        if walk.counts() {
            let mut all = std::mem::take(ends).into_vec();
            all.iter_mut().for_each(|Reverse((at, ..))| walk.deadline(at));
            *ends = all.into();
            return;
        }
        if !walk.has_successors() {
            return walk.deadline(&mut ends.peek().map_or(Time::MAX, |Reverse((at, ..))| *at));
        }
        let now = *asked;
        let mut sum = now;
        walk.sum(&mut sum);
        *asked = sum;
        walk.count(ends.len());
        let mut all = std::mem::take(ends).into_sorted_vec();
        for Reverse((at, number, op)) in &mut all {
            walk.time(at);
            walk.exact(now - *number);
            *number = sum - (now - *number);
            work.recur_wake(origin, op, walk);
        }
        *ends = all.into();
    }

    /// When the next one ends.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        self.ends.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next one ends: its operation.
    pub(crate) fn end(&mut self, world: &World) -> Option<u32> {
        let Reverse((.., op)) = self.ends.pop()?;
        world.calculations.fetch_sub(1, Ordering::Relaxed);
        Some(op)
    }
}
