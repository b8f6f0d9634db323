//! Links that are cut and repaired, and lose packets, under flow control.
//!
//! A link that goes down takes what its two ends know of each other with it, as a real one does: PAUSE frames and credits on their way, pauses
//! that hold, credits that are left. When it comes up again, an input buffer that still has its neighbour paused sends another PAUSE frame
//! (a switch's buffer manager requests a pause as long as the buffer is above its threshold, whatever the link does), and a sender
//! under credits gets credit for the room that the buffer at the other end then has (InfiniBand's counters of what was sent and received begin
//! at zero when a link is initialised, and the first flow control packet says how much more may come: IBTA Specification 1.2.1, 7.9.4).
//!
//! A packet that is lost at random on a link under credits gives its room back when it would have arrived: InfiniBand's receivers learn from
//! the sender how much it has sent, and count what they have not got as received (there, too).
//!
//! The nodes at both ends set timers for cuts and repairs, which come after the messages of their instant, and call the functions below: what is thrown away leaves input buffers of other
//! ports at that moment.

use netloom_units::Time;

use super::cuts::throw_away;
use super::flow_control::send_credit;
use super::start::Transmitter;
use super::{At, Ports};
use crate::buffers::{Buffers, Effect};
use crate::faults::DropCause;
use crate::packet::{NO_INGRESS, Packet};
use crate::port::{Credit, Wire};
use crate::rules::{DATA, Rules};

impl Ports {
    /// Under flow control: the link of a port is cut now, after everything that reaches the node in that instant. What waits for it is lost, or taken out if it `goes_back`. `buffered`: packets
    /// that the node keeps beside its ports.
    #[cold]
    pub fn cut_link<'p>(
        &mut self,
        port: u16,
        buffered: impl Iterator<Item = &'p Packet>,
        goes_back: impl Fn(&Packet) -> bool,
        at: At<'_, impl Wire>,
    ) -> Vec<Packet> {
        let At { now, rules, wire } = at;
        self.advance(now, rules, wire);
        let index = usize::from(port);
        let (mut back, mut resumed) = (Vec::new(), Vec::new());
        let Ports { ports, queues, buffers, dropped, is_host, .. } = self;
        let state = &mut ports[index];
        if let Some(faults) = state.faults_mut() {
            faults.take_flush(now);
            (faults.is_down, faults.came_back_full) = (true, false);
        }
        throw_away(state, queues, now, rules, dropped, |queue, packet| {
            if queue >= DATA && !*is_host && packet.ingress != NO_INGRESS {
                let effect = buffers.leave(now, packet.size, (packet.ingress, rules.queue_in(packet)));
                resumed.extend(matches!(effect, Effect::Resumes(_)).then_some(packet.ingress));
            }
            let leaves = goes_back(packet);
            back.extend(leaves.then_some(*packet));
            leaves
        });
        self.note_departure(index);
        resumed.into_iter().for_each(|ingress| self.signal(ingress, now));
        if self.inputs.is_some() {
            self.move_in(now, rules);
        }
        self.resume(port, self.ports[index].paused, now);
        self.forget_credits(port, buffered, rules);
        back
    }

    /// The credits of both directions of a link that is cut are forgotten.
    fn forget_credits<'p>(&mut self, port: u16, buffered: impl Iterator<Item = &'p Packet>, rules: &Rules) {
        if !matches!(self.buffers, Buffers::Credits(_)) {
            return;
        }
        let (mut queues, is_host) = (vec![0; rules.data_queues()], self.is_host);
        let mut count = |packet: &Packet| {
            if packet.ingress == port && rules.is_in_data_queue(packet) && !is_host {
                queues[rules.queue_in(packet)] += u32::from(packet.size);
            }
        };
        self.waiting_packets(rules).for_each(|(_, _, packet)| count(packet));
        buffered.for_each(count);
        if let Some(accounts) = self.buffers.accounts() {
            accounts.cut(port, &queues);
        }
    }

    /// Under flow control: the link of a port is repaired at `now`, after everything that reaches the node in that instant.
    #[cold]
    pub fn restore_link(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) {
        self.advance(now, rules, wire);
        let index = usize::from(port);
        let is_full = self.buffers.paused_queues(port) != 0;
        if let Some(faults) = self.ports[index].faults_mut() {
            (faults.is_down, faults.came_back_full) = (false, is_full);
        }
        if is_full {
            self.signal(port, now);
        }
        if self.buffers.accounts().is_none() {
            return;
        }
        self.ports[index].pause((1 << rules.queues) - (1 << DATA), now, self.is_host);
        self.note_departure(index);
        let Ports { ports, buffers, .. } = self;
        let Some(accounts) = buffers.accounts() else { return };
        let state = &mut ports[index];
        let arrival = now + accounts.delay[index];
        let is_lost = state.faults().is_some_and(|faults| faults.is_cut_between(now, arrival));
        for (queue, bytes) in (0..).zip(accounts.returns.restore(port)) {
            if !is_lost {
                wire.grant(state.to, state.channel, arrival, Credit { port: state.peer, queue, bytes });
            }
        }
    }

    /// A packet that would have filled this room is missing: it goes back at once.
    pub fn on_missed(&mut self, room: Credit, now: Time, rules: &Rules, wire: &mut impl Wire) {
        self.advance(now, rules, wire);
        let Credit { port, queue, bytes } = room;
        if let Some(accounts) = self.buffers.accounts()
            && let Some(bytes) = accounts.returns.take(port, usize::from(queue), bytes)
        {
            let delay = accounts.delay[usize::from(port)];
            send_credit(&self.ports[usize::from(port)], queue, now, delay, bytes, wire);
        }
    }

    /// A packet that has just come, or is kept beside the ports, goes nowhere from here: its room goes back.
    #[cold]
    pub fn let_go(&mut self, packet: &Packet, now: Time, rules: &Rules, wire: &mut impl Wire) {
        if packet.ingress != NO_INGRESS && !self.is_host {
            self.advance(now, rules, wire);
            self.absorb(packet, now, rules, wire);
        }
    }

    /// Whether a packet that comes for a port is lost, as its link is cut. One that has to wait behind others at its input is not lost yet.
    #[cold]
    #[inline(never)]
    pub(super) fn is_lost_to_cut(
        &mut self,
        port: u16,
        packet: &Packet,
        now: Time,
        rules: &Rules,
        wire: &mut impl Wire,
    ) -> bool {
        let is_behind = |ports: &Ports| {
            let queue = || rules.queue_in(packet);
            let inputs = ports.inputs.as_ref().filter(|_| packet.ingress != NO_INGRESS);
            inputs.is_some_and(|inputs| {
                rules.is_in_data_queue(packet) && !inputs.is_free(packet.ingress, queue())
            })
        };
        if !self.is_cut(port, now) || is_behind(self) {
            return false;
        }
        self.ports[usize::from(port)].losses().lost += 1;
        self.dropped.get_or_insert_default().note(packet, DropCause::Fault);
        self.let_go(packet, now, rules, wire);
        true
    }

    /// A packet that an input buffer holds is lost, as the link of the port that it wants is cut.
    #[cold]
    pub(super) fn lose_charged(&mut self, index: usize, packet: &Packet, now: Time, rules: &Rules) {
        self.ports[index].losses().lost += 1;
        self.dropped.get_or_insert_default().note(packet, DropCause::Fault);
        let from = (packet.ingress, rules.queue_in(packet));
        if let Effect::Resumes(ingress) = self.buffers.leave(now, packet.size, from) {
            self.signal(ingress, now);
        }
    }

    /// Whether a PAUSE frame may leave by a port: its link is not cut. Notes when nothing is paused there any more.
    #[cold]
    #[inline(never)]
    pub(super) fn may_signal(&mut self, port: u16, now: Time) -> bool {
        let is_paused = self.buffers.paused_queues(port) != 0;
        let is_cut = self.is_cut(port, now);
        if let Some(faults) = self.ports[usize::from(port)].faults_mut() {
            faults.came_back_full &= is_paused;
        }
        !is_cut
    }
}

/// A data packet of a queue that should have started at `start` is lost on the channel: it leaves the input buffer (port, data queue; port [`NO_INGRESS`]: none) `from` which it comes all the same, unless it only `passes` there, and if it has begun, the other end
/// under credits notices that it is missing. Returns what follows from that at another port.
#[cold]
#[inline(never)]
#[expect(clippy::cast_possible_truncation, reason = "at most 65,535 ports, with at most 31 queues each")]
pub(super) fn lose(
    transmitter: Transmitter<'_, impl Wire>,
    packet: &Packet,
    passes: bool,
    (queue, start, from): (usize, Time, (u16, usize)),
) -> Effect {
    let Transmitter { port, index, buffers, dropped, is_host, at, .. } = transmitter;
    dropped.get_or_insert_default().note(packet, DropCause::Fault);
    if port.free_at == start {
        // The link is cut, and nothing has begun. A NIC that pulls its data goes on at its pace.
        if is_host {
            port.pass(packet, start);
        }
        // Under credits its room has been noted.
        let is_held = from.0 != NO_INGRESS && !passes && buffers.accounts().is_none();
        return if is_held { buffers.leave(start, packet.size, from) } else { Effect::None };
    }
    let to = (index as u16, queue - DATA);
    let effect = buffers.on_departure(None, packet.size, passes, from, to);
    let missed = port.faults_mut().and_then(|faults| faults.missed.take());
    if let (Some(arrival), Some(_)) = (missed, buffers.accounts()) {
        let room = Credit { port: port.peer, queue: (queue - DATA) as u8, bytes: u32::from(packet.size) };
        at.wire.miss(port.to, port.channel, arrival, room);
    }
    if effect == Effect::OutOfCredit {
        port.pause_queue(queue, start, is_host);
        return Effect::None;
    }
    effect
}
