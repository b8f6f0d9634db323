//! After `STrack`: a window that goes by delay, and falls at once to what was delivered where the delay is large.

use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::delay_window::{Bounds, DelayWindow};
use super::window::AdaptiveWindow;
use super::{CongestionConfig, Facts, Limit, Marks, SlowedBy, Start, TargetDelay, window};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// After `STrack` (Le et al., arXiv 2407.15266): the state machine of the public simulator's attempt at it (csg-htsim, commit 841d9e7, `strack.cpp`), whose comments call most constants guesses, so
/// not `STrack` itself. Below the target delay a window grows in proportion to the distance; above twice the target it becomes what was delivered in the last idle round-trip
/// time; in between it shrinks in proportion to the excess, as Swift's; both at most once per round trip. A window below one packet sends single packets, spaced by round-trip time /
/// window.
///
/// There the growth *replaces* the window, which is surely a mistake; here it is added, and `alpha` is what a round trip adds. Of the paper's selective retransmission and its choice of
/// paths nothing is in that simulator: use `reliability` and `routing` for these. Needs no marks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StrackLike {
    /// Target delay of no hops (csg-htsim: 20 us, "to be confirmed").
    pub base_delay: Time,
    /// What every hop adds to the target (csg-htsim: base / 6.55, "a guess").
    pub hop_delay: Time,
    /// Packets that a round trip adds per microsecond that the delay is below the target (csg-htsim: 0.25, whose unit there is unclear).
    pub alpha: f64,
    /// Multiplicative decrease per excess delay over delay (csg-htsim: 0.8, "a guess").
    pub beta: f64,
    /// Most that a decrease in proportion takes, as a share of the window; a loss takes that (csg-htsim: 0.5, "a guess").
    pub max_mdf: f64,
    /// Initial window in full packets (csg-htsim: 12).
    pub initial_window: u32,
    /// Minimum window in full packets (csg-htsim: 10 bytes, "a guess").
    pub min_window: f64,
    /// Largest window in full packets (csg-htsim: 1000, "a guess").
    pub max_window: f64,
}

impl Default for StrackLike {
    fn default() -> Self {
        StrackLike {
            base_delay: Time::from_us(20),
            hop_delay: Time::from_ns(3_053),
            alpha: 0.25,
            beta: 0.8,
            max_mdf: 0.5,
            initial_window: 12,
            min_window: 0.01,
            max_window: 1000.0,
        }
    }
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(crate) struct State {
    window: DelayWindow,
    /// What a measurement of what is delivered takes.
    base_rtt: Time,
    /// Packets delivered since the last measurement, which was then, and the last ACK.
    delivered: f64,
    measured: Time,
    active: Time,
    /// Packets delivered in an idle round-trip time; absent where that is not known.
    achieved: Option<f64>,
}

impl State {
    fn new(config: &StrackLike, start: Start) -> Self {
        State {
            window: DelayWindow::new(
                f64::from(config.initial_window).min(config.max_window),
                start.packet.0 as f64,
            ),
            base_rtt: start.path.base_rtt,
            delivered: 0.0,
            measured: start.now,
            active: start.now,
            achieved: None,
        }
    }

    /// What is delivered in an idle round-trip time, unless nothing came for as long.
    fn measure(&mut self, now: Time, packets: f64) {
        self.delivered += packets;
        if now - self.measured > self.base_rtt {
            let goes_on = now - self.active < self.base_rtt;
            self.achieved = goes_on.then_some(self.delivered);
            self.delivered = if goes_on { 0.0 } else { packets };
            self.measured = now;
        }
        self.active = now;
    }
}

/// In picoseconds.
const MICROSECOND: f64 = 1e6;

impl AdaptiveWindow for State {
    type Config = StrackLike;

    #[inline]
    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn react(&mut self, config: &StrackLike, feedback: &Feedback) -> bool {
        let packets = f64::from(feedback.packets);
        if feedback.cause == Cause::Ack {
            self.measure(feedback.now, packets);
        }
        let achieved = self.achieved;
        let bounds =
            Bounds { least: config.min_window, most: config.max_window, max_decrease: config.max_mdf };
        self.window.react(bounds, feedback, |window, may_decrease| {
            window.rtt = feedback.rtt;
            let hops = u64::from(feedback.hops);
            let target = (config.base_delay.0 + config.hop_delay.0.saturating_mul(hops)) as f64;
            let delay = feedback.rtt.0 as f64;
            if delay < target {
                window.packets +=
                    config.alpha * (target - delay) / MICROSECOND * packets / window.packets.max(1.0);
            } else if may_decrease {
                match achieved.filter(|_| delay > 2.0 * target) {
                    Some(achieved) => window.packets = window.packets.min(achieved),
                    None => {
                        window.packets *=
                            (1.0 - config.beta * (delay - target) / delay).max(1.0 - config.max_mdf);
                    }
                }
            }
        })
    }

    fn shrink_to_one(&mut self) {
        self.window.shrink_to_one();
    }
}

impl CongestionConfig for StrackLike {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "strack-like",
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
            target_delay: Some(TargetDelay {
                field: "base_delay",
                base: self.base_delay,
                per_hop: self.hop_delay,
                besides: "nothing else",
            }),
            acts_on: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("base_delay", self.base_delay, Time(1))?;
        Invalid::positive("alpha", self.alpha)?;
        for (field, share) in [("beta", self.beta), ("max_mdf", self.max_mdf)] {
            Invalid::unless(share > 0.0 && share <= 1.0, field, "a number above 0 and at most 1", share)?;
        }
        window::check(self.initial_window, None, self.min_window)?;
        let expected = format!("a number of at least min_window = {}", self.min_window);
        let is_valid = self.max_window >= self.min_window && self.max_window.is_finite();
        Invalid::unless(is_valid, "max_window", expected, self.max_window)
    }

    fn first_window(&self, packet: Bytes, _: PathFacts) -> Option<(&'static str, Bytes)> {
        let field =
            if self.max_window < f64::from(self.initial_window) { "max_window" } else { "initial_window" };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most the initial window"
        )]
        let packets = self.max_window.min(f64::from(self.initial_window)) as u32;
        Some((field, window::packets(packets.max(1), packet)))
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        State::new(self, start).open(gate)
    }
}

#[cfg(test)]
mod tests {
    use netloom_units::Rate;

    use super::*;
    use crate::feedback::ack_of;

    fn path() -> PathFacts {
        let (base_rtt, rate) = (Time::from_us(10), Rate::from_gbps(100));
        PathFacts { base_rtt, rate, lossy: true, reorders: true, trims: false }
    }

    /// A target of 40 us over four hops, and an idle round-trip time of 10 us.
    fn flow(window: u32) -> (StrackLike, State) {
        let start = Start { path: path(), packet: Bytes(1000), payload: Bytes(1000), now: Time::ZERO };
        let config =
            StrackLike { initial_window: window, hop_delay: Time::from_us(5), ..StrackLike::default() };
        let state = State::new(&config, start);
        (config, state)
    }

    fn after(rtt_us: u64, now_us: u64) -> Feedback {
        let (rtt, now) = (Time::from_us(rtt_us), Time::from_us(now_us));
        Feedback { rtt, now, hops: 4, packets: 1, ..ack_of(0) }
    }

    /// By hand, with 100 packets: 16 us below the target, 0.25 · 16 / 100; a fifth above it, a window less by 0.8 · 0.2; then not for a round trip.
    #[test]
    fn a_window_grows_by_the_distance_from_the_target_and_shrinks_by_the_excess() {
        let (config, mut state) = flow(100);
        assert!(!state.react(&config, &after(24, 0)));
        assert_eq!(state.window(), 100_040);
        assert!(state.react(&config, &after(50, 5)));
        assert_eq!(state.window(), 84_033);
        assert!(!state.react(&config, &after(50, 54)));
        assert!(state.react(&config, &after(50, 55)));
    }

    /// 12 packets come in 11 us; the next round trip is of more than 80 us.
    #[test]
    fn beyond_twice_the_target_the_window_becomes_what_was_delivered() {
        let (config, mut state) = flow(100);
        for now in 0..12 {
            state.react(&config, &after(39, now));
        }
        assert_eq!((state.achieved, state.delivered), (Some(12.0), 0.0));
        assert!(state.react(&config, &after(81, 12)));
        assert_eq!(state.window(), 12_000);
        // After a pause nothing is known, and no more than half goes.
        let (config, mut state) = flow(100);
        state.react(&config, &after(39, 1));
        assert!(state.react(&config, &after(4000, 50)));
        assert_eq!((state.achieved, state.window()), (None, 50_001));
    }

    #[test]
    fn losses_take_half_and_five_timeouts_all() {
        let (config, mut state) = flow(100);
        let loss = |cause, us| Feedback { cause, now: Time::from_us(us), packets: 0, ..ack_of(0) };
        assert!(state.react(&config, &loss(Cause::Loss, 1)));
        assert_eq!(state.window(), 50_000);
        let seen = [1, 2, 3, 4, 5].map(|n| {
            state.react(&config, &loss(Cause::Timeout, 100 * n));
            state.window()
        });
        assert_eq!(seen, [25_000, 12_500, 6_250, 3_125, 10]);
        assert!(!state.react(&config, &loss(Cause::Unreachable, 9000)));
    }

    #[test]
    fn senseless_values_name_their_field() {
        let config = StrackLike::default;
        assert_eq!(config().check(), Ok(()));
        for (config, field) in [
            (StrackLike { base_delay: Time::ZERO, ..config() }, "base_delay"),
            (StrackLike { alpha: 0.0, ..config() }, "alpha"),
            (StrackLike { beta: 2.0, ..config() }, "beta"),
            (StrackLike { max_mdf: 0.0, ..config() }, "max_mdf"),
            (StrackLike { min_window: 0.0, ..config() }, "min_window"),
            (StrackLike { max_window: 0.001, ..config() }, "max_window"),
        ] {
            assert_eq!(config.check().unwrap_err().field, field);
        }
        let first = |config: StrackLike| config.first_window(Bytes(1000), path());
        assert_eq!(first(config()), Some(("initial_window", Bytes(12_000))));
        assert_eq!(first(StrackLike { max_window: 3.5, ..config() }), Some(("max_window", Bytes(3000))));
    }
}
