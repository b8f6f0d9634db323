//! Every host sends to one other host and receives from one.

use netloom_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::partners::send_to_partners;
use crate::plan::{Plan, Setting};
use crate::random::Work;
use crate::{Destination, Map, Size, WorkloadError};

/// A permutation: every host sends to one other host and receives from one. By default a random one without fixed points
/// (Flowcut, evaluation: "each node sends to another node, at most one partner").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Permutation {
    /// Size of the messages.
    pub size: Size,
    /// Which permutation: `random`, or one of Dally and Towles (Principles and Practices of Interconnection Networks,
    /// section 3.2): `bit-complement`, `bit-reverse`, `bit-rotation`, `perfect-shuffle` and `transpose` for powers of
    /// two, `tornado` (⌈N/2⌉ − 1 ranks on) and `neighbour` (the next rank) for any number N of ranks. A rank that is its
    /// own image idles.
    pub map: Map,
    /// Permutations that run at the same time, each host sending to this many partners at once.
    pub parallel: u32,
    /// Messages to the same partner, one after the other.
    pub repeat: u32,
    /// Which partners are allowed: `any`, `other-rack` or `other-pod`.
    pub destination: Destination,
}

impl Default for Permutation {
    fn default() -> Self {
        Permutation {
            size: Bytes(8 << 20).into(),
            map: Map::Random,
            parallel: 1,
            repeat: 1,
            destination: Destination::Any,
        }
    }
}

impl Permutation {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        if self.parallel == 0 {
            return Err(WorkloadError::parameter("parallel", "at least 1", 0));
        }
        if self.parallel > 1 && self.map != Map::Random {
            let expected = "1, since the map gives every host one partner";
            return Err(WorkloadError::parameter("parallel", expected, self.parallel));
        }
        let mut partners = vec![Vec::new(); setting.placed.len()];
        let mut rng = Work::Partners.stream(setting.context.seed, 0);
        for _ in 0..self.parallel {
            let targets = self.map.targets(self.destination, setting, &mut rng)?;
            for (rank, (partners, target)) in (0..).zip(partners.iter_mut().zip(targets)) {
                partners.extend((target != rank).then_some(target));
            }
        }
        send_to_partners(setting, &self.size, self.repeat, &partners)
    }
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
    fn a_map_gives_each_host_one_partner_and_leaves_fixed_points_idle() {
        let pattern =
            Pattern::Permutation(Permutation { map: Map::BitReverse, repeat: 2, ..Default::default() });
        let mut plan = plan(Workload::new(pattern), &network(8, 2), 1).unwrap();
        assert_eq!(plan.total_messages, Some(8));
        let sent: Vec<_> = timed(&mut plan).into_iter().map(|(src, message)| (src, message.dst)).collect();
        assert_eq!(sent, [(1, 4), (3, 6), (4, 1), (6, 3)]);
    }

    #[test]
    fn what_a_map_decides_is_not_chosen_twice() {
        let map = Map::Tornado;
        for (wrong, field) in [
            (Permutation { map, parallel: 2, ..Default::default() }, "parallel: expected 1"),
            (Permutation { map, destination: Destination::OtherRack, ..Default::default() }, "destination: "),
        ] {
            let error = plan(Workload::new(Pattern::Permutation(wrong)), &network(8, 2), 1).unwrap_err();
            assert!(error.to_string().starts_with(field), "{error}");
        }
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
