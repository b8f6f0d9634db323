//! One node under test: what reaches it, and what leaves it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod link;

use netloom_fabric::{
    Anything, At, ByKind, Credit, CreditsOfChannels, Departure, Fabric, FabricOptions, Fate, FlowControl,
    KnownRules, PacedPfc, PacedPfcShared, Packet, PacketKind, PlainCredits, PlainPfc, PlainPfcShared,
    PortSpec, Ports, Rules, TrafficClass, Wire,
};
use netloom_units::{Bytes, Rate, Time};
use rand_pcg::Pcg64Mcg;

/// Largest packet of these tests.
pub const PACKET: u64 = 400;

pub fn ns(ns: u64) -> Time {
    Time::from_ns(ns)
}

/// A port at 8 Gb/s, a byte per nanosecond, with 1 us of cable; it feeds channel 10 + its number.
pub fn spec(port: u16) -> PortSpec {
    PortSpec {
        channel: 10 + u32::from(port),
        to: 100 + u32::from(port),
        peer: 7,
        latency: ns(1000),
        rate: Rate::from_gbps(8),
        changes: vec![],
        faults: None,
        cut_through_from: None,
        ecn: None,
        inward: (ns(1000), Rate::from_gbps(8)),
        rank: 0,
    }
}

pub fn data(seq: u32, size: u16) -> Packet {
    Packet { dst: 1, seq, size, ..Packet::EMPTY }
}

pub fn ack(seq: u32) -> Packet {
    Packet { kind: PacketKind::control(0), ..data(seq, 64) }
}

/// A PAUSE frame that has come in through a port: bit by bit the queues that must pause.
pub fn pause(port: u16, queues: u32) -> Packet {
    Packet { kind: PacketKind::Pause, ingress: port, by_kind: ByKind::new(queues), size: 64, ..Packet::EMPTY }
}

pub fn with(flow_control: FlowControl) -> Fabric {
    Fabric { flow_control, ..Fabric::default() }
}

pub fn classes(shares: &[Option<u32>]) -> Vec<TrafficClass> {
    shares.iter().map(|&share| TrafficClass { share }).collect()
}

pub fn options() -> FabricOptions {
    FabricOptions::default()
}

/// What has left a node, in the order in which it was handed on.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// Channel, arrival, packet.
    pub packets: Vec<(u32, Time, Packet)>,
    /// Channel beside which it goes, arrival, credit.
    pub credits: Vec<(u32, Time, Credit)>,
    /// The same for packets that are missing, and for credits of links that are repaired.
    pub missed: Vec<(u32, Time, Credit)>,
    pub granted: Vec<(u32, Time, Credit)>,
}

impl Wire for Left {
    fn depart(&mut self, departure: Departure<'_>) {
        self.packets.push((departure.channel, departure.arrival, *departure.packet));
    }
    fn credit(&mut self, _: u32, channel: u32, arrival: Time, credit: Credit) {
        self.credits.push((channel, arrival, credit));
    }
    fn miss(&mut self, _: u32, channel: u32, arrival: Time, room: Credit) {
        self.missed.push((channel, arrival, room));
    }
    fn grant(&mut self, _: u32, channel: u32, arrival: Time, credit: Credit) {
        self.granted.push((channel, arrival, credit));
    }
}

impl Left {
    /// Sequence numbers and arrivals in nanoseconds at the end of one channel.
    pub fn at(&self, channel: u32) -> Vec<(u32, u64)> {
        let here = self.packets.iter().filter(|packet| packet.0 == channel);
        here.map(|(_, at, packet)| (packet.seq, at.0 / 1000)).collect()
    }
}

/// A node, with the random numbers it marks by.
pub struct Node {
    pub ports: Ports,
    pub rules: Rules,
    pub left: Left,
    hands_on_early: bool,
    /// When the node's next event comes, where ports are to know it: under flow control.
    pub next: Option<Time>,
    /// Whether packets arrive at each port no faster than its link carries them, which bounds how much can arrive.
    pub is_paced: bool,
    random: Pcg64Mcg,
}

impl Node {
    pub fn new(fabric: &Fabric, vcs: u8, specs: Vec<PortSpec>) -> Self {
        Self::with_packets(fabric, vcs, specs, PACKET)
    }

    /// A switch for packets of at most this many bytes.
    pub fn with_packets(fabric: &Fabric, vcs: u8, specs: Vec<PortSpec>, packet: u64) -> Self {
        fabric.check(Bytes(packet)).unwrap();
        let rules = Rules::new(fabric, Bytes(packet), vcs);
        let ports = Ports::new(specs, &rules, false);
        Node {
            ports,
            rules,
            left: Left::default(),
            hands_on_early: false,
            next: None,
            is_paced: false,
            random: Pcg64Mcg::new(1),
        }
    }

    /// Hands on early what may be, or nothing. Nothing may keep packets from being lost.
    pub fn handing_on_early(self, hands_on_early: bool) -> Self {
        Node { hands_on_early, ..self }
    }

    /// A packet, PAUSE frame or credit arrives.
    pub fn put(&mut self, at: Time, port: u16, mut packet: Packet) -> Fate {
        let Node { ports, rules, left, random, hands_on_early, next, is_paced } = self;
        ports.settle(at, rules, left);
        match packet.kind {
            PacketKind::Pause => ports.on_pause(&packet, at, rules, left),
            PacketKind::Credit => ports.on_credit(Credit::from_packet(&packet), at, rules, left),
            _ if *hands_on_early => {
                let to = ports.port_queue(port, &packet, rules);
                let trims = !rules.drops_tail();
                let at = At::new(at, rules, left);
                return match trims {
                    true if rules.trims_plainly() => {
                        ports.enqueue_or_trim::<false, true, true>(to, &mut packet, random, at)
                    }
                    true => ports.enqueue_or_trim::<false, true, false>(to, &mut packet, random, at),
                    false => ports.enqueue_or_drop::<false, true, false>(to, &mut packet, random, at),
                };
            }
            _ => {
                let Some(next) = *next else {
                    return ports.enqueue(port, &mut packet, random, At::new(at, rules, left));
                };
                let to = (ports.port_queue(port, &packet, rules), next > at);
                let at = At::new(at, rules, left);
                return match (rules.known(), *is_paced) {
                    (KnownRules::Pfc, true) => {
                        ports.enqueue_lossless::<PacedPfc>(to, &mut packet, random, at)
                    }
                    (KnownRules::Pfc, false) => {
                        ports.enqueue_lossless::<PlainPfc>(to, &mut packet, random, at)
                    }
                    (KnownRules::PfcShared, true) => {
                        ports.enqueue_lossless::<PacedPfcShared>(to, &mut packet, random, at)
                    }
                    (KnownRules::PfcShared, false) => {
                        ports.enqueue_lossless::<PlainPfcShared>(to, &mut packet, random, at)
                    }
                    (KnownRules::CreditsOfChannels, _) => {
                        ports.enqueue_lossless::<CreditsOfChannels>(to, &mut packet, random, at)
                    }
                    (KnownRules::PlainCredits, _) => {
                        ports.enqueue_lossless::<PlainCredits>(to, &mut packet, random, at)
                    }
                    (KnownRules::Anything, _) => {
                        ports.enqueue_lossless::<Anything>(to, &mut packet, random, at)
                    }
                };
            }
        }
        Fate::Queued
    }

    /// Under flow control: the link of a port is cut, and all that waits for it is lost.
    pub fn cut_link(&mut self, at: Time, port: u16) {
        let Node { ports, rules, left, .. } = self;
        let back = ports.cut_link(port, std::iter::empty(), |_| false, At::new(at, rules, left));
        assert!(back.is_empty());
    }

    /// Under flow control: the link of a port is repaired.
    pub fn restore_link(&mut self, at: Time, port: u16) {
        self.ports.restore_link(port, at, &self.rules, &mut self.left);
    }

    /// The bytes that wait at a port or are being sent there, and those that wait.
    pub fn loads(&mut self, at: Time, port: u16) -> (u64, u64) {
        let Node { ports, rules, left, .. } = self;
        (ports.load(port, at, rules, left), ports.waiting(port, at, rules, left))
    }

    pub fn utilisation(&mut self, at: Time, port: u16) -> u64 {
        self.ports.utilisation(port, at, &self.rules, &mut self.left)
    }

    pub fn advance(&mut self, until: Time) -> Option<Time> {
        self.ports.advance(until, &self.rules, &mut self.left)
    }
}
