//! CUBIC's window: a cubic function of the time since the last cut.

use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reno::Reno;
use super::window::AdaptiveWindow;
use super::{CongestionConfig, Facts, Limit, Marks, SlowedBy, Start, window};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::rtt::Rtt;
use crate::sender::PathFacts;

/// CUBIC (RFC 9438), the default of most operating systems. A window of W_max packets is cut to `beta` W_max and then follows C (t − K)³ +
/// W_max, with t in seconds and K such that the curve starts at the cut window; it is never below the window of a Reno flow with the same
/// cuts, which in a data centre is nearly always larger. Slow start as NewReno, without HyStart++; what is in flight is counted packet by
/// packet (RFC 6675).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cubic {
    /// C, in packets per second cubed.
    pub c: f64,
    /// What a cut leaves of the window.
    pub beta: f64,
    /// Whether a flow whose window shrinks from cut to cut gives up more, which leaves room for new flows.
    pub fast_convergence: bool,
    /// Initial window in full packets (RFC 6928).
    pub initial_window: u32,
    /// Initial slow-start threshold in full packets: above it the window grows by a packet per round trip. Absent: none, as RFC 5681
    /// advises ("arbitrarily high"); csg-htsim's TCP has 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<u32>,
    /// Minimum window in full packets. Below 1 the flow sends single packets, spaced by round-trip time / window.
    pub min_window: f64,
    /// Largest window; absent: no limit.
    pub max_window: Option<Bytes>,
    /// Whether ECN marks cut the window, too, once per window (RFC 3168).
    pub ecn: bool,
}

impl Default for Cubic {
    fn default() -> Self {
        Cubic {
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
            initial_window: 10,
            initial_ssthresh: None,
            min_window: 1.0,
            max_window: None,
            ecn: true,
        }
    }
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(crate) struct State {
    reno: Reno,
    packet: f64,
    rtt: Rtt,
    /// Where the plateau of the next stage lies; none after a timeout: where the stage begins.
    plateau: Option<f64>,
    /// The window before the last cut.
    prior: f64,
    stage: Option<Stage>,
}

/// A stage of congestion avoidance: from the end of a cut to the next one. Windows in packets.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// When it began; later by as long as the window was not what limited the flow.
    began: Time,
    /// When the last ACK came.
    last: Time,
    w_max: f64,
    /// Seconds from its beginning to the plateau.
    k: f64,
    /// The window of a Reno flow with the same cuts.
    w_est: f64,
}

impl Cubic {
    fn state(&self, packet: Bytes) -> State {
        State {
            reno: Reno::new(
                packet,
                self.initial_window,
                self.min_window,
                self.max_window,
                self.initial_ssthresh,
            ),
            packet: packet.0 as f64,
            rtt: Rtt::default(),
            plateau: None,
            prior: f64::INFINITY,
            stage: None,
        }
    }
}

impl AdaptiveWindow for State {
    type Config = Cubic;

    #[inline]
    fn window(&self) -> u64 {
        self.reno.window()
    }

    fn react(&mut self, config: &Cubic, feedback: &Feedback) -> bool {
        let before = self.reno.cwnd() / self.packet;
        let is_ack = feedback.cause == Cause::Ack;
        if is_ack {
            self.rtt.sample(feedback.rtt);
        }
        let is_marked = is_ack && feedback.marked && config.ecn;
        let is_cut = match feedback.cause {
            Cause::Ack if is_marked && self.reno.is_after_cut(feedback) => {
                self.reno.scale(config.beta, feedback);
                true
            }
            Cause::Ack => {
                let State { reno, packet, rtt, plateau, prior, stage } = self;
                reno.on_ack_by(feedback, is_marked, |cwnd, is_limiting| {
                    let (window, acked) = (cwnd / *packet, feedback.bytes as f64 / *packet);
                    let stage =
                        stage.get_or_insert_with(|| Stage::new(config, *plateau, window, feedback.now));
                    let rtt = rtt.smoothed().unwrap_or(feedback.rtt);
                    let ack = Acked { window, packets: acked, rtt, now: feedback.now, is_limiting };
                    (stage.next(config, ack, *prior) - window) * *packet
                });
                false
            }
            _ => self.reno.on_loss_to(config.beta, feedback),
        };
        if is_cut {
            // RFC 9438, sections 4.6 to 4.8.
            let shrinks = config.fast_convergence && self.plateau.is_some_and(|plateau| before < plateau);
            let plateau = if shrinks { before * (1.0 + config.beta) / 2.0 } else { before };
            self.plateau = (feedback.cause != Cause::Timeout).then_some(plateau);
            (self.prior, self.stage) = (before, None);
        }
        is_cut
    }

    fn shrink_to_one(&mut self) {
        self.reno.begin_with_one();
    }
}

/// An ACK in congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Acked {
    /// The window in packets.
    window: f64,
    /// Packets newly acknowledged.
    packets: f64,
    /// The smoothed round-trip time.
    rtt: Time,
    now: Time,
    /// Whether the window is what limits the flow.
    is_limiting: bool,
}

impl Stage {
    /// The stage that begins now (RFC 9438, sections 4.2 and 4.8).
    fn new(config: &Cubic, plateau: Option<f64>, window: f64, now: Time) -> Self {
        let w_max = plateau.unwrap_or(window).max(window);
        let k = ((w_max - window) / config.c).cbrt();
        Stage { began: now, last: now, w_max, k, w_est: window }
    }

    /// The window after an ACK, where it was `prior` before the last cut (RFC 9438, sections 4.3 to 4.5).
    fn next(&mut self, config: &Cubic, ack: Acked, prior: f64) -> f64 {
        let Acked { window, packets, rtt, now, is_limiting } = ack;
        let since = now - std::mem::replace(&mut self.last, now);
        if !is_limiting {
            self.began += since;
            return window;
        }
        let alpha = 3.0 * (1.0 - config.beta) / (1.0 + config.beta);
        self.w_est += if self.w_est < prior { alpha } else { 1.0 } * packets / window.max(1.0);
        let t = (now - self.began).as_secs_f64();
        let cubic = |t: f64| config.c * (t - self.k).powi(3) + self.w_max;
        if cubic(t) < self.w_est {
            return self.w_est.max(window);
        }
        let target = cubic(t + rtt.as_secs_f64()).clamp(window, 1.5 * window);
        window + (target - window) / window.max(1.0) * packets
    }
}

impl CongestionConfig for Cubic {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "CUBIC",
            limit: Limit::Window,
            grows: true,
            needs_acks: true,
            marks: Marks::Optional,
            slowed_by: SlowedBy::MoreThanMarks,
            coupled: false,
            cnp_interval: None,
            telemetry: None,
            pulls: None,
            reaction_point: None,
            needs_trimming: None,
            max_rate: None,
            target_delay: None,
            acts_on: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::positive("c", self.c)?;
        let is_valid = self.beta > 0.0 && self.beta < 1.0;
        Invalid::unless(is_valid, "beta", "a number above 0 and below 1", self.beta)?;
        window::check(self.initial_window, self.initial_ssthresh, self.min_window)
    }

    fn first_window(&self, packet: Bytes, _: PathFacts) -> Option<(&'static str, Bytes)> {
        Some(window::adaptive(self.initial_window, self.max_window, packet))
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        self.state(start.packet).open(gate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::ack_of;

    const PACKET: u64 = 1500;

    /// Ten seconds after the cut the cubic function is at 10 + 0.4 · 10³ packets. The target is 15 packets, and a window of ACKs leads there (RFC 9438, section 4.2).
    #[test]
    fn a_round_trip_adds_at_most_half_a_window() {
        let config = Cubic::default();
        let after = |now: Time, packets: f64| {
            let mut stage = Stage { began: Time::ZERO, last: Time::ZERO, w_max: 10.0, k: 0.0, w_est: 1.0 };
            let ack = Acked { window: 10.0, packets, rtt: Time::from_ms(1), now, is_limiting: true };
            stage.next(&config, ack, 10.0)
        };
        assert_eq!(after(Time::from_ms(10_000), 10.0), 15.0);
        assert_eq!(after(Time::from_ms(10_000), 1.0), 10.5);
        // Within the bound it is the cubic function a round trip later.
        let target = 10.0 + 0.4 * 1.001f64.powi(3);
        assert!((after(Time::from_ms(1_000), 10.0) - target).abs() < 1e-9);
    }

    /// Acknowledges a packet of a flow that keeps its window full.
    fn ack(state: &State, now: Time, rtt: Time) -> Feedback {
        let in_flight = (state.window() / PACKET) as u32;
        Feedback { now, rtt, bytes: PACKET, in_flight, next: 1_000_000, ..ack_of(1) }
    }

    /// A window of this many packets has just been cut, and the cut is through.
    fn cut_from(config: &Cubic, packets: u32, rtt: Time) -> (State, Time) {
        let config = Cubic { initial_window: packets, ..config.clone() };
        let mut state = config.state(Bytes(PACKET));
        let mut now = rtt;
        let loss = Feedback { cause: Cause::Loss, packets: 0, bytes: 0, ..ack(&state, now, rtt) };
        assert!(state.react(&config, &loss));
        while state.reno.is_gliding() {
            now += Time(1);
            state.react(&config, &ack(&state, now, rtt));
        }
        // What was sent before the cut says nothing about the window since.
        (state, now + rtt)
    }

    /// Sends window after window, evenly spaced; calls back after every ACK.
    fn run(
        config: &Cubic,
        state: &mut State,
        from: Time,
        rtt: Time,
        until: Time,
        mut see: impl FnMut(Time, f64),
    ) {
        let mut now = from;
        while now < until {
            now += rtt / (state.window() / PACKET);
            state.react(config, &ack(state, now, rtt));
            see(now, state.reno.cwnd() / PACKET as f64);
        }
    }

    /// RFC 9438, figure 1: with K = cbrt(W_max (1 − beta) / C) the window is back at W_max after K seconds, flat there, and convex behind.
    #[test]
    fn the_window_follows_the_cubic_function() {
        let config = Cubic::default();
        let rtt = Time::from_ms(100);
        let (mut state, from) = cut_from(&config, 10_000, rtt);
        assert!((state.reno.cwnd() / 1500.0 - 7000.0).abs() < 0.01);
        let k = (3000.0f64 / 0.4).cbrt();
        assert!((k - 19.574).abs() < 0.001);
        let mut began = None;
        let mut seen = 0;
        run(&config, &mut state, from, rtt, from + Time::from_secs_f64(30.0), |now, window| {
            let t = (now - *began.get_or_insert(now)).as_secs_f64();
            // An ACK moves the window a part of the way to where the function is a round trip later; that is a lag of a round trip.
            if t > 1.0 {
                let expected = 0.4 * (t - k).powi(3) + 10_000.0;
                let step = 3.0 * 0.4 * (t - k).powi(2) * 0.1;
                assert!((window - expected).abs() <= 1.1 * step + 1.0, "{t} s: {window}, {expected}");
                seen += 1;
            }
        });
        assert!(seen > 100_000);
    }

    /// RFC 9438, section 4.3: below the plateau a packet's ACK adds alpha / cwnd with alpha = 3 (1 − beta) / (1 + beta), to the last digit.
    #[test]
    fn with_short_round_trips_it_is_a_reno_flow_with_the_same_mean() {
        let config = Cubic::default();
        let rtt = Time::from_us(100);
        let (mut state, from) = cut_from(&config, 100, rtt);
        let mut expected = state.reno.cwnd() / 1500.0;
        let alpha = 3.0 * (1.0 - 0.7) / (1.0 + 0.7);
        let mut windows = Vec::new();
        run(&config, &mut state, from, rtt, from + rtt * 100, |_, window| windows.push(window));
        for (index, window) in windows.iter().enumerate() {
            expected += if expected < 100.0 { alpha } else { 1.0 } / expected;
            assert!((window - expected).abs() < 1e-6, "{index}: {window}, {expected}");
        }
        // It is back at 100 after 57 round trips, and grows as Reno from there.
        assert!(windows.last().is_some_and(|&last| last > 135.0));
    }

    #[test]
    fn fast_convergence_lowers_the_plateau_of_a_flow_that_loses_ground() {
        let rtt = Time::from_us(100);
        for (fast_convergence, expected) in [(true, 70.0 * 1.7 / 2.0), (false, 70.0)] {
            let config = Cubic { fast_convergence, ..Cubic::default() };
            let (mut state, now) = cut_from(&config, 100, rtt);
            assert_eq!(state.plateau, Some(100.0));
            let now = now + rtt * 2;
            let loss = Feedback { cause: Cause::Loss, packets: 0, bytes: 0, ..ack(&state, now, rtt) };
            assert!(state.react(&config, &loss));
            assert!((state.plateau.unwrap() - expected).abs() < 0.01, "{:?}", state.plateau);
        }
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_the_plateau_where_slow_start_ends() {
        let config = Cubic { initial_window: 100, ..Cubic::default() };
        let rtt = Time::from_us(100);
        let mut state = config.state(Bytes(PACKET));
        let timeout = Feedback { cause: Cause::Timeout, packets: 0, bytes: 0, ..ack(&state, rtt, rtt) };
        assert!(state.react(&config, &timeout));
        assert_eq!((state.window(), state.plateau), (PACKET, None));
        let mut now = rtt * 3;
        for packets in 2..=70 {
            now += Time(1);
            state.react(&config, &ack(&state, now, rtt));
            assert_eq!(state.window(), packets * PACKET);
        }
        state.react(&config, &ack(&state, now + Time(1), rtt));
        let stage = state.stage.unwrap();
        assert_eq!((stage.k, stage.w_max), (0.0, 70.0));
    }

    #[test]
    fn marks_cut_once_per_window_if_they_are_heeded() {
        let rtt = Time(100);
        for ecn in [true, false] {
            let config = Cubic { initial_window: 100, ecn, ..Cubic::default() };
            let mut state = config.state(Bytes(PACKET));
            let cuts: Vec<u64> = (100..400)
                .filter(|&now| {
                    let marked = Feedback { marked: true, ..ack(&state, Time(now), rtt) };
                    state.react(&config, &marked)
                })
                .collect();
            assert_eq!(cuts, if ecn { vec![100, 201, 302] } else { vec![] });
        }
    }

    /// Section 4.2: time in which the window limits nothing does not count.
    #[test]
    fn a_window_that_limits_nothing_stands_still_and_so_does_its_time() {
        let config = Cubic::default();
        let rtt = Time::from_us(100);
        let (mut state, from) = cut_from(&config, 100, rtt);
        state.react(&config, &ack(&state, from + Time(1), rtt));
        let (before, began) = (state.window(), state.stage.unwrap().began);
        let idle = Feedback { in_flight: 2, ..ack(&state, from + Time(1) + rtt, rtt) };
        state.react(&config, &idle);
        assert_eq!((state.window(), state.stage.unwrap().began), (before, began + rtt));
    }
}
