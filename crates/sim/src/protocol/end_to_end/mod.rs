//! What senders and receivers of a flow send each other: data, and what answers them. How they do is the transport's, and in `host/`.

pub(crate) mod host;

use netloom_fabric::PacketKind;
use netloom_units::Bytes;

use crate::protocol::declaration::{NoTimer, Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::packets::{ACK, CNP, NACK, UNREACHABLE_ACK, UNREACHABLE_CNP, UNREACHABLE_NACK};
use crate::protocol::state::ProtocolState;

/// Data and their answers.
pub(crate) struct EndToEnd;

impl Protocol for EndToEnd {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::data(PacketKind::Data, "data", Origin::Host)
            .turning_into(PacketKind::Unreachable)
            .concerning_arrivals(),
        PacketFacts::control(ACK, "ack", Origin::Host).turning_into(UNREACHABLE_ACK),
        PacketFacts::control(NACK, "nack", Origin::Host).turning_into(UNREACHABLE_NACK),
        PacketFacts::control(CNP, "cnp", Origin::Host).turning_into(UNREACHABLE_CNP),
    ];

    type Timer = NoTimer;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        let options = &parts.transport.options;
        // The smallest data packet has one byte, or none if it is a SYN.
        let least = Bytes(options.header.0 + u64::from(!options.handshake));
        [least, parts.transport.packet_size(), options.ack_size].map(WireSize::queued).to_vec()
    }
}

impl ProtocolState for EndToEnd {
    type AtHost = ();
    type AtSwitch = ();
}
