use netloom_units::{Bytes, Rate, Time};

use super::*;
use crate::receiver::{Arrival, Receiver, SackAnswer, sack_first};
use crate::reliability::pds::Pds;
use crate::{Congestion, PathFacts, Reliability};

const MTU: u64 = 1000;
const RTT: Time = Time::from_us(10);

/// Packets of 1000 B, headers of 64 B, and a window of the given number of packets.
fn transport(ack_bytes: u64, window: u64) -> Transport {
    let mut transport = Transport::default();
    transport.options.mtu = Bytes(MTU);
    transport.options.rto_min = Time::from_us(100);
    transport.options.rto_initial = Time::from_us(100);
    transport.options.rto_max = Some(Time::from_us(100));
    transport.reliability = Reliability::Pds(Pds { ack_bytes: Bytes(ack_bytes), sleek: None });
    let window = crate::congestion::fixed_window::FixedWindow {
        bytes: Some(Bytes(window * 1064 + 1)),
        ..Default::default()
    };
    transport.congestion = Congestion::FixedWindow(window);
    transport.check().unwrap();
    transport
}

const PATH: PathFacts =
    PathFacts { base_rtt: RTT, rate: Rate::from_gbps(100), lossy: true, reorders: true, trims: true };

fn sender(transport: &Transport, packets: u64) -> Sender {
    Sender::new(transport, Bytes(packets * MTU), PATH, Time::ZERO)
}

/// What may leave at an instant: numbers, and which of them ask for ACKs.
fn leave(sender: &mut Sender, transport: &Transport, now: Time) -> Vec<(u32, bool)> {
    let mut left = Vec::new();
    while sender.ready(transport).is_some_and(|at| at <= now) {
        let packet = sender.take(transport, now).unwrap();
        left.push((packet.seq, packet.asks_for_ack));
    }
    left
}

fn about(now: Time, seq: u32, cumulative: u32) -> Ack {
    let (sent, serialisation) = (Time::ZERO, Time::ZERO);
    Ack { now, seq, cumulative, sent, serialisation, hops: 2, marked: false, tag: 7, at_last_hop: false }
}

fn sack(received: u32, first: u32, numbers: &[u32]) -> Sack {
    let bits = numbers.iter().map(|seq| 1 << (seq - first)).fold(0, |bits: u64, bit| bits | bit);
    Sack { received, first, bits, is_repeat: false }
}

fn us(us: u64) -> Time {
    Time::from_us(us)
}

#[test]
fn the_last_packet_and_the_one_that_fills_the_window_ask_for_acks() {
    let transport = transport(4000, 4);
    let mut long = sender(&transport, 9);
    assert_eq!(leave(&mut long, &transport, us(0)), [(0, false), (1, false), (2, false), (3, true)]);
    let mut short = sender(&transport, 2);
    assert_eq!(leave(&mut short, &transport, us(0)), [(0, false), (1, true)]);
}

#[test]
fn the_number_received_moves_the_window_and_the_bitmap_says_which() {
    let transport = transport(4000, 6);
    let mut sender = sender(&transport, 20);
    leave(&mut sender, &transport, us(0));
    // Packets 1 to 4 have come, but the bitmap begins at 3.
    let feedback = sender.on_sack(&transport, about(us(10), 4, 0), sack(4, 3, &[3, 4]));
    assert_eq!(
        (feedback.packets, feedback.in_flight, feedback.is_sampled, feedback.rtt),
        (4, 2, true, us(10))
    );
    assert_eq!((sender.oldest(), sender.in_flight()), (0, 2));
    assert_eq!(leave(&mut sender, &transport, us(10)).len(), 4);
    // An older ACK that was overtaken counts nothing twice.
    let feedback = sender.on_sack(&transport, about(us(11), 1, 0), sack(1, 1, &[1]));
    assert_eq!((feedback.packets, sender.in_flight()), (0, 6));
    let feedback = sender.on_sack(&transport, about(us(12), 0, 5), sack(5, 6, &[]));
    assert_eq!((feedback.packets, sender.oldest(), sender.in_flight()), (1, 5, 5));
}

#[test]
fn a_packet_that_arrives_after_it_was_given_up_is_in_flight_only_once() {
    let transport = transport(0, 4);
    let mut sender = sender(&transport, 20);
    leave(&mut sender, &transport, us(0));
    let due = sender.deadline(&transport).unwrap();
    assert_eq!(due, us(100));
    // All four left at the same instant.
    sender.on_timer(&transport, due);
    assert_eq!((sender.in_flight(), sender.must_resend()), (0, true));
    // One is sent again; then the ACK of another one comes, which says nothing of it yet but the number.
    assert_eq!(sender.take(&transport, due).map(|packet| (packet.seq, packet.is_repeat)), Some((0, true)));
    sender.on_sack(&transport, about(us(101), 3, 0), sack(1, 60, &[]));
    assert_eq!(sender.in_flight(), 0);
    sender.on_sack(&transport, about(us(102), 3, 0), sack(1, 3, &[3]));
    assert_eq!(sender.in_flight(), 1, "packet 0, sent again");
    sender.on_sack(&transport, about(us(103), 3, 0), sack(3, 1, &[1, 2, 3]));
    assert_eq!((sender.in_flight(), sender.must_resend()), (1, false));
    // More have come than are believed to be under way: the rest is not forgotten.
    let mut early = self::sender(&transport, 20);
    leave(&mut early, &transport, us(0));
    early.on_timer(&transport, due);
    early.on_sack(&transport, about(us(101), 3, 0), sack(2, 60, &[]));
    assert_eq!(early.in_flight(), 0);
    early.on_sack(&transport, about(us(102), 3, 0), sack(2, 2, &[2, 3]));
    assert_eq!((early.in_flight(), early.must_resend()), (0, true));
}

#[test]
fn only_a_departure_that_is_clear_is_a_sample() {
    let transport = transport(0, 4);
    let mut sender = sender(&transport, 20);
    leave(&mut sender, &transport, us(0));
    let nack = Ack { sent: us(0), ..about(us(20), 1, 0) };
    assert_eq!(sender.on_nack(&transport, nack).cause, Cause::Trim);
    assert_eq!((sender.in_flight(), sender.must_resend()), (3, true));
    assert_eq!(leave(&mut sender, &transport, us(20)), [(1, true)]);
    // An ACK for the first departure of a packet that has left twice.
    let sampled = |sender: &mut Sender, at, seq, is_repeat| {
        let sack = Sack { is_repeat, ..sack(0, 40, &[]) };
        let feedback = sender.on_sack(&transport, about(at, seq, 0), sack);
        (feedback.is_sampled, feedback.rtt)
    };
    assert_eq!(sampled(&mut sender, us(25), 1, false), (false, RTT), "nothing was measured yet");
    assert_eq!(sampled(&mut sender, us(33), 1, true), (true, us(13)));
    assert_eq!(sampled(&mut sender, us(34), 0, true), (false, us(13)), "the smoothed one");
    // The NACK of a departure that was repaired since says nothing.
    sender.on_nack(&transport, nack);
    assert!(!sender.must_resend());
}

#[test]
fn a_timeout_repeats_what_is_overdue_and_does_not_grow() {
    let transport = transport(4000, 4);
    let mut sender = sender(&transport, 20);
    for i in 0..4 {
        sender.take(&transport, us(i)).unwrap();
    }
    for at in [100, 101, 102] {
        assert_eq!(sender.deadline(&transport), Some(us(at)));
        sender.on_timer(&transport, us(at));
        assert_eq!(sender.in_flight(), 3);
        assert_eq!(leave(&mut sender, &transport, us(at)).len(), 1);
    }
    assert_eq!(sender.counts.timeouts, 3);
    // The window may shrink after packets have left that ask for no ACK: there are timeouts where nothing is lost, too.
    let path = PathFacts { lossy: false, ..PATH };
    let mut safe = Sender::new(&transport, Bytes(20 * MTU), path, Time::ZERO);
    safe.take(&transport, us(0)).unwrap();
    assert_eq!(safe.deadline(&transport), Some(us(100)));
}

/// uet-htsim, `rtxTimerExpired`: a packet that may not leave again yet is asked about, unless others wait already.
#[test]
fn a_timeout_after_which_the_window_is_full_asks_for_an_ack_once() {
    let mut transport = transport(4000, 4);
    transport.congestion =
        Congestion::Nscc(crate::congestion::nscc::Nscc { initial_window: Some(4), ..Default::default() });
    let mut sender = sender(&transport, 20);
    for i in 0..4 {
        sender.take(&transport, us(i)).unwrap();
    }
    for (at, asks, left) in
        [(100, true, vec![]), (101, false, vec![]), (102, false, vec![]), (103, false, vec![0])]
    {
        sender.on_timer(&transport, us(at));
        assert_eq!(sender.take_request(), asks, "at {at} us");
        let numbers: Vec<u32> =
            leave(&mut sender, &transport, us(at)).into_iter().map(|(seq, _)| seq).collect();
        assert_eq!(numbers, left, "at {at} us");
    }
}

/// A receiver of packets of 1000 B.
struct Sink {
    transport: Transport,
    receiver: Receiver,
}

impl Sink {
    fn new(ack_bytes: u64) -> Self {
        Sink { transport: transport(ack_bytes, 4), receiver: Receiver::default() }
    }

    /// Whether the packet has an ACK.
    fn take(&mut self, seq: u32, asks: bool, marked: bool) -> bool {
        let Some(bytes) = self.transport.reliability.facts().sack_bytes else { panic!("sacks") };
        let arrival = Arrival { now: us(1), seq, payload: 1000, last: seq == 99, marked, path: 0 };
        let SackAnswer { is_due, notify } =
            self.receiver.on_data_to_sack(&self.transport, bytes, arrival, asks, 1064);
        assert!(!notify);
        is_due
    }
}

#[test]
fn an_ack_is_due_first_after_enough_bytes_and_at_once_for_marks_requests_and_duplicates() {
    let mut sink = Sink::new(4000);
    let due: Vec<u32> = (0..10).filter(|&seq| sink.take(seq, false, false)).collect();
    assert_eq!(due, [0, 4, 8], "4 packets are 4256 bytes");
    assert!(sink.take(11, false, true) && sink.take(12, true, false) && sink.take(5, false, false));
    assert!(!sink.take(13, false, false));
    // Packet 12 asked while 10 was missing.
    assert!(sink.take(10, false, false));
    assert!(!sink.take(14, false, false));
    assert_eq!(sink.receiver.seen.marks, 1);
    // Bytes that came twice count, too.
    let mut each = Sink::new(0);
    assert!((0..10).all(|seq| each.take(seq, false, false)));
}

#[test]
fn the_bitmap_begins_with_the_packet_itself_or_as_early_as_it_can() {
    let mut sink = Sink::new(4000);
    for seq in [0, 2, 3, 70, 80, 133] {
        sink.take(seq, false, false);
    }
    let (expected, sack) = sink.receiver.sack(80, false, true);
    assert_eq!((expected, sack.received, sack.first, sack.is_repeat), (1, 6, 17, true));
    assert_eq!(sack.bits, 1 << (70 - 17) | 1 << (80 - 17));
    let (_, sack) = sink.receiver.sack(80, true, false);
    assert_eq!((sack.first, sack.bits), (80, 1 | 1 << (133 - 80)));
    assert_eq!(sink.receiver.sack(3, false, false).1.first, 2);
    assert_eq!((sack_first(u32::MAX, u32::MAX, false), sack_first(0, u32::MAX, true)), (u32::MAX, 0));
}

#[test]
fn what_does_not_go_with_bitmaps_is_refused() {
    let refused = |change: fn(&mut Transport)| {
        let mut transport = transport(4000, 4);
        change(&mut transport);
        transport.check().map_err(|error| error.field.to_string())
    };
    assert_eq!(refused(|_| {}), Ok(()));
    assert_eq!(refused(|transport| transport.options.ack_every = 2), Err("ack_every".into()));
    assert_eq!(refused(|transport| transport.options.handshake = true), Err("handshake".into()));
    assert_eq!(refused(|transport| transport.options.subflows = 2), Err("subflows".into()));
    assert_eq!(
        refused(|transport| transport.options.reorder = crate::Reorder::Buffer(Default::default())),
        Err("reorder".into())
    );
    assert_eq!(
        refused(|transport| transport.congestion = Congestion::Pulls(Default::default())),
        Err("congestion".into())
    );
    assert_eq!(
        refused(|transport| transport.congestion = Congestion::MpRdma(Default::default())),
        Err("congestion".into())
    );
    assert_eq!(
        refused(|transport| transport.reliability =
            Reliability::Pds(Pds { ack_bytes: Bytes(1 << 40), sleek: None })),
        Err("reliability.ack_bytes".into())
    );
}

/// The same with NSCC, a window of eight packets, an ACK for each packet, and SLEEK.
fn with_sleek() -> Transport {
    let mut transport = transport(0, 1);
    transport.reliability = Reliability::Pds(Pds { ack_bytes: Bytes(0), sleek: Some(Default::default()) });
    let nscc = crate::congestion::nscc::Nscc { initial_window: Some(8), ..Default::default() };
    transport.congestion = Congestion::Nscc(nscc);
    transport.check().unwrap();
    transport
}

/// Packet 0 is lost. It leaves again, once and before anything new, with the ACK by which 1.5 windows have come beyond it, and no other packet does.
#[test]
fn what_is_missing_behind_one_and_a_half_windows_leaves_again_whatever_is_in_flight() {
    let transport = with_sleek();
    let mut sender = sender(&transport, 200);
    let mut under_way = std::collections::VecDeque::new();
    under_way.extend(leave(&mut sender, &transport, us(0)).iter().skip(1).map(|&(seq, _)| (seq, us(0))));
    let (mut now, mut received) = (us(0), 0);
    loop {
        let (seq, sent) = under_way.pop_front().unwrap();
        (received, now) = (received + 1, (now + Time::from_ns(100)).max(sent + us(10)));
        sender.on_sack(&transport, about(now, seq, 0), sack(received, seq, &[seq]));
        let threshold = (sender.window() * 3 / 2).min(187_500) / MTU;
        let left = leave(&mut sender, &transport, now);
        let repeats = left.iter().filter(|&&(seq, _)| seq == 0).count();
        assert_eq!(repeats == 1, u64::from(received) >= threshold.max(5), "{received} of {threshold}");
        if repeats == 1 {
            assert_eq!(left[0], (0, true));
            break;
        }
        under_way.extend(left.iter().map(|&(seq, _)| (seq, now)));
    }
    // Once only, however many come beyond it; new ones leave as the window allows.
    let (seq, _) = under_way.pop_front().unwrap();
    sender.on_sack(&transport, about(now, seq, 0), sack(received + 1, seq, &[seq]));
    assert!(leave(&mut sender, &transport, now).iter().all(|&(seq, _)| seq > 0));
    // It is over once all that had been sent by then has come.
    let next = sender.next();
    sender.on_sack(&transport, about(now, 0, next), sack(next, next, &[]));
    assert!(!sender.sleek.as_ref().unwrap().recovers);
    assert_eq!(sender.counts.retransmissions, 1);
}

/// The last of six packets is lost, and five ACKs are too few. Nothing more is to be sent, so a probe leaves a round trip and the target delay (0.75 of it, as the fabric trims) after the last ACK. An answer that was
/// delayed by the target or more only waits for the next probe, five round trips later.
#[test]
fn a_probe_that_was_not_delayed_shows_what_is_missing_at_the_end() {
    let transport = with_sleek();
    for (delay, repeats) in [(Time::from_ns(7_499), true), (Time::from_ns(7_500), false)] {
        let mut sender = sender(&transport, 6);
        assert_eq!(leave(&mut sender, &transport, us(0)).len(), 6);
        for seq in 0..5 {
            sender.on_sack(&transport, about(us(10), seq, seq + 1), sack(seq + 1, seq + 1, &[]));
        }
        let due = us(10) + RTT + Time::from_ns(7_500);
        assert_eq!(sender.deadline(&transport), Some(due));
        sender.on_timer(&transport, due);
        assert_eq!((sender.take_probe(), sender.take_probe()), (Some(1), None));
        assert_eq!(sender.deadline(&transport), Some(due + RTT * 5));
        let back = due + RTT + delay;
        sender.on_probe_answer(&transport, about(back, 5, 5), sack(5, 5, &[]), 1);
        let left: Vec<u32> = leave(&mut sender, &transport, back).iter().map(|&(seq, _)| seq).collect();
        assert_eq!(left, if repeats { vec![5] } else { vec![] });
        assert_eq!(sender.deadline(&transport), Some(back + RTT + Time::from_ns(7_500)));
    }
}

#[test]
fn sleek_needs_a_target_delay() {
    let mut transport = with_sleek();
    transport.congestion = Congestion::FixedWindow(Default::default());
    assert_eq!(transport.check().unwrap_err().field, "reliability.sleek");
    let senseless = crate::reliability::pds::Sleek { next_probe: 0.001, ..Default::default() };
    transport.reliability = Reliability::Pds(Pds { ack_bytes: Bytes(0), sleek: Some(senseless) });
    assert_eq!(transport.check().unwrap_err().field, "reliability.sleek.next_probe");
}
