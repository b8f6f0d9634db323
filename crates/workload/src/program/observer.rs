//! What a rank notes of itself while its program runs.
//!
//! From the beginning of its first round to the end of its last one, a rank is at every instant in one of three states:
//!
//! | state | what the rank does |
//! | --- | --- |
//! | computing | some CPU of it calculates |
//! | sending | none does, and a message of its own has not left completely (or a send or receive takes CPU time) |
//! | blocked | neither: it waits for messages of other ranks |
//!
//! Which part of the time blocked was communication depends on when the message that ended it was sent, which the receiver does not know while
//! it runs; so these intervals are kept, each with that message ([`Wait`]).

use std::ops::Range;

use netloom_topology::HostId;
use netloom_units::recurrence::{Walk, moved_on};
use netloom_units::{Bytes, Time, narrow};

use super::operations::OperationLog;

/// What ranks of programs keep in their [`RankLog`] only where it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// [`RankLog::activities`].
    pub activities: bool,
    /// [`RankLog::operations`].
    pub operations: bool,
}

/// What one rank of a job noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankLog {
    /// The job: a place in [`Plan::jobs`](crate::Plan::jobs).
    pub job: u16,
    /// The rank.
    pub rank: u32,
    /// Its repetitions, as far as they had begun when the run ended.
    pub rounds: Vec<RoundLog>,
    /// Intervals in which it was blocked that ended with a message, in order of time.
    pub waits: Vec<Wait>,
    /// Its parts in collective operations, in order of their beginning.
    pub collectives: Vec<CollectiveLog>,
    /// What it did when, in order of time, where that is asked for ([`Notes`]).
    pub activities: Vec<Activity>,
    /// What became of its operations, in order of their beginning, where that is asked for ([`Notes`]).
    pub operations: Vec<OperationLog>,
}

/// An interval in which a rank was in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The repetition.
    pub round: u32,
    /// The state.
    pub kind: ActivityKind,
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub until: Time,
    /// The message whose arrival ended it: its sender, and its number there.
    pub message: Option<(HostId, u32)>,
}

/// What a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityKind {
    /// Some CPU of it calculates.
    Computing,
    /// None does, and a message of its own has not left completely.
    Sending,
    /// Neither: it waits for messages.
    Waiting,
}

impl ActivityKind {
    /// Every state, in the order of its number.
    pub const ALL: [Self; 3] = [Self::Computing, Self::Sending, Self::Waiting];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            ActivityKind::Computing => "computing",
            ActivityKind::Sending => "sending",
            ActivityKind::Waiting => "waiting",
        }
    }
}

/// One repetition of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundLog {
    /// When its first operation could start.
    pub start: Time,
    /// When its last operation had finished; `None` if the run ended before.
    pub end: Option<Time>,
    /// Time computing.
    pub computing: Time,
    /// Time sending, without computing.
    pub sending: Time,
    /// Time blocked.
    pub blocked: Time,
    /// Payload of the messages that it handed to the transport.
    pub bytes: Bytes,
    /// Their number.
    pub messages: u64,
}

impl RoundLog {
    /// The same some time later.
    fn later(&self, time: Time) -> Self {
        RoundLog { start: self.start + time, end: self.end.map(|end| end + time), ..self.clone() }
    }

    /// [Recurs](netloom_units::recurrence) as the last one; it may be `another` one than when the state was noted.
    fn recur(&mut self, another: bool, walk: &mut Walk) {
        let RoundLog { start, end, computing, sending, blocked, bytes, messages } = self;
        let mut until = end.unwrap_or(Time::MAX);
        let sums = [&mut computing.0, &mut sending.0, &mut blocked.0, &mut bytes.0, messages];
        if another {
            [start, &mut until].into_iter().for_each(|at| walk.time(at));
            sums.into_iter().for_each(|sum| walk.exact(*sum));
        } else {
            walk.exact(start.0);
            walk.exact(until.0);
            sums.into_iter().for_each(|sum| walk.sum(sum));
        }
        *end = (until != Time::MAX).then_some(until);
    }
}

/// An interval in which a rank was blocked, and the message whose arrival ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The repetition.
    pub round: u32,
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub until: Time,
    /// The sender of the message.
    pub src: HostId,
    /// The message's number at its sender.
    pub number: u32,
}

/// A rank's part in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveLog {
    /// Which one: a place in [`JobPlan::collectives`](crate::JobPlan::collectives).
    pub collective: u32,
    /// The repetition.
    pub round: u32,
    /// When the rank's first send or receive of it could start.
    pub start: Time,
    /// When its last one had finished; `None` if the run ended before.
    pub end: Option<Time>,
}

/// What a rank does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It has not begun, or has done its work.
    #[default]
    Idle,
    Computing,
    Sending,
    Blocked,
}

/// Takes the notes.
#[derive(Clone, Debug, Default)]
pub(super) struct Observer {
    pub(super) log: RankLog,
    state: State,
    /// Since when the state has held, or been noted last.
    since: Time,
    /// CPUs that calculate.
    computing: u32,
    /// Messages that the transport is not done with, and CPUs that send or receive.
    sending: u32,
    /// The message whose arrival is the reason of the present call.
    arrived: Option<(HostId, u32)>,
    /// Of which part in a collective each entry of [`RankLog::collectives`] is.
    parts: Vec<u32>,
    /// Whether [`RankLog::activities`] are wanted.
    keeps_activities: bool,
}

impl Observer {
    /// Whether every interval is kept from now on.
    pub(super) fn keep_activities(&mut self, are_kept: bool) {
        self.keeps_activities = are_kept;
    }

    /// A CPU takes up an operation, or is done with it.
    pub(super) fn occupy(&mut self, is_calculation: bool, begins: bool) {
        let count = if is_calculation { &mut self.computing } else { &mut self.sending };
        *count = if begins { *count + 1 } else { *count - 1 };
    }

    /// A message is handed to the transport.
    pub(super) fn send(&mut self, bytes: Bytes) {
        self.sending += 1;
        if let Some(round) = self.log.rounds.last_mut() {
            round.bytes.0 += bytes.0;
            round.messages += 1;
        }
    }

    /// The transport is done with a message.
    pub(super) fn sent(&mut self) {
        self.sending -= 1;
    }

    /// A message has arrived: the reason of this call.
    pub(super) fn arrived(&mut self, src: HostId, number: u32) {
        self.arrived = Some((src, number));
    }

    /// The message whose arrival is the reason of this call.
    pub(super) fn arrival(&self) -> Option<(HostId, u32)> {
        self.arrived
    }

    /// Messages that the transport is not done with.
    pub(super) fn sending(&self) -> u32 {
        self.sending
    }

    /// Whether a repetition has begun and its end has not been noted.
    pub(super) fn is_in_round(&self) -> bool {
        self.log.rounds.last().is_some_and(|round| round.end.is_none())
    }

    /// A repetition begins.
    pub(super) fn begin_round(&mut self, now: Time) {
        self.log.rounds.push(RoundLog { start: now, ..RoundLog::default() });
        self.since = now;
    }

    /// A repetition ends.
    pub(super) fn end_round(&mut self, now: Time) {
        self.note(now);
        if let Some(round) = self.log.rounds.last_mut() {
            round.end = Some(now);
        }
    }

    /// The call ends; `is_idle` says whether the rank has not begun, or has done its work.
    pub(super) fn end_call(&mut self, now: Time, is_idle: bool) {
        let state = match (is_idle, self.computing, self.sending) {
            (true, ..) => State::Idle,
            (_, 0, 0) => State::Blocked,
            (_, 0, _) => State::Sending,
            _ => State::Computing,
        };
        // What ends a wait is what the next wait may be for, too.
        if state != self.state || self.state == State::Blocked {
            self.note(now);
            self.state = state;
        }
        self.arrived = None;
    }

    /// A rank's part in a collective begins; the place of the note.
    pub(super) fn begin_collective(&mut self, now: Time, (part, collective): (u32, u32)) -> u32 {
        self.parts.push(part);
        let round = narrow::<u32>(self.log.rounds.len()) - 1;
        self.log.collectives.push(CollectiveLog { collective, round, start: now, end: None });
        narrow::<u32>(self.log.collectives.len()) - 1
    }

    /// It ends.
    pub(super) fn end_collective(&mut self, now: Time, place: u32) {
        self.log.collectives[place as usize].end = Some(now);
    }

    /// Repeats the notes about parts in collectives for each of `periods`. `logged` are the notes that the last period has added, and `rounds` the rounds that it had. `open` are the places of the notes about parts
    /// that have not ended, now and afterwards. `next` is the part, and its collective, that comes in the place of a part one period later.
    pub(super) fn log_again(
        &mut self,
        (logged, rounds): (Range<usize>, u32),
        (periods, period): (u32, Time),
        open: &[(u32, u32)],
        next: impl Fn(u32) -> (u32, u32),
    ) {
        let (log, each) = (&mut self.log.collectives, logged.len());
        if each == 0 {
            return;
        }
        let first = open.iter().map(|&(now, _)| now as usize).min().unwrap_or(log.len());
        for place in log.len()..log.len() + each * periods as usize {
            let (part, collective) = next(self.parts[place - each]);
            let CollectiveLog { round, start, .. } = log[place - each];
            self.parts.push(part);
            let round = round + rounds;
            log.push(CollectiveLog { collective, round, start: start + period, end: None });
        }
        let is_open = |place: usize| open.iter().any(|&(_, later)| later as usize == place);
        for place in first..log.len() {
            if log[place].end.is_none() && !is_open(place) {
                log[place].end = log[place - each].end.map(|end| end + period);
            }
        }
    }

    /// The notes of a run that ended at `end`.
    pub(super) fn finish(&mut self, end: Time) -> RankLog {
        self.note(end.max(self.since));
        std::mem::take(&mut self.log)
    }

    /// [Recurs](netloom_units::recurrence), except for parts in collectives ([`log_again`](Self::log_again)): the notes of a period are repeated. `ended`: the rounds that have ended in it. `moved`: by how much the
    /// number of a message from a host moves.
    pub(super) fn recur(&mut self, ended: u32, walk: &mut Walk, moved: impl Fn(HostId, u32, &Walk) -> u32) {
        let Observer { log, state, since, computing, sending, arrived, parts: _, keeps_activities } = self;
        let RankLog { job: _, rank: _, rounds, waits, collectives: _, activities: _, operations: _ } = log;
        if *keeps_activities {
            walk.refuse("what is kept of the activities of ranks");
        }
        if arrived.is_some() {
            walk.pass_over();
        }
        walk.exact(*state as u8);
        walk.last(since);
        walk.exact(*computing);
        walk.exact(*sending);
        if walk.place(narrow(rounds.len())).is_some_and(|begun| begun != ended) {
            walk.pass_over();
        }
        if let Some(mut last) = rounds.pop() {
            for _ in 0..u64::from(ended) * walk.periods_to_move() {
                rounds.push(rounds[rounds.len() - ended as usize].later(walk.period()));
            }
            last.recur(ended > 0, walk);
            rounds.push(last);
        }
        let Some(new) = walk.log(waits.len()) else { return };
        for period in 1..=walk.periods_to_move() {
            for place in new.clone() {
                let Wait { round, from, until, src, number } = waits[place];
                let later = walk.period() * period;
                let number = moved_on(number, moved(src, number, walk), period);
                let round = moved_on(round, ended, period);
                waits.push(Wait { round, from: from + later, until: until + later, src, number });
            }
        }
    }

    /// Adds the time since the last note to what the rank did.
    fn note(&mut self, now: Time) {
        let (from, lasted) = (self.since, now.saturating_sub(self.since));
        self.since = now;
        let index = narrow::<u32>(self.log.rounds.len());
        let Some(round) = self.log.rounds.last_mut().filter(|_| lasted > Time::ZERO) else { return };
        let kind = match self.state {
            State::Idle => return,
            State::Computing => {
                round.computing += lasted;
                ActivityKind::Computing
            }
            State::Sending => {
                round.sending += lasted;
                ActivityKind::Sending
            }
            State::Blocked => {
                round.blocked += lasted;
                if let Some((src, number)) = self.arrived {
                    self.log.waits.push(Wait { round: index - 1, from, until: now, src, number });
                }
                ActivityKind::Waiting
            }
        };
        if self.keeps_activities {
            let message = self.arrived.filter(|_| kind == ActivityKind::Waiting);
            self.log.activities.push(Activity { round: index - 1, kind, from, until: now, message });
        }
    }
}
