//! Output ports without events: queues that are advanced when touched.

use netloom_units::{Bytes, Rate, Time};
use rand::Rng;

use crate::buffers::{Buffers, Charge};
use crate::packet::{NO_INGRESS, Packet, PacketKind};
use crate::round_robin::RoundRobin;
use crate::rules::{CONTROL, DATA, LINK, Rules};

/// What a port is wired to.
#[derive(Clone, Debug)]
pub struct PortSpec {
    /// The channel it feeds.
    pub channel: u32,
    /// The node at the other end.
    pub to: u32,
    /// That node's port, which feeds the opposite channel.
    pub peer: u16,
    /// Delay from the end of a transmission to the arrival.
    pub latency: Time,
    /// Rate from time zero on.
    pub rate: Rate,
    /// Changes of the rate, ascending: from each instant on, the new rate holds for packets that start then.
    pub changes: Vec<(Time, Rate)>,
    /// Cut-through: a packet sent at this rate or above is forwarded by the other end while it arrives. `None`: it is stored first.
    pub cut_through_from: Option<Rate>,
    /// The opposite channel's delay, and its highest rate; what comes through it fills this port's input buffer.
    pub inward: (Time, Rate),
}

/// A packet that has left a port.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'p> {
    /// The channel it crosses.
    pub channel: u32,
    /// The node it reaches.
    pub to: u32,
    /// When its last bit reaches that node; with cut-through, when enough of it has.
    pub arrival: Time,
    /// The packet.
    pub packet: &'p Packet,
}

/// Room in an input buffer, on its way back to the port that fills it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// The output port at the node that the credit goes to.
    pub port: u16,
    /// Its data lane, from 0.
    pub lane: u8,
    /// Bytes.
    pub bytes: u32,
}

/// Takes the packets and credits that leave ports.
pub trait Wire {
    /// A packet has left.
    fn depart(&mut self, departure: Departure<'_>);
    /// A credit goes back to node `to` beside channel `channel`.
    fn credit(&mut self, to: u32, channel: u32, arrival: Time, credit: Credit);
}

/// When a packet reaches a port.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The instant.
    pub at: Time,
    /// Whether nothing else can reach the port in that instant any more. If in doubt, no.
    pub is_over: bool,
}

/// What a port did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It waits, or is being sent.
    Queued,
    /// There was no room for it.
    Dropped,
}

/// What a port has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Time spent sending.
    pub busy: Time,
    /// Most bytes that waited at once.
    pub max_queue: u64,
    /// Packets dropped: at the output queue or, in a lossless fabric, at the input buffer of this port.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Time during which flow control held back data that waited; at a NIC, which keeps no queue, during which it held back a lane.
    pub paused: Time,
    /// How often flow control stopped a lane.
    pub pauses: u64,
    /// Σ size × (start of transmission − arrival at the queue), in byte-picoseconds. Wraps below zero while packets wait, so that
    /// arrivals and starts are each one multiplication.
    waiting: u128,
}

impl PortStats {
    /// Mean number of bytes waiting, over the time from zero to `end`.
    pub fn mean_queue(&self, end: Time) -> f64 {
        if end == Time::ZERO { 0.0 } else { self.waiting as f64 / end.0 as f64 }
    }

    /// Time integral of the bytes waiting from zero on, in byte-picoseconds.
    pub fn queue_integral(&self) -> u128 {
        self.waiting
    }
}

const NONE: u32 = u32::MAX;

/// A queue of packets in the node's shared store.
#[derive(Clone, Copy, Debug)]
struct Lane {
    head: u32,
    tail: u32,
    bytes: u64,
}

/// One output port. Hot: touched by every packet that passes.
#[derive(Clone, Debug)]
pub struct Port {
    /// When the transmitter is next free.
    free_at: Time,
    /// Lanes in which something waits.
    occupied: u32,
    /// Lanes that flow control has stopped.
    closed: u32,
    /// Bytes in all lanes.
    queued: u64,
    rate: Rate,
    latency: Time,
    /// Most of a packet's serialisation that must be over for it to count as arrived.
    head: Time,
    channel: u32,
    to: u32,
    /// Size of the packet being sent until `free_at`.
    sending: u16,
    peer: u16,
    /// Serialisation time of the last size sent, for control and data; a division saved nearly always.
    known: [(u16, Time); 2],
    /// Rate changes to come, latest first.
    changes: Vec<(Time, Rate)>,
    cut_through: Option<(Rate, Bytes)>,
    /// Since when flow control holds data back; `Time::MAX` while it does not.
    held_since: Time,
    stats: PortStats,
}

/// The output side of a node, and the accounts of its input buffers.
#[derive(Clone, Debug)]
pub struct Ports {
    ports: Vec<Port>,
    /// The lanes of all ports, port by port.
    lanes: Vec<Lane>,
    /// One bit per port: something may be ready to go. Set by an enqueue, cleared at the end of the node's turn.
    waiting: Vec<u64>,
    /// The packets of all queues of the node, linked; freed places are reused first.
    store: Vec<(Packet, u32)>,
    free: u32,
    /// Per port, the state of the lanes served in turn. Empty if there are none.
    turns: Vec<RoundRobin>,
    buffers: Buffers,
    /// A host: its NIC pulls data instead of queueing it, and its input takes whatever comes.
    is_host: bool,
}

impl Ports {
    /// Idle ports of a switch or a host, in the order of the specs.
    pub fn new(specs: impl IntoIterator<Item = PortSpec>, rules: &Rules, is_host: bool) -> Self {
        let specs: Vec<PortSpec> = specs.into_iter().collect();
        let buffers = Buffers::new(&specs, rules, is_host);
        let count = specs.len();
        let empty = Lane { head: NONE, tail: NONE, bytes: 0 };
        let has_turns = rules.first_shared < rules.lanes;
        let turns = if has_turns { vec![RoundRobin::new(rules.quanta.len()); count] } else { Vec::new() };
        Ports {
            ports: specs.into_iter().map(|spec| Port::new(spec, rules)).collect(),
            lanes: vec![empty; count * rules.lanes],
            waiting: vec![0; count.div_ceil(64)],
            store: Vec::new(),
            free: NONE,
            turns,
            buffers,
            is_host,
        }
    }

    /// Puts a packet into its lane's queue, marking or dropping it as configured and charging the input buffer by which it came.
    ///
    /// Hands on whatever starts before that moment; and the packet itself, if it is certain that it goes first.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        port: u16,
        packet: &mut Packet,
        moment: Moment,
        rules: &Rules,
        random: &mut impl Rng,
        wire: &mut impl Wire,
    ) -> Fate {
        if rules.is_lossless {
            return self.enqueue_lossless(port, packet, moment, rules, random, wire);
        }
        self.advance_port(port, moment.at, rules, wire);
        let lane = rules.lane_out(packet);
        let state = &mut self.ports[usize::from(port)];
        // A packet of a lane that is served in turn must be seen by the round robin.
        let goes_first = lane <= rules.top || moment.is_over && lane < rules.first_shared;
        if state.occupied == 0 && state.free_at <= moment.at && goes_first {
            state.free_at = moment.at;
            state.stats.max_queue = state.stats.max_queue.max(u64::from(packet.size));
            wire.depart(state.start(packet, usize::from(lane != CONTROL)));
            return Fate::Queued;
        }
        self.push(port, lane, packet, moment.at, rules, random)
    }

    #[inline(never)]
    fn enqueue_lossless(
        &mut self,
        port: u16,
        packet: &mut Packet,
        moment: Moment,
        rules: &Rules,
        random: &mut impl Rng,
        wire: &mut impl Wire,
    ) -> Fate {
        self.advance_port(port, moment.at, rules, wire);
        if packet.ingress != NO_INGRESS
            && rules.is_in_data_lane(packet)
            && self.charge(packet, moment, rules, wire) == Fate::Dropped
        {
            return Fate::Dropped;
        }
        let lane = rules.lane_out(packet);
        let state = &mut self.ports[usize::from(port)];
        let is_idle = state.occupied & !state.closed == 0 && state.free_at <= moment.at;
        let goes_first = lane <= rules.top || moment.is_over && lane < rules.first_shared;
        // While an input buffer is paused, what leaves another port in this instant may put a PAUSE frame before this packet.
        let is_free = state.closed >> lane & 1 == 0 && !self.buffers.is_ordered();
        if is_idle && goes_first && is_free {
            state.free_at = moment.at;
            state.stats.max_queue = state.stats.max_queue.max(state.queued + u64::from(packet.size));
            self.depart_lossless(port, lane, packet, rules, wire);
            return Fate::Queued;
        }
        self.push(port, lane, packet, moment.at, rules, random)
    }

    #[inline(always)]
    fn push(
        &mut self,
        port: u16,
        lane: usize,
        packet: &Packet,
        now: Time,
        rules: &Rules,
        random: &mut impl Rng,
    ) -> Fate {
        let mut mark = false;
        if packet.kind == PacketKind::Data {
            let state = &mut self.ports[usize::from(port)];
            let queued = self.lanes[usize::from(port) * rules.lanes + lane].bytes;
            if queued + u64::from(packet.size) > rules.buffer {
                state.stats.drops += 1;
                return Fate::Dropped;
            }
            if let Some(ecn) = &rules.ecn {
                mark = ecn.decide(queued, random);
                state.stats.marks += u64::from(mark);
            }
        }
        self.append(port, lane, packet, now, rules).marked |= mark;
        Fate::Queued
    }

    /// Puts a packet at the end of a lane and returns it there.
    #[inline(always)]
    fn append(&mut self, port: u16, lane: usize, packet: &Packet, now: Time, rules: &Rules) -> &mut Packet {
        let index = usize::from(port);
        let state = &mut self.ports[index];
        let size = u64::from(packet.size);
        if state.occupied & !state.closed == 0 {
            self.waiting[index / 64] |= 1 << (index % 64);
            // Nothing could go, so the port was idle from its last transmission until now.
            state.free_at = state.free_at.max(now);
        }
        state.occupied |= 1 << lane;
        state.queued += size;
        state.stats.waiting = state.stats.waiting.wrapping_sub(u128::from(size) * u128::from(now.0));
        state.stats.max_queue = state.stats.max_queue.max(state.queued);
        if state.closed != 0 {
            state.note_hold(now, self.is_host);
        }
        let place = self.free;
        let place = if place == NONE {
            self.store.push((*packet, NONE));
            self.store.len() as u32 - 1
        } else {
            let slot = &mut self.store[place as usize];
            self.free = slot.1;
            slot.0 = *packet;
            slot.1 = NONE;
            place
        };
        let queue = &mut self.lanes[index * rules.lanes + lane];
        if queue.head == NONE {
            queue.head = place;
        } else {
            self.store[queue.tail as usize].1 = place;
        }
        queue.tail = place;
        queue.bytes += size;
        &mut self.store[place as usize].0
    }

    /// Starts every transmission of one port that begins before `until`.
    ///
    /// While an input buffer is paused, [`Self::settle`] must have brought all ports there.
    #[inline(always)]
    pub fn advance_port(&mut self, port: u16, until: Time, rules: &Rules, wire: &mut impl Wire) {
        let state = &self.ports[usize::from(port)];
        if state.occupied == 0 || state.free_at >= until {
            return;
        }
        if rules.is_lossless {
            self.advance_port_lossless(port, until, rules, wire);
        } else {
            while let state = &self.ports[usize::from(port)]
                && state.occupied != 0
                && state.free_at < until
            {
                self.start_next::<false>(port, rules, wire);
            }
        }
    }

    #[inline(never)]
    fn advance_port_lossless(&mut self, port: u16, until: Time, rules: &Rules, wire: &mut impl Wire) {
        while let state = &self.ports[usize::from(port)]
            && state.occupied & !state.closed != 0
            && state.free_at < until
        {
            self.start_next::<true>(port, rules, wire);
        }
    }

    /// Starts the next transmission of a port that has one ready.
    #[inline(always)]
    fn start_next<const LOSSLESS: bool>(&mut self, port: u16, rules: &Rules, wire: &mut impl Wire) {
        let index = usize::from(port);
        let state = &mut self.ports[index];
        let ready = if LOSSLESS { state.occupied & !state.closed } else { state.occupied };
        let mut lane = ready.trailing_zeros() as usize;
        if lane >= rules.first_shared {
            lane = self.take_turn(index, ready, rules);
        }
        let state = &mut self.ports[index];
        let queue = &mut self.lanes[index * rules.lanes + lane];
        let place = queue.head;
        let slot = &mut self.store[place as usize];
        queue.head = std::mem::replace(&mut slot.1, self.free);
        self.free = place;
        let size = u64::from(slot.0.size);
        queue.bytes -= size;
        if queue.head == NONE {
            state.occupied &= !(1 << lane);
        }
        state.queued -= size;
        let weight = u128::from(size) * u128::from(state.free_at.0);
        state.stats.waiting = state.stats.waiting.wrapping_add(weight);
        if LOSSLESS {
            let mut packet = slot.0;
            self.depart_lossless(port, lane, &mut packet, rules, wire);
        } else {
            wire.depart(state.start(&mut slot.0, usize::from(lane != CONTROL)));
        }
    }

    /// Which of the lanes that are served in turn sends next.
    #[inline(never)]
    fn take_turn(&mut self, index: usize, ready: u32, rules: &Rules) -> usize {
        let Ports { lanes, store, turns, .. } = self;
        let size = |lane: usize| {
            let queue = &lanes[index * rules.lanes + rules.first_shared + lane];
            u32::from(store[queue.head as usize].0.size)
        };
        rules.first_shared + turns[index].pick(ready >> rules.first_shared, &rules.quanta, size)
    }

    /// Sends a packet at the port's `free_at`, pays for it downstream and gives back its input buffer.
    #[inline(always)]
    fn depart_lossless(
        &mut self,
        port: u16,
        lane: usize,
        packet: &mut Packet,
        rules: &Rules,
        wire: &mut impl Wire,
    ) {
        let state = &mut self.ports[usize::from(port)];
        let (at, ingress, size) = (state.free_at, packet.ingress, packet.size);
        let lane_in = if ingress == NO_INGRESS { 0 } else { rules.lane_in(packet) };
        packet.ingress = state.peer;
        if lane >= DATA && !self.is_host {
            packet.vc = rules.vc_of(lane);
        }
        let mut departure = state.start(packet, usize::from(lane >= DATA));
        if lane == LINK {
            departure.arrival += rules.response;
        }
        wire.depart(departure);
        if lane < DATA {
            return;
        }
        if self.buffers.pay(port, lane - DATA, size, rules) {
            self.close(port, lane - DATA, at);
        }
        if ingress != NO_INGRESS && !self.is_host {
            self.release(ingress, lane_in, size, at, rules, wire);
        }
    }

    /// A packet has left its input buffer: its room goes back to the upstream port, or ends that port's pause.
    #[inline(always)]
    fn release(
        &mut self,
        ingress: u16,
        lane: usize,
        size: u16,
        at: Time,
        rules: &Rules,
        wire: &mut impl Wire,
    ) {
        let state = &self.ports[usize::from(ingress)];
        if let Some(delay) = self.buffers.credit_delay(ingress) {
            let credit = Credit { port: state.peer, lane: lane as u8, bytes: u32::from(size) };
            wire.credit(state.to, state.channel, at + delay, credit);
        } else if self.buffers.release(ingress, lane, size) {
            self.signal(ingress, lane, false, at, rules);
        }
    }

    /// Charges a packet that has just arrived to its input buffer, and asks the upstream port to pause if that has reached its threshold.
    #[inline]
    fn charge(&mut self, packet: &Packet, moment: Moment, rules: &Rules, wire: &mut impl Wire) -> Fate {
        let (ingress, lane) = (packet.ingress, rules.lane_in(packet));
        match self.buffers.charge(ingress, lane, packet.size) {
            Charge::Fits => Fate::Queued,
            Charge::ReachesThreshold => self.charge_exactly(packet, moment, rules, wire),
        }
    }

    /// Ports are advanced one by one, so the account may still hold packets that have left by now. Brings all ports here, then looks again.
    #[inline(never)]
    fn charge_exactly(
        &mut self,
        packet: &Packet,
        moment: Moment,
        rules: &Rules,
        wire: &mut impl Wire,
    ) -> Fate {
        let (ingress, lane) = (packet.ingress, rules.lane_in(packet));
        self.settle(moment.at, rules, wire);
        let admission = self.buffers.charge_settled(ingress, lane, packet.size);
        if admission.is_lost {
            self.ports[usize::from(ingress)].stats.drops += 1;
            return Fate::Dropped;
        }
        if admission.pauses {
            self.signal(ingress, lane, true, moment.at, rules);
        }
        Fate::Queued
    }

    /// Puts a PAUSE frame for a lane into the port towards the neighbour that fills it.
    fn signal(&mut self, ingress: u16, lane: usize, pause: bool, now: Time, rules: &Rules) {
        let frame = Packet {
            kind: PacketKind::Pause,
            aux: (lane as u32) << 1 | u32::from(pause),
            size: self.buffers.pause_size(),
            ..Packet::EMPTY
        };
        self.append(ingress, LINK, &frame, now, rules);
    }

    /// A PAUSE frame has come in: stops or resumes a lane of the port by which it came.
    #[inline(never)]
    pub fn on_pause(&mut self, frame: &Packet, now: Time, rules: &Rules, wire: &mut impl Wire) {
        let (port, lane) = (frame.ingress, (frame.aux >> 1) as usize);
        self.advance_port(port, now, rules, wire);
        if frame.aux & 1 == 1 { self.close(port, lane, now) } else { self.open(port, lane, now) }
    }

    /// A credit has come back to a port.
    #[inline(never)]
    pub fn on_credit(&mut self, credit: Credit, now: Time, rules: &Rules, wire: &mut impl Wire) {
        self.advance_port(credit.port, now, rules, wire);
        if self.buffers.earn(credit, rules) {
            self.open(credit.port, usize::from(credit.lane), now);
        }
    }

    /// A host has taken a data packet out of its input at once: credits go back.
    #[inline]
    pub fn absorb(&mut self, packet: &Packet, now: Time, rules: &Rules, wire: &mut impl Wire) {
        if rules.is_lossless
            && rules.is_in_data_lane(packet)
            && let Some(delay) = self.buffers.credit_delay(packet.ingress)
        {
            let state = &self.ports[usize::from(packet.ingress)];
            let lane = rules.lane_in(packet) as u8;
            let credit = Credit { port: state.peer, lane, bytes: u32::from(packet.size) };
            wire.credit(state.to, state.channel, now + delay, credit);
        }
    }

    fn close(&mut self, port: u16, lane: usize, now: Time) {
        let state = &mut self.ports[usize::from(port)];
        state.closed |= 1 << (lane + DATA);
        state.stats.pauses += 1;
        state.note_hold(now, self.is_host);
    }

    fn open(&mut self, port: u16, lane: usize, now: Time) {
        let index = usize::from(port);
        let state = &mut self.ports[index];
        if state.occupied & !state.closed == 0 {
            state.free_at = state.free_at.max(now);
        }
        state.closed &= !(1 << (lane + DATA));
        state.note_hold(now, self.is_host);
        if state.occupied & !state.closed != 0 {
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
    pub fn advance(&mut self, until: Time, rules: &Rules, wire: &mut impl Wire) -> Option<Time> {
        if self.buffers.is_ordered() {
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
                if state.occupied & !state.closed != 0 {
                    next = next.min(state.free_at);
                } else {
                    self.waiting[word] &= !(1 << (index % 64));
                }
            }
        }
        (next != Time::MAX).then_some(next)
    }

    /// Brings all ports to `now`, if what one of them does could concern another.
    #[inline]
    pub fn settle_if_ordered(&mut self, now: Time, rules: &Rules, wire: &mut impl Wire) {
        if self.buffers.is_ordered() {
            self.advance_in_order(now, rules, wire);
        }
    }

    /// Brings all ports to `now`.
    fn settle(&mut self, now: Time, rules: &Rules, wire: &mut impl Wire) {
        self.advance(now, rules, wire);
    }

    /// Starts the node's transmissions one by one in order of (time, port): a departure may end the pause of an input buffer, and the frame
    /// that says so takes its turn at another port from then on.
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
                    if state.occupied & !state.closed != 0 && state.free_at < first.0 {
                        first = (state.free_at, index);
                    }
                }
            }
            if first.1 == usize::MAX {
                return;
            }
            self.start_next::<true>(first.1 as u16, rules, wire);
        }
    }

    /// Bytes waiting at a port or being sent there at `now`.
    #[inline]
    pub fn load(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> u64 {
        self.advance_port(port, now, rules, wire);
        let state = &self.ports[usize::from(port)];
        let sending = if state.free_at > now { u64::from(state.sending) } else { 0 };
        state.queued + sending
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
        self.lanes[usize::from(port) * rules.lanes + rules.lane_out(packet)].bytes
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
        debug_assert!(state.occupied & !state.closed == 0 && state.free_at <= at);
        state.free_at = at;
        if rules.is_lossless {
            let lane = rules.lane_out(packet);
            self.depart_lossless(port, lane, packet, rules, wire);
        } else {
            wire.depart(state.start(packet, 1));
        }
    }

    /// When a port's transmitter is next free, and whether something is ready to go then, as of the last advance.
    #[inline]
    pub fn poll(&self, port: u16) -> (Time, bool) {
        let state = &self.ports[usize::from(port)];
        (state.free_at, state.occupied & !state.closed != 0)
    }

    /// When a port's transmitter is next free.
    #[inline]
    pub fn free_at(&self, port: u16) -> Time {
        self.ports[usize::from(port)].free_at
    }

    /// Bytes waiting at a port, as of the last advance.
    pub fn queued(&self, port: u16) -> u64 {
        self.ports[usize::from(port)].queued
    }

    /// What a port has seen, as of the last advance, with bytes that still wait and a pause that still lasts counted up to `end`.
    pub fn stats_of(&self, port: u16, end: Time) -> PortStats {
        let state = &self.ports[usize::from(port)];
        let mut stats = state.stats;
        stats.waiting = stats.waiting.wrapping_add(u128::from(state.queued) * u128::from(end.0));
        stats.paused += end.saturating_sub(state.held_since);
        stats
    }

    /// The packets that wait, with the port and the data lane (from 0; `None` for signals) in which they do.
    pub fn waiting_packets<'a>(
        &'a self,
        rules: &'a Rules,
    ) -> impl Iterator<Item = (u16, Option<usize>, &'a Packet)> {
        self.lanes.iter().enumerate().flat_map(move |(index, queue)| {
            let (port, lane) = ((index / rules.lanes) as u16, index % rules.lanes);
            let step = |place: u32| self.store.get(place as usize);
            std::iter::successors(step(queue.head), move |(_, next)| step(*next))
                .map(move |(packet, _)| (port, lane.checked_sub(DATA), packet))
        })
    }

    /// Number of ports.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Whether there is no port.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// The channel that a port feeds.
    pub fn channel(&self, port: u16) -> u32 {
        self.ports[usize::from(port)].channel
    }

    /// Bytes of a data lane (from 0) that a port may still send downstream; `None` without credits.
    pub fn credits(&self, port: u16, lane: usize) -> Option<u64> {
        self.buffers.credits(port, lane)
    }
}

impl Port {
    fn new(spec: PortSpec, rules: &Rules) -> Self {
        let mut changes = spec.changes;
        changes.reverse();
        let cut_through = rules.cut_through.and_then(|head| spec.cut_through_from.map(|from| (from, head)));
        let mut port = Port {
            free_at: Time::ZERO,
            occupied: 0,
            closed: 0,
            queued: 0,
            rate: spec.rate,
            latency: spec.latency,
            head: Time::MAX,
            channel: spec.channel,
            to: spec.to,
            sending: 0,
            peer: spec.peer,
            known: [(0, Time::ZERO); 2],
            changes,
            cut_through,
            held_since: Time::MAX,
            stats: PortStats::default(),
        };
        port.set_rate(spec.rate);
        port
    }

    /// Starts sending at `free_at`. `which` serialisation time to remember: of control (0) or data (1).
    #[inline(always)]
    fn start<'p>(&mut self, packet: &'p mut Packet, which: usize) -> Departure<'p> {
        let start = self.free_at;
        if self.changes.last().is_some_and(|&(from, _)| from <= start) {
            self.change_rate(start);
        }
        if self.known[which].0 != packet.size {
            self.known[which] = (packet.size, self.rate.serialize(Bytes(u64::from(packet.size))));
        }
        let duration = self.known[which].1;
        self.free_at = start + duration;
        self.sending = packet.size;
        self.stats.bytes += u64::from(packet.size);
        self.stats.packets += 1;
        self.stats.busy += duration;
        packet.hops += u8::from(packet.kind == PacketKind::Data);
        let arrival = start + duration.min(self.head) + self.latency;
        Departure { channel: self.channel, to: self.to, arrival, packet }
    }

    #[cold]
    fn change_rate(&mut self, now: Time) {
        while let Some((_, rate)) = self.changes.pop_if(|(from, _)| *from <= now) {
            self.set_rate(rate);
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.known = [(0, Time::ZERO); 2];
        self.head = match self.cut_through {
            Some((from, head)) if rate >= from => rate.serialize(head),
            _ => Time::MAX,
        };
    }

    /// Notes whether flow control holds data back from now on.
    fn note_hold(&mut self, now: Time, is_host: bool) {
        let is_held = self.closed & (if is_host { u32::MAX } else { self.occupied }) != 0;
        if is_held {
            self.held_since = self.held_since.min(now);
        } else if self.held_since != Time::MAX {
            self.stats.paused += now - self.held_since;
            self.held_since = Time::MAX;
        }
    }
}
