//! Priority-based flow control with fixed thresholds.

use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_buffer;
use crate::queue::check_packet_size;

/// Priority-based flow control (IEEE 802.1Qbb) with an input buffer per port and data queue and fixed thresholds. The upstream port is
/// paused when a queue exceeds the buffer less its headroom, and resumed `resume` bytes below that. A pause lasts until a frame ends it;
/// pause timers are not modelled. Defaults: 100 KB per port, as the comparison of CEE-based adaptive routing (Crisan, Gusat, Minkenberg),
/// which leaves the thresholds open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pfc {
    /// Input buffer of one port and data queue.
    pub buffer: Bytes,
    /// Part of the buffer reserved for what arrives after the PAUSE has been requested. Absent: computed from rate, cable length, packet size
    /// and response time such that nothing is ever lost. A smaller one can lose packets, which ends the run with an error.
    pub headroom: Option<Bytes>,
    /// How far below the pause threshold a queue is resumed; absent: two of the largest packets.
    pub resume: Option<Bytes>,
    /// Size of a PAUSE frame on the wire.
    pub pause_size: Bytes,
    /// Time from a PAUSE frame's arrival to its effect; the standard allows 60 quanta of 512 bits (3.07 us at 10 Gb/s).
    pub response: Time,
    /// Virtual channels (priorities) per class: a packet takes the next one on each hop between switches, on a Dragonfly on each hop but those from a
    /// local to a global link, under `dimension-order` behind each link that closes a ring; the last one serves all further hops. Absent: as many as the routes need to be free of deadlocks; on trees 1.
    pub vcs: Option<u8>,
    /// Run even if the routes' channel dependencies form a cycle.
    pub allow_deadlock: bool,
}

impl Default for Pfc {
    fn default() -> Self {
        Pfc {
            buffer: Bytes(100_000),
            headroom: None,
            resume: None,
            pause_size: Bytes(64),
            response: Time::ZERO,
            vcs: None,
            allow_deadlock: false,
        }
    }
}

impl Pfc {
    pub(crate) fn check(&self, packet: Bytes) -> Result<(), Invalid> {
        check_packet_size("pause_size", self.pause_size)?;
        check_buffer(self.buffer, packet)?;
        let headroom = self.headroom.unwrap_or(Bytes(0));
        let expected = format!("at most the buffer of {}", self.buffer);
        Invalid::unless(headroom <= self.buffer, "headroom", expected, headroom)
    }
}
