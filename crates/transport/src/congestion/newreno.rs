//! NewReno's window: additive increase, multiplicative decrease.

use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Bytes, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reno::Reno;
use super::window::AdaptiveWindow;
use super::{CongestionConfig, Facts, Limit, Marks, SlowedBy, Start, window};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// TCP NewReno: slow start, congestion avoidance, and one halving per window with losses (RFC 5681, RFC 6582); what is in flight is counted
/// packet by packet (RFC 6675), so that a window of many losses is repaired within few round trips.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewReno {
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
    /// Whether ECN marks halve the window, too, once per window (RFC 3168).
    pub ecn: bool,
    /// Whether the windows of a flow's subflows grow together beyond slow start, so that they take no more than one TCP on the best of
    /// their paths: MPTCP's linked increases, LIA (RFC 6356). A flow without subflows is not affected.
    pub coupled: bool,
}

impl Default for NewReno {
    fn default() -> Self {
        NewReno {
            initial_window: 10,
            initial_ssthresh: None,
            min_window: 1.0,
            max_window: None,
            ecn: true,
            coupled: false,
        }
    }
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(crate) struct State {
    reno: Reno,
}

impl NewReno {
    fn state(&self, packet: Bytes) -> State {
        State {
            reno: Reno::new(
                packet,
                self.initial_window,
                self.min_window,
                self.max_window,
                self.initial_ssthresh,
            ),
        }
    }
}

impl AdaptiveWindow for State {
    type Config = NewReno;

    #[inline]
    fn window(&self) -> u64 {
        self.reno.window()
    }

    fn react(&mut self, config: &NewReno, feedback: &Feedback) -> bool {
        if feedback.cause != Cause::Ack {
            return self.reno.on_loss(feedback);
        }
        let is_cut = feedback.marked && config.ecn && self.reno.is_after_cut(feedback);
        match is_cut {
            true => self.reno.scale(0.5, feedback),
            false => self.reno.on_ack(feedback, feedback.marked && config.ecn),
        }
        is_cut
    }

    fn shrink_to_one(&mut self) {
        self.reno.begin_with_one();
    }

    fn limit_growth(&mut self, per_byte: f64) {
        self.reno.couple(per_byte);
    }

    fn recur(&mut self, _: &NewReno, walk: &mut Walk) {
        let State { reno } = self;
        reno.recur(walk);
    }
}

impl CongestionConfig for NewReno {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "NewReno",
            limit: Limit::Window,
            grows: true,
            needs_acks: true,
            marks: Marks::Optional,
            slowed_by: SlowedBy::MoreThanMarks,
            coupled: self.coupled,
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

    /// Twice as much per round trip up to the threshold, a packet per round trip beyond (RFC 5681).
    #[test]
    fn slow_start_ends_at_the_initial_threshold() {
        let windows = |initial_ssthresh| {
            let config = NewReno { initial_window: 4, initial_ssthresh, ..NewReno::default() };
            let mut state = config.state(Bytes(1000));
            [4, 8, 10, 11].map(|packets| {
                // All of a full window are acknowledged while as many follow.
                let ack = Feedback { packets: 1, bytes: 1000, in_flight: packets - 1, ..ack_of(0) };
                for _ in 0..packets {
                    state.react(&config, &ack);
                }
                state.window() / 100
            })
        };
        // A packet per window of ten, a little less as it grows.
        assert_eq!(windows(Some(10)), [80, 100, 109, 119]);
        assert_eq!(windows(None)[..2], [80, 160]);
        let config = NewReno { initial_ssthresh: Some(0), ..NewReno::default() };
        assert_eq!(config.check().unwrap_err().field, "initial_ssthresh");
    }
}
