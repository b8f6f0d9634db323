use super::*;
use crate::Reliability;
use crate::reliability::selective_repeat::SelectiveRepeat;
use crate::reliability::trimmed::Trimmed;

const RTT: Time = Time(1000);

fn rtt() -> Rtt {
    let mut rtt = Rtt::default();
    rtt.sample(RTT);
    rtt
}

fn by_time() -> LossDetection {
    LossDetection { reorder_threshold: 3, rack: true, sack: true }
}

/// Packets that have left one picosecond apart, the first of them at 1.
fn sent(packets: u32) -> Recovery {
    let mut recovery = Recovery::new(&Transport::default(), false, Time::ZERO);
    for seq in 0..packets {
        recovery.on_sent(seq, Time(u64::from(seq) + 1));
    }
    recovery
}

/// The ACK of a packet comes a round trip after it was first sent.
fn acknowledge(recovery: &mut Recovery, seq: u32) -> bool {
    let at = Time(u64::from(seq) + 1);
    recovery.acknowledge(seq, Some(at), at + RTT)
}

/// However much reordering has been seen, a packet is waited for no longer than a round trip (RFC 8985, section 6.2, step 4).
#[test]
fn the_reordering_window_is_at_most_a_smoothed_round_trip() {
    let mut recovery = Recovery { reorders: true, ..sent(1) };
    let lateness = |recovery: &Recovery| recovery.lateness(by_time(), &rtt());
    for (window, expected) in [(1, 250), (2, 500), (3, 750), (4, 1000), (5, 1000), (40, 1000)] {
        recovery.window = window;
        assert_eq!(lateness(&recovery), Time(expected), "{window} quarters");
    }
    // It goes by the least round trip, and is bounded by the smoothed one.
    let mut longer = rtt();
    longer.sample(RTT * 9);
    assert_eq!(longer.smoothed(), Some(RTT * 2));
    for (window, expected) in [(4, 1000), (8, 2000), (9, 2000)] {
        recovery.window = window;
        assert_eq!(recovery.lateness(by_time(), &longer), Time(expected));
    }
    assert_eq!(recovery.lateness(by_time(), &Rtt::default()), Time::ZERO);
}

/// Until reordering is seen, as many later arrivals as the threshold, or a recovery, are certainty enough.
#[test]
fn nothing_is_waited_for_that_is_certain() {
    let mut recovery = sent(8);
    let lateness = |recovery: &Recovery| recovery.lateness(by_time(), &rtt());
    for seq in [1, 2] {
        assert!(acknowledge(&mut recovery, seq));
        assert_eq!(lateness(&recovery), Time(250));
    }
    assert!(acknowledge(&mut recovery, 3));
    assert_eq!(lateness(&recovery), Time::ZERO);
    recovery.reorders = true;
    assert_eq!(lateness(&recovery), Time(250));
    let recovering = Recovery { recover: 1, ..sent(8) };
    assert_eq!(lateness(&recovering), Time::ZERO);
    assert_eq!(lateness(&Recovery { recover: 0, ..sent(8) }), Time(250));
}

/// Each needless repetition widens the window by a quarter, once per round trip, and sixteen recoveries without one bring it back.
#[test]
fn needless_repetitions_widen_the_window_for_sixteen_recoveries() {
    let mut recovery = sent(4);
    recovery.widen();
    assert_eq!((recovery.window, recovery.window_round, recovery.persistence), (2, 4, PERSISTENCE));
    recovery.widen();
    assert_eq!(recovery.window, 2, "once per round trip");
    for seq in 0..4 {
        acknowledge(&mut recovery, seq);
    }
    recovery.settle(4);
    recovery.on_sent(4, Time(2000));
    recovery.widen();
    assert_eq!((recovery.window, recovery.window_round), (3, 5));
    for left in (0..PERSISTENCE).rev() {
        recovery.enter();
        assert_eq!((recovery.persistence, recovery.recover), (left, 5));
        assert_eq!(recovery.window, if left > 0 { 3 } else { 1 });
        // The same recovery counts once.
        recovery.enter();
        assert_eq!(recovery.persistence, left);
        recovery.recover = 0;
    }
}

#[test]
fn the_first_lost_packet_is_sent_first_and_counts_once() {
    let mut recovery = sent(5);
    assert_eq!((recovery.must_resend(), recovery.next_lost()), (false, None));
    assert!(recovery.lose_departure(3, Time(4)));
    assert!(!recovery.lose_departure(3, Time(4)), "it is known");
    assert!(!recovery.lose_departure(1, Time(4)), "that is no departure of this packet");
    assert!(!recovery.lose_departure(9, Time(4)), "that has never been sent");
    assert!(recovery.lose_departure(1, Time(2)));
    assert_eq!((recovery.must_resend(), recovery.next_lost()), (true, Some(1)));
    assert_eq!([1, 2, 3].map(|seq| recovery.sent_at(seq)), [None, Some(Time(3)), None]);
    recovery.on_sent(1, Time(10));
    assert_eq!((recovery.next_lost(), recovery.sent_at(1)), (Some(3), Some(Time(10))));
    recovery.on_sent(3, Time(11));
    assert_eq!((recovery.must_resend(), recovery.next_lost()), (false, None));
    // What left before says nothing of what left since.
    assert!(!recovery.lose_departure(3, Time(4)));
    assert!(recovery.lose_departure(3, Time(11)));
}

/// A receiver that remembers a bounded number of packets has refused packet 3: what is missing before it and left earlier has been overtaken.
#[test]
fn what_left_before_a_refused_packet_and_is_missing_is_lost() {
    let mut recovery = sent(6);
    acknowledge(&mut recovery, 1);
    assert_eq!(recovery.lose_before(3, Time(4)), 2);
    assert_eq!([0, 2, 3].map(|seq| recovery.sent_at(seq)), [None, None, Some(Time(4))]);
    assert_eq!(recovery.next_lost(), Some(0));
    assert_eq!(recovery.lose_before(3, Time(4)), 0);
    // Those that have left again since are given their time.
    recovery.on_sent(0, Time(20));
    assert_eq!(recovery.lose_before(5, Time(6)), 2, "3 and 4");
}

#[test]
fn a_packet_that_is_wanted_no_more_is_not_in_flight() {
    let mut recovery = sent(3);
    assert!(recovery.forgo(0));
    assert!(recovery.lose_departure(1, Time(2)));
    assert!(!recovery.forgo(1), "it was given up before");
    assert!(!recovery.must_resend());
    recovery.settle(2);
    assert_eq!((recovery.base, recovery.sent_at(2)), (2, Some(Time(3))));
}

/// After trims in a row a receiver asks for another path; packets that left before the last change of path do not count.
#[test]
fn another_path_is_asked_for_after_trims_in_a_row() {
    let mut recovery = sent(1);
    assert_eq!([1, 2, 3].map(|sent| recovery.reroutes(3, Time(sent), Time(50))), [false, false, true]);
    assert!(!recovery.reroutes(1, Time(50), Time(60)), "it left on the path before");
    assert!(recovery.reroutes(1, Time(51), Time(60)));
    assert!(!recovery.reroutes(2, Time(61), Time(70)));
    acknowledge(&mut recovery, 0);
    assert!(!recovery.reroutes(2, Time(62), Time(70)), "one has arrived in between");
    assert!(recovery.reroutes(2, Time(63), Time(70)));
}

#[test]
fn a_timeout_gives_up_what_its_reliability_says() {
    let of = |reliability| Transport { reliability, ..Transport::default() };
    let given_up = |transport: &Transport, now: u64| {
        let mut recovery = sent(4);
        recovery.latest_rtt = Time(10);
        recovery.give_up(transport, &rtt(), Time(now))
    };
    let go_back_n = of(Reliability::GoBackN(Default::default()));
    assert_eq!(given_up(&go_back_n, 2), 4);
    let by_count = SelectiveRepeat { rack: false, ..SelectiveRepeat::default() };
    assert_eq!(given_up(&of(Reliability::SelectiveRepeat(by_count)), 2), 4);
    // One at least, and others that are late by a quarter of a round trip beyond the last one.
    let by_time = of(Reliability::SelectiveRepeat(Default::default()));
    assert_eq!([2, 261, 262, 263, 264].map(|now| given_up(&by_time, now)), [1, 1, 2, 3, 4]);
    // Two round trips.
    let bitmap = of(Reliability::Bitmap(Default::default()));
    assert_eq!([2, 2001, 2002, 2003, 2004].map(|now| given_up(&bitmap, now)), [1, 1, 2, 3, 4]);
    // A timeout since it left.
    let trimmed = of(Reliability::Trimmed(Trimmed::default()));
    let rto = trimmed.options.rto_min.0;
    assert_eq!([2, rto + 1, rto + 2, rto + 9].map(|now| given_up(&trimmed, now)), [1, 1, 2, 4]);
}

/// RACK's timers: the oldest packet's lateness, a probe after two quiet round trips, the retransmission timeout; the first of them holds.
#[test]
fn the_first_of_three_timers_is_due() {
    let transport = Transport::default();
    let rto = transport.options.rto_min;
    let due = |recovery: &Recovery, in_flight| recovery.due(&transport, &rtt(), in_flight);
    assert_eq!(Recovery::new(&Transport::default(), false, Time::ZERO).due(&transport, &rtt(), 0), None);
    let recovery = sent(2);
    assert_eq!(due(&recovery, 2), Some((Time(2) + RTT * 2, Due::Probe)));
    let probed = Recovery { probed: Some(2), ..sent(2) };
    assert_eq!(due(&probed, 2), Some((Time(1) + rto, Due::Timeout)));
    let recovering = Recovery { recover: 1, ..sent(2) };
    assert_eq!(due(&recovering, 2), Some((Time(1) + rto, Due::Timeout)));
    let mut late = sent(3);
    acknowledge(&mut late, 1);
    assert_eq!(due(&late, 2), Some((Time(1) + RTT + RTT / 4, Due::Lateness)));
    // The receiver may hold the only ACK back.
    let mut held = transport.clone();
    held.options.ack_every = 2;
    let probe = |in_flight| recovery.due(&held, &rtt(), in_flight);
    assert_eq!(probe(2), Some((Time(2) + RTT * 2, Due::Probe)));
    assert_eq!(probe(1), Some((Time(2) + RTT * 2 + held.options.ack_delay, Due::Probe)));
    let mut backed_off = Recovery { probed: Some(2), ..sent(2) };
    backed_off.back_off();
    assert_eq!(due(&backed_off, 2), Some((Time(1) + rto * 2, Due::Timeout)));
    assert_eq!(backed_off.timeout_after_progress(&transport, &rtt()), Time(2) + rto * 2);
}

#[test]
fn a_probe_is_something_new_or_the_last_packet_again() {
    let mut recovery = sent(4);
    assert_eq!((recovery.begin_probe(true), recovery.probed), (0, Some(5)));
    assert!(!recovery.must_resend());
    let mut recovery = sent(4);
    acknowledge(&mut recovery, 3);
    assert_eq!((recovery.begin_probe(false), recovery.probed), (1, Some(4)));
    assert_eq!((recovery.next_lost(), recovery.probe), (Some(2), Some((2, Time(3)))));
    // It ends once everything below is acknowledged.
    recovery.on_sent(2, Time(50));
    for seq in [0, 1] {
        acknowledge(&mut recovery, seq);
    }
    recovery.settle(2);
    assert_eq!(recovery.probed, Some(4));
    // Its own arrival, and not that of what it repeats, shows a loss.
    recovery.acknowledge(2, Some(Time(50)), Time(1050));
    assert_eq!(recovery.repaired, Some((2, Time(3))));
    recovery.settle(4);
    assert_eq!(recovery.probed, None);
    let losses = recovery.find_losses(by_time(), &rtt(), Time(1050)).unwrap();
    assert_eq!((losses.packets, losses.seq, losses.sent), (0, 2, Time(3)));
}

#[test]
fn later_arrivals_count_or_their_time_does() {
    let by_count = LossDetection { rack: false, ..by_time() };
    let mut recovery = sent(5);
    for seq in [1, 2] {
        acknowledge(&mut recovery, seq);
        assert!(recovery.find_losses(by_count, &rtt(), Time(9_999_999)).is_none());
    }
    acknowledge(&mut recovery, 3);
    let losses = recovery.find_losses(by_count, &rtt(), Time(1004)).unwrap();
    assert_eq!((losses.packets, losses.seq, losses.sent), (1, 0, Time(1)));
    assert_eq!((recovery.next_lost(), recovery.recover), (Some(0), 5));
    let mut recovery = sent(5);
    acknowledge(&mut recovery, 1);
    assert!(recovery.find_losses(by_time(), &rtt(), Time(1250)).is_none());
    assert!(recovery.find_losses(by_time(), &rtt(), Time(1251)).is_some());
}

/// Without SACK (RFC 6582): the first hole only, and nothing that has been sent again.
#[test]
fn without_sack_one_hole_is_repaired_at_a_time() {
    let newreno = LossDetection { reorder_threshold: 2, rack: false, sack: false };
    let mut recovery = sent(6);
    acknowledge(&mut recovery, 2);
    assert!(recovery.find_losses(newreno, &rtt(), Time(1003)).is_none());
    acknowledge(&mut recovery, 3);
    let losses = recovery.find_losses(newreno, &rtt(), Time(1004)).unwrap();
    assert_eq!((losses.packets, losses.seq, losses.sent), (1, 0, Time(1)));
    assert!(recovery.find_losses(newreno, &rtt(), Time(1004)).is_none(), "the next hole is not the first");
    recovery.on_sent(0, Time(1005));
    recovery.acknowledge(0, Some(Time(1005)), Time(2005));
    recovery.settle(1);
    // While a loss is being repaired the next hole is lost at once.
    let losses = recovery.find_losses(newreno, &rtt(), Time(2005)).unwrap();
    assert_eq!((losses.packets, losses.seq), (1, 1));
    recovery.on_sent(1, Time(2006));
    assert!(recovery.find_losses(newreno, &rtt(), Time(2006)).is_none());
}

/// A repetition whose first departure arrives after all was needless: packets overtake each other.
#[test]
fn a_needless_repetition_shows_reordering() {
    let mut recovery = sent(3);
    assert!(recovery.lose_departure(0, Time(1)));
    recovery.on_sent(0, Time(10));
    assert!(recovery.acknowledge(0, Some(Time(1)), Time(1001)));
    assert_eq!((recovery.window, recovery.reorders), (2, true));
    // So is one that is not needed any more before it has left.
    let mut recovery = sent(3);
    recovery.lose_departure(0, Time(1));
    assert!(!recovery.acknowledge(0, None, Time(1001)), "it was not in flight");
    assert_eq!((recovery.window, recovery.lost), (2, 0));
    // An arrival out of order shows it, too, but a repetition's does not.
    let mut recovery = sent(3);
    acknowledge(&mut recovery, 2);
    assert!(!recovery.reorders);
    acknowledge(&mut recovery, 1);
    assert!(recovery.reorders);
    let mut recovery = sent(3);
    acknowledge(&mut recovery, 2);
    recovery.lose_departure(0, Time(1));
    recovery.on_sent(0, Time(10));
    recovery.acknowledge(0, Some(Time(10)), Time(1010));
    assert!(!recovery.reorders && recovery.window == 1);
}
