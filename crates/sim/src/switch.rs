//! A switch: route, enqueue, send.

mod conga;
mod conweave;
mod flowcut;
mod foresight;
pub(crate) mod gauge;
mod unreachable;

use netloom_engine::{Scheduler, UNFORESEEN};
use netloom_fabric::{CongestionPoint, Credit, Exit, Fate, Flags, Packet, PacketKind, Ports};
use netloom_record::Passage;
use netloom_routing::{Carries, Decider, FlowKey, Forwarding, Header, Hop, Notice, Routing, Row, Tag, View};
use netloom_topology::{ChannelId, PortId};
use netloom_units::random::Stream;
use netloom_units::{Bytes, Time, fetch};

use crate::ctx::Ctx;
use crate::model::{Message, World};
use crate::reports::Reports;
use crate::sampler::Sampler;
pub(crate) use conweave::Held;
pub(crate) use foresight::Trains;
pub(crate) use gauge::Gauge;
pub(crate) use unreachable::Told;

/// An output-queued switch.
#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) ports: Ports,
    pub(crate) decider: Decider,
    /// What the decider draws from.
    pub(crate) draws: Stream,
    /// Its row of the route tables.
    pub(crate) row: Row,
    pub(crate) trains: Trains,
    /// How often routes have changed by what it knows.
    pub(crate) epoch: usize,
    /// Decides on ECN marks.
    pub(crate) random: Stream,
    pub(crate) points: CongestionPoints,
    /// Congestion notifications, acknowledgements and stop signals made here.
    pub(crate) control_sent: u64,
    /// Acknowledgements that ended here.
    pub(crate) control_received: u64,
    pub(crate) duties: Duties,
    /// Packets held back until those before them have come.
    pub(crate) held: Held,
    pub(crate) sampler: Option<Box<Sampler>>,
    pub(crate) told: Told,
    /// The gaps between the packets that come, where somebody asks.
    pub(crate) gauge: Option<Box<Gauge>>,
    /// What it and its group say about their global channels, under UGAL-G.
    pub(crate) reports: Option<Box<Reports>>,
    /// Last time a packet came.
    pub(crate) last_event: Time,
}

/// What a switch does besides routing, queueing and sending. Each has its own handler of events, so that a packet is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duties {
    /// Nothing, and a packet without room is dropped.
    Plain,
    /// Nothing, and a packet without room is trimmed.
    Trims,
    /// It obeys flow control, and that is all.
    Lossless,
    /// It may obey flow control, takes samples or traces, looks at gaps, notifies of congestion, has links that are cut under flow control, tells of cut links, counts flowcuts, or knows ways other than minimal ones or
    /// other ones at other times.
    Special,
}

/// The congestion points of a switch, one per output queue. Empty without QCN.
#[derive(Clone, Debug)]
pub(crate) struct CongestionPoints(Vec<CongestionPoint>);

impl CongestionPoints {
    pub(crate) fn new(world: &World, ports: usize) -> Self {
        let points = world.fabric.options.qcn.as_ref().map(|config| {
            let point = || CongestionPoint::new(config);
            std::iter::repeat_with(point).take(ports * world.rules.data_lanes()).collect()
        });
        CongestionPoints(points.unwrap_or_default())
    }

    fn at(&mut self, world: &World, ports: &Ports, port: PortId, packet: &Packet) -> &mut CongestionPoint {
        let lane = ports.data_lane_out(port, packet, &world.rules);
        &mut self.0[usize::from(port) * world.rules.data_lanes() + lane]
    }
}

impl Switch {
    /// Its turn is the next one: what it will touch is fetched.
    #[inline(always)]
    pub(crate) fn expect(&self) {
        let Switch { ports, trains, .. } = self;
        ports.fetch();
        trains.fetch();
    }

    /// Its turn comes soon: what it will touch first is fetched.
    #[inline(always)]
    pub(crate) fn approach(&self) {
        let Switch { ports, decider, row, duties, last_event, .. } = self;
        fetch(ports);
        fetch(decider);
        fetch(row);
        fetch(duties);
        fetch(last_event);
    }

    /// Sends a packet on, where duties are plain; `TRIMS` says how plain.
    #[inline(always)]
    pub(crate) fn forward<const TRIMS: bool>(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        foreseen: u32,
    ) {
        if TRIMS {
            let exit = self.exit(ctx, packet, foreseen);
            return self.enqueue(ctx, exit.port, packet);
        }
        let Some(exit) = self.foreseen_exit(ctx.world, packet, foreseen) else {
            return self.forward_unforeseen(ctx, packet);
        };
        let Switch { ports, random, .. } = self;
        // Where ways are foreseen nobody asks how long queues are.
        ports.enqueue_or_drop(exit, packet, ctx.now, &ctx.world.rules, random, &mut ctx.unwatched_wire());
    }

    /// [`Self::forward`] of a packet whose way has not been foreseen, as it may depend on how long queues are.
    #[inline(never)]
    fn forward_unforeseen(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) {
        let exit = self.choose_exit(ctx, packet);
        let Switch { ports, random, .. } = self;
        ports.enqueue_or_drop(exit, packet, ctx.now, &ctx.world.rules, random, &mut ctx.wire());
    }

    /// The same under flow control.
    #[inline(always)]
    pub(crate) fn forward_lossless(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        foreseen: u32,
    ) {
        if foreseen == UNFORESEEN && packet.is_of_the_link() {
            return self.obey(ctx, packet);
        }
        // Loads are those of this instant.
        self.ports.settle_if_ordered(ctx.now, &ctx.world.rules, &mut ctx.wire());
        let exit = self.exit(ctx, packet, foreseen);
        let Switch { ports, random, .. } = self;
        ports.enqueue_lossless(exit, packet, ctx.now, &ctx.world.rules, random, &mut ctx.wire());
    }

    /// A timer fires.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, timer: &Message) {
        if self.sampler.is_some() {
            self.sample(ctx);
        }
        match *timer {
            Message::Flush { src, flow } => self.on_flush(ctx, FlowKey { src, flow }),
            Message::Link { port, is_cut } => self.on_link(ctx, port, is_cut),
            Message::Grant(credit) => {
                self.ports.settle_if_ordered(ctx.now, &ctx.world.rules, &mut ctx.wire());
                self.ports.on_credit(credit, ctx.now, &ctx.world.rules, &mut ctx.wire());
            }
            _ => unreachable!("switches set no other timers"),
        }
    }

    /// How a packet leaves: as was foreseen, if anything was.
    #[inline(always)]
    fn exit(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        foreseen: u32,
    ) -> Exit {
        match self.foreseen_exit(ctx.world, packet, foreseen) {
            Some(exit) => exit,
            None => self.choose_exit(ctx, packet),
        }
    }

    /// How a packet leaves that takes a minimal port.
    #[inline(never)]
    fn choose_exit(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) -> Exit {
        let port = self.choose(ctx, &ctx.world.forwarding, packet);
        self.ports.exit(port, packet, &ctx.world.rules)
    }

    /// The minimal port that a packet takes.
    #[inline(always)]
    fn choose(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        forwarding: &Forwarding,
        packet: &mut Packet,
    ) -> PortId {
        let Ctx { world, now, .. } = *ctx;
        let Switch { ports, decider, draws, .. } = self;
        let candidates = forwarding.table().candidates_in_row(self.row, packet.dst);
        if let [only] = *candidates.ports {
            return only;
        }
        let view = PortsAt { ports, reports: None, ctx: ctx.again() };
        let (src, dst) = (packet.src, packet.dst);
        let tags = move || forwarding.tags(src, dst);
        let hop = decider.port(|| header(world, packet), candidates, now, view, tags, draws);
        take(packet, hop)
    }

    /// Does what the neighbour says about the link: stops, goes on, or takes credit. Or notes what it says about its own links.
    #[inline(never)]
    fn obey(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.look_back(ctx, packet);
        if packet.kind == PacketKind::Report {
            if let Some(reports) = &mut self.reports {
                reports.hear(packet);
            }
            return;
        }
        self.last_event = ctx.now;
        self.ports.settle_if_ordered(ctx.now, &ctx.world.rules, &mut ctx.wire());
        if packet.kind == PacketKind::Credit {
            let credit = Credit::from_packet(packet);
            self.ports.on_credit(credit, ctx.now, &ctx.world.rules, &mut ctx.wire());
        } else if packet.kind == PacketKind::Missed {
            self.ports.on_missed(Credit::from_packet(packet), ctx.now, &ctx.world.rules, &mut ctx.wire());
        } else {
            self.ports.on_pause(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
    }

    /// [`Self::forward`] with all that few runs need: samples that are due, congestion notification, flowcuts, and ways other than minimal
    /// ones.
    pub(crate) fn forward_specially(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) {
        if packet.is_of_the_link() {
            return self.obey(ctx, packet);
        }
        self.last_event = ctx.now;
        if !self.told.is_empty() {
            self.meet_cuts(ctx);
        }
        self.look_back(ctx, packet);
        if ctx.world.rules.is_lossless() {
            self.ports.settle_if_ordered(ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
        if !ctx.world.epochs.is_empty() {
            self.take_new_routes(ctx.world, ctx.id, ctx.now);
            if self.has_lost(ctx.world, packet.dst) {
                return self.discard(ctx, packet);
            }
        }
        if packet.kind == PacketKind::Cnm {
            self.learn(ctx.world, ctx.now, packet, packet.ingress, false);
        }
        if packet.kind == PacketKind::FlowAck {
            return self.on_flow_ack(ctx, packet);
        }
        if packet.kind == PacketKind::Word && is_edge_of(ctx.world, ctx.id, packet.dst) {
            return self.hear(ctx, packet);
        }
        let port = match packet.kind {
            PacketKind::Data if self.decider.counts_flight() => self.pass(ctx, packet),
            PacketKind::Data if ctx.world.routing.weaves() => {
                return self.weave(ctx, packet);
            }
            _ => match ctx.world.routing.conga() {
                Some(conga) => self.lead(ctx, conga, packet),
                None => self.choose_specially(ctx, packet),
            },
        };
        if !self.told.is_empty()
            && let Some(kind) = self.must_tell(ctx.world, ctx.now, port, packet)
        {
            if ctx.world.rules.is_lossless() {
                self.ports.let_go(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
            }
            return self.turn_back(ctx, port, packet, kind);
        }
        if ctx.world.fabric.options.qcn.is_some()
            && packet.kind == PacketKind::Data
            && let Some(feedback) = self.sample_queue(ctx, port, packet)
        {
            self.notify(ctx, port, packet, feedback);
        }
        self.enqueue(ctx, port, packet);
    }

    /// The port that a packet takes, among the minimal ones or beyond them.
    fn choose_specially(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) -> PortId {
        let Ctx { world, id, now, .. } = *ctx;
        let forwarding = world.epochs.forwarding(self.epoch, &world.forwarding);
        if forwarding.is_minimal() {
            return self.choose(ctx, forwarding, packet);
        }
        let header = header(world, packet);
        let Switch { ports, decider, draws, reports, .. } = self;
        let mut view = PortsAt { ports, reports: reports.as_deref(), ctx: ctx.again() };
        let hop = decider.onward(forwarding, id, &header, now, &mut view, draws);
        take(packet, hop)
    }

    /// Goes by the routes of `now`. Where its ports have become other ones, what it knew of them is gone.
    fn take_new_routes(&mut self, world: &World, id: u32, now: Time) {
        while world.epochs.begins(self.epoch + 1).is_some_and(|from| from <= now) {
            let table = |epoch| world.epochs.forwarding(epoch, &world.forwarding).table();
            if !table(self.epoch).agrees_at(id, table(self.epoch + 1)) {
                self.decider.forget(&world.routing);
            }
            self.epoch += 1;
            self.row = table(self.epoch).row(id);
        }
    }

    /// Whether routes have led to a host and do no more.
    fn has_lost(&self, world: &World, host: u32) -> bool {
        let table = || world.epochs.forwarding(self.epoch, &world.forwarding).table();
        !world.epochs.is_empty() && table().candidates_in_row(self.row, host).ports.is_empty()
    }

    /// A packet ends here, as no route leads on.
    #[cold]
    fn discard(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if ctx.world.rules.is_lossless() {
            self.ports.let_go(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
        self.ports.discard(packet);
    }

    /// Takes the samples, and makes the reports, that are due up to `now`, when a packet has come.
    #[inline(always)]
    fn look_back(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if self.sampler.is_some() || self.gauge.is_some() || self.reports.is_some() {
            self.sample_and_report(ctx, packet);
        }
    }

    #[inline(never)]
    fn sample_and_report(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if self.sampler.is_some() {
            self.sample(ctx);
            self.trace(ctx.now, packet);
        }
        if let Some(gauge) = self.gauge.as_mut().filter(|_| packet.is_data()) {
            gauge.see(ctx.world, ctx.id, ctx.now, packet);
        }
        if self.reports.is_some() {
            self.report(ctx);
        }
    }

    /// Tells the group about its global channels as they were at the instants that are due up to `now`.
    #[inline(never)]
    fn report(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Switch { ports, reports: Some(reports), .. } = self else { return };
        while let Some(instant) = reports.due(ctx.now) {
            ports.advance(instant, &ctx.world.rules, &mut ctx.wire());
            reports.look(&mut PortsAt { ports, reports: None, ctx: ctx.at(instant) });
            reports.tell(instant, |port| ports.is_cut(port, instant), ctx.out);
        }
    }

    /// Lets the congestion point of the queue that a data packet is about to enter look at it.
    fn sample_queue(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &Packet,
    ) -> Option<u8> {
        let config = ctx.world.fabric.options.qcn.as_ref()?;
        let Switch { ports, points, random, .. } = self;
        let queued = ports.lane_bytes(port, packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        let size = u64::from(packet.size);
        points.at(ctx.world, ports, port, packet).on_arrival(config, size, queued + size, random)
    }

    /// Tells the source of a packet about the congestion that it meets at a port. The notification is here before the packet, so it
    /// goes first where both take the same port.
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "Qcn::check bounds notifications by 65,535 bytes")]
    fn notify(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &Packet,
        feedback: u8,
    ) {
        let Some(config) = &ctx.world.fabric.options.qcn else { return };
        let mut notification = Packet {
            sent: ctx.now,
            src: packet.dst,
            dst: packet.src,
            flow: packet.flow,
            slot: packet.slot,
            seq: packet.seq,
            aux: u32::from(feedback),
            tag: packet.tag,
            size: config.cnm_size.0 as u16,
            kind: PacketKind::Cnm,
            flags: Flags::new(packet.flags.class(), false),
            ..Packet::EMPTY
        };
        self.control_sent += 1;
        self.learn(ctx.world, ctx.now, &notification, port, true);
        if self.has_lost(ctx.world, notification.dst) {
            return self.discard(ctx, &notification);
        }
        let way = self.choose_specially(ctx, &mut notification);
        self.enqueue(ctx, way, &mut notification);
    }

    /// Notes what a congestion notification says about the way to its destination through a port.
    #[expect(clippy::cast_possible_truncation, reason = "has been written from a byte")]
    fn learn(&mut self, world: &World, now: Time, notification: &Packet, port: PortId, is_local: bool) {
        let destination = notification.src;
        let table = world.epochs.forwarding(self.epoch, &world.forwarding).table();
        let candidates = table.candidates_in_row(self.row, destination);
        let notice = Notice { destination, port, feedback: notification.aux as u8, is_local };
        self.decider.on_notice(&notice, candidates.ports, now);
    }

    #[inline(always)]
    fn enqueue(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, port: PortId, packet: &mut Packet) {
        let Switch { ports, random, .. } = self;
        let fate = ports.enqueue(port, packet, ctx.now, &ctx.world.rules, random, &mut ctx.wire());
        if fate == Fate::Returned {
            self.send_back(ctx, packet);
        }
    }

    /// Sends the header of a packet that goes no further back to the packet's source.
    #[inline(never)]
    fn send_back(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) {
        if self.has_lost(ctx.world, packet.dst) {
            return self.discard(ctx, packet);
        }
        let port = self.choose_specially(ctx, packet);
        let Switch { ports, random, .. } = self;
        ports.enqueue(port, packet, ctx.now, &ctx.world.rules, random, &mut ctx.wire());
    }

    #[inline]
    pub(crate) fn advance(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        if self.duties == Duties::Special {
            return self.advance_specially(ctx);
        }
        self.ports.advance(ctx.now, &ctx.world.rules, &mut ctx.wire())
    }

    /// [`Self::advance`] of a switch that may take samples, report, or have something to tell at the moment of a cut.
    fn advance_specially(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        if !self.told.is_empty() {
            self.meet_cuts(&mut ctx.at(ctx.now.saturating_sub(Time(1))));
        }
        if self.sampler.is_some() {
            self.sample(ctx);
        }
        if self.reports.is_some() {
            return self.advance_and_report(ctx);
        }
        let next = self.ports.advance(ctx.now, &ctx.world.rules, &mut ctx.wire());
        match ctx.world.rules.is_lossless() {
            true => next,
            false => next.map(|next| next.min(self.told.next_at(&self.ports))),
        }
    }

    /// Notes that a packet has come.
    fn trace(&mut self, now: Time, packet: &Packet) {
        if let Some(sampler) = &mut self.sampler {
            sampler.see(now, packet);
        }
    }

    /// [`Self::advance`] of a switch that reports, which wants a turn at the next instant at which it may have something to say.
    #[inline(never)]
    fn advance_and_report(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        self.report(&mut ctx.at(ctx.now.saturating_sub(Time(1))));
        let Switch { ports, reports: Some(reports), .. } = self else { return None };
        let next = ports.advance(ctx.now, &ctx.world.rules, &mut ctx.wire());
        let mut view = PortsAt { ports, reports: None, ctx: ctx.again() };
        [next, reports.next_look(&mut view)].into_iter().flatten().min()
    }

    /// Takes the samples that are due up to `now`.
    fn sample(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Switch { ports, sampler: Some(sampler), .. } = self else { return };
        while let Some(instant) = sampler.due(ctx.now) {
            let next = ports.advance(instant, &ctx.world.rules, &mut ctx.wire());
            if sampler.look(ports, instant) && next.is_none() {
                sampler.skip(ctx.now);
            }
        }
    }
}

/// The ports of a switch at an instant, as a decider sees them.
struct PortsAt<'a, S> {
    ports: &'a mut Ports,
    reports: Option<&'a Reports>,
    ctx: Ctx<'a, S>,
}

impl<S: Scheduler<Message>> View for PortsAt<'_, S> {
    #[inline]
    fn load(&mut self, port: PortId) -> u64 {
        self.ports.load(port, self.ctx.now, &self.ctx.world.rules, &mut self.ctx.wire())
    }

    fn waiting(&mut self, port: PortId) -> u64 {
        self.ports.waiting(port, self.ctx.now, &self.ctx.world.rules, &mut self.ctx.wire())
    }

    fn rate(&self, port: PortId) -> u64 {
        let network = &self.ctx.world.network;
        network.channel(network.ports(self.ctx.id)[usize::from(port)]).rate.0
    }

    fn utilisation(&mut self, port: PortId) -> u64 {
        self.ports.utilisation(port, self.ctx.now, &self.ctx.world.rules, &mut self.ctx.wire())
    }

    fn unreturned(&mut self, port: PortId) -> u64 {
        self.ports.unreturned(port, self.ctx.now, &self.ctx.world.rules, &mut self.ctx.wire())
    }

    fn reported(&self, channel: ChannelId) -> u64 {
        self.reports.map_or(0, |reports| reports.of_channel(channel))
    }

    #[cold]
    fn flowlets(&mut self, begun: Vec<(FlowKey, u32)>) {
        hand_in_flowlets(self.ctx.world, self.ctx.id, begun);
    }
}

/// What a switch has counted of flowlets that began there becomes rows, unless its gauge sees more.
pub(crate) fn hand_in_flowlets(world: &World, id: u32, begun: Vec<(FlowKey, u32)>) {
    if !world.gaps.at_switches {
        let rows = begun.into_iter().map(|(FlowKey { src, flow: number }, flowlets)| Passage {
            src,
            flow: world.numbering.flow(number),
            number,
            switch: id,
            flowlets,
            ..Passage::default()
        });
        world.watch.passages.extend(rows);
    }
}

/// Sends a packet on its way.
#[inline(always)]
fn take(packet: &mut Packet, hop: Hop) -> PortId {
    packet.tag = hop.tag.bits();
    note_choice(packet, hop.port);
    hop.port
}

/// Notes the choice of a port in a data packet's fingerprint of its path.
#[inline(always)]
fn note_choice(packet: &mut Packet, port: PortId) {
    if packet.kind == PacketKind::Data {
        note_port(packet, port);
    }
}

/// The same where it is known that these are data.
#[inline(always)]
fn note_port(packet: &mut Packet, port: PortId) {
    packet.aux = (packet.aux.rotate_left(5) ^ u32::from(port)).wrapping_mul(0x9e37_79b1);
}

/// Sizes of what switches tell each other and sources by themselves, whatever the fabric does.
pub(crate) fn signals(routing: &Routing) -> impl Iterator<Item = Bytes> {
    let flowcut = routing.counted_flowcuts().map(|flowcut| [flowcut.ack_size, flowcut.frame_size]);
    flowcut.into_iter().flatten().chain(routing.weaves().then_some(conweave::WORD))
}

/// Whether a host is connected to this switch.
#[inline]
fn is_edge_of(world: &World, id: u32, host: u32) -> bool {
    let table = world.forwarding.table();
    table.edge_switch(table.edge_of(host)) == id
}

/// What routing reads of a packet.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds packets by 65,535 bytes")]
fn header(world: &World, packet: &Packet) -> Header {
    let (carries, payload) = match packet.kind {
        PacketKind::Data => (Carries::Data, u32::from(packet.size) - world.transport.options.header.0 as u32),
        PacketKind::Cnm => (Carries::Notification, 0),
        _ => (Carries::Control, 0),
    };
    Header {
        src: packet.src,
        dst: packet.dst,
        flow: packet.flow,
        tag: Tag::from_bits(packet.tag),
        bytes: u32::from(packet.size),
        payload,
        hops: packet.trail.hops(),
        carries,
    }
}
