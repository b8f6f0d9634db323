//! What a receiver answers to packets that lost their payload on the way.

use netloom_units::Time;

use super::{Receiver, Reply, Seen};
use crate::config::Transport;
use crate::reliability::Takes;

impl Seen {
    /// The header of a packet came of which there is no more to know: everything has arrived, `count` packets. Returns what to answer.
    pub fn on_late_header(&mut self, count: u32) -> Reply {
        self.headers += 1;
        Reply::Ack(count)
    }
}

impl Receiver {
    /// What is left of a trimmed packet arrived. The sender is notified at once; with go-back-N, if it is the packet that would be taken next.
    pub fn on_header(&mut self, transport: &Transport, now: Time, seq: u32, last: bool) -> Reply {
        self.seen.headers += 1;
        if last {
            self.count = Some(seq + 1);
        }
        let expected = self.received.base();
        if self.received.contains(seq) {
            return Reply::Ack(expected);
        }
        let reliability = transport.reliability.facts();
        match reliability.takes {
            _ if !reliability.has_acks => Reply::None,
            Takes::InOrder { nack_interval } => {
                // The next one may have been asked for just before, but what came then was this header.
                if seq <= expected {
                    self.asked = (expected, Time::ZERO);
                }
                self.refuse(nack_interval, now)
            }
            Takes::Any | Takes::Within(_) => Reply::Nack(expected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reliability;
    use crate::receiver::Arrival;

    fn data(seq: u32) -> Arrival {
        Arrival { now: Time(0), seq, payload: 100, last: seq == 3, marked: false, path: 0 }
    }

    #[test]
    fn a_header_is_answered_at_once_and_counts_as_nothing_received() {
        let transport = Transport::default();
        let mut receiver = Receiver::default();
        receiver.on_data(&transport, data(0));
        receiver.on_data(&transport, data(2));
        assert_eq!(receiver.on_header(&transport, Time(0), 1, false), Reply::Nack(1));
        assert_eq!(
            (receiver.missing(), receiver.on_header(&transport, Time(0), 3, true)),
            (u32::MAX, Reply::Nack(1))
        );
        // The header of the last packet says how many there are.
        assert_eq!(receiver.missing(), 2);
        // The payload had come before.
        assert_eq!(receiver.on_header(&transport, Time(0), 2, false), Reply::Ack(1));
        assert_eq!((receiver.seen.headers, receiver.seen.packets, receiver.seen.delivered), (3, 2, 200));
        receiver.on_data(&transport, data(1));
        receiver.on_data(&transport, data(3));
        assert_eq!(receiver.finished(), Some(4));
        assert_eq!(receiver.seen.on_late_header(4), Reply::Ack(4));
    }

    #[test]
    fn go_back_n_asks_again_for_a_repetition_that_was_trimmed_too() {
        let reliability = Reliability::GoBackN(Default::default());
        let transport = Transport { reliability, ..Transport::default() };
        let mut receiver = Receiver::default();
        receiver.on_data(&transport, data(0));
        assert_eq!(receiver.on_header(&transport, Time(0), 1, false), Reply::Nack(1));
        // One gap, one question.
        assert_eq!(receiver.on_header(&transport, Time(0), 2, false), Reply::None);
        assert_eq!(receiver.on_data(&transport, data(3)).reply, Reply::None);
        assert_eq!(receiver.on_header(&transport, Time(0), 1, false), Reply::Nack(1));
    }
}
