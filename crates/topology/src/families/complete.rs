//! The complete graph: a link between any two switches.

use netloom_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::direct::DirectBuilder;
use crate::families::{at_least, nearest};
use crate::network::Network;
use crate::topology::BuildContext;

/// Complete graph (clique): every switch linked to every other; the default is that of FatPaths, Table IV.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Complete {
    /// Switches (k′ + 1).
    pub switches: u32,
    /// Take the number of switches whose number of hosts is nearest to this, instead of `switches`.
    pub about_hosts: Option<u32>,
    /// Hosts per switch; k′ if absent.
    pub hosts_per_switch: Option<u32>,
    /// Rate of every link that has no other rate.
    pub rate: Rate,
    /// Propagation delay of every link that has no other delay.
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    pub host_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    pub host_latency: Option<Time>,
}

impl Default for Complete {
    fn default() -> Self {
        Complete {
            switches: 101,
            about_hosts: None,
            hosts_per_switch: None,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            host_rate: None,
            host_latency: None,
        }
    }
}

impl Complete {
    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let hosts_per_switch = |switches: u32| self.hosts_per_switch.unwrap_or(switches - 1);
        let (switches, nearest_to) = match self.about_hosts {
            Some(wanted) => {
                let hosts = |switches| u64::from(switches) * u64::from(hosts_per_switch(switches));
                let switches =
                    nearest(wanted.into(), (2..65_536).map(|switches| (switches, hosts(switches))));
                (switches, format!(" nearest to {wanted} hosts"))
            }
            None => (self.switches, String::new()),
        };
        at_least("switches", switches, 2)?;
        let name = format!("complete graph of {switches} switches{nearest_to}");
        let edges = u64::from(switches) * u64::from(switches - 1) / 2;
        let cable = Cable { rate: self.rate, latency: self.latency };
        let host_cable = Cable::or(self.host_rate, self.host_latency, cable);
        let mut direct =
            DirectBuilder::new(&name, switches.into(), hosts_per_switch(switches), edges, host_cable, |_| 0)?;
        let tier = direct.tier("switch");
        for one in 0..switches {
            direct.edges((one + 1..switches).map(|other| (one, other)), cable, tier);
        }
        direct.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    #[test]
    fn the_clique_has_the_published_size() {
        let network = Complete::default().build(&context(1)).unwrap();
        assert_eq!(
            (network.hosts(), network.switches(), network.links().len()),
            (10_100, 101, 10_100 + 5050)
        );
        let near = Complete { about_hosts: Some(1000), ..Default::default() }.build(&context(1)).unwrap();
        assert_eq!((near.switches(), near.hosts()), (32, 992));
        assert!(Complete { switches: 1, ..Default::default() }.build(&context(1)).is_err());
    }
}
