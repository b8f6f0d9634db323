//! All hosts of a switch send to all hosts of one other switch.

use netloom_units::{Bytes, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::partners::{at_offsets, send_to_partners};
use crate::plan::{Plan, Setting};
use crate::{Size, WorkloadError};

/// Adversarial: all flows of a switch go to one far switch and collide on their few shortest paths. An off-diagonal whose offset is the
/// number of hosts per edge switch times half the number of edge switches (FatPaths, SC 2020: "skewed off-diagonal"). With `placement =
/// "random"` the collisions dissolve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Adversarial {
    /// Size of the messages.
    pub size: Size,
    /// Messages to the same partner, one after the other.
    pub repeat: u32,
}

impl Default for Adversarial {
    fn default() -> Self {
        Adversarial { size: Bytes(1 << 20).into(), repeat: 1 }
    }
}

impl Adversarial {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let ends = setting.endpoints;
        let per_switch = narrow::<u32>(
            (0..ends.count()).take_while(|&host| ends.edge_switch(host) == ends.edge_switch(0)).count(),
        );
        let switches = setting.ranks() / per_switch;
        let regular = (0..ends.count())
            .all(|host| ends.edge_switch(host) == ends.edge_switch(host / per_switch * per_switch));
        if !regular || switches < 2 || !setting.ranks().is_multiple_of(per_switch) {
            let expected = "hosts in equal numbers at two or more edge switches";
            let found = format!("{} ranks, {per_switch} hosts at the first switch", setting.ranks());
            return Err(WorkloadError::parameter("pattern", expected, found));
        }
        let offset = i64::from(per_switch * (switches / 2));
        let partners = at_offsets(setting.ranks(), &[offset], "pattern")?;
        send_to_partners(setting, &self.size, self.repeat, &partners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, partners, plan};
    use crate::{Pattern, Workload};

    fn build(hosts: u32, per_rack: u32) -> Result<Plan, WorkloadError> {
        plan(Workload::new(Pattern::Adversarial(Adversarial::default())), &network(hosts, per_rack), 1)
    }

    #[test]
    fn a_switch_sends_to_one_other_switch() {
        for (src, dst) in partners(&mut build(15, 3).unwrap()) {
            assert_eq!(dst / 3, (src / 3 + 2) % 5);
        }
    }

    #[test]
    fn irregular_networks_are_refused() {
        assert!(build(4, 4).is_err() && build(14, 3).is_err());
    }
}
