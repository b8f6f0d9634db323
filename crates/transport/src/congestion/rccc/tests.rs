use super::*;
use crate::feedback::ack_of;

/// The network of uet-htsim's examples: 100 Gb/s, 14.02272 us, packets of 4150 B.
const PATH: PathFacts = PathFacts {
    base_rtt: Time(14_022_720),
    rate: Rate(100_000_000_000),
    lossy: true,
    reorders: true,
    trims: true,
};
const PACKET: u64 = 4150;
/// 1.5 times 175,284 B.
const WINDOW: i64 = 262_926;

struct Flow(Rccc, State, Gate);

impl Flow {
    fn new(config: Rccc) -> Self {
        let mut gate = Gate::new(Time::ZERO);
        let (packet, payload) = (Bytes(PACKET), Bytes(PACKET - 64));
        let state = config.begin(Start { path: PATH, packet, payload, now: Time::ZERO }, &mut gate);
        Flow(config, state, gate)
    }

    /// Sends a packet; returns its pull target if that many bytes are left.
    fn send(&mut self, bytes: u64, unsent: u64) -> u32 {
        assert!(self.2.credit() > 0);
        self.1.on_sent(Time::ZERO, bytes, &mut self.2);
        self.target(unsent, 1)
    }

    fn target(&mut self, unsent: u64, sources: u32) -> u32 {
        self.1.pull_target(Demand { unsent, lost: 0, sources }).unwrap()
    }

    fn hear(&mut self, cause: Cause) {
        let feedback = Feedback { cause, rtt: PATH.base_rtt, ..ack_of(0) };
        self.1.on_feedback(&self.0, &feedback, &mut self.2);
    }
}

/// `UecSrc::computePullTarget`, packet by packet: while it speculates, a sender asks for as much as it has sent, rounded up to quanta.
#[test]
fn a_sender_speculates_for_a_window_and_asks_for_as_much() {
    let mut flow = Flow::new(Rccc::default());
    assert_eq!(flow.1.credit, WINDOW);
    // 4150, 8300, 12,450 B.
    assert_eq!([1, 2, 3].map(|_| flow.send(PACKET, 2_000_000)), [17, 33, 49]);
    while flow.2.credit() > 0 {
        flow.send(PACKET, 2_000_000);
    }
    // 64 packets are more than the window by less than one.
    assert_eq!(flow.1.credit, WINDOW - 64 * 4150);
    assert_eq!(flow.target(2_000_000, 1), 64 * 4150 / 256 + 1);
    // With three others at the NIC it asks for a quarter.
    assert_eq!(flow.target(2_000_000, 4), (64 * 4150 / 4u32).div_ceil(256));
    // However many there are, it asks for something.
    assert_eq!(flow.target(2_000_000, 1_000_000), 1);
}

#[test]
fn a_sender_awaits_what_it_has_asked_for_beyond_what_was_granted() {
    let mut flow = Flow::new(Rccc::default());
    // Nothing follows, so that the packet asks for nothing.
    assert_eq!(flow.send(PACKET, 0), 0);
    assert!(!flow.1.awaits_credit());
    assert_eq!(flow.target(PACKET, 1), 17);
    assert!(flow.1.awaits_credit());
    flow.1.on_pull(16, &mut flow.2);
    assert!(flow.1.awaits_credit());
    flow.1.on_pull(17, &mut flow.2);
    assert!(!flow.1.awaits_credit());
}

#[test]
fn what_comes_back_first_takes_the_credit_that_nobody_granted() {
    for cause in [Cause::Ack, Cause::Trim] {
        let mut flow = Flow::new(Rccc::default());
        flow.send(PACKET, 8300);
        // It speculates: a short flow asks for a packet though its credit is enough for all of it.
        assert_eq!(flow.target(8300, 1), 17);
        flow.hear(cause);
        assert_eq!((flow.1.credit, flow.2.credit()), (0, 0), "{cause:?}");
        assert_eq!(flow.target(8300, 1), 33);
        // A timeout alone is no answer.
        let mut flow = Flow::new(Rccc::default());
        flow.hear(Cause::Timeout);
        assert_eq!(flow.1.credit, WINDOW);
    }
}

#[test]
fn pulls_grant_what_they_count_beyond_those_before_up_to_a_window() {
    let mut flow = Flow::new(Rccc::default());
    flow.1.on_pull(17, &mut flow.2);
    assert_eq!((flow.1.credit, flow.2.credit()), (17 * 256, 1));
    // Two packets leave on credit for little more than one, and the next waits until it is above zero again.
    flow.send(PACKET, 2_000_000);
    flow.send(PACKET, 2_000_000);
    assert_eq!((flow.1.credit, flow.2.credit()), (17 * 256 - 8300, 0));
    for pulled in [33, 17] {
        flow.1.on_pull(pulled, &mut flow.2);
        assert_eq!(
            (flow.1.credit, flow.1.pulled),
            (33 * 256 - 8300, 33),
            "one that was overtaken says nothing"
        );
    }
    // What it lacks for a window is counted from what has been granted.
    assert_eq!(flow.target(2_000_000, 1), 33 + (WINDOW - 148).unsigned_abs().div_ceil(256) as u32);
    flow.1.on_pull(1_000_000, &mut flow.2);
    assert_eq!(flow.1.credit, WINDOW);
    // The numbers go round.
    flow.1.pulled = u32::MAX - 1;
    flow.1.credit = 0;
    flow.1.on_pull(2, &mut flow.2);
    assert_eq!(flow.1.credit, 4 * 256);
    assert_eq!(flow.target(1024, 1), 2);
}

#[test]
fn with_nscc_a_sender_asks_for_no_more_than_its_window_and_a_packet() {
    let mut flow = Flow::new(Rccc { nscc: Some(Nscc::default()), ..Rccc::default() });
    assert_eq!(flow.2.window(), WINDOW.unsigned_abs());
    for _ in 0..40 {
        flow.hear(Cause::Trim);
    }
    let window = flow.2.window();
    assert_eq!(window, WINDOW.unsigned_abs() - 40 * PACKET);
    assert_eq!(flow.target(2_000_000, 1), (window + PACKET).div_ceil(256) as u32);
    // What is trimmed at the last hop is for credit to repair.
    let feedback = Feedback { cause: Cause::Trim, at_last_hop: true, rtt: PATH.base_rtt, ..ack_of(0) };
    flow.1.on_feedback(&flow.0, &feedback, &mut flow.2);
    assert_eq!(flow.2.window(), window);
}

fn ahead() -> u32 {
    1027
}

/// `UecPullPacer::doNextEvent` with `UecSink::pull`: active senders in turn, 64 quanta at most, then those that asked for nothing more.
#[test]
fn a_receiver_grants_what_is_asked_for_in_turn_and_then_more() {
    let config = Rccc::default();
    let mut queue = CreditQueue::default();
    let next = |queue: &mut CreditQueue| {
        let grant = queue.next(&config)?;
        Some((grant.receiver, grant.pulled, grant.quanta))
    };
    queue.on_target(3, 17, false, ahead);
    queue.on_target(5, 100, false, ahead);
    // A target that came before says nothing.
    queue.on_target(3, 16, false, ahead);
    assert_eq!(next(&mut queue), Some((3, 17, 17)));
    assert_eq!(next(&mut queue), Some((5, 64, 64)));
    queue.on_target(3, 18, false, ahead);
    assert_eq!([0; 3].map(|_| next(&mut queue)), [Some((5, 100, 36)), Some((3, 18, 1)), Some((3, 82, 64))]);
    // The idle ones take turns until they are 1027 quanta ahead.
    let grants: Vec<_> = std::iter::from_fn(|| next(&mut queue)).collect();
    assert_eq!(grants[..3], [(5, 164, 64), (3, 146, 64), (5, 228, 64)]);
    assert_eq!(grants.iter().rfind(|grant| grant.0 == 3), Some(&(3, 18 + 17 * 64, 64)));
    assert_eq!(grants.len(), 16 + 17);
    assert!(queue.is_empty());
    // What it has been granted beyond its target is not granted again, but something lost has its PULL.
    queue.on_target(5, 200, false, ahead);
    assert_eq!(next(&mut queue), Some((5, 100 + 17 * 64, 0)));
    assert_eq!(next(&mut queue).map(|grant| grant.2), Some(64));
    queue.on_target(5, 200, true, ahead);
    assert_eq!(next(&mut queue).map(|grant| grant.2), Some(0));
    // What has arrived is not asked for again, and a new flow counts from 0.
    queue.on_target(5, 5000, false, ahead);
    queue.clear(5);
    assert_eq!(next(&mut queue), None);
    queue.on_target(5, 1, false, ahead);
    assert_eq!(next(&mut queue), Some((5, 1, 1)));
}

/// 20,480 ps at the line's rate, and a hundredth of that more.
#[test]
fn pulls_are_apart_by_what_they_grant() {
    let gap = |quanta, share| Rccc::default().gap(PATH.rate, quanta, share);
    assert_eq!(gap(64, 1.0), Time(20_686 * 64));
    assert_eq!(gap(0, 1.0), Time(20_686 * 4), "something, even if it grants nothing");
    assert_eq!(gap(1, 0.5), Time(41_372));
}

/// `OversubscribedCC::doCongestionControl`.
#[test]
fn a_receiver_slows_down_by_marks_and_by_trims_before_the_last_hop() {
    let config = Oversubscribed::default();
    let mut state = ReceiverRate::new(Time::ZERO);
    let rtt = Time::from_us(10);
    // The interval is 1.5 round trips where 0.5 is drawn.
    let look = |state: &mut ReceiverRate, turn: u64| {
        state.advance(&config, Time::from_us(15 * turn), || rtt, || 0.5);
        state.rate()
    };
    assert_eq!(look(&mut state, 0), 1.0);
    let arrive = |state: &mut ReceiverRate, plain: u32, marked: u32, last: u32, before: u32| {
        for (count, header, mark, at_last) in [
            (plain, false, false, false),
            (marked, false, true, false),
            (last, true, false, true),
            (before, true, false, false),
        ] {
            (0..count).for_each(|_| state.on_arrival(header, mark, at_last));
        }
    };
    // A tenth of all was trimmed before the last hop; as much at the last one does not count.
    arrive(&mut state, 8, 0, 1, 1);
    assert!((look(&mut state, 1) - 0.9).abs() < 1e-12);
    // All whole packets are marked: the average is 0.5, 0.2 above the target.
    arrive(&mut state, 0, 9, 1, 0);
    assert!((look(&mut state, 2) - 0.9 * 0.9).abs() < 1e-12);
    // The average falls to 0.25 and 0.125: growth by 0.01, then twice that.
    assert!((look(&mut state, 3) - 0.82).abs() < 1e-12);
    assert!((look(&mut state, 4) - 0.84).abs() < 1e-12);
    // A mark keeps it from doubling.
    arrive(&mut state, 99, 1, 0, 0);
    assert!((look(&mut state, 5) - 0.85).abs() < 1e-12);
    for turn in 6..40 {
        arrive(&mut state, 0, 0, 0, 9);
        look(&mut state, turn);
    }
    assert_eq!(state.rate(), 0.9 / 4.0);
}

/// `PCIeModel`: 4188 B at 10 Gb/s take 3350.4 ns.
#[test]
fn a_bus_slows_pulls_down_by_its_backlog_and_trims_what_finds_no_room() {
    let config = Pcie { rate: 0.1, ..Pcie::default() };
    let of_link = (PATH.rate, Bytes(PACKET));
    let mut bus = HostBus::default();
    let mut taken = 0;
    while bus.on_arrival(&config, Time::ZERO, of_link, Bytes(PACKET)) {
        taken += 1;
        if taken == 240 {
            assert_eq!(bus.share(&config, Time::ZERO, of_link), 1.0, "996,000 B");
        }
        if taken == 723 {
            // Half of what is above the threshold, nearly.
            let share = bus.share(&config, Time::ZERO, of_link);
            assert!((share - (1_999_550.0f64 / 4e6).powi(2)).abs() < 1e-12, "{share}");
        }
    }
    assert_eq!(taken, 1204, "4,996,600 B");
    assert_eq!(bus.share(&config, Time::ZERO, of_link), 0.001);
    let packet = Time(3_350_400);
    assert!(!bus.on_arrival(&config, Time(packet.0 - 1), of_link, Bytes(PACKET)));
    assert!(bus.on_arrival(&config, packet, of_link, Bytes(PACKET)));
    assert_eq!(bus.share(&config, packet * 5000, of_link), 1.0);
}

#[test]
fn parameters_without_meaning_are_refused_by_field() {
    let refused = |config: Rccc| config.check().unwrap_err().field.to_string();
    let default = Rccc::default;
    assert_eq!(refused(Rccc { network_rtt: Some(Time::ZERO), ..default() }), "network_rtt");
    assert_eq!(refused(Rccc { max_window: 0.0, ..default() }), "max_window");
    for pull in [0, 255, (1 << 24) + 1] {
        assert_eq!(refused(Rccc { pull: Bytes(pull), ..default() }), "pull");
    }
    for pace in [0.0, 1.01, f64::NAN] {
        assert_eq!(refused(Rccc { pace, ..default() }), "pace");
    }
    let nscc = |nscc| Rccc { nscc: Some(nscc), ..default() };
    assert_eq!(refused(nscc(Nscc { network_rtt: Some(Time(1)), ..Nscc::default() })), "nscc.network_rtt");
    assert_eq!(refused(nscc(Nscc { gamma: 2.0, ..Nscc::default() })), "nscc.gamma");
    let both = Rccc { oversubscribed: Some(Oversubscribed::default()), ..nscc(Nscc::default()) };
    assert_eq!(refused(both), "oversubscribed");
    let over = |oversubscribed| Rccc { oversubscribed: Some(oversubscribed), ..default() };
    assert_eq!(refused(over(Oversubscribed { ratio: 0.5, ..Default::default() })), "oversubscribed.ratio");
    assert_eq!(refused(over(Oversubscribed { target: 1.5, ..Default::default() })), "oversubscribed.target");
    assert_eq!(refused(over(Oversubscribed { weight: 0.0, ..Default::default() })), "oversubscribed.weight");
    let bus = |pcie| Rccc { pcie: Some(pcie), ..default() };
    assert_eq!(refused(bus(Pcie { rate: 0.0, ..Pcie::default() })), "pcie.rate");
    assert_eq!(refused(bus(Pcie { threshold: Bytes(5_000_000), ..Pcie::default() })), "pcie.threshold");
    assert_eq!(default().check(), Ok(()));
}
