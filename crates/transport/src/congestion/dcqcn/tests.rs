use super::*;

const US: u64 = 1_000_000;

fn preset(preset: DcqcnPreset) -> Dcqcn {
    Dcqcn { preset, ..Dcqcn::default() }
}

fn mbps(state: &State) -> f64 {
    state.current as f64 / 1e6
}

/// Lets the timers run until then, and says what the rate was after each.
fn run_until(state: &mut State, us: u64) -> Vec<(u64, f64)> {
    let mut seen = Vec::new();
    while let Some(due) = state.next_due().filter(|due| due.0 <= us * US) {
        state.pass(due);
        seen.push((due.0 / US, mbps(state)));
    }
    seen
}

/// By hand, on a line of 40 Gb/s: the first notification halves the rate, since alpha is 1; with notifications every 50 us alpha stays there.
#[test]
fn notifications_halve_and_the_timer_takes_the_rate_back_as_in_the_paper() {
    let mut state = State::new(&preset(DcqcnPreset::Paper), Rate::from_gbps(40));
    assert_eq!((state.rate(), state.next_due()), (Rate::from_gbps(40), None));
    assert!(state.note_cnp(Time(0)));
    assert_eq!((state.current, state.target), (20_000_000_000, 40_000_000_000));
    assert!(state.note_cnp(Time(50 * US)));
    assert_eq!((state.current, state.target), (10_000_000_000, 20_000_000_000));
    // Four cycles of fast recovery; from the fifth on the target grows by 40 Mb/s.
    let recovered = run_until(&mut state, 50 + 7 * 55);
    let expected = [
        (105, 15_000.0),
        (160, 17_500.0),
        (215, 18_750.0),
        (270, 19_375.0),
        (325, 19_707.5),
        (380, 19_893.75),
        (435, 20_006.875),
    ];
    assert_eq!(recovered, expected);
    // Seven intervals of 55 us without a notification; the cut takes half of alpha.
    let alpha = (255.0f64 / 256.0).powi(7);
    let before = state.current;
    state.note_cnp(Time((50 + 7 * 55) * US));
    assert_eq!(state.target, before);
    assert_eq!(state.current, (20_006_875_000.0 * (1.0 - alpha / 2.0)).round() as u64);
    assert!((state.alpha - (alpha * 255.0 / 256.0 + 1.0 / 256.0)).abs() < 1e-15);
}

#[test]
fn both_clocks_beyond_fast_recovery_increase_ever_faster() {
    let mut state = State::new(&preset(DcqcnPreset::Paper), Rate::from_gbps(40));
    for cnp in 0..4 {
        state.note_cnp(Time(cnp * 50 * US));
    }
    assert_eq!((state.current, state.target), (2_500_000_000, 5_000_000_000));
    let cycle = |state: &mut State| assert!(state.count(10_000_000));
    // Four cycles of the byte counter: 2.5 → 3.75 → 4.375 → 4.6875 → 4.84375 Gb/s, then two with 40 Mb/s more each.
    (0..4).for_each(|_| cycle(&mut state));
    assert_eq!(state.current, 4_843_750_000);
    (0..2).for_each(|_| cycle(&mut state));
    assert_eq!((state.current, state.target), (5_010_937_500, 5_080_000_000));
    // The timer's first five cycles leave the slower clock within fast recovery: 40 Mb/s each. With its sixth both are one cycle beyond.
    run_until(&mut state, 150 + 5 * 55);
    assert_eq!(state.target, 5_280_000_000);
    run_until(&mut state, 150 + 6 * 55);
    assert_eq!(state.target, 5_680_000_000);
    cycle(&mut state);
    assert_eq!(state.target, 6_080_000_000);
    run_until(&mut state, 150 + 7 * 55);
    assert_eq!(state.target, 6_880_000_000);
    // Less than a cycle's bytes end no cycle.
    assert!(!state.count(9_999_999) && state.count(1));
}

/// HPCC's public code: cuts are looked for every 4 us, alpha is computed every microsecond, the rate rises every 300 us.
#[test]
fn the_mellanox_like_set_cuts_by_a_timer_and_keeps_its_target_until_the_rate_has_risen() {
    let mut state = State::new(&preset(DcqcnPreset::Hpcc), Rate::from_gbps(100));
    assert!(!state.note_cnp(Time(10 * US)));
    // Looks for cuts come a nanosecond after alpha's intervals.
    const LATER: u64 = 1000;
    assert_eq!(state.next_due(), Some(Time(14 * US + LATER)));
    // The first notification finds alpha at 1, and it shrinks four times before the cut: 255⁴ / 256⁴.
    assert!(state.pass(Time(14 * US + LATER)));
    let first: f64 = 100e9 * (1.0 - 4_228_250_625.0 / 4_294_967_296.0 / 2.0);
    assert_eq!((state.current, state.target), (first.round() as u64, 100_000_000_000));
    assert_eq!(state.next_due(), Some(Time(314 * US + LATER)));
    // A cut before the rate has risen leaves the target.
    state.note_cnp(Time(15 * US));
    assert!(state.pass(Time(18 * US + LATER)));
    assert_eq!(state.target, 100_000_000_000);
    let low = state.current;
    assert_eq!(run_until(&mut state, 319).len(), 1);
    assert_eq!(state.current, low.midpoint(100_000_000_000));
    let risen = state.current;
    // One after it does not.
    state.note_cnp(Time(319 * US));
    state.pass(Time(322 * US + LATER));
    assert_eq!((state.target, state.next_due()), (risen, Some(Time(622 * US + LATER))));
    // 20 Mb/s in the second cycle, 200 Mb/s in each after that: 1/5000 and 1/500 of the line.
    let targets = [623, 923, 1223, 1523].map(|us| {
        run_until(&mut state, us);
        state.target - risen
    });
    assert_eq!(targets, [0, 20_000_000, 220_000_000, 420_000_000]);
}

#[test]
fn sets_scale_with_the_line_where_they_say_so() {
    let increases = |set, gbps| {
        let settings = preset(set).settings(Rate::from_gbps(gbps));
        (settings.r_ai / 1_000_000, settings.r_hai / 1_000_000)
    };
    use DcqcnPreset::*;
    assert_eq!([40, 100].map(|gbps| increases(Paper, gbps)), [(40, 400); 2]);
    for set in [HpccPaper, Hpcc] {
        assert_eq!([25, 100].map(|gbps| increases(set, gbps)), [(5, 50), (20, 200)]);
    }
    assert_eq!([25, 100].map(|gbps| increases(Conweave, gbps)), [(10, 25), (40, 100)]);
    assert_eq!([100, 400].map(|gbps| increases(Uet, gbps)), [(5_000, 10_000), (20_000, 40_000)]);
    // The public code of HPCC and ConWeave echoes marks, and fixes gaps.
    let sets = [Paper, Uet, HpccPaper, Hpcc, Conweave].map(preset);
    assert_eq!(sets.clone().map(|set| set.cnp_interval().0 / US), [50, 50, 0, 0, 0]);
    assert_eq!(sets.map(|set| set.gap() == Gap::Fixed), [false, false, true, true, true]);
    // A written ceiling takes the place of the line.
    let limited = Dcqcn { max_rate: Some(Rate::from_gbps(25)), ..preset(Conweave) };
    let state = State::new(&limited, Rate::from_gbps(100));
    assert_eq!(
        (state.current, state.line, state.settings.r_ai),
        (25_000_000_000, 25_000_000_000, 10_000_000)
    );
    let state = State::new(&limited, Rate::from_gbps(10));
    assert_eq!((state.current, state.line), (10_000_000_000, 10_000_000_000));
}

#[test]
fn no_rate_falls_below_the_least_nor_rises_beyond_the_line() {
    let mut state = State::new(&preset(DcqcnPreset::Paper), Rate::from_gbps(10));
    (0..20).for_each(|cnp| {
        state.note_cnp(Time(cnp * 50 * US));
    });
    assert_eq!(state.current, 100_000_000);
    // Back at the line the clocks stop.
    let last = run_until(&mut state, 1_000_000).last().copied();
    assert!(last.is_some_and(|(us, _)| us < 200_000), "{last:?}");
    assert_eq!((state.current, state.next_due()), (10_000_000_000, None));
    assert!(!state.count(100_000_000));
}

#[test]
fn senseless_values_name_their_field() {
    let config = Dcqcn::default;
    assert_eq!(config().check(), Ok(()));
    for (config, field) in [
        (Dcqcn { g: Some(0.0), ..config() }, "g"),
        (Dcqcn { alpha_timer: Some(Time::ZERO), ..config() }, "alpha_timer"),
        (Dcqcn { increase_timer: Some(Time::ZERO), ..config() }, "increase_timer"),
        (Dcqcn { cnp_interval: Some(Time::MAX), ..config() }, "cnp_interval"),
        (Dcqcn { cut_timer: Some(Time::MAX), ..config() }, "cut_timer"),
        (Dcqcn { fast_recovery: Some(0), ..config() }, "fast_recovery"),
        (Dcqcn { byte_counter: Some(Bytes(u64::MAX)), ..config() }, "byte_counter"),
        (Dcqcn { min_rate: Some(Rate(0)), ..config() }, "min_rate"),
        (Dcqcn { r_ai: Some(Rate(u64::MAX)), ..config() }, "r_ai"),
        (Dcqcn { r_hai: Some(Rate(u64::MAX)), ..config() }, "r_hai"),
        (Dcqcn { window_bdp: Some(0.0), ..config() }, "window_bdp"),
    ] {
        assert_eq!(config.check().unwrap_err().field, field);
    }
}
