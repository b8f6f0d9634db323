//! How the state of a server recurs: what each field of it means to the [walk](netloom_units::recurrence).

use std::collections::BinaryHeap;

use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

use crate::message::Message;
use crate::server::nic_timers::{Timer, Timers};
use crate::server::{Nic, Server};

impl Server {
    /// The server must have come to `now`. What its work has it do next is not looked at, as at a [host](crate::host::Host::recur).
    pub(crate) fn recur(&mut self, now: Time, walk: &mut Walk) {
        let Server {
            number: _,
            nics,
            work: _,
            upcoming: _,
            has_begun,
            next_message,
            next_rail,
            outstanding,
            streams,
            sending,
            receiving,
            calculations,
            events,
            last_event,
            calculated,
        } = self;
        for Nic { id: _, host, timers, next } in nics {
            host.recur(now, walk);
            timers.recur(walk);
            walk.since(next);
            if !walk.goes_on() {
                return;
            }
        }
        walk.exact(*has_begun);
        walk.exact(*next_message);
        walk.exact(*next_rail);
        outstanding.iter().for_each(|&bytes| walk.exact(bytes));
        if !streams.is_empty() {
            walk.refuse("a stream of frames");
        }
        walk.count(sending.len());
        walk.count(receiving.len());
        walk.deadline(calculations.next().unwrap_or(Time::MAX));
        walk.count(events.len());
        walk.last(last_event);
        walk.exact(calculated.unwrap_or(Time::MAX).0);
    }
}

/// All of them are alarms of flows: those of the engine move with them.
impl Recur for Timers {
    fn recur(&mut self, walk: &mut Walk) {
        let Timers { waiting, set: _ } = self;
        if !waiting.iter().all(|timer| matches!(timer.message, Message::FlowTimer { .. })) {
            walk.refuse("servers of several NICs whose ACKs or interrupts wait");
        }
        let moved = walk.time_moved();
        if moved > Time::ZERO {
            let timers = std::mem::take(waiting).into_iter();
            *waiting = timers.map(|timer| Timer { at: timer.at + moved, ..timer }).collect::<BinaryHeap<_>>();
        }
    }
}
