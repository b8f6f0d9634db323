//! The candidate ports of every switch towards every host.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use netloom_topology::{Channel, ChannelId, HostId, Network, NodeId, PortId};
use rustc_hash::FxHashMap;

use crate::header::Candidates;

/// For every switch and destination, the ports that lie on a minimal path, in port order.
///
/// A path is minimal if none has fewer hops. In networks of groups with global links between them (Dragonflies) paths are first compared by
/// their global links, so that a minimal path crosses one at most, also where two would be fewer hops in all (Kim et al., ISCA'08).
///
/// Destinations are kept per edge switch, and equal sets of ports are kept once (on a tree there are little more than there are
/// ports: the set of all up ports and every single down port), so a table takes four bytes per (switch, edge switch).
#[derive(Clone, Debug)]
pub struct RouteTable {
    hosts: u32,
    /// The switches that have hosts, in the order of their first hosts.
    edge_switch: Vec<NodeId>,
    /// How many they are.
    edges: usize,
    attachment: Vec<Attachment>,
    /// `set_of[switch × edges + edge]` indexes `sets`.
    set_of: Vec<u32>,
    sets: Vec<Box<[PortId]>>,
}

/// Where a host is attached.
#[derive(Clone, Copy, Debug)]
struct Attachment {
    switch: NodeId,
    /// Index of that switch among those that have hosts.
    edge: u32,
    port: PortId,
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
    /// before it, if there is one.
    pub fn in_part(
        network: &Network,
        is_cut: impl Fn(ChannelId) -> bool,
        before: Option<&RouteTable>,
    ) -> Self {
        let (hosts, switches) = (network.hosts(), network.switches() as usize);
        let mut edge_switch: Vec<NodeId> = Vec::new();
        let mut edge_of = vec![u32::MAX; switches];
        let mut attachment: Vec<Attachment> = Vec::with_capacity(hosts as usize);
        for host in 0..hosts {
            let up = network.ports(host)[0];
            let switch = network.channel(up).to;
            let slot = &mut edge_of[(switch - hosts) as usize];
            if *slot == u32::MAX {
                *slot = edge_switch.len() as u32;
                edge_switch.push(switch);
            }
            let port = network.ports(switch).iter().position(|&channel| channel == (up ^ 1));
            let port = port.expect("a link has two ends") as PortId;
            attachment.push(Attachment { switch, edge: *slot, port });
        }
        let edges = edge_switch.len();
        let mut set_of = vec![0u32; switches * edges];
        let mut sets = before.map_or_else(Vec::new, |before| before.sets.clone());
        let mut known: FxHashMap<Vec<PortId>, u32> =
            (0..).zip(&sets).map(|(index, set)| (set.to_vec(), index)).collect();
        let mut set = Vec::new();
        let mut distances = Distances::new(network, is_cut);
        for (edge, &root) in edge_switch.iter().enumerate() {
            distances.measure((root - hosts) as usize);
            for here in 0..switches {
                set.clear();
                set.extend(distances.closer(here));
                let index = known.get(&set).copied().unwrap_or_else(|| {
                    sets.push(set.as_slice().into());
                    known.insert(set.clone(), sets.len() as u32 - 1);
                    sets.len() as u32 - 1
                });
                set_of[here * edges + edge] = index;
            }
        }

        RouteTable { hosts, edge_switch, edges, attachment, set_of, sets }
    }

    /// A switch with hosts, and a host that it does not reach.
    pub fn unreachable(&self) -> Option<Unreachable> {
        (0..self.edges() as usize).find_map(|edge| {
            let root = self.edge_switch[edge];
            let is_lost = |&&switch: &&NodeId| {
                switch != root && self.towards_edge(switch, edge as u32).ports.is_empty()
            };
            let switch = *self.edge_switch.iter().filter(is_lost).min()?;
            let host = self.attachment.iter().position(|at| at.edge as usize == edge)? as HostId;
            Some(Unreachable { switch, host })
        })
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
        self.candidates_in_row(self.row(switch), switch, host)
    }

    /// Number of switches that have hosts, the edge switches.
    pub fn edges(&self) -> u32 {
        self.edges as u32
    }

    /// An edge switch by its index; they are in the order of their first hosts.
    #[inline]
    pub fn edge_switch(&self, edge: u32) -> NodeId {
        self.edge_switch[edge as usize]
    }

    /// The index of the edge switch to which a host is attached.
    #[inline]
    pub fn edge_of(&self, host: HostId) -> u32 {
        self.attachment[host as usize].edge
    }

    /// The ports of `switch` on minimal paths to an edge switch; none at that switch itself.
    #[inline]
    pub fn towards_edge(&self, switch: NodeId, edge: u32) -> Candidates<'_> {
        let set = self.set_of[self.row(switch) + edge as usize];
        Candidates { ports: &self.sets[set as usize], set }
    }

    /// Where a switch's part of the table begins; it may remember that.
    pub fn row(&self, switch: NodeId) -> usize {
        (switch - self.hosts) as usize * self.edges
    }

    /// [`Self::candidates`] of a switch that remembers its [`Self::row`].
    #[inline(always)]
    pub fn candidates_in_row(&self, row: usize, switch: NodeId, host: HostId) -> Candidates<'_> {
        let attachment = &self.attachment[host as usize];
        if attachment.switch == switch {
            return Candidates { ports: std::slice::from_ref(&attachment.port), set: u32::MAX };
        }
        let set = self.set_of[row + attachment.edge as usize];
        Candidates { ports: &self.sets[set as usize], set }
    }
}

/// Hops between all switches that have hosts, on minimal paths.
#[derive(Clone, Debug)]
pub(crate) struct Hops {
    edges: usize,
    /// In all, and over global links; up to 255.
    between: Vec<(u8, u8)>,
}

impl Hops {
    /// Those of a network without its cut links.
    pub(crate) fn measure(network: &Network, table: &RouteTable, is_cut: impl Fn(ChannelId) -> bool) -> Self {
        let mut distances = Distances::new(network, is_cut);
        let index = |edge| (table.edge_switch(edge) - network.hosts()) as usize;
        let mut between = Vec::with_capacity(table.edges * table.edges);
        let count = |distance: u32| ((distance % GLOBAL).min(255) as u8, (distance / GLOBAL).min(255) as u8);
        for root in 0..table.edges() {
            distances.measure(index(root));
            // All links lead both ways.
            between.extend((0..table.edges()).map(|from| count(distances.to_root[index(from)])));
        }
        Hops { edges: table.edges, between }
    }

    /// Hops between two switches, by their indices among those with hosts.
    pub(crate) fn between(&self, from: u32, to: u32) -> u32 {
        u32::from(self.between[to as usize * self.edges + from as usize].0)
    }

    /// Those of them that cross global links.
    pub(crate) fn globals(&self, from: u32, to: u32) -> u8 {
        self.between[to as usize * self.edges + from as usize].1
    }
}

/// Distances of all switches to one of them, and how they are found.
struct Distances {
    /// Per switch: its ports to other switches, where they lead, and the length of the way there.
    neighbours: Vec<Vec<(PortId, usize, u32)>>,
    /// Whether some links are longer than others.
    has_groups: bool,
    to_root: Vec<u32>,
    queue: VecDeque<usize>,
    heap: BinaryHeap<Reverse<(u32, usize)>>,
}

/// The length of a hop, and what a hop between groups adds: more than any number of hops.
const HOP: u32 = 1;
const GLOBAL: u32 = 1 << 16;

impl Distances {
    fn new(network: &Network, is_cut: impl Fn(ChannelId) -> bool) -> Self {
        let (hosts, nodes) = (network.hosts(), network.nodes());
        let global = network.global_tier();
        let neighbours = (hosts..nodes).map(|switch| {
            let ports = (0..).zip(network.ports(switch));
            let live = ports.filter(|&(_, &channel)| !is_cut(channel));
            let ends = live.map(|(port, &channel)| (port, network.channel(channel)));
            let switches = ends.filter(|(_, channel)| channel.to >= hosts);
            let length = |tier| if Some(tier) == global { GLOBAL + HOP } else { HOP };
            let neighbour =
                |(port, channel): (_, Channel)| (port, (channel.to - hosts) as usize, length(channel.tier));
            switches.map(neighbour).collect()
        });
        Distances {
            neighbours: neighbours.collect(),
            has_groups: global.is_some(),
            to_root: vec![u32::MAX; network.switches() as usize],
            queue: VecDeque::new(),
            heap: BinaryHeap::new(),
        }
    }

    /// Finds the distance of every switch to one.
    fn measure(&mut self, root: usize) {
        self.to_root.fill(u32::MAX);
        self.to_root[root] = 0;
        if self.has_groups { self.measure_by_length(root) } else { self.measure_by_hops(root) }
    }

    /// Breadth first.
    fn measure_by_hops(&mut self, root: usize) {
        self.queue.push_back(root);
        while let Some(here) = self.queue.pop_front() {
            for &(_, next, _) in &self.neighbours[here] {
                if self.to_root[next] == u32::MAX {
                    self.to_root[next] = self.to_root[here] + HOP;
                    self.queue.push_back(next);
                }
            }
        }
    }

    /// Dijkstra's algorithm.
    fn measure_by_length(&mut self, root: usize) {
        self.heap.push(Reverse((0, root)));
        while let Some(Reverse((distance, here))) = self.heap.pop() {
            if distance > self.to_root[here] {
                continue;
            }
            for &(_, next, length) in &self.neighbours[here] {
                if distance + length < self.to_root[next] {
                    self.to_root[next] = distance + length;
                    self.heap.push(Reverse((distance + length, next)));
                }
            }
        }
    }

    /// The ports of a switch that lead nearer to the root by all their length.
    fn closer(&self, here: usize) -> impl Iterator<Item = PortId> {
        let distance = self.to_root[here];
        let is_closer = move |&&(_, next, length): &&(PortId, usize, u32)| {
            self.to_root[next].checked_add(length).is_some_and(|through| through == distance)
        };
        self.neighbours[here].iter().filter(is_closer).map(|&(port, ..)| port)
    }
}
