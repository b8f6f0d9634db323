//! Hosts of switches that lie far apart send to each other.

use netloom_topology::longest_matching;
use netloom_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::partners::send_to_partners;
use crate::plan::{Plan, Setting};
use crate::{Size, WorkloadError};

/// Worst-case traffic (Jyothi et al., SC 2016; FatPaths, SC 2020, as TopoBench computes it): hosts of switches that are far apart send to
/// each other. Edge switches are matched so that the sum of their distances is largest; the first host of one switch exchanges messages
/// with the first of the other, and so on. The same switches as in `netloom throughput` with the traffic of this name. Servers with several
/// NICs take part as hosts do, where all NICs of each are at one switch. With `placement = "random"` the collisions dissolve.
///
/// Refused with `ranks` that leave hosts out: all hosts take part in the matching.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorstCase {
    /// Share of the edge switches that communicate, above 0 and at most 1 (FatPaths, Fig. 9: 0.55).
    pub intensity: f64,
    /// Which of the matchings that are equally long: 0 and others from 2 on draw one by the seed, 1 takes the switches in the order of their numbers.
    pub variant: u32,
    /// Size of the messages.
    pub size: Size,
    /// Messages to the same partner, one after the other.
    pub repeat: u32,
}

impl Default for WorstCase {
    fn default() -> Self {
        WorstCase { intensity: 0.55, variant: 0, size: Bytes(1 << 20).into(), repeat: 1 }
    }
}

impl WorstCase {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        if !(self.intensity > 0.0 && self.intensity <= 1.0) {
            let expected = "a number above 0 and at most 1";
            return Err(WorkloadError::parameter("intensity", expected, self.intensity));
        }
        let network = setting.network;
        let rails = setting.endpoints.rails;
        let (count, what) = rails.map_or((network.hosts(), "hosts"), |rails| (rails.endpoints(), "servers"));
        if setting.ranks() != count {
            let expected = format!("all {count} {what} as ranks, as their switches are what is matched");
            return Err(WorkloadError::parameter("pattern", expected, setting.ranks()));
        }
        let nics = rails.map_or(1, |rails| rails.rails());
        let mut hosts = vec![Vec::new(); network.switches() as usize];
        for host in 0..count {
            let nic = |rail| network.edge_switch(rails.map_or(host, |rails| rails.host(host, rail)));
            let is_bonded = rails.is_some_and(|rails| rails.bond().is_some());
            if is_bonded || (1..nics).any(|rail| nic(rail) != nic(0)) {
                let expected = "another pattern where a server's NICs are at several switches: what it matches are the switches of hosts";
                return Err(WorkloadError::parameter("kind", expected, "\"worst-case\""));
            }
            hosts[(nic(0) - network.hosts()) as usize].push(host);
        }
        let mut partners = vec![Vec::new(); count as usize];
        let matching =
            longest_matching(&network.router_graph(), self.intensity, setting.context.seed, self.variant);
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
    use crate::{Options, Pattern, PlanContext, Servers, Wiring, Workload};
    use netloom_topology::{BuildContext, HyperX, Network, Topology};
    use std::path::Path;
    use std::sync::Arc;

    /// Four switches in a square, this many hosts each.
    fn square_of(hosts: u32) -> Network {
        let square = HyperX {
            dimensions: 2,
            switches_per_dimension: vec![2, 2],
            hosts_per_switch: Some(hosts),
            ..HyperX::default()
        };
        Topology::HyperX(square).build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
    }

    fn square() -> Network {
        square_of(3)
    }

    fn build(worst: WorstCase, options: Options) -> Result<Plan, WorkloadError> {
        plan(Workload { pattern: Pattern::WorstCase(worst), options }, &square(), 1)
    }

    #[test]
    fn hosts_of_opposite_switches_send_to_each_other_one_by_one() {
        for variant in 0..4 {
            let worst = WorstCase { intensity: 1.0, variant, ..WorstCase::default() };
            let sent = partners(&mut build(worst, Options::default()).unwrap());
            // Switches 0 and 3, 1 and 2 lie two hops apart.
            let far = |host: u32| (3 - host / 3) * 3 + host % 3;
            assert_eq!(sent, (0..12).map(|host| (host, far(host))).collect::<Vec<_>>());
        }
    }

    #[test]
    fn servers_send_to_servers_of_the_opposite_switch_if_each_is_at_one() {
        let build = |wiring| {
            let network = square_of(6);
            let servers = Servers { nics: 2, wiring, ..Servers::default() };
            let rails = servers.build(&network, 1).unwrap();
            let context = PlanContext { rails: Some(Arc::new(rails)), ..PlanContext::new(1) };
            let worst = WorstCase { intensity: 1.0, ..WorstCase::default() };
            Workload { pattern: Pattern::WorstCase(worst), options: Options::default() }
                .plan(&network, &context)
        };
        let sent = partners(&mut build(Wiring::SideBySide).unwrap());
        let far = |server: u32| (3 - server / 3) * 3 + server % 3;
        assert_eq!(sent, (0..12).map(|server| (server, far(server))).collect::<Vec<_>>());
        let error = build(Wiring::RailOptimised).unwrap_err().to_string();
        assert!(error.contains("where a server's NICs are at several switches"), "{error}");
    }

    #[test]
    fn half_of_the_switches_may_be_idle() {
        let half = WorstCase { intensity: 0.5, ..WorstCase::default() };
        assert_eq!(partners(&mut build(half, Options::default()).unwrap()).len(), 6);
    }

    #[test]
    fn what_names_no_matching_is_refused() {
        for intensity in [0.0, 1.5, f64::NAN] {
            let error = build(WorstCase { intensity, ..WorstCase::default() }, Options::default());
            assert!(error.unwrap_err().to_string().contains("intensity"));
        }
        // Two of four switches are the least that can be matched.
        assert!(build(WorstCase { intensity: 0.4, ..WorstCase::default() }, Options::default()).is_err());
        let few = Options { ranks: Some(6), ..Options::default() };
        let error = build(WorstCase::default(), few).unwrap_err().to_string();
        assert!(error.contains("all 12 hosts as ranks"), "{error}");
    }
}
