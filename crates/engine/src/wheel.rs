//! The timing wheel of one partition: the pending events of its nodes by windows, and which nodes are scheduled in which window.
//!
//! Near windows are slots of a ring, in each of which a node may have an [inbox](PendingEvents). Events of windows beyond the ring wait in an ordered map, the overflow.

use std::collections::BTreeMap;

use netloom_units::Time;

use crate::pending::{PendingEvents, PrefetchCursor, SlotInboxes};
use crate::rank_set::RankCursor;
use crate::windows::Windows;

/// A message or timer on its way to a node of this partition.
// The payload is written first: otherwise the compiler must assume that its source overlaps with what is being written.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event<P> {
    pub(crate) payload: P,
    pub(crate) at: Time,
    pub(crate) source: u32,
    /// The destination's index within its partition. Once the event has reached it, the bits of its [`Hint`](crate::Hint).
    pub(crate) node: u32,
}

struct Overflow<P> {
    events: Vec<Event<P>>,
    /// Nodes that are scheduled without an event.
    wakes: Vec<u32>,
}

/// Where messages go while the batches of one window are run.
#[derive(Clone, Copy, Default)]
struct WindowCursor {
    /// The slot of that window.
    slot: usize,
    /// The first window that is open to messages: those before belong to the epoch being run.
    open: u64,
    /// Its first instant.
    opens: Time,
    /// Its length, in picoseconds, if messages may be put into it at once; else 0.
    open_length: u64,
    /// That length if this is the only partition; else 0.
    open_length_to_all: u64,
    /// Its inboxes.
    open_inboxes: SlotInboxes,
    /// The length of that window and the next one of its side if messages may be put into both at once and this is the only partition; else no more than [`Self::open_length_to_all`].
    both_length_to_all: u64,
    /// From the inboxes of the open window to those of that one.
    next_after_open: usize,
    /// The next window of the running nodes' own side, the first one for their timers.
    own: u64,
    /// Its first instant.
    own_opens: Time,
    /// How many of a side's windows from the open one on are certainly in the ring, whichever window of its epoch is being run.
    near: u64,
}

impl WindowCursor {
    /// Begins a window; returns its end.
    fn begin(&mut self, window: u64, slot: usize, windows: Windows) -> Time {
        self.slot = slot;
        self.own = windows.after(window, 1);
        self.own_opens = windows.end(window);
        self.own_opens
    }
}

pub(crate) struct Wheel<P> {
    inboxes: PendingEvents<P>,
    /// Number of slots minus one; the number is a power of two.
    mask: u64,
    windows: Windows,
    /// Whether this is the only partition.
    is_only: bool,
    /// The window being run, or next to run.
    current: u64,
    cursor: WindowCursor,
    /// While two windows are fused, that of the other window.
    other_cursor: WindowCursor,
    /// How many windows are in the ring once time has started.
    near: u64,
    overflow: BTreeMap<u64, Overflow<P>>,
    /// First key of `overflow`, cached.
    overflow_first: u64,
    /// What a pause has cut off of windows of a bipartition, as both sides go on with other windows; absent if nothing is left in those, inside nodes either.
    put_aside: Option<Vec<Event<P>>>,
}

impl<P: Copy + Default> Wheel<P> {
    /// A wheel with `slots` near windows (a power of two), of which `epoch` (fewer) are run between two sync rounds, for nodes with these ranks in the order of batches. `is_only`: there is no other partition.
    pub(crate) fn new(ranks: Vec<u32>, is_only: bool, windows: Windows, slots: usize, epoch: u64) -> Self {
        debug_assert!(slots.is_power_of_two() && slots <= 256 && epoch < slots as u64);
        let near = (slots as u64 - epoch).div_ceil(windows.step());
        Wheel {
            inboxes: PendingEvents::new(slots, ranks),
            mask: slots as u64 - 1,
            windows,
            is_only,
            current: 0,
            cursor: WindowCursor::default(),
            other_cursor: WindowCursor::default(),
            near: if windows.have_reciprocal() { near } else { 0 },
            overflow: BTreeMap::new(),
            overflow_first: u64::MAX,
            put_aside: None,
        }
    }

    /// The window of a message that a running node sends.
    #[inline(always)]
    pub(crate) fn window_of_message(&self, at: Time) -> u64 {
        let WindowCursor { open, opens, .. } = self.cursor;
        if self.is_open(at) { open } else { self.window_from(open, opens, at) }
    }

    /// The window, after the one being run, of an instant at which something happens inside the running node.
    pub(crate) fn window_of_own(&self, at: Time) -> u64 {
        self.window_from(self.cursor.own, self.cursor.own_opens, at)
    }

    #[inline]
    fn window_from(&self, window: u64, opens: Time, at: Time) -> u64 {
        let count = self.windows.count_between(opens, at);
        if count < self.cursor.near { self.windows.after(window, count) } else { self.windows.of(at, window) }
    }

    /// Adds a message that arrives at a node at `at` to its window.
    ///
    /// # Panics
    /// If that window belongs to the running epoch: the message was sent with less than the lookahead.
    #[inline(always)]
    pub(crate) fn insert(&mut self, at: Time, node: u32, make: impl FnOnce() -> Event<P>) {
        match self.inboxes_at(at) {
            Some(inboxes) => self.insert_at(inboxes, node, make),
            None => self.insert_far(make()),
        }
    }

    /// The inboxes of the window of a message that arrives at `at`, for a node of this partition; none if it is not in the ring.
    #[inline(always)]
    pub(crate) fn inboxes_at(&self, at: Time) -> Option<SlotInboxes> {
        if self.is_open(at) { Some(self.cursor.open_inboxes) } else { self.later_inboxes(at) }
    }

    /// The same, whatever its node, if there is one partition only and the window is [open](Self::is_open) or the next one of its side.
    #[inline(always)]
    pub(crate) fn open_inboxes_to_all(&self, at: Time) -> Option<SlotInboxes> {
        let cursor = &self.cursor;
        let distance = at.0.wrapping_sub(cursor.opens.0);
        if distance < cursor.open_length_to_all {
            return Some(cursor.open_inboxes);
        }
        // Where windows are as long as one lookahead, a fifth of all messages go there.
        (distance < cursor.both_length_to_all).then(|| cursor.open_inboxes.ahead(cursor.next_after_open))
    }

    /// [`Self::inboxes_at`] for any window. A call with nothing but an instant, as the message is to be made in its place: nearly every message passes here or does not, and is not to be copied twice.
    // Rare where there is one partition, and said to be: what sends keeps more in registers.
    #[cold]
    #[inline(never)]
    pub(crate) fn later_inboxes(&self, at: Time) -> Option<SlotInboxes> {
        // What is too early has a large distance here, too.
        let count = self.windows.count_between(self.cursor.opens, at);
        let is_near = count < self.cursor.near;
        is_near.then(|| self.inboxes.slot(self.slot(self.windows.after(self.cursor.open, count))))
    }

    /// Adds a message to an inbox of a window. It is made in its place.
    #[inline(always)]
    pub(crate) fn insert_at(&mut self, inboxes: SlotInboxes, node: u32, make: impl FnOnce() -> Event<P>) {
        self.inboxes.push(inboxes, node, make);
    }

    /// Whether a message that arrives at `at` may be put into the open window at once, for a node of this partition: nearly all arrive in the first window that is
    /// open to them.
    #[inline(always)]
    fn is_open(&self, at: Time) -> bool {
        // One comparison for both ends: what is too early has a large distance.
        at.0.wrapping_sub(self.cursor.opens.0) < self.cursor.open_length
    }

    /// [`Self::insert`] beyond the ring.
    #[cold]
    #[inline(never)]
    pub(crate) fn insert_far(&mut self, event: Event<P>) {
        self.check_open(event.at);
        self.overflow_window(self.windows.of(event.at, self.cursor.open)).events.push(event);
    }

    #[cold]
    #[inline(never)]
    fn check_open(&self, at: Time) {
        assert!(
            at >= self.cursor.opens,
            "the model sent a message that arrives at {at}, less than one lookahead after its cause (the running epoch ends at {})",
            self.cursor.opens,
        );
    }

    /// Adds an event to a window after the one being run: a node's own timer, or an event from before nodes were partitioned anew.
    pub(crate) fn insert_into(&mut self, window: u64, event: Event<P>) {
        debug_assert!(window >= self.current, "an event in the past");
        if window - self.current <= self.mask {
            self.insert_near(window, event.node, || event);
        } else {
            self.overflow_window(window).events.push(event);
        }
    }

    /// The window being run, or next to run.
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// Continues a run of which other wheels have held the windows before this one.
    pub(crate) fn begin_at(&mut self, window: u64) {
        debug_assert!(self.is_empty(), "events would be in the wrong slots");
        self.current = window;
    }

    /// The windows of the wheel in which a node is scheduled.
    pub(crate) fn busy(&self) -> impl Iterator<Item = u64> {
        (self.current..=self.current + self.mask).filter(|&window| !self.inboxes.is_idle(self.slot(window)))
    }

    /// Shows the pending events of a node in a window of the wheel, in the order in which they were added.
    pub(crate) fn look_at(&self, window: u64, node: u32, mut each: impl FnMut(&Event<P>)) {
        self.inboxes.look(self.slot(window), node, |event| each(&Event { node, ..*event }));
    }

    /// The pending events beyond these windows, those of a window in the order in which they were added.
    pub(crate) fn far_ahead(&self) -> impl Iterator<Item = &Event<P>> {
        self.overflow.values().flat_map(|overflow| &overflow.events)
    }

    /// The same for the windows of an instant, of both sides if there are two.
    pub(crate) fn begin_at_instant(&mut self, now: Time) {
        let of_last = self.windows.of(now, self.windows.step() - 1);
        self.begin_at(self.windows.of(now, 0).min(of_last));
    }

    /// Takes out all that is pending: the window, the node and some of its events, in order, or none if it is scheduled without one.
    pub(crate) fn drain(mut self, mut take: impl FnMut(u64, u32, &[Event<P>])) {
        let mut events = Vec::new();
        for window in self.current..=self.current + self.mask {
            let slot = self.slot(window);
            for node in 0..self.inboxes.nodes() {
                if self.inboxes.is_scheduled(slot, node) {
                    self.inboxes.take(slot, node, &mut events);
                    take(window, node, &events);
                }
            }
        }
        for (window, overflow) in self.overflow {
            overflow.wakes.iter().for_each(|&node| take(window, node, &[]));
            overflow.events.iter().for_each(|event| take(window, event.node, std::slice::from_ref(event)));
        }
    }

    /// Schedules a node in a window even if it gets no event there.
    #[inline]
    pub(crate) fn wake(&mut self, node: u32, window: u64) {
        if window - self.current <= self.mask {
            self.inboxes.wake(self.slot(window), node);
        } else {
            self.overflow_window(window).wakes.push(node);
        }
    }

    /// Adds an event to the ring.
    #[inline(always)]
    fn insert_near(&mut self, window: u64, node: u32, make: impl FnOnce() -> Event<P>) {
        let inboxes = self.inboxes.slot(self.slot(window));
        self.inboxes.push(inboxes, node, make);
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the mask is that of a few slots")]
    fn slot(&self, window: u64) -> usize {
        (window & self.mask) as usize
    }

    fn overflow_window(&mut self, window: u64) -> &mut Overflow<P> {
        self.overflow_first = self.overflow_first.min(window);
        self.overflow.entry(window).or_insert_with(|| Overflow { events: Vec::new(), wakes: Vec::new() })
    }

    /// The first window from the current one on in which a node is scheduled.
    pub(crate) fn next_busy(&self) -> Option<u64> {
        let near = self.busy().next();
        Some(near.unwrap_or(u64::MAX).min(self.overflow_first)).filter(|&window| window != u64::MAX)
    }

    /// Before time starts, nodes of the side of the window `own` begin to send.
    pub(crate) fn begin(&mut self, own: u64) {
        self.cursor.own = own;
        self.cursor.open = (own + 1) % self.windows.step();
    }

    /// Begins an epoch: makes its first window the current one, and closes the epoch to messages.
    pub(crate) fn begin_epoch(&mut self, windows: std::ops::Range<u64>) {
        self.advance_to(windows.start);
        self.cursor = self.cursor_at(windows.end, self.near);
    }

    /// Where messages go as long as `open` is the first window that is open to them.
    fn cursor_at(&self, open: u64, near: u64) -> WindowCursor {
        let opens = self.windows.start(open);
        let next = self.windows.after(open, 1);
        let length_to = |last: u64| self.windows.end(last).0 - opens.0;
        let open_length = if near > 0 { length_to(open) } else { 0 };
        let both_length = if near > 1 { length_to(next) } else { open_length };
        let open_inboxes = self.inboxes.slot(self.slot(open));
        WindowCursor {
            open,
            opens,
            open_length,
            open_length_to_all: if self.is_only { open_length } else { 0 },
            open_inboxes,
            both_length_to_all: if self.is_only { both_length } else { 0 },
            next_after_open: self.inboxes.slot(self.slot(next)).after(open_inboxes),
            near,
            ..WindowCursor::default()
        }
    }

    /// Begins the current window; returns its end.
    pub(crate) fn begin_window(&mut self) -> Time {
        let slot = self.slot(self.current);
        self.cursor.begin(self.current, slot, self.windows)
    }

    /// Begins the window behind the current one, too, which is of the other side; returns its end. Batches are those of the current one until the next [swap](Self::swap_windows).
    pub(crate) fn begin_next_window(&mut self) -> Time {
        let next = self.current + 1;
        // The ring begins with the window before it, so that one fewer is near.
        self.other_cursor = self.cursor_at(next + 1, self.near.saturating_sub(1));
        self.other_cursor.begin(next, self.slot(next), self.windows)
    }

    /// Goes from one of the two fused windows to the other one.
    #[inline]
    pub(crate) fn swap_windows(&mut self) {
        std::mem::swap(&mut self.cursor, &mut self.other_cursor);
    }

    /// Begins to go through the ranks of the nodes that are scheduled in the current window.
    pub(crate) fn scheduled(&self) -> RankCursor {
        self.inboxes.scheduled().cursor(self.slot(self.current))
    }

    /// The next of them; `u32::MAX` if there is none.
    #[inline]
    pub(crate) fn next_batch(&self, ranks: &mut RankCursor) -> u32 {
        self.inboxes.scheduled().next(self.slot(self.current), ranks)
    }

    /// The first rank, from `from` on, of a node that is scheduled in the next window; `u32::MAX` if there is none.
    #[inline]
    pub(crate) fn first_batch_of_next(&self, from: u32) -> u32 {
        self.inboxes.scheduled().first(self.slot(self.current + 1), from)
    }

    /// Makes `window` the current one; all earlier windows must have been run or be empty.
    fn advance_to(&mut self, window: u64) {
        debug_assert!(window >= self.current && self.next_busy().is_none_or(|busy| busy >= window));
        self.current = window;
        // A window must leave the overflow before anything newer can enter its slot, so that one source's events keep their order.
        while self.overflow_first <= window + self.mask {
            let (first, overflow) = self.overflow.pop_first().expect("overflow_first is a key of overflow");
            self.overflow_first = self.overflow.keys().next().copied().unwrap_or(u64::MAX);
            for event in overflow.events {
                self.insert_near(first, event.node, || event);
            }
            for node in overflow.wakes {
                self.wake(node, first);
            }
        }
    }

    /// Takes a node's events of the window whose batches are being run.
    #[inline]
    pub(crate) fn take_inbox(&mut self, node: u32, events: &mut Vec<Event<P>>) {
        self.inboxes.take(self.cursor.slot, node, events);
    }

    /// Shows a node's events of the current window, in the order in which they were added.
    pub(crate) fn inbox(&self, node: u32, each: impl FnMut(&Event<P>)) {
        self.inboxes.look(self.slot(self.current), node, each);
    }

    /// Puts an event back that has been [taken out](Self::take_inbox): it is not due before the pause that cuts the current window.
    pub(crate) fn put_back(&mut self, event: Event<P>) {
        self.insert_near(self.current, event.node, || event);
    }

    /// Begins to prefetch a node's events of the current window, or the next one.
    #[inline]
    pub(crate) fn prefetch_cursor(&self, is_in_next: bool, node: u32) -> PrefetchCursor {
        self.inboxes.prefetch_cursor(self.slot(self.current + u64::from(is_in_next)), node)
    }

    /// Prefetches some of them.
    #[inline]
    pub(crate) fn prefetch(&self, cursor: &mut PrefetchCursor) {
        self.inboxes.prefetch(cursor);
    }

    /// Whether nothing is pending for any node.
    pub(crate) fn is_empty(&self) -> bool {
        self.next_busy().is_none() && self.put_aside.is_none()
    }

    /// All pending events, in the memory of the near ones.
    pub(crate) fn into_events(self) -> Vec<Event<P>> {
        let mut events = self.inboxes.into_events();
        self.overflow.into_values().for_each(|mut overflow| events.append(&mut overflow.events));
        events.extend(self.put_aside.into_iter().flatten());
        events
    }

    /// The current window has been run up to a pause: nodes with something left in it are scheduled there again. With a bipartition what is left is put aside, and the next window follows.
    #[inline(never)]
    pub(crate) fn pause(&mut self) {
        let slot = self.slot(self.current);
        if self.windows.step() == 1 {
            self.inboxes.finish_before(slot, u32::MAX);
            self.inboxes.reschedule(slot);
            return;
        }
        let mut events = Vec::new();
        for node in 0..self.inboxes.nodes() {
            if self.inboxes.is_scheduled(slot, node) {
                self.inboxes.take(slot, node, &mut events);
                self.put_aside(events.drain(..).map(|event| Event { node, ..event }));
            }
        }
        self.finish(0, false);
    }

    /// Puts events aside; none if something is left inside nodes only.
    pub(crate) fn put_aside(&mut self, events: impl Iterator<Item = Event<P>>) {
        self.put_aside.get_or_insert_default().extend(events);
    }

    /// What has been put aside, if anything has.
    pub(crate) fn take_aside(&mut self) -> Option<Vec<Event<P>>> {
        self.put_aside.take()
    }

    /// Adds an event between two epochs, for an instant to which no node has come, at a node of a side.
    pub(crate) fn insert_between_epochs(&mut self, event: Event<P>, side: u64) {
        self.insert_into(self.windows.of(event.at, side), event);
    }

    /// Schedules a node of a side between two epochs.
    pub(crate) fn wake_between_epochs(&mut self, node: u32, at: Time, side: u64) {
        self.wake(node, self.windows.of(at, side));
    }

    /// Ends the current window, and of the next one the batches with ranks below `fused_end`. `is_cut`: nodes may have set timers for the rest of the current one, which is not run.
    pub(crate) fn finish(&mut self, fused_end: u32, is_cut: bool) {
        let slot = self.slot(self.current);
        self.inboxes.finish_before(slot, u32::MAX);
        self.inboxes.finish_before(self.slot(self.current + 1), fused_end);
        self.advance_to(self.current + 1);
        if is_cut {
            self.inboxes.reschedule(slot);
        }
    }
}
