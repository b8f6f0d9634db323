//! A host at every switch, for what switches compute themselves.

use netloom_units::{Rate, Time, narrow};

use crate::error::NetworkError;
use crate::names::Names;
use crate::network::{ChannelId, Link, LinkId, Network, NodeId, PortId, TierId};

/// The tier of the links between switches and their [units](Network::with_reduction_units).
pub const REDUCTION_TIER: &str = "reduction";

impl Network {
    /// The same network with a unit at every switch that can receive and send: a host by a link of its own, which is the last port of the switch. The unit of switch s, counted
    /// from 0 among switches, is host n + s where there are n hosts, and is called `reduction-` and what the switch is called. Its link has this `latency`, and the `rate` that is given
    /// or that of all other links of the switch together, at most [`Rate::HIGHEST`].
    ///
    /// # Errors
    /// If nodes, tiers or the ports of a switch become more than have numbers.
    ///
    /// ```
    /// use netloom_topology::{BuildContext, Crossbar, Topology};
    /// use netloom_units::Time;
    ///
    /// let star = Topology::Crossbar(Crossbar { hosts: 4, ..Default::default() });
    /// let star = star.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap();
    /// let with_unit = star.with_reduction_units(Time::from_ns(250), None).unwrap();
    /// assert_eq!((with_unit.hosts(), with_unit.edge_switch(4), with_unit.host_rate(4)), (5, 5, "800Gbps".parse().unwrap()));
    /// assert_eq!((with_unit.node_name(3), with_unit.node_name(4)), ("h3".to_owned(), "reduction-s0".to_owned()));
    /// ```
    pub fn with_reduction_units(&self, latency: Time, rate: Option<Rate>) -> Result<Network, NetworkError> {
        let (hosts, units) = (self.hosts(), self.switches());
        let moved = |node: NodeId| if self.is_host(node) { node } else { node + units };
        let mut tiers = self.tiers.clone();
        let known = tiers.iter().position(|tier| tier == REDUCTION_TIER);
        let tier = known.unwrap_or_else(|| {
            tiers.push(REDUCTION_TIER.to_owned());
            tiers.len() - 1
        });
        let tier = TierId::try_from(tier).map_err(|_| NetworkError::TooManyTiers(tiers.len()))?;
        let first = self.links.len();
        let mut links: Vec<Link> =
            self.links.iter().map(|link| Link { a: moved(link.a), b: moved(link.b), ..*link }).collect();
        for switch in hosts..self.nodes() {
            if self.ports(switch).len() >= usize::from(PortId::MAX) {
                return Err(NetworkError::TooManyPorts(switch));
            }
            let all = self.ports(switch).iter().map(|&channel| self.channel(channel).rate.0);
            let rate = rate.unwrap_or(Rate(all.sum::<u64>().min(Rate::HIGHEST.0)));
            // The unit has the number that its switch had before.
            links.push(Link { a: switch, b: moved(switch), rate, latency, tier });
        }
        let unit_link = |unit: u32| narrow::<LinkId>(first) + unit;
        let mut ports: Vec<ChannelId> = Vec::with_capacity(2 * links.len());
        let mut port_start = vec![0];
        let mut close = |ports: &[ChannelId]| port_start.push(narrow::<u32>(ports.len()));
        for host in 0..hosts {
            ports.extend(self.ports(host));
            close(&ports);
        }
        for unit in 0..units {
            ports.push(2 * unit_link(unit));
            close(&ports);
        }
        for unit in 0..units {
            ports.extend(self.ports(hosts + unit));
            ports.push(2 * unit_link(unit) + 1);
            close(&ports);
        }
        let name = |node: NodeId| self.node_name(node);
        let names = (0..hosts)
            .map(name)
            .chain((hosts..self.nodes()).map(|switch| format!("{REDUCTION_TIER}-{}", name(switch))))
            .chain((hosts..self.nodes()).map(name));
        let names = Names::new(names.collect(), hosts + units);
        Ok(Network { hosts: hosts + units, links, tiers, ports, port_start, names, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::{FatTree, LeafSpine};
    use crate::topology::{Topology, context};

    #[test]
    fn everything_else_is_as_before() {
        let kinds = [
            Topology::FatTree(FatTree { k: Some(4), ..FatTree::default() }),
            Topology::LeafSpine(LeafSpine {
                leaves: 3,
                spines: 2,
                hosts_per_leaf: 4,
                ..LeafSpine::default()
            }),
        ];
        for kind in kinds {
            let before = kind.build(&context(1)).unwrap();
            let after = before.with_reduction_units(Time(7), Some(Rate(9))).unwrap();
            let units = before.switches();
            let moved = |node: NodeId| if before.is_host(node) { node } else { node + units };
            assert_eq!((after.hosts(), after.switches()), (before.hosts() + units, units));
            for node in 0..before.nodes() {
                let ends = |network: &Network, node, place: fn(NodeId, u32, u32) -> NodeId| -> Vec<_> {
                    let ports = network.ports(node).iter().map(|&channel| network.channel(channel));
                    ports
                        .map(|to| (place(to.to, before.hosts(), units), to.rate, to.latency, to.tier))
                        .collect()
                };
                let old = ends(&before, node, |to, hosts, units| if to < hosts { to } else { to + units });
                let new = ends(&after, moved(node), |to, _, _| to);
                assert_eq!(new[..old.len()], old);
                assert_eq!(new.len() - old.len(), usize::from(!before.is_host(node)));
                assert_eq!(
                    (before.level(node), before.node_name(node)),
                    (after.level(moved(node)), after.node_name(moved(node)))
                );
                assert_eq!(after.find_node(&before.node_name(node)), Ok(moved(node)));
            }
            for unit in 0..units {
                let (host, switch) = (before.hosts() + unit, after.hosts() + unit);
                let out = after.channel(after.ports(host)[0]);
                assert_eq!((out.from, out.to, out.rate, out.latency), (host, switch, Rate(9), Time(7)));
                let back = after.channel(*after.ports(switch).last().unwrap());
                assert_eq!((back.from, back.to), (switch, host));
                assert_eq!(after.tiers()[usize::from(out.tier)], "reduction");
                assert_eq!(after.node_name(host), format!("reduction-s{unit}"));
            }
            assert!(after.is_tree() && after.is_xgft() == before.is_xgft());
            assert_eq!(after.up_strides(), before.up_strides());
        }
    }
}
