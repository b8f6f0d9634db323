//! Go-back-N: the receiver takes packets in order only.

use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Facts, GivesUp, ReliabilityConfig, Takes};
/// Go-back-N as in RoCEv2 NICs: an out-of-order packet is discarded and answered with a NACK, upon which the sender sends everything again
/// from the missing packet on. Retransmitted packets may be out of order, too, so a NACK is repeated while the same packet is missing.
///
/// Losses are looked for in every fabric, because the receiver discards early packets. `netloom run` warns if packets of a flow take
/// several paths and no reorder buffer is in front.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GoBackN {
    /// Minimum time between two NACKs that request the same packet: the first packet that arrives out of order after this time causes another one. 4
    /// us, as in ConWeave's public simulator (presets `roce`, `left` and `roce-conweave`); HPCC's (preset `hpcc`) has 500 us. If it is as long as the
    /// run, there is one NACK per missing packet, and a sender whose repeated packet is overtaken waits for its timeout. A sender always does so if
    /// the last packets of a flow have been discarded, because nothing arrives after them.
    pub nack_interval: Time,
    /// Whether a NACK is a notification of congestion as well, as a marked packet causes one, within `cnp_interval` if there is one. For DCQCN, in
    /// ConWeave's public simulator (preset `roce-conweave`).
    pub nack_congestion: bool,
}

impl Default for GoBackN {
    fn default() -> Self {
        GoBackN { nack_interval: Time::from_us(4), nack_congestion: false }
    }
}

impl ReliabilityConfig for GoBackN {
    #[inline(always)]
    fn facts(&self) -> Facts {
        Facts {
            has_acks: true,
            takes: Takes::InOrder { nack_interval: self.nack_interval },
            loss_detection: None,
            gives_up: GivesUp::All,
            nack_congestion: self.nack_congestion,
            urgent_repeats: false,
            reroute_after: None,
            relies_on_trimming: false,
            sack_bytes: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("nack_interval", self.nack_interval, Time(1))
    }
}
