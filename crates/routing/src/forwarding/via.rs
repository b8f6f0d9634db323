//! Over an intermediate switch: minimal paths on both sides of it.

use std::ops::Range;

use netloom_topology::{HostId, Network, NodeId, PortId};
use netloom_units::{Invalid, narrow};
use rand::Rng;

use super::Place;
use super::minimal::{InRow, RouteTable};
use crate::selector::random::below;
use crate::selector::valiant::{Intermediate, Valiant};
use crate::tag::{Phase, Tag};

/// The intermediate switches of a network. Switches with hosts are named by their index in the [`RouteTable`].
#[derive(Clone, Debug)]
pub struct Intermediates {
    /// Per switch with hosts, its group. One group holds all if switches are drawn, or all of those that are connected.
    group_of: Vec<u32>,
    /// Per group, its switches with hosts, ascending.
    members: Vec<Vec<u32>>,
    /// Per group, the groups that are connected with it and it itself: a network's planes have groups of their own.
    connected: Vec<Range<u32>>,
    /// Per switch, with hosts or without, its group.
    group_of_switch: Vec<u32>,
    hosts: u32,
}

impl Intermediates {
    /// The intermediate switches of a network.
    ///
    /// # Errors
    /// If the network is a tree, or groups are asked for where there are none.
    pub fn build(config: &Valiant, network: &Network, table: &RouteTable) -> Result<Self, Invalid> {
        if network.is_tree() {
            let expected = "another one on a tree, where a random common ancestor is on a minimal path (the preset \"random-nca\")";
            return Err(Invalid::new("selector", expected, format!("\"valiant\" on {}", network.name())));
        }
        // The group of a switch as the topology names it; one holds all that are connected if switches are drawn.
        let name = |switch| {
            let of_topology = match config.intermediate {
                Intermediate::Switch => 0,
                Intermediate::Group => network.pod(switch),
            };
            (network.component(switch), of_topology)
        };
        let edges = || (0..table.edges()).map(|edge| name(table.edge_switch(edge)));
        let mut names: Vec<(u32, u32)> = edges().collect();
        names.sort_unstable();
        names.dedup();
        let connected = names.chunk_by(|a, b| a.0 == b.0).scan(0, |first, groups| {
            let range = *first..*first + narrow::<u32>(groups.len());
            *first = range.end;
            Some(std::iter::repeat_n(range, groups.len()))
        });
        let connected: Vec<Range<u32>> = connected.flatten().collect();
        if config.intermediate == Intermediate::Group && connected.iter().all(|groups| groups.len() == 1) {
            let expected = format!("\"switch\", as {} has no groups", network.name());
            return Err(Invalid::new("selector.intermediate", expected, "\"group\""));
        }
        // A group without hosts is none.
        let group = |name| names.binary_search(&name).map_or(u32::MAX, |group| narrow::<u32>(group));
        let group_of_switch = (network.hosts()..network.nodes()).map(|switch| group(name(switch))).collect();
        let group_of: Vec<u32> = edges().map(group).collect();
        let mut members = vec![Vec::new(); names.len()];
        (0..).zip(&group_of).for_each(|(edge, &group): (u32, _)| members[group as usize].push(edge));
        Ok(Intermediates { group_of, members, connected, group_of_switch, hosts: network.hosts() })
    }

    /// How many groups there are.
    pub(crate) fn groups(&self) -> usize {
        self.members.len()
    }

    /// Whether there are several groups that are connected.
    pub(crate) fn has_groups(&self) -> bool {
        self.connected.iter().any(|groups| groups.len() > 1)
    }

    /// The group of a switch, with hosts or without; `u32::MAX` if no switch of it has hosts.
    pub(crate) fn group_of_switch(&self, switch: NodeId) -> u32 {
        self.group_of_switch[(switch - self.hosts) as usize]
    }

    /// The group of a switch with hosts.
    pub(crate) fn group(&self, edge: u32) -> u32 {
        self.group_of[edge as usize]
    }

    /// The switches with hosts of a group.
    pub(crate) fn members(&self, group: u32) -> &[u32] {
        &self.members[group as usize]
    }

    /// An intermediate switch between two others, uniformly among the groups and then among a group's switches. None if there is none.
    pub(crate) fn draw(&self, from: u32, to: u32, random: &mut impl Rng) -> Option<u32> {
        if from == to {
            return None;
        }
        let (here, there) = (self.group(from), self.group(to));
        if here == there {
            let members = self.members(here);
            let place = |edge| narrow::<u32>(members.binary_search(&edge).expect("a switch is in its group"));
            let drawn = below_but(members.len(), place(from), place(to), random)?;
            return Some(members[drawn as usize]);
        }
        let groups = self.connected[here as usize].clone();
        let drawn = below_but(groups.len(), here - groups.start, there.checked_sub(groups.start)?, random)?;
        let members = self.members(groups.start + drawn);
        Some(members[below(members.len(), random)])
    }

    /// The intermediate switches between two others, each with the probability with which it is [drawn](Self::draw).
    pub fn probabilities(&self, from: u32, to: u32) -> Vec<(u32, f64)> {
        let (here, there) = (self.group(from), self.group(to));
        let each = |members: &[u32], of: f64| -> Vec<(u32, f64)> {
            let part = of / f64::from(narrow::<u32>(members.len()));
            members.iter().map(|&member| (member, part)).collect()
        };
        if here == there {
            let others: Vec<u32> =
                self.members(here).iter().copied().filter(|&edge| edge != from && edge != to).collect();
            return if from == to { Vec::new() } else { each(&others, 1.0) };
        }
        let groups = self.connected[here as usize].clone().filter(|&group| group != here && group != there);
        let count = f64::from(narrow::<u32>(groups.clone().count()));
        groups.flat_map(|group| each(self.members(group), 1.0 / count)).collect()
    }

    /// Whether there is an intermediate switch between two switches of the same group as this one.
    pub(crate) fn lie_within(&self, edge: u32) -> bool {
        self.members(self.group(edge)).len() > 2
    }

    /// Whether there is one between switches of different groups.
    pub(crate) fn lie_across(&self) -> bool {
        self.connected.iter().any(|groups| groups.len() > 2)
    }

    /// Whether a packet from switch `from` has done the first part of its way, to `towards`, at switch `here`.
    #[inline]
    pub fn is_passed(&self, table: &RouteTable, from: u32, towards: u32, here: NodeId) -> bool {
        self.enters(from, towards, self.group_of_switch(here)) || table.edge_switch(towards) == here
    }

    /// Whether a packet from switch `from` that comes to a switch of group `here` has come into the group of `towards` from another one.
    #[inline(always)]
    fn enters(&self, from: u32, towards: u32, here: u32) -> bool {
        self.group(towards) == here && self.group(from) != here
    }
}

/// How one switch carries data on that may go over intermediate switches, for many of them one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViaFrom<'t> {
    via: &'t Intermediates,
    table: &'t RouteTable,
    routes: InRow<'t>,
    /// The group of the switch.
    group: u32,
}

impl<'t> ViaFrom<'t> {
    #[inline(always)]
    pub(super) fn new(via: &'t Intermediates, table: &'t RouteTable, Place { here, row }: Place) -> Self {
        ViaFrom { via, table, routes: table.in_row(row), group: via.group_of_switch(here) }
    }

    /// The ports by which a packet between two hosts goes on, and the tag that it carries on.
    #[inline(always)]
    pub(crate) fn of(&self, (src, dst): (HostId, HostId), tag: Tag) -> (&'t [PortId], Tag) {
        let towards = match tag.phase() {
            Phase::Minimal => return (self.routes.ports(dst), tag),
            // As `Intermediates::is_passed` has it.
            Phase::Towards(edge) if self.via.enters(self.table.edge_of(src), edge, self.group) => &[],
            Phase::Towards(edge) => self.routes.ports_towards(edge),
        };
        match towards {
            // It is passed, or out of reach, and the destination may not be.
            [] => (self.routes.ports(dst), tag.passed()),
            ports => (ports, tag),
        }
    }
}

/// A uniform number below `count` other than two different ones; none if there is none.
#[expect(clippy::cast_possible_truncation, reason = "below a number of nodes or groups, which has 32 bits")]
fn below_but(count: usize, a: u32, b: u32, random: &mut impl Rng) -> Option<u32> {
    let others = count.checked_sub(2).filter(|&others| others > 0)?;
    let drawn = below(others, random) as u32;
    let drawn = drawn + u32::from(drawn >= a.min(b));
    Some(drawn + u32::from(drawn >= a.max(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::{Forwarding, TagSpace};
    use crate::hash::region;
    use crate::header::{Carries, Header, Hop};
    use crate::path_selector::SwitchPathSelector;
    use crate::preset;
    use crate::selector::Selector;
    use netloom_topology::{BuildContext, Dragonfly, HyperX, SlimFly, Topology};
    use rand_pcg::Pcg64Mcg;
    use std::path::Path;

    struct Fabric {
        network: Network,
        forwarding: Forwarding,
        random: Pcg64Mcg,
    }

    fn fabric(topology: Topology, intermediate: Intermediate) -> Fabric {
        let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        let mut scheme = preset::find("valiant").unwrap().routing();
        scheme.selector = Selector::Valiant(Valiant { intermediate });
        let forwarding = Forwarding::build(&scheme, &network, |_| false, 1).unwrap();
        Fabric { network, forwarding, random: Pcg64Mcg::new(5) }
    }

    impl Fabric {
        fn via(&self) -> &Intermediates {
            let TagSpace::Via { via, .. } = self.forwarding.tags(0, 1) else { unreachable!() };
            via
        }

        /// The switches that a packet crosses.
        fn walk(&mut self, src: u32, dst: u32, control: bool) -> Vec<NodeId> {
            let carries = if control { Carries::Control } else { Carries::Data };
            let tag = self.forwarding.tags(src, dst).first(&mut self.random);
            let mut header = Header { src, dst, flow: 0, tag, bytes: 4160, payload: 4096, hops: 1, carries };
            let mut here = self.network.edge_switch(src);
            let mut path = vec![here];
            loop {
                let random = &mut self.random;
                let choose = |count| region(random.next_u32(), count);
                let hop = self.forwarding.onward(here, &header, choose);
                header.tag = hop.tag;
                here = self.network.neighbour(here, hop.port);
                if here == dst {
                    return path;
                }
                path.push(here);
                assert!(path.len() < 20, "{path:?}");
            }
        }
    }

    fn slim_fly() -> Topology {
        Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() })
    }

    #[test]
    fn paths_are_twice_as_long_on_the_mean() {
        let hyperx = Topology::HyperX(HyperX { hosts_per_switch: Some(1), ..HyperX::default() });
        for topology in [slim_fly(), hyperx] {
            let mut fabric = fabric(topology, Intermediate::Switch);
            let hosts = fabric.network.hosts();
            let pairs: Vec<_> =
                (0..20_000u32).map(|i| (i * 7 % hosts, (i * 13 + i / hosts) % hosts)).collect();
            let table = fabric.forwarding.table().clone();
            let edge = |host| table.edge_of(host);
            let pairs: Vec<_> = pairs.into_iter().filter(|&(a, b)| edge(a) != edge(b)).collect();
            let mut mean = |control| {
                let hops = pairs.iter().map(|&(a, b)| fabric.walk(a, b, control).len() - 1);
                hops.sum::<usize>() as f64 / pairs.len() as f64
            };
            let (minimal, valiant) = (mean(true), mean(false));
            assert!((valiant / minimal - 2.0).abs() < 0.03, "{minimal} {valiant}");
        }
    }

    #[test]
    fn a_dragonflys_packets_enter_another_group_on_their_way() {
        let dragonfly = Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(2), ..Dragonfly::default() });
        let mut fabric = fabric(dragonfly, Intermediate::Group);
        let hosts = fabric.network.hosts();
        let mut crossed = std::collections::BTreeSet::<u32>::new();
        for (src, dst) in (0..hosts).flat_map(|src| (0..hosts).map(move |dst| (src, dst))) {
            if fabric.network.edge_switch(src) == fabric.network.edge_switch(dst) {
                continue;
            }
            let path = fabric.walk(src, dst, false);
            let mut groups: Vec<u32> = path.iter().map(|&switch| fabric.network.pod(switch)).collect();
            groups.dedup();
            if groups.len() == 1 {
                assert_eq!(path.len(), 3, "over another switch of the group");
                continue;
            }
            // Local, global, local to the drawn group, and the same from there.
            assert!(groups.len() == 3 && path.len() <= 6, "{path:?}");
            crossed.insert(groups[1]);
        }
        assert_eq!(crossed.len(), 9);
    }

    /// What is computed for many packets one after the other is what each of them does alone.
    #[test]
    fn data_on_their_way_go_as_intermediates_and_tables_say() {
        let dragonfly = Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(2), ..Dragonfly::default() });
        for (topology, scheme) in [(dragonfly.clone(), "valiant"), (dragonfly, "par"), (slim_fly(), "ugal-l")]
        {
            let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
            let (scheme, mut random) = (preset::find(scheme).unwrap().routing(), Pcg64Mcg::new(5));
            let forwarding = Forwarding::build(&scheme, &network, |_| false, 1).unwrap();
            let selector = SwitchPathSelector::new(&scheme, 1, true, false, &mut random);
            let table = forwarding.table();
            let via = forwarding.alternatives().map_or_else(
                || match forwarding.tags(0, 1) {
                    TagSpace::Via { via, .. } => via,
                    _ => unreachable!("there are intermediate switches"),
                },
                |alternatives| alternatives.via(),
            );
            let mut decided = 0;
            for _ in 0..20_000 {
                let [src, dst] = [0; 2].map(|_: u32| below(network.hosts() as usize, &mut random) as u32);
                let here = network.hosts() + below(network.switches() as usize, &mut random) as u32;
                let towards = Tag::towards(below(table.edges() as usize, &mut random) as u32);
                let tag = [Tag::DIRECT, towards, towards.passed()][below(3, &mut random)];
                let carries = Carries::Data;
                let header = Header { src, dst, flow: 3, tag, bytes: 4160, payload: 4096, hops: 2, carries };
                let hop = selector
                    .on_detours(&forwarding, forwarding.place(here))
                    .and_then(|on_detours| on_detours.hop((src, dst), tag.bits(), || header.seen_by_hash()));
                if forwarding.is_decided(here, &header) {
                    decided += 1;
                    assert_eq!(hop, None);
                    continue;
                }
                let (ports, on) = match tag.phase() {
                    Phase::Towards(edge) if !via.is_passed(table, table.edge_of(src), edge, here) => {
                        (table.towards_edge(here, edge).ports, tag)
                    }
                    _ => (table.candidates(here, dst).ports, tag.passed()),
                };
                let port = match ports {
                    [only] => *only,
                    several => selector.port_of_hash(header.seen_by_hash(), several),
                };
                assert_eq!(hop, Some(Hop { port, tag: on }), "{header:?} at {here}");
            }
            assert_eq!(decided > 0, forwarding.alternatives().is_some_and(|ways| ways.is_progressive()));
        }
    }

    #[test]
    fn intermediates_are_uniform_among_all_but_the_ends() {
        let fabric = fabric(slim_fly(), Intermediate::Switch);
        let mut random = Pcg64Mcg::new(3);
        let mut hits = [0u32; 50];
        (0..48_000).for_each(|_| hits[fabric.via().draw(31, 7, &mut random).unwrap() as usize] += 1);
        for (edge, &hits) in hits.iter().enumerate() {
            match edge {
                7 | 31 => assert_eq!(hits, 0),
                // Six standard deviations of a binomial(48000, 1/48).
                _ => assert!(hits.abs_diff(1000) < 190, "{edge}: {hits}"),
            }
        }
        assert_eq!(fabric.via().draw(3, 3, &mut random), None);
    }

    #[test]
    fn probabilities_are_those_of_draws() {
        // Nine groups of four switches.
        let fabric = fabric(Topology::Dragonfly(Dragonfly::default()), Intermediate::Group);
        let via = fabric.via();
        let (groups, members) = (via.groups(), via.members(0).len());
        for to in 0..narrow::<u32>(groups * members) {
            let probabilities = via.probabilities(0, to);
            let expected = match to {
                0 => 0.0,
                _ if via.group(to) == via.group(0) => 1.0 / (members - 2) as f64,
                _ => 1.0 / ((groups - 2) * members) as f64,
            };
            assert!(probabilities.iter().all(|&(_, part)| (part - expected).abs() < 1e-12), "{to}");
            let mut random = Pcg64Mcg::new(3);
            for _ in 0..100 {
                let drawn = via.draw(0, to, &mut random);
                let is_known = |edge| probabilities.iter().any(|&(known, _)| known == edge);
                assert!(drawn.map_or(probabilities.is_empty(), is_known), "{to}: {drawn:?}");
            }
            let sum: f64 = probabilities.iter().map(|(_, part)| part).sum();
            assert!(to == 0 || (sum - 1.0).abs() < 1e-12, "{to}: {sum}");
        }
    }

    #[test]
    fn networks_without_use_for_it_are_refused() {
        let build = |topology: Topology, intermediate| {
            let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
            let table = RouteTable::minimal(&network, |_| false).unwrap();
            Intermediates::build(&Valiant { intermediate }, &network, &table).unwrap_err().to_string()
        };
        let tree = build(Topology::KaryNTree(Default::default()), Intermediate::Switch);
        assert!(tree.contains("random-nca"), "{tree}");
        let complete = build(Topology::Complete(Default::default()), Intermediate::Group);
        assert!(complete.contains("has no groups"), "{complete}");
    }
}
