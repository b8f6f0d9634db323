//! Whether the state of a simulation recurs, and what it is many periods later.
//!
//! A simulation that draws no random numbers is a function of its state. If its state at two instants is the same *relative* to the instant and to the sequence numbers of each flow, then
//! what has happened between them happens again and again, until something comes from outside. So all that a number of such periods would do to the state is known: instants move by as many
//! periods, sequence numbers by as many times what they have moved by, and so do sums. What else there is stays as it is.
//!
//! A [`Walk`] passes through the whole state in a fixed order and is told of each number what it is: that is the one place where it is said what a number means, and it serves to note a state, to
//! compare another one with it, and to move that one. A type takes part by [`Recur`], whose implementation names every field, so that a new field has to be classed. What cannot be
//! classed [refuses](Walk::refuse).
//!
//! In a walk [of counts](Walk::note_counts) states need not be the same: it passes by sums alone, which say how much has happened between two instants, and adds the same a number of times. All
//! else stays, and instants that are set from outside [come nearer](Walk::deadline).
//!
//! In a walk [with successors](Walk::with_successors) flows may have ended between the two states, as long as another one has taken the place of each: then numbers of flows move by as
//! much in every period, too, and what has been kept of those that ended is [kept again](Walk::log) for every period.

use std::ops::Range;

use rand_pcg::rand_core::Rng;
use rustc_hash::FxHashMap;

use crate::quantity::Time;
use crate::random::Stream;

/// State that a [`Walk`] passes through.
pub trait Recur {
    /// Tells the walk of every number in it what it is, in an order that depends on nothing that is not told. The numbers may be altered only by the walk.
    fn recur(&mut self, walk: &mut Walk);
}

/// What a walk does with the numbers that it is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Note,
    Compare,
    Move(u64),
}

/// Passes through a state to note it, to compare another one with what has been noted, or to move that one by periods.
#[derive(Debug)]
pub struct Walk {
    step: Step,
    noted: Vec<u64>,
    place: usize,
    /// When the state was noted, and the instant of the state that is compared with it.
    then: Time,
    now: Time,
    /// By how much the sequence numbers of each flow have moved.
    moved: FxHashMap<u64, u32>,
    last_moved: Option<(u64, u32)>,
    /// Only sums are of interest.
    counts: bool,
    /// Whether flows may have been succeeded by others, and by how much the number of each has moved.
    has_successors: bool,
    successors: FxHashMap<u64, u32>,
    /// Flows that have ended; by how much their numbers move has to be found elsewhere in the walk.
    ended: Vec<u64>,
    /// The walk is at a flow that has succeeded another one.
    is_at_successor: bool,
    differs: bool,
    /// The noted state is one that is not compared.
    is_void: bool,
    refusal: Option<&'static str>,
    most: u64,
    until: Time,
}

impl Walk {
    /// A walk that notes a state, at `now`.
    pub fn note(now: Time) -> Self {
        Walk {
            step: Step::Note,
            noted: Vec::new(),
            place: 0,
            then: now,
            now,
            moved: FxHashMap::default(),
            last_moved: None,
            counts: false,
            has_successors: false,
            successors: FxHashMap::default(),
            ended: Vec::new(),
            is_at_successor: false,
            differs: false,
            is_void: false,
            refusal: None,
            most: u64::MAX,
            until: Time::MAX,
        }
    }

    /// A walk that notes the sums of a state, at `now`, and nothing else.
    pub fn note_counts(now: Time) -> Self {
        Walk { counts: true, ..Walk::note(now) }
    }

    /// Whether it passes by sums alone.
    #[inline]
    pub fn counts(&self) -> bool {
        self.counts
    }

    /// The instant of the state that the walk passes through.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The same walk, in which flows may be succeeded by others.
    pub fn with_successors(self) -> Self {
        Walk { has_successors: true, ..self }
    }

    /// The same, with room for that many numbers.
    pub fn with_room(mut self, numbers: usize) -> Self {
        self.noted.reserve(numbers);
        self
    }

    /// Whether flows may be succeeded by others: then what decides which ones begin is part of the state.
    pub fn has_successors(&self) -> bool {
        self.has_successors
    }

    /// The next walk is through another state, of `now`, and compares it with the one that was noted.
    pub fn begin_to_compare(&mut self, now: Time) {
        self.begin(Step::Compare);
        self.now = now;
        (self.differs, self.most, self.until) = (self.is_void, u64::MAX, Time::MAX);
        self.moved.clear();
        self.last_moved = None;
        self.successors.clear();
        self.ended.clear();
    }

    /// The next walk is through the state that was compared last, which was [the same](Self::recurs), and moves it by that many periods.
    ///
    /// # Panics
    /// If it was not the same, or that are more periods than are [known](Self::periods).
    pub fn begin_to_move(&mut self, periods: u64) {
        assert!(self.recurs() && periods <= self.periods(), "a jump into the unknown");
        self.begin(Step::Move(periods));
    }

    fn begin(&mut self, step: Step) {
        (self.step, self.place, self.is_at_successor) = (step, 0, false);
    }

    /// Whether it is worth going on with the walk: it has not met with anything that differs or refuses.
    #[inline]
    pub fn goes_on(&self) -> bool {
        !self.differs && self.refusal.is_none()
    }

    /// Whether the state that was compared is the same as the one that was noted.
    pub fn recurs(&self) -> bool {
        let is_same = self.goes_on() && self.step != Step::Note && self.place == self.noted.len();
        is_same && self.ended.iter().all(|flow| self.successors.contains_key(flow))
    }

    /// How many numbers the walk has passed by.
    pub fn passed_by(&self) -> usize {
        if self.step == Step::Note { self.noted.len() } else { self.place }
    }

    /// What has refused, if anything has.
    pub fn refusal(&self) -> Option<&'static str> {
        self.refusal
    }

    /// The time between the two states.
    pub fn period(&self) -> Time {
        self.now - self.then
    }

    /// How many more periods are known to be the same as the one between the two states, as far as sequence numbers tell.
    pub fn periods(&self) -> u64 {
        self.most
    }

    /// The instant before which they are, as far as deadlines tell.
    pub fn until(&self) -> Time {
        self.until
    }

    /// A state with this in it is not known to recur, whatever else is: a sentence's subject, in mid-sentence.
    #[cold]
    pub fn refuse(&mut self, what: &'static str) {
        if !self.counts {
            self.refusal.get_or_insert(what);
        }
    }

    /// The present state is not known to recur, but others may.
    #[cold]
    pub fn pass_over(&mut self) {
        if !self.counts {
            self.differs = true;
            self.is_void |= self.step == Step::Note;
        }
    }

    /// The number at this place in the noted state; none if there is nothing to do.
    #[inline]
    fn next(&mut self, value: u64) -> Option<u64> {
        if self.counts { None } else { self.next_sum(value) }
    }

    /// The same of a sum.
    #[inline]
    fn next_sum(&mut self, value: u64) -> Option<u64> {
        if self.step == Step::Note {
            self.noted.push(value);
            return None;
        }
        let noted = self.noted.get(self.place).copied();
        self.place += 1;
        self.differs |= noted.is_none();
        noted.filter(|_| !self.differs)
    }

    /// Something that is the same in every period, such as a length or a state.
    #[inline]
    pub fn exact(&mut self, value: impl Into<u64>) {
        let value = value.into();
        if let Some(noted) = self.next(value) {
            self.differs |= noted != value;
        }
    }

    /// The same for a number of things.
    #[inline]
    pub fn count(&mut self, things: usize) {
        self.exact(things as u64);
    }

    /// The same for what may be missing; returns whether it is there.
    #[inline]
    pub fn is_some<T>(&mut self, what: &Option<T>) -> bool {
        self.exact(what.is_some());
        what.is_some()
    }

    /// Numbers that need not be the same: as many as there were and what they were when the state was noted, once that is known.
    pub fn list(&mut self, values: &[u64]) -> Option<Vec<u64>> {
        if self.step == Step::Note && !self.counts {
            self.noted.push(values.len() as u64);
            self.noted.extend_from_slice(values);
            return None;
        }
        let len = usize::try_from(self.next(0)?).ok()?;
        let noted = self.noted.get(self.place..self.place + len)?.to_vec();
        self.place += len;
        Some(noted)
    }

    /// Something that must have been drawn from equally often at both instants, hence never: what a stream says next is never the same again.
    pub fn stream(&mut self, stream: &Stream) {
        if self.counts {
            return;
        }
        let mut ahead = stream.clone();
        self.exact(ahead.next_u64());
        self.exact(ahead.next_u64());
    }

    /// An instant that goes with the time: it has moved by a period. [`Time::MAX`] stays what it is.
    #[inline]
    pub fn time(&mut self, at: &mut Time) {
        let Some(noted) = self.next(at.0) else { return };
        if *at == Time::MAX && noted == Time::MAX.0 {
            return;
        }
        match self.step {
            Step::Move(periods) => at.0 += periods * self.period().0,
            _ => self.differs |= at.0.wrapping_sub(noted) != self.period().0 || *at == Time::MAX,
        }
    }

    /// An instant of which it matters only how far it is ahead, if it is: it has moved by a period or has passed.
    #[inline]
    pub fn since(&mut self, at: &mut Time) {
        let Some(noted) = self.next(at.0) else { return };
        let is_moving = at.0.wrapping_sub(noted) == self.period().0 && *at != Time::MAX;
        let has_passed = *at <= self.now && noted <= self.then.0 || *at == Time::MAX && noted == Time::MAX.0;
        match self.step {
            Step::Move(periods) if is_moving => at.0 += periods * self.period().0,
            _ => self.differs |= !is_moving && !has_passed,
        }
    }

    /// When something last happened, of which nothing follows: it happens again in every period, or in none.
    #[inline]
    pub fn last(&mut self, at: &mut Time) {
        let Some(noted) = self.next(at.0) else { return };
        let is_moving = at.0.wrapping_sub(noted) == self.period().0;
        match self.step {
            Step::Move(periods) if is_moving => at.0 += periods * self.period().0,
            _ => self.differs |= !is_moving && at.0 != noted,
        }
    }

    /// An instant that stays where it is while time comes nearer, and before which everything recurs. [`Time::MAX`]: never. In a walk of counts it comes nearer as that moves.
    #[inline]
    pub fn deadline(&mut self, at: &mut Time) {
        self.exact(at.0);
        self.until = self.until.min(*at);
        if self.counts && *at != Time::MAX {
            *at = *at - self.time_moved();
        }
    }

    /// An instant at which it is looked whether something is due, where it is known exactly when that is: it may be any, and moves with the time. [`Time::MAX`]: none.
    #[inline]
    pub fn alarm(&mut self, at: &mut Time) {
        if let (Some(_), Step::Move(periods)) = (self.next(at.0), self.step)
            && *at != Time::MAX
        {
            at.0 += periods * self.period().0;
        }
    }

    /// By how much the time moves in this walk, for [alarms](Self::alarm) that may be more or fewer than when the state was noted.
    pub fn time_moved(&self) -> Time {
        if let Step::Move(periods) = self.step { self.period() * periods } else { Time::ZERO }
    }

    /// A sum, which grows by as much in every period; that of a flow that has succeeded another one is the same.
    #[inline]
    pub fn sum(&mut self, sum: &mut u64) {
        if self.is_at_successor {
            return self.exact(*sum);
        }
        if let (Some(noted), Step::Move(periods)) = (self.next_sum(*sum), self.step) {
            *sum = sum.wrapping_add(sum.wrapping_sub(noted).wrapping_mul(periods));
        }
    }

    /// The same in 32 bits, which must suffice.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "Self::most bounds it")]
    pub fn sum32(&mut self, sum: &mut u32) {
        if self.is_at_successor {
            return self.exact(*sum);
        }
        let Some(noted) = self.next_sum(u64::from(*sum)) else { return };
        let each = u64::from(*sum).saturating_sub(noted);
        match self.step {
            Step::Move(periods) => *sum += (each * periods) as u32,
            _ => self.bound(u64::from(u32::MAX - *sum), each),
        }
    }

    /// The same in 128 bits.
    #[expect(clippy::cast_possible_truncation, reason = "cut into halves")]
    pub fn sum128(&mut self, sum: &mut u128) {
        if self.is_at_successor {
            self.exact(*sum as u64);
            return self.exact((*sum >> 64) as u64);
        }
        let halves = (self.next_sum(*sum as u64), self.next_sum((*sum >> 64) as u64));
        if let ((Some(low), Some(high)), Step::Move(periods)) = (halves, self.step) {
            let noted = u128::from(high) << 64 | u128::from(low);
            *sum = sum.wrapping_add(sum.wrapping_sub(noted).wrapping_mul(u128::from(periods)));
        }
    }

    /// A sum of 32 bits whose last change decides what follows, so that a state in which it has grown is another one.
    #[inline]
    pub fn events(&mut self, sum: &mut u32) {
        match self.counts {
            true => self.sum32(sum),
            false => self.exact(*sum),
        }
    }

    /// The same of a time.
    #[inline]
    pub fn sum_time(&mut self, sum: &mut Time) {
        self.sum(&mut sum.0);
    }

    /// A number of which nothing follows in a period, but to which the same is done each time that it is counted: it is done as often again in every period.
    #[expect(clippy::cast_possible_truncation, reason = "numbers of 32 bits, which go round")]
    pub fn repeated(&mut self, count: &mut u32, number: &mut f64, again: impl Fn(f64) -> f64) {
        if self.is_at_successor {
            self.exact(*count);
            return self.exact(number.to_bits());
        }
        let noted = (self.next(u64::from(*count)), self.next(number.to_bits()));
        if let ((Some(noted), Some(_)), Step::Move(periods)) = (noted, self.step) {
            let each = count.wrapping_sub(noted as u32);
            for _ in 0..u64::from(each) * periods {
                let next = again(*number);
                if next.to_bits() == number.to_bits() {
                    break;
                }
                *number = next;
            }
            *count = moved_on(*count, each, periods);
        }
    }

    /// A sequence number of a flow, all of which move by the same in a period.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the difference of two numbers of 32 bits")]
    pub fn seq(&mut self, flow: u64, seq: &mut u32) {
        if self.is_at_successor {
            return self.exact(*seq);
        }
        let Some(noted) = self.next(u64::from(*seq)) else { return };
        let moved = seq.wrapping_sub(noted as u32);
        match self.step {
            // Of a flow's numbers that go round some may be near the end.
            Step::Move(periods) => *seq = moved_on(*seq, moved, periods),
            _ => self.differs |= moved != self.moved_by(flow, moved),
        }
    }

    /// How many PULLs there have been of a flow, a number that moves by itself. Outside of [a flow's state](Self::begin_flow) it has to be said whether the flow is a [successor](Self::flow).
    #[inline]
    pub fn pulls(&mut self, flow: u64, is_successor: bool, count: &mut u32) {
        match is_successor {
            true => self.exact(*count),
            false => self.seq(flow | 1 << 62, count),
        }
    }

    /// By how much the sequence numbers of a flow move in a period; by `moved` if none has been seen.
    #[inline]
    fn moved_by(&mut self, flow: u64, moved: u32) -> u32 {
        match self.last_moved {
            Some((of, known)) if of == flow => known,
            _ => {
                let known = *self.moved.entry(flow).or_insert(moved);
                self.last_moved = Some((flow, known));
                known
            }
        }
    }

    /// A flow whose next packet has this number, of `count` packets: what is to come recurs as long as the last one is not among it.
    #[inline]
    pub fn ends(&mut self, flow: u64, next: u32, count: u32) {
        self.exact(count);
        if self.step == Step::Compare && !self.counts {
            let each = self.moved_by(flow, 0);
            self.bound(u64::from(count.saturating_sub(next).saturating_sub(1)), u64::from(each));
        }
    }

    fn bound(&mut self, left: u64, each: u64) {
        if let Some(periods) = left.checked_div(each) {
            self.at_most(periods);
        }
    }

    /// No more periods than these are known to be the same.
    pub fn at_most(&mut self, periods: u64) {
        self.most = self.most.min(periods);
    }

    /// The number of a flow from `src`, or of one that takes its place in every period. Says whether it is another one than when the state was noted.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "numbers of 32 bits")]
    pub fn flow(&mut self, src: u32, number: &mut u32) -> bool {
        if !self.has_successors {
            self.exact(*number);
            return false;
        }
        let Some(noted) = self.next(u64::from(*number)) else { return false };
        let moved = number.wrapping_sub(noted as u32);
        match self.step {
            Step::Move(periods) => *number = moved_on(*number, moved, periods),
            _ => self.succeed(src, *number, moved),
        }
        moved != 0
    }

    /// A flow from `src` of this number has ended in the period, and is followed in the next one by a flow whose number is larger by `moved`; or such a flow has been met.
    pub fn succeed(&mut self, src: u32, number: u32, moved: u32) {
        let name = name(src, number);
        self.differs |= *self.successors.entry(name).or_insert(moved) != moved;
        if moved != 0 {
            self.differs |= self.moved_by(name, 0) != 0;
        }
    }

    /// The same, where it is not known by how much: that has to be found elsewhere in the walk.
    pub fn succeed_as_elsewhere(&mut self, src: u32, number: u32) {
        self.ended.push(name(src, number));
    }

    /// The same; what follows is the state of this flow, until [another](Self::begin_flow) begins or [it ends](Self::end_flow).
    #[inline]
    pub fn begin_flow(&mut self, src: u32, number: &mut u32) {
        self.is_at_successor = false;
        self.is_at_successor = self.flow(src, number);
    }

    /// What follows is not the state of a flow.
    pub fn end_flow(&mut self) {
        self.is_at_successor = false;
    }

    /// When a flow began: it stays, and moves with the time for one that has succeeded another one.
    #[inline]
    pub fn start(&mut self, at: &mut Time) {
        match self.is_at_successor {
            true => self.time(at),
            false => self.exact(at.0),
        }
    }

    /// The number of the flow that stands in the place of this one from `src` `periods` later: the same number if the walk has met no successor of it.
    pub fn successor(&self, src: u32, number: u32, periods: u64) -> u32 {
        moved_on(number, self.successors.get(&name(src, number)).copied().unwrap_or(0), periods)
    }

    /// By how much the [sequence numbers](Self::seq) of this name have moved.
    pub fn moved(&self, seq: u64) -> u32 {
        self.moved.get(&seq).copied().unwrap_or(0)
    }

    /// A place that moves by as much in every period: by how much, once it is known.
    #[expect(clippy::cast_possible_truncation, reason = "a number of 32 bits")]
    pub fn place(&mut self, place: u32) -> Option<u32> {
        let noted = self.next(u64::from(place))?;
        Some(place.wrapping_sub(noted as u32))
    }

    /// By how many periods this walk moves the state.
    pub fn periods_to_move(&self) -> u64 {
        if let Step::Move(periods) = self.step { periods } else { 0 }
    }

    /// The length of a list to which is added as much in every period: the entries that the last one has added, once they are known. In a walk that moves by periods they are to be added
    /// again for each of them.
    #[expect(clippy::cast_possible_truncation, reason = "the length of a list")]
    pub fn log(&mut self, len: usize) -> Option<Range<usize>> {
        let noted = self.next(len as u64)? as usize;
        // Without successors nothing ends that could be added.
        self.differs |= len < noted || !self.has_successors && len != noted;
        self.goes_on().then_some(noted..len)
    }

    /// A sequence number with which a flow has been compared until it passed it, at `base`, and will not be compared again: it stays.
    #[inline]
    pub fn passed(&mut self, seq: u32, base: u32) {
        self.exact(seq);
        if seq > base {
            self.pass_over();
        }
    }
}

/// A number that has moved by `moved` in each of some periods.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "numbers of flows have 32 bits, and go round as sequence numbers do"
)]
pub fn moved_on(number: u32, moved: u32, periods: u64) -> u32 {
    number.wrapping_add(moved.wrapping_mul(periods as u32))
}

/// The name of a flow.
fn name(src: u32, number: u32) -> u64 {
    u64::from(src) << u32::BITS | u64::from(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    /// A flow that sends `step` packets every 10 ps, and what is known of it.
    #[derive(Clone, Debug, PartialEq)]
    struct State {
        next: u32,
        acked: u32,
        sent: Time,
        began: Time,
        idle_since: Time,
        bytes: u64,
        waiting: u128,
        packets: u32,
        timer: Time,
    }

    impl Recur for State {
        fn recur(&mut self, walk: &mut Walk) {
            let State { next, acked, sent, began, idle_since, bytes, waiting, packets, timer } = self;
            walk.seq(7, next);
            walk.seq(7, acked);
            walk.ends(7, *next, 1000);
            walk.time(sent);
            walk.exact(began.0);
            walk.since(idle_since);
            walk.sum(bytes);
            walk.sum128(waiting);
            walk.sum32(packets);
            walk.deadline(timer);
        }
    }

    fn at(period: u64) -> (Time, State) {
        let state = State {
            next: 10 + 3 * u32::try_from(period).unwrap(),
            acked: 4 + 3 * u32::try_from(period).unwrap(),
            sent: Time(95 + 10 * period),
            began: Time(5),
            idle_since: Time(50),
            bytes: 7000 + 300 * period,
            waiting: (1u128 << 64).wrapping_sub(5 * u128::from(period)),
            packets: 3 * u32::try_from(period).unwrap(),
            timer: Time(1_000_000),
        };
        (Time(100 + 10 * period), state)
    }

    fn compared(first: u64, (now, mut state): (Time, State)) -> Walk {
        let (then, mut before) = at(first);
        let mut walk = Walk::note(then);
        before.recur(&mut walk);
        walk.begin_to_compare(now);
        state.recur(&mut walk);
        walk
    }

    #[test]
    fn a_state_moves_as_if_the_periods_had_passed() {
        let mut walk = compared(0, at(2));
        assert!(walk.recurs());
        // 1000 − 16 − 1 packets, 6 a period.
        assert_eq!((walk.period(), walk.periods(), walk.until()), (Time(20), 163, Time(1_000_000)));
        let (_, mut state) = at(2);
        walk.begin_to_move(50);
        state.recur(&mut walk);
        assert_eq!(state, at(102).1);
    }

    #[test]
    fn what_differs_is_seen() {
        let differs = |change: fn(&mut State)| {
            let (now, mut state) = at(1);
            change(&mut state);
            !compared(0, (now, state)).recurs()
        };
        assert!(!differs(|_| ()));
        // Sums may grow by anything.
        assert!(!differs(|state| state.bytes += 1));
        // An instant that has passed may be any.
        assert!(!differs(|state| state.idle_since = Time(110)));
        assert!(differs(|state| state.idle_since = Time(111)));
        assert!(differs(|state| state.acked += 1));
        assert!(differs(|state| state.sent = Time(106)));
        assert!(differs(|state| state.began = Time(6)));
        assert!(differs(|state| state.timer = Time(1_000_010)));
    }

    /// A host whose `flow` takes the place of the one before, and what it keeps of those that have ended.
    fn succession(walk: &mut Walk, flow: &mut u32, (begun, sent): (&mut Time, &mut u64), ended: &[u32]) {
        walk.begin_flow(3, flow);
        walk.start(begun);
        walk.sum(sent);
        walk.end_flow();
        for number in walk.log(ended.len()).map_or(&[][..], |new| &ended[new]) {
            walk.succeed_as_elsewhere(3, *number);
        }
    }

    #[test]
    fn flows_are_succeeded_by_others_in_the_same_state() {
        let compared = |flow: u32, begun, sent, ended: &[u32], elsewhere: &[(u32, u32)]| {
            let mut walk = Walk::note(Time(100)).with_successors();
            succession(&mut walk, &mut 4, (&mut Time(70), &mut 9), &[]);
            walk.begin_to_compare(Time(150));
            let (mut flow, mut begun, mut sent) = (flow, Time(begun), sent);
            succession(&mut walk, &mut flow, (&mut begun, &mut sent), ended);
            elsewhere.iter().for_each(|&(number, moved)| walk.succeed(3, number, moved));
            if walk.recurs() {
                walk.begin_to_move(10);
                succession(&mut walk, &mut flow, (&mut begun, &mut sent), ended);
            }
            walk.recurs().then_some((flow, begun, sent))
        };
        let ended = [(5, 2), (4, 2)];
        assert_eq!(compared(6, 120, 9, &[4, 5], &ended), Some((26, Time(620), 9)));
        // The same flow: it has begun when it has, and sums grow.
        assert_eq!(compared(4, 70, 12, &[], &[]), Some((4, Time(70), 42)));
        // Another one began at another time, or has sent something else, or it is not known what follows one that has ended, or that differs.
        assert_eq!(compared(6, 121, 9, &[], &[]), None);
        assert_eq!(compared(6, 120, 10, &[], &[]), None);
        assert_eq!(compared(6, 120, 9, &[4, 5], &ended[..1]), None);
        assert_eq!(compared(6, 120, 9, &[], &[(6, 3)]), None);
    }

    #[test]
    fn numbers_of_flows_stay_where_none_may_be_succeeded() {
        let mut walk = Walk::note(Time(1));
        walk.flow(3, &mut 4);
        walk.begin_to_compare(Time(2));
        walk.flow(3, &mut 5);
        assert!(!walk.recurs());
    }

    #[test]
    fn counts_go_on_and_all_else_stays() {
        let ((then, mut before), (now, mut state)) = (at(0), at(1));
        let mut walk = Walk::note_counts(then);
        before.recur(&mut walk);
        walk.begin_to_compare(now);
        // It need not be the same, nor need anything be known of it.
        (state.acked, state.idle_since) = (state.acked + 7, Time(111));
        let same = state.clone();
        walk.refuse("something that does not recur");
        walk.pass_over();
        state.recur(&mut walk);
        assert!(walk.recurs() && walk.counts());
        assert_eq!((walk.period(), walk.until()), (Time(10), Time(1_000_000)));
        walk.begin_to_move(50);
        state.recur(&mut walk);
        let (_, later) = at(51);
        let expected = State {
            bytes: later.bytes,
            waiting: later.waiting,
            packets: later.packets,
            // What comes from outside has come nearer.
            timer: Time(1_000_000 - 500),
            ..same
        };
        assert_eq!(state, expected);
    }

    #[test]
    fn events_are_counted_or_the_same() {
        let walk = |mut walk: Walk| {
            let mut events = 3;
            walk.events(&mut events);
            walk.begin_to_compare(Time(2));
            events = 5;
            walk.events(&mut events);
            if walk.recurs() {
                walk.begin_to_move(4);
                walk.events(&mut events);
            }
            events
        };
        assert_eq!((walk(Walk::note(Time(1))), walk(Walk::note_counts(Time(1)))), (5, 13));
    }

    #[test]
    fn what_draws_does_not_recur() {
        let (mut walk, mut stream) = (Walk::note(Time(1)), random::Node::Host.stream(1, 2));
        walk.stream(&stream);
        walk.begin_to_compare(Time(2));
        walk.stream(&stream);
        assert!(walk.recurs());
        stream.next_u64();
        walk.begin_to_compare(Time(3));
        walk.stream(&stream);
        assert!(!walk.recurs());
    }

    #[test]
    fn pulls_of_a_flow_move_by_as_many_wherever_they_are_counted() {
        let compared = |is_successor, seen, (seq, in_flight)| {
            let mut walk = Walk::note(Time(1));
            let (mut before, mut under_way, mut first) = (3, 5, 4);
            walk.pulls(7, false, &mut before);
            walk.seq(7, &mut first);
            walk.pulls(7, is_successor, &mut under_way);
            walk.begin_to_compare(Time(2));
            let (mut seen, mut seq, mut in_flight) = (seen, seq, in_flight);
            walk.pulls(7, false, &mut seen);
            walk.seq(7, &mut seq);
            walk.pulls(7, is_successor, &mut in_flight);
            if walk.recurs() {
                walk.begin_to_move(10);
                walk.pulls(7, false, &mut seen);
                walk.seq(7, &mut seq);
                walk.pulls(7, is_successor, &mut in_flight);
            }
            walk.recurs().then_some((seen, seq, in_flight))
        };
        // By three PULLs and two packets in each period.
        assert_eq!(compared(false, 6, (6, 8)), Some((36, 26, 38)));
        assert_eq!(compared(false, 6, (6, 7)), None);
        // Those of a flow that has succeeded another one are as many.
        assert_eq!(compared(true, 6, (6, 8)), None);
        assert_eq!(compared(true, 3, (4, 5)), Some((3, 4, 5)));
    }

    #[test]
    fn what_is_repeated_is_done_as_often_again() {
        let half = |number: f64| number / 2.0;
        let mut walk = Walk::note(Time(1));
        let (mut count, mut number) = (u32::MAX, 64.0);
        walk.repeated(&mut count, &mut number, half);
        walk.begin_to_compare(Time(2));
        (count, number) = (1, 16.0);
        walk.repeated(&mut count, &mut number, half);
        assert!(walk.recurs());
        walk.begin_to_move(3);
        walk.repeated(&mut count, &mut number, half);
        assert_eq!((count, number), (7, 0.25));
        // Of what does not change any more it makes no difference how often it is done.
        walk.begin_to_move(1 << 40);
        (count, number) = (1, 16.0);
        walk.repeated(&mut count, &mut number, half);
        assert_eq!(number, 0.0);
    }

    #[test]
    fn what_is_repeated_is_the_same_in_a_flow_that_has_succeeded_another() {
        let compared = |count: u32, number: f64| {
            let mut walk = Walk::note(Time(1)).with_successors();
            let pass = |flow: u32, (mut count, mut number): (u32, f64), walk: &mut Walk| {
                walk.begin_flow(3, &mut flow.clone());
                walk.repeated(&mut count, &mut number, |number| number / 2.0);
                walk.end_flow();
                walk.exact(9u32);
            };
            pass(4, (2, 8.0), &mut walk);
            walk.begin_to_compare(Time(2));
            pass(5, (count, number), &mut walk);
            walk.recurs()
        };
        assert!(compared(2, 8.0));
        assert!(!compared(3, 8.0) && !compared(2, 4.0));
    }

    #[test]
    fn a_list_is_given_back_and_may_differ() {
        let mut walk = Walk::note(Time(1));
        assert_eq!(walk.list(&[5, 6, 7]), None);
        walk.exact(1u32);
        walk.begin_to_compare(Time(2));
        assert_eq!(walk.list(&[8]), Some(vec![5, 6, 7]));
        walk.exact(1u32);
        assert!(walk.recurs());
        walk.begin_to_move(3);
        assert_eq!(walk.list(&[8]), Some(vec![5, 6, 7]));
        // Of counts there are none, and of what differs already nothing is known.
        assert_eq!(Walk::note_counts(Time(1)).list(&[5]), None);
        walk.begin_to_compare(Time(3));
        walk.exact(4u32);
        assert_eq!(walk.list(&[8]), None);
    }

    #[test]
    fn a_shorter_or_longer_state_differs() {
        let mut walk = Walk::note(Time(1));
        walk.exact(1u32);
        walk.exact(2u32);
        walk.begin_to_compare(Time(2));
        walk.exact(1u32);
        assert!(!walk.recurs() && walk.goes_on());
        walk.begin_to_compare(Time(3));
        [1u32, 2, 3].into_iter().for_each(|value| walk.exact(value));
        assert!(!walk.recurs());
    }

    #[test]
    #[should_panic(expected = "a jump into the unknown")]
    fn nothing_is_skipped_beyond_the_end() {
        compared(0, at(2)).begin_to_move(164);
    }
}
