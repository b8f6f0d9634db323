//! Messages arrive at random times, whatever the network does.

use netloom_units::{Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::plan::{HostWork, Plan, Setting};
use crate::random::Work;
use crate::{Destination, Size, Table, Traffic, WorkloadError};

/// What no link of a host carries is kept in memory until the end: this much of it shows any overload.
const MOST_LOAD: f64 = 100.0;

/// Poisson arrivals, an open loop: every host starts messages after exponential gaps, each to a uniformly drawn host or, by `traffic`, to the same one.
/// The mean gap is 8 · mean size / (host link rate · load), as in the generator of HPCC and ConWeave, so the load
/// counts payload and not headers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Poisson {
    /// Payload that each host offers, as a fraction of the rate of its link; above 1 queues grow without end.
    pub load: f64,
    /// Size of the messages.
    pub size: Size,
    /// No message starts at this time or later; not limited if not given. At least one of this and `messages_per_host`
    /// is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// Messages that each host sends; not limited if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_host: Option<u64>,
    /// Where messages go: `uniform`, a new draw for each; or one host for the whole run by a permutation: `random-permutation`, or one of
    /// Dally and Towles, of which `tornado` makes nearly all hosts of a switch send to those of one other switch (FatPaths, SC 2020:
    /// "skewed off-diagonal").
    pub traffic: Traffic,
    /// Which destinations are allowed in uniform and random-permutation traffic: `any`, `other-rack` or `other-pod`.
    pub destination: Destination,
}

impl Default for Poisson {
    fn default() -> Self {
        Poisson {
            load: 0.5,
            size: Table::WebSearch.into(),
            duration: None,
            messages_per_host: None,
            traffic: Traffic::Uniform,
            destination: Destination::Any,
        }
    }
}

impl Poisson {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        if !(self.load > 0.0 && self.load <= MOST_LOAD) {
            let expected = format!("a number above 0, at most {MOST_LOAD}");
            return Err(WorkloadError::parameter("load", expected, self.load));
        }
        let targets = self.traffic.targets(self.destination, setting)?;
        let senders = (0..setting.ranks()).filter(|&rank| targets.of(rank, setting).is_some()).count();
        let total = super::total(self.messages_per_host, self.duration, narrow::<u32>(senders))?;
        let size = self.size.sampler(setting.context)?;
        Ok(setting.plan(total, |rank, host| {
            let Some(partners) = targets.of(rank, setting) else { return HostWork::default() };
            let gap_s = 8.0 * size.mean() / (setting.endpoints.rate(host).0 as f64 * self.load);
            HostWork::arrivals(Arrivals {
                rng: Work::Host.stream(setting.context.seed, host),
                size: size.clone(),
                partners,
                mean_gap_ps: gap_s * 1e12,
                now: setting.first_start(host),
                left: self.messages_per_host.unwrap_or(u64::MAX),
                until: self.duration.unwrap_or(Time::MAX),
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Pattern, Workload};
    use netloom_units::Bytes;

    fn build(poisson: Poisson) -> Result<Plan, WorkloadError> {
        plan(Workload::new(Pattern::Poisson(poisson)), &network(12, 3), 3)
    }

    #[test]
    fn the_offered_load_is_the_one_asked_for() {
        let (size, duration) = (Bytes(10_000).into(), Some(Time::from_ms(20)));
        let mut plan = build(Poisson { load: 0.7, size, duration, ..Default::default() }).unwrap();
        assert_eq!(plan.total_messages, None);
        let messages = timed(&mut plan);
        // 12 hosts offer 70 of 100 Gb/s for 20 ms: 210,000 messages, standard deviation 458.
        assert!((208_000..212_000).contains(&messages.len()), "{}", messages.len());
        assert!(messages.iter().all(|(_, message)| message.start < Time::from_ms(20)));
        assert!(messages.is_sorted_by_key(|&(src, message)| (src, message.start)));
    }

    #[test]
    fn gaps_are_exponential() {
        let (size, messages_per_host) = (Bytes(10_000).into(), Some(20_000));
        let mut plan = build(Poisson { load: 0.5, size, messages_per_host, ..Default::default() }).unwrap();
        assert_eq!(plan.total_messages, Some(240_000));
        let starts: Vec<u64> = std::iter::from_fn(|| plan.hosts[0].next_timed()).map(|m| m.start.0).collect();
        assert_eq!(starts.len(), 20_000);
        let gaps = || starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1.6e6);
        // Of an exponential law with mean 1, variance 1 and a share 1/e above 1; five standard errors.
        let mean = gaps().sum::<f64>() / 19_999.0;
        let variance = gaps().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 19_999.0;
        let above = gaps().filter(|&gap| gap > 1.0).count() as f64 / 19_999.0;
        assert!((mean - 1.0).abs() < 0.036 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
        assert!((above - (-1.0f64).exp()).abs() < 0.018, "{above}");
    }

    #[test]
    fn a_host_does_not_depend_on_the_others() {
        let limited =
            Poisson { messages_per_host: Some(50), destination: Destination::OtherPod, ..Default::default() };
        let (mut one, mut all) = (build(limited.clone()).unwrap(), build(limited).unwrap());
        let all = timed(&mut all);
        let only: Vec<_> = std::iter::from_fn(|| one.hosts[7].next_timed()).map(|m| (7, m)).collect();
        assert_eq!(only, all.into_iter().filter(|&(src, _)| src == 7).collect::<Vec<_>>());
        assert!(only.iter().all(|(_, message)| message.dst / 6 != 7 / 6));
    }

    #[test]
    fn messages_may_all_go_to_one_host() {
        let (messages_per_host, traffic) = (Some(20), Traffic::Tornado);
        let mut plan = build(Poisson { messages_per_host, traffic, ..Default::default() }).unwrap();
        assert_eq!(plan.total_messages, Some(12 * 20));
        // Half of twelve, less one.
        assert!(timed(&mut plan).iter().all(|(src, message)| message.dst == (src + 5) % 12));
    }

    #[test]
    fn senseless_parameters_are_refused() {
        let some = Poisson { messages_per_host: Some(1), ..Default::default() };
        for load in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(build(Poisson { load, ..some.clone() }).unwrap_err().to_string().starts_with("load: "));
        }
        let error = build(Poisson::default()).unwrap_err().to_string();
        assert!(error.contains("duration"), "{error}");
        let many = Poisson { messages_per_host: Some((1 << 31) + 1), ..some };
        let error = build(many.clone()).unwrap_err().to_string();
        assert!(
            error.starts_with("messages_per_host: expected at most 2147483648, or a `duration`"),
            "{error}"
        );
        assert!(build(Poisson { duration: Some(Time::from_us(1)), ..many }).is_ok());
    }
}
