//! Credits on their way back: batches of what leaves the input buffers.
//!
//! A credit per packet would be an event per packet. Hardware gathers them, and so does this: a buffer's credits go back once a batch of
//! bytes has left it. When that is depends on the order in which packets leave, and ports are advanced one by one; so departures
//! are noted, and looked at in order of time when all ports have reached the same instant.

use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

/// What a node's input buffers owe to the ports that fill them.
#[derive(Clone, Debug)]
pub(crate) struct Returns {
    queues: usize,
    /// Bytes that go back at once, at least.
    batch: u32,
    /// Per input port and queue, the bytes that had left and not gone back when ports were last at one instant.
    owed: Vec<u32>,
    /// What has left since.
    left: Vec<Left>,
    /// Per input port, when the last of what has been put in order left it.
    last: Vec<Time>,
    /// Ports whose links are cut, to which nothing goes back.
    cut: Vec<u16>,
}

/// What has left a buffer: when, which one, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Left {
    at: Time,
    ingress: u16,
    queue: u8,
    bytes: u32,
}

impl Left {
    /// Whether both have left one buffer in one instant.
    #[inline(always)]
    fn is_with(self, other: Left) -> bool {
        (self.at, self.ingress, self.queue) == (other.at, other.ingress, other.queue)
    }
}

/// Puts the last one in its place among those before it that have left the same port, which are in order.
#[inline(never)]
fn insert(left: &mut [Left]) {
    let Some((last, before)) = left.split_last_mut() else { return };
    let ingress = last.ingress;
    let mut earlier = before.iter_mut().rev().filter(|one| one.ingress == ingress);
    let Some(one) = earlier.next() else { return };
    // Mostly it comes between the last two.
    if last.at < one.at && earlier.next().is_none_or(|one| one.at < last.at) {
        return std::mem::swap(last, one);
    }
    insert_anywhere(left);
}

/// [`insert`]: beside one of the same instant if there is one, and otherwise just before the first that comes after it.
#[cold]
#[inline(never)]
fn insert_anywhere(left: &mut [Left]) {
    let Some((&mut one, before)) = left.split_last_mut() else { return };
    let end = before.len();
    let mut place = end;
    for (index, other) in before.iter().enumerate().rev().filter(|(_, other)| other.ingress == one.ingress) {
        if *other > one {
            place = index;
            continue;
        }
        if other.at == one.at {
            place = index + 1;
        }
        break;
    }
    left.copy_within(place..end, place + 1);
    left[place] = one;
}

/// Whether the link of a port is among those that are cut, of which there are nearly always none.
#[inline(always)]
fn is_cut(cut: &[u16], port: u16) -> bool {
    !cut.is_empty() && cut.contains(&port)
}

impl Recur for Returns {
    fn recur(&mut self, walk: &mut Walk) {
        let Returns { queues: _, batch: _, owed, left, last: _, cut } = self;
        owed.iter().for_each(|&bytes| walk.exact(bytes));
        left.sort_unstable();
        walk.count(left.len());
        for Left { at, ingress, queue, bytes } in left {
            walk.time(at);
            walk.exact(*ingress);
            walk.exact(*queue);
            walk.exact(*bytes);
        }
        if !cut.is_empty() {
            walk.pass_over();
        }
    }
}

impl Returns {
    /// Nothing is owed yet. `batch` must leave room for a packet in the buffer, or a sender may wait for ever.
    pub(crate) fn new(ports: usize, queues: usize, batch: u32) -> Self {
        let (owed, last) = (vec![0; ports * queues], vec![Time::ZERO; ports]);
        Returns { queues, batch, owed, left: Vec::new(), last, cut: Vec::new() }
    }

    /// The link of an input port is cut, and all before has been given back: nothing more is until it is repaired. `rooms`: the bytes that each queue's
    /// buffer has room for; all of them are owed from now on.
    #[cold]
    pub(crate) fn cut(&mut self, ingress: u16, rooms: impl Iterator<Item = u32>) {
        self.cut.push(ingress);
        for (queue, room) in rooms.take(self.queues).enumerate() {
            // What has been noted at this very instant comes on top.
            let noted = self.noted(ingress, queue);
            self.owed[usize::from(ingress) * self.queues + queue] = room - noted;
        }
    }

    /// The link is repaired: what each queue owes goes back at once.
    #[cold]
    pub(crate) fn restore(&mut self, ingress: u16) -> Vec<u32> {
        self.cut.retain(|&port| port != ingress);
        let first = usize::from(ingress) * self.queues;
        self.owed[first..first + self.queues].iter_mut().map(std::mem::take).collect()
    }

    /// A packet leaves the buffer of an input port and queue at `at`.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    pub(crate) fn note(&mut self, ingress: u16, queue: usize, at: Time, bytes: u32) {
        self.left.push(Left { at, ingress, queue: queue as u8, bytes });
    }

    /// A packet leaves a buffer whose packets leave in order: what goes back at once, if anything does.
    #[inline]
    pub(crate) fn take(&mut self, ingress: u16, queue: usize, bytes: u32) -> Option<u32> {
        let owed = &mut self.owed[usize::from(ingress) * self.queues + queue];
        *owed += bytes;
        (*owed >= self.batch && !is_cut(&self.cut, ingress)).then(|| std::mem::take(owed))
    }

    /// Whether something has left since the last time.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        !self.left.is_empty()
    }

    /// All ports have started everything before `until`: gives back the batches that are full by then, those of each input port in order of time.
    #[inline(always)]
    pub(crate) fn give_back(&mut self, until: Time, mut credit: impl FnMut(u16, u8, Time, u32)) {
        self.order();
        let Returns { queues, batch, owed, left, cut, .. } = self;
        let mut kept = 0;
        for number in 0..left.len() {
            let one = left[number];
            let Left { at, ingress, queue, bytes } = one;
            if at >= until {
                left[kept] = one;
                kept += 1;
                continue;
            }
            let owed = &mut owed[usize::from(ingress) * *queues + usize::from(queue)];
            *owed += bytes;
            // What leaves in one instant goes back together.
            if *owed >= *batch
                && !left.get(number + 1).is_some_and(|next| next.is_with(one))
                && !is_cut(cut, ingress)
            {
                credit(ingress, queue, at, std::mem::take(owed));
            }
        }
        left.truncate(kept);
    }

    /// Puts what has left in order, port by port: what has left one in an instant stands side by side.
    #[inline(always)]
    fn order(&mut self) {
        for number in 0..self.left.len() {
            let Left { at, ingress, .. } = self.left[number];
            let last = &mut self.last[usize::from(ingress)];
            if at > *last {
                *last = at;
            } else {
                insert(&mut self.left[..=number]);
            }
        }
    }

    /// Bytes that have left a buffer since ports were last at one instant.
    fn noted(&self, ingress: u16, queue: usize) -> u32 {
        let of_buffer = |one: &&Left| one.ingress == ingress && usize::from(one.queue) == queue;
        self.left.iter().filter(of_buffer).map(|one| one.bytes).sum()
    }

    /// Bytes that have left a buffer and not gone back.
    pub(crate) fn owed(&self, ingress: u16, queue: usize) -> u64 {
        let owed = self.owed[usize::from(ingress) * self.queues + queue];
        u64::from(owed) + u64::from(self.noted(ingress, queue))
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
        assert!(returns.left.len() <= 1, "{}", returns.left.len());
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
