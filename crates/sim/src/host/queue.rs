//! A NIC with a queue: the transport hands over at once what it may send, and there it waits for the link.
//!
//! A packet's path, its timestamp and the gap before it are then those of the moment when it is handed over, so round-trip times hold
//! what waits at the NIC. Classes and flow control act on the queue as on any port; ACKs wait for no data. What order packets of a class have is
//! [`NicQueue`]'s to say.

use std::collections::VecDeque;

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, Rules};
use netloom_transport::NicQueue;
use netloom_units::Time;
use netloom_units::memory::push_few;

use super::{Host, NIC};
use crate::ctx::Ctx;
use crate::model::Message;
use crate::turns::{Turn, Turns};

/// What the transport of a host has handed over to its NIC.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Waiting,
    /// The earliest instant for the next packet: no two of a host are handed over at the same time, so that an ACK, which echoes the time, says of
    /// which packet it is.
    free: Time,
    /// When the first of the flows that must wait may hand over again; `Time::MAX`: when something happens.
    opens: Time,
}

/// The packets in a NIC's queue.
#[derive(Debug)]
enum Waiting {
    /// In the order in which they were handed over, by class.
    Fifo(Turns<Packet>),
    /// A line for each flow.
    Fair(FlowLines),
}

/// Packets by flow, and the flows with any in turn.
#[derive(Debug)]
struct FlowLines {
    turns: Turns<FlowLine>,
    /// By data lane and slot of the flow. A flow that follows another one in its slot stands behind what is left of that one: repetitions that turned out to be needless.
    lines: Box<[Vec<VecDeque<Packet>>]>,
}

/// Where the packets of a flow are.
#[derive(Clone, Copy, Debug)]
struct FlowLine {
    lane: u8,
    slot: u32,
}

impl FlowLines {
    fn new(rules: &Rules) -> Self {
        FlowLines { turns: Turns::new(rules), lines: (0..rules.data_lanes()).map(|_| Vec::new()).collect() }
    }

    fn push(&mut self, lane: u8, packet: Packet) {
        let (lines, slot) = (&mut self.lines[usize::from(lane)], packet.slot);
        while slot as usize >= lines.len() {
            push_few(lines, VecDeque::new());
        }
        let line = &mut lines[slot as usize];
        line.push_back(packet);
        if line.len() == 1 {
            self.turns.push(lane, FlowLine { lane, slot });
        }
    }

    /// Takes out the first packet of the flow whose turn it is; the flow goes to the end of its lane if it has more.
    fn next(&mut self, rules: &Rules, at: Time, is_open: impl Fn(usize) -> bool) -> Option<Packet> {
        let Turn::Now(flow) = self.turns.next(rules, at, is_open, |_| Some(at)) else { return None };
        let line = &mut self.lines[usize::from(flow.lane)][flow.slot as usize];
        let packet = line.pop_front();
        if !line.is_empty() {
            self.turns.push(flow.lane, flow);
        }
        packet
    }
}

impl Waiting {
    fn push(&mut self, lane: u8, packet: Packet) {
        match self {
            Waiting::Fifo(turns) => turns.push(lane, packet),
            Waiting::Fair(flows) => flows.push(lane, packet),
        }
    }

    /// Takes out the packet that leaves at `at`, if there is one in a lane that flow control lets send.
    fn next(&mut self, rules: &Rules, at: Time, is_open: impl Fn(usize) -> bool) -> Option<Packet> {
        match self {
            Waiting::Fifo(turns) => match turns.next(rules, at, is_open, |_| Some(at)) {
                Turn::Now(packet) => Some(packet),
                Turn::At(_) | Turn::Never => None,
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
            NicQueue::Fifo => Waiting::Fifo(Turns::new(rules)),
            NicQueue::Fair => Waiting::Fair(FlowLines::new(rules)),
        };
        Some(Box::new(Queue { waiting, free: Time::ZERO, opens: Time::MAX }))
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.waiting {
            Waiting::Fifo(turns) => turns.is_empty(),
            Waiting::Fair(flows) => flows.turns.is_empty(),
        }
    }

    pub(super) fn opens(&self) -> Option<Time> {
        Some(self.opens).filter(|&opens| opens < Time::MAX)
    }

    /// The packets that wait.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        let (fifo, fair) = match &self.waiting {
            Waiting::Fifo(turns) => (Some(turns), None),
            Waiting::Fair(flows) => (None, Some(flows)),
        };
        let of_flows = fair.into_iter().flat_map(|flows| flows.lines.iter().flatten().flatten());
        fifo.into_iter().flat_map(|turns| turns.iter()).chain(of_flows)
    }
}

impl Host {
    /// The NIC's queue, if it has one.
    pub(crate) fn queue(&self) -> Option<&Queue> {
        self.queue.as_deref()
    }

    /// The flows hand over what they may send now, in turn. Does nothing where the NIC has no queue.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        if self.queue.is_some() {
            self.fill_queue(ctx);
        }
    }

    #[inline(never)]
    fn fill_queue(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        loop {
            let Some(at) = self.queue.as_ref().map(|queue| queue.free.max(ctx.now)) else { return };
            let turn = self.next_turn(ctx.world, at);
            let taken = match turn {
                Turn::Now(slot) => self.take_packet(&mut ctx.at(at), slot),
                Turn::At(_) | Turn::Never => None,
            };
            let Some(queue) = &mut self.queue else { return };
            match (turn, taken) {
                (_, Some((lane, packet))) => {
                    queue.waiting.push(lane, packet);
                    queue.free = at + Time(1);
                }
                (Turn::Now(_), None) => {}
                (Turn::At(later), None) => {
                    queue.opens = later;
                    return;
                }
                (Turn::Never, None) => {
                    queue.opens = Time::MAX;
                    return;
                }
            }
        }
    }

    /// Sends the packet whose turn it is in the NIC's queue at `at`; returns whether there is one that may leave.
    #[inline(never)]
    pub(super) fn send_queued(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> bool {
        let Host { queue, nic, stopped, .. } = self;
        let Some(queue) = queue else { return false };
        let is_stopped = |lane| {
            (0..8).any(|class| *stopped >> class & 1 != 0 && ctx.world.rules.first_lane(class) == lane)
        };
        let is_open = |lane| nic.is_open(NIC, lane) && (*stopped == 0 || !is_stopped(lane));
        let Some(mut packet) = queue.waiting.next(&ctx.world.rules, ctx.now, is_open) else { return false };
        nic.send_now(NIC, &mut packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        true
    }
}
