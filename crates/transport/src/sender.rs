//! The sending side of a flow.

use netloom_units::{Bytes, Rate, Time};

use crate::config::{Reliability, Transport};
use crate::congestion::Window;
use crate::feedback::{Ack, Cause, Feedback};
use crate::seq::SeqSet;
use crate::stream::Stream;

/// What a sender knows of its path before it sends anything.
#[derive(Clone, Copy, Debug)]
pub struct PathFacts {
    /// Round-trip time of a full packet and its ACK on an idle fabric.
    pub base_rtt: Time,
    /// Rate of the NIC.
    pub rate: Rate,
    /// Whether packets can be lost on the way, so that timeouts must be armed.
    pub lossy: bool,
}

/// A data packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its number.
    pub seq: u32,
    /// Its payload in bytes.
    pub payload: u16,
    /// Whether it is the flow's last. Not known, hence false, while the flow is open.
    pub last: bool,
}

/// What a sender has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounts {
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Timeouts.
    pub timeouts: u32,
}

/// The sending side of one flow.
///
/// A flow has a known length ([`new`](Self::new)), or it is a stream ([`open`](Self::open)) that is extended while it is open. Either numbers at
/// most 2³² − 1 packets.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Length of a flow that is no stream.
    bytes: u64,
    /// Number of packets of the flow, as far as it is known.
    count: u32,
    /// What a stream's packets hold.
    stream: Option<Box<Stream>>,
    /// Next number that was never sent.
    next: u32,
    acked: SeqSet,
    /// Numbers from here up to `resend_end` that are not acknowledged must be sent again.
    resend: u32,
    resend_end: u32,
    /// Packets sent and neither acknowledged nor given up.
    in_flight: u32,
    window: Window,
    /// Earliest departure of the next packet under pacing.
    pace: Time,
    base_rtt: Time,
    timeout: Timeout,
    /// What it has done so far.
    pub counts: SendCounts,
}

/// Retransmission timeout after RFC 6298.
#[derive(Clone, Debug)]
struct Timeout {
    armed: bool,
    smoothed: Option<(Time, Time)>,
    backoff: u32,
    /// Last time something was sent or acknowledged.
    progress: Time,
}

impl Timeout {
    fn duration(&self, transport: &Transport) -> Time {
        let options = &transport.options;
        let base = match self.smoothed {
            Some((srtt, var)) => (srtt + var * 4).max(options.rto_min),
            None => options.rto_initial,
        };
        base * (1 << self.backoff.min(6))
    }

    fn sample(&mut self, rtt: Time) {
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((srtt, var)) => {
                let error = Time(srtt.0.abs_diff(rtt.0));
                ((srtt * 7 + rtt) / 8, (var * 3 + error) / 4)
            }
        });
    }
}

impl Sender {
    /// A flow of `bytes` (at least 1) that begins at `now`.
    pub fn new(transport: &Transport, bytes: Bytes, path: PathFacts, now: Time) -> Self {
        Sender {
            bytes: bytes.0,
            count: bytes.0.div_ceil(transport.options.mtu.0) as u32,
            stream: None,
            next: 0,
            acked: SeqSet::default(),
            resend: 0,
            resend_end: 0,
            in_flight: 0,
            window: Window::new(transport, path),
            pace: now,
            base_rtt: path.base_rtt,
            timeout: Timeout { armed: path.lossy, smoothed: None, backoff: 0, progress: now },
            counts: SendCounts::default(),
        }
    }

    /// A stream: an open flow without anything to send yet.
    pub fn open(transport: &Transport, path: PathFacts, now: Time) -> Self {
        let stream = Some(Box::new(Stream::open()));
        Sender { stream, ..Sender::new(transport, Bytes(0), path, now) }
    }

    /// Appends bytes to an open flow, in packets of their own: full ones, and one of what remains. Does nothing if the flow is closed.
    ///
    /// Equal extensions cost no memory. An extension of another size than the one before costs 16 bytes until its packets are
    /// acknowledged and the next such extension comes.
    #[inline]
    pub fn extend(&mut self, transport: &Transport, bytes: Bytes) {
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.is_open && bytes.0 > 0) {
            self.count += stream.extend(bytes.0, transport.options.mtu.0, self.count, self.acked.base());
        }
    }

    /// Ends an open flow: what is unsent now is its last.
    pub fn close(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.is_open = false;
        }
    }

    /// Whether more bytes may be appended.
    pub fn is_open(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_open)
    }

    /// Whether everything is acknowledged (without ACKs: sent) and nothing more can come.
    pub fn is_done(&self) -> bool {
        self.acked.base() >= self.count && !self.is_open()
    }

    /// Packets sent and neither acknowledged nor given up.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Number of the next packet never sent.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Number of the oldest packet not acknowledged.
    pub fn oldest(&self) -> u32 {
        self.acked.base()
    }

    /// Whether something given up waits to be sent again.
    pub fn must_resend(&self) -> bool {
        self.resend < self.resend_end
    }

    /// Bytes never sent.
    pub fn remaining(&self, transport: &Transport) -> Bytes {
        let sent = u64::from(self.next) * transport.options.mtu.0;
        Bytes(self.stream.as_ref().map_or(self.bytes.saturating_sub(sent), |stream| stream.unsent))
    }

    /// Whether there is something to send that the window allows, and from when on pacing allows it.
    #[inline]
    pub fn ready(&self, transport: &Transport) -> Option<Time> {
        let has_data = self.next < self.count || self.resend < self.resend_end;
        // A packet may leave if a full packet more still fits the window: windows count whole packets.
        let packet = transport.packet_size().0;
        let fits = u64::from(self.in_flight) * packet + packet <= self.window.bytes();
        (has_data && fits).then_some(self.pace)
    }

    /// Takes the next packet to send at `now`; `None` if there is none.
    #[inline]
    pub fn take(&mut self, transport: &Transport, now: Time) -> Option<Outgoing> {
        while self.resend < self.resend_end && self.acked.contains(self.resend) {
            self.resend += 1;
        }
        let (seq, again) = if self.resend < self.resend_end {
            self.resend += 1;
            self.counts.retransmissions += 1;
            (self.resend - 1, true)
        } else if self.next < self.count {
            self.next += 1;
            (self.next - 1, false)
        } else {
            return None;
        };
        if transport.has_acks() {
            self.in_flight += 1;
        } else {
            self.acked.insert(seq);
        }
        self.counts.packets += 1;
        self.timeout.progress = now;
        let mut last = seq + 1 == self.count;
        let mtu = transport.options.mtu.0;
        let payload = match &mut self.stream {
            None if last => self.bytes - u64::from(seq) * mtu,
            None => mtu,
            Some(stream) => {
                last &= !stream.is_open;
                let payload = stream.payload(seq, mtu);
                stream.unsent -= if again { 0 } else { payload };
                payload
            }
        };
        if transport.options.paced {
            let rtt = self.timeout.smoothed.map_or(self.base_rtt, |(srtt, _)| srtt);
            let size = payload + transport.options.header.0;
            let gap = u128::from(rtt.0) * u128::from(size) / u128::from(self.window.bytes().max(1));
            self.pace = self.pace.max(now) + Time(gap as u64);
        }
        Some(Outgoing { seq, payload: payload as u16, last })
    }

    /// An ACK arrived.
    #[inline]
    pub fn on_ack(&mut self, transport: &Transport, ack: Ack) -> Feedback {
        let mut newly = 0;
        while self.acked.base() < ack.cumulative {
            newly += self.acknowledge(self.acked.base());
        }
        // Go-back-N acknowledges nothing beyond the cumulative number.
        if ack.seq >= self.acked.base() && matches!(transport.reliability, Reliability::SelectiveRepeat(_)) {
            newly += self.acknowledge(ack.seq);
        }
        if newly > 0 {
            self.timeout.backoff = 0;
            self.timeout.progress = ack.now;
        }
        if self.timeout.armed || transport.options.paced {
            self.timeout.sample(ack.now - ack.sent);
        }
        let mut feedback = self.feedback(transport, Cause::Ack, ack);
        (feedback.packets, feedback.bytes) = (newly, u64::from(newly) * transport.packet_size().0);
        feedback.window_cut = self.window.on_feedback(transport, &feedback);
        feedback
    }

    /// Where the flow stands, with nothing newly acknowledged.
    #[inline(always)]
    fn feedback(&self, transport: &Transport, cause: Cause, about: Ack) -> Feedback {
        Feedback {
            now: about.now,
            cause,
            seq: about.seq,
            rtt: about.now - about.sent,
            way: about.way,
            hops: about.hops,
            marked: about.marked,
            tag: about.tag,
            packets: 0,
            bytes: 0,
            in_flight: self.in_flight,
            oldest: self.acked.base(),
            next: self.next,
            remaining: self.remaining(transport),
            window_cut: false,
        }
    }

    fn acknowledge(&mut self, seq: u32) -> u32 {
        if !self.acked.insert(seq) {
            return 0;
        }
        // Go-back-N may be overtaken by an ACK for a packet it is about to send again.
        let given_up = (self.resend..self.resend_end).contains(&seq);
        self.in_flight -= u32::from(!given_up && self.in_flight > 0);
        1
    }

    /// The receiver asks for everything from a number on (go-back-N).
    pub fn on_nack(&mut self, transport: &Transport, nack: Ack) -> Feedback {
        let expected = nack.cumulative;
        let mut newly = 0;
        while self.acked.base() < expected {
            newly += self.acknowledge(self.acked.base());
        }
        // An old NACK asks for what has been acknowledged since.
        let is_new = self.acked.base() == expected && expected < self.next;
        if is_new {
            self.give_up();
        }
        self.timeout.progress = nack.now;
        let mut feedback = self.feedback(transport, Cause::Nack, Ack { seq: expected, ..nack });
        (feedback.packets, feedback.bytes) = (newly, u64::from(newly) * transport.packet_size().0);
        feedback.window_cut = is_new && self.window.on_feedback(transport, &feedback);
        feedback
    }

    /// Everything unacknowledged is to be sent again.
    fn give_up(&mut self) {
        self.resend = self.acked.base();
        self.resend_end = self.next;
        self.in_flight = 0;
    }

    /// When the retransmission timer expires if nothing happens; `None` while nothing can be lost.
    pub fn deadline(&self, transport: &Transport) -> Option<Time> {
        let waits = self.timeout.armed && self.in_flight > 0;
        waits.then(|| self.timeout.progress + self.timeout.duration(transport))
    }

    /// The deadline passed.
    pub fn on_timeout(&mut self, transport: &Transport, now: Time) -> Feedback {
        self.counts.timeouts += 1;
        self.timeout.backoff += 1;
        self.timeout.progress = now;
        self.give_up();
        let seq = self.resend;
        let nothing =
            Ack { now, seq, cumulative: seq, sent: now, way: Time::ZERO, hops: 0, marked: false, tag: 0 };
        let mut feedback = self.feedback(transport, Cause::Timeout, nothing);
        feedback.window_cut = self.window.on_feedback(transport, &feedback);
        feedback
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Congestion, TransportOptions};
    use crate::congestion::fixed_window::FixedWindow;

    const RTT: Time = Time::from_us(10);

    fn transport(window_packets: u64, reliability: Reliability) -> Transport {
        let bytes = Some(Bytes(window_packets * 4160));
        Transport {
            reliability,
            congestion: Congestion::FixedWindow(FixedWindow { bytes, ..FixedWindow::default() }),
            ..Transport::default()
        }
    }

    fn selective(window_packets: u64) -> Transport {
        transport(window_packets, Reliability::SelectiveRepeat(Default::default()))
    }

    fn go_back_n(window_packets: u64) -> Transport {
        transport(window_packets, Reliability::GoBackN(Default::default()))
    }

    fn sender(transport: &Transport, packets: u64) -> Sender {
        let path = PathFacts { base_rtt: RTT, rate: Rate::from_gbps(200), lossy: true };
        Sender::new(transport, Bytes(packets * 4096 - 96), path, Time::ZERO)
    }

    /// Without ACKs, in packets of up to 1500 B.
    fn unacknowledged() -> Transport {
        Transport {
            options: TransportOptions { mtu: Bytes(1500), ..TransportOptions::default() },
            reliability: Reliability::None(Default::default()),
            congestion: Congestion::None(Default::default()),
        }
    }

    fn stream(transport: &Transport) -> Sender {
        let path = PathFacts { base_rtt: RTT, rate: Rate::from_gbps(10), lossy: false };
        Sender::open(transport, path, Time::ZERO)
    }

    fn take_all(sender: &mut Sender, transport: &Transport) -> Vec<(u32, u16, bool)> {
        std::iter::from_fn(|| sender.take(transport, Time::ZERO))
            .map(|packet| (packet.seq, packet.payload, packet.last))
            .collect()
    }

    fn send_all(sender: &mut Sender, transport: &Transport) -> Vec<u32> {
        let mut sent = Vec::new();
        while sender.ready(transport).is_some() {
            match sender.take(transport, Time::ZERO) {
                Some(packet) => sent.push(packet.seq),
                None => break,
            }
        }
        sent
    }

    fn ack(seq: u32, cumulative: u32) -> Ack {
        Ack { now: RTT, seq, cumulative, sent: Time::ZERO, way: Time::ZERO, hops: 2, marked: false, tag: 0 }
    }

    #[test]
    fn the_window_limits_what_is_in_flight() {
        let transport = selective(4);
        let mut sender = sender(&transport, 6);
        assert_eq!(send_all(&mut sender, &transport), [0, 1, 2, 3]);
        sender.on_ack(&transport, ack(2, 0));
        assert_eq!(send_all(&mut sender, &transport), [4]);
        sender.on_ack(&transport, ack(0, 1));
        let last = sender.take(&transport, RTT).unwrap();
        assert_eq!((last.seq, last.payload, last.last), (5, 4000, true));
    }

    #[test]
    fn a_timeout_sends_only_what_is_not_acknowledged() {
        let transport = selective(8);
        let mut sender = sender(&transport, 5);
        send_all(&mut sender, &transport);
        sender.on_ack(&transport, ack(1, 0));
        sender.on_ack(&transport, ack(3, 0));
        let deadline = sender.deadline(&transport).unwrap();
        assert_eq!(deadline, RTT + transport.options.rto_min);
        sender.on_timeout(&transport, deadline);
        assert_eq!(send_all(&mut sender, &transport), [0, 2, 4]);
        assert_eq!((sender.counts.retransmissions, sender.counts.timeouts), (3, 1));
        for (seq, cumulative) in [(0, 2), (2, 4), (4, 5)] {
            assert!(!sender.is_done());
            sender.on_ack(&transport, ack(seq, cumulative));
        }
        assert!(sender.is_done());
        assert_eq!(sender.in_flight(), 0);
        assert_eq!(sender.deadline(&transport), None);
    }

    #[test]
    fn a_nack_rewinds_and_an_old_one_does_not() {
        let transport = go_back_n(8);
        let mut sender = sender(&transport, 6);
        assert_eq!(send_all(&mut sender, &transport), [0, 1, 2, 3, 4, 5]);
        sender.on_nack(&transport, ack(2, 2));
        assert_eq!(send_all(&mut sender, &transport), [2, 3, 4, 5]);
        sender.on_ack(&transport, ack(4, 5));
        sender.on_nack(&transport, ack(3, 3));
        assert!(send_all(&mut sender, &transport).is_empty());
        sender.on_ack(&transport, ack(5, 6));
        assert!(sender.is_done());
    }

    #[test]
    fn timeouts_back_off_exponentially() {
        let transport = selective(8);
        let mut sender = sender(&transport, 2);
        send_all(&mut sender, &transport);
        let mut now = Time::ZERO;
        for round in 0..3 {
            let deadline = sender.deadline(&transport).unwrap();
            assert_eq!(deadline - now, transport.options.rto_initial * (1 << round));
            now = deadline;
            sender.on_timeout(&transport, now);
            sender.take(&transport, now);
        }
    }

    #[test]
    fn pacing_spreads_a_window_over_a_round_trip() {
        let mut transport = selective(10);
        transport.options.paced = true;
        let mut sender = sender(&transport, 20);
        for step in 0..10 {
            let at = sender.ready(&transport).unwrap();
            assert_eq!(at, RTT / 10 * step);
            sender.take(&transport, at);
        }
    }

    #[test]
    fn without_acks_a_flow_is_done_when_all_is_sent() {
        let transport = unacknowledged();
        let path = PathFacts { base_rtt: RTT, rate: Rate::from_gbps(10), lossy: true };
        let mut sender = Sender::new(&transport, Bytes(3100), path, Time::ZERO);
        for last in [false, false, true] {
            assert!(!sender.is_done());
            let packet = sender.take(&transport, Time::ZERO).unwrap();
            assert_eq!((packet.payload, packet.last), (if last { 100 } else { 1500 }, last));
            assert_eq!((sender.in_flight(), sender.deadline(&transport)), (0, None));
        }
        assert!(sender.is_done());
    }

    #[test]
    fn a_stream_is_extended_until_it_is_closed() {
        let transport = unacknowledged();
        let mut sender = stream(&transport);
        assert_eq!((sender.ready(&transport), sender.is_done()), (None, false));
        sender.extend(&transport, Bytes(1500));
        sender.extend(&transport, Bytes(2000));
        assert_eq!(sender.remaining(&transport), Bytes(3500));
        assert_eq!(take_all(&mut sender, &transport), [(0, 1500, false), (1, 1500, false), (2, 500, false)]);
        assert_eq!((sender.remaining(&transport), sender.is_done()), (Bytes(0), false));
        sender.extend(&transport, Bytes(64));
        sender.extend(&transport, Bytes(64));
        sender.close();
        assert_eq!(take_all(&mut sender, &transport), [(3, 64, false), (4, 64, true)]);
        assert!(sender.is_done());
        sender.extend(&transport, Bytes(64));
        assert!(sender.is_done() && sender.take(&transport, Time::ZERO).is_none());
    }

    #[test]
    fn a_stream_sends_again_what_it_sent() {
        let transport = selective(8);
        let mut sender = stream(&transport);
        for bytes in [4096, 100, 100, 5000] {
            sender.extend(&transport, Bytes(bytes));
        }
        let sent = take_all(&mut sender, &transport);
        assert_eq!(sent.iter().map(|packet| packet.1).collect::<Vec<_>>(), [4096, 100, 100, 4096, 904]);
        sender.on_ack(&transport, ack(1, 0));
        sender.on_timeout(&transport, RTT);
        // Sizes that are still wanted outlive those that are added.
        sender.extend(&transport, Bytes(7));
        assert_eq!(sender.remaining(&transport), Bytes(7));
        let again = take_all(&mut sender, &transport);
        let wanted: Vec<_> = [0, 2, 3, 4].map(|seq| sent[seq]).into_iter().chain([(5, 7, false)]).collect();
        assert_eq!(again, wanted);
    }

    #[test]
    fn a_long_stream_is_as_small_as_a_short_one() {
        for transport in [unacknowledged(), selective(8)] {
            let mut sender = stream(&transport);
            for seq in 0..100_000 {
                sender.extend(&transport, Bytes(1000 + u64::from(seq) % 2));
                sender.take(&transport, Time::ZERO).unwrap();
                if transport.has_acks() {
                    sender.on_ack(&transport, ack(seq, seq + 1));
                }
                assert!(sender.acked.is_contiguous());
            }
            assert_eq!((sender.oldest(), sender.in_flight()), (100_000, 0));
        }
    }
}
