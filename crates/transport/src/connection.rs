//! One flow over several subflows: MPTCP (RFC 8684; Raiciu et al., SIGCOMM'11).
//!
//! The packets of a flow are numbered once, in its *data sequence*. Each subflow is a [`Sender`](crate::Sender) of its own, with its own window,
//! timer and loss recovery, and numbers what it sends itself. Here stands between the two who has sent what:
//!
//! ```text
//!   data      0 1 2 3 4 5 6 7 8      what packets carry, what the receiver puts in order and acknowledges
//!   subflow 0 0   1   2     3
//!   subflow 1   0   1     2   3      what a sender counts with; a packet's flow number says whose it is
//! ```
//!
//! A subflow whose window has room takes the next packet of the data sequence: no schedule is made beforehand, so a subflow gets as much as its
//! path carries. What a subflow lost it sends again itself. After a timeout the others send what it has under way as well, and it gets nothing
//! new until an ACK comes again (RFC 8684, section 3.3.6).
//!
//! What is left out: ACKs say which packet has come and how far the data sequence is complete, not how far a subflow is. An ACK that gets lost is
//! made up for once the packets before are there, too.

use std::collections::VecDeque;

use netloom_units::{Bytes, Time};

use crate::config::Transport;
use crate::content::Content;
use crate::feedback::Ack;
use crate::sender::Outgoing;
use crate::seq::SeqSet;

/// What the subflows of one flow share.
#[derive(Clone, Debug)]
pub struct Connection {
    content: Content,
    /// The next packet of the data sequence that no subflow has sent.
    next: u32,
    arrived: SeqSet,
    /// Packets that silent subflows have under way, and which subflow has.
    again: VecDeque<(u32, u32)>,
    subflows: Vec<Subflow>,
    /// How many of them are silent.
    silent: u32,
}

#[derive(Clone, Debug)]
struct Subflow {
    /// Its first packet that is not known to have arrived, by its own number.
    base: u32,
    /// The packets that it has sent, from that one on.
    sent: VecDeque<u32>,
    /// Nothing has come back since its timer expired.
    is_silent: bool,
    /// Its window and round-trip time as the sum and the maximum of [`Connection::increase`] take them: cwnd / rtt and cwnd / rtt².
    rate: f64,
    gain: f64,
}

impl Subflow {
    /// Its window and round-trip time are these.
    #[inline]
    fn set(&mut self, window: u64, rtt: Time) {
        let (window, rtt) = (window as f64, rtt.0.max(1) as f64);
        (self.rate, self.gain) = (window / rtt, window / (rtt * rtt));
    }
}

impl Connection {
    /// A flow of `bytes` over that many subflows.
    pub fn new(transport: &Transport, bytes: Bytes, subflows: u32) -> Self {
        Self::over(Content::new(bytes.0, transport.options.mtu.0), subflows)
    }

    /// A stream without anything to send yet.
    pub fn open(subflows: u32) -> Self {
        Self::over(Content::open(), subflows)
    }

    fn over(content: Content, subflows: u32) -> Self {
        let mut idle = Subflow { base: 0, sent: VecDeque::new(), is_silent: false, rate: 0.0, gain: 0.0 };
        idle.set(u64::MAX, Time::ZERO);
        Connection {
            content,
            next: 0,
            arrived: SeqSet::default(),
            again: VecDeque::new(),
            subflows: vec![idle; subflows as usize],
            silent: 0,
        }
    }

    /// Appends bytes to a stream.
    pub fn extend(&mut self, transport: &Transport, bytes: Bytes) {
        self.content.extend(bytes.0, transport.options.mtu.0, self.arrived.base());
    }

    /// Whether everything has arrived and nothing more can come.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.arrived.base() >= self.content.count && !self.content.is_open()
    }

    /// Bytes that a subflow may send beyond what it has sent already.
    #[inline]
    pub fn unsent(&self, transport: &Transport, subflow: u32) -> Bytes {
        let mtu = transport.options.mtu.0;
        let new = if self.next < self.content.count { self.content.unsent(self.next, mtu) } else { 0 };
        match self.is_unsettled() {
            true => self.unsent_unsettled(mtu, subflow, new),
            false => Bytes(new),
        }
    }

    /// The same while some subflows are silent, or others repeat what they had under way. Nobody has sent `new` bytes.
    #[cold]
    #[inline(never)]
    fn unsent_unsettled(&self, mtu: u64, subflow: u32, new: u64) -> Bytes {
        if self.subflows[subflow as usize].is_silent && (self.silent as usize) < self.subflows.len() {
            return Bytes(0);
        }
        let again = self.again.iter().filter(|&&again| self.is_for(subflow, again)).count() as u64;
        Bytes(again * mtu + new)
    }

    /// Whether a subflow should send a packet that another one has under way.
    fn is_for(&self, subflow: u32, (seq, from): (u32, u32)) -> bool {
        from != subflow && !self.arrived.contains(seq)
    }

    /// A subflow sends what its sender has counted; returns what that is in the data sequence.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most the MTU, which TransportOptions::check bounds by 65,535 bytes"
    )]
    pub fn take(&mut self, transport: &Transport, subflow: u32, counted: Outgoing) -> Outgoing {
        let Subflow { base, sent, .. } = &self.subflows[subflow as usize];
        let known = counted.seq.checked_sub(*base).and_then(|index| sent.get(index as usize).copied());
        let (seq, is_new) = match known {
            Some(seq) => (seq, false),
            None => self.draw(subflow),
        };
        if known.is_none() {
            self.subflows[subflow as usize].sent.push_back(seq);
        }
        let (payload, last) = self.content.depart(seq, transport.options.mtu.0, !is_new);
        Outgoing { seq, payload: payload as u16, last, ..counted }
    }

    /// The packet that a subflow sends next, and whether nobody has sent it yet.
    fn draw(&mut self, subflow: u32) -> (u32, bool) {
        match self.again.iter().position(|&again| self.is_for(subflow, again)) {
            Some(place) => (self.again.remove(place).map_or(0, |(seq, _)| seq), false),
            None => {
                debug_assert!(self.next < self.content.count, "an offer must hold");
                self.next += 1;
                (self.next - 1, true)
            }
        }
    }

    /// What came back to a subflow, in its own numbers; `None` if it can be of none of its packets.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "packets of a flow have numbers of 32 bits: Transport::largest_message"
    )]
    pub fn on_answer(&mut self, subflow: u32, answer: Ack, has_arrived: bool) -> Option<Ack> {
        while self.arrived.base() < answer.cumulative {
            self.arrived.insert(self.arrived.base());
        }
        if has_arrived {
            self.arrived.insert(answer.seq);
        }
        let Subflow { base, sent, is_silent, .. } = &mut self.subflows[subflow as usize];
        let is_back = std::mem::take(is_silent);
        self.silent -= u32::from(is_back);
        if !self.again.is_empty() {
            self.again.retain(|&(seq, from)| !(is_back && from == subflow || self.arrived.contains(seq)));
        }
        // Nearly always it is the first one.
        let is_first = sent.front() == Some(&answer.seq);
        let place = if is_first { Some(0) } else { sent.iter().position(|&seq| seq == answer.seq) };
        let seq = match place {
            Some(place) => *base + place as u32,
            // It has been made up for: any earlier packet.
            None => base.checked_sub(1)?,
        };
        while sent.front().is_some_and(|&seq| self.arrived.contains(seq)) {
            sent.pop_front();
            *base += 1;
        }
        Some(Ack { seq, cumulative: *base, ..answer })
    }

    /// The timer of a subflow has expired: the others are to send what it has under way. Returns whether that is news.
    pub fn on_timeout(&mut self, subflow: u32) -> bool {
        let Subflow { sent, is_silent, .. } = &mut self.subflows[subflow as usize];
        if std::mem::replace(is_silent, true) {
            return false;
        }
        self.silent += 1;
        let under_way = sent.iter().filter(|&&seq| !self.arrived.contains(seq));
        self.again.extend(under_way.map(|&seq| (seq, subflow)));
        true
    }

    /// The packets of a silent subflow, by its own numbers, that others have brought to the receiver: those below the number.
    pub fn overtaken(&mut self, subflow: u32) -> Option<u32> {
        let Subflow { base, sent, is_silent, .. } = &mut self.subflows[subflow as usize];
        let before = *base;
        while *is_silent && sent.front().is_some_and(|&seq| self.arrived.contains(seq)) {
            sent.pop_front();
            *base += 1;
        }
        (*base > before).then_some(*base)
    }

    /// Whether an answer may change what subflows may send: some are silent, or others repeat what they had under way.
    #[inline]
    pub fn is_unsettled(&self) -> bool {
        !self.again.is_empty() || self.silent > 0
    }

    /// The window and the round-trip time of a subflow have perhaps changed.
    #[inline]
    pub fn see(&mut self, subflow: u32, window: u64, rtt: Time) {
        self.subflows[subflow as usize].set(window, rtt);
    }

    /// By how many bytes any window grows per byte acknowledged if all together shall take no more than TCP would on the best path:
    /// alpha × MSS / cwnd_total with alpha = cwnd_total × max(cwnd_i / rtt_i²) / (Σ cwnd_i / rtt_i)² (RFC 6356, section 3).
    pub fn increase(&self, packet: Bytes) -> f64 {
        let (mut best, mut sum) = (0.0, 0.0);
        for &Subflow { rate, gain, .. } in &self.subflows {
            // No number among them is none, of which `f64::max` would have to think.
            best = if gain > best { gain } else { best };
            sum += rate;
        }
        packet.0 as f64 * best / (sum * sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transport() -> Transport {
        let mut transport = Transport::default();
        transport.options.mtu = Bytes(1000);
        transport
    }

    fn counted(seq: u32) -> Outgoing {
        Outgoing { seq, payload: 1000, last: false, is_urgent: false, asks_for_ack: false, is_repeat: false }
    }

    fn ack(seq: u32, cumulative: u32) -> Ack {
        Ack {
            now: Time(9),
            seq,
            cumulative,
            sent: Time(1),
            serialisation: Time(0),
            hops: 2,
            marked: false,
            tag: 0,
            at_last_hop: false,
        }
    }

    /// The data that the subflows send, which take turns as given.
    fn take(connection: &mut Connection, counts: &mut [u32], subflow: u32) -> Outgoing {
        counts[subflow as usize] += 1;
        connection.take(&transport(), subflow, counted(counts[subflow as usize] - 1))
    }

    #[test]
    fn subflows_take_the_next_packet_of_the_data_and_the_last_is_what_remains() {
        let mut connection = Connection::new(&transport(), Bytes(3500), 2);
        let mut counts = [0; 2];
        let sent = [0, 1, 1, 0].map(|subflow| {
            let Outgoing { seq, payload, last, .. } = take(&mut connection, &mut counts, subflow);
            (seq, payload, last)
        });
        assert_eq!(sent, [(0, 1000, false), (1, 1000, false), (2, 1000, false), (3, 500, true)]);
        assert_eq!(connection.unsent(&transport(), 0), Bytes(0));
        // A repetition is what it was.
        assert_eq!(connection.take(&transport(), 1, counted(1)).seq, 2);
        assert_eq!((counts, connection.is_done()), ([2, 2], false));
    }

    #[test]
    fn an_answer_is_told_in_the_numbers_of_its_subflow() {
        let mut connection = Connection::new(&transport(), Bytes(6000), 2);
        let mut counts = [0; 2];
        for subflow in [0, 1, 0, 1, 0, 1] {
            take(&mut connection, &mut counts, subflow);
        }
        let mut answer = |subflow, ack| {
            let feedback = connection.on_answer(subflow, ack, true);
            feedback.map(|ack| (ack.seq, ack.cumulative))
        };
        // Data 2 is the second packet of subflow 0, whose first has not arrived.
        assert_eq!(answer(0, ack(2, 0)), Some((1, 0)));
        assert_eq!(answer(1, ack(1, 0)), Some((0, 1)));
        // The ACK of data 0 was lost; data 4 came after it.
        assert_eq!(answer(0, ack(4, 3)), Some((2, 3)));
        assert_eq!(answer(0, ack(4, 3)), Some((2, 3)));
        assert_eq!(answer(1, ack(5, 3)), Some((2, 1)));
        assert_eq!(answer(1, ack(3, 6)), Some((1, 3)));
        assert!(connection.is_done());
    }

    #[test]
    fn what_a_silent_subflow_has_under_way_goes_over_the_others() {
        let mut connection = Connection::new(&transport(), Bytes(5000), 2);
        let mut counts = [0; 2];
        for subflow in [0, 0, 1] {
            take(&mut connection, &mut counts, subflow);
        }
        assert!(connection.on_timeout(0) && !connection.on_timeout(0));
        assert_eq!(
            (connection.unsent(&transport(), 0), connection.unsent(&transport(), 1)),
            (Bytes(0), Bytes(4000))
        );
        let sent = [1, 1, 1, 1].map(|subflow| take(&mut connection, &mut counts, subflow).seq);
        assert_eq!(sent, [0, 1, 3, 4]);
        assert_eq!(
            connection.on_answer(1, ack(0, 1), true).map(|ack| (ack.seq, ack.cumulative)),
            Some((1, 0))
        );
        assert_eq!((connection.overtaken(0), connection.overtaken(1)), (Some(1), None));
        // An ACK has come again: it may send, and what it had under way is its own again.
        assert_eq!(
            connection.on_answer(0, ack(1, 2), true).map(|ack| (ack.seq, ack.cumulative)),
            Some((1, 2))
        );
        assert!(!connection.is_unsettled());
    }

    #[test]
    fn if_all_are_silent_all_may_send() {
        let mut connection = Connection::new(&transport(), Bytes(9000), 2);
        let mut counts = [0; 2];
        for subflow in [0, 1] {
            take(&mut connection, &mut counts, subflow);
        }
        assert!(connection.on_timeout(0) && connection.on_timeout(1));
        // Seven that nobody has sent, and the other's one.
        assert_eq!([0, 1].map(|subflow| connection.unsent(&transport(), subflow)), [Bytes(8000); 2]);
        assert_eq!(take(&mut connection, &mut counts, 0).seq, 1);
    }

    /// RFC 6356, section 3: with equal round-trip times alpha is 1 / n of what n windows would have, so that all grow as one.
    #[test]
    fn equal_subflows_grow_as_one_tcp() {
        let mut connection = Connection::new(&transport(), Bytes(1), 4);
        (0..4).for_each(|subflow| connection.see(subflow, 20_000, Time::from_us(50)));
        // One window of 80,000 bytes grows by MSS / cwnd; each of the four by a fourth of that per byte, of which it has a fourth.
        let alone = 1500.0 / 80_000.0;
        assert!((connection.increase(Bytes(1500)) - alone / 4.0).abs() < 1e-12);
        let mut single = Connection::new(&transport(), Bytes(1), 1);
        single.see(0, 20_000, Time::from_us(50));
        assert!((single.increase(Bytes(1500)) - 1500.0 / 20_000.0).abs() < 1e-12);
    }

    /// Windows of 10 and 40 kB, round trips of 100 and 200 us: max(1, 1) / (0.1 + 0.2)² in units of kB and 100 us.
    #[test]
    fn unequal_round_trips_follow_the_formula() {
        let mut connection = Connection::new(&transport(), Bytes(1), 2);
        connection.see(0, 10_000, Time::from_us(100));
        connection.see(1, 40_000, Time::from_us(200));
        let (one, two): (f64, f64) = (10_000.0 / (100.0 * 100.0), 40_000.0 / (200.0 * 200.0));
        let sum: f64 = 10_000.0 / 100.0 + 40_000.0 / 200.0;
        let expected = 1000.0 * one.max(two) / (sum * sum);
        assert!((connection.increase(Bytes(1000)) - expected).abs() < 1e-12);
        assert!((expected - 1.0 / 90.0).abs() < 1e-12);
    }
}
