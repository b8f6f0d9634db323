//! What routing sees of a switch and its packets.

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, PacketKind, Ports};
use netloom_record::FlowObservationRecord;
use netloom_routing::{Carries, FlowKey, Header, Hop, Tag, View};
use netloom_topology::{ChannelId, PortId};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::packets::CNM;
use crate::protocol::reports::loads::Reports;
use crate::world::World;

/// The ports of a switch at an instant, as a path selector sees them.
pub(crate) struct PortsAt<'a, S> {
    pub(crate) ports: &'a mut Ports,
    pub(crate) reports: Option<&'a Reports>,
    pub(crate) ctx: Ctx<'a, S>,
}

impl<S: Scheduler<Message>> View for PortsAt<'_, S> {
    fn now(&self) -> Time {
        self.ctx.now
    }

    #[inline(always)]
    fn load(&mut self, port: PortId) -> u64 {
        self.ports.load(port, self.ctx.now, &self.ctx.world.rules, &mut self.ctx.wire())
    }

    #[inline(always)]
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

/// What a switch has counted of flowlets that began there becomes rows, unless its gap monitor sees more.
pub(crate) fn hand_in_flowlets(world: &World, id: u32, begun: Vec<(FlowKey, u32)>) {
    if !world.gaps.at_switches {
        let rows = begun.into_iter().map(|(FlowKey { src, flow: number }, flowlets)| FlowObservationRecord {
            src,
            flow: world.numbering.flow(number),
            number,
            switch: id,
            flowlets,
            ..FlowObservationRecord::default()
        });
        world.recorder.observations.extend(rows);
    }
}

/// Sends a packet on its way.
#[inline(always)]
pub(crate) fn take(packet: &mut Packet, hop: Hop) -> PortId {
    packet.tag = hop.tag.bits();
    note_choice(packet, hop.port);
    hop.port
}

/// Notes the choice of a port in a data packet's fingerprint of its path.
#[inline(always)]
pub(crate) fn note_choice(packet: &mut Packet, port: PortId) {
    if packet.is_data() {
        packet.note_port(port);
    }
}

/// What routing reads of a packet.
#[inline(always)]
pub(crate) fn header_of(world: &World, packet: &Packet) -> Header {
    match packet.kind {
        PacketKind::Data => data_header_of(world, packet),
        CNM => header_with(packet, Carries::Notification, 0),
        _ => header_with(packet, Carries::Control, 0),
    }
}

/// The same of a data packet.
#[inline(always)]
pub(crate) fn data_header_of(world: &World, packet: &Packet) -> Header {
    debug_assert!(packet.is_data());
    header_with(packet, Carries::Data, payload_of(world, packet))
}

#[inline(always)]
fn header_with(packet: &Packet, carries: Carries, payload: u32) -> Header {
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

/// The payload of a data packet in bytes.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds packets by 65,535 bytes")]
pub(crate) fn payload_of(world: &World, packet: &Packet) -> u32 {
    u32::from(packet.size) - world.transport.options.header.0 as u32
}
