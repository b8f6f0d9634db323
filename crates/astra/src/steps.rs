//! Collective algorithms of equal steps: around a ring, between all pairs, halving and doubling.
//!
//! A rank has *tokens* for messages: one comes with the start (as many as may be in flight), and one with every arrival, each after the endpoint delay and, where data is
//! reduced, the time that this takes. A token lets the next message go, and a receive is posted with each. When the last message has gone and all tokens are back, the phase is over. So
//! the last arrival costs a delay too, although nothing follows it.

use std::collections::VecDeque;

use crate::members::Members;
use crate::system::Operation;

/// What an algorithm asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// A token after the delay of the endpoint, after a reduction of `bytes` if `reduces`.
    Token { bytes: u64, reduces: bool },
    /// Sends `bytes` to the member at this place.
    Send { to: u32, bytes: u64 },
    /// Posts a receive of `bytes` from the member at this place.
    Receive { from: u32, bytes: u64 },
    /// The phase is over.
    Over,
}

/// What distinguishes the algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Ring,
    /// With at most this many messages at a time.
    Direct(u32),
    Halving,
}

/// Between which two places the next message goes, and how large it is.
#[derive(Clone, Copy, Debug)]
struct Packet {
    from: u32,
    to: u32,
    bytes: u64,
}

/// The progress of a rank.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    shape: Shape,
    operation: Operation,
    place: u32,
    count: u32,
    is_clockwise: bool,
    /// Messages to send.
    left: u32,
    /// Messages whose turn has come, which wait for tokens.
    packets: VecDeque<Packet>,
    tokens: u32,
    arrived: u32,
    /// Arrivals of this round that are not reduced, and those that may be.
    plain: u32,
    others: u32,
    /// Whether the others of this round are reduced in an all-reduce.
    is_reducing: bool,
    next: Packet,
    /// Of halving and doubling: the distance, and whether it grows.
    distance: u32,
    grows: bool,
    /// Whether all members are beside each other, which makes rounds of direct exchange as long as those of a ring.
    is_group: bool,
}

impl Steps {
    /// Of a rank at a place among `count` members with `bytes` of data.
    pub(crate) fn new(phase: Phase, members: &Members, place: u32) -> Self {
        let Phase { operation, shape, bytes, is_clockwise, is_group } = phase;
        let count = members.count();
        let log = count.ilog2();
        let (messages, size) = sizes(operation, shape, count, bytes);
        let grows = operation != Operation::AllGather;
        let mut steps = Steps {
            shape,
            operation,
            place,
            count,
            is_clockwise,
            left: messages,
            packets: VecDeque::new(),
            tokens: 0,
            arrived: 0,
            plain: 0,
            others: 0,
            is_reducing: false,
            next: Packet { from: place, to: place, bytes: size },
            distance: if grows { 1 } else { 1 << (log.max(1) - 1) },
            grows,
            is_group,
        };
        match shape {
            Shape::Halving => steps.aim(),
            _ => {
                steps.next.to = steps.beside(place, is_clockwise);
                steps.next.from = steps.beside(place, !is_clockwise);
            }
        }
        steps
    }

    /// How many messages may be in flight at a time.
    fn width(&self) -> u32 {
        match self.shape {
            Shape::Direct(width) => width,
            _ => 1,
        }
    }

    fn beside(&self, place: u32, is_clockwise: bool) -> u32 {
        match is_clockwise {
            true => (place + 1) % self.count,
            false => (place + self.count - 1) % self.count,
        }
    }

    /// The partner at the distance of a step of halving or doubling.
    fn aim(&mut self) {
        let Some(part) = self.place.checked_div(self.distance) else {
            self.next.to = self.place;
            return;
        };
        let distance = if part.is_multiple_of(2) { self.distance } else { self.count - self.distance };
        self.next.to = (self.place + distance) % self.count;
        self.next.from = self.next.to;
    }

    pub(crate) fn start(&mut self, demands: &mut Vec<Demand>) {
        for _ in 0..self.width() {
            self.ask(demands);
        }
    }

    pub(crate) fn on_arrival(&mut self, demands: &mut Vec<Demand>) {
        self.arrived += 1;
        self.ask(demands);
    }

    pub(crate) fn on_token(&mut self, demands: &mut Vec<Demand>) {
        self.tokens += 1;
        let half = self.count - 1;
        let is_direct = matches!(self.shape, Shape::Direct(_));
        let tries = match is_direct && self.operation == Operation::AllReduce && self.left <= half {
            // Nothing is passed on before all has been reduced.
            true if self.arrived < half => return,
            true => self.width(),
            false => 1,
        };
        for _ in 0..tries {
            self.send(demands);
        }
        if self.left == 0 && self.tokens == self.width() {
            demands.push(Demand::Over);
        }
    }

    /// Asks for a token with which the next message may go.
    fn ask(&mut self, demands: &mut Vec<Demand>) {
        if self.plain == 0 && self.others == 0 {
            self.plain = self.width();
            self.others = match self.shape {
                Shape::Ring => self.count - 1,
                Shape::Direct(width) if self.is_group => (self.count - 1) * width,
                Shape::Direct(width) => width,
                Shape::Halving => self.count.ilog2() - 1,
            };
            self.is_reducing = !self.is_reducing;
        }
        let is_plain = self.plain > 0;
        let reduces = !is_plain
            && match self.operation {
                Operation::ReduceScatter => true,
                Operation::AllReduce => self.is_reducing,
                Operation::AllGather | Operation::AllToAll => false,
            };
        self.packets.push_back(self.next);
        demands.push(Demand::Token { bytes: self.next.bytes, reduces });
        self.advance();
        match is_plain {
            true => self.plain -= 1,
            false => self.others -= 1,
        }
    }

    /// Goes on to the message after the next one.
    fn advance(&mut self) {
        match self.shape {
            Shape::Ring => {}
            Shape::Direct(_) => {
                let past = |steps: &Self, place: u32, is_clockwise: bool| {
                    let next = steps.beside(place, is_clockwise);
                    if next == steps.place { steps.beside(next, is_clockwise) } else { next }
                };
                self.next.to = past(self, self.next.to, self.is_clockwise);
                self.next.from = past(self, self.next.from, !self.is_clockwise);
            }
            Shape::Halving => {
                self.step();
                if self.distance == self.count && self.operation == Operation::AllReduce {
                    self.grows = false;
                    self.step();
                }
                self.aim();
            }
        }
    }

    /// The distance grows as the size shrinks, and the other way round.
    fn step(&mut self) {
        match self.grows {
            true => (self.distance, self.next.bytes) = (self.distance * 2, self.next.bytes / 2),
            false => {
                (self.distance, self.next.bytes) = (self.distance / 2, self.next.bytes.saturating_mul(2))
            }
        }
    }

    fn send(&mut self, demands: &mut Vec<Demand>) {
        if self.left == 0 || self.tokens == 0 {
            return;
        }
        let Some(Packet { from, to, bytes }) = self.packets.pop_front() else { return };
        demands.push(Demand::Send { to, bytes });
        demands.push(Demand::Receive { from, bytes });
        self.left -= 1;
        self.tokens -= 1;
    }
}

/// A phase of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    pub(crate) operation: Operation,
    pub(crate) shape: Shape,
    pub(crate) bytes: u64,
    pub(crate) is_clockwise: bool,
    pub(crate) is_group: bool,
}

/// How many messages every member sends, and the size of the first.
pub(crate) fn sizes(operation: Operation, shape: Shape, count: u32, bytes: u64) -> (u32, u64) {
    let others = count - 1;
    let log = count.ilog2();
    let messages = match (shape, operation) {
        (Shape::Halving, Operation::AllReduce) => 2 * log,
        (Shape::Halving, _) => log,
        (_, Operation::AllReduce) => 2 * others,
        // Around a ring a message for the k-th neighbour is sent k times.
        (Shape::Ring, Operation::AllToAll) => others * count / 2,
        _ => others,
    };
    let size = match (shape, operation) {
        (_, Operation::AllGather) => bytes,
        (Shape::Halving, _) => bytes / 2,
        _ => bytes / u64::from(count),
    };
    (messages, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a rank at place 3 of 8 does when every receive is answered at once.
    fn messages(operation: Operation, shape: Shape) -> (Vec<(u32, u64)>, usize) {
        let members = Members::Strided { first: 0, stride: 1, count: 8 };
        let phase = Phase { operation, shape, bytes: 800, is_clockwise: true, is_group: false };
        let mut steps = Steps::new(phase, &members, 3);
        let (mut demands, mut sent, mut reductions) = (Vec::new(), Vec::new(), 0);
        steps.start(&mut demands);
        let mut waiting: VecDeque<Demand> = demands.drain(..).collect();
        while let Some(demand) = waiting.pop_front() {
            match demand {
                Demand::Token { reduces, .. } => {
                    reductions += usize::from(reduces);
                    steps.on_token(&mut demands);
                }
                Demand::Send { to, bytes } => sent.push((to, bytes)),
                Demand::Receive { .. } => steps.on_arrival(&mut demands),
                Demand::Over => {
                    assert!(waiting.is_empty());
                    return (sent, reductions);
                }
            }
            waiting.extend(demands.drain(..));
        }
        panic!("it does not end: {sent:?}");
    }

    #[test]
    fn a_ring_sends_to_its_neighbour() {
        assert_eq!(messages(Operation::AllReduce, Shape::Ring), (vec![(4, 100); 14], 7));
        assert_eq!(messages(Operation::ReduceScatter, Shape::Ring), (vec![(4, 100); 7], 7));
        assert_eq!(messages(Operation::AllGather, Shape::Ring), (vec![(4, 800); 7], 0));
        assert_eq!(messages(Operation::AllToAll, Shape::Ring), (vec![(4, 100); 28], 0));
    }

    #[test]
    fn direct_exchange_goes_to_all_others() {
        for width in [1, 2, 7] {
            let (sent, _) = messages(Operation::AllToAll, Shape::Direct(width));
            let to: Vec<u32> = sent.iter().map(|&(to, _)| to).collect();
            assert_eq!(to, [4, 5, 6, 7, 0, 1, 2]);
        }
        let (sent, reductions) = messages(Operation::AllReduce, Shape::Direct(7));
        assert_eq!((sent.len(), reductions), (14, 7));
    }

    #[test]
    fn halving_and_doubling_meet_the_same_partners_on_the_way_back() {
        let (sent, _) = messages(Operation::AllReduce, Shape::Halving);
        assert_eq!(sent, [(2, 400), (1, 200), (7, 100), (7, 100), (1, 200), (2, 400)]);
        let (sent, _) = messages(Operation::AllGather, Shape::Halving);
        assert_eq!(sent, [(7, 800), (1, 1600), (2, 3200)]);
    }
}
