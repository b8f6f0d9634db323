//! A bounded reorder buffer in the NIC.

use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ReorderConfig;
/// A reorder buffer in the NIC, for all flows that the host receives: packets that arrive early wait there for those before them. A packet
/// that finds no room goes to the transport as it arrives, as without a buffer: go-back-N refuses it, selective repeat takes it. So does a
/// packet that has waited for `timeout`. LEFT sprays packets over such NICs (as Flowcut Switching cites it); its parameters are not
/// published.
///
/// ACKs are sent when packets are delivered to the transport. `totals.reordering` in the summary says how much was held. The preset `left` is `roce`
/// with such a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Buffer {
    /// Bytes of packets, headers included.
    pub size: Bytes,
    /// How long a packet waits for one before it.
    pub timeout: Time,
}

impl Default for Buffer {
    /// Of no source.
    fn default() -> Self {
        Buffer { size: Bytes(1 << 20), timeout: Time::from_us(200) }
    }
}

impl ReorderConfig for Buffer {
    const HOLDS: bool = true;
    const HAS_CELLS: bool = false;

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("size", self.size, Bytes(1))?;
        Invalid::unless(self.timeout > Time::ZERO, "timeout", "more than 0", self.timeout)
    }

    fn room(&self) -> u64 {
        self.size.0
    }

    fn timeout(&self, _: Option<Time>) -> Option<Time> {
        Some(self.timeout)
    }

    fn learn(&self, _: Option<Time>, _: Time) -> Option<Time> {
        None
    }
}
