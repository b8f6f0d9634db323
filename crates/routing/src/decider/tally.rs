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

/// Decisions by flow. Those of the last few flows stand in a table that costs a packet a look; those before them are kept until many have come together.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    lately: Box<[(FlowKey, Decisions); 1 << LATELY]>,
    before: FxHashMap<FlowKey, Decisions>,
    told: Arc<dyn Decided>,
}

/// How many flows stand in the table, as a power of two.
const LATELY: u32 = 6;

/// How many flows are kept besides.
const KEPT: usize = 4096;

impl Tally {
    pub(crate) fn new(told: Arc<dyn Decided>) -> Self {
        let none = (FlowKey { src: u32::MAX, flow: u32::MAX }, Decisions::default());
        Tally { lately: Box::new([none; 1 << LATELY]), before: FxHashMap::default(), told }
    }

    /// One more decision on a packet of a flow.
    #[inline(always)]
    pub(crate) fn count(&mut self, flow: FlowKey, deviates: bool) {
        // The golden ratio's bits; the best ones of a product are the first.
        let place = flow.name().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - LATELY);
        let (of, decisions) = &mut self.lately[place as usize];
        if *of == flow {
            decisions.count(deviates);
        } else {
            self.count_another(place as usize, flow, deviates);
        }
    }

    /// Another flow takes the place of one in the table.
    #[inline(never)]
    fn count_another(&mut self, place: usize, flow: FlowKey, deviates: bool) {
        let mut decisions = Decisions::default();
        decisions.count(deviates);
        let (left, counted) = std::mem::replace(&mut self.lately[place], (flow, decisions));
        if counted.taken > 0 {
            self.before.entry(left).or_default().add(counted);
        }
        if self.before.len() >= KEPT {
            self.told.add(&mut self.before.drain());
        }
    }

    /// Tells of all flows that have not been told of.
    pub(crate) fn tell_all(self) {
        let lately = self.lately.into_iter().filter(|(_, decisions)| decisions.taken > 0);
        self.told.add(&mut lately.chain(self.before));
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
        assert!(tally.before.len() <= KEPT);
        tally.tell_all();
        assert_eq!(*sum.0.lock().unwrap(), counted);
    }
}
