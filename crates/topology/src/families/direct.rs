//! Direct networks: every switch carries the same number of hosts.

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::at_least;
use crate::network::{Dimension, Network, NetworkBuilder, TierId};
use crate::size::Size;
use netloom_units::narrow;

/// A direct network being wired: switches are numbered from 0 here, and switch s has hosts `s·p..(s + 1)·p` at its
/// first ports.
pub(crate) struct DirectBuilder {
    builder: NetworkBuilder,
    first_switch: u32,
}

impl DirectBuilder {
    /// Checks the size, then adds the switches and their hosts. `pod` gives the pod of each switch.
    pub(crate) fn new(
        name: &str,
        switches: u64,
        hosts_per_switch: u32,
        edges: u64,
        host_cable: Cable,
        pod: impl Fn(u32) -> u32,
    ) -> Result<Self, NetworkError> {
        let hosts = Self::check(switches, hosts_per_switch, edges)?;
        let mut builder = NetworkBuilder::new(format!("{name}: {hosts} hosts"));
        let first_switch = builder.add_hosts(narrow::<u32>(hosts)).end;
        let tier = builder.tier("host");
        for switch in 0..narrow::<u32>(switches) {
            builder.add_switch(0, pod(switch));
        }
        for host in 0..narrow::<u32>(hosts) {
            let switch = first_switch + host / hosts_per_switch;
            builder.link(host, switch, host_cable.rate, host_cable.latency, tier);
        }
        Ok(DirectBuilder { builder, first_switch })
    }

    /// Checks the size, and returns the number of hosts.
    pub(crate) fn check(switches: u64, hosts_per_switch: u32, edges: u64) -> Result<u64, NetworkError> {
        at_least("hosts_per_switch", hosts_per_switch, 1)?;
        let hosts = switches.saturating_mul(hosts_per_switch.into());
        Size { hosts, switches, links: hosts.saturating_add(edges) }.check()?;
        Ok(hosts)
    }

    /// The id of a tier of links between switches.
    pub(crate) fn tier(&mut self, name: &str) -> TierId {
        self.builder.tier(name)
    }

    /// The id of a tier of links along a dimension of a grid.
    pub(crate) fn dimension_tier(&mut self, name: &str, dimension: Dimension) -> TierId {
        let tier = self.builder.tier(name);
        self.builder.dimension(tier, dimension);
        tier
    }

    /// The id of a tier of links of which minimal paths cross as few as possible.
    pub(crate) fn global_tier(&mut self, name: &str) -> TierId {
        let tier = self.builder.tier(name);
        self.builder.global_tier(tier);
        tier
    }

    /// Links two switches.
    pub(crate) fn edge(&mut self, a: u32, b: u32, cable: Cable, tier: TierId) {
        self.builder.link(self.first_switch + a, self.first_switch + b, cable.rate, cable.latency, tier);
    }

    /// Links pairs of switches.
    pub(crate) fn edges(&mut self, edges: impl IntoIterator<Item = (u32, u32)>, cable: Cable, tier: TierId) {
        for (a, b) in edges {
            self.edge(a, b, cable, tier);
        }
    }

    /// Checks and freezes the network.
    pub(crate) fn build(self) -> Result<Network, NetworkError> {
        self.builder.build()
    }
}
