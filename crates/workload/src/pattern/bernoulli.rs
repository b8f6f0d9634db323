//! Frames injected at random, slot by slot.

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frames::Injection;
use crate::plan::{HostWork, Plan, Setting};
use crate::{Destination, Traffic, WorkloadError};

/// Bernoulli injection, an open loop: frames are sent at random at a given load, whatever the network does. Time at each host is divided
/// into slots, each as long as one frame takes on the host's link, and each slot carries a frame with probability `load` (Dally and Towles,
/// Principles and Practices of Interconnection Networks, section 24.2). Slots begin at a random phase, another one at each host. Frames are
/// appended to one long flow per destination, so that order is counted across frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bernoulli {
    /// Offered load: share of the host link's time that frames with their `overhead` take, above 0 and at most 1. The
    /// payload is load · rate · frame / (frame + overhead).
    pub load: f64,
    /// Payload of a frame; the transport's MTU or less, or a frame travels as several packets.
    pub frame: Bytes,
    /// Bytes that a frame takes on the link beside its payload. With the transport's header here `load` counts all
    /// that is on the link; with 0 it counts payload alone.
    pub overhead: Bytes,
    /// Where frames go: `uniform`, a new draw for each frame; or one host for the whole run by a permutation: `random-permutation`, or one
    /// of Dally and Towles: `bit-complement`, `bit-reverse`, `bit-rotation`, `perfect-shuffle` and `transpose` for powers of two, `tornado`
    /// and `neighbour` for any number of ranks.
    pub traffic: Traffic,
    /// Which destinations are allowed in uniform and random-permutation traffic: `any`, `other-rack` or `other-pod`.
    pub destination: Destination,
    /// No frame starts before this time.
    pub from: Time,
    /// No frame starts at this time or later.
    pub until: Time,
}

impl Default for Bernoulli {
    fn default() -> Self {
        Bernoulli {
            load: 0.9,
            frame: Bytes(1500),
            overhead: Bytes(0),
            traffic: Traffic::Uniform,
            destination: Destination::Any,
            from: Time::ZERO,
            until: Time::from_ms(10),
        }
    }
}

impl Bernoulli {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let injection = Injection {
            load: self.load,
            mean_burst: 1.0,
            frame: self.frame,
            overhead: self.overhead,
            from: self.from,
            until: self.until,
        };
        inject(setting, injection, self.traffic, self.destination)
    }
}

/// The same injection at every host that has somewhere to send to.
pub(super) fn inject(
    setting: &Setting,
    injection: Injection,
    traffic: Traffic,
    destination: Destination,
) -> Result<Plan, WorkloadError> {
    injection.check("load", setting.context)?;
    let targets = traffic.targets(destination, setting)?;
    Ok(setting.plan(None, |rank, host| match targets.of(rank, setting) {
        Some(partners) => injection.at(setting, host, 0, partners),
        None => HostWork::default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Message, Options, Pattern, Placement, PlanContext, Workload};
    use proptest::prelude::*;

    fn workload(bernoulli: Bernoulli) -> Workload {
        Workload::new(Pattern::Bernoulli(bernoulli))
    }

    /// On 16 hosts with links of 100 Gb/s.
    fn sent(bernoulli: Bernoulli, seed: u64) -> Vec<(u32, Message)> {
        timed(&mut plan(workload(bernoulli), &network(16, 4), seed).unwrap())
    }

    proptest! {
        #[test]
        fn the_mean_load_is_the_one_asked_for(load in 0.01..1.0f64, overhead in 0..400u64, seed: u64) {
            let (frame, until) = (Bytes(850), Time::from_us(500));
            let frames = sent(Bernoulli { load, frame, overhead: Bytes(overhead), until, ..Default::default() }, seed);
            // A slot at 100 Gb/s takes 80 ps for each byte; binomial, six standard deviations and the slots cut at the end.
            let slots = 16.0 * until.0 as f64 / (80 * (850 + overhead)) as f64;
            let off = frames.len() as f64 - slots * load;
            prop_assert!(off.abs() < 6.0 * (slots * load * (1.0 - load)).sqrt() + 16.0, "{off} of {slots}");
        }
    }

    #[test]
    fn frames_begin_with_slots_at_a_phase_of_the_host() {
        let frames = sent(Bernoulli { load: 0.3, ..Default::default() }, 1);
        let slot = 1500 * 80;
        let mut phases: Vec<u64> = Vec::new();
        for pair in frames.windows(2) {
            let [(src, message), (next_src, next)] = [pair[0], pair[1]];
            if src == next_src {
                assert!(next.start > message.start && (next.start.0 - message.start.0) % slot == 0);
            } else {
                phases.push(message.start.0 % slot);
            }
        }
        phases.sort();
        phases.dedup();
        assert_eq!(phases.len(), 15);
        assert!(frames.iter().all(|(_, message)| message.stream && message.bytes == Bytes(1500)));
    }

    #[test]
    fn every_slot_is_a_trial_of_its_own() {
        // Gaps of n slots are geometric: (1 − p)^(n−1) p; and no less likely after a short gap than after a long one.
        let load = 0.4;
        let frames = sent(Bernoulli { load, until: Time::from_ms(2), ..Default::default() }, 2);
        let gaps: Vec<u64> = frames
            .windows(2)
            .filter(|pair| pair[0].0 == pair[1].0)
            .map(|pair| (pair[1].1.start.0 - pair[0].1.start.0) / 120_000)
            .collect();
        let bound = |count: f64, p: f64| 5.0 * (count * p * (1.0 - p)).sqrt();
        let all = gaps.len() as f64;
        for n in 1..6 {
            let p = (1.0f64 - load).powi(n - 1) * load;
            let found = gaps.iter().filter(|&&gap| gap == n as u64).count() as f64;
            assert!((found - all * p).abs() < bound(all, p), "{n}: {found} of {all}");
        }
        let after_one: Vec<_> = gaps.windows(2).filter(|pair| pair[0] == 1).collect();
        let again = after_one.iter().filter(|pair| pair[1] == 1).count() as f64;
        let ones = after_one.len() as f64;
        assert!((again - ones * load).abs() < bound(ones, load), "{again} of {ones}");
    }

    #[test]
    fn a_full_load_takes_every_slot() {
        let (load, until) = (1.0, Time::from_us(120));
        let frames = sent(Bernoulli { load, until, ..Default::default() }, 3);
        assert_eq!(frames.len(), 16 * 1000);
    }

    #[test]
    fn uniform_destinations_are_equally_likely() {
        let mut count = [0u32; 16];
        for (src, message) in sent(Bernoulli::default(), 4) {
            if src == 5 {
                count[message.dst as usize] += 1;
            }
        }
        assert_eq!(count[5], 0);
        // 75,000 frames to 15 hosts: 5,000 each, standard deviation 68.
        assert!(count.iter().enumerate().all(|(dst, c)| dst == 5 || (4660..5340).contains(c)), "{count:?}");
    }

    #[test]
    fn a_permutation_gives_every_host_one_destination() {
        for (traffic, silent) in [
            (Traffic::RandomPermutation, 0),
            (Traffic::Tornado, 0),
            (Traffic::BitReverse, 4),
            (Traffic::Transpose, 4),
        ] {
            let frames = sent(Bernoulli { traffic, ..Default::default() }, 5);
            let mut pairs: Vec<(u32, u32)> =
                frames.iter().map(|(src, message)| (*src, message.dst)).collect();
            pairs.dedup();
            assert_eq!(pairs.len(), 16 - silent, "{traffic:?}");
            assert!(pairs.iter().all(|(src, dst)| src != dst));
            pairs.sort_by_key(|&(_, dst)| dst);
            pairs.dedup_by_key(|&mut (_, dst)| dst);
            assert_eq!(pairs.len(), 16 - silent, "{traffic:?}");
        }
        let permutation =
            |seed| sent(Bernoulli { traffic: Traffic::RandomPermutation, ..Default::default() }, seed);
        assert_ne!(permutation(1)[0].1.dst, permutation(2)[0].1.dst);
    }

    #[test]
    fn a_map_is_one_of_ranks() {
        let mut workload = workload(Bernoulli { traffic: Traffic::Neighbour, ..Default::default() });
        workload.options = Options { ranks: Some(5), placement: Placement::Random, ..Default::default() };
        let frames = timed(&mut plan(workload, &network(16, 4), 1).unwrap());
        let mut pairs: Vec<(u32, u32)> = frames.iter().map(|(src, message)| (*src, message.dst)).collect();
        pairs.dedup();
        // A ring through the five hosts.
        let next = |host: u32| pairs.iter().find(|&&(src, _)| src == host).unwrap().1;
        let round: Vec<u32> =
            std::iter::successors(Some(pairs[0].0), |&host| Some(next(host))).take(6).collect();
        assert_eq!((round[0], pairs.len()), (round[5], 5));
        assert!(!round[1..5].contains(&round[0]));
    }

    #[test]
    fn a_host_does_not_depend_on_the_others() {
        let bernoulli =
            workload(Bernoulli { from: Time::from_us(3), until: Time::from_us(90), ..Default::default() });
        let (mut one, mut all) = (
            plan(bernoulli.clone(), &network(16, 4), 9).unwrap(),
            plan(bernoulli, &network(16, 4), 9).unwrap(),
        );
        let all = timed(&mut all);
        let only: Vec<_> = std::iter::from_fn(|| one.hosts[7].next_timed()).map(|m| (7, m)).collect();
        assert_eq!(only, all.iter().copied().filter(|&(src, _)| src == 7).collect::<Vec<_>>());
        assert_eq!(one.hosts[7].next_timed(), None);
        assert!(all.iter().all(|(_, m)| m.start >= Time::from_us(3) && m.start < Time::from_us(90)));
        assert_eq!((one.total_messages, one.groups), (None, vec!["all".to_owned()]));
    }

    #[test]
    fn senseless_parameters_are_refused() {
        for (wrong, field) in [
            (Bernoulli { load: 0.0, ..Default::default() }, "load: "),
            (Bernoulli { load: 1.01, ..Default::default() }, "load: "),
            (Bernoulli { load: f64::NAN, ..Default::default() }, "load: "),
            (Bernoulli { frame: Bytes(0), ..Default::default() }, "frame: "),
            (Bernoulli { from: Time::from_ms(10), ..Default::default() }, "until: "),
            (
                Bernoulli { traffic: Traffic::BitReverse, ..Default::default() },
                "ranks: expected a power of two",
            ),
            (
                Bernoulli {
                    traffic: Traffic::Tornado,
                    destination: Destination::OtherPod,
                    ..Default::default()
                },
                "destination: expected `any`",
            ),
        ] {
            let error = plan(workload(wrong), &network(12, 4), 1).unwrap_err().to_string();
            assert!(error.starts_with(field), "{error}");
        }
        // A frame of 2³² packets would be one of none.
        let context = PlanContext { largest_message: Bytes(4096 * 0xffff_ffff), ..PlanContext::new(1) };
        let frame = Bytes(4096 << 32);
        let large = workload(Bernoulli { frame, ..Default::default() });
        let error = large.plan(&network(12, 4), &context).unwrap_err().to_string();
        assert!(error.starts_with("frame: expected at most 17179869180KiB"), "{error}");
    }
}
