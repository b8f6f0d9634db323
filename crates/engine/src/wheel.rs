//! The windows of one partition: who has a turn when, and with which messages.
//!
//! Near windows are slots of a ring; each slot lists the nodes that have a turn in it and each node's inbox is a
//! buffer borrowed from a pool. A buffer goes back to the pool when its turn is over: without that, every slot would
//! hold the memory of its busiest moment for ever. A node gets a buffer about as large as its last ones had to be: without that, every
//! buffer would some day serve the busiest node, and be as large for ever. Windows beyond the ring wait in an ordered map.

use std::collections::BTreeMap;

use netloom_units::Time;

use crate::windows::Windows;

/// A message or timer on its way to a node of this partition.
// The payload is written first: what it is copied from could otherwise, for all the compiler knows, be what is being written.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<P> {
    pub(crate) payload: P,
    pub(crate) at: Time,
    pub(crate) source: u32,
    /// Destination: the engine-wide node index in mail between partitions, the partition's own index in the wheel.
    pub(crate) node: u32,
}

/// Index of a pooled buffer; 0 for none.
type BufferRef = u32;

struct Far<P> {
    events: Vec<Event<P>>,
    wakes: Vec<u32>,
}

pub(crate) struct Wheel<P> {
    /// Per slot: nodes with a turn in its window, in the order in which they asked.
    turns: Vec<Vec<u32>>,
    /// `inboxes[slot × nodes + node]`
    inboxes: Vec<BufferRef>,
    nodes: usize,
    /// Number of slots minus one; the number is a power of two.
    mask: u64,
    windows: Windows,
    /// The window being run, or next to run.
    current: u64,
    /// The first window to which messages may still be sent: those before belong to the epoch being run.
    open: u64,
    /// When it begins.
    opens: Time,
    /// The first window of the running nodes' own side for what they are still to do.
    own: u64,
    /// When it begins.
    own_opens: Time,
    /// How many of a side's windows from these on are certainly near, whichever window of its epoch is being run.
    near: u64,
    /// What that is once time has started.
    later_near: u64,
    pool: Vec<Vec<Event<P>>>,
    /// `free[s]` are empty buffers for 2^s events each.
    free: [Vec<BufferRef>; SIZES],
    /// Per node, the size of its next buffer as an index of `free`.
    wanted: Vec<u8>,
    far: BTreeMap<u64, Far<P>>,
    /// First key of `far`, cached.
    far_first: u64,
}

/// No buffer holds 2^32 events.
const SIZES: usize = 32;

/// By how many sizes too large a buffer may be for its node.
const LARGER: usize = 2;

/// From this size on a node begins with half of what its last buffers had to hold, as its later windows have only begun to fill: what does not come in
/// then is moved once.
const LARGE: u8 = 7;

impl<P: Copy> Wheel<P> {
    /// A wheel for `nodes` nodes, of whose windows `slots` (a power of two) are near; `epoch` (fewer) are run between two meetings.
    pub(crate) fn new(nodes: usize, windows: Windows, slots: usize, epoch: u64) -> Self {
        debug_assert!(slots.is_power_of_two() && slots <= 256 && epoch < slots as u64);
        let later_near = (slots as u64 - epoch).div_ceil(windows.step());
        Wheel {
            turns: vec![Vec::new(); slots],
            inboxes: vec![0; slots * nodes],
            nodes,
            mask: slots as u64 - 1,
            windows,
            current: 0,
            open: 0,
            opens: Time::ZERO,
            own: 0,
            own_opens: Time::ZERO,
            near: 0,
            later_near: if windows.are_counted_ahead() { later_near } else { 0 },
            // Nobody gets the first one.
            pool: vec![Vec::new()],
            free: [const { Vec::new() }; SIZES],
            wanted: vec![0; nodes],
            far: BTreeMap::new(),
            far_first: u64::MAX,
        }
    }

    /// The window of a message that a running node sends.
    pub(crate) fn window_of_message(&self, at: Time) -> u64 {
        self.window_from(self.open, self.opens, at)
    }

    /// The window, after the one being run, in which something happens inside a running node.
    pub(crate) fn window_of_own(&self, at: Time) -> u64 {
        self.window_from(self.own, self.own_opens, at)
    }

    #[inline]
    fn window_from(&self, window: u64, opens: Time, at: Time) -> u64 {
        let ahead = self.windows.ahead(opens, at);
        if ahead < self.near { self.windows.after(window, ahead) } else { self.windows.of(at, window) }
    }

    /// Adds a message that arrives at a node at `at` to its window. It is made in its place: nearly every packet passes here, and is not
    /// to be copied twice.
    ///
    /// # Panics
    /// If that window belongs to the running epoch: the message was sent with less than the lookahead.
    #[inline(always)]
    pub(crate) fn insert(&mut self, at: Time, node: u32, make: impl FnOnce() -> Event<P>) {
        // One comparison for both: what is too early seems far away.
        let ahead = self.windows.ahead(self.opens, at);
        if ahead < self.near {
            self.place(self.windows.after(self.open, ahead), node, make);
        } else {
            self.check_open(at);
            self.far_window(self.windows.of(at, self.open)).events.push(make());
        }
    }

    #[cold]
    #[inline(never)]
    fn check_open(&self, at: Time) {
        assert!(
            at >= self.opens,
            "the model sent a message that arrives at {at}, less than one lookahead after its cause (the running epoch ends at {})",
            self.opens,
        );
    }

    /// Adds a node's own timer to a window after the one being run.
    pub(crate) fn insert_timer(&mut self, window: u64, event: Event<P>) {
        debug_assert!(window >= self.current, "an event in the past");
        if window - self.current <= self.mask {
            self.place(window, event.node, || event);
        } else {
            self.far_window(window).events.push(event);
        }
    }

    /// Gives a node a turn in a window even if it gets no message there.
    #[inline]
    pub(crate) fn wake(&mut self, node: u32, window: u64) {
        if window - self.current <= self.mask {
            self.buffer_for(window, node);
        } else {
            self.far_window(window).wakes.push(node);
        }
    }

    /// Puts an event into the ring.
    #[inline(always)]
    fn place(&mut self, window: u64, node: u32, make: impl FnOnce() -> Event<P>) {
        let buffer = self.buffer_for(window, node);
        let events = &mut self.pool[buffer as usize];
        if events.len() == events.capacity() {
            self.push_growing(buffer, make());
        } else {
            events.push(make());
        }
    }

    #[inline(always)]
    fn buffer_for(&mut self, window: u64, node: u32) -> BufferRef {
        let slot = (window & self.mask) as usize;
        let place = slot * self.nodes + node as usize;
        let known = self.inboxes[place];
        if known != 0 { known } else { self.open_inbox(slot, place, node) }
    }

    /// A node's first message in a window: it gets a turn and a buffer.
    #[inline(never)]
    fn open_inbox(&mut self, slot: usize, place: usize, node: u32) -> BufferRef {
        let wanted = self.wanted[node as usize];
        let buffer = self.free_buffer(wanted - u8::from(wanted >= LARGE));
        self.inboxes[place] = buffer;
        self.turns[slot].push(node);
        buffer
    }

    /// An empty buffer for 2^`size` events.
    #[inline]
    fn free_buffer(&mut self, size: u8) -> BufferRef {
        self.free[usize::from(size) % SIZES].pop().unwrap_or_else(|| self.larger_or_new(size))
    }

    /// A larger one that nobody needs now, or else a new one.
    #[cold]
    #[inline(never)]
    fn larger_or_new(&mut self, size: u8) -> BufferRef {
        let larger = self.free.iter_mut().skip(usize::from(size) + 1).take(LARGER).find_map(Vec::pop);
        larger.unwrap_or_else(|| {
            self.pool.push(Vec::with_capacity(1 << size));
            self.pool.len() as BufferRef - 1
        })
    }

    /// Adds a message to a buffer that is full: it changes places with a free one of twice its size, or grows to that.
    #[cold]
    #[inline(never)]
    fn push_growing(&mut self, buffer: BufferRef, event: Event<P>) {
        let size = self.pool[buffer as usize].capacity().ilog2() as usize;
        match self.free[(size + 1) % SIZES].pop() {
            Some(free) => {
                self.pool.swap(buffer as usize, free as usize);
                let [small, large] =
                    self.pool.get_disjoint_mut([free as usize, buffer as usize]).expect("two buffers");
                large.append(small);
                self.free[size].push(free);
            }
            None => {
                let events = &mut self.pool[buffer as usize];
                events.reserve_exact(events.capacity());
            }
        }
        self.pool[buffer as usize].push(event);
        self.wanted[event.node as usize] = size as u8 + 1;
    }

    fn far_window(&mut self, window: u64) -> &mut Far<P> {
        self.far_first = self.far_first.min(window);
        self.far.entry(window).or_insert_with(|| Far { events: Vec::new(), wakes: Vec::new() })
    }

    /// The first window from the current one on in which somebody has a turn.
    pub(crate) fn next_busy(&self) -> Option<u64> {
        let near = (self.current..=self.current + self.mask)
            .find(|&window| !self.turns[(window & self.mask) as usize].is_empty());
        Some(near.unwrap_or(u64::MAX).min(self.far_first)).filter(|&window| window != u64::MAX)
    }

    /// Before time starts, nodes of the side that the window `own` is of begin to send.
    pub(crate) fn begin(&mut self, own: u64) {
        self.own = own;
        self.open = (own + 1) % self.windows.step();
    }

    /// Begins an epoch: makes its first window the current one, and closes the epoch to messages.
    pub(crate) fn begin_epoch(&mut self, windows: std::ops::Range<u64>) {
        self.advance_to(windows.start);
        self.open = windows.end;
        self.opens = self.windows.start(windows.end);
        self.near = self.later_near;
    }

    /// Begins the current window; returns its end.
    pub(crate) fn begin_window(&mut self) -> Time {
        self.own = self.windows.after(self.current, 1);
        self.own_opens = self.windows.end(self.current);
        self.own_opens
    }

    /// Makes `window` the current one; all earlier windows must have been run or be empty.
    fn advance_to(&mut self, window: u64) {
        debug_assert!(window >= self.current && self.next_busy().is_none_or(|busy| busy >= window));
        self.current = window;
        // A far window must enter the ring before anything newer can, so that one source's events keep their order.
        while self.far_first <= window + self.mask {
            let (first, far) = self.far.pop_first().expect("far_first is a key of far");
            self.far_first = self.far.keys().next().copied().unwrap_or(u64::MAX);
            for event in far.events {
                self.place(first, event.node, || event);
            }
            for node in far.wakes {
                self.wake(node, first);
            }
        }
    }

    /// Takes the list of nodes that have a turn in the current window. Give it back with [`Self::finish`].
    pub(crate) fn take_turns(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.turns[(self.current & self.mask) as usize])
    }

    /// Takes a node's messages of the current window. Give the buffer back with [`Self::recycle`].
    #[inline]
    pub(crate) fn take_inbox(&mut self, node: u32) -> (BufferRef, Vec<Event<P>>) {
        let slot = (self.current & self.mask) as usize;
        let buffer = std::mem::take(&mut self.inboxes[slot * self.nodes + node as usize]);
        (buffer, std::mem::take(&mut self.pool[buffer as usize]))
    }

    #[inline]
    pub(crate) fn recycle(&mut self, node: u32, buffer: BufferRef, mut events: Vec<Event<P>>) {
        let size = events.capacity().ilog2();
        // Half of it would have done.
        if events.len() < events.capacity() / 4 {
            let wanted = &mut self.wanted[node as usize];
            *wanted = (*wanted).min(size as u8 - 1);
        }
        events.clear();
        self.pool[buffer as usize] = events;
        self.free[size as usize % SIZES].push(buffer);
    }

    /// Whether nothing waits for any node.
    pub(crate) fn is_empty(&self) -> bool {
        self.next_busy().is_none()
    }

    /// Empties the wheel.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Event<P>> {
        // What follows may be kept: room for it comes from what nobody needs.
        self.pool.retain(|events| !events.is_empty());
        let near = std::mem::take(&mut self.pool).into_iter().flatten();
        near.chain(std::mem::take(&mut self.far).into_values().flat_map(|far| far.events))
    }

    /// Ends the current window.
    pub(crate) fn finish(&mut self, mut turns: Vec<u32>) {
        turns.clear();
        let slot = (self.current & self.mask) as usize;
        debug_assert!(self.turns[slot].is_empty(), "a node got a turn in the window being run");
        self.turns[slot] = turns;
        self.advance_to(self.current + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 8;

    /// So many messages for a node in the current window, and its turn; returns what came.
    fn turn(wheel: &mut Wheel<u32>, node: u32, messages: usize) -> Vec<u32> {
        let window = wheel.current;
        for payload in 0..messages as u32 {
            wheel.insert_timer(window, Event { payload, at: Time(1), source: 0, node });
        }
        let turns = wheel.take_turns();
        assert_eq!(turns, [node]);
        let (buffer, events) = wheel.take_inbox(node);
        let came = events.iter().map(|event| event.payload).collect();
        wheel.recycle(node, buffer, events);
        wheel.finish(turns);
        came
    }

    /// One node after the other has its busiest turn: they get by with the buffers of two.
    #[test]
    fn a_buffer_that_nobody_needs_serves_whoever_does() {
        let mut wheel = Wheel::new(5, Windows::new(1000), 8, 1);
        let mut made = Vec::new();
        for node in 0..5 {
            for messages in [1, 3, MOST, 1, 1, 1, 1] {
                let expected: Vec<u32> = (0..messages as u32).collect();
                assert_eq!(turn(&mut wheel, node, messages), expected);
            }
            made.push(wheel.pool.iter().map(Vec::capacity).sum::<usize>());
        }
        assert!(made.iter().all(|&room| room <= 2 * MOST), "{made:?}");
    }
}
