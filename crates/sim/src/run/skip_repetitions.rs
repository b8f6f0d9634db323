//! Repetitions of programs that are the same: skipped as [what recurs within one](super::skip).
//!
//! A training job does the same in each iteration, and what a collective does is done again by the next one. Within each, [steps](super::skip_steps) recur only once what comes first is over. As a whole it begins where
//! the one before has ended, and once it begins in the same state it goes on in the same way. So the state at an instant of one repetition of one rank is compared with that at the same instant of the next ones, counted from where it
//! begins. All flows have been succeeded by those of the next repetition, and all that is kept of them is kept again for each one that is skipped.

use std::sync::atomic::Ordering;

use netloom_engine::{END_OF_TIME, Session, Setup};
use netloom_units::Time;
use netloom_workload::Round;

use crate::run::skip_walk::{Jump, NotedRun, hand_in_all, pause_cost};
use crate::world::World;

/// What may be spent on it before anything has been handled, in messages handled,
const CREDIT: u64 = 50_000;

/// and one part in this number of what has been handled.
const SHARE: u64 = 50;

/// One part in this number of the time that has passed since something was due passes until it is looked at again,
const LOOKS: u64 = 32;

/// and one part in this number of the whole time where there is nothing left to spend.
const RARE_LOOKS: u64 = 4;

/// Repetitions in a period, at most.
const MOST_IN_PERIOD: u32 = 16;

/// Flows of all hosts that are kept during a period, at most.
const MOST_KEPT: u32 = 1 << 20;

/// The binary logarithm of the repetitions that are let pass when none was the same, at most.
const MOST_MISSES: u32 = 10;

/// The search for repetitions that are the same.
pub(super) struct Repetitions {
    /// Where the run pauses next.
    pub(super) next: Time,
    /// How many have been skipped.
    pub(super) skipped: u64,
    lookahead: Time,
    pause_cost: u64,
    /// Messages that had been handled at the last pause.
    handled: u64,
    spent: u64,
    noted: Option<Noted>,
    /// How often it has been compared, and how often that is done before another state is noted.
    compared: u32,
    limit: u32,
    misses: u32,
}

/// The state that is compared with those at the same instants of the next repetitions.
struct Noted {
    at: Time,
    of: Reference,
    state: NotedRun,
}

/// A rank whose repetitions are counted.
#[derive(Clone, Copy)]
struct Reference {
    node: u32,
    round: Round,
    /// How long the one before has lasted.
    lasted: Time,
}

impl Reference {
    /// The rank at a node, once one of its repetitions has ended.
    fn at(node: u32, session: &mut Session<World>) -> Option<Self> {
        let round = session.node(node).work()?.round()?;
        Some(Reference { node, round, lasted: round.lasted? })
    }
}

impl Repetitions {
    pub(super) fn new(setup: &Setup, nodes: usize) -> Self {
        Repetitions {
            next: setup.lookahead * LOOKS,
            skipped: 0,
            lookahead: setup.lookahead,
            pause_cost: pause_cost(nodes),
            handled: 0,
            spent: 0,
            noted: None,
            compared: 0,
            limit: 1,
            misses: 0,
        }
    }

    /// Where states are compared next: nothing else may skip that instant.
    pub(super) fn mark(&self) -> Time {
        if self.noted.is_some() { self.next } else { END_OF_TIME }
    }

    /// No state that was noted is one of this run any more, or none is of use.
    pub(super) fn forget(&mut self, world: &World) {
        self.noted = None;
        world.recorder.kept_in_repetition.store(0, Ordering::Relaxed);
    }

    /// The run has paused at the planned instant, has handled that many messages so far, and ends at `end`: compares states, goes on by as many periods as are known to be the same, and plans the next pause.
    pub(super) fn step(
        &mut self,
        world: &World,
        session: &mut Session<World>,
        (handled, end): (u64, Time),
    ) -> Option<Jump> {
        let now = session.reached();
        // While all calculate, as before the first layer, there is nothing to bring to the instant.
        if std::mem::replace(&mut self.handled, handled) < handled {
            self.spent += self.pause_cost;
        }
        let Some(mut noted) = self.noted.take() else {
            if self.spent > CREDIT + handled / SHARE {
                self.next = now + Time(now.0 / RARE_LOOKS).max(self.lookahead);
            } else {
                self.begin(world, session);
            }
            return None;
        };
        let Noted { at, of, .. } = noted;
        let begun = Reference::at(of.node, session).filter(|now| now.round.left < of.round.left);
        let mark = begun.map(|begun| at + (begun.round.since - of.round.since));
        let Some(reference) = begun.filter(|_| mark <= Some(now)) else {
            let since = world.instant(of.round.since);
            if let Some(shorter) = begun.filter(|begun| begun.lasted <= at - since) {
                // Those that come now are over before they have been going on for as long: backward passes behind forward ones, say.
                self.note(world, session, shorter);
                return None;
            }
            // The next one has not begun, or not been going on for as long.
            let late = now.saturating_sub(since + of.lasted);
            self.next = mark.unwrap_or(now + self.lookahead.max(Time(late.0 / LOOKS)));
            self.noted = Some(noted);
            return None;
        };
        if mark == Some(now) {
            let periods = noted.state.periods(world, session, end, &mut self.spent);
            if periods > 0 {
                self.skipped += u64::from(of.round.left - reference.round.left) * periods;
                // Hosts need not keep the flows of the periods that are skipped.
                self.forget(world);
                let jump = noted.state.jump(world, session, periods);
                self.rest(world, session.reached() + reference.lasted);
                (self.limit, self.misses) = (1, 0);
                return Some(jump);
            }
        }
        self.compared += 1;
        let is_out_of_reach = noted.state.has_lost_flows(world) || reference.round.left <= self.limit;
        let is_last = self.compared == self.limit;
        if is_out_of_reach || is_last && self.limit == MOST_IN_PERIOD {
            self.misses = (self.misses + 1).min(MOST_MISSES);
            self.limit = 1;
            let pause = reference.lasted.0.saturating_mul(1 << self.misses);
            self.rest(world, now.saturating_add(Time(pause)).min(END_OF_TIME));
        } else if is_last || mark < Some(now) {
            self.limit = (2 * self.limit).min(MOST_IN_PERIOD);
            self.note(world, session, reference);
        } else {
            noted.of.lasted = reference.lasted;
            self.next = now + reference.lasted;
            self.noted = Some(noted);
        }
        None
    }

    /// Nothing is noted until then.
    fn rest(&mut self, world: &World, until: Time) {
        self.forget(world);
        (self.compared, self.next) = (0, until);
    }

    /// Notes the state if some repetition has ended, and others follow. Counted are those of the rank of which it has lasted longest.
    fn begin(&mut self, world: &World, session: &mut Session<World>) {
        let now = session.reached();
        let left = (0..session.nodes()).filter_map(|node| Some(session.node(node).work()?.rounds_left()));
        if left.max().unwrap_or(0) < 2 {
            self.next = END_OF_TIME;
            return;
        }
        let ranks = (0..session.nodes()).filter_map(|node| Reference::at(node, session));
        let longest = ranks.filter(|rank| rank.round.left > 1).max_by_key(|rank| rank.lasted);
        match longest {
            Some(reference) => self.note(world, session, reference),
            None => self.next = now + self.lookahead.max(Time(now.0 / LOOKS)),
        }
    }

    fn note(&mut self, world: &World, session: &mut Session<World>, of: Reference) {
        hand_in_all(world, session);
        let kept = (MOST_KEPT / world.network.hosts()).max(1) as usize;
        world.recorder.kept_in_repetition.store(kept, Ordering::Relaxed);
        let state = NotedRun::new(world, session, &mut self.spent);
        if state.is_refused() {
            return self.rest(world, END_OF_TIME);
        }
        let at = session.reached();
        (self.compared, self.next) = (0, at + of.lasted);
        self.noted = Some(Noted { at, of, state });
    }
}
