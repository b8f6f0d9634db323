//! How the state of a server recurs: what each field of it means to the [walk](netloom_units::recurrence).

use std::hash::Hash;

use netloom_units::Time;
use netloom_units::recurrence::Walk;
use rustc_hash::FxHashMap;

use crate::server::nic_timers::{Timer, Timers};
use crate::server::{Nic, Sending, Server};
use crate::world::World;

impl Server {
    /// The server must have come to `now`. What its work has it do next is looked at where it is [at a host](crate::host::Host::recur).
    pub(crate) fn recur(&mut self, world: &World, now: Time, walk: &mut Walk) {
        let Server {
            number,
            nics,
            reached: _,
            quiet_until,
            work,
            upcoming: _,
            has_begun,
            next_message,
            choice,
            streams,
            sending,
            receiving,
            calculations,
            events,
            last_event,
            calculated,
        } = self;
        let origin = ORIGIN | *number;
        // Found again from when something happens inside each NIC.
        *quiet_until = Time::ZERO;
        if walk.has_successors() {
            // Which NIC a message takes that its work gives none may depend on its number.
            work.recur(origin, world.servers().hashes(), walk);
        }
        for Nic { id, host, timers, next } in nics {
            host.recur(world, (*id, now), Some(&*work), walk);
            timers.recur(*id, walk);
            if walk.has_successors() {
                // A message and its parts have one number.
                host.flows
                    .iter()
                    .flatten()
                    .for_each(|flow| _ = walk.flow(origin, &mut flow.at.key.flow.clone()));
            }
            walk.since(next);
            if !walk.goes_on() {
                return;
            }
        }
        walk.exact(*has_begun);
        walk.exact(*next_message);
        choice.recur(walk);
        if !streams.is_empty() {
            walk.refuse("a stream of frames");
        }
        walk.count(sending.len());
        walk.count(receiving.len());
        if walk.has_successors() {
            recur_by_number(
                sending,
                |&number| (origin, number),
                |_, number| number,
                walk,
                |sending, walk| {
                    let Sending { parts, group, whole: (bytes, rail) } = sending;
                    walk.exact(*parts);
                    walk.exact(*group);
                    walk.exact(bytes.0);
                    walk.exact(*rail);
                },
            );
            let named = |&(server, number): &(u32, u32)| (ORIGIN | server, number);
            recur_by_number(
                receiving,
                named,
                |(server, _), number| (server, number),
                walk,
                |missing, walk| {
                    walk.exact(*missing);
                },
            );
        }
        calculations.recur((origin, &*work), walk);
        walk.count(events.len());
        walk.last(last_event);
        if walk.is_some(calculated)
            && let Some(at) = calculated
        {
            walk.last(at);
        }
    }
}

/// Messages are named by their server, which is another one than the host with the same number.
const ORIGIN: u32 = 1 << 31;

/// What is known of messages by their numbers, which move where others have succeeded them.
fn recur_by_number<K: Copy + Ord + Hash, V>(
    known: &mut FxHashMap<K, V>,
    named: impl Fn(&K) -> (u32, u32),
    renamed: impl Fn(K, u32) -> K,
    walk: &mut Walk,
    recur: impl Fn(&mut V, &mut Walk),
) {
    let mut all: Vec<(K, V)> = known.drain().collect();
    all.sort_unstable_by_key(|&(key, _)| key);
    for (key, mut value) in all {
        let (origin, mut number) = named(&key);
        walk.exact(origin);
        walk.flow(origin, &mut number);
        recur(&mut value, walk);
        known.insert(renamed(key, number), value);
    }
}

impl Timers {
    /// Alarms of flows move as those of the engine do; all others are in order. The NIC is the host `id`.
    fn recur(&mut self, id: u32, walk: &mut Walk) {
        let Timers { waiting, set: _ } = self;
        if walk.counts() {
            return;
        }
        // The greatest is the first.
        let mut timers = std::mem::take(waiting).into_sorted_vec();
        let is_alarm = |timer: &Timer| timer.message.is_alarm(timer.source);
        walk.count(timers.iter().filter(|timer| !is_alarm(timer)).count());
        for timer in timers.iter_mut().rev() {
            if is_alarm(timer) {
                timer.at += walk.time_moved();
                timer.message.follow(id, walk);
            } else {
                walk.exact(timer.source);
                walk.time(&mut timer.at);
                timer.message.recur(walk);
            }
        }
        *waiting = timers.into();
    }
}
