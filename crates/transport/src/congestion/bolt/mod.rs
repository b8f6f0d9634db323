//! Bolt: switches notify senders of queues at once, and say which packets may let a window grow.

mod port;

use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestionConfig, CongestionControl, Facts, Limit, Marks, SlowedBy, Start};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;
pub use port::{BoltPort, Meeting, SourceNotice};

/// Bolt (Arslan et al., NSDI'23; code: serhatarslan-hub/bolt_cc_ns3). A switch at one of whose ports `threshold` bytes wait returns a notice to the source of each packet that no switch before it has told of congestion (sub-RTT
/// control). The sender then takes a packet from its window, at most once in the round trip of notice and packet divided by its share of the packets that wait. Every ACK of a
/// packet that has kept its claim adds a packet: all packets claim one but those of a flow's first and last window, and a port lets a claim pass for a packet of a last window
/// that it has seen (proactive ramp-up), or for a packet's worth of time in which the link had nothing to send (supply matching). `increase` packets are added per round trip.
///
/// Switches do this in every network with `congestion = "bolt"`; they mark nothing for it. Notices have the size of an ACK and, as ACKs, go before data where `fabric.control_priority` is set.
///
/// As that code, with these differences: windows are counted in bytes on the wire and hold whole packets; the increase per round trip goes by packet numbers (the paper's algorithm 2), where the code marks a packet
/// and increases no more if that gets lost; notices alone slow a flow down between losses, while there an ACK does until the first notice has come; a NIC, where packets wait for their turn without a queue, gives no
/// notices. Packets carry their claim in the header field of the serialisation delay, so schemes that read that are refused. Needs an ACK for every packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bolt {
    /// Bytes that wait at a port from which on it notifies sources, the packet being sent not counted; absent: two full packets, as in the code's experiments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Bytes>,
    /// Whether packets of last windows let other flows' claims pass (PRU).
    pub proactive_ramp_up: bool,
    /// Most packets of last windows that a port remembers.
    pub max_pru_tokens: u32,
    /// Whether time in which a link had nothing to send lets claims pass (SM).
    pub supply_matching: bool,
    /// Most bytes of such time that a port remembers; absent: a full packet, as in the paper and all but one of the code's experiments, which has two. Less lets nothing pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_supply: Option<Bytes>,
    /// Packets that a round trip adds to the window.
    pub increase: f64,
    /// What a loss takes, as a share of the window and once per round trip; a notice takes it where the window holds no more than a packet.
    pub max_decrease: f64,
    /// Minimum window. Below a packet, single packets are spaced by round-trip time / window.
    pub min_window: Bytes,
    /// Largest window; absent: the first one, as in the code's experiments on fat trees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_window: Option<Bytes>,
    /// Round-trip time of which the first window is the bandwidth-delay product; absent: each flow's own on the idle fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_rtt: Option<Time>,
}

impl Default for Bolt {
    fn default() -> Self {
        Bolt {
            threshold: None,
            proactive_ramp_up: true,
            max_pru_tokens: 256,
            supply_matching: true,
            max_supply: None,
            increase: 1.0,
            max_decrease: 0.5,
            min_window: Bytes(15),
            max_window: None,
            base_rtt: None,
        }
    }
}

/// What a data packet claims, and what switches have said to that: [`Packet::serialisation`](../../../netloom_fabric/struct.Packet.html) has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim(u32);

impl Claim {
    /// Nothing: a packet of a flow's first window.
    pub const NONE: Claim = Claim(0);
    /// That its ACK adds a packet to the window.
    pub const GROWTH: Claim = Claim(1);
    /// Nothing, but its ACK will let no other packet out: one of a flow's last window.
    pub const LAST: Claim = Claim(2);
    /// Its source has been notified of congestion.
    const NOTIFIED: u32 = 4;

    /// As a packet carries it.
    #[inline]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// As a packet says.
    #[inline]
    pub fn from_bits(bits: u32) -> Self {
        Claim(bits)
    }

    fn is_notified(self) -> bool {
        self.0 & Claim::NOTIFIED != 0
    }

    /// Without growth, as its source has been notified.
    fn notified(self) -> Self {
        Claim(self.0 & !Claim::GROWTH.0 | Claim::NOTIFIED)
    }

    fn without_growth(self) -> Self {
        Claim(self.0 & !Claim::GROWTH.0)
    }

    fn grows(self) -> bool {
        self.0 & Claim::GROWTH.0 != 0
    }

    fn is_last(self) -> bool {
        self.0 & Claim::LAST.0 != 0
    }
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Bytes on the wire.
    window: f64,
    least: f64,
    most: f64,
    /// A full packet on the wire.
    packet: f64,
    /// The NIC's rate, in bytes per picosecond.
    line: f64,
    /// The last round-trip time, in picoseconds.
    rtt: Option<f64>,
    /// When the window last shrank, or the flow began.
    shrank: Time,
    /// The window grows once more with the ACK of a packet from this number on.
    round: u32,
}

impl State {
    fn new(config: &Bolt, start: Start) -> Self {
        let packet = start.packet.0 as f64;
        let first = config.first(start.packet, start.path).0 as f64;
        let least = config.min_window.0 as f64;
        let most = config.max_window.map_or(first, |most| most.0 as f64).max(least);
        State {
            window: first.min(most),
            least,
            most,
            packet,
            line: start.path.rate.0 as f64 / 8e12,
            rtt: None,
            shrank: start.now,
            round: 0,
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    fn window(&self) -> u64 {
        self.window as u64
    }

    /// Returns whether the window is cut.
    fn react(&mut self, config: &Bolt, feedback: &Feedback) -> bool {
        let before = self.window;
        match feedback.cause {
            Cause::Ack => {
                self.rtt = Some(feedback.rtt.0 as f64);
                if feedback.seq >= self.round {
                    self.round = feedback.next;
                    self.window += config.increase * self.packet;
                }
                if claim_of(feedback).grows() {
                    self.window += self.packet;
                }
                self.window = self.window.clamp(self.least, self.most);
            }
            Cause::Nack | Cause::Loss | Cause::Timeout | Cause::Trim | Cause::Return => {
                if (feedback.now - self.shrank).0 as f64 >= self.rtt.unwrap_or(0.0) {
                    self.window = (self.window * (1.0 - config.max_decrease)).max(self.least);
                    self.shrank = feedback.now;
                }
            }
            Cause::Notification | Cause::Unreachable => {}
        }
        self.window < before
    }

    /// A switch notifies of congestion. Returns whether the window is cut.
    fn on_notice(&mut self, config: &Bolt, now: Time, notice: SourceNotice) -> bool {
        let before = self.window;
        if self.window <= self.packet {
            self.window *= 1.0 - config.max_decrease;
        } else {
            let rate = self.rtt.map_or(self.line, |rtt| self.window / rtt);
            // What the flow has in the queue, in packets, if it has the same share of that as of the link.
            let share = rate * notice.drain.0 as f64 / self.packet;
            let interval = (now - notice.sent).0 as f64 / share;
            if (now - self.shrank).0 as f64 >= interval {
                self.window -= self.packet;
                self.shrank = now;
            }
        }
        self.window = self.window.max(self.least);
        self.window < before
    }

    /// What a packet claims that leaves while so much is unsent, itself included.
    fn claim(&self, unsent: Bytes) -> Claim {
        if self.rtt.is_none() {
            Claim::NONE
        } else if self.window >= unsent.0 as f64 {
            Claim::LAST
        } else {
            Claim::GROWTH
        }
    }
}

/// What the ACK's packet claimed, and switches let pass.
fn claim_of(feedback: &Feedback) -> Claim {
    // Where congestion control asks for it, that is what packets carry there.
    Claim::from_bits(u32::try_from(feedback.serialisation.0).unwrap_or(0))
}

impl Bolt {
    /// The first window on a path.
    fn first(&self, packet: Bytes, path: PathFacts) -> Bytes {
        path.whole_packets_in(self.base_rtt.unwrap_or(path.base_rtt), packet)
    }
}

impl CongestionConfig for Bolt {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "Bolt",
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
            target_delay: None,
            acts_on: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("threshold", self.threshold.unwrap_or(Bytes(1)), Bytes(1))?;
        Invalid::at_least("max_pru_tokens", self.max_pru_tokens, 1)?;
        Invalid::at_least("max_supply", self.max_supply.unwrap_or(Bytes(1)), Bytes(1))?;
        Invalid::unless(
            self.increase >= 0.0 && self.increase.is_finite(),
            "increase",
            "a number of at least 0",
            self.increase,
        )?;
        let is_share = self.max_decrease > 0.0 && self.max_decrease < 1.0;
        Invalid::unless(is_share, "max_decrease", "a number above 0 and below 1", self.max_decrease)?;
        Invalid::at_least("min_window", self.min_window, Bytes(1))?;
        Invalid::at_least("max_window", self.max_window.unwrap_or(self.min_window), self.min_window)?;
        Invalid::at_least("base_rtt", self.base_rtt.unwrap_or(Time(1)), Time(1))
    }

    fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
        let first = self.first(packet, path);
        match self.max_window {
            Some(most) if most < first => Some(("max_window", most)),
            _ => self.base_rtt.map(|_| ("base_rtt", first)),
        }
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        let state = State::new(self, start);
        gate.set_window(state.window());
        state
    }
}

impl CongestionControl for State {
    type Config = Bolt;

    const LEARNS: bool = true;
    const SHRINKS_BELOW_A_PACKET: bool = true;
    const CHOOSES_PATHS: bool = false;

    #[inline]
    fn on_feedback(&mut self, config: &Bolt, feedback: &Feedback, gate: &mut Gate) -> bool {
        let is_cut = self.react(config, feedback);
        gate.set_window(self.window());
        is_cut
    }

    #[inline]
    fn on_sent(&mut self, _: Time, _: u64, _: &mut Gate) {}

    fn begin_with_one(&mut self, gate: &mut Gate) {
        self.window = self.window.min(self.packet);
        gate.set_window(self.window());
    }

    fn claim(&self, unsent: Bytes) -> Claim {
        State::claim(self, unsent)
    }

    fn on_source_notice(&mut self, config: &Bolt, now: Time, notice: SourceNotice, gate: &mut Gate) -> bool {
        let is_cut = self.on_notice(config, now, notice);
        gate.set_window(self.window());
        is_cut
    }
}

#[cfg(test)]
mod tests;
