//! QCN's reaction point: a rate limiter that congestion notifications slow down and that recovers by itself.
//!
//! A host has one per destination, from the first notification about it until it is back at the line's rate with nothing waiting. A
//! notification cuts the current rate and remembers the old one as its target. Two clocks that know nothing of each other, one
//! that counts bytes sent and one that counts time, then take the rate back in cycles: for the first five cycles halfway to the
//! target (fast recovery), after that while the target itself grows, slowly once one clock is through its five cycles (active
//! increase) and ever faster once both are (hyper-active increase).

use netloom_units::{Bytes, Invalid, Rate, Time};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestionConfig, Facts, Limit, Marks, Signal, SlowedBy, Start, Still};
use crate::gate::{Gate, RateLimit};
use crate::sender::PathFacts;

/// Quantized congestion notification, the hosts' part (IEEE 802.1Qau, QCN 2.2): no window; a rate limiter per destination that the
/// notifications of the fabric's congestion points slow down. Works with any reliability.
///
/// The defaults are Table I of "Comparative Evaluation of CEE-based Switch Adaptive Routing" (Crisan, Gusat, Minkenberg).
///
/// A rate limiter is created by the first notification about its destination, and removed when the line's rate is reached again. Refused
/// where the fabric sends no notifications (`fabric.qcn`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Qcn {
    /// Where the default of `r_min` comes from: `switch-ar` (the paper above) or `802.1qau` (the standard's MIB).
    pub preset: QcnPreset,
    /// Minimum rate of a limiter; if absent 100 kb/s with preset `switch-ar`, 5 Mb/s with `802.1qau`.
    pub r_min: Option<Rate>,
    /// Gain: a notification of severity s (1 to 63) multiplies the rate by 1 − g_d · s / 64. 0.5 is the standard's 2⁻⁷ per step.
    pub g_d: f64,
    /// Smallest factor of one cut.
    pub min_dec: f64,
    /// Cycles of fast recovery. A clock ends it after more cycles than this; sources that end it at this many cycles mean one less.
    pub fr_threshold: u32,
    /// Bytes (on the wire) per cycle of the byte counter; half as many after fast recovery.
    pub byte_limit: Bytes,
    /// Length of a cycle of the timer; half as long after fast recovery.
    pub timer: Time,
    /// What a cycle of active increase adds to the target rate.
    pub r_ai: Rate,
    /// What a cycle of hyper-active increase adds to the target rate, times the cycles that both clocks have spent beyond fast recovery.
    pub r_hai: Rate,
    /// Extra fast recovery: a notification in the byte counter's first cycle after another one leaves the target rate where it was.
    pub extra_fast_recovery: bool,
    /// Whether the first cycle after a cut divides a target of more than ten times the rate by 8 instead of increasing it.
    pub target_guard: bool,
    /// Each cycle of either clock is drawn uniformly from 1 − jitter to 1 + jitter times its nominal length.
    pub jitter: f64,
}

/// Published settings of the reaction point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QcnPreset {
    /// Table I of "Comparative Evaluation of CEE-based Switch Adaptive Routing".
    #[default]
    #[serde(rename = "switch-ar")]
    SwitchAr,
    /// The defaults of IEEE 802.1Qau.
    #[serde(rename = "802.1qau")]
    Ieee8021Qau,
}

impl Default for Qcn {
    fn default() -> Self {
        Qcn {
            preset: QcnPreset::SwitchAr,
            r_min: None,
            g_d: 0.5,
            min_dec: 0.5,
            fr_threshold: 5,
            byte_limit: Bytes(150_000),
            timer: Time::from_ms(15),
            r_ai: Rate(5_000_000),
            r_hai: Rate(50_000_000),
            extra_fast_recovery: true,
            target_guard: false,
            jitter: 0.15,
        }
    }
}

/// Factors of a cut are whole multiples of 2⁻³², so that equal notifications cut equally everywhere.
const ONE: u64 = 1 << 32;
/// Highest severity of a notification: 6 bits.
const FULL_SCALE: u8 = 63;

impl Qcn {
    /// Least rate of a limiter.
    pub fn least_rate(&self) -> Rate {
        self.r_min.unwrap_or(match self.preset {
            QcnPreset::SwitchAr => Rate(100_000),
            QcnPreset::Ieee8021Qau => Rate(5_000_000),
        })
    }

    /// What a notification multiplies the rate by, in units of 2⁻³².
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "shares of ONE, from 0 to 1: Qcn::check"
    )]
    fn cut(&self, severity: u8) -> u64 {
        let fixed = |fraction: f64| (fraction * ONE as f64).round() as u64;
        let severity = u64::from(severity.min(FULL_SCALE));
        (ONE - fixed(self.g_d) * severity / 64).max(fixed(self.min_dec))
    }

    /// Bytes of the next cycle of a byte counter that has counted that many.
    #[expect(
        clippy::cast_possible_wrap,
        reason = "below 2⁴¹: Qcn::check bounds the limit by 2⁴⁰ and the jitter by 1"
    )]
    fn next_bytes(&self, stage: u32, random: &mut impl Rng) -> i64 {
        let halved = u64::from(stage > self.fr_threshold);
        jittered(self.byte_limit.0 >> halved, self.jitter, random) as i64
    }

    /// End of the next cycle of a timer that has counted that many.
    fn next_time(&self, now: Time, stage: u32, random: &mut impl Rng) -> Time {
        let halved = u64::from(stage > self.fr_threshold);
        now + Time(jittered(self.timer.0 >> halved, self.jitter, random))
    }
}

impl CongestionConfig for Qcn {
    type State = Still<Qcn>;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "the rate limiter",
            limit: Limit::DestinationRate,
            grows: false,
            needs_acks: false,
            marks: Marks::Optional,
            slowed_by: SlowedBy::MoreThanMarks,
            coupled: false,
            cnp_interval: None,
            telemetry: None,
            pulls: None,
            reaction_point: Some(self),
            needs_trimming: None,
            max_rate: None,
            target_delay: None,
            acts_on: Some(Signal::Cnms),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("r_min", self.least_rate(), Rate(1))?;
        for (field, share) in [("g_d", self.g_d), ("min_dec", self.min_dec)] {
            Invalid::unless(share > 0.0 && share <= 1.0, field, "a number above 0 and at most 1", share)?;
        }
        let (bytes, tebibyte) = (self.byte_limit, Bytes(1 << 40));
        Invalid::unless((Bytes(2)..=tebibyte).contains(&bytes), "byte_limit", "2 B to 1 TiB", bytes)?;
        let (timer, day) = (self.timer, Time::from_ms(86_400_000));
        Invalid::unless((Time(2)..=day).contains(&timer), "timer", "2 ps to a day", timer)?;
        let limit = Rate::from_gbps(1_000_000);
        for (field, rate) in [("r_ai", self.r_ai), ("r_hai", self.r_hai)] {
            Invalid::unless(rate <= limit, field, format!("at most {limit}"), rate)?;
        }
        Invalid::unless(
            (0.0..1.0).contains(&self.jitter),
            "jitter",
            "a number from 0 to below 1",
            self.jitter,
        )
    }

    fn first_window(&self, _: Bytes, _: PathFacts) -> Option<(&'static str, Bytes)> {
        None
    }

    fn begin(&self, _: Start, _: &mut Gate) -> Still<Qcn> {
        Still::new()
    }
}

/// A whole number from (1 − jitter) to (1 + jitter) times the nominal one, uniformly.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "less than `nominal`; the upper half of a product is less than `choices`"
)]
fn jittered(nominal: u64, jitter: f64, random: &mut impl Rng) -> u64 {
    let spread = (nominal as f64 * jitter) as u64;
    let choices = u128::from(2 * spread + 1);
    nominal - spread + ((u128::from(random.next_u64()) * choices) >> 64) as u64
}

/// The rate limiter of one host towards one destination. Rates are whole bits per second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReactionPoint {
    line: u64,
    /// Current rate: least rate ≤ current ≤ target, and ≤ line.
    limit: RateLimit,
    /// Target rate. Beyond the line's rate only on the way there.
    target: u64,
    byte_stage: u32,
    time_stage: u32,
    bytes_left: i64,
    /// End of the timer's cycle; none until the first notification, and none once the line's rate is reached.
    timer: Option<Time>,
    /// Notifications that cut the rate.
    pub decreases: u64,
}

impl ReactionPoint {
    /// A limiter at the line's rate, which must not be zero. It limits nothing until the notification that it is made for.
    #[expect(clippy::cast_possible_wrap, reason = "Qcn::check bounds the limit by 2⁴⁰")]
    pub fn new(config: &Qcn, line: Rate) -> Self {
        ReactionPoint {
            line: line.0,
            limit: RateLimit::new(line),
            target: line.0,
            byte_stage: 0,
            time_stage: 0,
            bytes_left: config.byte_limit.0 as i64,
            timer: None,
            decreases: 0,
        }
    }

    /// A notification of severity 1 to 63 arrived; one of severity 0 says nothing.
    #[expect(clippy::cast_possible_truncation, reason = "at most the rate before")]
    pub fn on_cnm(&mut self, config: &Qcn, now: Time, severity: u8, random: &mut impl Rng) {
        if severity == 0 {
            return;
        }
        let current = self.rate().0;
        if !config.extra_fast_recovery || self.byte_stage != 0 {
            self.target = current;
        }
        let cut = (u128::from(current) * u128::from(config.cut(severity)) / u128::from(ONE)) as u64;
        self.limit.set_rate(now, Rate(cut.max(config.least_rate().0).min(current)));
        (self.byte_stage, self.time_stage) = (0, 0);
        self.bytes_left = config.next_bytes(0, random);
        self.timer = Some(config.next_time(now, 0, random));
        self.decreases += 1;
    }

    /// A packet of that many bytes (on the wire) leaves; not before [`ready_at`](Self::ready_at).
    #[expect(clippy::cast_possible_wrap, reason = "a packet of at most 65,535 bytes")]
    pub fn on_sent(&mut self, config: &Qcn, now: Time, bytes: u64, random: &mut impl Rng) {
        self.limit.on_sent(now, bytes);
        self.bytes_left -= bytes as i64;
        if self.bytes_left <= 0 {
            self.byte_stage = self.byte_stage.saturating_add(1);
            self.bytes_left = config.next_bytes(self.byte_stage, random);
            self.increase(config, now);
        }
    }

    /// A timer of the host went off: ends a cycle if that is due, and says when to come again. Coming too early does nothing.
    pub fn on_timer(&mut self, config: &Qcn, now: Time, random: &mut impl Rng) -> Option<Time> {
        if self.timer.is_some_and(|due| due <= now) {
            self.time_stage = self.time_stage.saturating_add(1);
            self.timer = Some(config.next_time(now, self.time_stage, random));
            self.increase(config, now);
        }
        self.timer
    }

    /// When the timer's cycle ends; `None` while there is nothing to recover.
    pub fn timer_due(&self) -> Option<Time> {
        self.timer
    }

    /// The earliest instant for the next packet.
    #[inline]
    pub fn ready_at(&self) -> Time {
        self.limit.ready_at()
    }

    /// The current rate.
    pub fn rate(&self) -> Rate {
        self.limit.rate()
    }

    /// The rate that the limiter is on its way back to.
    pub fn target(&self) -> Rate {
        Rate(self.target)
    }

    /// Whether the limiter may be forgotten: it limits nothing, and no packet waits for it.
    pub fn is_released(&self, backlog: bool) -> bool {
        self.rate().0 == self.line && !backlog
    }

    /// A cycle of one of the clocks is over.
    fn increase(&mut self, config: &Qcn, now: Time) {
        let current = self.rate().0;
        let ahead = self.byte_stage.max(self.time_stage);
        let behind = self.byte_stage.min(self.time_stage);
        let threshold = config.fr_threshold;
        let is_first = (behind, ahead) == (0, 1);
        if config.target_guard && is_first && self.target > current.saturating_mul(10) {
            self.target /= 8;
        } else if behind > threshold {
            let add = config.r_hai.0.saturating_mul(u64::from(behind - threshold));
            self.target = self.target.saturating_add(add);
        } else if ahead > threshold {
            self.target += config.r_ai.0;
        }
        let mut next = current.midpoint(self.target);
        if next >= self.line {
            (next, self.target, self.timer) = (self.line, self.line, None);
        }
        self.limit.set_rate(now, Rate(next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senseless_values_name_their_field() {
        let config = Qcn::default;
        assert_eq!(config().check(), Ok(()));
        for (config, field) in [
            (Qcn { r_min: Some(Rate(0)), ..config() }, "r_min"),
            (Qcn { g_d: f64::NAN, ..config() }, "g_d"),
            (Qcn { min_dec: 1.5, ..config() }, "min_dec"),
            (Qcn { byte_limit: Bytes(1), ..config() }, "byte_limit"),
            (Qcn { timer: Time::ZERO, ..config() }, "timer"),
            (Qcn { r_ai: Rate(u64::MAX), ..config() }, "r_ai"),
            (Qcn { r_hai: Rate(u64::MAX), ..config() }, "r_hai"),
            (Qcn { jitter: 1.0, ..config() }, "jitter"),
        ] {
            assert_eq!(config.check().unwrap_err().field, field);
        }
    }
}
