//! The messages of near windows: for every node and window the events that wait, in chunks of a few that all nodes share.
//!
//! Nothing that has been written is moved as more comes in. When a node's turn begins its events are copied to one place, and their chunks are free for what the
//! turn sends: most messages are written to memory that has just been read, and is in the cache.

use std::ops::Range;

use netloom_units::{fetch, fetch_next};

use crate::turns::Turns;
use crate::wheel::Event;

/// Events per chunk: a kilobyte of packets.
pub(crate) const CHUNK: u32 = 16;

/// Chunks per node for which there is room from the beginning, so that nothing is moved as they become more: in a network where all hosts are busy there were two to three.
/// Pages that are never written to take no memory.
const ROOM: usize = 2;

/// The first chunk is nobody's: an inbox that ends there has a turn and no events.
const AWAKE: u32 = CHUNK;

pub(crate) struct Inboxes<P> {
    /// `ends[slot × nodes + node]` is where the inbox's last event ends among the places: 0 if it has no turn.
    ends: Vec<u32>,
    nodes: usize,
    /// Per slot.
    turns: Turns,
    /// Of each node, the place in the order of turns.
    turn_places: Vec<u32>,
    places: Vec<Event<P>>,
    /// Per chunk the one behind it: that of the last one of an inbox is the first one.
    next: Vec<u32>,
    /// The first chunk that nobody needs; 0 if there is none.
    free: u32,
}

/// Where the inboxes of one window are: among all inboxes, the first one's.
#[derive(Clone, Copy, Default)]
pub(crate) struct Row(usize);

/// What is still to be fetched of an inbox whose turn comes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ahead {
    /// The next chunk; 0 if there is none.
    chunk: u32,
    last: u32,
}

impl Ahead {
    /// Whether more is to be fetched than what one chunk holds.
    #[inline]
    pub(crate) fn is_long(self) -> bool {
        self.chunk != self.last
    }
}

impl<P: Copy + Default> Inboxes<P> {
    /// Empty ones, for this many windows at a time, of nodes of which each has a place in the order of turns.
    pub(crate) fn new(slots: usize, turn_places: Vec<u32>) -> Self {
        let nodes = turn_places.len();
        let mut places = Vec::with_capacity((1 + ROOM * nodes) * CHUNK as usize);
        places.resize(CHUNK as usize, Event::default());
        Inboxes {
            ends: vec![0; slots * nodes],
            nodes,
            turns: Turns::new(slots, nodes),
            turn_places,
            places,
            next: vec![0],
            free: 0,
        }
    }

    /// Whether no node has a turn.
    pub(crate) fn is_idle(&self, slot: usize) -> bool {
        self.turns.is_empty(slot)
    }

    /// Where the inboxes of a window are.
    pub(crate) fn row(&self, slot: usize) -> Row {
        Row(slot * self.nodes)
    }

    /// Adds an event to an inbox, and makes it in its place.
    #[inline(always)]
    pub(crate) fn put(&mut self, row: Row, node: u32, make: impl FnOnce() -> Event<P>) {
        let inbox = row.0 + node as usize;
        let end = &mut self.ends[inbox];
        let mut place = *end;
        *end += 1;
        if place.is_multiple_of(CHUNK) {
            place = self.lengthen(inbox, node, place);
        }
        let place = &mut self.places[place as usize];
        *place = make();
        // Many others come between this event and the next one of the inbox.
        fetch_next(place);
    }

    /// Gives a node a turn even if nothing comes.
    #[inline]
    pub(crate) fn wake(&mut self, slot: usize, node: u32) {
        let end = &mut self.ends[slot * self.nodes + node as usize];
        if *end == 0 {
            *end = AWAKE;
            self.turns.insert(slot, self.turn_places[node as usize]);
        }
    }

    /// Gives an inbox another chunk; returns its first place, which is taken.
    #[inline(never)]
    fn lengthen(&mut self, inbox: usize, node: u32, end: u32) -> u32 {
        let chunk = self.free;
        let chunk = if chunk == 0 { self.another() } else { chunk };
        self.free = self.next[chunk as usize];
        if end > AWAKE {
            let last = end / CHUNK - 1;
            self.next[chunk as usize] = std::mem::replace(&mut self.next[last as usize], chunk);
        } else {
            self.next[chunk as usize] = chunk;
            if end == 0 {
                self.ask_for_turn(inbox, node);
            }
        }
        self.ends[inbox] = chunk * CHUNK + 1;
        chunk * CHUNK
    }

    // Apart from the rest, which is done ten times as often.
    #[inline(never)]
    fn ask_for_turn(&mut self, inbox: usize, node: u32) {
        self.turns.insert(inbox / self.nodes, self.turn_places[node as usize]);
    }

    /// A new chunk.
    #[cold]
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "has just been looked at")]
    fn another(&mut self) -> u32 {
        let chunk = self.next.len();
        assert!(chunk < (u32::MAX / CHUNK) as usize, "over four thousand million messages are under way");
        self.places.resize((chunk + 1) * CHUNK as usize, Event::default());
        self.next.push(0);
        chunk as u32
    }

    /// All that have a turn in a place before `end` have taken it.
    pub(crate) fn finish_before(&mut self, slot: usize, end: u32) {
        self.turns.remove_before(slot, end);
    }

    /// Gives turns to all who have something in their inboxes.
    pub(crate) fn ask_again(&mut self, slot: usize) {
        for node in 0..self.nodes() {
            if self.has_turn(slot, node) {
                self.ask_for_turn(slot * self.nodes + node as usize, node);
            }
        }
    }

    /// How many nodes have inboxes.
    #[expect(clippy::cast_possible_truncation, reason = "nodes have indices of 32 bits: Team::place")]
    pub(crate) fn nodes(&self) -> u32 {
        self.nodes as u32
    }

    /// Whether a node has a turn.
    pub(crate) fn has_turn(&self, slot: usize, node: u32) -> bool {
        self.ends[slot * self.nodes + node as usize] != 0
    }

    /// Who has a turn.
    #[inline]
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Empties a node's inbox: `events` are then what was in it, in the order in which it came.
    #[inline(never)]
    pub(crate) fn take(&mut self, slot: usize, node: u32, events: &mut Vec<Event<P>>) {
        events.clear();
        let end = std::mem::take(&mut self.ends[slot * self.nodes + node as usize]);
        chunks(&self.next, end, |range| events.extend_from_slice(&self.places[range]));
        if end > AWAKE {
            let last = &mut self.next[(end as usize - 1) / CHUNK as usize];
            std::mem::swap(last, &mut self.free);
        }
    }

    /// Where the events of a node's inbox lie, from the first on.
    #[inline]
    pub(crate) fn look_ahead(&self, slot: usize, node: u32) -> Ahead {
        let end = self.ends[slot * self.nodes + node as usize];
        let last = if end > AWAKE { (end - 1) / CHUNK } else { 0 };
        Ahead { chunk: self.next[last as usize], last }
    }

    /// Has the processor fetch some of them.
    #[inline]
    pub(crate) fn fetch(&self, ahead: &mut Ahead) {
        let Ahead { chunk, last } = *ahead;
        if chunk == 0 {
            return;
        }
        let place = (chunk * CHUNK) as usize;
        self.places[place..place + CHUNK as usize].iter().for_each(fetch);
        ahead.chunk = if chunk == last { 0 } else { self.next[chunk as usize] };
    }

    /// All that is in them, in the room that they had.
    pub(crate) fn into_events(self) -> Vec<Event<P>> {
        let Inboxes { ends, mut places, next, .. } = self;
        let mut is_taken = vec![false; places.len()];
        ends.iter().for_each(|&end| chunks(&next, end, |range| is_taken[range].fill(true)));
        let mut is_taken = is_taken.into_iter();
        places.retain(|_| is_taken.next() == Some(true));
        places
    }
}

/// Calls `each` with the places that an inbox takes up, in the order in which they were filled.
#[inline(always)]
fn chunks(next: &[u32], end: u32, mut each: impl FnMut(Range<usize>)) {
    if end <= AWAKE {
        return;
    }
    let last = (end - 1) / CHUNK;
    let mut chunk = next[last as usize];
    while chunk != last {
        let place = (chunk * CHUNK) as usize;
        each(place..place + CHUNK as usize);
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
        /// What comes to one of many inboxes comes out of it, and in that order; what is left comes out in the end.
        #[test]
        fn as_lists_would(steps in prop::collection::vec((0..SLOTS, 0..NODES as u32, 0u32..60), 0..120)) {
            let mut inboxes = Inboxes::new(SLOTS, (0..NODES as u32).rev().collect());
            let mut lists: BTreeMap<(usize, u32), Vec<u32>> = BTreeMap::new();
            let (mut taken, mut sent) = (Vec::new(), 0);
            for (slot, node, count) in steps {
                if count == 0 {
                    inboxes.wake(slot, node);
                    lists.entry((slot, node)).or_default();
                } else if count < 40 {
                    for _ in 0..count {
                        inboxes.put(inboxes.row(slot), node, || event(sent));
                        lists.entry((slot, node)).or_default().push(sent);
                        sent += 1;
                    }
                } else {
                    let mut walk = inboxes.turns().walk(slot);
                    loop {
                        let place = inboxes.turns().next(slot, &mut walk);
                        if place == u32::MAX {
                            break;
                        }
                        let node = NODES as u32 - 1 - place;
                        prop_assert!(inboxes.has_turn(slot, node));
                        inboxes.take(slot, node, &mut taken);
                        prop_assert!(!inboxes.has_turn(slot, node));
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

    /// One node after the other has its busiest turn: they get by with the chunks of one.
    #[test]
    fn chunks_that_nobody_needs_serve_whoever_does() {
        const MOST: u32 = 10 * CHUNK;
        let mut inboxes = Inboxes::new(1, (0..5).collect());
        let mut events = Vec::new();
        for node in 0..5 {
            for count in [1, 3, MOST, 1] {
                (0..count).for_each(|payload| inboxes.put(inboxes.row(0), node, || event(payload)));
                inboxes.take(0, node, &mut events);
                assert_eq!(payloads(&events), (0..count).collect::<Vec<_>>());
                inboxes.finish_before(0, 5);
            }
        }
        assert_eq!(inboxes.next.len() as u32, 1 + MOST / CHUNK);
    }
}
