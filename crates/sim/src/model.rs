//! The simulation as the engine sees it: what all nodes share, and which node does what.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use netloom_engine::{Handler, Model, NodeIndex, Scheduler, TIMER, Turn};
use netloom_fabric::{Credit, Departure, Fabric, Packet, Ports, Rules, Telemetry, Wire};
use netloom_routing::{Forwarding, Routing};
use netloom_topology::{HostId, Network};
use netloom_transport::Transport;
use netloom_units::{Bytes, Time};

use crate::epochs::Epochs;
use crate::host::{Gaps, Host, Numbering};
use crate::meter::Watch;
use crate::path::PathProfile;
use crate::switch::Switch;

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
    /// Whether a host may have more than one thing to say in answer to what comes.
    pub(crate) answers_wait: bool,
    pub(crate) watch: Watch,
    /// What is wanted of the gaps between a flow's packets.
    pub(crate) gaps: Gaps,
    /// Whether flows are started from outside, too, so that hosts tell of them.
    pub(crate) is_driven: bool,
    /// Whether a data packet can be lost, in a queue or by a fault.
    pub(crate) is_lossy: bool,
    /// Packets say whether at least so much of their flow is still to be sent. Absent: nobody asks.
    pub(crate) hint: Option<Bytes>,
    /// What switches write on packets, if the transport asks for it.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    /// Calculations of programs under way.
    pub(crate) calculations: AtomicU64,
}

impl World {
    /// The routes at an instant.
    #[inline]
    pub(crate) fn routes(&self, now: Time) -> &Forwarding {
        self.epochs.at(now, &self.forwarding)
    }

    /// The path between two hosts by which the run begins, with nothing else on it.
    pub(crate) fn idle_path(&self, src: HostId, dst: HostId) -> PathProfile {
        PathProfile::walk(&self.network, self.forwarding.table(), &self.fabric.options, src, dst)
    }
}

/// A host or a switch.
#[derive(Debug)]
pub(crate) enum Node {
    Host(Box<Host>),
    Switch(Box<Switch>),
}

/// What travels, and what nodes set timers for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    /// Crosses a channel.
    Packet(Packet),
    /// The next message of the workload starts.
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
    /// The timer of a destination's rate limiter.
    Limiter { dst: u32 },
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
        };
        let queued = host.into_iter().flat_map(|host| host.queue()).flat_map(|queue| queue.packets());
        let unseen = host.into_iter().flat_map(|host| host.held_back());
        let early = host.into_iter().flat_map(|host| host.reordering()).flat_map(|early| early.packets());
        let of_switch = switch.into_iter().flat_map(|switch| switch.held.packets());
        queued.chain(unseen).chain(early).chain(of_switch)
    }

    pub(crate) fn ports(&self) -> &Ports {
        match self {
            Node::Host(host) => &host.nic,
            Node::Switch(switch) => &switch.ports,
        }
    }

    pub(crate) fn ports_mut(&mut self) -> &mut Ports {
        match self {
            Node::Host(host) => &mut host.nic,
            Node::Switch(switch) => &mut switch.ports,
        }
    }
}

const _: () = assert!(size_of::<Message>() == size_of::<Packet>(), "an event fills one cache line");

/// What goes beside a channel is a source of its own: that and its packets have no order among each other.
pub(crate) const BESIDE: u32 = 1 << 31;

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
}

impl Model for World {
    type Node = Node;
    type Payload = Message;

    fn start(&self, node: &mut Node, _: NodeIndex, out: &mut impl Scheduler<Message>) {
        if let Node::Host(host) = node {
            host.start(out);
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
        match node {
            Node::Switch(switch) => AtSwitch { world: self, switch, id }.handle(at, source, message, out),
            Node::Host(host) => AtHost { world: self, host, id }.handle(at, source, message, out),
        }
    }

    #[inline(always)]
    fn take_turn(&self, node: &mut Node, id: NodeIndex, turn: impl Turn<Message>) {
        match node {
            Node::Switch(switch) => turn.run(&mut AtSwitch { world: self, switch, id }),
            Node::Host(host) => turn.run(&mut AtHost { world: self, host, id }),
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
            Node::Switch(switch) => switch.advance(self, id, until, out),
            Node::Host(host) => host.advance(self, id, until, out),
        }
    }
}

struct AtSwitch<'a> {
    world: &'a World,
    switch: &'a mut Switch,
    id: NodeIndex,
}

impl Handler<Message> for AtSwitch<'_> {
    // Inlined into the engine's loop, so that a packet at a switch costs no call; hosts are the rarer case.
    #[inline(always)]
    fn handle(&mut self, at: Time, _: u32, message: &mut Message, out: &mut impl Scheduler<Message>) {
        match message {
            Message::Packet(packet) => self.switch.forward(self.world, self.id, at, packet, out),
            timer => self.switch.on_timer(self.world, self.id, at, timer, out),
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
    fn handle(&mut self, at: Time, source: u32, message: &mut Message, out: &mut impl Scheduler<Message>) {
        debug_assert!(source == TIMER || matches!(message, Message::Packet(_)));
        self.host.handle(self.world, self.id, at, message, out);
    }
}
