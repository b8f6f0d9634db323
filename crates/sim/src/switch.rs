//! A switch: route, enqueue, send.

use netloom_engine::{Scheduler, Stream};
use netloom_fabric::{Credit, Fate, Moment, Packet, PacketKind, Ports};
use netloom_routing::{Crossing, FlowKey, Header, SwitchRouter};
use netloom_topology::PortId;
use netloom_units::Time;
use rustc_hash::FxHashMap;

use crate::model::{Channels, Message, World};
use crate::sampler::Sampler;

/// An output-queued switch.
#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) ports: Ports,
    pub(crate) router: SwitchRouter,
    /// Its row of the route table.
    pub(crate) row: usize,
    /// Decides on ECN marks.
    pub(crate) random: Stream,
    /// Packets dropped, per flow. Empty unless something is lost.
    pub(crate) dropped: FxHashMap<FlowKey, u64>,
    /// Whether it takes samples, obeys flow control or forwards otherwise than among minimal ports (layers, Valiant): one question per
    /// packet instead of three.
    pub(crate) is_special: bool,
    pub(crate) sampler: Option<Sampler>,
    /// Last time a packet came.
    pub(crate) last_event: Time,
}

impl Switch {
    #[inline(always)]
    pub(crate) fn forward(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        self.last_event = now;
        if cfg!(feature = "broken-conservation") && packet.kind == PacketKind::Data && packet.seq == 3 {
            return;
        }
        if self.is_special && self.forward_specially(world, id, now, packet, out) {
            return;
        }
        let Switch { ports, router, .. } = self;
        let candidates = world.table.candidates_in_row(self.row, id, packet.dst);
        let port = if let [only] = *candidates {
            only
        } else {
            let header = header(packet);
            let rates = |port| world.network.channel(world.network.ports(id)[usize::from(port)]).rate.0;
            let load = |port| ports.load(port, now, &world.rules, &mut Channels(out));
            let first = packet.kind == PacketKind::Data && packet.hops == 1;
            let crossing = Crossing { first, candidates, now };
            let hop = router.route(&world.routing, &header, crossing, load, rates);
            packet.entropy = hop.entropy;
            remember(packet, hop.port);
            hop.port
        };
        self.enqueue(world, now, port, packet, out);
    }

    /// Takes the samples that are due, obeys a PAUSE frame or takes a credit, or forwards by the table of the packet's layer if the scheme has
    /// layers, or over its intermediate switch under Valiant. Returns whether nothing is left to do.
    #[cold]
    #[inline(never)]
    fn forward_specially(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) -> bool {
        if self.sampler.is_some() {
            self.sample(world, now, out);
        }
        if world.rules.is_lossless() {
            self.ports.settle_if_ordered(now, &world.rules, &mut Channels(out));
            if packet.kind == PacketKind::Credit {
                self.ports.on_credit(Credit::from_packet(packet), now, &world.rules, &mut Channels(out));
                return true;
            }
            if packet.kind == PacketKind::Pause {
                self.ports.on_pause(packet, now, &world.rules, &mut Channels(out));
                return true;
            }
        }
        if let Some(via) = &world.via {
            let step = (packet.kind == PacketKind::Data && packet.hops == 1, id);
            let hop = self.router.route_via(&world.routing, via, &world.table, &header(packet), step, now);
            packet.entropy = hop.entropy;
            remember(packet, hop.port);
            self.enqueue(world, now, hop.port, packet, out);
            return true;
        }
        let Some(layers) = world.nic.layers() else { return false };
        let (here, to) = (layers.router(id), layers.router_of(packet.dst));
        let minimal = world.table.candidates_in_row(self.row, id, packet.dst);
        // At the last switch there is one way only, the destination's port.
        let mut port = minimal[0];
        if here != to {
            port = self.router.route_in_layer(&world.routing, layers, &header(packet), (here, to), minimal);
            remember(packet, port);
        }
        self.enqueue(world, now, port, packet, out);
        true
    }

    #[inline(always)]
    fn enqueue(
        &mut self,
        world: &World,
        now: Time,
        port: PortId,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let Switch { ports, random, .. } = self;
        let moment = Moment { at: now, is_over: out.is_last_of_instant() };
        let fate = ports.enqueue(port, packet, moment, &world.rules, random, &mut Channels(out));
        if fate == Fate::Dropped {
            *self.dropped.entry(FlowKey { src: packet.src, flow: packet.flow }).or_default() += 1;
        }
    }

    #[inline]
    pub(crate) fn advance(
        &mut self,
        world: &World,
        until: Time,
        out: &mut impl Scheduler<Message>,
    ) -> Option<Time> {
        if self.sampler.is_some() {
            self.sample(world, until, out);
        }
        self.ports.advance(until, &world.rules, &mut Channels(out))
    }

    /// Takes the samples that are due up to `now`.
    fn sample(&mut self, world: &World, now: Time, out: &mut impl Scheduler<Message>) {
        let Switch { ports, sampler: Some(sampler), .. } = self else { return };
        while let Some(instant) = sampler.due(now) {
            ports.advance(instant, &world.rules, &mut Channels(out));
            sampler.look(ports, instant);
        }
    }
}

/// Notes a choice of port in a data packet's fingerprint of its path.
#[inline(always)]
fn remember(packet: &mut Packet, port: PortId) {
    if packet.kind == PacketKind::Data {
        packet.aux = (packet.aux.rotate_left(5) ^ u32::from(port)).wrapping_mul(0x9e37_79b1);
    }
}

/// What routing reads of a packet.
#[inline]
pub(crate) fn header(packet: &Packet) -> Header {
    Header {
        src: packet.src,
        dst: packet.dst,
        flow: packet.flow,
        entropy: packet.entropy,
        bytes: u32::from(packet.size),
        control: !packet.is_data(),
        notification: packet.kind == PacketKind::Cnm,
    }
}
