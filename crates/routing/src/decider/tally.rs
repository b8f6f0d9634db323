//! How many decisions a switch has taken on the packets of which flow.

use std::fmt::Debug;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::header::{Decisions, FlowKey};

/// Receives how many decisions switches have taken on flows. Counts of a flow that come more than once add up.
pub trait Decided: Debug + Send + Sync {
    /// Adds the numbers of decisions on some flows, in no order.
    fn add(&self, flows: &mut dyn Iterator<Item = (FlowKey, Decisions)>);
}

/// Decisions by flow. Those of recent flows stand in a table that costs a packet a look and grows where many flows take turns; those of flows that had
/// to leave it are kept until many have come together.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// A power of two of them. Without decisions there is no flow.
    recent: Box<[(FlowKey, Decisions)]>,
    /// Flows that have left it since it last grew.
    displaced: usize,
    before: FxHashMap<FlowKey, Decisions>,
    /// What has been told of.
    total: Decisions,
    told: Arc<dyn Decided>,
}

/// No flow.
const NONE: (FlowKey, Decisions) =
    (FlowKey { src: u32::MAX, flow: u32::MAX }, Decisions { taken: 0, deviating: 0 });

/// How many flows stand in the table at first, and at most: of 24 bytes each.
const FEWEST: usize = 1 << 6;
const MOST: usize = 1 << 10;

/// How many flows are kept besides.
const KEPT: usize = 4096;

impl Tally {
    pub(crate) fn new(told: Arc<dyn Decided>) -> Self {
        Tally {
            recent: vec![NONE; FEWEST].into_boxed_slice(),
            displaced: 0,
            before: FxHashMap::default(),
            total: Decisions::default(),
            told,
        }
    }

    /// One more decision on a packet of a flow. `hash`: of the flow, evenly in its lower bits; for another one it may stand in the table a second time.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "more bits than the table has places")]
    pub(crate) fn count(&mut self, flow: FlowKey, hash: u64, deviates: bool) {
        let place = hash as usize & (self.recent.len() - 1);
        let (of, decisions) = &mut self.recent[place];
        if of.name() == flow.name() {
            decisions.count(deviates);
        } else {
            self.count_another(place, flow, deviates);
        }
    }

    /// Another flow takes the place of one in the table.
    #[inline(never)]
    fn count_another(&mut self, place: usize, flow: FlowKey, deviates: bool) {
        let mut decisions = Decisions::default();
        decisions.count(deviates);
        let left = std::mem::replace(&mut self.recent[place], (flow, decisions));
        self.displaced += usize::from(left.1.taken > 0);
        self.keep(left);
        if self.displaced > self.recent.len() / 2 && self.recent.len() < MOST {
            // Who comes again finds a place in one that is twice as large.
            self.displaced = 0;
            let larger = vec![NONE; 2 * self.recent.len()].into_boxed_slice();
            let smaller = std::mem::replace(&mut self.recent, larger);
            smaller.into_iter().for_each(|left| self.keep(left));
        }
        if self.before.len() >= KEPT {
            self.tell_of_before();
        }
    }

    /// Keeps what stood in a place of the table, if there was a flow.
    fn keep(&mut self, (flow, decisions): (FlowKey, Decisions)) {
        if decisions.taken > 0 {
            self.before.entry(flow).or_default().add(decisions);
        }
    }

    fn tell_of_before(&mut self) {
        self.before.values().for_each(|&decisions| self.total.add(decisions));
        self.told.add(&mut self.before.drain());
    }

    /// Tells of all flows that have not been told of. Returns the decisions on all flows ever.
    pub(crate) fn tell_all(mut self) -> Decisions {
        let recent = std::mem::take(&mut self.recent);
        recent.into_iter().for_each(|left| self.keep(left));
        self.tell_of_before();
        self.total
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
            tally.count(flow, u64::from(flow.flow / 2), packet % 5 == 0);
            counted.entry(flow).or_default().count(packet % 5 == 0);
        }
        assert!(tally.before.len() <= KEPT && tally.recent.len() == MOST);
        let total = tally.tell_all();
        assert_eq!(*sum.0.lock().unwrap(), counted);
        assert_eq!((total.taken, total.deviating), (60_000, 12_000));
    }
}
