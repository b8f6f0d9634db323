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
}

/// A traffic class; lower is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// ACKs and other signals.
    Control = 0,
    /// Payload.
    Data = 1,
}

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
    /// What it is.
    pub kind: PacketKind,
    /// Data: channels crossed so far. ACK: hops of the packet it acknowledges.
    pub hops: u8,
    /// Data: ECN congestion experienced. ACK: echoed.
    pub marked: bool,
    /// Data: the last packet of its flow.
    pub last: bool,
}

impl Packet {
    /// The class in which it travels.
    #[inline]
    pub fn class(&self) -> Class {
        if self.kind == PacketKind::Data { Class::Data } else { Class::Control }
    }
}

const _: () = assert!(size_of::<Packet>() == 48);
