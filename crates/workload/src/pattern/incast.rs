//! Many hosts send to one.

use netloom_units::{Bytes, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::partners::send_to_partners;
use crate::plan::{HostWork, MOST_MESSAGES, Message, Plan, Setting};
use crate::random::{RngExt, Work, shuffle};
use crate::{Size, WorkloadError};

/// Incast: several hosts send to one at the same time. With `every` there are many of them, by the clock, on one receiver or on random ones: an open loop,
/// such as the incasts that HPCC adds to a load (Li et al., SIGCOMM 2019, section 5.3: 60 random senders, a random receiver, 500 KB from each).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Incast {
    /// Rank that receives.
    pub receiver: u32,
    /// Who receives: `fixed`, always `receiver`, from the ranks that follow it; or `random`, which with every incast draws a receiver and its senders. The latter
    /// needs `every`.
    #[serde(skip_serializing_if = "Receivers::is_fixed")]
    pub receivers: Receivers,
    /// Number of senders, the ranks that follow the receiver unless these are random; all others if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub senders: Option<u32>,
    /// Size of the messages.
    pub size: Size,
    /// Messages per sender, one after the other; with `every` the number of incasts.
    pub repeat: u32,
    /// Time from one incast to the next; if not given, a sender begins its next message when the one before is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// Whether `every` is the time itself (`periodic`) or the mean of exponential ones (`poisson`). The first incast is at 0 or after one such time.
    #[serde(skip_serializing_if = "Spacing::is_periodic")]
    pub spacing: Spacing,
}

/// Who receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Receivers {
    /// One rank.
    #[default]
    Fixed,
    /// A new draw for each incast, also of the senders.
    Random,
}

impl Receivers {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields so")]
    fn is_fixed(&self) -> bool {
        *self == Receivers::Fixed
    }
}

/// Times from one to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// All equal.
    #[default]
    Periodic,
    /// Exponential.
    Poisson,
}

impl Spacing {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields so")]
    fn is_periodic(&self) -> bool {
        *self == Spacing::Periodic
    }
}

impl Default for Incast {
    fn default() -> Self {
        Incast {
            receiver: 0,
            receivers: Receivers::Fixed,
            senders: None,
            size: Bytes(1 << 20).into(),
            repeat: 1,
            every: None,
            spacing: Spacing::Periodic,
        }
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
        if self.receivers == Receivers::Random && self.receiver != 0 {
            let expected = "it without `receivers = \"random\"`, which draws them";
            return Err(WorkloadError::parameter("receiver", expected, self.receiver));
        }
        if let Some(every) = self.every {
            return self.by_the_clock(setting, senders, every);
        }
        for (field, found, is_set) in [
            ("receivers", "\"random\"", self.receivers == Receivers::Random),
            ("spacing", "\"poisson\"", self.spacing == Spacing::Poisson),
        ] {
            if is_set {
                return Err(WorkloadError::parameter(
                    field,
                    "`every` beside it: when the next incast begins",
                    found,
                ));
            }
        }
        let mut partners = vec![Vec::new(); ranks as usize];
        for step in 1..=u64::from(senders) {
            partners[narrow::<usize>((u64::from(self.receiver) + step) % u64::from(ranks))]
                .push(self.receiver);
        }
        send_to_partners(setting, &self.size, self.repeat, &partners)
    }

    /// Incasts that begin whether or not the ones before are over.
    fn by_the_clock(&self, setting: &Setting, senders: u32, every: Time) -> Result<Plan, WorkloadError> {
        let ranks = setting.ranks();
        if every == Time::ZERO {
            return Err(WorkloadError::parameter("every", "more than 0", every));
        }
        let total = u64::from(self.repeat) * u64::from(senders);
        if self.repeat == 0 || total > MOST_LISTED {
            let most = (MOST_LISTED / u64::from(senders)).max(1);
            return Err(WorkloadError::parameter("repeat", format!("1 to {most}"), self.repeat));
        }
        let size = self.size.sampler(setting.context)?;
        let mut lists: Vec<Vec<Message>> = vec![Vec::new(); ranks as usize];
        let mut random = Work::Partners.stream(setting.context.seed, 0);
        let mut order: Vec<u32> = (0..ranks).collect();
        let mut at = Time::ZERO;
        for number in 0..self.repeat {
            match self.spacing {
                Spacing::Periodic if number == 0 => {}
                Spacing::Periodic => at = Time(at.0.saturating_add(every.0)),
                Spacing::Poisson => {
                    at = Time(at.0.saturating_add(exponential(every, random.random::<f64>())))
                }
            }
            let (receiver, first) = match self.receivers {
                Receivers::Fixed => (self.receiver, self.receiver + 1),
                Receivers::Random => {
                    shuffle(&mut order, &mut random);
                    (order[0], 1)
                }
            };
            for step in 0..senders {
                let place = (first + step) % ranks;
                let sender = if self.receivers == Receivers::Fixed { place } else { order[place as usize] };
                let host = setting.placed[sender as usize];
                let start = Time(at.0.saturating_add(setting.first_start(host).0));
                let dst = setting.placed[receiver as usize];
                lists[sender as usize].push(Message::new(dst, size.draw(&mut random), start));
            }
        }
        Ok(setting.plan(Some(total), |rank, _| HostWork::list(std::mem::take(&mut lists[rank as usize]))))
    }
}

/// Messages that are listed beforehand, at most.
pub(super) const MOST_LISTED: u64 = if MOST_MESSAGES < 1 << 26 { MOST_MESSAGES } else { 1 << 26 };

/// An exponential time of this mean, from a uniform number below 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and saturating")]
pub(super) fn exponential(mean: Time, uniform: f64) -> u64 {
    (-(1.0 - uniform).ln() * mean.0 as f64) as u64
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
            Incast { receivers: Receivers::Random, ..Default::default() },
            Incast { spacing: Spacing::Poisson, ..Default::default() },
            Incast { every: Some(Time::ZERO), ..Default::default() },
            Incast { every: Some(Time(1)), repeat: 0, ..Default::default() },
            Incast { every: Some(Time(1)), repeat: u32::MAX, ..Default::default() },
            Incast { every: Some(Time(1)), receivers: Receivers::Random, receiver: 1, ..Default::default() },
        ] {
            assert!(plan(Workload::new(Pattern::Incast(incast)), &network(8, 2), 1).is_err());
        }
    }

    #[test]
    fn incasts_by_the_clock_begin_when_they_are_due() {
        let incast =
            Incast { receiver: 6, senders: Some(2), every: Some(Time(500)), repeat: 3, ..Default::default() };
        let mut plan = plan(Workload::new(Pattern::Incast(incast)), &network(8, 2), 1).unwrap();
        assert_eq!(plan.total_messages, Some(6));
        let sent = timed(&mut plan);
        let sent: Vec<_> = sent.into_iter().map(|(src, it)| (src, it.dst, it.start.0)).collect();
        assert_eq!(sent, [(0, 6, 0), (0, 6, 500), (0, 6, 1000), (7, 6, 0), (7, 6, 500), (7, 6, 1000)]);
    }

    #[test]
    fn random_incasts_have_random_parties() {
        let incast = Incast {
            receivers: Receivers::Random,
            spacing: Spacing::Poisson,
            senders: Some(3),
            every: Some(Time(1_000_000)),
            repeat: 4000,
            ..Default::default()
        };
        let mut plan = plan(Workload::new(Pattern::Incast(incast)), &network(8, 2), 1).unwrap();
        let mut by_start = std::collections::BTreeMap::<Time, Vec<_>>::new();
        for (src, message) in timed(&mut plan) {
            by_start.entry(message.start).or_default().push((src, message.dst));
        }
        assert_eq!(by_start.len(), 4000);
        let mut receivers = [0; 8];
        for parties in by_start.values() {
            assert_eq!(parties.len(), 3);
            let senders: std::collections::BTreeSet<_> = parties.iter().map(|it| it.0).collect();
            assert!(
                senders.len() == 3 && parties.iter().all(|&(src, dst)| src != dst && dst == parties[0].1)
            );
            receivers[parties[0].1 as usize] += 1;
        }
        // Binomial with p = 1/8: five standard deviations of 21; gaps have the mean to within five of 1/√4000.
        assert!(receivers.iter().all(|&count| (395..605).contains(&count)), "{receivers:?}");
        let last = by_start.keys().next_back().unwrap().0 as f64 / 4e9;
        assert!((last - 1.0).abs() < 0.08, "{last}");
    }
}
