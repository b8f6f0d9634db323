//! The candidate ports of every switch towards every host.

use std::collections::HashMap;

use netloom_topology::{ChannelId, HostId, Network, NodeId, PortId};

/// For every switch and destination, the ports that lie on a shortest path, in port order.
///
/// Destinations are kept per edge switch, and a switch's candidate sets are shared between destinations (on a tree, all
/// destinations that are not below share the set of all up ports), so a table takes two bytes per (switch, edge
/// switch).
#[derive(Clone, Debug)]
pub struct RouteTable {
    hosts: u32,
    /// Per host: index of its edge switch among the edge switches, and its port there.
    attachment: Vec<(u32, PortId)>,
    /// Per edge index.
    edge_switch: Vec<NodeId>,
    /// `set_of[switch × edges + edge]` indexes the switch's sets.
    set_of: Vec<u16>,
    /// Per switch: where its sets start in `ranges`.
    set_start: Vec<u32>,
    ranges: Vec<(u32, u16)>,
    ports: Vec<PortId>,
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
        let mut attachment = Vec::with_capacity(hosts as usize);
        for host in 0..hosts {
            let up = network.ports(host)[0];
            let switch = network.channel(up).to;
            let slot = &mut edge_of[(switch - hosts) as usize];
            if *slot == u32::MAX {
                *slot = edge_switch.len() as u32;
                edge_switch.push(switch);
            }
            let port = network.ports(switch).iter().position(|&channel| channel == (up ^ 1));
            attachment.push((*slot, port.expect("a link has two ends") as PortId));
        }
        let first_host = |edge: usize| attachment.iter().position(|&(e, _)| e as usize == edge).unwrap_or(0);

        let edges = edge_switch.len();
        let mut set_of = vec![0u16; switches * edges];
        let mut sets: Vec<HashMap<Vec<PortId>, u16>> = vec![HashMap::new(); switches];
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
                let ports: Vec<PortId> = neighbours[here]
                    .iter()
                    .filter(|&&(_, next)| distance[next] < distance[here])
                    .map(|&(port, _)| port)
                    .collect();
                if distance[here] == u32::MAX && edge_of[here] != u32::MAX {
                    let host = first_host(edge) as HostId;
                    return Err(Unreachable { switch: here as NodeId + hosts, host });
                }
                let known = sets[here].len() as u16;
                set_of[here * edges + edge] = *sets[here].entry(ports).or_insert(known);
            }
        }

        let (mut set_start, mut ranges, mut ports) = (Vec::new(), Vec::new(), Vec::new());
        for sets in sets {
            set_start.push(ranges.len() as u32);
            let mut ordered: Vec<_> = sets.into_iter().collect();
            ordered.sort_unstable_by_key(|&(_, index)| index);
            for (set, _) in ordered {
                ranges.push((ports.len() as u32, set.len() as u16));
                ports.extend(set);
            }
        }
        Ok(RouteTable { hosts, attachment, edge_switch, set_of, set_start, ranges, ports })
    }

    /// The ports of `switch` on shortest paths to `host`.
    #[inline]
    pub fn candidates(&self, switch: NodeId, host: HostId) -> &[PortId] {
        let (edge, port) = &self.attachment[host as usize];
        if self.edge_switch[*edge as usize] == switch {
            return std::slice::from_ref(port);
        }
        let here = (switch - self.hosts) as usize;
        let set = self.set_of[here * self.edge_switch.len() + *edge as usize];
        let (start, length) = self.ranges[self.set_start[here] as usize + usize::from(set)];
        &self.ports[start as usize..start as usize + usize::from(length)]
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
