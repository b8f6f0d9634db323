//! RCCC: the congestion control at the receiver of Ultra Ethernet's transport.
//!
//! ```text
//!   sender                                              receiver, one queue for all senders of a port
//!   sends a window of 1.5 bandwidth-delay products      a sender whose pull target is ahead of what it was granted
//!   at once; until something comes back it              waits in the active list: in its turn it gets a PULL worth
//!   speculates                                          4 packets, or what it lacks
//!   every packet says a pull target: how far the        one that has what it asked for waits in the idle list: when
//!   receiver should grant, counted from the flow's      none is active, it gets the same unasked (slow pulls),
//!   beginning, so that a lost one does no harm          up to a window ahead
//!   a PULL says how far it has granted: the             the next PULL follows when what this one grants can have
//!   difference is credit                                come in at 99% of the link's rate
//! ```
//!
//! Credit is counted in bytes and spent by whole packets, as long as there is any: it may end below zero, by less than a packet.
//! Pull targets and PULLs count quanta of 256 B, in 32 bits that go round.

mod oversubscribed;
mod pcie;
mod queue;

use netloom_units::{Bytes, Invalid, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::nscc::{self, Nscc};
use super::window::AdaptiveWindow;
use super::{Asking, CongestionConfig, CongestionControl, Facts, Limit, Marks, SlowedBy, Start};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;
pub use oversubscribed::{Oversubscribed, ReceiverRate};
pub use pcie::{HostBus, Pcie};
pub use queue::{CreditQueue, Grant};

/// RCCC, the receiver-credit congestion control of Ultra Ethernet (UEC specification 1.0; constants and corner cases as in the public simulator uet-htsim, commit 40ccb05, `uec.cpp`).
/// A flow sends a window at the NIC's rate without credit. What follows needs credit from the receiver: each packet says how much its sender could
/// use (its pull target), and the receiver
/// grants that with PULLs, to one sender in turn after the other, at the pace at which its link can take it. Senders that ask for nothing get credit in advance while no other sender asks.
///
/// Works with `reliability = "pds"` only, whose packets carry the pull target. They do so instead of the time that their serialisation took, which
/// flowcuts, PLB and others need: those are refused.
/// With `nscc` a packet needs credit and room in NSCC's window, and the pull target asks for no more than that window and a packet.
///
/// Data of a stream that comes while the flow has no credit, after its last packet has left, is asked for by a request (RTS, a packet of `ack_size` with its pull target) at once; in uet-htsim it waits for a timeout.
/// A flow without credit that loses packets, or PULLs, sends one after a retransmission timeout, at most one in a round-trip time of the
/// network; the receiver answers with an ACK and a PULL. In fabrics that do not trim, nothing but that repairs losses. Under PFC nothing is lost, and nothing but PAUSE frames slows the first windows down: credit then paces
/// what follows, so that pauses last until the queues of the first round trip have emptied.
///
/// PULLs are paced for each port of a receiver, not slowed down on degraded links, and all classes share them; they take the path of the packet that came last. A flow of which all has arrived
/// gets no more PULLs, where uet-htsim still grants it a window. Its requests take a packet number and are repeated if they get lost; here each has its own timeout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rccc {
    /// Round-trip time of the whole network, from which the window follows; absent: that of a full packet and its ACK on the longest idle path between hosts, as in uet-htsim. (In networks of
    /// more than 256 edge switches, the longest of 65,536 paths that begin at evenly spread hosts.) Holds for `nscc`, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_rtt: Option<Time>,
    /// What a flow sends without credit, the most credit that it has, and how far slow pulls run ahead, in bandwidth-delay products (uet-htsim: 1.5).
    pub max_window: f64,
    /// What a PULL grants at most, and a slow pull in any case, in quanta of 256 B (uet-htsim: 4 payloads of 4096 B, whatever the payload is).
    pub pull: Bytes,
    /// The pace of PULLs, as a share of what the receiver's link takes (uet-htsim: 0.99).
    pub pace: f64,
    /// NSCC at the sender besides (uet-htsim: `-sender_cc -receiver_cc`); absent: credit alone decides (`-receiver_cc_only`). Needs a fabric that marks. What is trimmed at the last hop then
    /// does not shrink the window, as credit takes care of that hop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nscc: Option<Nscc>,
    /// Receivers slow their PULLs down while packets are marked, or trimmed before the last hop; absent: only their links set the pace. uet-htsim does so where the network is oversubscribed
    /// and there is no NSCC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversubscribed: Option<Oversubscribed>,
    /// What arrives goes through a bus of the host, such as PCIe, that slows PULLs down while it has a backlog (uet-htsim: `-pcie`); absent: the host takes everything at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie: Option<Pcie>,
}

impl Default for Rccc {
    /// The constants of uet-htsim.
    fn default() -> Self {
        Rccc {
            network_rtt: None,
            max_window: 1.5,
            pull: Bytes(16_384),
            pace: 0.99,
            nscc: None,
            oversubscribed: None,
            pcie: None,
        }
    }
}

/// Bytes of a quantum, in which credit is asked for and granted.
const QUANTUM: u64 = 256;

/// What a PULL that grants nothing keeps the next one waiting for, in quanta: 1 KiB.
const EMPTY_PULL: u32 = 4;

/// Most bytes that a PULL may grant.
const MOST_PULL: u64 = 1 << 24;

/// Most bytes of a window: half of what pull targets can be apart.
const MOST_WINDOW: u64 = QUANTUM << 29;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
fn whole(value: f64) -> u64 {
    value as u64
}

impl Rccc {
    /// The window of a path: what is sent unasked, and the most credit.
    fn window(&self, path: PathFacts) -> u64 {
        let product = path.rate.bytes_in(self.network_rtt.unwrap_or(path.base_rtt)).0;
        whole(self.max_window * product as f64).min(MOST_WINDOW)
    }

    /// The same in quanta, as the receiver needs it.
    #[expect(clippy::cast_possible_truncation, reason = "a window has fewer than 2³² quanta: MOST_WINDOW")]
    pub fn quanta_ahead(&self, path: PathFacts) -> u32 {
        (self.window(path) / QUANTUM) as u32
    }

    /// Quanta of a PULL.
    #[expect(clippy::cast_possible_truncation, reason = "at most MOST_PULL: check")]
    fn quanta_per_pull(&self) -> u32 {
        (self.pull.0 / QUANTUM) as u32
    }

    /// How long the next PULL waits for one that grants this many quanta, on a link of this rate of which PULLs have a `share`.
    pub fn gap(&self, rate: Rate, quanta: u32, share: f64) -> Time {
        let quantum = whole((8 * QUANTUM) as f64 * 1e12 / rate.0 as f64 / self.pace);
        let slowed = if share < 1.0 { whole(quantum as f64 / share) } else { quantum };
        let quanta = if quanta == 0 { EMPTY_PULL } else { quanta };
        Time(slowed.max(1).saturating_mul(quanta.into())).min(Time::END)
    }

    /// NSCC's part as it works: with the network of the whole.
    fn nscc(&self) -> Option<Nscc> {
        self.nscc.as_ref().map(|nscc| Nscc { network_rtt: self.network_rtt, ..nscc.clone() })
    }
}

/// What a flow has to send, when one of its packets leaves.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Bytes on the wire that have never been sent.
    pub unsent: u64,
    /// Bytes on the wire that are to be sent again.
    pub lost: u64,
    /// Flows that share the NIC at the moment, this one among them.
    pub sources: u32,
}

/// What the sender of one flow knows.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Bytes that may leave; below zero what was sent beyond.
    credit: i64,
    /// How far the receiver has granted, in quanta.
    pulled: u32,
    /// How far it has been asked to grant.
    target: u32,
    /// A full packet on the wire.
    packet: i64,
    /// Most credit.
    most: i64,
    /// Nothing has come back yet.
    speculates: bool,
    nscc: Option<Box<nscc::State>>,
}

impl State {
    /// Something has come back: what the receiver has not granted is credit no more.
    fn stop_speculating(&mut self) {
        if std::mem::take(&mut self.speculates) {
            self.credit = self.credit.min(0);
        }
    }

    fn open(&self, gate: &mut Gate) {
        gate.set_credit(u32::from(self.credit > 0));
        if let Some(nscc) = &self.nscc {
            gate.set_window(nscc.window());
        }
    }
}

impl CongestionConfig for Rccc {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        let marks = match (&self.nscc, &self.oversubscribed) {
            (Some(_), _) => Marks::Required,
            (None, Some(_)) => Marks::Expected,
            (None, None) => Marks::Optional,
        };
        Facts {
            title: "RCCC",
            limit: Limit::Credit,
            grows: self.nscc.is_some(),
            needs_acks: true,
            marks,
            slowed_by: SlowedBy::MoreThanMarks,
            coupled: false,
            cnp_interval: None,
            telemetry: None,
            pulls: Some(Asking::Credit(self)),
            reaction_point: None,
            needs_trimming: None,
            max_rate: None,
            target_delay: None,
            acts_on: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.network_rtt != Some(Time::ZERO), "network_rtt", "more than 0", Time::ZERO)?;
        Invalid::positive("max_window", self.max_window)?;
        let is_pull = (QUANTUM..=MOST_PULL).contains(&self.pull.0);
        let expected = format!("{} to {}", Bytes(QUANTUM), Bytes(MOST_PULL));
        Invalid::unless(is_pull, "pull", expected, self.pull)?;
        let is_pace = self.pace > 0.0 && self.pace <= 1.0;
        Invalid::unless(is_pace, "pace", "a number above 0 and at most 1", self.pace)?;
        if let Some(nscc) = &self.nscc {
            let expected = "none inside rccc, whose own `network_rtt` holds for both";
            let found = nscc.network_rtt.unwrap_or_default();
            Invalid::unless(nscc.network_rtt.is_none(), "nscc.network_rtt", expected, found)?;
            nscc.check()
                .map_err(|error| Invalid { field: format!("nscc.{}", error.field).into(), ..error })?;
        }
        if let Some(oversubscribed) = &self.oversubscribed {
            let expected = "none with `nscc`, which reacts to the same marks at the sender";
            Invalid::unless(self.nscc.is_none(), "oversubscribed", expected, "a table")?;
            oversubscribed.check().map_err(|error| error.within("oversubscribed"))?;
        }
        self.pcie.as_ref().map_or(Ok(()), |pcie| pcie.check().map_err(|error| error.within("pcie")))
    }

    fn network_rtt(&mut self) -> Option<&mut Option<Time>> {
        Some(&mut self.network_rtt)
    }

    fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
        let credit = ("max_window", Bytes(self.window(path).max(packet.0)));
        let window = self.nscc().and_then(|nscc| nscc.first_window(packet, path));
        Some(window.map_or(
            credit,
            |(field, window)| {
                if window < credit.1 { (of_nscc(field), window) } else { credit }
            },
        ))
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        let packet = i64::try_from(start.packet.0).unwrap_or(i64::MAX);
        let most = i64::try_from(self.window(start.path)).unwrap_or(i64::MAX);
        let nscc = self.nscc().map(|nscc| Box::new(nscc.begin(start, gate)));
        // Of a window that holds no packet at all nothing could ever leave.
        let state = State {
            credit: most.max(1),
            pulled: 0,
            target: 0,
            packet,
            most: most.max(1),
            speculates: true,
            nscc,
        };
        state.open(gate);
        state
    }
}

/// A field of NSCC's, as it is called from the whole on.
fn of_nscc(field: &'static str) -> &'static str {
    match field {
        "initial_window" => "nscc.initial_window",
        _ => "nscc.max_window",
    }
}

impl CongestionControl for State {
    type Config = Rccc;

    const LEARNS: bool = true;
    const SHRINKS_BELOW_A_PACKET: bool = false;
    const CHOOSES_PATHS: bool = false;

    fn on_feedback(&mut self, config: &Rccc, feedback: &Feedback, gate: &mut Gate) -> bool {
        // Credit takes care of the last hop.
        let is_spared = feedback.cause == Cause::Trim && feedback.at_last_hop;
        let is_cut = match (&mut self.nscc, &config.nscc) {
            (Some(nscc), Some(config)) if is_spared => nscc.on_spared_loss(config, feedback),
            (Some(nscc), Some(config)) => nscc.react(config, feedback),
            _ => false,
        };
        if matches!(feedback.cause, Cause::Ack | Cause::Trim) {
            self.stop_speculating();
        }
        self.open(gate);
        is_cut
    }

    #[inline]
    fn on_sent(&mut self, _: Time, bytes: u64, gate: &mut Gate) {
        self.credit = self.credit.saturating_sub_unsigned(bytes);
        gate.set_credit(u32::from(self.credit > 0));
    }

    fn begin_with_one(&mut self, gate: &mut Gate) {
        if let Some(nscc) = &mut self.nscc {
            nscc.shrink_to_one();
        }
        self.open(gate);
    }

    fn on_pull(&mut self, pulled: u32, gate: &mut Gate) {
        self.stop_speculating();
        let more = pulled.wrapping_sub(self.pulled).cast_signed();
        // It was overtaken by a later one.
        if more > 0 {
            let bytes = i64::from(more) * QUANTUM.cast_signed();
            self.credit = self.credit.saturating_add(bytes).min(self.most);
            self.pulled = pulled;
        }
        self.open(gate);
    }

    fn pull_target(&mut self, demand: Demand) -> Option<u32> {
        let wanted = i64::try_from(demand.unsent.saturating_add(demand.lost)).unwrap_or(i64::MAX);
        let window = self.nscc.as_ref().map(|nscc| i64::try_from(nscc.window()).unwrap_or(i64::MAX));
        let wanted = wanted.min(window.map_or(i64::MAX, |window| window.saturating_add(self.packet)));
        let mut lacks = wanted.min(self.most) - self.credit;
        // However much it may still send unasked, what is there to send asks for something: short flows depend on it.
        if self.speculates && lacks < self.packet && demand.unsent > 0 {
            lacks = self.packet;
        }
        if demand.sources > 1 && lacks > 0 {
            // At least a byte, as a target that asks for nothing is not answered.
            lacks = (lacks / i64::from(demand.sources)).max(1);
        }
        // A target below what has been granted says nothing that the receiver does not know.
        let quanta = lacks.max(0).cast_unsigned().div_ceil(QUANTUM);
        self.target = self.pulled.wrapping_add(u32::try_from(quanta).unwrap_or(u32::MAX));
        Some(self.target)
    }

    fn awaits_credit(&self) -> bool {
        self.target.wrapping_sub(self.pulled).cast_signed() > 0
    }
}

#[cfg(test)]
mod tests;
