//! QCN's reaction point against tables computed by hand, and against a congestion point.

use std::collections::VecDeque;

use netloom_fabric::CongestionPoint;
use netloom_transport::ReactionPoint;
use netloom_transport::congestion::qcn::{Qcn, QcnPreset};
use netloom_units::{Bytes, Rate, Time};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

const LINE: Rate = Rate::from_gbps(10);
const LIMIT: u64 = 150_000;

fn random() -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(1)
}

/// Without jitter, so that cycles end where the tables say.
fn steady() -> Qcn {
    Qcn { jitter: 0.0, ..Qcn::default() }
}

/// A limiter that has just been created and told of this severity.
fn notified(config: &Qcn, severity: u8) -> ReactionPoint {
    let mut point = ReactionPoint::new(config, LINE);
    point.on_cnm(config, Time::ZERO, severity, &mut random());
    point
}

/// Ends a cycle of the byte counter.
fn byte_cycle(config: &Qcn, point: &mut ReactionPoint) {
    point.on_sent(config, Time::ZERO, LIMIT, &mut random());
}

/// Ends a cycle of the timer.
fn time_cycle(config: &Qcn, point: &mut ReactionPoint) {
    let due = point.timer_due().unwrap();
    point.on_timer(config, due, &mut random());
}

#[test]
fn a_cut_takes_one_128th_per_step_of_severity_and_at_most_63() {
    let config = steady();
    for severity in 1..=63 {
        let rate = LINE.0 * (128 - u64::from(severity)) / 128;
        assert_eq!(notified(&config, severity).rate(), Rate(rate));
    }
    assert_eq!(notified(&config, 63).rate(), Rate(5_078_125_000));
    assert_eq!(notified(&config, 0), ReactionPoint::new(&config, LINE));
}

#[test]
fn no_cut_goes_below_the_least_factor_nor_below_the_least_rate() {
    let steep = Qcn { g_d: 1.0, ..steady() };
    assert_eq!(notified(&steep, 16).rate(), Rate(7_500_000_000));
    assert_eq!(notified(&steep, 63).rate(), Rate(5_000_000_000));
    assert_eq!(notified(&Qcn { min_dec: 0.75, ..steep }, 63).rate(), Rate(7_500_000_000));
    for (preset, least) in [(QcnPreset::SwitchAr, 100_000), (QcnPreset::Ieee8021Qau, 5_000_000)] {
        let config = Qcn { preset, ..steady() };
        let mut point = notified(&config, 63);
        for _ in 0..40 {
            point.on_cnm(&config, Time::ZERO, 63, &mut random());
        }
        assert_eq!((point.rate(), point.decreases), (Rate(least), 41));
    }
}

#[test]
fn fast_recovery_halves_the_gap_five_times_and_active_increase_lifts_the_target() {
    let config = steady();
    let mut point = notified(&config, 63);
    let mut seen = vec![];
    while !point.is_released(false) {
        byte_cycle(&config, &mut point);
        seen.push((point.rate().0, point.target().0));
    }
    let target = LINE.0;
    assert_eq!(
        seen,
        [
            (7_539_062_500, target),
            (8_769_531_250, target),
            (9_384_765_625, target),
            (9_692_382_812, target),
            (9_846_191_406, target),
            (9_925_595_703, target + 5_000_000),
            (9_967_797_851, target + 10_000_000),
            (9_991_398_925, target + 15_000_000),
            // Beyond the line's rate there is nothing to recover.
            (target, target),
        ]
    );
    assert_eq!(point.timer_due(), None);
    assert!(!point.is_released(true));
}

#[test]
fn once_both_clocks_are_through_the_target_grows_by_the_cycles_of_the_slower_one() {
    let config = steady();
    let mut point = notified(&config, 63);
    byte_cycle(&config, &mut point);
    // The byte counter is beyond its first cycle: the target becomes the rate.
    point.on_cnm(&config, Time::ZERO, 63, &mut random());
    assert_eq!((point.target(), point.rate()), (Rate(7_539_062_500), Rate(3_828_430_175)));
    let base = point.target().0;
    let mut growth = 0;
    let mut expect = |point: &ReactionPoint, mbps: u64| {
        growth += mbps * 1_000_000;
        assert_eq!(point.target().0 - base, growth);
    };
    for stage in 1..=6 {
        byte_cycle(&config, &mut point);
        expect(&point, if stage <= 5 { 0 } else { 5 });
    }
    for _ in 1..=5 {
        time_cycle(&config, &mut point);
        expect(&point, 5);
    }
    time_cycle(&config, &mut point);
    expect(&point, 50);
    // 75 KB per cycle now.
    point.on_sent(&config, Time::ZERO, LIMIT / 2, &mut random());
    expect(&point, 50);
    time_cycle(&config, &mut point);
    expect(&point, 100);
}

#[test]
fn cycles_are_half_as_long_after_fast_recovery() {
    let config = steady();
    let mut point = notified(&config, 63);
    let mut now = Time::ZERO;
    for stage in 0..8 {
        let due = point.timer_due().unwrap();
        assert_eq!(due - now, if stage <= 5 { Time::from_ms(15) } else { Time(7_500_000_000) });
        now = due;
        assert_eq!(point.on_timer(&config, Time(now.0 - 1), &mut random()), Some(now), "too early");
        point.on_timer(&config, now, &mut random());
    }
    let mut point = notified(&config, 63);
    let mut cycles = vec![];
    let mut rate = point.rate();
    for sent in 1.. {
        point.on_sent(&config, Time::ZERO, 1500, &mut random());
        if std::mem::replace(&mut rate, point.rate()) != rate {
            cycles.push(sent);
        }
        if cycles.len() == 8 {
            break;
        }
    }
    assert_eq!(cycles, [100, 200, 300, 400, 500, 600, 650, 700]);
}

#[test]
fn extra_fast_recovery_keeps_the_target_while_the_byte_counter_is_in_its_first_cycle() {
    let mut config = steady();
    let mut point = notified(&config, 63);
    // The timer does not count.
    time_cycle(&config, &mut point);
    point.on_cnm(&config, Time::ZERO, 32, &mut random());
    assert_eq!((point.target(), point.rate()), (LINE, Rate(7_539_062_500 * 3 / 4)));

    config.extra_fast_recovery = false;
    let mut point = notified(&config, 63);
    point.on_cnm(&config, Time::ZERO, 32, &mut random());
    assert_eq!((point.target(), point.rate()), (Rate(5_078_125_000), Rate(5_078_125_000 * 3 / 4)));
}

#[test]
fn the_guard_divides_a_far_target_by_eight_in_the_first_cycle() {
    let config = Qcn { target_guard: true, ..steady() };
    let mut point = notified(&config, 63);
    for _ in 0..3 {
        point.on_cnm(&config, Time::ZERO, 63, &mut random());
    }
    let before = point.rate().0;
    assert!((LINE.0 / 16..LINE.0 / 10).contains(&before));
    byte_cycle(&config, &mut point);
    assert_eq!((point.target().0, point.rate().0), (LINE.0 / 8, (before + LINE.0 / 8) / 2));
    byte_cycle(&config, &mut point);
    assert_eq!(point.target().0, LINE.0 / 8);
}

#[test]
fn a_departure_in_wait_moves_with_the_rate() {
    let config = Qcn { g_d: 1.0, ..steady() };
    let us = Time::from_us;
    let mut point = ReactionPoint::new(&config, Rate::from_gbps(8));
    point.on_cnm(&config, us(0), 32, &mut random());
    assert_eq!((point.rate(), point.ready_at()), (Rate::from_gbps(4), us(0)));
    point.on_sent(&config, us(0), 1500, &mut random());
    assert_eq!(point.ready_at(), us(3));
    // A third is paid; what remains takes twice as long at half the rate.
    point.on_cnm(&config, us(1), 32, &mut random());
    assert_eq!((point.rate(), point.ready_at()), (Rate::from_gbps(2), us(5)));
    // Idle time earns nothing: the next packet starts its own wait.
    point.on_sent(&config, us(100), 1500, &mut random());
    assert_eq!(point.ready_at(), us(106));
    // The timer takes the rate halfway to 8 Gb/s again: 2 → 5 Gb/s.
    let due = point.timer_due().unwrap();
    point.on_sent(&config, due - us(1), 1500, &mut random());
    point.on_timer(&config, due, &mut random());
    assert_eq!((point.rate(), point.ready_at()), (Rate::from_gbps(5), due + us(2)));
}

#[derive(Clone, Debug)]
enum Step {
    Notify(u8),
    Send(u64),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => (0..64u8).prop_map(Step::Notify),
        6 => (1..65_536u64).prop_map(Step::Send),
        3 => (0..20_000_000_000u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    #[test]
    fn rates_keep_their_order_and_departures_their_distance(
        steps in steps(), seed: u64, extra_fast_recovery: bool, target_guard: bool, line in 1..100u64,
    ) {
        let config = Qcn { extra_fast_recovery, target_guard, ..Qcn::default() };
        let line = Rate::from_gbps(line);
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut point = ReactionPoint::new(&config, line);
        let mut now = Time::ZERO;
        for step in steps {
            match step {
                Step::Notify(severity) => point.on_cnm(&config, now, severity, &mut random),
                Step::Send(bytes) => {
                    now = now.max(point.ready_at());
                    let rate = point.rate();
                    point.on_sent(&config, now, bytes, &mut random);
                    prop_assert!(point.ready_at() - now <= rate.serialize(Bytes(bytes)));
                    prop_assert!(point.ready_at() - now >= point.rate().serialize(Bytes(bytes)));
                }
                Step::Wait(time) => {
                    now += Time(time);
                    while point.timer_due().is_some_and(|due| due <= now) {
                        point.on_timer(&config, now, &mut random);
                    }
                }
            }
            prop_assert!(config.least_rate() <= point.rate());
            prop_assert!(point.rate() <= point.target().min(line));
        }
    }
}

/// Sources that always have something to send through limiters of their own into one queue.
struct Bottleneck {
    /// Bits per second that each source got in the second half of the run.
    rates: Vec<f64>,
    /// Mean bytes queued in that half.
    queue: f64,
    /// Most bytes queued in that half.
    highest: u64,
}

/// Runs one step per frame time of the line; a notification takes `delay` steps.
fn share(sources: usize, seconds: f64, preset: QcnPreset) -> Bottleneck {
    const FRAME: u64 = 1500;
    const DELAY: u64 = 10;
    let limiter = Qcn { preset, ..Qcn::default() };
    let sampler = netloom_fabric::Qcn::default();
    let mut random = random();
    let mut points = vec![ReactionPoint::new(&limiter, LINE); sources];
    let mut congestion = CongestionPoint::new(&sampler);
    let mut notifications: VecDeque<(u64, usize, u8)> = VecDeque::new();
    let mut queued = 0;
    let step = LINE.serialize(Bytes(FRAME));
    let steps = (seconds / step.as_secs_f64()) as u64;
    let mut sent = vec![0u64; sources];
    let (mut area, mut highest) = (0, 0);
    for tick in 0..steps {
        let now = step * tick;
        while notifications.front().is_some_and(|&(at, ..)| at <= tick) {
            let (_, source, severity) = notifications.pop_front().unwrap();
            points[source].on_cnm(&limiter, now, severity, &mut random);
        }
        let second_half = tick >= steps / 2;
        // Turns rotate, or sampling would favour the first source.
        for turn in 0..sources {
            let source = (turn + tick as usize) % sources;
            let point = &mut points[source];
            point.on_timer(&limiter, now, &mut random);
            if point.ready_at() > now {
                continue;
            }
            point.on_sent(&limiter, now, FRAME, &mut random);
            sent[source] += u64::from(second_half);
            queued += FRAME;
            if let Some(severity) = congestion.on_arrival(&sampler, FRAME, queued, &mut random) {
                notifications.push_back((tick + DELAY, source, severity));
            }
        }
        queued = queued.saturating_sub(FRAME);
        if second_half {
            area += queued;
            highest = highest.max(queued);
        }
    }
    let half = (steps - steps / 2) as f64;
    let seconds = half * step.as_secs_f64();
    Bottleneck {
        rates: sent.iter().map(|&frames| (frames * FRAME * 8) as f64 / seconds).collect(),
        queue: area as f64 / half,
        highest,
    }
}

fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

#[test]
fn saturated_sources_share_a_bottleneck_fairly_with_its_queue_about_the_set_point() {
    use QcnPreset::*;
    for (sources, preset) in [(8, SwitchAr), (32, SwitchAr), (8, Ieee8021Qau)] {
        let run = share(sources, 2.0, preset);
        let total: f64 = run.rates.iter().sum();
        let fairness = jain(&run.rates);
        let what =
            format!("{sources} sources: {total:.3e} b/s, Jain {fairness:.3}, mean queue {:.0}", run.queue);
        assert!(total > 0.98 * LINE.0 as f64, "{what}");
        assert!(fairness > 0.9, "{what}");
        assert!((10_000.0..30_000.0).contains(&run.queue), "{what}");
        assert!(run.highest < 80_000, "{what}, at most {}", run.highest);
    }
}
