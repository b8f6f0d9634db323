//! NSCC: the congestion control at the sender of Ultra Ethernet's transport.
//!
//! Each ACK says whether its packet was marked (m) and how long it was delayed (d). The two together choose what happens:
//!
//! ```text
//!              d below the target                          d at the target or above
//!   no mark    grow in proportion to the distance from     grow a little, the same for all flows
//!              the target; fast once there is no delay
//!   mark       nothing: another path will do               shrink, at most once per round trip, by how far the average
//!                                                          delay exceeds the target
//! ```
//!
//! Besides, a *quick adapt* sets the window to what was delivered in a round trip, if that is a small part of what the window could hold and
//! there is a loss or a large delay. What was in flight then is ignored as far as it is marked.
//!
//! Where one formula reads what another one writes, the order is that of the public simulator, and so is the rounding: bytes and picoseconds
//! are integers.

use netloom_units::{Bytes, Invalid, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::median::{self, Latest};
use super::window::AdaptiveWindow;
use super::{CongestionConfig, Facts, Limit, Marks, SlowedBy, Start};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::{PathFacts, Queueing};

/// NSCC, the network-signal-based congestion control of Ultra Ethernet (UEC specification 1.0; constants and corner cases as in the public
/// simulator uet-htsim, commit 40ccb05, `uec.cpp`; SMaRTT, arXiv 2404.01630, is where it comes from). A window that marks and delays move
/// together: an unmarked packet below the target delay lets it grow in proportion to the distance, one above it a little; a marked packet
/// shrinks it if the average delay is above the target, at most once per round trip; and if little was delivered in a round trip with a loss
/// or a large delay, the window becomes what was delivered (quick adapt). Trimmed packets take their size from it. Needs a fabric that
/// marks; packets may take any paths, as their order does not matter to it. Usually with `reliability = "pds"` (the preset `uet-nscc`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Nscc {
    /// Round-trip time T of the whole network, from which the window and all constants follow; absent: that of a full packet and its ACK
    /// on the longest idle path between hosts, as in uet-htsim. (In networks of more than 256 edge switches, the longest of 65,536 paths that begin
    /// at evenly spread hosts.)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_rtt: Option<Time>,
    /// Delay in queues at which growth turns into shrinking (uet-htsim: `-target_q_delay`); absent: 0.75 T where the fabric trims, T where
    /// it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_delay: Option<Time>,
    /// First window in full packets; absent: the largest window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Largest window in bandwidth-delay products of the flow's minimum round-trip time (uet-htsim: 1.5).
    pub max_window: f64,
    /// Growth below the target: this many packets per window at no delay, in a network of 100 Gb/s and 12 us; larger in proportion to the
    /// bandwidth-delay product (uet-htsim: alpha = 4).
    pub proportional: f64,
    /// Growth above the target, in the same measure (uet-htsim: fi = 5).
    pub fair: f64,
    /// What is added once per T whatever the delays, in the same measure (uet-htsim: eta = 0.15).
    pub steady: f64,
    /// Growth without any delay: this part of what is delivered, in the same measure (uet-htsim: fi_scale = 0.25).
    pub fast: f64,
    /// How much of the excess of the average delay over the target is taken from the window, which never loses more than half at once
    /// (uet-htsim: gamma = 0.8).
    pub gamma: f64,
    /// Weight of the newest delay in the average (uet-htsim: 0.0125).
    pub weight: f64,
    /// A quick adapt needs that less than the largest window divided by two to this power was delivered (uet-htsim: `-qa_gate` 3).
    pub quick_adapt_gate: u32,
    /// Whether there is a quick adapt.
    pub quick_adapt: bool,
    /// Go by the median round-trip time of the latest ACKs (as many as the window holds packets, at most this number), and by whether more than half of them were marked: `MNSCC`
    /// (Gerstein, Silberstein and Keslassy, arXiv 2509.07907), for sprayed packets of which less than half meet congestion. Absent: by the latest ACK. How many ACKs the paper takes is
    /// not known to us; the preset `mnscc` has 31, which is our choice. One ACK for several packets counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_of: Option<u32>,
}

impl Default for Nscc {
    /// The constants of uet-htsim.
    fn default() -> Self {
        Nscc {
            network_rtt: None,
            target_delay: None,
            initial_window: None,
            max_window: 1.5,
            proportional: 4.0,
            fair: 5.0,
            steady: 0.15,
            fast: 0.25,
            gamma: 0.8,
            weight: 0.0125,
            quick_adapt_gate: 3,
            quick_adapt: true,
            median_of: None,
        }
    }
}

/// The bandwidth-delay product in whose measure growth is written: 100 Gb/s and 12 us.
const REFERENCE: f64 = 150_000.0;
const REFERENCE_RTT: Time = Time::from_us(12);

/// Below this delay a path counts as empty.
const NO_DELAY: u64 = Time::from_us(1).0;

/// This many full packets delivered add up what growth has gathered, if no round trip has passed before.
const ADJUST_PACKETS: u64 = 8;

/// A quick adapt needs a loss, or a delay of this many targets.
const LARGE_DELAY: u64 = 4;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; saturates, and drops what is less than a byte or a picosecond as intended"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

impl Nscc {
    /// T, or that of the path where nothing is known of the network.
    fn rtt(&self, path: PathFacts) -> Time {
        self.network_rtt.unwrap_or(path.base_rtt)
    }

    fn most(&self, base_rtt: Time, rate: Rate) -> u64 {
        whole(self.max_window * rate.bytes_in(base_rtt).0 as f64)
    }

    /// The first window.
    fn first(&self, packet: Bytes, path: PathFacts) -> u64 {
        let most = self.most(self.rtt(path), path.rate);
        let first = self.initial_window.map_or(most, |packets| packet.0.saturating_mul(packets.into()));
        first.max(packet.0)
    }

    fn state(&self, start: Start) -> State {
        let Start { path, packet, payload, .. } = start;
        let rtt = self.rtt(path);
        let share = if path.trims { 0.75 } else { 1.0 };
        let target = self.target_delay.map_or(whole(rtt.0 as f64 * share), |target| target.0).max(1);
        // How much larger the network is than the one in which growth is written.
        let scale = path.rate.bytes_in(rtt).0 as f64 / REFERENCE;
        let (delay, unit) = (target as f64 / REFERENCE_RTT.0 as f64, payload.0 as f64 * scale);
        State {
            packet: packet.0,
            rate: path.rate,
            rtt: rtt.0,
            target,
            proportional: self.proportional * unit * delay / target as f64,
            fair: self.fair * unit,
            steady: whole(self.steady * unit),
            fast: self.fast * scale,
            base_rtt: rtt.0,
            most: self.most(rtt, path.rate),
            window: self.first(packet, path),
            gathered: 0,
            delivered: 0,
            average: 0,
            undelayed: 0,
            is_fast: false,
            achieved: 0,
            ignored: 0,
            to_ignore: 0,
            is_triggered: false,
            adapts_after: None,
            adjusted: None,
            shrunk: None,
            latest: Latest::default(),
        }
    }
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// A full packet on the wire: the least window.
    packet: u64,
    rate: Rate,
    /// T, in picoseconds like all times here.
    rtt: u64,
    /// The target delay.
    target: u64,
    /// Growth per byte and picosecond below the target, per byte above it, and per T: each but the last is divided by the window before it is added.
    proportional: f64,
    fair: f64,
    steady: u64,
    /// Growth per byte where there is no delay.
    fast: f64,
    /// The least round-trip time seen, and the largest window that follows from it.
    base_rtt: u64,
    most: u64,
    window: u64,
    /// Growth since it was last added to the window, multiplied by the window; and bytes delivered since.
    gathered: u64,
    delivered: u64,
    /// The average delay.
    average: u64,
    /// Bytes delivered without delay, one after the other; and whether the window grows fast because of them.
    undelayed: u64,
    is_fast: bool,
    /// Bytes delivered since the last look at whether to adapt.
    achieved: u64,
    /// Marked ACKs are ignored until that many bytes have been delivered since the last quick adapt.
    ignored: u64,
    to_ignore: u64,
    /// A packet was lost since the last quick adapt.
    is_triggered: bool,
    adapts_after: Option<Time>,
    /// When growth was last added with the steady part, and when the window last shrank.
    adjusted: Option<Time>,
    shrunk: Option<Time>,
    latest: Latest,
}

impl State {
    fn clamp(&mut self) {
        self.window = self.window.max(self.packet).min(self.most.max(self.packet));
    }

    /// A round trip was measured.
    fn learn_rtt(&mut self, config: &Nscc, rtt: Time) {
        if rtt.0 < self.base_rtt {
            self.base_rtt = rtt.0;
            self.most = config.most(rtt, self.rate);
        }
    }

    /// A packet was delayed by `delay`.
    fn average_in(&mut self, config: &Nscc, delay: u64, marked: bool) {
        // A delay without a mark comes from paths that congestion has left since: it counts as a small one.
        let sample = if !marked && delay > self.target { self.base_rtt as f64 * 0.25 } else { delay as f64 };
        self.average = whole(config.weight * sample + (1.0 - config.weight) * self.average as f64);
    }

    /// Whether the window was adapted at once, or this is about packets from before that.
    fn quick_adapt(
        &mut self,
        config: &Nscc,
        feedback: &Feedback,
        marked: bool,
        delay: u64,
        is_loss: bool,
    ) -> bool {
        if !config.quick_adapt {
            return false;
        }
        let mut is_over = false;
        if self.ignored < self.to_ignore && (marked || is_loss) {
            is_over = true;
        } else if self.adapts_after.is_none_or(|after| feedback.now > after) {
            let is_bad = self.is_triggered || is_loss || delay > LARGE_DELAY.saturating_mul(self.target);
            let little = self.most.checked_shr(config.quick_adapt_gate).unwrap_or(0);
            if self.adapts_after.is_some() && is_bad && self.achieved < little {
                self.window = self.achieved.max(self.packet);
                // What is reported missing is in flight until this is over.
                let in_flight = u64::from(feedback.in_flight) + u64::from(is_loss);
                (self.to_ignore, self.ignored) = (in_flight * self.packet, 0);
                self.is_triggered = false;
                is_over = true;
            }
            self.achieved = 0;
            let period = self.base_rtt.saturating_add(self.target);
            self.adapts_after = Some(feedback.now.saturating_add(Time(period)));
        }
        if is_over {
            (self.gathered, self.delivered) = (0, 0);
        }
        is_over
    }

    fn on_ack(&mut self, config: &Nscc, feedback: &Feedback) -> bool {
        let (before, bytes, now) = (self.window, feedback.bytes, feedback.now);
        self.achieved += bytes;
        self.delivered += bytes;
        self.ignored = self.ignored.saturating_add(bytes);
        let (mut delay, mut marked) = (self.average, feedback.marked);
        if feedback.is_sampled {
            self.learn_rtt(config, feedback.rtt);
            let mut rtt = feedback.rtt;
            if let Some(most) = config.median_of {
                let count = median::count(most, self.window as f64 / self.packet as f64);
                (rtt, marked) = self.latest.median(count, rtt, marked);
            }
            delay = rtt.0 - self.base_rtt;
            self.average_in(config, delay, marked);
        }
        if self.quick_adapt(config, feedback, marked, delay, false) {
            return self.window < before;
        }
        match (marked, delay >= self.target) {
            (false, true) => self.gather(self.fair * bytes as f64),
            (false, false) => self.grow(bytes, delay),
            (true, true) => self.shrink(config, now),
            (true, false) => {}
        }
        self.clamp();
        let is_due = self.adjusted.is_none_or(|last| now - last > Time(self.rtt));
        if self.delivered > ADJUST_PACKETS * self.packet || is_due {
            self.adjust(now);
        }
        self.clamp();
        self.window < before
    }

    fn gather(&mut self, growth: f64) {
        self.gathered = whole(self.gathered as f64 + growth);
    }

    /// Delivered with less delay than the target, and no mark.
    fn grow(&mut self, bytes: u64, delay: u64) {
        self.undelayed = if delay < NO_DELAY { self.undelayed + bytes } else { 0 };
        self.is_fast = delay < NO_DELAY && (self.is_fast || self.undelayed > self.window);
        if self.is_fast {
            self.window = whole(self.window as f64 + bytes as f64 * self.fast);
        } else {
            self.gather(self.proportional * bytes as f64 * (self.target - delay) as f64);
        }
    }

    /// Delivered with a mark, and delayed.
    fn shrink(&mut self, config: &Nscc, now: Time) {
        (self.is_fast, self.undelayed) = (false, 0);
        let may_shrink = self.shrunk.is_none_or(|last| now - last > Time(self.base_rtt));
        if self.average > self.target && may_shrink {
            let excess = (self.average - self.target) as f64 / self.average as f64;
            let shrunk = whole(self.window as f64 * (1.0 - config.gamma * excess).max(0.5));
            self.window = shrunk.max(self.packet);
            self.shrunk = Some(now);
        }
    }

    /// Adds what has been gathered to the window.
    fn adjust(&mut self, now: Time) {
        self.window += self.gathered / self.window;
        if self.adjusted.is_none_or(|last| now - last >= Time(self.rtt)) {
            self.window += self.steady;
            self.adjusted = Some(now);
        }
        (self.gathered, self.delivered) = (0, 0);
    }

    /// A packet was trimmed where the receiver's credit sees to it that this happens less often: the window does not shrink, unless quick adapt says so.
    pub(super) fn on_spared_loss(&mut self, config: &Nscc, feedback: &Feedback) -> bool {
        self.on_loss(config, feedback, true)
    }

    /// A packet was trimmed or is otherwise known to be lost.
    fn on_loss(&mut self, config: &Nscc, feedback: &Feedback, is_spared: bool) -> bool {
        let before = self.window;
        if feedback.is_sampled && matches!(feedback.cause, Cause::Trim | Cause::Return) {
            self.learn_rtt(config, feedback.rtt);
        }
        self.ignored = self.ignored.saturating_add(self.packet);
        // It counts as delayed by T: where a queue trims, it is about that long.
        self.average_in(config, self.rtt, true);
        self.is_triggered = true;
        if !self.quick_adapt(config, feedback, true, 0, true) && !is_spared {
            self.window = self.window.saturating_sub(self.packet);
            self.clamp();
        }
        self.window < before
    }
}

impl CongestionConfig for Nscc {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "NSCC",
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
        let times = [("network_rtt", self.network_rtt), ("target_delay", self.target_delay)];
        for (field, time) in times {
            Invalid::unless(time != Some(Time::ZERO), field, "more than 0", Time::ZERO)?;
        }
        Invalid::at_least("initial_window", self.initial_window.unwrap_or(1), 1)?;
        Invalid::positive("max_window", self.max_window)?;
        median::check(self.median_of)?;
        let growths = [
            ("proportional", self.proportional),
            ("fair", self.fair),
            ("steady", self.steady),
            ("fast", self.fast),
        ];
        for (field, growth) in growths {
            let is_valid = growth >= 0.0 && growth.is_finite();
            Invalid::unless(is_valid, field, "a number that is not negative", growth)?;
        }
        Invalid::unless((0.0..=1.0).contains(&self.gamma), "gamma", "0 to 1", self.gamma)?;
        let is_valid = self.weight > 0.0 && self.weight <= 1.0;
        Invalid::unless(is_valid, "weight", "above 0, at most 1", self.weight)?;
        let expected = "3, the default, without `quick_adapt`";
        let is_read = self.quick_adapt || self.quick_adapt_gate == Nscc::default().quick_adapt_gate;
        Invalid::unless(is_read, "quick_adapt_gate", expected, self.quick_adapt_gate)
    }

    fn network_rtt(&mut self) -> Option<&mut Option<Time>> {
        Some(&mut self.network_rtt)
    }

    fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
        let field = if self.initial_window.is_some() { "initial_window" } else { "max_window" };
        Some((field, Bytes(self.first(packet, path))))
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        self.state(start).open(gate)
    }
}

impl AdaptiveWindow for State {
    type Config = Nscc;

    const KNOWS_QUEUEING: bool = true;

    fn window(&self) -> u64 {
        self.window
    }

    fn react(&mut self, config: &Nscc, feedback: &Feedback) -> bool {
        match feedback.cause {
            Cause::Ack => self.on_ack(config, feedback),
            Cause::Trim | Cause::Return | Cause::Loss | Cause::Nack => self.on_loss(config, feedback, false),
            Cause::Timeout => {
                let before = self.window;
                self.window = self.window.saturating_sub(self.packet).max(self.packet);
                self.window < before
            }
            Cause::Notification | Cause::Unreachable => false,
        }
    }

    fn queueing(&self) -> Option<Queueing> {
        let (base_rtt, target, average) = (Time(self.base_rtt), Time(self.target), Time(self.average));
        Some(Queueing { base_rtt, target, average, most: self.most })
    }

    fn shrink_to_one(&mut self) {
        self.window = self.packet;
    }
}

#[cfg(test)]
mod tests;
