//! Every host sends to the one whose number is its own with the bits rotated.

use netloom_units::{Bytes, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::partners::send_to_partners;
use crate::plan::{Plan, Setting};
use crate::{Size, WorkloadError};

/// Shuffle: rank r sends to the rank whose number is r as a word of ⌈log₂ N⌉ bits rotated left by one, mod N
/// (FatPaths, SC 2020). Where N is no power of two several ranks may share a receiver; ranks that would send to
/// themselves idle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shuffle {
    /// Size of the messages.
    pub size: Size,
    /// Messages to the same partner, one after the other.
    pub repeat: u32,
}

impl Default for Shuffle {
    fn default() -> Self {
        Shuffle { size: Bytes(1 << 20).into(), repeat: 1 }
    }
}

impl Shuffle {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let ranks = u64::from(setting.ranks());
        let bits = ranks.next_power_of_two().trailing_zeros();
        let target = |rank: u64| (((rank << 1) | (rank >> (bits - 1))) & ((1 << bits) - 1)) % ranks;
        let partners: Vec<Vec<u32>> = (0..ranks)
            .map(|rank| {
                Some(target(rank)).filter(|&to| to != rank).map(|to| narrow::<u32>(to)).into_iter().collect()
            })
            .collect();
        if partners.iter().all(Vec::is_empty) {
            return Err(WorkloadError::parameter("ranks", "at least 3 for a shuffle", ranks));
        }
        send_to_partners(setting, &self.size, self.repeat, &partners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, partners, plan};
    use crate::{Pattern, Workload};

    fn sent(hosts: u32) -> Vec<(u32, u32)> {
        let pattern = Pattern::Shuffle(Shuffle::default());
        partners(&mut plan(Workload::new(pattern), &network(hosts, hosts), 1).unwrap())
    }

    #[test]
    fn bits_rotate_left() {
        assert_eq!(sent(8), [(1, 2), (2, 4), (3, 6), (4, 1), (5, 3), (6, 5)]);
    }

    #[test]
    fn ranks_may_share_a_receiver_where_n_is_no_power_of_two() {
        // 4 = 100 becomes 001; 3 = 011 becomes 110, which is 6 mod 5.
        assert_eq!(sent(5), [(1, 2), (2, 4), (3, 1), (4, 1)]);
    }

    #[test]
    fn two_ranks_have_nobody_else_to_send_to() {
        let workload = Workload::new(Pattern::Shuffle(Shuffle::default()));
        assert!(plan(workload, &network(2, 2), 1).is_err());
    }
}
