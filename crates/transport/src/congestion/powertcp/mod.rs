//! PowerTCP: a window that goes by the power of the fullest link of its path, and the same by round-trip times alone.
//!
//! The arrival rate at a link is its *current* λ, what it has in flight and waiting its *voltage* ν; the *power* Γ = λν says at once how much there is and how that changes. Of the
//! power of a link that is just full, b²τ, it is 1 in equilibrium, and the window follows
//!
//! ```text
//!   window ← γ (window of a round trip ago / Γ + β) + (1 − γ) window
//! ```
//!
//! In equilibrium a flow keeps its β in the queue: of n flows together Σβ bytes wait.

pub mod theta;

use netloom_units::{Bytes, Invalid, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::telemetry::{BITS, Interval, Telemetry, float};
use super::{CongestionConfig, CongestionControl, Facts, Limit, Marks, SlowedBy, Start};
use crate::feedback::{Cause, Feedback, LinkState};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// PowerTCP (Addanki, Michel and Schmid, NSDI'22, algorithm 1): a window from in-band telemetry, as HPCC's. Of each link of the path, from two ACKs: the rate λ at which
/// bytes came (those that left, and those by which the queue grew), times what waits and what the link holds in a round trip. That, of a link at rate b of which no
/// more comes than leaves and for which nothing waits, is b²τ; the largest ratio, smoothed over a round trip τ, divides the window of a round trip ago, and β is added.
/// Flows start at the line's rate, are paced at window / `base_rtt`, and no window is larger than the first. Losses and marks do nothing.
///
/// What the paper leaves open is as in its authors' programs: the window of a round trip ago is remembered once per round trip and the first power is not smoothed, as in their Linux module
/// (inet-tub/powertcp-linux), and no arrival rate counts as less than half of the link's (`least_current`), as in their ns-3 model (inet-tub/ns3-datacenter), which also aims at 95% of the link. An
/// ACK that came over another path than the one before only restarts the comparison.
///
/// Telemetry is exact and adds `telemetry` to every data packet and ACK, as for `hpcc`; granularities that spread a flow's packets over several paths are
/// refused. No marks are needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PowerTcp {
    /// Weight γ of the newest window (paper and Linux module: 0.9).
    pub gamma: f64,
    /// Flows N that share the host's link: β is the first window divided by N (Linux module: `expected_flows` 10).
    pub flows: u32,
    /// Least arrival rate, as a share of the link's rate (authors' ns-3 model: 0.5). 0: the paper's equation alone, with which few flows swing within a round trip and leave a twentieth of their
    /// link unused.
    pub least_current: f64,
    /// Round-trip time τ that windows and power are computed with; absent: each flow's own on the idle fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_rtt: Option<Time>,
    /// What telemetry adds to every data packet and every ACK on the wire: HPCC's header for five links.
    pub telemetry: Bytes,
}

impl Default for PowerTcp {
    fn default() -> Self {
        PowerTcp { gamma: 0.9, flows: 10, least_current: 0.5, base_rtt: None, telemetry: Bytes(42) }
    }
}

/// What both forms do with a power.
#[derive(Clone, Debug)]
struct Law {
    /// γ.
    gamma: f64,
    /// τ, in picoseconds.
    base_rtt: f64,
    /// The first window, and the largest, in bytes.
    most: f64,
    /// β, in bytes.
    step: f64,
    /// In bytes.
    window: f64,
    /// A full packet.
    packet: u64,
    /// Γ, smoothed over τ; absent before the first one.
    power: Option<f64>,
}

impl Law {
    /// A flow that starts at the line's rate.
    fn new(gamma: f64, flows: u32, base_rtt: Option<Time>, start: Start) -> Self {
        let base_rtt = base_rtt.unwrap_or(start.path.base_rtt).max(Time(1)).0 as f64;
        let most = start.path.rate.0 as f64 * base_rtt / BITS;
        let step = most / f64::from(flows);
        Law { gamma, base_rtt, most, step, window: most, packet: start.packet.0, power: None }
    }

    /// Adds the power of an interval, whose length is in picoseconds.
    fn smooth(&mut self, power: f64, elapsed: f64) -> f64 {
        let weight = elapsed.min(self.base_rtt) / self.base_rtt;
        let before = self.power.unwrap_or(power);
        let smoothed = before * (1.0 - weight) + power * weight;
        self.power = Some(smoothed);
        smoothed
    }

    /// The window follows the power. A link to which nothing has come for a round trip has none, and the window becomes the largest.
    fn set_window(&mut self, reference: f64, power: f64) {
        let aim = if power > 0.0 { reference / power } else { self.most };
        self.window = (self.gamma * (aim + self.step) + (1.0 - self.gamma) * self.window).min(self.most);
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to the first window; saturates"
    )]
    fn window(&self) -> u64 {
        self.window as u64
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to the rate of the line; saturates"
    )]
    fn rate(&self) -> Rate {
        Rate(((self.window * BITS / self.base_rtt) as u64).max(1))
    }

    /// Opens a gate as far as the window and the pace allow. As in the simulators of HPCC and PowerTCP a packet may begin while less than the window is in flight.
    fn open(&self, gate: &mut Gate, now: Time) {
        gate.set_window(self.window().max(1).next_multiple_of(self.packet));
        gate.set_rate(now, self.rate());
    }
}

/// What both forms declare.
fn facts(title: &'static str, telemetry: Option<Bytes>) -> Facts<'static> {
    Facts {
        title,
        limit: Limit::Rate,
        grows: false,
        needs_acks: true,
        marks: Marks::Optional,
        slowed_by: SlowedBy::MoreThanMarks,
        coupled: false,
        cnp_interval: None,
        telemetry,
        pulls: None,
        reaction_point: None,
        needs_trimming: None,
        max_rate: None,
        target_delay: None,
        acts_on: None,
    }
}

fn check(gamma: f64, flows: u32, least_current: f64, base_rtt: Option<Time>) -> Result<(), Invalid> {
    let is_weight = gamma > 0.0 && gamma <= 1.0;
    Invalid::unless(is_weight, "gamma", "a number above 0 and at most 1", gamma)?;
    Invalid::unless((0.0..=1.0).contains(&least_current), "least_current", "0 to 1", least_current)?;
    Invalid::at_least("flows", flows, 1)?;
    Invalid::at_least("base_rtt", base_rtt.unwrap_or(Time(1)), Time(1))
}

/// The first window that `base_rtt` says, in whole packets.
fn first_window(base_rtt: Option<Time>, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
    base_rtt.map(|rtt| ("base_rtt", path.whole_packets_in(rtt, packet)))
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(crate) struct State {
    law: Law,
    /// Least current, as a share of the link's rate.
    least: f64,
    /// The window once per round trip: what it was when the packets that are acknowledged now were sent.
    reference: f64,
    /// The reference moves with the ACK of a packet from this number on.
    round: u32,
    telemetry: Telemetry,
}

impl State {
    fn new(config: &PowerTcp, start: Start) -> Self {
        let law = Law::new(config.gamma, config.flows, config.base_rtt, start);
        State {
            reference: law.window,
            law,
            least: config.least_current,
            round: 0,
            telemetry: Telemetry::default(),
        }
    }

    /// Returns whether the window is cut.
    fn react(&mut self, feedback: &Feedback) -> bool {
        if feedback.cause != Cause::Ack || !self.telemetry.is_there() {
            return false;
        }
        if self.telemetry.is_first() {
            self.round = feedback.next;
        }
        let (base_rtt, least) = (self.law.base_rtt, self.least);
        let Some((power, elapsed)) = self.telemetry.largest(|interval| power(interval, base_rtt, least))
        else {
            return false;
        };
        let before = self.law.window;
        let smoothed = self.law.smooth(power, elapsed);
        self.law.set_window(self.reference, smoothed);
        if feedback.seq >= self.round {
            (self.round, self.reference) = (feedback.next, self.law.window);
        }
        self.law.window < before
    }
}

/// The power of a link, of that which it has when it is just full.
fn power(interval: Interval, base_rtt: f64, least: f64) -> f64 {
    let Interval { elapsed, rate, carried, queued: [before, now] } = interval;
    let current = ((carried + float(now) - float(before)) / elapsed).max(least * rate);
    let voltage = float(now) + rate * base_rtt;
    current * voltage / (rate * rate * base_rtt)
}

impl CongestionConfig for PowerTcp {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        facts("PowerTCP", Some(self.telemetry))
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
    type Config = PowerTcp;

    const LEARNS: bool = true;
    const SHRINKS_BELOW_A_PACKET: bool = false;
    const CHOOSES_PATHS: bool = false;

    #[inline]
    fn on_feedback(&mut self, _: &PowerTcp, feedback: &Feedback, gate: &mut Gate) -> bool {
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

    fn on_telemetry(&mut self, links: impl Iterator<Item = LinkState>) {
        self.telemetry.receive(links);
    }
}

#[cfg(test)]
mod tests;
