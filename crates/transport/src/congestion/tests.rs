//! What each kind does to the gate of a flow.

use netloom_units::kind::Kind;
use netloom_units::{Rate, Time};

use super::*;
use crate::config::TransportOptions;
use crate::feedback::{Cause, ack_of};

const US: u64 = 1_000_000;
const LINE: Rate = Rate(100_000_000_000);
/// 125,000 B are a bandwidth-delay product.
const PATH: PathFacts =
    PathFacts { base_rtt: Time(10 * US), rate: LINE, lossy: true, reorders: false, trims: false };
const PACKET: u64 = 1000;

fn transport(congestion: Congestion) -> Transport {
    let options = TransportOptions { mtu: Bytes(PACKET), header: Bytes(0), ..TransportOptions::default() };
    Transport { options, congestion, ..Transport::default() }
}

fn kind(name: &str) -> Congestion {
    Congestion::every().into_iter().find(|kind| kind.name() == name).unwrap()
}

/// A flow that has begun.
struct Flow {
    transport: Transport,
    control: Control,
    gate: Gate,
}

impl Flow {
    fn new(congestion: Congestion) -> Self {
        let transport = transport(congestion);
        let (control, gate) = Control::begin(&transport, PATH, Time::ZERO);
        Flow { transport, control, gate }
    }

    fn of(name: &str) -> Self {
        Flow::new(kind(name))
    }

    fn notify(&mut self, feedback: &Feedback) -> bool {
        self.control.on_feedback(&self.transport, feedback, &mut self.gate)
    }

    /// How long after a packet that leaves at `now` the next one may.
    fn gap(&mut self, now: Time) -> Time {
        self.control.on_sent(now, PACKET, &mut self.gate);
        self.gate.opens_at().saturating_sub(now)
    }
}

/// The ACK of a packet of ten that are in flight, a round trip of this many microseconds after it left.
fn ack(seq: u32, now: u64, rtt: u64) -> Feedback {
    let (now, rtt) = (Time(now * US), Time(rtt * US));
    Feedback { now, rtt, bytes: PACKET, in_flight: 9, oldest: seq + 1, next: seq + 10, ..ack_of(seq) }
}

fn loss(now: u64) -> Feedback {
    Feedback { cause: Cause::Loss, packets: 0, bytes: 0, oldest: 0, next: 10, ..ack(0, now, 10) }
}

#[test]
fn windows_that_adapt_move_the_gate() {
    // What an ACK adds to ten packets, and where a loss leads: it glides from what is in flight, or cuts at once.
    let cases = [
        ("newreno", 11_000, 9000),
        ("cubic", 11_000, 9000),
        ("dctcp", 11_000, 9000),
        ("swift", 10_100, 5000),
    ];
    for (name, grown, cut) in cases {
        let mut flow = Flow::of(name);
        assert_eq!(flow.gate.window(), 10_000, "{name}");
        assert!(flow.control.learns() && flow.control.shrinks_below_a_packet(), "{name}");
        assert!(!flow.notify(&ack(0, 10, 10)), "{name}");
        assert_eq!(flow.gate.window(), grown, "{name}");
        let mut flow = Flow::of(name);
        assert!(flow.notify(&loss(20)), "{name}");
        assert_eq!(flow.gate.window(), cut, "{name}");
        flow.control.begin_with_one(&mut flow.gate);
        assert_eq!(flow.gate.window(), PACKET, "{name}");
        assert_eq!((flow.control.due(&flow.transport), flow.gap(Time(1))), (None, Time::ZERO), "{name}");
        assert!(!flow.control.on_timer(&flow.transport, Time(US), &mut flow.gate), "{name}");
        assert!(!flow.control.on_cnp(Time(US), &mut flow.gate), "{name}");
    }
}

#[test]
fn windows_that_stay_limit_and_learn_nothing() {
    let fixed = |bdp, bytes| Congestion::FixedWindow(fixed_window::FixedWindow { bdp, bytes });
    for (bdp, bytes, window) in [
        (1.2, None, 150_000),
        (1.0, None, 125_000),
        // Whole packets, as many as the product takes.
        (0.9995, None, 125_000),
        (0.0001, None, 1000),
        (1.2, Some(Bytes(2500)), 2500),
        (1.2, Some(Bytes(1)), 1000),
    ] {
        let mut flow = Flow::new(fixed(bdp, bytes));
        assert_eq!(flow.gate.window(), window);
        let field = if bytes.is_some() { "bytes" } else { "bdp" };
        let first = flow.transport.congestion.first_window(Bytes(PACKET), PATH);
        assert_eq!(first, Some((field, Bytes(window / PACKET * PACKET))));
        assert!(!flow.control.learns() && !flow.notify(&loss(20)));
        assert_eq!(flow.gate.window(), window);
    }
    for name in ["none", "qcn"] {
        let mut flow = Flow::of(name);
        assert_eq!(
            (flow.gate.window(), flow.gate.credit(), flow.gap(Time(5))),
            (u64::MAX, u32::MAX, Time::ZERO)
        );
        assert!(!flow.control.learns() && !flow.notify(&loss(20)) && flow.gate.admits(1000, PACKET));
        flow.control.begin_with_one(&mut flow.gate);
        assert_eq!(flow.gate.window(), u64::MAX);
        assert_eq!(flow.transport.congestion.first_window(Bytes(PACKET), PATH), None);
    }
}

/// 1000 B take 80 ns at 100 Gb/s.
#[test]
fn rates_space_packets_and_fall() {
    let line = Time::from_ns(80);
    let mut timely = Flow::of("timely");
    assert_eq!(timely.gap(Time(0)), line);
    // The first round trip only begins the comparison; one far above the threshold cuts.
    assert!(!timely.notify(&ack(0, 10, 10)) && !timely.notify(&ack(5, 20, 900)), "a round trip is not over");
    assert_eq!(timely.gap(Time(20 * US)), line);
    assert!(timely.notify(&ack(10, 910, 900)));
    assert!(timely.gap(Time(1000 * US)) > line);
    assert!(timely.control.learns() && !timely.control.shrinks_below_a_packet());

    let mut dcqcn = Flow::of("dcqcn");
    assert_eq!((dcqcn.gap(Time(0)), dcqcn.gate.window()), (line, u64::MAX));
    assert!(!dcqcn.notify(&loss(1)), "losses are not its signal");
    assert!(dcqcn.control.on_cnp(Time(US), &mut dcqcn.gate));
    assert_eq!(dcqcn.gap(Time(2 * US)), line * 2);
    let due = dcqcn.control.due(&dcqcn.transport).unwrap();
    assert_eq!(due, Time(56 * US));
    assert!(!dcqcn.control.on_timer(&dcqcn.transport, due, &mut dcqcn.gate));
    // Halfway back to the line's rate: 75 Gb/s.
    assert_eq!(dcqcn.gap(due), Time(106_667));

    let mut hpcc = Flow::of("hpcc");
    assert_eq!((hpcc.gap(Time(0)), hpcc.gate.window()), (line, 125_000));
    let link = |us, sent| LinkState { channel: 1, queued: 125_000, sent, at: Time(us * US), rate: LINE };
    for (seq, us, sent, is_cut) in [(0, 10, 0, false), (20, 20, 125_000, true)] {
        hpcc.control.on_telemetry([link(us, sent)].into_iter());
        assert_eq!(hpcc.notify(&ack(seq, us, 10)), is_cut);
    }
    // A product waits and another one is in flight: half of 95%, and a step of 62.5 B.
    assert_eq!(hpcc.gate.window(), 60_000);
    assert!((line * 2..line * 5 / 2).contains(&hpcc.gap(Time(30 * US))));
}

#[test]
fn first_windows_name_the_field_that_sets_them() {
    let first = |congestion: Congestion| congestion.first_window(Bytes(PACKET), PATH);
    let base_rtt = Some(Time(5 * US));
    let hpcc = Congestion::Hpcc(hpcc::Hpcc { base_rtt, ..Default::default() });
    assert_eq!(first(hpcc), Some(("base_rtt", Bytes(63_000))));
    assert_eq!([first(kind("hpcc")), first(kind("timely")), first(kind("dcqcn"))], [None; 3]);
    let pulls = pulls::Pulls { initial_window: 7, ..Default::default() };
    assert_eq!(first(Congestion::Pulls(pulls.clone())), Some(("initial_window", Bytes(7000))));
    let by_bdp = pulls::Pulls { initial_bdp: Some(0.5), ..pulls.clone() };
    assert_eq!(first(Congestion::Pulls(by_bdp)), Some(("initial_bdp", Bytes(63_000))));
    let asks = pulls::Pulls { request_to_send: true, ..pulls };
    assert_eq!(first(Congestion::Pulls(asks)), None);
    let many_paths = mp_rdma::MpRdma { initial_window: Some(3), ..Default::default() };
    assert_eq!(first(Congestion::MpRdma(many_paths)), Some(("initial_window", Bytes(3000))));
    assert_eq!(first(kind("mp-rdma")), None);
    let most = |bytes| {
        let swift = swift::Swift { max_window: Some(Bytes(bytes)), ..Default::default() };
        first(Congestion::Swift(swift))
    };
    assert_eq!(most(9999), Some(("max_window", Bytes(9000))));
    assert_eq!([most(10_000), most(20_000)], [Some(("initial_window", Bytes(10_000))); 2]);
}

#[test]
fn credit_is_what_is_asked_for_or_released() {
    let pulls = pulls::Pulls { initial_window: 7, ..Default::default() };
    let mut flow = Flow::new(Congestion::Pulls(pulls.clone()));
    assert_eq!((flow.gate.credit(), flow.gap(Time(1)), flow.gate.credit()), (7, Time::ZERO, 6));
    flow.control.on_pull(3, &mut flow.gate);
    assert_eq!(flow.gate.credit(), 9);
    assert!(!flow.notify(&loss(5)));
    let asks = Flow::new(Congestion::Pulls(pulls::Pulls { request_to_send: true, ..pulls }));
    assert_eq!(asks.gate.credit(), 0);

    let mut flow = Flow::of("mp-rdma");
    assert_eq!((flow.gate.credit(), flow.gap(Time(1)), flow.gate.credit()), (125, Time::ZERO, 124));
    assert!(flow.control.chooses_paths() && flow.control.learns());
    assert!(!flow.control.on_timer(&flow.transport, Time(US), &mut flow.gate));
    flow.control.begin_with_one(&mut flow.gate);
    assert_eq!(flow.gate.credit(), 124);
    assert!(!Flow::of("swift").control.chooses_paths());
}

/// Where nothing says otherwise, a kind has no timer, knows no path and waits for no message.
#[test]
fn what_a_kind_does_not_do_changes_nothing() {
    for congestion in Congestion::every() {
        let mut flow = Flow::new(congestion);
        let is_many_paths = flow.control.chooses_paths();
        assert_eq!(flow.control.due(&flow.transport), None);
        assert_eq!(flow.control.between_messages(&flow.transport), None);
        let before = flow.gate.clone();
        flow.control.on_arrivals(1);
        flow.control.on_telemetry([].into_iter());
        assert_eq!(flow.control.path(&flow.transport, |_| true), None, "{is_many_paths}");
        assert_eq!((before.window(), before.credit()), (flow.gate.window(), flow.gate.credit()));
    }
}

/// Linked increases bound what an ACK adds beyond slow start.
#[test]
fn coupled_windows_grow_by_what_they_are_told() {
    let newreno = newreno::NewReno { initial_ssthresh: Some(10), coupled: true, ..Default::default() };
    let dctcp = dctcp::Dctcp { initial_ssthresh: Some(10), coupled: true, ..Default::default() };
    for congestion in [Congestion::NewReno(newreno), Congestion::Dctcp(dctcp)] {
        assert!(congestion.facts().coupled && !kind(congestion.name()).facts().coupled);
        let mut flow = Flow::new(congestion);
        flow.control.couple(0.02);
        flow.notify(&ack(0, 10, 10));
        assert_eq!(flow.gate.window(), 10_020);
        flow.control.couple(1.0);
        flow.notify(&ack(1, 11, 10));
        assert_eq!(flow.gate.window(), 10_020 + 99);
    }
}

#[test]
fn senseless_windows_name_their_field() {
    let check = |congestion: Congestion| congestion.check().map_err(|error| error.field);
    for congestion in Congestion::every() {
        assert_eq!(check(congestion), Ok(()));
    }
    let windows = |initial_window, initial_ssthresh, min_window| {
        [
            Congestion::NewReno(newreno::NewReno {
                initial_window,
                initial_ssthresh,
                min_window,
                ..Default::default()
            }),
            Congestion::Cubic(cubic::Cubic {
                initial_window,
                initial_ssthresh,
                min_window,
                ..Default::default()
            }),
            Congestion::Dctcp(dctcp::Dctcp {
                initial_window,
                initial_ssthresh,
                min_window,
                ..Default::default()
            }),
        ]
        .map(check)
    };
    let refused = |field: &'static str| [(); 3].map(|()| Err(field.into()));
    assert_eq!(windows(0, None, 1.0), refused("initial_window"));
    assert_eq!(windows(5, Some(0), 1.0), refused("initial_ssthresh"));
    assert_eq!(windows(5, Some(1), 5.1), refused("min_window"));
    assert_eq!(windows(5, Some(1), 0.0), refused("min_window"));
    for taken in [windows(5, Some(1), 5.0), windows(1, None, 0.01)] {
        assert!(taken.iter().all(Result::is_ok));
    }
    let cubic = |c, beta| check(Congestion::Cubic(cubic::Cubic { c, beta, ..Default::default() }));
    assert_eq!(
        [cubic(0.0, 0.5), cubic(0.4, 0.0), cubic(0.4, 1.0)],
        [Err("c".into()), Err("beta".into()), Err("beta".into())]
    );
    let dctcp =
        |g, initial_alpha| check(Congestion::Dctcp(dctcp::Dctcp { g, initial_alpha, ..Default::default() }));
    assert_eq!([dctcp(0.0, 1.0), dctcp(1.1, 1.0)], [(); 2].map(|()| Err("g".into())));
    assert_eq!([dctcp(1.0, -0.1), dctcp(1.0, 1.1)], [(); 2].map(|()| Err("initial_alpha".into())));
    assert_eq!([dctcp(1.0, 0.0), dctcp(0.1, 1.0)], [(); 2].map(|()| Ok(())));
    let fixed = |bdp, bytes| check(Congestion::FixedWindow(fixed_window::FixedWindow { bdp, bytes }));
    assert_eq!([fixed(0.0, None), fixed(1.0, Some(Bytes(0)))], [Err("bdp".into()), Err("bytes".into())]);
    let pulls = pulls::Pulls::default;
    let adaptive = |increase, decrease| pulls::Adaptive { increase, decrease };
    let pulls = [
        (pulls::Pulls { initial_window: 0, ..pulls() }, Some("initial_window")),
        (pulls::Pulls { initial_bdp: Some(0.0), ..pulls() }, Some("initial_bdp")),
        (pulls::Pulls { pace: 0.0, ..pulls() }, Some("pace")),
        (pulls::Pulls { pace: 1.01, ..pulls() }, Some("pace")),
        (pulls::Pulls { pace: 0.01, ..pulls() }, None),
        (
            pulls::Pulls { initial_bdp: Some(1.0), adaptive: Some(adaptive(1.0, 1.0)), ..pulls() },
            Some("adaptive"),
        ),
        (pulls::Pulls { adaptive: Some(adaptive(0.0, 1.0)), ..pulls() }, Some("adaptive.increase")),
        (pulls::Pulls { adaptive: Some(adaptive(65_537.0, 1.0)), ..pulls() }, Some("adaptive.increase")),
        (pulls::Pulls { adaptive: Some(adaptive(1.0, 0.0)), ..pulls() }, Some("adaptive.decrease")),
        (pulls::Pulls { adaptive: Some(adaptive(1.0, 1.1)), ..pulls() }, Some("adaptive.decrease")),
        (pulls::Pulls { adaptive: Some(adaptive(65_536.0, 1.0)), ..pulls() }, None),
    ];
    for (config, field) in pulls {
        assert_eq!(check(Congestion::Pulls(config)).err(), field.map(Into::into));
    }
}
