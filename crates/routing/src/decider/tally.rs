//! How many decisions a switch has taken on the packets of which flow.

use std::fmt::Debug;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::header::{Decisions, FlowKey};

/// Receives how many decisions switches have taken on flows. Counts of a flow that come more than once add up.
pub trait Decided: Debug + Send + Sync {
    /// So many decisions on so many flows, in no order.
    fn add(&self, flows: &mut dyn Iterator<Item = (FlowKey, Decisions)>);
}

/// Decisions by flow. Those of recent flows stand in a table that costs a packet a look and grows where many flows take turns; those of flows that had
/// to leave it are kept until many have come together.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// A power of two of them. Without decisions there is no flow.
    recent: Box<[Recent]>,
    /// The hash of a flow without so many of its bits is its place there.
    shift: u32,
    /// Flows that have left it since it last grew.
    displaced: usize,
    before: FxHashMap<FlowKey, Decisions>,
    told: Arc<dyn Decided>,
}

/// A flow's decisions in the table: those taken in the low 32 bits, those deviating above them.
#[derive(Clone, Copy, Debug)]
struct Recent {
    flow: FlowKey,
    counts: u64,
}

impl Recent {
    const NONE: Recent = Recent { flow: FlowKey { src: u32::MAX, flow: u32::MAX }, counts: 0 };

    /// One decision.
    #[inline(always)]
    fn one(deviates: bool) -> u64 {
        1 | u64::from(deviates) << 32
    }

    fn decisions(self) -> Decisions {
        Decisions { taken: self.counts & u64::from(u32::MAX), deviating: self.counts >> 32 }
    }
}

/// How many flows stand in the table at first, and at most: of 16 bytes each.
const FEWEST: usize = 1 << 6;
const MOST: usize = 1 << 11;

/// How many flows are kept besides.
const KEPT: usize = 4096;

/// Decisions on a flow after which it leaves the table, long before they would not fit.
const MANY: u64 = 1 << 31;

impl Tally {
    pub(crate) fn new(told: Arc<dyn Decided>) -> Self {
        let recent = vec![Recent::NONE; FEWEST].into_boxed_slice();
        Tally { shift: u64::BITS - FEWEST.ilog2(), recent, displaced: 0, before: FxHashMap::default(), told }
    }

    /// A flow's place in the table.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "below the table's length")]
    fn place(&self, flow: FlowKey) -> usize {
        // The golden ratio's bits; the best ones of a product are the first.
        (flow.name().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// One more decision on a packet of a flow.
    #[inline(always)]
    pub(crate) fn count(&mut self, flow: FlowKey, deviates: bool) {
        let place = self.place(flow);
        let recent = &mut self.recent[place];
        if recent.flow == flow && recent.counts & MANY == 0 {
            recent.counts += Recent::one(deviates);
        } else {
            self.count_another(flow, deviates);
        }
    }

    /// A flow takes the place of another one in the table, or begins there anew.
    #[inline(never)]
    fn count_another(&mut self, flow: FlowKey, deviates: bool) {
        if self.displaced > self.recent.len() / 2 && self.recent.len() < MOST {
            self.grow();
        }
        self.displaced += self.put(Recent { flow, counts: Recent::one(deviates) });
        if self.before.len() >= KEPT {
            self.told.add(&mut self.before.drain());
        }
    }

    /// Twice as many flows find a place.
    fn grow(&mut self) {
        let larger = vec![Recent::NONE; 2 * self.recent.len()].into_boxed_slice();
        let smaller = std::mem::replace(&mut self.recent, larger);
        self.shift -= 1;
        self.displaced = 0;
        for recent in smaller {
            if recent.counts > 0 {
                self.put(recent);
            }
        }
    }

    /// Puts a flow into its place; what stood there is kept besides. Returns whether there was something.
    fn put(&mut self, recent: Recent) -> usize {
        let place = self.place(recent.flow);
        let left = std::mem::replace(&mut self.recent[place], recent);
        if left.counts > 0 {
            self.before.entry(left.flow).or_default().add(left.decisions());
        }
        usize::from(left.counts > 0)
    }

    /// Tells of all flows that have not been told of.
    pub(crate) fn tell_all(self) {
        let recent = self.recent.into_iter().filter(|recent| recent.counts > 0);
        self.told.add(&mut recent.map(|recent| (recent.flow, recent.decisions())).chain(self.before));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct Sum(Mutex<BTreeMap<FlowKey, Decisions>>);

    impl Decided for Sum {
        fn add(&self, flows: &mut dyn Iterator<Item = (FlowKey, Decisions)>) {
            let mut sums = self.0.lock().unwrap();
            flows.for_each(|(flow, decisions)| sums.entry(flow).or_default().add(decisions));
        }
    }

    #[test]
    fn every_decision_is_told_once_however_many_flows_there_are() {
        let sum = Arc::new(Sum::default());
        let mut tally = Tally::new(sum.clone());
        let mut counted: BTreeMap<FlowKey, Decisions> = BTreeMap::new();
        // Some flows come again and again, some once.
        for packet in 0..60_000u32 {
            let flow = FlowKey { src: packet % 3, flow: if packet % 2 == 0 { packet } else { packet % 301 } };
            tally.count(flow, packet % 5 == 0);
            counted.entry(flow).or_default().count(packet % 5 == 0);
        }
        assert!(tally.before.len() <= KEPT && tally.recent.len() == MOST);
        tally.tell_all();
        assert_eq!(*sum.0.lock().unwrap(), counted);
    }

    #[test]
    fn counts_leave_the_table_before_they_run_over() {
        let sum = Arc::new(Sum::default());
        let mut tally = Tally::new(sum.clone());
        let flow = FlowKey { src: 1, flow: 2 };
        tally.count(flow, true);
        let place = tally.place(flow);
        tally.recent[place].counts += MANY - 2;
        (0..3).for_each(|_| tally.count(flow, true));
        tally.tell_all();
        let all = Decisions { taken: MANY + 2, deviating: 4 };
        assert_eq!(*sum.0.lock().unwrap(), BTreeMap::from([(flow, all)]));
    }
}
