//! TIMELY: a rate that follows the gradient of the round-trip time.

use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Invalid, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestionConfig, CongestionControl, Facts, Limit, Marks, SlowedBy, Start};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// TIMELY (Mittal et al., SIGCOMM'15, algorithm 1): a rate per flow, initially the line's. Once per round trip: below `t_low` it
/// rises, above `t_high` it falls by beta (1 − t_high / rtt), and between the two it rises unless round-trip times grow, when it falls by
/// beta times their gradient. The defaults are those of HPCC's public simulator, which also updates once per round trip.
///
/// Needs no marks. The thresholds are those for the networks of the papers: adapt them to yours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timely {
    /// Weight of the newest difference of round-trip times.
    pub alpha: f64,
    /// Multiplicative decrease.
    pub beta: f64,
    /// Below this round-trip time the rate always rises.
    pub t_low: Time,
    /// Above this round-trip time the rate always falls.
    pub t_high: Time,
    /// What differences of round-trip times are compared with.
    pub min_rtt: Time,
    /// Rate that an increase adds.
    pub step: Rate,
    /// After this many increases in a row, none of them below `t_low`, each adds five steps.
    pub hyper_after: u32,
    /// Minimum rate.
    pub min_rate: Rate,
}

impl Default for Timely {
    fn default() -> Self {
        Timely {
            alpha: 0.875,
            beta: 0.8,
            t_low: Time::from_us(50),
            t_high: Time::from_us(500),
            min_rtt: Time::from_us(20),
            step: Rate(10_000_000),
            hyper_after: 5,
            min_rate: Rate(100_000_000),
        }
    }
}

/// Steps of a hyper-active increase.
const HYPER: u64 = 5;

/// The rate of one flow, in whole bits per second.
#[derive(Clone, Debug)]
pub(crate) struct State {
    line: u64,
    rate: u64,
    /// The round-trip time at the last update, in picoseconds, and their smoothed difference.
    last: Option<f64>,
    difference: f64,
    /// Increases in a row by the gradient.
    increases: u32,
    /// The next update is that of a packet from this number on.
    round: u32,
}

impl State {
    /// A flow that starts at the line's rate, which must not be zero.
    fn new(line: Rate) -> Self {
        State { line: line.0, rate: line.0, last: None, difference: 0.0, increases: 0, round: 0 }
    }

    fn rate(&self) -> Rate {
        Rate(self.rate)
    }

    /// Returns whether the rate is cut.
    fn react(&mut self, config: &Timely, feedback: &Feedback) -> bool {
        if feedback.cause != Cause::Ack || feedback.seq < self.round {
            return false;
        }
        self.round = feedback.next;
        let rtt = feedback.rtt.0 as f64;
        let Some(last) = self.last.replace(rtt) else { return false };
        self.difference += config.alpha * (rtt - last - self.difference);
        let gradient = self.difference / config.min_rtt.0 as f64;
        let before = self.rate;
        if feedback.rtt < config.t_low {
            self.increases = 0;
            self.increase(config, 1);
        } else if feedback.rtt > config.t_high {
            self.decrease(config, 1.0 - config.beta * (1.0 - config.t_high.0 as f64 / rtt));
        } else if gradient <= 0.0 {
            self.increases = self.increases.saturating_add(1);
            self.increase(config, if self.increases >= config.hyper_after { HYPER } else { 1 });
        } else {
            self.decrease(config, 1.0 - config.beta * gradient);
        }
        self.rate < before
    }

    fn increase(&mut self, config: &Timely, steps: u64) {
        self.rate = self.rate.saturating_add(config.step.0 * steps).min(self.line);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the rate before")]
    fn decrease(&mut self, config: &Timely, factor: f64) {
        self.increases = 0;
        let rate = (self.rate as f64 * factor.max(0.0)).round() as u64;
        self.rate = rate.max(config.min_rate.0.min(self.line));
    }
}

impl CongestionConfig for Timely {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "TIMELY",
            limit: Limit::Rate,
            grows: false,
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
        for (field, share) in [("alpha", self.alpha), ("beta", self.beta)] {
            Invalid::unless(share > 0.0 && share <= 1.0, field, "a number above 0 and at most 1", share)?;
        }
        Invalid::at_least("t_high", self.t_high, self.t_low)?;
        Invalid::at_least("min_rtt", self.min_rtt, Time(1))?;
        Invalid::at_least("step", self.step, Rate(1))?;
        Invalid::at_least("min_rate", self.min_rate, Rate(1))?;
        let limit = Rate::from_gbps(1_000_000);
        Invalid::unless(self.step <= limit, "step", format!("at most {limit}"), self.step)
    }

    fn first_window(&self, _: Bytes, _: PathFacts) -> Option<(&'static str, Bytes)> {
        None
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        gate.set_rate(start.now, start.path.rate);
        State::new(start.path.rate)
    }
}

impl CongestionControl for State {
    type Config = Timely;

    const LEARNS: bool = true;
    const SHRINKS_BELOW_A_PACKET: bool = false;
    const CHOOSES_PATHS: bool = false;

    #[inline]
    fn on_feedback(&mut self, config: &Timely, feedback: &Feedback, gate: &mut Gate) -> bool {
        let before = self.rate();
        let is_cut = self.react(config, feedback);
        if self.rate() != before {
            gate.set_rate(feedback.now, self.rate());
        }
        is_cut
    }

    #[inline]
    fn on_sent(&mut self, now: Time, bytes: u64, gate: &mut Gate) {
        gate.on_sent(now, bytes);
    }

    fn begin_with_one(&mut self, _: &mut Gate) {}

    /// It rests at the line's rate, where round trips stay the same.
    fn recur(&mut self, _: &Timely, flow: u64, walk: &mut Walk) {
        let State { line: _, rate, last, difference, increases, round } = self;
        walk.exact(*rate);
        if walk.is_some(last) {
            walk.exact(last.unwrap_or_default().to_bits());
        }
        walk.exact(difference.to_bits());
        walk.exact(*increases);
        walk.seq(flow, round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::ack_of;

    /// The rates, in Mb/s, after ACKs with these round-trip times, each of a packet sent after the one before was acknowledged.
    fn rates(line: Rate, rtts: &[u64]) -> Vec<f64> {
        let (config, mut state) = (Timely::default(), State::new(line));
        let step = |(seq, &us): (u32, &u64)| {
            state.react(&config, &Feedback { rtt: Time::from_us(us), next: seq + 1, ..ack_of(seq) });
            state.rate as f64 / 1e6
        };
        (0..).zip(rtts).map(step).collect()
    }

    /// By hand: the gradient smooths as 7/8 of the newest difference plus 1/8 of what it was, over 20 us.
    #[test]
    fn the_rate_follows_the_gradient_between_the_thresholds() {
        // 100 → 108: 7 us of 20, the rate falls by 0.8 · 0.35. Then 7/8 · 2 + 7/8 = 2.625 us.
        let seen = rates(Rate::from_gbps(10), &[100, 108, 110, 100]);
        assert_eq!(seen[..2], [10_000.0, 7_200.0]);
        assert!((seen[2] - 7_200.0 * (1.0 - 0.8 * 2.625 / 20.0)).abs() < 1e-5);
        // Shrinking times: one step more.
        assert!((seen[3] - seen[2] - 10.0).abs() < 1e-9);
    }

    #[test]
    fn thresholds_come_before_the_gradient() {
        // Falling, but above 500 us: by 0.8 (1 − 500 / 625).
        assert_eq!(rates(Rate::from_gbps(10), &[1000, 625]), [10_000.0, 8_400.0]);
        // Rising steeply, but below 50 us.
        assert_eq!(rates(Rate::from_gbps(10), &[1000, 625, 10, 49]), [10_000.0, 8_400.0, 8_410.0, 8_420.0]);
    }

    #[test]
    fn the_fifth_increase_in_a_row_is_five_steps() {
        let seen = rates(Rate::from_gbps(10), &[1000, 625, 100, 100, 100, 100, 100, 100]);
        assert_eq!(seen[1..], [8_400.0, 8_410.0, 8_420.0, 8_430.0, 8_440.0, 8_490.0, 8_540.0]);
    }

    #[test]
    fn one_round_trip_makes_one_update_and_the_least_rate_holds() {
        let (config, mut state) = (Timely::default(), State::new(Rate::from_gbps(10)));
        let at = |seq, us| Feedback { rtt: Time::from_us(us), next: 50, ..ack_of(seq) };
        assert!(!state.react(&config, &at(0, 100)));
        assert!(!state.react(&config, &at(49, 400)));
        assert!(state.react(&config, &at(50, 400)));
        assert_eq!(state.rate(), Rate(100_000_000));
    }

    #[test]
    fn senseless_values_name_their_field() {
        let config = Timely::default;
        assert_eq!(config().check(), Ok(()));
        for (config, field) in [
            (Timely { alpha: 0.0, ..config() }, "alpha"),
            (Timely { beta: f64::NAN, ..config() }, "beta"),
            (Timely { t_high: Time::from_us(49), ..config() }, "t_high"),
            (Timely { min_rtt: Time::ZERO, ..config() }, "min_rtt"),
            (Timely { step: Rate(0), ..config() }, "step"),
            (Timely { min_rate: Rate(0), ..config() }, "min_rate"),
        ] {
            assert_eq!(config.check().unwrap_err().field, field);
        }
    }
}
