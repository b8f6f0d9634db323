//! Swift: a window that holds the delay at a target.

use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::delay_window::{Bounds, DelayWindow};
use super::median::{self, Latest};
use super::window::AdaptiveWindow;
use super::{CongestionConfig, Facts, Limit, Marks, SlowedBy, Start, TargetDelay, window};
use crate::feedback::Feedback;
use crate::gate::Gate;
use crate::sender::PathFacts;

/// Swift (Kumar et al., SIGCOMM'20, algorithm 1): below the target delay a window grows by `ai` packets per round trip, above it shrinks in
/// proportion to the excess, once per round trip. The target is larger for longer paths and for smaller windows. A window below one packet
/// sends single packets, spaced by round-trip time / window. The paper does not print its constants; the defaults are those of htsim.
///
/// Needs no marks. The delays are those for the networks of the papers: adapt them to yours. `netloom run` warns of a target below the idle round-trip
/// time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Swift {
    /// Target delay of no hops and large windows.
    pub base_delay: Time,
    /// What every hop adds to the target.
    pub hop_delay: Time,
    /// What small windows add to the target at most.
    pub fs_range: Time,
    /// Window in packets up to which the target is raised by all of `fs_range`.
    pub fs_min_window: f64,
    /// Window in packets from which on the target is not raised.
    pub fs_max_window: f64,
    /// Whether that part of the target follows the window in whole packets, rounded down, as csg-htsim's integer division has it: below one
    /// packet the target is raised by all of `fs_range`. (That simulator's copies of a route also count no hops: set `hop_delay` to 0 to
    /// follow it.)
    pub fs_whole_packets: bool,
    /// Packets that a round trip adds.
    pub ai: f64,
    /// Multiplicative decrease per excess delay over delay.
    pub beta: f64,
    /// Most that a decrease takes, as a share of the window; a loss takes that.
    pub max_mdf: f64,
    /// Initial window in full packets.
    pub initial_window: u32,
    /// Minimum window in full packets.
    pub min_window: f64,
    /// Largest window; absent: no limit.
    pub max_window: Option<Bytes>,
    /// Go by the median round-trip time of the latest ACKs: as many as the window holds packets, at most this number. `MSwift` (Gerstein, Silberstein and Keslassy, arXiv 2509.07907),
    /// for packets that are sprayed. While clearly less than half of the ACKs come over congested paths, the window does not shrink because of these; close to half, the latest ACKs hold a majority of them now and then. Absent: by the latest ACK. How many ACKs the paper
    /// takes is not known to us; the preset `mswift` has 31, which is our choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_of: Option<u32>,
}

impl Default for Swift {
    fn default() -> Self {
        Swift {
            base_delay: Time::from_us(20),
            // Such that a fat tree's longest path doubles the target.
            hop_delay: Time::from_ns(3_053),
            fs_range: Time::from_us(100),
            fs_min_window: 0.1,
            fs_max_window: 100.0,
            fs_whole_packets: false,
            ai: 1.0,
            beta: 0.8,
            max_mdf: 0.5,
            initial_window: 10,
            min_window: 0.01,
            max_window: None,
            median_of: None,
        }
    }
}

impl Swift {
    /// The target delay, in picoseconds, of a path of `hops` hops at a window of `window` packets.
    fn target(&self, hops: u32, window: f64) -> f64 {
        let (range, most) = (self.fs_range.0 as f64, 1.0 / self.fs_max_window.sqrt());
        let alpha = range / (1.0 / self.fs_min_window.sqrt() - most);
        // No packet at all: without bound before it is clamped.
        let window = if self.fs_whole_packets { window.floor() } else { window };
        let scaled = (alpha * (1.0 / window.sqrt() - most)).clamp(0.0, range);
        self.base_delay.0 as f64 + f64::from(hops) * self.hop_delay.0 as f64 + scaled
    }
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(crate) struct State {
    window: DelayWindow,
    /// The largest window, in packets.
    most: f64,
    latest: Latest,
}

impl State {
    pub(crate) fn new(config: &Swift, packet: Bytes) -> Self {
        let packet = packet.0 as f64;
        let most = config.max_window.map_or(f64::INFINITY, |limit| limit.0 as f64 / packet);
        let most = most.max(config.min_window);
        let window = DelayWindow::new(f64::from(config.initial_window).min(most), packet);
        State { window, most, latest: Latest::default() }
    }
}

impl AdaptiveWindow for State {
    type Config = Swift;

    #[inline]
    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn react(&mut self, config: &Swift, feedback: &Feedback) -> bool {
        let State { window, most, latest } = self;
        let bounds = Bounds { least: config.min_window, most: *most, max_decrease: config.max_mdf };
        window.react(bounds, feedback, |window, may_decrease| {
            window.rtt = feedback.rtt;
            if let Some(most) = config.median_of {
                let count = median::count(most, window.packets);
                (window.rtt, _) = latest.median(count, feedback.rtt, false);
            }
            let (delay, target) = (window.rtt.0 as f64, config.target(feedback.hops, window.packets));
            if delay < target {
                window.packets += config.ai * f64::from(feedback.packets) / window.packets.max(1.0);
            } else if may_decrease {
                let excess = (delay - target) / delay;
                window.packets *= (1.0 - config.beta * excess).max(1.0 - config.max_mdf);
            }
        })
    }

    fn shrink_to_one(&mut self) {
        self.window.shrink_to_one();
    }

    fn recur(&mut self, _: &Swift, walk: &mut Walk) {
        let State { window, most: _, latest } = self;
        window.recur(walk);
        latest.recur(walk);
    }
}

impl CongestionConfig for Swift {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "Swift",
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
                besides: "what small windows add",
            }),
            acts_on: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("base_delay", self.base_delay, Time(1))?;
        Invalid::positive("fs_min_window", self.fs_min_window)?;
        Invalid::positive("fs_max_window", self.fs_max_window)?;
        let expected = format!("more than fs_min_window = {}", self.fs_min_window);
        Invalid::unless(
            self.fs_max_window > self.fs_min_window,
            "fs_max_window",
            expected,
            self.fs_max_window,
        )?;
        Invalid::positive("ai", self.ai)?;
        for (field, share) in [("beta", self.beta), ("max_mdf", self.max_mdf)] {
            Invalid::unless(share > 0.0 && share <= 1.0, field, "a number above 0 and at most 1", share)?;
        }
        median::check(self.median_of)?;
        window::check(self.initial_window, None, self.min_window)
    }

    fn first_window(&self, packet: Bytes, _: PathFacts) -> Option<(&'static str, Bytes)> {
        Some(window::adaptive(self.initial_window, self.max_window, packet))
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        State::new(self, start.packet).open(gate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::{Cause, ack_of};

    fn after(rtt_us: u64, now_us: u64) -> Feedback {
        let (rtt, now) = (Time::from_us(rtt_us), Time::from_us(now_us));
        Feedback { rtt, now, hops: 4, packets: 1, ..ack_of(0) }
    }

    /// A flow with a window of 100 packets or more, whose target is that of the path alone.
    fn large() -> (Swift, State) {
        let config = Swift { initial_window: 100, hop_delay: Time::from_us(5), ..Swift::default() };
        let state = State::new(&config, Bytes(1000));
        (config, state)
    }

    #[test]
    fn targets_grow_with_hops_and_with_smaller_windows() {
        let config = Swift { hop_delay: Time::from_us(5), ..Swift::default() };
        let us = |hops, window: f64| config.target(hops, window) / 1e6;
        assert_eq!([us(0, 100.0), us(4, 100.0), us(4, 1e6)], [20.0, 40.0, 40.0]);
        assert!((us(0, 0.1) - 120.0).abs() < 1e-9 && (us(0, 0.01) - 120.0).abs() < 1e-9);
        // By hand: 100 us / (√10 − 0.1) · (1 − 0.1) at one packet.
        assert!((us(0, 1.0) - (20.0 + 90.0 / (10f64.sqrt() - 0.1))).abs() < 1e-9);
    }

    #[test]
    fn whole_packets_raise_the_target_in_steps() {
        let config = Swift { fs_whole_packets: true, ..Swift::default() };
        assert_eq!(config.target(0, 5.9).to_bits(), Swift::default().target(0, 5.0).to_bits());
        assert_eq!(config.target(0, 0.9).to_bits(), 120e6f64.to_bits());
    }

    #[test]
    fn below_the_target_a_round_trip_adds_a_packet_and_above_it_the_excess_is_taken_once() {
        let (config, mut state) = large();
        assert!(!state.react(&config, &after(39, 0)));
        assert_eq!(state.window(), 100_010);
        // 50 us are a fifth above 40: the window shrinks by 0.8 · 0.2.
        assert!(state.react(&config, &after(50, 100)));
        assert_eq!(state.window(), 84_008);
        // For a round trip it does so no more; its target has grown a little with the smaller window.
        assert!(!state.react(&config, &after(50, 149)));
        assert!(state.react(&config, &after(50, 150)));
    }

    #[test]
    fn no_decrease_takes_more_than_half_and_losses_take_that() {
        let (config, mut state) = large();
        state.react(&config, &after(4000, 0));
        assert_eq!(state.window(), 50_000);
        let loss = |cause, us| Feedback { cause, now: Time::from_us(us), packets: 0, ..ack_of(0) };
        assert!(!state.react(&config, &loss(Cause::Loss, 3999)));
        assert!(state.react(&config, &loss(Cause::Loss, 4000)));
        assert_eq!(state.window(), 25_000);
        // The fifth timeout in a row leaves the least window: a hundredth of a packet.
        let seen = [1, 2, 3, 4, 5].map(|n| {
            state.react(&config, &loss(Cause::Timeout, 4000 + 4000 * n));
            state.window()
        });
        assert_eq!(seen, [12_500, 6_250, 3_125, 1_562, 10]);
    }

    #[test]
    fn a_window_below_a_packet_grows_by_whole_increments() {
        let config = Swift { min_window: 0.25, ..Swift::default() };
        let mut state = State::new(&config, Bytes(1000));
        state.window.packets = 0.25;
        state.react(&config, &after(30, 0));
        assert_eq!(state.window(), 1250);
    }

    /// The ACKs of a flow that is sprayed over five paths, of which some take 50 us instead of 30; the target is 40.
    fn sprayed(median_of: Option<u32>, slow: u64) -> Vec<u64> {
        let (config, mut state) = large();
        let config = Swift { median_of, ..config };
        let one = |ack| {
            // An odd median needs a full cycle of paths before it.
            let rtt = if (3 * ack) % 5 < slow { 50 } else { 30 };
            state.react(&config, &after(rtt, ack));
            state.window()
        };
        (0..2000).map(one).collect()
    }

    /// The provable part of `MSwift`: what less than half of the paths say does nothing, what more than half say is all that counts.
    #[test]
    fn a_median_goes_by_most_of_the_paths() {
        let (idle, full) = (sprayed(None, 0), sprayed(None, 5));
        let half = idle[1999] / 2;
        // The first ACKs are too few for a majority.
        let skip = 31;
        for slow in [1, 2] {
            let (median, latest) = (sprayed(Some(25), slow), sprayed(None, slow));
            assert!(median[skip..].is_sorted(), "{slow}: it never shrinks");
            assert!(median[1999] > half && latest[1999] < half, "{slow}: {} {}", median[1999], latest[1999]);
        }
        for slow in [3, 4] {
            let median = sprayed(Some(25), slow);
            assert!(median[1999] <= 2 * full[1999], "{slow}: {} {}", median[1999], full[1999]);
        }
    }

    #[test]
    fn senseless_values_name_their_field() {
        let config = Swift::default;
        assert_eq!(config().check(), Ok(()));
        for (config, field) in [
            (Swift { base_delay: Time::ZERO, ..config() }, "base_delay"),
            (Swift { fs_min_window: 0.0, ..config() }, "fs_min_window"),
            (Swift { fs_max_window: 0.1, ..config() }, "fs_max_window"),
            (Swift { ai: 0.0, ..config() }, "ai"),
            (Swift { beta: 2.0, ..config() }, "beta"),
            (Swift { max_mdf: 0.0, ..config() }, "max_mdf"),
            (Swift { min_window: 0.0, ..config() }, "min_window"),
            (Swift { median_of: Some(0), ..config() }, "median_of"),
        ] {
            assert_eq!(config.check().unwrap_err().field, field);
        }
    }
}
