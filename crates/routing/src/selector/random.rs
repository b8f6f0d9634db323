//! A uniform draw.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{
    Choice, Digits, Facts, NicTags, PathSet, Places, PortSelector, Query, SelectorConfig, Signals,
    SwitchContext,
};
use crate::header::View;

/// Uniformly random and congestion-oblivious: random packet spraying (Dixit et al., INFOCOM'13), LetFlow (Vanini et al., NSDI'17)
/// and, at a NIC, Flowcut's new entropy value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Random {}

/// A uniform number below `count`.
///
/// The multiply-shift map is off by at most 2⁻³² · count, which no simulation can see.
#[inline]
pub(crate) fn below(count: usize, random: &mut impl Rng) -> usize {
    ((u64::from(random.next_u32()) * count as u64) >> 32) as usize
}

/// A draw needs no memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw;

impl SelectorConfig for Random {
    type State = Draw;

    fn state(&self, _: SwitchContext) -> Draw {
        Draw
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::NicOrSwitches(NicTags::Entropy),
            choice: Choice::Uniform,
            decides_control: true,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::Minimal,
        }
    }
}

impl PortSelector for Draw {
    #[inline]
    fn pick(&mut self, query: Query<'_>, _: &mut impl View, random: &mut impl Rng) -> usize {
        below(query.candidates.ports.len(), random)
    }
}
