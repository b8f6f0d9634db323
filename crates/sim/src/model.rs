//! The simulation as the engine sees it: what all nodes share, and which node does what.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use netloom_engine::{Handler, Messages, Model, NodeIndex, Scheduler, TIMER, Turn, UNFORESEEN};
use netloom_fabric::{Credit, Departure, Fabric, Packet, Ports, Rules, Telemetry, Wire};
use netloom_routing::{Forwarding, Routing};
use netloom_topology::{HostId, Network, NodeId, PortId};
use netloom_transport::Transport;
use netloom_units::{Bytes, Time};

use crate::blueprint::Blueprint;
use crate::ctx::Ctx;
use crate::epochs::Epochs;
use crate::host::{Gaps, Host, Numbering};
use crate::meter::Watch;
use crate::path::PathProfile;
use crate::server::{Engine, Server, Servers};
use crate::switch::{Duties, Switch};

/// What every node may read.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) fabric: Fabric,
    /// The fabric as ports see it.
    pub(crate) rules: Rules,
    pub(crate) routing: Routing,
    /// The routes by which the run begins, unless `epochs` says otherwise.
    pub(crate) forwarding: Forwarding,
    /// The routes that follow faults.
    pub(crate) epochs: Epochs,
    pub(crate) transport: Transport,
    /// How packets say of which subflow they are.
    pub(crate) numbering: Numbering,
    pub(crate) watch: Watch,
    /// What is wanted of the gaps between a flow's packets.
    pub(crate) gaps: Gaps,
    /// Whether flows are started from outside, too, so that hosts tell of them.
    pub(crate) is_driven: bool,
    /// The servers, where these have several NICs.
    pub(crate) servers: Option<Box<Servers>>,
    /// Whether a data packet can be lost, in a queue or by a fault.
    pub(crate) is_lossy: bool,
    /// Packets say whether at least so much of their flow is still to be sent. Absent: nobody asks.
    pub(crate) hint: Option<Bytes>,
    /// What switches write on packets, if the transport asks for it.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    /// What nodes are made from.
    pub(crate) blueprint: Blueprint,
    /// Calculations of programs under way.
    pub(crate) calculations: AtomicU64,
}

impl World {
    /// The routes at an instant.
    #[inline]
    pub(crate) fn routes(&self, now: Time) -> &Forwarding {
        self.epochs.at(now, &self.forwarding)
    }

    /// The servers of a run that has some.
    pub(crate) fn servers(&self) -> &Servers {
        self.servers.as_deref().expect("servers are made with them")
    }

    /// The server and the rail of a host of the network; where each has one NIC, the host itself.
    pub(crate) fn server(&self, host: HostId) -> (u32, u32) {
        self.servers.as_ref().map_or((host, 0), |servers| servers.rails.server(host))
    }

    /// The node in which a node of the network lives.
    pub(crate) fn node(&self, node: NodeId) -> NodeIndex {
        match &self.servers {
            Some(servers) if self.network.is_host(node) => servers.node(node),
            _ => node,
        }
    }

    /// The path between two hosts by which the run begins, with nothing else on it.
    pub(crate) fn idle_path(&self, src: HostId, dst: HostId) -> PathProfile {
        PathProfile::walk(self, self.forwarding.table(), src, dst)
    }
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

/// What travels, and what nodes set timers for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Message {
    /// Crosses a channel.
    Packet(Packet),
    /// The next message of the workload starts.
    #[default]
    Start,
    /// A flow that was ordered from outside starts.
    Order { dst: u32, bytes: Bytes, ticket: u32, class: u8 },
    /// The timer of a flow's sender: a packet may be lost, or a rate may rise.
    FlowTimer { slot: u32, flow: u32 },
    /// The next PULL may leave.
    Pull,
    /// The host looks at what has come.
    Interrupt,
    /// A packet has waited for its ACK long enough.
    AckDelay { receiver: u32 },
    /// The time limit of a flow that its decider has paused.
    PauseLimit { slot: u32, flow: u32 },
    /// How long a flow that its first switch has stopped waits to be told to go on.
    StopLimit { slot: u32, flow: u32 },
    /// The same for a traffic class.
    ClassStopLimit { class: u8 },
    /// How long a host holds packets of a flow back from its transport.
    Reorder { src: u32, flow: u32 },
    /// How long a switch holds packets of a flow back.
    Flush { src: u32, flow: u32 },
    /// Under flow control: the link of a port is cut, or repaired.
    Link { port: PortId, is_cut: bool },
    /// Crosses a channel when its link has been repaired: credit for all the room at its end. No event of the run, as it may come of no work.
    Grant(Credit),
    /// The timer of a destination's rate limiter.
    Limiter { dst: u32 },
    /// A timer of a server's NIC is due.
    Nic { rail: u32 },
    /// A calculation of a server ends.
    Wake,
    /// A server has a message, or a part of one, for a NIC to send.
    Part { dst: u32, bytes: Bytes, number: u32, group: u16, class: u8, is_stream: bool },
}

impl Message {
    /// The packet, if it is one that crosses the channel rather than something beside it.
    pub(crate) fn packet(&self) -> Option<&Packet> {
        match self {
            Message::Packet(packet) if !packet.kind.is_beside_data() => Some(packet),
            _ => None,
        }
    }
}

impl Node {
    /// Packets that the node holds back, beside its ports' queues.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Packet> {
        let (host, switch) = match self {
            Node::Host(host) => (Some(host), None),
            Node::Switch(switch) => (None, Some(switch)),
            Node::Untouched | Node::Server(_) | Node::InServer => (None, None),
        };
        let queued = host.into_iter().flat_map(|host| host.queue()).flat_map(|queue| queue.packets());
        let unseen = host.into_iter().flat_map(|host| host.held_back());
        let early = host.into_iter().flat_map(|host| host.reordering()).flat_map(|early| early.packets());
        let of_switch = switch.into_iter().flat_map(|switch| switch.held.packets());
        queued.chain(unseen).chain(early).chain(of_switch)
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

    /// Tells its ports when the load ends.
    pub(crate) fn note_drain(&mut self, until: Time) {
        match self {
            Node::Host(host) => host.nic.note_drain(until),
            Node::Switch(switch) => switch.ports.note_drain(until),
            Node::Server(server) => server.note_drain(until),
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
    }
}

const _: () = assert!(size_of::<Message>() == size_of::<Packet>(), "an event fills one cache line");

/// What goes beside a channel is a source of its own: that and its packets have no order among each other.
pub(crate) const BESIDE: u32 = 1 << 29;

/// Puts departed packets and credits on their channels.
pub(crate) struct Channels<'a, S>(pub(crate) &'a mut S);

impl<S: Scheduler<Message>> Wire for Channels<'_, S> {
    // A closure would not be inlined at each of the places where a packet may leave.
    #[inline(always)]
    fn depart(&mut self, departure: Departure<'_>) {
        let Departure { to, channel, arrival, packet } = departure;
        self.0.send_made(to, channel, arrival, || Message::Packet(*packet));
    }

    #[inline(always)]
    fn credit(&mut self, to: u32, channel: u32, arrival: Time, credit: Credit) {
        self.0.send(to, channel | BESIDE, arrival, Message::Packet(credit.to_packet()));
    }

    #[cold]
    fn miss(&mut self, to: u32, channel: u32, arrival: Time, room: Credit) {
        self.0.send(to, channel | BESIDE, arrival, Message::Packet(room.to_missed()));
    }

    #[cold]
    fn grant(&mut self, to: u32, channel: u32, arrival: Time, credit: Credit) {
        self.0.send(to, channel | BESIDE, arrival, Message::Grant(credit));
    }
}

/// The same where nobody asks about ports before the end of the running turn.
pub(crate) struct UnwatchedChannels<'a, S>(pub(crate) &'a mut S);

impl<S: Scheduler<Message>> Wire for UnwatchedChannels<'_, S> {
    #[inline(always)]
    fn depart(&mut self, departure: Departure<'_>) {
        Channels(&mut *self.0).depart(departure);
    }

    #[inline(always)]
    fn credit(&mut self, to: u32, channel: u32, arrival: Time, credit: Credit) {
        Channels(&mut *self.0).credit(to, channel, arrival, credit);
    }

    #[cold]
    fn miss(&mut self, to: u32, channel: u32, arrival: Time, room: Credit) {
        Channels(&mut *self.0).miss(to, channel, arrival, room);
    }

    #[cold]
    fn grant(&mut self, to: u32, channel: u32, arrival: Time, credit: Credit) {
        Channels(&mut *self.0).grant(to, channel, arrival, credit);
    }

    #[inline(always)]
    fn unwatched_until(&self) -> Time {
        self.0.turn_end()
    }
}

impl Model for World {
    type Node = Node;
    type Payload = Message;

    #[inline(always)]
    fn approach(&self, node: &Node) {
        match node {
            Node::Host(host) => host.approach(),
            Node::Switch(switch) => switch.approach(),
            Node::Untouched | Node::Server(_) | Node::InServer => {}
        }
    }

    #[inline(always)]
    fn expect(&self, node: &Node, is_long: bool) {
        match node {
            Node::Host(host) => host.expect(),
            // A few packets use a few ports.
            Node::Switch(switch) if is_long => switch.expect(),
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

    fn start(&self, node: &mut Node, id: NodeIndex, out: &mut impl Scheduler<Message>) {
        match node {
            Node::Host(host) => host.start(out),
            Node::Server(server) => return server.start(&mut Ctx { world: self, id, now: Time::ZERO, out }),
            Node::InServer => return,
            Node::Switch(_) | Node::Untouched => {}
        }
        if self.watches_links(id) {
            self.watch_links(id, out);
            // What it knows of its links begins with the run.
            if matches!(node, Node::Untouched) {
                *node = self.make(id);
            }
        }
    }

    #[inline]
    fn handle(
        &self,
        node: &mut Node,
        id: NodeIndex,
        at: Time,
        source: u32,
        message: &mut Message,
        out: &mut impl Scheduler<Message>,
    ) {
        macro_rules! take {
            ($handler:expr) => {{
                let mut handler = $handler;
                handler.handle(at, source, message, UNFORESEEN, out);
                handler.finish(at);
            }};
        }
        match node {
            Node::Switch(switch) => match switch.duties {
                Duties::Plain => take!(AtPlain { world: self, switch, id }),
                Duties::Trims => take!(AtTrimming { world: self, switch, id }),
                Duties::Lossless => take!(AtLossless { world: self, switch, id }),
                Duties::Special => take!(AtSpecial { world: self, switch, id }),
            },
            Node::Host(host) => host.handle(&mut Ctx::new(self, id, at, out), message),
            Node::Server(server) => take!(AtServer { world: self, server, id }),
            Node::Untouched => {
                *node = self.make(id);
                self.handle(node, id, at, source, message, out);
            }
            Node::InServer => unreachable!("{NOBODY}"),
        }
    }

    #[inline(always)]
    fn take_turn(&self, node: &mut Node, id: NodeIndex, turn: impl Turn<Message>) {
        match node {
            Node::Switch(switch) if switch.duties == Duties::Plain => {
                turn.run(&mut AtPlain { world: self, switch, id })
            }
            Node::Host(host) => take_host_turn(self, host, id, turn),
            other => take_other_turn(self, other, id, turn),
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

/// A switch of which nothing special is asked: it trims packets or not, or is under flow control.
struct AtSwitch<'a, const TRIMS: bool, const IS_LOSSLESS: bool> {
    world: &'a World,
    switch: &'a mut Switch,
    id: NodeIndex,
}

type AtPlain<'a> = AtSwitch<'a, false, false>;
type AtTrimming<'a> = AtSwitch<'a, true, false>;
type AtLossless<'a> = AtSwitch<'a, false, true>;

impl<const TRIMS: bool, const IS_LOSSLESS: bool> Handler<Message> for AtSwitch<'_, TRIMS, IS_LOSSLESS> {
    const SETS_TIMERS: bool = false;

    #[inline(always)]
    fn foresee(&mut self, messages: impl Messages<Message>) {
        self.switch.foresee(self.world, messages);
    }

    // Inlined into the engine's loop, so that a packet at a switch costs no call; hosts are the rarer case.
    #[inline(always)]
    fn handle(
        &mut self,
        at: Time,
        _: u32,
        message: &mut Message,
        foreseen: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        let AtSwitch { world, switch, id } = self;
        let ctx = &mut Ctx::new(world, *id, at, out);
        match message {
            Message::Packet(packet) if IS_LOSSLESS => switch.forward_lossless(ctx, packet, foreseen),
            Message::Packet(packet) => switch.forward::<TRIMS>(ctx, packet, foreseen),
            timer => switch.on_timer(ctx, timer),
        }
    }

    // Such a switch sets no timers, so the last one was a packet.
    #[inline(always)]
    fn finish(&mut self, last: Time) {
        self.switch.last_event = last;
    }
}

/// Any other switch.
struct AtSpecial<'a> {
    world: &'a World,
    switch: &'a mut Switch,
    id: NodeIndex,
}

impl Handler<Message> for AtSpecial<'_> {
    #[inline(always)]
    fn handle(&mut self, at: Time, _: u32, message: &mut Message, _: u32, out: &mut impl Scheduler<Message>) {
        let ctx = &mut Ctx::new(self.world, self.id, at, out);
        match message {
            Message::Packet(packet) => self.switch.forward_specially(ctx, packet),
            timer => self.switch.on_timer(ctx, timer),
        }
    }
}

struct AtHost<'a> {
    world: &'a World,
    host: &'a mut Host,
    id: NodeIndex,
}

impl Handler<Message> for AtHost<'_> {
    #[inline(always)]
    fn handle(
        &mut self,
        at: Time,
        source: u32,
        message: &mut Message,
        _: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        debug_assert!(source == TIMER || matches!(message, Message::Packet(_) | Message::Grant(_)));
        self.host.handle_in_turn(&mut Ctx::new(self.world, self.id, at, out), message);
    }
}

struct AtServer<'a> {
    world: &'a World,
    server: &'a mut Server,
    id: NodeIndex,
}

impl Handler<Message> for AtServer<'_> {
    fn handle(
        &mut self,
        at: Time,
        source: u32,
        message: &mut Message,
        _: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        let AtServer { world, server, id } = self;
        server.handle(&mut Ctx { world, id: *id, now: at, out }, source, message);
    }
}

/// A host's turn, apart from the code of switches.
#[inline(never)]
fn take_host_turn(world: &World, host: &mut Host, id: NodeIndex, turn: impl Turn<Message>) {
    turn.run(&mut AtHost { world, host, id });
}

/// The turn of a node that is neither a host nor a switch with plain duties, apart from the code of theirs.
#[inline(never)]
fn take_other_turn(world: &World, node: &mut Node, id: NodeIndex, turn: impl Turn<Message>) {
    match node {
        Node::Switch(switch) if switch.duties == Duties::Lossless => {
            turn.run(&mut AtLossless { world, switch, id })
        }
        Node::Switch(switch) if switch.duties == Duties::Trims => {
            turn.run(&mut AtTrimming { world, switch, id })
        }
        other => take_rare_turn(world, other, id, turn),
    }
}

#[inline(never)]
fn take_rare_turn(world: &World, node: &mut Node, id: NodeIndex, turn: impl Turn<Message>) {
    match node {
        Node::Switch(switch) => turn.run(&mut AtSpecial { world, switch, id }),
        Node::Untouched => take_first_turn(world, node, id, turn),
        Node::Server(server) => turn.run(&mut AtServer { world, server, id }),
        Node::Host(_) | Node::InServer => unreachable!("{NOBODY}"),
    }
}

#[cold]
#[inline(never)]
fn take_first_turn(world: &World, node: &mut Node, id: NodeIndex, turn: impl Turn<Message>) {
    *node = world.make(id);
    world.take_turn(node, id, turn);
}

#[cold]
#[inline(never)]
fn advance_server(node: &mut Node, ctx: &mut Ctx<'_, dyn Engine + '_>) -> Option<Time> {
    let Node::Server(server) = node else { return None };
    server.advance(ctx)
}

/// Why nothing comes to a further NIC of a server.
const NOBODY: &str = "what is for a server's NIC goes to the server's node";
