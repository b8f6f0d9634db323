//! How the state of a rank recurs: after a period of the run it is at operations further on, which are the same as those before and stand in the same order to each other.

use netloom_units::narrow;
use netloom_units::recurrence::Walk;

use super::{ANY, Cpu, FINISHED, Queue, Runner};
use crate::program::{Nics, Placed, RankProgram};

/// What stands for the state of an operation in a queue, which says only which one is next.
const QUEUED: u32 = FINISHED - 1;

/// Operations that may be under way at once, at most, in a state that is compared.
const MOST_UNDER_WAY: usize = 4096;

/// The name of the messages of a rank with one destination and tag: how many there are is a sequence number.
fn name(placed: &Placed, rank: u32, channel: usize) -> u64 {
    1 << 62 | u64::from(placed.hosts[rank as usize]) << u32::BITS | channel as u64
}

/// The name of the operations of a rank whose messages are those of `origin`, as numbered in an [`Action::Wake`](crate::Action::Wake): where they stand is a sequence number.
pub(crate) fn name_of_operations(origin: u32) -> u64 {
    3 << 61 | u64::from(origin) << u32::BITS
}

/// The outbound channel of a message.
fn channel_of(placed: &Placed, rank: u32, number: u32) -> usize {
    let outbound = &placed.program.ranks[rank as usize].outbound;
    outbound.partition_point(|c| c.first * placed.program.rounds <= number) - 1
}

impl Runner {
    /// [Recurs](netloom_units::recurrence) in a walk with successors. Its messages are those of `origin`; `hashes`: which NIC one takes that is given none depends on its number.
    pub(crate) fn recur(&mut self, origin: u32, hashes: bool, walk: &mut Walk) {
        let Runner {
            placed,
            rank,
            start: _,
            rounds_left,
            left,
            window,
            state,
            ready,
            cpus,
            sent,
            senders,
            mailbox,
            names,
            observer,
            operations,
            parts,
            slowness,
        } = self;
        let (program, rounds) = (&placed.program.ranks[*rank as usize], placed.program.rounds);
        if operations.is_some() {
            walk.refuse("what is kept of each operation");
        }
        while window.start < window.end && state[window.start as usize] == FINISHED {
            window.start += 1;
        }
        let is_drawn = slowness.as_ref().is_some_and(|slowness| slowness.is_drawn());
        let is_chosen = hashes && matches!(placed.program.nics, Nics::Chosen);
        if !ready.is_empty() || window.len() > MOST_UNDER_WAY || is_drawn || is_chosen {
            walk.pass_over();
        }
        walk.exact(*rounds_left);
        walk.exact(*left == 0);
        walk.count(window.len());
        if !walk.goes_on() {
            return;
        }
        let first = window.start;
        walk.seq(name_of_operations(origin), &mut names.outside(first));
        let mut is_queued = vec![false; window.len()];
        let mut queue = |queue: &Queue, state: &[u32], walk: &mut Walk| {
            for op in queue.iter(state) {
                walk.exact(op - first);
                is_queued[(op - first) as usize] = true;
            }
            walk.exact(ANY);
        };
        for Cpu { busy, queue: of_cpu } in cpus.iter() {
            walk.exact(*busy);
            queue(of_cpu, state, walk);
        }
        mailbox.recur(first, walk, |of_channel, walk| queue(of_channel, state, walk));
        for (channel, place) in mailbox.expected_mut().iter_mut().enumerate() {
            let (src, tag) = program.inbound[channel];
            let outbound = &placed.program.ranks[src as usize].outbound;
            let found = outbound.binary_search_by_key(&(*rank, tag), |out| (out.dst, out.tag));
            match found {
                Ok(found) => walk.seq(name(placed, src, found), place),
                Err(_) => walk.pass_over(),
            }
        }
        for op in window.clone() {
            let value = state[op as usize];
            let is_queued = is_queued[(op - first) as usize] && value != FINISHED;
            walk.exact(if is_queued { QUEUED } else { value });
        }
        // Messages under way are known by the operations that have sent them.
        let mut under_way = Vec::new();
        for (channel, place) in sent.iter_mut().enumerate() {
            let (of_channel, messages) = (&program.outbound[channel], program.messages(narrow(channel)));
            let now = *place;
            walk.seq(name(placed, *rank, channel), place);
            for back in 1..=now.min(narrow(window.len())).min(messages) {
                let place = now - back;
                let op = senders[(of_channel.first + place % messages) as usize];
                if !window.contains(&op) || state[op as usize] == FINISHED {
                    continue;
                }
                let mut number = names.outside(of_channel.first * rounds + place);
                walk.exact(op - first);
                walk.exact(back);
                walk.flow(origin, &mut number);
                under_way.push((op, channel, back));
            }
        }
        walk.exact(ANY);
        let moved_of = |src: u32, number: u32, walk: &Walk| {
            let number = names.inside(number).unwrap_or(0);
            let rank = placed.ranks[src as usize];
            let moved = walk.moved(name(placed, rank, channel_of(placed, rank, number)));
            moved.wrapping_mul(names.count)
        };
        observer.recur(walk, moved_of);
        for (left, note) in parts.iter_mut() {
            walk.exact(*note);
            recur_left(left, walk);
        }
        recur_left(left, walk);
        let Some(each) = walk.place(first).filter(|_| walk.goes_on()) else { return };
        let periods = walk.periods_to_move();
        if each == 0 {
            return;
        }
        if periods == 0 {
            let end = same_until(program, first - each, each);
            return walk.at_most(u64::from(end.saturating_sub(window.end) / each));
        }
        let by = each * u32::try_from(periods).expect("the operations of a rank have numbers of 32 bits");
        let states: Vec<u32> = state[first as usize..window.end as usize].to_vec();
        state[first as usize..(first + by) as usize].fill(FINISHED);
        for (place, (value, is_queued)) in states.into_iter().zip(is_queued).enumerate() {
            let is_link = is_queued && value != FINISHED && value != ANY;
            state[(first + by) as usize + place] = if is_link { value + by } else { value };
        }
        cpus.iter_mut().for_each(|cpu| cpu.queue.shift(by));
        mailbox.shift(by);
        for (op, channel, back) in under_way {
            let (of_channel, messages) = (&program.outbound[channel], program.messages(narrow(channel)));
            senders[(of_channel.first + (sent[channel] - back) % messages) as usize] = op + by;
        }
        *window = first + by..window.end + by;
    }

    /// By how much the number of a message moves in a period.
    pub(crate) fn succession(&self, number: u32, walk: &Walk) -> u32 {
        let Some(inside) = self.names.inside(number) else { return 0 };
        let moved = walk.moved(name(&self.placed, self.rank, channel_of(&self.placed, self.rank, inside)));
        moved.wrapping_mul(self.names.count)
    }
}

/// A number that is as much smaller after every period.
fn recur_left(left: &mut u32, walk: &mut Walk) {
    let mut done = u32::MAX - *left;
    walk.sum32(&mut done);
    *left = u32::MAX - done;
}

/// All operations from `first` to the end that is returned are the same as those that are `each` after them, as far as these come before that end.
fn same_until(program: &RankProgram, first: u32, each: u32) -> u32 {
    let ops = &program.ops;
    let mut waits = vec![0u32; ops.len()];
    program.dependents.iter().for_each(|later| waits[(later & !crate::program::ON_START) as usize] += 1);
    let dependents = |op: usize| {
        let range = program.first_dependent[op] as usize..program.first_dependent[op + 1] as usize;
        &program.dependents[range]
    };
    let nic = |op: usize| program.nics.get(op).copied().unwrap_or(0);
    let part = |op: u32| {
        let place = program.collectives.partition_point(|part| part.end <= op);
        program.collectives.get(place).filter(|part| part.first <= op).map(|_| place)
    };
    let is_same = |op: u32| {
        let (one, other) = (op as usize, (op + each) as usize);
        let (before, behind) = (dependents(one), dependents(other));
        ops[one] == ops[other]
            && waits[one] == waits[other]
            && nic(one) == nic(other)
            && part(op) == part(op + each)
            && before.len() == behind.len()
            && before.iter().zip(behind).all(|(before, behind)| before + each == *behind)
    };
    let mut op = first;
    while ((op + each) as usize) < ops.len() && is_same(op) {
        op += 1;
    }
    op + each
}
