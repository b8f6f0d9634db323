//! Packets that wait at their inputs because the output queue they want is full.
//!
//! An input holds one queue per traffic class and virtual channel, so a packet that waits there also holds back those behind it that want another output (head-of-line
//! blocking within the switch).

use std::collections::VecDeque;

use netloom_units::Time;
use netloom_units::recurrence::Walk;

use crate::packet::{NumbersOf, Packet};

/// The input queues of a switch whose output queues are bounded although nothing is lost.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    /// Per input port and data queue.
    queues: Vec<VecDeque<Waiting>>,
    /// Data queues of a port.
    per_port: usize,
    /// Packets in all queues.
    count: usize,
    /// Most bytes in an output queue.
    limit: u64,
}

/// A packet at its input.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    since: Time,
    /// The output port and queue that it wants.
    pub(crate) port: usize,
    pub(crate) queue: usize,
    pub(crate) packet: Packet,
}

impl Inputs {
    /// [Recur](netloom_units::recurrence).
    pub(crate) fn recur(&mut self, numbers_of: NumbersOf, walk: &mut Walk) {
        let Inputs { queues, per_port: _, count, limit: _ } = self;
        walk.count(*count);
        for queue in queues {
            walk.count(queue.len());
            for Waiting { since, port, queue, packet } in queue {
                walk.time(since);
                walk.count(*port);
                walk.count(*queue);
                packet.recur(numbers_of, walk);
            }
        }
    }
}

impl Inputs {
    /// Empty queues of a number of ports with `per_port` data queues each.
    pub(crate) fn new(ports: usize, per_port: usize, limit: u64) -> Self {
        Inputs { queues: vec![VecDeque::new(); ports * per_port], per_port, count: 0, limit }
    }

    /// Whether nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether nothing waits at the input of a port and data queue.
    pub(crate) fn is_free(&self, ingress: u16, queue: usize) -> bool {
        self.queues[usize::from(ingress) * self.per_port + queue].is_empty()
    }

    /// Whether a packet that comes through a port and data queue must wait, if its output queue holds `queued` bytes.
    pub(crate) fn must_wait(&self, ingress: u16, queue: usize, size: u16, queued: u64) -> bool {
        !self.is_free(ingress, queue) || queued + u64::from(size) > self.limit
    }

    /// A packet that came through `packet.ingress` and the data queue `from` waits from now on for an output port and queue.
    pub(crate) fn push(&mut self, since: Time, from: usize, (port, queue): (usize, usize), packet: Packet) {
        self.count += 1;
        self.queues[usize::from(packet.ingress) * self.per_port + from].push_back(Waiting {
            since,
            port,
            queue,
            packet,
        });
    }

    /// Takes out the packet that goes next: of those at the head of a queue for whose output there is room, the one that has waited longest
    /// (then by input port and queue). `queued` says how many bytes an output queue holds.
    pub(crate) fn pop(&mut self, queued: impl Fn(usize, usize) -> u64) -> Option<Waiting> {
        if self.count == 0 {
            return None;
        }
        let fits =
            |first: &Waiting| queued(first.port, first.queue) + u64::from(first.packet.size) <= self.limit;
        let heads = self.queues.iter().enumerate().filter_map(|(index, queue)| Some((queue.front()?, index)));
        let (_, index) =
            heads.filter(|(first, _)| fits(first)).map(|(first, index)| (first.since, index)).min()?;
        self.count -= 1;
        self.queues[index].pop_front()
    }

    /// All packets, with the output ports and queues for which they wait: those that the head of their queue wants.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize, &Packet)> {
        self.queues
            .iter()
            .filter_map(|queue| Some((queue, queue.front()?)))
            .flat_map(|(queue, first)| queue.iter().map(|waiting| (first.port, first.queue, &waiting.packet)))
    }
}
