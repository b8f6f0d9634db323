//! No acknowledgement at all.

use netloom_units::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Facts, GivesUp, ReliabilityConfig, Takes};
/// No ACKs: what has been sent counts as delivered, and packets are taken in any order. Only for fabrics that lose nothing, and for
/// congestion controls that need no ACKs (`none`, `qcn`).
///
/// Everything else is refused, and so are faults that lose packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl ReliabilityConfig for None {
    #[inline(always)]
    fn facts(&self) -> Facts {
        Facts {
            has_acks: false,
            takes: Takes::Any,
            loss_detection: Option::None,
            gives_up: GivesUp::All,
            nack_congestion: false,
            urgent_repeats: false,
            reroute_after: Option::None,
            relies_on_trimming: false,
            sack_bytes: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }
}
