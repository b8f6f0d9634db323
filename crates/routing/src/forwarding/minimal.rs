//! The candidate ports of every switch towards every host.

use netloom_units::narrow;
use std::ops::Range;

use netloom_topology::{ChannelId, HostId, Network, NodeId, PortId};

use super::distances::{Distances, Links, ROOTS, bits};
use super::numbering::Numbering;
use super::own_rows::OwnRows;
use super::port_sets::PortSets;
use super::rows::{Numbers, Rows, Ways};
use crate::header::Candidates;

/// For every switch and destination, the ports that lie on a minimal path, in port order.
///
/// A path is minimal if none has fewer hops. In networks of groups with global links between them (Dragonflies) paths are first compared by
/// their global links, so that a minimal path crosses one at most, also where two would be fewer hops in all (Kim et al., ISCA'08).
///
/// Destinations are kept per edge switch, and equal sets of ports are kept once (on a tree there are little more than there are
/// ports: the set of all up ports and every single down port). Switches with equal sets towards all share a row of one, two or four bytes
/// per edge switch: on a tree all edge switches, those of a pod, and all core switches do. In a random network hardly two switches share
/// even a set; there each has a row of its own, with its own sets, when somebody first asks for a way from it.
#[derive(Clone, Debug)]
pub struct RouteTable {
    hosts: u32,
    /// The switches that have hosts, in the order of their first hosts.
    edge_switch: Vec<NodeId>,
    /// How many they are.
    edges: usize,
    /// Per switch, its index among them, if it has one.
    edge_index: Vec<u32>,
    edge_of: Edges,
    /// Per host, the port of its edge switch.
    last_port: Vec<PortId>,
    rows: Kept,
    reach: Reach,
    unreachable: Option<Unreachable>,
}

/// The ways of all switches. What a row says of the way to a switch of its own is not meant.
#[derive(Clone, Debug)]
enum Kept {
    Shared(SharedRows),
    Own(OwnRows),
}

/// Rows that switches share, of sets that all share.
#[derive(Clone, Debug)]
struct SharedRows {
    /// Per switch, its row.
    row_of: Vec<u32>,
    /// `set_of[row × edges + edge]` indexes `sets`.
    set_of: Numbers,
    sets: PortSets,
}

/// Shared rows, a block of roots at a time.
struct Sharing {
    numbering: Numbering,
    rows: Rows,
    ways: Vec<Ways>,
}

impl Sharing {
    /// Sets that are known already keep the numbers that they have.
    fn new(network: &Network, before: Option<&SharedRows>) -> Self {
        let switches = network.hosts()..network.nodes();
        let most = switches.clone().map(|switch| network.ports(switch).len()).max().unwrap_or(0);
        let known = before.iter().flat_map(|before| before.sets.iter());
        let numbering = Numbering::new(most, known);
        Sharing { numbering, rows: Rows::new(switches.len()), ways: vec![Ways::new(); switches.len()] }
    }

    fn add(&mut self, links: &Links, distances: &Distances, roots: &[usize]) {
        self.numbering.of_roots(links, distances, 0, &mut self.ways);
        self.rows.add(roots, &self.ways);
    }

    fn finish(self, edges: usize) -> SharedRows {
        let (row_of, set_of) = self.rows.finish(edges);
        SharedRows { row_of, set_of, sets: self.numbering.finish() }
    }
}

/// Rows are shared where this many ways, of a switch to a root, have the same set on average. Regular networks of 500 hosts and more have 66 and more (HyperX and Slim Fly the
/// fewest), random ones of 2,000 hosts and more three at most.
const LEAST_SHARED: usize = 8;

/// How long minimal paths are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The most global hops from any switch to one with hosts.
    pub(crate) globals: u32,
    /// The most hops from any switch to one with hosts on a path without global hops.
    pub(crate) local: u32,
    /// The most hops between two switches with hosts.
    pub(crate) between: u32,
    /// The most hops from one of them to another and on to a third; 0 where there are not three.
    pub(crate) over: u32,
}

impl Reach {
    /// Counts in the distances of some roots, all of them switches with hosts, from the other ones.
    fn count(&mut self, distances: &Distances, edges: &[usize]) {
        let mut levels: Vec<_> = distances.levels().filter(|&(_, hops, _)| hops > 0).collect();
        levels.sort_unstable_by_key(|&(_, hops, _)| std::cmp::Reverse(hops));
        // The roots from which one switch is as far as this or farther, those from which two are, and the hops to the first.
        let (mut once, mut twice, mut farthest) = (0, 0, [0; ROOTS]);
        for (globals, hops, at) in levels {
            self.globals = self.globals.max(globals);
            if globals == 0 {
                self.local = self.local.max(hops);
            }
            let (known_once, known_twice) = (once, twice);
            for &edge in edges {
                twice |= once & at[edge];
                once |= at[edge];
            }
            for root in bits(once & !known_once) {
                farthest[root] = hops;
                self.between = self.between.max(hops);
            }
            bits(twice & !known_twice).for_each(|root| self.over = self.over.max(farthest[root] + hops));
        }
    }
}

/// The edge switches of hosts.
#[derive(Clone, Debug)]
struct Edges {
    /// One after the other has as many hosts: a product by this, 2³² over that number, in place of a division. 0 if they have not.
    reciprocal: u64,
    /// Of every host, if that does not say it.
    listed: Vec<u32>,
}

impl Edges {
    /// Of so many edge switches.
    fn new(edge_of: Vec<u32>, edges: usize) -> Self {
        let each = edge_of.len().div_ceil(edges.max(1)).max(1) as u64;
        let reciprocal = (1u64 << 32).div_ceil(each);
        let is_alike = |(host, edge): (u64, &u32)| (host * reciprocal) >> 32 == u64::from(*edge);
        match (0..).zip(&edge_of).all(is_alike) {
            true => Edges { reciprocal, listed: Vec::new() },
            false => Edges { reciprocal: 0, listed: edge_of },
        }
    }

    #[inline(always)]
    fn of(&self, host: HostId) -> u32 {
        match self.reciprocal {
            0 => self.listed[host as usize],
            reciprocal => ((u64::from(host) * reciprocal) >> 32) as u32,
        }
    }
}

/// A switch's part of a [`RouteTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    number: usize,
    /// Where it begins among shared rows.
    start: usize,
    /// Its own index among the edge switches; none has the greatest.
    edge: u32,
}

/// Some host cannot be reached because of the links that were cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("with the cut links, switch {switch} cannot reach host {host}")]
pub struct Unreachable {
    /// A switch that lost its way.
    pub switch: NodeId,
    /// A host it cannot reach.
    pub host: HostId,
}

impl RouteTable {
    /// Minimal paths over the links that are not cut.
    ///
    /// # Errors
    /// If some switch to which a host is attached cannot reach some host.
    pub fn minimal(network: &Network, is_cut: impl Fn(ChannelId) -> bool) -> Result<Self, Unreachable> {
        let table = RouteTable::in_part(network, is_cut, None);
        table.unreachable().map_or(Ok(table), Err)
    }

    /// The same where some hosts may be out of reach: no port leads there. Sets of ports keep the numbers that they have in the table
    /// before it, if there is one, at switches whose ways are those of before.
    pub fn in_part(
        network: &Network,
        is_cut: impl Fn(ChannelId) -> bool,
        before: Option<&RouteTable>,
    ) -> Self {
        RouteTable::shared_from(LEAST_SHARED, network, is_cut, before)
    }

    /// The same where sets are shared if `least` ways have the same one on average.
    fn shared_from(
        least: usize,
        network: &Network,
        is_cut: impl Fn(ChannelId) -> bool,
        before: Option<&RouteTable>,
    ) -> Self {
        let (hosts, switches) = (network.hosts(), network.switches() as usize);
        let mut edge_switch: Vec<NodeId> = Vec::new();
        let mut edge_index = vec![u32::MAX; switches];
        let mut edge_of_host = Vec::with_capacity(hosts as usize);
        let mut last_port = Vec::with_capacity(hosts as usize);
        for host in 0..hosts {
            let up = network.ports(host)[0];
            let switch = network.channel(up).to;
            let slot = &mut edge_index[(switch - hosts) as usize];
            if *slot == u32::MAX {
                *slot = narrow::<u32>(edge_switch.len());
                edge_switch.push(switch);
            }
            let port = network.ports(switch).iter().position(|&channel| channel == (up ^ 1));
            let port = narrow::<PortId>(port.expect("a link has two ends"));
            edge_of_host.push(*slot);
            last_port.push(port);
        }
        let edges = edge_switch.len();
        let links = Links::new(network, is_cut);
        let roots: Vec<usize> = edge_switch.iter().map(|&switch| (switch - hosts) as usize).collect();
        let mut sharing = match before.map(|before| &before.rows) {
            None => Some(Sharing::new(network, None)),
            Some(Kept::Shared(before)) => Some(Sharing::new(network, Some(before))),
            Some(Kept::Own(_)) => None,
        };
        let (mut reach, mut blocks, mut lost) = (Reach::default(), Vec::new(), None);
        for (block, some) in roots.chunks(ROOTS).enumerate() {
            let distances = Distances::measure(&links, some);
            reach.count(&distances, &roots);
            lost = lost.or_else(|| {
                let (root, switch) = distances.lost(&roots)?;
                Some((block * ROOTS + root, switch))
            });
            if let Some(shared) = &mut sharing {
                shared.add(&links, &distances, some);
                let is_worth_it =
                    switches * distances.count() >= least.saturating_mul(shared.numbering.found());
                if block > 0 || before.is_some() || is_worth_it {
                    continue;
                }
                // Other blocks will be alike.
                sharing = None;
            }
            blocks.push(distances);
        }
        let rows = match sharing {
            Some(shared) => Kept::Shared(shared.finish(edges)),
            None => Kept::Own(OwnRows::new(links, blocks)),
        };
        let edge_of = Edges::new(edge_of_host, edges);
        let unreachable = lost.and_then(|(edge, switch)| {
            let host = (0..hosts).find(|&host| edge_of.of(host) as usize == edge)?;
            Some(Unreachable { switch: hosts + narrow::<NodeId>(switch), host })
        });
        RouteTable { hosts, edge_switch, edges, edge_index, edge_of, last_port, rows, reach, unreachable }
    }

    /// How long its paths are.
    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    /// A switch with hosts, and a host that it does not reach.
    pub fn unreachable(&self) -> Option<Unreachable> {
        self.unreachable
    }

    /// Whether a switch forwards alike by both tables.
    pub fn agrees_at(&self, switch: NodeId, other: &RouteTable) -> bool {
        let ports = |table: &RouteTable, edge| table.towards_edge(switch, edge).ports.to_vec();
        (0..self.edges()).all(|edge| ports(self, edge) == ports(other, edge))
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// The ports of `switch` on minimal paths to `host`.
    pub fn candidates(&self, switch: NodeId, host: HostId) -> Candidates<'_> {
        self.candidates_in_row(self.row(switch), host)
    }

    /// Number of switches that have hosts, the edge switches.
    pub fn edges(&self) -> u32 {
        narrow::<u32>(self.edges)
    }

    /// An edge switch by its index; they are in the order of their first hosts.
    #[inline]
    pub fn edge_switch(&self, edge: u32) -> NodeId {
        self.edge_switch[edge as usize]
    }

    /// The index of the edge switch to which a host is attached.
    #[inline]
    pub fn edge_of(&self, host: HostId) -> u32 {
        self.edge_of.of(host)
    }

    /// The ports of `switch` on minimal paths to an edge switch; none at that switch itself.
    #[inline]
    pub fn towards_edge(&self, switch: NodeId, edge: u32) -> Candidates<'_> {
        if self.edge_switch(edge) == switch {
            return Candidates { ports: &[], set: u32::MAX };
        }
        self.towards_edge_in_row(self.row_number(switch), edge)
    }

    /// The ports of a switch on minimal paths to any of up to 64 edge switches, in order, and to which of these; none lead to itself. The edge switches are those of a block:
    /// they begin with a multiple of 64.
    pub(crate) fn towards_block(&self, switch: NodeId, block: Range<u32>, ports: &mut Vec<(PortId, u64)>) {
        match &self.rows {
            Kept::Shared(_) => {
                ByPort::default().gather(block, ports, |edge, tell| {
                    self.towards_edge(switch, edge).ports.iter().copied().for_each(tell);
                });
            }
            Kept::Own(own) => own.closer((switch - self.hosts) as usize, block.start as usize / ROOTS, ports),
        }
    }

    /// Switches with equal sets towards all may share a row; so many there are.
    pub(crate) fn rows(&self) -> usize {
        match &self.rows {
            Kept::Shared(shared) => shared.set_of.len().checked_div(self.edges).unwrap_or(0),
            Kept::Own(_) => self.edge_index.len(),
        }
    }

    /// The number of a switch's row.
    pub(crate) fn row_number(&self, switch: NodeId) -> usize {
        let index = (switch - self.hosts) as usize;
        match &self.rows {
            Kept::Shared(shared) => shared.row_of[index] as usize,
            Kept::Own(_) => index,
        }
    }

    /// [`Self::towards_edge`] of the switches of a row other than that edge switch itself.
    #[inline(always)]
    pub(crate) fn towards_edge_in_row(&self, row: usize, edge: u32) -> Candidates<'_> {
        self.candidates_of(Row { number: row, start: row * self.edges, edge: u32::MAX }, edge)
    }

    /// The numbers of sets among which a row's are, where these begin, and the sets.
    #[inline(always)]
    fn kept(&self, row: Row) -> (&Numbers, usize, &PortSets) {
        match &self.rows {
            Kept::Shared(shared) => (&shared.set_of, row.start, &shared.sets),
            Kept::Own(own) => {
                let (set_of, sets) = own.row(row.number);
                (set_of, 0, sets)
            }
        }
    }

    /// The ports of the switches of a row towards an edge switch other than that itself.
    #[inline(always)]
    fn candidates_of(&self, row: Row, edge: u32) -> Candidates<'_> {
        let (set_of, start, sets) = self.kept(row);
        let set = set_of.at(start + edge as usize);
        Candidates { ports: sets.at(set), set }
    }

    /// A switch's part of this table; it may remember that.
    pub fn row(&self, switch: NodeId) -> Row {
        let number = self.row_number(switch);
        Row { number, start: number * self.edges, edge: self.edge_index[(switch - self.hosts) as usize] }
    }

    /// [`Self::candidates`] of a switch that remembers its [`Self::row`].
    #[inline(always)]
    pub fn candidates_in_row(&self, row: Row, host: HostId) -> Candidates<'_> {
        let edge = self.edge_of(host);
        if edge == row.edge {
            let port = std::slice::from_ref(&self.last_port[host as usize]);
            return Candidates { ports: port, set: u32::MAX };
        }
        self.candidates_of(row, edge)
    }

    /// What a switch that remembers its [`Self::row`] knows, for many questions one after the other.
    #[inline]
    pub fn in_row(&self, row: Row) -> InRow<'_> {
        let (set_of, start, sets) = self.kept(row);
        InRow { table: self, edge: row.edge, set_of, start, sets }
    }

    /// The ports of a set of a row that has not just one, by its number.
    #[inline(always)]
    pub fn set(&self, row: Row, set: u32) -> &[PortId] {
        self.kept(row).2.several(set)
    }
}

/// Scratch in which the ports towards many targets are put together.
#[derive(Default)]
pub(super) struct ByPort(Vec<u64>);

impl ByPort {
    /// Of the ports that `tell` tells of each target, in order, by which targets they are told; a bit each.
    pub(super) fn gather(
        &mut self,
        targets: Range<u32>,
        ports: &mut Vec<(PortId, u64)>,
        mut tell: impl FnMut(u32, &mut dyn FnMut(PortId)),
    ) {
        let ByPort(by_port) = self;
        by_port.clear();
        for (bit, target) in targets.enumerate() {
            tell(target, &mut |port| {
                let port = usize::from(port);
                if port >= by_port.len() {
                    by_port.resize(port + 1, 0);
                }
                by_port[port] |= 1 << bit;
            });
        }
        ports.clear();
        ports.extend((0..).zip(by_port.iter().copied()).filter(|&(_, targets)| targets != 0));
    }
}

/// What one switch knows.
#[derive(Clone, Copy, Debug)]
pub struct InRow<'t> {
    table: &'t RouteTable,
    /// See [`Row`].
    edge: u32,
    set_of: &'t Numbers,
    /// Where its numbers begin.
    start: usize,
    sets: &'t PortSets,
}

impl InRow<'_> {
    /// The only port on minimal paths to `host`; if there is not one, the number of their [set](RouteTable::set).
    ///
    /// # Errors
    /// As said.
    #[inline(always)]
    pub fn only_port(&self, host: HostId) -> Result<PortId, u32> {
        let edge = self.table.edge_of(host);
        if edge == self.edge {
            return Ok(self.table.last_port[host as usize]);
        }
        let set = self.set_of.at(self.start + edge as usize);
        self.sets.only(set).ok_or(set)
    }
}

/// Hops between all switches that have hosts, on minimal paths.
#[derive(Clone, Debug)]
pub(crate) struct Hops {
    edges: usize,
    /// The hops that occur, in all and over global links; up to 65,535.
    kinds: Vec<(u16, u16)>,
    /// Per pair, its place there.
    between: Numbers,
}

impl Hops {
    /// Those of a network without its cut links.
    pub(crate) fn measure(network: &Network, table: &RouteTable, is_cut: impl Fn(ChannelId) -> bool) -> Self {
        let links = Links::new(network, is_cut);
        let edges: Vec<usize> =
            (0..table.edges()).map(|edge| (table.edge_switch(edge) - network.hosts()) as usize).collect();
        // What no path leads to is as far as can be said.
        let (mut kinds, mut between) = (vec![(u16::MAX, u16::MAX)], Numbers::default());
        let count = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
        let mut rows = Vec::new();
        for roots in edges.chunks(ROOTS) {
            let distances = Distances::measure(&links, roots);
            rows.clear();
            rows.resize(roots.len() * table.edges, 0);
            for (globals, hops, at) in distances.levels() {
                let kind = (count(hops), count(globals));
                let place = kinds.iter().position(|&known| known == kind).unwrap_or_else(|| {
                    kinds.push(kind);
                    kinds.len() - 1
                });
                for (from, &edge) in edges.iter().enumerate() {
                    // All links lead both ways.
                    bits(at[edge]).for_each(|root| rows[root * table.edges + from] = narrow::<u32>(place));
                }
            }
            between.extend(&rows);
        }
        Hops { edges: table.edges, kinds, between }
    }

    /// Hops between two switches, by their indices among those with hosts.
    pub(crate) fn between(&self, from: u32, to: u32) -> u32 {
        u32::from(self.kind(from, to).0)
    }

    /// Those of them that cross global links.
    pub(crate) fn globals(&self, from: u32, to: u32) -> u16 {
        self.kind(from, to).1
    }

    fn kind(&self, from: u32, to: u32) -> (u16, u16) {
        self.kinds[self.between.at(to as usize * self.edges + from as usize) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use netloom_topology::{BuildContext, Complete, Dragonfly, FatTree, Jellyfish, SlimFly, Topology};
    use proptest::prelude::*;

    use super::*;

    fn networks() -> Vec<Network> {
        let build =
            |topology: Topology| topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        vec![
            build(Topology::FatTree(FatTree { k: Some(8), ..FatTree::default() })),
            build(Topology::SlimFly(SlimFly { q: Some(7), ..SlimFly::default() })),
            build(Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(3), ..Dragonfly::default() })),
            build(Topology::Jellyfish(Jellyfish { switches: 90, degree: 5, ..Jellyfish::default() })),
            // With more ports than a word has bits.
            build(Topology::Complete(Complete { switches: 75, ..Complete::default() })),
        ]
    }

    /// The lengths of the ways of all switches to one, global links before hops, found by trying every link until nothing changes.
    fn lengths(network: &Network, is_cut: &[bool], root: NodeId) -> Vec<Option<(u32, u32)>> {
        let hosts = network.hosts();
        let mut lengths = vec![None; network.nodes() as usize];
        lengths[root as usize] = Some((0, 0));
        loop {
            let mut changes = false;
            for channel in (0..network.channels()).filter(|&channel| !is_cut[channel as usize / 2]) {
                let ends = network.channel(channel);
                let is_between = ends.from >= hosts && ends.to >= hosts;
                let Some((globals, hops)) = lengths[ends.to as usize].filter(|_| is_between) else {
                    continue;
                };
                let through = (globals + u32::from(network.global_tier() == Some(ends.tier)), hops + 1);
                let length = &mut lengths[ends.from as usize];
                if length.is_none_or(|length| through < length) {
                    (*length, changes) = (Some(through), true);
                }
            }
            if !changes {
                return lengths;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// On what is left of a network every port leads nearer by its length, and the hops are those of the way, whether switches share rows or not. Sets are numbered as they
        /// come up: shared ones by edge switch, then by switch, after those that were there before, a switch's own by edge switch. A block of ways is that of the single ones.
        #[test]
        fn ports_lie_on_the_shortest_ways(
            of in 0usize..5, seed in any::<u64>(), cuts in 0u64..4, is_later in any::<bool>(), shares in any::<bool>(),
        ) {
            let network = &networks()[of];
            let is_cut: Vec<bool> = (0..u64::from(network.channels()) / 2)
                .map(|link| {
                    let ends = network.links()[link as usize];
                    let is_between = !network.is_host(ends.a) && !network.is_host(ends.b);
                    is_between && seed.wrapping_add(link).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59 < cuts
                })
                .collect();
            let is_channel_cut = |channel: ChannelId| is_cut[channel as usize / 2];
            let least = if shares { 0 } else { usize::MAX };
            let before = is_later.then(|| {
                let is_cut = |channel| channel / 2 % 5 == 3 && is_channel_cut(channel);
                RouteTable::shared_from(least, network, is_cut, None)
            });
            let table = RouteTable::shared_from(least, network, is_channel_cut, before.as_ref());
            prop_assert_eq!(matches!(table.rows, Kept::Shared(_)), shares);
            let hops = Hops::measure(network, &table, is_channel_cut);
            let switches = network.hosts()..network.nodes();
            let shared = before.iter().flat_map(|table| match &table.rows {
                Kept::Shared(shared) => shared.sets.iter().map(<[PortId]>::to_vec).collect(),
                Kept::Own(_) => Vec::new(),
            });
            // One list of all switches, or one of each.
            let mut known: Vec<Vec<Vec<PortId>>> = vec![shared.collect(); if shares { 1 } else { switches.len() }];
            let (mut lost, mut by_block) = (Vec::new(), Vec::new());
            for edge in 0..table.edges() {
                let root = table.edge_switch(edge);
                let lengths = lengths(network, &is_cut, root);
                for here in switches.clone() {
                    let is_nearer = |&(_, &channel): &(PortId, &ChannelId)| {
                        let ends = network.channel(channel);
                        let global = u32::from(network.global_tier() == Some(ends.tier));
                        !is_channel_cut(channel)
                            && ends.to >= network.hosts()
                            && lengths[ends.to as usize].map(|(globals, hops)| (globals + global, hops + 1))
                                .is_some_and(|through| lengths[here as usize] == Some(through))
                    };
                    let ports = (0..).zip(network.ports(here)).filter(is_nearer);
                    let expected: Vec<PortId> = ports.map(|(port, _)| port).collect();
                    let found = table.towards_edge(here, edge);
                    prop_assert_eq!(found.ports, &expected);
                    let first = edge / 64 * 64;
                    table.towards_block(here, first..table.edges().min(first + 64), &mut by_block);
                    let in_block = by_block.iter().filter(|&&(_, to)| to >> (edge % 64) & 1 == 1);
                    prop_assert_eq!(in_block.map(|&(port, _)| port).collect::<Vec<_>>(), expected.clone());
                    prop_assert!(by_block.is_sorted() && by_block.iter().all(|&(_, to)| to != 0));
                    if here != root && expected.is_empty() && (0..table.edges()).any(|edge| table.edge_switch(edge) == here) {
                        lost.push((edge, here));
                    }
                    let known = &mut known[if shares { 0 } else { (here - network.hosts()) as usize }];
                    let number = known.iter().position(|set| *set == expected).unwrap_or_else(|| {
                        known.push(expected);
                        known.len() - 1
                    });
                    prop_assert!(here == root || found.set as usize == number);
                }
                for from in 0..table.edges() {
                    let length = lengths[table.edge_switch(from) as usize].unwrap_or((255, 255));
                    prop_assert_eq!((u32::from(hops.globals(from, edge)), hops.between(from, edge)), length);
                }
            }
            let unreachable = table.unreachable().map(|lost| (table.edge_of(lost.host), lost.switch));
            prop_assert_eq!(unreachable, lost.into_iter().min());
        }

        /// Where a random network's ways do not change at a switch, nor do the numbers of its sets.
        #[test]
        fn numbers_stay_where_ways_do(seed in any::<u64>()) {
            let network = &networks()[3];
            let cut = (seed % u64::from(network.channels() / 2)) as u32;
            let is_cut = |channel| channel / 2 == cut && !network.is_host(network.channel(channel).from) && !network.is_host(network.channel(channel).to);
            let before = RouteTable::shared_from(usize::MAX, network, |_| false, None);
            let after = RouteTable::in_part(network, is_cut, Some(&before));
            for here in (network.hosts()..network.nodes()).filter(|&here| before.agrees_at(here, &after)) {
                for edge in 0..before.edges() {
                    prop_assert_eq!(before.towards_edge(here, edge).set, after.towards_edge(here, edge).set);
                }
            }
        }
    }

    /// A random network of some size shares too few sets.
    #[test]
    fn regular_networks_share_rows_and_random_ones_do_not() {
        let build =
            |topology: Topology| topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        let random =
            build(Topology::Jellyfish(Jellyfish { switches: 300, degree: 16, ..Jellyfish::default() }));
        let shares =
            |network: &Network| matches!(RouteTable::in_part(network, |_| false, None).rows, Kept::Shared(_));
        assert!(networks().iter().all(shares));
        assert!(!shares(&random));
    }

    /// With all links and without some, so that nothing leads to some hosts.
    #[test]
    fn a_row_says_which_port_is_the_only_one() {
        for (network, every) in networks().iter().flat_map(|network| [(network, u32::MAX), (network, 2)]) {
            let table = RouteTable::in_part(network, |channel| channel / 2 % every == 1, None);
            for here in network.hosts()..network.nodes() {
                let row = table.row(here);
                for host in 0..network.hosts() {
                    let ports = table.candidates_in_row(row, host).ports;
                    match table.in_row(row).only_port(host) {
                        Ok(port) => assert_eq!(ports, [port]),
                        Err(set) => assert!(ports.len() != 1 && table.set(row, set) == ports),
                    }
                }
            }
        }
    }

    #[test]
    fn switches_with_equal_ways_share_a_row() {
        let table = RouteTable::minimal(&networks()[0], |_| false).unwrap();
        let Kept::Shared(shared) = &table.rows else { panic!("sets of ports are shared") };
        let rows: std::collections::BTreeSet<_> = shared.row_of.iter().collect();
        // Those of edge switches, of each of eight pods, and of core switches.
        assert_eq!((rows.len(), shared.set_of.len()), (10, 10 * 32));
    }

    /// By a product where switches have equally many hosts, one after the other, the last one perhaps fewer; by a list elsewhere.
    #[test]
    fn the_edge_switches_of_hosts_are_the_listed_ones() {
        for each in 1..70 {
            let listed: Vec<u32> = (0..each * 40 - each / 2).map(|host| host / each).collect();
            let edges = Edges::new(listed.clone(), 40);
            assert_ne!(edges.reciprocal, 0, "{each} hosts per switch");
            assert!((0..).zip(&listed).all(|(host, &edge)| edges.of(host) == edge));
        }
        for listed in [vec![0, 1, 0, 1], vec![0, 0, 0, 1, 1, 2], vec![0, 1, 1]] {
            let edges = Edges::new(listed.clone(), 2);
            assert_eq!(edges.reciprocal, 0, "{listed:?}");
            assert!((0..).zip(&listed).all(|(host, &edge)| edges.of(host) == edge));
        }
    }
}
