//! The pending event set of near windows: an *inbox* for every node and window, a linked list of chunks from a pool that all nodes share.
//!
//! No event is moved as more are added. When a node's batch begins its events are copied to one array, and their chunks are free for what the
//! batch sends: most messages are written to memory that has just been read, and is in the cache.

use std::ops::Range;

use netloom_units::{prefetch, prefetch_next};

use crate::rank_set::RankSets;
use crate::wheel::Event;

/// Events per chunk: a kilobyte of packets.
pub(crate) const CHUNK: u32 = 16;

/// Chunks per node that are reserved from the beginning, so that the pool is not moved as it grows: in a network where all hosts are busy there were two to three.
/// Pages that are never written to take no memory.
const RESERVED: usize = 2;

/// The end of an inbox without events whose node is scheduled nonetheless. The first chunk belongs to no inbox.
const NO_EVENTS: u32 = CHUNK;

pub(crate) struct PendingEvents<P> {
    /// `ends[slot × nodes + node]` is the index in the pool behind the inbox's last event; 0 if the node is not scheduled.
    ends: Vec<u32>,
    nodes: usize,
    /// The ranks of scheduled nodes, a set per slot.
    scheduled: RankSets,
    /// Of each node, the rank in the order of batches.
    ranks: Vec<u32>,
    pool: Vec<Event<P>>,
    /// Per chunk the next one of its inbox; the last one leads to the first one.
    next: Vec<u32>,
    /// The first chunk of the free list; 0 if that is empty.
    free: u32,
}

/// The inboxes of one window: by the index of the first of them among all inboxes.
#[derive(Clone, Copy, Default)]
pub(crate) struct SlotInboxes(usize);

impl SlotInboxes {
    /// How far behind others they lie; round the ring if they lie before those.
    pub(crate) fn after(self, others: SlotInboxes) -> usize {
        self.0.wrapping_sub(others.0)
    }

    /// Those that lie [so far behind](Self::after).
    #[inline(always)]
    pub(crate) fn ahead(self, distance: usize) -> Self {
        SlotInboxes(self.0.wrapping_add(distance))
    }
}

/// What is still to be prefetched of the inbox of the next batch.
#[derive(Clone, Copy, Default)]
pub(crate) struct PrefetchCursor {
    /// The next chunk; 0 if there is none.
    chunk: u32,
    last: u32,
}

impl PrefetchCursor {
    /// Whether it has more than one chunk.
    #[inline]
    pub(crate) fn is_long(self) -> bool {
        self.chunk != self.last
    }
}

impl<P: Copy + Default> PendingEvents<P> {
    /// Empty inboxes, for this many windows at a time, of nodes with these ranks in the order of batches.
    pub(crate) fn new(slots: usize, ranks: Vec<u32>) -> Self {
        let nodes = ranks.len();
        let mut pool = Vec::with_capacity((1 + RESERVED * nodes) * CHUNK as usize);
        pool.resize(CHUNK as usize, Event::default());
        PendingEvents {
            ends: vec![0; slots * nodes],
            nodes,
            scheduled: RankSets::new(slots, nodes),
            ranks,
            pool,
            next: vec![0],
            free: 0,
        }
    }

    /// Whether no node is scheduled.
    pub(crate) fn is_idle(&self, slot: usize) -> bool {
        self.scheduled.is_empty(slot)
    }

    /// The inboxes of a window.
    pub(crate) fn slot(&self, slot: usize) -> SlotInboxes {
        SlotInboxes(slot * self.nodes)
    }

    /// Adds an event, made in its place, to an inbox, and schedules its node.
    #[inline(always)]
    pub(crate) fn push(&mut self, slot: SlotInboxes, node: u32, make: impl FnOnce() -> Event<P>) {
        let inbox = slot.0 + node as usize;
        let end = &mut self.ends[inbox];
        let mut index = *end;
        *end += 1;
        if index.is_multiple_of(CHUNK) {
            index = self.add_chunk(inbox, node, index);
        }
        let place = &mut self.pool[index as usize];
        *place = make();
        // Many events of other inboxes are written between this one and the next one of the inbox.
        prefetch_next(place);
    }

    /// Schedules a node even if it gets no event.
    #[inline]
    pub(crate) fn wake(&mut self, slot: usize, node: u32) {
        let end = &mut self.ends[slot * self.nodes + node as usize];
        if *end == 0 {
            *end = NO_EVENTS;
            self.scheduled.insert(slot, self.ranks[node as usize]);
        }
    }

    /// Adds a chunk to an inbox; returns the chunk's first index, which is taken.
    #[inline(never)]
    fn add_chunk(&mut self, inbox: usize, node: u32, end: u32) -> u32 {
        let chunk = self.free;
        let chunk = if chunk == 0 { self.allocate_chunk() } else { chunk };
        self.free = self.next[chunk as usize];
        if end > NO_EVENTS {
            let last = end / CHUNK - 1;
            self.next[chunk as usize] = std::mem::replace(&mut self.next[last as usize], chunk);
        } else {
            self.next[chunk as usize] = chunk;
            if end == 0 {
                self.schedule(inbox, node);
            }
        }
        self.ends[inbox] = chunk * CHUNK + 1;
        chunk * CHUNK
    }

    // Apart from the rest, which is done ten times as often.
    #[inline(never)]
    fn schedule(&mut self, inbox: usize, node: u32) {
        self.scheduled.insert(inbox / self.nodes, self.ranks[node as usize]);
    }

    /// A new chunk at the end of the pool.
    #[cold]
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "checked by the assertion")]
    fn allocate_chunk(&mut self) -> u32 {
        let chunk = self.next.len();
        assert!(chunk < (u32::MAX / CHUNK) as usize, "over four thousand million messages are under way");
        self.pool.resize((chunk + 1) * CHUNK as usize, Event::default());
        self.next.push(0);
        chunk as u32
    }

    /// The batches of all scheduled nodes whose ranks are below `end` have been run.
    pub(crate) fn finish_before(&mut self, slot: usize, end: u32) {
        self.scheduled.remove_before(slot, end);
    }

    /// Schedules all nodes again whose inboxes are not empty.
    pub(crate) fn reschedule(&mut self, slot: usize) {
        for node in 0..self.nodes() {
            if self.is_scheduled(slot, node) {
                self.schedule(slot * self.nodes + node as usize, node);
            }
        }
    }

    /// How many nodes have inboxes.
    #[expect(clippy::cast_possible_truncation, reason = "nodes have indices of 32 bits: Team::place")]
    pub(crate) fn nodes(&self) -> u32 {
        self.nodes as u32
    }

    /// Whether a node is scheduled.
    pub(crate) fn is_scheduled(&self, slot: usize, node: u32) -> bool {
        self.ends[slot * self.nodes + node as usize] != 0
    }

    /// The ranks of scheduled nodes, a set per slot.
    #[inline]
    pub(crate) fn scheduled(&self) -> &RankSets {
        &self.scheduled
    }

    /// Shows the events of a node's inbox, in the order in which they were added.
    pub(crate) fn look(&self, slot: usize, node: u32, mut each: impl FnMut(&Event<P>)) {
        let end = self.ends[slot * self.nodes + node as usize];
        chunks(&self.next, end, |range| self.pool[range].iter().for_each(&mut each));
    }

    /// Moves the events of a node's inbox to `events`, in the order in which they were added.
    #[inline(never)]
    pub(crate) fn take(&mut self, slot: usize, node: u32, events: &mut Vec<Event<P>>) {
        events.clear();
        let end = std::mem::take(&mut self.ends[slot * self.nodes + node as usize]);
        chunks(&self.next, end, |range| events.extend_from_slice(&self.pool[range]));
        if end > NO_EVENTS {
            let last = &mut self.next[(end as usize - 1) / CHUNK as usize];
            std::mem::swap(last, &mut self.free);
        }
    }

    /// Begins to prefetch a node's inbox.
    #[inline]
    pub(crate) fn prefetch_cursor(&self, slot: usize, node: u32) -> PrefetchCursor {
        let end = self.ends[slot * self.nodes + node as usize];
        let last = if end > NO_EVENTS { (end - 1) / CHUNK } else { 0 };
        PrefetchCursor { chunk: self.next[last as usize], last }
    }

    /// Prefetches the next chunk.
    #[inline]
    pub(crate) fn prefetch(&self, cursor: &mut PrefetchCursor) {
        let PrefetchCursor { chunk, last } = *cursor;
        if chunk == 0 {
            return;
        }
        let first = (chunk * CHUNK) as usize;
        self.pool[first..first + CHUNK as usize].iter().for_each(prefetch);
        cursor.chunk = if chunk == last { 0 } else { self.next[chunk as usize] };
    }

    /// The events of all inboxes, in the pool's memory.
    pub(crate) fn into_events(self) -> Vec<Event<P>> {
        let PendingEvents { ends, mut pool, next, .. } = self;
        let mut is_taken = vec![false; pool.len()];
        ends.iter().for_each(|&end| chunks(&next, end, |range| is_taken[range].fill(true)));
        let mut is_taken = is_taken.into_iter();
        pool.retain(|_| is_taken.next() == Some(true));
        pool
    }
}

/// Calls `each` with the ranges of the pool that an inbox takes up, in the order in which they were filled.
#[inline(always)]
fn chunks(next: &[u32], end: u32, mut each: impl FnMut(Range<usize>)) {
    if end <= NO_EVENTS {
        return;
    }
    let last = (end - 1) / CHUNK;
    let mut chunk = next[last as usize];
    while chunk != last {
        let first = (chunk * CHUNK) as usize;
        each(first..first + CHUNK as usize);
        chunk = next[chunk as usize];
    }
    each((last * CHUNK) as usize..end as usize);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netloom_units::Time;
    use proptest::prelude::*;

    use super::*;

    const SLOTS: usize = 4;
    const NODES: usize = 3;

    fn event(payload: u32) -> Event<u32> {
        Event { payload, at: Time(1), source: 7, node: 0 }
    }

    fn payloads(events: &[Event<u32>]) -> Vec<u32> {
        events.iter().map(|event| event.payload).collect()
    }

    proptest! {
        /// The events of each of many inboxes come out of it in the order in which they were added; what is left comes out in the end.
        #[test]
        fn as_lists_would(steps in prop::collection::vec((0..SLOTS, 0..NODES as u32, 0u32..60), 0..120)) {
            let mut inboxes = PendingEvents::new(SLOTS, (0..NODES as u32).rev().collect());
            let mut lists: BTreeMap<(usize, u32), Vec<u32>> = BTreeMap::new();
            let (mut taken, mut sent) = (Vec::new(), 0);
            for (slot, node, count) in steps {
                if count == 0 {
                    inboxes.wake(slot, node);
                    lists.entry((slot, node)).or_default();
                } else if count < 40 {
                    for _ in 0..count {
                        inboxes.push(inboxes.slot(slot), node, || event(sent));
                        lists.entry((slot, node)).or_default().push(sent);
                        sent += 1;
                    }
                } else {
                    let mut cursor = inboxes.scheduled().cursor(slot);
                    loop {
                        let rank = inboxes.scheduled().next(slot, &mut cursor);
                        if rank == u32::MAX {
                            break;
                        }
                        let node = NODES as u32 - 1 - rank;
                        prop_assert!(inboxes.is_scheduled(slot, node));
                        inboxes.take(slot, node, &mut taken);
                        prop_assert!(!inboxes.is_scheduled(slot, node));
                        prop_assert_eq!(Some(payloads(&taken)), lists.remove(&(slot, node)));
                    }
                    prop_assert!(!lists.keys().any(|&(of, _)| of == slot));
                    inboxes.finish_before(slot, NODES as u32);
                    prop_assert!(inboxes.is_idle(slot));
                }
            }
            let mut left = payloads(&inboxes.into_events());
            left.sort_unstable();
            let mut wanted: Vec<u32> = lists.into_values().flatten().collect();
            wanted.sort_unstable();
            prop_assert_eq!(left, wanted);
        }
    }

    /// The largest batches of one node after the other get by with the chunks of one.
    #[test]
    fn free_chunks_are_used_again() {
        const MOST: u32 = 10 * CHUNK;
        let mut inboxes = PendingEvents::new(1, (0..5).collect());
        let mut events = Vec::new();
        for node in 0..5 {
            for count in [1, 3, MOST, 1] {
                (0..count).for_each(|payload| inboxes.push(inboxes.slot(0), node, || event(payload)));
                inboxes.take(0, node, &mut events);
                assert_eq!(payloads(&events), (0..count).collect::<Vec<_>>());
                inboxes.finish_before(0, 5);
            }
        }
        assert_eq!(inboxes.next.len() as u32, 1 + MOST / CHUNK);
    }
}
