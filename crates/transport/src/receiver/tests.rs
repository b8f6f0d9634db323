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
        let feedback = [1, 2, 6, 60].map(|us| {
            let early = Arrival { now: Time::from_us(us), ..arrival(3, false) };
            receiver.on_data(&transport, early).notify
        });
        (
            feedback,
            [transport.echoes(false, true), transport.echoes(true, false), transport.echoes(false, false)],
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
    assert!(!notified(&Transport::default(), 600, true), "only a rate that reacts to it needs it");
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
    let transport = Transport { reliability: Reliability::None(Default::default()), ..Transport::default() };
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

/// What becomes the flow's count of marks: every packet that carries one, of however many.
#[test]
fn each_marked_packet_counts_once() {
    let transport = Transport::default();
    let mut receiver = Receiver::default();
    for (seq, marked) in [(0, true), (1, false), (2, true), (4, true), (3, false)] {
        receiver.on_data(&transport, Arrival { marked, ..arrival(seq, false) });
    }
    assert_eq!((receiver.seen.marks, receiver.seen.packets, receiver.expected()), (3, 5, 5));
    let mut done = receiver.seen;
    done.on_duplicate(&transport, 5, true);
    done.on_duplicate(&transport, 5, false);
    assert_eq!((done.marks, done.packets), (4, 7));
}

/// With an ACK for every other packet: a SYN, what is early, what comes again and what ends a hole are answered at once.
#[test]
fn what_is_out_of_the_ordinary_is_answered_at_once() {
    let options = TransportOptions { ack_every: 2, ..TransportOptions::default() };
    let transport = Transport { options, ..Transport::default() };
    let reply = |receiver: &mut Receiver, arrival| receiver.on_data(&transport, arrival).reply;
    let mut receiver = Receiver::default();
    assert_eq!(reply(&mut receiver, Arrival { payload: 0, ..arrival(0, false) }), Reply::Ack(1));
    assert_eq!(reply(&mut receiver, arrival(1, false)), Reply::None);
    // Marks begin: the packet before has its ACK first, and this one waits.
    let marked = Arrival { marked: true, ..arrival(2, false) };
    let answer = receiver.on_data(&transport, marked);
    assert_eq!((answer.earlier, answer.reply), (Some(2), Reply::None));
    let early = Arrival { marked: true, ..arrival(5, false) };
    assert_eq!(reply(&mut receiver, early), Reply::Ack(3));
    assert_eq!(reply(&mut receiver, early), Reply::Ack(3), "it came again");
    assert_eq!(
        reply(&mut receiver, Arrival { marked: true, ..arrival(3, false) }),
        Reply::Ack(4),
        "a hole is left"
    );
    assert_eq!(reply(&mut receiver, Arrival { marked: true, ..arrival(4, false) }), Reply::None);
    assert_eq!(reply(&mut receiver, Arrival { marked: true, ..arrival(4, false) }), Reply::Ack(6));
}

/// Only where NACKs count as congestion do they notify, and only a NACK does.
#[test]
fn nacks_notify_where_they_count_as_congestion() {
    let of = |nack_congestion| Transport {
        reliability: Reliability::GoBackN(GoBackN { nack_congestion, ..GoBackN::default() }),
        congestion: Congestion::Dcqcn(Default::default()),
        ..Transport::default()
    };
    let notifies = |counts, reply| Receiver::default().notifies_by_nack(&of(counts), Time(1), reply);
    assert!(notifies(true, Reply::Nack(3)));
    assert!(!notifies(true, Reply::Ack(3)) && !notifies(false, Reply::Nack(3)));
}
