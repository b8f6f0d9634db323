//! How the state of a rank recurs: after a period of the run it is at operations further on, which are the same as those before and stand in the same order to each other.

use std::ops::Range;

use netloom_topology::HostId;
use netloom_units::recurrence::Walk;
use netloom_units::{Time, narrow};

use super::{ANY, Cpu, FINISHED, Queue, Runner};
use crate::program::collectives::Part;
use crate::program::{Nics, ON_START, Placed, RankProgram};

/// What stands for the state of an operation in a queue, which says only which one is next.
const QUEUED: u32 = FINISHED - 1;

/// What stands for the note about a part in a collective that has ended.
const CLOSED: u32 = ANY - 1;

/// Operations that may be under way at once, at most, in a state that is compared.
const MOST_UNDER_WAY: usize = 1 << 14;

/// The name of the messages of a rank with one destination and tag: how many there are is a sequence number.
fn name(placed: &Placed, rank: u32, channel: usize) -> u64 {
    name_of_messages(placed.hosts[rank as usize], channel)
}

/// The same of the rank on a host.
pub(crate) fn name_of_messages(host: HostId, channel: usize) -> u64 {
    1 << 62 | u64::from(host) << u32::BITS | channel as u64
}

/// The name of the operations of a lane of a rank whose messages are those of `origin`, as numbered in an [`Action::Wake`](crate::Action::Wake): where they stand is a sequence number.
pub(crate) fn name_of_operations(origin: u32, lane: usize) -> u64 {
    3 << 61 | u64::from(origin) << u32::BITS | lane as u64
}

/// The outbound channel of a message.
fn channel_of(placed: &Placed, rank: u32, number: u32) -> usize {
    let outbound = &placed.program.ranks[rank as usize].outbound;
    outbound.partition_point(|c| c.first * placed.program.rounds <= number) - 1
}

/// Where a lane stands, at one of two instants.
struct At<'s> {
    /// The first operation that has not finished, and how many parts in collectives have by then.
    first: u32,
    parts: u32,
    /// The states of operations from that one on, where those that wait in a queue are alike.
    states: &'s [u64],
    /// Of the parts that may have begun the places of the notes about them, as long as they have not ended.
    notes: &'s [u64],
}

impl<'s> At<'s> {
    /// From what a walk has noted.
    fn new(numbers: &'s [u64]) -> Option<Self> {
        let ([first, parts, count], rest) = numbers.split_first_chunk()?;
        let (states, notes) = rest.split_at_checked(usize::try_from(*count).ok()?)?;
        Some(At { first: narrow::<u32>(*first), parts: narrow::<u32>(*parts), states, notes })
    }

    fn end(&self) -> u32 {
        self.first + narrow::<u32>(self.states.len())
    }
}

/// A message that has not left completely: the operation that sends it, its channel, and how many messages of the channel were sent from this one on.
struct UnderWay {
    op: u32,
    channel: usize,
    back: u32,
}

/// What has become of a lane in a period.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// By how many operations, and parts in collectives, it has moved on.
    each: u32,
    parts: u32,
    /// How many operations the period may have changed, counted from the first that had not finished.
    reach: u32,
    /// Up to the last one of these that has finished; and up to the last one that waits for no other: those behind it do nothing yet.
    finished: u32,
    begun: u32,
    /// The end of its window has not moved: fewer operations are left in it.
    shrinks: bool,
}

impl Progress {
    /// From `then` to `now`, in a period that has added `logged` notes about parts and had `rounds` rounds; `None` if it is not known to go on like that.
    fn between(
        program: &RankProgram,
        then: &At<'_>,
        now: &At<'_>,
        (logged, rounds): (u64, u32),
    ) -> Option<Self> {
        let (each, parts) = (now.first.checked_sub(then.first)?, now.parts.checked_sub(then.parts)?);
        let shrinks = each > 0 && now.end() == then.end();
        if !shrinks && now.states.len() != then.states.len() {
            return None;
        }
        let reach = match shrinks {
            true => {
                let behind = now.states.iter().zip(&then.states[each as usize..]);
                each + narrow::<u32>(
                    behind.len() - behind.rev().take_while(|(now, then)| now == then).count(),
                )
            }
            false => narrow::<u32>(now.states.len()),
        };
        let up_to_last = |is_one: &dyn Fn(u64) -> bool| {
            let behind = now.states.iter().rev().take_while(|&&state| !is_one(state));
            if shrinks { reach } else { reach - narrow::<u32>(behind.count()) }
        };
        let finished = up_to_last(&|state| state == u64::from(FINISHED));
        let begun = up_to_last(&|state| !(1..u64::from(QUEUED)).contains(&state));
        let states = (now.states.get(..reach as usize)?, &then.states[..reach as usize]);
        let by = if parts > 0 || rounds > 0 { logged } else { 0 };
        let is_open = |&note: &u64| note < u64::from(CLOSED);
        let in_reach = |at: &At<'_>| {
            let of_lane = &program.collectives[at.parts as usize..];
            of_lane.partition_point(|part| part.first < at.first + reach).min(at.notes.len())
        };
        let (notes, before) = (&now.notes[..in_reach(now)], &then.notes[..in_reach(then)]);
        let goes_on = |(now, then): (&u64, &u64)| match (is_open(now), is_open(then)) {
            (true, true) => *now == then + by,
            (now, then) => now == then,
        };
        let is_same = states.0 == states.1
            && notes.len() == before.len()
            && notes.iter().zip(before).all(goes_on)
            && (each > 0 || parts == 0)
            // What follows is not noted already.
            && (!shrinks || !now.notes[in_reach(now)..].iter().any(is_open));
        is_same.then_some(Progress { each, parts, reach, finished, begun, shrinks })
    }
}

impl Runner {
    /// [Recurs](netloom_units::recurrence) in a walk with successors. Its messages are those of `origin`; `hashes`: which NIC one takes that is given none depends on its number.
    pub(crate) fn recur(&mut self, origin: u32, hashes: bool, walk: &mut Walk) {
        let is_drawn = self.draws();
        let Runner {
            placed,
            rank,
            start: _,
            rounds_left,
            left,
            windows,
            state,
            ready,
            cpus,
            sent,
            senders,
            mailbox,
            names,
            observer,
            operations,
            // They follow from the states of operations.
            parts: _,
            slowness: _,
        } = self;
        let (program, rounds) = (&placed.program.ranks[*rank as usize], placed.program.rounds);
        let rounds_begun = rounds - *rounds_left;
        if operations.is_some() {
            walk.refuse("what is kept of each operation");
        }
        for window in windows.iter_mut() {
            while window.start < window.end && state[window.start as usize] == FINISHED {
                window.start += 1;
            }
        }
        let under_way: usize = windows.iter().map(|window| window.len()).sum();
        let is_chosen = hashes && matches!(placed.program.nics, Nics::Chosen);
        if !ready.is_empty() || under_way > MOST_UNDER_WAY || is_drawn || is_chosen {
            walk.pass_over();
        }
        // How many rounds the period has.
        let ended = walk.place(*rounds_left).map_or(0, |moved| 0u32.wrapping_sub(moved));
        walk.exact(*left == 0);
        if !walk.goes_on() {
            return;
        }
        let place = |op: u32| {
            let lane = program.lane(op);
            (lane as u64) << u32::BITS | u64::from(op.wrapping_sub(windows[lane].start))
        };
        for (lane, window) in windows.iter().enumerate() {
            walk.seq(name_of_operations(origin, lane), &mut names.outside(window.start));
        }
        let mut queued = Vec::new();
        let mut queue = |queue: &Queue, state: &[u32], walk: &mut Walk| {
            for op in queue.iter(state) {
                walk.exact(place(op));
                queued.push(op);
            }
            walk.exact(u64::MAX);
        };
        for Cpu { busy, queue: of_cpu } in cpus.iter() {
            walk.exact(*busy);
            queue(of_cpu, state, walk);
        }
        mailbox.recur(place, walk, |of_channel, walk| queue(of_channel, state, walk));
        for (channel, place) in mailbox.expected_mut().iter_mut().enumerate() {
            let (src, tag) = program.inbound[channel];
            let outbound = &placed.program.ranks[src as usize].outbound;
            let found = outbound.binary_search_by_key(&(*rank, tag), |out| (out.dst, out.tag));
            match found {
                Ok(found) => walk.seq(name(placed, src, found), place),
                Err(_) => walk.pass_over(),
            }
        }
        // Messages under way are known by the operations that have sent them.
        let (mut messages_under_way, mut unknown) = (Vec::new(), observer.sending());
        for (channel, sent) in sent.iter_mut().enumerate() {
            let (of_channel, messages) = (&program.outbound[channel], program.messages(narrow(channel)));
            let now = *sent;
            walk.seq(name(placed, *rank, channel), sent);
            // A round begins when all messages of the one before have arrived.
            let of_round = now - messages * rounds_begun.saturating_sub(1);
            for back in 1..=of_round.min(narrow(under_way)) {
                if unknown == 0 {
                    break;
                }
                let number = now - back;
                let op = senders[(of_channel.first + number % messages) as usize];
                if !windows[program.lane(op)].contains(&op) || state[op as usize] == FINISHED {
                    continue;
                }
                unknown -= 1;
                let mut number = names.outside(of_channel.first * rounds + number);
                walk.exact(place(op));
                walk.exact(back);
                walk.flow(origin, &mut number);
                messages_under_way.push(UnderWay { op, channel, back });
            }
        }
        walk.exact(u64::MAX);
        let moved_of = |src: u32, number: u32, walk: &Walk| {
            let number = names.inside(number).unwrap_or(0);
            let rank = placed.ranks[src as usize];
            let moved = walk.moved(name(placed, rank, channel_of(placed, rank, number)));
            names.moved_outside(moved)
        };
        observer.recur(ended, walk, moved_of);
        queued.sort_unstable();
        let logged = walk.log(observer.log.collectives.len()).unwrap_or_default();
        let logged_now = logged.len() as u64;
        let lanes = 0..self.windows.len();
        // Each of them is to be noted.
        let all: Vec<Option<Progress>> =
            lanes.map(|lane| self.advanced(lane, &queued, (logged_now, ended), walk)).collect();
        let Some(progress) = all.into_iter().collect::<Option<Vec<Progress>>>().filter(|_| walk.goes_on())
        else {
            return;
        };
        if progress.iter().all(|lane| lane.each == 0) {
            if let Some(left) = self.rounds_left.checked_div(ended) {
                match walk.periods_to_move() {
                    0 => walk.at_most(left.into()),
                    periods => self.move_on_by_rounds((narrow(periods), walk.period()), ended, logged),
                }
            }
            return;
        }
        if ended > 0 {
            return walk.pass_over();
        }
        match walk.periods_to_move() {
            0 => walk.at_most(self.periods(&progress)),
            periods => {
                let periods = narrow::<u32>(periods);
                self.move_on((periods, walk.period()), (&progress, &queued, &messages_under_way), logged);
            }
        }
    }

    /// What has become of a lane since the state was noted; `None` if there is nothing to compare, or that differs.
    fn advanced(&self, lane: usize, queued: &[u32], logged: (u64, u32), walk: &mut Walk) -> Option<Progress> {
        let (program, window) = (self.program(), self.windows[lane].clone());
        let parts = program.collectives.partition_point(|part| part.end <= window.start);
        let mut numbers = vec![window.start.into(), parts as u64, window.len() as u64];
        numbers.extend(window.clone().map(|op| match self.state[op as usize] {
            FINISHED => FINISHED.into(),
            _ if queued.binary_search(&op).is_ok() => QUEUED.into(),
            waits => u64::from(waits),
        }));
        let of_lane = program.collectives.iter().zip(&self.parts).skip(parts);
        let may_have_begun = of_lane.take_while(|(part, _)| part.first < window.end);
        let note = |&(left, note): &(u32, u32)| if left == 0 { CLOSED } else { note };
        numbers.extend(may_have_begun.map(|(_, part)| u64::from(note(part))));
        let noted = walk.list(&numbers)?;
        let progress = Progress::between(program, &At::new(&noted)?, &At::new(&numbers)?, logged);
        if progress.is_none() {
            walk.pass_over();
        }
        progress
    }

    /// For how many periods more it goes on like that.
    fn periods(&self, progress: &[Progress]) -> u64 {
        let program = self.program();
        let mut waits = vec![0u32; program.ops.len()];
        program.dependents.iter().for_each(|later| waits[(later & !ON_START) as usize] += 1);
        let of_lane = |(lane, window): (usize, &Range<u32>)| {
            let Progress { each, reach, finished, begun, shrinks, .. } = progress[lane];
            if each == 0 {
                return u64::MAX;
            }
            let first = window.start;
            let Alike { all, begins, mut waiting } =
                Alike::new(program, &waits, (lane, first - each), progress);
            if shrinks {
                // What waits already must wait for as many as what is there.
                let left = |op: u32| self.state[op as usize];
                let mut behind = first + reach..window.end;
                let end = behind.find(|&op| left(op) != left(op - each)).unwrap_or(window.end);
                waiting = waiting.min(end);
            }
            let left = [(finished, all), (begun, begins), (reach, waiting)];
            let periods = left.map(|(reach, until)| until.saturating_sub(first + reach) / each);
            periods.into_iter().min().unwrap_or(0).into()
        };
        self.windows.iter().enumerate().map(of_lane).min().unwrap_or(0)
    }

    /// Moves by some periods, where `queued` operations wait in queues, and these messages, with their channels and how many have been sent there since, are under way.
    fn move_on(
        &mut self,
        (periods, period): (u32, Time),
        (progress, queued, under_way): (&[Progress], &[u32], &[UnderWay]),
        logged: Range<usize>,
    ) {
        let program = &self.placed.program.ranks[self.rank as usize];
        let by = |op: u32| progress[program.lane(op)].each * periods;
        let of_lanes = self.windows.iter().zip(progress);
        let zones: Vec<Range<u32>> =
            of_lanes.map(|(window, lane)| window.start..window.start + lane.reach).collect();
        let mut open = Vec::new();
        for (zone, lane) in zones.iter().zip(progress) {
            let moved = if lane.parts > 0 { narrow::<u32>(logged.len()) * periods } else { 0 };
            for part in parts_in(program, zone) {
                let (left, note) = self.parts[part];
                if left > 0 && note != ANY {
                    open.push((part + (lane.parts * periods) as usize, note, note + moved));
                }
            }
        }
        let next = |part: u32| {
            let part = part + progress[program.lane(program.collectives[part as usize].first)].parts;
            (part, program.collectives[part as usize].collective)
        };
        let notes: Vec<(u32, u32)> = open.iter().map(|&(_, now, later)| (now, later)).collect();
        self.observer.log_again((logged, 0), (periods, period), &notes, next);
        let unfinished = |state: &[u32], Range { start, end }: Range<u32>| {
            let states = &state[start as usize..end as usize];
            narrow::<u32>(states.iter().filter(|&&state| state != FINISHED).count())
        };
        for (zone, lane) in zones.iter().zip(progress) {
            let (moved, all) = (zone.start + lane.each * periods, zone.start..zone.end + lane.each * periods);
            // Some may have finished before their turn.
            self.left -= unfinished(&self.state, all.clone());
            let states: Vec<u32> = self.state[zone.start as usize..zone.end as usize].to_vec();
            self.state[zone.start as usize..moved as usize].fill(FINISHED);
            for ((op, later), value) in zone.clone().zip(moved..).zip(states) {
                let is_link = value != FINISHED && value != ANY && queued.binary_search(&op).is_ok();
                self.state[later as usize] = if is_link { value + by(value) } else { value };
            }
            self.left += unfinished(&self.state, all.clone());
            for part in parts_in(program, &all) {
                let Part { first, end, .. } = program.collectives[part];
                self.parts[part].0 = unfinished(&self.state, first..end);
            }
        }
        open.iter().for_each(|&(part, _, note)| self.parts[part].1 = note);
        self.cpus.iter_mut().for_each(|cpu| cpu.queue.shift(by));
        self.mailbox.shift(by);
        for &UnderWay { op, channel, back } in under_way {
            let (of_channel, messages) = (&program.outbound[channel], program.messages(narrow(channel)));
            self.senders[(of_channel.first + (self.sent[channel] - back) % messages) as usize] = op + by(op);
        }
        for (window, lane) in self.windows.iter_mut().zip(progress) {
            window.start += lane.each * periods;
            window.end += if lane.shrinks { 0 } else { lane.each * periods };
        }
    }

    /// Moves by `periods`, each of which has `rounds` rounds.
    fn move_on_by_rounds(&mut self, (periods, period): (u32, Time), rounds: u32, logged: Range<usize>) {
        let moved = narrow::<u32>(logged.len()) * periods;
        let open = self.parts.iter_mut().filter(|(left, note)| *left > 0 && *note != ANY);
        let move_note = |(_, note): &mut (u32, u32)| {
            *note += moved;
            (*note - moved, *note)
        };
        let notes: Vec<(u32, u32)> = open.map(move_note).collect();
        let parts = &self.placed.program.ranks[self.rank as usize].collectives;
        let next = |part: u32| (part, parts[part as usize].collective);
        self.observer.log_again((logged, rounds), (periods, period), &notes, next);
        self.rounds_left -= rounds * periods;
    }

    /// The operation of an [`Action::Wake`](crate::Action::Wake) that has not come.
    pub(crate) fn recur_wake(&self, origin: u32, op: &mut u32, walk: &mut Walk) {
        match self.names.inside(*op).filter(|&op| (op as usize) < self.state.len()) {
            Some(inside) => walk.seq(name_of_operations(origin, self.program().lane(inside)), op),
            None => walk.exact(*op),
        }
    }

    /// By how much the number of a message moves in a period.
    pub(crate) fn succession(&self, number: u32, walk: &Walk) -> u32 {
        let Some(inside) = self.names.inside(number) else { return 0 };
        let moved = walk.moved(name(&self.placed, self.rank, channel_of(&self.placed, self.rank, inside)));
        self.names.moved_outside(moved)
    }
}

/// The parts in collectives that some operations of a lane belong to.
fn parts_in(program: &RankProgram, ops: &Range<u32>) -> Range<usize> {
    let parts = &program.collectives;
    let first = parts.partition_point(|part| part.end <= ops.start);
    first..first + parts[first..].partition_point(|part| part.first < ops.end)
}

/// Up to where the operations of a lane repeat every period.
struct Alike {
    /// In all that they are and cause.
    all: u32,
    /// At least in what they are and cause as they begin.
    begins: u32,
    /// At least in how many others they wait for.
    waiting: u32,
}

impl Alike {
    /// Those of a lane from `first` on. `waits` says for each operation how many others it waits for.
    fn new(program: &RankProgram, waits: &[u32], (lane, first): (usize, u32), progress: &[Progress]) -> Self {
        let Progress { each, parts, .. } = progress[lane];
        let ops = &program.ops;
        let end = program.lanes.get(lane + 1).map_or(narrow(ops.len()), |&end| end);
        let nic = |op: u32| program.nics.get(op as usize).copied().unwrap_or(0);
        let is_part_same = |op: u32| {
            let of = |op: u32| parts_in(program, &(op..op + 1)).next();
            match (of(op), of(op + each)) {
                (Some(one), Some(other)) => {
                    let (before, behind) = (&program.collectives[one], &program.collectives[other]);
                    let is_same = before.first + each == behind.first && before.end + each == behind.end;
                    other == one + parts as usize && (parts == 0 || is_same)
                }
                (one, other) => one == other,
            }
        };
        let causes_same = |op: u32, on_start: bool| {
            let later = |op: u32| op + progress[program.lane(op)].each;
            let before = program.dependents(op, on_start).map(later);
            before.eq(program.dependents(op + each, on_start))
        };
        let waits_alike = |op: u32| waits[op as usize] == waits[(op + each) as usize] && is_part_same(op);
        let begins_alike = |op: u32| {
            let is_same = ops[op as usize] == ops[(op + each) as usize] && nic(op) == nic(op + each);
            is_same && causes_same(op, true)
        };
        let mut op = first;
        let mut while_alike = |is_alike: &dyn Fn(u32) -> bool| {
            while op + each < end && is_alike(op) {
                op += 1;
            }
            op + each
        };
        let all = while_alike(&|op| waits_alike(op) && begins_alike(op) && causes_same(op, false));
        let begins = while_alike(&|op| waits_alike(op) && begins_alike(op));
        let waiting = while_alike(&waits_alike);
        Alike { all, begins, waiting }
    }
}
