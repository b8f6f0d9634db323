//! Where the nodes of one thread schedule events: the timing wheel of its partition, the outboxes for other partitions, and the timers of the
//! running batch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::Wrapping;
use std::sync::Arc;

use netloom_units::Time;

use crate::exchange::Outbox;
use crate::model::{Due, NodeIndex, Scheduler, is_timer};
use crate::pending::PrefetchCursor;
use crate::wheel::{Event, Wheel};

/// The partition that a node is in, and its index there.
#[derive(Clone, Copy)]
pub(crate) struct NodeLocation {
    pub(crate) partition: u32,
    pub(crate) local: u32,
}

/// The node whose batch is being run.
#[derive(Clone, Copy)]
pub(crate) struct CurrentNode {
    pub(crate) local: u32,
    pub(crate) window_end: Time,
}

/// A timer that fires in the window in which it is set.
pub(crate) struct BatchTimer<P> {
    due: Due,
    sequence: u64,
    payload: P,
}

impl<P> Ord for BatchTimer<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.sequence).cmp(&(other.due, other.sequence))
    }
}
impl<P> PartialOrd for BatchTimer<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> PartialEq for BatchTimer<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<P> Eq for BatchTimer<P> {}

/// The scheduler of one thread.
pub(crate) struct LocalScheduler<P> {
    pub(crate) partition: u32,
    /// Absent if there is one partition only: all nodes are local.
    pub(crate) locations: Option<Arc<[NodeLocation]>>,
    pub(crate) wheel: Wheel<P>,
    /// By partition.
    pub(crate) outboxes: Vec<Outbox<Event<P>>>,
    /// First window of the events in the outboxes; `u64::MAX` if they are empty.
    pub(crate) outbox_first: u64,
    pub(crate) batch_timers: BinaryHeap<Reverse<BatchTimer<P>>>,
    /// When the first of them is due; `Time::MAX` if there is none.
    pub(crate) next_timer: Time,
    pub(crate) timer_sequence: u64,
    pub(crate) current: CurrentNode,
    /// Of the batch after the running one.
    pub(crate) prefetch: PrefetchCursor,
    /// The instant of the batch's latest event or timer, where events may set timers.
    pub(crate) now: Time,
    /// Timers set for later windows, so far. Those that another thread has counted may be taken off here: only the sum over all threads has a meaning.
    pub(crate) timers: Wrapping<u64>,
    pub(crate) tally: u64,
    /// Nodes that have reported something to what drives the run, in the order in which they did.
    pub(crate) reports: Vec<u32>,
    /// One of these pauses the run.
    pub(crate) pauses: bool,
}

impl<P: Copy + Default> LocalScheduler<P> {
    pub(crate) fn new(
        partition: u32,
        locations: Option<Arc<[NodeLocation]>>,
        wheel: Wheel<P>,
        threads: usize,
    ) -> Self {
        LocalScheduler {
            partition,
            locations,
            wheel,
            outboxes: (0..threads).map(|_| Outbox::default()).collect(),
            outbox_first: u64::MAX,
            batch_timers: BinaryHeap::new(),
            next_timer: Time::MAX,
            timer_sequence: 0,
            current: CurrentNode { local: 0, window_end: Time::ZERO },
            prefetch: PrefetchCursor::default(),
            now: Time::ZERO,
            timers: Wrapping(0),
            tally: 0,
            reports: Vec::new(),
            pauses: false,
        }
    }

    /// Nodes of all partitions, where there are several.
    pub(crate) fn nodes(&self) -> usize {
        self.locations.as_ref().map_or(0, |locations| locations.len())
    }

    /// Prefetches some of the next batch's events while this one's are handled.
    #[inline(never)]
    pub(crate) fn prefetch(&mut self) {
        self.wheel.prefetch(&mut self.prefetch);
    }

    /// Takes out the next timer of the running batch if it comes before what is due then.
    #[cold]
    #[inline(never)]
    fn take_timer(&mut self, before: Due) -> Option<(Due, P)> {
        self.batch_timers.peek().filter(|Reverse(timer)| timer.due < before)?;
        let Reverse(BatchTimer { due, payload, .. }) = self.batch_timers.pop()?;
        self.next_timer = self.batch_timers.peek().map_or(Time::MAX, |Reverse(timer)| timer.due.at);
        Some((due, payload))
    }
}

impl<P: Copy + Default> Scheduler<P> for LocalScheduler<P> {
    #[inline(always)]
    fn send_with(&mut self, to: NodeIndex, source: u32, at: Time, make: impl FnOnce() -> P) {
        debug_assert!(!is_timer(source), "{source} is no message's source");
        let event = |node| Event { at, source, node, payload: make() };
        if let Some(inboxes) = self.wheel.open_inboxes_to_all(at) {
            return self.wheel.insert_at(inboxes, to, || event(to));
        }
        let mut node = to;
        if let Some(locations) = &self.locations {
            let NodeLocation { partition, local } = locations[to as usize];
            if partition != self.partition {
                self.outbox_first = self.outbox_first.min(self.wheel.window_of_message(at));
                return self.outboxes[partition as usize].push(|| event(local));
            }
            node = local;
        }
        self.wheel.insert(at, node, || event(node));
    }

    fn timer_from(&mut self, source: u32, at: Time, payload: P) {
        debug_assert!(is_timer(source), "{source} is no timer's source");
        let CurrentNode { local, window_end } = self.current;
        if at < window_end {
            self.timer_sequence += 1;
            self.next_timer = self.next_timer.min(at);
            let due = Due { at, source };
            self.batch_timers.push(Reverse(BatchTimer { due, sequence: self.timer_sequence, payload }));
        } else {
            self.timers += 1;
            let window = self.wheel.window_of_own(at);
            self.wheel.insert_into(window, Event { at, source, node: local, payload });
        }
    }

    #[inline]
    fn next_timer(&self) -> Time {
        self.next_timer
    }

    #[inline]
    fn due_timer(&mut self, before: Due) -> Option<(Due, P)> {
        if self.next_timer <= before.at { self.take_timer(before) } else { None }
    }

    fn tally(&mut self, amount: u64) {
        self.tally += amount;
    }

    #[cold]
    fn report(&mut self, pauses: bool) {
        self.reports.push(self.current.local);
        self.pauses |= pauses;
    }
}
