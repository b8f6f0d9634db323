//! The timers of a server's NICs, and the engine as one NIC sees it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netloom_engine::{DynScheduler, NodeIndex};
use netloom_units::Time;

use crate::message::Message;

/// The timers of a NIC, in order of time and of setting.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    pub(crate) waiting: BinaryHeap<Timer>,
    pub(crate) set: u64,
}

#[derive(Debug)]
pub(crate) struct Timer {
    pub(crate) at: Time,
    pub(crate) order: u64,
    pub(crate) message: Message,
}

impl Timer {
    /// The heap's greatest is the first.
    fn key(&self) -> Reverse<(Time, u64)> {
        Reverse((self.at, self.order))
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

impl DynScheduler<Message> for AtNic<'_> {
    fn send(&mut self, to: NodeIndex, source: u32, at: Time, message: Message) {
        self.engine.send(to, source, at, message);
    }

    fn timer(&mut self, at: Time, message: Message) {
        self.timers.set += 1;
        self.timers.waiting.push(Timer { at, order: self.timers.set, message });
        self.engine.timer(at, Message::Nic { rail: self.rail });
    }

    /// That of any NIC: none may go beyond it.
    fn next_timer(&self) -> Time {
        self.engine.next_timer()
    }

    /// Only a NIC that has just caught up can have set timers that come before what is being handled, so they are its own.
    #[inline]
    fn due_timer(&mut self, before: Time) -> Option<(Time, Message)> {
        // So the engine is seldom asked.
        self.timers.waiting.peek().filter(|timer| timer.at < before)?;
        let (at, _) = self.engine.due_timer(before)?;
        self.timers.waiting.pop().map(|timer| (at, timer.message))
    }

    fn tally(&mut self, amount: u64) {
        self.engine.tally(amount);
    }

    fn report(&mut self, pauses: bool) {
        self.engine.report(pauses);
    }
}
