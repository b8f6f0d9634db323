//! A sender, step by step.

use netloom_transport::congestion::fixed_window::FixedWindow;
use netloom_transport::reliability::selective_repeat::SelectiveRepeat;
use netloom_transport::shaping::paced::Paced;
use netloom_transport::{
    Ack, Cause, Congestion, PathFacts, Reliability, Sender, Shaping, Transport, TransportOptions,
};
use netloom_units::{Bytes, Rate, Time};
use proptest::prelude::*;

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
    transport(
        window_packets,
        Reliability::SelectiveRepeat(SelectiveRepeat { rack: false, ..Default::default() }),
    )
}

fn go_back_n(window_packets: u64) -> Transport {
    transport(window_packets, Reliability::GoBackN(Default::default()))
}

fn sender(transport: &Transport, packets: u64) -> Sender {
    let path =
        PathFacts { base_rtt: RTT, rate: Rate::from_gbps(200), lossy: true, reorders: false, trims: false };
    Sender::new(transport, Bytes(packets * 4096 - 96), path, Time::ZERO)
}

/// Without ACKs, in packets of up to 1500 B.
fn unacknowledged() -> Transport {
    Transport {
        options: TransportOptions { mtu: Bytes(1500), ..TransportOptions::default() },
        reliability: Reliability::None(Default::default()),
        congestion: Congestion::None(Default::default()),
        ..Transport::default()
    }
}

fn stream(transport: &Transport) -> Sender {
    let path =
        PathFacts { base_rtt: RTT, rate: Rate::from_gbps(10), lossy: true, reorders: false, trims: false };
    Sender::open(transport, path, Time::ZERO)
}

/// Where ACKs echo marks, a marked one sets DCQCN's timers going, and a NACK does if it counts as congestion.
#[test]
fn marked_answers_notify_where_they_echo_marks() {
    let preset = |name| netloom_transport::preset::find(name).unwrap().transport();
    let answer = |marked| Ack {
        now: Time::from_us(10),
        seq: 0,
        cumulative: 1,
        sent: Time::ZERO,
        serialisation: Time::ZERO,
        hops: 2,
        marked,
        tag: 0,
        at_last_hop: false,
    };
    // A look for cuts comes 4 us and 1 ns after the first notification; otherwise the timeout is next.
    let (cut, timeout) = (Time::from_ns(14_001), Time::from_ms(4));
    let mut roce = preset("roce");
    (roce.options.rto_min, roce.options.rto_initial) = (timeout, timeout);
    let cases = [
        (preset("roce-conweave"), [(1, cut), (1, cut)]),
        (
            Transport { reliability: Reliability::GoBackN(Default::default()), ..preset("roce-conweave") },
            [(1, cut), (0, timeout)],
        ),
        (roce, [(0, timeout), (0, timeout)]),
    ];
    for (transport, expected) in cases {
        let path = PathFacts {
            base_rtt: RTT,
            rate: Rate::from_gbps(100),
            lossy: true,
            reorders: false,
            trims: false,
        };
        let after = [false, true].map(|is_nack| {
            let mut sender = Sender::new(&transport, Bytes(9000), path, Time::ZERO);
            (0..3).for_each(|_| _ = sender.take(&transport, Time::ZERO));
            match is_nack {
                false => sender.on_ack(&transport, answer(true)),
                true => sender.on_nack(&transport, Ack { seq: 2, ..answer(false) }),
            };
            (0..3).for_each(|_| _ = sender.take(&transport, Time::ZERO));
            (sender.counts.cnps, sender.deadline(&transport).unwrap())
        });
        assert_eq!(after, expected);
    }
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
    Ack {
        now: RTT,
        seq,
        cumulative,
        sent: Time::ZERO,
        serialisation: Time::ZERO,
        hops: 2,
        marked: false,
        tag: 0,
        at_last_hop: false,
    }
}

proptest! {
    /// Whatever order they come in.
    #[test]
    fn acks_say_the_same_where_nothing_is_remembered_of_packets(
        acks in prop::collection::vec((0..200u32, 0..3u32), 0..400),
        goes_back in any::<bool>(),
    ) {
        let transport = if goes_back { go_back_n(200) } else { selective(200) };
        let path = PathFacts { base_rtt: RTT, rate: Rate::from_gbps(200), lossy: false, reorders: false, trims: false };
        let mut quick = Sender::new(&transport, Bytes(200 * 4096), path, Time::ZERO);
        let mut other = Sender::new(&transport, Bytes(200 * 4096), PathFacts { lossy: true, ..path }, Time::ZERO);
        prop_assert_eq!(send_all(&mut quick, &transport), send_all(&mut other, &transport));
        for (seq, more) in acks {
            let ack = ack(seq, (quick.oldest() + more).min(200));
            prop_assert_eq!(quick.note(&transport, &ack), other.note(&transport, &ack));
            prop_assert_eq!((quick.oldest(), quick.in_flight()), (other.oldest(), other.in_flight()));
        }
    }
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
    // Counted from the departure of the oldest packet.
    assert_eq!(deadline, transport.options.rto_min);
    assert_eq!(sender.on_timer(&transport, deadline).map(|feedback| feedback.cause), Some(Cause::Timeout));
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
        assert_eq!(sender.on_timer(&transport, now).map(|feedback| feedback.cause), Some(Cause::Timeout));
        sender.take(&transport, now);
    }
}

#[test]
fn pacing_spreads_a_window_over_a_round_trip() {
    let mut transport = selective(10);
    transport.shaping = Shaping::Paced(Default::default());
    let mut sender = sender(&transport, 20);
    for step in 0..10 {
        let at = sender.ready(&transport).unwrap();
        assert_eq!(at, RTT / 10 * step);
        sender.take(&transport, at);
    }
}

#[test]
fn a_pacer_of_its_own_spaces_packets_whatever_the_window() {
    let mut transport = selective(10);
    // 4160 B at 100 Gb/s.
    let (gap, rate) = (Time(332_800), Some(Rate::from_gbps(100)));
    transport.shaping = Shaping::Paced(Paced { rate });
    let mut paced = sender(&transport, 20);
    for step in 0..10 {
        let at = paced.ready(&transport).unwrap();
        assert_eq!(at, gap * step);
        paced.take(&transport, at);
    }
    // No window is needed for it, but no rate may be there already.
    transport.congestion = Congestion::None(Default::default());
    assert_eq!(transport.check(), Ok(()));
    transport.congestion = Congestion::Dcqcn(Default::default());
    assert_eq!(transport.check().unwrap_err().field, "shaping.rate");
    transport.congestion = Congestion::None(Default::default());
    transport.shaping = Shaping::Paced(Paced { rate: Some(Rate(0)) });
    assert_eq!(transport.check().unwrap_err().field, "shaping.rate");
}

#[test]
fn without_acks_a_flow_is_done_when_all_is_sent() {
    let transport = unacknowledged();
    let path =
        PathFacts { base_rtt: RTT, rate: Rate::from_gbps(10), lossy: true, reorders: false, trims: false };
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
    sender.extend(&transport, Bytes(1500), Time::ZERO);
    sender.extend(&transport, Bytes(2000), Time::ZERO);
    assert_eq!(sender.remaining(&transport), Bytes(3500));
    assert_eq!(take_all(&mut sender, &transport), [(0, 1500, false), (1, 1500, false), (2, 500, false)]);
    assert_eq!((sender.remaining(&transport), sender.is_done()), (Bytes(0), false));
    sender.extend(&transport, Bytes(64), Time::ZERO);
    sender.extend(&transport, Bytes(64), Time::ZERO);
    sender.close();
    assert_eq!(take_all(&mut sender, &transport), [(3, 64, false), (4, 64, true)]);
    assert!(sender.is_done());
    sender.extend(&transport, Bytes(64), Time::ZERO);
    assert!(sender.is_done() && sender.take(&transport, Time::ZERO).is_none());
}

#[test]
fn a_stream_sends_again_what_it_sent() {
    let transport = selective(8);
    let mut sender = stream(&transport);
    for bytes in [4096, 100, 100, 5000] {
        sender.extend(&transport, Bytes(bytes), Time::ZERO);
    }
    let sent = take_all(&mut sender, &transport);
    assert_eq!(sent.iter().map(|packet| packet.1).collect::<Vec<_>>(), [4096, 100, 100, 4096, 904]);
    sender.on_ack(&transport, ack(1, 0));
    let deadline = sender.deadline(&transport).unwrap();
    assert_eq!(sender.on_timer(&transport, deadline).map(|feedback| feedback.cause), Some(Cause::Timeout));
    // Sizes that are still wanted outlive those that are added.
    sender.extend(&transport, Bytes(7), Time::ZERO);
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
            sender.extend(&transport, Bytes(1000 + u64::from(seq) % 2), Time::ZERO);
            sender.take(&transport, Time::ZERO).unwrap();
            if transport.has_acks() {
                sender.on_ack(&transport, ack(seq, seq + 1));
            }
            assert!(!transport.has_acks() || sender.oldest() == seq + 1);
        }
        assert_eq!((sender.oldest(), sender.in_flight()), (100_000, 0));
    }
}
