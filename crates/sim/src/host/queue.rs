//! A NIC with a queue: the transport hands over at once what it may send, and there it waits for the link.
//!
//! A packet's path, its timestamp and the gap before it are then those of the moment when it is handed over, so round-trip times hold
//! what waits at the NIC. Classes and flow control act on the queue as on any port; ACKs wait for no data.

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, Rules};
use netloom_units::Time;

use super::{Host, NIC};
use crate::model::{Channels, Message, World};
use crate::turns::{Turn, Turns};

/// What the transport of a host has handed over to its NIC.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Turns<Packet>,
    /// The earliest instant for the next packet: no two of a host are handed over at the same time, so that an ACK, which echoes the time, says of
    /// which packet it is.
    free: Time,
    /// When the first of the flows that must wait may hand over again; `Time::MAX`: when something happens.
    opens: Time,
}

impl Queue {
    pub(crate) fn new(rules: &Rules) -> Box<Self> {
        Box::new(Queue { waiting: Turns::new(rules), free: Time::ZERO, opens: Time::MAX })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn opens(&self) -> Option<Time> {
        Some(self.opens).filter(|&opens| opens < Time::MAX)
    }

    /// The packets that wait.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.waiting.iter()
    }
}

impl Host {
    /// The NIC's queue, if it has one.
    pub(crate) fn queue(&self) -> Option<&Queue> {
        self.queue.as_deref()
    }

    /// The flows hand over what they may send now, in turn. Does nothing where the NIC has no queue.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, world: &World, id: u32, now: Time, out: &mut impl Scheduler<Message>) {
        if self.queue.is_some() {
            self.fill_queue(world, id, now, out);
        }
    }

    #[inline(never)]
    fn fill_queue(&mut self, world: &World, id: u32, now: Time, out: &mut impl Scheduler<Message>) {
        loop {
            let Some(at) = self.queue.as_ref().map(|queue| queue.free.max(now)) else { return };
            let turn = self.next_turn(world, at);
            let taken = match turn {
                Turn::Now(slot) => self.take_packet(world, id, slot, at, out),
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
    pub(super) fn send_queued(&mut self, world: &World, at: Time, out: &mut impl Scheduler<Message>) -> bool {
        let Host { queue, nic, stopped, .. } = self;
        let Some(queue) = queue else { return false };
        let is_stopped =
            |lane| (0..8).any(|class| *stopped >> class & 1 != 0 && world.rules.first_lane(class) == lane);
        let is_open = |lane| nic.is_open(NIC, lane) && (*stopped == 0 || !is_stopped(lane));
        let Turn::Now(mut packet) = queue.waiting.next(&world.rules, at, is_open, |_| Some(at)) else {
            return false;
        };
        nic.send_now(NIC, &mut packet, at, &world.rules, &mut Channels(out));
        true
    }
}
