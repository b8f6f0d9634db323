//! The ports of packets at a switch, among minimal ones.

use std::sync::Arc;

use netloom_topology::PortId;
use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};
use rand::Rng;

use super::counts::{Decided, DecisionCounter};
use super::machines::{Machines, SwitchPlace};
use super::roles::{FastPath, Role, Roles};
use super::runs::FlowRuns;
use crate::forwarding::TagSpace;
use crate::granularity::{Ends, Limits};
use crate::hash::{SwitchHash, region};
use crate::header::{Candidates, Carries, Decisions, FlowKey, FlowRef, Header, Hop, Notice, View};
use crate::scheme::{Placement, Routing};
use crate::selector::congestion::Uncongested;
use crate::selector::random::below;
use crate::selector::{ActiveSelector, PathSet, PortContext, PortSelector, Query, SwitchContext, mod_k};

/// A scheme at work at a switch.
#[derive(Clone, Debug)]
pub struct SwitchPathSelector {
    fast_path: FastPath,
    pub(super) roles: Roles,
    pub(crate) hash: SwitchHash,
    /// Divisor of D-mod-k, S-mod-k and path labels at this switch.
    pub(crate) stride: u32,
    pub(super) uncongested: Option<Uncongested>,
    pub(super) selector: Box<ActiveSelector>,
    pub(crate) runs: FlowRuns,
    /// It decides only where it is a packet's first switch.
    pub(crate) at_first: bool,
    /// It decides on ports for packets on whose detours their first switches have decided.
    pub(super) decides_ports: bool,
    pub(crate) machines: Machines,
    /// Whose data is [left out](Routing::uses_ecmp).
    ecmp_every: Option<u32>,
    counter: DecisionCounter,
}

impl SwitchPathSelector {
    /// That of a switch without any flow. `stride` is the topology's up-stride at the switch's level; the salt of its hash is drawn
    /// from `random`. `has_hosts`: it can be a packet's first switch. `is_lossy`: packets can be lost.
    pub fn new(
        scheme: &Routing,
        stride: u32,
        has_hosts: bool,
        is_lossy: bool,
        random: &mut impl Rng,
    ) -> Self {
        let (salt, stride) = (if scheme.salt { random.next_u32() } else { 0 }, stride.max(1));
        let (roles, limits) = (Roles::new(scheme, has_hosts), limits(scheme));
        let ecmp_every = scheme.ecmp_every.filter(|_| scheme.placement == Placement::Switch);
        // Labels are kept for runs of packets, too.
        let keeps_labels = scheme.keeps_last_path() && !scheme.granularity.is_per_packet();
        let has_runs = roles.of(Carries::Data).keeps_runs() || keeps_labels;
        // Flowcuts are not remembered: their packets in flight are counted.
        let remembers = has_runs && scheme.granularity.facts().ends != Ends::WhenEmpty;
        SwitchPathSelector {
            fast_path: match scheme.selector.facts().paths {
                PathSet::Minimal | PathSet::InOrder | PathSet::Labels => {
                    roles.fast_path(ecmp_every.is_some())
                }
                PathSet::Layers(_) | PathSet::KShortest(_) => FastPath::Named,
                PathSet::Detours(_) | PathSet::Weighed(_) => FastPath::Detour,
            },
            roles,
            hash: SwitchHash { function: scheme.hash, salt },
            stride,
            uncongested: scheme.selector.uncongested(),
            selector: Box::new(scheme.selector.at(SwitchContext { stride })),
            runs: if remembers { FlowRuns::new(scheme, limits) } else { FlowRuns::none() },
            at_first: scheme.placement == Placement::Ingress,
            decides_ports: scheme.placement == Placement::Switch && scheme.selector.facts().detours(),
            machines: Machines::new(scheme, SwitchPlace { has_hosts, is_lossy, limits }),
            ecmp_every,
            counter: DecisionCounter::default(),
        }
    }

    /// The ports of this switch are other ones now: what was learnt of them is no more, nor are the runs that kept to them.
    pub fn forget(&mut self, scheme: &Routing) {
        *self.selector = scheme.selector.at(SwitchContext { stride: self.stride });
        self.runs.forget(scheme, limits(scheme));
        self.machines.on_new_routes(scheme);
    }

    /// Has its decisions counted by flow. Where it takes none that costs nothing. To be called before any packet comes.
    pub fn count_flows(&mut self, receiver: impl FnOnce() -> Arc<dyn Decided>) {
        if self.roles.of(Carries::Data).decides() || self.machines.any() {
            self.counter.count_by_flow(receiver());
        }
    }

    /// Hands in the decisions on all flows that have not been handed in, and adds all to [`Self::decisions`].
    pub fn flush_counts(&mut self) {
        self.counter.hand_in();
    }

    /// What it decided so far; where decisions are counted by flow, complete only after [`Self::flush_counts`].
    pub fn decisions(&self) -> Decisions {
        self.counter.total()
    }

    /// A decision on a packet of a flow.
    #[inline(always)]
    pub(crate) fn count(&mut self, flow: FlowKey, deviates: bool) {
        self.counter.count(flow, deviates);
    }

    /// The numbers of flowlets, by flow, that have begun here and that the [view](View::flowlets) has not counted yet, in no order; none if the scheme
    /// has no flowlets here.
    pub fn take_flowlets(&mut self) -> Option<Vec<(FlowKey, u32)>> {
        self.runs.take_flowlets()
    }

    /// [Recurs](netloom_units::recurrence) as long as packets have one port each, or where [choices do](Routing::choices_recur).
    pub fn recur(&mut self, walk: &mut Walk) {
        if self.machines.any() {
            walk.refuse("a scheme whose switches keep something of all packets");
        }
        // Of what is steady, decisions are those of what was run in packets.
        if walk.counts() {
            return;
        }
        self.counter.recur(walk);
        self.selector.recur(walk);
    }

    /// How ports are chosen before packets are handled.
    #[inline(always)]
    pub fn fast_path(&self) -> FastPath {
        self.fast_path
    }

    /// The port of a data packet among several, where ports are [drawn](FastPath::Spray). What [a hash sees](Header::seen_by_hash) of it says only whether it is another one
    /// than its.
    #[inline(always)]
    pub fn draw(&mut self, seen: [u64; 2], ports: &[PortId], random: &mut impl Rng) -> PortId {
        debug_assert_eq!(self.fast_path, FastPath::Spray);
        let hash = self.hash.function.apply_to(seen, self.hash.salt);
        let home = region(hash, ports.len());
        let place = below(ports.len(), random);
        self.counter.count_seen(seen, u64::from(hash), place != home);
        ports[place]
    }

    // The header is asked for only where more of it is wanted than the hash takes, and the view goes by value: then they are put together only there.
    /// The hop of the packet that `header` describes, among the ports that it may take. `tags` are those from which a first switch draws a new one for
    /// the switches behind it.
    #[inline(always)]
    pub fn port<'t>(
        &mut self,
        header: impl Fn() -> Header,
        candidates: Candidates<'_>,
        view: impl View,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) -> Hop {
        if let [only] = *candidates.ports {
            return Hop { port: only, tag: header().tag };
        }
        let (header, ports) = (header(), candidates.ports);
        let is_data = header.carries == Carries::Data;
        let port = match self.fast_path {
            FastPath::Spray if is_data => self.draw(header.seen_by_hash(), ports, random),
            FastPath::Label if is_data => self.labelled(header.tag.bits(), ports),
            FastPath::Decide | FastPath::Run | FastPath::ByRole if is_data => {
                return self.decided(header, candidates, view, tags, random);
            }
            FastPath::None => return self.decided(header, candidates, view, tags, random),
            _ => ports[self.hashed(&header, ports.len())],
        };
        Hop { port, tag: header.tag }
    }

    /// The port of a data packet among several, where the [label](FastPath::Label) that it carries says so.
    #[inline(always)]
    pub fn labelled(&self, tag: u32, ports: &[PortId]) -> PortId {
        ports[mod_k::place(tag, self.stride, ports.len())]
    }

    /// The hop of a packet that may take several ports, by its role.
    #[inline(always)]
    pub fn decided<'t>(
        &mut self,
        header: Header,
        candidates: Candidates<'_>,
        view: impl View,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) -> Hop {
        let Candidates { ports, set } = candidates;
        self.port_of_role(header, (ports, set), view, tags, random)
    }

    /// What [`Self::decided`] says of a data packet where [each is decided on](FastPath::Decide).
    #[inline(always)]
    pub fn decided_each(
        &mut self,
        header: Header,
        candidates: Candidates<'_>,
        mut view: impl View,
        random: &mut impl Rng,
    ) -> Hop {
        debug_assert_eq!(self.fast_path, FastPath::Decide);
        let (place, home) = self.pick_here(&header, candidates, &mut view, random);
        self.count(header.key(), place != home);
        Hop { port: candidates.ports[place], tag: header.tag }
    }

    /// What [`Self::decided`] says of a data packet where [runs are decided on](FastPath::Run), given its flow and its payload in bytes. The header is asked for only where a run begins.
    #[inline(always)]
    pub fn decided_in_run(
        &mut self,
        (key, payload): (FlowKey, u32),
        header: impl FnOnce() -> Header,
        candidates: Candidates<'_>,
        view: impl View,
        random: &mut impl Rng,
    ) -> Hop {
        debug_assert_eq!(self.fast_path, FastPath::Run);
        match self.runs.kept(FlowRef::passing(key), view.now(), payload) {
            Some(hop) => hop,
            None => self.begin_run(&header(), candidates, None::<fn() -> TagSpace<'static>>, view, random),
        }
    }

    // The candidates' parts go by value, so that they are put together only here.
    #[inline(never)]
    fn port_of_role<'t>(
        &mut self,
        header: Header,
        (ports, set): (&[PortId], u32),
        mut view: impl View,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) -> Hop {
        let is_left_out = |every: u32| header.carries == Carries::Data && header.src.is_multiple_of(every);
        let role =
            if self.ecmp_every.is_some_and(is_left_out) { Role::Hash } else { self.roles.of(header.carries) };
        let candidates = Candidates { ports, set };
        let place = match role {
            Role::Label => mod_k::place(header.tag.bits(), self.stride, ports.len()),
            Role::Static => self.pick(&header, candidates, &mut view, random).0,
            Role::Scatter => below(ports.len(), random),
            Role::Packet if header.carries == Carries::Data => {
                self.decide(&header, candidates, &mut view, random)
            }
            Role::Packet => self.pick(&header, candidates, &mut view, random).0,
            Role::PacketAtFirst if header.is_first() => {
                let port = ports[self.decide(&header, candidates, &mut view, random)];
                return Hop { port, tag: tags().another(header.tag, random) };
            }
            Role::Run | Role::RunAtFirst if role == Role::Run || header.is_first() => {
                if let Some(hop) = self.runs.kept(FlowRef::passing(header.key()), view.now(), header.payload)
                {
                    return hop;
                }
                let tags = (role == Role::RunAtFirst).then_some(tags);
                return self.begin_run(&header, candidates, tags, view, random);
            }
            Role::Hash | Role::Spray | Role::Run | Role::PacketAtFirst | Role::RunAtFirst => {
                self.hashed(&header, ports.len())
            }
        };
        Hop { port: ports[place], tag: header.tag }
    }

    /// The hop of a data packet that continues no run of its flow, with a new tag if `tags` are given.
    #[inline(never)]
    fn begin_run<'t>(
        &mut self,
        header: &Header,
        candidates: Candidates<'_>,
        tags: Option<impl FnOnce() -> TagSpace<'t>>,
        mut view: impl View,
        random: &mut impl Rng,
    ) -> Hop {
        let (flow, now, ports) = (FlowRef::passing(header.key()), view.now(), candidates.ports);
        if !self.runs.has_room(flow, now) {
            return Hop { port: ports[self.hashed(header, ports.len())], tag: header.tag };
        }
        let port = ports[self.decide(header, candidates, &mut view, random)];
        let tag = tags.map_or(header.tag, |tags| tags().another(header.tag, random));
        let hop = Hop { port, tag };
        self.runs.keep(flow, hop, header.payload, &mut view);
        hop
    }

    /// A congestion notification was made here or passes by. `ports` lead to its [`Notice::destination`]. Only the selectors of Switch AR
    /// listen.
    pub fn on_notice(&mut self, notice: &Notice, ports: &[PortId], now: Time) {
        // One port only: nothing to choose, so nothing to learn.
        if ports.len() >= 2 {
            // One about a port that traffic to the destination cannot take teaches nothing either.
            let usable = ports.iter().position(|&port| port == notice.port);
            if let Some(place) = usable.filter(|_| notice.feedback > 0) {
                let home = self.home(notice.destination, ports.len());
                self.selector.notice(notice, PortContext { place, ports: ports.len(), home, now });
            }
        }
    }

    /// The port that a hash of [what it sees](Header::seen_by_hash) of a packet names among several.
    #[inline(always)]
    pub fn port_of_hash(&self, seen: [u64; 2], ports: &[PortId]) -> PortId {
        ports[self.position_of_hash(seen, ports.len())]
    }

    /// Its position.
    #[inline(always)]
    pub(super) fn position_of_hash(&self, seen: [u64; 2], ports: usize) -> usize {
        region(self.hash.function.apply_to(seen, self.hash.salt), ports)
    }

    /// The position of the port that the header's hash names.
    #[inline(always)]
    pub fn hashed(&self, header: &Header, ports: usize) -> usize {
        self.hash.position(header, ports)
    }

    /// The position of the port that the selector names for a decision, which counts.
    #[inline]
    pub(crate) fn decide(
        &mut self,
        header: &Header,
        candidates: Candidates<'_>,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> usize {
        let (place, home) = self.pick(header, candidates, view, random);
        self.count(header.key(), place != home);
        place
    }

    /// The position of the port that the selector names, and that of the port without adaptation.
    #[inline(never)]
    fn pick(
        &mut self,
        header: &Header,
        candidates: Candidates<'_>,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> (usize, usize) {
        self.pick_here(header, candidates, view, random)
    }

    /// [`Self::pick`] without a call.
    #[inline(always)]
    fn pick_here(
        &mut self,
        header: &Header,
        candidates: Candidates<'_>,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> (usize, usize) {
        let (hash, ports) = (self.hash.of(header), candidates.ports.len());
        let home = self.home(header.dst, ports).unwrap_or_else(|| region(hash, ports));
        let query = Query { header, candidates, hash, home, now: view.now() };
        (self.selector.pick(query, view, random), home)
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
}

/// What the flow table of a switch may hold.
fn limits(scheme: &Routing) -> Limits {
    let entries = scheme.max_flow_entries.map_or(usize::MAX, |entries| entries as usize);
    Limits { ageing: scheme.flow_timeout, entries, keeps_path: scheme.keeps_last_path() }
}
