//! The candidate ports of every switch towards every host.

use netloom_topology::{ChannelId, HostId, Network, NodeId, PortId};
use rustc_hash::FxHashMap;

/// For every switch and destination, the ports that lie on a shortest path, in port order.
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
    /// Shortest paths over the links that are not cut.
    ///
    /// # Errors
    /// If some switch to which a host is attached cannot reach some host.
    pub fn minimal(network: &Network, is_cut: impl Fn(ChannelId) -> bool) -> Result<Self, Unreachable> {
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
        let first_host = |edge: usize| attachment.iter().position(|at| at.edge as usize == edge).unwrap_or(0);

        let edges = edge_switch.len();
        let mut set_of = vec![0u32; switches * edges];
        let mut known: FxHashMap<Vec<PortId>, u32> = FxHashMap::default();
        let mut sets = Vec::new();
        let mut set = Vec::new();
        let mut distance = vec![u32::MAX; switches];
        let mut queue = Vec::with_capacity(switches);
        let neighbours = live_neighbours(network, is_cut);
        for (edge, &root) in edge_switch.iter().enumerate() {
            distance.fill(u32::MAX);
            queue.clear();
            queue.push((root - hosts) as usize);
            distance[(root - hosts) as usize] = 0;
            let mut head = 0;
            while let Some(&here) = queue.get(head) {
                head += 1;
                for &(_, next) in &neighbours[here] {
                    if distance[next] == u32::MAX {
                        distance[next] = distance[here] + 1;
                        queue.push(next);
                    }
                }
            }
            for here in 0..switches {
                let closer = neighbours[here].iter().filter(|&&(_, next)| distance[next] < distance[here]);
                set.clear();
                set.extend(closer.map(|&(port, _)| port));
                if distance[here] == u32::MAX && edge_of[here] != u32::MAX {
                    let host = first_host(edge) as HostId;
                    return Err(Unreachable { switch: here as NodeId + hosts, host });
                }
                let index = known.get(&set).copied().unwrap_or_else(|| {
                    sets.push(set.as_slice().into());
                    known.insert(set.clone(), sets.len() as u32 - 1);
                    sets.len() as u32 - 1
                });
                set_of[here * edges + edge] = index;
            }
        }

        Ok(RouteTable { hosts, edge_switch, edges, attachment, set_of, sets })
    }

    /// The ports of `switch` on shortest paths to `host`.
    pub fn candidates(&self, switch: NodeId, host: HostId) -> &[PortId] {
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

    /// The ports of `switch` on shortest paths to an edge switch; none at that switch itself.
    #[inline]
    pub fn towards_edge(&self, switch: NodeId, edge: u32) -> &[PortId] {
        &self.sets[self.set_of[self.row(switch) + edge as usize] as usize]
    }

    /// Where a switch's part of the table begins; it may remember that.
    pub fn row(&self, switch: NodeId) -> usize {
        (switch - self.hosts) as usize * self.edges
    }

    /// [`Self::candidates`] of a switch that remembers its [`Self::row`].
    #[inline(always)]
    pub fn candidates_in_row(&self, row: usize, switch: NodeId, host: HostId) -> &[PortId] {
        let attachment = &self.attachment[host as usize];
        if attachment.switch == switch {
            return std::slice::from_ref(&attachment.port);
        }
        &self.sets[self.set_of[row + attachment.edge as usize] as usize]
    }
}

/// Per switch: its ports to other switches and where they lead, cut links left out.
fn live_neighbours(network: &Network, is_cut: impl Fn(ChannelId) -> bool) -> Vec<Vec<(PortId, usize)>> {
    let hosts = network.hosts();
    (hosts..network.nodes())
        .map(|switch| {
            let ports = network.ports(switch).iter().enumerate();
            ports
                .filter(|&(_, &channel)| !is_cut(channel))
                .map(|(port, &channel)| (port as PortId, network.channel(channel).to))
                .filter(|&(_, to)| to >= hosts)
                .map(|(port, to)| (port, (to - hosts) as usize))
                .collect()
        })
        .collect()
}
