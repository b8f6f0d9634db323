//! In-band telemetry: what switches write on the packets of flows that ask for it.
//!
//! Every switch adds a stamp to a data packet's record when the packet leaves there, and the ACK brings the record back to the sender. A packet
//! has no room for that (with its address it fills one cache line), so records lie here, and a packet finds its own by what it carries anyway:
//! its source, where that keeps the flow, and the instant at which it left, which no other packet of the source has.
//!
//! That is memory which several nodes touch, and still no way for them to see each other's state: a record belongs to the node that has its packet,
//! or the ACK, at the moment. It changes hands with a message, which takes time, and nothing else of it is ever read. What is lost on the way
//! is forgotten when the ACK of a later packet of the flow comes, or when the flow's place is given to another one. All packets of a source
//! pass the same switch first, so that it is that switch which begins their records.

use std::sync::{Mutex, MutexGuard, PoisonError};

use netloom_units::{Rate, Time};

use crate::packet::Packet;

/// What a switch writes on a packet when its transmission starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The channel that it takes.
    pub channel: u32,
    /// Bytes that stay behind in the port's queues.
    pub queued: u64,
    /// Bytes that the port has sent before, since the beginning.
    pub sent: u64,
    /// When.
    pub at: Time,
    /// The channel's rate.
    pub rate: Rate,
}

/// The records of all packets under way.
#[derive(Debug)]
pub struct Telemetry {
    /// By source. Nodes on several threads touch different records of one source.
    sources: Vec<Mutex<Source>>,
}

/// The records of one source's packets.
#[derive(Debug, Default)]
struct Source {
    /// By the slot in which the source keeps the flow.
    flows: Vec<Records>,
    /// Room to be used again.
    spare: Vec<Vec<Stamp>>,
}

/// The records of the flow in a slot, numbered from the beginning in the order in which its packets left their NIC.
#[derive(Debug, Default)]
struct Records {
    flow: u32,
    /// The number of the first one that has not been given up.
    first: u32,
    /// The number of the next one.
    end: u32,
    /// By hops taken: the number of the packet that is likely to be next to leave the switch there. Packets seldom overtake each other.
    likely: [u32; LIKELY_HOPS],
    /// When the last of them left its NIC.
    latest: Time,
    /// What left its NIC before is of no interest any more.
    since: Time,
    /// A ring: the lowest bits of a number are its place. Their number is a power of two, or zero. Places without a record are [unused](UNUSED).
    places: Vec<Record>,
}

/// What switches have written on a packet, and when it left its NIC, as no other packet of the source did.
#[derive(Debug)]
struct Record {
    sent: Time,
    stamps: Vec<Stamp>,
}

/// Marks a place without a record: no packet leaves its NIC at that instant.
const UNUSED: Time = Time::MAX;

/// Numbers of hops that have a likely next packet of their own; a power of two.
const LIKELY_HOPS: usize = 8;

/// The fewest places for the records of a flow; a power of two.
const FEW: usize = 4;

impl Telemetry {
    /// No records, for this many hosts.
    pub fn new(hosts: u32) -> Self {
        Telemetry { sources: (0..hosts).map(|_| Mutex::default()).collect() }
    }

    #[inline(always)]
    fn source(&self, host: u32) -> MutexGuard<'_, Source> {
        // A panic elsewhere ends the run anyway.
        self.sources[host as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A switch sends a data packet on.
    #[inline(always)]
    pub(crate) fn stamp(&self, packet: &Packet, stamp: Stamp) {
        let mut source = self.source(packet.src);
        if packet.trail.hops() == 1 {
            source.begin(packet, &stamp);
        } else if let Some(records) = source.flows.get_mut(packet.slot as usize)
            && records.flow == packet.flow
        {
            records.stamp(packet, stamp);
        }
    }

    /// An ACK has come back to its data's source: shows what switches wrote on the packet that it answers, in their order. Shows nothing if an
    /// answer to that packet or to a later one of its flow has come before.
    #[inline]
    pub fn take(&self, ack: &Packet, read: impl FnOnce(&[Stamp])) {
        let mut source = self.source(ack.dst);
        let Source { flows, spare } = &mut *source;
        let Some(records) = flows.get_mut(ack.slot as usize).filter(|records| records.flow == ack.flow)
        else {
            return;
        };
        if ack.sent < records.since {
            return;
        }
        records.give_up_before(ack.sent, spare);
        records.since = ack.sent + Time(1);
        if let Some(record) = records.first()
            && record.sent == ack.sent
        {
            read(&record.stamps);
            records.give_up_first(spare);
        }
    }
}

impl Source {
    /// A packet leaves its first switch. Apart from what later switches do, which is most of all, and takes fewer registers without it.
    #[inline(never)]
    fn begin(&mut self, packet: &Packet, stamp: &Stamp) {
        let Source { flows, spare } = self;
        let slot = packet.slot as usize;
        if flows.len() <= slot {
            make_flows(flows, slot + 1);
        }
        flows[slot].begin(packet, spare, stamp);
    }
}

#[cold]
#[inline(never)]
fn make_flows(flows: &mut Vec<Records>, count: usize) {
    flows.resize_with(count, Records::default);
}

impl Records {
    /// The place of a number; none if there are no places at all.
    #[inline(always)]
    fn place(&mut self, number: u32) -> Option<&mut Record> {
        let last = self.places.len().wrapping_sub(1);
        self.places.get_mut(number as usize & last)
    }

    /// The place of the first record.
    #[inline(always)]
    fn first(&mut self) -> Option<&mut Record> {
        self.place(self.first)
    }

    /// A packet leaves a switch after its first one. One of which nothing is known any more leaves nothing behind.
    #[inline(always)]
    fn stamp(&mut self, packet: &Packet, stamp: Stamp) {
        let hops = usize::from(packet.trail.hops()) % LIKELY_HOPS;
        let likely = self.likely[hops];
        match self.place(likely) {
            Some(record) if record.sent == packet.sent => {
                record.stamps.push(stamp);
                self.likely[hops] = likely.wrapping_add(1);
            }
            _ => self.stamp_unlikely(packet, &stamp),
        }
    }

    /// The same of a packet that is not the one which was likely to be next.
    #[cold]
    #[inline(never)]
    fn stamp_unlikely(&mut self, packet: &Packet, stamp: &Stamp) {
        // They are in order of `sent`.
        let (mut number, mut end) = (self.first, self.end);
        while number != end {
            let middle = number.wrapping_add(end.wrapping_sub(number) / 2);
            match self.place(middle) {
                Some(record) if record.sent < packet.sent => number = middle.wrapping_add(1),
                _ => end = middle,
            }
        }
        if let Some(record) = self.place(number)
            && record.sent == packet.sent
        {
            record.stamps.push(*stamp);
            self.likely[usize::from(packet.trail.hops()) % LIKELY_HOPS] = number.wrapping_add(1);
        }
    }

    /// A packet leaves its first switch. Nobody waits for one of a flow that has given its place to another one by now, or that a later one has
    /// overtaken for good.
    #[inline(always)]
    fn begin(&mut self, packet: &Packet, spare: &mut Vec<Vec<Stamp>>, stamp: &Stamp) {
        let sent = packet.sent;
        if sent < self.since {
            return;
        }
        if self.flow != packet.flow {
            if sent < self.latest {
                return;
            }
            self.give_up_before(UNUSED, spare);
            self.since = self.latest;
            self.flow = packet.flow;
        }
        if self.end.wrapping_sub(self.first) as usize == self.places.len() {
            self.make_room();
        }
        let number = self.end;
        self.end = number.wrapping_add(1);
        if let Some(record) = self.place(number) {
            record.sent = sent;
            record.stamps = spare.pop().unwrap_or_default();
            record.stamps.push(*stamp);
        }
        if sent < self.latest {
            return self.move_forward(number);
        }
        self.latest = sent;
    }

    /// Moves a record before those of packets that left their NIC later. Few packets hurry, and overtake others before their first switch.
    #[cold]
    #[inline(never)]
    fn move_forward(&mut self, mut number: u32) {
        let last = self.places.len() - 1;
        while number != self.first {
            let (place, before) = (number as usize & last, number.wrapping_sub(1) as usize & last);
            if self.places[before].sent < self.places[place].sent {
                return;
            }
            self.places.swap(before, place);
            number = number.wrapping_sub(1);
        }
    }

    /// Makes twice as many places, as all are taken.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let few = self.places.len();
        let many = (2 * few).max(FEW);
        // By number, the first record is the first of the places.
        self.places.rotate_left(self.first as usize % few.max(1));
        self.places.resize_with(many, || Record { sent: UNUSED, stamps: Vec::new() });
        self.places.rotate_right(self.first as usize % many);
    }

    /// Forgets the packets that left before an instant.
    #[inline(always)]
    fn give_up_before(&mut self, sent: Time, spare: &mut Vec<Vec<Stamp>>) {
        while self.first().is_some_and(|record| record.sent < sent) {
            self.give_up_first(spare);
        }
    }

    /// Forgets the first packet, of those that there are.
    #[inline(always)]
    fn give_up_first(&mut self, spare: &mut Vec<Vec<Stamp>>) {
        if let Some(record) = self.first() {
            record.sent = UNUSED;
            let mut stamps = std::mem::take(&mut record.stamps);
            self.first = self.first.wrapping_add(1);
            stamps.clear();
            spare.push(stamps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{PacketKind, Trail};

    fn packet(flow: u32, sent: u64) -> Packet {
        Packet { src: 1, dst: 0, flow, slot: 2, sent: Time(sent), trail: Trail::after(1), ..Packet::EMPTY }
    }

    fn ack(flow: u32, sent: u64) -> Packet {
        Packet { src: 0, dst: 1, kind: PacketKind::control(0), ..packet(flow, sent) }
    }

    /// A packet takes a channel as its switch's, of this many.
    fn pass(telemetry: &Telemetry, packet: Packet, hops: u16, channel: u32) {
        let stamp = Stamp { channel, queued: 0, sent: 0, at: Time::ZERO, rate: Rate(1) };
        telemetry.stamp(&Packet { trail: Trail::after(hops), ..packet }, stamp);
    }

    /// The channels whose telemetry the ACK of a packet returns.
    fn take(telemetry: &Telemetry, flow: u32, sent: u64) -> Option<Vec<u32>> {
        let mut seen = None;
        telemetry.take(&ack(flow, sent), |stamps| {
            seen = Some(stamps.iter().map(|stamp| stamp.channel).collect());
        });
        seen
    }

    #[test]
    fn an_ack_tells_what_was_written_on_its_packet() {
        let telemetry = Telemetry::new(2);
        // The later one hurries.
        pass(&telemetry, packet(7, 20), 1, 3);
        pass(&telemetry, packet(7, 10), 1, 4);
        pass(&telemetry, packet(7, 10), 2, 5);
        assert_eq!(take(&telemetry, 7, 10), Some(vec![4, 5]));
        assert_eq!(take(&telemetry, 7, 20), Some(vec![3]));
        assert_eq!(take(&telemetry, 7, 20), None, "a second answer has nothing new to say");
    }

    #[test]
    fn packets_that_overtake_each_other_find_their_records() {
        let telemetry = Telemetry::new(2);
        for sent in [10, 20, 30, 40] {
            pass(&telemetry, packet(7, sent), 1, 1);
        }
        for sent in [20u32, 10, 40, 30] {
            pass(&telemetry, packet(7, sent.into()), 2, sent);
        }
        assert_eq!(take(&telemetry, 7, 10), Some(vec![1, 10]));
        // The rest moves up by one, and nine more hops share the likely places of the first.
        for hops in 3..12 {
            for sent in [20, 30, 40] {
                pass(&telemetry, packet(7, sent), hops, u32::from(hops));
            }
        }
        assert_eq!(take(&telemetry, 7, 20).unwrap()[1..], [20, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(take(&telemetry, 7, 40).unwrap()[1..4], [40, 3, 4]);
    }

    #[test]
    fn records_are_found_however_many_there_are_and_have_been() {
        let telemetry = Telemetry::new(2);
        let (mut sent, mut answered) = (0, 0);
        // Ever more are under way, and the first of them is in any place.
        for more in [3, 2, 1, 5, 7, 4, 30, 3] {
            for _ in 0..more {
                sent += 1;
                pass(&telemetry, packet(7, sent), 1, 1);
            }
            pass(&telemetry, packet(7, answered + 1), 2, 2);
            pass(&telemetry, packet(7, sent), 2, 3);
            for _ in 0..2 {
                answered += 1;
                let stamps = take(&telemetry, 7, answered).unwrap();
                assert_eq!(stamps[0], 1, "{answered} of {sent}");
            }
        }
        assert_eq!(take(&telemetry, 7, sent), Some(vec![1, 3]));
    }

    #[test]
    fn what_is_older_than_the_last_answer_is_forgotten() {
        let telemetry = Telemetry::new(2);
        for sent in [10, 20, 30] {
            pass(&telemetry, packet(7, sent), 1, 1);
        }
        assert_eq!(take(&telemetry, 7, 20), Some(vec![1]));
        pass(&telemetry, packet(7, 10), 2, 2);
        assert_eq!(take(&telemetry, 7, 10), None);
        // It came to its first switch too late, too.
        pass(&telemetry, packet(7, 15), 1, 3);
        assert_eq!(take(&telemetry, 7, 15), None);
        assert_eq!(take(&telemetry, 7, 30), Some(vec![1]));
    }

    #[test]
    fn a_flow_knows_nothing_of_the_one_before_it_in_its_slot() {
        let telemetry = Telemetry::new(2);
        pass(&telemetry, packet(7, 10), 1, 1);
        pass(&telemetry, packet(8, 20), 1, 2);
        // Late, behind a packet of the flow that has taken its place.
        pass(&telemetry, packet(7, 15), 1, 3);
        pass(&telemetry, packet(7, 10), 2, 4);
        assert_eq!(take(&telemetry, 7, 10), None);
        assert_eq!(take(&telemetry, 7, 15), None);
        assert_eq!(take(&telemetry, 8, 20), Some(vec![2]));
    }
}
