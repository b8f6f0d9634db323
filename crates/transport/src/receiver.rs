//! The receiving side of a flow.

mod headers;
mod sacks;

use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

use crate::config::Transport;
use crate::reliability::Takes;
use crate::seq::SeqSet;
pub use sacks::{SackAnswer, sack_first};

/// A data packet as a receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When.
    pub now: Time,
    /// Its number.
    pub seq: u32,
    /// Its payload in bytes.
    pub payload: u16,
    /// Whether it is the flow's last.
    pub last: bool,
    /// Whether it is marked.
    pub marked: bool,
    /// Fingerprint of its path.
    pub path: u32,
}

/// What the receiver answers to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing yet.
    None,
    /// An ACK for this packet and everything below the number.
    Ack(u32),
    /// Everything from the number on is wanted again.
    Nack(u32),
}

/// What the receiver sends when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// First, if ECN marks begin or end with the packet: the ACK that earlier packets still wait for, with their mark.
    pub earlier: Option<u32>,
    /// Then, the answer to the packet itself.
    pub reply: Reply,
    /// Whether the sender is also notified of congestion, by a packet (CNP) that leaves before any ACK.
    pub notify: bool,
}

/// What a receiver has seen of its flow. All that is left of it once everything has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// When the last missing packet arrived. Never, if the last packet is not marked as such: streams closed late.
    pub completed: Option<Time>,
    /// Payload bytes that arrived, each packet's once.
    pub delivered: u64,
    /// Packets that arrived, duplicates and discarded ones included.
    pub packets: u64,
    /// Packets that arrived without their payload; not among `packets`.
    pub headers: u32,
    /// Packets that carried an ECN mark.
    pub marks: u64,
    /// Packets whose number was above the next expected one.
    pub ooo_packets: u64,
    /// Largest distance of such a packet from the expected number; where the receiver remembers a bounded range, of those that it took.
    pub max_ood: u32,
    /// Most packets that waited at once for one with a lower number: what a resequencing buffer must hold.
    pub max_resequencing: u32,
    /// How often a packet came along another path than the one before it.
    pub path_changes: u32,
}

impl Seen {
    /// A packet of a flow of which everything has arrived came again, though there is no receiver any more; `count` is the flow's number of
    /// packets. Returns what to answer.
    pub fn on_duplicate(&mut self, transport: &Transport, count: u32, marked: bool) -> Reply {
        self.packets += 1;
        self.marks += u64::from(marked);
        if transport.has_acks() { Reply::Ack(count) } else { Reply::None }
    }
}

/// The receiving side of one flow.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    received: SeqSet,
    /// Number of packets, once the last one has been seen.
    count: Option<u32>,
    /// Packets since the last ACK; bytes where the ACKs have bitmaps.
    unacknowledged: u32,
    /// Go-back-N: the number last asked for, and from when on it may be asked for again.
    asked: (u32, Time),
    last_marked: bool,
    /// Where ACKs have bitmaps: a packet asked for one, and another one is due when nothing is missing any more.
    owes: bool,
    /// When a congestion notification was last sent.
    notified: Option<Time>,
    last_path: Option<u32>,
    /// Packets that wait for one with a lower number.
    resequencing: u32,
    /// What it has seen.
    pub seen: Seen,
}

impl Recur for Seen {
    fn recur(&mut self, walk: &mut Walk) {
        let Seen {
            completed,
            delivered,
            packets,
            headers,
            marks,
            ooo_packets,
            max_ood,
            max_resequencing,
            path_changes,
        } = self;
        if walk.is_some(completed) {
            walk.exact(completed.unwrap_or_default().0);
        }
        walk.sum(delivered);
        walk.sum(packets);
        walk.sum32(headers);
        walk.sum(marks);
        walk.sum(ooo_packets);
        walk.exact(*max_ood);
        walk.exact(*max_resequencing);
        walk.sum32(path_changes);
    }
}

impl Receiver {
    /// [Recurs](netloom_units::recurrence) as the receiver of a flow of this number.
    pub fn recur(&mut self, flow: u64, walk: &mut Walk) {
        let Receiver {
            received,
            count,
            unacknowledged,
            asked,
            last_marked,
            owes,
            notified,
            last_path,
            resequencing,
            seen,
        } = self;
        received.recur(flow, walk);
        // Its last packet has come: an end is near.
        if count.is_some() {
            walk.pass_over();
        }
        walk.exact(*unacknowledged);
        // What was asked for and has come is not asked for again.
        walk.passed(asked.0, received.base().saturating_sub(1));
        walk.since(&mut asked.1);
        walk.exact(*last_marked);
        walk.exact(*owes);
        // When that was matters once the next mark comes.
        if walk.is_some(notified) {
            walk.exact(notified.unwrap_or_default().0);
            walk.exact(seen.marks);
        }
        if walk.is_some(last_path) {
            walk.exact(last_path.unwrap_or_default());
        }
        walk.exact(*resequencing);
        seen.recur(walk);
    }

    /// A data packet arrived.
    #[inline(always)]
    pub fn on_data(&mut self, transport: &Transport, arrival: Arrival) -> Answer {
        self.note_packet(arrival.path);
        // One like the one before it, of which the sender need only learn that it has come, is the rule.
        let is_plain = !(arrival.last | arrival.marked | self.last_marked | self.count.is_some());
        if is_plain && arrival.payload > 0 {
            if self.received.insert_in_order(arrival.seq) {
                self.seen.delivered += u64::from(arrival.payload);
                return Answer { earlier: None, reply: self.acknowledge(transport, false), notify: false };
            }
            // Where packets take many paths, most come out of order.
            if transport.reliability.facts().takes == Takes::Any {
                let reply = match self.received.insert_above(arrival.seq) {
                    Some(is_new) => {
                        self.note_early(arrival.seq);
                        if is_new {
                            self.deliver(arrival.payload, self.received.base());
                        }
                        self.acknowledge(transport, true)
                    }
                    None => self.take_out_of_order(transport, arrival.seq, arrival.payload),
                };
                return Answer { earlier: None, reply, notify: false };
            }
        }
        self.examine(transport, arrival)
    }

    /// A data packet arrived that is not simply the next one, of which the sender need only learn that it has come, and whatever comes is taken.
    #[inline(never)]
    fn take_out_of_order(&mut self, transport: &Transport, seq: u32, payload: u16) -> Reply {
        let early = self.note_early(seq);
        let new = self.resequence(seq, payload);
        self.acknowledge(transport, early || !new || !self.received.is_contiguous())
    }

    /// A data packet arrived of which more is to be known than that it has come.
    #[inline(never)]
    fn examine(&mut self, transport: &Transport, arrival: Arrival) -> Answer {
        self.seen.marks += u64::from(arrival.marked);
        let notify = arrival.marked && self.notifies(transport, arrival.now);
        let expected = self.received.base();
        // A SYN is answered at once.
        let mut at_once = arrival.last || arrival.payload == 0;
        let mut new = true;
        if self.received.insert_in_order(arrival.seq) {
            self.seen.delivered += u64::from(arrival.payload);
        } else {
            let takes = transport.reliability.facts().takes;
            if takes.is_beyond(arrival.seq, expected) {
                self.seen.ooo_packets += 1;
                return Answer { earlier: None, reply: Reply::Nack(expected), notify };
            }
            let early = self.note_early(arrival.seq);
            if early && let Takes::InOrder { nack_interval } = takes {
                let reply = self.refuse(nack_interval, arrival.now);
                let notify = notify || self.notifies_by_nack(transport, arrival.now, reply);
                return Answer { earlier: None, reply, notify };
            }
            new = self.resequence(arrival.seq, arrival.payload);
            at_once |= early || !new || !self.received.is_contiguous();
        }
        at_once |= self.note_end(&arrival, new);
        // RFC 8257, section 3.2: the old state is echoed for the packets before.
        let mark_changed = std::mem::replace(&mut self.last_marked, arrival.marked) != arrival.marked;
        let earlier = (mark_changed && self.unacknowledged > 0).then_some(expected);
        if earlier.is_some() {
            self.unacknowledged = 0;
        }
        Answer { earlier, reply: self.acknowledge(transport, at_once), notify }
    }

    /// The answer to a packet that was taken: it may wait for others.
    #[inline(always)]
    fn acknowledge(&mut self, transport: &Transport, at_once: bool) -> Reply {
        if !transport.has_acks() {
            return Reply::None;
        }
        self.unacknowledged += 1;
        if !at_once && self.unacknowledged < transport.options.ack_every {
            return Reply::None;
        }
        self.unacknowledged = 0;
        Reply::Ack(self.received.base())
    }

    /// A marked packet arrived: whether the sender is notified, which is at most once per interval (Zhu et al., SIGCOMM'15, section 3.1).
    fn notifies(&mut self, transport: &Transport, now: Time) -> bool {
        let Some(interval) = transport.cnp_interval() else { return false };
        let is_due = self.notified.is_none_or(|last| now - last >= interval);
        if is_due {
            self.notified = Some(now);
        }
        is_due
    }

    /// Something was answered to a packet: whether the sender is also notified of congestion because it is a NACK.
    pub fn notifies_by_nack(&mut self, transport: &Transport, now: Time, reply: Reply) -> bool {
        transport.reliability.facts().nack_congestion
            && matches!(reply, Reply::Nack(_))
            && self.notifies(transport, now)
    }

    /// Asks for the next packet in order, at most once per interval. That acknowledges everything before.
    fn refuse(&mut self, interval: Time, now: Time) -> Reply {
        let expected = self.received.base();
        let (asked, until) = self.asked;
        if asked == expected && now < until {
            return Reply::None;
        }
        self.asked = (expected, now.saturating_add(interval));
        self.unacknowledged = 0;
        Reply::Nack(expected)
    }

    /// Whether a packet came before one with a lower number, which is noted.
    #[inline(always)]
    fn note_early(&mut self, seq: u32) -> bool {
        let expected = self.received.base();
        let early = seq > expected;
        if early {
            self.seen.ooo_packets += 1;
            self.seen.max_ood = self.seen.max_ood.max(seq - expected);
        }
        early
    }

    /// Takes a packet that does not simply follow the others; returns whether it is new.
    #[inline(always)]
    fn resequence(&mut self, seq: u32, payload: u16) -> bool {
        let expected = self.received.base();
        let new = self.received.insert_out_of_order(seq);
        if new {
            self.deliver(payload, expected);
        }
        new
    }

    /// A packet has come along a path.
    #[inline(always)]
    fn note_packet(&mut self, path: u32) {
        self.seen.packets += 1;
        let path_changed = self.last_path.replace(path).is_some_and(|before| before != path);
        self.seen.path_changes += u32::from(path_changed);
    }

    /// Notes the number of packets with the last one, and the completion once none is missing; returns whether that is now.
    #[inline(always)]
    fn note_end(&mut self, arrival: &Arrival, is_new: bool) -> bool {
        if arrival.last {
            self.count = Some(arrival.seq + 1);
        }
        let is_complete = is_new && self.count == Some(self.received.base());
        if is_complete {
            self.seen.completed = Some(arrival.now);
        }
        is_complete
    }

    /// A new packet has come, after or before which `expected` is missing or was.
    #[inline(always)]
    fn deliver(&mut self, payload: u16, expected: u32) {
        self.seen.delivered += u64::from(payload);
        // It joins the buffer, and what it makes complete leaves.
        self.resequencing = self.resequencing + 1 - (self.received.base() - expected);
        self.seen.max_resequencing = self.seen.max_resequencing.max(self.resequencing);
    }

    /// Packets that wait for one with a lower number now.
    pub fn resequencing(&self) -> u32 {
        self.resequencing
    }

    /// Whether a packet has arrived.
    pub fn has(&self, seq: u32) -> bool {
        self.received.contains(seq)
    }

    /// The next packet in order.
    pub fn expected(&self) -> u32 {
        self.received.base()
    }

    /// Packets that have not arrived; `u32::MAX` if it is not known how many there will be.
    #[inline]
    pub fn missing(&self) -> u32 {
        self.count.map_or(u32::MAX, |count| count - self.received.base() - self.resequencing)
    }

    /// The number of packets, once all of them have arrived: nothing is left to do for this receiver.
    #[inline]
    pub fn finished(&self) -> Option<u32> {
        self.count.filter(|_| self.seen.completed.is_some())
    }

    /// Whether no packet waits for its ACK.
    pub fn is_answered(&self) -> bool {
        self.unacknowledged == 0
    }

    /// The ACK delay has passed: the number to acknowledge, if any packet waits for its ACK.
    pub fn on_ack_delay(&mut self) -> Option<u32> {
        (std::mem::take(&mut self.unacknowledged) > 0).then_some(self.received.base())
    }
}

#[cfg(test)]
mod tests;
