//! Once per packet.

use netloom_transport::Feedback;
use netloom_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;

/// One decision per packet. Packets of a flow overtake each other wherever paths differ in delay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Packet {
    /// Whether the selector also chooses the ports of ACKs and other control packets, which are hashed otherwise. In csg-htsim every packet
    /// is routed alike (`FatTreeSwitch::getNextHop`). At every switch, by the selectors `random`, `round-robin`, `least-loaded` and
    /// `drill`. Only what is decided on data counts as a decision.
    pub control: bool,
}

impl GranularityConfig for Packet {
    type Run = ();
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Any,
            ends: Ends::EveryPacket,
            remembers: false,
            acks: Acks::Unused,
            serialisation: false,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: self.control,
        }
    }

    fn open(&self) {}

    fn continues(&self, (): &mut (), _: Time, _: u32) -> bool {
        false
    }

    fn on_feedback(&self, (): &mut (), (): &mut (), _: &Feedback) -> Advice {
        Advice::Continue
    }
}
