//! A trace computed by hand from the formulas: 100 Gb/s and 12 us, so that the scale is 1.

use super::*;
use crate::feedback::ack_of;

const PACKET: u64 = 4150;
/// Bandwidth-delay product and largest window.
const PRODUCT: u64 = 150_000;
const MOST: u64 = 225_000;
const RTT: Time = Time::from_us(12);
/// 0.75 round trips.
const TARGET: Time = Time::from_us(9);

fn begun(config: &Nscc) -> State {
    let path =
        PathFacts { base_rtt: RTT, rate: Rate::from_gbps(100), lossy: true, reorders: true, trims: true };
    config.state(Start { path, packet: Bytes(PACKET), payload: Bytes(4086), now: Time::ZERO })
}

/// An ACK at an instant for that many full packets, the one that caused it delayed and perhaps marked.
fn ack(at: Time, packets: u64, delay: Time, marked: bool) -> Feedback {
    let bytes = packets * PACKET;
    Feedback { now: at, rtt: RTT + delay, bytes, marked, in_flight: 20, ..ack_of(7) }
}

fn us(us: u64) -> Time {
    Time::from_us(us)
}

/// A state after its first adjustment at 100 us, with a window of that many bytes.
fn settled(config: &Nscc, window: u64) -> State {
    let mut state = begun(config);
    state.react(config, &ack(us(100), 1, us(2), false));
    state.window = window;
    assert_eq!((state.gathered, state.delivered, state.adjusted), (0, 0, Some(us(100))));
    state
}

#[test]
fn the_constants_follow_from_round_trip_and_rate() {
    let config = Nscc::default();
    let state = begun(&config);
    assert_eq!((state.window, state.most, state.target), (MOST, MOST, TARGET.0));
    // 5 · 4086, 0.15 · 4086 and 4 · 4086 · 0.75 / 9 us.
    assert_eq!((state.fair, state.steady), (20_430.0, 612));
    assert!((state.proportional - 12_258.0 / 9e6).abs() < 1e-12);
    // Twice the rate: twice all but the target. Without trimming the target is a round trip.
    let path =
        PathFacts { base_rtt: RTT, rate: Rate::from_gbps(200), lossy: true, reorders: true, trims: false };
    let state = config.state(Start { path, packet: Bytes(PACKET), payload: Bytes(4086), now: Time::ZERO });
    assert_eq!((state.window, state.target, state.fair, state.steady), (2 * MOST, RTT.0, 40_860.0, 1225));
    assert_eq!(state.fast, 0.5);
    // 4 · 4086 · 2 · 1 / 12 us.
    assert!((state.proportional - 32_688.0 / 12e6).abs() < 1e-12);
}

#[test]
fn without_a_mark_and_above_the_target_all_flows_grow_alike() {
    let config = Nscc::default();
    let mut state = settled(&config, 100_000);
    state.react(&config, &ack(us(101), 4, TARGET, false));
    assert_eq!((state.gathered, state.window), (20_430 * 4 * PACKET, 100_000));
    // Eight packets do not end the count, more do: 20,430 · 12 · 4150 / 100,000 = 10,174.
    state.react(&config, &ack(us(102), 4, us(20), false));
    assert_eq!(state.window, 100_000);
    state.react(&config, &ack(us(103), 4, us(9), false));
    assert_eq!((state.window, state.gathered, state.delivered), (110_174, 0, 0));
}

#[test]
fn without_a_mark_and_below_the_target_growth_is_in_proportion_to_the_distance() {
    let config = Nscc::default();
    let mut state = settled(&config, 100_000);
    // 12,258 / 9 us · 3 us = 4086 per byte, for 9 packets: 4086 · 37,350 / 100,000 = 1526.
    state.react(&config, &ack(us(101), 9, us(6), false));
    assert_eq!(state.window, 101_526);
}

#[test]
fn a_window_of_packets_without_delay_makes_growth_fast_until_there_is_some() {
    let config = Nscc::default();
    let mut state = settled(&config, 20_000);
    state.react(&config, &ack(us(101), 4, Time::ZERO, false));
    assert_eq!((state.undelayed, state.is_fast, state.window), (16_600, false, 20_000));
    // 33,200 bytes are more than the window: a quarter of what this ACK is for.
    let gathered = state.gathered;
    state.react(&config, &ack(us(102), 4, Time::from_ns(999), false));
    assert_eq!((state.is_fast, state.window, state.gathered), (true, 24_150, gathered));
    // Nine more make an adjustment due, of what was gathered before.
    state.react(&config, &ack(us(103), 1, Time::ZERO, false));
    let window = 24_150 + 1037;
    assert_eq!(state.window, window + gathered / window);
    state.react(&config, &ack(us(104), 1, us(1), false));
    assert_eq!((state.undelayed, state.is_fast), (0, false));
    assert!(state.gathered > 0);
}

#[test]
fn a_mark_below_the_target_changes_nothing_and_above_it_shrinks_once_per_round_trip() {
    let config = Nscc::default();
    let mut state = settled(&config, 100_000);
    state.average = us(12).0;
    state.react(&config, &ack(us(101), 1, us(8), true));
    assert_eq!((state.window, state.gathered), (100_000, 0));
    // The average is about 12 us: the window loses 0.8 · 3/12 of itself.
    state.average = us(12).0;
    assert!(state.react(&config, &ack(us(102), 1, us(12), true)));
    assert_eq!((state.window, state.shrunk), (80_000, Some(us(102))));
    // Not again before a round trip has passed.
    state.react(&config, &ack(us(114), 1, us(12), true));
    assert_eq!(state.window, 80_000 + 612, "the steady part, as a round trip has passed since 100 us");
    state.average = us(90).0;
    state.react(&config, &ack(us(115), 1, us(90) - us(60), true));
    // Never more than half.
    let excess = (state.average as f64 - 9e6) / state.average as f64;
    assert!(0.8 * excess > 0.5);
    assert_eq!(state.window, 40_306);
}

#[test]
fn nothing_shrinks_while_the_average_is_below_the_target() {
    let config = Nscc::default();
    let mut state = settled(&config, 100_000);
    state.react(&config, &ack(us(101), 1, us(30), true));
    assert_eq!((state.window, state.shrunk), (100_000, None));
    // The average moves by an eightieth of the newest delay: 0.0125 · 2 us before, then 0.0125 · 30 us + 0.9875 of it.
    assert_eq!(state.average, 375_000 + 24_687);
    // An unmarked delay above the target counts as a quarter of a round trip.
    state.react(&config, &ack(us(101), 1, us(30), false));
    assert_eq!(state.average, (0.0125 * 3e6 + 0.9875 * 399_687.0) as u64);
}

#[test]
fn little_delivered_with_a_loss_becomes_the_window_and_marks_of_before_are_ignored() {
    let config = Nscc::default();
    let mut state = settled(&config, MOST);
    // The look of 100 us was the first. The next is due after 12 + 9 us, and three packets are less than an eighth of the largest window.
    state.react(&config, &ack(us(110), 3, us(2), false));
    assert_eq!((state.achieved, state.adapts_after), (3 * PACKET, Some(us(121))));
    let nack = Feedback {
        cause: Cause::Trim,
        packets: 0,
        bytes: 0,
        in_flight: 19,
        ..ack(us(121), 0, us(20), false)
    };
    let window = state.window;
    assert!(state.react(&config, &nack));
    assert_eq!((state.window, state.is_triggered), (window - PACKET, true), "121 us is not after 121 us");
    assert!(state.react(&config, &Feedback { now: us(122), ..nack }));
    assert_eq!((state.window, state.is_triggered), (3 * PACKET, false));
    assert_eq!((state.achieved, state.to_ignore, state.ignored), (0, 20 * PACKET, 0));
    assert_eq!(state.adapts_after, Some(us(143)));
    // Marked ACKs and losses of what was in flight change nothing more, unmarked ones let it grow.
    state.average = us(50).0;
    assert!(!state.react(&config, &ack(us(123), 4, us(40), true)));
    assert!(!state.react(&config, &Feedback { now: us(124), ..nack }));
    assert_eq!((state.window, state.delivered), (3 * PACKET, 0));
    state.react(&config, &ack(us(125), 1, us(20), false));
    // A round trip has passed since 100 us: 20,430 · 4150 / 12,450 and the steady part are added.
    assert_eq!(state.window, 3 * PACKET + 6810 + 612);
}

#[test]
fn a_large_delay_adapts_too_and_much_delivered_does_not() {
    let config = Nscc::default();
    for (packets, adapts) in [(6, true), (7, false)] {
        let mut state = settled(&config, MOST);
        // Seven of these are more than 28,125 bytes.
        state.react(&config, &ack(us(105), packets - 1, us(2), false));
        state.react(&config, &ack(us(122), 1, us(37), true));
        assert_eq!(state.window == packets * PACKET, adapts, "{packets}");
    }
    let mut state = settled(&config, MOST);
    state.react(&config, &ack(us(122), 1, us(36), true));
    assert_eq!(state.window, MOST, "36 us are no more than four targets");
    let never = Nscc { quick_adapt: false, ..config };
    let mut state = settled(&never, MOST);
    state.react(&never, &ack(us(122), 1, us(37), true));
    assert_eq!(state.window, MOST);
}

#[test]
fn losses_take_a_packet_and_the_window_keeps_between_a_packet_and_the_most() {
    let config = Nscc::default();
    let mut state = settled(&config, 2 * PACKET);
    for _ in 0..3 {
        state.react(
            &config,
            &Feedback { now: us(101), cause: Cause::Timeout, ..ack(us(101), 0, us(0), false) },
        );
    }
    assert_eq!(state.window, PACKET);
    state.window = MOST - 10;
    state.react(&config, &ack(us(113), 1, us(2), false));
    assert_eq!(state.window, MOST);
}

#[test]
fn a_shorter_round_trip_lowers_the_most_and_an_unmeasured_one_says_nothing() {
    let config = Nscc { network_rtt: Some(RTT), ..Nscc::default() };
    let mut state = begun(&config);
    let short = Feedback { rtt: us(8), ..ack(us(100), 1, us(0), false) };
    state.react(&config, &short);
    assert_eq!((state.base_rtt, state.most, state.window), (us(8).0, 150_000, 150_000));
    assert!(state.most == PRODUCT && state.rtt == RTT.0);
    let average = state.average;
    state.react(&config, &Feedback { is_sampled: false, rtt: us(100), ..short });
    assert_eq!((state.base_rtt, state.average), (us(8).0, average));
}

#[test]
fn values_without_meaning_are_refused() {
    let refused = |config: Nscc| config.check().map_err(|error| error.field);
    assert_eq!(refused(Nscc::default()), Ok(()));
    assert_eq!(refused(Nscc { gamma: 1.1, ..Nscc::default() }), Err("gamma".into()));
    assert_eq!(refused(Nscc { weight: 0.0, ..Nscc::default() }), Err("weight".into()));
    assert_eq!(refused(Nscc { fair: -1.0, ..Nscc::default() }), Err("fair".into()));
    assert_eq!(refused(Nscc { max_window: 0.0, ..Nscc::default() }), Err("max_window".into()));
    assert_eq!(
        refused(Nscc { target_delay: Some(Time::ZERO), ..Nscc::default() }),
        Err("target_delay".into())
    );
    let gate = Nscc { quick_adapt: false, quick_adapt_gate: 4, ..Nscc::default() };
    assert_eq!(refused(gate), Err("quick_adapt_gate".into()));
}

/// `MNSCC`: of five paths `slow` are marked and delayed by 40 us, the others by 2 us. What less than half of them say does nothing.
#[test]
fn a_median_goes_by_most_of_the_paths() {
    let windows = |median_of: Option<u32>, slow: u64| -> Vec<u64> {
        let config = Nscc { median_of, ..Nscc::default() };
        let mut state = settled(&config, 100_000);
        let mut one = |step: u64| {
            let is_slow = 3 * step % 5 < slow;
            let delay = if is_slow { us(40) } else { us(2) };
            state.react(&config, &ack(us(101 + step), 1, delay, is_slow));
            state.window
        };
        (0..3000).map(&mut one).collect()
    };
    for slow in [1, 2] {
        let median = windows(Some(25), slow);
        // The first ACKs are too few for a majority.
        assert!(median[31..].is_sorted() && median[2999] == MOST, "{slow}");
    }
    assert!(windows(None, 2)[2999] < MOST / 2);
    // With three it shrinks, until a window has so few ACKs that most of them are not always slow.
    assert!(windows(Some(25), 3)[2999] < 50_000 && windows(None, 5)[2999] == PACKET);
}
