//! Protocols: what has packets of its own.

pub(crate) mod conga;
pub(crate) mod conweave;
pub(crate) mod flowcut;
pub(crate) mod pulls;
pub(crate) mod qcn;
pub(crate) mod reports;
pub(crate) mod telemetry;
pub(crate) mod unreachable;

use netloom_routing::Routing;
use netloom_units::Bytes;

/// Sizes of what switches tell each other and sources by themselves, whatever the fabric does.
pub(crate) fn signals(routing: &Routing) -> impl Iterator<Item = Bytes> {
    let flowcut = routing.counted_flowcuts().map(|flowcut| [flowcut.ack_size, flowcut.frame_size]);
    flowcut.into_iter().flatten().chain(routing.weaves().then_some(conweave::switch::WORD))
}
