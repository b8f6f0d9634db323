//! The port after the one that the flow's number names.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Choose, Kindred, Place, Question};
use crate::header::View;

/// The candidate `distance` places behind the one that the flow's number names.
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

/// It at work at a switch. One that remembered something would keep it here.
#[derive(Clone, Debug)]
pub(crate) struct State {
    distance: u32,
}

impl Kindred for Neighbour {
    type State = State;

    fn state(&self, _: Place) -> State {
        State { distance: self.distance }
    }
}

impl Choose for State {
    fn pick(&mut self, question: Question<'_>, _: &mut impl View, _: &mut impl Rng) -> usize {
        (question.header.flow + self.distance) as usize % question.candidates.ports.len()
    }
}
