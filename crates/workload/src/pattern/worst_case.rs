//! Hosts of switches that lie far apart send to each other.

use netloom_topology::longest_matching;
use netloom_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::partners::send_to_partners;
use crate::plan::{Plan, Setting};
use crate::{Size, WorkloadError};

/// Worst-case traffic (Jyothi et al., SC 2016; FatPaths, SC 2020, as TopoBench computes it): edge switches are matched so that the sum of their distances is
/// largest, and the hosts of matched switches send to each other, the first to the first and so on, both ways. The same switches as in
/// `netloom throughput` with the traffic of this name. With `placement = "random"` the collisions dissolve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorstCase {
    /// Share of the edge switches that communicate, above 0 and at most 1 (FatPaths, Fig. 9: 0.55).
    pub intensity: f64,
    /// Which of the matchings that are equally long: 0 and others from 2 on draw one by the seed, 1 takes the switches in the order of their numbers.
    pub draw: u32,
    /// Size of the messages.
    pub size: Size,
    /// Messages to the same partner, one after the other.
    pub repeat: u32,
}

impl Default for WorstCase {
    fn default() -> Self {
        WorstCase { intensity: 0.55, draw: 0, size: Bytes(1 << 20).into(), repeat: 1 }
    }
}

impl WorstCase {
    pub(super) fn lay(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        if !(self.intensity > 0.0 && self.intensity <= 1.0) {
            let expected = "a number above 0 and at most 1";
            return Err(WorkloadError::parameter("intensity", expected, self.intensity));
        }
        let network = setting.network;
        if setting.endpoints.rails.is_some() {
            let expected =
                "another pattern with `servers`: what it matches are the switches of single hosts;";
            return Err(WorkloadError::parameter("kind", expected, "\"worst-case\""));
        }
        if setting.ranks() != network.hosts() {
            let expected =
                format!("all {} hosts as ranks, as their switches are what is matched", network.hosts());
            return Err(WorkloadError::parameter("pattern", expected, setting.ranks()));
        }
        let mut hosts = vec![Vec::new(); network.switches() as usize];
        (0..network.hosts())
            .for_each(|host| hosts[(network.edge_switch(host) - network.hosts()) as usize].push(host));
        let mut partners = vec![Vec::new(); network.hosts() as usize];
        let matching =
            longest_matching(&network.router_graph(), self.intensity, setting.context.seed, self.draw);
        if matching.pairs.is_empty() {
            let expected = "hosts at two or more switches, and a share that is at least two of these";
            return Err(WorkloadError::parameter("intensity", expected, self.intensity));
        }
        for (a, b) in matching.pairs {
            for (&one, &other) in hosts[a as usize].iter().zip(&hosts[b as usize]) {
                partners[one as usize].push(other);
                partners[other as usize].push(one);
            }
        }
        send_to_partners(setting, &self.size, self.repeat, &partners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{partners, plan};
    use crate::{Options, Pattern, Workload};
    use netloom_topology::{BuildContext, HyperX, Network, Topology};
    use std::path::Path;

    /// Four switches in a square, three hosts each.
    fn square() -> Network {
        let square = HyperX {
            dimensions: 2,
            switches_per_dimension: vec![2, 2],
            hosts_per_switch: Some(3),
            ..HyperX::default()
        };
        Topology::HyperX(square).build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
    }

    fn lay(worst: WorstCase, options: Options) -> Result<Plan, WorkloadError> {
        plan(Workload { pattern: Pattern::WorstCase(worst), options }, &square(), 1)
    }

    #[test]
    fn hosts_of_opposite_switches_send_to_each_other_one_by_one() {
        for draw in 0..4 {
            let worst = WorstCase { intensity: 1.0, draw, ..WorstCase::default() };
            let sent = partners(&mut lay(worst, Options::default()).unwrap());
            // Switches 0 and 3, 1 and 2 lie two hops apart.
            let far = |host: u32| (3 - host / 3) * 3 + host % 3;
            assert_eq!(sent, (0..12).map(|host| (host, far(host))).collect::<Vec<_>>());
        }
    }

    #[test]
    fn half_of_the_switches_may_be_idle() {
        let half = WorstCase { intensity: 0.5, ..WorstCase::default() };
        assert_eq!(partners(&mut lay(half, Options::default()).unwrap()).len(), 6);
    }

    #[test]
    fn what_names_no_matching_is_refused() {
        for intensity in [0.0, 1.5, f64::NAN] {
            let error = lay(WorstCase { intensity, ..WorstCase::default() }, Options::default());
            assert!(error.unwrap_err().to_string().contains("intensity"));
        }
        // Two of four switches are the least that can be matched.
        assert!(lay(WorstCase { intensity: 0.4, ..WorstCase::default() }, Options::default()).is_err());
        let few = Options { ranks: Some(6), ..Options::default() };
        let error = lay(WorstCase::default(), few).unwrap_err().to_string();
        assert!(error.contains("all 12 hosts as ranks"), "{error}");
    }
}
