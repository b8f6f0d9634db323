//! ECMP: the hash of the header picks the port.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Choose, Facts, Kindred, Place, Question};
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

impl Kindred for Hash {
    type State = ByHash;

    fn state(&self, _: Place) -> ByHash {
        ByHash
    }

    fn facts(&self) -> Facts {
        Facts { works_at_nic: true, is_static: true, ..Facts::default() }
    }
}

impl Choose for ByHash {
    #[inline]
    fn pick(&mut self, question: Question<'_>, _: &mut impl View, _: &mut impl Rng) -> usize {
        question.home
    }

    fn words(&self, header: &Header, _: usize) -> Option<String> {
        Some(hash_in_words(header))
    }
}
