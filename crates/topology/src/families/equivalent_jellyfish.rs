//! The Jellyfish that is built from the same equipment as another network.

use netloom_units::{Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::jellyfish;
use crate::network::Network;
use crate::topology::{BuildContext, Topology};

/// The Jellyfish with the same numbers of switches and ports as another network (FatPaths, section IV, "X-JF").
///
/// Where all switches of the other network are alike, hosts per switch p and degree k′ are taken over. Where they are
/// not, as in fat trees, its switches of the largest radix k become k = p + k′ with k′/p about 4, i.e. p = k/5 rounded:
/// the only split that reproduces FatPaths' Table IV for its fat tree (k = 36: p = 7, k′ = 29).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EquivalentJellyfish {
    /// The other network: a table with its `kind` and parameters.
    pub of: Box<Topology>,
    /// Hosts per switch instead of the rule above; the degree is what remains of the radix.
    #[serde(default)]
    pub hosts_per_switch: Option<u32>,
    /// Rate of links between switches.
    #[serde(default = "default_rate")]
    pub rate: Rate,
    /// Propagation delay of links between switches.
    #[serde(default = "default_latency")]
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    #[serde(default)]
    pub host_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    #[serde(default)]
    pub host_latency: Option<Time>,
}

fn default_rate() -> Rate {
    Cable::DEFAULT.rate
}

fn default_latency() -> Time {
    Cable::DEFAULT.latency
}

impl EquivalentJellyfish {
    /// The Jellyfish that is equivalent to a network, with default rates.
    pub fn new(of: Topology) -> Self {
        EquivalentJellyfish {
            of: Box::new(of),
            hosts_per_switch: None,
            rate: default_rate(),
            latency: default_latency(),
            host_rate: None,
            host_latency: None,
        }
    }

    pub(crate) fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let other = self.of.build(context)?;
        let (hosts, degree) = self.split_ports(&other);
        let other_name =
            other.name().rsplit_once(": ").map_or(other.name(), |(without_hosts, _)| without_hosts);
        let name = format!(
            "Jellyfish of {} switches, degree {degree}, equivalent to {other_name}",
            other.switches()
        );
        let cable = Cable { rate: self.rate, latency: self.latency };
        let host_cable = Cable::or(self.host_rate, self.host_latency, cable);
        jellyfish::build(&name, other.switches(), degree, hosts, (cable, host_cable), context.seed)
    }

    /// Hosts per switch and degree.
    fn split_ports(&self, other: &Network) -> (u32, u32) {
        let graph = other.router_graph();
        let ports = |router| (graph.hosts(router), narrow::<u32>(graph.neighbours(router).len()));
        let all_alike = (0..graph.routers()).all(|router| ports(router) == ports(0));
        let radix = (0..graph.routers()).map(|router| ports(router).0 + ports(router).1).max().unwrap_or(0);
        let hosts = match self.hosts_per_switch {
            Some(hosts) => hosts,
            None if all_alike => ports(0).0,
            None => ((radix + 2) / 5).max(1),
        };
        let degree = radix.saturating_sub(hosts);
        // One port stays empty where an odd number of switches has odd degree.
        let odd = (u64::from(graph.routers()) * u64::from(degree)) % 2 == 1;
        (hosts, degree - u32::from(odd && degree > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Network {
        let config: EquivalentJellyfish = toml::from_str(text).unwrap();
        config.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap()
    }

    #[test]
    fn regular_networks_keep_their_ports() {
        let network = of("of = { kind = 'slim-fly', q = 5 }");
        assert_eq!((network.switches(), network.hosts()), (50, 200));
        assert_eq!(
            network.name(),
            "Jellyfish of 50 switches, degree 7, equivalent to Slim Fly q = 5: 200 hosts"
        );
    }

    #[test]
    fn the_published_fat_tree_becomes_the_published_jellyfish() {
        let network = of("of = { kind = 'fat-tree', preset = 'fatpaths-11664' }");
        assert_eq!((network.switches(), network.hosts()), (1620, 11_340));
        assert_eq!(network.ports(network.hosts()).len(), 36);
    }

    #[test]
    fn an_unknown_kind_is_named() {
        let error = toml::from_str::<EquivalentJellyfish>("of = { kind = 'tours' }").unwrap_err().to_string();
        assert!(error.contains("unknown variant `tours`"), "{error}");
    }
}
