//! What of a host is sent next: classes as at any port, and in a class what has waited longest. Flows take turns so, or the packets
//! of a NIC's queue.

use std::collections::VecDeque;

use netloom_fabric::{RoundRobin, Rules};
use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Time, narrow, prefetch};

/// The flows that may have something to send, or packets, by data queue.
#[derive(Clone, Debug)]
pub(crate) struct SendQueue<T> {
    queues: Box<[VecDeque<T>]>,
    /// Queues from here on are served by shares.
    first_shared: usize,
    /// Of a few fabrics only.
    shares: Option<Box<RoundRobin>>,
}

/// Whether and when something can be sent.
pub(crate) enum Next<T> {
    /// This flow sends, or this packet leaves.
    Now(T),
    /// Nothing before then.
    At(Time),
    /// Nothing until something happens.
    Never,
}

impl<T> SendQueue<T> {
    pub(crate) fn new(rules: &Rules) -> Self {
        let (first_shared, quanta) = rules.shared_host_queues();
        SendQueue {
            queues: (0..rules.host_queues()).map(|_| VecDeque::new()).collect(),
            first_shared,
            shares: (!quanta.is_empty()).then(|| Box::new(RoundRobin::new(quanta.len()))),
        }
    }

    /// Prefetches where the queues are.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        self.queues.first().into_iter().for_each(prefetch);
    }

    #[inline]
    pub(crate) fn push(&mut self, queue: u8, item: T) {
        self.queues[usize::from(queue)].push_back(item);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // One queue is the rule, and the NIC asks with every packet.
        match &*self.queues {
            [queue] => queue.is_empty(),
            queues => queues.iter().all(VecDeque::is_empty),
        }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> u32 {
        self.queues.iter().map(|queue| narrow::<u32>(queue.len())).sum()
    }

    /// Whether all wait in one queue.
    #[inline]
    pub(crate) fn is_single(&self) -> bool {
        self.queues.len() == 1
    }

    /// All that wait.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.queues.iter().flatten()
    }

    /// Takes the next one that can be sent at `at` out of its queue.
    ///
    /// `is_open` says whether flow control lets a queue send. `ready` says from when on one can be sent, and `None` for one that cannot
    /// until something happens: it leaves the queue and must be pushed again.
    #[inline(always)]
    pub(crate) fn next(
        &mut self,
        rules: &Rules,
        at: Time,
        is_open: impl Fn(usize) -> bool,
        mut ready: impl FnMut(&T) -> Option<Time>,
    ) -> Next<T> {
        let mut soonest = Time::MAX;
        let mut shared = 0u32;
        for (queue, waiting) in self.queues.iter_mut().enumerate() {
            if waiting.is_empty() || !is_open(queue) {
                continue;
            }
            let mut place = 0;
            // What is passed over goes to the end of its queue only if something behind it is taken: elsewhere that changes nothing.
            while let Some(item) = waiting.get(place) {
                match ready(item) {
                    Some(from) if from > at => {
                        soonest = soonest.min(from);
                        place += 1;
                    }
                    Some(_) => {
                        if place > 0 {
                            waiting.rotate_left(place);
                        }
                        if queue >= self.first_shared {
                            shared |= 1 << (queue - self.first_shared);
                            break;
                        }
                        return waiting.pop_front().map_or(Next::Never, Next::Now);
                    }
                    None => _ = waiting.remove(place),
                }
            }
        }
        if shared != 0
            && let Some(shares) = &mut self.shares
        {
            let (_, quanta) = rules.shared_host_queues();
            // The size of a packet is known when it is taken; full ones are the rule.
            let queue = self.first_shared + shares.pick(shared, quanta, |_| rules.packet_size());
            if let Some(item) = self.queues[queue].pop_front() {
                return Next::Now(item);
            }
        }
        if soonest < Time::MAX { Next::At(soonest) } else { Next::Never }
    }
}

impl Recur for SendQueue<u32> {
    fn recur(&mut self, walk: &mut Walk) {
        let SendQueue { queues, first_shared: _, shares } = self;
        for queue in &*queues {
            walk.count(queue.len());
            queue.iter().for_each(|&slot| walk.exact(slot));
        }
        if let Some(shares) = shares {
            shares.recur(walk);
        }
    }
}

impl SendQueue<u32> {
    /// Who has waited longest, if all wait in one queue.
    #[inline(always)]
    pub(crate) fn first_of_single(&self) -> Option<u32> {
        match &*self.queues {
            [waiting] => waiting.front().copied(),
            _ => None,
        }
    }

    /// Whose turn comes this many after the next one's, if all wait in one queue.
    #[inline(always)]
    pub(crate) fn turn_of_single(&self, turns: usize) -> Option<u32> {
        match &*self.queues {
            [waiting] => waiting.get(turns).copied(),
            _ => None,
        }
    }

    /// Whether one alone waits, where all wait in one queue.
    #[inline(always)]
    pub(crate) fn has_one(&self) -> bool {
        matches!(&*self.queues, [waiting] if waiting.len() == 1)
    }

    /// Takes out of a queue who has waited longest there.
    #[inline(always)]
    pub(crate) fn pop(&mut self, queue: usize) -> Option<u32> {
        self.queues[queue].pop_front()
    }

    /// Takes the flow of a slot out of its queue, as if none before it could send.
    pub(crate) fn take(&mut self, queue: u8, slot: u32) {
        let waiting = &mut self.queues[usize::from(queue)];
        if let Some(place) = waiting.iter().position(|&other| other == slot) {
            waiting.rotate_left(place);
            waiting.pop_front();
        }
    }

    /// Takes a flow out of its queue.
    pub(crate) fn remove(&mut self, queue: u8, slot: u32) {
        self.queues[usize::from(queue)].retain(|&other| other != slot);
    }
}
