//! The components of a run: hosts whose packets share no link with those of other hosts, whatever happens. Nothing that one of them does makes a difference to another, so each can be run by itself from
//! beginning to end, on the same switches: what recurs in one need not wait for what others do.
//!
//! To whom hosts send is known from their work, and over which links from the routes. Where ports of a switch have more in common than packets that go from one to the other (memory, random numbers, what a
//! scheme keeps), a switch counts as a link does.

use netloom_topology::HostId;
use netloom_units::Bytes;

use crate::node::Node;
use crate::switch::Switch;
use crate::world::World;

/// Switches that are looked at on all ways, at most: some tens of milliseconds. If there are more, all is one component.
const MOST_LOOKED_AT: u32 = 1 << 20;

/// Receivers of hosts that are looked at, about at most: some milliseconds. Where there are more, nearly always all hosts are joined.
const MOST_RECEIVERS: usize = 1 << 18;

/// Components that are run one by one, at most: each takes some time to begin.
const MOST: usize = 64;

/// What groups of hosts have in common that mostly recur together: whether calculations of some rank take times that are drawn, after which nothing recurs, and the largest message.
type Alike = (bool, Bytes);

/// The nodes of hosts and servers in each component. Those that are [alike](Alike) are run together. What is in none is in the first one.
pub(super) fn components(world: &World, nodes: &[Node]) -> Vec<Vec<u32>> {
    let ends = (0..world.network.hosts()).filter(|&id| !matches!(nodes[id as usize], Node::InServer));
    let Some(mut groups) = Groups::find(world, nodes) else { return vec![ends.collect()] };
    let mut components: Vec<(Alike, Vec<u32>)> = Vec::new();
    let mut others = Vec::new();
    for id in ends {
        let Some(alike) = groups.alike(id) else {
            others.push(id);
            continue;
        };
        let place = components.iter().position(|&(of_all, _)| of_all == alike);
        match place.or((components.len() == MOST).then_some(0)) {
            Some(place) => components[place].1.push(id),
            None => components.push((alike, vec![id])),
        }
    }
    components[0].1.append(&mut others);
    components.into_iter().map(|(_, nodes)| nodes).collect()
}

/// Hosts and servers that are joined to groups.
struct Groups<'w> {
    world: &'w World,
    /// By node: another one of its group, towards the one that stands for the group.
    towards: Vec<u32>,
    /// By node that stands for a group; none if it neither sends nor receives anything.
    alike: Vec<Option<Alike>>,
    /// Groups of nodes that send or receive.
    count: usize,
}

impl<'w> Groups<'w> {
    /// The groups whose packets cannot meet; none if there are not several, or that takes too long to find out.
    fn find(world: &'w World, nodes: &[Node]) -> Option<Self> {
        if world.network.switches() == 0 || !world.forwarding.is_minimal() {
            return None;
        }
        let (towards, alike) = ((0..world.network.nodes()).collect(), vec![None; nodes.len()]);
        let mut groups = Groups { world, towards, alike, count: 0 };
        let pairs = groups.join_ends(nodes)?;
        if groups.count < 2 {
            return None;
        }
        let mut ways = Ways::new(world);
        let goes_on = pairs.iter().all(|&(to, from)| ways.join((from, to), &mut groups));
        goes_on.then_some(groups)
    }

    /// Joins nodes with those to which they send. Returns the ends of all ways, there and back: where they lead to, and from where; none if there are too many.
    fn join_ends(&mut self, nodes: &[Node]) -> Option<Vec<(HostId, HostId)>> {
        let (mut pairs, mut looked_at) = (Vec::new(), 0);
        for (id, node) in (0..).zip(nodes) {
            let Some(work) = node.work() else { continue };
            let (src, _) = self.world.server(id);
            let mut receivers = Vec::new();
            let alike = (work.draws_times(), work.each_receiver(&mut |dst| receivers.push(dst)));
            looked_at += receivers.len();
            if looked_at > MOST_RECEIVERS {
                return None;
            }
            receivers.sort_unstable();
            receivers.dedup();
            for dst in receivers.into_iter().filter(|&dst| dst != src) {
                let receiver = self.node_of(dst);
                self.take_part(id, alike);
                self.take_part(receiver, alike);
                self.join(id, receiver);
                pairs.extend([(dst, src), (src, dst)]);
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        Some(pairs)
    }

    /// The node of a host, or of a server where hosts send as these.
    fn node_of(&self, end: HostId) -> u32 {
        self.world.servers.as_ref().map_or(end, |servers| servers.rails.host(end, 0))
    }

    /// A node sends or receives messages.
    fn take_part(&mut self, node: u32, alike: Alike) {
        let first = self.first(node);
        let known = &mut self.alike[first as usize];
        self.count += usize::from(known.is_none());
        *known = (*known).max(Some(alike));
    }

    /// Two nodes that take part are of one group.
    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.first(one), self.first(other));
        if one != other {
            self.towards[other as usize] = one;
            self.alike[one as usize] = self.alike[one as usize].max(self.alike[other as usize]);
            self.count -= 1;
        }
    }

    /// The node that stands for the group of a node.
    fn first(&mut self, mut node: u32) -> u32 {
        while self.towards[node as usize] != node {
            let next = self.towards[node as usize];
            self.towards[node as usize] = self.towards[next as usize];
            node = next;
        }
        node
    }

    /// What a node's group is like; none if it neither sends nor receives anything.
    fn alike(&mut self, node: u32) -> Option<Alike> {
        let first = self.first(node);
        self.alike[first as usize]
    }
}

/// Who uses what.
struct Ways<'w> {
    world: &'w World,
    /// By link, and behind them by switch: a node of the group that uses it.
    users: Vec<Option<u32>>,
    /// Whether one group only may use a switch.
    shares_switches: bool,
    /// By node: the last way to a host that has led to it; the number of the present one, and where it leads to.
    seen: Vec<u32>,
    way: u32,
    to: HostId,
    looked_at: u32,
}

impl<'w> Ways<'w> {
    fn new(world: &'w World) -> Self {
        let World { network, rules, routing, .. } = world;
        let keeps = !Switch::new(world, network.hosts(), None).protocols.recurs();
        Ways {
            world,
            users: vec![None; (network.channels() / 2 + network.nodes()) as usize],
            shares_switches: keeps || !rules.ports_are_apart() || !routing.switches_go_by_packets(),
            seen: vec![0; network.nodes() as usize],
            way: 0,
            to: HostId::MAX,
            looked_at: 0,
        }
    }

    /// Joins a node that sends with all that use the same links on its ways to a receiver; hosts, or servers where hosts send as these. Whether it is worth while to go on.
    fn join(&mut self, (from, to): (HostId, HostId), groups: &mut Groups<'_>) -> bool {
        let node = groups.node_of(from);
        let Some(servers) = &self.world.servers else { return self.join_hosts((from, to), node, groups) };
        let rails = &servers.rails;
        let pairs = (0..rails.rails()).flat_map(|rail| {
            let to = rails.hosts(to, rail).iter();
            to.flat_map(move |&to| rails.hosts(from, rail).iter().map(move |&from| (from, to)))
        });
        pairs.into_iter().all(|pair| self.join_hosts(pair, node, groups))
    }

    fn join_hosts(&mut self, (from, to): (HostId, HostId), node: u32, groups: &mut Groups<'_>) -> bool {
        let World { network, forwarding, .. } = self.world;
        // Ways from several hosts to one meet there.
        if std::mem::replace(&mut self.to, to) != to {
            self.way += 1;
        }
        let mut here = vec![from];
        while let Some(id) = here.pop() {
            if std::mem::replace(&mut self.seen[id as usize], self.way) == self.way {
                continue;
            }
            self.looked_at += 1;
            let is_host = network.is_host(id);
            if self.shares_switches && !is_host {
                self.use_one((network.channels() / 2 + id) as usize, node, groups);
            }
            let ports: &[_] = if is_host { &[0] } else { forwarding.table().candidates(id, to).ports };
            for &port in ports {
                let channel = network.ports(id)[usize::from(port)];
                self.use_one(channel as usize / 2, node, groups);
                let next = network.channel(channel).to;
                if next != to {
                    here.push(next);
                }
            }
        }
        groups.count > 1 && self.looked_at < MOST_LOOKED_AT
    }

    fn use_one(&mut self, place: usize, node: u32, groups: &mut Groups<'_>) {
        let user = *self.users[place].get_or_insert(node);
        groups.join(user, node);
    }
}
