//! QCN (IEEE 802.1Qau): switches notify sources of congestion, and these limit their rate by destination.

pub(crate) mod host;
pub(crate) mod limiter;
pub(crate) mod points;
pub(crate) mod switch;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize};
use crate::protocol::packets::CNM;
use crate::protocol::qcn::limiter::{LimiterDue, Limiters};
use crate::protocol::qcn::points::CongestionPoints;
use crate::protocol::state::{Part, ProtocolState};
use crate::world::World;

/// Congestion notification messages.
pub(crate) struct Qcn;

impl Protocol for Qcn {
    const PACKETS: &'static [PacketFacts] = &[PacketFacts::control(CNM, "cnm", Origin::Switch)];

    type Timer = LimiterDue;

    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
        parts.fabric.options.qcn.iter().map(|qcn| WireSize::queued(qcn.cnm_size)).collect()
    }
}

impl ProtocolState for Qcn {
    type AtHost = Limiters;
    type AtSwitch = CongestionPoints;

    fn takes_part(world: &World, _: bool, _: &CongestionPoints) -> Option<Part> {
        world.fabric.options.qcn.is_some().then_some(Part::Queues)
    }
}
