//! Networks that stand side by side with no link between them: the planes of a fabric, and the networks inside GPU servers.

use netloom_units::narrow;

use crate::error::NetworkError;
use crate::names::Names;
use crate::network::{ChannelId, Link, Network, NodeId, TierId};
use crate::size::Size;

/// One of several networks that become one.
#[derive(Clone, Copy, Debug)]
pub struct Separate<'a> {
    /// The network.
    pub network: &'a Network,
    /// What stands before the names of its nodes where any of the networks has names from a file: `plane1-leaf3`.
    pub prefix: &'a str,
    /// What stands before the names of its tiers: `plane1-host`. Tiers of the same name are one.
    pub tier_prefix: &'a str,
}

impl Network {
    /// Several networks as one, in which no host of one reaches a host of another. Hosts come first, network by network, then switches in the
    /// same order; links keep their order, too. Levels are kept if all of them are trees, otherwise the whole has none.
    ///
    /// # Errors
    /// If the whole would not fit into memory, or the links have more than 256 tiers.
    ///
    /// # Panics
    /// If there is no network.
    ///
    /// ```
    /// use netloom_topology::{BuildContext, Crossbar, Network, Separate, Topology};
    ///
    /// let star = Topology::Crossbar(Crossbar { hosts: 4, ..Default::default() });
    /// let star = star.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap();
    /// let plane = Separate { network: &star, prefix: "", tier_prefix: "" };
    /// let planes = Network::apart("two planes", &[plane, plane]).unwrap();
    /// assert_eq!((planes.hosts(), planes.switches(), planes.components()), (8, 2, 2));
    /// assert_eq!((planes.edge_switch(3), planes.edge_switch(4)), (8, 9));
    /// assert_eq!((planes.component(0), planes.component(4), planes.component(9)), (0, 1, 1));
    /// ```
    pub fn apart(name: impl Into<String>, parts: &[Separate<'_>]) -> Result<Network, NetworkError> {
        let total = |count: fn(&Network) -> u64| parts.iter().map(|part| count(part.network)).sum();
        let size = Size {
            hosts: total(|network| network.hosts().into()),
            switches: total(|network| network.switches().into()),
            links: total(|network| network.links().len() as u64),
        };
        size.check()?;
        let mut whole = Whole::new(name.into(), parts);
        let (mut host, mut switch) = (0, whole.network.hosts);
        for (component, part) in (0..).zip(parts) {
            whole.add(component, part, host, switch)?;
            host += part.network.hosts();
            switch += part.network.switches();
        }
        Ok(whole.finish())
    }
}

/// What the networks together are, as far as they have been added.
struct Whole<'a> {
    network: Network,
    first: &'a Network,
    are_trees: bool,
    /// Ports of hosts and of switches; in the end those of hosts come first.
    ports: [Ports; 2],
    names: Option<[Vec<String>; 2]>,
    /// Pods have numbers of their own in every network.
    next_pod: u32,
}

/// Outgoing channels of nodes, one node after the other, and where each node's end.
#[derive(Default)]
struct Ports {
    channels: Vec<ChannelId>,
    ends: Vec<u32>,
}

impl<'a> Whole<'a> {
    fn new(name: String, parts: &[Separate<'a>]) -> Self {
        let first = parts.first().expect("there is a network").network;
        let hosts = parts.iter().map(|part| part.network.hosts()).sum();
        let links_per_host = parts.iter().map(|part| part.network.links_per_host()).max().unwrap_or(1);
        let network = Network { name, hosts, switches: 0, links_per_host, ..Network::empty() };
        let has_names = parts.iter().any(|part| part.network.has_own_names());
        Whole {
            network,
            first,
            are_trees: parts.iter().all(|part| part.network.is_tree()),
            ports: Default::default(),
            names: has_names.then(Default::default),
            next_pod: 0,
        }
    }

    /// Adds a network whose first host and first switch become these nodes.
    fn add(
        &mut self,
        component: u32,
        part: &Separate<'_>,
        host: NodeId,
        switch: NodeId,
    ) -> Result<(), NetworkError> {
        let &Separate { network, prefix, tier_prefix } = part;
        let whole = &mut self.network;
        let node = |node: NodeId| match node.checked_sub(network.hosts()) {
            Some(number) => switch + number,
            None => host + node,
        };
        let mut tiers = Vec::with_capacity(network.tiers().len());
        for tier in network.tiers() {
            let name = format!("{tier_prefix}{tier}");
            let known = whole.tiers.iter().position(|known| *known == name);
            let number = known.unwrap_or_else(|| {
                whole.tiers.push(name);
                whole.tiers.len() - 1
            });
            let number = TierId::try_from(number);
            tiers.push(number.map_err(|_| NetworkError::TooManyTiers(whole.tiers.len()))?);
        }
        let first_link = narrow::<u32>(whole.links.len());
        let moved = |link: &Link| Link {
            a: node(link.a),
            b: node(link.b),
            tier: tiers[usize::from(link.tier)],
            ..*link
        };
        whole.links.extend(network.links().iter().map(moved));
        let error_rates = network.error_rates().iter().map(|&(link, rate)| (first_link + link, rate));
        whole.error_rates.extend(error_rates);
        whole.switches += network.switches();
        let switches = network.hosts()..network.nodes();
        whole.levels.extend(switches.clone().map(|switch| network.level(switch)));
        let mut highest = None;
        for switch in switches {
            let pod = network.pod(switch);
            // Switches of no pod stay without.
            let is_pod = pod != u32::MAX;
            highest = highest.max(is_pod.then_some(pod));
            whole.pods.push(if is_pod { self.next_pod + pod } else { pod });
            whole.component_of.push(component);
        }
        self.next_pod += highest.map_or(0, |highest| highest + 1);
        whole.has_found_levels |= network.has_found_levels();
        if let Some(tier) = network.global_tier() {
            whole.global_tier = Some(tiers[usize::from(tier)]);
        }
        for (own, &tier) in (0..).zip(&tiers) {
            if let Some(dimension) = network.dimension_of(own) {
                let tier = usize::from(tier);
                let known = whole.dimension_of_tier.len().max(tier + 1);
                whole.dimension_of_tier.resize(known, None);
                whole.dimension_of_tier[tier] = Some(dimension);
            }
        }
        for own in 0..network.nodes() {
            let is_host = network.is_host(own);
            let Ports { channels, ends } = &mut self.ports[usize::from(!is_host)];
            channels.extend(network.ports(own).iter().map(|&channel| 2 * first_link + channel));
            ends.push(narrow::<u32>(channels.len()));
            if let Some(names) = &mut self.names {
                names[usize::from(!is_host)].push(format!("{prefix}{}", network.node_name(own)));
            }
        }
        Ok(())
    }

    fn finish(self) -> Network {
        let Whole { mut network, first, are_trees, ports: [of_hosts, of_switches], names, .. } = self;
        if are_trees {
            network.up_strides = first.up_strides().to_vec();
            network.is_xgft = first.is_xgft();
        } else {
            network.levels.fill(0);
            network.has_found_levels = false;
        }
        let at = narrow::<u32>(of_hosts.channels.len());
        network.port_start = std::iter::once(0)
            .chain(of_hosts.ends)
            .chain(of_switches.ends.into_iter().map(|end| at + end))
            .collect();
        network.ports = of_hosts.channels.into_iter().chain(of_switches.channels).collect();
        let hosts = network.hosts;
        network.names = names.and_then(|[mut names, of_switches]| {
            names.extend(of_switches);
            Names::new(names, hosts)
        });
        network
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::{Dragonfly, FatTree, LeafSpine, SlimFly};
    use crate::topology::{Topology, context};

    fn build(topology: Topology) -> Network {
        topology.build(&context(1)).unwrap()
    }

    fn leaf_spine() -> Network {
        build(Topology::LeafSpine(LeafSpine {
            leaves: 3,
            spines: 2,
            hosts_per_leaf: 4,
            ..LeafSpine::default()
        }))
    }

    fn whole(parts: &[&Network]) -> Network {
        let separate = |network| Separate { network, prefix: "", tier_prefix: "" };
        let parts: Vec<_> = parts.iter().copied().map(separate).collect();
        Network::apart("whole", &parts).unwrap()
    }

    /// Every node of every part has the same neighbours by the same ports as before, and nothing else.
    fn check(whole: &Network, parts: &[&Network]) {
        let (mut host, mut switch, mut link) = (0, whole.hosts(), 0);
        for (component, part) in (0..).zip(parts) {
            let node = |node: NodeId| {
                if part.is_host(node) { host + node } else { switch + node - part.hosts() }
            };
            for own in 0..part.nodes() {
                assert_eq!(whole.component(node(own)), component);
                let moved: Vec<ChannelId> =
                    part.ports(own).iter().map(|&channel| 2 * link + channel).collect();
                assert_eq!(whole.ports(node(own)), moved);
                for (&before, after) in part.ports(own).iter().zip(moved) {
                    let (before, after) = (part.channel(before), whole.channel(after));
                    assert_eq!((after.from, after.to), (node(before.from), node(before.to)));
                    assert_eq!((after.rate, after.latency), (before.rate, before.latency));
                    let tier = |network: &Network, tier: TierId| network.tiers()[usize::from(tier)].clone();
                    assert_eq!(tier(whole, after.tier), tier(part, before.tier));
                }
            }
            host += part.hosts();
            switch += part.switches();
            link += narrow::<u32>(part.links().len());
        }
        assert_eq!((host, switch), (whole.hosts(), whole.nodes()));
        assert_eq!((link, whole.components() as usize), (whole.channels() / 2, parts.len()));
    }

    #[test]
    fn planes_keep_ports_levels_and_pods_apart() {
        let plane = build(Topology::FatTree(FatTree { k: Some(4), ..FatTree::default() }));
        let planes = whole(&[&plane, &plane]);
        check(&planes, &[&plane, &plane]);
        assert!(planes.is_tree() && planes.is_xgft());
        assert_eq!(planes.up_strides(), plane.up_strides());
        assert_eq!(planes.tiers(), plane.tiers());
        let pods = |hosts: std::ops::Range<u32>| -> Vec<u32> {
            hosts.map(|host| planes.pod(planes.edge_switch(host))).collect()
        };
        let [first, second] = [pods(0..16), pods(16..32)];
        assert!(first.iter().all(|pod| !second.contains(pod)));
        assert_eq!(first.len(), 16);
    }

    #[test]
    fn trees_beside_other_networks_have_no_levels() {
        let slim_fly = build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }));
        let parts = [&slim_fly, &leaf_spine(), &leaf_spine()];
        let mixed = whole(&parts);
        check(&mixed, &parts);
        assert!(!mixed.is_tree() && mixed.component(mixed.hosts()) == 0);
    }

    #[test]
    fn groups_of_dragonflies_have_numbers_of_their_own() {
        let dragonfly =
            build(Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(1), ..Dragonfly::default() }));
        let planes = whole(&[&dragonfly, &dragonfly]);
        check(&planes, &[&dragonfly, &dragonfly]);
        assert_eq!(planes.global_tier(), dragonfly.global_tier());
        let highest = (planes.hosts()..planes.nodes()).map(|switch| planes.pod(switch)).max();
        let highest_of_one = (dragonfly.hosts()..dragonfly.nodes()).map(|switch| dragonfly.pod(switch)).max();
        assert_eq!(highest.unwrap() + 1, 2 * (highest_of_one.unwrap() + 1));
    }

    #[test]
    fn names_from_files_get_a_prefix() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a leaf\nb leaf\n").unwrap();
        let named = build(Topology::EdgeList(crate::formats::EdgeList::new(file.path())));
        assert!(named.has_own_names());
        let [first, second] =
            ["p0-", "p1-"].map(|prefix| Separate { network: &named, prefix, tier_prefix: prefix });
        let planes = Network::apart("named", &[first, second]).unwrap();
        let names: Vec<String> = (0..planes.nodes()).map(|node| planes.node_name(node)).collect();
        assert_eq!(names, ["p0-a", "p0-b", "p1-a", "p1-b", "p0-leaf", "p1-leaf"]);
        assert_eq!(planes.find_node("p1-leaf").unwrap(), 5);
        assert!(planes.tiers().iter().any(|tier| tier.starts_with("p1-")), "{:?}", planes.tiers());
    }
}
