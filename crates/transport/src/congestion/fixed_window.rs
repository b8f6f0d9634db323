//! A window that never changes.

use netloom_units::{Bytes, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fixed amount of unacknowledged bytes (on the wire). Give it in bandwidth-delay products of the flow's idle path, or in bytes. The
/// Flowcut evaluation starts with 1.2 BDP. As many packets are under way as fit whole; but what is at least one product holds as many as that takes, so that
/// rounding alone slows no flow down.
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
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        Invalid::positive("bdp", self.bdp)?;
        Invalid::at_least("bytes", self.bytes.unwrap_or(Bytes(1)), Bytes(1))
    }

    /// The window for a path; never less than one packet, or nothing could be sent.
    pub(crate) fn bytes(&self, bdp: Bytes, packet: Bytes) -> Bytes {
        self.bytes.map_or_else(|| super::products(self.bdp, bdp, packet), |bytes| bytes.max(packet))
    }
}
