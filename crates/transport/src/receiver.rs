//! The receiving side of a flow.

use netloom_units::Time;

use crate::config::{Reliability, Transport};
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

/// What the receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing yet.
    None,
    /// An ACK for this packet and everything below the number.
    Ack(u32),
    /// Everything from the number on is wanted again.
    Nack(u32),
}

/// The receiving side of one flow, and what it has seen.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    received: SeqSet,
    /// Number of packets, once the last one has been seen.
    count: Option<u32>,
    unacknowledged: u32,
    /// Go-back-N: the number last asked for.
    asked: Option<u32>,
    last_marked: bool,
    last_path: Option<u32>,
    /// Packets that wait for one with a lower number.
    resequencing: u32,
    /// Most packets that waited at once for one with a lower number: what a resequencing buffer must hold.
    pub max_resequencing: u32,
    /// Payload bytes that arrived, each packet's once.
    pub delivered: u64,
    /// When the last missing packet arrived. Never, if the last packet is not marked as such: streams closed late.
    pub completed: Option<Time>,
    /// Packets that arrived, duplicates and discarded ones included.
    pub packets: u64,
    /// Packets whose number was above the next expected one.
    pub ooo_packets: u64,
    /// Largest distance of such a packet from the expected number.
    pub max_ood: u32,
    /// Packets that carried an ECN mark.
    pub marks: u64,
    /// How often a packet came along another path than the one before it.
    pub path_changes: u32,
}

impl Receiver {
    /// A data packet arrived.
    #[inline]
    pub fn on_data(&mut self, transport: &Transport, arrival: Arrival) -> Reply {
        self.packets += 1;
        self.marks += u64::from(arrival.marked);
        let path_changed = self.last_path.replace(arrival.path).is_some_and(|path| path != arrival.path);
        self.path_changes += u32::from(path_changed);

        let mut at_once = arrival.last;
        let mut new = true;
        if self.received.insert_in_order(arrival.seq) {
            self.delivered += u64::from(arrival.payload);
        } else {
            let early = arrival.seq > self.received.base();
            if early {
                self.ooo_packets += 1;
                self.max_ood = self.max_ood.max(arrival.seq - self.received.base());
                if let Reliability::GoBackN(_) = transport.reliability {
                    return self.refuse();
                }
            }
            new = self.resequence(arrival);
            at_once |= early || !new || !self.received.is_contiguous();
        }
        if arrival.last {
            self.count = Some(arrival.seq + 1);
        }
        if new && self.count == Some(self.received.base()) {
            self.completed = Some(arrival.now);
        }
        if !transport.has_acks() {
            return Reply::None;
        }
        self.unacknowledged += 1;
        let mark_changed = std::mem::replace(&mut self.last_marked, arrival.marked) != arrival.marked;
        at_once |= mark_changed || self.completed.is_some();
        if at_once || self.unacknowledged >= transport.options.ack_every {
            self.unacknowledged = 0;
            Reply::Ack(self.received.base())
        } else {
            Reply::None
        }
    }

    /// Asks for the next packet in order, once per gap.
    fn refuse(&mut self) -> Reply {
        let expected = self.received.base();
        if self.asked.replace(expected) == Some(expected) { Reply::None } else { Reply::Nack(expected) }
    }

    /// Takes a packet that does not simply follow the others; returns whether it is new.
    fn resequence(&mut self, arrival: Arrival) -> bool {
        let expected = self.received.base();
        let new = self.received.insert(arrival.seq);
        if new {
            self.delivered += u64::from(arrival.payload);
            // One joins the buffer, and what it makes complete leaves.
            self.resequencing = self.resequencing + 1 - (self.received.base() - expected);
            self.max_resequencing = self.max_resequencing.max(self.resequencing);
        }
        new
    }

    /// Packets that wait for one with a lower number now.
    pub fn resequencing(&self) -> u32 {
        self.resequencing
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
    use crate::config::TransportOptions;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn arrival(seq: u32, last: bool) -> Arrival {
        Arrival { now: Time(u64::from(seq)), seq, payload: 100, last, marked: false, path: 0 }
    }

    fn replies(transport: &Transport, order: &[u32], last: u32) -> (Vec<Reply>, Receiver) {
        let mut receiver = Receiver::default();
        let replies =
            order.iter().map(|&seq| receiver.on_data(transport, arrival(seq, seq == last))).collect();
        (replies, receiver)
    }

    #[test]
    fn a_late_packet_makes_the_early_ones_out_of_order_but_not_itself() {
        let (replies, receiver) = replies(&Transport::default(), &[0, 2, 3, 1, 4], 4);
        assert_eq!(replies, [1, 1, 1, 4, 5].map(Reply::Ack));
        assert_eq!((receiver.ooo_packets, receiver.max_ood), (2, 2));
        assert!(receiver.completed.is_some());
    }

    #[test]
    fn go_back_n_asks_once_per_gap_and_discards() {
        let transport =
            Transport { reliability: Reliability::GoBackN(Default::default()), ..Transport::default() };
        let (replies, receiver) = replies(&transport, &[0, 2, 3, 1, 3, 2, 3], 3);
        use Reply::*;
        assert_eq!(replies, [Ack(1), Nack(1), None, Ack(2), Nack(2), Ack(3), Ack(4)]);
        assert!(receiver.completed.is_some());
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
    fn a_duplicate_is_acknowledged_again_and_completes_nothing_twice() {
        let (replies, receiver) = replies(&Transport::default(), &[0, 1, 0], 1);
        assert_eq!(replies, [1, 2, 2].map(Reply::Ack));
        assert_eq!(receiver.completed, Some(Time(1)));
    }

    #[test]
    fn without_acks_nothing_is_answered() {
        let transport =
            Transport { reliability: Reliability::None(Default::default()), ..Transport::default() };
        let (replies, mut receiver) = replies(&transport, &[0, 2, 1, 3], 3);
        assert_eq!(replies, [Reply::None; 4]);
        assert!(receiver.is_answered() && receiver.on_ack_delay().is_none());
        assert_eq!((receiver.completed, receiver.ooo_packets), (Some(Time(3)), 1));
    }

    #[test]
    fn packets_wait_for_lower_numbers_in_the_resequencing_buffer() {
        let mut receiver = Receiver::default();
        let occupancy = [0, 2, 3, 3, 5, 1, 4, 6].map(|seq| {
            receiver.on_data(&Transport::default(), arrival(seq, false));
            receiver.resequencing()
        });
        assert_eq!(occupancy, [0, 1, 2, 2, 3, 1, 0, 0]);
        assert_eq!((receiver.max_resequencing, receiver.delivered), (3, 700));
    }

    #[test]
    fn a_go_back_n_receiver_buffers_and_delivers_nothing_early() {
        let transport =
            Transport { reliability: Reliability::GoBackN(Default::default()), ..Transport::default() };
        let (_, receiver) = replies(&transport, &[0, 2, 3, 1, 2], 3);
        assert_eq!((receiver.resequencing(), receiver.max_resequencing, receiver.delivered), (0, 0, 300));
    }

    proptest! {
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
            prop_assert_eq!((receiver.max_resequencing, receiver.delivered), (most, 100 * seen.len() as u64));
        }
    }
}
