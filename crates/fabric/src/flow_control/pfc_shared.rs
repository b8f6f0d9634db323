//! Priority-based flow control with a threshold that moves with the switch's free memory.

use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_buffer;
use crate::queue::check_packet_size;

/// Priority-based flow control (IEEE 802.1Qbb) in a switch whose ports share one buffer, as in the ns-3 models of RDMA switches. Each port
/// and queue has a reserve; beyond it, it may use up to `alpha` times the free memory of the shared pool; beyond that, it pauses the
/// upstream port and uses its headroom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PfcShared {
    /// Memory of one switch.
    pub buffer: Bytes,
    /// Bytes of every port and data queue that do not count as shared.
    pub reserve: Bytes,
    /// Threshold of a port and data queue as a multiple of the free shared memory.
    pub alpha: f64,
    /// Headroom of every port and data queue; absent: computed such that nothing is ever lost.
    pub headroom: Option<Bytes>,
    /// A paused queue is resumed when it uses this much less than its threshold; absent: two of the largest packets.
    pub resume: Option<Bytes>,
    /// Size of a PAUSE frame on the wire.
    pub pause_size: Bytes,
    /// Time from a PAUSE frame's arrival to its effect.
    pub response: Time,
    /// Virtual channels (priorities) per class, as for `pfc`.
    pub vcs: Option<u8>,
    /// Run even if the routes' channel dependencies form a cycle.
    pub allow_deadlock: bool,
}

impl Default for PfcShared {
    fn default() -> Self {
        PfcShared {
            buffer: Bytes(9_000_000),
            reserve: Bytes(4096),
            alpha: 1.0 / 16.0,
            headroom: None,
            resume: None,
            pause_size: Bytes(64),
            response: Time::ZERO,
            vcs: None,
            allow_deadlock: false,
        }
    }
}

impl PfcShared {
    pub(crate) fn check(&self, packet: Bytes) -> Result<(), Invalid> {
        check_packet_size("pause_size", self.pause_size)?;
        check_buffer(self.buffer, packet)?;
        // 2⁻²⁰ steps, so that thresholds are integers.
        let is_possible = self.alpha >= 1.0 / f64::from(1 << 20) && self.alpha <= 64.0;
        Invalid::unless(is_possible, "alpha", "a number from 1e-6 to 64", self.alpha)
    }
}
