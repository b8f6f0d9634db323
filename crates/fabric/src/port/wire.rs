//! What a port is wired to, and what leaves it.

use netloom_units::{Rate, Time};

use crate::config::Ecn;
use crate::faults::ChannelFaults;
use crate::packet::{ByKind, Packet, PacketKind, Trail};

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
    /// A packet that arrives on a channel of lower rank than the one on which it leaves keeps its virtual channel; others take the next one.
    /// On a channel of [`LAST_RANK`] all take the first one. Ranks [of rings](ring_rank) are different: a packet that comes from another ring takes the
    /// first one, one that has just closed the ring the next one, and others keep theirs.
    pub rank: u8,
}

/// The rank of a channel to a host. Nothing waits behind a host, so one virtual channel does there, and packets of a flow that came by ways of
/// different lengths, and so in different virtual channels, stay in the order in which they came to their last switch.
pub const LAST_RANK: u8 = u8::MAX;

/// A bit of the ranks of channels on rings.
pub(crate) const RING: u8 = 1 << 7;

/// The rank of a channel on the rings along a dimension of a torus, from 1 to 32, where virtual channels change at the links that close rings.
pub fn ring_rank(dimension: u8, closes: bool) -> u8 {
    RING | dimension << 1 | u8::from(closes)
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
    /// Its data queue, from 0.
    pub queue: u8,
    /// Bytes.
    pub bytes: u32,
}

impl Credit {
    /// A credit as something that crosses a channel.
    pub fn to_packet(self) -> Packet {
        let Credit { port, queue, bytes } = self;
        let trail = Trail::START.by(queue);
        Packet {
            kind: PacketKind::Credit,
            ingress: port,
            trail,
            by_kind: ByKind::new(bytes),
            ..Packet::EMPTY
        }
    }

    /// Room of a packet that does not arrive, as something that crosses a channel: of the input buffer of this port and queue.
    pub fn to_missed(self) -> Packet {
        Packet { kind: PacketKind::Missed, ..self.to_packet() }
    }

    /// The credit in a packet of kind [`PacketKind::Credit`] or [`PacketKind::Missed`].
    pub fn from_packet(packet: &Packet) -> Credit {
        Credit {
            port: packet.ingress,
            queue: packet.trail.vc_or_first(),
            bytes: packet.number_of(&[PacketKind::Credit, PacketKind::Missed]),
        }
    }
}

/// Takes the packets and credits that leave ports.
pub trait Wire {
    /// A packet has left.
    fn depart(&mut self, departure: Departure<'_>);
    /// A credit goes back to node `to` beside channel `channel`.
    fn credit(&mut self, to: u32, channel: u32, arrival: Time, credit: Credit);
    /// Beside channel `channel` node `to` notices that a packet is missing, which would have filled this room.
    fn miss(&mut self, to: u32, channel: u32, arrival: Time, room: Credit);
    /// The link of channel `channel` is up again: node `to` gets credit for all the room that there is at this end.
    fn grant(&mut self, to: u32, channel: u32, arrival: Time, credit: Credit);
}

/// The queue by which a packet leaves a node: its port, and which of the port's queues, in one number, as it is handed on from one to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortQueue(u32);

impl PortQueue {
    /// A queue of a port.
    #[inline(always)]
    pub fn new(port: u16, queue: u16) -> Self {
        PortQueue(u32::from(queue) << u16::BITS | u32::from(port))
    }

    /// Its port.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    pub fn port(self) -> u16 {
        self.0 as u16
    }

    /// Which of the port's queues.
    #[inline(always)]
    pub fn queue(self) -> u16 {
        (self.0 >> u16::BITS) as u16
    }

    /// The number, which is not one of the greatest: no port has this many queues.
    #[inline(always)]
    pub fn to_bits(self) -> u32 {
        self.0
    }

    /// The queue of a [number](Self::to_bits).
    #[inline(always)]
    pub fn from_bits(bits: u32) -> Self {
        PortQueue(bits)
    }
}

/// What a port did with a packet. As large as the number of a queue, so that either one or the other is handed on in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Fate {
    /// It waits, or is being sent.
    Queued,
    /// There was no room for it.
    Dropped,
    /// There was no room for a header. The packet is now one that goes back to its sender, and still has to be sent on its way.
    Returned,
}
