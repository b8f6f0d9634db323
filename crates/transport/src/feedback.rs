//! What a sender learns, passed once to all that act on it: congestion control, and what chooses the flow's path.

use netloom_units::{Bytes, Rate, Time};

/// An ACK or NACK as it reaches the sender.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// The packet it answers.
    pub seq: u32,
    /// Everything below is acknowledged. NACK: the number that is asked for.
    pub cumulative: u32,
    /// When the packet it answers was sent.
    pub sent: Time,
    /// The serialisation time of that packet on its path: see `Packet::serialisation` in `netloom_fabric`.
    pub serialisation: Time,
    /// Hops of that packet.
    pub hops: u32,
    /// Whether that packet was marked.
    pub marked: bool,
    /// What routing had written on that packet.
    pub tag: u32,
    /// Whether that packet was trimmed by the switch before its receiver.
    pub at_last_hop: bool,
}

/// Why a sender gives feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An ACK arrived.
    Ack,
    /// A receiver asked for packets again that it had not taken.
    Nack,
    /// ACKs for later packets show that packets were lost.
    Loss,
    /// The retransmission timer expired.
    Timeout,
    /// The receiver's notifications of congestion cut the rate.
    Notification,
    /// A packet reached its receiver without its payload.
    Trim,
    /// A packet lost its payload, and its header came back.
    Return,
    /// A packet met a cut link, and its header came back.
    Unreachable,
}

/// Something that a sender learnt, and where its flow stands after it.
///
/// `rtt`, `serialisation`, `hops`, `marked` and `tag` are those of packet `seq`; after a timeout or a notification they say nothing, because no
/// packet is acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// When.
    pub now: Time,
    /// Why.
    pub cause: Cause,
    /// The packet that it is about: the one acknowledged or asked for; after a loss or a timeout the oldest that is to be sent again;
    /// after a notification the oldest that is not acknowledged.
    pub seq: u32,
    /// From the moment when that packet was last sent until now.
    pub rtt: Time,
    /// Whether that was measured. If not it is the smoothed round-trip time: an ACK for several packets may not say when which of them left.
    pub is_sampled: bool,
    /// The serialisation time of that packet on its path: see `Packet::serialisation` in `netloom_fabric`.
    pub serialisation: Time,
    /// Hops of that packet.
    pub hops: u32,
    /// Whether that packet was marked.
    pub marked: bool,
    /// What routing had written on that packet.
    pub tag: u32,
    /// Whether that packet was trimmed by the switch before its receiver.
    pub at_last_hop: bool,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// Their bytes on the wire, each packet counted as a full one.
    pub bytes: u64,
    /// Bytes on the wire of a full packet.
    pub packet: Bytes,
    /// Bytes on the wire that the congestion control let be in flight before this; `u64::MAX`: as many as one likes.
    pub window_before: u64,
    /// The same after this.
    pub window: u64,
    /// Packets of the flow still in flight.
    pub in_flight: u32,
    /// The oldest packet that is not acknowledged.
    pub oldest: u32,
    /// The next packet that was never sent.
    pub next: u32,
    /// Bytes of the flow never sent.
    pub remaining: Bytes,
    /// Whether the congestion control has cut its window or rate because of this.
    pub window_cut: bool,
    /// Whether the receiver asks for another path.
    pub reroute: bool,
}

impl Feedback {
    /// That of which nothing but the cause and the time is known.
    #[inline]
    pub fn of(cause: Cause, now: Time) -> Self {
        Feedback {
            now,
            cause,
            seq: 0,
            rtt: Time::ZERO,
            is_sampled: true,
            serialisation: Time::ZERO,
            hops: 0,
            marked: false,
            tag: 0,
            at_last_hop: false,
            packets: 0,
            bytes: 0,
            packet: Bytes(0),
            window_before: u64::MAX,
            window: u64::MAX,
            in_flight: 0,
            oldest: 0,
            next: 0,
            remaining: Bytes(0),
            window_cut: false,
            reroute: false,
        }
    }

    /// When the packet that it is about was sent.
    #[inline]
    pub fn sent(&self) -> Time {
        self.now.saturating_sub(self.rtt)
    }
}

/// What a link of a packet's path said when the packet left for it (in-band telemetry).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Which link.
    pub channel: u32,
    /// Bytes that waited for it.
    pub queued: u64,
    /// Bytes that it had carried.
    pub sent: u64,
    /// When.
    pub at: Time,
    /// Its rate.
    pub rate: Rate,
}

/// A packet is acknowledged, and nothing else is known: for tests.
#[cfg(test)]
pub(crate) fn ack_of(seq: u32) -> Feedback {
    Feedback { seq, packets: 1, ..Feedback::of(Cause::Ack, Time::ZERO) }
}
