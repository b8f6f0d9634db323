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
//! use netloom_routing::channels::VcRule;
//! use netloom_routing::{Forwarding, preset};
//! use netloom_topology::{BuildContext, SlimFly, Topology};
//!
//! let slim_fly = Topology::SlimFly(SlimFly { q: Some(5), ..Default::default() });
//! let network = slim_fly.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap();
//! let ecmp = preset::find("ecmp").unwrap().routing();
//! let forwarding = Forwarding::build(&ecmp, &network, |_| false, 1).unwrap();
//! assert!(forwarding.find_cycle(&network, VcRule::Hops, 1).is_some());
//! let vcs = forwarding.vcs_needed(&network, VcRule::Hops);
//! assert_eq!((vcs, forwarding.find_cycle(&network, VcRule::Hops, vcs)), (2, None));
//! ```

mod block;
mod detours;
mod enough;
mod origins;
mod rising;

use netloom_units::narrow;
use std::collections::VecDeque;

use netloom_paths::LinkSet;
use netloom_topology::{ChannelId, Network, NodeId, PortId};

use self::block::{Block, all, bit, blocks};
use self::detours::{Detours, follow_detours, late};
use self::enough::{Enough, enough};
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
    if known_cycle(network, table, ways, enough(network, table, ways), vcs) == Some(false) {
        return None;
    }
    let mut graph = Dependencies::new(network, vcs);
    follow(network, table, ways, vcs, &mut graph);
    graph.cycle()
}

/// One virtual channel if the routes have no cycle with it, otherwise [`vcs_needed`].
pub(crate) fn vcs_without_cycle(network: &Network, table: &RouteTable, ways: Ways<'_>) -> u8 {
    let is_layered = matches!(ways, Ways::Layers(_));
    let enough = || enough(network, table, ways);
    // To look how long all routes of layers are takes longer than to find a cycle, if there is one.
    let known = if is_layered { None } else { enough() };
    let is_known = known_cycle(network, table, ways, known, 1);
    if !is_known.unwrap_or_else(|| has_cycle(network, table, ways, 1)) {
        return 1;
    }
    needed(network, table, ways, if is_layered { enough() } else { known })
}

/// Whether there is a cycle, as far as that is known of such routes, and by how many virtual channels are enough.
fn known_cycle(
    network: &Network,
    table: &RouteTable,
    ways: Ways<'_>,
    known: Option<Enough>,
    vcs: u8,
) -> Option<bool> {
    if known.is_some_and(|enough| enough.vcs <= u32::from(vcs)) {
        return Some(false);
    }
    let with_one = match ways {
        Ways::Minimal => rising::rise_first(network, table).then_some(false),
        Ways::Layers(layers) => rising::layers_close_a_cycle(network, table, layers),
        Ways::Paths(paths) => {
            (rising::rise_first(network, table) && paths.are_minimal(table)).then_some(false)
        }
        Ways::Via(_) | Ways::Weighed(_) => None,
    };
    // More virtual channels may break a cycle, and close none.
    with_one.filter(|&is_closed| !is_closed || vcs == 1)
}

/// Whether there is a cycle. If there is, it mostly shows when a small part of the routes has been followed.
fn has_cycle(network: &Network, table: &RouteTable, ways: Ways<'_>, vcs: u8) -> bool {
    let mut search = Search { graph: Dependencies::new(network, vcs), pauses: 0, is_found: false };
    follow(network, table, ways, vcs, &mut search);
    search.is_found || search.graph.on_a_cycle().is_some()
}

/// The virtual channels that the routes use where there are enough of them. At least 1, at most 255.
pub(crate) fn vcs_needed(network: &Network, table: &RouteTable, ways: Ways<'_>) -> u8 {
    needed(network, table, ways, enough(network, table, ways))
}

/// The same where it is known how many are enough.
fn needed(network: &Network, table: &RouteTable, ways: Ways<'_>, known: Option<Enough>) -> u8 {
    let most = known.map_or(u8::MAX, |Enough { vcs, .. }| u8::try_from(vcs).unwrap_or(u8::MAX));
    if known.is_some_and(|enough| enough.is_used) {
        return most;
    }
    // With few of them it is quicker, and mostly they are enough.
    for vcs in [8, 32, u8::MAX].map(|vcs| most.min(vcs)) {
        let mut used = Used { network, vcs, highest: 0 };
        follow(network, table, ways, vcs, &mut used);
        if used.highest < vcs - 1 || vcs == most {
            return used.highest + 1;
        }
    }
    unreachable!("the last of them is the most")
}

/// A visitor of dependencies.
trait Listen {
    /// Packets come by a channel on these virtual channels, and some packets of each of them go on by these ports. It is called more than once.
    fn depend(&mut self, channel: ChannelId, at: VcSet, onward: &Onward);

    /// Whether it has seen enough. It is called from time to time.
    fn is_content(&mut self) -> bool {
        false
    }
}

impl Listen for Dependencies<'_> {
    fn depend(&mut self, channel: ChannelId, at: VcSet, onward: &Onward) {
        self.add(channel, at, onward);
    }
}

/// The highest virtual channel that packets use.
struct Used<'a> {
    network: &'a Network,
    vcs: u8,
    highest: u8,
}

impl Listen for Used<'_> {
    fn depend(&mut self, channel: ChannelId, at: VcSet, onward: &Onward) {
        let vc = channels::next(at.highest(), rank(self.network, channel), onward.lowest, self.vcs);
        self.highest = self.highest.max(vc);
    }

    fn is_content(&mut self) -> bool {
        self.highest == self.vcs - 1
    }
}

/// Looks for a cycle while dependencies come.
struct Search<'a> {
    graph: Dependencies<'a>,
    /// How often it was asked whether it is content.
    pauses: u32,
    is_found: bool,
}

impl Listen for Search<'_> {
    fn depend(&mut self, channel: ChannelId, at: VcSet, onward: &Onward) {
        self.graph.add(channel, at, onward);
    }

    fn is_content(&mut self) -> bool {
        self.pauses += 1;
        // The later, the less often: what it costs to look stays small beside what it costs to follow.
        self.is_found = self.is_found || self.pauses.is_power_of_two() && self.graph.on_a_cycle().is_some();
        self.is_found
    }
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

    /// Adds another set.
    fn merge(&mut self, other: VcSet) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn iter(self) -> impl Iterator<Item = u8> {
        (0..4u8).flat_map(move |word| {
            let mut bits = self.0[usize::from(word)];
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| narrow::<u8>(bits.trailing_zeros()))?;
                bits &= bits - 1;
                Some(word * 64 + bit)
            })
        })
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

/// What there is of each virtual channel, with the channel's number. There may be as many as a byte counts, so numbers are taken only for what there is: `(0..)` in front of a
/// `zip` would count one further.
fn by_vc<I: IntoIterator>(each: I) -> impl Iterator<Item = (u8, I::Item)> {
    each.into_iter().zip(0..).map(|(item, vc)| (vc, item))
}

/// Follows all routes, or as many as it takes to make the listener content.
fn follow(network: &Network, table: &RouteTable, ways: Ways<'_>, vcs: u8, listener: &mut impl Listen) {
    match ways {
        Ways::Minimal => follow_minimal(network, table, vcs, listener),
        Ways::Layers(layers) => follow_layers(network, table, layers, vcs, listener),
        Ways::Via(via) => {
            follow_detours(network, table, Detours { via, over_own: false, late: &[] }, vcs, listener)
        }
        Ways::Paths(paths) => follow_paths(network, paths, vcs, listener),
        Ways::Weighed(alternatives) => {
            follow_minimal(network, table, vcs, listener);
            if listener.is_content() {
                return;
            }
            let (via, over_own) = (alternatives.via(), alternatives.uses_all_links());
            let late =
                if alternatives.is_progressive() { late(network, table, via, vcs) } else { Vec::new() };
            follow_detours(network, table, Detours { via, over_own, late: &late }, vcs, listener);
        }
    }
}

fn follow_paths(network: &Network, paths: &Paths, vcs: u8, listener: &mut impl Listen) {
    let mut onward = Onward::default();
    for to in 0..paths.edges() {
        for path in paths.all_to(to) {
            let mut vc = 0;
            for pair in path.windows(2) {
                let [channel, next] =
                    [pair[0], pair[1]].map(|step| network.ports(step.switch)[usize::from(step.port)]);
                onward.set(network, pair[1].switch, &[pair[1].port]);
                listener.depend(channel, VcSet::of(vc), &onward);
                vc = channels::next(vc, rank(network, channel), rank(network, next), vcs);
            }
        }
        if listener.is_content() {
            return;
        }
    }
}

fn follow_minimal(network: &Network, table: &RouteTable, vcs: u8, listener: &mut impl Listen) {
    let mut traffic = Block::new(network, vcs);
    for block in blocks(table.edges()) {
        let targets = all(&block);
        traffic.aim_minimally(table, block);
        (0..table.edges()).for_each(|from| traffic.start(table.edge_switch(from), targets));
        traffic.spread();
        traffic.visit(listener);
        if listener.is_content() {
            return;
        }
    }
}

fn follow_layers(
    network: &Network,
    table: &RouteTable,
    layers: &Layers,
    vcs: u8,
    listener: &mut impl Listen,
) {
    let mut traffic = Block::new(network, vcs);
    let router = |edge| layers.router(table.edge_switch(edge));
    // Layers of few links are drawn in a part of the time, and their longer paths close cycles sooner.
    let is_dense = |links: &LinkSet| 2 * links.len() > links.universe();
    let mut sparse_first: Vec<u32> = (0..layers.tables().layers()).collect();
    sparse_first.sort_by_key(|&layer| is_dense(layers.tables().links(layer)));
    for block in blocks(table.edges()) {
        // Per switch with hosts, itself and the targets that some layer connects it with.
        let mut reached: Vec<u64> = (0..table.edges()).map(|from| bit(&block, from)).collect();
        for &layer in &sparse_first {
            traffic.aim(block.clone(), |here, to, visit| {
                layers.each_port(layer, layers.router(here), router(to), visit)
            });
            for (from, reached) in (0..).zip(&mut reached) {
                let switch = table.edge_switch(from);
                let targets = traffic.known(switch);
                traffic.start(switch, targets);
                *reached |= targets;
            }
            traffic.spread();
            traffic.visit(listener);
            if listener.is_content() {
                return;
            }
        }
        let targets = all(&block);
        if reached.iter().all(|&reached| reached == targets) {
            continue;
        }
        traffic.aim_minimally(table, block);
        for (from, reached) in (0..).zip(reached) {
            traffic.start(table.edge_switch(from), targets & !reached);
        }
        traffic.spread();
        traffic.visit(listener);
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

    /// Packets that come by a channel, on the first virtual one, go on by a port.
    fn add_port(&mut self, channel: ChannelId, port: PortId) {
        let first = self.node(channel, 0) * self.words;
        self.ports[first + usize::from(port) / 64] |= 1 << (port % 64);
    }

    /// Packets that come by a channel, on the first virtual one, do not go on by the next.
    fn remove(&mut self, channel: ChannelId, next: ChannelId) {
        let ports = self.network.ports(self.network.channel(channel).to);
        let first = self.node(channel, 0) * self.words;
        let is_next = |&port: &usize| ports[port] == next;
        (0..ports.len())
            .filter(is_next)
            .for_each(|port| self.ports[first + port / 64] &= !(1 << (port % 64)));
    }

    fn channel(&self, node: usize) -> (ChannelId, u8) {
        let vcs = usize::from(self.vcs);
        (narrow::<ChannelId>(node / vcs), narrow::<u8>(node % vcs))
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
