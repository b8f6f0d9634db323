//! Many hosts send to one.

use netloom_units::{Bytes, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::partners::send_to_partners;
use crate::plan::{Plan, Setting};
use crate::{Size, WorkloadError};

/// Incast: several hosts send to one at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Incast {
    /// Rank that receives.
    pub receiver: u32,
    /// Number of senders, the ranks that follow the receiver; all others if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub senders: Option<u32>,
    /// Size of the messages.
    pub size: Size,
    /// Messages per sender, one after the other.
    pub repeat: u32,
}

impl Default for Incast {
    fn default() -> Self {
        Incast { receiver: 0, senders: None, size: Bytes(1 << 20).into(), repeat: 1 }
    }
}

impl Incast {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let ranks = setting.ranks();
        if self.receiver >= ranks {
            return Err(WorkloadError::parameter("receiver", format!("0 to {}", ranks - 1), self.receiver));
        }
        let senders = self.senders.unwrap_or(ranks - 1);
        if senders == 0 || senders >= ranks {
            return Err(WorkloadError::parameter("senders", format!("1 to {}", ranks - 1), senders));
        }
        let mut partners = vec![Vec::new(); ranks as usize];
        for step in 1..=u64::from(senders) {
            partners[narrow::<usize>((u64::from(self.receiver) + step) % u64::from(ranks))]
                .push(self.receiver);
        }
        send_to_partners(setting, &self.size, self.repeat, &partners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Pattern, Workload};

    #[test]
    fn the_ranks_after_the_receiver_send() {
        let pattern = Pattern::Incast(Incast { receiver: 6, senders: Some(3), ..Default::default() });
        let mut plan = plan(Workload::new(pattern), &network(8, 2), 1).unwrap();
        let sent: Vec<_> = timed(&mut plan).into_iter().map(|(src, message)| (src, message.dst)).collect();
        assert_eq!(sent, [(0, 6), (1, 6), (7, 6)]);
        assert_eq!(plan.total_messages, Some(3));
    }

    #[test]
    fn impossible_parties_are_refused() {
        for incast in [
            Incast { receiver: 8, ..Default::default() },
            Incast { senders: Some(8), ..Default::default() },
            Incast { senders: Some(0), ..Default::default() },
            Incast { repeat: 0, ..Default::default() },
            Incast { repeat: (1 << 31) + 1, ..Default::default() },
            Incast { size: Bytes(0).into(), ..Default::default() },
        ] {
            assert!(plan(Workload::new(Pattern::Incast(incast)), &network(8, 2), 1).is_err());
        }
    }
}
