//! Every host sends to the one a fixed distance away.

use netloom_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::partners::{at_offsets, send_to_partners};
use crate::plan::{Plan, Setting};
use crate::{Size, WorkloadError};

/// Off-diagonal: rank r sends to rank (r + offset) mod N (FatPaths, SC 2020, traffic patterns).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OffDiagonal {
    /// Distance in ranks, also negative; not a multiple of the number of ranks.
    pub offset: i64,
    /// Size of the messages.
    pub size: Size,
    /// Messages to the same partner, one after the other.
    pub repeat: u32,
}

impl Default for OffDiagonal {
    fn default() -> Self {
        OffDiagonal { offset: 1, size: Bytes(1 << 20).into(), repeat: 1 }
    }
}

impl OffDiagonal {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let partners = at_offsets(setting.ranks(), &[self.offset], "offset")?;
        send_to_partners(setting, &self.size, self.repeat, &partners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, partners, plan};
    use crate::{Pattern, Workload};

    fn build(offset: i64) -> Result<Plan, WorkloadError> {
        let pattern = Pattern::OffDiagonal(OffDiagonal { offset, ..Default::default() });
        plan(Workload::new(pattern), &network(5, 5), 1)
    }

    #[test]
    fn ranks_wrap_around() {
        assert_eq!(partners(&mut build(2).unwrap()), [(0, 2), (1, 3), (2, 4), (3, 0), (4, 1)]);
        assert_eq!(partners(&mut build(-1).unwrap()), [(0, 4), (1, 0), (2, 1), (3, 2), (4, 3)]);
    }

    #[test]
    fn an_offset_back_to_oneself_is_refused() {
        assert!(build(0).is_err() && build(-10).is_err());
    }
}
