//! ConWeave at switches: stamps at a flow's first switch, packets held back at its last one, and what the two tell each other.

use std::collections::VecDeque;

use netloom_engine::Scheduler;
use netloom_fabric::{Flags, FlowControl, NO_INGRESS, Packet, PacketKind};
use netloom_routing::FlowKey;
use netloom_routing::granularity::conweave::{Between, Flush, Stamp, Verdict, Word};
use netloom_units::{Bytes, Time};
use rustc_hash::FxHashMap;

use super::{Switch, is_edge_of};
use crate::level::Level;
use crate::model::{Message, World};
use crate::path::{PathProfile, labels};

/// Size of what switches tell each other: a header without payload.
pub(super) const WORD: Bytes = Bytes(64);

/// Packets held back at a switch.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Absent until first needed.
    queues: Option<Box<FxHashMap<FlowKey, VecDeque<Packet>>>>,
    pub(crate) bytes: Level,
}

impl Held {
    fn push(&mut self, flow: FlowKey, packet: Packet, now: Time) {
        self.bytes.is(self.bytes.get() + u64::from(packet.size), now);
        self.queues.get_or_insert_default().entry(flow).or_default().push_back(packet);
    }

    fn take(&mut self, flow: FlowKey, now: Time) -> VecDeque<Packet> {
        let packets = self.queues.as_mut().and_then(|queues| queues.remove(&flow)).unwrap_or_default();
        let bytes: u64 = packets.iter().map(|packet| u64::from(packet.size)).sum();
        self.bytes.is(self.bytes.get() - bytes, now);
        packets
    }

    /// What is held now.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.queues.iter().flat_map(|queues| queues.values()).flatten()
    }
}

impl Switch {
    /// A data packet: stamped at its first switch, perhaps held at its last.
    pub(super) fn weave(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let flow = FlowKey { src: packet.src, flow: packet.flow };
        let is_last = is_edge_of(world, id, packet.dst);
        if packet.trail.hops() == 1 && !is_last {
            let between = || between(world, packet, now);
            if let Some(stamp) = self.decider.stamp(flow, now, between, &mut self.draws) {
                packet.tag = stamp.bits();
            }
        }
        // Between two hosts of one switch there is nothing to weave.
        if packet.trail.hops() == 1 || !is_last {
            return self.send_on(world, id, now, packet, out);
        }
        let stamp = Stamp::from_bits(packet.tag);
        if stamp.asks {
            self.say(world, id, now, packet, Word::Reply, stamp, out);
        }
        if packet.flags.is_marked() && self.decider.complains(packet.src, stamp.label, now) {
            self.say(world, id, now, packet, Word::Busy, stamp, out);
        }
        // Before the packet goes on, since trimming may turn it into a header on its way back.
        if stamp.is_tail {
            self.say(world, id, now, packet, Word::Clear, stamp, out);
        }
        match self.decider.receive(flow, stamp, packet.sent, now) {
            Verdict::Pass => self.send_on(world, id, now, packet, out),
            Verdict::Release => {
                self.send_on(world, id, now, packet, out);
                self.release(world, id, now, flow, out);
            }
            Verdict::Hold => self.held.push(flow, *packet, now),
            Verdict::HoldUntil(until) => {
                self.held.push(flow, *packet, now);
                out.timer(until, Message::Flush { src: flow.src, flow: flow.flow });
            }
        }
    }

    /// Held packets have perhaps waited long enough for the one before them.
    pub(crate) fn on_flush(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        flow: FlowKey,
        out: &mut impl Scheduler<Message>,
    ) {
        match self.decider.flush(flow, now) {
            Flush::Over => {}
            Flush::Later(until) => out.timer(until, Message::Flush { src: flow.src, flow: flow.flow }),
            Flush::Now => self.release(world, id, now, flow, out),
        }
    }

    /// Sends on what is held of a flow.
    fn release(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        flow: FlowKey,
        out: &mut impl Scheduler<Message>,
    ) {
        // PFC has not counted them, and all at once they could overflow an input buffer that it keeps from overflowing.
        let is_beside = matches!(world.fabric.flow_control, FlowControl::Pfc(_) | FlowControl::PfcShared(_));
        for mut packet in self.held.take(flow, now) {
            // The switch may have lost its own hosts meanwhile.
            if is_beside {
                packet.ingress = NO_INGRESS;
            }
            if self.has_lost(world, packet.dst) {
                self.discard(world, now, &packet, out);
                continue;
            }
            self.send_on(world, id, now, &mut packet, out);
        }
    }

    fn send_on(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &mut Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        // Switches read the label alone.
        let stamp = packet.tag;
        packet.tag = Stamp::label_of(stamp);
        let port = self.choose_specially(world, id, now, packet, out);
        packet.tag = stamp;
        if let Some(feedback) = self.sample_queue(world, now, port, packet, out) {
            self.notify(world, id, now, port, packet, feedback, out);
        }
        // What is released or told besides may want the same port in this instant.
        self.enqueue(world, id, now, port, packet, out);
    }

    /// Tells a packet's first switch something.
    #[expect(clippy::too_many_arguments, reason = "the parts of one signal")]
    #[expect(clippy::cast_possible_truncation, reason = "WORD is small")]
    fn say(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        about: &Packet,
        word: Word,
        stamp: Stamp,
        out: &mut impl Scheduler<Message>,
    ) {
        let mut signal = Packet {
            sent: now,
            src: about.dst,
            dst: about.src,
            flow: about.flow,
            slot: about.slot,
            tag: word.bits(stamp),
            size: WORD.0 as u16,
            kind: PacketKind::Word,
            flags: Flags::new(about.flags.class(), false),
            ..Packet::EMPTY
        };
        self.control_sent += 1;
        if self.has_lost(world, signal.dst) {
            return self.discard(world, now, &signal, out);
        }
        let bits = signal.tag;
        let port = self.choose_specially(world, id, now, &mut signal, out);
        signal.tag = bits;
        self.enqueue(world, id, now, port, &mut signal, out);
    }

    /// A flow's last switch tells this one, its first, something.
    pub(super) fn hear(
        &mut self,
        world: &World,
        now: Time,
        signal: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let last = world.forwarding.table().edge_of(signal.src);
        let flow = FlowKey { src: signal.dst, flow: signal.flow };
        self.decider.hear(flow, last, signal.tag, now);
        self.absorb(world, now, signal, out);
    }
}

/// The paths between a packet's first switch and its last one.
fn between(world: &World, packet: &Packet, now: Time) -> Between {
    let table = world.epochs.at(now, &world.forwarding).table();
    let path = PathProfile::walk(world, table, packet.src, packet.dst);
    let paths = labels(&world.network, table, packet.src, packet.dst);
    let base_rtt = path.between_switches().round_trip(world.transport.packet_size(), WORD);
    Between { last: table.edge_of(packet.dst), paths: paths.min(1 << 16), base_rtt }
}
