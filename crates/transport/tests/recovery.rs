//! What one loss costs under each recovery, to the picosecond, and what reordering costs.

mod common;

use common::{DELAY, PACKET, Pipe, RTT};
use netloom_transport::congestion::newreno::NewReno;
use netloom_transport::reliability::go_back_n::GoBackN;
use netloom_transport::reliability::selective_repeat::SelectiveRepeat;
use netloom_transport::{Cause, Congestion, Reliability, Transport};
use netloom_units::Time;
use proptest::prelude::*;

const RTO_MIN: Time = Time::from_ms(1);
const RTO_INITIAL: Time = Time::from_ms(10);

/// Fourteen packets leave back to back.
const PACKETS: u64 = 14;

fn unlimited(reliability: Reliability) -> Transport {
    Transport { reliability, congestion: Congestion::None(Default::default()), ..Transport::default() }
}

fn by_count() -> Transport {
    unlimited(Reliability::SelectiveRepeat(SelectiveRepeat { rack: false, ..Default::default() }))
}

fn by_time() -> Transport {
    unlimited(Reliability::SelectiveRepeat(Default::default()))
}

fn go_back_n() -> Transport {
    unlimited(Reliability::GoBackN(Default::default()))
}

/// When the packet that departs at `at` has been delivered.
fn delivery(at: Time) -> Time {
    at + PACKET + DELAY
}

/// Completion without any loss.
fn idle() -> Time {
    delivery(PACKET * (PACKETS - 1))
}

#[test]
fn without_loss_nothing_is_sent_twice() {
    for transport in [by_count(), by_time(), go_back_n()] {
        let run = Pipe::default().run(&transport, PACKETS);
        assert_eq!((run.fct, run.counts.retransmissions, run.feedback.len()), (idle(), 0, 0));
    }
}

#[test]
fn a_fast_retransmission_costs_one_round_trip() {
    // The ACK of the third packet after it comes when that packet, the last, has been gone for a round trip.
    for transport in [by_count(), by_time()] {
        let run = Pipe::losing([10]).run(&transport, PACKETS);
        assert_eq!(run.fct, idle() + RTT);
        assert_eq!((run.counts.retransmissions, run.counts.timeouts), (1, 0));
        assert_eq!(run.feedback, [(PACKET * 13 + RTT, Cause::Loss, 10, false)]);
    }
}

#[test]
fn the_threshold_says_how_many_later_packets_must_arrive() {
    for threshold in 1..=5 {
        let reliability = SelectiveRepeat { reorder_threshold: threshold, rack: false, sack: true };
        let run = Pipe::losing([4]).run(&unlimited(Reliability::SelectiveRepeat(reliability)), PACKETS);
        assert_eq!(run.feedback, [(PACKET * u64::from(4 + threshold) + RTT, Cause::Loss, 4, false)]);
    }
}

/// RFC 6582: the first hole after three duplicate ACKs, each further one when the ACK of the repetition before it comes. With SACK all are repaired in one round trip.
#[test]
fn without_sack_each_hole_costs_a_round_trip() {
    let reliability = SelectiveRepeat { reorder_threshold: 3, rack: false, sack: false };
    let newreno = unlimited(Reliability::SelectiveRepeat(reliability));
    let run = Pipe::losing([2, 4, 6]).run(&newreno, PACKETS);
    // Packets 3, 5 and 7 are the first three after the first hole.
    let first = PACKET * 7 + RTT;
    assert_eq!(
        run.feedback.iter().map(|feedback| (feedback.0, feedback.2)).collect::<Vec<_>>(),
        [(first, 2), (first + RTT, 4), (first + RTT * 2, 6)]
    );
    assert_eq!((run.counts.retransmissions, run.counts.timeouts), (3, 0));
    let run = Pipe::losing([2, 4, 6]).run(&by_count(), PACKETS);
    assert_eq!(run.feedback.last().map(|feedback| feedback.0), Some(PACKET * 9 + RTT));
}

#[test]
fn without_sack_a_lost_repetition_waits_for_the_timeout() {
    let reliability = SelectiveRepeat { reorder_threshold: 3, rack: false, sack: false };
    let newreno = unlimited(Reliability::SelectiveRepeat(reliability));
    // Departure 14 is the repetition of packet 5.
    let run = Pipe::losing([5, 14]).run(&newreno, PACKETS);
    assert_eq!((run.counts.retransmissions, run.counts.timeouts), (2, 1));
    let refused = SelectiveRepeat { sack: false, ..Default::default() };
    let refused = unlimited(Reliability::SelectiveRepeat(refused)).check().unwrap_err();
    assert_eq!(refused.field, "reliability.rack");
}

#[test]
fn a_lost_tail_costs_a_timeout_since_its_departure() {
    let run = Pipe::losing([13]).run(&by_count(), PACKETS);
    assert_eq!(run.fct, delivery(PACKET * 13 + RTO_MIN));
    assert_eq!((run.counts.retransmissions, run.counts.timeouts), (1, 1));
}

#[test]
fn a_probe_finds_a_lost_tail_after_two_quiet_round_trips() {
    // The last ACK is that of packet 12.
    let probe = PACKET * 12 + RTT + RTT * 2;
    let run = Pipe::losing([13]).run(&by_time(), PACKETS);
    assert_eq!(run.fct, delivery(probe));
    assert_eq!((run.counts.retransmissions, run.counts.timeouts), (1, 0));
    // The probe repaired the loss, and its ACK tells so (RFC 8985, section 7.4).
    assert_eq!(run.feedback, [(probe + RTT, Cause::Loss, 13, false)]);
}

#[test]
fn a_probe_shows_which_packets_before_it_are_lost() {
    let probe = PACKET * 10 + RTT + RTT * 2;
    let run = Pipe::losing([11, 12, 13]).run(&by_time(), PACKETS);
    assert_eq!(run.fct, delivery(probe + RTT + PACKET));
    assert_eq!((run.counts.retransmissions, run.counts.timeouts), (3, 0));
}

#[test]
fn timeouts_of_a_single_packet_double() {
    for transport in [by_count(), by_time(), go_back_n()] {
        let run = Pipe::losing([0, 1, 2]).run(&transport, 1);
        assert_eq!(run.fct, delivery(RTO_INITIAL * 7));
        assert_eq!(run.counts.timeouts, 3);
    }
}

#[test]
fn a_lost_retransmission_costs_a_timeout_since_its_own_departure() {
    let again = PACKET * 13 + RTT;
    let run = Pipe::losing([10, 14]).run(&by_count(), PACKETS);
    assert_eq!(run.fct, delivery(again + RTO_MIN));
    assert_eq!((run.counts.retransmissions, run.counts.timeouts), (2, 1));
}

#[test]
fn go_back_n_sends_everything_again_from_the_hole_on() {
    // The next packet brings the NACK.
    let nack = PACKET * 11 + RTT;
    let run = Pipe::losing([10]).run(&go_back_n(), PACKETS);
    let departed: Vec<u32> = run.departures[14..].iter().map(|&(_, seq)| seq).collect();
    assert_eq!((departed, run.departures[14].0), (vec![10, 11, 12, 13], nack));
    assert_eq!(run.fct, delivery(nack + PACKET * 3));
    assert_eq!((run.counts.retransmissions, run.counts.timeouts), (4, 0));
}

#[test]
fn go_back_n_asks_again_if_the_repetition_is_lost_too() {
    // The first repetition departs when the NACK comes. The one after it asks again, as more than the interval has passed since.
    let nack = PACKET * 11 + RTT;
    let run = Pipe::losing([10, 14]).run(&go_back_n(), PACKETS);
    assert_eq!(run.fct, delivery(nack + PACKET + RTT + PACKET * 3));
    assert_eq!((run.counts.retransmissions, run.counts.timeouts), (8, 0));
    // A receiver that asks once waits for the timer.
    let once = GoBackN { nack_interval: Time::from_ms(1000), ..GoBackN::default() };
    let run = Pipe::losing([10, 14]).run(&unlimited(Reliability::GoBackN(once)), PACKETS);
    assert_eq!(run.fct, delivery(nack + RTO_MIN + PACKET * 3));
    assert_eq!((run.counts.retransmissions, run.counts.timeouts), (8, 1));
}

#[test]
fn the_timer_moves_forward_when_round_trips_are_known_to_be_short() {
    // With the first packets' round trips known, the tail's timeout is the least one, though the timer was armed for the initial one.
    let run = Pipe::losing([12, 13]).run(&by_count(), PACKETS);
    assert_eq!(run.feedback[0].0, PACKET * 12 + RTO_MIN);
    assert!(run.fct < RTO_INITIAL);
}

#[test]
fn losses_of_one_window_halve_it_once_and_are_repaired_within_two_round_trips() {
    let newreno = NewReno { initial_window: 20, ..NewReno::default() };
    let transport = Transport { congestion: Congestion::NewReno(newreno), ..by_count() };
    let run = Pipe::losing([3, 5, 8, 9]).run(&transport, 200);
    assert_eq!((run.counts.retransmissions, run.counts.timeouts), (4, 0));
    assert_eq!(run.feedback.iter().filter(|feedback| feedback.3).count(), 1);
    // The window lets the first repetition out at once.
    let (found, cause, seq, cut) = run.feedback[0];
    assert_eq!((cause, seq, cut), (Cause::Loss, 3, true));
    let again = run.departures.iter().rfind(|departure| departure.1 == 3).unwrap().0;
    assert!(again - found < PACKET);
    let repaired =
        [5, 8, 9].map(|seq| run.departures.iter().rfind(|departure| departure.1 == seq).unwrap().0);
    assert!(repaired.iter().all(|&at| at < found + RTT), "{repaired:?} {found}");
}

#[test]
fn a_lost_ack_costs_nothing_but_what_it_would_have_said() {
    for transport in [by_count(), by_time(), go_back_n()] {
        let pipe = Pipe { lost_acks: (0..13).collect(), ..Pipe::default() };
        let run = pipe.run(&transport, PACKETS);
        assert_eq!((run.fct, run.counts.timeouts, run.counts.retransmissions), (idle(), 0, 0));
    }
}

/// Packets that are late by up to this many packet times, at random, as over the paths of a spray.
fn sprayed(departures: u64, most: u64) -> Pipe {
    let late = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % (most + 1);
    let late = (0..departures).map(|i| (i, PACKET * late(i))).collect();
    Pipe { late, reorders: true, ..Pipe::default() }
}

#[test]
fn lateness_below_a_quarter_of_a_round_trip_looks_like_no_loss() {
    let run = sprayed(1000, 5).run(&by_time(), 500);
    assert_eq!((run.counts.retransmissions, run.feedback.len()), (0, 0));
    // By count alone it does.
    let counted = sprayed(1000, 5).run(&by_count(), 500).counts.retransmissions;
    assert!(counted > 0);
}

#[test]
fn the_reordering_window_grows_until_lateness_looks_like_no_loss() {
    let mut pipe = sprayed(30_000, 12);
    let needless = pipe.run(&by_time(), 20_000).counts.retransmissions;
    assert!(needless > 0 && needless < 20, "{needless}");
    // A scheme that is not known to spray finds out by itself.
    pipe.reorders = false;
    let unknown = pipe.run(&by_time(), 20_000).counts.retransmissions;
    assert!(unknown < needless + 20, "{unknown}");
}

proptest! {
    /// The pipe itself checks that everything arrives, once, and that nothing is left.
    #[test]
    fn everything_arrives_whatever_is_lost_or_late(
        lost in prop::collection::btree_set(0..150u64, 0..60),
        lost_acks in prop::collection::btree_set(0..150u64, 0..60),
        late in prop::collection::btree_map(0..150u64, (1..60u64).prop_map(|late| PACKET * late), 0..60),
        packets in 1..80u64,
        window in 1..40u32,
        reliability in prop_oneof![
            Just(Reliability::GoBackN(Default::default())),
            (1..5u32, any::<bool>()).prop_map(|(reorder_threshold, rack)| {
                Reliability::SelectiveRepeat(SelectiveRepeat { reorder_threshold, rack, sack: true })
            }),
        ],
        reorders in any::<bool>(),
    ) {
        let newreno = NewReno { initial_window: window, min_window: 0.5, ..NewReno::default() };
        let transport =
            Transport { congestion: Congestion::NewReno(newreno), ..unlimited(reliability) };
        let run = Pipe { lost, late, lost_acks, reorders }.run(&transport, packets);
        prop_assert!(run.fct >= delivery(PACKET * (packets - 1)));
    }
}
