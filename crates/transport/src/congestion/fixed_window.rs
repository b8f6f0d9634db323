//! A window that never changes.

use netloom_units::{Bytes, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestionConfig, Facts, Limit, Marks, SlowedBy, Start, Still, window};
use crate::gate::Gate;
use crate::sender::PathFacts;
/// A fixed amount of unacknowledged bytes (on the wire). Give it in bandwidth-delay products of the flow's idle path, or in bytes. The
/// Flowcut evaluation starts with 1.2 BDP. The window holds the whole packets that fit. A window of at least one product is rounded up to
/// as many packets as one product takes, so that rounding alone slows no flow down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FixedWindow {
    /// Window in bandwidth-delay products: NIC rate × idle round-trip time of a full packet and its ACK.
    pub bdp: f64,
    /// Window in bytes; takes the place of `bdp`.
    pub bytes: Option<Bytes>,
}

impl Default for FixedWindow {
    fn default() -> Self {
        FixedWindow { bdp: 1.2, bytes: None }
    }
}

impl FixedWindow {
    /// The window for a path; never less than one packet, or nothing could be sent.
    fn window(&self, bdp: Bytes, packet: Bytes) -> Bytes {
        self.bytes.map_or_else(|| window::products(self.bdp, bdp, packet), |bytes| bytes.max(packet))
    }
}

impl CongestionConfig for FixedWindow {
    type State = Still<FixedWindow>;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "a fixed window",
            limit: Limit::Window,
            grows: false,
            needs_acks: true,
            marks: Marks::Optional,
            slowed_by: SlowedBy::Nothing,
            coupled: false,
            cnp_interval: None,
            telemetry: None,
            pulls: None,
            reaction_point: None,
            needs_trimming: None,
            max_rate: None,
            target_delay: None,
            acts_on: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::positive("bdp", self.bdp)?;
        Invalid::at_least("bytes", self.bytes.unwrap_or(Bytes(1)), Bytes(1))
    }

    fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
        let field = if self.bytes.is_some() { "bytes" } else { "bdp" };
        Some((field, window::whole(self.window(path.bdp(), packet), packet)))
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> Still<FixedWindow> {
        gate.set_window(self.window(start.path.bdp(), start.packet).0);
        Still::new()
    }
}
