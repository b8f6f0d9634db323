//! DCTCP's window: cut in proportion to the share of marked bytes.

use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Bytes, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reno::Reno;
use super::window::AdaptiveWindow;
use super::{CongestionConfig, Facts, Limit, Marks, Signal, SlowedBy, Start, window};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// DCTCP (Alizadeh et al., SIGCOMM'10; RFC 8257): per window, alpha ← (1 − g) alpha + g F with F the marked share of acknowledged bytes. A
/// mark sets the window to cwnd (1 − alpha / 2), once per window. Grows and reacts to losses as NewReno. A window for alpha ends when as
/// many bytes have been delivered as were in flight at its start, so that a hole does not stop the count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dctcp {
    /// Weight of the newest share, g.
    pub g: f64,
    /// Initial alpha. RFC 8257 suggests 1; htsim starts at 0.
    pub initial_alpha: f64,
    /// Initial window in full packets.
    pub initial_window: u32,
    /// Initial slow-start threshold in full packets: above it the window grows by a packet per round trip. Absent: none, as RFC 5681
    /// advises ("arbitrarily high"); csg-htsim's TCP has 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<u32>,
    /// Minimum window in full packets. Below 1 the flow sends single packets, spaced by round-trip time / window.
    pub min_window: f64,
    /// Largest window; absent: no limit.
    pub max_window: Option<Bytes>,
    /// When the window is cut.
    pub cut: Cut,
    /// Whether the windows of a flow's subflows grow together beyond slow start, as with `newreno`'s `coupled`: LIA for increases, DCTCP for
    /// decreases.
    pub coupled: bool,
}

impl Default for Dctcp {
    fn default() -> Self {
        Dctcp {
            g: 1.0 / 16.0,
            initial_alpha: 1.0,
            initial_window: 10,
            initial_ssthresh: None,
            min_window: 1.0,
            max_window: None,
            cut: Cut::default(),
            coupled: false,
        }
    }
}

/// When DCTCP cuts its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// At a mark, at most once per window (RFC 8257).
    #[default]
    Marked,
    /// At the end of each window as long as alpha is above 0, whether one of its packets was marked or not; a mark ends slow start. The window changes at once, and grows with each ACK, as csg-htsim's code does.
    EveryWindow,
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(crate) struct State {
    reno: Reno,
    alpha: f64,
    /// How many windows have moved alpha. It may wrap around.
    windows: u32,
    /// Bytes of the window under observation that are still to be delivered.
    left: u64,
    /// Bytes delivered in it, and those of them that were marked.
    acked: u64,
    marked: u64,
}

impl Dctcp {
    fn state(&self, packet: Bytes) -> State {
        State {
            reno: Reno::new(
                packet,
                self.initial_window,
                self.min_window,
                self.max_window,
                self.initial_ssthresh,
            ),
            alpha: self.initial_alpha,
            windows: 0,
            left: 0,
            acked: 0,
            marked: 0,
        }
    }
}

impl AdaptiveWindow for State {
    type Config = Dctcp;

    #[inline]
    fn window(&self) -> u64 {
        self.reno.window()
    }

    fn react(&mut self, config: &Dctcp, feedback: &Feedback) -> bool {
        if feedback.cause != Cause::Ack {
            return self.reno.on_loss(feedback);
        }
        let share_is_new = self.observe(config, feedback);
        if config.cut == Cut::EveryWindow {
            if feedback.marked {
                self.reno.end_slow_start();
            }
            let is_cut = share_is_new && self.alpha > 0.0;
            if is_cut {
                self.reno.scale_at_once(1.0 - self.alpha / 2.0);
            }
            self.reno.on_ack(feedback, false);
            return is_cut;
        }
        let is_cut = feedback.marked && self.reno.is_after_cut(feedback);
        match is_cut {
            true => self.reno.scale(1.0 - self.alpha / 2.0, feedback),
            false => self.reno.on_ack(feedback, feedback.marked),
        }
        is_cut
    }

    fn shrink_to_one(&mut self) {
        self.reno.begin_with_one();
    }

    fn limit_growth(&mut self, per_byte: f64) {
        self.reno.couple(per_byte);
    }

    /// While nothing is marked, alpha shrinks and, where marks cut the window, is not read.
    fn recur(&mut self, config: &Dctcp, walk: &mut Walk) {
        let State { reno, alpha, windows, left, acked, marked } = self;
        reno.recur(walk);
        if config.cut == Cut::EveryWindow || reno.has_been_cut() {
            walk.exact(alpha.to_bits());
        }
        walk.repeated(windows, alpha, |alpha| config.average(0.0, alpha));
        [*left, *acked, *marked].into_iter().for_each(|bytes| walk.exact(bytes));
    }
}

impl Dctcp {
    /// Alpha after a window of which this share was marked.
    fn average(&self, share: f64, alpha: f64) -> f64 {
        alpha + self.g * (share - alpha)
    }
}

impl State {
    /// Counts marks; at the end of a window they move alpha. Returns whether it is one.
    fn observe(&mut self, config: &Dctcp, feedback: &Feedback) -> bool {
        self.acked += feedback.bytes;
        self.marked += if feedback.marked { feedback.bytes } else { 0 };
        self.left = self.left.saturating_sub(feedback.bytes);
        if self.left > 0 || self.acked == 0 {
            return false;
        }
        let share = self.marked as f64 / self.acked as f64;
        self.alpha = config.average(share, self.alpha);
        self.windows = self.windows.wrapping_add(1);
        // The next window is what is in flight.
        let packet = feedback.bytes / u64::from(feedback.packets.max(1));
        self.left = u64::from(feedback.in_flight) * packet;
        (self.acked, self.marked) = (0, 0);
        true
    }
}

impl CongestionConfig for Dctcp {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "DCTCP",
            limit: Limit::Window,
            grows: true,
            needs_acks: true,
            marks: Marks::Expected,
            slowed_by: SlowedBy::MoreThanMarks,
            coupled: self.coupled,
            cnp_interval: None,
            telemetry: None,
            pulls: None,
            reaction_point: None,
            needs_trimming: None,
            max_rate: None,
            target_delay: None,
            acts_on: Some(Signal::MarksOrLosses),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let (g, alpha) = (self.g, self.initial_alpha);
        Invalid::unless(g > 0.0 && g <= 1.0, "g", "a number above 0 and at most 1", g)?;
        Invalid::unless((0.0..=1.0).contains(&alpha), "initial_alpha", "0 to 1", alpha)?;
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
    use netloom_units::Time;

    const PACKET: u64 = 1500;

    /// Acknowledges one packet, after which this many are in flight; the oldest unacknowledged one never moves.
    fn ack(marked: bool, in_flight: u32) -> Feedback {
        let (rtt, bytes) = (Time(1), PACKET);
        let about = Feedback::of(Cause::Ack, Time(100));
        Feedback { seq: 1, rtt, marked, packets: 1, bytes, in_flight, next: 200, ..about }
    }

    /// Windows of 100 packets, `marks` of each marked.
    fn windows(count: u32, marks: u32) -> State {
        let config = Dctcp { initial_window: 100, ..Dctcp::default() };
        let mut state = config.state(Bytes(PACKET));
        // The first ACK ends a window of its own.
        state.react(&config, &ack(false, 100));
        for _ in 0..count {
            for packet in 0..100 {
                state.react(&config, &ack(packet < marks, 100));
            }
        }
        state
    }

    #[test]
    fn alpha_tends_to_the_marked_share_though_a_hole_stops_the_cumulative_number() {
        assert!((windows(300, 30).alpha - 0.3).abs() < 0.02);
        assert!(windows(300, 0).alpha < 1e-6);
        // (1 − 1/16) · 1 + 1/16 · 1/2, after the first window of one unmarked packet.
        assert_eq!(windows(1, 50).alpha, 0.9375 * 0.9375 + 0.5 / 16.0);
    }

    #[test]
    fn marks_cut_a_window_once() {
        let config = Dctcp { initial_window: 100, ..Dctcp::default() };
        let mut state = config.state(Bytes(PACKET));
        // A packet a tick, each a hundred ticks under way.
        let cuts: Vec<u64> = (100..400)
            .filter(|&now| {
                let marked = Feedback { now: Time(now), rtt: Time(100), ..ack(true, 99) };
                state.react(&config, &marked)
            })
            .collect();
        assert_eq!((cuts, state.alpha), (vec![100, 201, 302], 1.0));
    }

    #[test]
    fn each_window_is_cut_while_alpha_decays_if_asked() {
        let config =
            Dctcp { initial_window: 100, initial_alpha: 0.5, cut: Cut::EveryWindow, ..Dctcp::default() };
        let mut state = config.state(Bytes(PACKET));
        // A mark ends slow start. The ACK is a window of its own, all of it marked: alpha becomes (1 − 1/16) / 2 + 1/16.
        assert!(state.react(&config, &ack(true, 100)));
        let alpha = 0.5 * 0.9375 + 1.0 / 16.0;
        let window = 100.0 * (1.0 - alpha / 2.0);
        assert!((state.window() as f64 / PACKET as f64 - window).abs() < 0.02);
        // No mark in the next one, at the end of which it is cut all the same; each ACK before has added its part of a packet.
        let cuts = (0..100).filter(|_| state.react(&config, &ack(false, 100))).count();
        assert_eq!((cuts, state.alpha), (1, alpha * 0.9375));
        let grown = window + 100.0 / window;
        assert!((state.window() as f64 / PACKET as f64 - grown * (1.0 - state.alpha / 2.0)).abs() < 0.05);
    }

    #[test]
    fn a_loss_halves_the_window_over_a_round_trip_and_its_marks_do_not_cut_again() {
        let config = Dctcp { initial_window: 100, ..Dctcp::default() };
        let mut state = config.state(Bytes(PACKET));
        let loss = Feedback { cause: Cause::Loss, packets: 0, bytes: 0, next: 100, ..ack(false, 98) };
        assert!(state.react(&config, &loss));
        assert_eq!(state.window(), 98 * PACKET);
        // Of the same window, and found later.
        assert!(!state.react(&config, &Feedback { now: Time(101), rtt: Time(50), ..loss }));
        for delivered in 1..=98 {
            assert!(!state.react(&config, &ack(true, 98)));
            let expected = 98.0 - f64::from(delivered) * 48.0 / 98.0;
            assert!((state.window() as f64 / PACKET as f64 - expected).abs() < 0.01);
        }
        assert_eq!(state.window(), 50 * PACKET);
    }

    #[test]
    fn slow_start_doubles_per_window_until_the_first_mark() {
        let config = Dctcp::default();
        let mut state = config.state(Bytes(PACKET));
        for _ in 0..10 {
            state.react(&config, &ack(false, 10));
        }
        assert_eq!(state.window(), 20 * PACKET);
        // Nothing is marked any more once the cut to 20 (1 − alpha / 2) packets is through; then it is a packet per round trip.
        state.react(&config, &ack(true, 20));
        for _ in 0..20 {
            state.react(&config, &ack(false, 20));
        }
        let before = state.window();
        assert!((10 * PACKET..12 * PACKET).contains(&before));
        let later = Feedback { now: Time(200), ..ack(false, 20) };
        state.react(&config, &later);
        assert!(state.window() > before && state.window() - before < PACKET / 10);
    }

    #[test]
    fn a_window_that_limits_nothing_does_not_grow() {
        let config = Dctcp::default();
        let mut state = config.state(Bytes(PACKET));
        for _ in 0..100 {
            state.react(&config, &ack(false, 2));
        }
        assert_eq!(state.window(), 10 * PACKET);
    }
}
