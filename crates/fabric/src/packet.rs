//! What crosses a channel.

use netloom_units::Time;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketKind {
    /// Payload of a flow.
    Data,
    /// Acknowledges a data packet, and everything before [`Packet::aux`].
    Ack,
    /// Go-back-N: asks for everything from [`Packet::aux`] on.
    Nack,
    /// Congestion notification message (IEEE 802.1Qau): from a congestion point to the source of a sampled packet. Its
    /// [`Packet::src`] is the congested destination, [`Packet::aux`] the quantised feedback (1 to 63).
    Cnm,
    /// Priority-based flow control (IEEE 802.1Qbb): [`Packet::aux`] has a bit per data lane, set for those that must pause. Crosses one channel.
    Pause,
    /// Room in an input buffer, see [`Credit`](crate::Credit). Crosses one channel, beside the data.
    Credit,
}

/// No port: the packet was made at this node, or its input buffer does not count it.
pub const NO_INGRESS: u16 = u16::MAX;

/// A packet that has not used a virtual channel yet.
pub const FRESH: u8 = u8::MAX;

/// A packet, 48 bytes of plain data: with its arrival time and address it fills one cache line.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Data: when it left its NIC. ACK: that time, echoed.
    pub sent: Time,
    /// Host that sent this packet.
    pub src: u32,
    /// Host that this packet goes to.
    pub dst: u32,
    /// Number of the flow at the data's source.
    pub flow: u32,
    /// Where the data's source keeps the flow's state; echoed by ACKs.
    pub slot: u32,
    /// Data: packet number within the flow. ACK: that of the packet it acknowledges.
    pub seq: u32,
    /// Data: fingerprint of the ports taken so far. ACK and NACK: the next packet number expected.
    pub aux: u32,
    /// Entropy value.
    pub entropy: u32,
    /// Bytes on the wire.
    pub size: u16,
    /// Data: payload bytes. ACK: size on the wire of the packet it acknowledges.
    pub payload: u16,
    /// Input port by which it came, as the sender's port fills in; [`NO_INGRESS`] where it began.
    pub ingress: u16,
    /// What it is.
    pub kind: PacketKind,
    /// Data: channels crossed so far. ACK: hops of the packet it acknowledges.
    pub hops: u8,
    /// Data: ECN congestion experienced. ACK: echoed.
    pub marked: bool,
    /// Data: the last packet of its flow.
    pub last: bool,
    /// Traffic class of its flow.
    pub class: u8,
    /// Virtual channel by which it came; [`FRESH`] where it began.
    pub vc: u8,
}

impl Packet {
    /// Nobody's packet, of no size: the rest of a struct literal.
    pub const EMPTY: Packet = Packet {
        sent: Time::ZERO,
        src: 0,
        dst: 0,
        flow: 0,
        slot: 0,
        seq: 0,
        aux: 0,
        entropy: 0,
        size: 0,
        payload: 0,
        ingress: NO_INGRESS,
        kind: PacketKind::Data,
        hops: 0,
        marked: false,
        last: false,
        class: 0,
        vc: FRESH,
    };

    /// Whether it concerns the two ends of one link only: a PAUSE frame or a credit.
    #[inline(always)]
    pub fn is_of_the_link(&self) -> bool {
        self.kind as u8 >= PacketKind::Pause as u8
    }

    /// Whether it carries payload, rather than a signal.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.kind == PacketKind::Data
    }
}

const _: () = assert!(size_of::<Packet>() == 48);
