//! Output ports without events: queues that are advanced when touched.

use netloom_units::{Bytes, Rate, Time};
use rand::Rng;

use crate::config::Fabric;
use crate::packet::{Class, Packet};

/// What a port is wired to.
#[derive(Clone, Debug)]
pub struct PortSpec {
    /// The channel it feeds.
    pub channel: u32,
    /// The node at the other end.
    pub to: u32,
    /// Delay from the end of a transmission to the arrival.
    pub latency: Time,
    /// Rate from time zero on.
    pub rate: Rate,
    /// Changes of the rate, ascending: from each instant on, the new rate holds for packets that start then.
    pub changes: Vec<(Time, Rate)>,
}

/// A packet that has left a port.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'p> {
    /// The channel it crosses.
    pub channel: u32,
    /// The node it reaches.
    pub to: u32,
    /// When its last bit reaches that node.
    pub arrival: Time,
    /// The packet.
    pub packet: &'p Packet,
}

/// Takes the packets that leave ports.
pub trait Wire {
    /// A packet has left.
    fn depart(&mut self, departure: Departure<'_>);
}

impl<F: FnMut(Departure<'_>)> Wire for F {
    fn depart(&mut self, departure: Departure<'_>) {
        self(departure);
    }
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
    /// Packets dropped.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Σ size × (start of transmission − arrival at the queue), in byte-picoseconds. Wraps below zero while packets wait, so that
    /// arrivals and starts are each one multiplication.
    waiting: u128,
}

impl PortStats {
    /// Mean number of bytes waiting, over the time from zero to `end`.
    pub fn mean_queue(&self, end: Time) -> f64 {
        if end == Time::ZERO { 0.0 } else { self.waiting as f64 / end.0 as f64 }
    }
}

const CLASSES: usize = 2;
const NONE: u32 = u32::MAX;

/// A queue of packets in the node's shared store.
#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
    bytes: u64,
}

/// One output port. Hot: touched by every packet that passes.
#[derive(Clone, Debug)]
pub struct Port {
    /// When the transmitter is next free.
    free_at: Time,
    queues: [Queue; CLASSES],
    /// Packets in all queues.
    queued: u32,
    /// Size of the packet being sent until `free_at`.
    sending: u16,
    rate: Rate,
    latency: Time,
    channel: u32,
    to: u32,
    /// Serialisation time of the last size sent, per class; a division saved nearly always.
    known: [(u16, Time); CLASSES],
    /// Rate changes to come, latest first.
    changes: Vec<(Time, Rate)>,
    stats: PortStats,
}

/// The output side of a node.
#[derive(Clone, Debug)]
pub struct Ports {
    ports: Vec<Port>,
    /// One bit per port: something may wait there. Set by an enqueue, cleared at the end of the node's turn.
    waiting: Vec<u64>,
    /// The packets of all queues of the node, linked; freed places are reused first.
    store: Vec<(Packet, u32)>,
    free: u32,
}

impl Ports {
    /// Idle ports, in the order of the specs.
    pub fn new(specs: impl IntoIterator<Item = PortSpec>) -> Self {
        let ports: Vec<Port> = specs.into_iter().map(Port::new).collect();
        let words = ports.len().div_ceil(64);
        Ports { ports, waiting: vec![0; words], store: Vec::new(), free: NONE }
    }

    /// Puts a packet into its class's queue, marking or dropping it as configured.
    ///
    /// Hands on whatever starts before that moment; and the packet itself, if it is certain that it goes first.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        port: u16,
        packet: &mut Packet,
        moment: Moment,
        fabric: &Fabric,
        random: &mut impl Rng,
        wire: &mut impl Wire,
    ) -> Fate {
        self.advance_port(port, moment.at, wire);
        let state = &mut self.ports[usize::from(port)];
        // Control packets go first whatever else comes in this instant, if classes count.
        let goes_first = moment.is_over || (packet.class() == Class::Control && fabric.control_priority);
        if state.queued == 0 && state.free_at <= moment.at && goes_first {
            state.free_at = moment.at;
            state.stats.max_queue = state.stats.max_queue.max(u64::from(packet.size));
            let class = usize::from(packet.class() == Class::Data || !fabric.control_priority);
            wire.depart(state.start(packet, class));
            return Fate::Queued;
        }
        self.push(port, packet, moment.at, fabric, random)
    }

    #[inline(always)]
    fn push(
        &mut self,
        port: u16,
        packet: &Packet,
        now: Time,
        fabric: &Fabric,
        random: &mut impl Rng,
    ) -> Fate {
        let state = &mut self.ports[usize::from(port)];
        let class = if fabric.control_priority { packet.class() } else { Class::Data } as usize;
        let mut mark = false;
        if packet.class() == Class::Data {
            let queued = state.queues[Class::Data as usize].bytes;
            if fabric.buffer.is_some_and(|buffer| queued + u64::from(packet.size) > buffer.0) {
                state.stats.drops += 1;
                return Fate::Dropped;
            }
            if let Some(ecn) = &fabric.ecn {
                mark = ecn.decide(queued, random);
                state.stats.marks += u64::from(mark);
            }
        }
        self.append(port, packet, now, class).marked |= mark;
        Fate::Queued
    }

    /// Puts a packet at the end of a queue and returns it there.
    #[inline(always)]
    fn append(&mut self, port: u16, packet: &Packet, now: Time, class: usize) -> &mut Packet {
        let index = usize::from(port);
        let state = &mut self.ports[index];
        let size = u64::from(packet.size);
        if state.queued == 0 {
            self.waiting[index / 64] |= 1 << (index % 64);
            // Nothing waited, so the port was idle from its last transmission until now.
            state.free_at = state.free_at.max(now);
        }
        state.queued += 1;
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
        let queue = &mut state.queues[class];
        if queue.head == NONE {
            queue.head = place;
        } else {
            self.store[queue.tail as usize].1 = place;
        }
        queue.tail = place;
        queue.bytes += size;
        state.stats.waiting = state.stats.waiting.wrapping_sub(u128::from(size) * u128::from(now.0));
        let waiting = state.queues[0].bytes + state.queues[1].bytes;
        state.stats.max_queue = state.stats.max_queue.max(waiting);
        &mut self.store[place as usize].0
    }

    /// Starts every transmission of one port that begins before `until`.
    #[inline(always)]
    pub fn advance_port(&mut self, port: u16, until: Time, wire: &mut impl Wire) {
        let state = &mut self.ports[usize::from(port)];
        while state.queued > 0 && state.free_at < until {
            let class = usize::from(state.queues[0].head == NONE);
            let queue = &mut state.queues[class];
            let place = queue.head;
            let slot = &mut self.store[place as usize];
            queue.head = std::mem::replace(&mut slot.1, self.free);
            self.free = place;
            queue.bytes -= u64::from(slot.0.size);
            state.queued -= 1;
            let weight = u128::from(slot.0.size) * u128::from(state.free_at.0);
            state.stats.waiting = state.stats.waiting.wrapping_add(weight);
            wire.depart(state.start(&mut slot.0, class));
        }
    }

    /// Starts every transmission of the node that begins before `until`; returns when the next one will begin.
    #[inline]
    pub fn advance(&mut self, until: Time, wire: &mut impl Wire) -> Option<Time> {
        let mut next = Time::MAX;
        for word in 0..self.waiting.len() {
            let mut bits = self.waiting[word];
            while bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.advance_port(index as u16, until, wire);
                let state = &self.ports[index];
                if state.queued > 0 {
                    next = next.min(state.free_at);
                } else {
                    self.waiting[word] &= !(1 << (index % 64));
                }
            }
        }
        (next != Time::MAX).then_some(next)
    }

    /// Bytes waiting at a port or being sent there at `now`.
    #[inline]
    pub fn load(&mut self, port: u16, now: Time, wire: &mut impl Wire) -> u64 {
        self.advance_port(port, now, wire);
        let state = &self.ports[usize::from(port)];
        let sending = if state.free_at > now { u64::from(state.sending) } else { 0 };
        state.queues[0].bytes + state.queues[1].bytes + sending
    }

    /// Sends a packet at `at` through an idle port at which nothing waits, when that instant is over: a NIC that pulls
    /// its data needs no queue.
    #[inline(always)]
    pub fn send_now(&mut self, port: u16, packet: &mut Packet, at: Time, wire: &mut impl Wire) {
        let state = &mut self.ports[usize::from(port)];
        debug_assert!(state.queued == 0 && state.free_at <= at);
        state.free_at = at;
        wire.depart(state.start(packet, Class::Data as usize));
    }

    /// Whether something waits at a port, as of the last advance.
    #[inline]
    pub fn is_waiting(&self, port: u16) -> bool {
        self.ports[usize::from(port)].queued > 0
    }

    /// When a port's transmitter is next free.
    #[inline]
    pub fn free_at(&self, port: u16) -> Time {
        self.ports[usize::from(port)].free_at
    }

    /// Bytes a port has sent, as of the last advance.
    pub fn sent(&self, port: u16) -> u64 {
        self.ports[usize::from(port)].stats.bytes
    }

    /// Bytes waiting at a port, as of the last advance.
    pub fn queued(&self, port: u16) -> u64 {
        let state = &self.ports[usize::from(port)];
        state.queues[0].bytes + state.queues[1].bytes
    }

    /// The packets that wait.
    pub fn waiting_packets(&self) -> impl Iterator<Item = &Packet> {
        let heads = self.ports.iter().flat_map(|port| port.queues.iter().map(|queue| queue.head));
        heads.flat_map(move |head| {
            let step = |place: u32| self.store.get(place as usize);
            std::iter::successors(step(head), move |(_, next)| step(*next)).map(|(packet, _)| packet)
        })
    }

    /// The channel of each port and what it has seen, with bytes that still wait counted up to `end`.
    pub fn stats(&self, end: Time) -> impl Iterator<Item = (u32, PortStats)> + '_ {
        self.ports.iter().map(move |port| {
            let mut stats = port.stats;
            let queued = port.queues[0].bytes + port.queues[1].bytes;
            stats.waiting = stats.waiting.wrapping_add(u128::from(queued) * u128::from(end.0));
            (port.channel, stats)
        })
    }
}

impl Port {
    fn new(spec: PortSpec) -> Self {
        let mut changes = spec.changes;
        changes.reverse();
        let empty = Queue { head: NONE, tail: NONE, bytes: 0 };
        Port {
            free_at: Time::ZERO,
            queues: [empty; CLASSES],
            queued: 0,
            sending: 0,
            rate: spec.rate,
            latency: spec.latency,
            channel: spec.channel,
            to: spec.to,
            known: [(0, Time::ZERO); CLASSES],
            changes,
            stats: PortStats::default(),
        }
    }

    /// Starts sending at `free_at`.
    #[inline(always)]
    fn start<'p>(&mut self, packet: &'p mut Packet, class: usize) -> Departure<'p> {
        let start = self.free_at;
        if self.changes.last().is_some_and(|&(from, _)| from <= start) {
            self.change_rate(start);
        }
        if self.known[class].0 != packet.size {
            self.known[class] = (packet.size, self.rate.serialize(Bytes(u64::from(packet.size))));
        }
        let duration = self.known[class].1;
        self.free_at = start + duration;
        self.sending = packet.size;
        self.stats.bytes += u64::from(packet.size);
        self.stats.packets += 1;
        self.stats.busy += duration;
        packet.hops += u8::from(packet.class() == Class::Data);
        Departure { channel: self.channel, to: self.to, arrival: self.free_at + self.latency, packet }
    }

    #[cold]
    fn change_rate(&mut self, now: Time) {
        while let Some((_, rate)) = self.changes.pop_if(|(from, _)| *from <= now) {
            self.rate = rate;
        }
        self.known = [(0, Time::ZERO); CLASSES];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketKind;
    use proptest::prelude::*;

    fn packet(seq: u32, size: u16, kind: PacketKind) -> Packet {
        Packet {
            sent: Time::ZERO,
            src: 0,
            dst: 1,
            flow: 0,
            slot: 0,
            seq,
            aux: 0,
            entropy: 0,
            size,
            payload: size - 64,
            kind,
            hops: 0,
            marked: false,
            last: false,
        }
    }

    /// 8 Gb/s: one byte per nanosecond.
    fn one_port(changes: Vec<(Time, Rate)>) -> Ports {
        let spec =
            PortSpec { channel: 9, to: 4, latency: Time::from_ns(1000), rate: Rate::from_gbps(8), changes };
        Ports::new([spec])
    }

    struct Bench {
        ports: Ports,
        fabric: Fabric,
        out: Vec<(u32, u64)>,
        is_over: bool,
    }

    impl Bench {
        fn new(fabric: Fabric, changes: Vec<(Time, Rate)>) -> Self {
            Bench { ports: one_port(changes), fabric, out: Vec::new(), is_over: false }
        }
        fn put(&mut self, ns: u64, mut packet: Packet) -> Fate {
            let Bench { ports, fabric, out, .. } = self;
            let mut random = rand_pcg::Pcg64Mcg::new(1);
            let mut depart = |d: Departure<'_>| out.push((d.packet.seq, d.arrival.0 / 1000));
            let moment = Moment { at: Time::from_ns(ns), is_over: self.is_over };
            ports.enqueue(0, &mut packet, moment, fabric, &mut random, &mut depart)
        }
        fn advance(&mut self, ns: u64) -> Option<u64> {
            let Bench { ports, out, .. } = self;
            ports
                .advance(Time::from_ns(ns), &mut |d: Departure<'_>| {
                    out.push((d.packet.seq, d.arrival.0 / 1000))
                })
                .map(|t| t.0 / 1000)
        }
    }

    #[test]
    fn packets_leave_back_to_back_with_exact_arrival_times() {
        let mut bench = Bench::new(Fabric::default(), vec![]);
        for seq in 0..3 {
            bench.put(50, packet(seq, 200, PacketKind::Data));
        }
        assert_eq!(bench.advance(251), Some(450));
        assert_eq!(bench.out, [(0, 1250), (1, 1450)]);
        assert_eq!(bench.advance(10_000), None);
        assert_eq!(bench.out[2], (2, 1650));
    }

    #[test]
    fn control_overtakes_waiting_data_but_not_a_transmission() {
        for (priority, expected) in [(true, [0, 7, 1]), (false, [0, 1, 7])] {
            let mut bench = Bench::new(Fabric { control_priority: priority, ..Fabric::default() }, vec![]);
            bench.put(0, packet(0, 200, PacketKind::Data));
            bench.put(0, packet(1, 200, PacketKind::Data));
            bench.put(100, packet(7, 64, PacketKind::Ack));
            bench.advance(10_000);
            assert_eq!(bench.out.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_packet_arriving_when_a_transmission_would_start_takes_part_in_the_choice() {
        let mut bench = Bench::new(Fabric::default(), vec![]);
        bench.put(0, packet(0, 200, PacketKind::Data));
        bench.put(0, packet(1, 200, PacketKind::Data));
        bench.put(200, packet(7, 64, PacketKind::Ack));
        bench.advance(10_000);
        assert_eq!(bench.out, [(0, 1200), (7, 1264), (1, 1464)]);
    }

    #[test]
    fn a_full_queue_drops_data_and_never_control() {
        let mut bench = Bench::new(Fabric { buffer: Some(Bytes(400)), ..Fabric::default() }, vec![]);
        bench.put(0, packet(0, 200, PacketKind::Data));
        bench.advance(1);
        let fates: Vec<Fate> = (1..4).map(|seq| bench.put(1, packet(seq, 200, PacketKind::Data))).collect();
        assert_eq!(fates, [Fate::Queued, Fate::Queued, Fate::Dropped]);
        assert_eq!(bench.put(1, packet(9, 64, PacketKind::Ack)), Fate::Queued);
    }

    #[test]
    fn a_degraded_link_serves_what_starts_in_its_bad_time_slowly() {
        let changes =
            vec![(Time::from_ns(100), Rate::from_gbps(2)), (Time::from_ns(1000), Rate::from_gbps(8))];
        let mut bench = Bench::new(Fabric::default(), changes);
        for seq in 0..3 {
            bench.put(0, packet(seq, 200, PacketKind::Data));
        }
        bench.advance(10_000);
        // 0–200 fast; 200–1000 at a quarter; from 1000 fast again.
        assert_eq!(bench.out, [(0, 1200), (1, 2000), (2, 2200)]);
    }

    proptest! {
        #[test]
        fn nothing_depends_on_how_often_a_port_is_advanced(
            mut arrivals in prop::collection::vec((0..5000u64, 65..400u16, any::<bool>()), 1..60),
            mut looks in prop::collection::vec(0..6000u64, 0..40),
            buffer in 400..3000u64,
        ) {
            arrivals.sort_unstable();
            looks.sort_unstable();
            // A packet may go at once where it is known to be the last of its instant.
            let last_of_instant = |seq: usize| arrivals.get(seq + 1).is_none_or(|next| next.0 > arrivals[seq].0);
            let run = |looks: &[u64], eager: bool| {
                let fabric = Fabric {
                    buffer: Some(Bytes(buffer)),
                    ecn: Some(crate::Ecn { kmin: Bytes(200), kmax: Bytes(200), pmax: 1.0 }),
                    ..Fabric::default()
                };
                let mut bench = Bench::new(fabric, vec![(Time::from_ns(777), Rate::from_gbps(1))]);
                let mut looks = looks.iter().peekable();
                for (seq, &(at, size, control)) in arrivals.iter().enumerate() {
                    while let Some(look) = looks.next_if(|&&look| look <= at) {
                        bench.advance(*look);
                    }
                    let kind = if control { PacketKind::Ack } else { PacketKind::Data };
                    bench.is_over = eager && last_of_instant(seq);
                    bench.put(at, packet(seq as u32, size, kind));
                }
                bench.advance(u64::MAX / 2000);
                let stats: Vec<_> = bench.ports.stats(Time::from_us(1000)).collect();
                (bench.out, stats)
            };
            let expected = run(&[], false);
            let stats = &expected.1[0].1;
            prop_assert_eq!(stats.packets + stats.drops, arrivals.len() as u64);
            prop_assert!(stats.waiting < 1 << 100, "the sum has come back above zero");
            prop_assert_eq!(&expected, &run(&looks, false));
            prop_assert_eq!(&expected, &run(&looks, true));
        }
    }
}
