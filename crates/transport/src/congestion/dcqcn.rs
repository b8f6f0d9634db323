//! DCQCN's reaction point: a rate per flow that notifications cut and that recovers by itself.
//!
//! A receiver that gets marked packets sends congestion notification packets (CNPs), one per interval and flow. A CNP makes the flow's
//! current rate its target and cuts it by alpha / 2, where alpha remembers how often CNPs came of late. Then a timer, and in the paper
//! a byte counter, take the rate back: first halfway to the target (fast recovery), later while the target itself grows
//! (additive, then hyper increase).

use std::cmp::Ordering;

use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Invalid, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestionConfig, CongestionControl, Facts, Limit, Marks, Signal, SlowedBy, Start, window};
use crate::feedback::Feedback;
use crate::gate::Gate;
use crate::sender::PathFacts;
/// DCQCN (Zhu et al., SIGCOMM'15): a rate per flow, initially the line's, that congestion notification packets cut. Works with any
/// reliability; needs a fabric that marks (`fabric.ecn`). A field that is absent is that of the preset.
///
/// CNPs have the size of an ACK; they and the ACKs or NACKs that notify in their place are counted in `cnps`. The marking thresholds that
/// belong to the presets (`kmin`, `kmax`, `pmax` of `fabric.ecn`) are 5 KB, 200 KB, 0.01 at 40 Gb/s (`paper`); 4 KB and 16 KB per Gb/s, 0.2
/// (`hpcc-paper`, `hpcc`); 100 KB, 400 KB, 0.2 at 100 Gb/s (`conweave`). Refused where no switch marks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dcqcn {
    /// Published settings: `paper`; `hpcc-paper` and `hpcc`, the two of HPCC's public simulator, the latter like Mellanox's NICs; `conweave`,
    /// those of ConWeave's; `uet`, those of the Ultra Ethernet simulator.
    pub preset: DcqcnPreset,
    /// Weight of the newest interval in alpha, g; 1/256 in all presets.
    pub g: Option<f64>,
    /// Interval after which alpha shrinks unless a CNP came: 55 us, or 50 us (`hpcc-paper`) or 1 us (`hpcc`, `conweave`).
    pub alpha_timer: Option<Time>,
    /// Interval at which the flow checks for CNPs, and cuts: 50 us (`hpcc-paper`), 4 us (`hpcc`, `conweave`). With the other presets, and
    /// if 0, every CNP cuts at once.
    pub cut_timer: Option<Time>,
    /// Cycle of the timer that raises the rate again: 55 us, or 300 us (`hpcc`, `conweave`).
    pub increase_timer: Option<Time>,
    /// Bytes (on the wire) per cycle of the byte counter: 10 MB (`paper`, `uet`). With the other presets, and if 0, there is none.
    pub byte_counter: Option<Bytes>,
    /// Cycles of fast recovery, F: 5 (`paper`, `uet`), or 1. With a byte counter either clock ends it by counting this many; without one the timer
    /// adds nothing for F cycles, `r_ai` in the next, and `r_hai` in each after that, as the public code does.
    pub fast_recovery: Option<u32>,
    /// What additive increase adds to the target: 40 Mb/s; 1/5000 of the line (`hpcc-paper`, `hpcc`), 1/2500 (`conweave`), 1/20 (`uet`).
    pub r_ai: Option<Rate>,
    /// What hyper increase adds to the target: 400 Mb/s; 1/500 of the line (`hpcc-paper`, `hpcc`), 1/1000 (`conweave`), 1/10 (`uet`).
    pub r_hai: Option<Rate>,
    /// Minimum rate; 100 Mb/s in all presets, as in the public code.
    pub min_rate: Option<Rate>,
    /// Whether every cut makes the current rate the target. Otherwise (`hpcc-paper`, `hpcc`, `conweave`) only one after which the rate has risen.
    pub clamp_target: Option<bool>,
    /// Minimum time between two CNPs of a flow: 50 us (`paper`, `uet`). With the other presets, and if 0, receivers send none: every ACK or NACK that
    /// answers a marked packet is a notification by itself, as in the public code.
    pub cnp_interval: Option<Time>,
    /// Rate at which a flow begins and that it never exceeds; absent: the line's. `r_ai` and `r_hai` refer to it where they are shares of
    /// the line's rate.
    pub max_rate: Option<Rate>,
    /// How a change of rate affects the time between two packets: `fixed` (`hpcc-paper`, `hpcc`, `conweave`), or `paid`.
    pub gap: Option<Gap>,
    /// The most that may be in flight, in bandwidth-delay products of the idle path; absent: as much as the rate allows. IRN takes 1.
    pub window_bdp: Option<f64>,
}

/// What decides when the packet after one that has left may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// The next packet leaves when the rates since the last departure have paid for the last packet's bytes: a change of rate takes effect at once.
    Paid,
    /// Its bytes over the rate at its departure, in whole nanoseconds, rounded down: a change of rate takes effect from the next packet on, as in the public
    /// simulators of HPCC and ConWeave.
    Fixed,
}

const DAY: Time = Time::from_ms(86_400_000);

/// Published settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DcqcnPreset {
    /// Zhu et al., SIGCOMM'15.
    #[default]
    Paper,
    /// The paper's in HPCC's public simulator, scaled to the line's rate.
    HpccPaper,
    /// HPCC's public simulator, like Mellanox's NICs.
    Hpcc,
    /// ConWeave's public simulator.
    Conweave,
    /// The Ultra Ethernet simulator.
    Uet,
}

/// The settings in force on a line.
#[derive(Clone, Debug, PartialEq)]
struct Settings {
    g: f64,
    alpha_timer: Time,
    /// Zero: every CNP cuts at once.
    cut_timer: Time,
    increase_timer: Time,
    /// Zero: none.
    byte_counter: Bytes,
    fast_recovery: u32,
    r_ai: u64,
    r_hai: u64,
    min_rate: u64,
    clamp_target: bool,
}

impl Dcqcn {
    /// Least time between two CNPs of a flow; 0: ACKs and NACKs echo marks.
    #[inline]
    fn cnp_interval(&self) -> Time {
        self.cnp_interval.unwrap_or(match self.preset {
            DcqcnPreset::Paper | DcqcnPreset::Uet => Time::from_us(50),
            DcqcnPreset::HpccPaper | DcqcnPreset::Hpcc | DcqcnPreset::Conweave => Time::ZERO,
        })
    }

    /// How the time between two packets follows the rate.
    fn gap(&self) -> Gap {
        self.gap.unwrap_or(match self.preset {
            DcqcnPreset::Paper | DcqcnPreset::Uet => Gap::Paid,
            DcqcnPreset::HpccPaper | DcqcnPreset::Hpcc | DcqcnPreset::Conweave => Gap::Fixed,
        })
    }

    fn settings(&self, line: Rate) -> Settings {
        use DcqcnPreset::{Conweave, Hpcc, HpccPaper, Paper, Uet};
        let by_bytes = matches!(self.preset, Paper | Uet);
        let (alpha_us, cut_us, increase_us) = match self.preset {
            Paper | Uet => (55, 0, 55),
            HpccPaper => (50, 50, 55),
            Hpcc | Conweave => (1, 4, 300),
        };
        let (r_ai, r_hai) = match self.preset {
            Paper => (40_000_000, 400_000_000),
            HpccPaper | Hpcc => (line.0 / 5000, line.0 / 500),
            Conweave => (line.0 / 2500, line.0 / 1000),
            Uet => (line.0 / 20, line.0 / 10),
        };
        let rate = |field: Option<Rate>, default| field.map_or(default, |rate| rate.0);
        Settings {
            g: self.g.unwrap_or(1.0 / 256.0),
            alpha_timer: self.alpha_timer.unwrap_or(Time::from_us(alpha_us)),
            cut_timer: self.cut_timer.unwrap_or(Time::from_us(cut_us)),
            increase_timer: self.increase_timer.unwrap_or(Time::from_us(increase_us)),
            byte_counter: self.byte_counter.unwrap_or(Bytes(if by_bytes { 10_000_000 } else { 0 })),
            fast_recovery: self.fast_recovery.unwrap_or(if by_bytes { 5 } else { 1 }),
            r_ai: rate(self.r_ai, r_ai),
            r_hai: rate(self.r_hai, r_hai),
            min_rate: rate(self.min_rate, 100_000_000).min(line.0),
            clamp_target: self.clamp_target.unwrap_or(by_bytes),
        }
    }
}

/// The rate of one flow, in whole bits per second.
#[derive(Clone, Debug)]
pub(crate) struct State {
    settings: Settings,
    line: u64,
    current: u64,
    target: u64,
    alpha: f64,
    /// Since when alpha's intervals count; none before the first CNP.
    alpha_since: Option<Time>,
    /// Whether a CNP came in alpha's present interval. Matters only with a timer for cuts; otherwise CNPs move alpha themselves.
    alpha_cnp: bool,
    /// When the timer for cuts looks again, if it has something to see; since when it counts.
    cut_due: Option<Time>,
    cut_since: Time,
    /// End of the increase timer's cycle; none at the line's rate.
    increase_due: Option<Time>,
    time_stage: u32,
    byte_stage: u32,
    bytes_left: i64,
}

impl State {
    /// A flow on a line whose rate must not be zero: it starts as fast as it may.
    #[expect(clippy::cast_possible_wrap, reason = "Dcqcn::check bounds the counter by 2⁵³ bytes")]
    fn new(config: &Dcqcn, line: Rate) -> Self {
        let line = config.max_rate.map_or(line, |most| most.min(line));
        let settings = config.settings(line);
        State {
            line: line.0,
            current: line.0,
            target: line.0,
            alpha: 1.0,
            alpha_since: None,
            alpha_cnp: false,
            cut_due: None,
            cut_since: Time::ZERO,
            increase_due: None,
            time_stage: 0,
            byte_stage: 0,
            bytes_left: settings.byte_counter.0 as i64,
            settings,
        }
    }

    /// The current rate.
    #[inline]
    fn rate(&self) -> Rate {
        Rate(self.current)
    }

    /// When to call [`Self::pass`].
    #[inline]
    fn next_due(&self) -> Option<Time> {
        match (self.cut_due, self.increase_due) {
            (Some(cut), Some(increase)) => Some(cut.min(increase)),
            (cut, increase) => cut.or(increase),
        }
    }

    /// A CNP arrived. Returns whether it cuts the rate at once.
    fn note_cnp(&mut self, now: Time) -> bool {
        self.settle_alpha(now);
        if self.settings.cut_timer == Time::ZERO {
            self.cut(now);
            self.alpha += self.settings.g * (1.0 - self.alpha);
            self.alpha_since = Some(now);
            return true;
        }
        // The first CNP sets the timers going, and finds alpha at 1. Cuts come a nanosecond later, so that each goes by the alpha of its instant.
        match self.alpha_since {
            Some(_) => self.alpha_cnp = true,
            None => (self.alpha_since, self.cut_since) = (Some(now), now + Time::from_ns(1)),
        }
        let interval = self.settings.cut_timer.0;
        let intervals = now.saturating_sub(self.cut_since).0 / interval + 1;
        self.cut_due.get_or_insert(self.cut_since + Time(intervals * interval));
        false
    }

    /// A timer may be due. Returns whether the rate was cut.
    fn pass(&mut self, now: Time) -> bool {
        if self.increase_due.is_some_and(|due| due <= now) {
            self.increase_due = Some(now + self.settings.increase_timer);
            self.time_stage = self.time_stage.saturating_add(1);
            self.increase();
        }
        let is_cut = self.cut_due.is_some_and(|due| due <= now);
        if is_cut {
            self.cut_due = None;
            self.settle_alpha(now);
            self.cut(now);
        }
        is_cut
    }

    /// A packet of that many bytes (on the wire) leaves. Returns whether that ends a cycle of the byte counter, so that the rate rises.
    #[inline]
    #[expect(
        clippy::cast_possible_wrap,
        reason = "a packet of at most 65,535 bytes; Dcqcn::check bounds the counter by 2⁵³ bytes"
    )]
    fn count(&mut self, bytes: u64) -> bool {
        if self.settings.byte_counter == Bytes(0) || self.increase_due.is_none() {
            return false;
        }
        self.bytes_left -= bytes as i64;
        let is_over = self.bytes_left <= 0;
        if is_over {
            self.bytes_left += self.settings.byte_counter.0 as i64;
            self.byte_stage = self.byte_stage.saturating_add(1);
            self.increase();
        }
        is_over
    }

    /// Ends the intervals of alpha that are over by `now`.
    fn settle_alpha(&mut self, now: Time) {
        let Some(since) = self.alpha_since else { return };
        let intervals = (now - since).0 / self.settings.alpha_timer.0;
        if intervals == 0 {
            return;
        }
        let keep = 1.0 - self.settings.g;
        if std::mem::take(&mut self.alpha_cnp) {
            self.alpha = self.alpha * keep + self.settings.g;
            self.alpha *= keep.powi((intervals - 1).min(1 << 20) as i32);
        } else {
            self.alpha *= keep.powi(intervals.min(1 << 20) as i32);
        }
        self.alpha_since = Some(since + self.settings.alpha_timer * intervals);
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "from 0 to the rate before; Dcqcn::check bounds the counter by 2⁵³ bytes"
    )]
    fn cut(&mut self, now: Time) {
        if self.settings.clamp_target || self.time_stage > 0 || self.increase_due.is_none() {
            self.target = self.current;
        }
        let cut = self.current as f64 * (1.0 - self.alpha / 2.0);
        self.current = (cut.round() as u64).max(self.settings.min_rate);
        (self.time_stage, self.byte_stage) = (0, 0);
        self.bytes_left = self.settings.byte_counter.0 as i64;
        self.increase_due = Some(now + self.settings.increase_timer);
    }

    /// A cycle of the timer or of the byte counter is over.
    fn increase(&mut self) {
        let Settings { fast_recovery, r_ai, r_hai, byte_counter, .. } = self.settings;
        let add = if byte_counter == Bytes(0) {
            // The public code looks at the cycles before this one, and its hyper increase does not accelerate.
            match (self.time_stage - 1).cmp(&fast_recovery) {
                Ordering::Less => 0,
                Ordering::Equal => r_ai,
                Ordering::Greater => r_hai,
            }
        } else {
            let ahead = self.time_stage.max(self.byte_stage);
            let behind = self.time_stage.min(self.byte_stage);
            match (ahead < fast_recovery, behind > fast_recovery) {
                (true, _) => 0,
                (false, true) => r_hai.saturating_mul(u64::from(behind - fast_recovery)),
                (false, false) => r_ai,
            }
        };
        self.target = self.target.saturating_add(add).min(self.line);
        self.current = self.current.midpoint(self.target);
        // Halving a distance of whole bits never ends by itself.
        if self.target == self.line && self.line - self.current <= 1 {
            (self.current, self.increase_due) = (self.line, None);
        }
    }
}

impl CongestionConfig for Dcqcn {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "DCQCN",
            limit: Limit::Rate,
            grows: false,
            needs_acks: false,
            marks: Marks::Required,
            slowed_by: SlowedBy::Marks,
            coupled: false,
            cnp_interval: Some(self.cnp_interval()),
            telemetry: None,
            pulls: None,
            reaction_point: None,
            needs_trimming: None,
            max_rate: self.max_rate.map(|rate| ("max_rate", rate)),
            target_delay: None,
            acts_on: Some(Signal::Cnps),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        if let Some(g) = self.g {
            Invalid::unless(g > 0.0 && g <= 1.0, "g", "a number above 0 and at most 1", g)?;
        }
        let times = [("alpha_timer", self.alpha_timer), ("increase_timer", self.increase_timer)];
        for (field, time) in times {
            if let Some(time) = time {
                let is_valid = time > Time::ZERO && time <= DAY;
                Invalid::unless(is_valid, field, "more than 0 and at most a day", time)?;
            }
        }
        for (field, time) in [("cut_timer", self.cut_timer), ("cnp_interval", self.cnp_interval)] {
            if let Some(time) = time {
                Invalid::unless(time <= DAY, field, "at most a day", time)?;
            }
        }
        if let Some(bytes) = self.byte_counter {
            Invalid::unless(
                bytes <= Bytes::LARGEST,
                "byte_counter",
                format!("at most {}", Bytes::LARGEST),
                bytes,
            )?;
        }
        if let Some(cycles) = self.fast_recovery {
            Invalid::at_least("fast_recovery", cycles, 1)?;
        }
        for (field, rate) in [("min_rate", self.min_rate), ("max_rate", self.max_rate)] {
            if let Some(rate) = rate {
                Invalid::at_least(field, rate, Rate(1))?;
            }
        }
        if let (Some(least), Some(most)) = (self.min_rate, self.max_rate) {
            Invalid::unless(least <= most, "min_rate", format!("at most max_rate = {most}"), least)?;
        }
        let limit = Rate::from_gbps(1_000_000);
        for (field, rate) in [("r_ai", self.r_ai), ("r_hai", self.r_hai)] {
            if let Some(rate) = rate {
                Invalid::unless(rate <= limit, field, format!("at most {limit}"), rate)?;
            }
        }
        match self.window_bdp {
            Some(bdp) => Invalid::positive("window_bdp", bdp),
            None => Ok(()),
        }
    }

    fn check_without_acks(&self) -> Result<(), Invalid> {
        if let Some(bdp) = self.window_bdp {
            let expected = "no window with reliability \"none\", which has no ACKs";
            return Err(Invalid::new("window_bdp", expected, bdp));
        }
        let expected = "more than 0 with reliability \"none\", which has no ACKs to echo marks";
        let interval = self.cnp_interval();
        Invalid::unless(interval > Time::ZERO, "cnp_interval", expected, interval)
    }

    fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
        let window = |times| window::whole(window::products(times, path.bdp(), packet), packet);
        self.window_bdp.map(|times| ("window_bdp", window(times)))
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        let Start { path, packet, now, .. } = start;
        if let Some(times) = self.window_bdp {
            gate.set_window(window::products(times, path.bdp(), packet).0);
        }
        let state = State::new(self, path.rate);
        match self.gap() {
            Gap::Paid => gate.set_rate(now, state.rate()),
            Gap::Fixed => gate.space_by_rate(state.rate()),
        }
        state
    }
}

impl CongestionControl for State {
    type Config = Dcqcn;

    const LEARNS: bool = true;
    const REACTS_TO_ACKS: bool = false;
    const SHRINKS_BELOW_A_PACKET: bool = false;
    const CHOOSES_PATHS: bool = false;
    const HAS_TIMERS: bool = true;

    #[inline]
    fn on_feedback(&mut self, _: &Dcqcn, _: &Feedback, _: &mut Gate) -> bool {
        false
    }

    #[inline]
    fn on_sent(&mut self, now: Time, bytes: u64, gate: &mut Gate) {
        gate.on_sent(now, bytes);
        if self.count(bytes) {
            gate.set_rate(now, self.rate());
        }
    }

    fn begin_with_one(&mut self, _: &mut Gate) {}

    /// At the line's rate, with no timer running, nothing moves until a CNP comes, which [counts](crate::SendCounts): only then it matters since when alpha shrinks.
    fn recur(&mut self, _: &Dcqcn, _: u64, walk: &mut Walk) {
        let State {
            settings: _,
            line: _,
            current,
            target,
            alpha,
            alpha_since,
            alpha_cnp,
            cut_due,
            cut_since,
            increase_due,
            time_stage,
            byte_stage,
            bytes_left,
        } = self;
        if cut_due.is_some() || increase_due.is_some() {
            return walk.pass_over();
        }
        walk.exact(*current);
        walk.exact(*target);
        walk.exact(alpha.to_bits());
        if walk.is_some(alpha_since) {
            walk.exact(alpha_since.unwrap_or_default().0);
        }
        walk.exact(*alpha_cnp);
        walk.exact(cut_since.0);
        walk.exact(*time_stage);
        walk.exact(*byte_stage);
        walk.exact(bytes_left.cast_unsigned());
    }

    #[inline]
    fn due(&self, _: &Dcqcn) -> Option<Time> {
        self.next_due()
    }

    fn on_timer(&mut self, _: &Dcqcn, now: Time, gate: &mut Gate) -> bool {
        let is_cut = self.pass(now);
        gate.set_rate(now, self.rate());
        is_cut
    }

    fn on_cnp(&mut self, now: Time, gate: &mut Gate) -> bool {
        let is_cut = self.note_cnp(now);
        gate.set_rate(now, self.rate());
        is_cut
    }
}

#[cfg(test)]
mod tests;
