use netloom_units::Rate;

use super::*;
use crate::feedback::ack_of;

/// A byte per nanosecond: a packet of 1000 B takes a microsecond.
const LINE: Rate = Rate(8_000_000_000);
const FULL: Bytes = Bytes(1000);

/// A packet of 1000 B that arrives at time `us`, in microseconds, while `queued` bytes wait.
fn at(us: u64, queued: u64) -> Meeting {
    Meeting { now: Time::from_us(us), size: FULL, queued: Bytes(queued), rate: LINE }
}

/// A packet of that claim is counted, and meets the port.
fn pass(port: &mut BoltPort, config: &Bolt, meeting: Meeting, claim: Claim) -> (Claim, Option<Time>) {
    port.count(config, FULL, meeting);
    port.meet(config, FULL, meeting, claim)
}

/// Of the link's first microsecond the packet itself takes all; then the link has nothing to send for a packet's time, which lets one packet's claim pass.
#[test]
fn time_without_packets_lets_as_many_claims_pass_as_packets_would_have_fitted_and_no_more_than_are_remembered()
 {
    let (config, mut port) = (Bolt::default(), BoltPort::default());
    let mut seen = Vec::new();
    for us in [1, 3, 4, 6, 100, 101, 102] {
        seen.push(pass(&mut port, &config, at(us, 0), Claim::GROWTH).0.grows());
    }
    // 94 idle microseconds are remembered as one packet's.
    assert_eq!(seen, [false, true, false, true, true, false, false]);
    // Two packets at once are owed for before anything passes.
    pass(&mut port, &config, at(103, 0), Claim::GROWTH);
    pass(&mut port, &config, at(103, 0), Claim::GROWTH);
    let late = [105, 106, 108].map(|us| pass(&mut port, &config, at(us, 0), Claim::GROWTH).0.grows());
    assert_eq!(late, [false, false, true]);
    let off = Bolt { supply_matching: false, ..config };
    assert_eq!(pass(&mut BoltPort::default(), &off, at(9, 0), Claim::GROWTH), (Claim::NONE, None));
}

/// Two flows take turns on a full link, and one of them ends: what is left to the other one comes every other microsecond, and all of it lets a packet more out, so that within a round trip the link
/// is full again.
#[test]
fn a_flow_takes_what_another_one_leaves_in_one_round_trip() {
    let config = Bolt { increase: 0.0, ..wide() };
    let (mut port, mut state) = (BoltPort::default(), state(&config));
    state.window = 5_000.0;
    let mut claim_at = |us| pass(&mut port, &config, at(us, 0), Claim::GROWTH).0;
    for us in 1..=10 {
        assert_eq!(claim_at(us), Claim::NONE);
    }
    let mut windows = Vec::new();
    for (seq, us) in (0..5).zip((12..=20).step_by(2)) {
        state.react(&config, &ack(seq, seq + 5, claim_at(us)));
        windows.push(state.window());
    }
    assert_eq!(windows, [6_000, 7_000, 8_000, 9_000, 10_000]);
    for us in 21..=30 {
        assert_eq!(claim_at(us), Claim::NONE);
    }
}

#[test]
fn what_is_no_data_uses_the_link_and_what_claims_nothing_uses_no_supply() {
    let (config, mut port) = (Bolt::default(), BoltPort::default());
    port.count(&config, FULL, at(2, 0));
    assert_eq!(pass(&mut port, &config, at(3, 0), Claim::NONE), (Claim::NONE, None));
    assert!(pass(&mut port, &config, at(4, 0), Claim::GROWTH).0.grows());
}

/// Each packet of a last window that finds no queue lets one claim pass later.
#[test]
fn last_windows_announce_room() {
    let config = Bolt { supply_matching: false, max_pru_tokens: 2, ..Bolt::default() };
    let mut port = BoltPort::default();
    assert!(!pass(&mut port, &config, at(1, 0), Claim::GROWTH).0.grows());
    for us in 2..5 {
        assert_eq!(pass(&mut port, &config, at(us, 1999), Claim::LAST), (Claim::LAST, None));
    }
    // Two of three are remembered; packets without a claim use none up.
    pass(&mut port, &config, at(5, 0), Claim::NONE);
    let grown = [6, 7, 8].map(|us| pass(&mut port, &config, at(us, 0), Claim::GROWTH).0.grows());
    assert_eq!(grown, [true, true, false]);
    let off = Bolt { proactive_ramp_up: false, ..config };
    pass(&mut port, &off, at(9, 0), Claim::LAST);
    assert!(!pass(&mut port, &off, at(10, 0), Claim::GROWTH).0.grows());
}

/// 2000 B take two microseconds. Who has been notified is not notified again, gets no growth, and still announces its end where no queue is.
#[test]
fn from_the_threshold_on_a_source_is_notified_once() {
    let (config, mut port) = (Bolt::default(), BoltPort::default());
    let (claim, drain) = pass(&mut port, &config, at(9, 2000), Claim::GROWTH);
    assert_eq!((claim.grows(), claim.is_notified(), drain), (false, true, Some(Time::from_us(2))));
    assert_eq!(pass(&mut port, &config, at(10, 5000), claim), (claim, None));
    let (last, drain) = pass(&mut port, &config, at(11, 2001), Claim::LAST);
    assert_eq!(
        (last.is_last(), last.is_notified(), drain),
        (true, true, Some(Time::from_us(2) + Time::from_ns(1)))
    );
    let mut next = BoltPort::default();
    let config = Bolt { supply_matching: false, ..config };
    pass(&mut next, &config, at(1, 0), last);
    assert!(pass(&mut next, &config, at(2, 0), Claim::GROWTH).0.grows());
    let high = Bolt { threshold: Some(Bytes(2002)), ..config };
    assert_eq!(pass(&mut port, &high, at(12, 2001), Claim::NONE).1, None);
}

/// Ten microseconds there and back: a first window of ten packets.
fn state(config: &Bolt) -> State {
    let path =
        PathFacts { base_rtt: Time::from_us(10), rate: LINE, lossy: false, reorders: false, trims: false };
    State::new(config, Start { path, packet: FULL, payload: Bytes(950), now: Time::ZERO })
}

fn ack(seq: u32, next: u32, claim: Claim) -> Feedback {
    Feedback { next, rtt: Time::from_us(10), serialisation: Time(u64::from(claim.bits())), ..ack_of(seq) }
}

fn wide() -> Bolt {
    Bolt { max_window: Some(Bytes(20_000)), ..Bolt::default() }
}

#[test]
fn a_window_grows_once_per_round_trip_and_by_claims_that_have_passed() {
    let config = wide();
    let mut state = state(&config);
    let mut seen = Vec::new();
    let passed = [Claim::GROWTH.notified(), Claim::NONE, Claim::GROWTH, Claim::LAST, Claim::GROWTH];
    for (seq, claim) in [0, 1, 2, 9, 10].into_iter().zip(passed) {
        assert!(!state.react(&config, &ack(seq, 10 + seq, claim)));
        seen.push(state.window());
    }
    assert_eq!(seen, [11_000, 11_000, 12_000, 12_000, 14_000]);
    assert_eq!(state.round, 20);
    for seq in 11..30 {
        state.react(&config, &ack(seq, 40, Claim::GROWTH));
    }
    assert_eq!(state.window(), 20_000);
    // By default a window never exceeds the first one.
    let config = Bolt::default();
    let mut state = self::state(&config);
    state.react(&config, &ack(0, 10, Claim::GROWTH));
    assert_eq!(state.window(), 10_000);
}

/// By hand: 12 packets per 10 us are 1.2 B/ns, of 5 us of queue 6 packets are the flow's; a notice of a packet that left 3 us ago lets the window shrink once in half a microsecond.
/// With 11 packets: 5.5 packets, 3 / 5.5 us.
#[test]
fn a_notice_takes_a_packet_in_the_time_in_which_the_flows_share_of_the_queue_should_be_gone() {
    let config = Bolt { increase: 2.0, ..wide() };
    let mut state = state(&config);
    // Before the first ACK the NIC's rate counts. What a queue of 999 ns holds of the flow is less than a packet, and the flow is as old as its packet.
    let early = SourceNotice { sent: Time::ZERO, drain: Time::from_ns(999) };
    assert!(!state.on_notice(&config, Time::from_us(3), early));
    assert_eq!(state.window(), 10_000);
    let notice = |ns: u64| SourceNotice { sent: Time::from_ns(ns), drain: Time::from_us(5) };
    state.react(&config, &ack(0, 10, Claim::NONE));
    let now = 20_000;
    assert!(state.on_notice(&config, Time::from_ns(now), notice(now - 3_000)));
    assert_eq!((state.window(), state.shrank), (11_000, Time::from_ns(now)));
    for (later, shrinks) in [(545, false), (546, true)] {
        let now = now + later;
        assert_eq!(state.on_notice(&config, Time::from_ns(now), notice(now - 3_000)), shrinks, "{later}");
    }
    assert_eq!(state.window(), 10_000);
}

#[test]
fn a_window_of_one_packet_is_halved_by_each_notice_and_a_loss_halves_once_per_round_trip() {
    let config = Bolt { min_window: Bytes(200), ..wide() };
    let mut state = state(&config);
    state.react(&config, &ack(0, 10, Claim::NONE));
    let loss = |us| Feedback::of(Cause::Loss, Time::from_us(us));
    assert!(!state.react(&config, &loss(9)));
    assert!(state.react(&config, &loss(10)) && !state.react(&config, &loss(19)));
    assert_eq!(state.window(), 5_500);
    state.window = 1000.0;
    let notice = SourceNotice { sent: Time::ZERO, drain: Time::from_us(1) };
    let windows = [500, 250, 200, 200].map(|_| {
        state.on_notice(&config, Time::from_us(20), notice);
        state.window()
    });
    assert_eq!(windows, [500, 250, 200, 200]);
    assert!(!state.react(&config, &Feedback::of(Cause::Unreachable, Time::from_us(99))));
}

#[test]
fn packets_of_the_first_and_the_last_window_claim_no_growth() {
    let config = wide();
    let mut state = state(&config);
    assert_eq!([1_000, 50_000].map(|unsent| state.claim(Bytes(unsent))), [Claim::NONE; 2]);
    state.react(&config, &ack(0, 10, Claim::NONE));
    assert_eq!([11_000, 11_001].map(|unsent| state.claim(Bytes(unsent))), [Claim::LAST, Claim::GROWTH]);
}

#[test]
fn senseless_values_name_their_field() {
    let config = Bolt::default;
    assert_eq!(config().check(), Ok(()));
    for (config, field) in [
        (Bolt { threshold: Some(Bytes(0)), ..config() }, "threshold"),
        (Bolt { max_pru_tokens: 0, ..config() }, "max_pru_tokens"),
        (Bolt { max_supply: Some(Bytes(0)), ..config() }, "max_supply"),
        (Bolt { increase: f64::NAN, ..config() }, "increase"),
        (Bolt { max_decrease: 1.0, ..config() }, "max_decrease"),
        (Bolt { min_window: Bytes(0), ..config() }, "min_window"),
        (Bolt { max_window: Some(Bytes(0)), ..config() }, "max_window"),
        (Bolt { min_window: Bytes(20_001), ..wide() }, "max_window"),
        (Bolt { base_rtt: Some(Time::ZERO), ..config() }, "base_rtt"),
    ] {
        assert_eq!(config.check().unwrap_err().field, field);
    }
}
