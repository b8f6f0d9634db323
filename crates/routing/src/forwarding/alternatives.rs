//! The ways among which UGAL chooses: minimal ones, and ways over an intermediate switch, each with its hops.

use std::ops::Range;

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
    hosts: u32,
    /// The links between groups, if those are drawn.
    groups: Option<Groups>,
}

/// Which groups are joined by which links. All that a packet asks is found by one look into a table.
#[derive(Clone, Debug)]
struct Groups {
    count: usize,
    /// By the pair of groups that they join, one pair after the other.
    links: Vec<GlobalLink>,
    pairs: Vec<Pair>,
    /// The links to each group that is joined to one, in ascending order, and so of one group after the other.
    joined: Vec<Links>,
    /// Per switch, what is added to the number of a link of its group for its place in `begins`.
    row: Vec<u32>,
    begins: Vec<Begin>,
}

/// Links by their numbers.
#[derive(Clone, Copy, Debug)]
struct Links {
    start: u32,
    end: u32,
}

/// What is known of two groups.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// The links from the first one to the second.
    links: Links,
    /// Where the groups that are joined to the first one begin.
    joined: u32,
    /// How many these are without the second.
    others: u32,
    /// Which of them is the second; none has the greatest number.
    rank: u32,
}

/// How a way over a link begins at a switch of its group.
#[derive(Clone, Copy, Debug)]
struct Begin {
    port: PortId,
    /// From there to the link's other end, if the switch has hosts.
    hops: u16,
}

/// A link from one group to another.
#[derive(Clone, Copy, Debug)]
struct GlobalLink {
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

/// What says the way that a packet takes by its header's hash.
// Not a closure, which would be called.
pub(crate) trait ByHash {
    /// How the packet begins on one of these minimal ports, or goes on.
    fn hop(&self, packet: PacketContext<'_>, ports: &[PortId]) -> Hop;
}

/// Where a packet is decided, and where it goes.
#[derive(Clone, Copy, Debug)]
struct At {
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
        let hops = Hops::measure(network, table, &is_cut);
        let groups = by_group.then(|| Groups::new((network, table), &via, &edge_at, &hops, &is_cut));
        Ok(Alternatives { config: config.clone(), via, hops, hosts: network.hosts(), groups })
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

    /// The way that a packet takes from here, and whether it is a minimal one.
    /// None if there is nothing to choose.
    #[inline(always)]
    pub(crate) fn choose(
        &self,
        packet: PacketContext<'_>,
        by_hash: impl ByHash,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Option<(Hop, bool)> {
        let PacketContext { forwarding, place: Place { here, row }, header } = packet;
        let table = forwarding.table();
        let (from, to) = (table.own_edge(row)?, table.edge_of(header.dst));
        if from == to {
            return None;
        }
        let at = At { here, from, to };
        let minimal = by_hash.hop(packet, table.candidates_of(row, to).ports);
        let mut scales = Scales::new(&self.config);
        self.weigh(&mut scales, self.minimal(at, minimal), here, view, random);
        if self.config.minimal > 1 && header.is_first() {
            scales = self.with_other_minimal(scales, (table, at), view, random);
        }
        self.against_non_minimal(scales, (table, at), view, random)
    }

    #[inline(always)]
    fn weigh(
        &self,
        scales: &mut Scales<'_, Hop>,
        way: Way,
        here: NodeId,
        view: &mut impl View,
        random: &mut impl Rng,
    ) {
        let load = self.load(&way, here, view);
        scales.weigh(way.hop, load, way.hops, way.is_minimal, random);
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
        let switch = self.index(here);
        let over = |link: u32| Hop {
            port: groups.begin(switch, link).port,
            tag: Tag::towards(groups.links[link as usize].far),
        };
        let globals = self.hops.globals(from, to);
        let pair = groups.pair(group, there);
        let is_nearer = |&link: &u32| self.hops.globals(groups.links[link as usize].far, to) < globals;
        let minimal = pair.links.numbers().filter(|_| self.config.minimal > 1).filter(is_nearer);
        let minimal = minimal.map(|link| (over(link), 1.0)).collect();
        let others = groups.others(pair);
        let others = others.flat_map(|links| evenly(links.numbers().map(over).collect(), 1.0));
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
    #[inline(always)]
    fn load(&self, way: &Way, here: NodeId, view: &mut impl View) -> u64 {
        match (&self.config.queue, way.global) {
            (Queue::Global(_), Some((near, channel))) if near != here => view.reported(channel),
            _ => self.config.load.of(view, way.hop.port),
        }
    }

    /// The way on which a packet goes by its header's hash.
    #[inline(always)]
    fn minimal(&self, at: At, hop: Hop) -> Way {
        let (hops, over) = match hop.tag.phase() {
            Phase::Minimal => (self.hops.between(at.from, at.to), at.to),
            Phase::Towards(edge) => (self.hops.between(at.from, edge) + self.hops.between(edge, at.to), edge),
        };
        Way { hop, hops, is_minimal: true, global: self.first_global(at, hop.port, over) }
    }

    /// Adds minimal ways besides that. Apart, and by value, so that scales without them stay in registers.
    #[inline(never)]
    fn with_other_minimal<'c>(
        &self,
        mut scales: Scales<'c, Hop>,
        (table, at): (&RouteTable, At),
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Scales<'c, Hop> {
        let (from, to) = (self.via.group(at.from), self.via.group(at.to));
        let most = self.config.minimal;
        let Some(groups) = self.groups.as_ref().filter(|_| from != to) else {
            let ports = table.towards_edge(at.here, at.to).ports;
            let some = Sample::of(narrow::<u32>(ports.len()), most, most - 1);
            for number in 0..some.count {
                let port = ports[some.place(number, random) as usize];
                let way = self.minimal(at, Hop { port, tag: Tag::DIRECT });
                self.weigh(&mut scales, way, at.here, view, random);
            }
            return scales;
        };
        let (globals, links) = (self.hops.globals(at.from, at.to), groups.pair(from, to).links);
        let some = Sample::of(links.count(), most, most - 1);
        for number in 0..some.count {
            let link = links.start + some.place(number, random);
            // Where a group is in pieces, it is not left again.
            if self.hops.globals(groups.links[link as usize].far, at.to) < globals {
                let way = self.over_link(groups, at, link, true);
                self.weigh(&mut scales, way, at.here, view, random);
            }
        }
        scales
    }

    /// Weighs ways over an intermediate switch or group, too, and says which way is the best of all. What is not so by default is apart, so that scales stay in registers.
    #[inline(always)]
    fn against_non_minimal(
        &self,
        mut scales: Scales<'_, Hop>,
        (table, at): (&RouteTable, At),
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Option<(Hop, bool)> {
        let between = (self.via.group(at.from), self.via.group(at.to));
        let Some(groups) = self.groups.as_ref().filter(|_| between.0 != between.1) else {
            return self.against_ways_over_switches(scales, (table, at), view, random);
        };
        if self.config.non_minimal > 1 {
            return self.against_several(scales, at, between, view, random);
        }
        if let Some(links) = groups.draw(between, random) {
            let link = links.start + Sample::of(links.count(), 1, 1).place(0, random);
            self.weigh(&mut scales, self.over_link(groups, at, link, false), at.here, view, random);
        }
        scales.choice()
    }

    /// The same where there are several ways over other groups.
    #[inline(never)]
    fn against_several(
        &self,
        mut scales: Scales<'_, Hop>,
        at: At,
        between: (u32, u32),
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Option<(Hop, bool)> {
        let ways = self.config.non_minimal;
        let (draws, count) = if self.config.one_group { (1, ways) } else { (ways, 1) };
        for _ in 0..draws {
            let Some((groups, links)) =
                self.groups.as_ref().and_then(|groups| Some((groups, groups.draw(between, random)?)))
            else {
                break;
            };
            let some = Sample::of(links.count(), count, count);
            for number in 0..some.count {
                let way = self.over_link(groups, at, links.start + some.place(number, random), false);
                self.weigh(&mut scales, way, at.here, view, random);
            }
        }
        scales.choice()
    }

    /// The same over intermediate switches that are drawn: where there are no groups, and within one.
    #[inline(never)]
    fn against_ways_over_switches(
        &self,
        mut scales: Scales<'_, Hop>,
        (table, at): (&RouteTable, At),
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Option<(Hop, bool)> {
        for _ in 0..self.config.non_minimal {
            let Some(edge) = self.via.draw(at.from, at.to, random) else { break };
            let ports = table.towards_edge(at.here, edge).ports;
            let hop = Hop { port: ports[below(ports.len(), random)], tag: Tag::towards(edge) };
            let hops = self.hops.between(at.from, edge) + self.hops.between(edge, at.to);
            let way = Way { hop, hops, is_minimal: false, global: None };
            self.weigh(&mut scales, way, at.here, view, random);
        }
        scales.choice()
    }

    /// A way by one of the links to another group.
    #[inline(always)]
    fn over_link(&self, groups: &Groups, at: At, link: u32, is_minimal: bool) -> Way {
        let Begin { port, hops } = groups.begin(self.index(at.here), link);
        let GlobalLink { near, far, channel } = groups.links[link as usize];
        let hops = u32::from(hops) + self.hops.between(far, at.to);
        Way { hop: Hop { port, tag: Tag::towards(far) }, hops, is_minimal, global: Some((near, channel)) }
    }

    /// The first channel between groups of a way that begins by a port of a switch and leads to another one, if anything is to be known of it.
    #[inline(always)]
    fn first_global(&self, at: At, port: PortId, over: u32) -> Option<(NodeId, ChannelId)> {
        match self.config.queue {
            Queue::Local(_) => None,
            Queue::Global(_) => self.reported_global(at, port, over),
        }
    }

    #[inline(never)]
    fn reported_global(&self, at: At, port: PortId, over: u32) -> Option<(NodeId, ChannelId)> {
        let groups = self.groups.as_ref()?;
        let pair = groups.pair(self.via.group(at.from), self.via.group(over));
        let begins = |&link: &u32| groups.begin(self.index(at.here), link).port == port;
        let link = pair.links.numbers().find(begins)?;
        let GlobalLink { near, channel, .. } = groups.links[link as usize];
        Some((near, channel))
    }

    #[inline]
    fn index(&self, switch: NodeId) -> usize {
        (switch - self.hosts) as usize
    }
}

impl Groups {
    fn new(
        (network, table): (&Network, &RouteTable),
        via: &Intermediates,
        edge_at: &[u32],
        hops: &Hops,
        is_cut: impl Fn(ChannelId) -> bool,
    ) -> Self {
        let (hosts, count) = (network.hosts(), via.groups());
        let mut between = vec![Vec::new(); count * count];
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
            between[here as usize * count + there as usize].push(GlobalLink { near: from, far, channel });
        }
        let (mut links, mut pairs, mut joined) = (Vec::new(), Vec::with_capacity(count * count), Vec::new());
        for of_group in between.chunks(count) {
            let first = narrow::<u32>(joined.len());
            let all = narrow::<u32>(of_group.iter().filter(|links| !links.is_empty()).count());
            for of_pair in of_group {
                let start = narrow::<u32>(links.len());
                links.extend_from_slice(of_pair);
                let of_pair = Links { start, end: narrow::<u32>(links.len()) };
                let is_joined = of_pair.count() > 0;
                let rank = if is_joined { narrow::<u32>(joined.len()) - first } else { u32::MAX };
                pairs.push(Pair { links: of_pair, joined: first, others: all - u32::from(is_joined), rank });
                joined.extend(is_joined.then_some(of_pair));
            }
        }
        let mut groups = Groups { count, links, pairs, joined, row: Vec::new(), begins: Vec::new() };
        for switch in hosts..network.nodes() {
            let group = via.group_of_switch(switch) as usize;
            if group >= count {
                groups.row.push(0);
                continue;
            }
            let first = groups.pairs[group * count].links.start;
            let of_group = Links { start: first, end: groups.pairs[(group + 1) * count - 1].links.end };
            groups.row.push(narrow::<u32>(groups.begins.len()).wrapping_sub(first));
            let edge = edge_at[(switch - hosts) as usize];
            for link in of_group.numbers() {
                let link = groups.links[link as usize];
                // Only minimal ports towards the link's other end, so that a packet never turns back.
                let ports = table.towards_edge(switch, link.far).ports;
                let begins = |&&port: &&PortId| network.ports(switch)[usize::from(port)] == link.channel;
                let leads = |&&port: &&PortId| network.neighbour(switch, port) == link.near;
                let port = ports.iter().find(begins).or_else(|| ports.iter().find(leads)).or(ports.first());
                let hops = if edge == u32::MAX { 0 } else { narrow::<u16>(hops.between(edge, link.far)) };
                groups.begins.push(Begin { port: *port.expect("the groups are joined"), hops });
            }
        }
        groups
    }

    #[inline(always)]
    fn pair(&self, from: u32, to: u32) -> Pair {
        self.pairs[from as usize * self.count + to as usize]
    }

    /// How a way over a link of its group begins at a switch.
    #[inline(always)]
    fn begin(&self, switch: usize, link: u32) -> Begin {
        self.begins[self.row[switch].wrapping_add(link) as usize]
    }

    /// The links to the groups to which a group has links, but for another one.
    fn others(&self, but: Pair) -> impl Iterator<Item = Links> {
        let some = but.others + u32::from(but.rank != u32::MAX);
        (0..some).filter(move |&one| one != but.rank).map(move |one| self.joined[(but.joined + one) as usize])
    }

    /// Those to a uniform one of these; none if there is none.
    #[inline(always)]
    fn draw(&self, (from, but): (u32, u32), random: &mut impl Rng) -> Option<Links> {
        let Pair { joined, others, rank, .. } = self.pair(from, but);
        let drawn = (others > 0).then(|| below_u32(others, random))?;
        Some(self.joined[(joined + drawn + u32::from(drawn >= rank)) as usize])
    }
}

impl Links {
    #[inline(always)]
    fn count(self) -> u32 {
        self.end - self.start
    }

    fn numbers(self) -> Range<u32> {
        self.start..self.end
    }
}

/// A uniform number below `count`.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "below a number of 32 bits")]
fn below_u32(count: u32, random: &mut impl Rng) -> u32 {
    below(count as usize, random) as u32
}

/// All of some things if there are few, otherwise some of them, each drawn by itself.
#[derive(Clone, Copy, Debug)]
struct Sample {
    all: u32,
    count: u32,
    is_drawn: bool,
}

impl Sample {
    /// All if there are at most `most`, otherwise `count` of them.
    #[inline(always)]
    fn of(all: u32, most: u32, count: u32) -> Self {
        let is_drawn = all > most;
        Sample { all, count: if is_drawn { count } else { all }, is_drawn }
    }

    /// The place of one of them, by its number among them.
    #[inline(always)]
    fn place(self, number: u32, random: &mut impl Rng) -> u32 {
        if self.is_drawn { below_u32(self.all, random) } else { number }
    }
}

#[cfg(test)]
mod tests;
