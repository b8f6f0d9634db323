//! Once per flow.

use netloom_transport::Feedback;
use netloom_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Granularity;
use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;

/// One decision per flow, kept until the flow ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flow {}

impl Granularity {
    /// The granularity of hosts that stay out of a scheme.
    pub(crate) fn once_per_flow() -> Self {
        Granularity::Flow(Flow {})
    }
}

impl GranularityConfig for Flow {
    type Run = ();
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Any,
            ends: Ends::WithFlow,
            remembers: true,
            acks: Acks::Unused,
            serialisation: false,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) {}

    fn continues(&self, (): &mut (), _: Time, _: u32) -> bool {
        true
    }

    fn on_feedback(&self, (): &mut (), (): &mut (), _: &Feedback) -> Advice {
        Advice::Continue
    }

    fn is_settled(&self, (): &(), _: u32) -> bool {
        true
    }
}
