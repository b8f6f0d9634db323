//! Minimal paths only.

use netloom_topology::RouterGraph;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SchemeError, check_layers};
use crate::link_set::LinkSet;
use crate::tables::ForwardingTables;

/// Minimal paths over all links. One layer is single-path minimal routing; more layers break ties independently,
/// like ECMP with that many hash values (FatPaths sec. V-B with rho = 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Minimal {
    /// Number of layers, each with its own random tie-breaks.
    pub layers: u32,
}

impl Default for Minimal {
    fn default() -> Self {
        Minimal { layers: 1 }
    }
}

impl Minimal {
    pub(super) fn build(&self, graph: &RouterGraph, seed: u64) -> Result<ForwardingTables, SchemeError> {
        check_layers(graph, self.layers)?;
        let layers = vec![LinkSet::full(graph); self.layers as usize];
        Ok(ForwardingTables::minimal(graph, layers, seed))
    }
}
