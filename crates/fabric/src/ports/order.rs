//! What happens at one port and concerns another one of the node, so that ports are advanced together, in order of time: departures that
//! end the pause of an input buffer, and packets that wait at their inputs because the output queue they want is full.

use netloom_units::Time;
use rand::Rng;

use super::departures::Departures;
use super::enqueue::{join, note_waiting};
use super::{At, Ports, just_after};
use crate::buffers::Effect;
use crate::packet::{NO_INGRESS, Packet, PacketKind};
use crate::port::Wire;
use crate::rules::Rules;

impl Ports {
    /// Whether what comes concerns more than the port by which it leaves: what one port does may concern another, so that they are advanced together, or packets
    /// may have to wait at their inputs.
    #[inline(always)]
    pub fn is_entangled(&self) -> bool {
        self.is_entangled
    }

    /// Brings all ports to `now`, if what one of them does could concern another.
    #[inline]
    pub fn settle_if_ordered(&mut self, now: Time, rules: &Rules, wire: &mut impl Wire) {
        if self.is_ordered && self.first_departure(now).is_some() {
            self.advance_in_order(now, rules, wire);
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
        while let Some(port) = self.first_departure(until) {
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

    /// Whether no port that has something ready begins to send at `now` or before, while ports are ordered.
    #[inline(always)]
    pub(super) fn is_first_of_its_instant(&self, now: Time) -> bool {
        self.first_departure(just_after(now)).is_none()
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
        let at = self.departure(index);
        if let Some(departures) = &mut self.departures {
            departures.set(index, at);
        }
    }

    /// [`Self::note_departure`] of a port at which nothing was ready.
    #[inline(always)]
    pub(super) fn note_ready(&mut self, index: usize) {
        let at = self.departure(index);
        if let Some(departures) = &mut self.departures {
            departures.set_earlier(index, at);
        }
    }

    /// Starts the next transmission of a port that has one ready, while ports are ordered.
    #[inline(always)]
    pub(super) fn start_ordered(&mut self, port: u16, rules: &Rules, wire: &mut impl Wire) {
        let at = self.ports[usize::from(port)].free_at;
        let mut output = self.output(port, true, At::new(at, rules, wire));
        // Ports that are ordered queue all that waits.
        output.transmitter.hands_on_early = false;
        let effect = output.start_next();
        self.note_departure(port.into());
        if let Effect::Resumes(ingress) = effect {
            self.signal(ingress, at);
        }
        if self.inputs.is_some() {
            self.move_in(at, rules);
        }
    }

    /// Looks again at whether ports are ordered.
    pub(super) fn look_at_order(&mut self) {
        let waits = self.inputs.as_ref().is_some_and(|inputs| !inputs.is_empty());
        match self.has_cuts || self.buffers.is_ordered() || waits {
            true => self.order(),
            false => {
                self.is_ordered = false;
                self.is_entangled = self.inputs.is_some();
            }
        }
    }

    /// From now on ports are ordered, if they were not.
    #[cold]
    #[inline(never)]
    pub(super) fn order(&mut self) {
        if std::mem::replace(&mut self.is_ordered, true) {
            return;
        }
        self.is_entangled = true;
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
            self.look_at_order();
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
