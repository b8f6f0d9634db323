//! What a sender says and counts, step by step.

use netloom_units::kind::Kind;
use netloom_units::{Bytes, Rate, Time};

use super::*;
use crate::config::TransportOptions;
use crate::congestion::Congestion;
use crate::congestion::newreno::NewReno;
use crate::preset;
use crate::reliability::Reliability;
use crate::reliability::bitmap::Bitmap;
use crate::shaping::Shaping;

const RTT: Time = Time::from_us(10);

fn path() -> PathFacts {
    PathFacts { base_rtt: RTT, rate: Rate::from_gbps(100), lossy: true, reorders: false, trims: false }
}

fn preset(name: &str) -> Transport {
    preset::find(name).unwrap().transport()
}

/// NewReno's window of ten packets of 1500 B, each with 1460 B of payload.
fn tcp(handshake: bool) -> Transport {
    let mut tcp = preset("tcp");
    tcp.options.handshake = handshake;
    tcp
}

fn ack(now: Time, seq: u32, cumulative: u32, sent: Time) -> Ack {
    Ack {
        now,
        seq,
        cumulative,
        sent,
        serialisation: Time(3),
        hops: 2,
        marked: false,
        tag: 7,
        at_last_hop: false,
    }
}

fn leave(sender: &mut Sender, transport: &Transport, now: Time) -> Vec<(u32, u16, bool)> {
    let mut left = Vec::new();
    while sender.ready(transport).is_some_and(|at| at <= now) {
        let packet = sender.take(transport, now).unwrap();
        left.push((packet.seq, packet.payload, packet.last));
    }
    left
}

/// The SYN holds no payload, all packets behind it are one number later, and nothing leaves before its ACK.
#[test]
fn a_flow_begins_with_a_handshake() {
    let transport = tcp(true);
    let mut sender = Sender::new(&transport, Bytes(3000), path(), Time::ZERO);
    assert_eq!(sender.remaining(&transport), Bytes(3000));
    assert_eq!(leave(&mut sender, &transport, Time(1)), [(0, 0, false)]);
    assert_eq!((sender.remaining(&transport), sender.is_done()), (Bytes(3000), false));
    let feedback = sender.on_ack(&transport, ack(RTT, 0, 1, Time(1)));
    assert_eq!((feedback.packets, feedback.window_cut), (0, false));
    assert_eq!(sender.window(), 15_000, "a SYN's ACK makes no window grow");
    assert_eq!(leave(&mut sender, &transport, RTT), [(1, 1460, false), (2, 1460, false), (3, 80, true)]);
    assert_eq!(sender.remaining(&transport), Bytes(0));
    for seq in 1..4 {
        assert!(!sender.is_done());
        sender.on_ack(&transport, ack(RTT * 2, seq, seq + 1, RTT));
    }
    assert!(sender.is_done());
}

/// A window holds bytes on the wire, and small frames are few of them. What a stream has had of a size, all of its packets count for from then on.
#[test]
fn small_frames_fill_a_window_with_their_own_size() {
    let transport = tcp(false);
    let mut stream = Sender::open(&transport, path(), Time::ZERO);
    (0..200).for_each(|_| stream.extend(&transport, Bytes(100), Time::ZERO));
    assert_eq!((stream.window(), leave(&mut stream, &transport, Time::ZERO).len()), (15_000, 15_000 / 140));
    let feedback = stream.on_ack(&transport, ack(RTT, 0, 1, Time::ZERO));
    assert_eq!((feedback.packets, feedback.bytes), (1, 140));
    stream.extend(&transport, Bytes(9000), RTT);
    assert_eq!(leave(&mut stream, &transport, RTT), []);
    // None of them leaves during a handshake.
    let transport = tcp(true);
    let mut stream = Sender::open(&transport, path(), Time::ZERO);
    (0..200).for_each(|_| stream.extend(&transport, Bytes(100), Time::ZERO));
    assert_eq!(leave(&mut stream, &transport, Time::ZERO).len(), 1);
    stream.on_ack(&transport, ack(RTT, 0, 1, Time::ZERO));
    assert_eq!(leave(&mut stream, &transport, RTT).len(), 15_000 / 140);
}

/// Notices of switches and receivers, and timers, act on the window that the flow will have.
#[test]
fn nothing_but_its_ack_ends_a_handshake() {
    use crate::congestion::bolt::SourceNotice;
    let mut cuts = 0;
    for congestion in Congestion::every() {
        let mut transport = Transport { congestion, ..tcp(true) };
        if transport.check().is_err() {
            continue;
        }
        let name = transport.congestion.name();
        let mut sender = Sender::new(&transport, Bytes(3_000_000), path(), Time::ZERO);
        assert_eq!(leave(&mut sender, &transport, Time::ZERO), [(0, 0, false)], "{name}");
        transport.options.handshake = false;
        let mut without = Sender::new(&transport, Bytes(3_000_000), path(), Time::ZERO);
        transport.options.handshake = true;
        for us in [5, 6, 2000] {
            let now = Time::from_us(us);
            for sender in [&mut sender, &mut without] {
                let notice = SourceNotice { sent: Time::ZERO, drain: Time::from_us(1) };
                cuts += u32::from(sender.on_source_notice(&transport, now, notice).is_some());
                sender.on_cnp(&transport, now);
                sender.on_timer(&transport, now);
            }
            assert_eq!(leave(&mut sender, &transport, now), [], "{name}");
        }
        sender.on_ack(&transport, ack(Time::from_us(2000), 0, 1, Time::ZERO));
        assert_eq!((sender.window(), sender.rate()), (without.window(), without.rate()), "{name}");
    }
    assert!(cuts > 0, "no notice cuts a window");
}

/// RFC 5681, section 3.1.
#[test]
fn a_lost_syn_leaves_a_window_of_one_packet() {
    let transport = tcp(true);
    let mut sender = Sender::new(&transport, Bytes(30_000), path(), Time::ZERO);
    leave(&mut sender, &transport, Time::ZERO);
    let due = sender.deadline(&transport).unwrap();
    assert_eq!(due, transport.options.rto_initial);
    let feedback = sender.on_timer(&transport, due).unwrap();
    assert_eq!((feedback.cause, feedback.window_cut), (Cause::Timeout, false));
    assert_eq!(leave(&mut sender, &transport, due), [(0, 0, false)]);
    sender.on_ack(&transport, ack(due + RTT, 0, 1, due));
    assert_eq!((sender.window(), leave(&mut sender, &transport, due + RTT).len()), (1500, 1));
    assert_eq!((sender.counts.retransmissions, sender.counts.timeouts), (1, 1));
}

#[test]
fn a_flow_is_done_when_all_is_acknowledged_and_a_stream_is_idle_between() {
    let transport = tcp(false);
    let mut flow = Sender::new(&transport, Bytes(1460), path(), Time::ZERO);
    leave(&mut flow, &transport, Time::ZERO);
    flow.on_ack(&transport, ack(RTT, 0, 1, Time::ZERO));
    assert!(flow.is_done() && !flow.is_open() && !flow.is_idle());
    let mut stream = Sender::open(&transport, path(), Time::ZERO);
    assert!(stream.is_open() && stream.is_idle() && !stream.is_done());
    stream.extend(&transport, Bytes(0), Time::ZERO);
    assert!(stream.is_idle());
    stream.extend(&transport, Bytes(100), Time::ZERO);
    assert!(!stream.is_idle(), "it has something to send");
    leave(&mut stream, &transport, Time::ZERO);
    assert!(!stream.is_idle(), "something is in flight");
    let due = stream.deadline(&transport).unwrap();
    stream.on_timer(&transport, due);
    assert!(!stream.is_idle() && stream.must_resend() && stream.in_flight() == 0);
    leave(&mut stream, &transport, due);
    stream.on_ack(&transport, ack(due + RTT, 0, 1, due));
    assert!(stream.is_idle() && !stream.is_done());
    stream.close();
    assert!(!stream.is_idle() && stream.is_done());
}

/// What comes back is told as it was written on the packet.
#[test]
fn an_ack_is_told_with_all_that_it_says() {
    let transport = tcp(false);
    let mut sender = Sender::new(&transport, Bytes(14_600), path(), Time::ZERO);
    leave(&mut sender, &transport, Time::ZERO);
    let marked = Ack { marked: true, ..ack(RTT, 1, 2, Time(5)) };
    let feedback = sender.on_ack(&transport, marked);
    assert_eq!(
        (feedback.now, feedback.cause, feedback.seq, feedback.rtt),
        (RTT, Cause::Ack, 1, RTT - Time(5))
    );
    assert_eq!((feedback.serialisation, feedback.hops, feedback.marked, feedback.tag), (Time(3), 2, true, 7));
    assert_eq!((feedback.packets, feedback.bytes, feedback.in_flight), (2, 3000, 8));
    assert_eq!((feedback.oldest, feedback.next, feedback.remaining), (2, 10, Bytes(0)));
    assert!(feedback.window_cut && !feedback.reroute);
    let feedback = sender.feedback_of(&transport, ack(RTT, 4, 2, Time(5)), 3);
    assert_eq!((feedback.packets, feedback.bytes, feedback.seq), (3, 4500, 4));
}

#[test]
fn notifications_are_counted_and_told_if_they_cut() {
    let roce = preset("roce");
    let mut sender = Sender::new(&roce, Bytes(9000), path(), Time::ZERO);
    leave(&mut sender, &roce, Time::ZERO);
    let feedback = sender.on_cnp(&roce, RTT).unwrap();
    assert_eq!(
        (feedback.cause, feedback.window_cut, feedback.now, feedback.seq),
        (Cause::Notification, true, RTT, 0)
    );
    assert_eq!(sender.counts.cnps, 1);
    let tcp = tcp(false);
    let mut deaf = Sender::new(&tcp, Bytes(9000), path(), Time::ZERO);
    assert!(deaf.on_cnp(&tcp, RTT).is_none() && deaf.counts.cnps == 1);
}

/// A go-back-N NACK acknowledges what is below and has all from there on sent again.
#[test]
fn a_nack_acknowledges_what_came_before() {
    let transport = Transport { reliability: Reliability::GoBackN(Default::default()), ..tcp(false) };
    let mut sender = Sender::new(&transport, Bytes(14_600), path(), Time::ZERO);
    leave(&mut sender, &transport, Time(4));
    let feedback = sender.on_nack(&transport, ack(RTT, 3, 2, Time(4)));
    assert_eq!((feedback.cause, feedback.seq, feedback.packets, feedback.bytes), (Cause::Nack, 2, 2, 3000));
    assert_eq!(
        (feedback.in_flight, feedback.oldest, feedback.rtt, feedback.window_cut),
        (0, 2, RTT - Time(4), true)
    );
    assert_eq!(sender.rtt(), RTT - Time(4));
    // What an old one says is known: nothing is lost, nothing is cut.
    leave(&mut sender, &transport, RTT);
    let in_flight = sender.in_flight();
    sender.on_ack(&transport, ack(RTT * 2, 2, 3, RTT));
    let feedback = sender.on_nack(&transport, ack(RTT * 2, 3, 2, Time(4)));
    assert_eq!((feedback.packets, feedback.bytes, feedback.seq, feedback.window_cut), (0, 0, 2, false));
    assert_eq!(sender.in_flight(), in_flight - 1);
}

/// A receiver that remembers four packets refuses the fifth.
#[test]
fn a_refused_packet_and_what_is_missing_before_it_are_sent_again() {
    let transport = Transport {
        reliability: Reliability::Bitmap(Bitmap { length: 4 }),
        congestion: Congestion::NewReno(NewReno::default()),
        options: TransportOptions { mtu: Bytes(1000), header: Bytes(0), ..TransportOptions::default() },
        ..Transport::default()
    };
    let mut sender = Sender::new(&transport, Bytes(20_000), path(), Time::ZERO);
    for seq in 0..10 {
        assert_eq!(sender.take(&transport, Time(seq)).map(|packet| u64::from(packet.seq)), Some(seq));
    }
    // The first two have come; packet 2 is missing, and packet 6 came before it.
    let feedback = sender.on_nack(&transport, ack(RTT, 6, 2, Time(6)));
    assert_eq!((feedback.cause, feedback.seq, feedback.packets, feedback.bytes), (Cause::Nack, 6, 2, 2000));
    assert_eq!((feedback.tag, feedback.rtt, feedback.window_cut), (7, RTT - Time(6), true));
    // Of 2 to 5 each left earlier, and 6 itself.
    assert_eq!((sender.in_flight(), sender.oldest()), (3, 2));
    assert_eq!(sender.rtt(), RTT - Time(6));
    let again: Vec<u32> =
        std::iter::from_fn(|| sender.take(&transport, RTT)).map(|packet| packet.seq).take(6).collect();
    assert_eq!(again, [2, 3, 4, 5, 6, 10]);
    // A packet within reach that came without its payload is sent again alone.
    let feedback = sender.on_nack(&transport, ack(RTT * 2, 3, 2, RTT));
    assert_eq!((feedback.cause, feedback.packets, sender.must_resend()), (Cause::Trim, 0, true));
    assert_eq!(sender.take(&transport, RTT * 2).map(|packet| packet.seq), Some(3));
}

#[test]
fn what_is_trimmed_tells_of_what_arrived_before_it() {
    let transport = preset("ndp");
    let mut sender = Sender::new(&transport, Bytes(8936 * 9), path(), Time::ZERO);
    leave(&mut sender, &transport, Time::ZERO);
    let feedback = sender.on_nack(&transport, ack(RTT, 3, 2, Time::ZERO));
    assert_eq!(
        (feedback.cause, feedback.packets, feedback.bytes, feedback.reroute),
        (Cause::Trim, 2, 18_000, false)
    );
    assert_eq!((feedback.serialisation, feedback.hops, feedback.tag, feedback.in_flight), (Time(3), 2, 7, 6));
    assert_eq!(sender.counts.returned_to_sender, 0);
    let feedback = sender.on_returned(&transport, ack(RTT, 4, 2, Time::ZERO));
    assert_eq!(
        (feedback.cause, feedback.seq, feedback.packets, sender.counts.returned_to_sender),
        (Cause::Return, 4, 0, 1)
    );
    sender.on_returned(&transport, ack(RTT, 4, 2, Time::ZERO));
    assert_eq!((sender.counts.returned_to_sender, sender.in_flight()), (2, 5));
}

#[test]
fn a_flow_that_must_ask_asks_for_its_first_window() {
    let mut transport = preset("ndp");
    let requests = |transport: &Transport, packets: u64| {
        let sender = Sender::new(transport, Bytes(8936 * packets), path(), Time::ZERO);
        sender.requests(transport, path())
    };
    assert_eq!([requests(&transport, 9), requests(&tcp(false), 9)], [None; 2]);
    let asks = crate::congestion::pulls::Pulls { request_to_send: true, ..Default::default() };
    transport.congestion = Congestion::Pulls(asks);
    assert_eq!([requests(&transport, 9), requests(&transport, 90)], [Some(9), Some(30)]);
}

/// A subflow takes what is unsent of its flow, a packet at a time.
#[test]
fn a_subflow_sends_as_long_as_its_flow_has_something() {
    let transport = preset("mptcp");
    let mut subflow = Sender::subflow(&transport, path(), Time::ZERO);
    assert!(subflow.learns());
    assert_eq!((subflow.rtt(), subflow.window(), subflow.ready(&transport)), (RTT, 15_000, None));
    for (unsent, seq) in [(Bytes(3000), 0), (Bytes(1540), 1), (Bytes(80), 2)] {
        subflow.offer(&transport, unsent);
        assert_eq!(subflow.remaining(&transport), unsent);
        assert_eq!(subflow.take(&transport, Time::ZERO).map(|packet| packet.seq), Some(seq));
        assert_eq!(subflow.ready(&transport), None, "one packet at a time");
    }
    subflow.offer(&transport, Bytes(0));
    assert_eq!((subflow.take(&transport, Time::ZERO), subflow.in_flight()), (None, 3));
    // What others have brought there is not in flight, and says nothing of this path.
    subflow.forgo(2);
    assert_eq!((subflow.in_flight(), subflow.oldest(), subflow.rtt()), (1, 2, RTT));
    subflow.on_ack(&transport, ack(Time::from_us(30), 2, 3, Time::ZERO));
    assert_eq!((subflow.in_flight(), subflow.rtt()), (0, Time::from_us(30)));
}

/// Nothing is measured, and ACKs matter to nobody, where nothing can be lost and the window stays.
#[test]
fn a_sender_learns_only_where_something_depends_on_it() {
    let learns = |transport: &Transport, lossy| {
        Sender::new(transport, Bytes(9000), PathFacts { lossy, ..path() }, Time::ZERO).learns()
    };
    let usual = Transport::default();
    assert_eq!([learns(&usual, false), learns(&usual, true)], [false, true]);
    assert!(learns(&tcp(false), false));
    for shaping in [Shaping::Paced(Default::default()), Shaping::Hf2t(Default::default())] {
        assert!(learns(&Transport { shaping, ..Transport::default() }, false));
    }
    let handshake = TransportOptions { handshake: true, ..TransportOptions::default() };
    assert!(learns(&Transport { options: handshake, ..Transport::default() }, false));
}
