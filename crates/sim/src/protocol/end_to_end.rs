//! What senders and receivers of a flow send each other: data, and what answers them. How they do is the transport's, and in `host/`.

use netloom_fabric::PacketKind;
use netloom_units::Bytes;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};

/// Data and their answers.
pub(crate) struct EndToEnd;

impl Protocol for EndToEnd {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::data(PacketKind::Data, "data", Origin::Host),
        PacketFacts::control(PacketKind::Ack, "ack", Origin::Host),
        PacketFacts::control(PacketKind::Nack, "nack", Origin::Host),
        PacketFacts::control(PacketKind::Cnp, "cnp", Origin::Host),
    ];

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        let options = &parts.transport.options;
        // The smallest data packet has one byte, or none if it is a SYN.
        let least = Bytes(options.header.0 + u64::from(!options.handshake));
        [least, parts.transport.packet_size(), options.ack_size].map(WireSize::queued).to_vec()
    }
}
