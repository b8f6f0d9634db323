//! One switch and its hosts.

use netloom_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::at_least;
use crate::network::{Network, NetworkBuilder};
use crate::size::Size;
use crate::topology::BuildContext;

/// One ideal switch with all hosts on it (a star): the reference of Crisan et al. and FatPaths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Crossbar {
    /// Number of hosts.
    pub hosts: u32,
    /// Rate of every link.
    pub rate: Rate,
    /// Propagation delay of every link.
    pub latency: Time,
}

impl Default for Crossbar {
    fn default() -> Self {
        Crossbar { hosts: 60, rate: Cable::DEFAULT.rate, latency: Cable::DEFAULT.latency }
    }
}

impl Crossbar {
    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        at_least("hosts", self.hosts, 2)?;
        Size { hosts: self.hosts.into(), switches: 1, links: self.hosts.into() }.check()?;
        let mut builder = NetworkBuilder::new(format!("crossbar: {} hosts", self.hosts));
        let hosts = builder.add_hosts(self.hosts);
        let switch = builder.add_switch(1, 0);
        let tier = builder.tier("host");
        for host in hosts {
            builder.link(host, switch, self.rate, self.latency, tier);
        }
        // A fat tree of one level.
        builder.up_strides(vec![1]);
        builder.build()
    }
}
