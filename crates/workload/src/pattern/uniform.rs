//! Pick a partner, send, repeat.

use std::sync::Arc;

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed::{Closed, Partners};
use crate::options::Destinations;
use crate::plan::{HostWork, Plan, Setting};
use crate::random::Work;
use crate::{Destination, Size, WorkloadError};

/// Random uniform traffic as a closed loop: every host picks a partner uniformly, sends it a message, and picks another when the message
/// completes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Uniform {
    /// Size of the messages.
    pub size: Size,
    /// Messages that each host sends; not limited if not given. At least one of this and `duration` is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_host: Option<u64>,
    /// No message starts at this time or later; not limited if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// Messages that each host keeps in flight.
    pub window: u32,
    /// Which partners are allowed: `any`, `other-rack` or `other-pod`.
    pub destination: Destination,
}

impl Default for Uniform {
    fn default() -> Self {
        Uniform {
            size: Bytes(1 << 20).into(),
            messages_per_host: None,
            duration: None,
            window: 1,
            destination: Destination::Any,
        }
    }
}

impl Uniform {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        if self.window == 0 {
            return Err(WorkloadError::parameter("window", "at least 1", 0));
        }
        let total = super::total(self.messages_per_host, self.duration, setting.ranks())?;
        let destinations =
            Arc::new(Destinations::new(self.destination, &setting.endpoints, &setting.placed)?);
        let size = self.size.sampler(setting.context)?;
        Ok(setting.plan(total, |rank, host| {
            let work = Closed {
                rng: Work::Host.stream(setting.context.seed, host),
                size: size.clone(),
                partners: Partners::Uniform { destinations: destinations.clone(), rank },
                left: self.messages_per_host.unwrap_or(u64::MAX),
                until: self.duration.unwrap_or(Time::MAX),
                window: self.window,
            };
            HostWork::closed(work, setting.first_start(host))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Pattern, Workload};

    fn build(uniform: Uniform) -> Result<Plan, WorkloadError> {
        plan(Workload::new(Pattern::Uniform(uniform)), &network(12, 3), 7)
    }

    #[test]
    fn allowed_partners_are_equally_likely() {
        for (destination, excluded) in
            [(Destination::Any, 4..5), (Destination::OtherRack, 3..6), (Destination::OtherPod, 0..6)]
        {
            let mut plan =
                build(Uniform { destination, messages_per_host: Some(9000), ..Default::default() }).unwrap();
            let mut count = [0u32; 12];
            while let Some(message) = plan.hosts[4].next_closed(Time::ZERO, 0) {
                count[message.dst as usize] += 1;
            }
            let expected = 9000.0 / (12 - excluded.len()) as f64;
            for (host, &count) in count.iter().enumerate() {
                if excluded.contains(&host) {
                    assert_eq!(count, 0, "{destination:?} {host}");
                } else {
                    assert!(
                        (f64::from(count) - expected).abs() < 5.0 * expected.sqrt(),
                        "{destination:?} {count}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_message_starts_after_the_duration() {
        let limit = Some(Time::from_us(10));
        let mut plan = build(Uniform { duration: limit, ..Default::default() }).unwrap();
        assert_eq!((plan.total_messages, timed(&mut plan).len()), (None, 12));
        assert!(plan.hosts[0].next_closed(Time::from_us(9), 0).is_some());
        assert!(plan.hosts[0].next_closed(Time::from_us(10), 0).is_none());
    }

    #[test]
    fn the_window_is_no_larger_than_the_work() {
        let mut plan =
            build(Uniform { messages_per_host: Some(2), window: 5, ..Default::default() }).unwrap();
        assert_eq!((plan.total_messages, timed(&mut plan).len()), (Some(24), 24));
        assert!(build(Uniform { messages_per_host: Some(2), window: 0, ..Default::default() }).is_err());
        assert!(build(Uniform::default()).is_err());
    }
}
