//! `SMaRTT`: the window control from which Ultra Ethernet's NSCC comes.
//!
//! ```text
//!              round trip below the target                at the target or above
//!   no mark    grow in proportion to the distance from    grow a little (fair increase)
//!              the target, and a little (fair increase)
//!   mark       shrink a little (fair decrease)            shrink by the excess, and a little (fair decrease)
//! ```
//!
//! Besides, *fast increase* adds whole packets once a window has come without delay, and *quick adapt* sets the window to what was delivered in a target round trip in which a packet
//! was lost.

use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::window::{self, AdaptiveWindow};
use super::{CongestionConfig, Facts, Limit, Marks, SlowedBy, Start};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// `SMaRTT` (Bonato et al., arXiv 2404.01630), from which NSCC comes, as the public simulator of Ultra Ethernet has it for its sprayed packets (uet-htsim, commit 40ccb05, `eqds.cpp`):
/// marks and round-trip times choose among four reactions to an ACK, a window without delay lets it grow fast, and after a trimmed packet the window becomes what was delivered in
/// a target round trip (quick adapt); ACKs and trims of what was in flight then are ignored. Needs a fabric that marks; packets may take any paths.
///
/// Two things are other than in that simulator. There nothing counts the ACKs that are ignored after a quick adapt, so that the window stays as it is for ever; here they are
/// counted, as the paper says. And there a timeout changes nothing; here a packet that is found lost in whatever way counts as a trimmed one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Smartt {
    /// Delay in queues that is aimed at (uet-htsim: 7 us, for round trips of 12 us).
    pub target_delay: Time,
    /// Delay below which a path counts as empty (uet-htsim: 1 us).
    pub no_delay: Time,
    /// First and largest window in bandwidth-delay products (uet-htsim: 50 packets, which are 1.4 products of its standard network).
    pub max_window: f64,
    /// Growth by proportion: packets per round trip at a round-trip time of half the target's (uet-htsim: `_mi` 2).
    pub increase: f64,
    /// Fair increase: packets per window delivered (uet-htsim: `_beta` 0.25).
    pub fair_increase: f64,
    /// Share of the excess of a round-trip time over the target that a marked ACK takes of what it acknowledges (uet-htsim: `_md` 1).
    pub decrease: f64,
    /// Fair decrease: share that a whole largest window of marked ACKs would take (uet-htsim: `_gamma_g` 0.8).
    pub fair_decrease: f64,
    /// Packets that an ACK adds while there is no delay (uet-htsim: 4).
    pub fast_increase: f64,
    /// Marks shrink the window only while more than this share of ACKs is marked, as an average in which each ACK weighs 5%; absent: always (uet-htsim: `-use_exp_avg_ecn` with 0.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_to_decrease: Option<f64>,
    /// Whether there is a quick adapt.
    pub quick_adapt: bool,
}

impl Default for Smartt {
    /// The constants of uet-htsim.
    fn default() -> Self {
        Smartt {
            target_delay: Time::from_us(7),
            no_delay: Time::from_us(1),
            max_window: 1.4,
            increase: 2.0,
            fair_increase: 0.25,
            decrease: 1.0,
            fair_decrease: 0.8,
            fast_increase: 4.0,
            wait_to_decrease: None,
            quick_adapt: true,
        }
    }
}

/// What an ACK weighs in the average of marks.
const MARK_WEIGHT: f64 = 0.05;

/// The window of one flow; times are in picoseconds.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// A full packet on the wire: the least window.
    packet: f64,
    most: f64,
    window: f64,
    /// The least round-trip time seen.
    base_rtt: u64,
    /// Bytes that have come without delay one after the other, and the window when the first of them came.
    undelayed: f64,
    undelayed_window: f64,
    /// Average share of marked ACKs.
    marked: f64,
    /// Bytes delivered in the present period of a target round trip, and when that ends; absent before the first one.
    delivered: f64,
    ends: Option<Time>,
    /// A packet was lost since the last quick adapt.
    is_triggered: bool,
    /// So many bytes more are ignored.
    ignores: u64,
}

impl State {
    fn new(config: &Smartt, start: Start) -> Self {
        let most = window::products(config.max_window, start.path.bdp(), start.packet).0 as f64;
        State {
            packet: start.packet.0 as f64,
            most,
            window: most,
            base_rtt: start.path.base_rtt.0,
            undelayed: 0.0,
            undelayed_window: most,
            marked: 0.0,
            delivered: 0.0,
            ends: None,
            is_triggered: false,
            ignores: 0,
        }
    }

    fn clamp(&mut self) {
        self.window = self.window.clamp(self.packet, self.most);
    }

    /// At the end of a period in which a packet was lost the window becomes what was delivered.
    fn quick_adapt(&mut self, config: &Smartt, feedback: &Feedback, lost: u32) {
        if self.ends.is_some_and(|ends| feedback.now < ends) {
            return;
        }
        let period = Time(self.base_rtt).saturating_add(config.target_delay);
        let before = self.ends.replace(feedback.now.saturating_add(period));
        let delivered = std::mem::take(&mut self.delivered);
        let Some(ended) = before.filter(|_| self.is_triggered && config.quick_adapt) else { return };
        // What came late was delivered in a longer period.
        let longer = (feedback.now - ended).saturating_add(period).0 as f64;
        self.window = delivered * period.0 as f64 / longer;
        self.clamp();
        self.is_triggered = false;
        self.ignores = u64::from(feedback.in_flight + lost) * self.packet_bytes();
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a packet's size, which was a whole number"
    )]
    fn packet_bytes(&self) -> u64 {
        self.packet as u64
    }

    fn on_ack(&mut self, config: &Smartt, feedback: &Feedback) {
        let bytes = feedback.bytes as f64;
        self.delivered += bytes;
        self.marked = MARK_WEIGHT * f64::from(u8::from(feedback.marked)) + (1.0 - MARK_WEIGHT) * self.marked;
        if self.ignores > 0 {
            self.ignores = self.ignores.saturating_sub(feedback.bytes);
            return;
        }
        self.quick_adapt(config, feedback, 0);
        if self.ignores > 0 || !feedback.is_sampled {
            return;
        }
        self.base_rtt = self.base_rtt.min(feedback.rtt.0);
        let (rtt, delay) = (feedback.rtt.0 as f64, Time(feedback.rtt.0 - self.base_rtt));
        let target = self.base_rtt as f64 + config.target_delay.0 as f64;
        if delay < config.no_delay && !feedback.marked {
            self.undelayed += bytes;
            if self.undelayed > self.undelayed_window {
                self.window += config.fast_increase * self.packet;
                return self.clamp();
            }
        } else {
            (self.undelayed, self.undelayed_window) = (0.0, self.window);
        }
        let is_slow = delay >= config.target_delay;
        if !feedback.marked {
            if !is_slow {
                let growth = config.increase * self.packet * (target - rtt) * bytes / self.window / rtt;
                self.window += growth.min(bytes);
            }
            self.window += config.fair_increase * bytes * self.packet / self.window;
        } else if config.wait_to_decrease.is_none_or(|share| self.marked > share) {
            if is_slow {
                self.window -= (config.decrease * bytes * (rtt - target) / rtt).min(bytes);
            }
            self.window -= self.window * config.fair_decrease * bytes / self.most;
        }
        self.clamp();
    }

    /// That many packets are lost.
    fn on_loss(&mut self, config: &Smartt, feedback: &Feedback) {
        if self.ignores > 0 {
            self.ignores = self.ignores.saturating_sub(self.packet_bytes());
            return;
        }
        self.window -= self.packet;
        self.clamp();
        self.is_triggered = true;
        // What is reported missing is in flight until this is over.
        self.quick_adapt(config, feedback, 1);
    }
}

impl AdaptiveWindow for State {
    type Config = Smartt;

    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    fn window(&self) -> u64 {
        self.window as u64
    }

    fn react(&mut self, config: &Smartt, feedback: &Feedback) -> bool {
        let before = self.window;
        match feedback.cause {
            Cause::Ack => self.on_ack(config, feedback),
            Cause::Trim | Cause::Return | Cause::Loss | Cause::Nack | Cause::Timeout => {
                self.on_loss(config, feedback)
            }
            Cause::Notification | Cause::Unreachable => {}
        }
        self.window < before
    }

    fn shrink_to_one(&mut self) {
        self.window = self.packet;
    }
}

impl CongestionConfig for Smartt {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "SMaRTT",
            limit: Limit::Window,
            grows: true,
            needs_acks: true,
            marks: Marks::Required,
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
        Invalid::at_least("target_delay", self.target_delay, Time(1))?;
        Invalid::positive("max_window", self.max_window)?;
        let factors = [
            ("increase", self.increase),
            ("fair_increase", self.fair_increase),
            ("decrease", self.decrease),
            ("fast_increase", self.fast_increase),
        ];
        for (field, factor) in factors {
            let is_valid = factor >= 0.0 && factor.is_finite();
            Invalid::unless(is_valid, field, "a number that is not negative", factor)?;
        }
        let shares = [
            ("fair_decrease", self.fair_decrease),
            ("wait_to_decrease", self.wait_to_decrease.unwrap_or(0.0)),
        ];
        for (field, share) in shares {
            Invalid::unless((0.0..=1.0).contains(&share), field, "0 to 1", share)?;
        }
        Ok(())
    }

    fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
        Some(("max_window", window::products(self.max_window, path.bdp(), packet)))
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

    /// 10 us at 100 Gb/s: 125,000 B are a product, 175,000 B the largest window; the target is 17 us.
    fn flow(window: f64) -> (Smartt, State) {
        let (base_rtt, rate) = (Time::from_us(10), Rate::from_gbps(100));
        let path = PathFacts { base_rtt, rate, lossy: true, reorders: true, trims: true };
        let start = Start { path, packet: Bytes(1000), payload: Bytes(1000), now: Time::ZERO };
        let config = Smartt::default();
        let mut state = State::new(&config, start);
        assert_eq!(state.window(), 175_000);
        (state.window, state.undelayed_window) = (window, window);
        (config, state)
    }

    /// The ACK of a packet of 1000 B at an instant after a round trip, both in tenths of a microsecond.
    fn ack(now: u64, rtt: u64, marked: bool) -> Feedback {
        let (now, rtt) = (Time::from_ns(100 * now), Time::from_ns(100 * rtt));
        Feedback { now, rtt, marked, bytes: 1000, in_flight: 40, ..ack_of(0) }
    }

    fn after(window: f64, feedback: &[Feedback]) -> f64 {
        let (config, mut state) = flow(window);
        for feedback in feedback {
            state.react(&config, feedback);
        }
        state.window
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }

    /// By hand, with a window of 50,000 B and a packet of 1000 B.
    #[test]
    fn mark_and_delay_choose_among_four_reactions() {
        // 13.6 us, the target is 17: 2 · 1000 · 3.4 · 1000 / 50,000 / 13.6 = 10 B; then 0.25 · 1000 · 1000 / 50,010.
        close(after(50_000.0, &[ack(1, 136, false)]), 50_010.0 + 250_000.0 / 50_010.0);
        // At the target: 0.25 · 1000 · 1000 / 50,000 = 5 B.
        close(after(50_000.0, &[ack(1, 170, false)]), 50_005.0);
        // Marked below the target: 50,000 · 0.8 · 1000 / 175,000.
        close(after(50_000.0, &[ack(1, 136, true)]), 50_000.0 - 40_000_000.0 / 175_000.0);
        // 34 us, twice the target: half of the packet, then as above of what remains.
        close(after(50_000.0, &[ack(1, 340, true)]), 49_500.0 * (1.0 - 800.0 / 175_000.0));
    }

    #[test]
    fn a_window_without_delay_lets_it_grow_by_packets() {
        let (config, mut state) = flow(3_000.0);
        let mut seen = Vec::new();
        for now in 1..=5 {
            let before = state.window;
            state.react(&config, &ack(now, 105, false));
            seen.push(state.window - before);
        }
        // Three packets are a window; the fourth is beyond.
        assert!(seen[..3].iter().all(|&growth| growth < 1000.0), "{seen:?}");
        seen[3..].iter().for_each(|&growth| close(growth, 4000.0));
        // A mark or a delay begins anew.
        state.react(&config, &ack(6, 120, false));
        assert_eq!((state.undelayed, state.undelayed_window > 11_000.0), (0.0, true));
        let (config, mut state) = flow(174_000.0);
        for now in 0..200 {
            state.react(&config, &ack(now, 100, false));
        }
        assert_eq!(state.window(), 175_000);
    }

    /// Periods are of 17 us. In the second one 12 packets come and one is trimmed; its end is seen 3.4 us late: 12,000 · 17 / 20.4 = 10,000.
    #[test]
    fn after_a_trim_the_window_becomes_what_was_delivered() {
        let (config, mut state) = flow(100_000.0);
        state.react(&config, &ack(0, 170, true));
        for now in 1..=11 {
            state.react(&config, &ack(now, 170, true));
        }
        let trim = |now| Feedback { cause: Cause::Trim, bytes: 0, ..ack(now, 170, false) };
        let before = state.window;
        assert!(state.react(&config, &trim(20)));
        close(state.window, before - 1000.0);
        assert_eq!((state.ends, state.ignores), (Some(Time::from_us(17)), 0));
        assert!(state.react(&config, &ack(204, 170, true)));
        close(state.window, 12_000.0 * 17.0 / 20.4);
        // 40 packets were in flight: their ACKs and trims do nothing.
        for now in 205..245 {
            assert!(!state.react(&config, &if now % 2 == 0 { trim(now) } else { ack(now, 400, true) }));
        }
        assert_eq!(state.ignores, 0);
        assert!(state.react(&config, &ack(246, 400, true)));
        // Without a loss a period ends with no more than that.
        let (config, mut state) = flow(100_000.0);
        state.react(&config, &ack(0, 170, false));
        state.react(&config, &ack(500, 170, false));
        assert!(state.window > 100_000.0);
    }

    #[test]
    fn losses_count_as_trims_and_nothing_shrinks_below_a_packet() {
        for cause in [Cause::Return, Cause::Loss, Cause::Nack, Cause::Timeout] {
            let (config, mut state) = flow(1_500.0);
            assert!(state.react(&config, &Feedback { cause, ..ack(1, 100, false) }), "{cause:?}");
            assert_eq!((state.window(), state.is_triggered), (1000, true));
        }
        let (config, mut state) = flow(2_000.0);
        assert!(!state.react(&config, &Feedback::of(Cause::Unreachable, Time(1))));
        state.shrink_to_one();
        assert_eq!(state.window(), 1000);
        let without = Smartt { quick_adapt: false, ..config };
        state.react(&without, &Feedback { cause: Cause::Trim, ..ack(1, 100, false) });
        state.react(&without, &ack(900, 170, false));
        assert_eq!((state.ignores, state.window() >= 1000), (0, true));
    }

    /// 1 − 0.95ⁿ exceeds 0.3 with the seventh mark.
    #[test]
    fn marks_may_have_to_last_before_they_count() {
        let (config, mut state) = flow(50_000.0);
        let waits = Smartt { wait_to_decrease: Some(0.3), ..config };
        let cuts: Vec<bool> = (1..=8).map(|now| state.react(&waits, &ack(now, 170, true))).collect();
        assert_eq!(cuts, [false, false, false, false, false, false, true, true]);
    }

    #[test]
    fn senseless_values_name_their_field() {
        let config = Smartt::default;
        assert_eq!(config().check(), Ok(()));
        for (config, field) in [
            (Smartt { target_delay: Time::ZERO, ..config() }, "target_delay"),
            (Smartt { max_window: 0.0, ..config() }, "max_window"),
            (Smartt { increase: -1.0, ..config() }, "increase"),
            (Smartt { fair_increase: f64::NAN, ..config() }, "fair_increase"),
            (Smartt { decrease: f64::INFINITY, ..config() }, "decrease"),
            (Smartt { fast_increase: -1.0, ..config() }, "fast_increase"),
            (Smartt { fair_decrease: 1.1, ..config() }, "fair_decrease"),
            (Smartt { wait_to_decrease: Some(2.0), ..config() }, "wait_to_decrease"),
        ] {
            assert_eq!(config.check().unwrap_err().field, field);
        }
    }
}
