//! What a host does with packets that come before others of their flow, ahead of its transport.
//!
//! A NIC or its driver may hold an early packet back until those before it have come, so that the transport sees the order that the fabric has
//! not kept. It cannot know whether they will come: a lost packet looks like a late one. So a hold has a limit, and when it is over, the transport
//! gets what was held and does with it what it does without a buffer. [`Waiting`] is what is held of one flow; it knows nothing of packets
//! but their numbers and tags.

pub mod buffer;
pub mod flowcells;
mod kind;
pub mod none;

use std::collections::VecDeque;

use netloom_units::{Invalid, Time, kinds};

use kind::ReorderConfig;

/// Declares the kinds.
macro_rules! reorders {
    ($($name:literal => $Kind:ident($Config:ty),)+) => {
        kinds! {
            /// What a host does with packets that come before others of their flow.
            pub enum Reorder: "reorder" {
                $($name => $Kind($Config),)+
            }
        }

        impl Reorder {
            /// Whether anything is ever held.
            #[inline]
            pub fn holds(&self) -> bool {
                match self {
                    $(Reorder::$Kind(_) => <$Config as ReorderConfig>::HOLDS,)+
                }
            }

            /// Whether tags number flowcells, within which packets keep their order: what is missing there is lost.
            #[inline]
            pub fn has_cells(&self) -> bool {
                match self {
                    $(Reorder::$Kind(_) => <$Config as ReorderConfig>::HAS_CELLS,)+
                }
            }

            /// Refuses parameter values without meaning.
            pub(crate) fn check(&self) -> Result<(), Invalid> {
                match self {
                    $(Reorder::$Kind(config) => config.check(),)+
                }
                .map_err(|error| error.within("reorder"))
            }

            /// Bytes that a host may hold of all its flows.
            pub fn room(&self) -> u64 {
                match self {
                    $(Reorder::$Kind(config) => config.room(),)+
                }
            }

            /// How long the first packet that is held waits at most, where waits have taken `average` of late.
            fn timeout(&self, average: Option<Time>) -> Option<Time> {
                match self {
                    $(Reorder::$Kind(config) => config.timeout(average),)+
                }
            }

            /// The average after a wait that ended because what was missing has come.
            fn learn(&self, average: Option<Time>, wait: Time) -> Option<Time> {
                match self {
                    $(Reorder::$Kind(config) => config.learn(average, wait),)+
                }
            }
        }
    };
}

reorders! {
    "none" => None(none::None),
    "buffer" => Buffer(buffer::Buffer),
    "flowcells" => Flowcells(flowcells::Flowcells),
}

impl Default for Reorder {
    fn default() -> Self {
        Reorder::None(none::None {})
    }
}

/// A packet, and what is known of it here.
#[derive(Clone, Copy, Debug)]
pub struct Early<P> {
    /// Its number in its flow.
    pub seq: u32,
    /// What routing has written on it.
    pub tag: u32,
    /// Itself.
    pub packet: P,
}

/// What is held of a flow.
#[derive(Clone, Debug)]
pub struct Waiting<P> {
    /// In order of their numbers, with those that came again.
    held: VecDeque<Early<P>>,
    /// Since when the first of them waits, and how long at most.
    since: Time,
    due: Option<Time>,
    /// Packets below this number go up whatever is missing: they have waited for long enough.
    given_up: u32,
    /// The last flowcell of which something has gone up.
    cell: Option<u32>,
    /// How long flowcells have waited for each other.
    lasting: Option<Time>,
}

impl<P> Default for Waiting<P> {
    fn default() -> Self {
        Waiting {
            held: VecDeque::new(),
            since: Time::ZERO,
            due: None,
            given_up: 0,
            cell: None,
            lasting: None,
        }
    }
}

impl<P> Waiting<P> {
    /// A packet comes while number `expected` is the next one: it goes up as it is, or is held, for which there may be no room. Behind one that
    /// goes up others may follow: [`Self::next`].
    pub fn put(
        &mut self,
        rule: &Reorder,
        early: Early<P>,
        expected: u32,
        has_room: bool,
        now: Time,
    ) -> Option<P> {
        if early.seq <= expected || !has_room || self.goes_with_its_cell(rule, early.tag) {
            self.note_up(early.tag);
            return Some(early.packet);
        }
        if self.held.is_empty() {
            self.wait(rule, now);
        }
        let place = self.held.partition_point(|held| held.seq <= early.seq);
        self.held.insert(place, early);
        None
    }

    /// The next packet to go up, now that number `expected` is the next one.
    pub fn next(&mut self, rule: &Reorder, expected: u32, now: Time) -> Option<P> {
        let first = self.held.front()?;
        let is_free = first.seq <= expected || first.seq < self.given_up;
        if !is_free && !self.goes_with_its_cell(rule, first.tag) {
            return None;
        }
        if self.due.take().is_some() {
            self.lasting = rule.learn(self.lasting, now - self.since);
        }
        self.pop(rule, now)
    }

    /// Its timer fires: the first packet that is held, if it has waited for long enough. Others follow, see [`Self::next`]: its flowcell, or all.
    pub fn on_timer(&mut self, rule: &Reorder, now: Time) -> Option<P> {
        self.due.take_if(|due| *due == now)?;
        if let Some(last) = self.held.back().filter(|_| !rule.has_cells()) {
            self.given_up = last.seq + 1;
        }
        self.pop(rule, now)
    }

    fn pop(&mut self, rule: &Reorder, now: Time) -> Option<P> {
        let Early { tag, packet, .. } = self.held.pop_front()?;
        self.note_up(tag);
        match self.held.is_empty() {
            true => self.due = None,
            false => self.wait(rule, now),
        }
        Some(packet)
    }

    /// What is held waits from now on.
    fn wait(&mut self, rule: &Reorder, now: Time) {
        self.since = now;
        self.due = rule.timeout(self.lasting).map(|timeout| now + timeout);
    }

    /// Within a flowcell packets keep their order, so what is missing there is lost, as it is of cells before.
    fn goes_with_its_cell(&self, rule: &Reorder, tag: u32) -> bool {
        rule.has_cells() && self.cell.is_some_and(|cell| !is_after(tag, cell))
    }

    fn note_up(&mut self, tag: u32) {
        if self.cell.is_none_or(|cell| is_after(tag, cell)) {
            self.cell = Some(tag);
        }
    }

    /// When the timer is to fire.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// What is held.
    pub fn held(&self) -> impl Iterator<Item = &P> {
        self.held.iter().map(|held| &held.packet)
    }
}

/// Whether a label comes after another one, in a turn that goes round.
#[expect(clippy::cast_possible_wrap, reason = "what is more than half a turn ahead is behind")]
fn is_after(label: u32, other: u32) -> bool {
    label.wrapping_sub(other) as i32 > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_units::Bytes;

    const NONE: [u32; 0] = [];

    /// A receiver that takes packets in order, and what goes up to it.
    struct Host {
        rule: Reorder,
        waiting: Waiting<u32>,
        got: Vec<u32>,
        up: Vec<u32>,
    }

    impl Host {
        fn new(rule: Reorder) -> Self {
            Host { rule, waiting: Waiting::default(), got: Vec::new(), up: Vec::new() }
        }

        fn expected(&self) -> u32 {
            (0..).find(|number| !self.got.contains(number)).unwrap()
        }

        fn take(&mut self, seq: u32, now: u64) {
            self.got.push(seq);
            self.up.push(seq);
            while let Some(next) = self.waiting.next(&self.rule, self.expected(), Time(now)) {
                self.got.push(next);
                self.up.push(next);
            }
        }

        /// What goes up as a packet of a flowcell comes.
        fn put(&mut self, seq: u32, tag: u32, now: u64) -> Vec<u32> {
            self.put_if(seq, tag, true, now)
        }

        fn put_if(&mut self, seq: u32, tag: u32, has_room: bool, now: u64) -> Vec<u32> {
            let early = Early { seq, tag, packet: seq };
            if let Some(seq) = self.waiting.put(&self.rule, early, self.expected(), has_room, Time(now)) {
                self.take(seq, now);
            }
            std::mem::take(&mut self.up)
        }

        fn fire(&mut self, now: u64) -> Vec<u32> {
            if let Some(seq) = self.waiting.on_timer(&self.rule, Time(now)) {
                self.take(seq, now);
            }
            std::mem::take(&mut self.up)
        }
    }

    fn buffer() -> Host {
        Host::new(Reorder::Buffer(buffer::Buffer { size: Bytes(1 << 20), timeout: Time(100) }))
    }

    #[test]
    fn early_packets_go_up_in_order_behind_the_one_that_was_missing() {
        let mut host = buffer();
        assert_eq!(host.put(0, 0, 0), [0]);
        for seq in [3, 2, 5] {
            assert_eq!(host.put(seq, 0, 10), NONE);
        }
        assert_eq!(host.put(1, 0, 20), [1, 2, 3]);
        assert_eq!(host.waiting.due(), Some(Time(120)), "the next hole has its own time");
        assert_eq!(host.put(4, 0, 30), [4, 5]);
        assert_eq!(host.waiting.due(), None);
    }

    #[test]
    fn what_finds_no_room_goes_up_as_it_is() {
        let mut host = buffer();
        assert_eq!(host.put(1, 0, 0), NONE);
        assert_eq!(host.put_if(3, 0, false, 0), [3]);
        assert_eq!(host.put(0, 0, 0), [0, 1]);
        assert_eq!(host.put(2, 0, 0), [2]);
    }

    #[test]
    fn when_the_time_is_over_the_transport_gets_what_was_held() {
        let mut host = buffer();
        assert_eq!([host.put(1, 0, 0), host.put(2, 0, 50), host.put(4, 0, 60)].concat(), NONE);
        assert_eq!(host.fire(99), NONE);
        assert_eq!(host.fire(100), [1, 2, 4]);
        assert_eq!(host.waiting.due(), None);
        // What comes later waits again.
        assert_eq!(host.put(6, 0, 110), NONE);
        assert_eq!(host.put(0, 0, 150), [0]);
        assert_eq!([host.put(3, 0, 160), host.put(5, 0, 170)], [vec![3], vec![5, 6]]);
    }

    #[test]
    fn a_packet_that_comes_again_is_held_beside_the_first() {
        let mut host = buffer();
        assert_eq!([host.put(1, 0, 0), host.put(1, 0, 5)].concat(), NONE);
        assert_eq!(host.put(0, 0, 10), [0, 1, 1]);
    }

    fn flowcells() -> Host {
        Host::new(Reorder::Flowcells(flowcells::Flowcells { alpha: 2, initial: Time(1000) }))
    }

    /// Cells 70 (packets 0 to 2), 71 (3 to 5) and 72 (6 to 8).
    #[test]
    fn a_cell_waits_for_the_one_before_but_a_hole_within_a_cell_is_a_loss() {
        let mut host = flowcells();
        assert_eq!(host.put(0, 70, 0), [0]);
        assert_eq!(host.put(3, 71, 0), NONE);
        // The transport is notified of the loss of 1 at once.
        assert_eq!(host.put(2, 70, 10), [2]);
        assert_eq!(host.put(1, 70, 400), [1, 3]);
        // The reordering lasted for 400: the next one may last for 800.
        assert_eq!(host.put(6, 72, 500), NONE);
        assert_eq!(host.waiting.due(), Some(Time(1300)));
        assert_eq!(host.put(7, 72, 600), NONE);
        assert_eq!(host.fire(1300), [6, 7]);
        // What comes of an older cell goes up as well.
        assert_eq!(host.put(5, 71, 1400), [5]);
        assert_eq!(host.waiting.due(), None);
    }

    #[test]
    fn labels_go_round() {
        let mut host = flowcells();
        assert_eq!(host.put(0, u32::MAX, 0), [0]);
        assert_eq!(host.put(2, 0, 0), NONE);
        assert_eq!(host.put(1, u32::MAX, 0), [1, 2]);
    }

    #[test]
    fn a_hold_needs_room_and_an_end() {
        let buffer =
            |size, timeout| Reorder::Buffer(buffer::Buffer { size: Bytes(size), timeout: Time(timeout) });
        let cells =
            |alpha, initial| Reorder::Flowcells(flowcells::Flowcells { alpha, initial: Time(initial) });
        let rooms = [Reorder::default(), buffer(77, 1), cells(2, 1)].map(|rule| (rule.holds(), rule.room()));
        assert_eq!(rooms, [(false, 0), (true, 77), (true, u64::MAX)]);
        let field = |rule: Reorder| rule.check().err().map(|error| error.field.into_owned());
        let refused = [buffer(0, 1), buffer(1, 0), cells(0, 1), cells(100_001, 1), cells(1, 0)].map(field);
        let fields = ["size", "timeout", "alpha", "alpha", "initial"];
        assert_eq!(refused, fields.map(|name| Some(format!("reorder.{name}"))));
        assert_eq!(
            [Reorder::default(), buffer(1, 1), cells(1, 1), cells(100_000, 1)].map(field),
            [(); 4].map(|()| None)
        );
    }

    /// A moving average with a gain of 1/8; a cell waits `alpha` times as long, but never no time.
    #[test]
    fn waits_of_cells_are_averaged() {
        let rule = Reorder::Flowcells(flowcells::Flowcells { alpha: 3, initial: Time(1000) });
        assert_eq!(rule.timeout(None), Some(Time(1000)));
        assert_eq!(rule.learn(None, Time(400)), Some(Time(400)));
        assert_eq!(rule.learn(Some(Time(400)), Time(800)), Some(Time(400 - 50 + 100)));
        assert_eq!(
            [rule.timeout(Some(Time(450))), rule.timeout(Some(Time(0)))],
            [Some(Time(1350)), Some(Time(1))]
        );
        let buffer = Reorder::Buffer(buffer::Buffer { size: Bytes(1), timeout: Time(5) });
        assert_eq!(
            (buffer.timeout(Some(Time(9))), buffer.learn(Some(Time(9)), Time(1))),
            (Some(Time(5)), None)
        );
        let none = Reorder::default();
        assert_eq!((none.timeout(Some(Time(9))), none.learn(Some(Time(9)), Time(1))), (None, None));
    }
}
