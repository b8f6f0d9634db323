//! Jellyfish: a random regular graph of switches.

use netloom_units::random;
use netloom_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::direct::DirectBuilder;
use crate::families::random_regular::{is_connected, random_regular};
use crate::families::{invalid, nearest};
use crate::network::{Network, PortId};
use crate::topology::BuildContext;

/// Jellyfish (Singla et al., NSDI 2012): a random regular graph, exactly regular and connected. The default is the
/// equivalent of FatPaths' Slim Fly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Jellyfish {
    /// Switches; `switches * degree` is even.
    pub switches: u32,
    /// Take the valid number of switches whose number of hosts is nearest to this, instead of `switches`.
    pub about_hosts: Option<u32>,
    /// Links from each switch to others (k′).
    pub degree: u32,
    /// Hosts per switch.
    pub hosts_per_switch: u32,
    /// Rate of every link that has no other rate.
    pub rate: Rate,
    /// Propagation delay of every link that has no other delay.
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    pub host_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    pub host_latency: Option<Time>,
}

impl Default for Jellyfish {
    fn default() -> Self {
        Jellyfish {
            switches: 722,
            about_hosts: None,
            degree: 29,
            hosts_per_switch: 15,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            host_rate: None,
            host_latency: None,
        }
    }
}

impl Jellyfish {
    pub(crate) fn build(
        &self,
        &BuildContext { seed, .. }: &BuildContext<'_>,
    ) -> Result<Network, NetworkError> {
        let (degree, hosts) = (self.degree, self.hosts_per_switch);
        if degree == 0 || degree > u32::from(PortId::MAX) {
            return Err(invalid("degree", "1 to 65535", degree));
        }
        let (switches, nearest_to) = match self.about_hosts {
            Some(wanted) => {
                let center = wanted / hosts.max(1);
                let near = center.saturating_sub(2).max(2).max(degree + 1)..=u32::MAX;
                let valid = near.filter(|&n| (u64::from(n) * u64::from(degree)).is_multiple_of(2)).take(4);
                let sizes = valid.map(|n| (n, u64::from(n) * u64::from(hosts)));
                (nearest(wanted.into(), sizes), format!(" nearest to {wanted} hosts"))
            }
            None => (self.switches, String::new()),
        };
        let name = format!("Jellyfish of {switches} switches, degree {degree}{nearest_to}");
        let cable = Cable { rate: self.rate, latency: self.latency };
        let host_cable = Cable::or(self.host_rate, self.host_latency, cable);
        build(&name, switches, degree, hosts, (cable, host_cable), seed)
    }
}

/// How many graphs are drawn before a connected one is given up on; from degree 3 on nearly every draw is connected.
const DRAWS: u32 = 1000;

/// Builds a connected random regular network, of cables between switches and to hosts.
pub(crate) fn build(
    name: &str,
    switches: u32,
    degree: u32,
    hosts_per_switch: u32,
    (cable, host_cable): (Cable, Cable),
    seed: u64,
) -> Result<Network, NetworkError> {
    let ends = u64::from(switches) * u64::from(degree);
    if degree == 0 || degree >= switches {
        let expected = format!("1 to {}, less than the {switches} switches", switches.saturating_sub(1));
        return Err(invalid("degree", expected, degree));
    }
    if !ends.is_multiple_of(2) {
        let expected = "an even product of switches and degree, since every link has two ends";
        return Err(invalid("switches", expected, format!("{switches} switches of degree {degree}")));
    }
    let mut direct =
        DirectBuilder::new(name, switches.into(), hosts_per_switch, ends / 2, host_cable, |_| 0)?;
    let mut rng = random::network(seed);
    let draw = (0..DRAWS)
        .find_map(|_| random_regular(switches, degree, &mut rng).filter(|e| is_connected(switches, e)));
    let Some(edges) = draw else {
        let expected = format!("a degree for which one of {DRAWS} random graphs is connected");
        return Err(invalid("degree", expected, degree));
    };
    let tier = direct.tier("switch");
    direct.edges(edges, cable, tier);
    direct.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    fn small(switches: u32, degree: u32) -> Jellyfish {
        Jellyfish { switches, degree, hosts_per_switch: 2, ..Default::default() }
    }

    #[test]
    fn a_seed_means_one_graph() {
        assert_eq!(small(40, 5).build(&context(7)).unwrap(), small(40, 5).build(&context(7)).unwrap());
        assert_ne!(small(40, 5).build(&context(7)).unwrap(), small(40, 5).build(&context(8)).unwrap());
    }

    #[test]
    fn sparse_and_dense_extremes_exist() {
        for (switches, degree) in [(2, 1), (9, 2), (50, 3), (50, 47), (50, 48), (50, 49)] {
            let graph = small(switches, degree).build(&context(1)).unwrap().router_graph();
            assert!(
                (0..switches).all(|r| graph.neighbours(r).len() as u32 == degree),
                "{switches}, {degree}"
            );
        }
    }

    #[test]
    fn impossible_degrees_are_refused() {
        let error = |switches, degree| small(switches, degree).build(&context(1)).unwrap_err().to_string();
        assert!(error(21, 3).starts_with("switches: expected an even product"));
        assert!(error(4, 4).starts_with("degree: expected 1 to 3"));
        assert!(error(20, 0).starts_with("degree: expected 1 to 65535"));
        assert!(error(20, 1).contains("is connected"));
        assert!(error(4_000_000_000, 1000).contains("GiB"));
    }

    #[test]
    fn sizes_near_a_number_of_hosts_are_valid() {
        let config =
            Jellyfish { about_hosts: Some(1000), degree: 5, hosts_per_switch: 3, ..Default::default() };
        assert_eq!(config.build(&context(1)).unwrap().switches(), 334);
        assert_eq!(Jellyfish { about_hosts: Some(1), ..config }.build(&context(1)).unwrap().switches(), 6);
    }
}
