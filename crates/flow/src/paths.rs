//! Which links flows take: the paths that the routing scheme gives them, with the shares that follow from it ([`Spread`]).

use std::rc::Rc;

use netloom_routing::{Carries, Header, Hop, PacketContext, Spread, SwitchPathSelector, Tag, TagSpace};
use netloom_sim::{IdleSwitch, Stage};
use netloom_topology::{ChannelId, HostId, NodeId};
use netloom_units::random::Stream;
use netloom_units::{Time, narrow, random};
use rustc_hash::FxHashMap;

use crate::alike;
use crate::max_min::Resource;
use crate::split::{ARRIVED, Split};

/// Paths as they are at one time of the run.
pub(crate) struct Paths<'a> {
    stage: &'a Stage,
    spread: Spread,
    /// Since when the present routes hold.
    now: Time,
    /// Per channel, the resource that stands for it.
    pub(crate) resources: Vec<Resource>,
    /// How many there are.
    pub(crate) count: u32,
    /// Channels that are cut now.
    dead: Vec<bool>,
    /// Channels whose rates change.
    apart: Vec<bool>,
    /// Between two switches with hosts.
    known: FxHashMap<(NodeId, NodeId), Known>,
    /// Selectors, and what they draw, of switches that have been asked.
    switches: FxHashMap<NodeId, (SwitchPathSelector, Stream)>,
    /// What hosts draw.
    hosts: FxHashMap<HostId, Stream>,
}

/// The links of a flow.
pub(crate) struct Course {
    /// Between its hosts' own; none if no path is left.
    pub(crate) split: Option<Rc<Split>>,
    /// Its only path, or the slowest of several that have numbers; none where all are minimal.
    pub(crate) path: Option<Vec<ChannelId>>,
}

/// The same of all flows that divide between two switches, without the links of hosts.
#[derive(Clone)]
struct Known {
    split: Option<Rc<Split>>,
    slowest: Option<Rc<[ChannelId]>>,
}

/// How a switch finds the port of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choosing {
    /// As it does for the first packet of a flow.
    Decided,
    /// By what the packet says of its path.
    Named,
    /// Likewise, behind a first switch where it takes this hop.
    Begun(Hop),
}

impl<'a> Paths<'a> {
    pub(crate) fn new(stage: &'a Stage, spread: Spread) -> Self {
        let channels = stage.network().channels() as usize;
        let mut apart = vec![false; channels];
        stage.rates().iter().for_each(|&(channel, _)| apart[channel as usize] = true);
        let mut paths = Paths {
            stage,
            spread,
            now: Time::ZERO,
            resources: Vec::new(),
            count: 0,
            dead: vec![false; channels],
            apart,
            known: FxHashMap::default(),
            switches: FxHashMap::default(),
            hosts: FxHashMap::default(),
        };
        paths.lay();
        paths
    }

    /// Routes, or the links that are cut, have changed.
    pub(crate) fn change(&mut self, now: Time, dead: Vec<bool>) {
        (self.now, self.dead) = (now, dead);
        self.lay();
    }

    fn lay(&mut self) {
        let (network, routes) = (self.stage.network(), self.stage.routes(self.now));
        self.known.clear();
        let all_divide = self.spread != Spread::OnePath && self.stage.routing().ecmp_every.is_none();
        let dead = |channel: ChannelId| self.dead[channel as usize];
        let apart = |channel: ChannelId| self.apart[channel as usize];
        let alike = match all_divide && routes.is_minimal() {
            true => alike::alike(network, routes.table(), dead, apart),
            false => None,
        };
        (self.resources, self.count) = alike.unwrap_or_else(|| alike::each_for_itself(network));
    }

    /// The tag that a flow begins with at its NIC.
    pub(crate) fn tag(&mut self, src: HostId, dst: HostId) -> Tag {
        let seed = self.stage.seed();
        let tags = self.stage.routes(self.now).tags(src, dst);
        let draws = self.hosts.entry(src).or_insert_with(|| random::Node::Host.stream(seed, u64::from(src)));
        tags.first(draws)
    }

    /// Whether a host's flows have one path each.
    pub(crate) fn has_one_path(&self, src: HostId) -> bool {
        self.spread == Spread::OnePath || self.stage.routing().uses_ecmp(src)
    }

    /// The links of a flow.
    pub(crate) fn course(&mut self, (src, dst): (HostId, HostId), flow: u32, tag: Tag) -> Course {
        let network = self.stage.network();
        let (from, to) = (network.edge_switch(src), network.edge_switch(dst));
        let is_dead = |channel: ChannelId| self.dead[channel as usize];
        let (first, last) = (network.ports(src)[0], network.ports(dst)[0] ^ 1);
        if is_dead(first) || is_dead(last) {
            return Course { split: None, path: None };
        }
        if self.has_one_path(src) {
            let path = self.walk((src, dst), flow, tag, Choosing::Decided);
            let is_whole =
                path.last() == Some(&last) && !path.iter().any(|&channel| self.dead[channel as usize]);
            let split = is_whole.then(|| {
                let between = path[1..path.len() - 1].iter();
                Rc::new(Split::along(between.map(|&channel| self.resources[channel as usize])))
            });
            return Course { split, path: Some(path).filter(|_| is_whole) };
        }
        if from == to {
            return Course { split: Some(Rc::new(Split::along([]))), path: None };
        }
        // Behind an intermediate switch, and before it, each flow has the path of its hash.
        let is_hashed = self.spread == Spread::MinimalFirst
            || matches!(self.stage.routes(self.now).tags(src, dst), TagSpace::Via { .. });
        let known = match self.known.get(&(from, to)) {
            Some(known) => known.clone(),
            None if self.spread == Spread::MinimalFirst => self.minimal_first((src, dst), flow),
            None if self.stage.routes(self.now).is_minimal() => {
                Known { split: Split::evenly(&self.minimal(src, dst)).map(Rc::new), slowest: None }
            }
            None => self.numbered((src, dst), if is_hashed { flow } else { 0 }),
        };
        if !is_hashed {
            self.known.entry((from, to)).or_insert_with(|| known.clone());
        }
        let Known { split, slowest } = known;
        let path = slowest.map(|between| [&[first], &*between, &[last]].concat());
        Course { split, path }
    }

    /// The resources of the links of a flow's hosts.
    pub(crate) fn ends(&self, (src, dst): (HostId, HostId)) -> [Resource; 2] {
        let network = self.stage.network();
        [network.ports(src)[0], network.ports(dst)[0] ^ 1].map(|channel| self.resources[channel as usize])
    }

    /// All minimal paths, switch by switch, of links that are not cut.
    fn minimal(&self, src: HostId, dst: HostId) -> Vec<Vec<(Resource, u32)>> {
        let (network, table) = (self.stage.network(), self.stage.routes(self.now).table());
        let (from, to) = (network.edge_switch(src), network.edge_switch(dst));
        // Backwards from the last switch in depth first, so that each one comes after those to which it leads.
        let mut order: Vec<NodeId> = Vec::new();
        let mut places: FxHashMap<NodeId, u32> = FxHashMap::default();
        let mut stack = vec![(from, false)];
        while let Some((here, is_done)) = stack.pop() {
            if is_done {
                order.push(here);
            } else if places.insert(here, 0).is_none() {
                stack.push((here, true));
                let ports = table.candidates(here, dst).ports;
                let ahead = ports.iter().map(|&port| network.neighbour(here, port));
                stack.extend(
                    ahead.filter(|&next| next != to && !places.contains_key(&next)).map(|next| (next, false)),
                );
            }
        }
        order.reverse();
        (0..).zip(&order).for_each(|(place, &switch)| _ = places.insert(switch, place));
        let edges = |&here: &NodeId| {
            let ports = table.candidates(here, dst).ports.iter();
            let channels = ports.map(|&port| network.ports(here)[usize::from(port)]);
            let live = channels.filter(|&channel| !self.dead[channel as usize]);
            live.map(|channel| {
                let next = network.channel(channel).to;
                let node = if next == to { ARRIVED } else { places[&next] };
                (self.resources[channel as usize], node)
            })
            .collect()
        };
        order.iter().map(edges).collect()
    }

    /// All paths of a flow that have numbers, or those over intermediate switches, of links that are not cut.
    fn numbered(&mut self, (src, dst): (HostId, HostId), flow: u32) -> Known {
        let tags: Vec<(Tag, f64)> = match self.stage.routes(self.now).tags(src, dst) {
            TagSpace::Via { via, from, to } => {
                let over = via.probabilities(from, to).into_iter();
                let over: Vec<_> = over.map(|(edge, part)| (Tag::towards(edge), part)).collect();
                if over.is_empty() { vec![(Tag::DIRECT, 1.0)] } else { over }
            }
            tags => {
                let mut draws = random::Node::Layers.stream(self.stage.seed(), u64::from(src));
                tags.list(u32::MAX, &mut draws).into_iter().map(|tag| (tag, 1.0)).collect()
            }
        };
        let paths = tags
            .into_iter()
            .map(|(tag, part)| (self.walk((src, dst), flow, tag, Choosing::Named), part))
            .collect();
        let paths = self.whole(dst, paths);
        // By which the last of its packets come.
        let slowest = paths.iter().max_by_key(|(path, _)| self.stage.path_along(path).propagation());
        let slowest = slowest.map(|(path, _)| path[1..path.len() - 1].into());
        Known { split: Split::over(&self.between(&paths)).map(Rc::new), slowest }
    }

    /// The minimal paths of a flow, and for what it has left when a link of these is full those over intermediate switches; of links that are not cut.
    fn minimal_first(&mut self, (src, dst): (HostId, HostId), flow: u32) -> Known {
        let routes = self.stage.routes(self.now);
        let [minimal, others] = routes.weighed(src, dst).unwrap_or_default();
        let mut begun = |ways: Vec<(Hop, f64)>| -> Vec<(Vec<ChannelId>, f64)> {
            let walk = |(hop, part)| (self.walk((src, dst), flow, Tag::DIRECT, Choosing::Begun(hop)), part);
            ways.into_iter().map(walk).collect()
        };
        let (mut minimal, others) = (begun(minimal), begun(others));
        if minimal.is_empty() {
            minimal.push((self.walk((src, dst), flow, Tag::DIRECT, Choosing::Named), 1.0));
        }
        let [minimal, others] = [minimal, others].map(|paths| self.whole(dst, paths));
        let slowest = minimal.first().or(others.first());
        let slowest = slowest.map(|(path, _)| path[1..path.len() - 1].into());
        let split = Split::among(&self.between(&minimal), &self.between(&others));
        Known { split: split.map(Rc::new), slowest }
    }

    /// Those of some paths, and their parts, that lead to a host and are not cut.
    fn whole(&self, dst: HostId, mut paths: Vec<(Vec<ChannelId>, f64)>) -> Vec<(Vec<ChannelId>, f64)> {
        let last = self.stage.network().ports(dst)[0] ^ 1;
        paths.retain(|(path, _)| {
            path.last() == Some(&last) && !path.iter().any(|&channel| self.dead[channel as usize])
        });
        paths
    }

    /// The resources of paths between the hosts' own.
    fn between(&self, paths: &[(Vec<ChannelId>, f64)]) -> Vec<(Vec<Resource>, f64)> {
        let between =
            |path: &[ChannelId]| path.iter().map(|&channel| self.resources[channel as usize]).collect();
        paths.iter().map(|(path, part)| (between(&path[1..path.len() - 1]), *part)).collect()
    }

    /// The channels of a flow's first packet, as far as there are routes.
    fn walk(
        &mut self,
        (src, dst): (HostId, HostId),
        flow: u32,
        tag: Tag,
        choosing: Choosing,
    ) -> Vec<ChannelId> {
        let (stage, seed) = (self.stage, self.stage.seed());
        let (network, routing, routes) = (stage.network(), stage.routing(), stage.routes(self.now));
        let options = &stage.transport().options;
        let (bytes, payload) =
            (narrow::<u32>(options.mtu.0 + options.header.0), narrow::<u32>(options.mtu.0));
        let mut header = Header { src, dst, flow, tag, bytes, payload, hops: 1, carries: Carries::Data };
        let mut path = vec![network.ports(src)[0]];
        let mut here = network.edge_switch(src);
        while here != dst {
            let minimal = routes.table().candidates(here, dst);
            if minimal.ports.is_empty() {
                break;
            }
            let (selector, draws) = self.switches.entry(here).or_insert_with(|| {
                let mut draws = random::Node::Router.stream(seed, u64::from(here));
                let selector =
                    SwitchPathSelector::new(routing, routing.stride(network, here), true, false, &mut draws);
                (selector, draws)
            });
            let mut view = IdleSwitch { network, here };
            let hop = if let (Choosing::Begun(hop), 1) = (choosing, header.hops) {
                hop
            } else if routes.is_minimal() {
                selector.port(|| header, minimal, view, || routes.tags(src, dst), draws)
            } else {
                let context =
                    PacketContext { forwarding: routes, place: routes.place(here), header: &header };
                match choosing {
                    Choosing::Decided => selector.onward(context, &mut view, draws),
                    Choosing::Named | Choosing::Begun(_) => selector.named(context),
                }
            };
            header.tag = hop.tag;
            header.hops += 1;
            path.push(network.ports(here)[usize::from(hop.port)]);
            here = network.neighbour(here, hop.port);
        }
        path
    }
}
