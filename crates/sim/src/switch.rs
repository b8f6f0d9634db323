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
use netloom_routing::{
    Carries, FlowKey, Forwarding, Header, Hop, Notice, PacketContext, Routing, Row, SwitchPathSelector, Tag,
    View,
};
use netloom_topology::{ChannelId, PortId};
use netloom_units::random::Stream;
use netloom_units::{Bytes, Time, fetch};

use crate::model::{Channels, Message, World};
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
    pub(crate) decider: SwitchPathSelector,
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
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        foreseen: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        if TRIMS {
            let exit = self.exit(world, id, now, packet, foreseen, out);
            return self.enqueue(world, id, now, exit.port, packet, out);
        }
        let Some(exit) = self.foreseen_exit(world, packet, foreseen) else {
            return self.forward_unforeseen(world, id, now, packet, out);
        };
        let Switch { ports, random, .. } = self;
        // Where ways are foreseen nobody asks how long queues are.
        ports.enqueue_unobserved(exit, packet, now, &world.rules, random, &mut Channels(out));
    }

    /// [`Self::forward`] of a packet whose way has not been foreseen, as it may depend on how long queues are.
    #[inline(never)]
    fn forward_unforeseen(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let exit = self.choose_exit(world, id, now, packet, out);
        let Switch { ports, random, .. } = self;
        ports.enqueue_or_drop(exit, packet, now, &world.rules, random, &mut Channels(out));
    }

    /// The same under flow control.
    #[inline(always)]
    pub(crate) fn forward_lossless(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        foreseen: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        if foreseen == UNFORESEEN && packet.is_of_the_link() {
            return self.obey(world, id, now, packet, out);
        }
        // Loads are those of this instant.
        self.ports.settle_if_ordered(now, &world.rules, &mut Channels(out));
        let exit = self.exit(world, id, now, packet, foreseen, out);
        let Switch { ports, random, .. } = self;
        ports.enqueue_lossless(exit, packet, now, &world.rules, random, &mut Channels(out));
    }

    /// A timer fires.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_timer(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        timer: &Message,
        out: &mut impl Scheduler<Message>,
    ) {
        if self.sampler.is_some() {
            self.sample(world, now, out);
        }
        match *timer {
            Message::Flush { src, flow } => self.on_flush(world, id, now, FlowKey { src, flow }, out),
            Message::Link { port, is_cut } => self.on_link(world, id, now, port, is_cut, out),
            Message::Grant(credit) => {
                self.ports.settle_if_ordered(now, &world.rules, &mut Channels(out));
                self.ports.on_credit(credit, now, &world.rules, &mut Channels(out));
            }
            _ => unreachable!("switches set no other timers"),
        }
    }

    /// How a packet leaves: as was foreseen, if anything was.
    #[inline(always)]
    fn exit(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        foreseen: u32,
        out: &mut impl Scheduler<Message>,
    ) -> Exit {
        match self.foreseen_exit(world, packet, foreseen) {
            Some(exit) => exit,
            None => self.choose_exit(world, id, now, packet, out),
        }
    }

    /// How a packet leaves that takes a minimal port.
    #[inline(never)]
    fn choose_exit(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) -> Exit {
        let port = self.choose(world, &world.forwarding, id, now, packet, out);
        self.ports.exit(port, packet, &world.rules)
    }

    /// The minimal port that a packet takes.
    #[inline(always)]
    fn choose(
        &mut self,
        world: &World,
        forwarding: &Forwarding,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) -> PortId {
        let Switch { ports, decider, draws, .. } = self;
        let candidates = forwarding.table().candidates_in_row(self.row, packet.dst);
        if let [only] = *candidates.ports {
            return only;
        }
        let view = PortsAt { ports, world, id, now, reports: None, out };
        let (src, dst) = (packet.src, packet.dst);
        let tags = move || forwarding.tags(src, dst);
        let hop = decider.port(|| header(world, packet), candidates, view, tags, draws);
        take(packet, hop)
    }

    /// Does what the neighbour says about the link: stops, goes on, or takes credit. Or notes what it says about its own links.
    #[inline(never)]
    fn obey(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        self.look_back(world, id, now, packet, out);
        if packet.kind == PacketKind::Report {
            if let Some(reports) = &mut self.reports {
                reports.hear(packet);
            }
            return;
        }
        self.last_event = now;
        self.ports.settle_if_ordered(now, &world.rules, &mut Channels(out));
        if packet.kind == PacketKind::Credit {
            let credit = Credit::from_packet(packet);
            self.ports.on_credit(credit, now, &world.rules, &mut Channels(out));
        } else if packet.kind == PacketKind::Missed {
            self.ports.on_missed(Credit::from_packet(packet), now, &world.rules, &mut Channels(out));
        } else {
            self.ports.on_pause(packet, now, &world.rules, &mut Channels(out));
        }
    }

    /// [`Self::forward`] with all that few runs need: samples that are due, congestion notification, flowcuts, and ways other than minimal
    /// ones.
    pub(crate) fn forward_specially(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        if packet.is_of_the_link() {
            return self.obey(world, id, now, packet, out);
        }
        self.last_event = now;
        if !self.told.is_empty() {
            self.meet_cuts(world, id, now, out);
        }
        self.look_back(world, id, now, packet, out);
        if world.rules.is_lossless() {
            self.ports.settle_if_ordered(now, &world.rules, &mut Channels(out));
        }
        if !world.epochs.is_empty() {
            self.take_new_routes(world, id, now);
            if self.has_lost(world, packet.dst) {
                return self.discard(world, now, packet, out);
            }
        }
        if packet.kind == PacketKind::Cnm {
            self.learn(world, now, packet, packet.ingress, false);
        }
        if packet.kind == PacketKind::FlowAck {
            return self.on_flow_ack(world, id, now, packet, out);
        }
        if packet.kind == PacketKind::Word && is_edge_of(world, id, packet.dst) {
            return self.hear(world, now, packet, out);
        }
        let port = match packet.kind {
            PacketKind::Data if self.decider.counts_flight() => self.pass(world, id, now, packet, out),
            PacketKind::Data if world.routing.weaves() => {
                return self.weave(world, id, now, packet, out);
            }
            _ => match world.routing.conga() {
                Some(conga) => self.lead(conga, world, id, now, packet, out),
                None => self.choose_specially(world, id, now, packet, out),
            },
        };
        if !self.told.is_empty()
            && let Some(kind) = self.must_tell(world, now, port, packet)
        {
            if world.rules.is_lossless() {
                self.ports.let_go(packet, now, &world.rules, &mut Channels(out));
            }
            return self.turn_back(world, id, now, port, packet, kind, out);
        }
        if world.fabric.options.qcn.is_some()
            && packet.kind == PacketKind::Data
            && let Some(feedback) = self.sample_queue(world, now, port, packet, out)
        {
            self.notify(world, id, now, port, packet, feedback, out);
        }
        self.enqueue(world, id, now, port, packet, out);
    }

    /// The port that a packet takes, among the minimal ones or beyond them.
    fn choose_specially(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) -> PortId {
        let forwarding = world.epochs.forwarding(self.epoch, &world.forwarding);
        if forwarding.is_minimal() {
            return self.choose(world, forwarding, id, now, packet, out);
        }
        let header = header(world, packet);
        let Switch { ports, decider, draws, reports, .. } = self;
        let mut view = PortsAt { ports, world, id, now, reports: reports.as_deref(), out };
        let hop = decider.onward(PacketContext { forwarding, here: id, header: &header }, &mut view, draws);
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
    fn discard(&mut self, world: &World, now: Time, packet: &Packet, out: &mut impl Scheduler<Message>) {
        if world.rules.is_lossless() {
            self.ports.let_go(packet, now, &world.rules, &mut Channels(out));
        }
        self.ports.discard(packet);
    }

    /// Takes the samples, and makes the reports, that are due up to `now`, when a packet has come.
    #[inline(always)]
    fn look_back(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        if self.sampler.is_some() || self.gauge.is_some() || self.reports.is_some() {
            self.sample_and_report(world, id, now, packet, out);
        }
    }

    #[inline(never)]
    fn sample_and_report(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        if self.sampler.is_some() {
            self.sample(world, now, out);
            self.trace(now, packet);
        }
        if let Some(gauge) = self.gauge.as_mut().filter(|_| packet.is_data()) {
            gauge.see(world, id, now, packet);
        }
        if self.reports.is_some() {
            self.report(world, id, now, out);
        }
    }

    /// Tells the group about its global channels as they were at the instants that are due up to `now`.
    #[inline(never)]
    fn report(&mut self, world: &World, id: u32, now: Time, out: &mut impl Scheduler<Message>) {
        let Switch { ports, reports: Some(reports), .. } = self else { return };
        while let Some(instant) = reports.due(now) {
            ports.advance(instant, &world.rules, &mut Channels(out));
            reports.look(&mut PortsAt { ports, world, id, now: instant, reports: None, out });
            reports.tell(instant, |port| ports.is_cut(port, instant), out);
        }
    }

    /// Lets the congestion point of the queue that a data packet is about to enter look at it.
    fn sample_queue(
        &mut self,
        world: &World,
        now: Time,
        port: PortId,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) -> Option<u8> {
        let config = world.fabric.options.qcn.as_ref()?;
        let Switch { ports, points, random, .. } = self;
        let queued = ports.lane_bytes(port, packet, now, &world.rules, &mut Channels(out));
        let size = u64::from(packet.size);
        points.at(world, ports, port, packet).on_arrival(config, size, queued + size, random)
    }

    /// Tells the source of a packet about the congestion that it meets at a port. The notification is here before the packet, so it
    /// goes first where both take the same port.
    #[expect(clippy::too_many_arguments, reason = "the parts of one notification")]
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "Qcn::check bounds notifications by 65,535 bytes")]
    fn notify(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        port: PortId,
        packet: &Packet,
        feedback: u8,
        out: &mut impl Scheduler<Message>,
    ) {
        let Some(config) = &world.fabric.options.qcn else { return };
        let mut notification = Packet {
            sent: now,
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
        self.learn(world, now, &notification, port, true);
        if self.has_lost(world, notification.dst) {
            return self.discard(world, now, &notification, out);
        }
        let way = self.choose_specially(world, id, now, &mut notification, out);
        self.enqueue(world, id, now, way, &mut notification, out);
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
    fn enqueue(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        port: PortId,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let Switch { ports, random, .. } = self;
        let fate = ports.enqueue(port, packet, now, &world.rules, random, &mut Channels(out));
        if fate == Fate::Returned {
            self.send_back(world, id, now, packet, out);
        }
    }

    /// Sends the header of a packet that goes no further back to the packet's source.
    #[inline(never)]
    fn send_back(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        if self.has_lost(world, packet.dst) {
            return self.discard(world, now, packet, out);
        }
        let port = self.choose_specially(world, id, now, packet, out);
        let Switch { ports, random, .. } = self;
        ports.enqueue(port, packet, now, &world.rules, random, &mut Channels(out));
    }

    #[inline]
    pub(crate) fn advance(
        &mut self,
        world: &World,
        id: u32,
        until: Time,
        out: &mut impl Scheduler<Message>,
    ) -> Option<Time> {
        if self.duties == Duties::Special {
            return self.advance_specially(world, id, until, out);
        }
        self.ports.advance(until, &world.rules, &mut Channels(out))
    }

    /// [`Self::advance`] of a switch that may take samples, report, or have something to tell at the moment of a cut.
    fn advance_specially(
        &mut self,
        world: &World,
        id: u32,
        until: Time,
        out: &mut impl Scheduler<Message>,
    ) -> Option<Time> {
        if !self.told.is_empty() {
            self.meet_cuts(world, id, until.saturating_sub(Time(1)), out);
        }
        if self.sampler.is_some() {
            self.sample(world, until, out);
        }
        if self.reports.is_some() {
            return self.advance_and_report(world, id, until, out);
        }
        let next = self.ports.advance(until, &world.rules, &mut Channels(out));
        match world.rules.is_lossless() {
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
    fn advance_and_report(
        &mut self,
        world: &World,
        id: u32,
        until: Time,
        out: &mut impl Scheduler<Message>,
    ) -> Option<Time> {
        self.report(world, id, until.saturating_sub(Time(1)), out);
        let Switch { ports, reports: Some(reports), .. } = self else { return None };
        let next = ports.advance(until, &world.rules, &mut Channels(out));
        let mut view = PortsAt { ports, world, id, now: until, reports: None, out };
        [next, reports.next_look(&mut view)].into_iter().flatten().min()
    }

    /// Takes the samples that are due up to `now`.
    fn sample(&mut self, world: &World, now: Time, out: &mut impl Scheduler<Message>) {
        let Switch { ports, sampler: Some(sampler), .. } = self else { return };
        while let Some(instant) = sampler.due(now) {
            let next = ports.advance(instant, &world.rules, &mut Channels(out));
            if sampler.look(ports, instant) && next.is_none() {
                sampler.skip(now);
            }
        }
    }
}

/// The ports of a switch at an instant, as a decider sees them.
struct PortsAt<'a, S> {
    ports: &'a mut Ports,
    world: &'a World,
    id: u32,
    now: Time,
    reports: Option<&'a Reports>,
    out: &'a mut S,
}

impl<S: Scheduler<Message>> View for PortsAt<'_, S> {
    fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn load(&mut self, port: PortId) -> u64 {
        self.ports.load(port, self.now, &self.world.rules, &mut Channels(self.out))
    }

    fn waiting(&mut self, port: PortId) -> u64 {
        self.ports.waiting(port, self.now, &self.world.rules, &mut Channels(self.out))
    }

    fn rate(&self, port: PortId) -> u64 {
        let network = &self.world.network;
        network.channel(network.ports(self.id)[usize::from(port)]).rate.0
    }

    fn utilisation(&mut self, port: PortId) -> u64 {
        self.ports.utilisation(port, self.now, &self.world.rules, &mut Channels(self.out))
    }

    fn unreturned(&mut self, port: PortId) -> u64 {
        self.ports.unreturned(port, self.now, &self.world.rules, &mut Channels(self.out))
    }

    fn reported(&self, channel: ChannelId) -> u64 {
        self.reports.map_or(0, |reports| reports.of_channel(channel))
    }

    #[cold]
    fn flowlets(&mut self, begun: Vec<(FlowKey, u32)>) {
        hand_in_flowlets(self.world, self.id, begun);
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
