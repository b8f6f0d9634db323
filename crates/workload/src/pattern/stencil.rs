//! Every host exchanges with its neighbours of a grid.

use netloom_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::partners::{at_offsets, send_to_partners};
use crate::plan::{Plan, Setting};
use crate::{Size, WorkloadError};

/// A two-dimensional stencil without barrier: every rank sends to its four neighbours at once, and to each of them
/// again when a message completes (FatPaths, SC 2020: four off-diagonals).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stencil {
    /// Distances of the neighbours in ranks; ±1 and ±42, or ±1 and ±1337 beyond 10,000 ranks, if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offsets: Option<Vec<i64>>,
    /// Size of the messages.
    pub size: Size,
    /// Messages to each neighbour.
    pub repeat: u32,
}

impl Default for Stencil {
    fn default() -> Self {
        Stencil { offsets: None, size: Bytes(64 << 10).into(), repeat: 1 }
    }
}

impl Stencil {
    pub(super) fn lay(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let row = if setting.ranks() > 10_000 { 1337 } else { 42 };
        let offsets = self.offsets.clone().unwrap_or_else(|| vec![1, -1, row, -row]);
        let partners = at_offsets(setting.ranks(), &offsets, "offsets")?;
        send_to_partners(setting, &self.size, self.repeat, &partners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, partners, plan};
    use crate::{Pattern, Workload};
    use netloom_units::Time;

    #[test]
    fn every_rank_has_four_neighbours() {
        let workload = Workload::new(Pattern::Stencil(Stencil::default()));
        let mut plan = plan(workload, &network(100, 10), 1).unwrap();
        assert_eq!(plan.total_messages, Some(400));
        let sent = partners(&mut plan);
        assert_eq!(sent[..4], [(0, 1), (0, 99), (0, 42), (0, 58)]);
    }

    #[test]
    fn repeated_exchanges_go_round_the_neighbours() {
        let stencil = Stencil { offsets: Some(vec![1, 2]), repeat: 2, ..Default::default() };
        let mut plan = plan(Workload::new(Pattern::Stencil(stencil)), &network(5, 5), 1).unwrap();
        let host = &mut plan.hosts[0];
        let first: Vec<_> = std::iter::from_fn(|| Some(host.next_timed()?.dst)).collect();
        let then: Vec<_> = std::iter::from_fn(|| Some(host.next_closed(Time::ZERO, 0)?.dst)).collect();
        assert_eq!((first.as_slice(), then.as_slice()), (&[1, 2][..], &[1, 2][..]));
    }

    #[test]
    fn a_stencil_without_neighbours_is_refused() {
        let stencil = Stencil { offsets: Some(vec![]), ..Default::default() };
        assert!(plan(Workload::new(Pattern::Stencil(stencil)), &network(5, 5), 1).is_err());
        // 42 ranks below and above of a rank among 42 lies the rank itself.
        assert!(plan(Workload::new(Pattern::Stencil(Stencil::default())), &network(42, 6), 1).is_err());
    }
}
