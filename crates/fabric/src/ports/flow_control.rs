//! What ports do for flow control: input buffers that fill, PAUSE frames, credits.

use netloom_units::Time;

use super::{Ports, just_after};
use crate::buffers::{Accounts, Buffers, Charge};
use crate::faults::DropCause;
use crate::packet::{Packet, PacketKind};
use crate::port::{Credit, Fate, Port, Wire};
use crate::rules::{DATA, LINK, Rules};

impl Ports {
    /// Ports are advanced one by one, so the account may still hold packets that have left by now. Brings all ports here and looks again; if there is
    /// no room even then, what begins at this instant makes room, too. `to`: the port by which the packet leaves.
    #[inline(never)]
    pub(super) fn charge_exactly(
        &mut self,
        packet: &Packet,
        to: u16,
        now: Time,
        rules: &Rules,
        wire: &mut impl Wire,
    ) -> Fate {
        let (ingress, queue) = (packet.ingress, rules.queue_in(packet));
        self.advance(now, rules, wire);
        if self.buffers.charge(None, (ingress, queue), (packet.size, to), false) == Charge::Fits {
            return Fate::Queued;
        }
        self.advance(just_after(now), rules, wire);
        let admission = self.buffers.charge_settled((ingress, queue), packet.size, to);
        // Where thresholds move, this packet may leave, and end a pause, before all else that the buffer holds.
        self.look_again(now);
        if admission.is_lost {
            let state = &mut self.ports[usize::from(ingress)];
            let is_fault = state.faults().is_some_and(|faults| faults.came_back_full);
            let (count, cause) = match is_fault {
                true => (&mut state.losses().lost, DropCause::Fault),
                false => (&mut state.losses().drops, DropCause::Full),
            };
            *count += 1;
            self.dropped.get_or_insert_default().note(packet, cause);
            return Fate::Dropped;
        }
        if admission.pauses {
            self.signal(ingress, now);
        }
        Fate::Queued
    }

    /// Which queues are paused has changed: puts a PAUSE frame into the port towards the neighbour that fills them. It says what holds when
    /// it leaves, so one that still waits will do.
    #[cold]
    #[inline(never)]
    pub(super) fn signal(&mut self, ingress: u16, now: Time) {
        self.look_at_order(now);
        let index = usize::from(ingress);
        if self.has_cuts && !self.may_signal(ingress, now) || self.ports[index].occupied >> LINK & 1 == 1 {
            return;
        }
        let size = self.buffers.pause_size();
        let frame = Packet { kind: PacketKind::Pause, size, ..Packet::EMPTY };
        self.append(index, LINK, &frame, now);
    }

    /// A PAUSE frame has come in: pauses and resumes queues of the port by which it came.
    #[inline(never)]
    pub fn on_pause(&mut self, frame: &Packet, now: Time, rules: &Rules, wire: &mut impl Wire) {
        let port = frame.ingress;
        self.advance_under_flow_control(port, now, rules, wire);
        let (must_pause, paused) = (frame.paused_queues() << DATA, self.ports[usize::from(port)].paused);
        self.ports[usize::from(port)].pause(must_pause & !paused, now, self.is_host);
        self.note_departure(port.into());
        self.resume(port, paused & !must_pause, now);
    }

    /// A credit has come back to a port.
    #[inline(always)]
    pub fn on_credit(&mut self, credit: Credit, now: Time, rules: &Rules, wire: &mut impl Wire) {
        if self.starts_before(credit.port, now) {
            return self.on_credit_behind(credit, now, rules, wire);
        }
        self.take_credit(credit, now);
    }

    /// [`Self::on_credit`] of a port that has sent meanwhile.
    // Apart, so that the other case saves no registers.
    #[inline(never)]
    fn on_credit_behind(&mut self, credit: Credit, now: Time, rules: &Rules, wire: &mut impl Wire) {
        self.advance_port_lossless(credit.port, now, rules, wire);
        self.take_credit(credit, now);
    }

    #[inline(always)]
    fn take_credit(&mut self, credit: Credit, now: Time) {
        if self.buffers.earn(credit) {
            self.resume(credit.port, 1 << (usize::from(credit.queue) + DATA), now);
        }
    }

    /// [`Self::on_credit`] where no port concerns another. What its port has begun before it came is not looked at as long as the queue cannot have run out of credit meanwhile.
    #[inline(always)]
    pub fn on_credit_apart(&mut self, credit: Credit, now: Time, rules: &Rules, wire: &mut impl Wire) {
        let queued = self.ports[usize::from(credit.port)].queued;
        if self.starts_before(credit.port, now) && !self.buffers.suffice(credit, queued) {
            self.advance_port_lossless(credit.port, now, rules, wire);
        }
        if self.buffers.earn(credit) {
            self.go_on(credit.port, 1 << (usize::from(credit.queue) + DATA), now);
        }
    }

    /// A packet ends here and leaves its input at once: credits go back. All ports are at `now`, or are a host's.
    #[inline(always)]
    pub fn absorb(&mut self, packet: &Packet, now: Time, rules: &Rules, wire: &mut impl Wire) {
        if matches!(self.buffers, Buffers::Credits(_)) && rules.is_in_data_queue(packet) {
            self.absorb_under_credits(packet, now, rules, wire);
        }
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    fn absorb_under_credits(&mut self, packet: &Packet, now: Time, rules: &Rules, wire: &mut impl Wire) {
        let (ingress, queue) = (packet.ingress, rules.queue_in(packet));
        if let Some(accounts) = self.buffers.accounts()
            && let Some(bytes) = accounts.returns.take(ingress, queue, u32::from(packet.size))
        {
            let delay = accounts.delay[usize::from(ingress)];
            send_credit(&self.ports[usize::from(ingress)], queue as u8, now, delay, bytes, wire);
        }
    }

    /// All ports are at `until`: gives back the credits of what has left before.
    #[inline(never)]
    pub(super) fn return_credits(&mut self, until: Time, wire: &mut impl Wire) {
        let Ports { ports, buffers: Buffers::Credits(accounts), .. } = self else { return };
        let Accounts { returns, delay, .. } = &mut **accounts;
        returns.give_back(until, |ingress, queue, at, bytes| {
            let index = usize::from(ingress);
            send_credit(&ports[index], queue, at, delay[index], bytes, wire);
        });
    }

    /// Resumes paused queues, given as bits.
    #[inline(never)]
    pub(super) fn resume(&mut self, port: u16, queues: u32, now: Time) {
        self.look_again(now);
        self.go_on(port, queues, now);
        self.note_departure(port.into());
    }

    /// [`Self::resume`] where no port concerns another.
    #[inline(never)]
    fn go_on(&mut self, port: u16, queues: u32, now: Time) {
        let index = usize::from(port);
        let state = &mut self.ports[index];
        if state.ready() == 0 {
            state.free_at = state.free_at.max(now);
        }
        state.paused &= !queues;
        state.note_pause_at_once(now, self.is_host);
        if state.ready() != 0 {
            self.waiting[index / 64] |= 1 << (index % 64);
        }
    }

    /// Whether some queue of a port may not send.
    #[inline(always)]
    pub fn is_paused(&self, port: u16) -> bool {
        self.ports[usize::from(port)].paused != 0
    }

    /// Whether a data queue of a port, from 0, may send.
    #[inline]
    pub fn may_send(&self, port: u16, queue: usize) -> bool {
        self.ports[usize::from(port)].paused >> (queue + DATA) & 1 == 0
    }

    /// Bytes that a port has begun to send before `now` and for which no credit has come back; 0 without credits.
    pub fn unreturned(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> u64 {
        self.advance_port(port, now, rules, wire);
        self.buffers.unreturned(port)
    }

    /// Bytes that have left the input buffer of a port and data queue (from 0) and for which no credit has gone back.
    pub fn owed(&self, port: u16, queue: usize) -> u64 {
        self.buffers.owed(port, queue)
    }

    /// Bytes of a data queue (from 0) that a port may still send downstream; `None` without credits.
    pub fn credits(&self, port: u16, queue: usize) -> Option<u64> {
        self.buffers.credits(port, queue)
    }
}

/// Sends a credit back from the input of a port at `at`, if the link is not cut on its way.
#[inline(always)]
pub(super) fn send_credit(state: &Port, queue: u8, at: Time, delay: Time, bytes: u32, wire: &mut impl Wire) {
    let arrival = at + delay;
    if state.faults().is_none_or(|faults| !faults.is_cut_between(at, arrival)) {
        wire.credit(state.to, state.channel, arrival, Credit { port: state.peer, queue, bytes });
    }
}
