//! The path of a packet through a switch: route, admit, enqueue.

use netloom_engine::{Hint, Scheduler, Unhandled};
use netloom_fabric::{Anything, At, Credit, Fate, Known, Packet, PacketKind, PortQueue, Ports, Rules};
use netloom_routing::{
    Candidates, FastPath, FlowKey, Forwarding, Header, Hop, InRow, PacketContext, Place, SwitchPathSelector,
};
use netloom_topology::{HostId, NodeId, PortId};

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::at_switches::{self, TagReading};
use crate::protocol::is_of_host;
use crate::switch::Switch;
use crate::switch::next_hop_cache::{CachedHop, NextHopHint};
use crate::switch::view::{PortsAt, data_header_of, header_of, note_choice, payload_of, take};
use crate::world::World;

impl Switch {
    /// Sends a packet on, where a packet without room is dropped. `MAY_STAMP`, `HANDS_ON_EARLY` and `HAS_PLAIN_QUEUES`: as for [`Ports::enqueue_or_drop`].
    #[inline(always)]
    pub(crate) fn forward<const MAY_STAMP: bool, const HANDS_ON_EARLY: bool, const HAS_PLAIN_QUEUES: bool>(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
    ) {
        let Some(port_queue) = self.hinted_port_queue(ctx, packet, hint) else {
            return self.forward_without_hint(&mut ctx.again(), packet);
        };
        let Switch { ports, random, .. } = self;
        ports.enqueue_or_drop::<MAY_STAMP, HANDS_ON_EARLY, HAS_PLAIN_QUEUES>(
            port_queue,
            packet,
            random,
            At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()),
        );
    }

    /// [`Self::forward`] of a packet without a hint.
    #[inline(never)]
    pub(crate) fn forward_without_hint(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) {
        let port_queue = self.choose_port_queue(ctx, packet);
        let Switch { ports, random, .. } = self;
        ports.enqueue_or_drop::<true, false, false>(
            port_queue,
            packet,
            random,
            At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()),
        );
    }

    /// [`Self::forward`] under flow control. `is_alone`: nothing else comes at this instant.
    #[inline(always)]
    pub(crate) fn forward_lossless<K: Known>(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
        is_alone: bool,
    ) {
        let Switch { ports, .. } = self;
        if !K::IS_NEVER_ENTANGLED && ports.is_entangled() && ports.is_together(ctx.now, is_alone) {
            return self.forward_together(&mut ctx.again(), packet, hint, is_alone);
        }
        let port_queue = match hint.port_queue() {
            Some(known) => known,
            // By far the most of what the link itself says, and settled at one port.
            None if K::IS_NEVER_ENTANGLED && packet.kind == PacketKind::Credit => {
                let credit = Credit::from_packet(packet);
                return self.ports.on_credit_apart(credit, ctx.now, &ctx.world.rules, &mut ctx.wire());
            }
            None => match self.hinted_port_queue(ctx, packet, hint) {
                Some(decided) => decided,
                None if packet.is_of_the_link() => return self.on_link_signal(&mut ctx.again(), packet),
                None => return self.forward_lossless_without_hint(&mut ctx.again(), packet, is_alone),
            },
        };
        let Switch { ports, random, .. } = self;
        let (to, rules) = ((port_queue, is_alone), &ctx.world.rules);
        ports.enqueue_apart::<K>(to, packet, random, At::new(ctx.now, rules, &mut ctx.wire()));
    }

    /// [`Self::forward_lossless`] of a packet that may concern more than the port by which it leaves.
    #[inline(never)]
    fn forward_together(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
        is_alone: bool,
    ) {
        // Loads are those of this instant.
        self.ports.settle(ctx.now, &ctx.world.rules, &mut ctx.wire());
        let Some(port_queue) = self.hinted_port_queue(ctx, packet, hint) else {
            return match packet.is_of_the_link() {
                true => self.on_link_signal(ctx, packet),
                false => self.forward_lossless_without_hint(ctx, packet, is_alone),
            };
        };
        let Switch { ports, random, .. } = self;
        let (to, rules) = ((port_queue, is_alone), &ctx.world.rules);
        ports.enqueue_together(to, packet, random, At::new(ctx.now, rules, &mut ctx.wire()));
    }

    /// [`Self::forward_lossless`] of a packet without a hint.
    #[inline(never)]
    fn forward_lossless_without_hint(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        is_alone: bool,
    ) {
        let port_queue = self.choose_port_queue(ctx, packet);
        let Switch { ports, random, .. } = self;
        ports.enqueue_lossless::<Anything>(
            (port_queue, is_alone),
            packet,
            random,
            At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()),
        );
    }

    /// How a packet leaves whose port is not known yet.
    #[inline(never)]
    pub(crate) fn choose_port_queue(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) -> PortQueue {
        let port = self.choose(ctx, &ctx.world.forwarding, packet);
        self.ports.port_queue(port, packet, &ctx.world.rules)
    }

    /// The port that a packet takes by these routes.
    #[inline(always)]
    pub(crate) fn choose(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        forwarding: &Forwarding,
        packet: &mut Packet,
    ) -> PortId {
        match forwarding.is_minimal() {
            true => self.choose_minimal(ctx, forwarding, packet),
            false => self.choose_beyond(ctx, forwarding, packet, header_of(ctx.world, packet)),
        }
    }

    /// The same of a packet that does not take a minimal port of each switch.
    #[inline(always)]
    fn choose_beyond(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        forwarding: &Forwarding,
        packet: &mut Packet,
        header: Header,
    ) -> PortId {
        let place = Place { here: ctx.id, row: self.row };
        let Switch { ports, path_selector, draws, protocols, .. } = self;
        let mut view = PortsAt { ports, reports: protocols.reports.as_deref(), ctx: ctx.again() };
        let hop =
            path_selector.onward(PacketContext { forwarding, place, header: &header }, &mut view, draws);
        take(packet, hop)
    }

    /// [`Self::choose_among`] of data that are decided on beyond minimal ports.
    #[inline(never)]
    fn decide_on_way(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) -> PortId {
        let header = data_header_of(ctx.world, packet);
        self.choose_beyond(ctx, &ctx.world.forwarding, packet, header)
    }

    /// The minimal port that a packet takes.
    #[inline(always)]
    fn choose_minimal(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        forwarding: &Forwarding,
        packet: &mut Packet,
    ) -> PortId {
        let world = ctx.world;
        let Switch { ports, path_selector, draws, .. } = self;
        let candidates = forwarding.table().candidates_in_row(self.row, packet.dst);
        if let [only] = *candidates.ports {
            return only;
        }
        let view = PortsAt { ports, reports: None, ctx: ctx.again() };
        let (src, dst) = (packet.src, packet.dst);
        let tags = move || forwarding.tags(src, dst);
        let hop = path_selector.port(|| header_of(world, packet), candidates, view, tags, draws);
        take(packet, hop)
    }

    #[inline(always)]
    pub(crate) fn enqueue(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &mut Packet,
    ) {
        let Switch { ports, random, .. } = self;
        let fate = ports.enqueue(port, packet, random, At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()));
        if fate == Fate::Returned {
            self.send_back(&mut ctx.again(), packet);
        }
    }

    /// Sends the header of a packet that goes no further back to the packet's source.
    #[inline(never)]
    pub(crate) fn send_back(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) {
        if self.has_lost(ctx.world, packet.dst) {
            return self.discard(ctx, packet);
        }
        let port = self.choose_specially(ctx, packet);
        let Switch { ports, random, .. } = self;
        ports.enqueue(port, packet, random, At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()));
    }

    /// Attaches hints to packets that say how they leave, where that depends on the packet alone.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, world: &World, id: NodeId, messages: impl Unhandled<World>) {
        self.ports.prefetch_first();
        match self.path_selector.fast_path() {
            FastPath::Hash => self.prepare_hashed(world, messages),
            FastPath::Label => self.prepare_labelled(world, messages),
            FastPath::Spray | FastPath::Decide | FastPath::Run | FastPath::ByRole => {
                self.prepare_drawn(world, messages)
            }
            FastPath::Named => self.prepare_named(world, id, messages),
            FastPath::Detour => self.prepare_detours(world, id, messages),
            FastPath::None => messages.annotate(|_| NextHopHint::NONE),
        }
    }

    #[inline(never)]
    fn prepare_hashed(&mut self, world: &World, messages: impl Unhandled<World>) {
        let Switch { ports, path_selector, row, next_hops, .. } = self;
        let Some(next_hops) = next_hops.for_batch() else {
            let ways = Ways::of(self, world);
            return messages.annotate(|message| {
                passing(message).map_or(NextHopHint::NONE, |packet| ways.hashed(packet))
            });
        };
        next_hops.count_lookups(messages.count());
        messages.annotate(|message| {
            let Some(packet) = passing(message) else { return NextHopHint::NONE };
            let cached = next_hops.of(packet, |packet| CachedHop::hashed(world, path_selector, *row, packet));
            cached.port_queue.hint(packet, ports, world)
        });
    }

    #[inline(never)]
    fn prepare_labelled(&mut self, world: &World, messages: impl Unhandled<World>) {
        let ways = Ways::of(self, world);
        messages.annotate(|message| match passing(message) {
            Some(packet) if packet.is_data() => ways.labelled(packet, packet.tag),
            Some(packet) => ways.of_control(packet),
            None => NextHopHint::NONE,
        });
    }

    #[inline(never)]
    fn prepare_drawn(&mut self, world: &World, messages: impl Unhandled<World>) {
        let Switch { ports, path_selector, row, next_hops, .. } = self;
        let (next_hops, routes) = (next_hops.all(), world.forwarding.table().in_row(*row));
        let queue = world.rules.only_data_queue();
        messages.annotate(|message| {
            if let Message::Packet(packet) = message
                && packet.is_data()
            {
                return match (routes.only_port(packet.dst), queue) {
                    (Ok(port), Some(queue)) => NextHopHint::of(PortQueue::new(port, queue)),
                    (Ok(port), None) => NextHopHint::of(ports.port_queue(port, packet, &world.rules)),
                    (Err(set), _) => NextHopHint::among(set),
                };
            }
            let Some(packet) = passing(message) else { return NextHopHint::NONE };
            let cached = next_hops.of(packet, |packet| CachedHop::hashed(world, path_selector, *row, packet));
            cached.port_queue.hint(packet, ports, world)
        });
    }

    #[inline(never)]
    fn prepare_named(&mut self, world: &World, id: NodeId, messages: impl Unhandled<World>) {
        let Switch { ports, path_selector, row, next_hops, .. } = self;
        let place = Place { here: id, row: *row };
        let find = |packet: &Packet| CachedHop::named(world, path_selector, place, packet);
        let Some(next_hops) = next_hops.for_batch() else {
            return messages.annotate(|message| {
                passing(message)
                    .map_or(NextHopHint::NONE, |packet| find(packet).port_queue.hint(packet, ports, world))
            });
        };
        next_hops.count_lookups(messages.count());
        messages.annotate(|message| {
            let Some(packet) = passing(message) else { return NextHopHint::NONE };
            next_hops.of(packet, find).port_queue.hint(packet, ports, world)
        });
    }

    #[inline(never)]
    fn prepare_detours(&mut self, world: &World, id: NodeId, messages: impl Unhandled<World>) {
        let place = Place { here: id, row: self.row };
        match self.path_selector.on_detours(&world.forwarding, place) {
            Some(on_detours) if !on_detours.may_decide() && world.rules.only_data_queue().is_none() => {
                self.annotate_detours(world, messages, |packet| {
                    let hop = on_detours.undecided_hop(ends_of(packet), packet.tag, || packet.seen_by_hash());
                    Some((hop, None))
                });
            }
            on_detours => {
                let queue = world.rules.only_data_queue();
                self.annotate_detours(world, messages, |packet| {
                    let on_detours = on_detours.as_ref()?;
                    let hop = on_detours.hop(ends_of(packet), packet.tag, || packet.seen_by_hash())?;
                    Some((hop, queue))
                });
            }
        }
    }

    /// Attaches hints where data are decided on at their first switches. `hop`: how data go on behind their first switch and by which queue, if they have only one; none where they are decided on.
    #[inline(always)]
    fn annotate_detours(
        &self,
        world: &World,
        messages: impl Unhandled<World>,
        hop: impl Fn(&Packet) -> Option<(Hop, Option<u16>)>,
    ) {
        let ways = Ways::of(self, world);
        messages.annotate(|message| {
            let Some(packet) = passing(message) else { return NextHopHint::NONE };
            if !packet.is_data() {
                // It echoes the tag of its data, which few packets of the flow share: a cache would seldom know it.
                return ways.of_control(packet);
            }
            if packet.trail.hops() <= 1 {
                return NextHopHint::DECIDED;
            }
            let Some((hop, queue)) = hop(packet) else { return NextHopHint::DECIDED };
            let port = take(packet, hop);
            match queue {
                Some(queue) => NextHopHint::of(PortQueue::new(port, queue)),
                None => NextHopHint::of(ways.ports.data_port_queue(port, packet, &world.rules)),
            }
        });
    }

    /// Attaches hints where a protocol has a say in routes, as far as [it lets](TagReading) tags be read.
    #[inline(never)]
    pub(crate) fn prepare_read(&mut self, world: &World, messages: impl Unhandled<World>) {
        self.ports.prefetch_first();
        let hashes_others = self.path_selector.fast_path().hashes_others();
        let Some(TagReading { label, hashed }) = at_switches::reads(world).filter(|_| hashes_others) else {
            return messages.annotate(|message| match passing(message) {
                Some(_) => NextHopHint::OPEN,
                None => NextHopHint::NONE,
            });
        };
        let Switch { ports, path_selector, row, next_hops, .. } = self;
        let (next_hops, routes) = (next_hops.all(), world.forwarding.table().in_row(*row));
        let ways = Ways::new(&world.rules, ports, path_selector, routes);
        messages.annotate(|message| {
            let Some(packet) = passing(message) else { return NextHopHint::NONE };
            let tag = packet.tag;
            if packet.is_data() {
                let Some(label) = label else { return NextHopHint::OPEN };
                if packet.trail.hops() > 1 {
                    return ways.labelled(packet, tag & label);
                }
                // What its first switch will write is not known yet.
                let several = ways.routes.only_port(packet.dst).err();
                return several.map_or(NextHopHint::OPEN, NextHopHint::among);
            }
            if !is_of_host(packet.kind) {
                return NextHopHint::OPEN;
            }
            packet.tag &= hashed;
            let cached =
                next_hops.of(packet, |packet| CachedHop::hashed(world, ways.path_selector, *row, packet));
            let hint = cached.port_queue.hint(packet, ways.ports, world);
            packet.tag = tag;
            hint
        });
    }

    /// How a packet leaves by its hint, if it has one.
    #[inline(always)]
    pub(crate) fn hinted_port_queue(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
    ) -> Option<PortQueue> {
        if let Some(known) = hint.port_queue() {
            return Some(known);
        }
        let port = self.choose_among(&mut ctx.again(), packet, hint.set()?);
        let rules = &ctx.world.rules;
        Some(match rules.only_data_queue() {
            Some(queue) => PortQueue::new(port, queue),
            None => self.ports.data_port_queue(port, packet, rules),
        })
    }

    /// The port of a data packet that draws or decides on one of a set: that happens in the order in which packets come.
    #[inline(never)]
    fn choose_among(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        set: u32,
    ) -> PortId {
        match self.path_selector.fast_path() {
            FastPath::Spray => self.draw_port(ctx, packet, set),
            FastPath::Decide => self.decide_on_packet(ctx, packet, set),
            FastPath::Run => self.decide_on_run(ctx, packet, set),
            FastPath::Detour => self.decide_on_way(ctx, packet),
            _ => self.choose_by_role(ctx, packet, set),
        }
    }

    /// [`Self::choose_among`] where a port is drawn.
    #[inline(never)]
    fn draw_port(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        set: u32,
    ) -> PortId {
        let Switch { path_selector, draws, row, .. } = self;
        let several = ctx.world.forwarding.table().set(*row, set);
        let port = path_selector.draw(packet.seen_by_hash(), several, draws);
        packet.note_port(port);
        port
    }

    /// [`Self::choose_among`] where each packet is decided on.
    #[inline(never)]
    fn decide_on_packet(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        set: u32,
    ) -> PortId {
        let world = ctx.world;
        let Switch { ports, path_selector, draws, row, .. } = self;
        let candidates = Candidates { ports: world.forwarding.table().set(*row, set), set };
        let view = PortsAt { ports, reports: None, ctx: ctx.again() };
        let hop = path_selector.decided_each(header_of(world, packet), candidates, view, draws);
        take(packet, hop)
    }

    /// [`Self::choose_among`] where each run of a flow's packets is decided on.
    #[inline(never)]
    fn decide_on_run(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        set: u32,
    ) -> PortId {
        let world = ctx.world;
        let Switch { ports, path_selector, draws, row, .. } = self;
        let candidates = Candidates { ports: world.forwarding.table().set(*row, set), set };
        let view = PortsAt { ports, reports: None, ctx: ctx.again() };
        let key = FlowKey { src: packet.src, flow: packet.flow };
        let payload = payload_of(world, packet);
        let hop = path_selector.decided_in_run(
            (key, payload),
            || header_of(world, packet),
            candidates,
            view,
            draws,
        );
        take(packet, hop)
    }

    /// [`Self::choose_among`] otherwise.
    #[inline(never)]
    fn choose_by_role(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        set: u32,
    ) -> PortId {
        let world = ctx.world;
        let Switch { ports, path_selector, draws, row, .. } = self;
        let candidates = Candidates { ports: world.forwarding.table().set(*row, set), set };
        let view = PortsAt { ports, reports: None, ctx: ctx.again() };
        let (src, dst) = (packet.src, packet.dst);
        let tags = move || world.forwarding.tags(src, dst);
        let hop = path_selector.decided(header_of(world, packet), candidates, view, tags, draws);
        take(packet, hop)
    }
}

/// What hints are computed from without the cache.
struct Ways<'a> {
    rules: &'a Rules,
    /// [`Rules::only_data_queue`].
    data_queue: Option<u16>,
    /// [`Rules::only_control_queue`].
    control_queue: Option<u16>,
    ports: &'a Ports,
    path_selector: &'a SwitchPathSelector,
    routes: InRow<'a>,
}

impl<'a> Ways<'a> {
    fn of(switch: &'a Switch, world: &'a World) -> Self {
        let Switch { ports, path_selector, row, .. } = switch;
        let (rules, routes) = (&world.rules, world.forwarding.table().in_row(*row));
        Ways::new(rules, ports, path_selector, routes)
    }

    fn new(
        rules: &'a Rules,
        ports: &'a Ports,
        path_selector: &'a SwitchPathSelector,
        routes: InRow<'a>,
    ) -> Self {
        let (data_queue, control_queue) = (rules.only_data_queue(), rules.only_control_queue());
        Ways { rules, data_queue, control_queue, ports, path_selector, routes }
    }

    /// Of a packet whose hash says its port.
    #[inline(always)]
    fn hashed(&self, packet: &mut Packet) -> NextHopHint {
        let port = self.port_of_hash(packet, note_choice);
        self.leaving_by(port, packet, self.rules.only_queue(packet.kind))
    }

    /// Of a control packet whose hash says its port.
    #[inline(always)]
    fn of_control(&self, packet: &mut Packet) -> NextHopHint {
        let port = self.port_of_hash(packet, |_, _| {});
        self.leaving_by(port, packet, self.control_queue)
    }

    /// The port that a packet's hash says. `note`: of data that could have taken others.
    #[inline(always)]
    fn port_of_hash(&self, packet: &mut Packet, note: impl FnOnce(&mut Packet, PortId)) -> PortId {
        match self.routes.only_port(packet.dst) {
            Ok(port) => port,
            Err(set) => {
                let port = self.path_selector.port_of_hash(packet.seen_by_hash(), self.routes.several(set));
                note(packet, port);
                port
            }
        }
    }

    /// Of a data packet whose port a label says.
    #[inline(always)]
    fn labelled(&self, packet: &mut Packet, label: u32) -> NextHopHint {
        let port = match self.routes.only_port(packet.dst) {
            Ok(port) => port,
            Err(set) => {
                let port = self.path_selector.labelled(label, self.routes.several(set));
                packet.note_port(port);
                port
            }
        };
        NextHopHint::of(match self.data_queue {
            Some(queue) => PortQueue::new(port, queue),
            None => self.ports.data_port_queue(port, packet, self.rules),
        })
    }

    /// Of a packet that leaves by a port, in a queue that is known or the one that the rules say.
    #[inline(always)]
    fn leaving_by(&self, port: PortId, packet: &Packet, queue: Option<u16>) -> NextHopHint {
        NextHopHint::of(match queue {
            Some(queue) => PortQueue::new(port, queue),
            None => self.ports.port_queue(port, packet, self.rules),
        })
    }
}

/// The hosts between which a packet goes.
#[inline(always)]
fn ends_of(packet: &Packet) -> (HostId, HostId) {
    (packet.src, packet.dst)
}

/// The packet that a message is, if it goes on to another node.
#[inline(always)]
pub(crate) fn passing(message: &mut Message) -> Option<&mut Packet> {
    match message {
        Message::Packet(packet) if !packet.is_of_the_link() => Some(packet),
        _ => None,
    }
}
