//! Senders whose packets are trimmed, and who wait for PULLs.

use netloom_transport::reliability::trimmed::Trimmed;
use netloom_transport::{Ack, Cause, Congestion, PathFacts, Reliability, Sender, Transport, congestion};
use netloom_units::{Bytes, Rate, Time};

const RTT: Time = Time::from_us(20);

fn transport(initial_window: u32) -> Transport {
    Transport {
        reliability: Reliability::Trimmed(Trimmed { priority: true, reroute: true, reroute_after: 1 }),
        congestion: Congestion::Pulls(congestion::pulls::Pulls { initial_window, ..Default::default() }),
        ..Transport::default()
    }
}

fn sender(transport: &Transport, packets: u64) -> Sender {
    let path =
        PathFacts { base_rtt: RTT, rate: Rate::from_gbps(10), lossy: true, reorders: true, trims: false };
    Sender::new(transport, Bytes(packets * transport.options.mtu.0), path, Time::ZERO)
}

fn us(us: u64) -> Time {
    Time::from_us(us)
}

/// The packets that may leave at an instant, and whether they are urgent.
fn leave(sender: &mut Sender, transport: &Transport, now: Time) -> Vec<(u32, bool)> {
    let mut left = Vec::new();
    while sender.ready(transport).is_some_and(|at| at <= now) {
        let packet = sender.take(transport, now).unwrap();
        left.push((packet.seq, packet.is_urgent));
    }
    left
}

fn about(now: Time, seq: u32, cumulative: u32, sent: Time) -> Ack {
    Ack {
        now,
        seq,
        cumulative,
        sent,
        serialisation: Time::ZERO,
        hops: 2,
        marked: false,
        tag: 7,
        at_last_hop: false,
    }
}

#[test]
fn exactly_what_was_trimmed_is_sent_again_and_first() {
    let transport = transport(3);
    let mut sender = sender(&transport, 9);
    assert_eq!(leave(&mut sender, &transport, us(0)), [(0, false), (1, false), (2, false)]);
    let feedback = sender.on_nack(&transport, about(us(20), 1, 1, us(0)));
    assert_eq!(
        (feedback.cause, feedback.seq, feedback.packets, feedback.in_flight, feedback.tag),
        (Cause::Trim, 1, 1, 1, 7)
    );
    // Not before it is asked for.
    assert_eq!(leave(&mut sender, &transport, us(20)), []);
    sender.on_pull(2);
    assert_eq!(leave(&mut sender, &transport, us(21)), [(1, true), (3, false)]);
    // The same answer, late: the packet has left again since.
    let feedback = sender.on_nack(&transport, about(us(22), 1, 1, us(0)));
    assert_eq!((feedback.cause, feedback.in_flight, feedback.reroute), (Cause::Trim, 3, false));
    sender.on_pull(3);
    assert_eq!(leave(&mut sender, &transport, us(23)), [(4, false)]);
}

#[test]
fn another_path_is_taken_once_per_round_trip() {
    let transport = transport(4);
    let mut sender = sender(&transport, 9);
    leave(&mut sender, &transport, us(0));
    let reroutes = |sender: &mut Sender, at, seq, sent| {
        sender.on_nack(&transport, about(us(at), seq, 0, us(sent))).reroute
    };
    assert_eq!([1, 2].map(|seq| reroutes(&mut sender, 20, seq, 0)), [true, false]);
    sender.on_pull(2);
    assert_eq!(leave(&mut sender, &transport, us(25)), [(1, true), (2, true)]);
    // One that left before the change says nothing about the new path, one that left after it does.
    assert_eq!(
        [(26, 3, 0), (45, 1, 25), (46, 2, 25)].map(|(at, seq, sent)| reroutes(&mut sender, at, seq, sent)),
        [false, true, false]
    );
}

#[test]
fn a_path_may_be_left_only_when_nothing_arrives_whole_by_it() {
    let mut transport = transport(9);
    let Reliability::Trimmed(trimmed) = &mut transport.reliability else { unreachable!() };
    trimmed.reroute_after = 3;
    let mut sender = sender(&transport, 20);
    leave(&mut sender, &transport, us(0));
    let reroutes = |sender: &mut Sender, at, seq| {
        let answer = about(us(at), seq, 0, us(0));
        sender.on_nack(&transport, answer).reroute
    };
    assert_eq!([1, 2].map(|seq| reroutes(&mut sender, 20, seq)), [false; 2]);
    sender.on_ack(&transport, about(us(21), 3, 0, us(0)));
    let asked = [4, 5, 6, 7, 8].map(|seq| reroutes(&mut sender, 22, seq));
    assert_eq!(asked, [false, false, true, false, false]);
}

#[test]
fn what_met_a_cut_link_leaves_again_at_once_and_cuts_no_window() {
    let windowed = Transport { congestion: Congestion::NewReno(Default::default()), ..Transport::default() };
    for (transport, window) in [(transport(3), 3), (windowed, 10)] {
        let mut sender = sender(&transport, 30);
        assert_eq!(leave(&mut sender, &transport, us(0)).len(), window);
        for seq in [0, 1] {
            let feedback = sender.on_unreachable(&transport, about(us(5), seq, 0, us(0)));
            assert_eq!((feedback.cause, feedback.window_cut, feedback.tag), (Cause::Unreachable, false, 7));
        }
        let left: Vec<u32> = leave(&mut sender, &transport, us(5)).into_iter().map(|(seq, _)| seq).collect();
        assert_eq!((left, sender.in_flight()), (vec![0, 1], window as u32));
        // The same header, late: the packet has left again since.
        sender.on_unreachable(&transport, about(us(6), 0, 0, us(0)));
        assert_eq!((leave(&mut sender, &transport, us(6)), sender.in_flight()), (vec![], window as u32));
        assert_eq!((sender.counts.returned_to_sender, sender.counts.timeouts), (3, 0));
    }
}

#[test]
fn who_waits_for_a_pull_in_vain_sends_a_packet_after_a_timeout() {
    let transport = transport(1);
    let mut sender = sender(&transport, 3);
    assert_eq!(leave(&mut sender, &transport, us(0)).len(), 1);
    sender.on_ack(&transport, about(us(20), 0, 1, us(0)));
    assert_eq!(leave(&mut sender, &transport, us(20)), []);
    // The ACK has come, the PULL is lost.
    let due = us(20) + transport.options.rto_min;
    assert_eq!(sender.deadline(&transport), Some(due));
    assert_eq!(sender.on_timer(&transport, due).map(|feedback| feedback.cause), Some(Cause::Timeout));
    assert_eq!(leave(&mut sender, &transport, due), [(1, false)]);
    assert_eq!(sender.counts.timeouts, 1);
    // What the next PULL says counts the lost one, too.
    sender.on_ack(&transport, about(due + RTT, 1, 2, due));
    sender.on_pull(2);
    assert_eq!(leave(&mut sender, &transport, due + RTT), [(2, false)]);
}

#[test]
fn a_timeout_gives_up_what_is_overdue_and_nothing_else() {
    let transport = transport(2);
    let mut sender = sender(&transport, 3);
    let mut take = |at| sender.take(&transport, at).unwrap();
    take(us(0));
    take(us(5000));
    let due = transport.options.rto_initial;
    assert_eq!(sender.deadline(&transport), Some(due));
    let feedback = sender.on_timer(&transport, due).unwrap();
    assert_eq!((feedback.cause, feedback.in_flight), (Cause::Timeout, 1));
    // No PULL will ever come for it, so it leaves without one.
    assert_eq!(leave(&mut sender, &transport, due), [(0, true)]);
}
