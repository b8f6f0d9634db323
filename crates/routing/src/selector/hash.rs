//! ECMP: the hash of the header picks the port.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{
    Choice, Digits, Facts, NicTags, PathSet, Places, PortSelector, Query, SelectorConfig, Signals,
    SwitchContext,
};
use crate::hash::hash_in_words;
use crate::header::{Header, View};
use rand::Rng;

/// Hash of (source, destination, flow, entropy value): every packet of a flow takes the same path. Equal-cost multi-path,
/// RFC 2992; the function and its salt are the fields `hash` and `salt` of the scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hash {}

/// The hash says the port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByHash;

impl SelectorConfig for Hash {
    type State = ByHash;

    fn state(&self, _: SwitchContext) -> ByHash {
        ByHash
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::NicOrSwitches(NicTags::Constant),
            choice: Choice::Hash,
            decides_control: false,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::Minimal,
        }
    }
}

impl PortSelector for ByHash {
    #[inline]
    fn pick(&mut self, query: Query<'_>, _: &mut impl View, _: &mut impl Rng) -> usize {
        query.home
    }

    fn words(&self, header: &Header, _: usize) -> Option<String> {
        Some(hash_in_words(header))
    }
}
