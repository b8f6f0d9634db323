//! Switches notify sources that a link is cut: what is left of a packet goes back.

pub(crate) mod host;
pub(crate) mod notified_cuts;
pub(crate) mod switch;

use netloom_fabric::PacketKind;

use crate::protocol::declaration::{NoTimer, Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::packets::{
    UNREACHABLE_ACK, UNREACHABLE_CNP, UNREACHABLE_NACK, UNREACHABLE_PULL, UNREACHABLE_UET_ACK,
};
use crate::protocol::state::{Part, ProtocolState};
use crate::protocol::unreachable::notified_cuts::NotifiedCuts;
use crate::world::World;

/// What has turned back at a cut link.
pub(crate) struct Unreachable;

impl Protocol for Unreachable {
    const PACKETS: &'static [PacketFacts] = &[
        PacketFacts::data(PacketKind::Unreachable, "unreachable", Origin::Switch),
        PacketFacts::control(UNREACHABLE_ACK, "unreachable-ack", Origin::Switch).concerning_arrivals(),
        PacketFacts::control(UNREACHABLE_NACK, "unreachable-nack", Origin::Switch).concerning_arrivals(),
        PacketFacts::control(UNREACHABLE_PULL, "unreachable-pull", Origin::Switch).concerning_arrivals(),
        PacketFacts::control(UNREACHABLE_CNP, "unreachable-cnp", Origin::Switch).concerning_arrivals(),
        PacketFacts::control(UNREACHABLE_UET_ACK, "unreachable-uet-ack", Origin::Switch)
            .concerning_arrivals()
            .saying_more(),
    ];

    type Timer = NoTimer;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        vec![WireSize::queued(parts.transport.options.ack_size)]
    }
}

impl ProtocolState for Unreachable {
    type AtHost = ();
    type AtSwitch = NotifiedCuts;

    fn takes_part(_: &World, _: bool, cuts: &NotifiedCuts) -> Option<Part> {
        (!cuts.is_empty()).then_some(Part::Queues)
    }
}
