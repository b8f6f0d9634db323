//! Can a lossless fabric deadlock? The channel dependency graph of a network's routes and its cycles.
//!
//! A channel depends on the next channel of a route: its packets leave their buffer only when that one takes them. Without loss, a
//! cycle of such dependencies can stand still for ever; without cycles it cannot (Dally and Seitz, IEEE Trans. Computers
//! 1987). Channels are divided into virtual ones with buffers of their own, which packets use by the rule in [`channels`]: by hop, or by global
//! hop where links rank. With one virtual channel this is plain PFC; with as many as the routes can use ([`vcs_needed`]) every dependency
//! leads to a higher virtual channel or rank, so there is no cycle.
//!
//! A dependency counts only if some route causes it: for each destination, traffic is followed from the switches with hosts over the ports
//! it may take. Channels from and to hosts are left out, since nothing waits behind a host.
//!
//! ```
//! use netloom_routing::{Forwarding, preset};
//! use netloom_topology::{BuildContext, SlimFly, Topology};
//!
//! let slim_fly = Topology::SlimFly(SlimFly { q: Some(5), ..Default::default() });
//! let network = slim_fly.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap();
//! let ecmp = preset::find("ecmp").unwrap().routing();
//! let forwarding = Forwarding::build(&ecmp, &network, |_| false, 1).unwrap();
//! assert!(forwarding.find_cycle(&network, 1).is_some());
//! let vcs = forwarding.vcs_needed(&network);
//! assert_eq!((vcs, forwarding.find_cycle(&network, vcs)), (2, None));
//! ```

mod minimal;

use std::collections::{BTreeMap, VecDeque};

use netloom_topology::{ChannelId, Network, NodeId, PortId};

use self::minimal::follow_minimal;
use super::alternatives::Alternatives;
use super::channels::{self, rank};
use super::layers::Layers;
use super::minimal::RouteTable;
use super::paths::Paths;
use super::via::Intermediates;

/// Which ways the packets of a scheme may take.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ways<'a> {
    /// Any minimal port: every scheme that picks among the candidates of the route table. For schemes that use only some of them
    /// (D-mod-k) there may be fewer dependencies.
    Minimal,
    /// The layers of the selector `layer`; minimal ports between switches that no layer connects.
    Layers(&'a Layers),
    /// Over the intermediate switches of the selector `valiant`.
    Via(&'a Intermediates),
    /// Those that the selector `ugal` weighs.
    Weighed(&'a Alternatives),
    /// The paths of the selector `k-shortest`.
    Paths(&'a Paths),
}

/// A cycle of virtual channels, each waiting for the next and the last for the first; none if the routes are free of deadlock.
/// It is a shortest one through one of its channels.
pub(crate) fn find_cycle(
    network: &Network,
    table: &RouteTable,
    ways: Ways<'_>,
    vcs: u8,
) -> Option<Vec<(ChannelId, u8)>> {
    let vcs = vcs.max(1);
    let mut graph = Dependencies::new(network, vcs);
    follow(network, table, ways, vcs, |channel, at, onward| graph.add(channel, at, onward));
    graph.cycle()
}

/// The virtual channels that the routes use where there are enough of them. At least 1, at most 255.
pub(crate) fn vcs_needed(network: &Network, table: &RouteTable, ways: Ways<'_>) -> u8 {
    // With few of them it is quicker, and mostly they are enough.
    for vcs in [8, 32, u8::MAX] {
        let mut highest = 0;
        follow(network, table, ways, vcs, |channel, at, onward| {
            highest = highest.max(channels::next(at.highest(), rank(network, channel), onward.lowest, vcs));
        });
        if highest < vcs - 1 {
            return highest + 1;
        }
    }
    u8::MAX
}

/// A set of virtual channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct VcSet([u64; 4]);

impl VcSet {
    fn of(vc: u8) -> Self {
        let mut set = VcSet::default();
        set.0[usize::from(vc) / 64] |= 1 << (vc % 64);
        set
    }

    fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }

    /// Adds another set; whether that made a difference.
    fn merge(&mut self, other: VcSet) -> bool {
        let before = *self;
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
        *self != before
    }

    fn iter(self) -> impl Iterator<Item = u8> {
        (0..4u8).flat_map(move |word| {
            let mut bits = self.0[usize::from(word)];
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as u8)?;
                bits &= bits - 1;
                Some(word * 64 + bit)
            })
        })
    }

    /// The virtual channels one hop later, where the links have these ranks.
    fn next(self, from: u8, to: u8, vcs: u8) -> Self {
        let mut next = VcSet::default();
        self.iter().for_each(|vc| {
            next.merge(VcSet::of(channels::next(vc, from, to, vcs)));
        });
        next
    }

    fn highest(self) -> u8 {
        self.iter().last().unwrap_or(0)
    }
}

/// The ports by which packets go on from a switch.
#[derive(Clone, Debug, Default)]
struct Onward {
    /// A bit for each.
    words: Vec<u64>,
    /// The lowest rank of their links.
    lowest: u8,
}

impl Onward {
    fn set(&mut self, network: &Network, here: NodeId, ports: &[PortId]) {
        let channels = network.ports(here);
        self.words.clear();
        self.words.resize(channels.len().div_ceil(64), 0);
        ports.iter().for_each(|&port| self.words[usize::from(port) / 64] |= 1 << (port % 64));
        let ranks = ports.iter().map(|&port| rank(network, channels[usize::from(port)]));
        self.lowest = ranks.min().unwrap_or(0);
    }
}

/// The traffic to one target, as far as it was followed.
struct Traffic<'a> {
    network: &'a Network,
    vcs: u8,
    /// Per channel, the virtual channels on which it carries such traffic.
    arriving: Vec<VcSet>,
    /// The channels for which that is not the empty set.
    touched: Vec<ChannelId>,
    /// The same by the switch to which they lead.
    touched_at: Vec<Vec<ChannelId>>,
    /// Per switch, whether packets set out from it, and the switches for which that is so.
    starts: Vec<bool>,
    started: Vec<NodeId>,
    waiting: Vec<bool>,
    queue: VecDeque<NodeId>,
}

impl<'a> Traffic<'a> {
    fn new(network: &'a Network, vcs: u8) -> Self {
        let nodes = network.nodes() as usize;
        Traffic {
            network,
            vcs,
            arriving: vec![VcSet::default(); network.channels() as usize],
            touched: Vec::new(),
            touched_at: vec![Vec::new(); nodes],
            starts: vec![false; nodes],
            started: Vec::new(),
            waiting: vec![false; nodes],
            queue: VecDeque::new(),
        }
    }

    /// Forgets all traffic.
    fn clear(&mut self) {
        for channel in self.touched.drain(..) {
            self.arriving[channel as usize] = VcSet::default();
            self.touched_at[self.network.channel(channel).to as usize].clear();
        }
        self.started.drain(..).for_each(|switch| self.starts[switch as usize] = false);
    }

    fn wake(&mut self, switch: NodeId) {
        if !std::mem::replace(&mut self.waiting[switch as usize], true) {
            self.queue.push_back(switch);
        }
    }

    /// Packets set out from a switch with hosts.
    fn start(&mut self, switch: NodeId) {
        self.starts[switch as usize] = true;
        self.started.push(switch);
        self.wake(switch);
    }

    /// Packets come by a channel.
    fn arrive(&mut self, channel: ChannelId, at: VcSet) {
        let to = self.network.channel(channel).to;
        let known = &mut self.arriving[channel as usize];
        let is_first = known.is_empty();
        if known.merge(at) {
            if is_first {
                self.touched.push(channel);
                self.touched_at[to as usize].push(channel);
            }
            self.wake(to);
        }
    }

    /// Follows the traffic until nothing new happens. `ports` are those by which a switch forwards it, none where it ends.
    fn spread<'p>(
        &mut self,
        ports: impl Fn(NodeId) -> &'p [PortId],
        mut depend: impl FnMut(ChannelId, VcSet, &Onward),
    ) {
        let mut onward = Onward::default();
        while let Some(here) = self.queue.pop_front() {
            self.waiting[here as usize] = false;
            let out = ports(here);
            if out.is_empty() {
                continue;
            }
            onward.set(self.network, here, out);
            // By the rank of the link on which they come.
            let mut came = [VcSet::default(); 2];
            for &channel in &self.touched_at[here as usize] {
                let at = self.arriving[channel as usize];
                depend(channel, at, &onward);
                came[usize::from(rank(self.network, channel))].merge(at);
            }
            // By the rank of the link on which they leave.
            let mut leaving = [if self.starts[here as usize] { VcSet::of(0) } else { VcSet::default() }; 2];
            for (from, came) in (0..).zip(came) {
                (0..).zip(&mut leaving).for_each(|(to, leaving)| {
                    leaving.merge(came.next(from, to, self.vcs));
                });
            }
            for &port in out {
                let channel = self.network.ports(here)[usize::from(port)];
                self.arrive(channel, leaving[usize::from(rank(self.network, channel))]);
            }
        }
    }
}

/// Follows all routes. `depend` is told of a channel, the virtual channels on which packets come by it, and the ports by which some packets
/// of each of them go on; also more than once.
fn follow(
    network: &Network,
    table: &RouteTable,
    ways: Ways<'_>,
    vcs: u8,
    mut depend: impl FnMut(ChannelId, VcSet, &Onward),
) {
    let mut traffic = Traffic::new(network, vcs);
    match ways {
        Ways::Minimal => follow_minimal(network, table, vcs, depend),
        Ways::Layers(layers) => follow_layers(&mut traffic, table, layers, depend),
        Ways::Via(via) => {
            follow_detours(&mut traffic, table, Detours { via, over_own: false, late: &[] }, depend)
        }
        Ways::Paths(paths) => follow_paths(network, paths, vcs, depend),
        Ways::Weighed(alternatives) => {
            follow_minimal(network, table, vcs, &mut depend);
            let (via, over_own) = (alternatives.via(), alternatives.uses_all_links());
            let late =
                if alternatives.is_progressive() { late(&mut traffic, table, via) } else { Vec::new() };
            follow_detours(&mut traffic, table, Detours { via, over_own, late: &late }, depend);
        }
    }
}

fn follow_paths(
    network: &Network,
    paths: &Paths,
    vcs: u8,
    mut depend: impl FnMut(ChannelId, VcSet, &Onward),
) {
    let mut onward = Onward::default();
    for path in paths.iter() {
        let mut vc = 0;
        for pair in path.windows(2) {
            let [channel, next] =
                [pair[0], pair[1]].map(|step| network.ports(step.switch)[usize::from(step.port)]);
            onward.set(network, pair[1].switch, &[pair[1].port]);
            depend(channel, VcSet::of(vc), &onward);
            vc = channels::next(vc, rank(network, channel), rank(network, next), vcs);
        }
    }
}

fn follow_layers(
    traffic: &mut Traffic<'_>,
    table: &RouteTable,
    layers: &Layers,
    mut depend: impl FnMut(ChannelId, VcSet, &Onward),
) {
    let network = traffic.network;
    let router = |edge| layers.router(table.edge_switch(edge));
    for to in 0..table.edges() {
        let mut is_connected = vec![false; table.edges() as usize];
        for layer in 0..layers.tables().layers() {
            traffic.clear();
            for from in (0..table.edges()).filter(|&from| from != to) {
                if layers.connects(layer, router(from), router(to)) {
                    is_connected[from as usize] = true;
                    traffic.start(table.edge_switch(from));
                }
            }
            let row: Vec<Vec<PortId>> =
                (0..network.switches()).map(|here| layers.ports(layer, here, router(to))).collect();
            traffic.spread(|here| &row[layers.router(here) as usize], &mut depend);
        }
        traffic.clear();
        let left = (0..table.edges()).filter(|&from| from != to && !is_connected[from as usize]);
        left.for_each(|from| traffic.start(table.edge_switch(from)));
        traffic.spread(|here| table.towards_edge(here, to).ports, &mut depend);
    }
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

/// How packets come to go over an intermediate switch.
#[derive(Clone, Copy)]
struct Detours<'a> {
    via: &'a Intermediates,
    /// They may be sent to a switch of their destination's group.
    over_own: bool,
    /// Per switch with hosts, the channels by which packets may come there that are sent over an intermediate switch only then.
    late: &'a [Vec<(ChannelId, VcSet)>],
}

impl Halfway {
    /// Whether some of the packets may go on to `to`.
    fn may_go_on(&self, detours: Detours<'_>, to: u32) -> bool {
        let Detours { via, over_own, .. } = detours;
        let group = via.group(to);
        match self.passed {
            Passed::Switch(passed) => via.group(passed) == group && passed != to && self.from != Some(to),
            Passed::Group(passed) => (over_own || passed != group) && self.from != Some(group),
        }
    }
}

/// Per switch with hosts, the channels by which packets from its group to others come to it on minimal paths.
fn late(traffic: &mut Traffic<'_>, table: &RouteTable, via: &Intermediates) -> Vec<Vec<(ChannelId, VcSet)>> {
    let network = traffic.network;
    let mut late: BTreeMap<ChannelId, VcSet> = BTreeMap::new();
    for to in 0..table.edges() {
        for group in (0..via.groups() as u32).filter(|&group| group != via.group(to)) {
            traffic.clear();
            via.members(group).iter().for_each(|&from| traffic.start(table.edge_switch(from)));
            traffic.spread(|here| table.towards_edge(here, to).ports, |_, _, _| {});
            for &channel in &traffic.touched {
                // Where a group is in pieces, packets come back to it by global links.
                if via.group_of_switch(network.channel(channel).to) == group {
                    late.entry(channel).or_default().merge(traffic.arriving[channel as usize]);
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

fn follow_detours(
    traffic: &mut Traffic<'_>,
    table: &RouteTable,
    detours: Detours<'_>,
    mut depend: impl FnMut(ChannelId, VcSet, &Onward),
) {
    let via = detours.via;
    let mut halfway: Vec<Halfway> = Vec::new();
    for from in 0..table.edges() {
        for towards in via.reachable(from, detours.over_own) {
            traffic.clear();
            traffic.start(table.edge_switch(from));
            let late = detours.late.get(from as usize).filter(|_| via.group(from) != via.group(towards));
            late.into_iter().flatten().for_each(|&(channel, at)| traffic.arrive(channel, at));
            let is_passed = |here| via.is_passed(table, from, towards, here);
            let ports =
                |here| if is_passed(here) { &[][..] } else { table.towards_edge(here, towards).ports };
            traffic.spread(ports, &mut depend);
            let (here, there) = (via.group(from), via.group(towards));
            let (passed, from) = match here == there {
                true => (Passed::Switch(towards), Some(from)),
                false => (Passed::Group(there), Some(here)),
            };
            for &channel in &traffic.touched {
                if is_passed(traffic.network.channel(channel).to) {
                    let at = traffic.arriving[channel as usize];
                    halfway.extend(at.iter().map(|vc| Halfway { channel, passed, vc, from }));
                }
            }
        }
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
    for to in 0..table.edges() {
        traffic.clear();
        for part in halfway.iter().filter(|part| part.may_go_on(detours, to)) {
            traffic.arrive(part.channel, VcSet::of(part.vc));
        }
        let direct = (0..table.edges()).filter(|&from| from != to && !via.lie_between(from, to));
        direct.for_each(|from| traffic.start(table.edge_switch(from)));
        traffic.spread(|here| table.towards_edge(here, to).ports, &mut depend);
    }
}

/// The dependencies between virtual channels.
struct Dependencies<'a> {
    network: &'a Network,
    vcs: u8,
    /// Words per virtual channel in `ports`.
    words: usize,
    /// Per channel and virtual channel, the set of ports by which its packets go on.
    ports: Vec<u64>,
}

impl<'a> Dependencies<'a> {
    fn new(network: &'a Network, vcs: u8) -> Self {
        let most = (network.hosts()..network.nodes()).map(|switch| network.ports(switch).len()).max();
        let words = most.unwrap_or(0).div_ceil(64);
        let ports = vec![0; network.channels() as usize * usize::from(vcs) * words];
        Dependencies { network, vcs, words, ports }
    }

    fn node(&self, channel: ChannelId, vc: u8) -> usize {
        channel as usize * usize::from(self.vcs) + usize::from(vc)
    }

    fn add(&mut self, channel: ChannelId, at: VcSet, onward: &Onward) {
        for vc in at.iter() {
            let first = self.node(channel, vc) * self.words;
            self.ports[first..].iter_mut().zip(&onward.words).for_each(|(mine, theirs)| *mine |= theirs);
        }
    }

    fn channel(&self, node: usize) -> (ChannelId, u8) {
        let vcs = usize::from(self.vcs);
        ((node / vcs) as ChannelId, (node % vcs) as u8)
    }

    /// The first virtual channel, from the `skip`-th port on, that a virtual channel depends on, and its port.
    fn next(&self, node: usize, skip: usize) -> Option<(usize, usize)> {
        let (channel, vc) = self.channel(node);
        let ports = self.network.ports(self.network.channel(channel).to);
        let set = &self.ports[node * self.words..(node + 1) * self.words];
        let port = (skip..ports.len()).find(|port| set[port / 64] >> (port % 64) & 1 == 1)?;
        let (from, to) = (rank(self.network, channel), rank(self.network, ports[port]));
        Some((self.node(ports[port], channels::next(vc, from, to, self.vcs)), port))
    }

    fn cycle(&self) -> Option<Vec<(ChannelId, u8)>> {
        let start = self.on_a_cycle()?;
        let nodes = self.shortest_cycle(start);
        Some(nodes.into_iter().map(|node| self.channel(node)).collect())
    }

    /// A virtual channel that a depth-first search meets again.
    fn on_a_cycle(&self) -> Option<usize> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let nodes = self.network.channels() as usize * usize::from(self.vcs);
        let mut states = vec![State::New; nodes];
        let mut path: Vec<(usize, usize)> = Vec::new();
        for root in 0..nodes {
            if states[root] != State::New {
                continue;
            }
            states[root] = State::Open;
            path.push((root, 0));
            while let Some((node, skip)) = path.last_mut() {
                match self.next(*node, *skip) {
                    Some((next, port)) => {
                        *skip = port + 1;
                        match states[next] {
                            State::Open => return Some(next),
                            State::New => {
                                states[next] = State::Open;
                                path.push((next, 0));
                            }
                            State::Done => {}
                        }
                    }
                    None => {
                        states[*node] = State::Done;
                        path.pop();
                    }
                }
            }
        }
        None
    }

    /// The shortest way from a virtual channel on a cycle back to it.
    fn shortest_cycle(&self, start: usize) -> Vec<usize> {
        let nodes = self.network.channels() as usize * usize::from(self.vcs);
        let mut came_from = vec![usize::MAX; nodes];
        let mut queue = VecDeque::from([start]);
        while came_from[start] == usize::MAX {
            let node = queue.pop_front().expect("the start is on a cycle");
            let mut skip = 0;
            while let Some((next, port)) = self.next(node, skip) {
                skip = port + 1;
                if came_from[next] == usize::MAX {
                    came_from[next] = node;
                    queue.push_back(next);
                }
            }
        }
        let mut cycle = vec![start];
        let mut node = came_from[start];
        while node != start {
            cycle.push(node);
            node = came_from[node];
        }
        cycle.reverse();
        cycle
    }
}

#[cfg(test)]
mod tests;
