//! The candidate ports of every switch towards every host.

mod edges;
mod lengths;
#[cfg(test)]
mod tests;

use netloom_units::narrow;
use std::ops::Range;

use netloom_topology::{ChannelId, HostId, Network, NodeId, PortId};

use super::distances::{Distances, Links, ROOTS};
use super::numbering::Numbering;
use super::own_rows::OwnRows;
use super::port_sets::PortSets;
use super::rows::{Numbers, Rows, Ways};
use crate::header::Candidates;
use edges::Edges;
pub(crate) use lengths::{Hops, Reach};

/// For every switch and destination, the ports that lie on a minimal path, in port order.
///
/// A path is minimal if none has fewer hops. In networks of groups with global links between them (Dragonflies) paths are first compared by
/// their global links, so that a minimal path crosses one at most, also where two would be fewer hops in all (Kim et al., ISCA'08).
///
/// Destinations are kept per edge switch, and equal sets of ports are kept once (on a tree there are little more than there are
/// ports: the set of all up ports and every single down port). Switches with equal sets towards all share a row of one, two or four bytes
/// per edge switch: on a tree all edge switches, those of a pod, and all core switches do. In a random network hardly two switches share
/// even a set; there each has a row of its own, with its own sets, when a way from it is first asked for.
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

/// A switch's part of a [`RouteTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    number: usize,
    /// Where it begins among shared rows.
    start: usize,
    /// Its own index among the edge switches; none has the greatest.
    edge: u32,
}

impl Row {
    /// Whether hosts are attached to the switch.
    #[inline(always)]
    pub fn has_hosts(self) -> bool {
        self.edge != u32::MAX
    }
}

/// Some host cannot be reached because of the links that were cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("with the cut links, switch s{} cannot reach host h{host}", switch - hosts)]
pub struct Unreachable {
    /// A switch that lost its way.
    pub switch: NodeId,
    /// A host it cannot reach.
    pub host: HostId,
    /// Hosts of the network.
    pub(crate) hosts: HostId,
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
        RouteTable::shared_from(LEAST_SHARED, network, Links::new(network, is_cut), before)
    }

    /// The same of a grid, where a switch knows only those ports on minimal paths that lead along the lowest dimension.
    ///
    /// So packets go along the dimensions in their order: what is left of a minimal path is one, so once none leads on along a dimension none does later.
    pub(super) fn in_order(
        network: &Network,
        is_cut: impl Fn(ChannelId) -> bool,
        before: Option<&RouteTable>,
    ) -> Self {
        RouteTable::shared_from(LEAST_SHARED, network, Links::in_order(network, is_cut), before)
    }

    /// The same where sets are shared if `least` ways have the same one on average.
    fn shared_from(least: usize, network: &Network, links: Links, before: Option<&RouteTable>) -> Self {
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
                // Between networks that stand apart there never was a way.
                let component = |switch: usize| network.component(hosts + narrow::<NodeId>(switch));
                let are_joined = |root: usize, switch: usize| component(some[root]) == component(switch);
                let (root, switch) = distances.lost(&roots, are_joined)?;
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
            Some(Unreachable { switch: hosts + narrow::<NodeId>(switch), host, hosts })
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
    #[inline]
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

    /// Whether a host is attached to a switch that remembers its [`Self::row`] in this table, or in that of other routes in the same network.
    #[inline(always)]
    pub fn is_attached(&self, row: Row, host: HostId) -> bool {
        self.edge_of(host) == row.edge
    }

    /// The index of the switch that remembers its [`Self::row`] among the edge switches; none if it is none.
    #[inline(always)]
    pub(crate) fn own_edge(&self, row: Row) -> Option<u32> {
        row.has_hosts().then_some(row.edge)
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
                ByPort::default().gather(block, ports, |edge, visit| {
                    self.towards_edge(switch, edge).ports.iter().copied().for_each(visit);
                });
            }
            Kept::Own(own) => own.closer((switch - self.hosts) as usize, block.start as usize / ROOTS, ports),
        }
    }

    /// Switches with equal sets towards all may share a row; this many there are.
    pub(crate) fn rows(&self) -> usize {
        match &self.rows {
            Kept::Shared(shared) => shared.set_of.len().checked_div(self.edges).unwrap_or(0),
            Kept::Own(_) => self.edge_index.len(),
        }
    }

    /// The number of a switch's row.
    #[inline]
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
    pub(super) fn candidates_of(&self, row: Row, edge: u32) -> Candidates<'_> {
        let (set_of, start, sets) = self.kept(row);
        let set = set_of.at(start + edge as usize);
        Candidates { ports: sets.at(set), set }
    }

    /// A switch's part of this table; it may remember that.
    #[inline]
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
    /// The ports that `visit` gives for each target, in order, with the targets for which they were given; a bit each.
    pub(super) fn gather(
        &mut self,
        targets: Range<u32>,
        ports: &mut Vec<(PortId, u64)>,
        mut visit: impl FnMut(u32, &mut dyn FnMut(PortId)),
    ) {
        let ByPort(by_port) = self;
        by_port.clear();
        for (bit, target) in targets.enumerate() {
            visit(target, &mut |port| {
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

impl<'t> InRow<'t> {
    /// The ports on minimal paths to `host`.
    #[inline(always)]
    pub(crate) fn ports(&self, host: HostId) -> &'t [PortId] {
        match self.table.edge_of(host) {
            edge if edge == self.edge => std::slice::from_ref(&self.table.last_port[host as usize]),
            edge => self.ports_of(edge),
        }
    }

    /// The ports on minimal paths to an edge switch; none at that switch itself.
    #[inline(always)]
    pub(crate) fn ports_towards(&self, edge: u32) -> &'t [PortId] {
        if edge == self.edge { &[] } else { self.ports_of(edge) }
    }

    /// The same to another edge switch.
    #[inline(always)]
    fn ports_of(&self, edge: u32) -> &'t [PortId] {
        self.sets.at(self.set_of.at(self.start + edge as usize))
    }

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

    /// The ports of a set that has not just one, by its number.
    #[inline(always)]
    pub fn several(&self, set: u32) -> &[PortId] {
        self.sets.several(set)
    }
}
