//! What is remembered of flows: by slot where their host numbers them, by name and pass at a switch.

use netloom_units::Time;
use netloom_units::memory::push_few;
use rustc_hash::FxHashMap;

use crate::header::FlowRef;

/// One entry per flow.
///
/// A source keeps a flow's entry until the flow ends. A switch does not see flows end: it forgets one that it has not seen for a time. When
/// that happens does not depend on when the table is swept, unless its room is limited: a full table is swept once in that time.
#[derive(Clone, Debug)]
pub(crate) enum FlowTable<T> {
    Slots(Vec<Option<T>>),
    Names { entries: FxHashMap<FlowRef, Seen<T>>, limits: Limits, sweep_at: usize, swept: Time },
}

/// How long a switch remembers flows, and how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// A flow that has not been seen for longer is forgotten.
    pub(crate) ageing: Time,
    /// Most entries.
    pub(crate) entries: usize,
    /// The last path of a flow matters beyond the run of packets that took it.
    pub(crate) keeps_path: bool,
}

/// An entry and when its flow was last seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen<T> {
    last: Time,
    entry: T,
}

/// Entries up to which a table is never swept.
const FEW: usize = 1024;

impl<T> FlowTable<T> {
    /// The flows that start at a host.
    pub(crate) fn of_host() -> Self {
        FlowTable::Slots(Vec::new())
    }

    /// The flows that pass a switch.
    pub(crate) fn of_switch(limits: Limits) -> Self {
        let sweep_at = FEW.min(limits.entries);
        FlowTable::Names { entries: FxHashMap::default(), limits, sweep_at, swept: Time::ZERO }
    }

    /// The entry of a flow of which a packet is seen now.
    #[inline]
    pub(crate) fn see(&mut self, flow: FlowRef, now: Time) -> Option<&mut T> {
        match self {
            FlowTable::Slots(entries) => entries.get_mut(flow.slot as usize)?.as_mut(),
            FlowTable::Names { entries, limits, .. } => {
                let seen = entries.get_mut(&flow)?;
                if now.saturating_sub(seen.last) > limits.ageing {
                    return None;
                }
                seen.last = seen.last.max(now);
                Some(&mut seen.entry)
            }
        }
    }

    /// A flow of which something waits here until then counts as seen until then.
    pub(crate) fn keep_until(&mut self, flow: FlowRef, until: Time) {
        if let FlowTable::Names { entries, .. } = self
            && let Some(seen) = entries.get_mut(&flow)
        {
            seen.last = seen.last.max(until);
        }
    }

    /// A flow's entry, whether or not it has been seen lately.
    #[inline]
    pub(crate) fn get(&self, flow: FlowRef) -> Option<&T> {
        match self {
            FlowTable::Slots(entries) => entries.get(flow.slot as usize)?.as_ref(),
            FlowTable::Names { entries, .. } => entries.get(&flow).map(|seen| &seen.entry),
        }
    }

    /// As [`Self::get`].
    #[inline]
    pub(crate) fn get_mut(&mut self, flow: FlowRef) -> Option<&mut T> {
        match self {
            FlowTable::Slots(entries) => entries.get_mut(flow.slot as usize)?.as_mut(),
            FlowTable::Names { entries, .. } => entries.get_mut(&flow).map(|seen| &mut seen.entry),
        }
    }

    /// Sets the entry of a flow that is seen now, if there is room for it.
    pub(crate) fn insert(&mut self, flow: FlowRef, now: Time, entry: T) {
        match self {
            FlowTable::Slots(entries) => {
                let slot = flow.slot as usize;
                while entries.len() <= slot {
                    push_few(entries, None);
                }
                entries[slot] = Some(entry);
            }
            FlowTable::Names { .. } => {
                if self.has_room(flow, now)
                    && let FlowTable::Names { entries, .. } = self
                {
                    entries.insert(flow, Seen { last: now, entry });
                }
            }
        }
    }

    /// Whether a flow has an entry or can have one. Makes room where that is due.
    pub(crate) fn has_room(&mut self, flow: FlowRef, now: Time) -> bool {
        let FlowTable::Names { entries, limits, sweep_at, swept } = self else { return true };
        // A full table of live flows is not worth a look at every packet.
        let is_due = entries.len() < limits.entries || now.saturating_sub(*swept) > limits.ageing;
        if entries.len() >= *sweep_at && is_due {
            entries.retain(|_, seen| now.saturating_sub(seen.last) <= limits.ageing);
            (*sweep_at, *swept) = (FEW.max(2 * entries.len()).min(limits.entries), now);
        }
        entries.len() < limits.entries || entries.contains_key(&flow)
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        match self {
            FlowTable::Slots(entries) => entries.iter().flatten().count(),
            FlowTable::Names { entries, .. } => entries.len(),
        }
    }

    /// Forgets a flow.
    pub(crate) fn remove(&mut self, flow: FlowRef) {
        match self {
            FlowTable::Slots(entries) => {
                if let Some(entry) = entries.get_mut(flow.slot as usize) {
                    *entry = None;
                }
            }
            FlowTable::Names { entries, .. } => {
                entries.remove(&flow);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::FlowKey;

    fn flow(number: u32) -> FlowRef {
        FlowRef { key: FlowKey { src: 1, flow: number }, slot: number % 7 }
    }

    #[test]
    fn a_switch_forgets_a_flow_that_it_has_not_seen_for_longer_than_its_age() {
        let mut table =
            FlowTable::of_switch(Limits { ageing: Time(100), entries: usize::MAX, keeps_path: false });
        table.insert(flow(1), Time(0), 'a');
        assert_eq!(table.see(flow(1), Time(100)).copied(), Some('a'));
        assert_eq!(table.see(flow(1), Time(200)).copied(), Some('a'), "seen at 100");
        assert_eq!(table.see(flow(1), Time(301)), None);
    }

    #[test]
    fn a_flow_of_which_something_waits_is_not_forgotten() {
        let mut table = FlowTable::of_switch(Limits { ageing: Time(10), entries: 1, keeps_path: false });
        table.insert(flow(1), Time(0), 'a');
        table.keep_until(flow(1), Time(100));
        assert_eq!(table.see(flow(1), Time(50)).copied(), Some('a'));
        assert!(!table.has_room(flow(2), Time(110)));
        assert_eq!(table.see(flow(1), Time(110)).copied(), Some('a'), "seen at 50, but kept until 100");
        assert!(table.has_room(flow(2), Time(121)));
    }

    #[test]
    fn sweeping_changes_nothing_but_the_size() {
        let mut table =
            FlowTable::of_switch(Limits { ageing: Time(100), entries: usize::MAX, keeps_path: false });
        for number in 0..50_000 {
            let now = Time(u64::from(number));
            table.insert(flow(number), now, number);
            let alive = table.see(flow(number.saturating_sub(60)), now).copied();
            assert_eq!(alive, Some(number.saturating_sub(60)).filter(|_| number >= 60 || number <= 100));
        }
        let FlowTable::Names { entries, .. } = &table else { unreachable!() };
        assert!(entries.len() <= 2 * FEW);
    }

    #[test]
    fn a_host_keeps_a_flow_until_it_ends_and_its_slot_serves_the_next() {
        let mut table = FlowTable::of_host();
        table.insert(flow(3), Time(0), 'a');
        assert_eq!(table.see(flow(3), Time::MAX).copied(), Some('a'));
        table.remove(flow(3));
        assert_eq!(table.get(flow(10)), None);
        table.insert(flow(10), Time(5), 'b');
        assert_eq!(table.get_mut(flow(10)).copied(), Some('b'));
    }

    #[test]
    fn a_full_table_takes_a_flow_only_when_another_has_been_forgotten() {
        let mut table = FlowTable::of_switch(Limits { ageing: Time(100), entries: 2, keeps_path: false });
        for number in 0..3 {
            assert_eq!(table.has_room(flow(number), Time(50)), number < 2);
            table.insert(flow(number), Time(50), number);
        }
        assert_eq!(table.see(flow(2), Time(50)), None);
        assert!(table.see(flow(1), Time(120)).is_some());
        assert!(table.has_room(flow(2), Time(151)), "flow 0 is forgotten");
        table.insert(flow(2), Time(151), 2);
        assert!(table.see(flow(2), Time(152)).is_some() && !table.has_room(flow(3), Time(152)));
    }
}
