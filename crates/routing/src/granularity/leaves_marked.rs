//! A flow leaves its path after some marked ACKs in a row. The tests add it as an example of a granularity that learns from feedback.

use netloom_transport::{Cause, Feedback};
use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;

/// A new path after `marks` marked ACKs in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeavesMarked {
    /// How many.
    pub marks: u32,
}

impl Default for LeavesMarked {
    fn default() -> Self {
        LeavesMarked { marks: 3 }
    }
}

impl GranularityConfig for LeavesMarked {
    /// Marked ACKs in a row.
    type Run = u32;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::InMidFlow,
            remembers: true,
            acks: Acks::Marks,
            serialisation: false,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> u32 {
        0
    }

    fn continues(&self, marked: &mut u32, _: Time, _: u32) -> bool {
        let stays = *marked < self.marks;
        *marked = if stays { *marked } else { 0 };
        stays
    }

    fn on_feedback(&self, marked: &mut u32, (): &mut (), feedback: &Feedback) -> Advice {
        if feedback.cause == Cause::Ack {
            *marked = if feedback.marked { *marked + 1 } else { 0 };
        }
        Advice::Continue
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("marks", self.marks, 1)
    }
}
