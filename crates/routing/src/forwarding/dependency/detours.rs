//! The traffic that goes over intermediate switches: followed to these, then from there.

use netloom_units::narrow;
use std::collections::BTreeMap;
use std::ops::Range;

use netloom_topology::{ChannelId, Network};

use super::super::minimal::RouteTable;
use super::super::via::Intermediates;
use super::block::{Block, all, bit, blocks};
use super::origins::Origins;
use super::{Listen, VcSet, by_vc};

/// How packets come to go over an intermediate switch.
#[derive(Clone, Copy)]
pub(super) struct Detours<'a> {
    pub(super) via: &'a Intermediates,
    /// They may be sent to a switch of their destination's group.
    pub(super) over_own: bool,
    /// Per switch with hosts, the virtual channels by which packets may come there that are sent over an intermediate switch only then.
    pub(super) late: &'a [Vec<(ChannelId, VcSet)>],
}

/// Packets at the end of their way to an intermediate switch or group, as they come there by a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Halfway {
    channel: ChannelId,
    passed: Passed,
    vc: u8,
    /// The switch from which they come; its group if `passed` is a group. None: several.
    from: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Passed {
    /// A switch of the group of both ends.
    Switch(u32),
    /// A group other than those of the ends.
    Group(u32),
}

/// The targets of a block, and those of each group among them.
struct Targets {
    block: Range<u32>,
    all: u64,
    of_group: Vec<u64>,
}

impl Targets {
    fn new(block: Range<u32>, via: &Intermediates) -> Self {
        let mut of_group = vec![0; via.groups()];
        block.clone().for_each(|target| of_group[via.group(target) as usize] |= bit(&block, target));
        Targets { all: all(&block), block, of_group }
    }

    fn bit(&self, target: u32) -> u64 {
        bit(&self.block, target)
    }

    /// Those in the group of a switch with hosts.
    fn near(&self, edge: u32, via: &Intermediates) -> u64 {
        self.of_group[via.group(edge) as usize]
    }
}

impl Detours<'_> {
    /// The targets in its own group to which packets from a switch may be sent, and those in others.
    fn towards(&self, from: u32, targets: &Targets) -> (u64, u64) {
        let Detours { via, over_own, .. } = *self;
        let near = targets.near(from, via);
        let own = if via.lie_within(from) { near & !targets.bit(from) } else { 0 };
        (own, if over_own || via.lie_across() { targets.all & !near } else { 0 })
    }

    /// The destinations to which some of the packets may go on.
    fn onward(&self, part: &Halfway, targets: &Targets) -> u64 {
        let Detours { via, over_own, .. } = *self;
        match part.passed {
            Passed::Switch(passed) => {
                let from = part.from.map_or(0, |from| targets.bit(from));
                targets.near(passed, via) & !targets.bit(passed) & !from
            }
            Passed::Group(passed) => {
                let from = part.from.map_or(0, |from| targets.of_group[from as usize]);
                let own = if over_own { 0 } else { targets.of_group[passed as usize] };
                targets.all & !own & !from
            }
        }
    }
}

/// Per switch with hosts, the virtual channels by which packets from its group to others come to it on minimal paths.
pub(super) fn late(
    network: &Network,
    table: &RouteTable,
    via: &Intermediates,
    vcs: u8,
) -> Vec<Vec<(ChannelId, VcSet)>> {
    let mut late: BTreeMap<ChannelId, VcSet> = BTreeMap::new();
    let mut traffic = Block::new(network, vcs);
    for block in blocks(table.edges()) {
        traffic.aim_minimally(table, block.clone());
        let targets = Targets::new(block, via);
        for group in 0..narrow::<u32>(via.groups()) {
            traffic.clear();
            let others = targets.all & !targets.of_group[group as usize];
            via.members(group).iter().for_each(|&from| traffic.start(table.edge_switch(from), others));
            traffic.spread();
            for &channel in traffic.touched() {
                // Where a group is in pieces, packets come back to it by global links.
                if via.group_of_switch(network.channel(channel).to) == group {
                    late.entry(channel).or_default().merge(vcs_of(traffic.arriving(channel)));
                }
            }
        }
    }
    let mut at = vec![Vec::new(); table.edges() as usize];
    for (edge, at) in (0..).zip(&mut at) {
        let here = network.ports(table.edge_switch(edge)).iter().map(|channel| channel ^ 1);
        at.extend(here.filter_map(|channel| late.get(&channel).map(|&vcs| (channel, vcs))));
    }
    at
}

/// The virtual channels by which something comes.
fn vcs_of(arriving: &[u64]) -> VcSet {
    let mut vcs = VcSet::default();
    for (vc, _) in by_vc(arriving).filter(|&(_, &came)| came != 0) {
        vcs.merge(VcSet::of(vc));
    }
    vcs
}

/// Follows all detours, as [`follow`](super::follow) does.
pub(super) fn follow_detours(
    network: &Network,
    table: &RouteTable,
    detours: Detours<'_>,
    vcs: u8,
    listener: &mut impl Listen,
) {
    let mut traffic = Block::new(network, vcs);
    for block in blocks(table.edges()) {
        follow_to_intermediates(&mut traffic, network, table, detours, block, listener);
        if listener.is_content() {
            return;
        }
    }
    let mut halfway = Vec::new();
    let mut origins = Origins::new(network, vcs);
    // Per group, the switch there to which packets of other groups were followed last.
    let via = detours.via;
    let mut followed = vec![None; via.groups()];
    for towards in 0..table.edges() {
        note_own(&mut origins, table, detours, towards, &mut halfway);
        let last = &mut followed[via.group(towards) as usize];
        if !last.is_some_and(|last| is_entered_alike(network, table, via, last, towards)) {
            note_others(&mut origins, table, detours, towards, &mut halfway);
        }
        *last = Some(towards);
    }
    // Of packets alike in all but where they come from, it matters only whether they all come from one place.
    halfway.sort_unstable();
    halfway.dedup_by(|next, kept| {
        let is_alike = (next.channel, next.passed, next.vc) == (kept.channel, kept.passed, kept.vc);
        if is_alike && next.from != kept.from {
            kept.from = None;
        }
        is_alike
    });
    for block in blocks(table.edges()) {
        traffic.aim_minimally(table, block.clone());
        let targets = Targets::new(block, via);
        for part in &halfway {
            traffic.arrive(part.channel, part.vc, detours.onward(part, &targets));
        }
        for from in 0..table.edges() {
            // Where no intermediate switch lies between, packets go straight.
            let near = targets.near(from, via);
            let own = if via.lie_within(from) { 0 } else { near & !targets.bit(from) };
            let others = if via.lie_across() { 0 } else { targets.all & !near };
            traffic.start(table.edge_switch(from), own | others);
        }
        traffic.spread();
        traffic.visit(listener);
        if listener.is_content() {
            return;
        }
    }
}

/// The first parts of detours: packets that stay in their group go to the intermediate switch itself, others until they enter its group.
fn follow_to_intermediates(
    traffic: &mut Block<'_>,
    network: &Network,
    table: &RouteTable,
    detours: Detours<'_>,
    block: Range<u32>,
    listener: &mut impl Listen,
) {
    traffic.aim_minimally(table, block.clone());
    let targets = Targets::new(block, detours.via);
    for from in 0..table.edges() {
        traffic.start(table.edge_switch(from), detours.towards(from, &targets).0);
    }
    traffic.spread();
    traffic.visit(listener);

    traffic.clear();
    for switch in network.hosts()..network.nodes() {
        if let Some(&entered) = targets.of_group.get(detours.via.group_of_switch(switch) as usize) {
            traffic.stop(switch, entered);
        }
    }
    for from in 0..table.edges() {
        let (_, others) = detours.towards(from, &targets);
        traffic.start(table.edge_switch(from), others);
        for &(channel, at) in detours.late.get(from as usize).into_iter().flatten() {
            at.iter().for_each(|vc| traffic.arrive(channel, vc, others));
        }
    }
    traffic.spread();
    traffic.visit(listener);
}

/// Notes how packets come to an intermediate switch of their own group.
fn note_own(
    origins: &mut Origins<'_>,
    table: &RouteTable,
    detours: Detours<'_>,
    towards: u32,
    halfway: &mut Vec<Halfway>,
) {
    let Detours { via, .. } = detours;
    if !via.lie_within(towards) {
        return;
    }
    for &from in via.members(via.group(towards)).iter().filter(|&&from| from != towards) {
        origins.start(table.edge_switch(from), from);
    }
    let passed = Passed::Switch(towards);
    origins.follow(
        |here| table.towards_edge(here, towards).ports,
        |channel, vc, from| halfway.push(Halfway { channel, passed, vc, from }),
    );
}

/// Notes how packets of other groups come into the group of an intermediate switch.
fn note_others(
    origins: &mut Origins<'_>,
    table: &RouteTable,
    detours: Detours<'_>,
    towards: u32,
    halfway: &mut Vec<Halfway>,
) {
    let Detours { via, over_own, late } = detours;
    let group = via.group(towards);
    if !over_own && !via.lie_across() {
        return;
    }
    for from in (0..table.edges()).filter(|&from| via.group(from) != group) {
        origins.start(table.edge_switch(from), via.group(from));
        for &(channel, at) in late.get(from as usize).into_iter().flatten() {
            at.iter().for_each(|vc| origins.arrive(channel, vc, via.group(from)));
        }
    }
    let passed = Passed::Group(group);
    let is_passed = |here| via.group_of_switch(here) == group;
    origins.follow(
        |here| if is_passed(here) { &[] } else { table.towards_edge(here, towards).ports },
        |channel, vc, from| halfway.push(Halfway { channel, passed, vc, from }),
    );
}

/// Whether packets of other groups go the same ways to two switches of one group until they are in it.
fn is_entered_alike(network: &Network, table: &RouteTable, via: &Intermediates, a: u32, b: u32) -> bool {
    let group = via.group(a);
    let mut outside = (network.hosts()..network.nodes()).filter(|&here| via.group_of_switch(here) != group);
    outside.all(|here| table.towards_edge(here, a).set == table.towards_edge(here, b).set)
}
