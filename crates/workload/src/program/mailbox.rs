//! Which message goes to which receive.

use std::collections::{BTreeSet, VecDeque};

use netloom_units::recurrence::Walk;

use super::{ANY, Op, RankProgram};

/// Receives that wait for messages, and messages that wait for receives.
#[derive(Clone, Debug)]
pub(super) struct Mailbox {
    /// Per inbound channel: the place in the order of sending of the message that is accepted next.
    expected: Box<[u32]>,
    /// Messages (channel, place) that have overtaken another one of their channel.
    early: BTreeSet<(u32, u32)>,
    waiting: Waiting,
}

#[derive(Clone, Debug)]
enum Waiting {
    /// Every receive names its channel: channels do not interfere, and every step takes constant time.
    ByChannel(Box<[Channel]>),
    /// Some receives have wildcards: one queue of each, searched from the front.
    Ordered {
        /// Receives in the order of posting.
        posted: VecDeque<u32>,
        /// Channels of messages in the order of arrival.
        arrived: VecDeque<u32>,
    },
}

/// What waits in one channel: receives or messages, never both.
#[derive(Clone, Copy, Debug)]
struct Channel {
    posted: Queue,
    arrived: u32,
}

impl Mailbox {
    pub(super) fn new(rank: &RankProgram) -> Self {
        let channels = rank.inbound.len();
        let waiting = if rank.wildcards {
            Waiting::Ordered { posted: VecDeque::new(), arrived: VecDeque::new() }
        } else {
            Waiting::ByChannel(vec![Channel { posted: Queue::EMPTY, arrived: 0 }; channels].into())
        };
        Mailbox { expected: vec![0; channels].into(), early: BTreeSet::new(), waiting }
    }

    /// Posts a receive; whether a message was there for it.
    pub(super) fn post(&mut self, rank: &RankProgram, op: u32, links: &mut [u32]) -> bool {
        let receive = &rank.ops[op as usize];
        match &mut self.waiting {
            Waiting::ByChannel(channels) => {
                let channel = &mut channels[receive.channel as usize];
                if channel.arrived == 0 {
                    channel.posted.push(op, links);
                    return false;
                }
                channel.arrived -= 1;
                true
            }
            Waiting::Ordered { posted, arrived } => {
                let found =
                    arrived.iter().position(|&channel| accepts(receive, rank.inbound[channel as usize]));
                match found {
                    Some(message) => arrived.remove(message).is_some(),
                    None => {
                        posted.push_back(op);
                        false
                    }
                }
            }
        }
    }

    /// The rank and the tag, each of which may be [`ANY`], that the first receive without a message names.
    pub(super) fn awaited(&self, rank: &RankProgram) -> Option<(u32, u32)> {
        match &self.waiting {
            Waiting::ByChannel(channels) => {
                let place = channels.iter().position(|channel| !channel.posted.is_empty())?;
                Some(rank.inbound[place])
            }
            Waiting::Ordered { posted, .. } => {
                let receive = &rank.ops[*posted.front()? as usize];
                Some((receive.peer, receive.tag))
            }
        }
    }

    /// How many messages of a channel have come in their turn.
    pub(super) fn accepted(&self, channel: u32) -> u32 {
        self.expected[channel as usize]
    }

    /// Takes in a message by its channel and its place in the order of sending; whether its turn has come. One that
    /// has overtaken others is kept until [`advance`](Self::advance) comes to it.
    pub(super) fn arrive(&mut self, channel: u32, place: u32) -> bool {
        let in_turn = place == self.expected[channel as usize];
        if !in_turn {
            self.early.insert((channel, place));
        }
        in_turn
    }

    /// Goes on to the next message of a channel; whether it is here already.
    pub(super) fn advance(&mut self, channel: u32) -> bool {
        let expected = &mut self.expected[channel as usize];
        *expected += 1;
        !self.early.is_empty() && self.early.remove(&(channel, *expected))
    }

    /// [Recurs](netloom_units::recurrence), but for [what is expected](Self::expected_mut), with operations by their `place`.
    pub(super) fn recur(
        &self,
        place: impl Fn(u32) -> u64,
        walk: &mut Walk,
        mut queue: impl FnMut(&Queue, &mut Walk),
    ) {
        let Mailbox { expected: _, early, waiting } = self;
        if !early.is_empty() {
            walk.pass_over();
        }
        match waiting {
            Waiting::ByChannel(channels) => {
                for Channel { posted, arrived } in channels {
                    walk.exact(*arrived);
                    queue(posted, walk);
                }
            }
            Waiting::Ordered { posted, arrived } => {
                walk.count(posted.len());
                posted.iter().for_each(|&op| walk.exact(place(op)));
                walk.count(arrived.len());
                arrived.iter().for_each(|&channel| walk.exact(channel));
            }
        }
    }

    /// Per inbound channel: the place in the order of sending of the message that is accepted next.
    pub(super) fn expected_mut(&mut self) -> &mut [u32] {
        &mut self.expected
    }

    /// Each operation that waits is the one that is `by` later.
    pub(super) fn shift(&mut self, by: impl Fn(u32) -> u32 + Copy) {
        match &mut self.waiting {
            Waiting::ByChannel(channels) => channels.iter_mut().for_each(|channel| channel.posted.shift(by)),
            Waiting::Ordered { posted, .. } => posted.iter_mut().for_each(|op| *op += by(*op)),
        }
    }

    /// The receive for the message of a channel whose turn has come; without one the message waits.
    pub(super) fn accept(&mut self, rank: &RankProgram, channel: u32, links: &mut [u32]) -> Option<u32> {
        match &mut self.waiting {
            Waiting::ByChannel(channels) => {
                let channel = &mut channels[channel as usize];
                let op = channel.posted.pop(links);
                channel.arrived += u32::from(op.is_none());
                op
            }
            Waiting::Ordered { posted, arrived } => {
                let from = rank.inbound[channel as usize];
                let found = posted.iter().position(|&op| accepts(&rank.ops[op as usize], from));
                let op = found.and_then(|place| posted.remove(place));
                if op.is_none() {
                    arrived.push_back(channel);
                }
                op
            }
        }
    }
}

fn accepts(receive: &Op, (src, tag): (u32, u32)) -> bool {
    (receive.peer == src || receive.peer == ANY) && (receive.tag == tag || receive.tag == ANY)
}

/// A queue of operations, linked through an array that has one place per operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    head: u32,
    tail: u32,
}

impl Queue {
    pub(super) const EMPTY: Queue = Queue { head: ANY, tail: ANY };

    /// The operations in it, in their order.
    pub(super) fn iter<'a>(&self, links: &'a [u32]) -> impl Iterator<Item = u32> + use<'a> {
        let next = |op: u32| (op != ANY).then_some(op);
        std::iter::successors(next(self.head), move |&op| next(links[op as usize]))
    }

    /// Each operation in it is the one that is `by` later; the caller sees to the links.
    pub(super) fn shift(&mut self, by: impl Fn(u32) -> u32) {
        if self.head != ANY {
            self.head += by(self.head);
            self.tail += by(self.tail);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == ANY
    }

    pub(super) fn push(&mut self, op: u32, links: &mut [u32]) {
        links[op as usize] = ANY;
        if self.head == ANY {
            self.head = op;
        } else {
            links[self.tail as usize] = op;
        }
        self.tail = op;
    }

    /// The first one leaves; what stood for its link is 0 from now on.
    pub(super) fn pop(&mut self, links: &mut [u32]) -> Option<u32> {
        let op = self.head;
        if op == ANY {
            return None;
        }
        self.head = std::mem::take(&mut links[op as usize]);
        Some(op)
    }
}
