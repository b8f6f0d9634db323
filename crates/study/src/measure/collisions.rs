//! Flows that share a router pair or a link.

use netloom_paths::collisions::{CollisionHistogram, flow_conflicts};
use netloom_paths::pattern::{Pattern, Permutation, Placement};
use netloom_paths::{ForwardingTables, LinkSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Quantities, named};
use crate::analysis::Subject;

/// Flows per ordered router pair under a traffic pattern (FatPaths Fig. 4). Quantities: `mean`, and `share_<c>_up` for c = 2, 4,
/// 9: the share of all ordered pairs with at least c flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Collisions {
    /// Which host sends to which.
    pub pattern: Pattern,
    /// Which host sits at which router.
    pub placement: Placement,
}

impl Default for Collisions {
    fn default() -> Self {
        let pattern = Pattern::Permutation(Permutation::default());
        Collisions { pattern, placement: Placement::Random }
    }
}

impl Collisions {
    pub(super) fn take(&self, subject: &Subject, seed: u64) -> Quantities {
        let flows = self.pattern.router_flows(&subject.graph, self.placement, seed);
        let histogram = CollisionHistogram::new(&subject.graph, &flows);
        named([
            ("mean", histogram.mean()),
            ("share_2_up", histogram.share_at_least(2)),
            ("share_4_up", histogram.share_at_least(4)),
            ("share_9_up", histogram.share_at_least(9)),
        ])
    }
}

/// Pairs of flows that share a router pair (`collisions`) or a link (`overlaps`), on single minimal paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conflicts {
    /// Which host sends to which.
    pub pattern: Pattern,
    /// Which host sits at which router.
    pub placement: Placement,
}

impl Default for Conflicts {
    fn default() -> Self {
        let pattern = Pattern::Permutation(Permutation::default());
        Conflicts { pattern, placement: Placement::Random }
    }
}

impl Conflicts {
    pub(super) fn take(&self, subject: &Subject, seed: u64) -> Quantities {
        let graph = &subject.graph;
        let flows = self.pattern.router_flows(graph, self.placement, seed);
        let tables = ForwardingTables::minimal(graph, vec![LinkSet::full(graph)], seed);
        let conflicts = flow_conflicts(graph, &tables, &flows);
        named([("collisions", conflicts.collisions as f64), ("overlaps", conflicts.overlaps as f64)])
    }
}
