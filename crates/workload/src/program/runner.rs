//! One rank's progress through its program.

mod recur;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use netloom_topology::HostId;
use netloom_units::{Bytes, Time, narrow};

pub(super) use self::recur::{name_of_messages, name_of_operations};
use super::mailbox::{Mailbox, Queue};
use super::observer::{Notes, Observer, RankLog};
use super::operations::Operations;
use super::stall::Waits;
use super::{ANY, Action, Nics, Op, OpKind, Placed, RankProgram};
use crate::random::{RngExt, Stream};

/// The state of one rank: callbacks in, actions out.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    placed: Arc<Placed>,
    rank: u32,
    /// When the rank begins.
    start: Time,
    /// Rounds to come after this one.
    rounds_left: u32,
    /// Operations of this round that have not finished.
    left: u32,
    /// Per lane, in this round: of those before, all have finished; of those from the second one on, none has begun, nor has any been that it waits for.
    windows: Box<[Range<u32>]>,
    /// Per operation: how many others it waits for, 0 once it is ready; while it stands in a queue the next one there (the count is
    /// no longer needed); [`FINISHED`] in the end.
    state: Box<[u32]>,
    /// Operations that may start.
    ready: VecDeque<u32>,
    cpus: Box<[Cpu]>,
    /// Per outbound channel: messages sent so far, in all rounds.
    sent: Box<[u32]>,
    /// The operations of the messages sent in this round, channel by channel.
    senders: Box<[u32]>,
    mailbox: Mailbox,
    names: Names,
    observer: Observer,
    /// Where they are kept.
    operations: Option<Box<Operations>>,
    /// Per part in a collective: how many operations of it have not finished in this round, and the place of the note about it.
    parts: Box<[(u32, u32)]>,
    /// How much longer its calculations take than the program says.
    slowness: Option<Box<Slowness>>,
}

/// A repetition that a rank of a program has begun.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// When.
    pub since: Time,
    /// How long the one before has lasted, if there was one.
    pub lasted: Option<Time>,
    /// How many come after it.
    pub left: u32,
}

/// A factor on the duration of calculations, in millionths.
#[derive(Clone, Debug)]
pub(crate) enum Slowness {
    /// The same for all.
    Constant(u64),
    /// Drawn for each, uniformly from the first to the second.
    Drawn(u64, u64, Stream),
}

impl Slowness {
    /// Whether it is another one each time.
    pub(super) fn is_drawn(&self) -> bool {
        matches!(self, Slowness::Drawn(..))
    }

    /// How long a calculation takes.
    pub(super) fn stretch(&mut self, duration: Time) -> Time {
        let millionths = match self {
            Slowness::Constant(factor) => *factor,
            Slowness::Drawn(least, most, stream) => stream.random_range(*least..=*most),
        };
        let picoseconds = u128::from(duration.0) * u128::from(millionths) / 1_000_000;
        Time(u64::try_from(picoseconds).unwrap_or(u64::MAX))
    }
}

/// How messages and wake-ups are distinguished from those of other programs at the same hosts: n becomes `n * count + index`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    index: u32,
    count: u32,
}

impl Names {
    /// Of a program without others.
    pub(super) const ALONE: Names = Names { index: 0, count: 1 };

    /// Those among them that are `index` modulo `count`.
    pub(super) fn shared(self, index: u32, count: u32) -> Self {
        Names { index: self.index * count + index, count: self.count * count }
    }

    /// How many programs there are.
    pub(super) fn count(self) -> u64 {
        self.count.into()
    }

    pub(super) fn outside(self, name: u32) -> u32 {
        name * self.count + self.index
    }

    /// By how much an outside name moves where it moves by `inside` in this program.
    pub(super) fn moved_outside(self, inside: u32) -> u32 {
        inside.wrapping_mul(self.count)
    }

    /// `None` if it is not the name of something of this program.
    pub(super) fn inside(self, name: u32) -> Option<u32> {
        (name % self.count == self.index).then(|| name / self.count)
    }
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    busy: bool,
    queue: Queue,
}

/// Why receives end.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// The message that the observer knows of has arrived.
    Message,
    /// This operation sends to its own rank.
    Send(u32),
}

/// The state of an operation that has finished (no operation has this index).
const FINISHED: u32 = ANY - 1;

impl Runner {
    /// Calls with every host to which the rank sends, itself perhaps among them.
    pub(crate) fn each_receiver(&self, visit: &mut dyn FnMut(HostId)) {
        let Placed { program, hosts, .. } = &*self.placed;
        program.ranks[self.rank as usize].outbound.iter().for_each(|to| visit(hosts[to.dst as usize]));
    }

    /// Whether its calculations take times that are drawn.
    pub(crate) fn draws(&self) -> bool {
        self.slowness.as_ref().is_some_and(|slowness| slowness.is_drawn())
    }

    /// The largest message that the rank sends.
    pub(crate) fn largest_message(&self) -> Bytes {
        let sends =
            self.placed.program.ranks[self.rank as usize].ops.iter().filter(|op| op.kind == OpKind::Send);
        Bytes(sends.map(|op| op.value).max().unwrap_or(0))
    }

    pub(crate) fn new(placed: Arc<Placed>, rank: u32, start: Time) -> Self {
        let program = &placed.program.ranks[rank as usize];
        Runner {
            rank,
            start,
            rounds_left: placed.program.rounds,
            left: 0,
            windows: program.lanes.iter().map(|&first| first..first).collect(),
            state: vec![0; program.ops.len()].into(),
            ready: VecDeque::new(),
            cpus: vec![Cpu { busy: false, queue: Queue::EMPTY }; program.cpus.into()].into(),
            sent: vec![0; program.outbound.len()].into(),
            senders: vec![ANY; program.sends as usize].into(),
            mailbox: Mailbox::new(program),
            names: Names::ALONE,
            observer: Observer::default(),
            operations: None,
            parts: vec![(0, ANY); program.collectives.len()].into(),
            slowness: None,
            placed,
        }
    }

    /// Makes its calculations longer or shorter than the program says, if it is among these ranks.
    pub(crate) fn slow_down(&mut self, slow: &BTreeMap<u32, Slowness>) {
        self.slowness = slow.get(&self.rank).cloned().map(Box::new);
    }

    /// Keeps more of what it does.
    pub(crate) fn keep_notes(&mut self, Notes { activities, operations }: Notes) {
        self.observer.keep_activities(activities);
        self.operations = operations.then(|| Box::new(Operations::new(self.state.len())));
    }

    /// Says which job it is of: `first` jobs come before those that it knew of.
    pub(crate) fn shift_job(&mut self, first: u16) {
        self.observer.log.job += first;
    }

    /// What the rank has noted of a run that ended at `end`.
    pub(crate) fn take_log(&mut self, end: Time) -> RankLog {
        let mut log = self.observer.finish(end);
        log.rank = self.rank;
        if let Some(operations) = &mut self.operations {
            log.operations = operations.take();
        }
        log
    }

    /// Takes the numbers that are `index` modulo `count` among those it has.
    pub(crate) fn share_numbers(&mut self, index: u32, count: u32) {
        self.names = self.names.shared(index, count);
    }

    /// The highest number of a message or wake-up.
    pub(crate) fn numbers(&self) -> u64 {
        let program = self.program();
        let sends = u64::from(program.sends) * u64::from(self.placed.program.rounds);
        sends.max(program.ops.len() as u64 + 1) * self.names.count()
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most MAX_OPS operations: RankBuilder::push")]
    pub(crate) fn begin(&mut self, now: Time, actions: &mut Vec<Action>) {
        if self.start > now {
            // No operation has this index.
            let op = self.state.len() as u32;
            actions.push(Action::Wake { at: self.start, op: self.names.outside(op) });
        } else {
            self.advance(now, actions);
        }
    }

    pub(crate) fn on_wake(&mut self, now: Time, op: u32, actions: &mut Vec<Action>) {
        let Some(op) = self.names.inside(op) else { return };
        if let Some(&operation) = self.program().ops.get(op as usize) {
            let Op { cpu, .. } = operation;
            self.cpus[cpu as usize].busy = false;
            self.observer.occupy(operation.computes(), false);
            self.after_cpu(op, now, actions);
            while !self.cpus[cpu as usize].busy
                && let Some(next) = self.cpus[cpu as usize].queue.pop(&mut self.state)
            {
                self.occupy(next, Some(op), now, actions);
            }
        }
        self.advance(now, actions);
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most MAX_OPS operations: RankBuilder::push")]
    pub(crate) fn on_sent(&mut self, now: Time, number: u32, actions: &mut Vec<Action>) {
        let Some(number) = self.names.inside(number) else { return };
        let (program, rounds) = (self.program(), self.placed.program.rounds);
        let channel = program.outbound.partition_point(|c| c.first * rounds <= number) as u32 - 1;
        let first = program.outbound[channel as usize].first;
        let slot = first + (number - first * rounds) % program.messages(channel);
        let op = self.senders[slot as usize];
        self.observer.sent();
        self.finish(op, now);
        self.advance(now, actions);
    }

    pub(crate) fn on_received(&mut self, now: Time, src: HostId, number: u32, actions: &mut Vec<Action>) {
        let Some(number) = self.names.inside(number) else { return };
        self.observer.arrived(src, self.names.outside(number));
        let src = self.placed.ranks[src as usize];
        let (channel, place) = self.placed.program.place(src, number);
        self.deliver(channel, place, Cause::Message, now, actions);
        self.advance(now, actions);
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.left == 0 && self.rounds_left == 0
    }

    /// The round that it is in, if it is in one.
    pub(crate) fn round(&self) -> Option<Round> {
        let mut rounds = self.observer.log.rounds.iter().rev();
        let since = rounds.next()?.start;
        let lasted = rounds.next().map(|before| since - before.start);
        Some(Round { since, lasted, left: self.rounds_left })
    }

    /// How many rounds have not begun.
    pub(crate) fn rounds_left(&self) -> u32 {
        self.rounds_left
    }

    /// The job that it is of.
    pub(crate) fn job(&self) -> u16 {
        self.observer.log.job
    }

    /// Its rank, and the host of that.
    pub(crate) fn rank(&self) -> (u32, HostId) {
        (self.rank, self.placed.hosts[self.rank as usize])
    }

    /// What it waits for, if it has not finished.
    pub(super) fn waits(&self) -> Waits {
        match self.mailbox.awaited(self.program()) {
            _ if self.left == 0 => Waits::ToBegin,
            Some((peer, tag)) => Waits::For(peer, tag),
            None if self.observer.sending() > 0 => Waits::ForTransport(self.observer.sending()),
            None => Waits::ForCalculation,
        }
    }

    /// Whether a message with this tag that another rank of the program waits for has been sent from here.
    pub(super) fn has_sent(&self, receiver: &Runner, tag: u32) -> bool {
        let channel =
            self.program().outbound.binary_search_by_key(&(receiver.rank, tag), |out| (out.dst, out.tag));
        channel.is_ok_and(|channel| {
            let inbound = self.program().outbound[channel].inbound;
            self.sent[channel] > receiver.mailbox.accepted(inbound)
        })
    }

    /// How many operations of a kind have finished in this round.
    #[cfg(test)]
    pub(crate) fn finished(&self, kind: OpKind) -> usize {
        let ops = self.program().ops.iter().zip(&self.state);
        ops.filter(|(op, state)| op.kind == kind && **state == FINISHED).count()
    }

    fn program(&self) -> &RankProgram {
        &self.placed.program.ranks[self.rank as usize]
    }

    /// Starts all that may start, round after round.
    fn advance(&mut self, now: Time, actions: &mut Vec<Action>) {
        loop {
            while let Some(op) = self.ready.pop_front() {
                self.start(op, now, actions);
            }
            if self.left == 0 && self.observer.is_in_round() {
                self.observer.end_round(now);
            }
            // Before the first round nothing is left either; messages that come earlier wait in the mailbox.
            if self.left > 0 || self.rounds_left == 0 || now < self.start {
                return self.observer.end_call(now, self.left == 0);
            }
            self.rounds_left -= 1;
            self.begin_round(now);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most MAX_OPS operations: RankBuilder::push")]
    fn begin_round(&mut self, now: Time) {
        self.observer.begin_round(now);
        if let Some(operations) = &mut self.operations {
            operations.begin_round();
        }
        let program = &self.placed.program.ranks[self.rank as usize];
        for (left, part) in self.parts.iter_mut().zip(&program.collectives) {
            *left = (part.end - part.first, ANY);
        }
        self.left = program.ops.len() as u32;
        self.state.fill(0);
        program.dependents.iter().for_each(|d| self.state[(d & !super::ON_START) as usize] += 1);
        self.ready.extend((0..self.left).filter(|&op| self.state[op as usize] == 0));
        self.windows = program.lanes.iter().map(|&first| first..first).collect();
        for &op in &self.ready {
            self.windows[program.lane(op)].end = op + 1;
        }
    }

    /// The part in a collective to which an operation belongs.
    fn part(&self, op: u32) -> Option<usize> {
        let parts = &self.program().collectives;
        let place = parts.partition_point(|part| part.end <= op);
        parts.get(place).is_some_and(|part| part.first <= op).then_some(place)
    }

    fn start(&mut self, op: u32, now: Time, actions: &mut Vec<Action>) {
        if let Some(part) = self.part(op)
            && self.parts[part].1 == ANY
        {
            let collective = self.program().collectives[part].collective;
            self.parts[part].1 = self.observer.begin_collective(now, (narrow(part), collective));
        }
        match self.program().ops[op as usize].kind {
            OpKind::Recv => {
                self.note_begin(op, None, now);
                self.release(op, true);
                let program = &self.placed.program.ranks[self.rank as usize];
                if self.mailbox.post(program, op, &mut self.state) {
                    self.await_cpu(op, now, actions);
                }
            }
            _ => self.await_cpu(op, now, actions),
        }
    }

    /// Gives the operation its CPU, or a place in the queue for it. What takes no time there needs no CPU, except for
    /// calculations, which keep their order.
    fn await_cpu(&mut self, op: u32, now: Time, actions: &mut Vec<Action>) {
        let operation = &self.program().ops[op as usize];
        let (cpu, calc) = (operation.cpu as usize, operation.kind == OpKind::Calc);
        let Cpu { busy, queue } = &mut self.cpus[cpu];
        let waits = calc || self.placed.program.overhead > Time::ZERO;
        if waits && (*busy || !queue.is_empty()) {
            queue.push(op, &mut self.state);
        } else {
            self.occupy(op, None, now, actions);
        }
    }

    /// An operation runs: as the last of those that it waited for has begun or ended, or as `freed_by` has left its CPU.
    fn note_begin(&mut self, op: u32, freed_by: Option<u32>, now: Time) {
        if self.operations.is_none() {
            return;
        }
        let collective = self.part(op).map(|part| self.program().collectives[part].collective);
        let operation = self.program().ops[op as usize];
        if let Some(operations) = &mut self.operations {
            operations.begin(op, &operation, collective, freed_by, now);
        }
    }

    /// The operation has its CPU, which another may have left for it.
    fn occupy(&mut self, op: u32, freed_by: Option<u32>, now: Time, actions: &mut Vec<Action>) {
        let operation = self.program().ops[op as usize];
        let (kind, cpu) = (operation.kind, operation.cpu as usize);
        let duration = match (kind, &mut self.slowness) {
            (OpKind::Calc, Some(slowness)) if operation.value > 0 && operation.computes() => {
                slowness.stretch(Time(operation.value))
            }
            (OpKind::Calc, _) => Time(operation.value),
            _ => self.placed.program.overhead,
        };
        if kind != OpKind::Recv {
            self.note_begin(op, freed_by, now);
            self.release(op, true);
        }
        if duration == Time::ZERO {
            self.after_cpu(op, now, actions);
        } else {
            self.cpus[cpu].busy = true;
            self.observer.occupy(operation.computes(), true);
            let at = Time(now.0.saturating_add(duration.0));
            actions.push(Action::Wake { at, op: self.names.outside(op) });
        }
    }

    /// What the operation does once it needs its CPU no more.
    fn after_cpu(&mut self, op: u32, now: Time, actions: &mut Vec<Action>) {
        match self.program().ops[op as usize].kind {
            OpKind::Send => self.send(op, now, actions),
            OpKind::Recv | OpKind::Calc => self.finish(op, now),
        }
    }

    fn send(&mut self, op: u32, now: Time, actions: &mut Vec<Action>) {
        let (program, rounds) = (self.program(), self.placed.program.rounds);
        let operation = program.ops[op as usize];
        let nic = match self.placed.program.nics {
            Nics::Chosen => None,
            Nics::OfCpus(cpus) => Some(operation.cpu / cpus),
            Nics::Given => Some(program.nics.get(op as usize).copied().unwrap_or(0).into()),
        };
        let (channel, messages) =
            (program.outbound[operation.channel as usize], program.messages(operation.channel));
        let sent = &mut self.sent[operation.channel as usize];
        let place = *sent;
        *sent += 1;
        if operation.peer == self.rank {
            self.finish(op, now);
            self.deliver(channel.inbound, place, Cause::Send(op), now, actions);
            return;
        }
        self.senders[(channel.first + place % messages) as usize] = op;
        self.observer.send(Bytes(operation.value.max(1)));
        let number = self.names.outside(channel.first * rounds + place);
        let host = self.placed.hosts[self.rank as usize];
        if let Some(operations) = &mut self.operations {
            operations.message(op, (host, number));
        }
        actions.push(Action::Send {
            dst: self.placed.hosts[operation.peer as usize],
            bytes: Bytes(operation.value.max(1)),
            number,
            class: 0,
            group: operation.group.into(),
            nic,
        });
    }

    /// A message has arrived.
    fn deliver(&mut self, channel: u32, place: u32, cause: Cause, now: Time, actions: &mut Vec<Action>) {
        if !self.mailbox.arrive(channel, place) {
            return;
        }
        loop {
            let program = &self.placed.program.ranks[self.rank as usize];
            if let Some(op) = self.mailbox.accept(program, channel, &mut self.state) {
                self.note_arrival(op, cause);
                self.await_cpu(op, now, actions);
            }
            if !self.mailbox.advance(channel) {
                return;
            }
        }
    }

    /// What ends a receive.
    fn note_arrival(&mut self, receive: u32, cause: Cause) {
        let Some(operations) = &mut self.operations else { return };
        match cause {
            Cause::Send(send) => operations.sent_to_oneself(receive, send),
            Cause::Message => {
                let message = self.observer.arrival().expect("it is handled because a message has arrived");
                operations.message(receive, message);
            }
        }
    }

    fn finish(&mut self, op: u32, now: Time) {
        if let Some(operations) = &mut self.operations {
            operations.end(op, now);
        }
        if let Some(part) = self.part(op) {
            let (left, note) = &mut self.parts[part];
            *left -= 1;
            if *left == 0 {
                self.observer.end_collective(now, *note);
            }
        }
        self.release(op, false);
        self.state[op as usize] = FINISHED;
        self.left -= 1;
    }

    /// Notifies those that wait for an operation that it has started or finished.
    fn release(&mut self, op: u32, started: bool) {
        let program = &self.placed.program.ranks[self.rank as usize];
        for later in program.dependents(op, started) {
            let window = &mut self.windows[program.lane(later)];
            window.end = window.end.max(later + 1);
            let waits = &mut self.state[later as usize];
            *waits -= 1;
            if *waits == 0 {
                self.ready.push_back(later);
                if let Some(operations) = &mut self.operations {
                    operations.ready(later, op);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Accept, RankBuilder, RoundLog, Wait, build_all};

    /// Rank 1, which answers every one of its receives (in order) with as many bytes to rank 2, and has begun. `before`
    /// is a calculation that its receives wait for. Messages come from ranks 0 and 2, by their tags.
    fn answering(from_0: &[u32], from_2: &[u32], receives: &[(Accept, Accept)], before: bool) -> Runner {
        let program = build_all(3, 1, Time::ZERO, |rank| {
            let mut builder = RankBuilder::default();
            let tags = if rank == 0 { from_0 } else { from_2 };
            if rank == 1 {
                let calc = builder.calc(Time(u64::from(before)));
                for (&(src, tag), bytes) in receives.iter().zip(1..) {
                    let (recv, send) = (builder.recv(src, tag), builder.send(2, Bytes(bytes), 9));
                    builder.requires(send, recv);
                    builder.requires(recv, calc);
                }
            } else {
                tags.iter().for_each(|&tag| {
                    builder.send(1, Bytes(1), tag);
                });
            }
            if rank == 2 {
                receives.iter().for_each(|_| {
                    builder.recv(Accept::Only(1), Accept::Only(9));
                });
            }
            builder
        });
        let mut runner = Runner::new(Placed::new(program.unwrap(), &[0, 1, 2], 3), 1, Time::ZERO);
        runner.begin(Time::ZERO, &mut Vec::new());
        runner
    }

    /// The receives that are answered, counted from 1.
    fn answers(actions: Vec<Action>) -> Vec<u64> {
        let bytes = |action| match action {
            Action::Send { bytes, .. } => bytes.0,
            Action::Wake { .. } => panic!("nothing to wait for"),
        };
        actions.into_iter().map(bytes).collect()
    }

    fn arrive(runner: &mut Runner, src: u32, number: u32) -> Vec<u64> {
        let mut actions = Vec::new();
        runner.on_received(Time(9), src, number, &mut actions);
        answers(actions)
    }

    const FROM_0: (Accept, Accept) = (Accept::Only(0), Accept::Only(5));
    const FROM_ANY: (Accept, Accept) = (Accept::Any, Accept::Only(5));
    const ANYTHING: (Accept, Accept) = (Accept::Any, Accept::Any);

    #[test]
    fn messages_that_overtake_others_of_their_tag_wait_for_them() {
        for receives in [[FROM_0; 3], [FROM_ANY; 3]] {
            let mut runner = answering(&[5, 5, 5], &[], &receives, false);
            assert_eq!(arrive(&mut runner, 0, 2), [0; 0]);
            assert_eq!(arrive(&mut runner, 0, 0), [1]);
            assert_eq!(arrive(&mut runner, 0, 1), [2, 3]);
        }
    }

    #[test]
    fn a_rank_that_starts_late_says_so() {
        let program = build_all(1, 1, Time::ZERO, |_| {
            let mut builder = RankBuilder::default();
            builder.calc(Time(3));
            builder
        });
        let mut runner = Runner::new(Placed::new(program.unwrap(), &[0], 1), 0, Time(5));
        let mut actions = Vec::new();
        runner.begin(Time::ZERO, &mut actions);
        assert!(matches!(runner.waits(), Waits::ToBegin));
        let [Action::Wake { at: Time(5), op }] = actions[..] else { panic!("{actions:?}") };
        actions.clear();
        runner.on_wake(Time(5), op, &mut actions);
        assert_eq!(actions, [Action::Wake { at: Time(8), op: 0 }]);
        runner.on_wake(Time(8), 0, &mut actions);
        assert!(runner.is_finished());
    }

    #[test]
    fn a_rank_notes_what_it_did_when() {
        // Rank 0 calculates, sends, and has its answer before the next round.
        let program = build_all(2, 2, Time::ZERO, |rank| {
            let mut builder = RankBuilder::default();
            if rank == 0 {
                let (calc, send) = (builder.calc(Time(10)), builder.send(1, Bytes(7), 0));
                let answer = builder.recv(Accept::Only(1), Accept::Only(0));
                builder.requires(send, calc);
                builder.requires(answer, send);
            } else {
                let request = builder.recv(Accept::Only(0), Accept::Only(0));
                let answer = builder.send(0, Bytes(1), 0);
                builder.requires(answer, request);
            }
            builder
        });
        let mut runner = Runner::new(Placed::new(program.unwrap(), &[0, 1], 2), 0, Time::ZERO);
        let mut actions = Vec::new();
        runner.begin(Time::ZERO, &mut actions);
        runner.on_wake(Time(10), 0, &mut actions);
        runner.on_sent(Time(13), 0, &mut actions);
        runner.on_received(Time(20), 1, 0, &mut actions);
        runner.on_wake(Time(30), 0, &mut actions);
        // The answer overtakes the news that the request has left.
        runner.on_received(Time(34), 1, 1, &mut actions);
        runner.on_sent(Time(36), 1, &mut actions);
        assert!(runner.is_finished());
        let log = runner.take_log(Time(99));
        let round = |start, end, sending, blocked| RoundLog {
            start: Time(start),
            end: Some(Time(end)),
            computing: Time(10),
            sending: Time(sending),
            blocked: Time(blocked),
            bytes: Bytes(7),
            messages: 1,
        };
        assert_eq!(log.rounds, [round(0, 20, 3, 7), round(20, 36, 6, 0)]);
        assert_eq!(log.waits, [Wait { round: 0, from: Time(13), until: Time(20), src: 1, number: 0 }]);
    }

    #[test]
    fn tags_may_overtake_each_other() {
        let receives = [(Accept::Only(0), Accept::Only(5)), (Accept::Only(0), Accept::Only(6))];
        // Sent in the order 6, 5; numbers follow the tags.
        let mut runner = answering(&[6, 5], &[], &receives, false);
        assert_eq!(arrive(&mut runner, 0, 1), [2]);
        assert_eq!(arrive(&mut runner, 0, 0), [1]);
    }

    #[test]
    fn a_message_takes_the_first_receive_that_accepts_it() {
        let mut runner = answering(&[5], &[5, 5], &[FROM_0, FROM_ANY, ANYTHING], false);
        assert_eq!(arrive(&mut runner, 2, 0), [2]);
        assert_eq!(arrive(&mut runner, 0, 0), [1]);
        assert_eq!(arrive(&mut runner, 2, 1), [3]);
    }

    #[test]
    fn a_receive_takes_the_message_that_arrived_first() {
        let mut runner = answering(&[5, 7], &[5], &[FROM_0, ANYTHING, ANYTHING], true);
        assert_eq!(arrive(&mut runner, 2, 0), [0; 0]);
        assert_eq!(arrive(&mut runner, 0, 0), [0; 0]);
        let mut actions = Vec::new();
        runner.on_wake(Time(1), 0, &mut actions);
        assert_eq!(answers(actions), [1, 2]);
        assert!(!runner.is_finished() && matches!(runner.waits(), Waits::For(ANY, ANY)));
        assert_eq!(arrive(&mut runner, 0, 1), [3]);
    }

    #[test]
    fn a_message_is_known_by_what_was_sent_before_it_not_by_its_place_in_the_schedule() {
        // Rank 0 lists a send that waits for an answer to the one it lists after it.
        let program = build_all(2, 2, Time::ZERO, |rank| {
            let mut builder = RankBuilder::default();
            if rank == 0 {
                let answer = builder.recv(Accept::Only(1), Accept::Only(0));
                let late = builder.send(1, Bytes(1), 0);
                builder.send(1, Bytes(2), 0);
                builder.requires(late, answer);
            } else {
                let first = builder.recv(Accept::Only(0), Accept::Only(0));
                let answer = builder.send(0, Bytes(3), 0);
                builder.recv(Accept::Only(0), Accept::Only(0));
                builder.requires(answer, first);
            }
            builder
        });
        assert!(program.unwrap().ending().is_ok());
    }
}
