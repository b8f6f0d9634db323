//! The windows of one partition: who has a turn when, and with which messages.
//!
//! Near windows are slots of a ring, in each of which a node may have an [inbox](Inboxes). Windows beyond the ring wait in an ordered map.

use std::collections::BTreeMap;

use netloom_units::Time;

use crate::inboxes::{Ahead, Inboxes, Row};
use crate::turns::Walk;
use crate::windows::Windows;

/// A message or timer on its way to a node of this partition.
// The payload is written first: what it is copied from could otherwise, for all the compiler knows, be what is being written.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event<P> {
    pub(crate) payload: P,
    pub(crate) at: Time,
    pub(crate) source: u32,
    /// Destination: the engine-wide node index in mail between partitions, the partition's own index in the wheel. Once that is reached, what it
    /// has foreseen of the event.
    pub(crate) node: u32,
}

struct Far<P> {
    events: Vec<Event<P>>,
    wakes: Vec<u32>,
}

/// Where messages go while the turns of one window are taken.
#[derive(Clone, Copy, Default)]
struct Stand {
    /// The slot of that window.
    slot: usize,
    /// The first window to which messages may still be sent: those before belong to the epoch being run.
    open: u64,
    /// When it begins.
    opens: Time,
    /// How long it lasts, in picoseconds, if messages may be put into it at once; else 0.
    open_length: u64,
    /// The same if besides all nodes are this partition's; else 0.
    open_length_to_all: u64,
    /// Where its inboxes are.
    open_row: Row,
    /// The first window of the running nodes' own side for what they are still to do.
    own: u64,
    /// When it begins.
    own_opens: Time,
    /// How many of a side's windows from the open one on are certainly near, whichever window of its epoch is being run.
    near: u64,
}

impl Stand {
    /// Begins a window; returns its end.
    fn begin(&mut self, window: u64, slot: usize, windows: Windows) -> Time {
        self.slot = slot;
        self.own = windows.after(window, 1);
        self.own_opens = windows.end(window);
        self.own_opens
    }
}

pub(crate) struct Wheel<P> {
    inboxes: Inboxes<P>,
    /// Number of slots minus one; the number is a power of two.
    mask: u64,
    windows: Windows,
    /// Whether all nodes are this partition's.
    is_only: bool,
    /// The window being run, or next to run.
    current: u64,
    stand: Stand,
    /// While two windows are run together, that of the one in which no turn is being taken.
    other: Stand,
    /// How many windows are near once time has started.
    near: u64,
    far: BTreeMap<u64, Far<P>>,
    /// First key of `far`, cached.
    far_first: u64,
}

impl<P: Copy + Default> Wheel<P> {
    /// A wheel for nodes that each have a place in the order of turns, all nodes that there are if `is_only`, of whose windows `slots` (a power of two) are near; `epoch` (fewer) are run between two meetings.
    pub(crate) fn new(
        turn_places: Vec<u32>,
        is_only: bool,
        windows: Windows,
        slots: usize,
        epoch: u64,
    ) -> Self {
        debug_assert!(slots.is_power_of_two() && slots <= 256 && epoch < slots as u64);
        let near = (slots as u64 - epoch).div_ceil(windows.step());
        Wheel {
            inboxes: Inboxes::new(slots, turn_places),
            mask: slots as u64 - 1,
            windows,
            is_only,
            current: 0,
            stand: Stand::default(),
            other: Stand::default(),
            near: if windows.are_counted_ahead() { near } else { 0 },
            far: BTreeMap::new(),
            far_first: u64::MAX,
        }
    }

    /// The window of a message that a running node sends.
    #[inline(always)]
    pub(crate) fn window_of_message(&self, at: Time) -> u64 {
        let Stand { open, opens, .. } = self.stand;
        if self.is_open(at) { open } else { self.window_from(open, opens, at) }
    }

    /// The window, after the one being run, in which something happens inside a running node.
    pub(crate) fn window_of_own(&self, at: Time) -> u64 {
        self.window_from(self.stand.own, self.stand.own_opens, at)
    }

    #[inline]
    fn window_from(&self, window: u64, opens: Time, at: Time) -> u64 {
        let ahead = self.windows.ahead(opens, at);
        if ahead < self.stand.near { self.windows.after(window, ahead) } else { self.windows.of(at, window) }
    }

    /// Adds a message that arrives at a node at `at` to its window. It is made in its place: nearly every packet passes here, and is not
    /// to be copied twice.
    ///
    /// # Panics
    /// If that window belongs to the running epoch: the message was sent with less than the lookahead.
    #[inline(always)]
    pub(crate) fn insert(&mut self, at: Time, node: u32, make: impl FnOnce() -> Event<P>) {
        if self.is_open(at) {
            self.inboxes.put(self.stand.open_row, node, make);
        } else {
            self.insert_later(make());
        }
    }

    /// Whether a message that arrives at `at` may be put into the open window at once, for a node of this partition: nearly all arrive in the first window that is
    /// open to them.
    #[inline(always)]
    fn is_open(&self, at: Time) -> bool {
        // One comparison for both ends: what is too early seems far away.
        at.0.wrapping_sub(self.stand.opens.0) < self.stand.open_length
    }

    /// The same, whatever node it is for.
    #[inline(always)]
    pub(crate) fn is_open_to_all(&self, at: Time) -> bool {
        at.0.wrapping_sub(self.stand.opens.0) < self.stand.open_length_to_all
    }

    /// [`Self::insert`] where that [is known](Self::is_open_to_all).
    #[inline(always)]
    pub(crate) fn insert_open(&mut self, node: u32, make: impl FnOnce() -> Event<P>) {
        self.inboxes.put(self.stand.open_row, node, make);
    }

    /// [`Self::insert`] into whatever window it is.
    #[inline(never)]
    pub(crate) fn insert_later(&mut self, event: Event<P>) {
        // What is too early seems far away here, too.
        let ahead = self.windows.ahead(self.stand.opens, event.at);
        if ahead < self.stand.near {
            self.place(self.windows.after(self.stand.open, ahead), event.node, || event);
        } else {
            self.check_open(event.at);
            self.far_window(self.windows.of(event.at, self.stand.open)).events.push(event);
        }
    }

    #[cold]
    #[inline(never)]
    fn check_open(&self, at: Time) {
        assert!(
            at >= self.stand.opens,
            "the model sent a message that arrives at {at}, less than one lookahead after its cause (the running epoch ends at {})",
            self.stand.opens,
        );
    }

    /// Adds an event to a window after the one being run: a node's own timer, or what another thread had for it.
    pub(crate) fn insert_into(&mut self, window: u64, event: Event<P>) {
        debug_assert!(window >= self.current, "an event in the past");
        if window - self.current <= self.mask {
            self.place(window, event.node, || event);
        } else {
            self.far_window(window).events.push(event);
        }
    }

    /// The window being run, or next to run.
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// Takes up a run of which others have run the windows before this one.
    pub(crate) fn begin_at(&mut self, window: u64) {
        debug_assert!(self.is_empty(), "what waits was put into other slots");
        self.current = window;
    }

    /// Hands over all that waits: the window, the node and some of its events, in order, or none if it only has a turn.
    pub(crate) fn hand_over(mut self, mut take: impl FnMut(u64, u32, &[Event<P>])) {
        let mut events = Vec::new();
        for window in self.current..=self.current + self.mask {
            let slot = self.slot(window);
            for node in 0..self.inboxes.nodes() {
                if self.inboxes.has_turn(slot, node) {
                    self.inboxes.take(slot, node, &mut events);
                    take(window, node, &events);
                }
            }
        }
        for (window, far) in self.far {
            far.wakes.iter().for_each(|&node| take(window, node, &[]));
            far.events.iter().for_each(|event| take(window, event.node, std::slice::from_ref(event)));
        }
    }

    /// Gives a node a turn in a window even if it gets no message there.
    #[inline]
    pub(crate) fn wake(&mut self, node: u32, window: u64) {
        if window - self.current <= self.mask {
            self.inboxes.wake(self.slot(window), node);
        } else {
            self.far_window(window).wakes.push(node);
        }
    }

    /// Puts an event into the ring.
    #[inline(always)]
    fn place(&mut self, window: u64, node: u32, make: impl FnOnce() -> Event<P>) {
        let row = self.inboxes.row(self.slot(window));
        self.inboxes.put(row, node, make);
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the mask is that of a few slots")]
    fn slot(&self, window: u64) -> usize {
        (window & self.mask) as usize
    }

    fn far_window(&mut self, window: u64) -> &mut Far<P> {
        self.far_first = self.far_first.min(window);
        self.far.entry(window).or_insert_with(|| Far { events: Vec::new(), wakes: Vec::new() })
    }

    /// The first window from the current one on in which a node has a turn.
    pub(crate) fn next_busy(&self) -> Option<u64> {
        let near = (self.current..=self.current + self.mask)
            .find(|&window| !self.inboxes.is_idle(self.slot(window)));
        Some(near.unwrap_or(u64::MAX).min(self.far_first)).filter(|&window| window != u64::MAX)
    }

    /// Before time starts, nodes of the side that the window `own` is of begin to send.
    pub(crate) fn begin(&mut self, own: u64) {
        self.stand.own = own;
        self.stand.open = (own + 1) % self.windows.step();
    }

    /// Begins an epoch: makes its first window the current one, and closes the epoch to messages.
    pub(crate) fn begin_epoch(&mut self, windows: std::ops::Range<u64>) {
        self.advance_to(windows.start);
        self.stand = self.stand_of(windows.end, self.near);
    }

    /// Where messages go as long as `open` is the first window that is open to them.
    fn stand_of(&self, open: u64, near: u64) -> Stand {
        let opens = self.windows.start(open);
        let open_length = if near > 0 { self.windows.end(open).0 - opens.0 } else { 0 };
        Stand {
            open,
            opens,
            open_length,
            open_length_to_all: if self.is_only { open_length } else { 0 },
            open_row: self.inboxes.row(self.slot(open)),
            near,
            ..Stand::default()
        }
    }

    /// Begins the current window; returns its end.
    pub(crate) fn begin_window(&mut self) -> Time {
        let slot = self.slot(self.current);
        self.stand.begin(self.current, slot, self.windows)
    }

    /// Begins the window behind the current one, too, of the other side; returns its end. Turns are still taken in the current one until they are [turned over](Self::turn_over).
    pub(crate) fn begin_next_window(&mut self) -> Time {
        let next = self.current + 1;
        // The ring begins with the window before it, so that one fewer is near.
        self.other = self.stand_of(next + 1, self.near.saturating_sub(1));
        self.other.begin(next, self.slot(next), self.windows)
    }

    /// Goes from one of the two windows to the other one.
    #[inline]
    pub(crate) fn turn_over(&mut self) {
        std::mem::swap(&mut self.stand, &mut self.other);
    }

    /// Begins to go through the places of nodes that have a turn in the current window.
    pub(crate) fn walk(&self) -> Walk {
        self.inboxes.turns().walk(self.slot(self.current))
    }

    /// The next of them; `u32::MAX` if there is none.
    #[inline]
    pub(crate) fn next_turn(&self, walk: &mut Walk) -> u32 {
        self.inboxes.turns().next(self.slot(self.current), walk)
    }

    /// The first place, from one on, whose node has a turn in the next window; `u32::MAX` if there is none.
    #[inline]
    pub(crate) fn first_turn_of_next(&self, from: u32) -> u32 {
        self.inboxes.turns().first(self.slot(self.current + 1), from)
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

    /// Takes a node's messages of the window in which turns are being taken.
    #[inline]
    pub(crate) fn take_inbox(&mut self, node: u32, events: &mut Vec<Event<P>>) {
        self.inboxes.take(self.stand.slot, node, events);
    }

    /// Where a node's messages of the current window, or the next one, lie.
    #[inline]
    pub(crate) fn look_ahead(&self, is_in_next: bool, node: u32) -> Ahead {
        self.inboxes.look_ahead(self.slot(self.current + u64::from(is_in_next)), node)
    }

    /// Has the processor fetch some of them.
    #[inline]
    pub(crate) fn fetch(&self, ahead: &mut Ahead) {
        self.inboxes.fetch(ahead);
    }

    /// Whether nothing waits for any node.
    pub(crate) fn is_empty(&self) -> bool {
        self.next_busy().is_none()
    }

    /// All that waits, in the room that near events had.
    pub(crate) fn into_events(self) -> Vec<Event<P>> {
        let mut events = self.inboxes.into_events();
        self.far.into_values().for_each(|mut far| events.append(&mut far.events));
        events
    }

    /// Ends the current window, and of the next one the turns in places before `early`. `is_cut`: nodes may have set timers for what is left of the current one, which is not run.
    pub(crate) fn finish(&mut self, early: u32, is_cut: bool) {
        let slot = self.slot(self.current);
        self.inboxes.finish_before(slot, u32::MAX);
        self.inboxes.finish_before(self.slot(self.current + 1), early);
        self.advance_to(self.current + 1);
        if is_cut {
            self.inboxes.ask_again(slot);
        }
    }
}
