//! A table of flows with an idle timeout, for a place that never learns that a flow has ended.

use netloom_units::Time;
use rustc_hash::FxHashMap;

use crate::header::FlowKey;

/// What is known of a flow that passes.
pub trait LastSeen {
    /// When the flow was last seen.
    fn last(&self) -> Time;
}

/// Something for each flow that passes. Flows that have been silent for long are given up now and then, so that it is as large as flows pass
/// at about the same time, however many pass in all. Which are given up, and when, depends on nothing but what passes.
#[derive(Clone, Debug)]
pub struct IdleTimeoutTable<T> {
    flows: FxHashMap<FlowKey, T>,
    few: usize,
    silence: Time,
    look_at: usize,
}

impl<T: LastSeen> IdleTimeoutTable<T> {
    /// Nothing has passed. Flows that have not been seen for longer than `silence` are not looked for while there are only a `few`.
    pub fn new(few: usize, silence: Time) -> Self {
        IdleTimeoutTable { flows: FxHashMap::default(), few, silence, look_at: few }
    }

    /// Before a flow is seen that may be new: if there are many, gives up those that have been silent, in no order. That looks at all of them,
    /// so it waits until at least half of them are others.
    pub fn make_room(&mut self, flow: FlowKey, now: Time) -> Vec<(FlowKey, T)> {
        if self.flows.len() < self.look_at || self.flows.contains_key(&flow) {
            return Vec::new();
        }
        let silence = self.silence;
        let silent = self.flows.extract_if(|_, known| now.saturating_sub(known.last()) > silence).collect();
        self.look_at = self.few.max(2 * self.flows.len());
        self.flows.shrink_to(self.look_at);
        silent
    }

    /// What is known of a flow.
    pub fn get_or_insert_with(&mut self, flow: FlowKey, new: impl FnOnce() -> T) -> &mut T {
        self.flows.entry(flow).or_insert_with(new)
    }

    /// Gives up all flows, in no order.
    pub fn take_all(&mut self) -> impl Iterator<Item = (FlowKey, T)> + use<T> {
        std::mem::take(&mut self.flows).into_iter()
    }

    /// How many flows there is room for.
    pub fn capacity(&self) -> usize {
        self.flows.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl LastSeen for Time {
        fn last(&self) -> Time {
            *self
        }
    }

    fn key(flow: u32) -> FlowKey {
        FlowKey { src: 0, flow }
    }

    /// Lets a flow pass; which are given up.
    fn pass(flows: &mut IdleTimeoutTable<Time>, flow: u32, now: u64) -> Vec<u32> {
        let silent = flows.make_room(key(flow), Time(now));
        *flows.get_or_insert_with(key(flow), || Time::ZERO) = Time(now);
        let mut silent: Vec<_> = silent.into_iter().map(|(key, _)| key.flow).collect();
        silent.sort_unstable();
        silent
    }

    #[test]
    fn flows_that_have_been_silent_make_room_for_new_ones() {
        let mut flows = IdleTimeoutTable::new(3, Time(10));
        assert!(
            [(0, 0), (1, 5), (2, 9)].into_iter().all(|(flow, now)| pass(&mut flows, flow, now).is_empty())
        );
        // Known ones need none, and ten are not more than ten.
        assert!(pass(&mut flows, 1, 10).is_empty());
        assert!(pass(&mut flows, 3, 10).is_empty());
        // None was silent, so it looks again when there are twice as many.
        assert!([(4, 30), (5, 30)].into_iter().all(|(flow, now)| pass(&mut flows, flow, now).is_empty()));
        assert_eq!(pass(&mut flows, 6, 30), [0, 1, 2, 3]);
        let mut left: Vec<_> = flows.take_all().map(|(key, _)| key.flow).collect();
        left.sort_unstable();
        assert_eq!(left, [4, 5, 6]);
    }

    #[test]
    fn memory_comes_back_when_many_have_passed() {
        let mut flows = IdleTimeoutTable::new(16, Time(10));
        (0..10_000).for_each(|flow| _ = pass(&mut flows, flow, 0));
        assert!(flows.capacity() >= 10_000);
        (10_000..30_000).for_each(|flow| _ = pass(&mut flows, flow, u64::from(flow)));
        assert!(flows.capacity() < 100, "{}", flows.capacity());
    }
}
