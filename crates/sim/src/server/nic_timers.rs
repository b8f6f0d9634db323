//! The timers of a server's NICs, and the engine as one NIC sees it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netloom_engine::{DRIVER, Due, DynScheduler, FIRST_TIMER, NodeIndex};
use netloom_units::Time;

use crate::message::Message;

/// The timers of a NIC, in order of time, source and setting.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    pub(crate) waiting: BinaryHeap<Timer>,
    pub(crate) set: u64,
}

#[derive(Debug)]
pub(crate) struct Timer {
    pub(crate) at: Time,
    pub(crate) source: u32,
    pub(crate) order: u64,
    pub(crate) message: Message,
}

impl Timer {
    /// The heap's greatest is the first.
    fn key(&self) -> Reverse<(Time, u32, u64)> {
        Reverse((self.at, self.source, self.order))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timer {}

/// The engine as one NIC sees it.
pub(crate) struct AtNic<'a> {
    pub(crate) engine: &'a mut dyn DynScheduler<Message>,
    pub(crate) timers: &'a mut Timers,
    pub(crate) rail: u32,
}

impl AtNic<'_> {
    /// What a source of the NIC is to the engine. Timers that come in an order have one for it at each NIC; between NICs it makes no difference.
    fn source(source: u32) -> u32 {
        if (FIRST_TIMER..DRIVER).contains(&source) { FIRST_TIMER } else { source }
    }

    /// Takes a timer that comes before what the engine handles. The NIC has just come to that instant, and only such a one can have set
    /// timers that come before it; so they are its own.
    #[inline]
    pub(crate) fn take_due(&mut self, before: Due) -> Option<(Due, Message)> {
        // So the engine is seldom asked.
        self.timers.waiting.peek().filter(|timer| timer.at <= before.at)?;
        let (due, message) = self.engine.due_timer(before)?;
        assert!(matches!(message, Message::Nic { rail } if rail == self.rail), "a timer of this NIC");
        self.timers.waiting.pop().map(|timer| (due, timer.message))
    }
}

impl DynScheduler<Message> for AtNic<'_> {
    fn send(&mut self, to: NodeIndex, source: u32, at: Time, message: Message) {
        self.engine.send(to, source, at, message);
    }

    fn timer_from(&mut self, source: u32, at: Time, message: Message) {
        self.timers.set += 1;
        self.timers.waiting.push(Timer { at, source, order: self.timers.set, message });
        self.engine.timer_from(Self::source(source), at, Message::Nic { rail: self.rail });
    }

    /// That of any NIC: none may go beyond it.
    fn next_timer(&self) -> Time {
        self.engine.next_timer()
    }

    /// None: all NICs have come to the instant before something reaches one of them, and have handled what is due by then.
    #[inline]
    fn due_timer(&mut self, _: Due) -> Option<(Due, Message)> {
        None
    }

    fn tally(&mut self, amount: u64) {
        self.engine.tally(amount);
    }

    fn report(&mut self, pauses: bool) {
        self.engine.report(pauses);
    }
}
