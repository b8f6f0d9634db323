//! The ways among which UGAL chooses: minimal ones, and ways over an intermediate switch, each with its hops.

use netloom_topology::{Channel, ChannelId, HostId, Network, NodeId, PortId};
use netloom_units::{Invalid, narrow};
use rand::Rng;

use super::Place;
use super::layers::disconnected;
use super::minimal::{Hops, RouteTable};
use super::via::Intermediates;
use crate::header::{Hop, View};
use crate::path_selector::PacketContext;
use crate::selector::random::below;
use crate::selector::ugal::{Queue, Scales, Ugal};
use crate::selector::valiant::{Intermediate, Valiant};
use crate::tag::{Phase, Tag};

/// The ways of a scheme that weighs them.
#[derive(Clone, Debug)]
pub(crate) struct Alternatives {
    config: Ugal,
    via: Intermediates,
    hops: Hops,
    /// Per switch, its index among those with hosts; `u32::MAX`: it has none.
    edge_at: Vec<u32>,
    hosts: u32,
    /// The links between groups, if those are drawn.
    groups: Option<Groups>,
}

/// Which groups are joined by which links.
#[derive(Clone, Debug)]
struct Groups {
    count: usize,
    /// Per pair of groups.
    links: Vec<Vec<GlobalLink>>,
    /// Per group, those to which it has links, ascending.
    joined: Vec<Vec<u32>>,
    /// Per switch, where its row of `ports` begins.
    row: Vec<u32>,
    /// Per switch and link of its group, by the link's number, the port by which a way over it begins.
    ports: Vec<PortId>,
}

/// A link from one group to another.
#[derive(Clone, Copy, Debug)]
struct GlobalLink {
    /// Its number among those of its group.
    number: u32,
    near: NodeId,
    /// The switch at its other end, by its index among those with hosts.
    far: u32,
    channel: ChannelId,
}

/// One way: the port by which it begins and the tag that leads along it.
#[derive(Clone, Copy, Debug)]
struct Way {
    hop: Hop,
    /// Between switches.
    hops: u32,
    is_minimal: bool,
    /// The first channel between groups, if it crosses one, and where it begins.
    global: Option<(NodeId, ChannelId)>,
}

/// Where a packet is decided, and where it goes.
#[derive(Clone, Copy, Debug)]
struct At<'a> {
    table: &'a RouteTable,
    here: NodeId,
    from: u32,
    to: u32,
}

impl Alternatives {
    /// The ways on a network without its cut links.
    pub(crate) fn build(
        config: &Ugal,
        network: &Network,
        table: &RouteTable,
        is_cut: impl Fn(ChannelId) -> bool,
    ) -> Result<Self, Invalid> {
        let name = network.name();
        if network.is_tree() {
            let expected = "another one on a tree, where every way over a common ancestor is minimal (the preset \"adaptive\")";
            return Err(Invalid::new("selector", expected, format!("\"ugal\" on {name}")));
        }
        let has_groups = network.global_tier().is_some();
        let drawn = if has_groups { Intermediate::Group } else { Intermediate::Switch };
        let intermediate = config.intermediate.unwrap_or(drawn);
        let by_group = intermediate == Intermediate::Group;
        if by_group && !has_groups {
            let expected = format!("\"switch\", as {name} has no global links between groups");
            return Err(Invalid::new("selector.intermediate", expected, "\"group\""));
        }
        let needs_group = [
            (config.progressive, "progressive", "leave it out, or use the preset \"ugal-l\""),
            (
                config.report_period().is_some(),
                "queue",
                "use \"local\": every way begins at the switch that decides",
            ),
            (config.one_group, "one_group", "leave it out"),
        ];
        if let Some((_, field, instead)) = needs_group.iter().find(|(is_wanted, ..)| *is_wanted && !by_group)
        {
            let found = if has_groups { "intermediate = \"switch\"".to_owned() } else { name.to_owned() };
            let expected = format!("ways over groups with global links, or to {instead}");
            return Err(Invalid::new(format!("selector.{field}"), expected, found));
        }
        // A way is weighed by all of its hops.
        if table.unreachable().is_some() {
            return Err(disconnected());
        }
        let via = Intermediates::build(&Valiant { intermediate }, network, table)?;
        let mut edge_at = vec![u32::MAX; network.switches() as usize];
        (0..table.edges())
            .for_each(|edge| edge_at[(table.edge_switch(edge) - network.hosts()) as usize] = edge);
        let groups = by_group.then(|| Groups::new(network, table, &via, &edge_at, &is_cut));
        let hops = Hops::measure(network, table, &is_cut);
        Ok(Alternatives { config: config.clone(), via, hops, edge_at, hosts: network.hosts(), groups })
    }

    /// The intermediate switches.
    pub(crate) fn via(&self) -> &Intermediates {
        &self.via
    }

    /// Whether a way over any of the links between the groups of its ends counts as minimal.
    pub(crate) fn uses_all_links(&self) -> bool {
        self.groups.is_some() && self.config.minimal > 1
    }

    /// Whether later switches of the source's group decide again.
    pub(crate) fn is_progressive(&self) -> bool {
        self.config.progressive
    }

    /// What is weighed, in words.
    pub(crate) fn words(&self) -> String {
        let Ugal { minimal, non_minimal, .. } = self.config;
        format!(
            "UGAL weighs up to {minimal} minimal against {non_minimal} other ways; with nothing waiting anywhere, "
        )
    }

    /// Whether a packet that comes to a switch behind its first one is decided again: it is on a minimal way and still in its group.
    pub(crate) fn is_decided_again(
        &self,
        table: &RouteTable,
        here: NodeId,
        (src, dst): (HostId, HostId),
        tag: Tag,
    ) -> bool {
        if !self.config.progressive {
            return false;
        }
        let via = &self.via;
        let (group, there) = (via.group(table.edge_of(src)), via.group(table.edge_of(dst)));
        let is_minimal = match tag.phase() {
            Phase::Minimal => tag == Tag::DIRECT,
            Phase::Towards(edge) => via.group(edge) == there,
        };
        is_minimal && group != there && via.group_of_switch(here) == group
    }

    /// The way that a packet takes from here, and whether it is a minimal one; `minimal` is the one that it would take by its header's hash.
    /// None if there is nothing to choose.
    pub(crate) fn choose<R: Rng>(
        &self,
        packet: PacketContext<'_>,
        minimal: Hop,
        view: &mut impl View,
        random: &mut R,
    ) -> Option<(Hop, bool)> {
        let PacketContext { forwarding, place: Place { here, .. }, header } = packet;
        let table = forwarding.table();
        let (from, to) = (self.edge_at[self.index(here)], table.edge_of(header.dst));
        if from == u32::MAX || from == to {
            return None;
        }
        let at = At { table, here, from, to };
        let mut scales = Scales::new(&self.config);
        let mut weigh = |way: Way, random: &mut R| {
            let load = self.load(&way, here, view);
            scales.weigh(way.hop, load, way.hops, way.is_minimal, random);
        };
        weigh(self.minimal(at, minimal), random);
        if header.is_first() {
            self.other_minimal(at, random, &mut weigh);
        }
        self.non_minimal(at, random, &mut weigh);
        scales.choice()
    }

    /// The ways that are weighed between the switches of two hosts, each with how often: minimal ones, none where the header's hash has the only one,
    /// and those over intermediate switches.
    pub(crate) fn all(&self, table: &RouteTable, from: u32, to: u32) -> [Vec<(Hop, f64)>; 2] {
        let here = table.edge_switch(from);
        let (group, there) = (self.via.group(from), self.via.group(to));
        let begins = |edge: u32| table.towards_edge(here, edge).ports;
        let evenly = |hops: Vec<Hop>, of: f64| {
            let part = of / f64::from(narrow::<u32>(hops.len()));
            hops.into_iter().map(move |hop| (hop, part)).collect::<Vec<_>>()
        };
        let Some(groups) = self.groups.as_ref().filter(|_| group != there) else {
            let minimal = begins(to).iter().map(|&port| Hop { port, tag: Tag::DIRECT });
            let others = self.via.probabilities(from, to).into_iter().flat_map(|(edge, part)| {
                evenly(begins(edge).iter().map(|&port| Hop { port, tag: Tag::towards(edge) }).collect(), part)
            });
            return [
                minimal.filter(|_| self.config.minimal > 1).map(|hop| (hop, 1.0)).collect(),
                others.collect(),
            ];
        };
        let over = |link: &GlobalLink| Hop {
            port: groups.port(self.index(here), link),
            tag: Tag::towards(link.far),
        };
        let globals = self.hops.globals(from, to);
        let minimal =
            groups.links(group, there).iter().filter(|link| self.hops.globals(link.far, to) < globals);
        let minimal = minimal.filter(|_| self.config.minimal > 1).map(|link| (over(link), 1.0)).collect();
        let joined = groups.joined[group as usize].iter().filter(|&&other| other != there);
        let others =
            joined.flat_map(|&other| evenly(groups.links(group, other).iter().map(over).collect(), 1.0));
        [minimal, others.collect()]
    }

    /// The place of the least loaded one of the ports by which a part of a way goes on.
    pub(crate) fn lightest(&self, ports: &[PortId], view: &mut impl View, random: &mut impl Rng) -> usize {
        let mut scales = Scales::new(&self.config);
        for (place, &port) in ports.iter().enumerate() {
            scales.weigh(place, self.config.load.of(view, port), 1, true, random);
        }
        scales.choice().map_or(0, |(place, _)| place)
    }

    /// The load of a way.
    fn load(&self, way: &Way, here: NodeId, view: &mut impl View) -> u64 {
        match (&self.config.queue, way.global) {
            (Queue::Global(_), Some((near, channel))) if near != here => view.reported(channel),
            _ => self.config.load.of(view, way.hop.port),
        }
    }

    /// The way on which a packet goes by its header's hash.
    #[inline]
    fn minimal(&self, at: At<'_>, hop: Hop) -> Way {
        let (hops, over) = match hop.tag.phase() {
            Phase::Minimal => (self.hops.between(at.from, at.to), at.to),
            Phase::Towards(edge) => (self.hops.between(at.from, edge) + self.hops.between(edge, at.to), edge),
        };
        Way { hop, hops, is_minimal: true, global: self.first_global(at, hop.port, over) }
    }

    /// Minimal ways besides that.
    fn other_minimal<R: Rng>(&self, at: At<'_>, random: &mut R, weigh: &mut impl FnMut(Way, &mut R)) {
        let (from, to) = (self.via.group(at.from), self.via.group(at.to));
        let most = self.config.minimal;
        if most == 1 {
            return;
        }
        let Some(groups) = self.groups.as_ref().filter(|_| from != to) else {
            let ports = at.table.towards_edge(at.here, at.to).ports;
            draw(ports, most, most - 1, random, |&port, random| {
                weigh(self.minimal(at, Hop { port, tag: Tag::DIRECT }), random);
            });
            return;
        };
        let globals = self.hops.globals(at.from, at.to);
        draw(groups.links(from, to), most, most - 1, random, |link, random| {
            // Where a group is in pieces, it is not left again.
            if self.hops.globals(link.far, at.to) < globals {
                weigh(self.over_link(groups, at, link, true), random);
            }
        });
    }

    /// Ways over an intermediate switch or group.
    fn non_minimal<R: Rng>(&self, at: At<'_>, random: &mut R, weigh: &mut impl FnMut(Way, &mut R)) {
        let (from, to) = (self.via.group(at.from), self.via.group(at.to));
        let ways = self.config.non_minimal;
        let Some(groups) = self.groups.as_ref().filter(|_| from != to) else {
            for _ in 0..ways {
                let Some(edge) = self.via.draw(at.from, at.to, random) else { return };
                let ports = at.table.towards_edge(at.here, edge).ports;
                let hop = Hop { port: ports[below(ports.len(), random)], tag: Tag::towards(edge) };
                let hops = self.hops.between(at.from, edge) + self.hops.between(edge, at.to);
                weigh(Way { hop, hops, is_minimal: false, global: None }, random);
            }
            return;
        };
        let (draws, links) = if self.config.one_group { (1, ways) } else { (ways, 1) };
        for _ in 0..draws {
            let Some(group) = groups.draw(from, to, random) else { return };
            draw(groups.links(from, group), links, links, random, |link, random| {
                weigh(self.over_link(groups, at, link, false), random);
            });
        }
    }

    /// A way by a link to another group.
    #[inline]
    fn over_link(&self, groups: &Groups, at: At<'_>, link: &GlobalLink, is_minimal: bool) -> Way {
        let hops = self.hops.between(at.from, link.far) + self.hops.between(link.far, at.to);
        let hop = Hop { port: groups.port(self.index(at.here), link), tag: Tag::towards(link.far) };
        Way { hop, hops, is_minimal, global: Some((link.near, link.channel)) }
    }

    /// The first channel between groups of a way that begins by a port of a switch and leads to another one, if anything is to be known of it.
    #[inline]
    fn first_global(&self, at: At<'_>, port: PortId, over: u32) -> Option<(NodeId, ChannelId)> {
        let is_reported = matches!(self.config.queue, Queue::Global(_));
        let groups = self.groups.as_ref().filter(|_| is_reported)?;
        let links = groups.links(self.via.group(at.from), self.via.group(over));
        let link = links.iter().find(|link| groups.port(self.index(at.here), link) == port)?;
        Some((link.near, link.channel))
    }

    #[inline]
    fn index(&self, switch: NodeId) -> usize {
        (switch - self.hosts) as usize
    }
}

impl Groups {
    fn new(
        network: &Network,
        table: &RouteTable,
        via: &Intermediates,
        edge_at: &[u32],
        is_cut: impl Fn(ChannelId) -> bool,
    ) -> Self {
        let (hosts, count) = (network.hosts(), via.groups());
        let mut links = vec![Vec::new(); count * count];
        let mut numbers = vec![0; count];
        for channel in 0..network.channels() {
            let Channel { from, to, tier, .. } = network.channel(channel);
            if network.global_tier() != Some(tier) || is_cut(channel) {
                continue;
            }
            let [here, there] = [from, to].map(|switch| via.group_of_switch(switch));
            let far = edge_at[(to - hosts) as usize];
            if here == there || here == u32::MAX || far == u32::MAX {
                continue;
            }
            let number = numbers[here as usize];
            numbers[here as usize] += 1;
            links[here as usize * count + there as usize].push(GlobalLink {
                number,
                near: from,
                far,
                channel,
            });
        }
        let joined = links.chunks(count).map(|of_group| {
            (0..).zip(of_group).filter(|(_, links)| !links.is_empty()).map(|(group, _)| group).collect()
        });
        let joined = joined.collect();
        let mut groups = Groups { count, links, joined, row: Vec::new(), ports: Vec::new() };
        for switch in hosts..network.nodes() {
            groups.row.push(narrow::<u32>(groups.ports.len()));
            let group = via.group_of_switch(switch) as usize;
            let Some(of_group) = groups.links.get(group * count..(group + 1) * count) else { continue };
            let mut of_group: Vec<GlobalLink> = of_group.iter().flatten().copied().collect();
            of_group.sort_unstable_by_key(|link| link.number);
            groups.ports.extend(of_group.iter().map(|link| {
                // Only minimal ports towards the link's other end, so that a packet never turns back.
                let ports = table.towards_edge(switch, link.far).ports;
                let begins = |&&port: &&PortId| network.ports(switch)[usize::from(port)] == link.channel;
                let leads = |&&port: &&PortId| network.neighbour(switch, port) == link.near;
                let port = ports.iter().find(begins).or_else(|| ports.iter().find(leads)).or(ports.first());
                port.copied().expect("the groups are joined")
            }));
        }
        groups
    }

    #[inline]
    fn links(&self, from: u32, to: u32) -> &[GlobalLink] {
        &self.links[from as usize * self.count + to as usize]
    }

    /// The port by which a way over a link of its group begins at a switch.
    #[inline]
    fn port(&self, switch: usize, link: &GlobalLink) -> PortId {
        self.ports[(self.row[switch] + link.number) as usize]
    }

    /// A uniform one of the groups to which one has links, but for another one; none if there is none.
    #[inline]
    fn draw(&self, from: u32, but: u32, random: &mut impl Rng) -> Option<u32> {
        let joined = &self.joined[from as usize];
        let left_out = joined.binary_search(&but);
        let count = joined.len() - usize::from(left_out.is_ok());
        let drawn = (count > 0).then(|| below(count, random))?;
        Some(joined[drawn + usize::from(left_out.is_ok_and(|left_out| drawn >= left_out))])
    }
}

/// All of some things if there are at most `most`, otherwise `count` of them, each drawn by itself.
fn draw<T, R: Rng>(all: &[T], most: u32, count: u32, random: &mut R, mut take: impl FnMut(&T, &mut R)) {
    if all.len() <= most as usize {
        all.iter().for_each(|one| take(one, random));
    } else {
        (0..count).for_each(|_| take(&all[below(all.len(), random)], random));
    }
}

#[cfg(test)]
mod tests;
