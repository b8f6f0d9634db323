//! The traffic on minimal paths, followed for 64 destinations at a time, a bit each: most go the same ways.

use std::collections::VecDeque;

use netloom_topology::{ChannelId, Network, NodeId, PortId};

use super::super::channels::{next, rank};
use super::super::minimal::RouteTable;
use super::{Onward, VcSet};

/// Follows all minimal routes between switches with hosts; `depend` is told as in [`follow`](super::follow).
pub(super) fn follow_minimal(
    network: &Network,
    table: &RouteTable,
    vcs: u8,
    mut depend: impl FnMut(ChannelId, VcSet, &Onward),
) {
    let mut block = Block::new(network, vcs);
    for first in (0..table.edges()).step_by(u64::BITS as usize) {
        block.begin(table, first);
        block.spread();
        block.tell(&mut depend);
    }
}

/// The traffic to some destinations.
struct Block<'a> {
    network: &'a Network,
    vcs: usize,
    /// Per switch, the ports by which it forwards traffic, and to which destinations.
    onward: Vec<Vec<(PortId, u64)>>,
    /// Per channel and virtual channel, the destinations of what comes by it.
    arriving: Vec<u64>,
    /// Per switch, the destinations of what sets out from it.
    starts: Vec<u64>,
    waiting: Vec<bool>,
    queue: VecDeque<NodeId>,
}

impl<'a> Block<'a> {
    fn new(network: &'a Network, vcs: u8) -> Self {
        let (switches, vcs) = (network.switches() as usize, usize::from(vcs));
        Block {
            network,
            vcs,
            onward: vec![Vec::new(); switches],
            arriving: vec![0; network.channels() as usize * vcs],
            starts: vec![0; switches],
            waiting: vec![false; switches],
            queue: VecDeque::new(),
        }
    }

    /// Begins with nothing but what sets out, to the destinations from `first` on.
    fn begin(&mut self, table: &RouteTable, first: u32) {
        self.arriving.fill(0);
        let targets = first..table.edges().min(first + u64::BITS);
        let mut by_port = Vec::new();
        for (here, onward) in (self.network.hosts()..).zip(&mut self.onward) {
            by_port.clear();
            by_port.resize(self.network.ports(here).len(), 0);
            for (bit, to) in targets.clone().enumerate() {
                let ports = table.towards_edge(here, to).ports;
                ports.iter().for_each(|&port| by_port[usize::from(port)] |= 1 << bit);
            }
            onward.clear();
            onward.extend((0..).zip(by_port.iter().copied()).filter(|&(_, targets)| targets != 0));
        }
        for from in 0..table.edges() {
            let switch = table.edge_switch(from);
            self.starts[(switch - self.network.hosts()) as usize] = u64::MAX;
            self.wake(switch);
        }
    }

    fn wake(&mut self, switch: NodeId) {
        let waiting = &mut self.waiting[(switch - self.network.hosts()) as usize];
        if !std::mem::replace(waiting, true) {
            self.queue.push_back(switch);
        }
    }

    /// The channels between switches that lead to a switch.
    fn inward(&self, here: NodeId) -> impl Iterator<Item = ChannelId> + use<'a> {
        let network = self.network;
        // A link's two channels differ in their last bit.
        let channels = network.ports(here).iter().map(|channel| channel ^ 1);
        channels.filter(|&channel| !network.is_host(network.channel(channel).from))
    }

    fn arriving(&self, channel: ChannelId) -> &[u64] {
        &self.arriving[channel as usize * self.vcs..][..self.vcs]
    }

    /// Follows the traffic until nothing new happens.
    fn spread(&mut self) {
        let vcs = self.vcs as u8;
        // By the rank of the link on which packets leave, and by virtual channel.
        let mut leaving = [vec![0; self.vcs], vec![0; self.vcs]];
        while let Some(here) = self.queue.pop_front() {
            let index = (here - self.network.hosts()) as usize;
            self.waiting[index] = false;
            for leaving in &mut leaving {
                leaving.fill(0);
                leaving[0] = self.starts[index];
            }
            for channel in self.inward(here) {
                let from = rank(self.network, channel);
                for (vc, &targets) in (0..).zip(self.arriving(channel)).filter(|&(_, &targets)| targets != 0)
                {
                    for (to, leaving) in (0..).zip(&mut leaving) {
                        leaving[usize::from(next(vc, from, to, vcs))] |= targets;
                    }
                }
            }
            for place in 0..self.onward[index].len() {
                let (port, targets) = self.onward[index][place];
                let channel = self.network.ports(here)[usize::from(port)];
                let known = &mut self.arriving[channel as usize * self.vcs..][..self.vcs];
                let mut is_new = false;
                for (known, leaving) in
                    known.iter_mut().zip(&leaving[usize::from(rank(self.network, channel))])
                {
                    is_new |= leaving & targets & !*known != 0;
                    *known |= leaving & targets;
                }
                if is_new {
                    self.wake(self.network.channel(channel).to);
                }
            }
        }
    }

    /// Tells of every channel on which ports it depends.
    fn tell(&self, depend: &mut impl FnMut(ChannelId, VcSet, &Onward)) {
        let (mut onward, mut ports) = (Onward::default(), Vec::new());
        for (here, all) in (self.network.hosts()..).zip(&self.onward) {
            for channel in self.inward(here) {
                for (vc, &came) in (0..).zip(self.arriving(channel)).filter(|&(_, &came)| came != 0) {
                    ports.clear();
                    ports
                        .extend(all.iter().filter(|(_, targets)| targets & came != 0).map(|&(port, _)| port));
                    if !ports.is_empty() {
                        onward.set(self.network, here, &ports);
                        depend(channel, VcSet::of(vc), &onward);
                    }
                }
            }
        }
    }
}
