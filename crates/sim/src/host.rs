//! A host: starts flows, lets them send through one NIC, and answers what it receives.
//!
//! The NIC has no queue of data. Whenever its transmitter is free and no ACK waits, it asks the flows that have
//! something to send in turn; so a packet's path and timestamp are decided when it really leaves.

use std::collections::VecDeque;

use netloom_engine::{Scheduler, Stream};
use netloom_fabric::{Credit, FRESH, Moment, NO_INGRESS, Packet, PacketKind, Ports};
use netloom_record::FlowRecord;
use netloom_routing::granularity::flowcut::Verdict;
use netloom_routing::{AckSample, FlowKey, NicFlow, NicShared};
use netloom_transport::{AckInfo, Arrival, PathFacts, Receiver, Reliability, Reply, Sender};
use netloom_units::{Bytes, Time};
use netloom_workload::{HostWork, Message as Job};
use rustc_hash::FxHashMap;

use crate::model::{Channels, Message, World};
use crate::path::PathProfile;
use crate::sampler::Sampler;

/// The port of a host's NIC.
const NIC: u16 = 0;

/// A host and everything it knows.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) nic: Ports,
    pub(crate) random: Stream,
    work: HostWork,
    /// The next message that starts by the clock.
    upcoming: Option<Job>,
    flows: Vec<Option<Flow>>,
    free_slots: Vec<u32>,
    next_flow: u32,
    /// Flows that may have something to send, in turn.
    turn: VecDeque<u32>,
    /// The NIC has had nothing to send before this instant.
    checked: Time,
    shared: NicShared,
    pub(crate) receivers: Vec<(FlowKey, Receiver)>,
    receiver_of: FxHashMap<FlowKey, u32>,
    last_receiver: u32,
    /// Per receiver, the last packet whose ACK was spared. Empty unless ACKs are.
    unanswered: FxHashMap<u32, Packet>,
    /// Flows that ended, and at the run's end also those that did not.
    pub(crate) records: Vec<FlowRecord>,
    pub(crate) control_sent: u64,
    pub(crate) control_received: u64,
    pub(crate) sampler: Option<Sampler>,
    /// Last time a packet came. Timers that find nothing to do are no events of the run.
    pub(crate) last_event: Time,
}

/// A flow that is being sent.
#[derive(Debug)]
struct Flow {
    number: u32,
    dst: u32,
    bytes: Bytes,
    start: Time,
    idle_fct: Time,
    sender: Sender,
    nic: NicFlow,
    in_turn: bool,
    timer_set: bool,
}

impl Host {
    pub(crate) fn new(nic: Ports, random: Stream, work: HostWork, sampler: Option<Sampler>) -> Self {
        Host {
            nic,
            random,
            work,
            upcoming: None,
            flows: Vec::new(),
            free_slots: Vec::new(),
            next_flow: 0,
            turn: VecDeque::new(),
            checked: Time::ZERO,
            shared: NicShared::default(),
            receivers: Vec::new(),
            receiver_of: FxHashMap::default(),
            last_receiver: 0,
            unanswered: FxHashMap::default(),
            records: Vec::new(),
            control_sent: 0,
            control_received: 0,
            sampler,
            last_event: Time::ZERO,
        }
    }

    pub(crate) fn start(&mut self, out: &mut impl Scheduler<Message>) {
        self.upcoming = self.work.next_timed();
        if let Some(job) = self.upcoming {
            out.timer(job.start, Message::Start);
        }
    }

    #[inline(never)]
    pub(crate) fn handle(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        message: &Message,
        out: &mut impl Scheduler<Message>,
    ) {
        // While the NIC is busy nothing can have left since the last look.
        if self.nic.free_at(NIC) < now || self.sampler.is_some() {
            self.advance(world, id, now, out);
        }
        match message {
            Message::Packet(packet) => {
                self.last_event = now;
                if world.rules.is_lossless() {
                    self.nic.absorb(packet, now, &world.rules, &mut Channels(out));
                }
                match packet.kind {
                    PacketKind::Data => self.on_data(world, id, now, packet, out),
                    PacketKind::Ack => self.on_ack(world, id, now, packet, out),
                    PacketKind::Nack => self.on_nack(world, now, packet),
                    PacketKind::Cnm => self.control_received += 1,
                    PacketKind::Pause => {
                        self.nic.on_pause(packet, now, &world.rules, &mut Channels(out));
                    }
                    PacketKind::Credit => {
                        let credit = Credit::from_packet(packet);
                        self.nic.on_credit(credit, now, &world.rules, &mut Channels(out));
                    }
                }
            }
            Message::Start => self.start_flows(world, id, now, out),
            Message::Retransmit { slot, flow } => self.on_retransmit_timer(world, now, *slot, *flow, out),
            Message::AckDelay { receiver } => self.on_ack_delay(world, id, now, *receiver, out),
            Message::DrainLimit { slot, flow } => self.on_drain_limit(world, now, *slot, *flow),
        }
    }

    /// Sends everything that leaves before `until`; returns when the next packet will.
    pub(crate) fn advance(
        &mut self,
        world: &World,
        id: u32,
        until: Time,
        out: &mut impl Scheduler<Message>,
    ) -> Option<Time> {
        while let Some(instant) = self.sampler.as_ref().and_then(|sampler| sampler.due(until)) {
            self.send_until(world, id, instant, out);
            if let Some(sampler) = &mut self.sampler {
                sampler.look(&self.nic, instant);
            }
        }
        self.send_until(world, id, until, out)
    }

    fn send_until(
        &mut self,
        world: &World,
        id: u32,
        until: Time,
        out: &mut impl Scheduler<Message>,
    ) -> Option<Time> {
        loop {
            self.nic.advance_port(NIC, until, &world.rules, &mut Channels(out));
            let (free_at, is_waiting) = self.nic.poll(NIC);
            if self.turn.is_empty() && !is_waiting {
                self.checked = until;
                return None;
            }
            let at = free_at.max(self.checked);
            if is_waiting || at >= until {
                return Some(at);
            }
            match self.next_turn(world, at) {
                Turn::Now(slot) => self.send_data(world, id, slot, at, out),
                Turn::At(later) if later < until => self.checked = later,
                Turn::At(later) => {
                    self.checked = until;
                    return Some(later);
                }
                Turn::Never => {
                    self.checked = until;
                    return None;
                }
            }
        }
    }

    /// Which flow sends next, at `at`.
    fn next_turn(&mut self, world: &World, at: Time) -> Turn {
        let mut soonest = Turn::Never;
        for _ in 0..self.turn.len() {
            let Some(slot) = self.turn.pop_front() else { break };
            let Some(flow) = &mut self.flows[slot as usize] else { continue };
            match flow.ready(world) {
                None => flow.in_turn = false,
                Some(pace) if pace <= at => return Turn::Now(slot),
                Some(pace) => {
                    self.turn.push_back(slot);
                    soonest = match soonest {
                        Turn::At(other) if other <= pace => soonest,
                        _ => Turn::At(pace),
                    };
                }
            }
        }
        soonest
    }

    /// The flow whose turn it is sends a packet at `at` and goes to the end of the line.
    fn send_data(&mut self, world: &World, id: u32, slot: u32, at: Time, out: &mut impl Scheduler<Message>) {
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        let Some(next) = flow.sender.take(&world.transport, at) else {
            flow.in_turn = false;
            return;
        };
        let size = u32::from(next.payload) + world.transport.options.header.0 as u32;
        let entropy = flow.nic.on_send(&world.nic, at, size, &mut self.random);
        let mut packet = Packet {
            sent: at,
            src: id,
            dst: flow.dst,
            flow: flow.number,
            slot,
            seq: next.seq,
            aux: entropy,
            entropy,
            size: size as u16,
            payload: next.payload,
            kind: PacketKind::Data,
            last: next.last,
            ..Packet::EMPTY
        };
        if !flow.timer_set
            && let Some(deadline) = flow.sender.deadline(&world.transport)
        {
            flow.timer_set = true;
            out.timer(deadline.max(at), Message::Retransmit { slot, flow: flow.number });
        }
        flow.in_turn = flow.ready(world).is_some();
        if flow.in_turn {
            self.turn.push_back(slot);
        }
        self.nic.send_now(NIC, &mut packet, at, &world.rules, &mut Channels(out));
    }

    fn on_data(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let key = FlowKey { src: packet.src, flow: packet.flow };
        let receiver = self.receiver(key);
        let reply = receiver.on_data(
            &world.transport,
            Arrival {
                now,
                seq: packet.seq,
                payload: packet.payload,
                last: packet.last,
                marked: packet.marked,
                path: packet.aux,
            },
        );
        let (kind, number) = match reply {
            Reply::None => return self.delay_ack(world, now, packet, out),
            Reply::Ack(number) => (PacketKind::Ack, number),
            Reply::Nack(number) => (PacketKind::Nack, number),
        };
        if !self.unanswered.is_empty() {
            self.unanswered.remove(&self.last_receiver);
        }
        self.answer(world, id, now, packet, kind, number, out);
    }

    /// Sends an ACK or NACK in answer to a data packet.
    #[expect(clippy::too_many_arguments, reason = "the parts of one packet")]
    fn answer(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        kind: PacketKind,
        number: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        let mut answer = Packet {
            src: id,
            dst: packet.src,
            aux: number,
            size: world.transport.options.ack_size.0 as u16,
            payload: packet.size,
            kind,
            ingress: NO_INGRESS,
            vc: FRESH,
            ..*packet
        };
        self.control_sent += 1;
        // Data of this instant waits for the NIC to be asked, so nothing else is in the answer's way.
        let moment = Moment { at: now, is_over: out.is_last_of_instant() };
        self.nic.enqueue(NIC, &mut answer, moment, &world.rules, &mut self.random, &mut Channels(out));
    }

    /// The receiver spares an ACK: remember what to answer, but not for ever.
    fn delay_ack(&mut self, world: &World, now: Time, packet: &Packet, out: &mut impl Scheduler<Message>) {
        let is_delayed = !self.receivers[self.last_receiver as usize].1.is_answered();
        if is_delayed && self.unanswered.insert(self.last_receiver, *packet).is_none() {
            let due = now + world.transport.options.ack_delay;
            out.timer(due, Message::AckDelay { receiver: self.last_receiver });
        }
    }

    fn on_ack_delay(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        receiver: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        let Some(packet) = self.unanswered.remove(&receiver) else { return };
        if let Some(number) = self.receivers[receiver as usize].1.on_ack_delay() {
            self.answer(world, id, now, &packet, PacketKind::Ack, number, out);
        }
    }

    fn receiver(&mut self, key: FlowKey) -> &mut Receiver {
        // Packets of a flow come in runs, so the last receiver is nearly always the right one.
        let last = self.last_receiver as usize;
        if self.receivers.get(last).is_none_or(|(known, _)| *known != key) {
            let receivers = &mut self.receivers;
            self.last_receiver = *self.receiver_of.entry(key).or_insert_with(|| {
                receivers.push((key, Receiver::default()));
                receivers.len() as u32 - 1
            });
        }
        &mut self.receivers[self.last_receiver as usize].1
    }

    fn on_ack(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        self.control_received += 1;
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        let ack = AckInfo {
            now,
            seq: packet.seq,
            cumulative: packet.aux,
            marked: packet.marked,
            sent: packet.sent,
        };
        flow.sender.on_ack(&world.transport, ack);
        if flow.nic.watches_acks() {
            let sample = AckSample {
                now,
                rtt: now - packet.sent,
                size: Bytes(u64::from(packet.payload)),
                hops: packet.hops,
                in_flight: flow.sender.in_flight(),
                remaining: flow.sender.remaining(&world.transport),
                next: flow.sender.next(),
            };
            let verdict = flow.nic.on_ack(&world.nic, &mut self.shared, sample, &mut self.random);
            if let (Verdict::Drain, Some(limit)) = (verdict, flow.nic.deadline(&world.nic)) {
                out.timer(limit, Message::DrainLimit { slot: packet.slot, flow: packet.flow });
            }
        }
        if flow.sender.is_done() {
            self.finish(packet.slot, now);
            out.tally(1);
            if let Some(job) = self.work.next_closed(now, 0) {
                self.begin(world, id, now, job.dst, job.bytes);
            }
        } else {
            self.take_turns(world, packet.slot);
        }
    }

    fn on_nack(&mut self, world: &World, now: Time, packet: &Packet) {
        self.control_received += 1;
        if let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) {
            flow.sender.on_nack(packet.aux, now);
            self.take_turns(world, packet.slot);
        }
    }

    fn start_flows(&mut self, world: &World, id: u32, now: Time, out: &mut impl Scheduler<Message>) {
        while let Some(job) = self.upcoming {
            if job.start > now {
                out.timer(job.start, Message::Start);
                break;
            }
            self.begin(world, id, now, job.dst, job.bytes);
            self.upcoming = self.work.next_timed();
        }
    }

    fn begin(&mut self, world: &World, id: u32, now: Time, dst: u32, bytes: Bytes) {
        let path = PathProfile::walk(&world.network, &world.table, &world.fabric.options, id, dst);
        let options = &world.transport.options;
        let full = world.transport.packet_size();
        let full_packets = (bytes.0 - 1) / options.mtu.0;
        let last = Bytes(bytes.0 - full_packets * options.mtu.0 + options.header.0);
        let facts = PathFacts {
            base_rtt: path.one_way(full) + path.one_way(options.ack_size),
            rate: path.nic_rate(),
            // A go-back-N receiver discards what a sender believes delivered, even where the fabric loses nothing.
            lossy: world.fabric.is_lossy() || matches!(world.transport.reliability, Reliability::GoBackN(_)),
        };
        let flow = Flow {
            number: self.next_flow,
            dst,
            bytes,
            start: now,
            idle_fct: path.idle_fct(full_packets, full, last),
            sender: Sender::new(&world.transport, bytes, facts, now),
            nic: world.nic.begin(id, dst, &mut self.random),
            in_turn: true,
            timer_set: false,
        };
        self.next_flow += 1;
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() as u32 - 1
        });
        self.flows[slot as usize] = Some(flow);
        self.turn.push_back(slot);
    }

    /// Puts a flow that may send again into the line.
    #[inline]
    fn take_turns(&mut self, world: &World, slot: u32) {
        if let Some(flow) = &mut self.flows[slot as usize]
            && !flow.in_turn
            && flow.ready(world).is_some()
        {
            flow.in_turn = true;
            self.turn.push_back(slot);
        }
    }

    fn on_retransmit_timer(
        &mut self,
        world: &World,
        now: Time,
        slot: u32,
        number: u32,
        out: &mut impl Scheduler<Message>,
    ) {
        let Some(flow) = flow_in(&mut self.flows, slot, number) else { return };
        flow.timer_set = false;
        match flow.sender.deadline(&world.transport) {
            Some(deadline) if deadline <= now => flow.sender.on_timeout(now),
            Some(deadline) => {
                flow.timer_set = true;
                out.timer(deadline, Message::Retransmit { slot, flow: number });
            }
            None => {}
        }
        self.take_turns(world, slot);
    }

    fn on_drain_limit(&mut self, world: &World, now: Time, slot: u32, number: u32) {
        let Some(flow) = flow_in(&mut self.flows, slot, number) else { return };
        match flow.nic.deadline(&world.nic) {
            Some(deadline) if deadline <= now => flow.nic.on_deadline(&world.nic, now),
            // A later drain than the one this timer was set for; it has its own.
            _ => return,
        }
        self.take_turns(world, slot);
    }

    fn finish(&mut self, slot: u32, now: Time) {
        if let Some(flow) = self.flows[slot as usize].take() {
            if flow.in_turn {
                self.turn.retain(|&other| other != slot);
            }
            self.records.push(flow.record(Some(now)));
            self.free_slots.push(slot);
        }
    }

    /// Records the flows that have not ended.
    pub(crate) fn give_up(&mut self) {
        for flow in self.flows.drain(..).flatten() {
            self.records.push(flow.record(None));
        }
    }
}

enum Turn {
    Now(u32),
    At(Time),
    Never,
}

/// The flow in a slot, unless another one has taken it since.
#[inline]
fn flow_in(flows: &mut [Option<Flow>], slot: u32, number: u32) -> Option<&mut Flow> {
    flows.get_mut(slot as usize)?.as_mut().filter(|flow| flow.number == number)
}

impl Flow {
    /// Whether it can send, and from when on.
    #[inline]
    fn ready(&self, world: &World) -> Option<Time> {
        // A draining flow still repeats what was lost: otherwise it would never be empty.
        let may_send = self.sender.must_resend()
            || self.nic.may_send(&world.nic, self.sender.next(), self.sender.oldest());
        if may_send { self.sender.ready(&world.transport) } else { None }
    }

    /// What is known at the sender; the receiver's part is added later.
    fn record(&self, done: Option<Time>) -> FlowRecord {
        let (drains, drain_time) = self.nic.drains();
        FlowRecord {
            dst: self.dst,
            flow: self.number,
            bytes: self.bytes.0,
            start: self.start,
            sender_fct: done.map(|now| now - self.start),
            idle_fct: self.idle_fct,
            packets: self.sender.counts.packets,
            retransmissions: self.sender.counts.retransmissions,
            timeouts: self.sender.counts.timeouts,
            drains,
            drain_time,
            decisions: self.nic.decisions.taken,
            deviations: self.nic.decisions.deviating,
            ..FlowRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_fabric::Port;
    use netloom_topology::Link;

    #[test]
    fn an_idle_host_takes_less_than_2_kib() {
        // The host, its port, its NIC's word of waiting bits, its turns in the engine's windows (at most 256 slots of 4 bytes), its link with two
        // channels in the port lists, and its place in the route table.
        let idle = size_of::<Host>() + size_of::<Port>() + 8 + 256 * 4 + size_of::<Link>() + 2 * 4 + 12;
        assert!(idle < 2048, "{idle}");
    }
}
