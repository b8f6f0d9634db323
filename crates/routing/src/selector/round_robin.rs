//! The next in turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Choose, Facts, Kindred, Place, Question};
use crate::header::View;
use rand::Rng;

/// One candidate after the other. At a switch, one turn for all packets it forwards. At a NIC, path labels in turn from a random
/// first one per flow, as Presto's shadow MACs (He et al., SIGCOMM'15): on a tree, switches read the label's digits as up
/// ports, so consecutive labels visit every path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobin {}

/// Whose turn it is at one switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn(u32);

impl Kindred for RoundRobin {
    type State = Turn;

    fn state(&self, _: Place) -> Turn {
        Turn::default()
    }

    fn facts(&self) -> Facts {
        Facts { works_at_nic: true, ..Facts::default() }
    }
}

impl Choose for Turn {
    #[inline]
    fn pick(&mut self, question: Question<'_>, _: &mut impl View, _: &mut impl Rng) -> usize {
        self.0 = self.0.wrapping_add(1);
        self.0 as usize % question.candidates.ports.len()
    }
}
