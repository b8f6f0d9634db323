//! A NIC with a queue: the transport hands over at once what it may send, and there it waits for the link.
//!
//! A packet's path, its timestamp and the gap before it are then those of the moment when it is handed over, so round-trip times hold
//! what waits at the NIC. Classes and flow control act on the queue as on any port; ACKs wait for no data. What order packets of a class have is
//! [`NicQueue`]'s to say.

use std::collections::VecDeque;

use netloom_fabric::{Packet, Rules};
use netloom_transport::NicQueue;
use netloom_units::Time;
use netloom_units::memory::push_few;

use crate::host::send_queue::{Next, SendQueue};

/// What the transport of a host has handed over to its NIC.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) waiting: Waiting,
    /// The earliest instant for the next packet: no two of a host are handed over at the same time, so that an ACK, which echoes the time, says of
    /// which packet it is.
    pub(crate) free: Time,
    /// When the first of the flows that must wait may hand over again; `Time::MAX`: when something happens.
    pub(crate) opens: Time,
}

/// The packets in a NIC's queue.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// In the order in which they were handed over, by class.
    Fifo(SendQueue<Packet>),
    /// A queue for each flow.
    Fair(FairQueue),
}

/// Packets by flow, and the flows with any in turn.
#[derive(Debug)]
pub(crate) struct FairQueue {
    send_queue: SendQueue<QueuedFlow>,
    /// By data queue and slot of the flow. A flow that follows another one in its slot stands behind what is left of that one: repetitions that turned out to be needless.
    by_flow: Box<[Vec<VecDeque<Packet>>]>,
}

/// Where the packets of a flow are.
#[derive(Clone, Copy, Debug)]
struct QueuedFlow {
    queue: u8,
    slot: u32,
}

impl FairQueue {
    fn new(rules: &Rules) -> Self {
        FairQueue {
            send_queue: SendQueue::new(rules),
            by_flow: (0..rules.host_queues()).map(|_| Vec::new()).collect(),
        }
    }

    fn push(&mut self, queue: u8, packet: Packet) {
        let (by_flow, slot) = (&mut self.by_flow[usize::from(queue)], packet.slot);
        while slot as usize >= by_flow.len() {
            push_few(by_flow, VecDeque::new());
        }
        let packets = &mut by_flow[slot as usize];
        packets.push_back(packet);
        if packets.len() == 1 {
            self.send_queue.push(queue, QueuedFlow { queue, slot });
        }
    }

    /// Takes out the first packet of the flow whose turn it is; the flow goes to the end of its queue if it has more.
    fn next(&mut self, rules: &Rules, at: Time, is_open: impl Fn(usize) -> bool) -> Option<Packet> {
        let Next::Now(flow) = self.send_queue.next(rules, at, is_open, |_| Some(at)) else { return None };
        let packets = &mut self.by_flow[usize::from(flow.queue)][flow.slot as usize];
        let packet = packets.pop_front();
        if !packets.is_empty() {
            self.send_queue.push(flow.queue, flow);
        }
        packet
    }
}

impl Waiting {
    pub(crate) fn push(&mut self, queue: u8, packet: Packet) {
        match self {
            Waiting::Fifo(send_queue) => send_queue.push(queue, packet),
            Waiting::Fair(flows) => flows.push(queue, packet),
        }
    }

    /// Takes out the packet that leaves at `at`, if there is one in a queue that flow control lets send.
    pub(crate) fn next(
        &mut self,
        rules: &Rules,
        at: Time,
        is_open: impl Fn(usize) -> bool,
    ) -> Option<Packet> {
        match self {
            Waiting::Fifo(send_queue) => match send_queue.next(rules, at, is_open, |_| Some(at)) {
                Next::Now(packet) => Some(packet),
                Next::At(_) | Next::Never => None,
            },
            Waiting::Fair(flows) => flows.next(rules, at, is_open),
        }
    }
}

impl Queue {
    /// A queue of that kind; `None` if the NIC has none.
    pub(crate) fn new(kind: NicQueue, rules: &Rules) -> Option<Box<Self>> {
        let waiting = match kind {
            NicQueue::None => return None,
            NicQueue::Fifo => Waiting::Fifo(SendQueue::new(rules)),
            NicQueue::Fair => Waiting::Fair(FairQueue::new(rules)),
        };
        Some(Box::new(Queue { waiting, free: Time::ZERO, opens: Time::MAX }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        match &self.waiting {
            Waiting::Fifo(send_queue) => send_queue.is_empty(),
            Waiting::Fair(flows) => flows.send_queue.is_empty(),
        }
    }

    pub(crate) fn opens(&self) -> Option<Time> {
        Some(self.opens).filter(|&opens| opens < Time::MAX)
    }

    /// The packets that wait.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        let (fifo, fair) = match &self.waiting {
            Waiting::Fifo(send_queue) => (Some(send_queue), None),
            Waiting::Fair(flows) => (None, Some(flows)),
        };
        let of_flows = fair.into_iter().flat_map(|flows| flows.by_flow.iter().flatten().flatten());
        fifo.into_iter().flat_map(|send_queue| send_queue.iter()).chain(of_flows)
    }
}
