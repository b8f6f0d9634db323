//! The nodes of the engine: which of them does what. Dispatch only.

use std::marker::PhantomData;

use netloom_engine::{
    Batch, Due, DynScheduler, FIRST_TIMER, Handler, Hint, Model, NodeIndex, Scheduler, Unhandled,
};
use netloom_fabric::{
    Anything, CreditsOfChannels, KnownRules, PacedPfc, PacedPfcShared, Packet, PlainCredits, PlainPfc,
    PlainPfcShared, Ports,
};
use netloom_topology::NodeId;
use netloom_transport::Sender;
use netloom_units::Time;
use netloom_units::recurrence::Walk;
use netloom_workload::HostWork;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::message::Message;
use crate::server::Server;
use crate::switch::next_hop_cache::NextHopHint;
use crate::switch::queueing::{Drops, KeepsAll, Queueing, Trims};
use crate::switch::{Duties, Switch};
use crate::world::World;

/// Runs what a switch of a lossless fabric does for what is known of its flow control, by a [`Queueing`] whose name in it is `$Q`; `$Pfc` and `$PfcShared` are what is known of PFC.
macro_rules! by_flow_control {
    ($rules:expr, [$Pfc:ident, $PfcShared:ident], $Q:ident => $run:expr) => {
        by_flow_control!(@ $rules, $Q => $run,
            KnownRules::Pfc => $Pfc,
            KnownRules::PfcShared => $PfcShared,
            KnownRules::PlainCredits => PlainCredits,
            KnownRules::CreditsOfChannels => CreditsOfChannels,
            KnownRules::Anything => Anything,
        )
    };
    (@ $rules:expr, $Q:ident => $run:expr, $($rule:pat => $Known:ty,)+) => {
        match $rules.known() {
            $($rule => {
                type $Q = KeepsAll<$Known>;
                $run
            })+
        }
    };
}

/// Runs what a switch does for the [`Queueing`] of the rules, whose name in it is `$Q`. `$hands_on_early`: as for [`Drops`]. Without what is known of flow control, which would be code for what is rarely run.
macro_rules! by_queueing {
    ($rules:expr, $hands_on_early:literal, $Q:ident => $run:expr) => {
        if $rules.is_lossless() {
            type $Q = KeepsAll<Anything>;
            $run
        } else if $rules.drops_tail() {
            type $Q = Drops<true, $hands_on_early, false>;
            $run
        } else {
            type $Q = Trims<$hands_on_early, false>;
            $run
        }
    };
}

/// A host, a switch, or a server with several NICs.
#[derive(Debug)]
pub(crate) enum Node {
    Host(Box<Host>),
    Switch(Box<Switch>),
    /// A host or a switch that nothing has reached yet; it is made when something does.
    Untouched,
    /// In place of its first NIC.
    Server(Box<Server>),
    /// A further NIC of a server, in whose node it lives.
    InServer,
}

impl Node {
    /// A node that nothing has reached yet, as something reaches it.
    #[cold]
    #[inline(never)]
    pub(crate) fn new(world: &World, id: NodeId) -> Self {
        let mut node = match world.network.is_host(id) {
            true => Node::Host(Box::new(Host::new(world, id, HostWork::default(), None))),
            false => Node::Switch(Box::new(Switch::new(world, id, None))),
        };
        node.note_drain(world.recorder.load_until);
        node
    }

    /// Packets that the node buffers, beside its ports' queues.
    pub(crate) fn buffered(&self) -> impl Iterator<Item = &Packet> {
        let (host, switch) = match self {
            Node::Host(host) => (Some(host), None),
            Node::Switch(switch) => (None, Some(switch)),
            Node::Untouched | Node::Server(_) | Node::InServer => (None, None),
        };
        let of_host = host.into_iter().flat_map(|host| host.buffered());
        of_host.chain(switch.into_iter().flat_map(|switch| switch.buffered()))
    }

    /// Its ports, if something has reached them. A server has none: when a run is over its NICs are nodes again.
    pub(crate) fn ports(&self) -> Option<&Ports> {
        match self {
            Node::Host(host) => Some(&host.nic),
            Node::Switch(switch) => Some(&switch.ports),
            Node::Untouched => None,
            Node::Server(_) | Node::InServer => unreachable!("servers are taken apart before"),
        }
    }

    /// [Recurs](netloom_units::recurrence). It must have come to `now`.
    pub(crate) fn recur(&mut self, world: &World, (id, now): (u32, Time), walk: &mut Walk) {
        match self {
            Node::Host(host) => {
                walk.exact(1u32);
                host.recur(world, (id, now), None, walk);
            }
            Node::Switch(switch) => {
                walk.exact(2u32);
                switch.recur(now, walk);
            }
            Node::Untouched | Node::InServer => walk.exact(0u32),
            Node::Server(server) => {
                walk.exact(3u32);
                server.recur(world, now, walk);
            }
        }
    }

    /// How many packets a flow from one of its hosts has not sent yet.
    pub(crate) fn left_of(&mut self, flow: (u32, u32), slot: u32) -> Option<u32> {
        self.sender_of(flow, slot).map(Sender::left)
    }

    /// The sender of a flow that has not ended.
    pub(crate) fn sender_of(&mut self, (src, flow): (u32, u32), slot: u32) -> Option<&Sender> {
        let host = match self {
            Node::Host(host) => host,
            Node::Server(server) => server.nics_mut().find(|&(id, _)| id == src)?.1,
            Node::Untouched | Node::InServer | Node::Switch(_) => return None,
        };
        flow_in(&mut host.flows, slot, flow).map(|flow| &flow.sender)
    }

    /// When a calculation of its program ends next, as far as it is not [pending](Message::Wake).
    pub(crate) fn next_wake(&self) -> Option<Time> {
        if let Node::Host(host) = self { host.next_wake() } else { None }
    }

    /// What a host or server has to do that begins with the run.
    pub(crate) fn work(&self) -> Option<&HostWork> {
        match self {
            Node::Host(host) => Some(&host.work),
            Node::Server(server) => Some(server.work()),
            Node::Untouched | Node::InServer | Node::Switch(_) => None,
        }
    }

    /// Whether it follows a program.
    pub(crate) fn follows_program(&self) -> bool {
        self.work().is_some_and(HostWork::is_program)
    }

    /// Its hosts, with their numbers in the network, if it is a host or a server.
    pub(crate) fn hosts_mut(&mut self, id: u32) -> Vec<(u32, &mut Host)> {
        match self {
            Node::Host(host) => vec![(id, host)],
            Node::Server(server) => server.nics_mut().collect(),
            Node::Untouched | Node::InServer | Node::Switch(_) => Vec::new(),
        }
    }

    /// The ports of each of its hosts or of the switch, if it is one of these.
    pub(crate) fn ports_mut(&mut self) -> Vec<&mut Ports> {
        match self {
            Node::Host(host) => vec![&mut host.nic],
            Node::Switch(switch) => vec![&mut switch.ports],
            Node::Server(server) => server.nics_mut().map(|(_, host)| &mut host.nic).collect(),
            Node::Untouched | Node::InServer => Vec::new(),
        }
    }

    /// Sets at its ports when the load ends.
    pub(crate) fn note_drain(&mut self, until: Time) {
        match self {
            Node::Host(host) => host.nic.note_drain(until),
            Node::Switch(switch) => switch.ports.note_drain(until),
            Node::Server(server) => server.note_drain(until),
            Node::Untouched | Node::InServer => {}
        }
    }

    /// When a packet last came to or left a host, by the clock of the network, or its program did something.
    pub(crate) fn last_event_of_hosts(&self) -> Time {
        match self {
            Node::Host(host) => host.last_event,
            Node::Server(server) => server.last_event(),
            Node::Switch(_) | Node::Untouched | Node::InServer => Time::ZERO,
        }
    }

    /// The component that has just been run was over at `end`, and another one begins at the beginning of time. The [clock](World::clock) of records was `ahead` of that of the network.
    pub(crate) fn end_component(&mut self, end: Time, ahead: Time) {
        match self {
            Node::Host(host) => host.end_component(end, ahead),
            Node::Server(server) => server.end_component(end, ahead),
            Node::Switch(switch) => switch.end_component(ahead),
            Node::Untouched | Node::InServer => {}
        }
    }

    /// Every NIC of a server as a node of its own, as the network numbers them.
    pub(crate) fn take_servers_apart(nodes: &mut [Node]) {
        for node in 0..nodes.len() {
            if let Node::Server(_) = &nodes[node]
                && let Node::Server(server) = std::mem::replace(&mut nodes[node], Node::InServer)
            {
                for (id, host) in server.into_nics() {
                    nodes[id as usize] = Node::Host(Box::new(host));
                }
            }
        }
        // Further ports of NICs are at the first one's host.
        for node in nodes.iter_mut().filter(|node| matches!(node, Node::InServer)) {
            *node = Node::Untouched;
        }
    }
}

impl Model for World {
    type Node = Node;
    type Payload = Message;
    type Hint = NextHopHint;

    #[inline(always)]
    fn prefetch_node(&self, node: &Node) {
        match node {
            Node::Host(host) => host.prefetch_node(),
            Node::Switch(switch) => switch.prefetch_node(),
            Node::Untouched | Node::Server(_) | Node::InServer => {}
        }
    }

    #[inline(always)]
    fn prefetch_state(&self, node: &Node, is_long: bool) {
        match node {
            Node::Host(host) => host.prefetch_state(),
            // A few packets use a few ports.
            Node::Switch(switch) if is_long => switch.prefetch_state(),
            Node::Switch(_) | Node::Untouched | Node::Server(_) | Node::InServer => {}
        }
    }

    fn senders(&self, id: NodeIndex, mut each: impl FnMut(NodeIndex)) -> bool {
        // A server's NICs have neighbours of their own.
        if self.servers.is_some() {
            return false;
        }
        self.network.ports(id).iter().for_each(|&channel| each(self.network.channel(channel).to));
        true
    }

    fn first_report(&self, node: &Node, pending: impl FnOnce(&mut dyn FnMut(Time, &Message))) -> Time {
        match node {
            Node::Host(host) => host.first_completion(self, pending),
            Node::Switch(_) | Node::InServer => Time::MAX,
            // A host with which nothing has been done yet looks like any other; what servers' NICs hold back is not looked for.
            Node::Untouched | Node::Server(_) => {
                let mut first = Time::MAX;
                pending(&mut |at, _| first = first.min(at));
                first
            }
        }
    }

    fn start(&self, node: &mut Node, id: NodeIndex, out: &mut impl Scheduler<Message>) {
        match node {
            Node::Host(host) => host.start(out),
            Node::Server(server) => return server.start(&mut Ctx { world: self, id, now: Time::ZERO, out }),
            Node::InServer => return,
            Node::Switch(_) | Node::Untouched => {}
        }
        if self.has_timed_cuts(id) {
            self.set_cut_timers(id, out);
            // What it knows of its links begins with the run.
            if matches!(node, Node::Untouched) {
                *node = Node::new(self, id);
            }
        }
    }

    #[inline]
    fn handle(
        &self,
        node: &mut Node,
        id: NodeIndex,
        Due { at, source }: Due,
        message: &mut Message,
        out: &mut impl Scheduler<Message>,
    ) {
        macro_rules! take {
            ($handler:expr) => {{
                let mut handler = $handler;
                handler.handle(Due { at, source }, message, NextHopHint::NONE, out);
                handler.finish(at);
            }};
        }
        match node {
            Node::Switch(switch) => match switch.duties {
                Duties::Plain => take!(AtSwitch::<Drops<false, true, true>>::new(self, switch, id)),
                Duties::Classes => take!(AtSwitch::<Drops<false, true, false>>::new(self, switch, id)),
                Duties::Stamps => take!(AtSwitch::<Drops<true, true, false>>::new(self, switch, id)),
                Duties::Trims => take!(AtSwitch::<Trims<false, false>>::new(self, switch, id)),
                Duties::Lossless => take!(AtSwitch::<KeepsAll<Anything>>::new(self, switch, id)),
                Duties::Routes => {
                    by_queueing!(self.rules, false, Q => take!(AtProtocols::<Q, true>::new(self, switch, id)))
                }
                Duties::Special => {
                    by_queueing!(self.rules, false, Q => take!(AtProtocols::<Q, false>::new(self, switch, id)))
                }
            },
            Node::Host(host) => host.handle(&mut Ctx::new(self, id, at, out), message),
            Node::Server(server) => take!(AtServer { world: self, server, id }),
            Node::Untouched => {
                *node = Node::new(self, id);
                self.handle(node, id, Due { at, source }, message, out);
            }
            Node::InServer => unreachable!("{NOBODY}"),
        }
    }

    #[inline(always)]
    fn run_batch(&self, node: &mut Node, id: NodeIndex, batch: impl Batch<World>) {
        match node {
            Node::Switch(switch) if switch.duties == Duties::Plain => {
                batch.run(&mut AtSwitch::<Drops<false, true, true>>::new(self, switch, id))
            }
            Node::Host(host) => run_host_batch(self, host, id, batch),
            other => run_other_batch(self, other, id, batch),
        }
    }

    #[inline]
    fn advance(
        &self,
        node: &mut Node,
        id: NodeIndex,
        until: Time,
        out: &mut impl Scheduler<Message>,
    ) -> Option<Time> {
        match node {
            Node::Switch(switch) => switch.advance(&mut Ctx::new(self, id, until, out)),
            Node::Host(host) => host.advance(&mut Ctx::new(self, id, until, out)),
            other => advance_server(other, &mut Ctx { world: self, id, now: until, out }),
        }
    }
}

/// A switch of which nothing special is asked.
struct AtSwitch<'a, Q> {
    world: &'a World,
    switch: &'a mut Switch,
    id: NodeIndex,
    /// Nothing else comes at the instant of the message that is handled.
    is_alone: bool,
    queueing: PhantomData<Q>,
}

impl<'a, Q> AtSwitch<'a, Q> {
    #[inline(always)]
    fn new(world: &'a World, switch: &'a mut Switch, id: NodeIndex) -> Self {
        AtSwitch { world, switch, id, is_alone: false, queueing: PhantomData }
    }
}

impl<Q: Queueing> Handler<World> for AtSwitch<'_, Q> {
    const SETS_TIMERS: bool = false;

    #[inline(always)]
    fn looks_ahead(&self) -> bool {
        Q::IS_LOSSLESS && (Q::MAY_HAVE_TURNS || !Q::IS_NEVER_ENTANGLED && self.switch.ports.is_entangled())
    }

    #[inline(always)]
    fn expect(&mut self, is_alone: bool) {
        self.is_alone = is_alone;
    }

    #[inline(always)]
    fn prepare(&mut self, messages: impl Unhandled<World>) {
        self.switch.prepare(self.world, self.id, messages);
    }

    // Inlined into the engine's loop, so that a packet at a switch costs no call; hosts are the rarer case.
    #[inline(always)]
    fn handle(
        &mut self,
        Due { at, .. }: Due,
        message: &mut Message,
        hint: NextHopHint,
        out: &mut impl Scheduler<Message>,
    ) {
        let AtSwitch { world, switch, id, is_alone, .. } = self;
        let ctx = &mut Ctx::new(world, *id, at, out);
        match message {
            Message::Packet(packet) => Q::forward(switch, ctx, packet, hint, *is_alone),
            timer => switch.on_timer(&mut ctx.again(), timer),
        }
    }

    // Such a switch sets no timers, so the last one was a packet.
    #[inline(always)]
    fn finish(&mut self, last: Time) {
        self.switch.last_event = last;
    }
}

/// A switch with protocols, or any other that is no [`AtSwitch`]. `ONLY_ROUTES`: protocols take part in its routes, and nothing else is special.
struct AtProtocols<'a, Q, const ONLY_ROUTES: bool> {
    world: &'a World,
    switch: &'a mut Switch,
    id: NodeIndex,
    queueing: PhantomData<Q>,
}

impl<'a, Q, const ONLY_ROUTES: bool> AtProtocols<'a, Q, ONLY_ROUTES> {
    fn new(world: &'a World, switch: &'a mut Switch, id: NodeIndex) -> Self {
        AtProtocols { world, switch, id, queueing: PhantomData }
    }
}

impl<Q: Queueing, const ONLY_ROUTES: bool> Handler<World> for AtProtocols<'_, Q, ONLY_ROUTES> {
    #[inline(always)]
    fn prepare(&mut self, messages: impl Unhandled<World>) {
        if ONLY_ROUTES {
            self.switch.prepare_read(self.world, messages);
        }
    }

    #[inline(always)]
    fn handle(
        &mut self,
        Due { at, .. }: Due,
        message: &mut Message,
        hint: NextHopHint,
        out: &mut impl Scheduler<Message>,
    ) {
        let ctx = &mut Ctx::new(self.world, self.id, at, out);
        match message {
            Message::Packet(packet) if ONLY_ROUTES => self.switch.forward_routed::<Q>(ctx, packet, hint),
            Message::Packet(packet) => self.switch.forward_specially::<Q>(ctx, packet),
            timer => self.switch.on_timer(&mut ctx.again(), timer),
        }
    }
}

struct AtHost<'a> {
    world: &'a World,
    host: &'a mut Host,
    id: NodeIndex,
}

impl Handler<World> for AtHost<'_> {
    #[inline(always)]
    fn prepare(&mut self, messages: impl Unhandled<World>) {
        let AtHost { world, host, .. } = self;
        if host.is_crowded() {
            host.prefetch_turns();
            messages.annotate(|message| {
                if let Message::Packet(packet) = message {
                    host.prefetch_flow(world, packet);
                }
                NextHopHint::NONE
            });
        }
    }

    #[inline(always)]
    fn handle(
        &mut self,
        Due { at, source }: Due,
        message: &mut Message,
        _: NextHopHint,
        out: &mut impl Scheduler<Message>,
    ) {
        debug_assert!(source >= FIRST_TIMER || matches!(message, Message::Packet(_) | Message::Grant(_)));
        self.host.handle_in_batch(&mut Ctx::new(self.world, self.id, at, out), message);
    }
}

struct AtServer<'a> {
    world: &'a World,
    server: &'a mut Server,
    id: NodeIndex,
}

impl Handler<World> for AtServer<'_> {
    fn prepare(&mut self, messages: impl Unhandled<World>) {
        let AtServer { world, server, .. } = self;
        if server.is_crowded() {
            server.prefetch_turns();
            messages.annotate(|message| {
                if let Message::Packet(packet) = message {
                    server.prefetch_flow(world, packet);
                }
                NextHopHint::NONE
            });
        }
    }

    fn handle(
        &mut self,
        Due { at, source }: Due,
        message: &mut Message,
        _: NextHopHint,
        out: &mut impl Scheduler<Message>,
    ) {
        let AtServer { world, server, id } = self;
        server.handle(&mut Ctx { world, id: *id, now: at, out }, source, message);
    }
}

/// A host's batch, apart from the code of switches.
#[inline(never)]
fn run_host_batch(world: &World, host: &mut Host, id: NodeIndex, batch: impl Batch<World>) {
    batch.run(&mut AtHost { world, host, id });
}

/// The batch of a node that is neither a host nor a switch with plain duties. Each kind's code is apart from the others', which lets the compiler keep more of it in registers.
#[inline(never)]
fn run_other_batch(world: &World, node: &mut Node, id: NodeIndex, batch: impl Batch<World>) {
    match node {
        Node::Switch(switch) => match switch.duties {
            Duties::Lossless => {
                by_flow_control!(&world.rules, [PacedPfc, PacedPfcShared], Q => run_switch_batch::<Q>(world, switch, id, batch))
            }
            Duties::Trims => match world.rules.trims_plainly() {
                true => run_switch_batch::<Trims<true, true>>(world, switch, id, batch),
                false => run_switch_batch::<Trims<true, false>>(world, switch, id, batch),
            },
            Duties::Classes => run_switch_batch::<Drops<false, true, false>>(world, switch, id, batch),
            Duties::Stamps => match world.rules.has_plain_queues() {
                true => run_switch_batch::<Drops<true, true, true>>(world, switch, id, batch),
                false => run_switch_batch::<Drops<true, true, false>>(world, switch, id, batch),
            },
            Duties::Routes if !world.rules.is_lossless() => {
                by_queueing!(world.rules, true, Q => run_routes_batch::<Q>(world, switch, id, batch))
            }
            // Packets that have been held back come to the ports all at once.
            Duties::Routes if world.routing.has_edges() => {
                by_flow_control!(&world.rules, [PlainPfc, PlainPfcShared], Q => run_routes_batch::<Q>(world, switch, id, batch))
            }
            Duties::Routes => {
                by_flow_control!(&world.rules, [PacedPfc, PacedPfcShared], Q => run_routes_batch::<Q>(world, switch, id, batch))
            }
            Duties::Plain | Duties::Special => run_rare_batch(world, node, id, batch),
        },
        other => run_rare_batch(world, other, id, batch),
    }
}

#[inline(never)]
fn run_switch_batch<Q: Queueing>(
    world: &World,
    switch: &mut Switch,
    id: NodeIndex,
    batch: impl Batch<World>,
) {
    batch.run(&mut AtSwitch::<Q>::new(world, switch, id));
}

#[inline(never)]
fn run_routes_batch<Q: Queueing>(
    world: &World,
    switch: &mut Switch,
    id: NodeIndex,
    batch: impl Batch<World>,
) {
    batch.run(&mut AtProtocols::<Q, true>::new(world, switch, id));
}

#[inline(never)]
fn run_rare_batch(world: &World, node: &mut Node, id: NodeIndex, batch: impl Batch<World>) {
    match node {
        Node::Switch(switch) => {
            by_queueing!(world.rules, false, Q => batch.run(&mut AtProtocols::<Q, false>::new(world, switch, id)));
        }
        Node::Untouched => run_first_batch(world, node, id, batch),
        Node::Server(server) => batch.run(&mut AtServer { world, server, id }),
        Node::Host(_) | Node::InServer => unreachable!("{NOBODY}"),
    }
}

#[cold]
#[inline(never)]
fn run_first_batch(world: &World, node: &mut Node, id: NodeIndex, batch: impl Batch<World>) {
    *node = Node::new(world, id);
    world.run_batch(node, id, batch);
}

#[cold]
#[inline(never)]
fn advance_server(node: &mut Node, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>) -> Option<Time> {
    let Node::Server(server) = node else { return None };
    server.advance(ctx)
}

/// Why nothing comes to a further NIC of a server.
const NOBODY: &str = "what is for a server's NIC goes to the server's node";
