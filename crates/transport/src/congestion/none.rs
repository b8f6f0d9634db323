//! No limit.

use netloom_units::{Bytes, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestionConfig, Facts, Limit, Marks, SlowedBy, Start, Still};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// No window at all: a flow sends at its NIC's rate until it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl CongestionConfig for None {
    type State = Still<None>;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "a flow without congestion control",
            limit: Limit::None,
            grows: false,
            needs_acks: false,
            marks: Marks::Optional,
            slowed_by: SlowedBy::Nothing,
            coupled: false,
            cnp_interval: Option::None,
            telemetry: Option::None,
            pulls: Option::None,
            reaction_point: Option::None,
            needs_trimming: Option::None,
            max_rate: Option::None,
            target_delay: Option::None,
            acts_on: Option::None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn first_window(&self, _: Bytes, _: PathFacts) -> Option<(&'static str, Bytes)> {
        Option::None
    }

    fn begin(&self, _: Start, _: &mut Gate) -> Still<None> {
        Still::new()
    }
}
