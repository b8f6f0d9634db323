//! Every host sends to one other host and receives from one.

use netloom_units::Bytes;
use rand_pcg::Pcg64Mcg;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::partners::send_to_partners;
use crate::options::Destinations;
use crate::plan::{Plan, Setting};
use crate::random::{Purpose, RngExt, shuffle, stream};
use crate::{Destination, Size, WorkloadError};

/// A random permutation without fixed points: every host sends to one other host and receives from one
/// (Flowcut, evaluation: "each node sends to another node, at most one partner").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Permutation {
    /// Size of the messages.
    pub size: Size,
    /// Permutations that run at the same time, each host sending to this many partners at once.
    pub parallel: u32,
    /// Messages to the same partner, one after the other.
    pub repeat: u32,
    /// Which partners are allowed: `any`, `other-rack` or `other-pod`.
    pub destination: Destination,
}

impl Default for Permutation {
    fn default() -> Self {
        Permutation { size: Bytes(8 << 20).into(), parallel: 1, repeat: 1, destination: Destination::Any }
    }
}

impl Permutation {
    pub(super) fn lay(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let allowed = Destinations::new(self.destination, setting.network, &setting.placed)?;
        let (largest, ranks) = (allowed.largest_class(), setting.ranks());
        if u64::from(largest) * 2 > u64::from(ranks) {
            let expected =
                "no rack (pod) with more than half of the hosts, or its hosts have no free partner";
            return Err(WorkloadError::parameter(
                "destination",
                expected,
                format!("{largest} of {ranks} hosts"),
            ));
        }
        if self.parallel == 0 {
            return Err(WorkloadError::parameter("parallel", "at least 1", 0));
        }
        let mut partners = vec![Vec::new(); ranks as usize];
        let mut rng = stream(setting.context.seed, Purpose::Partners, 0);
        for _ in 0..self.parallel {
            for (partners, target) in partners.iter_mut().zip(permute(&allowed, ranks, &mut rng)) {
                partners.push(target);
            }
        }
        send_to_partners(setting, &self.size, self.repeat, &partners)
    }
}

/// A random permutation that maps no rank into its own class.
///
/// A uniform permutation is drawn and then repaired: a rank `i` of class `c` that stayed in `c` swaps targets with a
/// random rank `j` outside of `c` whose target is outside of `c`, which breaks nothing. Such a `j` exists as long as
/// `c` holds at most half of the ranks: with `k` ranks that stayed in `c` there are `ranks − 2|c| + k ≥ k` of them.
fn permute(allowed: &Destinations, ranks: u32, rng: &mut Pcg64Mcg) -> Vec<u32> {
    let mut target: Vec<u32> = (0..ranks).collect();
    shuffle(&mut target, rng);
    for i in 0..ranks {
        if !allowed.same_class(i, target[i as usize]) {
            continue;
        }
        let first = rng.random_range(0..ranks);
        let fits = |&j: &u32| !allowed.same_class(i, j) && !allowed.same_class(i, target[j as usize]);
        let j =
            (first..ranks).chain(0..first).find(fits).expect("no class holds more than half of the ranks");
        target.swap(i as usize, j as usize);
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Message, Options, Pattern, Placement, Workload};
    use netloom_units::Time;
    use proptest::prelude::*;

    fn targets(hosts: u32, per_rack: u32, destination: Destination, seed: u64) -> Vec<u32> {
        let pattern = Pattern::Permutation(Permutation { destination, ..Default::default() });
        let mut plan = plan(Workload::new(pattern), &network(hosts, per_rack), seed).unwrap();
        assert_eq!(plan.total_messages, Some(u64::from(hosts)));
        timed(&mut plan).into_iter().map(|(_, message)| message.dst).collect()
    }

    proptest! {
        #[test]
        fn every_host_has_one_partner_each_way_outside_of_its_class(
            racks in 2..8u32, per_rack in 1..6u32, seed: u64, constrained: bool,
        ) {
            let rule = if constrained { Destination::OtherRack } else { Destination::Any };
            let targets = targets(racks * per_rack, per_rack, rule, seed);
            let mut sorted = targets.clone();
            sorted.sort();
            prop_assert_eq!(sorted, (0..racks * per_rack).collect::<Vec<_>>());
            for (host, target) in (0..).zip(targets) {
                prop_assert_ne!(host, target);
                prop_assert!(!constrained || host / per_rack != target / per_rack);
            }
        }
    }

    #[test]
    fn the_seed_decides_the_partners() {
        assert_eq!(targets(64, 4, Destination::Any, 1), targets(64, 4, Destination::Any, 1));
        assert_ne!(targets(64, 4, Destination::Any, 1), targets(64, 4, Destination::Any, 2));
    }

    #[test]
    fn every_partner_is_equally_likely() {
        // 4,000 draws of one host's partner among 7: 571 expected, standard deviation 22.
        let mut count = [0u32; 8];
        for seed in 0..4000 {
            count[targets(8, 2, Destination::Any, seed)[0] as usize] += 1;
        }
        assert_eq!(count[0], 0);
        assert!(count[1..].iter().all(|&c| (461..=681).contains(&c)), "{count:?}");
    }

    #[test]
    fn repeated_messages_follow_each_other() {
        let pattern = Pattern::Permutation(Permutation { repeat: 3, ..Default::default() });
        let mut plan = plan(Workload::new(pattern), &network(8, 2), 1).unwrap();
        assert_eq!(plan.total_messages, Some(24));
        let host = &mut plan.hosts[5];
        let first = host.next_timed().unwrap();
        assert_eq!((first.start, host.next_timed()), (Time::ZERO, None));
        for start in [Time::from_us(9), Time::from_us(10)] {
            assert_eq!(host.next_closed(start, 0), Some(Message { start, ..first }));
        }
        assert_eq!(host.next_closed(Time::from_us(11), 0), None);
    }

    #[test]
    fn parallel_permutations_load_every_receiver_alike() {
        let pattern = Pattern::Permutation(Permutation { parallel: 4, ..Default::default() });
        let mut plan = plan(Workload::new(pattern), &network(8, 2), 1).unwrap();
        assert_eq!(plan.total_messages, Some(32));
        let mut received = [0; 8];
        timed(&mut plan).iter().for_each(|(_, message)| received[message.dst as usize] += 1);
        assert_eq!(received, [4; 8]);
    }

    #[test]
    fn jitter_delays_the_first_message_only() {
        let workload = Workload {
            pattern: Pattern::Permutation(Permutation { repeat: 2, ..Default::default() }),
            options: Options {
                start_jitter: Time::from_us(5),
                placement: Placement::Random,
                ranks: Some(6),
                class: 7,
            },
        };
        let mut plan = plan(workload, &network(8, 2), 1).unwrap();
        let idle = plan.hosts.iter_mut().filter_map(|host| {
            let message = host.next_timed()?;
            assert!(message.start > Time::ZERO && message.start <= Time::from_us(5) && message.class == 7);
            assert_eq!(host.next_timed(), None);
            assert!(host.next_closed(Time::from_us(20), 0).is_some());
            assert!(host.next_closed(Time::from_us(30), 0).is_none());
            Some(())
        });
        assert_eq!(idle.count(), 6);
    }

    #[test]
    fn a_rack_with_most_of_the_hosts_is_refused() {
        let pattern =
            Pattern::Permutation(Permutation { destination: Destination::OtherRack, ..Default::default() });
        let error = plan(Workload::new(pattern.clone()), &network(5, 3), 1).unwrap_err().to_string();
        assert!(error.contains("3 of 5 hosts"), "{error}");
        let error = plan(Workload::new(pattern), &network(5, 5), 1).unwrap_err().to_string();
        assert!(error.contains("at least two edge switches"), "{error}");
    }
}
