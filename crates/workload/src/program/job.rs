//! A rank of a training job, as ASTRA-sim or SimAI schedules it, as the work of a host.
//!
//! Ranks count in whole nanoseconds: what arrives between two of them is handled at the later one. What crosses the network is a message's number only; its tag stands in a list of the
//! sender's messages under way, in which the receiver looks it up. It was put there before the message was sent, so it does not depend on threads whether it is found.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netloom_astra::simai::Repetition;
use netloom_astra::{Call, End, Envelope, Network, TrainingRank};
use netloom_topology::HostId;
use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Time};

use super::observer::{RankLog, RoundLog};
use super::runner::{Names, Round, Slowness, name_of_messages, name_of_operations};
use super::{ANY, Action};

/// How the ranks of a training job have ended.
#[derive(Debug, Default)]
pub struct RankEnds {
    ends: Mutex<Vec<Option<End>>>,
    /// SimAI's table of layers.
    layers: Mutex<Option<String>>,
}

impl RankEnds {
    pub(crate) fn new(ranks: u32) -> Arc<Self> {
        Arc::new(RankEnds { ends: Mutex::new(vec![None; ranks as usize]), layers: Mutex::default() })
    }

    /// By rank; `None` if it has not ended.
    pub fn get(&self) -> Vec<Option<End>> {
        locked(&self.ends).clone()
    }

    /// The table of layers that SimAI writes of rank 0, once that has ended; `None` of other training jobs.
    pub fn layers(&self) -> Option<String> {
        locked(&self.layers).clone()
    }

    /// Notes how all have ended.
    pub fn set_all(&self, ends: Vec<Option<End>>) {
        *locked(&self.ends) = ends;
    }

    fn set(&self, rank: u32, end: Option<End>) {
        locked(&self.ends)[rank as usize] = end;
    }
}

/// What a panic elsewhere has left is as good as what was there before: every change is one assignment.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The messages of a rank that have been sent and not been received.
#[derive(Debug, Default)]
struct Sent {
    /// Number of the first.
    first: u32,
    envelopes: VecDeque<Option<Envelope>>,
}

impl Sent {
    fn take(&mut self, number: u32) -> Option<Envelope> {
        let found = self.envelopes.get_mut(number.wrapping_sub(self.first) as usize)?.take();
        while let Some(None) = self.envelopes.front() {
            self.envelopes.pop_front();
            self.first += 1;
        }
        found
    }
}

/// A job with a host for every rank.
#[derive(Debug)]
pub(crate) struct PlacedJob {
    hosts: Box<[HostId]>,
    /// Rank of every host, [`ANY`] where there is none.
    ranks: Box<[u32]>,
    sent: Box<[Mutex<Sent>]>,
    ends: Arc<RankEnds>,
}

impl PlacedJob {
    /// Lays rank r on `placed[r]`; the network has `hosts` hosts.
    pub(crate) fn new(placed: &[HostId], hosts: u32, ends: Arc<RankEnds>) -> Arc<Self> {
        let mut ranks = vec![ANY; hosts as usize];
        for (rank, &host) in (0..).zip(placed) {
            ranks[host as usize] = rank;
        }
        let sent = placed.iter().map(|_| Mutex::default()).collect();
        Arc::new(PlacedJob { hosts: placed.into(), ranks: ranks.into(), sent, ends })
    }
}

/// What is due at a time.
#[derive(Clone, Copy, Debug)]
enum Due {
    Timer,
    Sent(u32),
    Arrived { src: u32, envelope: Envelope },
}

/// The state of one rank: callbacks in, actions out.
#[derive(Clone, Debug)]
pub(crate) struct JobRank {
    placed: Arc<PlacedJob>,
    number: u32,
    start: Time,
    has_begun: bool,
    rank: TrainingRank,
    names: Names,
    /// By time in nanoseconds: what is due, in the order in which it came.
    due: BTreeMap<u64, Vec<Due>>,
    /// How much slower it computes.
    slowness: Option<Box<Slowness>>,
    /// Which of the plan's jobs it is a rank of, and so takes notes.
    job: Option<u16>,
    sent: Sum,
}

/// Messages and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    messages: u64,
    bytes: u64,
}

const PS_PER_NS: u64 = 1000;

/// What a rank asks for while it is called.
struct Asked<'a> {
    placed: &'a PlacedJob,
    number: u32,
    names: Names,
    due: &'a mut BTreeMap<u64, Vec<Due>>,
    actions: &'a mut Vec<Action>,
    soon: VecDeque<Call>,
    slowness: Option<&'a mut Slowness>,
    sent: &'a mut Sum,
}

impl Asked<'_> {
    /// Notes what is due; the host is to call then.
    fn note(&mut self, at: u64, due: Due) {
        let list = self.due.entry(at).or_default();
        if list.is_empty() {
            self.actions.push(Action::Wake { at: Time(at * PS_PER_NS), op: self.names.outside(0) });
        }
        list.push(due);
    }
}

impl Network for Asked<'_> {
    fn send(&mut self, to: u32, envelope: Envelope, number: u32) {
        locked(&self.placed.sent[self.number as usize]).envelopes.push_back(Some(envelope));
        self.sent.messages += 1;
        self.sent.bytes += envelope.bytes;
        self.actions.push(Action::Send {
            dst: self.placed.hosts[to as usize],
            // A message of no bytes is a packet with one.
            bytes: Bytes(envelope.bytes.max(1)),
            number: self.names.outside(number),
            class: 0,
            group: 0,
            nic: None,
        });
    }

    fn wake(&mut self, at: u64) {
        self.note(at, Due::Timer);
    }

    fn soon(&mut self, call: Call) {
        self.soon.push_back(call);
    }

    fn stretch(&mut self, ns: u64) -> u64 {
        let Some(slowness) = &mut self.slowness else { return ns };
        // No computation takes no time, as in ASTRA-sim.
        (slowness.stretch(Time(ns.saturating_mul(PS_PER_NS))).0 / PS_PER_NS).max(1)
    }
}

impl JobRank {
    pub(crate) fn new(placed: Arc<PlacedJob>, rank: TrainingRank, number: u32, start: Time) -> Self {
        JobRank {
            placed,
            number,
            start,
            has_begun: false,
            rank,
            names: Names::ALONE,
            due: BTreeMap::new(),
            slowness: None,
            job: None,
            sent: Sum::default(),
        }
    }

    /// Makes its computations longer or shorter than the traces say, if it is among these ranks.
    pub(crate) fn slow_down(&mut self, slow: &BTreeMap<u32, Slowness>) {
        self.slowness = slow.get(&self.number).cloned().map(Box::new);
    }

    /// Says which of the plan's jobs it is a rank of.
    pub(crate) fn take_notes_of(&mut self, job: u16) {
        self.job = Some(job);
    }

    /// Whether any rank of the job computes.
    pub(crate) fn computes(&self) -> bool {
        self.rank.computes()
    }

    /// The job that it takes notes of.
    pub(crate) fn noted(&self) -> Option<u16> {
        self.job
    }

    /// What there is to note in a run that ended at `end`. Whatever is no computation on the accelerator counts as communication, as in ASTRA-sim.
    pub(crate) fn log(&self, end: Time) -> Option<RankLog> {
        let mut log = RankLog { job: self.job?, rank: self.number, ..RankLog::default() };
        if self.has_begun {
            let start = Time(self.begins() * PS_PER_NS);
            let finished = self.rank.end().map(|end| Time(end.finished * PS_PER_NS));
            let all = finished.unwrap_or(end).saturating_sub(start);
            let computing = all.min(Time(self.rank.computed().saturating_mul(PS_PER_NS)));
            log.rounds.push(RoundLog {
                start,
                end: finished,
                computing,
                sending: all - computing,
                blocked: Time::ZERO,
                bytes: Bytes(self.sent.bytes),
                messages: self.sent.messages,
            });
        }
        Some(log)
    }

    pub(crate) fn share_numbers(&mut self, index: u32, count: u32) {
        self.names = self.names.shared(index, count);
    }

    pub(crate) fn numbers(&self) -> u64 {
        self.rank.load(self.number).messages.saturating_add(1).saturating_mul(self.names.count())
    }

    /// Whether its calculations take times that are drawn.
    pub(crate) fn draws(&self) -> bool {
        self.slowness.as_ref().is_some_and(|slowness| slowness.is_drawn())
    }

    /// Calls with every host of the job: what a rank sends is known only when it does.
    pub(crate) fn each_receiver(&self, visit: &mut dyn FnMut(HostId)) {
        self.placed.hosts.iter().copied().for_each(visit);
    }

    pub(crate) fn largest_message(&self) -> Bytes {
        Bytes(self.rank.load(self.number).largest)
    }

    /// The name of the numbers of its messages.
    fn name_of_messages(&self) -> u64 {
        name_of_messages(self.placed.hosts[self.number as usize], 0)
    }

    /// The name of the job's operations, which all ranks come to in one order.
    fn name_of_job(&self) -> u64 {
        name_of_operations(self.placed.hosts[0], 0)
    }

    /// [Recurs](netloom_units::recurrence) in a walk with successors. Its messages are those of `origin`; `hashes`: which NIC one takes depends on its number.
    pub(crate) fn recur(&mut self, origin: u32, hashes: bool, walk: &mut Walk) {
        let (messages, job, is_drawn) = (self.name_of_messages(), self.name_of_job(), self.draws());
        let JobRank { placed, number, start: _, has_begun, rank, names, due, slowness: _, job: _, sent } =
            self;
        // Ranks count in whole nanoseconds.
        if hashes || is_drawn || !walk.period().0.is_multiple_of(PS_PER_NS) {
            walk.pass_over();
        }
        walk.exact(*has_begun);
        rank.recur(job, messages, walk);
        if !walk.goes_on() {
            return;
        }
        walk.count(due.len());
        for (at, mut list) in std::mem::take(due) {
            let mut at = Time(at * PS_PER_NS);
            walk.time(&mut at);
            walk.count(list.len());
            for due in &mut list {
                match due {
                    Due::Timer => walk.exact(0u32),
                    Due::Sent(number) => {
                        walk.exact(1u32);
                        walk.seq(messages, number);
                    }
                    Due::Arrived { src, envelope } => {
                        walk.exact(2u32);
                        walk.exact(*src);
                        rank.recur_message(envelope, job, walk);
                    }
                }
            }
            due.insert(at.0 / PS_PER_NS, list);
        }
        let mut under_way = locked(&placed.sent[*number as usize]);
        let Sent { first, envelopes } = &mut *under_way;
        let numbers = *first..;
        walk.seq(messages, first);
        walk.count(envelopes.len());
        for (number, envelope) in numbers.zip(envelopes) {
            if walk.is_some(envelope)
                && let Some(envelope) = envelope
            {
                walk.flow(origin, &mut names.outside(number));
                rank.recur_message(envelope, job, walk);
            }
        }
        let Sum { messages, bytes } = sent;
        walk.sum(messages);
        walk.sum(bytes);
    }

    /// By how much the number of a message moves in a period.
    pub(crate) fn succession(&self, number: u32, walk: &Walk) -> u32 {
        let moved = walk.moved(self.name_of_messages());
        self.names.inside(number).map_or(0, |_| self.names.moved_outside(moved))
    }

    /// The repetition of layers that it is in, if any are repeated.
    pub(crate) fn round(&self) -> Option<Round> {
        let time = |ns: u64| Time(ns * PS_PER_NS);
        let Repetition { since, lasted, left } = self.rank.repetition()?;
        Some(Round { since: time(since), lasted: lasted.map(time), left })
    }

    /// How many repetitions of layers have not begun.
    pub(crate) fn rounds_left(&self) -> u32 {
        self.rank.repetitions_left()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.rank.end().is_some()
    }

    pub(crate) fn unfinished(&self) -> Option<String> {
        match self.has_begun {
            true => self.rank.unfinished(),
            false => Some(format!("rank {} has not begun", self.number)),
        }
    }

    /// The first whole nanosecond at which the rank begins.
    fn begins(&self) -> u64 {
        self.start.0.div_ceil(PS_PER_NS)
    }

    /// Lets the rank do something, and what it puts off while it does.
    fn call(
        &mut self,
        now: u64,
        actions: &mut Vec<Action>,
        call: impl FnOnce(&mut TrainingRank, &mut Asked<'_>),
    ) {
        let (placed, number, names) = (self.placed.clone(), self.number, self.names);
        let mut asked = Asked {
            placed: &placed,
            number,
            names,
            due: &mut self.due,
            actions,
            soon: VecDeque::new(),
            slowness: self.slowness.as_deref_mut(),
            sent: &mut self.sent,
        };
        let had_ended = self.rank.end().is_some();
        call(&mut self.rank, &mut asked);
        while let Some(call) = asked.soon.pop_front() {
            self.rank.perform(now, call, &mut asked);
        }
        if let Some(end) = self.rank.end().filter(|_| !had_ended) {
            self.placed.ends.set(self.number, Some(end));
            if let Some(layers) = self.rank.report() {
                *locked(&self.placed.ends.layers) = Some(layers);
            }
        }
    }

    pub(crate) fn begin(&mut self, now: Time, actions: &mut Vec<Action>) {
        *locked(&self.placed.sent[self.number as usize]) = Sent::default();
        self.placed.ends.set(self.number, None);
        if self.number == 0 {
            *locked(&self.placed.ends.layers) = None;
        }
        let at = self.begins();
        match at * PS_PER_NS > now.0 {
            true => {
                actions.push(Action::Wake { at: Time(at * PS_PER_NS), op: self.names.outside(0) });
                self.due.entry(at).or_default();
            }
            false => self.start_nodes(at, actions),
        }
    }

    fn start_nodes(&mut self, now: u64, actions: &mut Vec<Action>) {
        self.has_begun = true;
        self.call(now, actions, |rank, asked| rank.begin(now, asked));
    }

    pub(crate) fn on_wake(&mut self, now: Time, op: u32, actions: &mut Vec<Action>) {
        if self.names.inside(op).is_none() {
            return;
        }
        let ns = now.0 / PS_PER_NS;
        if !self.has_begun && ns == self.begins() {
            self.start_nodes(ns, actions);
        }
        self.happen(ns, actions);
    }

    /// Does what is due, and what becomes due at the same time meanwhile.
    fn happen(&mut self, now: u64, actions: &mut Vec<Action>) {
        let mut next = 0;
        while let Some(&due) = self.due.get(&now).and_then(|list| list.get(next)) {
            next += 1;
            self.call(now, actions, |rank, asked| match due {
                Due::Timer => rank.wake(now, asked),
                Due::Sent(number) => rank.sent(now, number, asked),
                Due::Arrived { src, envelope } => rank.arrived(now, src, envelope, asked),
            });
        }
        self.due.remove(&now);
    }

    /// Something has happened, which the rank notices at the next whole nanosecond.
    fn notice(&mut self, now: Time, due: Due, actions: &mut Vec<Action>) {
        let at = now.0.div_ceil(PS_PER_NS);
        let list = self.due.entry(at).or_default();
        let is_first = list.is_empty();
        list.push(due);
        if is_first && at * PS_PER_NS == now.0 && self.has_begun {
            self.happen(at, actions);
        } else if is_first {
            actions.push(Action::Wake { at: Time(at * PS_PER_NS), op: self.names.outside(0) });
        }
    }

    pub(crate) fn on_sent(&mut self, now: Time, number: u32, actions: &mut Vec<Action>) {
        if let Some(number) = self.names.inside(number).filter(|&number| self.rank.awaits_sent(number)) {
            self.notice(now, Due::Sent(number), actions);
        }
    }

    pub(crate) fn on_received(&mut self, now: Time, src: HostId, number: u32, actions: &mut Vec<Action>) {
        let Some(number) = self.names.inside(number) else { return };
        let src = self.placed.ranks[src as usize];
        let envelope = locked(&self.placed.sent[src as usize]).take(number);
        if let Some(envelope) = envelope {
            self.notice(now, Due::Arrived { src, envelope }, actions);
        }
    }
}
