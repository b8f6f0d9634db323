use super::theta::ThetaPowerTcp;
use super::*;
use crate::feedback::ack_of;

const LINE: Rate = Rate(100_000_000_000);
/// At the line's rate 125,000 B per round trip, of which a tenth is β.
const RTT: Time = Time(10_000_000);
const BDP: f64 = 125_000.0;
const BETA: f64 = 12_500.0;

fn start() -> Start {
    let path = PathFacts { base_rtt: RTT, rate: LINE, lossy: false, reorders: false, trims: false };
    Start { path, packet: Bytes(1000), payload: Bytes(1000), now: Time::ZERO }
}

fn state() -> State {
    State::new(&PowerTcp::default(), start())
}

/// A flow whose window has been this large for a round trip.
fn at(window: f64) -> State {
    let mut state = state();
    (state.law.window, state.reference) = (window, window);
    state
}

fn link(us: f64, queued: u64, sent: u64) -> LinkState {
    LinkState { channel: 1, queued, sent, at: Time((us * 1e6) as u64), rate: LINE }
}

/// The ACK of a packet, while the next one is this many packets ahead.
fn ack(state: &mut State, seq: u32, ahead: u32, links: &[LinkState]) -> bool {
    state.on_telemetry(links.iter().copied());
    state.react(&Feedback { next: seq + ahead, ..ack_of(seq) })
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{a} {b}");
}

#[test]
fn a_flow_starts_at_the_lines_rate_and_its_first_ack_only_begins_the_comparison() {
    let mut state = state();
    assert_eq!((state.law.window(), state.law.rate(), state.law.step), (125_000, LINE, BETA));
    assert!(!ack(&mut state, 0, 50, &[link(0.0, 40_000, 0)]));
    assert_eq!((state.law.window(), state.law.power, state.round), (125_000, None, 50));
}

/// In half a round trip a full link carries 62,500 B: λ = b, ν = bτ, so Γ = 1, and γ (w + β) + (1 − γ) w = w + γβ.
#[test]
fn on_a_link_that_is_just_full_a_window_grows_by_a_part_of_beta() {
    let mut state = at(50_000.0);
    ack(&mut state, 0, 50, &[link(0.0, 0, 7)]);
    assert!(!ack(&mut state, 1, 50, &[link(5.0, 0, 62_507)]));
    close(state.law.power.unwrap(), 1.0);
    close(state.law.window, 50_000.0 + 0.9 * BETA);
}

/// By hand: 62,500 B leave and the queue grows by 15,000 B in half a round trip, λ = 1.24 b; 40,000 B wait, ν = 1.32 bτ: Γ = 1.6368.
/// 0.9 · (125,000 / 1.6368 + 12,500) + 0.1 · 125,000 = 92,481.67.
#[test]
fn a_queue_that_grows_counts_by_its_length_and_by_its_growth() {
    let mut state = state();
    ack(&mut state, 0, 50, &[link(0.0, 25_000, 1_000)]);
    assert!(ack(&mut state, 1, 50, &[link(5.0, 40_000, 63_500)]));
    close(state.law.power.unwrap(), 1.6368);
    close(state.law.window, 92_481.671_554);
    assert_eq!(state.law.rate().0, (state.law.window * 8e12 / 1e7) as u64);
    // The same queue while it empties at half of the line's rate: λ = 0.5 b, Γ = 0.5 · 1.2, and a window of 60,000 B doubles almost.
    let mut state = at(60_000.0);
    ack(&mut state, 0, 50, &[link(0.0, 56_250, 0)]);
    ack(&mut state, 1, 50, &[link(5.0, 25_000, 62_500)]);
    close(state.law.power.unwrap(), 0.6);
    close(state.law.window, 0.9 * (100_000.0 + BETA) + 6_000.0);
}

/// What weighs is the time since the ACK before, up to a round trip: 0.8 · 1.2 + 0.2 · 1, and after a pause of two round trips only the last one.
#[test]
fn power_is_smoothed_over_a_round_trip() {
    let mut state = at(50_000.0);
    ack(&mut state, 0, 90, &[link(0.0, 25_000, 0)]);
    ack(&mut state, 1, 90, &[link(1.0, 25_000, 12_500)]);
    close(state.law.power.unwrap(), 1.2);
    // 25,000 B leave in 2 us, and all that waited with them: nothing has come, which counts as half of the link's rate. Γ = 0.5.
    ack(&mut state, 2, 90, &[link(3.0, 0, 37_500)]);
    close(state.law.power.unwrap(), 0.96 + 0.1);
    ack(&mut state, 3, 90, &[link(23.0, 0, 287_500)]);
    close(state.law.power.unwrap(), 1.0);
}

/// Γ = 1.2 with every ACK, a microsecond apart. The windows of the first round trip follow from 125,000 B.
#[test]
fn windows_follow_from_the_one_of_a_round_trip_ago() {
    let mut state = state();
    let now = |state: &mut State, seq: u32| {
        let us = f64::from(seq);
        ack(state, seq, 3, &[link(us, 25_000, 12_500 * u64::from(seq))]);
        (state.law.window, state.reference)
    };
    now(&mut state, 0);
    let mut window = BDP;
    for seq in 1..=3 {
        window = 0.9 * (BDP / 1.2 + BETA) + 0.1 * window;
        let seen = now(&mut state, seq);
        close(seen.0, window);
        // The reference moves after the packet that was the next one when the first ACK came.
        close(seen.1, if seq == 3 { window } else { BDP });
    }
    let reference = window;
    let seen = now(&mut state, 4);
    close(seen.0, 0.9 * (reference / 1.2 + BETA) + 0.1 * window);
    assert_eq!(state.round, 6);
}

/// The second link, at a quarter of the rate: 15,625 B wait where it holds 31,250 B in a round trip, and it is full: Γ = 1.5.
#[test]
fn the_link_of_the_largest_power_counts_at_its_own_rate() {
    let mut state = state();
    let slow = |us, queued, sent| LinkState { channel: 2, rate: Rate(LINE.0 / 4), ..link(us, queued, sent) };
    ack(&mut state, 0, 9, &[link(0.0, 50_000, 0), slow(1.0, 15_625, 0)]);
    ack(&mut state, 9, 9, &[link(3.0, 50_000, 6_250), slow(3.0, 15_625, 6_250)]);
    close(state.law.power.unwrap(), 1.5);
}

#[test]
fn another_way_an_answer_without_telemetry_and_a_loss_change_nothing() {
    let mut state = state();
    ack(&mut state, 0, 9, &[link(0.0, 50_000, 0)]);
    let other = |us, sent| LinkState { channel: 8, ..link(us, 50_000, sent) };
    assert!(!ack(&mut state, 9, 9, &[other(5.0, 500_000)]));
    assert!(!ack(&mut state, 10, 9, &[other(6.0, 600_000), other(6.0, 1)]));
    assert!(!state.react(&ack_of(20)));
    state.on_telemetry([link(7.0, 50_000, 62_500)].into_iter());
    assert!(!state.react(&Feedback::of(Cause::Timeout, RTT)));
    assert_eq!((state.law.window, state.reference, state.law.power), (BDP, BDP, None));
}

/// Nothing has come to the link for a round trip: by the paper's equation alone there is no power to divide by.
#[test]
fn windows_stay_within_the_first_one() {
    let mut state = at(1_000.0);
    state.least = 0.0;
    ack(&mut state, 0, 9, &[link(0.0, 125_000, 0)]);
    ack(&mut state, 1, 9, &[link(10.0, 0, 125_000)]);
    assert_eq!((state.law.power, state.law.window()), (Some(0.0), 123_850));
    ack(&mut state, 2, 9, &[link(30.0, 0, 250_000)]);
    // Then half of the line's rate, Γ = 0.5, from the same reference: 0.9 · (2,000 + 12,500) + 12,385.
    close(state.law.window, 25_435.0);
    for seq in 3..20 {
        ack(&mut state, seq, 1, &[link(f64::from(seq) * 20.0, 0, 250_000)]);
    }
    assert_eq!(state.law.window(), 125_000);
}

/// The paper's fixed point: where n flows keep Σβ waiting for a full link, Γ = 1 + Σβ / bτ, and β / (1 − 1/Γ) is an n-th of all that is under way, from whatever window a flow begins.
#[test]
fn in_equilibrium_flows_share_alike_and_keep_their_betas_waiting() {
    for flows in [2u32, 4, 8] {
        let waiting = BETA * f64::from(flows);
        let share = (BDP + waiting) / f64::from(flows);
        for window in [share, 0.2 * share, 1.4 * share] {
            let mut state = at(window);
            for round in 0..200u32 {
                let sent = u64::from(round) * 125_000;
                ack(&mut state, round, 1, &[link(f64::from(round) * 10.0, waiting as u64, sent)]);
                assert!(window != share || (state.law.window - share).abs() < 1e-6);
            }
            close(state.law.window, share);
        }
    }
}

/// An ACK of a round-trip time at an instant, both in microseconds.
fn measured(seq: u32, now: u64, rtt: u64) -> Feedback {
    Feedback { now: Time::from_us(now), rtt: Time::from_us(rtt), next: seq + 3, ..ack_of(seq) }
}

/// By hand: 12 us after 10 us within 4 us, (0.5 + 1) · 1.2 = 1.8; then 12 us still, 1.2, 6 us later: 0.4 · 1.8 + 0.6 · 1.2 = 1.44. The window changes with the third packet,
/// the first one that was sent after the first ACK: 0.9 · (125,000 / 1.44 + 12,500) + 12,500 = 101,875.
#[test]
fn round_trip_times_say_the_power_and_the_window_changes_once_per_round_trip() {
    let mut state = theta::State::new(&ThetaPowerTcp::default(), start());
    assert!(!state.react(&measured(0, 0, 10)));
    assert!(!state.react(&measured(1, 4, 12)));
    close(state.law.window, BDP);
    assert!(state.react(&measured(3, 10, 12)));
    close(state.law.window, 101_875.0);
    // The next one is packet 6.
    assert!(!state.react(&measured(5, 11, 20)));
    close(state.law.window, 101_875.0);
    // Neither a loss nor an ACK that measures nothing counts.
    let before = state.law.window;
    state.react(&Feedback { is_sampled: false, ..measured(9, 12, 90) });
    state.react(&Feedback { cause: Cause::Loss, ..measured(9, 12, 90) });
    state.react(&Feedback { cause: Cause::Timeout, ..measured(9, 12, 90) });
    close(state.law.window, before);
}

/// Without a queue the power is 1, and the window grows by γβ per round trip up to the first one.
#[test]
fn idle_round_trip_times_let_a_window_grow() {
    let mut state = theta::State::new(&ThetaPowerTcp::default(), start());
    state.react(&measured(0, 0, 30));
    for round in 1..4 {
        state.react(&measured(3 * round, 30 * u64::from(round), 30));
    }
    let small = state.law.window;
    assert!(small < 40_000.0, "{small}");
    state.react(&measured(12, 130, 10));
    let mut expected = state.law.window;
    for round in 5..20u32 {
        state.react(&measured(3 * round, 90 + 10 * u64::from(round), 10));
        expected = (expected + 0.9 * BETA).min(BDP);
        if round > 6 {
            assert!(state.law.window <= BDP);
        }
    }
    close(state.law.window, expected);
}

#[test]
fn senseless_values_name_their_field() {
    let (config, theta) = (PowerTcp::default, ThetaPowerTcp::default);
    assert_eq!((config().check(), theta().check()), (Ok(()), Ok(())));
    for (config, field) in [
        (PowerTcp { gamma: 0.0, ..config() }, "gamma"),
        (PowerTcp { gamma: 1.1, ..config() }, "gamma"),
        (PowerTcp { flows: 0, ..config() }, "flows"),
        (PowerTcp { least_current: 1.1, ..config() }, "least_current"),
        (PowerTcp { base_rtt: Some(Time::ZERO), ..config() }, "base_rtt"),
    ] {
        assert_eq!(config.check().unwrap_err().field, field);
        let PowerTcp { gamma, flows, least_current, base_rtt, .. } = config;
        let theta = ThetaPowerTcp { gamma, flows, least_current, base_rtt };
        assert_eq!(theta.check().unwrap_err().field, field);
    }
}
