//! Where packets come from, as far as it matters: from nowhere, from one place, or from several.

use netloom_units::narrow;
use std::ops::Range;

use netloom_topology::{Channel, ChannelId, Network, NodeId, PortId};

use super::super::channels::{next, rank};
use super::by_vc;

/// Nothing comes.
const NOWHERE: u32 = u32::MAX;
/// What comes does not come from one place.
const SEVERAL: u32 = u32::MAX - 1;

fn merge(known: &mut u32, more: u32) {
    if *known == NOWHERE {
        *known = more;
    } else if more != NOWHERE && *known != more {
        *known = SEVERAL;
    }
}

/// The traffic to one target. Ways to it have no loops, so every switch forwards once, when all that comes to it has come.
pub(super) struct Origins<'a> {
    network: &'a Network,
    vcs: usize,
    /// Per switch, by the rank of the link and the virtual channel by which packets come, their place of origin.
    came: Vec<u32>,
    /// Per switch, that of those which set out there.
    start: Vec<u32>,
    /// Virtual channels that have been used.
    used: usize,
    /// The switches that traffic reaches.
    reached: Vec<NodeId>,
    is_reached: Vec<bool>,
    /// Per switch, how many of the ports that lead there have not forwarded yet.
    missing: Vec<u32>,
    /// The ways of the traffic that is followed, and per switch which of them lead on from it: the first, and how many.
    hops: Vec<Hop>,
    hops_from: Vec<(u32, u32)>,
}

/// A step of traffic.
#[derive(Clone, Copy)]
struct Hop {
    channel: ChannelId,
    /// The number of the switch at its end.
    index: u32,
    rank: u8,
}

impl<'a> Origins<'a> {
    pub(super) fn new(network: &'a Network, vcs: u8) -> Self {
        let (switches, vcs) = (network.switches() as usize, usize::from(vcs));
        Origins {
            network,
            vcs,
            came: vec![NOWHERE; switches * 2 * vcs],
            start: vec![NOWHERE; switches],
            used: 1,
            reached: Vec::new(),
            is_reached: vec![false; switches],
            missing: vec![0; switches],
            hops: Vec::new(),
            hops_from: vec![(0, 0); switches],
        }
    }

    fn index(&self, switch: NodeId) -> usize {
        (switch - self.network.hosts()) as usize
    }

    fn reach(&mut self, switch: NodeId) {
        let index = self.index(switch);
        if !std::mem::replace(&mut self.is_reached[index], true) {
            self.reached.push(switch);
        }
    }

    /// Packets of a place set out from a switch.
    pub(super) fn start(&mut self, switch: NodeId, place: u32) {
        let index = self.index(switch);
        merge(&mut self.start[index], place);
        self.reach(switch);
    }

    /// Packets of a place come by a virtual channel.
    pub(super) fn arrive(&mut self, channel: ChannelId, vc: u8, place: u32) {
        let to = self.network.channel(channel).to;
        let first = self.first(self.index(to), rank(self.network, channel));
        self.used = self.used.max(usize::from(vc) + 1);
        merge(&mut self.came[first + usize::from(vc)], place);
        self.reach(to);
    }

    /// Where a switch's part of `came` begins for links of a rank.
    fn first(&self, index: usize, rank: u8) -> usize {
        (index * 2 + usize::from(rank)) * self.vcs
    }

    /// Follows all traffic and forgets it. `ports` are those by which a switch forwards it, none where it ends; `end` is called with every virtual
    /// channel by which it comes there, and of the one place from which it does, if it is one.
    pub(super) fn follow<'p>(
        &mut self,
        ports: impl Fn(NodeId) -> &'p [PortId],
        mut end: impl FnMut(ChannelId, u8, Option<u32>),
    ) {
        self.find_hops(ports);
        let mut ready: Vec<NodeId> = self.reached.clone();
        ready.retain(|&switch| self.missing[self.index(switch)] == 0);
        let mut leaving = [vec![NOWHERE; self.vcs], vec![NOWHERE; self.vcs]];
        let mut followed = 0;
        while let Some(here) = ready.pop() {
            followed += 1;
            self.leave(here, &mut leaving);
            for hop in self.hops_of(here) {
                let Hop { channel, index, rank } = self.hops[hop];
                let index = index as usize;
                let ends = self.hops_from[index].1 == 0;
                let first = self.first(index, rank);
                let leaving = &leaving[usize::from(rank)][..self.used];
                for (vc, &origin) in by_vc(leaving).filter(|&(_, &origin)| origin != NOWHERE) {
                    merge(&mut self.came[first + usize::from(vc)], origin);
                    if ends {
                        end(channel, vc, (origin != SEVERAL).then_some(origin));
                    }
                }
                self.missing[index] -= 1;
                if self.missing[index] == 0 {
                    ready.push(self.network.hosts() + narrow::<u32>(index));
                }
            }
        }
        assert_eq!(followed, self.reached.len(), "minimal ways have no loops");
        self.reached.clear();
        self.used = 1;
    }

    /// Finds where traffic goes on from every switch that it reaches.
    fn find_hops<'p>(&mut self, ports: impl Fn(NodeId) -> &'p [PortId]) {
        let network = self.network;
        self.hops.clear();
        let mut place = 0;
        while let Some(&here) = self.reached.get(place) {
            place += 1;
            let (ports, channels, index) = (ports(here), network.ports(here), self.index(here));
            self.hops_from[index] = (narrow::<u32>(self.hops.len()), narrow::<u32>(ports.len()));
            for &port in ports {
                let channel = channels[usize::from(port)];
                let Channel { to, .. } = network.channel(channel);
                let index = self.index(to);
                self.hops.push(Hop { channel, index: narrow::<u32>(index), rank: rank(network, channel) });
                self.missing[index] += 1;
                self.reach(to);
            }
        }
    }

    fn hops_of(&self, here: NodeId) -> Range<usize> {
        let (from, count) = self.hops_from[self.index(here)];
        from as usize..(from + count) as usize
    }

    /// Takes what has come to a switch, and what sets out there, by the rank of the link on which it leaves and by virtual channel.
    fn leave(&mut self, here: NodeId, leaving: &mut [Vec<u32>; 2]) {
        let index = self.index(here);
        self.is_reached[index] = false;
        let start = std::mem::replace(&mut self.start[index], NOWHERE);
        for leaving in &mut *leaving {
            leaving.fill(NOWHERE);
            leaving[0] = start;
        }
        let mut highest = 0;
        for from in 0..2u8 {
            let first = self.first(index, from);
            for vc in 0..narrow::<u8>(self.used) {
                let origin = std::mem::replace(&mut self.came[first + usize::from(vc)], NOWHERE);
                if origin == NOWHERE {
                    continue;
                }
                for (to, leaving) in (0..).zip(&mut *leaving) {
                    let vc = next(vc, from, to, narrow::<u8>(self.vcs));
                    merge(&mut leaving[usize::from(vc)], origin);
                    highest = highest.max(vc);
                }
            }
        }
        self.used = self.used.max(usize::from(highest) + 1);
    }
}
