//! Credits on their way back: batches of what leaves the input buffers.
//!
//! A credit per packet would be an event per packet. Hardware gathers them, and so does this: a buffer's credits go back once a batch of
//! bytes has left it. When that is depends on the order in which packets leave, and ports are advanced one by one; so departures
//! are noted in order of time, buffer by buffer, and looked at when all ports have reached the same instant.

use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

/// What a node's input buffers owe to the ports that fill them.
#[derive(Clone, Debug)]
pub(crate) struct Returns {
    queues: usize,
    /// Bytes that go back at once, at least.
    batch: u32,
    /// Per input port and queue.
    accounts: Vec<Account>,
    /// What has left since ports were last at one instant.
    left: Vec<Left>,
    /// One bit per account: something is noted.
    noted: Vec<u64>,
    /// Ports whose links are cut, to which nothing goes back.
    cut: Vec<u16>,
}

const NONE: u32 = u32::MAX;

/// Departures up to which those that have been given back are kept among the others.
const MOST_NOTED: usize = 1024;

/// Bytes that have left a buffer and not gone back.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// Those that had left when ports were last at one instant.
    owed: u32,
    /// The places of what has left since, in order of time.
    first: u32,
    last: u32,
    /// Of which buffer: its input port and queue.
    ingress: u16,
    queue: u8,
}

/// What has left a buffer: when, how much, and the place of what left after it.
#[derive(Clone, Copy, Debug)]
struct Left {
    at: Time,
    bytes: u32,
    next: u32,
}

/// Whether the link of a port is among those that are cut, of which there are nearly always none.
#[inline(always)]
fn is_cut(cut: &[u16], port: u16) -> bool {
    !cut.is_empty() && cut.contains(&port)
}

impl Account {
    /// What has left since ports were last at one instant.
    fn since(self, left: &[Left]) -> impl Iterator<Item = &Left> {
        let step = |place: u32| left.get(place as usize);
        std::iter::successors(step(self.first), move |one| step(one.next))
    }

    /// Bytes that have left since.
    fn noted(self, left: &[Left]) -> u32 {
        self.since(left).map(|one| one.bytes).sum()
    }
}

impl Recur for Returns {
    fn recur(&mut self, walk: &mut Walk) {
        let Returns { queues: _, batch: _, accounts, left, noted: _, cut } = self;
        for account in accounts {
            walk.exact(account.owed);
            walk.count(account.since(left).count());
            let mut place = account.first;
            while let Some(Left { at, bytes, next }) = left.get_mut(place as usize) {
                walk.time(at);
                walk.exact(*bytes);
                place = *next;
            }
        }
        if !cut.is_empty() {
            walk.pass_over();
        }
    }
}

impl Returns {
    /// Nothing is owed yet. `batch` must leave room for a packet in the buffer, or a sender may wait for ever.
    #[expect(clippy::cast_possible_truncation, reason = "accounts are numbered by port and queue")]
    pub(crate) fn new(ports: usize, queues: usize, batch: u32) -> Self {
        let of_ports = (0..ports).flat_map(|ingress| (0..queues).map(move |queue| (ingress, queue)));
        let account = |(ingress, queue): (usize, usize)| Account {
            owed: 0,
            first: NONE,
            last: NONE,
            ingress: ingress as u16,
            queue: queue as u8,
        };
        let accounts: Vec<Account> = of_ports.map(account).collect();
        let noted = vec![0; accounts.len().div_ceil(64)];
        Returns { queues, batch, accounts, left: Vec::new(), noted, cut: Vec::new() }
    }

    /// The link of an input port is cut, and all before has been given back: nothing more is until it is repaired. `rooms`: the bytes that each queue's
    /// buffer has room for; all of them are owed from now on.
    #[cold]
    pub(crate) fn cut(&mut self, ingress: u16, rooms: impl Iterator<Item = u32>) {
        self.cut.push(ingress);
        let first = usize::from(ingress) * self.queues;
        for (account, room) in self.accounts[first..].iter_mut().zip(rooms) {
            // What has been noted at this very instant comes on top.
            account.owed = room - account.noted(&self.left);
        }
    }

    /// The link is repaired: what each queue owes goes back at once.
    #[cold]
    pub(crate) fn restore(&mut self, ingress: u16) -> Vec<u32> {
        self.cut.retain(|&port| port != ingress);
        let first = usize::from(ingress) * self.queues;
        let accounts = &mut self.accounts[first..first + self.queues];
        accounts.iter_mut().map(|account| std::mem::take(&mut account.owed)).collect()
    }

    /// A packet leaves the buffer of an input port and queue at `at`.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "far fewer packets leave a node in a window")]
    pub(crate) fn note(&mut self, ingress: u16, queue: usize, at: Time, bytes: u32) {
        let Returns { queues, accounts, left, noted, .. } = self;
        let (index, place) = (usize::from(ingress) * *queues + queue, left.len() as u32);
        left.push(Left { at, bytes, next: NONE });
        let account = &mut accounts[index];
        if account.first == NONE {
            (account.first, account.last) = (place, place);
            noted[index / 64] |= 1 << (index % 64);
            return;
        }
        let last = &mut left[account.last as usize];
        if last.at <= at {
            last.next = place;
            account.last = place;
        } else {
            insert(account, left, place);
        }
    }

    /// A packet leaves a buffer whose packets leave in order: what goes back at once, if anything does.
    #[inline]
    pub(crate) fn take(&mut self, ingress: u16, queue: usize, bytes: u32) -> Option<u32> {
        let Account { owed, .. } = &mut self.accounts[usize::from(ingress) * self.queues + queue];
        *owed += bytes;
        (*owed >= self.batch && !is_cut(&self.cut, ingress)).then(|| std::mem::take(owed))
    }

    /// Whether something has left since the last time.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        !self.left.is_empty()
    }

    /// All ports have started everything before `until`: gives back the batches that are full by then, account by account, in order of time.
    pub(crate) fn give_back(&mut self, until: Time, mut credit: impl FnMut(u16, u8, Time, u32)) {
        let Returns { queues: _, batch, accounts, left, noted, cut } = self;
        let mut is_rest = false;
        for (word, noted) in noted.iter_mut().enumerate() {
            let mut bits = *noted;
            while bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let account = &mut accounts[index];
                let mut place = account.first;
                while let Some(&Left { at, bytes, next }) = left.get(place as usize)
                    && at < until
                {
                    place = next;
                    account.owed += bytes;
                    // What leaves in one instant goes back together.
                    if account.owed >= *batch && left.get(next as usize).is_none_or(|next| next.at != at) {
                        let Account { ingress, queue, .. } = *account;
                        if !is_cut(cut, ingress) {
                            credit(ingress, queue, at, std::mem::take(&mut account.owed));
                        }
                    }
                }
                account.first = place;
                match place {
                    NONE => *noted &= !(1 << (index % 64)),
                    _ => is_rest = true,
                }
            }
        }
        if !is_rest {
            left.clear();
        } else if left.len() > MOST_NOTED {
            self.compact();
        }
    }

    /// Forgets the departures that have been given back. Where ports go in step, something always leaves at the very instant up to which all is given back, and there is never nothing left.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "as in `note`")]
    fn compact(&mut self) {
        let all = std::mem::take(&mut self.left);
        for account in self.accounts.iter_mut().filter(|account| account.first != NONE) {
            let first = self.left.len() as u32;
            for one in account.since(&all) {
                let next = self.left.len() as u32 + 1;
                self.left.push(Left { next, ..*one });
            }
            (account.first, account.last) = (first, self.left.len() as u32 - 1);
            self.left[account.last as usize].next = NONE;
        }
    }

    /// Bytes that have left a buffer and not gone back.
    pub(crate) fn owed(&self, ingress: u16, queue: usize) -> u64 {
        let account = self.accounts[usize::from(ingress) * self.queues + queue];
        u64::from(account.owed) + u64::from(account.noted(&self.left))
    }
}

/// Puts what has left earlier than the last of its account in its place among what has left since ports were last at one instant.
#[inline(never)]
fn insert(account: &mut Account, left: &mut [Left], place: u32) {
    let at = left[place as usize].at;
    let (mut before, mut behind) = (NONE, account.first);
    // The last one is later.
    while left[behind as usize].at <= at {
        (before, behind) = (behind, left[behind as usize].next);
    }
    left[place as usize].next = behind;
    match left.get_mut(before as usize) {
        Some(before) => before.next = place,
        None => account.first = place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_batch_goes_back_when_it_is_full_in_order_of_time() {
        let mut returns = Returns::new(2, 1, 1000);
        for (at, ingress) in [(30, 0), (10, 0), (20, 1), (40, 0)] {
            returns.note(ingress, 0, Time(at), 400);
        }
        let mut given = Vec::new();
        returns.give_back(Time(40), |ingress, _, at, bytes| given.push((ingress, at.0, bytes)));
        assert_eq!(given, []);
        returns.give_back(Time(41), |ingress, _, at, bytes| given.push((ingress, at.0, bytes)));
        assert_eq!(given, [(0, 40, 1200)]);
        assert_eq!((returns.owed(0, 0), returns.owed(1, 0)), (0, 400));
    }

    #[test]
    fn a_cut_keeps_all_that_has_room_until_the_repair() {
        let mut returns = Returns::new(2, 1, 500);
        let nothing = |_, _, _, _| panic!("nothing goes back over a link that is cut");
        returns.note(1, 0, Time(10), 400);
        returns.give_back(Time(20), nothing);
        // At the very moment of the cut; the buffer then has room for 1000 bytes, these included.
        returns.note(1, 0, Time(20), 100);
        returns.cut(1, [1000].into_iter());
        assert_eq!(returns.owed(1, 0), 1000);
        returns.note(1, 0, Time(30), 600);
        returns.give_back(Time(40), nothing);
        assert_eq!((returns.take(1, 0, 300), returns.owed(1, 0)), (None, 1900));
        assert_eq!((returns.restore(1), returns.owed(1, 0)), (vec![1900], 0));
        assert_eq!(returns.take(1, 0, 500), Some(500));
    }

    #[test]
    fn what_has_been_given_back_is_forgotten_though_something_always_leaves_at_that_instant() {
        let mut returns = Returns::new(2, 1, 300);
        let mut given = 0;
        for at in 0..100_000 {
            returns.note(u16::from(at % 2 == 1), 0, Time(at), 100);
            returns.give_back(Time(at), |_, _, _, bytes| given += u64::from(bytes));
        }
        assert!(returns.left.len() <= MOST_NOTED + 1, "{}", returns.left.len());
        assert_eq!(given + returns.owed(0, 0) + returns.owed(1, 0), 100 * 100_000);
        assert!(given > 100 * 99_000);
    }

    proptest! {
        #[test]
        fn neither_the_order_of_notes_nor_the_times_of_giving_back_matter(
            departures in prop::collection::vec((0..50u64, 0..3u16, 0..2usize, 1..500u32), 1..60),
            mut stops in prop::collection::vec(0..60u64, 0..10),
            batch in 0..1500u32,
        ) {
            let mut expected = Returns::new(3, 2, batch);
            let mut all = Vec::new();
            for &(at, ingress, queue, bytes) in &departures {
                expected.note(ingress, queue, Time(at), bytes);
            }
            expected.give_back(Time(100), |ingress, queue, at, bytes| all.push((at, ingress, queue, bytes)));

            // Buffers are looked at one after the other.
            all.sort();
            let mut returns = Returns::new(3, 2, batch);
            let mut given = Vec::new();
            stops.push(100);
            stops.sort_unstable();
            let mut from = 0;
            for stop in stops {
                for &(at, ingress, queue, bytes) in departures.iter().rev() {
                    if (from..stop).contains(&at) {
                        returns.note(ingress, queue, Time(at), bytes);
                    }
                }
                returns.give_back(Time(stop), |ingress, queue, at, bytes| given.push((at, ingress, queue, bytes)));
                from = stop;
            }
            given.sort();
            prop_assert_eq!(all, given);
        }
    }
}
