//! The port after the one that the flow's number selects.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{
    Choice, Digits, Facts, PathSet, Places, PortSelector, Query, SelectorConfig, Signals, SwitchContext,
};
use crate::header::View;

/// The candidate `distance` places after the one that the flow's number selects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Neighbour {
    /// How many places.
    pub distance: u32,
}

impl Default for Neighbour {
    fn default() -> Self {
        Neighbour { distance: 1 }
    }
}

/// Its state at a switch. A selector with memory would keep it here.
#[derive(Clone, Debug)]
pub(crate) struct State {
    distance: u32,
}

impl SelectorConfig for Neighbour {
    type State = State;

    fn state(&self, _: SwitchContext) -> State {
        State { distance: self.distance }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::Switches,
            choice: Choice::Adaptive,
            decides_control: false,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::Minimal,
        }
    }
}

impl PortSelector for State {
    fn pick(&mut self, query: Query<'_>, _: &mut impl View, _: &mut impl Rng) -> usize {
        (query.header.flow + self.distance) as usize % query.candidates.ports.len()
    }
}
