//! Several hosts overload one.

mod level;
mod sources;

pub use level::{Degree, Severity};
pub use sources::HotSources;

use std::sync::Arc;

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed::Partners;
use crate::frames::Injection;
use crate::options::Destinations;
use crate::plan::{HostWork, Plan, Setting};
use crate::{Destination, WorkloadError};

/// The input-generated hotspot of the IBM/802 benchmark: between `from` and `until` several hosts direct a share of their link's rate to
/// one destination, whose link cannot carry the sum. Cold uniform traffic and chosen victim flows, which do not go to the hot destination,
/// show which traffic the congestion tree affects. The groups `hot`, `cold` and `victim` are reported separately; all frames are Bernoulli
/// injected, one frame per slot (see `bernoulli`).
///
/// The defaults are test A of Crisan, Gusat and Minkenberg (Comparative Evaluation of CEE-based Switch Adaptive Routing): 4 of 32 hosts
/// direct 45% of their traffic to one during 20 ms of 50 ms. The paper places neither the hosts nor the phase; its victim can reach 95% of
/// a link, so its source is no hot one: 45% and 95% do not fit one link. Read here as hosts 0 to 3 to host 7, and 8 to 4, which shares
/// links with the hot flows towards the switches of 4 to 7. An output-generated hotspot is a slow link: the fault `degrade` below any other
/// workload.
///
/// In the benchmark's terms, *severity* is offered over accepted traffic at the hot link (mild below 2, moderate up to 10, severe above),
/// and *degree* is the share of sources that are hot (small, medium, large). Refused if what a host offers in total does not fit its link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hotspot {
    /// Ranks that send the hot traffic: a list, or how many, which are then the first ones beside the hot destination.
    pub hot_sources: HotSources,
    /// Rank that receives the hot traffic.
    pub hot_destination: u32,
    /// Share of its link's rate that each hot source directs to the hot destination, above 0 and at most 1; counts frames
    /// with their overhead.
    pub hot_share: f64,
    /// No hot frame starts before this time.
    pub from: Time,
    /// No hot frame starts at this time or later.
    pub until: Time,
    /// Load of the cold traffic, which every host sends to uniformly drawn ones except where it is the source of a
    /// victim flow; 0: none.
    pub background: f64,
    /// Flows that are observed: `{ src, dst, load }` with ranks and the share of the source's link.
    pub victims: Vec<Victim>,
    /// Cold and victim frames start from zero on and before this time.
    pub duration: Time,
    /// Payload of a frame; the transport's MTU or less, or a frame travels as several packets.
    pub frame: Bytes,
    /// Bytes that a frame takes on the link beside its payload.
    pub overhead: Bytes,
}

/// A flow whose fate is watched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Victim {
    /// Rank that sends.
    pub src: u32,
    /// Rank that receives, not the hot destination.
    pub dst: u32,
    /// Share of the source's link, above 0 and at most 1.
    pub load: f64,
}

impl Default for Hotspot {
    fn default() -> Self {
        Hotspot {
            hot_sources: HotSources::Count(4),
            hot_destination: 7,
            hot_share: 0.45,
            from: Time::from_ms(10),
            until: Time::from_ms(30),
            background: 0.0,
            victims: vec![Victim { src: 8, dst: 4, load: 0.95 }],
            duration: Time::from_ms(50),
            frame: Bytes(1500),
            overhead: Bytes(0),
        }
    }
}

/// Slack for sums of loads such as 0.45 + 0.55.
const ROUNDING: f64 = 1e-9;

impl Hotspot {
    /// Offered over accepted traffic at the link of the hot destination in the hot phase, among `ranks` hosts whose links
    /// all have the same rate; 1 where the link carries all.
    pub fn severity(&self, ranks: u32) -> f64 {
        let cold_senders =
            (0..ranks).filter(|&rank| rank != self.hot_destination && !self.is_victim_source(rank)).count();
        let cold = self.background * cold_senders as f64 / f64::from(ranks.max(2) - 1);
        let offered = self.hot_share * self.hot_sources.ranks(self.hot_destination).len() as f64 + cold;
        offered.max(1.0)
    }

    /// Share of `ranks` hosts that send hot traffic.
    pub fn degree(&self, ranks: u32) -> f64 {
        self.hot_sources.ranks(self.hot_destination).len() as f64 / f64::from(ranks)
    }

    fn is_victim_source(&self, rank: u32) -> bool {
        self.victims.iter().any(|victim| victim.src == rank)
    }

    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let sources = self.checked_sources(setting.ranks())?;
        self.check_victims(setting.ranks())?;
        if self.duration == Time::ZERO {
            return Err(WorkloadError::parameter("duration", "a time above 0", self.duration));
        }
        let injection = |load, from, until| Injection {
            load,
            mean_burst: 1.0,
            frame: self.frame,
            overhead: self.overhead,
            from,
            until,
        };
        let hot = injection(self.hot_share, self.from, self.until);
        hot.check("hot_share", setting.context)?;
        let cold = injection(self.background, Time::ZERO, self.duration);
        let destinations =
            Arc::new(Destinations::new(Destination::Any, &setting.endpoints, &setting.placed)?);
        if self.background != 0.0 {
            cold.check("background", setting.context)?;
        }
        for (i, victim) in self.victims.iter().enumerate() {
            injection(victim.load, Time::ZERO, self.duration)
                .check(format!("victims.{i}.load"), setting.context)?;
        }
        self.check_links(&sources, setting.ranks())?;
        let to = |rank: u32| Partners::cycle([setting.placed[rank as usize]]);
        let mut plan = setting.plan(None, |rank, host| {
            let mut works: Vec<(u16, HostWork)> = Vec::new();
            if sources.binary_search(&rank).is_ok() {
                works.push((0, hot.at(setting, host, 0, to(self.hot_destination))));
            }
            if self.background != 0.0 && !self.is_victim_source(rank) {
                let partners = Partners::Uniform { destinations: destinations.clone(), rank };
                works.push((1, cold.at(setting, host, 1, partners)));
            }
            for (index, victim) in (2..).zip(&self.victims).filter(|(_, victim)| victim.src == rank) {
                let flow = injection(victim.load, Time::ZERO, self.duration);
                works.push((2, flow.at(setting, host, index, to(victim.dst))));
            }
            HostWork::merge(works)
        });
        plan.groups = ["hot", "cold", "victim"].map(str::to_owned).into();
        Ok(plan)
    }

    fn checked_sources(&self, ranks: u32) -> Result<Vec<u32>, WorkloadError> {
        let last = ranks - 1;
        if self.hot_destination > last {
            let expected = format!("a rank from 0 to {last}");
            return Err(WorkloadError::parameter("hot_destination", expected, self.hot_destination));
        }
        self.hot_sources.checked(self.hot_destination, ranks)
    }

    fn check_victims(&self, ranks: u32) -> Result<(), WorkloadError> {
        let last = ranks - 1;
        for (i, victim) in self.victims.iter().enumerate() {
            let refuse = |end, expected: String, found: u32| {
                Err(WorkloadError::parameter(format!("victims.{i}.{end}"), expected, found))
            };
            if victim.src > last {
                return refuse("src", format!("a rank from 0 to {last}"), victim.src);
            }
            if victim.dst > last || victim.dst == victim.src {
                return refuse("dst", format!("a rank from 0 to {last} other than src"), victim.dst);
            }
            if victim.dst == self.hot_destination {
                return refuse("dst", "another rank than the hot destination".to_owned(), victim.dst);
            }
        }
        Ok(())
    }

    /// Refuses what a host's own link cannot carry: its queue would grow without end.
    fn check_links(&self, sources: &[u32], ranks: u32) -> Result<(), WorkloadError> {
        for rank in 0..ranks {
            let hot = if sources.binary_search(&rank).is_ok() { self.hot_share } else { 0.0 };
            let cold = if self.is_victim_source(rank) { 0.0 } else { self.background };
            let victim: f64 = self.victims.iter().filter(|v| v.src == rank).map(|v| v.load).sum();
            let sum = hot + cold + victim;
            if sum > 1.0 + ROUNDING {
                let expected = "hot, cold and victim loads of a host that sum up to at most 1";
                return Err(WorkloadError::parameter(
                    "hot_share",
                    expected,
                    format!("{sum:.3} at rank {rank}"),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Message, Options, Pattern, Workload};

    /// On 32 hosts with links of 100 Gb/s.
    fn build(hotspot: Hotspot) -> Result<Plan, WorkloadError> {
        plan(Workload::new(Pattern::Hotspot(hotspot)), &network(32, 2), 1)
    }

    /// Share of the time between two instants that the frames which pass the filter take on a link of 100 Gb/s.
    fn load(sent: &[(u32, Message)], from: Time, until: Time, filter: impl Fn(u32, &Message) -> bool) -> f64 {
        let within = |m: &Message| m.start >= from && m.start < until;
        let count = sent.iter().filter(|(src, m)| within(m) && filter(*src, m)).count();
        (count as u64 * 1500 * 80) as f64 / (until - from).0 as f64
    }

    #[test]
    fn the_default_is_the_test_of_the_paper() {
        let mut plan = build(Hotspot::default()).unwrap();
        assert_eq!(plan.groups, ["hot", "cold", "victim"]);
        let sent = timed(&mut plan);
        let (from, until, end) = (Time::from_ms(10), Time::from_ms(30), Time::from_ms(50));
        let rate = |from, until, group, src| load(&sent, from, until, |s, m| m.group == group && s == src);
        // 167,000 slots in the hot phase: standard deviation 0.0012; in all 417,000: 0.0003 of 0.95.
        for src in 0..4 {
            assert!((rate(from, until, 0, src) - 0.45).abs() < 0.006);
        }
        assert!((rate(Time::ZERO, end, 2, 8) - 0.95).abs() < 0.002);
        for (src, message) in &sent {
            let expected = match message.group {
                0 => *src < 4 && message.dst == 7 && message.start >= from && message.start < until,
                2 => (*src, message.dst) == (8, 4) && message.start < end,
                _ => false,
            };
            assert!(expected && message.stream, "{src} {message:?}");
        }
        assert!(sent.is_sorted_by_key(|&(src, message)| (src, message.start)));
    }

    #[test]
    fn cold_traffic_goes_on_beside_the_hot_one() {
        let hotspot = Hotspot {
            hot_sources: HotSources::List(vec![30, 2]),
            background: 0.3,
            victims: vec![Victim { src: 5, dst: 6, load: 0.5 }, Victim { src: 5, dst: 9, load: 0.25 }],
            from: Time::from_ms(2),
            until: Time::from_ms(4),
            duration: Time::from_ms(5),
            ..Default::default()
        };
        let workload = Workload {
            pattern: Pattern::Hotspot(hotspot),
            options: Options { class: 3, ..Default::default() },
        };
        let sent = timed(&mut plan(workload, &network(32, 2), 2).unwrap());
        let all = |filter: &dyn Fn(u32, &Message) -> bool| load(&sent, Time::ZERO, Time::from_ms(5), filter);
        // 41,667 slots: standard deviation at most 0.0025 for one host.
        assert!((all(&|src, m| m.group == 1 && src == 30) - 0.3).abs() < 0.013);
        assert!((all(&|_, m| m.group == 1) / 31.0 - 0.3).abs() < 0.003);
        assert!((all(&|_, m| m.group == 2 && m.dst == 6) - 0.5).abs() < 0.013);
        assert!((all(&|_, m| m.group == 2 && m.dst == 9) - 0.25).abs() < 0.013);
        assert!((all(&|src, m| m.group == 0 && src == 30) - 0.45 * 0.4).abs() < 0.01);
        assert_eq!(all(&|src, m| src == 5 && m.group != 2), 0.0);
        assert!(sent.iter().all(|(src, m)| m.class == 3 && m.dst != *src));
        // Slots of a host begin together, whatever it sends in them; its sources of traffic draw independently.
        let of_30: Vec<_> = sent.iter().filter(|(src, _)| *src == 30).collect();
        assert!(of_30.iter().all(|(_, m)| m.start.0 % 120_000 == of_30[0].1.start.0 % 120_000));
        let starts = |group| of_30.iter().filter(move |(_, m)| m.group == group).map(|(_, m)| m.start);
        let hot: std::collections::HashSet<Time> = starts(0).collect();
        let both = starts(1).filter(|start| hot.contains(start)).count() as f64;
        // 16,667 slots with probability 0.45 · 0.3: 2,250, standard deviation 44.
        assert!((both - 2250.0).abs() < 264.0, "{both}");
    }

    #[test]
    fn severity_and_degree_are_those_of_the_benchmark() {
        let test_a = Hotspot::default();
        assert!((test_a.severity(32) - 1.8).abs() < 1e-12);
        assert_eq!(test_a.degree(32), 0.125);
        assert_eq!((Severity::of(1.8), Degree::of(0.125)), (Some(Severity::Mild), Degree::Small));
        let all = Hotspot { hot_sources: HotSources::Count(31), hot_share: 0.9, ..test_a.clone() };
        assert!((all.severity(32) - 27.9).abs() < 1e-12);
        assert_eq!((Severity::of(27.9), Degree::of(all.degree(32))), (Some(Severity::Severe), Degree::Large));
        // 30 hosts send cold traffic, a thirty-first of it to the hot destination.
        let cold = Hotspot { background: 0.31, ..test_a.clone() };
        assert!((cold.severity(32) - 2.1).abs() < 1e-12);
        assert_eq!(
            (Severity::of(2.0), Severity::of(10.0)),
            (Some(Severity::Moderate), Some(Severity::Moderate))
        );
        assert_eq!((Degree::of(0.2), Degree::of(0.6)), (Degree::Medium, Degree::Medium));
        let cool = Hotspot { hot_share: 0.2, ..test_a };
        assert_eq!((cool.severity(32), Severity::of(cool.severity(32))), (1.0, None));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let list = |ranks: &[u32]| HotSources::List(ranks.to_vec());
        let victims = |src, dst, load| vec![Victim { src, dst, load }];
        for (wrong, field) in [
            (Hotspot { hot_destination: 32, ..Default::default() }, "hot_destination: "),
            (Hotspot { hot_sources: HotSources::Count(0), ..Default::default() }, "hot_sources: "),
            (Hotspot { hot_sources: HotSources::Count(32), ..Default::default() }, "hot_sources: "),
            (Hotspot { hot_sources: list(&[]), ..Default::default() }, "hot_sources: "),
            (Hotspot { hot_sources: list(&[7]), ..Default::default() }, "hot_sources: "),
            (Hotspot { hot_sources: list(&[1, 2, 1]), ..Default::default() }, "hot_sources: "),
            (Hotspot { hot_share: 1.5, ..Default::default() }, "hot_share: "),
            (Hotspot { background: -0.5, ..Default::default() }, "background: "),
            (Hotspot { background: 0.6, ..Default::default() }, "hot_share: expected hot, cold and victim"),
            (Hotspot { victims: victims(3, 4, 0.95), ..Default::default() }, "hot_share: "),
            (Hotspot { victims: victims(8, 8, 0.9), ..Default::default() }, "victims.0.dst: "),
            (Hotspot { victims: victims(8, 7, 0.9), ..Default::default() }, "victims.0.dst: "),
            (Hotspot { victims: victims(32, 7, 0.9), ..Default::default() }, "victims.0.src: "),
            (Hotspot { victims: victims(8, 4, 0.0), ..Default::default() }, "victims.0.load: "),
            (Hotspot { until: Time::from_ms(10), ..Default::default() }, "until: "),
            (Hotspot { duration: Time::ZERO, ..Default::default() }, "duration: "),
        ] {
            let error = build(wrong).unwrap_err().to_string();
            assert!(error.starts_with(field), "{error}");
        }
    }
}
