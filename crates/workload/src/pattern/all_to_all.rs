//! Every host sends one message to every other.

use std::sync::Arc;

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed::{Closed, Partners, Tour};
use crate::plan::{HostWork, Plan, Setting};
use crate::random::{RngExt, Work};
use crate::{Size, WorkloadError};

/// All-to-all: every host sends one message to every other, a few at a time (the defaults are those of the Flowcut
/// artefact).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AllToAll {
    /// Size of the messages.
    pub size: Size,
    /// Messages that each host keeps in flight.
    pub window: u32,
    /// In which order a host visits the others: `direct` or `random`.
    pub order: Order,
}

/// In which order a host visits the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Rank r sends to r + 1, r + 2, and so on, mod N.
    Direct,
    /// Every rank has a random order of its own.
    Random,
}

impl Default for AllToAll {
    fn default() -> Self {
        AllToAll { size: Bytes(900_000).into(), window: 4, order: Order::Random }
    }
}

impl AllToAll {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        if self.window == 0 {
            return Err(WorkloadError::parameter("window", "at least 1", 0));
        }
        let size = self.size.sampler(setting.context)?;
        let hosts: Arc<[_]> = setting.placed.as_slice().into();
        let others = u64::from(setting.ranks() - 1);
        Ok(setting.plan(Some(u64::from(setting.ranks()) * others), |rank, host| {
            let mut rng = Work::Host.stream(setting.context.seed, host);
            let key = (self.order == Order::Random).then(|| rng.random());
            let tour = Tour::new(hosts.clone(), rank, key);
            let work = Closed {
                rng,
                size: size.clone(),
                partners: Partners::Tour(tour),
                left: others,
                until: Time::MAX,
                window: self.window,
            };
            HostWork::closed(work, setting.first_start(host))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan};
    use crate::{Pattern, Workload};
    use proptest::prelude::*;

    fn visits(order: Order, hosts: u32, seed: u64, host: usize) -> Vec<u32> {
        let pattern = Pattern::AllToAll(AllToAll { order, ..Default::default() });
        let mut plan = plan(Workload::new(pattern), &network(hosts, hosts), seed).unwrap();
        let work = &mut plan.hosts[host];
        let mut visited: Vec<u32> = std::iter::from_fn(|| Some(work.next_timed()?.dst)).collect();
        assert_eq!(visited.len(), 4.min(hosts as usize - 1));
        visited.extend(std::iter::from_fn(|| Some(work.next_closed(Time::ZERO, 0)?.dst)));
        visited
    }

    #[test]
    fn the_direct_order_goes_round() {
        assert_eq!(visits(Order::Direct, 6, 1, 4), [5, 0, 1, 2, 3]);
    }

    #[test]
    fn random_orders_differ_between_hosts_and_seeds() {
        let offsets = |seed, host: usize| -> Vec<u32> {
            visits(Order::Random, 64, seed, host).iter().map(|to| (to + 64 - host as u32) % 64).collect()
        };
        assert_ne!(offsets(1, 0), offsets(1, 1));
        assert_ne!(offsets(1, 0), offsets(2, 0));
    }

    #[test]
    fn every_order_begins_anywhere() {
        // First visits of one host over 7,000 seeds: 1,000 expected at each of 7, standard deviation 29.
        let mut count = [0u32; 8];
        for seed in 0..7000 {
            count[visits(Order::Random, 8, seed, 0)[0] as usize] += 1;
        }
        assert!(count[1..].iter().all(|c| (850..1150).contains(c)), "{count:?}");
    }

    proptest! {
        #[test]
        fn every_other_host_is_visited_once(hosts in 2..200u32, seed: u64, direct: bool, host: prop::sample::Index) {
            let host = host.index(hosts as usize);
            let order = if direct { Order::Direct } else { Order::Random };
            let mut visited = visits(order, hosts, seed, host);
            visited.sort();
            prop_assert_eq!(visited, (0..hosts).filter(|&other| other != host as u32).collect::<Vec<_>>());
        }
    }
}
