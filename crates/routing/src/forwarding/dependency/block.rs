//! Traffic to 64 targets at a time, a bit each: most of it goes the same ways.

use netloom_units::narrow;
use std::collections::VecDeque;
use std::ops::Range;

use netloom_topology::{ChannelId, Network, NodeId, PortId};

use super::super::channels::{next, rank};
use super::super::minimal::{ByPort, RouteTable};
use super::{Listen, Onward, VcSet, by_vc};

/// Targets from 0 on, as many at a time as a block takes.
pub(super) fn blocks(targets: u32) -> impl Iterator<Item = Range<u32>> {
    (0..targets).step_by(u64::BITS as usize).map(move |first| first..targets.min(first + u64::BITS))
}

/// The bit of a target, if it is in the block.
pub(super) fn bit(block: &Range<u32>, target: u32) -> u64 {
    if block.contains(&target) { 1 << (target - block.start) } else { 0 }
}

/// The bits of all targets of a block.
pub(super) fn all(block: &Range<u32>) -> u64 {
    u64::MAX >> (u64::BITS - narrow::<u32>(block.len()))
}

/// The traffic to some targets, as far as it was followed.
pub(super) struct Block<'a> {
    network: &'a Network,
    vcs: usize,
    /// Per switch, the ports by which it forwards traffic, and to which targets.
    onward: Vec<Vec<(PortId, u64)>>,
    /// Per switch, the targets to which it forwards at all.
    open: Vec<u64>,
    /// Per channel and virtual channel, the targets of what comes by it.
    arriving: Vec<u64>,
    /// The channels by which something comes.
    touched: Vec<ChannelId>,
    is_touched: Vec<bool>,
    /// Per switch, the targets of what sets out from it.
    starts: Vec<u64>,
    waiting: Vec<bool>,
    queue: VecDeque<NodeId>,
}

impl<'a> Block<'a> {
    pub(super) fn new(network: &'a Network, vcs: u8) -> Self {
        let (switches, channels) = (network.switches() as usize, network.channels() as usize);
        let vcs = usize::from(vcs);
        Block {
            network,
            vcs,
            onward: vec![Vec::new(); switches],
            open: vec![u64::MAX; switches],
            arriving: vec![0; channels * vcs],
            touched: Vec::new(),
            is_touched: vec![false; channels],
            starts: vec![0; switches],
            waiting: vec![false; switches],
            queue: VecDeque::new(),
        }
    }

    /// Lays the ways to other targets; there is no traffic yet. `ports` gives the ports by which a switch forwards what goes to a target.
    pub(super) fn aim(
        &mut self,
        targets: Range<u32>,
        mut ports: impl FnMut(NodeId, u32, &mut dyn FnMut(PortId)),
    ) {
        self.clear();
        let mut by_port = ByPort::default();
        for (here, onward) in (self.network.hosts()..).zip(&mut self.onward) {
            by_port.gather(targets.clone(), onward, |target, visit| ports(here, target, visit));
        }
    }

    /// Lays the minimal ways to other switches with hosts.
    pub(super) fn aim_minimally(&mut self, table: &RouteTable, targets: Range<u32>) {
        self.clear();
        for (here, onward) in (self.network.hosts()..).zip(&mut self.onward) {
            table.towards_block(here, targets.clone(), onward);
        }
    }

    /// The targets to which a switch knows ways.
    pub(super) fn known(&self, switch: NodeId) -> u64 {
        let onward = &self.onward[(switch - self.network.hosts()) as usize];
        onward.iter().fold(0, |all, (_, targets)| all | targets)
    }

    /// Forgets all traffic, and where it stops.
    pub(super) fn clear(&mut self) {
        for channel in self.touched.drain(..) {
            self.is_touched[channel as usize] = false;
            self.arriving[channel as usize * self.vcs..][..self.vcs].fill(0);
        }
        self.starts.fill(0);
        self.open.fill(u64::MAX);
    }

    /// What comes to a switch for these targets ends there.
    pub(super) fn stop(&mut self, switch: NodeId, targets: u64) {
        self.open[(switch - self.network.hosts()) as usize] &= !targets;
    }

    /// Packets to these targets set out from a switch.
    pub(super) fn start(&mut self, switch: NodeId, targets: u64) {
        if targets != 0 {
            self.starts[(switch - self.network.hosts()) as usize] |= targets;
            self.wake(switch);
        }
    }

    /// Packets to these targets come by a virtual channel.
    pub(super) fn arrive(&mut self, channel: ChannelId, vc: u8, targets: u64) {
        let known = &mut self.arriving[channel as usize * self.vcs + usize::from(vc)];
        if targets & !*known != 0 {
            *known |= targets;
            self.touch(channel);
            self.wake(self.network.channel(channel).to);
        }
    }

    fn touch(&mut self, channel: ChannelId) {
        if !std::mem::replace(&mut self.is_touched[channel as usize], true) {
            self.touched.push(channel);
        }
    }

    fn wake(&mut self, switch: NodeId) {
        let waiting = &mut self.waiting[(switch - self.network.hosts()) as usize];
        if !std::mem::replace(waiting, true) {
            self.queue.push_back(switch);
        }
    }

    /// The channels by which something comes, in no order.
    pub(super) fn touched(&self) -> &[ChannelId] {
        &self.touched
    }

    /// Per virtual channel, the targets of what comes by a channel.
    pub(super) fn arriving(&self, channel: ChannelId) -> &[u64] {
        &self.arriving[channel as usize * self.vcs..][..self.vcs]
    }

    /// The channels to a switch by which something comes.
    fn inward(&self, here: NodeId) -> impl Iterator<Item = ChannelId> {
        // A link's two channels differ in their last bit.
        let channels = self.network.ports(here).iter().map(|channel| channel ^ 1);
        channels.filter(|&channel| self.is_touched[channel as usize])
    }

    /// Follows the traffic until nothing new happens.
    pub(super) fn spread(&mut self) {
        let vcs = narrow::<u8>(self.vcs);
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
                for (vc, &targets) in by_vc(self.arriving(channel)).filter(|&(_, &targets)| targets != 0) {
                    for (to, leaving) in (0..).zip(&mut leaving) {
                        leaving[usize::from(next(vc, from, to, vcs))] |= targets;
                    }
                }
            }
            for place in 0..self.onward[index].len() {
                let (port, targets) = self.onward[index][place];
                let targets = targets & self.open[index];
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
                    self.touch(channel);
                    self.wake(self.network.channel(channel).to);
                }
            }
        }
    }

    /// Visits every channel with the ports on which it depends.
    pub(super) fn visit(&self, listener: &mut impl Listen) {
        let mut ways = Ways::default();
        // By virtual channel, the targets asked for last at the switch, and the answer: neighbouring channels mostly carry the same.
        let mut last = vec![(0, Onward::default()); self.vcs];
        for (here, (ports, open)) in (self.network.hosts()..).zip(self.onward.iter().zip(&self.open)) {
            if self.inward(here).next().is_none() {
                continue;
            }
            ways.add(self.network, here, ports.iter().map(|&(port, targets)| (port, targets & open)));
            last.iter_mut().for_each(|(targets, _)| *targets = 0);
            for channel in self.inward(here) {
                for (vc, (&came, (targets, onward))) in by_vc(self.arriving(channel).iter().zip(&mut last)) {
                    let came = came & ways.targets;
                    if came != 0 {
                        if came != std::mem::replace(targets, came) {
                            ways.towards(came, onward);
                        }
                        listener.depend(channel, VcSet::of(vc), onward);
                    }
                }
            }
        }
    }
}

/// The ports of a switch, to be asked by port where a channel carries traffic to many targets, and by target where it does to few.
#[derive(Default)]
struct Ways {
    /// By port: it, the rank of its link and its targets.
    by_port: Vec<(usize, u8, u64)>,
    /// The targets to which the switch forwards.
    targets: u64,
    /// Words per target in `ports`.
    words: usize,
    /// Per target, the set of ports.
    ports: Vec<u64>,
    /// Per target, the lowest rank of their links.
    lowest: Vec<u8>,
}

impl Ways {
    fn add(&mut self, network: &Network, here: NodeId, all: impl Iterator<Item = (PortId, u64)>) {
        let channels = network.ports(here);
        self.by_port.clear();
        self.targets = 0;
        self.words = channels.len().div_ceil(u64::BITS as usize);
        self.ports.clear();
        self.ports.resize(self.words * u64::BITS as usize, 0);
        self.lowest.clear();
        self.lowest.resize(u64::BITS as usize, u8::MAX);
        for (port, targets) in all {
            let (port, rank) = (usize::from(port), rank(network, channels[usize::from(port)]));
            self.by_port.push((port, rank, targets));
            self.targets |= targets;
            for target in ones(targets) {
                self.ports[target * self.words + port / 64] |= 1 << (port % 64);
                self.lowest[target] = self.lowest[target].min(rank);
            }
        }
    }

    /// The ports towards any of these targets, some of those to which the switch forwards.
    fn towards(&self, targets: u64, onward: &mut Onward) {
        onward.words.clear();
        onward.words.resize(self.words, 0);
        onward.lowest = u8::MAX;
        if targets.count_ones() as usize * 2 > self.by_port.len() {
            for &(port, rank, _) in self.by_port.iter().filter(|(_, _, its)| its & targets != 0) {
                onward.words[port / 64] |= 1 << (port % 64);
                onward.lowest = onward.lowest.min(rank);
            }
            return;
        }
        for target in ones(targets) {
            let ports = &self.ports[target * self.words..][..self.words];
            onward.words.iter_mut().zip(ports).for_each(|(all, ports)| *all |= ports);
            onward.lowest = onward.lowest.min(self.lowest[target]);
        }
    }
}

/// The places of the bits that are set.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(place)
    })
}
