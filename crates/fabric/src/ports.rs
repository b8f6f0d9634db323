//! Output ports without events: queues that are advanced when touched.

mod links;
mod trimming;

use std::sync::Arc;

use netloom_units::{Time, fetch, fetch_whole};
use rand::Rng;

use crate::buffers::{Accounts, Buffers, Charge, Effect};
use crate::estimator::RateEstimator;
use crate::faults::{DropCause, Dropped};
use crate::inputs::Inputs;
use crate::packet::{ByKind, NO_INGRESS, Packet, PacketKind};
use crate::port::{Credit, Drain, Exit, Fate, LAST_RANK, Port, PortSpec, PortStats, Wire};
use crate::queues::{Popped, Queues};
use crate::round_robin::RoundRobin;
use crate::rules::{CONTROL, DATA, LINK, Rules, Step};
use crate::telemetry::Telemetry;

/// Before when a transmission must begin that leaves its room to a packet which arrives at `now`: the transmission before it is over by then, so it
/// begins at `now` at the latest. Only a packet that would find no room otherwise makes its port choose so early; see [`Ports::enqueue`].
#[inline(always)]
fn after(now: Time) -> Time {
    now + Time(1)
}

/// Whose turn it is at a port.
#[derive(Clone, Debug)]
struct Turns {
    /// Among the data lanes that share the link.
    shared: RoundRobin,
    /// Control packets sent since data last was, or last had nothing to send. Counted only where they must not starve data.
    control: u32,
}

/// The output side of a node, and the accounts of its input buffers.
#[derive(Clone, Debug)]
pub struct Ports {
    ports: Vec<Port>,
    queues: Queues,
    /// One bit per port: something may be ready to go. Set by an enqueue, cleared at the end of the node's turn.
    waiting: Vec<u64>,
    /// Per port, the state of the lanes served in turn. Empty if there are none.
    turns: Vec<Turns>,
    buffers: Buffers,
    /// What was dropped here, or lost on the channels that these ports feed.
    dropped: Option<Box<Dropped>>,
    /// If output queues are bounded although nothing is lost: what waits at the inputs.
    inputs: Option<Box<Inputs>>,
    /// A departure at one port may cause something at another: an input buffer is paused, a packet waits at its input, or a link is cut some time.
    is_ordered: bool,
    /// Under flow control: the link of some port is cut some time.
    has_cuts: bool,
    /// A host: its NIC pulls data instead of queueing it, and its input takes whatever comes.
    is_host: bool,
}

impl Ports {
    /// Idle ports of a switch or a host, in the order of the specs.
    pub fn new(specs: impl IntoIterator<Item = PortSpec>, rules: &Rules, is_host: bool) -> Self {
        let specs: Vec<PortSpec> = specs.into_iter().collect();
        let buffers = Buffers::new(&specs, rules, is_host);
        let count = specs.len();
        let turns = Turns { shared: RoundRobin::new(rules.quanta.len()), control: 0 };
        let turns = if rules.first_in_turn < rules.lanes { vec![turns; count] } else { Vec::new() };
        let is_bounded = rules.is_lossless && !is_host && rules.buffer != u64::MAX;
        let inputs = is_bounded.then(|| Box::new(Inputs::new(count, rules.data_lanes(), rules.buffer)));
        let is_cut = |spec: &PortSpec| spec.faults.as_ref().is_some_and(|faults| faults.has_cuts());
        let has_cuts = rules.is_lossless && specs.iter().any(is_cut);
        Ports {
            inputs,
            is_ordered: has_cuts,
            has_cuts,
            ports: specs.into_iter().enumerate().map(|(index, spec)| Port::new(index, spec, rules)).collect(),
            queues: Queues::new(count * rules.lanes),
            waiting: vec![0; count.div_ceil(64)],
            turns,
            buffers,
            dropped: None,
            is_host,
        }
    }

    /// Puts a packet into its lane's queue, marking, dropping or trimming it as configured and charging the input buffer by which it came.
    ///
    /// The packet starts at once if the port is idle. Where a transmission ends at `now` and others wait, all that arrives at `now` takes part in
    /// the choice of what starts then, and counts in its mark; but if there is no room for the packet, the choice comes first, so that it
    /// finds the room of what starts free.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        port: u16,
        packet: &mut Packet,
        now: Time,
        rules: &Rules,
        random: &mut impl Rng,
        wire: &mut impl Wire,
    ) -> Fate {
        match rules.drops_tail {
            true => {
                self.enqueue_or_drop::<true>(self.exit(port, packet, rules), packet, now, rules, random, wire)
            }
            false => self.enqueue_specially(port, packet, now, rules, random, wire),
        }
    }

    /// [`Self::enqueue`] where a packet for which there is no room is [simply dropped](Rules::drops_tail). `IS_OBSERVED`: the loads of the node's
    /// ports may be read before the run is over; where they are not, what waits may be [handed on early](Port::start_early).
    #[inline(always)]
    pub fn enqueue_or_drop<const IS_OBSERVED: bool>(
        &mut self,
        exit: Exit,
        packet: &mut Packet,
        now: Time,
        rules: &Rules,
        random: &mut impl Rng,
        wire: &mut impl Wire,
    ) -> Fate {
        let (index, lane) = (usize::from(exit.port), usize::from(exit.lane));
        let Ports { ports, queues, turns, waiting, dropped, .. } = self;
        let state = &mut ports[index];
        while state.occupied != 0 && state.free_at < now {
            start_next(state, index, queues, turns, rules, dropped, wire);
        }
        let is_idle = state.occupied == 0;
        if is_idle && state.free_at <= now {
            // A packet of a lane that is served in turn must be seen by the round robin.
            if lane < rules.first_shared {
                start_at_once(state, packet, now, dropped, wire);
                return Fate::Queued;
            }
            // Nothing waited, so the port was idle from its last transmission until now.
            state.free_at = now;
        } else if !IS_OBSERVED
            && lane == CONTROL
            && state.occupied >> lane & 1 == 0
            && let Some(departure) = state.start_early(packet, now)
        {
            wire.depart(departure);
            return Fate::Queued;
        }
        if is_idle {
            waiting[index / 64] |= 1 << (index % 64);
        }
        if rules.watches_queues {
            if state.faults().is_some() && is_taken(state, packet, now, queues, rules, dropped) {
                return Fate::Dropped;
            }
            if packet.kind.is_data() {
                let mut queued = queues.bytes(state.lane(lane));
                let is_next = state.free_at == now && queued > 0 && state.occupied & ((1 << DATA) - 1) == 0;
                if queued + u64::from(packet.size) > rules.safe && is_next {
                    start_next(state, index, queues, turns, rules, dropped, wire);
                    queued = queues.bytes(state.lane(lane));
                }
                let bytes = queued + u64::from(packet.size);
                if bytes > rules.safe && rules.drops(bytes, random) {
                    state.losses().drops += 1;
                    dropped.get_or_insert_default().note(packet, DropCause::Full);
                    return Fate::Dropped;
                }
                state.mark_arrival(packet, queued, rules, random);
            }
        }
        state.note_arrival(packet.size, lane, now);
        queues.push(state.lane(lane), packet);
        Fate::Queued
    }

    /// [`Self::enqueue`] where packets are trimmed or flow control keeps them from being lost, for those who do not know which.
    #[inline(never)]
    fn enqueue_specially(
        &mut self,
        port: u16,
        packet: &mut Packet,
        now: Time,
        rules: &Rules,
        random: &mut impl Rng,
        wire: &mut impl Wire,
    ) -> Fate {
        if let Some(trims) = &rules.trims {
            return self.enqueue_trimming(port, packet, now, rules, trims, random, wire);
        }
        self.enqueue_exactly(port, packet, now, rules, random, wire)
    }

    /// [`Self::enqueue`] at a switch where flow control keeps packets from being lost.
    #[inline(always)]
    pub fn enqueue_lossless(
        &mut self,
        exit: Exit,
        packet: &mut Packet,
        now: Time,
        rules: &Rules,
        random: &mut impl Rng,
        wire: &mut impl Wire,
    ) -> Fate {
        debug_assert!(!self.is_host, "a host's port is no switch's");
        if self.is_ordered || self.inputs.is_some() {
            return self.enqueue_exactly(exit.port, packet, now, rules, random, wire);
        }
        let (index, lane) = (usize::from(exit.port), usize::from(exit.lane));
        let Ports { ports, queues, waiting, turns, buffers, dropped, .. } = self;
        let state = &mut ports[index];
        while state.ready() != 0 && state.free_at < now {
            let effect =
                start_next_lossless(state, index, queues, turns, buffers, dropped, false, rules, wire);
            debug_assert_eq!(effect, Effect::None);
        }
        if lane >= DATA
            && packet.ingress != NO_INGRESS
            && buffers.charge(packet.ingress, rules.lane_in(packet), packet.size) != Charge::Fits
        {
            return self.enqueue_exactly(exit.port, packet, now, rules, random, wire);
        }
        if state.ready() == 0 {
            if state.free_at <= now && lane < rules.first_shared && state.closed >> lane & 1 == 0 {
                state.free_at = now;
                // Stopped lanes may hold something.
                let waiting = state.queued + u64::from(packet.size);
                state.stats.note_queue(waiting);
                let effect =
                    depart_lossless(state, index, lane, packet, 0, buffers, dropped, false, rules, wire);
                debug_assert_eq!(effect, Effect::None);
                return Fate::Queued;
            }
            waiting[index / 64] |= 1 << (index % 64);
            // Nothing could go, so the port was idle from its last transmission until now.
            state.free_at = state.free_at.max(now);
        }
        if rules.watches_queues && packet.kind == PacketKind::Data {
            state.mark_arrival(packet, queues.bytes(state.lane(lane)), rules, random);
        }
        state.note_arrival(packet.size, lane, now);
        if state.closed != 0 {
            state.note_hold(now, false);
        }
        queues.push(state.lane(lane), packet);
        Fate::Queued
    }

    /// [`Self::enqueue_lossless`] where a departure at one port may cause something at another, or this packet may.
    #[inline(never)]
    fn enqueue_exactly(
        &mut self,
        port: u16,
        packet: &mut Packet,
        now: Time,
        rules: &Rules,
        random: &mut impl Rng,
        wire: &mut impl Wire,
    ) -> Fate {
        let index = usize::from(port);
        self.advance_port(port, now, rules, wire);
        let lane = self.lane_out(index, packet, rules);
        if self.has_cuts && self.is_lost_to_cut(port, packet, now, rules, wire) {
            return Fate::Dropped;
        }
        if lane >= DATA
            && packet.ingress != NO_INGRESS
            && self.buffers.charge(packet.ingress, rules.lane_in(packet), packet.size) != Charge::Fits
            && self.charge_exactly(packet, now, rules, wire) == Fate::Dropped
        {
            return Fate::Dropped;
        }
        if self.inputs.is_some() && self.waits_at_input(index, lane, packet, now, rules, random, wire) {
            return Fate::Queued;
        }
        let Ports { ports, buffers, dropped, .. } = self;
        let state = &mut ports[index];
        let is_idle = state.ready() == 0 && state.free_at <= now;
        // While something is held up, what follows from a departure is for all ports to see in their order.
        let is_free = state.closed >> lane & 1 == 0 && !self.is_ordered;
        if is_idle && lane < rules.first_shared && is_free {
            state.free_at = now;
            let waiting = state.queued + u64::from(packet.size);
            state.stats.note_queue(waiting);
            let is_host = self.is_host;
            let effect =
                depart_lossless(state, index, lane, packet, 0, buffers, dropped, is_host, rules, wire);
            debug_assert_eq!(effect, Effect::None);
            return Fate::Queued;
        }
        if rules.watches_queues && packet.kind == PacketKind::Data {
            state.mark_arrival(packet, self.queues.bytes(state.lane(lane)), rules, random);
        }
        self.append(index, lane, packet, now);
        Fate::Queued
    }

    /// Keeps a packet at its input if its output queue is full.
    #[cold]
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "those of enqueue")]
    fn waits_at_input(
        &mut self,
        index: usize,
        lane: usize,
        packet: &mut Packet,
        now: Time,
        rules: &Rules,
        random: &mut impl Rng,
        wire: &mut impl Wire,
    ) -> bool {
        let Some(inputs) = &self.inputs else { return false };
        if packet.ingress == NO_INGRESS || !rules.is_in_data_lane(packet) {
            return false;
        }
        let from = rules.lane_in(packet);
        let place = self.ports[index].lane(lane);
        if !inputs.must_wait(packet.ingress, from, packet.size, self.queues.bytes(place)) {
            return false;
        }
        // From now on departures have consequences, so none of those before may be left out. They may also have made the room that is missing.
        self.advance(after(now), rules, wire);
        let queued = self.queues.bytes(place);
        let Some(inputs) = &self.inputs else { return false };
        if !inputs.must_wait(packet.ingress, from, packet.size, queued) {
            return false;
        }
        if packet.kind == PacketKind::Data {
            self.ports[index].mark_arrival(packet, queued, rules, random);
        }
        if let Some(inputs) = &mut self.inputs {
            inputs.push(now, from, (index, lane), *packet);
        }
        self.is_ordered = true;
        true
    }

    /// Room has been made in an output queue: what waited for it at an input goes on, and so does what waited behind that.
    #[cold]
    #[inline(never)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    fn move_in(&mut self, now: Time, rules: &Rules) {
        loop {
            let Ports { inputs: Some(inputs), ports, queues, .. } = self else { return };
            let Some(next) = inputs.pop(|port, lane| queues.bytes(ports[port].lane(lane))) else { return };
            match self.has_cuts && self.is_cut(next.port as u16, now) {
                true => self.lose_charged(next.port, &next.packet, now, rules),
                false => self.append(next.port, next.lane, &next.packet, now),
            }
            self.look_at_order();
        }
    }

    /// Puts a packet at the end of a lane.
    #[inline(always)]
    fn append(&mut self, index: usize, lane: usize, packet: &Packet, now: Time) {
        let state = &mut self.ports[index];
        if state.ready() == 0 {
            self.waiting[index / 64] |= 1 << (index % 64);
            // Nothing could go, so the port was idle from its last transmission until now.
            state.free_at = state.free_at.max(now);
        }
        state.note_arrival(packet.size, lane, now);
        if state.closed != 0 {
            state.note_hold(now, self.is_host);
        }
        self.queues.push(state.lane(lane), packet);
    }

    /// Starts every transmission of one port that begins before `until`.
    ///
    /// While an input buffer is paused or a packet waits at its input, [`Self::settle_if_ordered`] must have brought all ports there.
    #[inline(always)]
    pub fn advance_port(&mut self, port: u16, until: Time, rules: &Rules, wire: &mut impl Wire) {
        let index = usize::from(port);
        let Ports { ports, queues, turns, dropped, .. } = self;
        let state = &mut ports[index];
        if state.occupied == 0 || state.free_at >= until {
            return;
        }
        if rules.is_lossless {
            self.advance_port_lossless(port, until, rules, wire);
            return;
        }
        while state.occupied != 0 && state.free_at < until {
            start_next(state, index, queues, turns, rules, dropped, wire);
        }
    }

    #[inline(never)]
    fn advance_port_lossless(&mut self, port: u16, until: Time, rules: &Rules, wire: &mut impl Wire) {
        let index = usize::from(port);
        while self.is_ordered {
            let state = &self.ports[index];
            if state.ready() == 0 || state.free_at >= until {
                return;
            }
            self.start_ordered(index, rules, wire);
        }
        let Ports { ports, queues, turns, buffers, dropped, is_host, .. } = self;
        let state = &mut ports[index];
        while state.ready() != 0 && state.free_at < until {
            let effect =
                start_next_lossless(state, index, queues, turns, buffers, dropped, *is_host, rules, wire);
            debug_assert_eq!(effect, Effect::None);
        }
    }

    /// Starts the next transmission of a port that has one ready, while ports are ordered.
    fn start_ordered(&mut self, index: usize, rules: &Rules, wire: &mut impl Wire) {
        let Ports { ports, queues, turns, buffers, dropped, is_host, .. } = self;
        let at = ports[index].free_at;
        let state = &mut ports[index];
        let effect =
            start_next_lossless(state, index, queues, turns, buffers, dropped, *is_host, rules, wire);
        if let Effect::Resumes(ingress) = effect {
            self.signal(ingress, at);
        }
        if self.inputs.is_some() {
            self.move_in(at, rules);
        }
    }

    /// Looks again at whether ports are ordered.
    fn look_at_order(&mut self) {
        let waits = self.inputs.as_ref().is_some_and(|inputs| !inputs.is_empty());
        self.is_ordered = self.has_cuts || self.buffers.is_ordered() || waits;
    }

    /// Ports are advanced one by one, so the account may still hold packets that have left by now. Brings all ports here and looks again; if there is
    /// no room even then, what begins at this instant makes room, too.
    #[inline(never)]
    fn charge_exactly(&mut self, packet: &Packet, now: Time, rules: &Rules, wire: &mut impl Wire) -> Fate {
        let (ingress, lane) = (packet.ingress, rules.lane_in(packet));
        self.advance(now, rules, wire);
        if self.buffers.charge(ingress, lane, packet.size) == Charge::Fits {
            return Fate::Queued;
        }
        self.advance(after(now), rules, wire);
        let admission = self.buffers.charge_settled(ingress, lane, packet.size);
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

    /// Which lanes are paused has changed: puts a PAUSE frame into the port towards the neighbour that fills them. It says what holds when
    /// it leaves, so one that still waits will do.
    #[cold]
    #[inline(never)]
    fn signal(&mut self, ingress: u16, now: Time) {
        self.look_at_order();
        let index = usize::from(ingress);
        if self.has_cuts && !self.may_signal(ingress, now) || self.ports[index].occupied >> LINK & 1 == 1 {
            return;
        }
        let size = self.buffers.pause_size();
        let frame = Packet { kind: PacketKind::Pause, size, ..Packet::EMPTY };
        self.append(index, LINK, &frame, now);
    }

    /// A PAUSE frame has come in: stops and resumes lanes of the port by which it came.
    #[inline(never)]
    pub fn on_pause(&mut self, frame: &Packet, now: Time, rules: &Rules, wire: &mut impl Wire) {
        let port = frame.ingress;
        self.advance_port(port, now, rules, wire);
        let (paused, closed) = (frame.paused_lanes() << DATA, self.ports[usize::from(port)].closed);
        self.ports[usize::from(port)].close(paused & !closed, now, self.is_host);
        self.open(port, closed & !paused, now);
    }

    /// A credit has come back to a port.
    #[inline(never)]
    pub fn on_credit(&mut self, credit: Credit, now: Time, rules: &Rules, wire: &mut impl Wire) {
        self.advance_port(credit.port, now, rules, wire);
        if self.buffers.earn(credit, rules) {
            self.open(credit.port, 1 << (usize::from(credit.lane) + DATA), now);
        }
    }

    /// A packet ends here and leaves its input at once: credits go back. All ports are at `now`, or are a host's.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a port has at most 31 lanes: FlowControl::most_vcs")]
    pub fn absorb(&mut self, packet: &Packet, now: Time, rules: &Rules, wire: &mut impl Wire) {
        let (ingress, lane) = (packet.ingress, rules.lane_in(packet));
        if rules.is_in_data_lane(packet)
            && let Some(accounts) = self.buffers.accounts()
            && let Some(bytes) = accounts.returns.take(ingress, lane, u32::from(packet.size))
        {
            let delay = accounts.delay[usize::from(ingress)];
            send_credit(&self.ports[usize::from(ingress)], lane as u8, now, delay, bytes, wire);
        }
    }

    /// All ports are at `until`: gives back the credits of what has left before.
    #[inline(never)]
    fn return_credits(&mut self, until: Time, wire: &mut impl Wire) {
        let Ports { ports, buffers: Buffers::Credits(accounts), .. } = self else { return };
        let Accounts { returns, delay, .. } = &mut **accounts;
        returns.give_back(until, |ingress, lane, at, bytes| {
            let index = usize::from(ingress);
            send_credit(&ports[index], lane, at, delay[index], bytes, wire);
        });
    }

    /// Lets stopped lanes go on, given as bits.
    fn open(&mut self, port: u16, lanes: u32, now: Time) {
        let index = usize::from(port);
        let state = &mut self.ports[index];
        if state.ready() == 0 {
            state.free_at = state.free_at.max(now);
        }
        state.closed &= !lanes;
        state.note_hold(now, self.is_host);
        if state.ready() != 0 {
            self.waiting[index / 64] |= 1 << (index % 64);
        }
    }

    /// Whether a data lane of a port, from 0, may send.
    #[inline]
    pub fn is_open(&self, port: u16, lane: usize) -> bool {
        self.ports[usize::from(port)].closed >> (lane + DATA) & 1 == 0
    }

    /// Starts every transmission of the node that begins before `until`; returns when the next one will begin.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    pub fn advance(&mut self, until: Time, rules: &Rules, wire: &mut impl Wire) -> Option<Time> {
        if self.is_ordered {
            self.advance_in_order(until, rules, wire);
        }
        let mut next = Time::MAX;
        for word in 0..self.waiting.len() {
            let mut bits = self.waiting[word];
            while bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.advance_port(index as u16, until, rules, wire);
                let state = &self.ports[index];
                if state.ready() != 0 {
                    next = next.min(state.free_at);
                } else {
                    self.waiting[word] &= !(1 << (index % 64));
                }
            }
        }
        if rules.is_lossless && self.buffers.accounts().is_some_and(|accounts| accounts.returns.is_due()) {
            self.return_credits(until, wire);
        }
        (next != Time::MAX).then_some(next)
    }

    /// Has the processor fetch all ports and where their queues are.
    #[inline]
    pub fn fetch(&self) {
        self.ports.iter().for_each(fetch_whole);
        self.queues.fetch();
    }

    /// The same for the first port.
    #[inline]
    pub fn fetch_first_port(&self) {
        self.ports.first().into_iter().for_each(fetch_whole);
        self.queues.fetch_first_lane();
    }

    /// Has the processor fetch the packet that each port sends next where one waits: it has long left the cache.
    #[inline]
    pub fn fetch_first(&self) {
        for (&bits, ports) in self.waiting.iter().zip(self.ports.chunks(64)) {
            let mut bits = bits;
            while bits != 0 {
                if let Some(port) = ports.get(bits.trailing_zeros() as usize) {
                    self.queues.fetch_first(port.lane(port.first_occupied()));
                }
                bits &= bits - 1;
            }
        }
    }

    /// Brings all ports to `now`, if what one of them does could concern another.
    #[inline]
    pub fn settle_if_ordered(&mut self, now: Time, rules: &Rules, wire: &mut impl Wire) {
        if self.is_ordered {
            self.advance_in_order(now, rules, wire);
        }
    }

    /// Starts the node's transmissions one by one in order of (time, port): a departure may end the pause of an input buffer, and the frame
    /// that says so takes its turn at another port from then on; or it makes room for a packet that waits at its input.
    #[inline(never)]
    fn advance_in_order(&mut self, until: Time, rules: &Rules, wire: &mut impl Wire) {
        loop {
            let mut first = (until, usize::MAX);
            for (word, &bits) in self.waiting.iter().enumerate() {
                let mut bits = bits;
                while bits != 0 {
                    let index = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let state = &self.ports[index];
                    if state.ready() != 0 && state.free_at < first.0 {
                        first = (state.free_at, index);
                    }
                }
            }
            if first.1 == usize::MAX {
                return;
            }
            self.start_ordered(first.1, rules, wire);
        }
    }

    /// Bytes waiting at a port or being sent there at `now`.
    #[inline]
    pub fn load(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> u64 {
        self.advance_port(port, now, rules, wire);
        let state = &self.ports[usize::from(port)];
        let sending = if state.free_at > now { u64::from(state.sending) } else { 0 };
        state.waiting() + sending
    }

    /// Bytes waiting at a port at `now`, without the packet that is being sent there.
    #[inline]
    pub fn waiting(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> u64 {
        self.advance_port(port, now, rules, wire);
        self.ports[usize::from(port)].waiting()
    }

    /// How much of its channel's rate a port has used lately, in 65,536ths, by what started before `now`; 0 unless rates are estimated.
    pub fn utilisation(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> u64 {
        self.advance_port(port, now, rules, wire);
        let state = &mut self.ports[usize::from(port)];
        state.change_rate(now);
        let rate = state.rate();
        let estimator = state.own_special_mut().and_then(|special| special.estimator.as_mut());
        estimator.map_or(0, |estimator| estimator.utilisation(now, rate))
    }

    /// Has every port estimate its rate: every `period` it forgets the share `discount` of what it has counted, the packets that it sends or, if
    /// `routed`, those of which [`Self::count_routed`] says so. To be called before anything is sent.
    pub fn estimate_rates(&mut self, period: Time, discount: f64, routed: bool) {
        for port in &mut self.ports {
            port.special_mut().estimator = Some(RateEstimator::new(period, discount, routed));
        }
    }

    /// Counts a packet of `bytes` that is about to join a port's queue in the estimate of the port's rate, if estimates count packets when they are routed.
    pub fn count_routed(&mut self, port: u16, now: Time, bytes: u16) {
        let estimator =
            self.ports[usize::from(port)].own_special_mut().and_then(|special| special.estimator.as_mut());
        if let Some(estimator) = estimator {
            estimator.count_routed(now, bytes);
        }
    }

    /// Has every port write on data packets how it stands when they leave. To be called before anything is sent.
    pub fn tell(&mut self, telemetry: &Arc<Telemetry>) {
        for port in &mut self.ports {
            port.special_mut().telemetry = Some(Arc::clone(telemetry));
        }
    }

    /// Whether the channel of a port is cut.
    pub fn is_cut(&self, port: u16, now: Time) -> bool {
        self.ports[usize::from(port)].faults().is_some_and(|faults| faults.is_within_a_cut(now))
    }

    /// Bytes that a port has begun to send before `now` and for which no credit has come back; 0 without credits.
    pub fn unreturned(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> u64 {
        self.advance_port(port, now, rules, wire);
        self.buffers.unreturned(port)
    }

    /// Bytes waiting in the lane in which `packet` would leave through a port at `now`.
    #[inline]
    pub fn lane_bytes(
        &mut self,
        port: u16,
        packet: &Packet,
        now: Time,
        rules: &Rules,
        wire: &mut impl Wire,
    ) -> u64 {
        self.advance_port(port, now, rules, wire);
        let lane = self.lane_out(usize::from(port), packet, rules);
        self.queues.bytes(self.ports[usize::from(port)].lane(lane))
    }

    /// How a packet leaves by a port, where packets are not trimmed.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a port has at most 31 lanes: FlowControl::most_vcs")]
    pub fn exit(&self, port: u16, packet: &Packet, rules: &Rules) -> Exit {
        Exit { port, lane: self.lane_out(usize::from(port), packet, rules) as u16 }
    }

    /// The data lane, from 0, in which a data packet leaves through a port.
    pub fn data_lane_out(&self, port: u16, packet: &Packet, rules: &Rules) -> usize {
        self.lane_out(usize::from(port), packet, rules) - DATA
    }

    /// The lane in which a packet leaves through a port.
    #[inline(always)]
    fn lane_out(&self, index: usize, packet: &Packet, rules: &Rules) -> usize {
        let rank = |port: usize| self.ports.get(port).map_or(0, |port| port.rank);
        rules.lane_out(packet, || match rank(index) {
            LAST_RANK => Step::First,
            to if to > rank(usize::from(packet.ingress)) => Step::Same,
            _ => Step::Next,
        })
    }

    /// Sends a data packet at `at` through an idle port at which nothing waits and whose lane is open, when that instant is over: a
    /// NIC that pulls its data needs no queue.
    #[inline(always)]
    pub fn send_now(
        &mut self,
        port: u16,
        packet: &mut Packet,
        at: Time,
        rules: &Rules,
        wire: &mut impl Wire,
    ) {
        let state = &mut self.ports[usize::from(port)];
        debug_assert!(state.ready() == 0 && state.free_at <= at);
        state.free_at = at;
        if rules.is_lossless {
            let index = usize::from(port);
            let lane = self.lane_out(index, packet, rules);
            let Ports { ports, buffers, dropped, is_host, .. } = self;
            let state = &mut ports[index];
            let effect =
                depart_lossless(state, index, lane, packet, 0, buffers, dropped, *is_host, rules, wire);
            debug_assert_eq!(effect, Effect::None);
        } else {
            match state.start(packet, false) {
                Some(arrival) => wire.depart(state.departure(packet, arrival)),
                None => {
                    state.pass(packet, at);
                    self.dropped.get_or_insert_default().note(packet, DropCause::Fault);
                }
            }
        }
    }

    /// What is left of a data packet, or of a header, or an answer turns back to its source as a packet of `kind`, as the channel of a port is cut:
    /// the caller sends it on its way.
    #[cold]
    pub fn turn_back(&mut self, port: u16, packet: &mut Packet, kind: PacketKind, header_size: u16) {
        self.ports[usize::from(port)].losses().returned_to_sender += 1;
        if kind == PacketKind::Unreachable {
            packet.trim(header_size);
        }
        packet.turn_round(kind);
    }

    /// The channel of a port is cut at `cut`, and nothing has been done yet of what happens from then on: of the packets that wait for it, returns those that are to go back, and
    /// loses the others.
    #[cold]
    pub fn take_from_cut(
        &mut self,
        port: u16,
        cut: Time,
        goes_back: impl Fn(&Packet) -> bool,
        rules: &Rules,
        wire: &mut impl Wire,
    ) -> Vec<Packet> {
        self.advance_port(port, cut, rules, wire);
        let Ports { ports, queues, dropped, .. } = self;
        let state = &mut ports[usize::from(port)];
        let mut back = Vec::new();
        // If another cut of the channel lasts since before, it has taken what waited.
        if let Some(from) = state.faults_mut().and_then(|faults| faults.take_flush(cut)) {
            let leaves = |_: usize, packet: &Packet| {
                let leaves = from == cut && goes_back(packet);
                back.extend(leaves.then_some(*packet));
                leaves
            };
            throw_away(state, queues, from, rules, dropped, leaves);
        }
        back
    }

    /// A packet ends here, as no route leads on.
    #[cold]
    pub fn discard(&mut self, packet: &Packet) {
        self.dropped.get_or_insert_default().note(packet, DropCause::Fault);
    }

    /// When a port's transmitter is next free, and whether something is ready to go then, as of the last advance.
    #[inline]
    pub fn poll(&self, port: u16) -> (Time, bool) {
        let state = &self.ports[usize::from(port)];
        (state.free_at, state.ready() != 0)
    }

    /// When a port's transmitter is next free.
    #[inline]
    pub fn free_at(&self, port: u16) -> Time {
        self.ports[usize::from(port)].free_at
    }

    /// Bytes waiting at a port, as of the last advance.
    pub fn queued(&self, port: u16) -> u64 {
        self.ports[usize::from(port)].waiting()
    }

    /// What a port has seen, as of the last advance, with bytes that still wait, a transmission and a pause that still last counted up to `end`.
    pub fn stats_of(&self, port: u16, end: Time) -> PortStats {
        PortStats::new(&self.ports[usize::from(port)], end)
    }

    /// A port will soon be asked for: has the processor fetch where they are.
    pub fn expect(&self) {
        fetch(&self.ports);
    }

    /// A port's [statistics](Self::stats_of) will soon be asked for: has the processor fetch them.
    pub fn expect_stats_of(&self, port: u16) {
        fetch_whole(&self.ports[usize::from(port)]);
    }

    /// Bytes whose transmission started in the drain, and the time spent sending in it up to `end`.
    pub fn in_drain(&self, port: u16, end: Time) -> (u64, Time) {
        let drain = self.ports[usize::from(port)].rare.as_ref().and_then(|rare| rare.drain.as_deref());
        let Some(drain) = drain else { return (0, Time::ZERO) };
        let PortStats { bytes, busy, .. } = self.stats_of(port, end);
        drain.part_of(bytes, busy)
    }

    /// Counts what is sent from an instant on, after the load, apart. To be called before anything is sent.
    pub fn note_drain(&mut self, from: Time) {
        let drain = (from < Time::MAX).then(|| Box::new(Drain::new(from)));
        for port in self.ports.iter_mut().filter(|port| drain.is_some() || port.rare.is_some()) {
            port.rare.get_or_insert_default().drain = drain.clone();
        }
    }

    /// The packets that wait, with the port and the data lane (from 0; `None` for signals) in which they do, or, at an input, for which.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    pub fn waiting_packets(&self, rules: &Rules) -> impl Iterator<Item = (u16, Option<usize>, &Packet)> {
        let lanes = rules.lanes;
        let outputs = self.queues.iter().map(move |(lane, packet)| (lane / lanes, lane % lanes, packet));
        let inputs = self.inputs.iter().flat_map(|inputs| inputs.iter());
        outputs.chain(inputs).map(|(port, lane, packet)| (port as u16, lane.checked_sub(DATA), packet))
    }

    /// Number of ports.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Whether there is no port.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// What was dropped here, or lost on the channels that these ports feed.
    pub fn dropped(&self) -> Dropped {
        self.dropped.as_deref().cloned().unwrap_or_default()
    }

    /// Packets that a port has handed on and that have not begun to leave before `end`: they are not among those that it has [sent](PortStats::packets).
    pub fn handed_on_early(&self, port: u16, end: Time) -> u64 {
        self.ports[usize::from(port)].early_from(end)
    }

    /// The channel that a port feeds.
    pub fn channel(&self, port: u16) -> u32 {
        self.ports[usize::from(port)].channel
    }

    /// Bytes that have left the input buffer of a port and data lane (from 0) and for which no credit has gone back.
    pub fn owed(&self, port: u16, lane: usize) -> u64 {
        self.buffers.owed(port, lane)
    }

    /// Bytes of a data lane (from 0) that a port may still send downstream; `None` without credits.
    pub fn credits(&self, port: u16, lane: usize) -> Option<u64> {
        self.buffers.credits(port, lane)
    }
}

/// The lane that sends next, of those with a bit in `ready`.
#[inline(always)]
fn next_lane(ready: u32, index: usize, queues: &Queues, turns: &mut [Turns], rules: &Rules) -> usize {
    let lane = ready.trailing_zeros() as usize;
    if lane < rules.first_in_turn { lane } else { take_turn(ready, index, queues, turns, rules) }
}

/// Which of the lanes that are served in turn sends next.
#[inline(never)]
fn take_turn(mut ready: u32, index: usize, queues: &Queues, turns: &mut [Turns], rules: &Rules) -> usize {
    let turns = &mut turns[index];
    if let Some(trims) = &rules.trims {
        let has_data = ready >> DATA != 0;
        if ready >> CONTROL & 1 == 1 && !(has_data && turns.control == trims.control_weight) {
            turns.control = if has_data { turns.control + 1 } else { 0 };
            return CONTROL;
        }
        turns.control = 0;
        ready &= !(1 << CONTROL);
        let lane = ready.trailing_zeros() as usize;
        if lane < rules.first_shared {
            return lane;
        }
    }
    let first = rules.first_shared;
    first
        + turns
            .shared
            .pick(ready >> first, &rules.quanta, |lane| queues.first_size(index * rules.lanes + first + lane))
}

/// Starts the next transmission of a port that has one ready, under flow control. Returns what follows from it at another port.
#[expect(clippy::too_many_arguments, reason = "the parts of one departure")]
#[inline(always)]
fn start_next_lossless(
    state: &mut Port,
    index: usize,
    queues: &mut Queues,
    turns: &mut [Turns],
    buffers: &mut Buffers,
    dropped: &mut Option<Box<Dropped>>,
    is_host: bool,
    rules: &Rules,
    wire: &mut impl Wire,
) -> Effect {
    let lane = next_lane(state.ready(), index, queues, turns, rules);
    let Popped { packet, is_last, left } = queues.pop(state.lane(lane));
    state.note_start(packet.size, lane, is_last);
    depart_lossless(state, index, lane, packet, left, buffers, dropped, is_host, rules, wire)
}

/// Sends a packet that leaves `left` bytes behind in its lane at the port's `free_at`, pays for it downstream and gives back its input buffer.
/// Returns what follows from that at another port: nothing while ports are not ordered.
#[expect(clippy::too_many_arguments, reason = "the parts of one departure")]
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a node has at most 65,535 ports: NetworkBuilder::build")]
fn depart_lossless(
    state: &mut Port,
    index: usize,
    lane: usize,
    packet: &mut Packet,
    left: u64,
    buffers: &mut Buffers,
    dropped: &mut Option<Box<Dropped>>,
    is_host: bool,
    rules: &Rules,
    wire: &mut impl Wire,
) -> Effect {
    if lane < DATA {
        if lane == LINK {
            send_pause(state, index, packet, buffers, rules, wire);
        } else if let Some(arrival) = state.start(packet, true) {
            wire.depart(state.departure(packet, arrival));
        } else {
            dropped.get_or_insert_default().note(packet, DropCause::Fault);
        }
        return Effect::None;
    }
    let (at, ingress, size) = (state.free_at, packet.ingress, packet.size);
    let mut from = None;
    if !is_host {
        from = (ingress != NO_INGRESS).then(|| (ingress, rules.lane_in(packet)));
        packet.trail = packet.trail.by(rules.vc_of(lane));
    }
    let Some(arrival) = state.start(packet, true) else {
        dropped.get_or_insert_default().note(packet, DropCause::Fault);
        return links::lose(state, (index, lane), packet, (at, from), buffers, is_host, rules, wire);
    };
    if rules.marks_departures {
        state.mark_departure(packet, left, rules);
    }
    wire.depart(state.departure(packet, arrival));
    let effect = buffers.on_departure(at, size, from, (index as u16, lane - DATA), rules);
    if effect == Effect::OutOfCredit {
        state.close(1 << lane, at, is_host);
        return Effect::None;
    }
    effect
}

/// Sends a PAUSE frame, which is obeyed when its last bit has come.
#[inline(never)]
#[expect(clippy::cast_possible_truncation, reason = "a node has at most 65,535 ports: NetworkBuilder::build")]
fn send_pause(
    state: &mut Port,
    index: usize,
    frame: &mut Packet,
    buffers: &Buffers,
    rules: &Rules,
    wire: &mut impl Wire,
) {
    frame.by_kind = ByKind::new(buffers.paused_lanes(index as u16));
    let late = state.latency + rules.response;
    let start = state.free_at;
    if state.start(frame, true).is_some() {
        let arrival = state.free_at + late;
        // One that has come and is not obeyed yet goes with the link, too.
        if state.faults().is_none_or(|faults| !faults.is_cut_between(start, arrival)) {
            wire.depart(state.departure(frame, arrival));
        }
    }
}

/// Sends a credit back from the input of a port at `at`, if the link is not cut on its way.
#[inline(always)]
fn send_credit(state: &Port, lane: u8, at: Time, delay: Time, bytes: u32, wire: &mut impl Wire) {
    let arrival = at + delay;
    if state.faults().is_none_or(|faults| !faults.is_cut_between(at, arrival)) {
        wire.credit(state.to, state.channel, arrival, Credit { port: state.peer, lane, bytes });
    }
}

/// Starts the next transmission of a port at which something waits, without flow control.
#[inline(always)]
fn start_next(
    state: &mut Port,
    index: usize,
    queues: &mut Queues,
    turns: &mut [Turns],
    rules: &Rules,
    dropped: &mut Option<Box<Dropped>>,
    wire: &mut impl Wire,
) {
    state.forget_early();
    let lane = next_lane(state.occupied, index, queues, turns, rules);
    let Popped { packet, is_last, left } = queues.pop(state.lane(lane));
    state.note_start(packet.size, lane, is_last);
    match state.start(packet, true) {
        Some(arrival) => {
            if rules.marks_departures {
                state.mark_departure(packet, left, rules);
            }
            wire.depart(state.departure(packet, arrival));
        }
        None => {
            dropped.get_or_insert_default().note(packet, DropCause::Fault);
            if let Some(cut) = state.faults_mut().and_then(|faults| faults.flush.take()) {
                throw_away(state, queues, cut, rules, dropped, |_, _| false);
            }
        }
    }
}

/// Starts the transmission of a packet that finds its port idle.
#[inline(always)]
fn start_at_once(
    state: &mut Port,
    packet: &mut Packet,
    now: Time,
    dropped: &mut Option<Box<Dropped>>,
    wire: &mut impl Wire,
) {
    state.forget_early();
    state.free_at = now;
    let size = u64::from(packet.size);
    match state.start(packet, false) {
        Some(arrival) => {
            state.stats.note_queue(size);
            wire.depart(state.departure(packet, arrival));
        }
        None => {
            // At a channel that is cut it does not even wait.
            if state.free_at > now {
                state.stats.note_queue(size);
            }
            dropped.get_or_insert_default().note(packet, DropCause::Fault);
        }
    }
}

/// Whether a cut of the channel takes a packet that comes to a port which is not idle. If one has come since the port was last touched,
/// it has taken what waited.
#[cold]
#[inline(never)]
fn is_taken(
    state: &mut Port,
    packet: &Packet,
    now: Time,
    queues: &mut Queues,
    rules: &Rules,
    dropped: &mut Option<Box<Dropped>>,
) -> bool {
    let Some(faults) = state.faults_mut() else { return false };
    let (flush, is_cut) = (faults.take_flush(now), faults.is_cut(now));
    if let Some(cut) = flush {
        throw_away(state, queues, cut, rules, dropped, |_, _| false);
    }
    if is_cut {
        state.losses().lost += 1;
        dropped.get_or_insert_default().note(packet, DropCause::Fault);
    } else if state.occupied == 0 {
        state.free_at = state.free_at.max(now);
    }
    is_cut
}

/// A cut takes what waits at a port in its lanes, but for what `leaves`. Signals of the link are not counted.
#[cold]
#[inline(never)]
fn throw_away(
    state: &mut Port,
    queues: &mut Queues,
    cut: Time,
    rules: &Rules,
    dropped: &mut Option<Box<Dropped>>,
    mut leaves: impl FnMut(usize, &Packet) -> bool,
) {
    let free_at = std::mem::replace(&mut state.free_at, cut);
    for lane in 0..rules.lanes {
        while state.occupied >> lane & 1 == 1 {
            let Popped { packet, is_last, .. } = queues.pop(state.lane(lane));
            state.note_start(packet.size, lane, is_last);
            if !leaves(lane, packet) && !packet.is_of_the_link() {
                state.losses().lost += 1;
                dropped.get_or_insert_default().note(packet, DropCause::Fault);
            }
        }
    }
    state.free_at = free_at;
}
