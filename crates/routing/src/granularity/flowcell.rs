//! Flowcells: fixed amounts of a flow's bytes.

use netloom_transport::Feedback;
use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Granularity;
use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;
use crate::scheme::{Placement, Routing};
use crate::selector::NicTags;

/// A new decision every `size` bytes of a flow. Presto, He et al., SIGCOMM'15, §3.1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flowcell {
    /// Bytes of payload that stay on one path.
    pub size: Bytes,
}

impl Default for Flowcell {
    /// 64 KiB, the largest TSO segment, as in the paper.
    fn default() -> Self {
        Flowcell { size: Bytes(64 << 10) }
    }
}

impl Routing {
    /// Whether NICs number the flowcells of a flow, as they give each the label of the next path.
    pub fn numbers_flowcells(&self) -> bool {
        let has_labels = self.selector.facts().nic_tags() == Some(NicTags::Labels);
        self.placement == Placement::Nic && has_labels && matches!(self.granularity, Granularity::Flowcell(_))
    }
}

/// The payload that the present flowcell holds.
impl GranularityConfig for Flowcell {
    type Run = u64;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Any,
            ends: Ends::AfterBytes,
            remembers: true,
            acks: Acks::Unused,
            serialisation: false,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> u64 {
        0
    }

    #[inline]
    fn continues(&self, held: &mut u64, _: Time, payload: u32) -> bool {
        let payload = u64::from(payload);
        let fits = *held + payload <= self.size.0 || *held == 0;
        *held = if fits { *held + payload } else { payload };
        fits
    }

    fn on_feedback(&self, _: &mut u64, (): &mut (), _: &Feedback) -> Advice {
        Advice::Continue
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("size", self.size.0, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_packets_of_4_kib_fill_a_cell() {
        let cell = Flowcell::default();
        let mut run = cell.open();
        let starts: Vec<u32> = (0..40).filter(|_| !cell.continues(&mut run, Time(0), 4096)).collect();
        assert_eq!(starts, [16, 32]);
    }
}
