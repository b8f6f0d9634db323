//! One output port: its transmitter, and what it has seen.

use std::sync::Arc;

use netloom_units::{Bytes, Rate, Time};
use rand::Rng;

use crate::config::Ecn;
use crate::estimator::RateEstimator;
use crate::faults::{ChannelFaults, Start};
use crate::packet::{Packet, PacketKind};
use crate::rules::Rules;
use crate::telemetry::{Stamp, Telemetry};

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
    /// What goes wrong on the channel.
    pub faults: Option<Box<ChannelFaults>>,
    /// Cut-through: a packet sent at this rate or above is forwarded by the other end while it arrives. `None`: it is stored first.
    pub cut_through_from: Option<Rate>,
    /// How it marks, if not as the fabric says for all.
    pub ecn: Option<Ecn>,
    /// The opposite channel's delay, and its highest rate; what comes through it fills this port's input buffer.
    pub inward: (Time, Rate),
    /// A packet that comes by a channel of lower rank than the one on which it leaves keeps its virtual channel; others take the next one, and
    /// all take the first one on a channel of [`LAST_RANK`].
    pub rank: u8,
}

/// The rank of a channel to a host. Nothing waits behind a host, so one virtual channel does there, and packets of a flow that came by ways of
/// different lengths, and so in different virtual channels, stay in the order in which they came to their last switch.
pub const LAST_RANK: u8 = u8::MAX;

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

impl Credit {
    /// A credit as something that crosses a channel.
    pub fn to_packet(self) -> Packet {
        let Credit { port, lane, bytes } = self;
        Packet { kind: PacketKind::Credit, ingress: port, vc: lane, aux: bytes, ..Packet::EMPTY }
    }

    /// The credit in a packet of kind [`PacketKind::Credit`].
    pub fn from_packet(packet: &Packet) -> Credit {
        Credit { port: packet.ingress, lane: packet.vc, bytes: packet.aux }
    }
}

/// Takes the packets and credits that leave ports.
pub trait Wire {
    /// A packet has left.
    fn depart(&mut self, departure: Departure<'_>);
    /// A credit goes back to node `to` beside channel `channel`.
    fn credit(&mut self, to: u32, channel: u32, arrival: Time, credit: Credit);
}

/// How a packet leaves a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// By which port.
    pub port: u16,
    /// In which of its lanes.
    pub lane: u16,
}

impl Exit {
    /// Both in one number, which is not the greatest: no port has so many lanes.
    #[inline(always)]
    pub fn to_bits(self) -> u32 {
        u32::from(self.lane) << u16::BITS | u32::from(self.port)
    }

    /// The exit of which [`Self::to_bits`] made a number.
    #[inline(always)]
    pub fn from_bits(bits: u32) -> Self {
        Exit { port: bits as u16, lane: (bits >> u16::BITS) as u16 }
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
    /// There was no room for a header. The packet is now one that goes back to its sender, and still has to be sent on its way.
    Returned,
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
    /// Packets lost on the channel because it was cut, or at random.
    pub lost: u64,
    /// Packets marked.
    pub marks: u64,
    /// Packets that lost their payload.
    pub trims: u64,
    /// Headers sent back to their source, for want of room or because the channel was cut.
    pub returns: u64,
    /// Time during which flow control held back data that waited; at a NIC, which keeps no queue, during which it held back a lane.
    pub paused: Time,
    /// How often flow control stopped a lane.
    pub pauses: u64,
    /// Σ size × (start of transmission − arrival at the queue), in byte-picoseconds. Wraps below zero while packets wait, so that
    /// arrivals and starts are each one multiplication.
    pub(crate) waiting: u128,
}

/// What a port has sent and kept waiting.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) busy: Time,
    pub(crate) max_queue: u64,
    pub(crate) paused: Time,
    pub(crate) pauses: u64,
    pub(crate) waiting: u128,
}

impl Traffic {
    /// So many bytes wait.
    #[inline(always)]
    pub(crate) fn note_queue(&mut self, bytes: u64) {
        self.max_queue = self.max_queue.max(bytes);
    }
}

/// What happened to packets at a port; few have anything of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) drops: u64,
    pub(crate) lost: u64,
    pub(crate) marks: u64,
    pub(crate) trims: u64,
    pub(crate) returns: u64,
}

impl PortStats {
    pub(crate) fn new(traffic: Traffic, losses: Losses) -> Self {
        let Traffic { bytes, packets, busy, max_queue, paused, pauses, waiting } = traffic;
        let Losses { drops, lost, marks, trims, returns } = losses;
        PortStats {
            bytes,
            packets,
            busy,
            max_queue,
            drops,
            lost,
            marks,
            trims,
            returns,
            paused,
            pauses,
            waiting,
        }
    }

    /// Mean number of bytes waiting, over the time from zero to `end`.
    pub fn mean_queue(&self, end: Time) -> f64 {
        if end == Time::ZERO { 0.0 } else { self.waiting as f64 / end.0 as f64 }
    }

    /// Time integral of the bytes waiting from zero on, in byte-picoseconds.
    pub fn queue_integral(&self) -> u128 {
        self.waiting
    }
}

/// How long packets of a size take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Serialisation {
    size: u16,
    /// What that adds to a packet's [`way`](Packet::way).
    way: u32,
    duration: Time,
}

/// A power of two, so that finding a lane's entry takes one instruction.
const KNOWN: usize = 4;

const UNKNOWN: Serialisation = Serialisation { size: 0, way: 0, duration: Time::ZERO };

/// What few ports have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    /// How it marks, if not as others.
    pub(crate) ecn: Option<Ecn>,
    pub(crate) losses: Losses,
    /// Where the load ends before the run.
    pub(crate) drain: Option<Drain>,
    /// How fast it has sent lately, where somebody asks.
    pub(crate) estimator: Option<RateEstimator>,
    /// Where it says how it stands, if packets carry that.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
}

/// The drain at a port: when it begins, and what was sent before.
#[derive(Clone, Debug)]
pub(crate) struct Drain {
    /// When it begins.
    pub(crate) from: Time,
    /// Bytes and the time that they took, once something has been sent in the drain.
    pub(crate) before: Option<(u64, Time)>,
}

impl Drain {
    /// Something is sent at `start`. Returns from when on a packet must be noted; `Time::MAX`: none any more.
    fn note(&mut self, start: Time, stats: &Traffic) -> Time {
        if self.from <= start && self.before.is_none() {
            self.before = Some((stats.bytes, stats.busy));
        }
        if self.before.is_some() { Time::MAX } else { self.from }
    }
}

/// Rates that a channel will have.
#[derive(Clone, Debug)]
struct Changes {
    /// From when on which, latest first.
    rates: Vec<(Time, Rate)>,
    /// From which rate on packets are forwarded as they arrive, and how much of one must have come.
    cut_through: Option<(Rate, Bytes)>,
}

/// One output port. Hot: touched by every packet that passes.
#[derive(Clone, Debug)]
pub struct Port {
    /// When the transmitter is next free.
    pub(crate) free_at: Time,
    /// Lanes in which something waits.
    pub(crate) occupied: u32,
    /// Lanes that flow control has stopped.
    pub(crate) closed: u32,
    /// Bytes in all lanes.
    pub(crate) queued: u64,
    /// Number of its first lane among those of all ports.
    pub(crate) first_lane: u32,
    pub(crate) rate: Rate,
    pub(crate) latency: Time,
    /// Most of a packet's serialisation that must be over for it to count as arrived.
    pub(crate) head: Time,
    pub(crate) channel: u32,
    pub(crate) to: u32,
    /// Size of the packet being sent until `free_at`.
    pub(crate) sending: u16,
    pub(crate) peer: u16,
    pub(crate) rank: u8,
    /// Serialisation of the last size sent, for PAUSE frames, control and data; a division saved nearly always.
    pub(crate) known: [Serialisation; KNOWN],
    /// From when on a packet that starts must be looked at: because of what is rare, of the rate's changes or of faults.
    watch_from: Time,
    /// Rate changes to come.
    changes: Option<Box<Changes>>,
    pub(crate) faults: Option<Box<ChannelFaults>>,
    /// Since when flow control holds data back; `Time::MAX` while it does not.
    pub(crate) held_since: Time,
    pub(crate) stats: Traffic,
    pub(crate) rare: Option<Box<Rare>>,
}

impl Port {
    pub(crate) fn new(index: usize, spec: PortSpec, rules: &Rules) -> Self {
        let cut_through = rules.cut_through.and_then(|head| spec.cut_through_from.map(|from| (from, head)));
        let changes = (!spec.changes.is_empty()).then(|| {
            let mut rates = spec.changes;
            rates.reverse();
            Box::new(Changes { rates, cut_through })
        });
        Port {
            free_at: Time::ZERO,
            occupied: 0,
            closed: 0,
            queued: 0,
            first_lane: (index * rules.lanes) as u32,
            rate: spec.rate,
            latency: spec.latency,
            head: head_at(spec.rate, cut_through),
            channel: spec.channel,
            to: spec.to,
            sending: 0,
            peer: spec.peer,
            rank: spec.rank,
            known: [UNKNOWN; KNOWN],
            watch_from: Time::ZERO,
            changes,
            faults: spec.faults,
            held_since: Time::MAX,
            stats: Traffic::default(),
            rare: spec.ecn.map(|ecn| Box::new(Rare { ecn: Some(ecn), ..Rare::default() })),
        }
    }

    /// What happened to packets here.
    pub(crate) fn losses(&mut self) -> &mut Losses {
        &mut self.rare.get_or_insert_default().losses
    }

    /// Number of one of its lanes among those of all ports.
    #[inline(always)]
    pub(crate) fn lane(&self, lane: usize) -> usize {
        self.first_lane as usize + lane
    }

    /// The first lane in which something waits; one that there is not if nothing does.
    #[inline(always)]
    pub(crate) fn first_occupied(&self) -> usize {
        (self.occupied | 1 << (u32::BITS - 1)).trailing_zeros() as usize
    }

    /// Lanes that could send, as bits.
    #[inline(always)]
    pub(crate) fn ready(&self) -> u32 {
        self.occupied & !self.closed
    }

    /// A packet comes to wait in a lane.
    #[inline(always)]
    pub(crate) fn note_arrival(&mut self, size: u16, lane: usize, now: Time) {
        self.occupied |= 1 << lane;
        self.queued += u64::from(size);
        self.stats.note_queue(self.queued);
        let weight = u128::from(size) * u128::from(now.0);
        self.stats.waiting = self.stats.waiting.wrapping_sub(weight);
    }

    /// A packet of `went` bytes that waited gives its place to one of `came` bytes.
    pub(crate) fn note_exchange(&mut self, went: u16, came: u16, now: Time) {
        self.queued = self.queued + u64::from(came) - u64::from(went);
        let weight = |size| u128::from(size) * u128::from(now.0);
        self.stats.waiting = self.stats.waiting.wrapping_add(weight(went)).wrapping_sub(weight(came));
    }

    /// A packet has been taken out of a lane to be sent at `free_at`.
    #[inline(always)]
    pub(crate) fn note_start(&mut self, size: u16, lane: usize, is_empty: bool) {
        if is_empty {
            self.occupied &= !(1 << lane);
        }
        self.queued -= u64::from(size);
        let weight = u128::from(size) * u128::from(self.free_at.0);
        self.stats.waiting = self.stats.waiting.wrapping_add(weight);
    }

    /// Marks a data packet that finds so many bytes in its queue, if it must be.
    #[inline(always)]
    pub(crate) fn mark(&mut self, packet: &mut Packet, queued: u64, rules: &Rules, random: &mut impl Rng) {
        if let Some(ecn) = &rules.ecn {
            let own = self.rare.as_ref().and_then(|rare| rare.ecn.as_ref());
            let mark = own.unwrap_or(ecn).decide(queued, random);
            if mark {
                self.losses().marks += 1;
            }
            packet.flags.mark(mark);
        }
    }

    /// Starts sending a packet of a lane, which `has_waited` in its queue or not, at `free_at`. `None` if a fault takes it.
    #[inline(always)]
    pub(crate) fn start<'p>(
        &mut self,
        packet: &'p mut Packet,
        lane: usize,
        has_waited: bool,
    ) -> Option<Departure<'p>> {
        let start = self.free_at;
        if self.watch_from <= start && self.watch(packet, start, has_waited) {
            return None;
        }
        let known = &mut self.known[lane % KNOWN];
        if known.size != packet.size {
            let duration = self.rate.serialize(Bytes(u64::from(packet.size)));
            let way = u32::try_from(duration.min(self.head).0).unwrap_or(u32::MAX);
            *known = Serialisation { size: packet.size, way, duration };
        }
        let Serialisation { way, duration, .. } = *known;
        self.free_at = start + duration;
        self.sending = packet.size;
        packet.ingress = self.peer;
        self.stats.bytes += u64::from(packet.size);
        self.stats.packets += 1;
        self.stats.busy += duration;
        if packet.kind.is_data() {
            packet.hops += 1;
            packet.way = packet.way.saturating_add(way);
        }
        let arrival = start + duration.min(self.head) + self.latency;
        Some(Departure { channel: self.channel, to: self.to, arrival, packet })
    }

    /// Looks at what changes on the channel when a packet starts, and counts it where rates are estimated. Returns whether the packet is lost.
    #[cold]
    #[inline(never)]
    fn watch(&mut self, packet: &Packet, start: Time, has_waited: bool) -> bool {
        self.change_rate(start);
        self.stamp(packet, start);
        let stats = &self.stats;
        let rare = self.rare.as_deref_mut();
        let drain = rare.and_then(|rare| rare.drain.as_mut());
        let drain_from = drain.map_or(Time::MAX, |drain| drain.note(start, stats));
        let rates = self.changes.as_ref().and_then(|changes| changes.rates.last());
        let next_change = rates.map_or(Time::MAX, |&(from, _)| from).min(drain_from);
        let Some(faults) = &mut self.faults else {
            let sees_all = |rare: &Rare| rare.estimator.is_some() || rare.telemetry.is_some();
            let sees_all = self.rare.as_deref().is_some_and(sees_all);
            self.watch_from = if sees_all { Time::ZERO } else { next_change };
            self.estimate(packet, start);
            return false;
        };
        let duration = self.rate.serialize(Bytes(u64::from(packet.size)));
        let verdict = faults.judge(start, start + duration + self.latency, has_waited);
        match verdict {
            Start::Arrives => {
                self.estimate(packet, start);
                return false;
            }
            Start::IsCut => {}
            Start::LostOnTheWay => {
                // A cut ends the transmission.
                self.free_at = (start + duration).min(faults.next_cut());
                self.sending = packet.size;
                self.stats.bytes += u64::from(packet.size);
                self.stats.packets += 1;
                self.stats.busy += self.free_at - start;
                self.estimate(packet, start);
            }
            Start::Flush(cut) => {
                // It waited until the cut only.
                let too_long = u128::from(packet.size) * u128::from(start.0 - cut.0);
                self.stats.waiting = self.stats.waiting.wrapping_sub(too_long);
                faults.flush = Some(cut);
            }
        }
        self.losses().lost += 1;
        true
    }

    /// Writes on a data packet that starts how the port stands, where packets carry that.
    fn stamp(&self, packet: &Packet, start: Time) {
        if packet.kind.is_data()
            && let Some(Rare { telemetry: Some(telemetry), .. }) = self.rare.as_deref()
        {
            let Port { channel, queued, rate, .. } = *self;
            telemetry.stamp(packet, Stamp { channel, queued, sent: self.stats.bytes, at: start, rate });
        }
    }

    /// Counts a packet that starts, where rates are estimated.
    fn estimate(&mut self, packet: &Packet, start: Time) {
        if let Some(Rare { estimator: Some(estimator), .. }) = self.rare.as_deref_mut() {
            estimator.note(start, packet.size);
        }
    }

    /// Lets the time of a packet pass that a fault took as it started at `at`: a NIC that pulls its data goes on at its pace.
    #[cold]
    pub(crate) fn pass(&mut self, packet: &Packet, at: Time) {
        self.free_at = at + self.rate.serialize(Bytes(u64::from(packet.size)));
    }

    #[cold]
    pub(crate) fn change_rate(&mut self, now: Time) {
        let Some(changes) = &mut self.changes else { return };
        while let Some((_, rate)) = changes.rates.pop_if(|(from, _)| *from <= now) {
            (self.rate, self.head) = (rate, head_at(rate, changes.cut_through));
            self.known = [UNKNOWN; KNOWN];
        }
    }

    /// Flow control stops lanes, given as bits.
    pub(crate) fn close(&mut self, lanes: u32, now: Time, is_host: bool) {
        self.closed |= lanes;
        self.stats.pauses += u64::from(lanes.count_ones());
        self.note_hold(now, is_host);
    }

    /// Notes whether flow control holds data back from now on.
    pub(crate) fn note_hold(&mut self, now: Time, is_host: bool) {
        let is_held = self.closed & (if is_host { u32::MAX } else { self.occupied }) != 0;
        if is_held {
            self.held_since = self.held_since.min(now);
        } else if self.held_since != Time::MAX {
            self.stats.paused += now - self.held_since;
            self.held_since = Time::MAX;
        }
    }
}

/// Most of a packet's serialisation that must be over for it to count as arrived, at a rate.
fn head_at(rate: Rate, cut_through: Option<(Rate, Bytes)>) -> Time {
    match cut_through {
        Some((from, head)) if rate >= from => rate.serialize(head),
        _ => Time::MAX,
    }
}

const _: () = assert!(size_of::<Port>() <= 240, "a large network consists of ports");
