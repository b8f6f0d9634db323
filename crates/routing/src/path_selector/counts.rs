//! How many decisions a switch has taken, in all or on the packets of which flow.

use std::fmt::Debug;
use std::sync::Arc;

use netloom_units::recurrence::{Recur, Walk};
use rustc_hash::FxHashMap;

use crate::header::{Decisions, FlowKey};

/// Receives how many decisions switches have taken on flows. Counts of a flow that come more than once add up.
pub trait Decided: Debug + Send + Sync {
    /// Adds the numbers of decisions on some flows, in no order.
    fn add(&self, flows: &mut dyn Iterator<Item = (FlowKey, Decisions)>);
}

/// The decisions of a switch.
///
/// Those of recent flows stand in a table that grows where many flows take turns; those of flows that had to leave it are kept until many have come
/// together. Per decision that is a look into the table and one addition: flows are compared by the words that a hash sees of a packet, which are at hand
/// where a port is drawn, and what did and what did not deviate is counted apart. The question whether a place exists in the table is also that whether
/// decisions are counted by flow at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecisionCounter {
    /// A power of two of places where decisions are counted by flow, otherwise none.
    recent: Box<[Entry]>,
    /// How many they are, less one.
    mask: usize,
    /// The decisions that are not in the table, or all of them where they are not counted by flow.
    total: Decisions,
    /// Present where there is a table.
    elsewhere: Option<Box<Elsewhere>>,
}

/// What [a hash sees](crate::Header::seen_by_hash) of the packets of a flow, and how many decisions on them did not deviate and did. A flow without
/// decisions is none; one of which a hash sees different things counts as several until it is handed in.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    seen: [u64; 2],
    decided: [u64; 2],
}

/// What happens to flows that are not in the table.
#[derive(Clone, Debug)]
struct Elsewhere {
    /// Flows that have left the table since it last grew.
    displaced: usize,
    before: FxHashMap<FlowKey, Decisions>,
    receiver: Arc<dyn Decided>,
}

/// How many flows stand in the table at first, and at most: of 32 bytes each.
const FEWEST: usize = 1 << 6;
const MOST: usize = 1 << 10;

/// How many flows are kept besides.
const KEPT: usize = 4096;

impl Recur for DecisionCounter {
    fn recur(&mut self, walk: &mut Walk) {
        let DecisionCounter { recent, mask: _, total, elsewhere } = self;
        for (place, Entry { seen, decided }) in
            recent.iter_mut().enumerate().filter(|(_, entry)| entry.decided != [0; 2])
        {
            walk.count(place);
            seen.iter().for_each(|&word| walk.exact(word));
            decided.iter_mut().for_each(|count| walk.sum(count));
        }
        walk.exact(u64::MAX);
        let Decisions { taken, deviating } = total;
        [taken, deviating].into_iter().for_each(|count| walk.sum(count));
        // What is kept besides changes when a flow leaves the table.
        if let Some(elsewhere) = elsewhere {
            walk.count(elsewhere.displaced);
            walk.count(elsewhere.before.len());
        }
    }
}

impl DecisionCounter {
    /// From now on decisions are counted by flow. To be called before the first one.
    pub(crate) fn count_by_flow(&mut self, receiver: Arc<dyn Decided>) {
        (self.recent, self.mask) = (vec![Entry::default(); FEWEST].into_boxed_slice(), FEWEST - 1);
        self.elsewhere = Some(Box::new(Elsewhere { displaced: 0, before: FxHashMap::default(), receiver }));
    }

    /// One more decision on a packet of a flow.
    #[inline(always)]
    pub(crate) fn count(&mut self, flow: FlowKey, deviates: bool) {
        // The golden ratio's bits; the best ones of a product are the first.
        let hash = flow.name().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.count_seen([flow.src.into(), flow.flow.into()], hash, deviates);
    }

    /// The same where it is known what [a hash sees](crate::Header::seen_by_hash) of the packet, and a hash of that, evenly in its lower bits.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "more bits than the table has places")]
    pub(crate) fn count_seen(&mut self, seen: [u64; 2], hash: u64, deviates: bool) {
        let place = hash as usize & self.mask;
        match self.recent.get_mut(place) {
            Some(entry) if entry.seen == seen => entry.decided[usize::from(deviates)] += 1,
            _ => self.count_another(place, seen, deviates),
        }
    }

    /// Another flow takes the place of one in the table, if there is a table.
    #[inline(never)]
    fn count_another(&mut self, place: usize, seen: [u64; 2], deviates: bool) {
        let Some(elsewhere) = &mut self.elsewhere else { return self.total.count(deviates) };
        let mut entry = Entry { seen, decided: [0; 2] };
        entry.decided[usize::from(deviates)] = 1;
        let left = std::mem::replace(&mut self.recent[place], entry);
        elsewhere.displaced += usize::from(left.decisions().taken > 0);
        elsewhere.keep(left);
        let used = self.mask + 1;
        if elsewhere.displaced > used / 2 && used < MOST {
            // A flow that comes again finds a place in a table that is twice as large.
            elsewhere.displaced = 0;
            let larger = vec![Entry::default(); 2 * used].into_boxed_slice();
            let smaller = std::mem::replace(&mut self.recent, larger);
            smaller.into_iter().for_each(|left| elsewhere.keep(left));
            self.mask = 2 * used - 1;
        }
        if elsewhere.before.len() >= KEPT {
            elsewhere.hand_in(&mut self.total);
        }
    }

    /// Hands in all flows that have not been handed in. After that [`Self::total`] is that of all decisions ever.
    pub(crate) fn hand_in(&mut self) {
        if let Some(mut elsewhere) = self.elsewhere.take() {
            std::mem::take(&mut self.recent).into_iter().for_each(|left| elsewhere.keep(left));
            elsewhere.hand_in(&mut self.total);
        }
    }

    /// All decisions; where they are counted by flow, only after [`Self::hand_in`].
    pub(crate) fn total(&self) -> Decisions {
        self.total
    }
}

impl Entry {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "of either word, the lower half: Header::seen_by_hash"
    )]
    fn flow(self) -> FlowKey {
        FlowKey { src: self.seen[0] as u32, flow: self.seen[1] as u32 }
    }

    fn decisions(self) -> Decisions {
        let [same, deviating] = self.decided;
        Decisions { taken: same + deviating, deviating }
    }
}

impl Elsewhere {
    /// Keeps what stood in a place of the table, if there was a flow.
    fn keep(&mut self, left: Entry) {
        let decisions = left.decisions();
        if decisions.taken > 0 {
            self.before.entry(left.flow()).or_default().add(decisions);
        }
    }

    fn hand_in(&mut self, total: &mut Decisions) {
        self.before.values().for_each(|&decisions| total.add(decisions));
        self.receiver.add(&mut self.before.drain());
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
    fn every_decision_is_handed_in_once_however_many_flows_there_are() {
        let sum = Arc::new(Sum::default());
        let mut counter = DecisionCounter::default();
        counter.count_by_flow(sum.clone());
        let mut counted: BTreeMap<FlowKey, Decisions> = BTreeMap::new();
        // Some flows come again and again, some once; one is the flow of the first host's first number.
        for packet in 0..60_000u32 {
            let flow = FlowKey { src: packet % 3, flow: if packet % 2 == 0 { packet } else { packet % 301 } };
            // A hash sees the destination, too, and what the packet says of its path.
            let seen = [u64::from(flow.src) | 7 << 32, u64::from(flow.flow) | u64::from(packet % 2) << 32];
            counter.count_seen(seen, u64::from(flow.flow / 2), packet % 5 == 0);
            counted.entry(flow).or_default().count(packet % 5 == 0);
        }
        assert!(counter.elsewhere.as_ref().unwrap().before.len() <= KEPT && counter.mask == MOST - 1);
        counter.hand_in();
        assert_eq!(*sum.0.lock().unwrap(), counted);
        assert_eq!(counter.total(), Decisions { taken: 60_000, deviating: 12_000 });
    }

    #[test]
    fn few_flows_use_few_places_and_without_a_receiver_only_the_sum_is_kept() {
        let flow = |flow| FlowKey { src: 0, flow };
        let (sum, mut counter) = (Arc::new(Sum::default()), DecisionCounter::default());
        counter.count_by_flow(sum.clone());
        (0..10_000).for_each(|packet| counter.count_seen([0, packet % 4], packet % 4, true));
        assert_eq!(counter.mask, FEWEST - 1);
        counter.hand_in();
        assert_eq!(sum.0.lock().unwrap()[&flow(0)], Decisions { taken: 2_500, deviating: 2_500 });
        let mut plain = DecisionCounter::default();
        (0..10).for_each(|packet| plain.count(flow(packet), packet < 3));
        assert_eq!(plain.total(), Decisions { taken: 10, deviating: 3 });
    }
}
