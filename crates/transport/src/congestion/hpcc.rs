//! HPCC: a window that goes by what every link of the way says of its load.

use netloom_units::{Bytes, Invalid, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::telemetry::{BITS, Telemetry, float};
use super::{CongestionConfig, CongestionControl, Facts, Limit, Marks, SlowedBy, Start};
use crate::feedback::{Cause, Feedback, LinkState};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// HPCC (Li et al., SIGCOMM'19, algorithm 1): a window from in-band telemetry. Switches write on every data packet the length of the queue
/// that it leaves, the bytes that its link has sent, the time and the link's rate, and ACKs return that. From two ACKs the sender knows how
/// much is in flight on each link, and sets its window so that the fullest one is used at `eta`. Every ACK moves the window, but from a
/// reference that moves once per round trip only. Flows start at the line's rate and are paced at window / `base_rtt`. What the paper
/// leaves open is as in its public simulator: nothing is computed before the second ACK, no window is larger than the first, and no rate
/// less than `min_rate`. An ACK that came over another path than the one before only restarts the comparison.
///
/// Telemetry is exact (not rounded to the header's 8 bytes per link) and adds `telemetry` to every data packet and ACK, beyond
/// `transport.header` and `transport.ack_size`. No marks are needed. Because each ACK is compared with the one before, the granularities
/// that spread a flow's packets over several paths (`packet`, `reps`, `path-list`) are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hpcc {
    /// Target utilisation.
    pub eta: f64,
    /// This many round trips in a row the window grows by steps only; then it is set by the utilisation, however low.
    pub max_stage: u32,
    /// Round-trip time that windows are computed with; absent: each flow's own on the idle fabric. Evaluations take the longest path's for all.
    pub base_rtt: Option<Time>,
    /// Flows that one link is expected to carry at most: a step of the window is (1 − eta) / flows of the first window. 100 give about the 80 B
    /// of the paper's evaluation at 100 Gb/s.
    pub flows: u32,
    /// Minimum rate.
    pub min_rate: Rate,
    /// What telemetry adds to every data packet and every ACK on the wire: the paper's header for five links. On longer paths it is the
    /// same size, and still exact.
    pub telemetry: Bytes,
}

impl Default for Hpcc {
    fn default() -> Self {
        Hpcc {
            eta: 0.95,
            max_stage: 5,
            base_rtt: None,
            flows: 100,
            min_rate: Rate(100_000_000),
            telemetry: Bytes(42),
        }
    }
}

/// The window of one flow, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// In picoseconds.
    base_rtt: f64,
    /// The first window, and the largest.
    most: f64,
    least: f64,
    step: f64,
    window: f64,
    /// The window once per round trip, from which every ACK computes.
    reference: f64,
    /// A full packet.
    packet: u64,
    /// What is in flight on the fullest link, of what that can hold; smoothed.
    utilisation: f64,
    /// Round trips in a row in which the window grew by steps.
    stage: u32,
    /// The reference moves with the ACK of a packet from this number on.
    round: u32,
    telemetry: Telemetry,
}

impl State {
    /// A flow that starts at the line's rate, which must not be zero.
    fn new(config: &Hpcc, line: Rate, base_rtt: Time, packet: Bytes) -> Self {
        let base_rtt = config.base_rtt.unwrap_or(base_rtt).max(Time(1)).0 as f64;
        let window = |rate: Rate| rate.0 as f64 * base_rtt / BITS;
        let most = window(line);
        State {
            base_rtt,
            most,
            least: window(config.min_rate).min(most),
            step: most * (1.0 - config.eta) / f64::from(config.flows),
            window: most,
            reference: most,
            packet: packet.0,
            utilisation: 1.0,
            stage: 0,
            round: 0,
            telemetry: Telemetry::default(),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to the first window; saturates"
    )]
    fn window(&self) -> u64 {
        self.window as u64
    }

    /// What spreads the window over a round trip.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to the rate of the line; saturates"
    )]
    fn rate(&self) -> Rate {
        Rate(((self.window * BITS / self.base_rtt) as u64).max(1))
    }

    /// Opens a gate as far as HPCC says: while less than the window is in flight, as its public simulator has it, a packet may begin that ends beyond. Below one packet the
    /// rate alone limits.
    fn open(&self, gate: &mut Gate, now: Time) {
        gate.set_window(self.window().max(1).next_multiple_of(self.packet));
        gate.set_rate(now, self.rate());
    }

    /// Returns whether the window is cut.
    fn react(&mut self, config: &Hpcc, feedback: &Feedback) -> bool {
        if feedback.cause != Cause::Ack || !self.telemetry.is_there() {
            return false;
        }
        if self.telemetry.is_first() {
            self.round = feedback.next;
        }
        let base_rtt = self.base_rtt;
        // What is in flight on a link, of what it can hold.
        let fullest = self.telemetry.largest(|link| {
            let carried = link.carried / link.elapsed / link.rate;
            let [before, now] = link.queued;
            let waiting = float(before.min(now)) / (link.rate * base_rtt);
            waiting + carried
        });
        let Some((load, elapsed)) = fullest else { return false };
        let weight = elapsed.min(self.base_rtt) / self.base_rtt;
        self.utilisation = (1.0 - weight) * self.utilisation + weight * load;
        self.set_window(config, feedback)
    }

    /// The paper's ComputeWind.
    fn set_window(&mut self, config: &Hpcc, feedback: &Feedback) -> bool {
        let before = self.window;
        let is_full = self.utilisation >= config.eta || self.stage >= config.max_stage;
        let aim = if is_full { self.reference * config.eta / self.utilisation } else { self.reference };
        self.window = (aim + self.step).clamp(self.least, self.most);
        if feedback.seq >= self.round {
            self.round = feedback.next;
            self.reference = self.window;
            self.stage = if is_full { 0 } else { self.stage + 1 };
        }
        self.window < before
    }
}

impl CongestionConfig for Hpcc {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "HPCC",
            limit: Limit::Rate,
            grows: false,
            needs_acks: true,
            marks: Marks::Optional,
            slowed_by: SlowedBy::MoreThanMarks,
            coupled: false,
            cnp_interval: None,
            telemetry: Some(self.telemetry),
            pulls: None,
            reaction_point: None,
            needs_trimming: None,
            max_rate: None,
            target_delay: None,
            acts_on: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let is_share = self.eta > 0.0 && self.eta <= 1.0;
        Invalid::unless(is_share, "eta", "a number above 0 and at most 1", self.eta)?;
        Invalid::at_least("flows", self.flows, 1)?;
        Invalid::at_least("base_rtt", self.base_rtt.unwrap_or(Time(1)), Time(1))?;
        Invalid::at_least("min_rate", self.min_rate, Rate(1))
    }

    fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
        self.base_rtt.map(|rtt| ("base_rtt", path.whole_packets_in(rtt, packet)))
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        let state = State::new(self, start.path.rate, start.path.base_rtt, start.packet);
        state.open(gate, start.now);
        state
    }
}

impl CongestionControl for State {
    type Config = Hpcc;

    const LEARNS: bool = true;
    const SHRINKS_BELOW_A_PACKET: bool = false;
    const CHOOSES_PATHS: bool = false;

    #[inline]
    fn on_feedback(&mut self, config: &Hpcc, feedback: &Feedback, gate: &mut Gate) -> bool {
        let before = self.window();
        let is_cut = self.react(config, feedback);
        if self.window() != before {
            self.open(gate, feedback.now);
        }
        is_cut
    }

    #[inline]
    fn on_sent(&mut self, now: Time, bytes: u64, gate: &mut Gate) {
        gate.on_sent(now, bytes);
    }

    fn begin_with_one(&mut self, _: &mut Gate) {}

    fn on_telemetry(&mut self, links: impl Iterator<Item = LinkState>) {
        self.telemetry.receive(links);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::ack_of;

    const LINE: Rate = Rate(100_000_000_000);
    /// At the line's rate 125,000 B per round trip.
    const RTT: Time = Time(10_000_000);

    /// A step of 62.5 B.
    fn state() -> (Hpcc, State) {
        let config = Hpcc::default();
        let state = State::new(&config, LINE, RTT, Bytes(1000));
        (config, state)
    }

    fn link(us: f64, queued: u64, sent: u64) -> LinkState {
        LinkState { channel: 1, queued, sent, at: Time((us * 1e6) as u64), rate: LINE }
    }

    /// The ACK of a packet, while the next one is this many packets ahead.
    fn ack(state: &mut State, config: &Hpcc, seq: u32, ahead: u32, links: &[LinkState]) -> bool {
        state.on_telemetry(links.iter().copied());
        state.react(config, &Feedback { next: seq + ahead, ..ack_of(seq) })
    }

    #[test]
    fn a_flow_starts_at_the_lines_rate_and_its_first_ack_only_begins_the_comparison() {
        let (config, mut state) = state();
        assert_eq!((state.window(), state.rate()), (125_000, LINE));
        assert!(!ack(&mut state, &config, 0, 50, &[link(0.0, 40_000, 0)]));
        assert_eq!((state.window(), state.round), (125_000, 50));
    }

    /// By hand: half a round trip later the link has carried 62,500 B, all it can, and 25,000 B waited both times: 1 + 25 / 125. That weighs one
    /// half: U = 1.1.
    #[test]
    fn a_queue_and_a_full_link_shrink_the_window() {
        let (config, mut state) = state();
        ack(&mut state, &config, 0, 50, &[link(0.0, 25_000, 1_000)]);
        assert!(ack(&mut state, &config, 50, 50, &[link(5.0, 40_000, 63_500)]));
        assert!((state.utilisation - 1.1).abs() < 1e-12);
        let expected = 125_000.0 * 0.95 / 1.1 + 62.5;
        assert!((state.window - expected).abs() < 1e-6, "{}", state.window);
        assert_eq!(state.rate().0, (expected * 8e12 / 1e7) as u64);
    }

    /// Within a round trip every ACK computes from one reference, so that reactions do not multiply.
    #[test]
    fn the_reference_moves_once_per_round_trip() {
        let (config, mut state) = state();
        ack(&mut state, &config, 0, 3, &[link(0.0, 0, 0)]);
        // A tenth of a round trip each, always full: U stays 1.
        let window = 125_000.0 * 0.95 + 62.5;
        for seq in 1..3 {
            let us = f64::from(seq);
            ack(&mut state, &config, seq, 3, &[link(us, 0, 12_500 * u64::from(seq))]);
            assert!((state.window - window).abs() < 1e-6 && state.reference == 125_000.0);
        }
        ack(&mut state, &config, 3, 3, &[link(3.0, 0, 37_500)]);
        assert!((state.reference - window).abs() < 1e-6 && state.round == 6);
        ack(&mut state, &config, 4, 3, &[link(4.0, 0, 50_000)]);
        assert!((state.window - (window * 0.95 + 62.5)).abs() < 1e-6);
        assert!((state.reference - window).abs() < 1e-6);
    }

    /// Half in use, by ACKs a round trip apart: five steps, then 0.95 / 0.5 at once.
    #[test]
    fn an_empty_link_is_taken_after_five_steps() {
        let config = Hpcc { flows: 10, ..Hpcc::default() };
        let mut state = State::new(&config, LINE, RTT, Bytes(1000));
        (state.window, state.reference) = (50_000.0, 50_000.0);
        let mut seen = Vec::new();
        for seq in 0..8 {
            let sent = u64::from(seq) * 62_500;
            ack(&mut state, &config, seq, 1, &[link(f64::from(seq) * 10.0, 0, sent)]);
            seen.push((state.window.round(), state.stage));
        }
        let step = 625.0;
        let mut expected: Vec<(f64, u32)> =
            (0..6).map(|stage| (50_000.0 + step * f64::from(stage), stage)).collect();
        let taken: f64 = (50_000.0 + 5.0 * step) * 1.9 + step;
        expected.extend([(taken.round(), 0), ((taken + step).round(), 1)]);
        assert_eq!(seen, expected);
    }

    /// The second link's 1.5 in 2 us weigh a fifth, whatever the first one says: 0.8 · 1 + 0.2 · 1.5.
    #[test]
    fn the_fullest_link_counts_at_its_own_rate() {
        let (config, mut state) = state();
        let slow =
            |us, queued, sent| LinkState { channel: 2, rate: Rate(LINE.0 / 4), ..link(us, queued, sent) };
        ack(&mut state, &config, 0, 9, &[link(0.0, 0, 0), slow(1.0, 20_000, 0)]);
        // 6,250 B in 2 us are a quarter of the line. 15,625 B wait for a link that holds 31,250 B.
        ack(&mut state, &config, 9, 9, &[link(3.0, 90_000, 6_250), slow(3.0, 15_625, 6_250)]);
        assert!((state.utilisation - 1.1).abs() < 1e-12, "{}", state.utilisation);
    }

    #[test]
    fn another_way_begins_the_comparison_anew() {
        let (config, mut state) = state();
        ack(&mut state, &config, 0, 9, &[link(0.0, 50_000, 0)]);
        let other = |us, sent| LinkState { channel: 8, ..link(us, 50_000, sent) };
        assert!(!ack(&mut state, &config, 9, 9, &[other(5.0, 500_000)]));
        assert!(!ack(&mut state, &config, 10, 9, &[other(6.0, 600_000), other(6.0, 1)]));
        assert_eq!(state.window(), 125_000);
        assert!(!ack(&mut state, &config, 11, 9, &[other(7.0, 612_500)]));
        assert!(ack(&mut state, &config, 12, 9, &[other(8.0, 625_000)]));
    }

    #[test]
    fn an_answer_without_telemetry_and_a_loss_change_nothing() {
        let (config, mut state) = state();
        ack(&mut state, &config, 0, 9, &[link(0.0, 50_000, 0)]);
        let before = state.clone();
        assert!(!state.react(&config, &ack_of(20)));
        state.on_telemetry([link(5.0, 50_000, 62_500)].into_iter());
        assert!(!state.react(&config, &Feedback::of(Cause::Timeout, RTT)));
        assert_eq!((state.window, state.reference), (before.window, before.reference));
    }

    #[test]
    fn windows_stay_between_the_least_rate_and_the_first_window() {
        let config = Hpcc { min_rate: Rate(40_000_000_000), ..Hpcc::default() };
        let mut state = State::new(&config, LINE, RTT, Bytes(1000));
        for seq in 0..50 {
            let us = f64::from(seq) * 10.0;
            ack(&mut state, &config, seq, 1, &[link(us, 1_000_000, u64::from(seq) * 125_000)]);
        }
        assert_eq!(state.window(), 50_000);
        for seq in 50..200 {
            ack(&mut state, &config, seq, 1, &[link(f64::from(seq) * 10.0, 0, 49 * 125_000)]);
        }
        assert_eq!(state.window(), 125_000);
    }

    #[test]
    fn senseless_values_name_their_field() {
        let config = Hpcc::default;
        assert_eq!(config().check(), Ok(()));
        for (config, field) in [
            (Hpcc { eta: 0.0, ..config() }, "eta"),
            (Hpcc { eta: 1.1, ..config() }, "eta"),
            (Hpcc { flows: 0, ..config() }, "flows"),
            (Hpcc { base_rtt: Some(Time::ZERO), ..config() }, "base_rtt"),
            (Hpcc { min_rate: Rate(0), ..config() }, "min_rate"),
        ] {
            assert_eq!(config.check().unwrap_err().field, field);
        }
    }
}
