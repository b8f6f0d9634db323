//! What happens at one port and concerns another one of the node, so that ports are advanced together, in order of time: departures that
//! end the pause of an input buffer, and packets that wait at their inputs because the output queue they want is full.
//!
//! A pause ends when enough bytes have left the buffer, which takes time. Before that ports are advanced one by one, as if nothing were paused.

use netloom_units::Time;
use rand::Rng;

use super::departures::Departures;
use super::enqueue::{join, note_waiting};
use super::{At, Ports, just_after};
use crate::buffers::{Concerned, Effect};
use crate::packet::{NO_INGRESS, Packet, PacketKind};
use crate::port::{Port, Wire};
use crate::rules::{DATA, Rules};

/// An instant that does not come.
const NEVER: Time = Time(u64::MAX - 1);

impl Ports {
    /// Whether what comes may concern more than the port by which it leaves: an input buffer is paused, or packets may have to wait at their inputs.
    #[inline(always)]
    pub fn is_entangled(&self) -> bool {
        self.apart_until != Time::MAX
    }

    /// Whether what comes at `now` concerns more than the port by which it leaves, as ports are [entangled](Self::is_entangled): what a port begins to send then may concern another, or
    /// something else comes at that instant, as it may unless the packet `is_alone`, so that all of it takes part in the choice of what starts.
    #[inline(always)]
    pub fn is_together(&self, now: Time, is_alone: bool) -> bool {
        match is_alone {
            // That is never where they are not entangled.
            true => now >= self.apart_until,
            false => self.is_entangled(),
        }
    }

    /// Starts every transmission that begins before `until` and could concern another port than its own.
    #[inline(always)]
    pub fn settle(&mut self, until: Time, rules: &Rules, wire: &mut impl Wire) {
        if self.apart_until < until {
            self.settle_together(until, rules, wire);
        }
    }

    #[inline(never)]
    fn settle_together(&mut self, until: Time, rules: &Rules, wire: &mut impl Wire) {
        if self.is_ordered {
            return self.advance_in_order(until, rules, wire);
        }
        if self.inputs.is_some() {
            return;
        }
        while self.apart_until < until.min(NEVER) {
            let (from, concerned) = (self.apart_until, self.buffers.concerned_by_pauses());
            self.start_apart(from, concerned, rules, wire);
            self.start_together(from, concerned, rules, wire);
            if self.is_entangled() {
                self.apart_until = self.first_resumption(rules);
            }
        }
    }

    /// Starts every transmission of some ports that begins before `until`, port by port.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    fn start_apart(&mut self, until: Time, Concerned(ports): Concerned, rules: &Rules, wire: &mut impl Wire) {
        for word in 0..self.waiting.len() {
            let mut bits = self.waiting[word] & ports;
            while bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.advance_under_flow_control(index as u16, until, rules, wire);
            }
        }
    }

    /// Starts every transmission of some ports that begins at an instant to which they have come, in the order of ports.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    fn start_together(
        &mut self,
        now: Time,
        Concerned(ports): Concerned,
        rules: &Rules,
        wire: &mut impl Wire,
    ) {
        let mut word = 0;
        while word < self.waiting.len() {
            let mut bits = self.waiting[word] & ports;
            word += 1;
            while bits != 0 {
                let index = (word - 1) * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if self.departure(index) <= now && self.start_ordered(index as u16, rules, wire) {
                    // A frame may go before what was next.
                    word = 0;
                    break;
                }
            }
        }
    }

    /// Before which instant no input buffer that is paused can resume, if no port is resumed.
    fn first_resumption(&self, rules: &Rules) -> Time {
        let mut first = NEVER;
        self.buffers.for_each_paused(|leaves_by, excess| {
            first = first.min(when_sent(excess, leaves_by, &self.ports, &self.waiting, rules));
        });
        first
    }

    /// Something has changed at `now` by which a buffer may resume earlier than was foreseen.
    #[inline(always)]
    pub(super) fn look_again(&mut self, now: Time) {
        if self.is_entangled() {
            self.apart_until = self.apart_until.min(now);
        }
    }

    /// Starts the node's transmissions one by one in order of (time, port): a departure may end the pause of an input buffer, and the frame
    /// that says so takes its turn at another port from then on; or it makes room for a packet that waits at its input.
    #[inline(never)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    pub(super) fn advance_in_order(&mut self, until: Time, rules: &Rules, wire: &mut impl Wire) {
        while self.is_ordered
            && let Some(port) = self.first_departure(until)
        {
            self.start_ordered(port as u16, rules, wire);
        }
    }

    /// The port that begins to send first, if that is before `until`, while ports are ordered.
    #[inline(always)]
    pub(super) fn first_departure(&self, until: Time) -> Option<usize> {
        let first = self.departures.as_ref().and_then(|departures| departures.first_before(until));
        debug_assert_eq!(
            first,
            (0..self.ports.len())
                .filter(|&port| self.departure(port) < until)
                .min_by_key(|&port| self.departure(port)),
            "no port has changed unseen"
        );
        first
    }

    /// When a port begins to send next; [`Time::MAX`] if nothing is ready there.
    #[inline(always)]
    fn departure(&self, index: usize) -> Time {
        let port = &self.ports[index];
        if port.ready() == 0 { Time::MAX } else { port.free_at }
    }

    /// What a port has ready, or when it will be free, has changed while ports may be ordered.
    #[inline(always)]
    pub(super) fn note_departure(&mut self, index: usize) {
        if self.is_ordered {
            let at = self.departure(index);
            if let Some(departures) = &mut self.departures {
                departures.set(index, at);
            }
        }
    }

    /// Starts the next transmission of a port that has one ready, while what it does may concern others. Returns whether it makes a PAUSE frame.
    #[inline(always)]
    pub(super) fn start_ordered(&mut self, port: u16, rules: &Rules, wire: &mut impl Wire) -> bool {
        let at = self.ports[usize::from(port)].free_at;
        let mut output = self.output(port, true, At::new(at, rules, wire));
        let effect = output.start_next();
        self.note_departure(port.into());
        if let Effect::Resumes(ingress) = effect {
            self.signal(ingress, at);
        }
        if self.inputs.is_some() {
            self.move_in(at, rules);
        }
        effect != Effect::None
    }

    /// Looks again at whether ports are ordered, and until when they are apart.
    pub(super) fn look_at_order(&mut self, now: Time) {
        let is_paused = self.buffers.is_paused();
        let is_ordered = match &self.inputs {
            Some(inputs) => is_paused || !inputs.is_empty(),
            None => false,
        };
        if self.has_cuts || is_ordered {
            return self.order();
        }
        self.is_ordered = false;
        self.apart_until = match (&self.inputs, is_paused) {
            (Some(_), _) => Time::ZERO,
            (None, true) => self.apart_until.min(now),
            (None, false) => Time::MAX,
        };
    }

    /// From now on ports are ordered, if they were not.
    #[cold]
    #[inline(never)]
    pub(super) fn order(&mut self) {
        if std::mem::replace(&mut self.is_ordered, true) {
            return;
        }
        self.apart_until = Time::ZERO;
        let mut departures = self.departures.take();
        let all = (0..self.ports.len()).map(|port| self.departure(port));
        match &mut departures {
            Some(departures) => departures.set_all(all),
            None => departures = Some(Box::new(Departures::new(all))),
        }
        self.departures = departures;
    }

    /// Keeps a packet at its input if its output queue is full.
    #[cold]
    #[inline(never)]
    pub(super) fn waits_at_input(
        &mut self,
        (index, queue): (usize, usize),
        packet: &mut Packet,
        random: &mut impl Rng,
        at: At<'_, impl Wire>,
    ) -> bool {
        let At { now, rules, wire } = at;
        let Some(inputs) = &self.inputs else { return false };
        if packet.ingress == NO_INGRESS || !rules.is_in_data_queue(packet) {
            return false;
        }
        let from = rules.queue_in(packet);
        let place = self.ports[index].number(queue);
        if !inputs.must_wait(packet.ingress, from, packet.size, self.queues.bytes(place)) {
            return false;
        }
        // From now on departures have consequences, so none of those before may be left out. They may also have made the room that is missing.
        self.advance(just_after(now), rules, wire);
        let queued = self.queues.bytes(place);
        let Some(inputs) = &self.inputs else { return false };
        if !inputs.must_wait(packet.ingress, from, packet.size, queued) {
            return false;
        }
        if packet.kind == PacketKind::Data {
            self.ports[index].mark_arrival(packet, queued, rules, random);
        }
        if let Some(inputs) = &mut self.inputs {
            inputs.push(now, from, (index, queue), *packet);
        }
        self.order();
        true
    }

    /// Room has been made in an output queue: what waited for it at an input goes on, and so does what waited behind that.
    #[cold]
    #[inline(never)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    pub(super) fn move_in(&mut self, now: Time, rules: &Rules) {
        loop {
            let Ports { inputs: Some(inputs), ports, queues, .. } = self else { return };
            let Some(next) = inputs.pop(|port, queue| queues.bytes(ports[port].number(queue))) else {
                return;
            };
            match self.has_cuts && self.is_cut(next.port as u16, now) {
                true => self.lose_charged(next.port, &next.packet, now, rules),
                false => self.append(next.port, next.queue, &next.packet, now),
            }
            self.look_at_order(now);
        }
    }

    /// Puts a packet at the end of a queue.
    #[inline(always)]
    pub(super) fn append(&mut self, index: usize, queue: usize, packet: &Packet, now: Time) {
        let port = &mut self.ports[index];
        if port.ready() == 0 {
            note_waiting(port, &mut self.waiting, index, now);
        }
        join(port, &mut self.queues, packet, queue, (now, Some(self.is_host)));
        self.note_departure(index);
    }
}

/// The earliest instant at which the last of `bytes` begins to leave, if the ports `by` send nothing else from now on. Only those that have data count; `waiting` has a bit for each port that has something to send.
fn when_sent(bytes: u64, Concerned(by): Concerned, ports: &[Port], waiting: &[u64], rules: &Rules) -> Time {
    let (mut first, mut count, mut least_pace) = (NEVER, 0, u64::MAX);
    for (ports, &waiting) in ports.chunks(64).zip(waiting) {
        let mut bits = waiting & by;
        while bits != 0 {
            let port = &ports[bits.trailing_zeros() as usize];
            bits &= bits - 1;
            if port.ready() >> DATA != 0 {
                first = first.min(port.free_at);
                least_pace = least_pace.min(port.least_pace());
                count += 1;
            }
        }
    }
    if count == 0 {
        return NEVER;
    }
    // What begins then leaves at once.
    let rest = bytes.saturating_sub(count * rules.packet);
    first + Time(rest / count * least_pace)
}
