//! θ-PowerTCP: power from round-trip times.

use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Law, check, facts, first_window};
use crate::congestion::{CongestionConfig, CongestionControl, Facts, Start};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// θ-PowerTCP (Addanki, Michel and Schmid, NSDI'22, algorithm 2): PowerTCP without help of switches. A round-trip time θ says how much waits, and its derivative how
/// that changes: of a link that is just full the power is (dθ/dt + 1) θ / τ. Every ACK is smoothed into it over a round trip τ, and once per round trip it divides the
/// window and β is added. The paper does so with telemetry as with `powertcp`, but this sees only the sum of all queues of the path and back.
///
/// Losses change no window, as in both programs of its authors: the Linux module has no slow-start threshold and no other reaction, and the ns-3 model's NACKs only send again. A window that is too large
/// for the queues shrinks by the round-trip times of what arrives. Needs no marks and no telemetry. Meant for paths that a flow keeps for a while: the difference of the round-trip times of two paths looks like a queue that grows or
/// empties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ThetaPowerTcp {
    /// Weight γ of the newest window (paper and Linux module: 0.9; the authors' ns-3 model has 0.7).
    pub gamma: f64,
    /// Flows N that share the host's link: β is the first window divided by N (Linux module: `expected_flows` 10).
    pub flows: u32,
    /// Least value of dθ/dt + 1, which is the arrival rate as a share of the link's (authors' ns-3 model: 0.5; their Linux module: 1). 0: the paper's equation alone, with which queues of six flows and
    /// more stay several times longer than they should be.
    pub least_current: f64,
    /// Round-trip time τ that windows and power are computed with; absent: each flow's own on the idle fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_rtt: Option<Time>,
}

impl Default for ThetaPowerTcp {
    fn default() -> Self {
        ThetaPowerTcp { gamma: 0.9, flows: 10, least_current: 0.5, base_rtt: None }
    }
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(super) law: Law,
    /// Least dθ/dt + 1.
    least: f64,
    /// The last round-trip time, and when it was measured.
    last: Option<(Time, Time)>,
    /// The window changes with the ACK of a packet from this number on, which was sent when it had last changed.
    round: u32,
}

impl State {
    pub(super) fn new(config: &ThetaPowerTcp, start: Start) -> Self {
        let law = Law::new(config.gamma, config.flows, config.base_rtt, start);
        State { law, least: config.least_current, last: None, round: 0 }
    }

    /// Returns whether the window is cut.
    pub(super) fn react(&mut self, feedback: &Feedback) -> bool {
        if feedback.cause != Cause::Ack || !feedback.is_sampled {
            return false;
        }
        let (now, rtt) = (feedback.now, feedback.rtt);
        let Some((before, at)) = self.last else {
            (self.last, self.round) = (Some((rtt, now)), feedback.next);
            return false;
        };
        if now <= at {
            return false;
        }
        self.last = Some((rtt, now));
        let elapsed = (now - at).0 as f64;
        let gradient = (rtt.0 as f64 - before.0 as f64) / elapsed;
        let power = (gradient + 1.0).max(self.least) * rtt.0 as f64 / self.law.base_rtt;
        let smoothed = self.law.smooth(power, elapsed);
        if feedback.seq < self.round {
            return false;
        }
        self.round = feedback.next;
        let window = self.law.window;
        self.law.set_window(window, smoothed);
        self.law.window < window
    }
}

impl CongestionConfig for ThetaPowerTcp {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        facts("θ-PowerTCP", None)
    }

    fn check(&self) -> Result<(), Invalid> {
        check(self.gamma, self.flows, self.least_current, self.base_rtt)
    }

    fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
        first_window(self.base_rtt, packet, path)
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        let state = State::new(self, start);
        state.law.open(gate, start.now);
        state
    }
}

impl CongestionControl for State {
    type Config = ThetaPowerTcp;

    const LEARNS: bool = true;
    const SHRINKS_BELOW_A_PACKET: bool = false;
    const CHOOSES_PATHS: bool = false;

    #[inline]
    fn on_feedback(&mut self, _: &ThetaPowerTcp, feedback: &Feedback, gate: &mut Gate) -> bool {
        let before = self.law.window();
        let is_cut = self.react(feedback);
        if self.law.window() != before {
            self.law.open(gate, feedback.now);
        }
        is_cut
    }

    #[inline]
    fn on_sent(&mut self, now: Time, bytes: u64, gate: &mut Gate) {
        gate.on_sent(now, bytes);
    }

    fn begin_with_one(&mut self, _: &mut Gate) {}
}
