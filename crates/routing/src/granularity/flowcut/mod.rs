//! Flowcuts: a flow is re-routed only when nothing of it is in flight, which keeps it in order by construction.
//!
//! While a flow is open, its packets follow one path. The node that watches it (its sender, or its first switch) compares round-trip times: when
//! their moving average, relative to the least ever seen over as many hops, exceeds a threshold, the flow is *drained*: nothing is sent
//! until every packet is acknowledged. Whenever nothing of a flow is in flight, drained or not, the flowcut is over: the next packet
//! begins another one, on a new path and with fresh averages (Flowcut Switching, §II). `in_flight.rs` holds what switches count of it.
//!
//! ```text
//!            ┌───────────── nothing in flight ─────────────┐
//!            │                                             ▼
//!          Open ──average > threshold──▶ Draining ──nothing in flight──▶ Empty ──next packet──▶ Open (new path)
//!            ▲                              │
//!            └─ timeout: same path, average ┘
//! ```

mod at_switch;
pub(crate) mod in_flight;
mod state;
mod uncounted;

use netloom_transport::Feedback;
use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Granularity;
use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;
use crate::scheme::{Placement, Routing};
pub use in_flight::Assigned;
use state::{FlowcutState, Phase, RttMin};

/// A new decision when nothing of the flow is in flight; a congested flow is drained to get there. Flowcut Switching, §II. At a NIC, ACKs
/// of the transport show what is in flight. With placement `ingress` the flow's first switch counts what is in flight and chooses the path;
/// with `switch` every switch does, and re-routes a flow that has nothing in flight behind it.
///
/// For that, a packet's last switch acknowledges it to the first switch, or along the exact reverse of its path to every switch. What a
/// switch has counted and not yet seen acknowledged is in flight. The first switch measures round-trip times, without the host's own link
/// and the queue at the destination's port. It tells the source to stop a draining flow and to resume. A source that receives no signal for
/// `drain_timeout` resumes on the old path.
///
/// Where nothing is lost, order does not depend on timers. Where packets can be lost, an acknowledgement also covers all earlier packets of
/// the flow, and a flow that has not been seen for `routing.flow_timeout` is forgotten. With `routing.max_flow_entries`, a flow that finds
/// the table full is hashed, and stays on that path until nothing of it is in flight. If such packets came to a switch by several ports,
/// their acknowledgement goes on to the first switch by any path; the entries that it misses keep their flows on their paths until a later
/// acknowledgement passes.
///
/// Refused where switches count flowcuts: a fault `cut` with `reroute_after`, because packets in flight would leave the path along which
/// they are counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flowcut {
    /// Drain when the moving average of RTT / minimum RTT exceeds this. The paper finds 3 to 5 best.
    pub threshold: f64,
    /// Weight of the newest RTT in the moving average, 0 < alpha <= 1.
    pub alpha: f64,
    /// Drain when the moving average of the RTT ratio's change per ACK exceeds this. The paper names it without a value;
    /// absent: never.
    pub trend_threshold: Option<f64>,
    /// Weight of the newest change in that average; absent: alpha.
    pub beta: Option<f64>,
    /// Give up draining after this long and resume on the same path, in case an ACK was lost.
    pub drain_timeout: Time,
    /// Drain only if at least this much of the flow is still unsent.
    pub min_remaining: Bytes,
    /// Resume on the new path once at most this many packets are in flight on the old one, and send no further ahead of the oldest of them: less idle
    /// time at the cost of a bounded out-of-order distance.
    /// 0 keeps strict order. At a flow's first switch, its source is notified and keeps
    /// to the distance by its transport's ACKs. Not at every switch: acknowledgements of two paths would be in flight at once.
    pub max_ood: u32,
    /// At NICs: whether a flow keeps its path when nothing of it is in flight, unless it was drained. By the paper every such moment ends a flowcut, and
    /// the next packet takes another path. If a NIC has many flows, each waits so long for its turn that nothing of it is in flight any more: then
    /// flows on idle paths change them with every packet, and flows on congested paths, where packets are in flight, stay.
    pub keep_idle: bool,
    /// Whether the averages are reset with every flowcut (in the paper the table entry is deleted with it); the authors' simulator carries
    /// them over.
    pub reset: bool,
    /// Whether the minimum RTT is kept per flow, as in the authors' simulator, instead of per NIC and hop count.
    pub rtt_min_per_flow: bool,
    /// Initial value of the minimum RTT.
    pub rtt_min_start: RttMinStart,
    /// Whether a flow that has nothing left to send is drained, too, as in the authors' simulator. That changes no packet, only how much
    /// counts as draining.
    pub drain_tail: bool,
    /// How exactly times are measured.
    pub timestamps: Timestamps,
    /// At switches: size on the wire of the last switch's acknowledgement of a packet.
    pub ack_size: Bytes,
    /// At switches: size on the wire of the frame by which the first switch stops a source or lets it continue.
    pub frame_size: Bytes,
    /// At switches: what an XOFF stops at the source.
    pub pauses: Stops,
    /// At switches: packets that a stopped flow may still send, so that its path does not run dry while it empties (XOFF with credit).
    pub credit: u32,
    /// With placement `switch`: which switches measure, and stop the source.
    pub measured_at: Measures,
}

/// Which switches of a flow's way measure round-trip times and have its source stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measures {
    /// The first one.
    #[default]
    First,
    /// Every one that counts: each measures the rest of the path, from the moment at which a packet passes until its acknowledgement does,
    /// and compares it with the least time over as many hops, and drains what is behind it. A flow resumes when all of them allow it. A
    /// packet and its acknowledgement are assumed to carry a timestamp per switch of the path: those bytes are part of `transport.header`
    /// and `ack_size`, two each in the paper's format.
    Every,
}

/// Where the least round-trip time starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttMinStart {
    /// The first RTT that is measured.
    #[default]
    Observed,
    /// The RTT of the idle minimal path, which is computed when a flow begins, as in the authors' simulator: a flow that starts behind a congested
    /// receiver does not treat that RTT as normal. For any other number of hops it is the first one measured.
    Analytic,
}

/// How exactly round-trip times are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Timestamps {
    /// To the picosecond.
    #[default]
    Exact,
    /// In whole nanoseconds of 16 bits, as in the paper's header: longer times count as 65.535 us.
    #[serde(rename = "16-bit-ns")]
    Nanoseconds,
}

/// What a source pauses at a switch's signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stops {
    /// The flow alone: fine-grained flow control.
    #[default]
    Flow,
    /// The flow's whole traffic class: what a NIC without fine-grained flow control knows.
    Class,
}

impl Timestamps {
    /// A time as it is measured.
    fn measure(self, time: Time) -> Time {
        match self {
            Timestamps::Exact => time.max(Time(1)),
            Timestamps::Nanoseconds => Time((time.0 / 1000).clamp(1, u64::from(u16::MAX)) * 1000),
        }
    }
}

impl Default for Flowcut {
    fn default() -> Self {
        Flowcut {
            threshold: 4.0,
            alpha: 0.25,
            trend_threshold: None,
            beta: None,
            drain_timeout: Time::from_ms(1),
            min_remaining: Bytes(0),
            max_ood: 0,
            keep_idle: false,
            reset: true,
            rtt_min_per_flow: false,
            rtt_min_start: RttMinStart::Observed,
            drain_tail: false,
            timestamps: Timestamps::Exact,
            ack_size: Bytes(20),
            frame_size: Bytes(64),
            pauses: Stops::Flow,
            credit: 0,
            measured_at: Measures::First,
        }
    }
}

impl Flowcut {
    /// Refuses what has no meaning at a place. `entries`: what a switch may remember is bounded.
    fn check_place(&self, placement: Placement, entries: bool) -> Result<(), Invalid> {
        let (default, at_nic) = (Flowcut::default(), placement == Placement::Nic);
        let measures = placement == Placement::Switch || self.measured_at == Measures::First;
        let expected = "\"first\", or placement \"switch\", where others count, too";
        Invalid::unless(measures, "measured_at", expected, "\"every\"")?;
        if placement != Placement::Nic {
            let bounded = placement == Placement::Ingress && !entries;
            let expected = "0, or placement \"nic\" or \"ingress\" without `max_flow_entries`: a switch acknowledges and counts one way of a flow at a time";
            Invalid::unless(self.max_ood == 0 || bounded, "max_ood", expected, self.max_ood)?;
        }
        let parts: &[(&'static str, bool)] = match at_nic {
            true => &[
                ("ack_size", self.ack_size != default.ack_size),
                ("frame_size", self.frame_size != default.frame_size),
                ("pauses", self.pauses != default.pauses),
                ("credit", self.credit != default.credit),
            ],
            false => &[
                ("keep_idle", self.keep_idle != default.keep_idle),
                ("reset", self.reset != default.reset),
                ("rtt_min_per_flow", self.rtt_min_per_flow != default.rtt_min_per_flow),
                ("rtt_min_start", self.rtt_min_start != default.rtt_min_start),
                ("drain_tail", self.drain_tail != default.drain_tail),
            ],
        };
        let places = if at_nic { "\"ingress\" or \"switch\"" } else { "\"nic\"" };
        let only = format!("nothing, or the placement {places}, the only one for which it has a meaning");
        match parts.iter().find(|(_, is_set)| *is_set) {
            Some(&(field, _)) => Err(Invalid::new(field, only, "a value")),
            None => Ok(()),
        }
    }
}

impl Routing {
    /// How flows fall into flowcuts that switches count, if they do.
    #[inline]
    pub fn counted_flowcuts(&self) -> Option<&Flowcut> {
        self.granularity.flowcut().filter(|_| self.placement != Placement::Nic)
    }
}

impl Granularity {
    /// How flows fall into flowcuts, if they do.
    #[inline]
    pub fn flowcut(&self) -> Option<&Flowcut> {
        match self {
            Granularity::Flowcut(flowcut) => Some(flowcut),
            _ => None,
        }
    }
}

impl GranularityConfig for Flowcut {
    type Run = FlowcutState;
    type Shared = RttMin;

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Any,
            ends: Ends::WhenEmpty,
            remembers: true,
            acks: Acks::OfEveryPacket,
            serialisation: true,
            holds_back: true,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> FlowcutState {
        FlowcutState::default()
    }

    fn continues(&self, state: &mut FlowcutState, _: Time, _: u32) -> bool {
        if state.phase != Phase::Empty {
            return true;
        }
        state.phase = Phase::Open;
        if self.reset {
            (state.average, state.last, state.trend) = (1.0, 1.0, 0.0);
        }
        false
    }

    fn may_send(&self, state: &FlowcutState, next: u32, oldest: u32) -> bool {
        state.may_send(self, next, oldest)
    }

    // An open flow leaves its path when an ACK says so.
    fn is_settled(&self, state: &FlowcutState, oldest: u32) -> bool {
        state.phase == Phase::Open && oldest >= state.old_path_end
    }

    fn expects(&self) -> bool {
        self.rtt_min_start == RttMinStart::Analytic
    }

    fn expect(&self, state: &mut FlowcutState, shared: &mut RttMin, hops: u32, rtt: Time) {
        state.least(self, shared).update(hops, self.timestamps.measure(rtt));
    }

    fn on_feedback(&self, state: &mut FlowcutState, shared: &mut RttMin, feedback: &Feedback) -> Advice {
        state.on_feedback(self, shared, feedback)
    }

    fn on_deadline(&self, state: &mut FlowcutState, now: Time) {
        // A drain that began after the one that this deadline was set for goes on.
        if state.deadline(self).is_some_and(|deadline| deadline <= now) {
            state.on_deadline(now);
        }
    }

    fn drains(state: &FlowcutState) -> (u32, Time) {
        (state.drains, state.drain_time)
    }

    fn check(&self) -> Result<(), Invalid> {
        let weight = |name: &'static str, value: f64| {
            Invalid::unless(value > 0.0 && value <= 1.0, name, "a number above 0 and at most 1", value)
        };
        // Round-trip times are compared with the least one: no average is below 1.
        Invalid::at_least("threshold", self.threshold, 1.0)?;
        weight("alpha", self.alpha)?;
        self.beta.map_or(Ok(()), |beta| weight("beta", beta))?;
        if let (Some(beta), None) = (self.beta, self.trend_threshold) {
            return Err(Invalid::new(
                "beta",
                "nothing without trend_threshold, which alone gives it a meaning",
                beta,
            ));
        }
        let trend = self.trend_threshold;
        trend.map_or(Ok(()), |trend| {
            Invalid::unless(trend > 0.0, "trend_threshold", "a number above 0", trend)
        })?;
        Invalid::unless(self.drain_timeout > Time::ZERO, "drain_timeout", "more than 0", self.drain_timeout)?;
        let has_credit = self.pauses == Stops::Flow || self.credit == 0;
        let none = "0 with pauses = \"class\": a pause of a whole class has no credit";
        Invalid::unless(has_credit, "credit", none, self.credit)?;
        let size = |name: &'static str, size: Bytes| {
            let fits = (1..=u64::from(u16::MAX)).contains(&size.0);
            Invalid::unless(fits, name, format!("1 to {} bytes", u16::MAX), size.0)
        };
        size("ack_size", self.ack_size)?;
        size("frame_size", self.frame_size)
    }

    fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
        let is_bounded = scheme.max_flow_entries.is_some();
        self.check_place(scheme.placement, is_bounded).map_err(|invalid| invalid.within("granularity"))
    }
}
