//! How much the kinds of Switch AR oscillate, in a loop of one switch with four ports and their congestion points.
//!
//! As in the output-generated hotspot of Crisan et al.: a source at 90% of 10 Gb/s, behind four ports at 25, 10, 10 and 50% that are
//! lossless with 100 KB each. Every port samples its queue by 802.1Qau (Q_eq 20 KB, w 2, every 150 KB or less) and its
//! notifications reach the switch 20 us later.

use std::collections::VecDeque;

use netloom_routing::selector::congestion::Severity;
use netloom_routing::{
    Candidates, Carries, Header, Notice, Routing, Selector, SwitchPathSelector, Tag, TagSpace, View, preset,
};
use netloom_units::Time;
use rand_pcg::Pcg64Mcg;

const PORTS: [u16; 4] = [0, 1, 2, 3];
/// Bytes per microsecond at 10 Gb/s, and the part of it that each port drains.
const LINE: f64 = 1250.0;
const CAPACITIES: [f64; 4] = [0.25, 0.10, 0.10, 0.50];
const FRAME: f64 = 1500.0;
const BUFFER: f64 = 100_000.0;
const EQUILIBRIUM: f64 = 20_000.0;
const DELAY_US: f64 = 20.0;

/// A congestion point of 802.1Qau in front of a port of constant rate.
#[derive(Clone, Copy, Default)]
struct Port {
    queue: f64,
    old: f64,
    sampled: f64,
    next_sample: f64,
}

impl Port {
    /// A frame arrives; returns the feedback if it is sampled.
    fn take(&mut self) -> Option<u8> {
        self.queue += FRAME;
        self.sampled += FRAME;
        if self.sampled < self.next_sample {
            return None;
        }
        let severity = (self.queue - EQUILIBRIUM) + 2.0 * (self.queue - self.old);
        let feedback = (63.0 * severity.clamp(0.0, 5.0 * EQUILIBRIUM) / (5.0 * EQUILIBRIUM)) as u8;
        self.old = self.queue;
        self.sampled = 0.0;
        self.next_sample = 150_000.0 / f64::from(feedback / 8 + 1);
        Some(feedback).filter(|&feedback| feedback > 0)
    }
}

/// What a run of 300 ms shows after its first 50 ms.
#[derive(Debug)]
struct Seen {
    /// Part of 10 Gb/s that got through.
    throughput: f64,
    /// Standard deviation of a port's share of the traffic from one 500 us to the next, mean over the ports.
    oscillation: f64,
    /// Changes of port from one frame to the next, per millisecond.
    changes: f64,
}

/// Switch AR knows of loads from notifications alone.
struct Idle(Time);

impl View for Idle {
    fn now(&self) -> Time {
        self.0
    }

    fn load(&mut self, _: u16) -> u64 {
        unreachable!()
    }

    fn rate(&self, _: u16) -> u64 {
        unreachable!()
    }
}

fn run(scheme: &Routing) -> Seen {
    let mut random = Pcg64Mcg::new(1);
    let mut switch = SwitchPathSelector::new(scheme, 1, true, false, &mut random);
    let mut ports = [Port { next_sample: 150_000.0, ..Port::default() }; 4];
    let mut notices: VecDeque<(f64, Notice)> = VecDeque::new();
    let (mut windows, mut window, mut window_end) = (Vec::new(), [0.0; 4], 50_500.0);
    let (mut sent, mut changes, mut last) = (0.0, 0, 0);
    let (mut now, mut due) = (0.0, 0.0);
    while now < 300_000.0 {
        let time = Time((now * 1e6) as u64);
        while notices.front().is_some_and(|&(at, _)| at <= now) {
            let (_, notice) = notices.pop_front().unwrap();
            switch.on_notice(&notice, &PORTS, time);
        }
        let (tag, carries) = (Tag::default(), Carries::Data);
        let header = Header { src: 1, dst: 0, flow: 0, tag, bytes: 1500, payload: 1436, hops: 1, carries };
        let candidates = Candidates { ports: &PORTS, set: 0 };
        let tags = || TagSpace::None;
        let port = switch.port(|| header, candidates, Idle(time), tags, &mut random).port;
        let chosen = usize::from(port);
        // A frame waits for room in front of its port, and all frames behind it do.
        let room = ((ports[chosen].queue + FRAME - BUFFER) / (CAPACITIES[chosen] * LINE)).max(0.0);
        let step = |ports: &mut [Port; 4], us: f64| {
            for (port, capacity) in ports.iter_mut().zip(CAPACITIES) {
                port.queue = (port.queue - capacity * LINE * us).max(0.0);
            }
        };
        step(&mut ports, room);
        now += room;
        if let Some(feedback) = ports[chosen].take() {
            notices.push_back((now + DELAY_US, Notice { destination: 0, port, feedback, is_local: false }));
        }
        if now > 50_000.0 {
            sent += FRAME;
            changes += usize::from(last != chosen);
            window[chosen] += 1.0;
            if now > window_end {
                let total: f64 = window.iter().sum();
                windows.push(window.map(|count| count / total));
                (window, window_end) = ([0.0; 4], now + 500.0);
            }
        }
        last = chosen;
        due = f64::max(due + FRAME / (0.9 * LINE), now);
        step(&mut ports, due - now);
        now = due;
    }
    let count = windows.len() as f64;
    let deviation = |port: usize| {
        let mean = windows.iter().map(|window| window[port]).sum::<f64>() / count;
        (windows.iter().map(|window| (window[port] - mean).powi(2)).sum::<f64>() / count).sqrt()
    };
    Seen {
        throughput: sent / (250_000.0 * LINE),
        oscillation: (0..4).map(deviation).sum::<f64>() / 4.0,
        changes: changes as f64 / 250.0,
    }
}

fn scheme(name: &str) -> Routing {
    preset::find(name).unwrap().routing()
}

/// A kind of Switch AR with marks, whose notifications add up by this rule.
fn with(name: &str, severity: Severity) -> Routing {
    let mut routing = scheme(name);
    match &mut routing.selector {
        Selector::SwitchAr(config) => config.severity = severity,
        Selector::SwitchArStable(config) => config.severity = severity,
        other => panic!("{other:?} has no marks"),
    }
    routing
}

#[test]
fn oblivious_routing_keeps_to_its_bounds() {
    let deterministic = run(&scheme("d-mod-k"));
    assert!((deterministic.throughput - 0.25).abs() < 0.01, "{deterministic:?}");
    let in_turn = run(&scheme("spray-round-robin"));
    assert!((in_turn.throughput - 0.40).abs() < 0.01, "{in_turn:?}");
}

#[test]
fn a_binary_split_oscillates_where_severities_add_up() {
    let plain = run(&with("switch-ar", Severity::Sum));
    assert!(plain.changes > 2.0 && plain.oscillation > 0.25, "{plain:?}");
    assert!(plain.throughput > 0.30 && plain.throughput < 0.40, "{plain:?}");
}

#[test]
fn a_binary_split_gets_no_more_than_the_best_port_with_the_last_severity() {
    let plain = run(&with("switch-ar", Severity::Last));
    assert!((plain.throughput - 0.50).abs() < 0.01, "{plain:?}");
    assert!(plain.oscillation > 0.03, "{plain:?}");
}

#[test]
fn fractional_shares_settle_where_all_traffic_gets_through() {
    let (plain, fractional) = (run(&scheme("switch-ar")), run(&scheme("switch-ar-fractional")));
    assert!((fractional.throughput - 0.90).abs() < 0.005, "{fractional:?}");
    assert!(fractional.oscillation < plain.oscillation / 10.0, "{fractional:?} {plain:?}");
}

#[test]
fn hysteresis_makes_traffic_move_less_often() {
    let (plain, stable) =
        (run(&with("switch-ar", Severity::Sum)), run(&with("switch-ar-stable", Severity::Sum)));
    assert!(stable.changes < 0.9 * plain.changes, "{stable:?} {plain:?}");
    let (plain, stable) =
        (run(&with("switch-ar", Severity::Last)), run(&with("switch-ar-stable", Severity::Last)));
    assert!(stable.oscillation < plain.oscillation, "{stable:?} {plain:?}");
    assert!(stable.throughput > plain.throughput - 0.005, "{stable:?} {plain:?}");
}
