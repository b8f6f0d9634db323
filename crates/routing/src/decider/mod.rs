//! Who chooses a packet's path: one type for NICs, ingress switches and every switch.
//!
//! A [`Decider`] is a scheme at work at one place: its granularity with the present runs of the flows that pass there, and its selector
//! with what that remembers. Its steps are pure. It is told of packets, of feedback, of notifications that pass and of the ends of flows,
//! and it answers with a port, a tag, or what a sender should do.
//!
//! What a place does with a packet is settled when the decider is made (its [`Role`]): where a scheme leaves the choice to the header's
//! hash, nothing else is looked at.

mod tally;

use std::sync::Arc;

use netloom_topology::{HostId, NodeId, PortId};
use netloom_transport::{Cause, Feedback};
use netloom_units::Time;
use rand::Rng;

use crate::forwarding::{Forwarding, TagSpace};
use crate::granularity::conweave::{Between, Flush, Stamp, Verdict, WeaveCounts, Weaving};
use crate::granularity::passing::{Passed, Passing, Way};
use crate::granularity::{Flows, Limits, each};
use crate::hash::{HashFunction, hash_in_words, mix_seen, region};
use crate::header::{
    Advice, Arrival, Candidates, Carries, Decisions, FlowCounts, FlowKey, FlowRef, Header, Hop, Notice,
    Occupancy, Receipt, Signal, View,
};
use crate::passersby::{LastSeen, Passersby};
use crate::scheme::{Placement, Routing};
use crate::selector::conga::{Leaf, Marking, Report};
use crate::selector::congestion::Uncongested;
use crate::selector::random::below;
use crate::selector::{
    ActiveSelector, Choice, PathSet, PortContext, PortSelector, Query, SwitchContext, mod_k,
};
use crate::tag::Tag;
pub use tally::Decided;
use tally::Tally;

/// A scheme at work at one place.
#[derive(Clone, Debug)]
pub struct Decider {
    quick: Quick,
    /// What is done with data, with control packets and with congestion notifications.
    roles: [Role; 3],
    hash: HashFunction,
    salt: u32,
    /// Divisor of D-mod-k, S-mod-k and path labels at this switch.
    stride: u32,
    uncongested: Option<Uncongested>,
    /// The selector; a NIC chooses among tags, which need none.
    chooser: Option<Box<ActiveSelector>>,
    flows: Flows,
    /// The flowcuts that pass, at a switch that counts them.
    passing: Option<Box<Passing>>,
    /// Whether it counts them only where it is a flow's first switch.
    at_first: bool,
    /// It decides on ports for packets whose ways their first switches have decided on.
    decides_ports: bool,
    /// ConWeave's two ends, at a switch that weaves.
    weaving: Option<Box<Weaving>>,
    /// What it knows of other leaf switches, under CONGA.
    leaf: Option<Box<Leaf>>,
    /// A flow's sender takes another path when its window is cut or its timer expires.
    redraws_on_loss: bool,
    /// The granularity learns from feedback, and may stop flows because of it.
    heeds: bool,
    /// How many flowlets it has seen of which flow, at a switch that tells flowlets apart.
    flowlets: Option<Box<Passersby<Begun>>>,
    /// What it decided so far; where decisions are counted by flow, complete only after [`Self::tell_flows`].
    pub decisions: Decisions,
    /// The decisions by flow, at a switch that takes any. None at NICs, whose flows count their own.
    tally: Option<Box<Tally>>,
}

/// Flowlets of a flow that have begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    last: Time,
    flowlets: u32,
}

impl LastSeen for Begun {
    fn last(&self) -> Time {
        self.last
    }
}

/// Flows of which a switch always remembers how many flowlets have begun.
const FEW: usize = 1024;

/// How many times as long as a path is kept, as flows with one flowlet after the other are better counted on.
const PATIENCE: u64 = 4;

/// The two commonest kinds of switches, and all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quick {
    /// The hash says the port of every packet.
    Hash,
    /// Data take random ports, and [`HashFunction::Mix`] says that of every other packet.
    Spray,
    /// Look at the packet's role.
    No,
}

/// What a decider can say of packets' ways before they come, as it depends on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foresight {
    /// Ports are hashed: it is the same in whatever order one asks.
    Hashed,
    /// Ports are drawn for data, in the order in which they come; the hash says those of all others.
    Drawn,
    /// Nothing.
    None,
}

/// What a place does with a kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The header's hash says the port.
    Hash,
    /// A digit of the packet's path label does.
    Label,
    /// The selector does, and always the same for a flow.
    Static,
    /// A random port, which counts as no decision.
    Scatter,
    /// A random port per packet, under [`HashFunction::Mix`]; under others it is one of `Packet`.
    Spray,
    /// The selector says a port per packet.
    Packet,
    /// The selector says a port, or a tag, per run of a flow's packets.
    Run,
    /// As `Packet` at a packet's first switch, as `Hash` later.
    PacketAtFirst,
    /// As `Run` at a packet's first switch, as `Hash` later.
    RunAtFirst,
}

impl Decider {
    /// The decider of a NIC without any flow; none if the scheme leaves NICs alone.
    pub fn of_nic(scheme: &Routing) -> Option<Self> {
        if scheme.placement != Placement::Nic {
            return None;
        }
        let flows = scheme.granularity.at_host();
        let redraws_on_loss = scheme.redraws_on_loss();
        let heeds = each!(&flows, table => table.listens(), false);
        Some(Decider { flows, redraws_on_loss, heeds, ..Decider::bare(scheme, 0, 1) })
    }

    /// The decider of a switch without any flow. `stride` is the topology's up-stride at the switch's level; the salt of its hash is drawn
    /// from `random`. `has_hosts`: it can be a packet's first switch. `is_lossy`: packets can be lost.
    pub fn of_switch(
        scheme: &Routing,
        stride: u32,
        has_hosts: bool,
        is_lossy: bool,
        random: &mut impl Rng,
    ) -> Self {
        let (salt, stride) = (if scheme.salt { random.next_u32() } else { 0 }, stride.max(1));
        let (per_packet, random_port) = (scheme.granularity.is_per_packet(), scheme.selector.is_uniform());
        let at_first = scheme.placement == Placement::Ingress;
        let decides_control = scheme.granularity.facts().decides_control;
        let data = match scheme.placement {
            _ if scheme.labels_at_nic() || scheme.labels_at_first() => Role::Label,
            Placement::Nic => Role::Hash,
            _ if scheme.selector.facts().choice == Choice::Hash => Role::Hash,
            _ if at_first && !has_hosts => Role::Hash,
            Placement::Ingress if per_packet => Role::PacketAtFirst,
            Placement::Ingress => Role::RunAtFirst,
            Placement::Switch if scheme.selector.is_static() => Role::Static,
            // With one hash, so that the packets need not be asked which it is.
            Placement::Switch
                if per_packet && random_port && scheme.hash == HashFunction::Mix && !decides_control =>
            {
                Role::Spray
            }
            Placement::Switch if per_packet => Role::Packet,
            Placement::Switch => Role::Run,
        };
        let control = if data == Role::Static || decides_control { data } else { Role::Hash };
        // Switch AR's notifications tell the switches on all ways about the congestion.
        let notification = if scheme.selector.uncongested().is_some() { Role::Scatter } else { control };
        let limits = limits(scheme);
        let counted = scheme.counted_flowcuts().filter(|_| has_hosts || !at_first);
        let passing = counted.map(|flowcut| Box::new(Passing::new(flowcut, limits, is_lossy)));
        let leaf = scheme.conga().map(|conga| Box::new(Leaf::new(conga)));
        let has_runs =
            matches!(data, Role::Run | Role::RunAtFirst) || scheme.keeps_last_path() && !per_packet;
        let remembers = has_runs && passing.is_none();
        let flows = if remembers { scheme.granularity.at_switch(limits) } else { Flows::None };
        let flowlets = scheme
            .granularity
            .memory()
            .filter(|_| remembers)
            .map(|memory| Box::new(Passersby::new(FEW, Time(memory.0.saturating_mul(PATIENCE)))));
        let roles = [data, control, notification];
        let quick = match roles {
            [Role::Hash, Role::Hash, Role::Hash] => Quick::Hash,
            [Role::Spray, Role::Hash, Role::Hash] => Quick::Spray,
            _ => Quick::No,
        };
        let chooser = Some(Box::new(scheme.selector.at(SwitchContext { stride })));
        let weaving = scheme.conweave().map(|config| Box::new(Weaving::new(config, limits)));
        Decider {
            quick,
            roles,
            flows,
            passing,
            at_first,
            decides_ports: scheme.placement == Placement::Switch && scheme.selector.facts().detours(),
            weaving,
            leaf,
            chooser,
            flowlets,
            ..Decider::bare(scheme, salt, stride)
        }
    }

    /// The ports of this switch are other ones now: what was learnt of them is no more, nor are the runs that kept to them.
    pub fn forget(&mut self, scheme: &Routing) {
        if let Some(chooser) = &mut self.chooser {
            **chooser = scheme.selector.at(SwitchContext { stride: self.stride });
        }
        if !matches!(self.flows, Flows::None) {
            self.flows = scheme.granularity.at_switch(limits(scheme));
        }
        if let Some(passing) = &mut self.passing {
            passing.forget();
        }
        if let (Some(leaf), Some(conga)) = (&mut self.leaf, scheme.conga()) {
            **leaf = Leaf::new(conga);
        }
    }

    /// One that leaves everything to the hash.
    fn bare(scheme: &Routing, salt: u32, stride: u32) -> Self {
        Decider {
            quick: Quick::Hash,
            roles: [Role::Hash; 3],
            hash: scheme.hash,
            salt,
            stride,
            uncongested: scheme.selector.uncongested(),
            chooser: None,
            flows: Flows::None,
            passing: None,
            at_first: false,
            decides_ports: false,
            weaving: None,
            leaf: None,
            redraws_on_loss: false,
            heeds: false,
            flowlets: None,
            decisions: Decisions::default(),
            tally: None,
        }
    }

    /// At a switch: has its decisions counted by flow. Where it takes none that costs nothing. To be called before any packet comes.
    pub fn count_flows(&mut self, told: impl FnOnce() -> Arc<dyn Decided>) {
        let is_fixed = |role: Role| matches!(role, Role::Hash | Role::Label | Role::Static);
        let decides = !is_fixed(self.roles[Carries::Data as usize])
            || self.passing.is_some()
            || self.leaf.is_some()
            || self.weaving.is_some();
        self.tally = decides.then(|| Box::new(Tally::new(told())));
    }

    /// Tells of the decisions on all flows that have not been told of, and adds all to [`Self::decisions`].
    pub fn tell_flows(&mut self) {
        if let Some(tally) = self.tally.take() {
            self.decisions.add(tally.tell_all());
        }
    }

    /// A decision on a packet of a flow.
    #[inline(always)]
    fn count(&mut self, flow: FlowKey, deviates: bool) {
        // The golden ratio's bits; the best ones of a product are the first.
        self.count_hashed(flow, flow.name().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32, deviates);
    }

    /// The same where the flow's hash is known.
    #[inline(always)]
    fn count_hashed(&mut self, flow: FlowKey, hash: u64, deviates: bool) {
        match &mut self.tally {
            Some(tally) => tally.count(flow, hash, deviates),
            None => self.decisions.count(deviates),
        }
    }

    // At a switch.

    /// What can be said of packets' ways before they come, if all are minimal.
    #[inline(always)]
    pub fn foresight(&self) -> Foresight {
        match self.quick {
            Quick::Hash => Foresight::Hashed,
            Quick::Spray => Foresight::Drawn,
            Quick::No => Foresight::None,
        }
    }

    /// The port of a data packet among several, where ports are [drawn](Foresight::Drawn). What [a hash sees](Header::seen_by_hash) of it says only whether it is another one
    /// than its.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "of either word, the lower half: Header::seen_by_hash"
    )]
    pub fn draw(&mut self, seen: [u64; 2], ports: &[PortId], random: &mut impl Rng) -> PortId {
        debug_assert_eq!(self.quick, Quick::Spray);
        let hash = mix_seen(seen, self.salt);
        let home = region(hash, ports.len());
        let place = below(ports.len(), random);
        let key = FlowKey { src: seen[0] as u32, flow: seen[1] as u32 };
        self.count_hashed(key, u64::from(hash), place != home);
        ports[place]
    }

    // The header is asked for only where more of it is wanted than the hash takes, and the view goes by value: then they are put together only there.
    /// The way of a packet, of which `header` tells, among the ports that it may take at a switch. `tags` are those from which an ingress switch draws a new one for
    /// the switches behind it.
    #[inline(always)]
    pub fn port<'t>(
        &mut self,
        header: impl Fn() -> Header,
        candidates: Candidates<'_>,
        now: Time,
        view: impl View,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) -> Hop {
        if let [only] = *candidates.ports {
            return Hop { port: only, tag: header().tag };
        }
        if self.quick == Quick::No {
            let Candidates { ports, set } = candidates;
            return self.port_of_role(header(), (ports, set), now, view, tags, random);
        }
        let (header, ports) = (header(), candidates.ports);
        let port = match self.quick {
            Quick::Spray if header.carries == Carries::Data => {
                self.draw(header.seen_by_hash(), ports, random)
            }
            _ => ports[self.hashed(&header, ports.len())],
        };
        Hop { port, tag: header.tag }
    }

    // The candidates' parts go by value, so that they are put together only here.
    #[inline(never)]
    fn port_of_role<'t>(
        &mut self,
        header: Header,
        (ports, set): (&[PortId], u32),
        now: Time,
        mut view: impl View,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) -> Hop {
        let (candidates, role) = (Candidates { ports, set }, self.roles[header.carries as usize]);
        let place = match role {
            Role::Label => mod_k::place(header.tag.bits(), self.stride, ports.len()),
            Role::Static => self.ask(&header, candidates, now, &mut view, random).0,
            Role::Scatter => below(ports.len(), random),
            Role::Packet if header.carries == Carries::Data => {
                self.decide(&header, candidates, now, &mut view, random)
            }
            Role::Packet => self.ask(&header, candidates, now, &mut view, random).0,
            Role::PacketAtFirst if header.is_first() => {
                let port = ports[self.decide(&header, candidates, now, &mut view, random)];
                return Hop { port, tag: tags().another(header.tag, random) };
            }
            Role::Run | Role::RunAtFirst if role == Role::Run || header.is_first() => {
                let flow = FlowRef::passing(header.key());
                let payload = header.payload;
                if let Some(hop) = each!(&mut self.flows, table => table.kept(flow, now, payload), None) {
                    return hop;
                }
                if !each!(&mut self.flows, table => table.has_room(flow, now), true) {
                    return Hop { port: ports[self.hashed(&header, ports.len())], tag: header.tag };
                }
                let port = ports[self.decide(&header, candidates, now, &mut view, random)];
                let tag = if role == Role::Run { header.tag } else { tags().another(header.tag, random) };
                let hop = Hop { port, tag };
                self.keep(flow, hop, now, payload, &mut view);
                return hop;
            }
            Role::Hash | Role::Spray | Role::Run | Role::PacketAtFirst | Role::RunAtFirst => {
                self.hashed(&header, ports.len())
            }
        };
        Hop { port: ports[place], tag: header.tag }
    }

    /// The way of a packet beyond minimal routing. Where the first switch chooses among intermediate switches, it does so here, and where
    /// later ones choose among ports, they do.
    pub fn onward(
        &mut self,
        forwarding: &Forwarding,
        here: NodeId,
        header: &Header,
        now: Time,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Hop {
        let is_data = header.carries == Carries::Data;
        let is_decided = forwarding.is_decided(here, header);
        if is_decided || self.decides_ports && is_data {
            return self.decide_way(forwarding, here, header, is_decided, now, view, random);
        }
        forwarding.onward(here, header, |ports| self.hashed(header, ports))
    }

    /// The way of a packet at a switch that decides whether it goes over an intermediate one, or on the port by which it goes on, and keeps
    /// that for the run. Packets of a flow may come by with several tags; what is kept for one would lead others in a circle.
    #[expect(clippy::too_many_arguments, reason = "a packet, its place and what is known there")]
    #[inline(never)]
    fn decide_way(
        &mut self,
        forwarding: &Forwarding,
        here: NodeId,
        header: &Header,
        is_decided: bool,
        now: Time,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Hop {
        if !is_decided && let Some((&[port], tag)) = forwarding.part(here, header) {
            return Hop { port, tag };
        }
        let arrives = if header.is_first() { Tag::DIRECT } else { header.tag };
        let (flow, payload) = (FlowRef { key: header.key(), slot: arrives.bits() }, header.payload);
        if let Some(hop) = each!(&mut self.flows, table => table.kept(flow, now, payload), None) {
            return hop;
        }
        if !each!(&mut self.flows, table => table.has_room(flow, now), true) {
            return self.direct(forwarding, here, header);
        }
        let hop = self.way(forwarding, here, header, is_decided, view, random);
        self.keep(flow, hop, now, payload, view);
        hop
    }

    /// The way that is decided on now, or only the port.
    fn way(
        &mut self,
        forwarding: &Forwarding,
        here: NodeId,
        header: &Header,
        is_decided: bool,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Hop {
        let minimal = self.direct(forwarding, here, header);
        if !is_decided {
            return self.port_on_way(forwarding, here, header, minimal, view, random);
        }
        if let Some(alternatives) = forwarding.alternatives() {
            let choice = alternatives.choose(forwarding.table(), here, header, minimal, view, random);
            return choice.map_or(minimal, |(hop, is_minimal)| {
                self.count(header.key(), !is_minimal);
                hop
            });
        }
        let tag = forwarding.tags(header.src, header.dst).another(header.tag, random);
        if tag == Tag::DIRECT {
            return minimal;
        }
        let header = Header { tag, ..*header };
        let hop = forwarding.onward(here, &header, |ports| self.hashed(&header, ports));
        self.count(header.key(), hop.port != minimal.port);
        hop
    }

    /// Another port, perhaps, for a packet whose way is decided on, than that of its header's hash.
    fn port_on_way(
        &mut self,
        forwarding: &Forwarding,
        here: NodeId,
        header: &Header,
        hashed: Hop,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Hop {
        let (ports, tag) = match forwarding.part(here, header) {
            Some((ports, tag)) if ports.len() > 1 => (ports, tag),
            _ => return hashed,
        };
        let place = match forwarding.alternatives() {
            Some(alternatives) => alternatives.lightest(ports, view, random),
            None => below(ports.len(), random),
        };
        self.count(header.key(), ports[place] != hashed.port);
        Hop { port: ports[place], tag }
    }

    /// The way of a packet by its header's hash: on a minimal path if it sets out here, otherwise as it has begun.
    fn direct(&self, forwarding: &Forwarding, here: NodeId, header: &Header) -> Hop {
        let tag = if header.is_first() { Tag::DIRECT } else { header.tag };
        let header = Header { tag, ..*header };
        forwarding.onward(here, &header, |ports| self.hashed(&header, ports))
    }

    /// A run of the flow's packets begins on a way that has been decided on.
    fn keep(&mut self, flow: FlowRef, hop: Hop, now: Time, payload: u32, view: &mut impl View) {
        each!(&mut self.flows, table => table.keep(flow, hop, now, payload), ());
        if let Some(flowlets) = &mut self.flowlets {
            let silent = flowlets.make_room(flow.key, now);
            if !silent.is_empty() {
                view.flowlets(silent.into_iter().map(|(flow, begun)| (flow, begun.flowlets)).collect());
            }
            let begun = flowlets.get_or_insert_with(flow.key, || Begun { last: now, flowlets: 0 });
            *begun = Begun { last: now, flowlets: begun.flowlets + 1 };
        }
    }

    /// How many flowlets of which flow have begun here of which the [view](View::flowlets) has not been told, in no order; none if the scheme
    /// tells no flowlets apart here.
    pub fn take_flowlets(&mut self) -> Option<Vec<(FlowKey, u32)>> {
        let flowlets = self.flowlets.as_mut()?;
        Some(flowlets.take_all().map(|(flow, begun)| (flow, begun.flowlets)).collect())
    }

    /// Whether it counts what is in flight of the flows that pass, so that [`Self::counted`] says the way of their data.
    pub fn counts_flight(&self) -> bool {
        self.passing.is_some()
    }

    /// The way of a data packet that is counted here if its flow is.
    #[expect(clippy::too_many_arguments, reason = "a packet, its place and what is known there")]
    pub fn counted(
        &mut self,
        forwarding: &Forwarding,
        candidates: Candidates<'_>,
        here: NodeId,
        header: &Header,
        arrival: Arrival,
        now: Time,
        mut view: impl View,
        random: &mut impl Rng,
    ) -> Hop {
        let arrives = if header.is_first() { Tag::DIRECT } else { header.tag };
        let passed = Passed {
            flow: header.key(),
            pass: u32::from(header.hops),
            arrives,
            arrival,
            bytes: header.bytes,
        };
        let is_counted = !self.at_first || header.is_first();
        let Some(passing) = self.passing.as_mut().filter(|_| is_counted) else {
            return self.uncounted(forwarding, candidates, here, header);
        };
        let hop = match passing.pass(&passed, now) {
            Way::Kept(hop) => return hop,
            Way::Uncounted => return self.uncounted(forwarding, candidates, here, header),
            Way::Home => self.uncounted(forwarding, candidates, here, header),
            Way::Any if forwarding.is_minimal() => {
                let tags = forwarding.tags(header.src, header.dst);
                let tag = if self.at_first { tags.another(header.tag, random) } else { header.tag };
                match candidates.ports {
                    [only] => Hop { port: *only, tag },
                    ports => {
                        Hop { port: ports[self.decide(header, candidates, now, &mut view, random)], tag }
                    }
                }
            }
            Way::Any => {
                let is_decided = forwarding.is_decided(here, header);
                self.way(forwarding, here, header, is_decided, &mut view, random)
            }
        };
        if let Some(passing) = &mut self.passing {
            passing.open(&passed, hop, now);
        }
        hop
    }

    /// By the header's hash, on a minimal path unless the packet's first switch has said otherwise.
    fn uncounted(
        &self,
        forwarding: &Forwarding,
        candidates: Candidates<'_>,
        here: NodeId,
        header: &Header,
    ) -> Hop {
        if !forwarding.is_minimal() {
            return self.direct(forwarding, here, header);
        }
        let ports = candidates.ports;
        Hop { port: ports[self.hashed(header, ports.len())], tag: header.tag }
    }

    /// The last switch of a data packet says that it has come so far. Returns the port by which the packet had come here and, at its
    /// flow's first switch, what the source is to be told; none if it was not counted here.
    pub fn on_receipt(&mut self, receipt: &Receipt, now: Time) -> Option<(PortId, Option<Signal>)> {
        self.passing.as_mut()?.on_receipt(receipt, now)
    }

    /// How many flows it counted at a time; none if it counts none.
    pub fn occupancy(&self) -> Option<Occupancy> {
        self.passing.as_ref().map(|passing| passing.occupancy())
    }

    /// What a flow's first switch writes on a data packet under CONGA. `last`: index of the packet's last switch, to which `paths` lead.
    #[expect(clippy::too_many_arguments, reason = "a packet, its place and what is known there")]
    #[expect(clippy::cast_possible_truncation, reason = "labels are below Layout::none, 16 bits")]
    pub fn mark(
        &mut self,
        header: &Header,
        last: u32,
        paths: impl FnOnce() -> u32,
        candidates: Candidates<'_>,
        now: Time,
        mut view: impl View,
        random: &mut impl Rng,
    ) -> Marking {
        let Some(leaf) = &mut self.leaf else { return Marking::default() };
        let (flow, payload) = (FlowRef::passing(header.key()), header.payload);
        let report = leaf.report(last, now, random);
        let (stride, ports) = (self.stride, candidates.ports);
        let marking = |label: u16| Marking { label, congestion: 0, report };
        if let Some(hop) = each!(&mut self.flows, table => table.kept(flow, now, payload), None) {
            return marking(hop.tag.bits() as u16);
        }
        let paths = leaf.labels(paths());
        let home = region(self.hash.apply(header, self.salt), paths as usize) as u16;
        if !each!(&mut self.flows, table => table.has_room(flow, now), true) {
            return marking(home);
        }
        let before = each!(&mut self.flows, table => table.before(flow, now), None);
        let before = before.map(|hop| hop.tag.bits() as u16);
        let rounded = |parts| leaf.rounded(parts);
        let port = |label: u16| ports[mod_k::place(u32::from(label), stride, ports.len())];
        let local = |label| rounded(view.utilisation(port(label)));
        let label = leaf.choose(last, paths, before, local, now, random);
        self.count(header.key(), label != home);
        let hop = Hop { port: port(label), tag: Tag::label(u32::from(label)) };
        self.keep(flow, hop, now, payload, &mut view);
        marking(label)
    }

    /// What a marking becomes on a link, given its utilisation, under CONGA.
    pub fn raise(&self, marking: Marking, utilisation: u64) -> Marking {
        let here = self.leaf.as_ref().map_or(0, |leaf| leaf.rounded(utilisation));
        Marking { congestion: marking.congestion.max(here), ..marking }
    }

    /// What a leaf switch tells another one, of that index, under CONGA.
    pub fn report_to(&mut self, leaf: u32, now: Time, random: &mut impl Rng) -> Option<Report> {
        self.leaf.as_mut()?.report(leaf, now, random)
    }

    /// A packet from a leaf switch of that index tells this one, its last, something under CONGA.
    pub fn hear_report(&mut self, from: u32, report: Report, now: Time) {
        if let Some(leaf) = &mut self.leaf {
            leaf.hear(from, report, now);
        }
    }

    /// A data packet has come from a leaf switch of that index under CONGA.
    pub fn see_marking(&mut self, from: u32, marking: Marking, now: Time) {
        if let Some(leaf) = &mut self.leaf {
            leaf.see(from, marking, now);
        }
    }

    /// What a flow's first switch writes on a data packet under ConWeave. `between` tells of the paths to the packet's last switch.
    pub fn stamp(
        &mut self,
        flow: FlowKey,
        now: Time,
        between: impl FnOnce() -> Between,
        random: &mut impl Rng,
    ) -> Option<Stamp> {
        let weaving = self.weaving.as_mut()?;
        let before = weaving.counts;
        let stamp = weaving.stamp(flow, now, between, random);
        if weaving.counts.late > before.late {
            let has_moved = weaving.counts.reroutes > before.reroutes;
            self.count(flow, has_moved);
        }
        Some(stamp)
    }

    /// A flow's last switch, of that index, says something to this one, its first, under ConWeave.
    pub fn hear(&mut self, flow: FlowKey, last: u32, word: u32, now: Time) {
        if let Some(weaving) = &mut self.weaving {
            weaving.hear(flow, last, word, now);
        }
    }

    /// What the last switch does with a data packet that left its host at `sent`, under ConWeave.
    pub fn receive(&mut self, flow: FlowKey, stamp: Stamp, sent: Time, now: Time) -> Verdict {
        self.weaving.as_mut().map_or(Verdict::Pass, |weaving| weaving.receive(flow, stamp, sent, now))
    }

    /// Whether a path from a host's switch, on which a packet was marked, is to be called busy now.
    pub fn complains(&mut self, src: HostId, label: u16, now: Time) -> bool {
        self.weaving.as_mut().is_some_and(|weaving| weaving.complains(src, label, now))
    }

    /// The timer of a flow's held packets fires.
    pub fn flush(&mut self, flow: FlowKey, now: Time) -> Flush {
        self.weaving.as_mut().map_or(Flush::Over, |weaving| weaving.flush(flow, now))
    }

    /// How its weaving went.
    pub fn weave_counts(&self) -> Option<WeaveCounts> {
        self.weaving.as_ref().map(|weaving| weaving.counts)
    }

    /// A congestion notification was made here or passes by. `ports` lead to its [`Notice::destination`]. Only the selectors of Switch AR
    /// listen.
    pub fn on_notice(&mut self, notice: &Notice, ports: &[PortId], now: Time) {
        // One way only: nothing to choose, so nothing to learn.
        if ports.len() >= 2 {
            // One about a port that traffic to the destination cannot take teaches nothing either.
            let usable = ports.iter().position(|&port| port == notice.port);
            if let Some(place) = usable.filter(|_| notice.feedback > 0) {
                let home = self.home(notice.destination, ports.len());
                self.chooser().notice(notice, PortContext { place, ports: ports.len(), home, now });
            }
        }
    }

    /// The position of the port that the header's hash names.
    #[inline(always)]
    pub fn hashed(&self, header: &Header, ports: usize) -> usize {
        region(self.hash.apply(header, self.salt), ports)
    }

    /// The position of the port that the selector names for a decision, which counts.
    #[inline]
    fn decide(
        &mut self,
        header: &Header,
        candidates: Candidates<'_>,
        now: Time,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> usize {
        let (place, home) = self.ask(header, candidates, now, view, random);
        self.count(header.key(), place != home);
        place
    }

    /// The position of the port that the selector names, and that of the port without adaptation.
    #[inline]
    fn ask(
        &mut self,
        header: &Header,
        candidates: Candidates<'_>,
        now: Time,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> (usize, usize) {
        let (hash, ports) = (self.hash.apply(header, self.salt), candidates.ports.len());
        let home = self.home(header.dst, ports).unwrap_or_else(|| region(hash, ports));
        let query = Query { header, candidates, hash, home, now };
        (self.chooser().pick(query, view, random), home)
    }

    #[inline]
    fn chooser(&mut self) -> &mut ActiveSelector {
        self.chooser.as_mut().expect("only switches choose among ports")
    }

    /// The position among `ports` candidates that Switch AR takes to a destination without congestion; none if the header's hash says it.
    #[inline]
    fn home(&self, destination: u32, ports: usize) -> Option<usize> {
        match self.uncongested? {
            Uncongested::DModK => Some(mod_k::place(destination, self.stride, ports)),
            Uncongested::Lowest => Some(0),
            Uncongested::Hash => None,
        }
    }

    // At a NIC.

    /// A flow begins: chooses its first path. A subflow takes the next one after that of the subflow before it.
    pub fn begin(
        &mut self,
        flow: FlowRef,
        before: Option<Tag>,
        tags: TagSpace<'_>,
        random: &mut impl Rng,
    ) -> Tag {
        let tag = match before {
            None => tags.first(random),
            Some(before) => tags.next(before, random),
        };
        let (hop, home) = (Hop { port: 0, tag }, tags.home());
        each!(&mut self.flows, table => table.begin(flow, hop, home), ());
        tag
    }

    /// Whether it wants to know how long an idle path takes.
    pub fn expects(&self) -> bool {
        each!(&self.flows, table => table.expects(), false)
    }

    /// A packet of a flow and its ACK would take so long on an idle minimal path of so many hops, without what serialisation adds to the
    /// packet's way.
    pub fn expect(&mut self, flow: FlowRef, hops: u32, rtt: Time) {
        each!(&mut self.flows, table => table.expect(flow, hops, rtt), ());
    }

    /// How many paths at most it wants to know of a flow that begins; none if it does not go by a list of paths.
    pub fn lists(&self) -> Option<u32> {
        each!(&self.flows, table => table.lists(), None)
    }

    /// A flow that begins has these paths, each once.
    pub fn list(&mut self, flow: FlowRef, paths: &[Tag]) {
        each!(&mut self.flows, table => table.list(flow, paths), ());
    }

    /// The tag of a packet of a flow that leaves now. Retransmissions count like any packet.
    #[inline]
    pub fn tag<'t>(
        &mut self,
        flow: FlowRef,
        payload: u32,
        now: Time,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) -> Tag {
        each!(
            &mut self.flows,
            table => table.tag(flow, payload, now, |current, random| tags().another(current, random), random),
            Tag::default()
        )
    }

    /// Whether a flow may send new packet `next` while `oldest` is the oldest one not acknowledged.
    #[inline]
    pub fn may_send(&self, flow: FlowRef, next: u32, oldest: u32) -> bool {
        !self.heeds || self.may_send_by_granularity(flow, next, oldest)
    }

    #[inline(never)]
    fn may_send_by_granularity(&self, flow: FlowRef, next: u32, oldest: u32) -> bool {
        each!(&self.flows, table => table.may_send(flow, next, oldest), true)
    }

    /// Whether feedback can matter to it.
    #[inline]
    pub fn listens(&self) -> bool {
        self.redraws_on_loss || self.heeds
    }

    /// The tag of all packets of a flow that leave before its sender learns something more: until then neither [`Self::tag`] nor [`Self::may_send`] need be asked. None: they must
    /// be. `oldest` is the oldest packet not acknowledged.
    pub fn settled(&self, flow: FlowRef, oldest: u32) -> Option<Tag> {
        each!(&self.flows, table => table.settled(flow, oldest), None)
    }

    /// The sender of a flow learnt something: what it should do, and what is [settled](Self::settled) then.
    pub fn on_feedback<'t>(
        &mut self,
        flow: FlowRef,
        feedback: &Feedback,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) -> (Advice, Option<Tag>) {
        if self.redraws_on_loss
            && (feedback.window_cut || feedback.reroute || feedback.cause == Cause::Timeout)
        {
            let another = |current| tags().another(current, random);
            each!(&mut self.flows, table => table.redraw(flow, another), ());
        }
        each!(&mut self.flows, table => table.on_feedback(flow, feedback, random), (Advice::Continue, None))
    }

    /// A packet of a flow met a cut link, its sender learnt: the flow leaves the packet's path, unless it has left it before.
    pub fn on_unreachable<'t>(
        &mut self,
        flow: FlowRef,
        feedback: &Feedback,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) {
        let dead = Tag::from_bits(feedback.tag);
        each!(&mut self.flows, table => table.leave(flow, dead, |dead| tags().another(dead, random)), ());
        each!(&mut self.flows, table => { table.on_feedback(flow, feedback, random); }, ());
    }

    /// A pause may have lasted long enough; one that began later goes on.
    pub fn on_deadline(&mut self, flow: FlowRef, now: Time) {
        each!(&mut self.flows, table => table.on_deadline(flow, now), ());
    }

    /// What was done with a flow so far.
    pub fn counts(&self, flow: FlowRef) -> FlowCounts {
        each!(&self.flows, table => table.counts(flow), FlowCounts::default())
    }

    /// A flow has ended: what was done with it.
    pub fn on_end(&mut self, flow: FlowRef) -> FlowCounts {
        let counts = self.counts(flow);
        each!(&mut self.flows, table => table.end(flow), ());
        counts
    }

    // In words.

    /// Why a data packet takes the port that it takes among several minimal ones, if nothing has been learnt yet.
    pub fn explain(&self, scheme: &Routing, header: &Header, ports: usize) -> String {
        match self.roles[Carries::Data as usize] {
            Role::Hash => hash_in_words(header),
            Role::Label => format!("digit of path label {}", header.tag.bits()),
            Role::PacketAtFirst | Role::RunAtFirst if !header.is_first() => hash_in_words(header),
            Role::Static
            | Role::Scatter
            | Role::Spray
            | Role::Packet
            | Role::Run
            | Role::PacketAtFirst
            | Role::RunAtFirst => {
                self.chooser.as_ref().and_then(|chooser| chooser.words(header, ports)).unwrap_or_else(|| {
                    let (selector, run) = (scheme.selector_name(), scheme.granularity_name());
                    match self.uncongested {
                        None => format!("{selector}, decided anew per {run}"),
                        Some(uncongested) => {
                            format!(
                                "{selector}, no congestion known: {}",
                                self.home_in_words(uncongested, header, ports)
                            )
                        }
                    }
                })
            }
        }
    }

    /// By what a data packet takes one of several ports on a way that has been decided on, if nothing has been learnt yet.
    pub fn explain_port(&self, scheme: &Routing, header: &Header) -> String {
        match scheme.selector.facts().paths {
            PathSet::Weighed(_) if self.decides_ports && !header.is_first() => "least load".into(),
            _ if self.decides_ports && !header.is_first() => "switch's draw".into(),
            _ => hash_in_words(header),
        }
    }

    fn home_in_words(&self, uncongested: Uncongested, header: &Header, ports: usize) -> String {
        match uncongested {
            Uncongested::DModK => {
                format!("d-mod-k: destination {} / {} mod {ports}", header.dst, self.stride)
            }
            Uncongested::Lowest => "the first port".into(),
            Uncongested::Hash => hash_in_words(header),
        }
    }
}

/// What the flow table of a switch may hold.
fn limits(scheme: &Routing) -> Limits {
    let entries = scheme.entries.map_or(usize::MAX, |entries| entries as usize);
    Limits { ageing: scheme.ageing, entries, keeps_path: scheme.keeps_last_path() }
}

#[cfg(test)]
mod tests;
