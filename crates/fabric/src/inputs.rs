//! Packets that wait at their inputs because the output queue they want is full.
//!
//! An input holds one queue per lane, so a packet that waits there also holds back those behind it that want another output (head-of-line
//! blocking within the switch).

use std::collections::VecDeque;

use netloom_units::Time;

use crate::packet::Packet;

/// The input queues of a switch whose output queues are bounded although nothing is lost.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    /// Per input port and data lane.
    queues: Vec<VecDeque<Waiting>>,
    lanes: usize,
    /// Packets in all queues.
    count: usize,
    /// Most bytes in an output lane.
    limit: u64,
}

/// A packet at its input.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    since: Time,
    /// The output port and lane that it wants.
    pub(crate) port: usize,
    pub(crate) lane: usize,
    pub(crate) packet: Packet,
}

impl Inputs {
    /// Empty queues of this many ports with this many data lanes each.
    pub(crate) fn new(ports: usize, lanes: usize, limit: u64) -> Self {
        Inputs { queues: vec![VecDeque::new(); ports * lanes], lanes, count: 0, limit }
    }

    /// Whether nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether nothing waits at the input of a port and data lane.
    pub(crate) fn is_free(&self, ingress: u16, lane: usize) -> bool {
        self.queues[usize::from(ingress) * self.lanes + lane].is_empty()
    }

    /// Whether a packet that comes through a port and data lane must wait, if its output lane holds `queued` bytes.
    pub(crate) fn must_wait(&self, ingress: u16, lane: usize, size: u16, queued: u64) -> bool {
        !self.is_free(ingress, lane) || queued + u64::from(size) > self.limit
    }

    /// A packet that came through `packet.ingress` and the data lane `from` waits from now on for an output port and lane.
    pub(crate) fn push(&mut self, since: Time, from: usize, (port, lane): (usize, usize), packet: Packet) {
        self.count += 1;
        self.queues[usize::from(packet.ingress) * self.lanes + from].push_back(Waiting {
            since,
            port,
            lane,
            packet,
        });
    }

    /// Takes out the packet that goes next: of those at the head of a queue for whose output there is room, the one that has waited longest
    /// (then by input port and lane). `queued` says how many bytes an output lane holds.
    pub(crate) fn pop(&mut self, queued: impl Fn(usize, usize) -> u64) -> Option<Waiting> {
        if self.count == 0 {
            return None;
        }
        let fits =
            |first: &Waiting| queued(first.port, first.lane) + u64::from(first.packet.size) <= self.limit;
        let heads = self.queues.iter().enumerate().filter_map(|(index, queue)| Some((queue.front()?, index)));
        let (_, index) =
            heads.filter(|(first, _)| fits(first)).map(|(first, index)| (first.since, index)).min()?;
        self.count -= 1;
        self.queues[index].pop_front()
    }

    /// All packets, with the output ports and lanes for which they wait: those that the head of their queue wants.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize, &Packet)> {
        self.queues
            .iter()
            .filter_map(|queue| Some((queue, queue.front()?)))
            .flat_map(|(queue, first)| queue.iter().map(|waiting| (first.port, first.lane, &waiting.packet)))
    }
}
