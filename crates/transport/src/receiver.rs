//! The receiving side of a flow.

mod headers;

use netloom_units::Time;

use crate::config::Transport;
use crate::reliability::Takes;
use crate::seq::SeqSet;

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
    /// Whether the sender is also told of congestion, by a notification (CNP) that leaves before any ACK.
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
    /// Largest distance of such a packet from the expected number; where the receiver remembers a bounded stretch, of those that it took.
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
    unacknowledged: u32,
    /// Go-back-N: the number last asked for, and from when on it may be asked for again.
    asked: (u32, Time),
    last_marked: bool,
    /// When a congestion notification was last sent.
    notified: Option<Time>,
    last_path: Option<u32>,
    /// Packets that wait for one with a lower number.
    resequencing: u32,
    /// What it has seen.
    pub seen: Seen,
}

impl Receiver {
    /// A data packet arrived.
    #[inline(always)]
    pub fn on_data(&mut self, transport: &Transport, arrival: Arrival) -> Answer {
        self.seen.packets += 1;
        let path_changed = self.last_path.replace(arrival.path).is_some_and(|path| path != arrival.path);
        self.seen.path_changes += u32::from(path_changed);
        // One like the one before it, of which nobody need be told more than that it has come, is the rule.
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

    /// A data packet arrived that is not simply the next one, of which nobody need be told more than that it has come, and whatever comes is taken.
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
        if arrival.last {
            self.count = Some(arrival.seq + 1);
        }
        if new && self.count == Some(self.received.base()) {
            self.seen.completed = Some(arrival.now);
            at_once = true;
        }
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

    /// A marked packet arrived: whether the sender is told, which is at most once per interval (Zhu et al., SIGCOMM'15, section 3.1).
    fn notifies(&mut self, transport: &Transport, now: Time) -> bool {
        let Some(interval) = transport.cnp_interval() else { return false };
        let is_due = self.notified.is_none_or(|last| now - last >= interval);
        if is_due {
            self.notified = Some(now);
        }
        is_due
    }

    /// Something was answered to a packet: whether the sender is also told of congestion because it is a NACK.
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

    /// The next packet in order.
    pub fn expected(&self) -> u32 {
        self.received.base()
    }

    /// Packets that have not arrived; `u32::MAX` if it is not known how many there will be.
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
mod tests {
    use super::*;
    use crate::Reliability;
    use crate::config::TransportOptions;
    use crate::congestion::Congestion;
    use crate::reliability::go_back_n::GoBackN;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn arrival(seq: u32, last: bool) -> Arrival {
        Arrival { now: Time(u64::from(seq)), seq, payload: 100, last, marked: false, path: 0 }
    }

    fn replies(transport: &Transport, order: &[u32], last: u32) -> (Vec<Reply>, Receiver) {
        let mut receiver = Receiver::default();
        let replies =
            order.iter().map(|&seq| receiver.on_data(transport, arrival(seq, seq == last)).reply).collect();
        (replies, receiver)
    }

    #[test]
    fn a_late_packet_makes_the_early_ones_out_of_order_but_not_itself() {
        let (replies, receiver) = replies(&Transport::default(), &[0, 2, 3, 1, 4], 4);
        assert_eq!(replies, [1, 1, 1, 4, 5].map(Reply::Ack));
        assert_eq!((receiver.seen.ooo_packets, receiver.seen.max_ood), (2, 2));
        assert!(receiver.seen.completed.is_some());
    }

    #[test]
    fn go_back_n_asks_once_per_gap_and_discards() {
        let transport =
            Transport { reliability: Reliability::GoBackN(Default::default()), ..Transport::default() };
        let (replies, receiver) = replies(&transport, &[0, 2, 3, 1, 3, 2, 3], 3);
        use Reply::*;
        assert_eq!(replies, [Ack(1), Nack(1), None, Ack(2), Nack(2), Ack(3), Ack(4)]);
        assert!(receiver.seen.completed.is_some());
    }

    /// Packets come every microsecond: an early one asks for the same packet again once 4 us have passed, and for another one at once.
    #[test]
    fn go_back_n_asks_again_after_its_interval() {
        let transport =
            Transport { reliability: Reliability::GoBackN(Default::default()), ..Transport::default() };
        let mut receiver = Receiver::default();
        let mut at = |us, seq| {
            receiver.on_data(&transport, Arrival { now: Time::from_us(us), ..arrival(seq, false) }).reply
        };
        use Reply::*;
        let early = [1, 2, 3, 4, 5, 6].map(|us| at(us, 9));
        assert_eq!(early, [Nack(0), None, None, None, Nack(0), None]);
        assert_eq!([at(7, 0), at(7, 5), at(10, 5), at(11, 5)], [Ack(1), Nack(1), None, Nack(1)]);
    }

    /// The NACK itself notifies where ACKs echo marks; otherwise a CNP does, no more often than marks would cause one.
    #[test]
    fn a_nack_that_counts_as_congestion_notifies() {
        let go_back_n = GoBackN { nack_congestion: true, ..GoBackN::default() };
        let notified = |cnp_interval| {
            let dcqcn = crate::congestion::dcqcn::Dcqcn { cnp_interval, ..Default::default() };
            let transport = Transport {
                reliability: Reliability::GoBackN(go_back_n.clone()),
                congestion: Congestion::Dcqcn(dcqcn),
                ..Transport::default()
            };
            let mut receiver = Receiver::default();
            let told = [1, 2, 6, 60].map(|us| {
                let early = Arrival { now: Time::from_us(us), ..arrival(3, false) };
                receiver.on_data(&transport, early).notify
            });
            (
                told,
                [
                    transport.echoes(false, true),
                    transport.echoes(true, false),
                    transport.echoes(false, false),
                ],
            )
        };
        assert_eq!(notified(None), ([true, false, false, true], [false; 3]));
        assert_eq!(notified(Some(Time::ZERO)), ([false; 4], [true, true, false]));
    }

    #[test]
    fn a_packet_beyond_the_bitmap_is_refused_and_taken_later() {
        let bitmap = crate::reliability::bitmap::Bitmap { length: 3 };
        let transport = Transport { reliability: Reliability::Bitmap(bitmap), ..Transport::default() };
        let (replies, receiver) = replies(&transport, &[0, 2, 3, 4, 5, 1, 4, 5], 5);
        use Reply::*;
        // While 1 is missing, 1 to 3 have a place.
        assert_eq!(replies, [Ack(1), Ack(1), Ack(1), Nack(1), Nack(1), Ack(4), Ack(5), Ack(6)]);
        assert_eq!((receiver.seen.ooo_packets, receiver.seen.max_ood, receiver.seen.delivered), (4, 2, 600));
        assert!(receiver.seen.completed.is_some());
    }

    #[test]
    fn acks_may_be_spared_while_all_is_well() {
        let options = TransportOptions { ack_every: 4, ..TransportOptions::default() };
        let transport = Transport { options, ..Transport::default() };
        let (replies, _) = replies(&transport, &[0, 1, 2, 3, 4, 6, 5, 7], 7);
        use Reply::*;
        assert_eq!(replies, [None, None, None, Ack(4), None, Ack(5), None, Ack(8)]);
    }

    #[test]
    fn a_spared_ack_is_sent_after_the_delay_once() {
        let options = TransportOptions { ack_every: 4, ..TransportOptions::default() };
        let (_, mut receiver) = replies(&Transport { options, ..Transport::default() }, &[0, 1], 7);
        assert_eq!((receiver.on_ack_delay(), receiver.on_ack_delay()), (Some(2), None));
    }

    #[test]
    fn a_change_of_marks_first_acknowledges_the_packets_before_it() {
        let options = TransportOptions { ack_every: 3, ..TransportOptions::default() };
        let transport = Transport { options, ..Transport::default() };
        let mut receiver = Receiver::default();
        let marks = [false, false, true, true, false, false, false, true];
        let answers = (0..).zip(marks).map(|(seq, marked)| {
            let Answer { earlier, reply, .. } =
                receiver.on_data(&transport, Arrival { marked, ..arrival(seq, false) });
            (earlier, reply)
        });
        use Reply::*;
        let expected = [
            (Option::None, None),
            (Option::None, None),
            (Some(2), None),
            (Option::None, None),
            (Some(4), None),
            (Option::None, None),
            // The third unmarked one in a row; then nobody waits.
            (Option::None, Ack(7)),
            (Option::None, None),
        ];
        assert_eq!(answers.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn marks_are_notified_at_most_once_per_interval_of_the_flow() {
        let congestion = Congestion::Dcqcn(Default::default());
        let mut receiver = Receiver::default();
        let mut notified = |transport: &Transport, us, marked| {
            let arrival = Arrival { marked, now: Time::from_us(us), ..arrival(0, false) };
            receiver.on_data(transport, arrival).notify
        };
        let transport = Transport { congestion, ..Transport::default() };
        let marked = [1, 2, 50, 51, 52, 100, 101].map(|us| notified(&transport, us, true));
        assert_eq!(marked, [true, false, false, true, false, false, true]);
        assert!(!notified(&transport, 500, false));
        assert!(!notified(&Transport::default(), 600, true), "only a rate that heeds it needs it");
    }

    /// A go-back-N receiver discards what comes early, and its mark counts all the same.
    #[test]
    fn a_refused_packet_that_is_marked_notifies() {
        let transport = Transport {
            reliability: Reliability::GoBackN(Default::default()),
            congestion: Congestion::Dcqcn(Default::default()),
            ..Transport::default()
        };
        let early = Arrival { marked: true, ..arrival(3, false) };
        let answer = Receiver::default().on_data(&transport, early);
        assert_eq!(answer, Answer { earlier: None, reply: Reply::Nack(0), notify: true });
    }

    #[test]
    fn what_is_left_of_a_receiver_answers_late_duplicates() {
        let (_, receiver) = replies(&Transport::default(), &[0, 2, 1], 2);
        assert_eq!(receiver.finished(), Some(3));
        let mut seen = receiver.seen;
        assert_eq!(seen.on_duplicate(&Transport::default(), 3, true), Reply::Ack(3));
        assert_eq!((seen.packets, seen.marks, seen.completed), (4, 1, Some(Time(1))));
    }

    #[test]
    fn a_duplicate_is_acknowledged_again_and_completes_nothing_twice() {
        let (replies, receiver) = replies(&Transport::default(), &[0, 1, 0], 1);
        assert_eq!(replies, [1, 2, 2].map(Reply::Ack));
        assert_eq!(receiver.seen.completed, Some(Time(1)));
    }

    #[test]
    fn without_acks_nothing_is_answered() {
        let transport =
            Transport { reliability: Reliability::None(Default::default()), ..Transport::default() };
        let (replies, mut receiver) = replies(&transport, &[0, 2, 1, 3], 3);
        assert_eq!(replies, [Reply::None; 4]);
        assert!(receiver.is_answered() && receiver.on_ack_delay().is_none());
        assert_eq!((receiver.seen.completed, receiver.seen.ooo_packets), (Some(Time(3)), 1));
    }

    #[test]
    fn packets_wait_for_lower_numbers_in_the_resequencing_buffer() {
        let mut receiver = Receiver::default();
        let occupancy = [0, 2, 3, 3, 5, 1, 4, 6].map(|seq| {
            receiver.on_data(&Transport::default(), arrival(seq, false));
            receiver.resequencing()
        });
        assert_eq!(occupancy, [0, 1, 2, 2, 3, 1, 0, 0]);
        assert_eq!((receiver.seen.max_resequencing, receiver.seen.delivered), (3, 700));
    }

    #[test]
    fn a_go_back_n_receiver_buffers_and_delivers_nothing_early() {
        let transport =
            Transport { reliability: Reliability::GoBackN(Default::default()), ..Transport::default() };
        let (_, receiver) = replies(&transport, &[0, 2, 3, 1, 2], 3);
        assert_eq!(
            (receiver.resequencing(), receiver.seen.max_resequencing, receiver.seen.delivered),
            (0, 0, 300)
        );
    }

    /// As if nothing were the rule.
    fn examined(receiver: &mut Receiver, transport: &Transport, arrival: Arrival) -> Answer {
        receiver.seen.packets += 1;
        let before = receiver.last_path.replace(arrival.path);
        receiver.seen.path_changes += u32::from(before.is_some_and(|path| path != arrival.path));
        receiver.examine(transport, arrival)
    }

    proptest! {
        #[test]
        fn what_is_the_rule_is_answered_like_everything_else(
            arrivals in prop::collection::vec((0..80u32, prop::bool::weighted(0.7), any::<bool>(), 0..4u16, 0..3u32), 0..200),
            marks in prop::bool::weighted(0.5),
            ack_every in 1..4u32,
            kind in 0..4,
        ) {
            let reliability = match kind {
                // Packets come a picosecond apart.
                0 => Reliability::GoBackN(GoBackN { nack_interval: Time(5), ..GoBackN::default() }),
                1 => Reliability::None(Default::default()),
                2 => Reliability::Bitmap(crate::reliability::bitmap::Bitmap { length: 8 }),
                _ => Transport::default().reliability,
            };
            let options = TransportOptions { ack_every, ..TransportOptions::default() };
            let transport = Transport { options, reliability, ..Transport::default() };
            let (mut one, mut other) = (Receiver::default(), Receiver::default());
            for (now, (seq, is_next, marked, payload, path)) in (0..).zip(arrivals) {
                let seq = if is_next { one.expected() } else { seq };
                let arrival =
                    Arrival { now: Time(now), seq, payload, last: seq == 60, marked: marked && marks, path };
                let answers = (one.on_data(&transport, arrival), examined(&mut other, &transport, arrival));
                prop_assert_eq!(answers.0, answers.1);
                prop_assert_eq!(format!("{one:?}"), format!("{other:?}"));
            }
        }

        #[test]
        fn the_resequencing_buffer_holds_what_lies_beyond_the_first_gap(
            numbers in prop::collection::vec(0..300u32, 0..500),
        ) {
            let mut receiver = Receiver::default();
            let mut seen = BTreeSet::new();
            let mut most = 0;
            for seq in numbers {
                receiver.on_data(&Transport::default(), arrival(seq, false));
                seen.insert(seq);
                let gap = (0..).find(|number| !seen.contains(number)).unwrap();
                let waiting = seen.range(gap..).count() as u32;
                most = most.max(waiting);
                prop_assert_eq!(receiver.resequencing(), waiting);
            }
            prop_assert_eq!((receiver.seen.max_resequencing, receiver.seen.delivered), (most, 100 * seen.len() as u64));
        }
    }
}
